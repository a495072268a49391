//! The file of an epoch: its parts, one after the other.

use super::part::{HEAD, Head};
use super::path;
use crate::store::{Store, StoreFile};
use std::io;

/// The parts of an epoch's file, as far as their heads tell.
#[derive(Default)]
pub(super) struct Parts {
    file: Option<Box<dyn StoreFile>>,
    /// The heads, and where they lie.
    pub(super) heads: Vec<(Head, u64)>,
    /// Where the first thing lies that is no part, where there is such.
    pub(super) damage: Option<u64>,
}

impl Parts {
    /// Reads the heads of the parts of `epoch`. Without a file there are none.
    ///
    /// # Errors
    /// Where the file is there and cannot be read.
    pub(super) fn load(store: &dyn Store, epoch: u64) -> io::Result<Self> {
        let file = match store.open(&path(epoch)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Parts::default()),
            file => file?,
        };
        let length = file.length()?;
        let (mut heads, mut damage, mut offset) = (Vec::new(), None, 0);
        while offset < length {
            let mut bytes = [0; HEAD];
            let head = match length - offset < HEAD as u64 {
                true => None,
                false => {
                    file.read_exact_at(&mut bytes, offset)?;
                    Head::parse(&bytes)
                }
            };
            let body = offset + HEAD as u64;
            match head.filter(|head| head.epoch == epoch && body + u64::from(head.length) <= length) {
                Some(head) => {
                    let start = std::mem::replace(&mut offset, body + u64::from(head.length));
                    heads.push((head, start));
                }
                None => {
                    damage = Some(offset);
                    break;
                }
            }
        }
        Ok(Parts { file: Some(file), heads, damage })
    }

    /// The bytes of all parts.
    pub(super) fn content(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        for (head, offset) in &self.heads {
            content.extend_from_slice(&head.encode());
            content.extend(self.read(head, *offset)?);
        }
        Ok(content)
    }

    /// Reads the ciphertext of the part at `offset`.
    pub(super) fn read(&self, head: &Head, offset: u64) -> io::Result<Vec<u8>> {
        // The head was checked against the file's length.
        let mut text = vec![0; head.length as usize];
        self.file.as_ref().ok_or(io::ErrorKind::NotFound)?.read_exact_at(&mut text, offset + HEAD as u64)?;
        Ok(text)
    }
}
