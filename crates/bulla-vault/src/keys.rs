//! The keys of a generation, and the file that holds them.
//!
//! - Within a generation no key changes that something is encrypted under. The file is only replaced by one that has more keys.
//! - Keys are made ahead of their use, so that the file has them, durably, before anything is encrypted under them.
//! - The file's own key is used once: it comes from the root and 32 random bytes that are new in every file.
//!
//! ```text
//! offset  size  field
//!      0     8  "bullaVK1"
//!      8    16  log id
//!     24     8  generation
//!     32     4  number of row keys, r
//!     36     4  number of index keys, i
//!     40    32  random
//!     72     …  AES-256-GCM, nonce 0, additional data bytes 0 to 71, of
//!               pseudonym key (32) ‖ r row keys (32 each) ‖ i times: bucket u32 ‖ key (32), buckets ascending
//! ```
//!
//! Its key is HKDF-SHA-256 with the random bytes as salt, the root as key and
//! "bulla vault keys v1" ‖ log id ‖ generation as information.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::root::RootKey;
use super::table::Table;
use bulla_crypto::environment::{AesGcm, Cipher, Random};
use bulla_crypto::subject::Secret;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result};

/// Neighbouring rows that share a key, as a power of two.
pub(super) const ROWS_LOG2: u32 = 12;
/// Keys that are made ahead of their use.
pub(super) const AHEAD: u32 = 64;
/// The most row keys: more than four thousand million subjects.
pub(super) const MAX_ROWS: usize = 1 << 20;
/// The most index keys.
pub(super) const MAX_INDEX: usize = 1 << 20;
/// The longest file of keys.
pub(super) const MAX_FILE: u64 = (HEAD + 32 + MAX_ROWS * 32 + MAX_INDEX * 36 + TAG) as u64;

pub(super) const MAGIC: &[u8; 8] = b"bullaVK1";
pub(super) const HEAD: usize = 72;
const TAG: usize = 16;
/// The bytes of a seal that vouches for a row in clear.
pub(super) const SEAL: usize = 16;

/// The bucket of rows that `number` belongs to.
pub(super) fn row_bucket(number: u64) -> u64 {
    number >> ROWS_LOG2
}

/// The keys of one generation.
pub(super) struct Keys {
    pub(super) log: LogId,
    pub(super) generation: u64,
    pub(super) root: RootKey,
    pub(super) pseudonym: Secret,
    /// What vouches for what lies in clear; it comes from the pseudonym key, and is the same in every generation.
    records: Secret,
    /// The keys of row buckets 0, 1, and so on. The vector is filled once, since one that grows leaves copies behind.
    pub(super) rows: Box<[Secret]>,
    /// By the bucket's id, ascending.
    pub(super) index: Box<[(u32, Secret)]>,
}

