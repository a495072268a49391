//! Checkpointing: what has become durable comes in from the committer, and one thread publishes it signed.
//!
//! [`CheckpointQueue`] is how the others speak to it. [`Checkpointing`] is its own: the checkpointing thread has it, or,
//! where a log has no threads, whoever takes a step.
//!
//! A request for a checkpoint takes the way that frames take. In mode `group` all that was acknowledged is durable, and has
//! been delivered; in the other modes the request goes to the committing thread, which syncs first and passes it on.

use super::Engine;
use super::committing::SyncRequest;
use super::locks::{Rank, RankedMutex};
use super::sequencer::AssignedFrame;
use crate::format::event::Event;
use crate::format::options::Durability;
use crate::write::checkpoint::Checkpointer;
use crate::write::commit::Durable;
use crate::write::stage::queue::StagedPosition;
use crate::write::telemetry::{WitnessTelemetry, timed};
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, Result};
use std::sync::Condvar;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What the checkpointing thread has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointWork {
    /// Nobody asked for anything while it waited.
    Tick,
    /// Somebody waits for a checkpoint over what was delivered.
    Requested,
    /// Witnesses have cosigned a checkpoint.
    Cosigned,
    /// The log is being closed.
    End,
}

#[derive(Default)]
struct State {
    /// Durable frames that are to be covered next.
    durable: Option<Durable>,
    /// The last slice that those, or what was taken before, cover.
    position: StagedPosition,
    requested: bool,
    /// A checkpoint that witnesses have cosigned: its tree, and the note with more signature lines.
    cosigned: Option<(TreeHead, String)>,
    closed: bool,
}

/// See the module.
pub(crate) struct CheckpointQueue {
    state: RankedMutex<State>,
    /// Notified when the checkpointing thread has something to do.
    changed: Condvar,
}

impl CheckpointQueue {
    pub(super) fn new() -> Self {
        CheckpointQueue { state: RankedMutex::new(Rank::Leaf, State::default()), changed: Condvar::new() }
    }

    /// Takes frames in that became durable, and with which all slices up to `position` are so.
    pub(super) fn deliver(&self, durable: Option<Durable>, position: StagedPosition) {
        let mut state = self.state.lock();
        if let Some(durable) = durable {
            match &mut state.durable {
                Some(before) => before.extend(durable),
                None => state.durable = Some(durable),
            }
        }
        state.position = position;
    }

    /// Asks for a checkpoint over what was delivered.
    pub(super) fn request(&self) {
        self.state.lock().requested = true;
        self.changed.notify_one();
    }

    /// Has the thread end.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    /// Hands a checkpoint in that witnesses have cosigned.
    fn cosigned(&self, head: TreeHead, note: String) {
        self.state.lock().cosigned = Some((head, note));
        self.changed.notify_one();
    }

    /// Waits up to `time` for something to do.
    pub(crate) fn wait(&self, time: Duration) -> CheckpointWork {
        let idle = |state: &mut State| !state.requested && !state.closed && state.cosigned.is_none();
        let mut state = self.state.lock().wait_while(&self.changed, time, idle);
        match (state.closed, std::mem::take(&mut state.requested)) {
            (true, _) => CheckpointWork::End,
            (_, true) => CheckpointWork::Requested,
            _ if state.cosigned.is_some() => CheckpointWork::Cosigned,
            _ => CheckpointWork::Tick,
        }
    }

    pub(super) fn take(&self) -> (Option<Durable>, StagedPosition) {
        let mut state = self.state.lock();
        (state.durable.take(), state.position)
    }
}

/// See the module.
pub(crate) struct Checkpointing {
    pub(super) checkpointer: Checkpointer,
    /// The last slice that the checkpointer's tree covers.
    position: StagedPosition,
    /// Whether frames are being added to the tree, which a panic leaves so: some that were taken from the queue are then in
    /// no tree, and no checkpoint may be published any more.
    adding: bool,
}

impl Checkpointing {
    pub(super) fn new(checkpointer: Checkpointer) -> Self {
        Checkpointing { checkpointer, position: 0, adding: false }
    }
}

