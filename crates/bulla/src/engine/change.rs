//! What is done to a log at work besides appending: an epoch is begun, an event recorded, `[log]` changed.
//!
//! Invariants:
//! - one at a time;
//! - whoever asks numbers these frames itself, so it knows them, and a published checkpoint covers them before it is told
//!   that this is done;
//! - from the event that allows a change of `[log]` until the file has settled it no epoch begins.

use super::{Engine, lock};
use crate::config::LogConfig;
use crate::engine::numbering::Counter;
use crate::error::{Error, Result};
use crate::event::Event;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why the file of a log's configuration was not replaced.
pub(crate) enum Unreplaced {
    /// It is the old one, for certain.
    Untouched(Error),
    /// It is the old one or the new one: whoever opens the log next finds out.
    Unclear(Error),
}

impl Unreplaced {
    pub(crate) fn into_error(self) -> Error {
        match self {
            Unreplaced::Untouched(error) | Unreplaced::Unclear(error) => error,
        }
    }
}

impl Engine {
    /// The `[log]` that the next epoch is begun with.
    pub(crate) fn config(&self) -> Arc<LogConfig> {
        self.handover.with_numbering(|counter| counter.config().clone())
    }

    /// From here on threads take the steps.
    pub(crate) fn driven_by_threads(&self) {
        self.threaded.store(true, Ordering::Relaxed);
    }

    /// Begins an epoch; its number.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    pub(crate) fn rotate(&self) -> Result<u64> {
        let _one = lock(&self.changes);
        self.guarded(|| {
            let epoch = self.number(|counter| counter.request_epoch(&*self.environment.random))?;
            self.cover(epoch)?;
            Ok(epoch)
        })?
    }

    /// Records an event.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    pub(crate) fn record(&self, event: Event) -> Result<()> {
        let _one = lock(&self.changes);
        self.guarded(|| {
            let frame = self.number(|counter| {
                counter.request_event(event);
                Ok(())
            })?;
            self.cover(frame)
        })?
    }

    /// Changes `[log]`: records that, has `replace` put the file in place, and begins an epoch.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`], and as `replace`: where the file is untouched the log goes on with the old `[log]`, and
    /// where that is unclear it takes nothing more.
    pub(crate) fn change(
        &self,
        after: LogConfig,
        replace: impl FnOnce() -> Result<(), Unreplaced>,
    ) -> Result<()> {
        let _one = lock(&self.changes);
        self.guarded(|| {
            let replaced = match self.allow_change(&after) {
                Ok(()) => replace(),
                Err(error) => Err(Unreplaced::Untouched(error)),
            };
            match replaced {
                Ok(()) => {
                    let random = &*self.environment.random;
                    let epoch = self.number(|counter| counter.settle_change(Some(Arc::new(after)), random));
                    self.cover(epoch.inspect_err(|error| self.fail(error))?)
                }
                Err(Unreplaced::Untouched(error)) => {
                    let random = &*self.environment.random;
                    let settled = self.handover.with_numbering(|counter| counter.settle_change(None, random));
                    settled.inspect_err(|error| self.fail(error))?;
                    Err(error)
                }
                Err(Unreplaced::Unclear(error)) => {
                    self.fail(&error);
                    Err(error)
                }
            }
        })?
    }

    /// Has it under a published checkpoint, and in the seal state, that the next epoch may be begun with this `[log]`. Until
    /// that is settled none begins.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    pub(crate) fn allow_change(&self, after: &LogConfig) -> Result<()> {
        let before = self.config();
        let event = Event::configured(before.digest, after.digest, before.differing(after));
        let frame = self.number(|counter| {
            counter.begin_change(event);
            Ok(())
        })?;
        self.cover(frame)?;
        match lock(&self.publish).checkpointer.allows(after.digest) {
            true => Ok(()),
            false => Err(not_covered()),
        }
    }

    /// Numbers and seals what `request` asks for; the number of the last frame of that.
    fn number(&self, request: impl FnOnce(&mut Counter) -> Result<()>) -> Result<u64> {
        use crate::stage::handover::Numbering;
        let tickets = self.handover.with_numbering(|counter| -> Result<Vec<_>> {
            request(counter)?;
            Ok(std::iter::from_fn(|| counter.control()).collect())
        })?;
        let last = tickets.last().map(|ticket| ticket.numbers.frame);
        tickets.into_iter().for_each(|ticket| self.put_control(ticket));
        last.ok_or_else(|| Error::unavailable("there was nothing to number"))
    }

    /// Has this frame under a published checkpoint.
    fn cover(&self, frame: u64) -> Result<()> {
        if self.threaded.load(Ordering::Relaxed) {
            self.progress.wait_committed(frame)?;
            self.wish_checkpoint();
            return self.progress.wait_published(frame);
        }
        self.drain()?;
        if self.published() > frame { Ok(()) } else { Err(not_covered()) }
    }
}

/// The event of a segment that was abandoned is not durable yet.
fn not_covered() -> Error {
    Error::unavailable("no checkpoint covers the event of the change yet: try again")
}
