//! [`Effect`], and what it is made of.

use smallvec::SmallVec;
use std::borrow::Cow;

/// By how many milliseconds the server's clock may differ from this machine's.
const CLOCKS: i64 = 1000;

/// What becomes of what a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// It was not there before.
    Create,
    /// It is looked at, or something that follows from it is told.
    Read,
    /// It is created or updated, and nothing tells which.
    Write,
    /// It was there before, and is another now: part of it may be gone (`HDEL`), even the last (`LPOP`).
    Update,
    /// It is gone.
    Delete,
}

impl Access {
    /// The word of an entry for it.
    pub fn word(self) -> &'static str {
        match self {
            Access::Create => "create",
            Access::Read => "read",
            Access::Write => "write",
            Access::Update => "update",
            Access::Delete => "delete",
        }
    }
}

/// All of them, in their order.
const ACCESSES: [Access; 5] = [Access::Create, Access::Read, Access::Write, Access::Update, Access::Delete];

/// A set of [`Access`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accesses(u8);

impl Accesses {
    pub(super) const READ: Accesses = Accesses::of(Access::Read);

    pub(super) const fn of(access: Access) -> Accesses {
        Accesses(1 << access as u8)
    }

    pub(super) const fn and(self, access: Access) -> Accesses {
        Accesses(self.0 | 1 << access as u8)
    }

    pub(super) const fn without(self, access: Access) -> Accesses {
        Accesses(self.0 & !(1 << access as u8))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Access> {
        ACCESSES.into_iter().filter(move |access| self.0 & 1 << *access as u8 != 0)
    }
}

/// A key among the arguments of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyUse {
    /// Which argument it is.
    pub argument: u64,
    /// What becomes of what it names. One key may be used in several ways: each is a use of its own.
    pub access: Access,
    /// The database that it lies in, where the command names one (`MOVE`, `COPY … DB`): else it is that of the connection.
    pub database: Option<u32>,
}

/// The keys of a command. Most have one, in one or two ways; those that move something have three uses.
pub type Keys = SmallVec<[KeyUse; 3]>;

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

/// What a command is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// What the server stores.
    #[default]
    Data,
    /// The same, and its reply may be long in coming: `BLPOP`, `XREAD … BLOCK`, `WAIT`. In a transaction it does not wait.
    Blocking,
    /// The same, and its reply names keys that its arguments do not: `KEYS`, `SCAN`, `RANDOMKEY`.
    Listing,
    /// The connection, or what everybody may know of the server: `AUTH`, `HELLO`, `SELECT`, `RESET`, `CLIENT`, `QUIT`, `PING`, `INFO`.
    Connection,
    /// `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.
    Transaction,
    /// Channels: `SUBSCRIBE`, `PUBLISH` and the like.
    PubSub,
    /// Scripts and functions: `EVAL`, `FCALL`, `SCRIPT`, `FUNCTION`.
    Script,
    /// The server: `FLUSHALL`, `CONFIG`, `ACL`, `DEBUG`, `MONITOR`, `SYNC`.
    Administrative,
}

/// How many replies a command gets, where the connection has them at all (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// One.
    #[default]
    One,
    /// One for each of so many channels, as pushes in RESP3. None named: one for each that is subscribed, and at least one.
    Channels(u64),
    /// None: `CLIENT REPLY OFF`, `REPLCONF ACK`.
    None,
    /// What comes after the reply is no reply to any command any more: `MONITOR`, `SYNC`, `PSYNC`.
    Endless,
}

/// Which databases a command is about besides that of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Databases {
    /// None.
    #[default]
    Connections,
    /// This becomes the connection's, if the reply is no error: `SELECT`, `RESET`.
    Select(u32),
    /// One of its keys lies in this one, and says so: `MOVE`, `COPY … DB`.
    Named(u32),
    /// These two change places, for everybody: `SWAPDB`.
    Swap(u32, u32),
    /// All: `FLUSHALL`.
    All,
}

