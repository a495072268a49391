//! The configuration of the proxy: one TOML file. [`EXAMPLE`] is one, and says what each key means.
//!
//! What is wrong with a file is said of a line and a column, with what is allowed there; a key that is not known is refused, with
//! the one that may have been meant. There are no secrets in it: keys and passwords are named by their files.

mod network;
mod read;
mod table;
#[cfg(test)]
mod tests;

pub use network::Network;

use crate::command::{Effect, Unknowable};
use crate::counters::RefusedCommand;
use crate::subject::Rule;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A file with every key, each explained, and at its default where it has one.
pub const EXAMPLE: &str = include_str!("example.toml");

/// What the proxy is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// When a reply may pass.
    pub mode: Mode,
    /// What becomes of commands that cannot be recorded.
    pub unrecordable: Unrecordable,
    /// What becomes of a connection whose bytes are no protocol that is known.
    pub unfollowable: Unfollowable,
    /// How many threads relay; as many as there are processors, where nobody says.
    pub workers: Option<usize>,
    /// How many bytes of the values that are written and read are recorded; none of them where this is `None`.
    pub record_values: Option<usize>,
    /// The users whose claims of a purpose count.
    pub claims: Vec<String>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Whose data it is where no rule says anything.
    pub default_subject: Option<String>,
    /// The log.
    pub log: LogPlace,
    /// Where clients come.
    pub listen: Listen,
    /// Where the server is.
    pub upstream: Upstream,
    /// Whose data keys are, in the order in which they are tried.
    pub rules: Vec<Rule>,
    /// What becomes of commands whose keys nobody can know, and of those that administer the server.
    pub policy: Policy,
    /// How much of anything there may be.
    pub limits: Limits,
}

/// When a reply may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At once.
    Async,
    /// Once its entry is durable, and all before it are.
    BeforeReply,
    /// At once; the command itself goes to the server once it is durable that it will.
    BeforeSend,
}

/// What becomes of commands while the log takes no entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecordable {
    /// They are refused.
    Refuse,
    /// They pass, and the log tells of the gap.
    Pass,
}

/// What becomes of a connection on which something else is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfollowable {
    /// It is closed.
    Close,
    /// It is relayed, and recorded as one that nobody audits.
    Relay,
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is answered with an error, and the server does not get it.
    Refuse,
    /// It passes, and its entry says what cannot be known of it.
    Record,
}

/// Where the log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// Its directory.
    pub directory: PathBuf,
    /// Its key directory; the one of the log's name, where this is `None`.
    pub keys: Option<PathBuf>,
}

/// Where clients come. At least one of the two places is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Over TCP.
    pub address: Option<SocketAddr>,
    /// How many ports behind that one may be taken in its place where it is not free. No file says this.
    pub more_ports: u16,
    /// On a Unix socket.
    pub unix: Option<PathBuf>,
    /// Who may connect to that socket: its permissions.
    pub unix_mode: u32,
    /// What TLS needs; without it TCP is plain.
    pub tls: Option<ListenTls>,
    /// The peers that have to say with a PROXY header for whom they come. Nobody else may.
    pub proxy_protocol: Vec<Network>,
}

/// What a TLS listener needs, as files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// Its certificate, and those that lead to the authority's.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities one of which has to have certified a client; clients need no certificate where this is `None`.
    pub client_ca: Option<PathBuf>,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Where it is.
    pub place: UpstreamPlace,
    /// What TLS needs; without it the connection is plain.
    pub tls: Option<UpstreamTls>,
    /// As whom the proxy asks for the table of commands; as the default user, where nobody says.
    pub user: Option<String>,
    /// The file that has the password for that.
    pub password_file: Option<PathBuf>,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamPlace {
    /// Over TCP: a name or an address, and a port.
    Tcp(String, u16),
    /// On a Unix socket.
    Unix(PathBuf),
}

