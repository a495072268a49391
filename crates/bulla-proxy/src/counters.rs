//! [`Counters`]: what the proxy counts, for whoever asks.

use crate::command::Unknowable;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows, or that goes up and down.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds so many.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Takes so many away.
    pub fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    /// Takes all of them away; how many they were.
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }

    /// How many there are.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the proxy counts since it started.
#[derive(Debug, Default)]
pub struct Counters {
    /// Clients that are connected.
    pub clients: Counter,
    /// Connections that were accepted.
    pub accepted: Counter,
    /// Connections that were turned away because there were too many.
    pub turned_away: Counter,
    /// Connections that were refused before their first command: see [`Counters::refused`].
    refused: [Counter; RefusedConnection::ALL.len()],
    /// How often no client could be accepted, as where there are no more files.
    pub not_accepted: Counter,
    /// The same of whoever asks for metrics.
    pub metrics_not_accepted: Counter,
    /// How often something ended by a defect of the proxy: a connection, or a client that a thread should have served that is gone.
    pub failed: Counter,
    /// Connections of clients to which no connection to the server could be made.
    pub unreachable: Counter,
    /// Bytes from clients, and from the server.
    pub from_clients: Counter,
    /// See [`Counters::from_clients`].
    pub from_server: Counter,
    /// Entries that the log was given.
    pub recorded: Counter,
    /// Of these the ones of which no rule says whose data they are.
    pub unmapped: Counter,
    /// Operations of which the log did not take the result.
    pub unrecorded: Counter,
    /// Of these the ones of which no `gap` in the log tells yet.
    pub untold: Counter,
    /// Entries that a log which failed for good was given and that are not known to be durable, and of which no `gap` tells yet.
    pub lost_at_most: Counter,
    /// Of `untold` the ones that nobody is about to tell of at present: whoever had to ended by a defect, or has let go of the log.
    pub(crate) orphaned: Counter,
    /// Workers for which the log takes nothing at present.
    pub taking_nothing: Counter,
    /// 1 while the log has failed for good, until it is opened again.
    pub log_failed: Counter,
    /// How often it was opened again.
    pub log_reopened: Counter,
    /// How often entries began to wait for memory of the log.
    pub waits: Counter,
    /// Clients that were cut off while they waited for something, when the time that they had for it was over.
    pub cut_off: Counter,
    /// Answers that send clients to a server that the proxy does not stand before: `MOVED`, `ASK`, those of a Sentinel.
    pub redirects: Counter,
    /// Operations of which nobody knows whether they were carried out.
    pub unknown: Counter,
    /// Commands that were refused: see [`Counters::refused_command`].
    refused_commands: [Counter; RefusedCommand::ALL.len()],
    /// How often what values teach could not be written down.
    pub unkept: Counter,
    /// Connections that nobody audits from some point on.
    pub unaudited: Counter,
    /// Connections that ended because what came was no protocol that is known.
    pub not_followed: Counter,
}

impl Counters {
    /// Connections that were refused for this.
    pub fn refused(&self, why: RefusedConnection) -> &Counter {
        &self.refused[why as usize]
    }

    /// Commands that were refused for this.
    pub fn refused_command(&self, why: RefusedCommand) -> &Counter {
        &self.refused_commands[why as usize]
    }
}

/// Why a connection was refused before its first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedConnection {
    /// A PROXY header is missing, must not be there, or says nothing that can be believed.
    ProxyHeader,
    /// There was no agreeing on TLS.
    Tls,
    /// Either took too long.
    HandshakeTimeout,
}

impl RefusedConnection {
    /// All of them.
    pub const ALL: [RefusedConnection; 3] =
        [RefusedConnection::ProxyHeader, RefusedConnection::Tls, RefusedConnection::HandshakeTimeout];

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            RefusedConnection::ProxyHeader => "proxy_header",
            RefusedConnection::Tls => "tls",
            RefusedConnection::HandshakeTimeout => "handshake_timeout",
        }
    }
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedCommand {
    /// `policy.scripts`.
    Script,
    /// `policy.patterns`.
    Pattern,
    /// `policy.whole`.
    Whole,
    /// `policy.undescribed`.
    Undescribed,
    /// `policy.too_many`.
    TooMany,
    /// `policy.administrative`.
    Administrative,
    /// The log takes no entries.
    Unrecordable,
    /// It is one that the proxy does not relay where it came: in a transaction, behind `MONITOR`, or at all.
    NotRelayed,
    /// A limit of the proxy does not let it pass.
    Limit,
}

impl From<Unknowable> for RefusedCommand {
    fn from(class: Unknowable) -> Self {
        match class {
            Unknowable::Script => RefusedCommand::Script,
            Unknowable::Pattern => RefusedCommand::Pattern,
            Unknowable::Whole => RefusedCommand::Whole,
            Unknowable::Undescribed => RefusedCommand::Undescribed,
            Unknowable::TooMany => RefusedCommand::TooMany,
        }
    }
}

impl RefusedCommand {
    /// All of them.
    pub const ALL: [RefusedCommand; 9] = [
        RefusedCommand::Script,
        RefusedCommand::Pattern,
        RefusedCommand::Whole,
        RefusedCommand::Undescribed,
        RefusedCommand::TooMany,
        RefusedCommand::Administrative,
        RefusedCommand::Unrecordable,
        RefusedCommand::NotRelayed,
        RefusedCommand::Limit,
    ];

    /// In one word; of a policy its key.
    pub const fn name(self) -> &'static str {
        match self {
            RefusedCommand::Script => "scripts",
            RefusedCommand::Pattern => "patterns",
            RefusedCommand::Whole => "whole",
            RefusedCommand::Undescribed => "undescribed",
            RefusedCommand::TooMany => "too_many",
            RefusedCommand::Administrative => "administrative",
            RefusedCommand::Unrecordable => "unrecordable",
            RefusedCommand::NotRelayed => "not_relayed",
            RefusedCommand::Limit => "limit",
        }
    }
}
