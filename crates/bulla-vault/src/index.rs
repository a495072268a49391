//! The index: from a pseudonym to a number.
//!
//! - The pseudonyms' space is divided among buckets; a bucket is halved when it has more than `SPLIT_ABOVE` entries.
//! - An entry is encrypted under its bucket's key, in key and value: without it nothing leads from a person to a number.
//! - Entries are permuted, not hashed, so that a bucket can be encrypted anew without knowing anybody.
//!
//! ```text
//! buckets: first prefix u16, big-endian -> id u32 ‖ entries u32 ‖ CRC-32C of the key and these
//! index:   id u32, big-endian ‖ AES-256(P) (16) -> number u64 xor the first half of AES-256(not P)
//! ```
//!
//! P is a pseudonym, its prefix the first two bytes. A bucket's range ends where the next begins; the first is at 0.

use aws_lc_rs::cipher::{
    AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use heed::RoTxn;
use std::collections::HashSet;

use super::keys::Keys;
use super::pseudonym::Pseudonym;
use super::tables::{TableName, Tables};
use super::transaction_error::TransactionError;
use super::write_transaction::WriteTransaction;
use bulla_crypto::subject::Secret;
use bulla_store::{Error, Result};

/// A bucket with more entries is halved.
pub(super) const SPLIT_ABOVE: u32 = 8192;
/// One past the last prefix.
const END: u32 = 1 << 16;

/// A bucket of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bucket {
    /// The first prefix that belongs to it.
    pub(super) start: u16,
    pub(super) id: u32,
    pub(super) entries: u32,
}

impl Bucket {
    /// The bucket that `prefix` belongs to.
    pub(super) fn of(tables: &Tables, txn: &RoTxn<'_>, prefix: u16) -> Result<Self, TransactionError> {
        let found = tables.buckets.get_lower_than_or_equal_to(txn, &prefix.to_be_bytes())?;
        let (start, value) = found.ok_or_else(damaged)?;
        Ok(Self::decode(start, value).ok_or_else(damaged)?)
    }

    /// All buckets in the order of their prefixes.
    pub(super) fn all(tables: &Tables, txn: &RoTxn<'_>) -> Result<Vec<Self>, TransactionError> {
        let mut all = Vec::new();
        for entry in tables.buckets.iter(txn)? {
            let (start, value) = entry?;
            all.push(Self::decode(start, value).ok_or_else(damaged)?);
        }
        match all.first() {
            Some(Bucket { start: 0, .. }) => Ok(all),
            _ => Err(damaged().into()),
        }
    }

    pub(super) fn decode(start: &[u8], value: &[u8]) -> Option<Self> {
        let start = <[u8; 2]>::try_from(start).ok()?;
        let value = <&[u8; 12]>::try_from(value).ok()?;
        let ([id, entries, check], []) = value.as_chunks::<4>() else { return None };
        let bucket = Bucket {
            start: u16::from_be_bytes(start),
            id: u32::from_le_bytes(*id),
            entries: u32::from_le_bytes(*entries),
        };
        (u32::from_le_bytes(*check) == bucket.check()).then_some(bucket)
    }

    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        txn.put(TableName::Buckets, &self.start.to_be_bytes(), &self.encode())
    }

    pub(super) fn encode(&self) -> [u8; 12] {
        let mut value = [0; 12];
        let numbers = [self.id, self.entries, self.check()].map(u32::to_le_bytes);
        value.copy_from_slice(numbers.as_flattened());
        value
    }

    fn check(&self) -> u32 {
        let numbers = [u32::from(self.start), self.id, self.entries].map(u32::to_le_bytes);
        crc32c::crc32c(numbers.as_flattened())
    }

    /// One past the last prefix that belongs to it.
    fn end(&self, tables: &Tables, txn: &RoTxn<'_>) -> Result<u32, TransactionError> {
        let next = tables.buckets.get_greater_than(txn, &self.start.to_be_bytes())?;
        let next = next.map(|(start, value)| Self::decode(start, value).ok_or_else(damaged)).transpose()?;
        Ok(next.map_or(END, |next| u32::from(next.start)))
    }
}

