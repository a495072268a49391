//! The conventional pipeline's files: one for each group of streams, appended to, replaced when full, synced only then
//! and at close.
//!
//! A file is frames: `u32` length of the plain bytes, `u32` length of the rest, a nonce, and the batch, compressed by
//! zlib and encrypted with AES-256-GCM, the two lengths authenticated with it.

use crate::outcome::Failure;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Groups that streams are divided into.
pub(super) const GROUPS: usize = 16;
/// The lengths at the beginning of a frame.
pub(super) const HEAD: usize = 8;
/// Where what is compressed begins in a frame.
pub(super) const COMPRESSED: usize = HEAD + NONCE_LEN;

pub(super) struct Files {
    directory: PathBuf,
    segment_size: u64,
    key: LessSafeKey,
    frames: AtomicU64,
    groups: [Mutex<Option<Open>>; GROUPS],
}

struct Open {
    file: File,
    length: u64,
    number: u32,
}

impl Files {
    pub(super) fn create(directory: &Path, segment_size: u64) -> Result<Self, Failure> {
        std::fs::create_dir(directory)?;
        let mut key = [0; 32];
        rand::fill(&mut key)?;
        Ok(Files {
            directory: directory.to_owned(),
            segment_size,
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key)?),
            frames: AtomicU64::new(0),
            groups: Default::default(),
        })
    }

    /// The group that a stream belongs to.
    pub(super) fn group(stream: &str) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(stream);
        usize::try_from(hash % GROUPS as u64).unwrap_or_default()
    }

    /// Makes a frame of `frame`, in which the compressed batch begins at [`COMPRESSED`].
    pub(super) fn encrypt(&self, frame: &mut Vec<u8>, plain: usize) -> Result<(), Failure> {
        let rest = frame.len() - HEAD + AES_256_GCM.tag_len();
        frame[..4].copy_from_slice(&u32::try_from(plain)?.to_le_bytes());
        frame[4..HEAD].copy_from_slice(&u32::try_from(rest)?.to_le_bytes());
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&self.frames.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        frame[HEAD..COMPRESSED].copy_from_slice(&nonce);
        let (head, body) = frame.split_at_mut(COMPRESSED);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(&head[..HEAD]), body)?;
        frame.extend_from_slice(tag.as_ref());
        Ok(())
    }

    /// Appends a frame to the file of a group.
    pub(super) fn append(&self, group: usize, frame: &[u8]) -> Result<(), Failure> {
        let mut place = self.groups[group].lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match place.take() {
            Some(open) => open,
            None => self.begin(group, 0)?,
        };
        open.file.write_all(frame)?;
        open.length += frame.len() as u64;
        if open.length >= self.segment_size {
            open.file.sync_all()?;
            open = self.begin(group, open.number + 1)?;
        }
        *place = Some(open);
        Ok(())
    }

    /// Syncs what is open.
    pub(super) fn close(&self) -> Result<(), Failure> {
        for group in &self.groups {
            if let Some(open) = group.lock().unwrap_or_else(PoisonError::into_inner).take() {
                open.file.sync_all()?;
            }
        }
        File::open(&self.directory)?.sync_all()?;
        Ok(())
    }

    fn begin(&self, group: usize, number: u32) -> Result<Open, Failure> {
        let path = self.directory.join(format!("{group:02}-{number:06}.log"));
        Ok(Open { file: File::create_new(path)?, length: 0, number })
    }

    /// The plain bytes of each frame of a file.
    #[cfg(test)]
    pub(super) fn read(&self, mut file: &[u8]) -> Vec<Vec<u8>> {
        let mut batches = Vec::new();
        while !file.is_empty() {
            let length = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
            let (plain, end) = (length(0), HEAD + length(4));
            let nonce = Nonce::try_assume_unique_for_key(&file[HEAD..COMPRESSED]).unwrap();
            let mut body = file[COMPRESSED..end].to_vec();
            let body = self.key.open_in_place(nonce, Aad::from(&file[..HEAD]), &mut body).unwrap();
            let mut batch = vec![0; plain];
            let written = libdeflater::Decompressor::new().zlib_decompress(body, &mut batch).unwrap();
            assert_eq!(written, plain);
            batches.push(batch);
            file = &file[end..];
        }
        batches
    }
}
