//! [`Receipt`].

use super::check_owner;
use crate::write::engine::Engine;
use crate::write::engine::progress::Stage;
use crate::write::stage::queue::StagedPosition;
use crate::write::telling;
use bulla_store::{Error, Result};
use bulla_text::spelling::{agreeing, counted};
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

/// What [`Producer::flush`](super::Producer::flush) covered, and how far it has come.
#[derive(Clone)]
#[must_use = "a receipt says nothing until it is asked"]
pub struct Receipt {
    pub(super) engine: Arc<Engine>,
    pub(super) from: StagedPosition,
    pub(super) to: StagedPosition,
    /// How many of its entries were dropped.
    pub(super) dropped: u64,
    pub(super) owner: u32,
}

impl Receipt {
    /// Waits until the entries are as durable as the log's durability mode makes them: `group` and `interval`,
    /// synced to the medium; `os`, given to the operating system, which a power cut can still lose and which nothing counts
    /// as durable ([`Log::acknowledged`](super::Log::acknowledged)).
    ///
    /// # Errors
    /// The failure that keeps them from being committed; `Unavailable` where some were lost or dropped.
    pub fn durable(&self) -> Result<()> {
        self.wait(Stage::Durable, None).map(|_| ())
    }

    /// As [`Receipt::durable`], for `timeout` at most; false when that was too short.
    ///
    /// # Errors
    /// As [`Receipt::durable`].
    pub fn durable_within(&self, timeout: Duration) -> Result<bool> {
        self.wait(Stage::Durable, Some(timeout))
    }

    /// Has `tell` called once, with what [`Receipt::durable`] would return, without anybody waiting: by this thread where that is known
    /// already, else by the thread of the log that comes to know it, which goes on when `tell` returns. So whoever serves many others on
    /// one thread learns when to go on with whom. Nothing that waits for a log is done in `tell`: it is refused with `Invalid`.
    ///
    /// # Errors
    /// `Closed` in a forked child, whose log this is not; `tell` is not called then.
    pub fn when_durable(&self, tell: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        check_owner(self.owner)?;
        match self.refuse_dropped() {
            Ok(()) => self.engine.progress.tell_durable(self.from, self.to, tell),
            dropped => telling::tell(|| tell(dropped)),
        }
        Ok(())
    }

    /// Waits until a signed checkpoint covers the entries, and asks for one, with the sync before it, as soon as they are
    /// written: the intervals of syncs and checkpoints are not waited for.
    ///
    /// # Errors
    /// The failure that keeps them from being committed or signed.
    pub fn checkpointed(&self) -> Result<()> {
        self.wait(Stage::Written, None)?;
        if !self.wait(Stage::Checkpointed, Some(Duration::ZERO))? {
            self.engine.request_checkpoint();
            self.wait(Stage::Checkpointed, None)?;
        }
        Ok(())
    }

    /// How many of its entries were dropped, since nothing took what the log writes: [`OnFailure::Drop`](crate::OnFailure::Drop). Those
    /// never become durable, and asking the receipt is answered with an error at once, whatever becomes of its other entries.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn refuse_dropped(&self) -> Result<()> {
        match self.dropped {
            0 => Ok(()),
            dropped => Err(Error::unavailable(format!(
                "nothing took what the log writes, and {} of this receipt {} dropped",
                counted(dropped, "entry"),
                agreeing(dropped, "was", "were")
            ))),
        }
    }

    fn wait(&self, stage: Stage, timeout: Option<Duration>) -> Result<bool> {
        check_owner(self.owner)?;
        self.refuse_dropped()?;
        self.engine.progress.wait(self.from, self.to, stage, timeout)
    }
}

impl Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receipt({}..={})", self.from + 1, self.to)
    }
}
