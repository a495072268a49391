//! What comes over a socket, before it is appended: from whom, what becomes of it, and how much it was.

use crate::control::peer::Credentials;
use bulla_proof::Entry;
use bulla_text::{ParsedEntry, jsonl};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A process that appends over a socket, as the kernel tells who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number; 0 where it is in another namespace of processes.
    pub process: u32,
    /// The user that it runs as; 65534 where users have a namespace of their own here that has no number for that one.
    pub user: u32,
}

impl From<Credentials> for Peer {
    fn from(Credentials { process, user }: Credentials) -> Self {
        Peer { process, user }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of user {}", self.process, self.user)
    }
}

/// Where an entry came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Who sent it.
    pub from: Peer,
    /// The number of its batch among those of its connection, or of its datagram among all, from 1.
    pub batch: u64,
    /// Its place in the batch, from 1; 0 where the batch is none.
    pub entry: u64,
}

/// What becomes of entries between the socket and the log.
pub trait Intake: Send + Sync {
    /// Reads a line of a batch of lines.
    ///
    /// # Errors
    /// Why it is none, for whoever sent it.
    fn parse(&self, line: &[u8]) -> Result<ParsedEntry, String> {
        jsonl::parse_line(line).map_err(|error| error.to_string())
    }

    /// Reads a record that is a datagram of its own.
    ///
    /// # Errors
    /// Why it is none.
    fn parse_record(&self, record: &[u8]) -> Result<ParsedEntry, String> {
        self.parse(record)
    }

    /// Completes an entry, whatever it was sent as.
    ///
    /// # Errors
    /// Why it is refused, for whoever sent it.
    fn complete<'a>(&'a self, entry: &mut Entry<'a>) -> Result<(), String> {
        let _ = entry;
        Ok(())
    }

    /// What was sent there was refused, `raw` as it came where it came as a line.
    fn refused(&self, sent: Sent, reason: &str, raw: Option<&[u8]>) {
        let _ = (sent, reason, raw);
    }
}

/// Entries are taken as they are sent, lines as JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsSent;

impl Intake for AsSent {}

/// What was counted since a log listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clients of the stream socket that were taken.
    pub clients: u64,
    /// Clients that were turned away.
    pub turned_away: u64,
    /// Batches that were looked at.
    pub batches: u64,
    /// Datagrams that were looked at.
    pub datagrams: u64,
    /// Entries that were staged; how many of them are durable the log says.
    pub accepted: u64,
    /// Entries, and datagrams that are none, that were refused.
    pub refused: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) clients: AtomicU64,
    pub(super) turned_away: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) datagrams: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            clients: of(&self.clients),
            turned_away: of(&self.turned_away),
            batches: of(&self.batches),
            datagrams: of(&self.datagrams),
            accepted: of(&self.accepted),
            refused: of(&self.refused),
        }
    }
}

pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
