//! The index: from a pseudonym to a number.
//!
//! - The pseudonyms' space is divided among buckets, without a gap; a bucket is halved when one of its 256 rows has more than
//!   `SPLIT_ABOVE` entries.
//! - Which row of a bucket an entry is in only the bucket's key says: without it nothing leads from a person to a row.
//! - All 256 rows of a bucket are there, if with no entry. So who is not in the index is known not to be.
//!
//! ```text
//! buckets: first prefix -> id u32 ‖ one past the last prefix u32 ‖ seal (16)
//! entries: id << 8 | row -> AES-256-GCM-SIV of: so many times: first half of P (8) ‖ number u32; ascending
//! ```
//!
//! P is a pseudonym, its prefix the first two bytes. Nonce: the id in the table (little-endian, 12 bytes); additional data: "bulla
//! vault index v2" ‖ log id ‖ that id, little-endian.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use hkdf::Hkdf;
use sha2::Sha256;
use siphasher::sip::SipHasher24;
use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, HashSet};
use std::hash::Hasher;
use std::ops::RangeInclusive;
use zeroize::Zeroizing;

use super::keys::{Keys, SEAL};
use super::pseudonym::Pseudonym;
use super::table::Table;
use super::transaction::{ReadTransaction, WriteTransaction};
use super::transaction_error::{TransactionError, damaged};
use bulla_crypto::subject::Secret;
use bulla_crypto::yielding;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, Result};

/// A bucket of which a row has more entries is halved. Most are once they have some 8,500 entries.
pub(super) const SPLIT_ABOVE: usize = 52;
/// One past the last prefix.
pub(super) const END: u32 = 1 << 16;
/// Rows of a bucket, as a power of two.
const ROWS_LOG2: u32 = 8;
/// Rows of a bucket.
pub(super) const ROWS: usize = 1 << ROWS_LOG2;
const ENTRY: usize = 12;

/// A bucket of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bucket {
    pub(super) id: u32,
    /// The first prefix that belongs to it.
    pub(super) start: u16,
    /// One past the last prefix that belongs to it.
    pub(super) end: u32,
}

impl Bucket {
    /// The bucket that `prefix` belongs to.
    pub(super) fn of(txn: &ReadTransaction<'_>, keys: &Keys, prefix: u16) -> Result<Self, TransactionError> {
        let found = txn.floor(Table::Buckets, u64::from(prefix))?;
        let (start, row) = found.ok_or_else(|| damaged("its first index bucket is missing"))?;
        let bucket = Self::open(keys, start, &row)?;
        match u32::from(prefix) < bucket.end {
            true => Ok(bucket),
            false => Err(damaged(format!("its index bucket for prefix {prefix} is missing"))),
        }
    }

    /// All buckets in the order of their prefixes.
    pub(super) fn all(txn: &ReadTransaction<'_>, keys: &Keys) -> Result<Vec<Self>, TransactionError> {
        let (mut all, mut end) = (Vec::new(), 0);
        txn.all(Table::Buckets, |start, row| {
            let bucket = Self::open(keys, start, row)?;
            if u32::from(bucket.start) != end {
                return Err(damaged(format!("its index bucket for prefix {end} is missing")));
            }
            end = bucket.end;
            all.push(bucket);
            Ok(())
        })?;
        match end {
            END => Ok(all),
            end => Err(damaged(format!("its index bucket for prefix {end} is missing"))),
        }
    }

    fn open(keys: &Keys, start: u64, row: &[u8]) -> Result<Self, TransactionError> {
        let content = keys.vouched(Table::Buckets, start, row);
        let bucket = content.and_then(|content| Self::decode(start, content));
        bucket.ok_or_else(|| damaged(format!("its index bucket from prefix {start}")))
    }

    pub(super) fn decode(start: u64, content: &[u8]) -> Option<Self> {
        let start = u16::try_from(start).ok()?;
        let ([id, end], []) = content.as_chunks::<4>() else { return None };
        let bucket = Bucket { id: u32::from_le_bytes(*id), start, end: u32::from_le_bytes(*end) };
        (u32::from(start) < bucket.end && bucket.end <= END).then_some(bucket)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(8 + SEAL);
        content.extend_from_slice(&self.id.to_le_bytes());
        content.extend_from_slice(&self.end.to_le_bytes());
        content
    }

    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
        let start = u64::from(self.start);
        txn.put(Table::Buckets, start, &keys.vouch(Table::Buckets, start, self.encode()))
    }

    /// Whether it is to be halved, with rows of so many entries: unless it is for one prefix.
    fn is_crowded(&self, mut rows: impl Iterator<Item = usize>) -> bool {
        self.end - u32::from(self.start) > 1 && rows.any(|entries| entries > SPLIT_ABOVE)
    }
}