impl Keys {
    /// The keys of a new vault.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn generate(log: LogId, random: &dyn Random) -> Result<Self> {
        let ids = 0..AHEAD;
        let pseudonym = Secret::generate(random)?;
        Ok(Keys {
            log,
            generation: 0,
            root: RootKey(Secret::generate(random)?),
            records: of_records(log, &pseudonym),
            pseudonym,
            rows: (0..AHEAD).map(|_| Secret::generate(random)).collect::<Result<_>>()?,
            index: ids.map(|id| Ok((id, Secret::generate(random)?))).collect::<Result<_>>()?,
        })
    }

    /// The key that pseudonyms of fields are made with. It is derived from the vault's pseudonym key, which is the same in every
    /// generation.
    ///
    /// HKDF-SHA-256 with the log id as salt, the pseudonym key as key and "bulla vault field pseudonyms v1" as
    /// information.
    pub(super) fn field_pseudonyms(&self) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(&self.log.0), &self.pseudonym.0)
            .expand(b"bulla vault field pseudonyms v1", &mut *key)
            .expect("32 bytes are a length that HKDF takes");
        key
    }

    /// `content` with the seal that vouches for it in that place of the vault, and in no other.
    pub(super) fn vouch(&self, table: Table, id: u64, mut content: Vec<u8>) -> Vec<u8> {
        let seal = self.seal_of(table, id, &content);
        let seal = seal.finalize().into_bytes();
        content.extend_from_slice(&seal[..SEAL]);
        content
    }

    /// The content of a row that was vouched for; `None` where it was not.
    pub(super) fn vouched<'r>(&self, table: Table, id: u64, row: &'r [u8]) -> Option<&'r [u8]> {
        let (content, seal) = row.split_last_chunk::<SEAL>()?;
        self.seal_of(table, id, content).verify_truncated_left(seal).ok()?;
        Some(content)
    }

    fn seal_of(&self, table: Table, id: u64, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.records.0).expect("HMAC takes any key");
        mac.update(&[table as u8]);
        mac.update(&id.to_le_bytes());
        mac.update(content);
        mac
    }

    /// Whether these are the same keys.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let rows = || self.rows.iter().zip(&other.rows).all(|(left, right)| left.0 == right.0);
        let same = |left: &(u32, Secret), right: &(u32, Secret)| left.0 == right.0 && left.1.0 == right.1.0;
        let index = || self.index.iter().zip(&other.index).all(|(left, right)| same(left, right));
        self.generation == other.generation
            && self.rows.len() == other.rows.len()
            && self.index.len() == other.index.len()
            && rows()
            && index()
    }

    /// The key of a row.
    pub(super) fn row(&self, number: u64) -> Option<&Secret> {
        self.rows.get(usize::try_from(row_bucket(number)).ok()?)
    }

    /// The key of an index bucket.
    pub(super) fn index(&self, bucket: u32) -> Option<&Secret> {
        let found = self.index.binary_search_by_key(&bucket, |(id, _)| *id).ok()?;
        Some(&self.index[found].1)
    }

    /// These keys and fresh ones up to `rows` row keys and the index buckets before `buckets`, and some more.
    ///
    /// # Errors
    /// `Refused` where the vault is full, or where there is no randomness.
    pub(super) fn extended(&self, rows: u64, buckets: u32, random: &dyn Random) -> Result<Self> {
        let rows = match usize::try_from(rows) {
            Ok(rows) if rows > self.rows.len() => rows.saturating_add(AHEAD as usize),
            _ => self.rows.len(),
        };
        let next = self.index.last().map_or(0, |(id, _)| id + 1);
        let fresh = if buckets > next { next..buckets.saturating_add(AHEAD) } else { next..next };
        if rows > MAX_ROWS || self.index.len() + fresh.len() > MAX_INDEX {
            return Err(Error::new(ErrorKind::Refused, "the vault has as many subjects as it can hold"));
        }
        let mut all_rows = Vec::with_capacity(rows);
        all_rows.extend(self.rows.iter().cloned());
        for _ in self.rows.len()..rows {
            all_rows.push(Secret::generate(random)?);
        }
        let mut all_index = Vec::with_capacity(self.index.len() + fresh.len());
        all_index.extend(self.index.iter().cloned());
        for id in fresh {
            all_index.push((id, Secret::generate(random)?));
        }
        Ok(self.with(self.generation, self.root.clone(), all_rows, all_index))
    }

    /// A generation after this one: the keys that `keep_row` and `keep_bucket` say stay, a fresh one in place of every
    /// other row key, and fresh ones for the buckets from `fresh.start` to before `fresh.end`. What is spare is made anew:
    /// something may have been encrypted under it that a crash kept from being committed.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn succeeded(
        &self,
        keep_row: impl Fn(u64) -> bool,
        keep_bucket: impl Fn(u32) -> bool,
        fresh: std::ops::Range<u32>,
        random: &dyn Random,
    ) -> Result<Self> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for (bucket, key) in (0..).zip(&self.rows) {
            rows.push(if keep_row(bucket) { key.clone() } else { Secret::generate(random)? });
        }
        let mut index = Vec::with_capacity(self.index.len() + fresh.len());
        index.extend(self.index.iter().filter(|(id, _)| *id < fresh.start && keep_bucket(*id)).cloned());
        for id in fresh {
            index.push((id, Secret::generate(random)?));
        }
        Ok(self.with(self.generation + 1, RootKey(Secret::generate(random)?), rows, index))
    }

    /// These keys with other spares. A crash may have left something in a free page that was encrypted under one of the
    /// old, was never committed, and that no erasure would know of.
    ///
    /// Row keys from bucket `spare_rows` on are made anew. Index keys that `keep_bucket` does not want are dropped, and
    /// fresh ones have ids that were never in use: the second value is the first of them.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn with_fresh_spares(
        &self,
        spare_rows: u64,
        keep_bucket: impl Fn(u32) -> bool,
        random: &dyn Random,
    ) -> Result<(Self, u32)> {
        let next = self.index.last().map_or(0, |(id, _)| id.saturating_add(1));
        let fresh = next..next.saturating_add(AHEAD);
        let keys = self.succeeded(|bucket| bucket < spare_rows, keep_bucket, fresh, random)?;
        Ok((Keys { generation: self.generation, root: self.root.clone(), ..keys }, next))
    }

    fn with(&self, generation: u64, root: RootKey, rows: Vec<Secret>, index: Vec<(u32, Secret)>) -> Self {
        let (rows, index) = (rows.into_boxed_slice(), index.into_boxed_slice());
        let (pseudonym, records) = (self.pseudonym.clone(), self.records.clone());
        Keys { log: self.log, generation, root, pseudonym, records, rows, index }
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// Where there is no randomness, or the cipher refuses.
    pub(super) fn seal(&self, random: &dyn Random) -> Result<Vec<u8>> {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8..24].copy_from_slice(&self.log.0);
        head[24..32].copy_from_slice(&self.generation.to_le_bytes());
        head[32..36].copy_from_slice(&count(self.rows.len()));
        head[36..40].copy_from_slice(&count(self.index.len()));
        random.fill(&mut head[40..])?;
        let mut text =
            Zeroizing::new(Vec::with_capacity(32 * (1 + self.rows.len()) + 36 * self.index.len() + TAG));
        text.extend_from_slice(&self.pseudonym.0);
        self.rows.iter().for_each(|key| text.extend_from_slice(&key.0));
        for (id, key) in &self.index {
            text.extend_from_slice(&id.to_le_bytes());
            text.extend_from_slice(&key.0);
        }
        AesGcm.seal(&file_key(&self.root, &head), 0, &head, &mut text)?;
        Ok([&head[..], &text].concat())
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// `Tampered` where they are damaged or do not open with `root`, `Refused` where they are another log's or
    /// generation's.
    pub(super) fn open(file: &[u8], log: LogId, generation: u64, root: &RootKey) -> Result<Self> {
        let damaged = || Error::tampered("it is damaged: restore it from a backup");
        let (head, body) = file.split_first_chunk::<HEAD>().ok_or_else(damaged)?;
        let shape = Shape::parse(head).ok_or_else(damaged)?;
        if shape.log != log {
            let message = format!("it holds the keys of another log, {}", shape.log);
            return Err(Error::new(ErrorKind::Refused, message));
        }
        if shape.generation != generation {
            let message = format!("it holds the keys of generation {}", shape.generation);
            return Err(Error::new(ErrorKind::Refused, message));
        }
        if body.len() != 32 * (1 + shape.rows) + 36 * shape.index + TAG {
            return Err(damaged());
        }
        let mut text = Zeroizing::new(body.to_vec());
        let opened = AesGcm.open(&file_key(root, head), 0, head, &mut text);
        opened.map_err(|_| {
            Error::tampered("it is damaged, or belongs to another root: restore both from one backup")
        })?;
        shape.keys(&text, root).ok_or_else(damaged)
    }
}