impl Engine {
    /// Asks for a checkpoint soon, over what is committed by now at least.
    pub(crate) fn request_checkpoint(&self) {
        match self.tuning.durability {
            Durability::Group => self.checkpoints.request(),
            Durability::Interval(_) | Durability::Os => self.commits.request(SyncRequest::Checkpoint),
        }
    }

    /// Publishes a checkpoint over what was delivered, if the log has grown.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be written, after retries, or where it panicked before; the log then refuses
    /// everything.
    pub(crate) fn publish(&self, checkpointing: &mut Checkpointing) -> Result<()> {
        if checkpointing.adding {
            let error = Error::unavailable("the log panicked while it was checkpointing");
            return Err(error).inspect_err(|error| self.fail(error));
        }
        // What it says is delivered by now, so the checkpoint covers it.
        let unsaved = self.unsaved_sources(false);
        checkpointing.adding = true;
        let (durable, position) = self.checkpoints.take();
        if let Some(durable) = durable {
            checkpointing.checkpointer.add(durable);
        }
        checkpointing.position = position;
        checkpointing.adding = false;
        self.require_in_place()?;
        self.publish_tree(&mut checkpointing.checkpointer).inspect_err(|error| self.fail(error))?;
        let checkpointer = &checkpointing.checkpointer;
        self.progress.checkpointed(checkpointing.position, checkpointer.published(), checkpointer.terms());
        self.events_are_durable(checkpointer.published().size);
        if let Some(unsaved) = unsaved {
            self.save_sources(&unsaved);
        }
        Ok(())
    }

    /// Publishes the checkpoint of `head` with the signature lines that witnesses have given for it, unless a newer one is published.
    pub(crate) fn publish_cosigned(&self, head: TreeHead, note: String) {
        let mut note = Some(note);
        self.if_at_rest(|stages| {
            if let Some(note) = note.take() {
                stages.checkpointing.checkpointer.publish_cosigned(head, &note);
            }
        });
        if let Some(note) = note {
            self.checkpoints.cosigned(head, note);
        }
    }

    /// The same of what was handed in, by the thread that has the checkpointer.
    pub(crate) fn take_cosigned(&self, checkpointing: &mut Checkpointing) {
        let cosigned = self.checkpoints.state.lock().cosigned.take();
        if let Some((head, note)) = cosigned
            && self.require_in_place().is_ok()
        {
            checkpointing.checkpointer.publish_cosigned(head, &note);
        }
    }

    /// Says how the witnesses stand that the log asks.
    pub(crate) fn set_witnesses(&self, witnesses: Vec<WitnessTelemetry>) {
        *self.witnesses.lock() = witnesses;
    }

    /// The heartbeat that the log promises, if it does.
    pub(crate) fn heartbeat(&self) -> Option<Duration> {
        self.staging.look_at_sequencer(|sequencer| sequencer.config().heartbeat)
    }

    /// Asks for an event that says that the writer is at work, where the log promises one by now; says in which frame.
    ///
    /// Blocks do not count: their times are those of their entries. A clock that was put back has the event come at once.
    pub(crate) fn beat(&self) -> Option<AssignedFrame> {
        let heartbeat = i64::try_from(self.heartbeat()?.as_secs()).unwrap_or(i64::MAX);
        let now = self.seconds();
        if (0..heartbeat).contains(&now.saturating_sub(self.told.load(Ordering::Relaxed))) {
            return None;
        }
        self.told.store(now, Ordering::Relaxed);
        Some(self.staging.with_sequencer(|sequencer| sequencer.request_event(Event::Heartbeat {})))
    }

    fn publish_tree(&self, checkpointer: &mut Checkpointer) -> Result<()> {
        let clock = &*self.environment.clock;
        let start = clock.steady();
        let publish = || self.back_off.retry_beside(|_| true, || checkpointer.publish());
        let published = timed(clock, &self.meter.publishing, publish);
        let told = self.tell_switches(false);
        if published? {
            self.meter.checkpoints.add(clock.steady().saturating_sub(start));
        }
        told
    }
}