/// The first half of a pseudonym, which is all of it that the index has. That two people have the same is not impossible: their
/// rows tell them apart.
pub(super) type Half = [u8; 8];

/// One person's entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Entry {
    pub(super) half: Half,
    pub(super) number: u32,
}

impl Entry {
    /// That of whoever has this number, of which an index has room for those below 2^32.
    pub(super) fn of(number: u64, pseudonym: Pseudonym) -> Self {
        Entry { half: pseudonym.half(), number: u32::try_from(number).unwrap_or(u32::MAX) }
    }

    /// Where it lies in the space that is divided among the buckets.
    pub(super) fn prefix(&self) -> u16 {
        u16::from_be_bytes([self.half[0], self.half[1]])
    }
}

/// Encrypts and decrypts the rows of one bucket, and says which an entry belongs in.
pub(super) struct IndexCipher {
    key: LessSafeKey,
    places: SipHasher24,
    id: u32,
    log: LogId,
}

impl IndexCipher {
    pub(super) fn new(id: u32, key: &Secret, log: LogId) -> Result<Self> {
        let refused = |_| Error::unavailable("AES-256-GCM-SIV refused the key of an index bucket");
        let mut keys = Zeroizing::new([0; 48]);
        Hkdf::<Sha256>::from_prk(&key.0)
            .and_then(|key| {
                key.expand(b"bulla vault index v2", &mut *keys).map_err(|_| hkdf::InvalidPrkLength)
            })
            .expect("32 bytes are a key for HKDF, and 48 a length that it takes");
        let (sealing, places) = keys.split_at(32);
        let key = UnboundKey::new(&AES_256_GCM_SIV, sealing).map_err(refused)?;
        let places = SipHasher24::new_with_key(places.first_chunk().expect("48 bytes are 32 and 16"));
        Ok(IndexCipher { key: LessSafeKey::new(key), places, id, log })
    }

    /// The row of the bucket that a person's entry is in.
    pub(super) fn place(&self, half: Half) -> u8 {
        let mut hasher = self.places;
        hasher.write(&half);
        hasher.finish().to_le_bytes()[0]
    }

    /// The id of a row in the table.
    fn row(&self, place: u8) -> u64 {
        u64::from(self.id) << ROWS_LOG2 | u64::from(place)
    }

    /// The bytes of a row with these entries, which ascend.
    pub(super) fn seal(&self, place: u8, entries: &[Entry]) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(entries.len() * ENTRY + 16);
        for entry in entries {
            bytes.extend_from_slice(&entry.half);
            bytes.extend_from_slice(&entry.number.to_le_bytes());
        }
        let (nonce, additional) = self.context(place);
        let sealed = self.key.seal_in_place_append_tag(nonce, additional, &mut bytes);
        sealed.map_err(|_| Error::unavailable("AES-256-GCM-SIV refused a row of the index"))?;
        Ok(bytes)
    }

    /// The entries of a row; `None` where the bytes are not that row.
    pub(super) fn open(&self, place: u8, bytes: &[u8]) -> Option<Vec<Entry>> {
        let mut opened = bytes.to_vec();
        let (nonce, additional) = self.context(place);
        let text = self.key.open_in_place(nonce, additional, &mut opened).ok()?;
        let (entries, []) = text.as_chunks::<ENTRY>() else { return None };
        let entries = entries.iter().map(|bytes| {
            let (half, number) = bytes.split_first_chunk()?;
            Some(Entry { half: *half, number: u32::from_le_bytes(number.try_into().ok()?) })
        });
        let entries = entries.collect::<Option<Vec<_>>>()?;
        entries.is_sorted_by(|one, next| one < next).then_some(entries)
    }

    fn context(&self, place: u8) -> (Nonce, Aad<[u8; 44]>) {
        let row = self.row(place).to_le_bytes();
        let (mut nonce, mut additional) = ([0; 12], [0; 44]);
        nonce[..8].copy_from_slice(&row);
        additional[..20].copy_from_slice(b"bulla vault index v2");
        additional[20..36].copy_from_slice(&self.log.0);
        additional[36..].copy_from_slice(&row);
        (Nonce::assume_unique_for_key(nonce), Aad::from(additional))
    }

    /// The entries of a row of the database.
    ///
    /// # Errors
    /// Where it is damaged or missing.
    pub(super) fn read(&self, txn: &ReadTransaction<'_>, place: u8) -> Result<Vec<Entry>, TransactionError> {
        let bytes = txn.get(Table::Index, self.row(place))?;
        let opened = bytes.and_then(|bytes| self.open(place, &bytes));
        opened.ok_or_else(|| TransactionError::Stale(self.broken(place)))
    }

    /// How many entries the bucket has.
    ///
    /// # Errors
    /// Where one of its rows is damaged or missing.
    pub(super) fn count(&self, txn: &ReadTransaction<'_>) -> Result<u64, TransactionError> {
        let (mut entries, mut next) = (0, 0..=u8::MAX);
        txn.range(Table::Index, rows_of(self.id), |id, bytes| {
            let place = next.next().filter(|place| self.row(*place) == id);
            let opened = place.and_then(|place| self.open(place, bytes));
            let broken = || TransactionError::Stale(self.broken(place.unwrap_or_default()));
            entries += opened.ok_or_else(broken)?.len() as u64;
            Ok(())
        })?;
        match next.next() {
            None => Ok(entries),
            Some(place) => Err(TransactionError::Stale(self.broken(place))),
        }
    }

    /// What is said of a row that does not open.
    pub(super) fn broken(&self, place: u8) -> String {
        format!("its row {place} of index bucket {} is missing or does not open", self.id)
    }
}