/// The head of a file of keys.
struct Shape {
    log: LogId,
    generation: u64,
    rows: usize,
    index: usize,
}

impl Shape {
    fn parse(head: &[u8; HEAD]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default()) as usize;
        let shape = Shape {
            log: LogId(head[8..24].try_into().ok()?),
            generation: u64::from_le_bytes(head[24..32].try_into().ok()?),
            rows: word(32),
            index: word(36),
        };
        let sound = head[..8] == *MAGIC && shape.rows <= MAX_ROWS && shape.index <= MAX_INDEX;
        sound.then_some(shape)
    }

    fn keys(self, text: &[u8], root: &RootKey) -> Option<Keys> {
        let (pseudonym, text) = text.split_first_chunk::<32>()?;
        let (rows, index) = text.split_at_checked(32 * self.rows)?;
        let rows = rows.as_chunks::<32>().0.iter().map(|key| Secret(*key)).collect();
        let mut ascending = true;
        let mut last = None;
        let index = index.as_chunks::<36>().0.iter().map(|entry| {
            let id = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            ascending &= last.replace(id).is_none_or(|last| last < id);
            (id, Secret(entry[4..].try_into().unwrap_or_default()))
        });
        let index = index.collect();
        let (log, generation, root) = (self.log, self.generation, root.clone());
        let pseudonym = Secret(*pseudonym);
        let records = of_records(log, &pseudonym);
        ascending.then_some(Keys { log, generation, root, pseudonym, records, rows, index })
    }
}

/// HKDF-SHA-256 with the log id as salt, the pseudonym key as key and "bulla vault records v1" as information.
fn of_records(log: LogId, pseudonym: &Secret) -> Secret {
    let mut key = Secret([0; 32]);
    Hkdf::<Sha256>::new(Some(&log.0), &pseudonym.0)
        .expand(b"bulla vault records v1", &mut key.0)
        .expect("32 bytes are a length that HKDF takes");
    key
}

fn count(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

pub(super) fn file_key(root: &RootKey, head: &[u8; HEAD]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    let (log_and_generation, salt) = (&head[8..32], &head[40..]);
    Hkdf::<Sha256>::new(Some(salt), &root.0.0)
        .expand_multi_info(&[b"bulla vault keys v1", log_and_generation], &mut *key)
        .expect("32 bytes are a length that HKDF takes");
    key
}
