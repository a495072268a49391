//! [`Counters`]: what the proxy counts, for whoever asks.

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
    /// Operations that the log did not take.
    pub unrecorded: Counter,
    /// How often a worker waited for memory of the log.
    pub waits: Counter,
    /// Connections that nobody audits from some point on.
    pub unaudited: Counter,
    /// Connections that ended because what came was no protocol that is known.
    pub not_followed: Counter,
}
