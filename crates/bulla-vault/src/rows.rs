//! Rows: a subject's key and pseudonym under the number.
//!
//! - A row opens only at its number, in its log, under the key of its bucket.
//! - The bytes of rows in pages that LMDB has freed cannot be decrypted once their bucket's key is gone.
//!
//! ```text
//! number u64, big-endian -> AES-256-GCM-SIV of: subject key (32) ‖ pseudonym (16)
//! ```
//!
//! Nonce: the number (little-endian, 12 bytes); additional data: "bulla vault row v1" ‖ log id ‖ number, little-endian.
//! SIV (RFC 8452), since a crash between LMDB's writes can leave a row in a free page that was never committed, whose
//! number is then given again under the same key: with plain GCM that would be one nonce for two texts.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use heed::RoTxn;
use std::ops::Bound;
use zeroize::Zeroizing;

use super::keys::{Keys, ROWS_LOG2, row_bucket};
use super::pseudonym::Pseudonym;
use super::tables::{TableName, Tables};
use super::transaction_error::TransactionError;
use super::write_transaction::WriteTransaction;
use bulla_crypto::subject::Secret;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, Result};

const TEXT: usize = 48;
/// The bytes of a row.
pub(super) const ROW: usize = TEXT + 16;

/// What a row says.
pub(super) struct Row {
    pub(super) key: Secret,
    pub(super) pseudonym: Pseudonym,
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

    pub(super) fn seal(&self, number: u64, row: &Row) -> Result<[u8; ROW]> {
        let mut bytes = [0; ROW];
        let (text, tag) = bytes.split_at_mut(TEXT);
        text[..32].copy_from_slice(&row.key.0);
        text[32..].copy_from_slice(&row.pseudonym.0);
        let made = self.key.seal_in_place_separate_tag(nonce(number), self.additional(number), text);
        let made = made.map_err(|_| Error::unavailable(format!("AES-256-GCM-SIV refused row {number}")))?;
        tag.copy_from_slice(made.as_ref());
        Ok(bytes)
    }

    /// `None` where the bytes are not that row.
    pub(super) fn open(&self, number: u64, bytes: &[u8]) -> Option<Row> {
        let mut text = Zeroizing::new(<[u8; ROW]>::try_from(bytes).ok()?);
        let text = self.key.open_in_place(nonce(number), self.additional(number), &mut *text).ok()?;
        let (key, pseudonym) = text.split_first_chunk::<32>()?;
        Some(Row { key: Secret(*key), pseudonym: Pseudonym(pseudonym.try_into().ok()?) })
    }

    fn additional(&self, number: u64) -> Aad<[u8; 42]> {
        let mut bytes = [0; 42];
        bytes[..18].copy_from_slice(b"bulla vault row v1");
        bytes[18..34].copy_from_slice(&self.log.0);
        bytes[34..].copy_from_slice(&number.to_le_bytes());
        Aad::from(bytes)
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The row of `number`, if there is one.
///
/// # Errors
/// `Tampered` where it is damaged, once it is sure that the keys are of the snapshot.
pub(super) fn get(
    tables: &Tables,
    txn: &RoTxn<'_>,
    keys: &Keys,
    number: u64,
) -> Result<Option<Row>, TransactionError> {
    let Some(bytes) = tables.rows.get(txn, &number.to_be_bytes())? else { return Ok(None) };
    let cipher = RowCipher::new(key(keys, number)?, keys.log)?;
    Ok(Some(cipher.open(number, bytes).ok_or_else(|| TransactionError::Stale(damaged(number)))?))
}

/// Puts in a row whose number is above all others.
pub(super) fn append(
    txn: &mut WriteTransaction<'_>,
    keys: &Keys,
    number: u64,
    row: &Row,
) -> Result<(), TransactionError> {
    let bytes = RowCipher::new(key(keys, number)?, keys.log)?.seal(number, row)?;
    match txn.append(TableName::Rows, &number.to_be_bytes(), &bytes) {
        Err(heed::Error::Mdb(heed::MdbError::KeyExist)) => {
            let message =
                format!("the vault has a row {number} already, or a later one: restore it from a backup");
            Err(Error::tampered(message).into())
        }
        put => Ok(put?),
    }
}

/// Encrypts the rows of `bucket` anew, without those of `erased`, which ascend.
///
/// # Errors
/// `Tampered` where a row of somebody else is damaged: under the new key it would be lost for good.
pub(super) fn rewrite(
    tables: &Tables,
    txn: &mut WriteTransaction<'_>,
    bucket: u64,
    (old, new): (&Keys, &Keys),
    erased: &[u64],
) -> Result<(), TransactionError> {
    let first = bucket << ROWS_LOG2;
    let (opener, sealer) =
        (RowCipher::new(key(old, first)?, old.log)?, RowCipher::new(key(new, first)?, new.log)?);
    let mut kept = Vec::with_capacity(1 << ROWS_LOG2);
    let (start, end) = (first.to_be_bytes(), (first | ((1 << ROWS_LOG2) - 1)).to_be_bytes());
    let range: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(&start), Bound::Included(&end));
    for entry in tables.rows.range(txn, &range)? {
        let (number, bytes) = entry?;
        let number = parse_number(number)?;
        if erased.binary_search(&number).is_err() {
            let row = opener.open(number, bytes).ok_or_else(|| damaged(number))?;
            kept.push((number, sealer.seal(number, &row)?));
        }
    }
    for number in erased.iter().filter(|number| row_bucket(**number) == bucket) {
        txn.delete(TableName::Rows, &number.to_be_bytes())?;
    }
    for (number, bytes) in kept {
        txn.put(TableName::Rows, &number.to_be_bytes(), &bytes)?;
    }
    Ok(())
}

/// The number that a key of the database stands for.
pub(super) fn parse_number(key: &[u8]) -> Result<u64, TransactionError> {
    let number = <[u8; 8]>::try_from(key);
    let damaged = |_| Error::tampered("the vault has a row without a number: restore it from a backup");
    Ok(u64::from_be_bytes(number.map_err(damaged)?))
}

fn key(keys: &Keys, number: u64) -> Result<&Secret, TransactionError> {
    keys.row(number).ok_or_else(|| {
        let message = format!(
            "the vault's keys have none for row {number}: bring `vault` and `roots` from one and the same backup"
        );
        TransactionError::Stale(Error::tampered(message))
    })
}

fn damaged(number: u64) -> Error {
    Error::tampered(format!("the vault's row {number} is damaged: restore the vault from a backup"))
}
