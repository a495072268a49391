//! What the committer does besides of a log on several paths: it goes on with the one that takes what is written.

use super::Committer;
use bulla_store::{Paths, Result, Store};

/// The turn of the path that takes what is written.
pub(super) fn turn_of(store: &dyn Store) -> u64 {
    store.paths().map_or(0, Paths::turn)
}

impl Committer {
    /// Gives the current segment up where another path has taken over since it was begun.
    pub(super) fn keep_up(&mut self) -> Result<()> {
        match &self.segment {
            Some(segment) if segment.turn != turn_of(&*self.store) => {
                self.abandon("another path took over".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Has another path take the log, where it lies on several. False where none does.
    pub(super) fn fail_over(&self, turn: u64, reason: &str) -> bool {
        self.store.paths().is_some_and(|paths| paths.fail_over(turn, reason))
    }

    /// How many other paths the log has.
    pub(super) fn other_paths(&self) -> usize {
        self.store.paths().map_or(0, Paths::others)
    }

    /// Has another path take the log, unless each was tried since this was the number of all. Then they are tried anew after a wait.
    pub(super) fn try_another_path(&self, untried: &mut usize, turn: u64, reason: &str) -> bool {
        match untried.checked_sub(1) {
            Some(left) if self.fail_over(turn, reason) => {
                *untried = left;
                true
            }
            _ => {
                *untried = self.other_paths();
                false
            }
        }
    }
}