/// What a TLS connection to the server needs, as files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The authorities one of which has to have certified the server.
    pub ca: PathBuf,
    /// The name that the certificate has to have.
    pub server_name: String,
    /// The proxy's own certificate and its private key, where the server wants one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// What becomes of commands of which not everything can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Scripts and functions.
    pub scripts: Treatment,
    /// Patterns that name keys.
    pub patterns: Treatment,
    /// What takes out or replaces all that there is.
    pub whole: Treatment,
    /// Commands of which the server does not say where their keys are.
    pub undescribed: Treatment,
    /// Commands with more arguments, or longer keys, than are kept.
    pub too_many: Treatment,
    /// What administers the server.
    pub administrative: Treatment,
}

/// How much of anything there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients at once, each of which takes two descriptors of the process; where nobody says, [`Limits::CLIENTS`], or as many as
    /// whoever starts the proxy has descriptors for.
    pub clients: Option<usize>,
    /// Commands of one client that are not answered yet.
    pub pipeline: usize,
    /// Commands of one transaction.
    pub transaction: usize,
    /// Bytes that are kept of the keys of one command, of everything else in it, and of one reply.
    pub kept: usize,
    /// Arguments or values that are kept of one command, or of one reply.
    pub kept_items: usize,
    /// Keys of one reply that are listed.
    pub listed_keys: usize,
    /// Bytes for what was learned of whose data keys are.
    pub learned: usize,
    /// How long it may take to reach the server.
    pub connect_timeout: Duration,
    /// How long a client may take for its PROXY header and TLS.
    pub handshake_timeout: Duration,
    /// How long a client may say nothing while it waits for nothing; without end, where this is `None`.
    pub idle_timeout: Option<Duration>,
    /// How long clients have for what they began, once the proxy is asked to end.
    pub drain_timeout: Duration,
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        read::config(bytes)
    }

    /// The first key that says another thing in `other`, of those that say what cannot change while the proxy runs.
    pub fn fixed_difference(&self, other: &Config) -> Option<&'static str> {
        let (listen, upstream) = (&self.listen, &self.upstream);
        let differences = [
            ("mode", self.mode != other.mode),
            ("unfollowable", self.unfollowable != other.unfollowable),
            ("workers", self.workers != other.workers),
            ("metrics", self.metrics != other.metrics),
            ("log", self.log != other.log),
            ("listen.address", listen.address != other.listen.address),
            ("listen.unix", listen.unix != other.listen.unix),
            ("listen.unix_mode", listen.unix_mode != other.listen.unix_mode),
            ("listen.tls", listen.tls.is_some() != other.listen.tls.is_some()),
            ("upstream.address", upstream.place != other.upstream.place),
            ("upstream.tls", upstream.tls.is_some() != other.upstream.tls.is_some()),
            ("upstream.user", upstream.user != other.upstream.user),
            ("limits.learned", self.limits.learned != other.limits.learned),
        ];
        differences.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
    }
}

impl Limits {
    /// As many clients there may be at once where nobody says.
    pub const CLIENTS: usize = 10_000;
}

impl Policy {
    /// What becomes of a command of which this cannot be known.
    pub fn of(&self, class: Unknowable) -> Treatment {
        match class {
            Unknowable::Script => self.scripts,
            Unknowable::Pattern => self.patterns,
            Unknowable::Whole => self.whole,
            Unknowable::Undescribed => self.undescribed,
            Unknowable::TooMany => self.too_many,
        }
    }

    /// By which key of this a command is refused, if by any.
    pub fn refusal(&self, effect: &Effect) -> Option<RefusedCommand> {
        if effect.administrative && self.administrative == Treatment::Refuse {
            return Some(RefusedCommand::Administrative);
        }
        effect.unknowable.filter(|class| self.of(*class) == Treatment::Refuse).map(RefusedCommand::from)
    }
}

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The line, from 1 on.
    pub line: usize,
    /// The character of that line, from 1 on.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub what: String,
}

impl ConfigError {
    /// That something is wrong at a byte of a text.
    fn new(text: &str, at: usize, what: String) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ConfigError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what,
        }
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for ConfigError {}