impl Databases {
    /// Whether only the reply says in which database the next commands of the connection are, or what that holds.
    pub fn settles_others(self) -> bool {
        matches!(self, Databases::Select(_) | Databases::Swap(..))
    }
}

/// A command of a [`CommandTable`](super::CommandTable), which knows its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(pub(super) u16);

impl Command {
    /// One that the table does not have.
    pub const UNKNOWN: Command = Command(u16::MAX);
}

/// What a command does, as far as its arguments tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Which command it is: [`CommandTable::name`](super::CommandTable::name).
    pub command: Command,
    /// The keys, in the order of the arguments; of one key in that of [`Access`].
    pub keys: Keys,
    /// Why there may be more of them.
    pub unknowable: Option<Unknowable>,
    /// What it is about.
    pub class: Class,
    /// Whether it is about the server and not about what it stores, and wants to be recorded nevertheless: `CONFIG`, `ACL`, `FLUSHALL`.
    pub administrative: bool,
    /// How many replies it gets.
    pub answers: Answers,
    /// Which databases it is about.
    pub databases: Databases,
    /// What its reply tells.
    pub(super) telling: Telling,
    /// When the keys that it writes are to be gone.
    pub(super) end: End,
}

impl Default for Effect {
    fn default() -> Self {
        Effect {
            command: Command::UNKNOWN,
            keys: Keys::new(),
            unknowable: None,
            class: Class::default(),
            administrative: false,
            answers: Answers::default(),
            databases: Databases::default(),
            telling: Telling::default(),
            end: End::default(),
        }
    }
}

impl Effect {
    /// Whether more than one of its arguments is a key.
    pub fn has_several_keys(&self) -> bool {
        self.keys.first().is_some_and(|first| self.keys.iter().any(|other| other.argument != first.argument))
    }

    /// What it does where the server carries it out between two times of this machine's clock, in milliseconds since 1970: a key that is
    /// to be gone at a time that is over is deleted.
    pub fn between(&self, times: impl FnOnce() -> (i64, i64)) -> Cow<'_, Effect> {
        let End::At(end) = self.end else { return Cow::Borrowed(self) };
        let (earliest, latest) = times();
        if end > latest.saturating_add(CLOCKS) {
            return Cow::Borrowed(self);
        }
        let mut effect = self.clone();
        effect.end = if end <= earliest.saturating_sub(CLOCKS) { End::Untold } else { End::Close };
        let written = effect.keys.iter_mut().filter(|used| used.access != Access::Read);
        written.for_each(|used| used.access = Access::Delete);
        Cow::Owned(effect)
    }
}

/// When a key is to be gone, as a command says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// It does not say, or counts from when it is carried out.
    #[default]
    Untold,
    /// In so many milliseconds since 1970.
    At(i64),
    /// So close to when it is carried out that nobody but the server knows which is first.
    Close,
}

/// What a reply tells of what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Telling {
    /// Only whether it was an error.
    #[default]
    Nothing,
    /// The integer 0, or one below it: nothing was changed.
    ZeroIsNothing,
    /// Null, or an empty array: nothing was changed.
    NullIsNothing,
    /// Null: it was not there, and was created; anything else is what was there, and it was updated.
    OldValue,
    /// Null: it was not there, and was created; anything else is what is there, and it was not changed.
    OldValueIsNothing,
    /// Null: nothing was changed; anything else is what was there, and does not tell whether it was changed.
    OldValueTellsNothing,
    /// The integer 0: there was nothing to store, and what was there is gone.
    ZeroIsDelete,
    /// How many of so many were removed.
    Removed(u64),
    /// The length of a list to which so many were added.
    Length(u64),
    /// Null: nothing was changed; else an array that begins with the one key that was.
    NamesKey,
    /// `NOKEY`: nothing was changed.
    NoKey,
}
