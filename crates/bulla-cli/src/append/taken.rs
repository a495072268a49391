//! What became of the lines that were looked at.

use super::lines::{Lines, Place};
use super::refused::{Refused, Unkept};
use crate::exit::Failure;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines that were accepted and lines that were refused.
pub(super) struct Taken {
    pub(super) lines: Lines,
    pub(super) refused: Refused,
}

/// Of a thread that panicked the lines are as they were.
pub(super) fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Taken {
    /// How many were accepted, and how many refused.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.lines.accepted(), self.refused.count())
    }

    /// A record was refused that begins with the line at `place` and has so many. `raw` is absent where it was too long to be held.
    pub(super) fn refuse(
        &mut self,
        input: &str,
        (place, lines): (Place, u64),
        reason: &str,
        raw: Option<&[u8]>,
    ) -> Result<(), Failure> {
        self.refused.add(format_args!("{input}:{}", place.line), place, reason, raw)?;
        self.lines.refuse(Place { line: place.line + lines - 1, ..place });
        Ok(())
    }

    /// The line up to which every line is durable, or was refused and is kept where it is to be, where so many entries from
    /// the first on are durable. Has kept what is not yet.
    pub(super) fn settled(&mut self, durable: u64) -> Place {
        let place = self.lines.up_to(durable);
        self.refused.keep();
        match self.refused.unkept() {
            // Whoever goes on from there has it refused once more, and kept.
            Some(Unkept { first, .. }) => place.min(Place { line: first.line - 1, ..first }),
            None => place,
        }
    }
}
