//! What became of the lines that were looked at.

use super::lines::{Lines, Place};
use super::refused::{Refused, Unkept};
use crate::exit::Failure;
use bulla::Source;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines that were accepted and lines that were refused.
pub(super) struct Taken {
    pub(super) lines: Lines,
    pub(super) refused: Refused,
    /// Where lines are numbered: the source, which has to know of lines that became no entry before they are told to be done, so that the
    /// sender may go on behind them.
    pub(super) source: Option<Source>,
    /// Whether it knows of all, durably.
    is_kept: bool,
    /// Why it does not.
    failure: Option<Failure>,
}

/// Of a thread that panicked the lines are as they were.
pub(super) fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Taken {
    pub(super) fn new(refused: Refused, source: Option<Source>) -> Self {
        Taken { lines: Lines::default(), refused, source, is_kept: true, failure: None }
    }

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
        self.pass(Place { line: place.line + lines - 1, ..place });
        Ok(())
    }

    /// A record that ends with this line is done, and became no entry.
    pub(super) fn pass(&mut self, last: Place) {
        self.lines.refuse(last);
        self.is_kept = false;
    }

    /// The line up to which every line is durable, or was refused and is kept where it is to be, where so many entries from
    /// the first on are durable. Has kept what is not yet.
    pub(super) fn settled(&mut self, durable: u64) -> Place {
        self.refused.keep();
        let place = match self.source.is_none() || self.keeps_passed(durable) {
            true => self.lines.up_to(durable),
            false => self.lines.entries_up_to(durable),
        };
        match self.refused.unkept() {
            // Whoever goes on from there has it refused once more, and kept.
            Some(Unkept { first, .. }) => place.min(Place { line: first.line - 1, ..first }),
            None => place,
        }
    }

    /// Why what became no entry could not be kept, where it could not.
    pub(super) fn failure(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Whether the source knows durably of the lines behind its last entry, where all its entries are durable.
    fn keeps_passed(&mut self, durable: u64) -> bool {
        if durable < self.lines.accepted() || self.refused.unkept().is_some() {
            return false;
        }
        if !self.is_kept {
            match self.source.as_ref().map_or(Ok(()), Source::keep_passed) {
                Ok(()) => self.is_kept = true,
                Err(error) => self.failure = Some(error.into()),
            }
        }
        self.is_kept
    }
}