/// One person's entry, in clear.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) pseudonym: Pseudonym,
    pub(super) number: u64,
}

/// Encrypts and decrypts the entries of one bucket.
pub(super) struct IndexCipher {
    encrypt: EncryptingKey,
    decrypt: DecryptingKey,
    id: u32,
}

impl IndexCipher {
    pub(super) fn new(id: u32, key: &Secret) -> Result<Self> {
        let key = || UnboundCipherKey::new(&AES_256, &key.0);
        let encrypt = key().and_then(EncryptingKey::ecb);
        let decrypt = key().and_then(DecryptingKey::ecb);
        let refused = |_| Error::unavailable("AES-256 refused the key of an index bucket");
        Ok(IndexCipher { encrypt: encrypt.map_err(refused)?, decrypt: decrypt.map_err(refused)?, id })
    }

    fn permute(&self, mut block: [u8; 16]) -> Result<[u8; 16]> {
        let permuted = self.encrypt.less_safe_encrypt(&mut block, EncryptionContext::None);
        permuted.map_err(|_| Error::unavailable("AES-256 refused an entry of the index"))?;
        Ok(block)
    }

    /// The key of a pseudonym's entry.
    pub(super) fn key(&self, pseudonym: Pseudonym) -> Result<[u8; 20]> {
        let mut key = [0; 20];
        key[..4].copy_from_slice(&self.id.to_be_bytes());
        key[4..].copy_from_slice(&self.permute(pseudonym.0)?);
        Ok(key)
    }

    /// What hides the number.
    fn mask(&self, pseudonym: Pseudonym) -> Result<u64> {
        let [mask @ .., _, _, _, _, _, _, _, _] = self.permute(pseudonym.0.map(|byte| !byte))?;
        Ok(u64::from_le_bytes(mask))
    }

    /// An entry's bytes.
    pub(super) fn seal(&self, entry: Entry) -> Result<([u8; 20], [u8; 8])> {
        let value = entry.number ^ self.mask(entry.pseudonym)?;
        Ok((self.key(entry.pseudonym)?, value.to_le_bytes()))
    }

    fn number(&self, pseudonym: Pseudonym, value: &[u8]) -> Result<u64, TransactionError> {
        let value = <[u8; 8]>::try_from(value).map_err(|_| damaged())?;
        Ok(u64::from_le_bytes(value) ^ self.mask(pseudonym)?)
    }

    /// An entry, from its bytes.
    pub(super) fn open(&self, key: &[u8], value: &[u8]) -> Result<Entry, TransactionError> {
        let mut block =
            key.get(4..).and_then(|block| <[u8; 16]>::try_from(block).ok()).ok_or_else(damaged)?;
        let opened = self.decrypt.decrypt(&mut block, DecryptionContext::None);
        opened.map_err(|_| Error::unavailable("AES-256 refused an entry of the index"))?;
        let pseudonym = Pseudonym(block);
        Ok(Entry { pseudonym, number: self.number(pseudonym, value)? })
    }
}

/// The number of a pseudonym, if it has one. The entry is not authenticated; only the row that it leads to shows that the number
/// is right.
///
/// # Errors
/// `Tampered` where the index is damaged.
pub(super) fn find(
    tables: &Tables,
    txn: &RoTxn<'_>,
    keys: &Keys,
    pseudonym: Pseudonym,
) -> Result<Option<u64>, TransactionError> {
    let cipher = cipher(keys, Bucket::of(tables, txn, pseudonym.prefix())?.id)?;
    let Some(value) = tables.index.get(txn, &cipher.key(pseudonym)?)? else { return Ok(None) };
    Ok(Some(cipher.number(pseudonym, value)?))
}

