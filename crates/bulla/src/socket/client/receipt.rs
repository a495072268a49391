//! [`RemoteReceipt`].

use super::acknowledged::Tell;
use super::shared::Shared;
use super::{check_owner, lock};
use crate::write::telling;
use bulla_store::Result;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What [`RemoteProducer::flush`](super::RemoteProducer::flush) covered, and how far it has come.
#[derive(Clone)]
#[must_use = "a receipt says nothing until it is asked"]
pub struct RemoteReceipt {
    pub(super) shared: Arc<Shared>,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) owner: u32,
}

impl RemoteReceipt {
    /// Waits until the entries are durable, as [`crate::Receipt::durable`] does.
    ///
    /// # Errors
    /// `Invalid` where the log refused some, the others being durable; the failure that keeps them from being known to be.
    pub fn durable(&self) -> Result<()> {
        self.wait(None).map(drop)
    }

    /// As [`RemoteReceipt::durable`], for `timeout` at most; false when that was too short.
    ///
    /// # Errors
    /// As [`RemoteReceipt::durable`].
    pub fn durable_within(&self, timeout: Duration) -> Result<bool> {
        self.wait(Instant::now().checked_add(timeout))
    }

    /// Has `tell` called once, with what [`RemoteReceipt::durable`] would return: by this thread where that is known already, else by the
    /// connection's, which goes on when `tell` returns.
    ///
    /// # Errors
    /// `Closed` in a forked child; `tell` is not called then.
    pub fn when_durable(&self, tell: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        check_owner(self.owner)?;
        let mut state = lock(&self.shared.state);
        match state.outcome(self.from, self.to) {
            Some(outcome) => {
                drop(state);
                telling::tell(|| tell(outcome));
            }
            None => state.tells.push(Tell { from: self.from, to: self.to, tell: Box::new(tell) }),
        }
        Ok(())
    }

    fn wait(&self, deadline: Option<Instant>) -> Result<bool> {
        check_owner(self.owner)?;
        if !self.shared.wait(self.to, deadline)? {
            return Ok(false);
        }
        lock(&self.shared.state).refusal(self.from, self.to).map_or(Ok(true), Err)
    }
}

impl fmt::Debug for RemoteReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteReceipt({}..={})", self.from + 1, self.to)
    }
}
