//! Beginning an epoch, and changing `[log]`, of a log that is open.
//!
//! Invariants:
//! - only one thread does either at a time;
//! - from the event that allows a change of `[log]` until the file has settled it no epoch begins;
//! - a published checkpoint covers what was done before whoever asked is told so.

use super::Engine;
use crate::format::config::{self, LogConfig};
use crate::format::event::Event;
use bulla_store::{Error, Result};
use std::sync::Arc;

/// Why the file of a log's configuration was not replaced.
pub(crate) enum Unreplaced {
    /// It is the old file, for certain.
    Untouched(Error),
    /// It is the old file or the new one: whoever opens the log next finds out.
    Unclear(Error),
}

impl Unreplaced {
    /// The error, which says where the file may be the new one.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Unreplaced::Untouched(error) => error,
            Unreplaced::Unclear(error) => maybe_changed(error),
        }
    }
}

/// What is said of an error behind which the configuration may be the new one.
fn maybe_changed(error: Error) -> Error {
    error.but_maybe_done("`bulla config DIR` tells whether the configuration is changed")
}

/// What is said of an error after the file has the new `[log]`: the log goes by it, whatever happens.
pub(crate) fn after_change(error: Error) -> Error {
    error.but_done("the configuration is changed, and that is recorded in the log")
}

impl Engine {
    /// The `[log]` that the next epoch is begun with.
    pub(crate) fn config(&self) -> Arc<LogConfig> {
        self.staging.with_sequencer(|sequencer| sequencer.config().clone())
    }

    /// That `bulla.toml` still says what the log is: whoever changes keys, holds or the configuration is refused otherwise, as
    /// opening the log would refuse them.
    ///
    /// # Errors
    /// `Tampered` where it cannot be parsed, `Refused` where its `[log]` is another.
    pub(crate) fn require_own_config(&self) -> Result<()> {
        // While a change is at work the file is ahead of the log.
        let _only = self.changing.lock();
        let (config, _) = config::load_of_log(&*self.log)?;
        match config.digest == self.config().digest || self.progress.admits(config.digest) {
            true => Ok(()),
            false => Err(config::edited(&*self.log)),
        }
    }

    /// Begins an epoch. Returns its number.
    ///
    /// # Errors
    /// As [`Engine::drain`] and [`Engine::require_own_config`].
    pub(crate) fn rotate(&self) -> Result<u64> {
        self.require_own_config()?;
        let _only = self.changing.lock();
        self.require_in_place()?;
        let frame =
            self.staging.with_sequencer(|sequencer| sequencer.begin_epoch(&*self.environment.random))?;
        self.wait_for_checkpoint(&frame)
    }

    /// Changes `[log]`: records that, has `replace` put the file in frame, and begins an epoch. `order` is of a change of the
    /// erasure key, and empty where it has none.
    ///
    /// # Errors
    /// As [`Engine::drain`], and as `replace`: where the file is untouched the log goes on with the old `[log]`, and where
    /// that is unclear it takes nothing more. The error's [`effect`](Error::effect) says whether the log has the new one.
    pub(crate) fn change(
        &self,
        after: LogConfig,
        order: Option<&str>,
        replace: impl FnOnce() -> Result<(), Unreplaced>,
    ) -> Result<()> {
        // The order of an erasure, or of a hold, is checked with the key that counts in the epoch that its event comes to lie in.
        let mut nobody_is_erased = order.is_some().then(|| self.erasing.lock());
        if let Some(known) = &mut nobody_is_erased {
            // What the key before ordered, and the log does not tell of yet, no key orders afterwards.
            self.settle_holds_known(known)?;
        }
        let _only = self.changing.lock();
        self.require_in_place()?;
        let done = self.guarded(|| {
            let replaced = match self.allow_change(&after, order) {
                Ok(()) => replace(),
                Err(error) => Err(Unreplaced::Untouched(error)),
            };
            self.go_on(after, replaced)
        });
        // Nobody knows how far it came where it panicked.
        done.unwrap_or_else(|panicked| Err(maybe_changed(panicked)))
    }

    /// Has a published checkpoint and the seal state say that the next epoch may be begun with this `[log]`. No epoch begins
    /// until [`Engine::go_on`]. `order` is as for [`Engine::change`].
    ///
    /// # Errors
    /// As [`Engine::drain`].
    pub(crate) fn allow_change(&self, after: &LogConfig, order: Option<&str>) -> Result<()> {
        let before = self.config();
        let event = match (order, &before.erasure_key, &after.erasure_key) {
            (Some(order), Some(from), Some(to)) => {
                Event::rekeyed((before.digest, after.digest), (from, to), order.to_owned())
            }
            _ => Event::configured(before.digest, after.digest, before.differing(after)),
        };
        let frame = self.staging.with_sequencer(|sequencer| sequencer.begin_change(event));
        self.wait_for_checkpoint(&frame)?;
        match self.progress.allows(after.digest) {
            true => Ok(()),
            false => Err(Error::unavailable("no checkpoint allows the change yet: try again")),
        }
    }

    /// Goes on with the `[log]` that is in its file now.
    fn go_on(&self, after: LogConfig, replaced: Result<(), Unreplaced>) -> Result<()> {
        let random = &*self.environment.random;
        match replaced {
            Ok(()) => {
                let epoch =
                    self.staging.with_sequencer(|sequencer| sequencer.change(Arc::new(after), random));
                let epoch = epoch.inspect_err(|error| self.fail(error));
                let begun = epoch.and_then(|epoch| self.wait_for_checkpoint(&epoch));
                begun.map(|_| ()).map_err(after_change)
            }
            Err(Unreplaced::Untouched(error)) => {
                let given_up = self.staging.with_sequencer(|sequencer| sequencer.give_up_change(random));
                given_up.inspect_err(|error| self.fail(error))?;
                Err(error)
            }
            Err(unclear @ Unreplaced::Unclear(_)) => {
                let error = unclear.into_error();
                self.fail(&error);
                Err(error)
            }
        }
    }
}