/// Puts in an entry that is not there yet, and says whether its bucket is to be halved.
pub(super) fn insert(
    tables: &Tables,
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    entry: Entry,
) -> Result<Option<Bucket>, TransactionError> {
    let mut bucket = Bucket::of(tables, txn, entry.pseudonym.prefix())?;
    let cipher = cipher(keys, bucket.id)?;
    let (key, value) = cipher.seal(entry)?;
    txn.put(TableName::Index, &key, &value)?;
    bucket.entries = bucket.entries.saturating_add(1);
    bucket.write(txn)?;
    let crowded = bucket.entries > SPLIT_ABOVE && bucket.end(tables, txn)? - u32::from(bucket.start) > 1;
    Ok(crowded.then_some(bucket))
}

/// Halves a bucket: its entries go to two, of the ids `into`.
pub(super) fn split(
    tables: &Tables,
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    bucket: Bucket,
    into: [u32; 2],
) -> Result<(), TransactionError> {
    let start = u32::from(bucket.start);
    let middle = start + (bucket.end(tables, txn)? - start) / 2;
    let middle = u16::try_from(middle).map_err(|_| damaged())?;
    let entries = take_out(tables, txn, keys, bucket)?;
    let (low, high) = entries.into_iter().partition(|entry: &Entry| entry.pseudonym.prefix() < middle);
    put_in(txn, keys, (bucket.start, into[0]), low)?;
    put_in(txn, keys, (middle, into[1]), high)
}

/// Encrypts a bucket anew, under the id `into`, without the entries of `erased`.
pub(super) fn rewrite(
    tables: &Tables,
    txn: &mut WriteTransaction<'_>,
    bucket: Bucket,
    (old, new): (&Keys, &Keys),
    into: u32,
    erased: &HashSet<Pseudonym>,
) -> Result<(), TransactionError> {
    let mut entries = take_out(tables, txn, old, bucket)?;
    entries.retain(|entry| !erased.contains(&entry.pseudonym));
    put_in(txn, new, (bucket.start, into), entries)
}

fn take_out(
    tables: &Tables,
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    bucket: Bucket,
) -> Result<Vec<Entry>, TransactionError> {
    let cipher = cipher(keys, bucket.id)?;
    let mut entries = Vec::with_capacity(bucket.entries.min(2 * SPLIT_ABOVE) as usize);
    for entry in tables.index.prefix_iter(txn, &bucket.id.to_be_bytes())? {
        let (key, value) = entry?;
        entries.push(cipher.open(key, value)?);
    }
    let first = bucket.id.to_be_bytes();
    let next = bucket.id.checked_add(1).ok_or_else(damaged)?.to_be_bytes();
    txn.delete_range(TableName::Index, &first, &next)?;
    Ok(entries)
}

fn put_in(
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    (start, id): (u16, u32),
    entries: Vec<Entry>,
) -> Result<(), TransactionError> {
    let cipher = cipher(keys, id)?;
    let sealed = entries.into_iter().map(|entry| cipher.seal(entry));
    let mut sealed = sealed.collect::<Result<Vec<_>>>()?;
    // They are written in the order of the tree, so that its pages are filled one after the other.
    sealed.sort_unstable();
    for (key, value) in &sealed {
        txn.put(TableName::Index, key, value)?;
    }
    let entries = u32::try_from(sealed.len()).unwrap_or(u32::MAX);
    Bucket { start, id, entries }.write(txn)
}

/// The cipher of a bucket.
pub(super) fn cipher(keys: &Keys, id: u32) -> Result<IndexCipher, TransactionError> {
    let key = keys.index(id).ok_or_else(|| {
        let message = format!(
            "the vault's keys have none for index bucket {id}: bring `vault` and `roots` from one and the same backup"
        );
        TransactionError::Stale(Error::tampered(message))
    })?;
    Ok(IndexCipher::new(id, key)?)
}

fn damaged() -> Error {
    Error::tampered("the vault's index is damaged: restore the vault from a backup")
}
