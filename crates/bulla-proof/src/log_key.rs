//! The keys that a log signs its checkpoints with: Ed25519, and ML-DSA-44 beside it where the log has one. Whoever checks
//! a checkpoint is given either, and checks the signature of that.

use crate::cosignature::{CosignerKey, TYPE_ML_DSA_44};
use crate::note::{NoteError, SignedNote, VerifierKey, split_key};
use std::fmt;
use std::str::FromStr;

/// A key of a log, whose name is the log's origin. Shown and read as C2SP's verifier keys, of signature type 0x01
/// (Ed25519) or 0x06 (ML-DSA-44: [C2SP tlog-checkpoint](https://c2sp.org/tlog-checkpoint)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogKey {
    /// Signs the whole text of the checkpoint.
    Ed25519(VerifierKey),
    /// Signs origin, size and root. Always [`MlDsa44`](crate::CosignatureAlgorithm::MlDsa44).
    MlDsa44(CosignerKey),
}

impl LogKey {
    /// The name of the key: the log's origin.
    pub fn name(&self) -> &str {
        match self {
            LogKey::Ed25519(key) => key.name(),
            LogKey::MlDsa44(key) => key.name(),
        }
    }

    /// Whether the other is this key, under whatever name.
    pub fn is_same_key(&self, other: &LogKey) -> bool {
        match (self, other) {
            (LogKey::Ed25519(key), LogKey::Ed25519(other)) => key.is_same_key(other),
            (LogKey::MlDsa44(key), LogKey::MlDsa44(other)) => key.is_same_key(other),
            _ => false,
        }
    }

    /// Checks that this key signed the note.
    ///
    /// # Errors
    /// As [`SignedNote::verify`] or [`CosignerKey::verify`].
    pub fn verify(&self, note: &SignedNote<'_>) -> Result<(), NoteError> {
        match self {
            LogKey::Ed25519(key) => note.verify(key),
            LogKey::MlDsa44(key) => key.verify(note).map(|_| ()),
        }
    }
}

impl From<VerifierKey> for LogKey {
    fn from(key: VerifierKey) -> Self {
        LogKey::Ed25519(key)
    }
}

impl fmt::Display for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogKey::Ed25519(key) => key.fmt(f),
            LogKey::MlDsa44(key) => key.fmt(f),
        }
    }
}

impl FromStr for LogKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        // A witness's Ed25519 key, of type 0x04, is no log's.
        match split_key(text)? {
            (_, TYPE_ML_DSA_44, _) => text.parse().map(LogKey::MlDsa44),
            _ => text.parse().map(LogKey::Ed25519),
        }
    }
}
