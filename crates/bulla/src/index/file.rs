//! The file of an epoch: its parts, one after the other.

use super::part::{HEAD, Head, Part};
use crate::format::files::index_path;
use bulla_crypto::environment::AesGcm;
use bulla_crypto::epoch::EpochKeys;
use bulla_store::{Store, StoreFile};
use std::io;

/// The most parts that are looked at, so that a file takes little memory whatever its length: enough for eight
/// million frames.
const MOST_PARTS: usize = 1 << 17;
/// The most bytes of parts that are kept when others are added.
pub(super) const MOST_KEPT: usize = 128 << 20;

/// The parts of an epoch's file, as far as their heads tell.
#[derive(Default)]
pub(crate) struct Parts {
    file: Option<Box<dyn StoreFile>>,
    /// The heads, and where they lie.
    pub(crate) heads: Vec<(Head, u64)>,
    /// The first thing that is no part, where there is such.
    pub(crate) damage: Option<Damage>,
}

/// What is no part.
#[derive(Clone, Copy)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    /// Whether it may be the beginning of one, as a write leaves it that is under way.
    pub(crate) torn: bool,
}

impl Parts {
    /// Reads the heads of the parts of `epoch`. Without a file there are none.
    ///
    /// # Errors
    /// Where the file is there and cannot be read.
    pub(crate) fn load(store: &dyn Store, epoch: u64) -> io::Result<Self> {
        let file = match store.open(&index_path(epoch)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Parts::default()),
            file => file?,
        };
        let length = file.length()?;
        let (mut heads, mut damage, mut offset) = (Vec::new(), None, 0);
        while offset < length {
            let mut bytes = [0; HEAD];
            let short = length - offset < HEAD as u64;
            if !short {
                file.read_exact_at(&mut bytes, offset)?;
            }
            let head = Head::parse(&bytes).filter(|head| head.epoch == epoch && heads.len() < MOST_PARTS);
            let end = head.as_ref().map(|head| offset + HEAD as u64 + u64::from(head.length));
            match head.zip(end.filter(|&end| end <= length)) {
                Some((head, end)) => heads.push((head, std::mem::replace(&mut offset, end))),
                None => {
                    damage = Some(Damage { offset, torn: short || end.is_some() });
                    break;
                }
            }
        }
        Ok(Parts { file: Some(file), heads, damage })
    }

    /// The bytes of the parts that open; `None` where they are too many.
    pub(super) fn sound(&self, keys: &EpochKeys) -> io::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        for (head, offset) in &self.heads {
            let text = self.read(head, *offset)?;
            if Part::open(head, text.clone(), keys, &AesGcm).is_err() {
                continue;
            }
            content.extend_from_slice(&head.encode());
            content.extend(text);
            if content.len() > MOST_KEPT {
                return Ok(None);
            }
        }
        Ok(Some(content))
    }

    /// Reads the ciphertext of the part at `offset`.
    pub(crate) fn read(&self, head: &Head, offset: u64) -> io::Result<Vec<u8>> {
        // The head was checked against the file's length.
        let mut text = vec![0; head.length as usize];
        self.file.as_ref().ok_or(io::ErrorKind::NotFound)?.read_exact_at(&mut text, offset + HEAD as u64)?;
        Ok(text)
    }
}