/// The numbers of those whose pseudonym begins as this one: mostly one or none.
///
/// # Errors
/// Where the index is damaged.
pub(super) fn find(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    pseudonym: Pseudonym,
) -> Result<Vec<u64>, TransactionError> {
    IndexRows::default().find(txn, keys, pseudonym)
}

/// Rows of the index that many pseudonyms belong in: each is read once, and written once if it has changed.
#[derive(Default)]
pub(super) struct IndexRows {
    /// By the first prefix.
    buckets: BTreeMap<u16, OpenedBucket>,
}

/// A bucket of which rows were read.
struct OpenedBucket {
    bucket: Bucket,
    cipher: IndexCipher,
    rows: BTreeMap<u8, OpenedRow>,
}

struct OpenedRow {
    entries: Vec<Entry>,
    changed: bool,
}

impl IndexRows {
    /// As [`find`].
    ///
    /// # Errors
    /// Where the index is damaged.
    pub(super) fn find(
        &mut self,
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        pseudonym: Pseudonym,
    ) -> Result<Vec<u64>, TransactionError> {
        let half = pseudonym.half();
        let entries = &self.row(txn, keys, half)?.entries;
        let from = entries.partition_point(|entry| entry.half < half);
        let found = entries[from..].iter().take_while(|entry| entry.half == half);
        Ok(found.map(|entry| u64::from(entry.number)).collect())
    }

    /// Puts in an entry that is not there yet. It is written by [`IndexRows::write`].
    ///
    /// # Errors
    /// Where the index is damaged.
    pub(super) fn insert(
        &mut self,
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        entry: Entry,
    ) -> Result<(), TransactionError> {
        let row = self.row(txn, keys, entry.half)?;
        row.entries.insert(row.entries.partition_point(|other| *other < entry), entry);
        row.changed = true;
        Ok(())
    }

    /// Writes the rows that have changed. Returns the buckets that are to be halved.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>) -> Result<Vec<Bucket>, TransactionError> {
        let mut crowded = Vec::new();
        for OpenedBucket { bucket, cipher, rows } in self.buckets.values() {
            for (&place, row) in rows.iter().filter(|(_, row)| row.changed) {
                yielding::point();
                txn.put(Table::Index, cipher.row(place), &cipher.seal(place, &row.entries)?)?;
            }
            if bucket.is_crowded(rows.values().map(|row| row.entries.len())) {
                crowded.push(*bucket);
            }
        }
        Ok(crowded)
    }

    /// The row that the entry of a person belongs in.
    fn row(
        &mut self,
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        half: Half,
    ) -> Result<&mut OpenedRow, TransactionError> {
        let prefix = u16::from_be_bytes([half[0], half[1]]);
        let opened = self.buckets.range(..=prefix).next_back();
        let opened = opened.filter(|(_, opened)| u32::from(prefix) < opened.bucket.end);
        let bucket = match opened {
            Some((_, opened)) => opened.bucket,
            None => Bucket::of(txn, keys, prefix)?,
        };
        let opened = match self.buckets.entry(bucket.start) {
            Occupied(opened) => opened.into_mut(),
            Vacant(vacant) => {
                let cipher = cipher(keys, bucket.id)?;
                vacant.insert(OpenedBucket { bucket, cipher, rows: BTreeMap::new() })
            }
        };
        let place = opened.cipher.place(half);
        Ok(match opened.rows.entry(place) {
            Occupied(row) => row.into_mut(),
            Vacant(vacant) => {
                vacant.insert(OpenedRow { entries: opened.cipher.read(txn, place)?, changed: false })
            }
        })
    }
}

