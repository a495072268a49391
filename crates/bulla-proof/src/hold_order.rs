//! Orders to hold a data subject, and to release one: whoever may says so, signed, and names nobody.
//!
//! An order is a [signed note](https://c2sp.org/signed-note) by the log's erasure key. Its text:
//!
//! ```text
//! bulla-hold-order-v1
//! log <the log's id, 32 hexadecimal digits>
//! time <whole seconds since 1970, UTC>
//! hold <base64 of SHA-256("bulla held subject v1" ‖ 0x00 ‖ salt (32 bytes) ‖ the data subject's name)>
//! because <base64 of SHA-256("bulla hold reason v1" ‖ 0x00 ‖ salt (32 bytes) ‖ who holds ‖ 0x00 ‖ why)>
//! ```
//!
//! In an order to release `release <base64 of the SHA-256 of the text of the order to hold>` takes the place of `hold`, and `because`
//! is who releases, and why. So what is released is that very hold, of that very data subject, and no other, which public data alone
//! shows. The salts stay with whoever gave the order, and with whoever keeps the hold: without them nothing of it can be guessed.

use crate::commitment::LogId;
use crate::hash::{Hash, sha256};
use crate::note::{NoteError, SIGNATURE_LENGTH, VerifierKey};
use crate::order::{ORDER_SALT_LENGTH, head, read_head, signed, signed_text};
use std::fmt;

/// The first line of an order to hold or to release.
pub const HOLD_ORDER_HEADER: &str = "bulla-hold-order-v1";

/// What the note of an order to hold or to release says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldNote {
    /// The log that it is for.
    pub log: LogId,
    /// When it was given, in seconds since the epoch, UTC.
    pub seconds: u64,
    /// What is to be done.
    pub act: HoldAct,
    /// The commitment to who says so, and why, of [`hold_reason`].
    pub because: Hash,
}

/// What is to be done with a data subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldAct {
    /// To hold the one with this commitment, of [`held_subject`].
    Hold(Hash),
    /// To release what the order with this digest ([`crate::order::order_digest`]) held.
    Release(Hash),
}

/// The commitment to a data subject in an order to hold.
pub fn held_subject(salt: &[u8; ORDER_SALT_LENGTH], subject: &str) -> Hash {
    sha256(&[b"bulla held subject v1\0", salt, subject.as_bytes()])
}

/// The commitment to who holds, or releases, and why. Neither has a control character in it.
pub fn hold_reason(salt: &[u8; ORDER_SALT_LENGTH], by: &str, reason: &str) -> Hash {
    sha256(&[b"bulla hold reason v1\0", salt, by.as_bytes(), b"\0", reason.as_bytes()])
}

impl HoldNote {
    /// Reads the text of a note. Its signature is another matter: [`HoldNote::open`].
    ///
    /// # Errors
    /// Where it is not the text of such an order.
    pub fn parse(text: &str) -> Result<Self, HoldNoteError> {
        let read = || {
            let mut lines = text.strip_suffix('\n')?.split('\n');
            let (log, seconds) = read_head(HOLD_ORDER_HEADER, &mut lines)?;
            let (act, digest) = lines.next()?.split_once(' ')?;
            let digest = Hash::from_base64(digest)?;
            let act = match act {
                "hold" => HoldAct::Hold(digest),
                "release" => HoldAct::Release(digest),
                _ => return None,
            };
            let because = Hash::from_base64(lines.next()?.strip_prefix("because ")?)?;
            Some(HoldNote { log, seconds, act, because })
        };
        // So it has no line more, and no other spelling.
        read().filter(|order| order.text() == text).ok_or(HoldNoteError::Form)
    }

    /// Reads a signed note and checks that `key` signed it.
    ///
    /// # Errors
    /// Where it did not, or the note is no such order.
    pub fn open(note: &[u8], key: &VerifierKey) -> Result<Self, HoldNoteError> {
        Self::parse(signed_text(note, key).map_err(HoldNoteError::Note)?)
    }

    /// The order as a signed note, its signature made by `sign`, which has the secret half of `key`.
    pub fn sign(&self, key: &VerifierKey, sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE_LENGTH]) -> String {
        signed(&self.text(), key, sign)
    }

    /// Checks that it orders somebody of this log to be held. Returns the commitment to whom.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_hold(&self, log: LogId) -> Result<Hash, HoldNoteError> {
        match (self.log == log, self.act) {
            (false, _) => Err(HoldNoteError::Log(self.log)),
            (true, HoldAct::Release(_)) => Err(HoldNoteError::Act),
            (true, HoldAct::Hold(subject)) => Ok(subject),
        }
    }

    /// Checks that it orders a hold of this log to be released. Returns the digest of the order to hold.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_release(&self, log: LogId) -> Result<Hash, HoldNoteError> {
        match (self.log == log, self.act) {
            (false, _) => Err(HoldNoteError::Log(self.log)),
            (true, HoldAct::Hold(_)) => Err(HoldNoteError::Act),
            (true, HoldAct::Release(hold)) => Ok(hold),
        }
    }

    fn text(&self) -> String {
        let (act, digest) = match self.act {
            HoldAct::Hold(subject) => ("hold", subject),
            HoldAct::Release(hold) => ("release", hold),
        };
        let head = head(HOLD_ORDER_HEADER, self.log, self.seconds);
        format!("{head}{act} {}\nbecause {}\n", digest.to_base64(), self.because.to_base64())
    }
}

/// Why an order to hold or to release is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldNoteError {
    /// It is no signed note, or not of the key's.
    Note(NoteError),
    /// Its text is not that of such an order.
    Form,
    /// It is for another log.
    Log(LogId),
    /// It is to release where it has to be to hold, or the other way round.
    Act,
}

impl fmt::Display for HoldNoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(error) => write!(f, "{error}"),
            Self::Form => f.write_str("it is not an order to hold or to release"),
            Self::Log(log) => write!(f, "it is for another log, {log}"),
            Self::Act => f.write_str("it is to hold where it has to be to release, or the other way round"),
        }
    }
}

impl std::error::Error for HoldNoteError {}
