//! [`Durable`]: how far a worker's entries are durable.

use super::Losses;
use crate::session::Ticket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many entries of one worker are durable, as the log's own thread tells it.
pub struct Durable {
    /// The ticket up to which entries are, but for those that were lost.
    pub(super) ticket: AtomicU64,
    /// Whether a group of them is on its way.
    pub(super) on_its_way: AtomicBool,
    pub(super) losses: Losses,
    /// How often a group did not become durable.
    pub(super) failures: AtomicU64,
    /// How many operations are missing of which an entry told that was lost itself.
    pub(super) told_in_vain: AtomicU64,
    /// Called when any of these has changed.
    changed: Box<dyn Fn() + Send + Sync>,
}

impl Durable {
    pub(super) fn new(changed: impl Fn() + Send + Sync + 'static) -> Self {
        Durable {
            ticket: AtomicU64::new(0),
            on_its_way: AtomicBool::new(false),
            losses: Losses::default(),
            failures: AtomicU64::new(0),
            told_in_vain: AtomicU64::new(0),
            changed: Box::new(changed),
        }
    }

    /// The ticket up to which entries are durable, but for those that were lost.
    pub fn ticket(&self) -> Ticket {
        self.ticket.load(Ordering::Acquire)
    }

    /// Whether a group of entries is on its way.
    pub fn is_on_its_way(&self) -> bool {
        self.on_its_way.load(Ordering::Acquire)
    }

    /// What was recorded and will never be durable.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The entry was lost that told of so many operations.
    pub(super) fn tell_again(&self, missing: u64) {
        self.told_in_vain.fetch_add(missing, Ordering::AcqRel);
        (self.changed)();
    }

    /// The group that was on its way has come to its end.
    pub(super) fn decide(&self, group: &Group, is_durable: bool) {
        if !is_durable {
            self.losses.note(group.before, group.last_lost);
            self.failures.fetch_add(1, Ordering::Release);
        }
        self.ticket.fetch_max(group.last, Ordering::AcqRel);
        self.on_its_way.store(false, Ordering::Release);
        (self.changed)();
    }
}

/// Entries that are on their way to the medium together: those after one ticket up to another.
pub(super) struct Group {
    pub(super) before: Ticket,
    pub(super) last: Ticket,
    /// What is lost with it: the rest of a command of which it has a part, too.
    pub(super) last_lost: Ticket,
}
