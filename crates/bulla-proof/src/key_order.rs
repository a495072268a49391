//! Orders to change a log's erasure key: the key that counts until then says which one counts from then on.
//!
//! An order is a [signed note](https://c2sp.org/signed-note) by the former key. Its text:
//!
//! ```text
//! bulla-erasure-key-order-v1
//! log <the log's id, 32 hexadecimal digits>
//! time <whole seconds since 1970, UTC>
//! from <the former key>
//! to <the new key>
//! ```

use crate::checkpoint::parse_size;
use crate::commitment::LogId;
use crate::note::{NoteError, SIGNATURE_LENGTH, SignedNote, VerifierKey};
use std::fmt;

/// The first line of an order.
pub const KEY_ORDER_HEADER: &str = "bulla-erasure-key-order-v1";

/// What an order says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOrder {
    /// The log that it is for.
    pub log: LogId,
    /// When it was given, in seconds since the epoch, UTC.
    pub seconds: u64,
    /// The key that counts until then, with which it is signed.
    pub from: VerifierKey,
    /// The key that counts from then on.
    pub to: VerifierKey,
}

impl KeyOrder {
    /// Reads a signed note, and checks that the key that it replaces signed it.
    ///
    /// # Errors
    /// Where it did not, or the note is no such order.
    pub fn open(note: &[u8]) -> Result<Self, KeyOrderError> {
        let note = SignedNote::parse(note).map_err(KeyOrderError::Note)?;
        let order = Self::parse(note.text)?;
        note.verify(&order.from).map_err(KeyOrderError::Note)?;
        Ok(order)
    }

    /// Reads the text of a note. Its signature is another matter: [`KeyOrder::open`].
    ///
    /// # Errors
    /// Where it is not the text of an order.
    pub fn parse(text: &str) -> Result<Self, KeyOrderError> {
        let mut lines = text.lines();
        if lines.next() != Some(KEY_ORDER_HEADER) {
            return Err(KeyOrderError::Form);
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let key = |text: &str| text.parse::<VerifierKey>().ok();
        let order = KeyOrder {
            log: field("log").and_then(LogId::parse).ok_or(KeyOrderError::Form)?,
            seconds: field("time").and_then(parse_size).ok_or(KeyOrderError::Form)?,
            from: field("from").and_then(key).ok_or(KeyOrderError::Form)?,
            to: field("to").and_then(key).ok_or(KeyOrderError::Form)?,
        };
        match order.text() == text && !order.from.is_same_key(&order.to) {
            true => Ok(order),
            false => Err(KeyOrderError::Form),
        }
    }

    /// The order as a signed note, its signature made by `sign`, which has the secret half of the former key.
    ///
    /// # Errors
    /// Where the two keys are one.
    pub fn sign(&self, sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE_LENGTH]) -> Result<String, KeyOrderError> {
        if self.from.is_same_key(&self.to) {
            return Err(KeyOrderError::Form);
        }
        let text = self.text();
        let signature = self.from.signature_line(&sign(text.as_bytes()));
        Ok(format!("{text}\n{signature}"))
    }

    fn text(&self) -> String {
        let KeyOrder { log, seconds, from, to } = self;
        format!("{KEY_ORDER_HEADER}\nlog {log}\ntime {seconds}\nfrom {from}\nto {to}\n")
    }
}

/// Why an order is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrderError {
    /// It is no signed note, or not of the former key's.
    Note(NoteError),
    /// Its text is not that of an order, or the two keys are one, under whatever names.
    Form,
}

impl fmt::Display for KeyOrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(error) => write!(f, "{error}"),
            Self::Form => f.write_str("it is not an order to change the erasure key to another"),
        }
    }
}

impl std::error::Error for KeyOrderError {}
