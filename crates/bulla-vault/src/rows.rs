//! Rows: sixteen neighbouring numbers, with key and pseudonym of each.
//!
//! - A row opens only in its place, in its log, under the key of its bucket.
//! - Every row is there, from the first number to the last that was given, but where numbers were skipped. One that is missing
//!   was taken away.
//! - What is left of rows elsewhere on the medium cannot be decrypted once their bucket's key is gone.
//!
//! ```text
//! number >> 4 -> AES-256-GCM-SIV of: who is there u16 (bit n: number n of the sixteen) ‖ 16 times: subject key (32) ‖ pseudonym (16)
//! ```
//!
//! Where nobody is there are zeros. Nonce: the row's id (little-endian, 12 bytes); additional data: "bulla vault row v2" ‖ log id ‖
//! id, little-endian. SIV (RFC 8452), since a row is written again as people are added to it: with plain GCM that would be
//! one nonce for several texts.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::keys::{Keys, ROWS_LOG2, row_bucket};
use super::pseudonym::Pseudonym;
use super::record::{Meta, Skipped};
use super::table::Table;
use super::transaction::{MAX_ID, ReadTransaction, WriteTransaction};
use super::transaction_error::{TransactionError, damaged};
use bulla_crypto::subject::Secret;
use bulla_crypto::yielding;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, Result};

/// Numbers in a row, as a power of two.
pub(super) const NUMBERS_LOG2: u32 = 4;
pub(super) const NUMBERS: usize = 1 << NUMBERS_LOG2;
const PERSON: usize = 48;
const TEXT: usize = 2 + NUMBERS * PERSON;
/// The bytes of a row.
pub(super) const ROW: usize = TEXT + 16;
/// Rows of a bucket, as a power of two.
const BUCKET_LOG2: u32 = ROWS_LOG2 - NUMBERS_LOG2;

/// What the vault knows of a person.
pub(super) struct Person {
    pub(super) key: Secret,
    pub(super) pseudonym: Pseudonym,
}

/// A row, decrypted, and room for its tag.
pub(super) struct Row(Zeroizing<[u8; ROW]>);

impl Row {
    /// With nobody in it.
    pub(super) fn empty() -> Self {
        Row(Zeroizing::new([0; ROW]))
    }

    fn present(&self) -> u16 {
        u16::from_le_bytes([self.0[0], self.0[1]])
    }

    /// Who is at a place, counted from 0.
    pub(super) fn person(&self, place: usize) -> Option<Person> {
        let there = place < NUMBERS && self.present() >> place & 1 == 1;
        let bytes = self.0[..TEXT].get(2 + place * PERSON..)?.first_chunk::<PERSON>().filter(|_| there)?;
        let (key, pseudonym) = bytes.split_first_chunk::<32>()?;
        Some(Person { key: Secret(*key), pseudonym: Pseudonym(pseudonym.try_into().ok()?) })
    }

    /// The pseudonym of whoever has a number of this row, without their key.
    pub(super) fn pseudonym(&self, number: u64) -> Option<Pseudonym> {
        let place = place_of(number);
        let bytes = self.0[..TEXT].get(2 + place * PERSON + 32..)?.first_chunk()?;
        (self.present() >> place & 1 == 1).then_some(Pseudonym(*bytes))
    }

    /// Those who are there, with their places.
    pub(super) fn people(&self) -> impl Iterator<Item = (usize, Person)> {
        (0..NUMBERS).filter_map(|place| Some((place, self.person(place)?)))
    }

    /// Puts somebody at a place, or nobody.
    pub(super) fn set(&mut self, place: usize, person: Option<&Person>) {
        let present = match person {
            Some(_) => self.present() | 1 << place,
            None => self.present() & !(1 << place),
        };
        self.0[..2].copy_from_slice(&present.to_le_bytes());
        let bytes = &mut self.0[2 + place * PERSON..][..PERSON];
        match person {
            Some(Person { key, pseudonym }) => {
                bytes[..32].copy_from_slice(&key.0);
                bytes[32..].copy_from_slice(&pseudonym.0);
            }
            None => bytes.fill(0),
        }
    }

    /// Whether there are zeros where nobody is.
    fn is_canonical(&self) -> bool {
        let people = self.0[2..TEXT].as_chunks::<PERSON>().0.iter().enumerate();
        people.into_iter().all(|(place, bytes)| self.present() >> place & 1 == 1 || *bytes == [0; PERSON])
    }
}

/// Seals and opens the rows of one bucket.
pub(super) struct RowCipher {
    key: LessSafeKey,
    log: LogId,
}

impl RowCipher {
    pub(super) fn new(key: &Secret, log: LogId) -> Result<Self> {
        let key = UnboundKey::new(&AES_256_GCM_SIV, &key.0);
        let key = key.map_err(|_| Error::unavailable("AES-256-GCM-SIV refused a key"))?;
        Ok(RowCipher { key: LessSafeKey::new(key), log })
    }

