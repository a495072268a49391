//! [`Operation`]: what is to be recorded of a command, and [`Record`], which takes it.

use super::outlet::Ticket;
use crate::command::{Access, Effect, Unknowable};
use crate::counters::RefusedCommand;
use crate::resp::{Arguments, Reply};
use crate::subject::{Answer, Said, Span};

/// What became of an operation: the `status` of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was done.
    Done = 0,
    /// The server answered with an error.
    Failed = 1,
    /// The reply says that nothing was changed.
    NotExecuted = 2,
    /// Nobody knows: the reply never came, or does not say.
    Unknown = 3,
}

/// What an operation is about.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// What a key names.
    Key {
        /// The key, or its beginning.
        key: &'a [u8],
        /// How many bytes it has.
        length: u64,
        /// The digest of all of it, where it is longer than what is known of it.
        digest: Option<[u8; 32]>,
        /// What became of it.
        access: Access,
    },
    /// Keys that nobody can know, and why; the script or function that knows, where it has a name.
    Unknowable(Unknowable, Option<&'a [u8]>),
    /// So many keys that a reply named beyond those that are listed, and the keyed digest (HMAC-SHA256) of all of the reply as it came,
    /// where it came.
    Unlisted(u64, Option<[u8; 32]>),
    /// The server; a script or function that it is given or has to forget, where that has a name.
    Server(Option<&'a [u8]>),
    /// A connection that nobody audits from here on.
    Unaudited,
}

/// One entry: what a command did to one key in one role.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// What it is about.
    pub target: Target<'a>,
    /// Whose data the key is, where the command itself says so.
    pub subject: Option<&'a str>,
    /// What became of it.
    pub status: Status,
    /// The code of the server's error (`WRONGTYPE`).
    pub error: Option<&'a str>,
    /// The command, in small letters; empty where it is not known.
    pub command: &'a str,
    /// The database in which the key lies.
    pub database: u32,
    /// How many bytes were touched, where that can be told.
    pub size: Option<u64>,
    /// How long it took, in nanoseconds.
    pub duration: Option<u64>,
    /// The address of the client.
    pub client: &'a str,
    /// Who acts: the server's user, as whom the client has authenticated itself; until it has, whose certificate it has.
    pub actor: &'a str,
    /// Why, as the client says.
    pub purpose: Option<&'a str>,
    /// The name that the client gave itself, or its beginning.
    pub name: Option<&'a str>,
    /// Whether it is only that.
    pub name_is_cut: bool,
    /// Whose certificate the client has.
    pub certificate: Option<&'a str>,
    /// At which point of its way the command is.
    pub stage: Stage,
    /// What was written or read, where that is to be recorded and is known to be of this key alone.
    pub values: Values<'a>,
}

/// Where the values of an operation are.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Nowhere, or they are not to be recorded.
    None,
    /// Arguments of the command, of these places.
    Carried(&'a Arguments, u64, u64),
    /// In the values of a reply from this place on, up to the other.
    Told(&'a Reply, usize, usize),
}

/// At which point of its way a command is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is about to go to the server.
    Intended,
    /// Its reply is long, and begins to leave.
    Begun,
    /// It was answered, or will never be.
    Over,
}

/// A command that the server carried out, for whoever learns from it.
pub struct CarriedOut<'a> {
    /// Its name, in small letters.
    pub command: &'a str,
    /// Its arguments.
    pub arguments: &'a Arguments,
    /// What it does.
    pub effect: &'a Effect,
    /// The database of its connection.
    pub database: u32,
    /// What the server answered.
    pub answer: Answer,
    /// Whether that says that its key was not there before.
    pub created: bool,
    /// Whether that says that of the keys which it deletes none is left.
    pub leaves_none: bool,
    /// When it was carried out, and on which connection.
    pub span: Span,
}

/// That the log takes no entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecorded;

/// Takes operations.
pub trait Record {
    /// Records an operation, after all before it.
    ///
    /// # Errors
    /// The log takes no entries, and the configuration does not let that pass.
    fn record(&mut self, operation: &Operation<'_>) -> Result<(), Unrecorded>;

    /// Whether commands may pass: the log takes entries, as far as is known, or the configuration lets them pass without.
    fn takes(&mut self) -> bool;

    /// The time of what is recorded now, in nanoseconds since the Unix epoch.
    fn now(&mut self) -> i64;

    /// What has to be durable for all that was recorded to be.
    fn ticket(&self) -> Ticket;

    /// The same where the log has not taken all of it yet, and 0 where it has: nothing that is recorded goes on meanwhile, in any mode.
    fn held(&self) -> Ticket {
        0
    }

    /// Learns from a command that was carried out, before its operations are recorded: what it says itself. Nobody has to learn.
    fn learn<'a>(&mut self, _: &CarriedOut<'a>) -> Said<'a> {
        Said::default()
    }

    /// Is told of so many operations of which no entries can be made, by a defect.
    fn missed(&mut self, count: u64);

    /// Is told that a command was refused. Nobody has to count it.
    fn refused(&mut self, _: RefusedCommand) {}

    /// Is told that an answer sends the client to another server. Nobody has to count it.
    fn redirected(&mut self) {}

    /// Forgets what was learned of keys that a command took away, or takes it along, after its operations were recorded; and what it said
    /// itself, where that is contested.
    fn forget(&mut self, _: &CarriedOut<'_>, _: &Said<'_>) {}
}

/// Counts the operations that it is given.
#[derive(Default)]
pub(super) struct Count(pub(super) u64);

impl Record for Count {
    fn record(&mut self, _: &Operation<'_>) -> Result<(), Unrecorded> {
        self.0 += 1;
        Ok(())
    }

    fn takes(&mut self) -> bool {
        true
    }

    fn now(&mut self) -> i64 {
        0
    }

    fn ticket(&self) -> Ticket {
        0
    }

    fn missed(&mut self, count: u64) {
        self.0 += count;
    }
}
