//! What sealing took: time by kind of work, and how often dictionaries helped; and who is told of each point at which it can be interrupted. It is for
//! people to read; no choice of the encoder depends on it, so that a block's bytes do not depend on the machine.

use std::sync::Arc;

/// Nanoseconds from any start, which never go back.
pub type Steady = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What a thread that seals is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Turning rows into columns.
    Encode,
    /// General compression.
    Compress,
    /// Hashing units and their tree.
    Hash,
    /// Encrypting groups and bodies.
    Encrypt,
}

impl Task {
    /// How many kinds of work there are.
    pub const COUNT: usize = 4;
}

/// What sealing took so far. Without a clock it counts, and its times stay zero.
#[derive(Default)]
pub struct Account {
    clock: Option<Steady>,
    point: Option<fn()>,
    since: u64,
    at: Option<Task>,
    /// Nanoseconds by kind of work.
    pub spent: [u64; Task::COUNT],
    /// Strings that a dictionary was tried on, and those that it had already.
    pub looked_up: u64,
    /// Of those that were looked up, how many were there.
    pub found: u64,
    /// Bytes of dictionaries and vocabularies.
    pub dictionaries: usize,
}

impl Account {
    /// An account that times what is done by this clock.
    pub fn timed_by(clock: Steady) -> Self {
        Account { clock: Some(clock), ..Account::default() }
    }

    /// Calls `point` where long work can be interrupted, some hundred times a block or more.
    #[must_use]
    pub fn with_point(self, point: fn()) -> Self {
        Account { point: Some(point), ..self }
    }

    /// A point at which work can be interrupted.
    #[inline]
    pub(crate) fn point(&self) {
        if let Some(point) = self.point {
            point();
        }
    }

    /// From here on time is counted as `work`'s, or as nobody's. Returns whose it was until here, to go back to.
    pub fn turn_to(&mut self, work: Option<Task>) -> Option<Task> {
        if let Some(clock) = &self.clock {
            let now = clock();
            if let Some(work) = self.at {
                self.spent[work as usize] += now.saturating_sub(self.since);
            }
            self.since = now;
        }
        std::mem::replace(&mut self.at, work)
    }

    /// Takes what was counted so far, and counts from zero again.
    pub fn settle(&mut self) -> Account {
        let fresh = Account { clock: self.clock.clone(), point: self.point, ..Account::default() };
        std::mem::replace(self, fresh)
    }
}