    pub(super) fn seal(&self, id: u64, row: &Row) -> Result<[u8; ROW]> {
        let mut bytes = *row.0;
        let (text, tag) = bytes.split_at_mut(TEXT);
        let made = self.key.seal_in_place_separate_tag(nonce(id), self.additional(id), text);
        let made = made.map_err(|_| Error::unavailable(format!("AES-256-GCM-SIV refused row {id}")))?;
        tag.copy_from_slice(made.as_ref());
        Ok(bytes)
    }

    /// `None` where the bytes are not that row.
    pub(super) fn open(&self, id: u64, bytes: &[u8]) -> Option<Row> {
        let mut row = Row(Zeroizing::new(bytes.try_into().ok()?));
        self.key.open_in_place(nonce(id), self.additional(id), &mut *row.0).ok()?;
        row.is_canonical().then_some(row)
    }

    fn additional(&self, id: u64) -> Aad<[u8; 42]> {
        let mut bytes = [0; 42];
        bytes[..18].copy_from_slice(b"bulla vault row v2");
        bytes[18..34].copy_from_slice(&self.log.0);
        bytes[34..].copy_from_slice(&id.to_le_bytes());
        Aad::from(bytes)
    }
}

/// Opens and seals rows one after the other: neighbours share a key, so its cipher is made once for them.
pub(super) struct RowOpener<'k> {
    keys: &'k Keys,
    cipher: Option<(u64, RowCipher)>,
}

impl<'k> RowOpener<'k> {
    pub(super) fn new(keys: &'k Keys) -> Self {
        RowOpener { keys, cipher: None }
    }