/// Halves a bucket: its entries go to two, of the ids `into`. Returns those of the two that are to be halved, too.
pub(super) fn split(
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    bucket: Bucket,
    into: [u32; 2],
) -> Result<Vec<Bucket>, TransactionError> {
    let start = u32::from(bucket.start);
    let middle = start + (bucket.end - start) / 2;
    let first_high = u16::try_from(middle).map_err(|_| damaged("its index buckets are none"))?;
    let entries = take_out(txn, keys, bucket)?;
    let (low, high) = entries.into_iter().partition(|entry: &Entry| entry.prefix() < first_high);
    let halves = [
        (Bucket { id: into[0], start: bucket.start, end: middle }, low),
        (Bucket { id: into[1], start: first_high, end: bucket.end }, high),
    ];
    let mut crowded = Vec::new();
    for (half, entries) in halves {
        if put_in(txn, keys, half, entries)? {
            crowded.push(half);
        }
    }
    Ok(crowded)
}

/// Encrypts a bucket anew, under the id `into`, without the entries of `erased`.
pub(super) fn rewrite(
    txn: &mut WriteTransaction<'_>,
    bucket: Bucket,
    (old, new): (&Keys, &Keys),
    into: u32,
    erased: &HashSet<u64>,
) -> Result<(), TransactionError> {
    let mut entries = take_out(txn, old, bucket)?;
    entries.retain(|entry| !erased.contains(&u64::from(entry.number)));
    put_in(txn, new, Bucket { id: into, ..bucket }, entries).map(drop)
}

fn take_out(
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    bucket: Bucket,
) -> Result<Vec<Entry>, TransactionError> {
    let cipher = cipher(keys, bucket.id)?;
    let mut entries = Vec::new();
    for place in 0..=u8::MAX {
        entries.extend(cipher.read(txn, place)?);
    }
    txn.delete_range(Table::Index, rows_of(bucket.id))?;
    Ok(entries)
}

/// Makes a bucket of these entries. Whether it is to be halved.
pub(super) fn put_in(
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    bucket: Bucket,
    entries: Vec<Entry>,
) -> Result<bool, TransactionError> {
    let cipher = cipher(keys, bucket.id)?;
    let mut rows = vec![Vec::new(); ROWS];
    for entry in entries {
        rows[usize::from(cipher.place(entry.half))].push(entry);
    }
    let crowded = bucket.is_crowded(rows.iter().map(Vec::len));
    for (place, mut entries) in (0..=u8::MAX).zip(rows) {
        entries.sort_unstable();
        txn.put(Table::Index, cipher.row(place), &cipher.seal(place, &entries)?)?;
    }
    bucket.write(txn, keys)?;
    Ok(crowded)
}

/// The bucket that a row of the table belongs to, if its id is one of a bucket's, and where in it that row is.
pub(super) fn place_of(row: u64) -> (Option<u32>, u8) {
    (u32::try_from(row >> ROWS_LOG2).ok(), row.to_le_bytes()[0])
}

/// The ids of a bucket's rows.
pub(super) fn rows_of(bucket: u32) -> RangeInclusive<u64> {
    let first = u64::from(bucket) << ROWS_LOG2;
    first..=first | (ROWS as u64 - 1)
}

/// The cipher of a bucket.
pub(super) fn cipher(keys: &Keys, id: u32) -> Result<IndexCipher, TransactionError> {
    let key = keys
        .index(id)
        .ok_or_else(|| TransactionError::Stale(format!("`roots` has no key for its index bucket {id}")))?;
    Ok(IndexCipher::new(id, key, keys.log)?)
}
