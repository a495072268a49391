//! What a server says of a command, as far as it is used.

use std::borrow::Cow;

/// A command as a server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// In small letters, behind that of its container: `config|get`.
    pub(super) name: Cow<'static, str>,
    /// [`WRITE`] and its neighbours.
    pub(super) flags: u16,
    pub(super) specs: Cow<'static, [Spec]>,
}

/// Where keys are among the arguments, and what becomes of what they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    /// [`RO`] and its neighbours.
    pub(super) flags: u16,
    pub(super) begin: Begin,
    pub(super) find: Find,
}

/// Where to begin to look for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At this argument.
    Index(u32),
    /// Behind this word, which is looked for from an argument on, or backwards from one that is counted from the end.
    Keyword(Word, i32),
    /// The server does not say.
    Unknown,
}

/// A short word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    bytes: [u8; 15],
    length: u8,
}

impl Word {
    /// `None` where it is too long.
    pub(super) const fn of(word: &str) -> Option<Word> {
        let mut bytes = [0; 15];
        if word.len() > bytes.len() {
            return None;
        }
        let mut length = 0;
        while (length as usize) < word.len() {
            bytes[length as usize] = word.as_bytes()[length as usize];
            length += 1;
        }
        Some(Word { bytes, length })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Which arguments from there on are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Find {
    /// All to the last one, relative to the first, or to the end where negative; of those to the end, only one part of `limit`.
    Range { last: i32, step: u32, limit: u32 },
    /// As many as argument `number` says, from `first` on; both relative to where it begins.
    Number { number: u32, first: u32, step: u32 },
    /// The server does not say.
    Unknown,
}

/// The flags and categories of commands that are used, with the server's words for them.
pub(super) const COMMAND_FLAGS: [(&str, u16); 9] = [
    ("write", WRITE),
    ("movablekeys", MOVABLE_KEYS),
    ("blocking", BLOCKING),
    ("admin", ADMIN),
    ("module", MODULE),
    ("pubsub", PUBSUB),
    ("@connection", CONNECTION),
    ("@transaction", TRANSACTION),
    ("@scripting", SCRIPTING),
];
pub(super) const WRITE: u16 = 1;
pub(super) const MOVABLE_KEYS: u16 = 1 << 1;
pub(super) const BLOCKING: u16 = 1 << 2;
pub(super) const ADMIN: u16 = 1 << 3;
pub(super) const MODULE: u16 = 1 << 4;
pub(super) const PUBSUB: u16 = 1 << 5;
pub(super) const CONNECTION: u16 = 1 << 6;
pub(super) const TRANSACTION: u16 = 1 << 7;
pub(super) const SCRIPTING: u16 = 1 << 8;

/// The flags of key specifications that are used, with the server's words for them.
pub(super) const KEY_FLAGS: [(&str, u16); 10] = [
    ("RO", RO),
    ("RW", RW),
    ("OW", OW),
    ("RM", RM),
    ("access", ACCESS),
    ("update", UPDATE),
    ("insert", INSERT),
    ("delete", DELETE),
    ("not_key", NOT_KEY),
    ("incomplete", INCOMPLETE),
];
/// Looked at alone.
pub(super) const RO: u16 = 1;
/// Changed.
pub(super) const RW: u16 = 1 << 1;
/// Overwritten, whatever was there.
pub(super) const OW: u16 = 1 << 2;
/// Removed.
pub(super) const RM: u16 = 1 << 3;
/// What is there is told, copied or used.
pub(super) const ACCESS: u16 = 1 << 4;
/// What is there may become another.
pub(super) const UPDATE: u16 = 1 << 5;
/// Something is added to what is there.
pub(super) const INSERT: u16 = 1 << 6;
/// Something is taken from what is there.
pub(super) const DELETE: u16 = 1 << 7;
/// It is no key: a channel.
pub(super) const NOT_KEY: u16 = 1 << 8;
/// There may be keys that this does not find.
pub(super) const INCOMPLETE: u16 = 1 << 9;
