//! The records of the database `meta`.
//!
//! ```text
//! "vault":   "bullaVM1" ‖ log id (16) ‖ generation u64 ‖ next number u64 ‖ next index bucket u32 ‖ CRC-32C
//! "erasing": "bullaVE1" ‖ state u8: 1 intended, 2 erased ‖ three zeros ‖ count u32 ‖ so many numbers u64 ‖ CRC-32C
//! "follows": "bullaVF1" ‖ frames u64 ‖ CRC-32C; absent is 0
//! "changes": "bullaVC1" ‖ count u64 ‖ random (8) ‖ CRC-32C; absent is zeros
//! ```
//!
//! Little-endian. LMDB's pages have no checksum of their own, and a number that is given twice would join two people.

use heed::RoTxn;

use super::tables::{TableName, Tables};
use super::transaction_error::TransactionError;
use super::write_transaction::WriteTransaction;
use bulla_crypto::environment::Random;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, Result};

/// What the vault is, and how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meta {
    pub(super) log: LogId,
    pub(super) generation: u64,
    /// The number that the next new subject gets; no row has it or a greater one.
    pub(super) next_number: u64,
    /// The id that the next new index bucket gets; none in use has it or a greater one.
    pub(super) next_bucket: u32,
}

/// The number of frames of the log whose erasures the vault has followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Follows(pub(super) u64);

/// Identifies the last transaction. Two copies of one vault with the same value have the same content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Changes {
    /// How many transactions there were.
    pub(super) count: u64,
    /// Random bytes, drawn anew in each transaction. They tell apart two copies that went on separately and had equally many.
    pub(super) tag: [u8; 8],
}

/// An erasure that nobody has confirmed yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Erasing {
    pub(super) numbers: Vec<u64>,
    pub(super) erased: bool,
}

/// The most subjects that one erasure takes.
pub const MAX_ERASED: usize = 4096;

const META: &[u8] = b"vault";
const META_MAGIC: &[u8; 8] = b"bullaVM1";
const META_LENGTH: usize = 8 + 16 + 8 + 8 + 4;
const FOLLOWS: &[u8] = b"follows";
const FOLLOWS_MAGIC: &[u8; 8] = b"bullaVF1";
const CHANGES: &[u8] = b"changes";
const CHANGES_MAGIC: &[u8; 8] = b"bullaVC1";
const ERASING: &[u8] = b"erasing";
const ERASING_MAGIC: &[u8; 8] = b"bullaVE1";

impl Meta {
    /// Reads it; `None` in a vault whose making was cut short.
    pub(super) fn read(tables: &Tables, txn: &RoTxn<'_>) -> Result<Option<Self>, TransactionError> {
        let Some(bytes) = tables.meta.get(txn, META)? else { return Ok(None) };
        Ok(Some(Self::decode(bytes).ok_or_else(|| damaged("vault"))?))
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let content = checked(bytes)?;
        let [magic, log @ ..] = content.as_chunks::<8>().0 else { return None };
        if content.len() != META_LENGTH || magic != META_MAGIC {
            return None;
        }
        let [low, high, generation, next_number] = log else { return None };
        let mut id = [0; 16];
        id[..8].copy_from_slice(low);
        id[8..].copy_from_slice(high);
        Some(Meta {
            log: LogId(id),
            generation: u64::from_le_bytes(*generation),
            next_number: u64::from_le_bytes(*next_number),
            next_bucket: u32::from_le_bytes(content[40..].try_into().ok()?),
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(META_LENGTH + 4);
        bytes.extend_from_slice(META_MAGIC);
        bytes.extend_from_slice(&self.log.0);
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.next_number.to_le_bytes());
        bytes.extend_from_slice(&self.next_bucket.to_le_bytes());
        with_check(bytes)
    }

    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        txn.put(TableName::Meta, META, &self.encode())
    }
}

impl Follows {
    pub(super) fn read(tables: &Tables, txn: &RoTxn<'_>) -> Result<Self, TransactionError> {
        let Some(bytes) = tables.meta.get(txn, FOLLOWS)? else { return Ok(Follows(0)) };
        Ok(Self::decode(bytes).ok_or_else(|| damaged("follows"))?)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let ([magic, frames], []) = checked(bytes)?.as_chunks::<8>() else { return None };
        (magic == FOLLOWS_MAGIC).then_some(Follows(u64::from_le_bytes(*frames)))
    }

    pub(super) fn encode(self) -> Vec<u8> {
        with_check([&FOLLOWS_MAGIC[..], &self.0.to_le_bytes()].concat())
    }

    pub(super) fn write(self, txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        txn.put(TableName::Meta, FOLLOWS, &self.encode())
    }
}

impl Changes {
    pub(super) fn read(tables: &Tables, txn: &RoTxn<'_>) -> Result<Self, TransactionError> {
        let Some(bytes) = tables.meta.get(txn, CHANGES)? else { return Ok(Changes::default()) };
        Ok(Self::decode(bytes).ok_or_else(|| damaged("changes"))?)
    }

    /// The value that identifies the next transaction.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn next(self, random: &dyn Random) -> Result<Self> {
        let mut tag = [0; 8];
        random.fill(&mut tag)?;
        Ok(Changes { count: self.count.saturating_add(1), tag })
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let ([magic, count, tag], []) = checked(bytes)?.as_chunks::<8>() else { return None };
        (magic == CHANGES_MAGIC).then_some(Changes { count: u64::from_le_bytes(*count), tag: *tag })
    }

    pub(super) fn encode(self) -> Vec<u8> {
        with_check([&CHANGES_MAGIC[..], &self.count.to_le_bytes(), &self.tag].concat())
    }

    pub(super) fn write(self, txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        txn.put(TableName::Meta, CHANGES, &self.encode())
    }
}

impl Erasing {
    pub(super) fn read(tables: &Tables, txn: &RoTxn<'_>) -> Result<Option<Self>, TransactionError> {
        let Some(bytes) = tables.meta.get(txn, ERASING)? else { return Ok(None) };
        Ok(Some(Self::decode(bytes).ok_or_else(|| damaged("erasing"))?))
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, numbers) = checked(bytes)?.split_at_checked(16)?;
        let (numbers, []) = numbers.as_chunks::<8>() else { return None };
        let count = u32::from_le_bytes(head[12..].try_into().ok()?);
        let sound = head[..8] == *ERASING_MAGIC && head[9..12] == [0; 3] && numbers.len() == count as usize;
        let erased = match head[8] {
            1 => false,
            2 => true,
            _ => return None,
        };
        let numbers = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        sound.then_some(Erasing { numbers, erased })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(20 + 8 * self.numbers.len());
        bytes.extend_from_slice(ERASING_MAGIC);
        bytes.extend_from_slice(&[1 + u8::from(self.erased), 0, 0, 0]);
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        with_check(bytes)
    }

    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        txn.put(TableName::Meta, ERASING, &self.encode())
    }

    pub(super) fn clear(txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        txn.delete(TableName::Meta, ERASING)
    }

    /// Whether `number` is being erased, and therefore must not be given out.
    pub(super) fn holds_back(&self, number: u64) -> bool {
        !self.erased && self.numbers.contains(&number)
    }
}

pub(super) fn with_check(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (content, check) = bytes.split_last_chunk::<4>()?;
    (crc32c::crc32c(content) == u32::from_le_bytes(*check)).then_some(content)
}

fn damaged(record: &str) -> Error {
    Error::tampered(format!("the vault's record `{record}` is damaged: restore the vault from a backup"))
}
