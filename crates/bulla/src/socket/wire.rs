//! What goes over the socket: messages of JSON, and the first byte of a batch.

use bulla_store::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// The version of all this.
pub(super) const VERSION: u32 = 1;

/// Reasons that an acknowledgement has, at most: of what was refused first.
pub(super) const REASONS: usize = 16;

/// How the entries of a batch are written: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines of text.
    Lines,
    /// MessagePack, a map an entry, one behind the other.
    MessagePack,
}

impl Form {
    pub(super) const fn byte(self) -> u8 {
        match self {
            Form::Lines => b'L',
            Form::MessagePack => b'M',
        }
    }

    pub(super) fn of(byte: u8) -> Option<Self> {
        [Form::Lines, Form::MessagePack].into_iter().find(|form| form.byte() == byte)
    }
}

/// What the server says first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub(super) version: u32,
    /// Whose log it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) origin: String,
    /// Batches that may be under way.
    #[serde(default)]
    pub(super) window: usize,
    /// The bytes of the longest message.
    #[serde(default)]
    pub(super) max_message: usize,
    /// Why the client is turned away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Failure>,
}

/// What became of a batch.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Acknowledgement {
    /// Its number on this connection, from 1.
    pub(super) batch: u64,
    /// Entries that are durable.
    pub(super) accepted: u64,
    /// Entries that were refused.
    #[serde(default)]
    pub(super) refused: u64,
    /// Why, of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) reasons: Vec<Refusal>,
    /// Why nothing is known to be durable of those that were not refused. It is the last acknowledgement then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Failure>,
}

/// An entry that was refused.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// Its place in the batch, from 1; of lines, which line.
    pub(super) entry: u64,
    pub(super) reason: String,
}

/// An error that goes to the other side.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) kind: String,
    pub(super) message: String,
}

const KINDS: [(&str, ErrorKind); 9] = [
    ("invalid", ErrorKind::Invalid),
    ("timeout", ErrorKind::Timeout),
    ("closed", ErrorKind::Closed),
    ("locked", ErrorKind::Locked),
    ("unavailable", ErrorKind::Unavailable),
    ("tampered", ErrorKind::Tampered),
    ("erased", ErrorKind::Erased),
    ("no-key", ErrorKind::NoKey),
    ("refused", ErrorKind::Refused),
];

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let kind =
            KINDS.iter().find(|(_, kind)| *kind == error.kind()).map_or("unavailable", |(name, _)| name);
        Failure { kind: kind.to_owned(), message: error.to_string() }
    }
}

impl Failure {
    /// The error as this side has it.
    pub(super) fn into_error(self) -> Error {
        let kind = KINDS.iter().find(|(name, _)| *name == self.kind);
        Error::new(kind.map_or(ErrorKind::Unavailable, |(_, kind)| *kind), self.message)
    }
}

/// A message as it goes over the socket.
pub(super) fn framed(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).expect("texts and numbers can be written");
    let length = u32::try_from(bytes.len() - 4).expect("what is told is short");
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}
