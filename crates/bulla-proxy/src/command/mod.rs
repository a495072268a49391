//! What a command does: which of its arguments are keys, and what becomes of what they name.

use crate::resp::Arguments;

/// What becomes of what a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// It was not there before.
    Create,
    /// It is looked at, or something that follows from it is told.
    Read,
    /// It is created or updated, and nothing tells which.
    Write,
    /// It was there before, and is another now.
    Update,
    /// It is gone.
    Delete,
}

/// A key among the arguments of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Which argument it is.
    pub argument: u64,
    /// What becomes of what it names. One key may be used in several ways: each is a use of its own.
    pub access: Access,
}

/// Why nobody can know from a command which keys it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknowable {
    /// A script or a function may touch keys that it does not declare.
    Script,
    /// Patterns name the keys: of `SORT … BY … GET`.
    Pattern,
    /// All that the server has goes out, or is replaced: replication, `MIGRATE`, `RESTORE`, `DEBUG`.
    Whole,
    /// The server's table does not have this command, or it does not say where its keys are.
    Undescribed,
    /// There are more arguments than are kept, and keys may be among those that are not.
    TooMany,
}

/// What a command does, as far as its arguments tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Its name in small letters, with its subcommand where it has some: `config|get`.
    pub name: String,
    /// The keys, in the order of the arguments; of one key in that of [`Access`].
    pub keys: Vec<KeyUse>,
    /// Why there may be more of them.
    pub unknowable: Option<Unknowable>,
    /// Whether it is about the server and not about what it stores, and wants to be recorded nevertheless: `CONFIG`, `ACL`, `FLUSHALL`.
    pub administrative: bool,
}

/// The commands that a server has.
#[derive(Clone, Debug, Default)]
pub struct CommandTable {}

impl CommandTable {
    /// What a command does.
    pub fn effect(&self, arguments: &Arguments) -> Effect {
        let _ = arguments;
        Effect::default()
    }
}
