//! What sealing took: time by kind of work, and what dictionaries found. Told, and never decided by.

use crate::environment::Clock;
use std::sync::Arc;

/// What a thread that seals is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Encode,
    Compress,
    Hash,
    Encrypt,
}

impl Task {
    pub(crate) const COUNT: usize = 4;
}

/// See the module. Without a clock it counts and does not time.
#[derive(Default)]
pub(crate) struct Account {
    clock: Option<Arc<dyn Clock>>,
    since: u64,
    at: Option<Task>,
    /// Nanoseconds by kind of work.
    pub(crate) spent: [u64; Task::COUNT],
    /// Strings that a dictionary was tried on, and those that it had already.
    pub(crate) looked_up: u64,
    pub(crate) found: u64,
    /// Bytes of dictionaries and vocabularies.
    pub(crate) dictionaries: usize,
}

impl Account {
    pub(crate) fn timed_by(clock: Arc<dyn Clock>) -> Self {
        Account { clock: Some(clock), ..Account::default() }
    }

    /// Goes over to `work`, or to none; says what it was at.
    pub(crate) fn turn_to(&mut self, work: Option<Task>) -> Option<Task> {
        if let Some(clock) = &self.clock {
            let now = clock.steady();
            if let Some(work) = self.at {
                self.spent[work as usize] += now.saturating_sub(self.since);
            }
            self.since = now;
        }
        std::mem::replace(&mut self.at, work)
    }

    /// What there is so far; counts from nothing again.
    pub(crate) fn settle(&mut self) -> Account {
        let fresh = Account { clock: self.clock.clone(), ..Account::default() };
        std::mem::replace(self, fresh)
    }
}
