//! [`Logs`]: the log of a proxy, which is opened again where it has failed for good.
//!
//! Invariant: from the first opening to the end nobody else writes it, so that nobody is erased without being forgotten here.

use crate::counters::Counters;
use bulla::environment::Environment;
use bulla::{Closing, Error, Held, Log, Options, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Is told of a log that was opened again.
type Opened = dyn Fn(&Log) + Send + Sync;

/// See the module.
pub struct Logs {
    options: Options,
    environment: Environment,
    opened: Box<Opened>,
    state: Mutex<State>,
    ending: Mutex<Ending>,
}

struct State {
    /// `None` while it is closed.
    log: Option<Log>,
    held: Option<Held>,
    /// Why it could not be closed in order.
    failure: Option<Error>,
    /// How many entries logs of before were given.
    given_before: u64,
    /// How many of them are not known to be durable, and no gap tells of.
    lost: u64,
}

/// What somebody wants of the log that is to be closed.
struct Ending {
    closing: Closing,
    announced: bool,
    given_up: bool,
}

impl Logs {
    /// A log that was opened like this. `opened` is told when it was opened again.
    pub fn new(
        log: Log,
        options: Options,
        environment: Environment,
        opened: impl Fn(&Log) + Send + Sync + 'static,
    ) -> Logs {
        let ending = Ending { closing: log.closing(), announced: false, given_up: false };
        let state = State { log: Some(log), held: None, failure: None, given_before: 0, lost: 0 };
        let opened = Box::new(opened);
        Logs { options, environment, opened, state: Mutex::new(state), ending: Mutex::new(ending) }
    }

    /// Has `act` see the log, if it is open.
    pub fn with<T>(&self, act: impl FnOnce(&Log) -> T) -> Option<T> {
        self.state().log.as_ref().map(act)
    }

    /// As [`Closing::announce`], of this log and of those that are opened later.
    pub fn announce(&self) {
        let mut ending = self.ending();
        ending.announced = true;
        ending.closing.announce();
    }

    /// As [`Closing::give_up`], likewise.
    pub fn give_up(&self) {
        let mut ending = self.ending();
        ending.given_up = true;
        ending.closing.give_up();
    }

    /// Closes the log, and lets go of it. How many entries it was given that may be lost, and of which it does not tell.
    ///
    /// # Errors
    /// What kept it from being closed in order is given beside that.
    pub fn close(&self, counters: &Counters) -> (u64, Result<()>) {
        let mut state = self.state();
        state.close(counters);
        state.held = None;
        (state.lost, state.failure.take().map_or(Ok(()), Err))
    }

    /// Opens the log again, which has failed; `begin` is the first to append to it. How many entries may be lost, `begin` has it tell.
    ///
    /// # Errors
    /// As [`Log::open`] and `begin`; it is closed then.
    pub(crate) fn reopen(
        &self,
        counters: &Counters,
        begin: impl FnOnce(&Log, u64) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state();
        state.close(counters);
        let Some(held) = &state.held else { return Err(Error::unavailable("the log is closed")) };
        // Whether it can be opened is found out without waiting, since somebody may want to end.
        let (_, closed, _) =
            held.open(self.options.clone().retries(0), self.environment.clone())?.close_holding();
        closed?;
        let log = held.open(self.options.clone(), self.environment.clone())?;
        {
            let mut ending = self.ending();
            ending.closing = log.closing();
            if ending.announced {
                ending.closing.announce();
            }
            if ending.given_up {
                ending.closing.give_up();
            }
        }
        (self.opened)(&log);
        begin(&log, state.lost)?;
        state.log = Some(log);
        state.lost = 0;
        counters.lost_at_most.take();
        state.failure = None;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, counters: &Counters) {
        let Some(log) = self.log.take() else { return };
        // Closing may take long, and what is not durable counts nowhere else meanwhile.
        let pending = log.telemetry().queues.pending_entries;
        counters.lost_at_most.add(pending);
        let (telemetry, closed, held) = log.close_holding();
        let given = counters.recorded.get();
        // Of what was lost inside, the log has gaps that tell, and of what was dropped events.
        let known = telemetry.entries + telemetry.lost + telemetry.dropped;
        let lost = (given - self.given_before).saturating_sub(known);
        self.lost += lost;
        counters.lost_at_most.add(lost);
        counters.lost_at_most.subtract(pending);
        self.given_before = given;
        self.held = held;
        self.failure = closed.err();
    }
}
