//! [`Backlog`]: entries for which the log had no memory, until it has.
//!
//! Whoever has entries in here reads nothing more that would make others, so it holds what one read of each connection leads to.

use bulla::Entry;
use std::collections::VecDeque;

/// See the module.
#[derive(Default)]
pub(super) struct Backlog {
    entries: VecDeque<Held>,
    /// Since when the first one waits, by the steady clock.
    pub(super) since: u64,
}

/// What an entry of the proxy has, kept beyond the call that made it.
struct Held {
    time: Option<i64>,
    operation: Box<str>,
    location: Option<Box<[u8]>>,
    subjects: Option<Vec<Box<str>>>,
    purpose: Option<Box<str>>,
    actor: Option<Box<str>>,
    client: Option<Box<str>>,
    status: Option<u32>,
    duration: Option<u64>,
    size: Option<u64>,
    payload: Option<Box<[u8]>>,
    results: u64,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Keeps an entry, which is the result of so many operations.
    pub(super) fn push(&mut self, entry: &Entry<'_>, results: u64) {
        let text = |text: Option<&str>| text.map(Into::into);
        let subjects = entry.subjects.as_ref();
        self.entries.push_back(Held {
            time: entry.time,
            operation: entry.operation.into(),
            location: entry.location.map(Into::into),
            subjects: subjects.map(|subjects| subjects.iter().map(|subject| (*subject).into()).collect()),
            purpose: text(entry.purpose),
            actor: text(entry.actor),
            client: text(entry.client),
            status: entry.status,
            duration: entry.duration,
            size: entry.size,
            payload: entry.payload.map(Into::into),
            results,
        });
    }

    /// The one that waits longest.
    pub(super) fn first(&self) -> Option<Entry<'_>> {
        self.entries.front().map(Held::entry)
    }

    /// Forgets the one that waits longest; of how many operations it was the result.
    pub(super) fn pop(&mut self) -> u64 {
        let results = self.entries.pop_front().map_or(0, |entry| entry.results);
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        }
        results
    }

    /// Forgets all of them; of how many operations they were the results.
    pub(super) fn clear(&mut self) -> u64 {
        std::mem::take(&mut self.entries).iter().map(|entry| entry.results).sum()
    }
}

impl Held {
    fn entry(&self) -> Entry<'_> {
        let subjects = self.subjects.as_ref();
        Entry {
            time: self.time,
            operation: &self.operation,
            location: self.location.as_deref(),
            subjects: subjects.map(|subjects| subjects.iter().map(|subject| &**subject).collect()),
            purpose: self.purpose.as_deref(),
            actor: self.actor.as_deref(),
            client: self.client.as_deref(),
            status: self.status,
            duration: self.duration,
            size: self.size,
            payload: self.payload.as_deref(),
            ..Entry::default()
        }
    }
}