    /// `None` where the bytes are not that row, or there is no key for it.
    pub(super) fn open(&mut self, id: u64, bytes: &[u8]) -> Result<Option<Row>> {
        match self.cipher(first_of(id)) {
            Ok(cipher) => Ok(cipher.open(id, bytes)),
            Err(TransactionError::Failed(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The cipher of the row that `number` is in.
    fn cipher(&mut self, number: u64) -> Result<&RowCipher, TransactionError> {
        let bucket = row_bucket(number);
        let made = match self.cipher.take() {
            Some((of, made)) if of == bucket => made,
            _ => cipher(self.keys, number)?,
        };
        Ok(&self.cipher.insert((bucket, made)).1)
    }
}

fn nonce(id: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&id.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The row that a number is in.
pub(super) fn row_of(number: u64) -> u64 {
    number >> NUMBERS_LOG2
}

/// The first number of a row.
pub(super) fn first_of(id: u64) -> u64 {
    id << NUMBERS_LOG2
}

/// Where in its row a number is.
fn place_of(number: u64) -> usize {
    usize::try_from(number & (NUMBERS as u64 - 1)).unwrap_or_default()
}

/// Who has `number`; `None` where nobody has it, or has it any more.
///
/// # Errors
/// Where the row is damaged or missing, once it is sure that the keys are of the snapshot.
pub(super) fn get(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    number: u64,
) -> Result<Option<Person>, TransactionError> {
    if number >= meta.next_number {
        return Ok(None);
    }
    Ok(read(txn, keys, meta, row_of(number))?.and_then(|row| row.person(place_of(number))))
}

/// A row; `None` where none of its numbers was ever given.
fn read(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    id: u64,
) -> Result<Option<Row>, TransactionError> {
    read_with(&mut RowOpener::new(keys), txn, meta, id)
}

/// The same, of several.
fn read_with(
    opener: &mut RowOpener<'_>,
    txn: &ReadTransaction<'_>,
    meta: &Meta,
    id: u64,
) -> Result<Option<Row>, TransactionError> {
    match txn.get(Table::Rows, id)? {
        Some(bytes) => {
            let row = opener.cipher(first_of(id))?.open(id, &bytes);
            Ok(Some(row.ok_or_else(|| TransactionError::Stale(broken(id)))?))
        }
        None if are_due(txn, opener.keys, meta, id, id + 1)? => {
            Err(damaged(format!("its row {id} is missing")))
        }
        None => Ok(None),
    }
}

/// The end of the row that a number is in.
pub(super) fn end_of(number: u64) -> u64 {
    first_of(row_of(number).saturating_add(1))
}

/// Who is there of the row that `number` is in.
///
/// # Errors
/// As [`get`].
pub(super) fn there(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    number: u64,
) -> Result<impl Fn(u64) -> bool, TransactionError> {
    let present = read(txn, keys, meta, row_of(number))?.map_or(0, |row| row.present());
    Ok(move |number| present >> place_of(number) & 1 == 1)
}

/// Whether some number of the rows from `first` to before `end` was given once.
pub(super) fn are_due(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    first: u64,
    end: u64,
) -> Result<bool, TransactionError> {
    let (first, end) = (first_of(first), first_of(end).min(meta.next_number));
    Ok(first < end && !Skipped::read(txn, keys)?.covers(first, end))
}

/// That no row from `first` to before `end` has to be there.
///
/// # Errors
/// Where one has.
fn require_none_due(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    first: u64,
    end: u64,
) -> Result<(), TransactionError> {
    match first < end && are_due(txn, keys, meta, first, end)? {
        true => Err(damaged(format!("of its rows {first} to {} one is missing", end - 1))),
        false => Ok(()),
    }
}

/// Shows `each` all rows in their order, decrypted.
///
/// # Errors
/// What `each` says; where a row is damaged or missing.
pub(super) fn each(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    each: impl FnMut(u64, &Row) -> Result<(), TransactionError>,
) -> Result<(), TransactionError> {
    rows_from(txn, keys, meta, 0, each)
}

/// Shows `each` everybody who has the number `from` or a later one.
///
/// # Errors
/// Where a row is damaged or missing.
pub(super) fn each_from(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    from: u64,
    mut each: impl FnMut(u64, Pseudonym),
) -> Result<(), TransactionError> {
    rows_from(txn, keys, meta, row_of(from), |id, row| {
        yielding::point();
        let numbers = first_of(id).max(from)..first_of(id + 1);
        for (number, pseudonym) in numbers.filter_map(|number| Some((number, row.pseudonym(number)?))) {
            each(number, pseudonym);
        }
        Ok(())
    })
}

/// As [`each`], from a row on.
fn rows_from(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    first: u64,
    mut each: impl FnMut(u64, &Row) -> Result<(), TransactionError>,
) -> Result<(), TransactionError> {
    let (mut opener, mut next) = (RowOpener::new(keys), first);
    txn.range(Table::Rows, first..=MAX_ID, |id, bytes| {
        require_none_due(txn, keys, meta, next, id)?;
        next = id + 1;
        each(id, &opener.open(id, bytes)?.ok_or_else(|| TransactionError::Stale(broken(id)))?)
    })?;
    require_none_due(txn, keys, meta, next, row_of(meta.next_number + NUMBERS as u64 - 1))
}

/// Adds people, whose numbers are the next ones.
///
/// # Errors
/// Where a row is damaged, or has one of these numbers already.
pub(super) fn append(
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
    people: &[Person],
) -> Result<(), TransactionError> {
    let (mut sealer, mut number, mut rest) = (RowOpener::new(keys), meta.next_number, people);
    while !rest.is_empty() {
        yielding::point();
        let (id, place) = (row_of(number), place_of(number));
        let mut row = read_with(&mut sealer, txn, meta, id)?.unwrap_or_else(Row::empty);
        if row.people().any(|(taken, _)| taken >= place) {
            return Err(damaged(format!("its row {id} has number {number} already, or a later one")));
        }
        let (these, others) = rest.split_at(rest.len().min(NUMBERS - place));
        (place..).zip(these).for_each(|(place, person)| row.set(place, Some(person)));
        txn.put(Table::Rows, id, &sealer.cipher(number)?.seal(id, &row)?)?;
        (number, rest) = (number + these.len() as u64, others);
    }
    Ok(())
}

/// Encrypts the rows of `bucket` anew, without those of `erased`, which ascend.
///
/// # Errors
/// Where a row of somebody else is damaged: under the new key it would be lost for good.
pub(super) fn rewrite(
    txn: &mut WriteTransaction<'_>,
    meta: &Meta,
    bucket: u64,
    (old, new): (&Keys, &Keys),
    erased: &[u64],
) -> Result<(), TransactionError> {
    let first = bucket << BUCKET_LOG2;
    let end = row_of(meta.next_number + NUMBERS as u64 - 1).min(first + (1 << BUCKET_LOG2));
    let sealer = cipher(new, first_of(first))?;
    for id in first..end {
        let Some(mut row) = read(txn, old, meta, id)? else { continue };
        let erased = erased.iter().filter(|number| row_of(**number) == id);
        erased.for_each(|number| row.set(place_of(*number), None));
        txn.put(Table::Rows, id, &sealer.seal(id, &row)?)?;
    }
    Ok(())
}

/// That no row has a number that was not given yet.
pub(super) fn require_no_later(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
) -> Result<(), TransactionError> {
    let Some((id, _)) = txn.last(Table::Rows)? else { return Ok(()) };
    let beyond = || damaged("it has somebody beyond the last number that was given");
    if first_of(id) >= meta.next_number {
        return Err(beyond());
    }
    let row = read(txn, keys, meta, id)?.ok_or_else(beyond)?;
    match row.people().any(|(place, _)| first_of(id) + place as u64 >= meta.next_number) {
        true => Err(beyond()),
        false => Ok(()),
    }
}

/// The cipher of the row that `number` is in.
pub(super) fn cipher(keys: &Keys, number: u64) -> Result<RowCipher, TransactionError> {
    let key = keys.row(number).ok_or_else(|| {
        TransactionError::Stale(format!("`roots` has no key for its bucket {} of rows", row_bucket(number)))
    })?;
    Ok(RowCipher::new(key, keys.log)?)
}

/// What is said of a row that does not open.
pub(super) fn broken(id: u64) -> String {
    let first = first_of(id);
    format!("its row {id}, numbers {first} to {}, does not open", first + NUMBERS as u64 - 1)
}
