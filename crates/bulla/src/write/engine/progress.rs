//! How far the log has come, and what receipts wait for.
#![expect(
    clippy::disallowed_methods,
    reason = "whoever waits for durability waits by the operating system's clock"
)]

use super::numbering::Place;
use crate::write::stage::handover::Sequence;
use bulla_store::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a receipt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Durable,
    Checkpointed,
}

#[derive(Default)]
struct State {
    durable: Sequence,
    checkpointed: Sequence,
    /// Frames that were committed, and those that the published checkpoint covers.
    committed: u64,
    published: u64,
    /// Places of slices whose entries were lost to a failure inside, first and last.
    lost: Vec<(Sequence, Sequence)>,
    failure: Option<(ErrorKind, String)>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
    /// Entries acknowledged so far.
    entries: AtomicU64,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    pub(crate) fn written(&self, entries: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
    }

    pub(crate) fn durable(&self, sequence: Sequence) {
        self.change(|state| state.durable = state.durable.max(sequence));
    }

    pub(crate) fn committed(&self, frames: u64) {
        self.change(|state| state.committed = state.committed.max(frames));
    }

    /// A checkpoint over so many frames covers the slices up to `sequence`.
    pub(crate) fn checkpointed(&self, sequence: Sequence, frames: u64) {
        self.change(|state| {
            state.checkpointed = state.checkpointed.max(sequence);
            state.published = state.published.max(frames);
        });
    }

    pub(crate) fn lost(&self, first: Sequence, last: Sequence) {
        self.change(|state| state.lost.push((first, last)));
    }

    /// The first failure is the one that is told.
    pub(crate) fn fail(&self, error: &Error) {
        self.change(|state| {
            state.failure.get_or_insert_with(|| (error.kind(), error.to_string()));
        });
    }

    /// Why nothing can be committed any more, if so.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().failure.as_ref().map(|(kind, message)| Error::new(*kind, message.clone()))
    }

    /// Entries acknowledged since the log was opened.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Waits until the frame that `place` comes to name is committed.
    pub(crate) fn wait_committed(&self, place: &Place) -> Result<u64> {
        self.wait_for_frame(place, |state| state.committed)
    }

    /// Waits until a checkpoint covers the frame that `place` comes to name.
    pub(crate) fn wait_published(&self, place: &Place) -> Result<u64> {
        self.wait_for_frame(place, |state| state.published)
    }

    fn wait_for_frame(&self, place: &Place, come: impl Fn(&State) -> u64) -> Result<u64> {
        let mut state = self.lock();
        loop {
            if let Some(frame) = place.get().filter(|frame| **frame < come(&state)) {
                return Ok(*frame);
            }
            if let Some((kind, message)) = &state.failure {
                return Err(Error::new(*kind, message.clone()));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the slices after `from` up to `to` have come so far; waits for it until `timeout`, if given.
    pub(crate) fn wait(
        &self,
        from: Sequence,
        to: Sequence,
        stage: Stage,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        loop {
            let come = match stage {
                Stage::Durable => state.durable,
                Stage::Checkpointed => state.checkpointed,
            };
            if come >= to {
                if state.lost.iter().any(|&(first, last)| first <= to && last > from) {
                    return Err(Error::unavailable(
                        "a block was lost inside; entries of this receipt may be among it",
                    ));
                }
                return Ok(true);
            }
            if let Some((kind, message)) = &state.failure {
                return Err(Error::new(*kind, message.clone()));
            }
            let Some(deadline) = deadline else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
