//! What the committer does besides of a log on several paths: it goes on with the one that takes what is written.

use super::{Committer, Segment};
use crate::format::segment;
use bulla_store::{Paths, Result, Store};

/// Why a segment is given up that nothing is wrong with.
pub(super) const TAKEN_OVER: &str = "another path took over";

/// The turn of the path that takes what is written.
pub(super) fn turn_of(store: &dyn Store) -> u64 {
    store.paths().map_or(0, Paths::turn)
}

impl Committer {
    /// Gives the current segment up where another path has taken over since it was begun.
    pub(super) fn keep_up(&mut self) -> Result<()> {
        match &self.segment {
            Some(segment) if segment.turn != turn_of(&*self.store) => self.abandon(TAKEN_OVER.to_owned()),
            _ => Ok(()),
        }
    }

    /// The turn in which something is written: that of the segment, or of the path on which a new one would be begun. It is asked for before
    /// the attempt: where that fails, it is the path of this turn that failed, whichever one has taken over by then.
    pub(super) fn turn_at_work(&self) -> u64 {
        self.segment.as_ref().map_or_else(|| turn_of(&*self.store), |segment| segment.turn)
    }

    /// Whether the path that the segment lies on takes what is written.
    pub(super) fn has_turn(&self) -> bool {
        self.segment.as_ref().is_none_or(|segment| segment.turn == turn_of(&*self.store))
    }

    /// Removes a segment that is given up of which nothing counts, of a log on several paths, so that no event has to tell of each one that
    /// a path did not take. False where something does, and where it is not certain that it is gone for good.
    pub(super) fn is_taken_away(&self, segment: &Segment) -> bool {
        self.store.paths().is_some()
            && segment.trusted == 0
            && segment.path.remove(&segment.name.path()).is_ok()
            && segment.path.sync_directory(segment::DIRECTORY).is_ok()
    }

    /// Has another path take the log, where it lies on several. False where none does.
    pub(super) fn fail_over(&self, turn: u64, reason: &str) -> bool {
        self.store.paths().is_some_and(|paths| paths.fail_over(turn, reason))
    }

    /// Why nothing more can be done than to wait, in words.
    pub(super) fn untaken(&self, reason: &str) -> String {
        match self.other_paths() {
            0 => reason.to_owned(),
            _ => format!("no path takes what is written: {reason}"),
        }
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
                if let Some(paths) = self.store.paths() {
                    paths.waits();
                }
                false
            }
        }
    }
}
