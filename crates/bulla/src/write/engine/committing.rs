//! Committing: sealed frames come in from many threads, and one thread puts them into the log in the order of their numbers.
//!
//! [`CommitQueue`] is how the others speak to it. [`Committing`] is its own: the committing thread has it, or, where a log
//! has no threads, whoever takes a step.
//!
//! Invariants:
//! - groups leave the queue in the order of their frames' numbers, and none has an epoch but at its front;
//! - what has become durable is with the checkpointer before anybody is told that it is durable, so whoever asks for a
//!   checkpoint after that gets one that covers it; but after a segment was abandoned, until the event that tells of it is
//!   durable: then a checkpoint is asked for on behalf of all who did meanwhile.

use super::Engine;
use super::locks::{Rank, RankedMutex};
use super::progress::EntryCounts;
use super::sources::{BlockSource, SourcedFrame};
use crate::format::event::Event;
use crate::format::options::Durability;
use crate::format::sealed::Sealed;
use crate::write::commit::Committer;
use crate::write::stage::queue::{StagedPosition, Steady};
use crate::write::telemetry::timed;
use bulla_proof::commitment::FrameKind;
use bulla_store::Result;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Condvar;

/// A frame that was sealed and is to be committed.
pub(crate) struct SealedFrame {
    pub(super) frame: Sealed,
    /// Of a block.
    pub(super) staged: Option<Staged>,
}

/// What a block was in the staging queue.
pub(crate) struct Staged {
    /// Bytes of rows, which are no longer in flight once it is committed.
    pub(super) bytes: usize,
    /// The position of its last slice.
    pub(super) last: StagedPosition,
    /// None of its entries is older.
    pub(super) since: Steady,
    /// What it holds of sources.
    pub(super) sources: Vec<BlockSource>,
}

/// What the committing thread is given to do.
pub(crate) enum CommitWork {
    /// To commit frames that follow the last one.
    Commit(Vec<SealedFrame>),
    /// To sync what was committed.
    Sync(SyncRequest),
}

/// A request for a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncRequest {
    /// The time for one has come.
    Sync,
    /// Somebody waits for a checkpoint, or the time for one has come: one is to follow the sync.
    Checkpoint,
}

struct State {
    /// Frames that were sealed before one with a lower number.
    frames: BTreeMap<u64, SealedFrame>,
    /// The number of the frame that is committed next.
    next: u64,
    requested: Option<SyncRequest>,
    closed: bool,
}

/// See the module.
pub(crate) struct CommitQueue {
    state: RankedMutex<State>,
    /// Notified when the committing thread may find something to do.
    ready: Condvar,
    /// Bytes of bodies that are enough for a group.
    group_bytes: usize,
}

impl CommitQueue {
    /// A queue whose first frame is `next`.
    pub(super) fn new(next: u64, group_bytes: usize) -> Self {
        let state = State { frames: BTreeMap::new(), next, requested: None, closed: false };
        CommitQueue { state: RankedMutex::new(Rank::Leaf, state), ready: Condvar::new(), group_bytes }
    }

    /// Takes a frame in.
    pub(super) fn put(&self, sealed: SealedFrame) {
        let mut state = self.state.lock();
        let number = sealed.frame.commitment.frame;
        state.frames.insert(number, sealed);
        let is_next = number == state.next;
        // Whoever wakes wants it.
        drop(state);
        if is_next {
            self.ready.notify_one();
        }
    }

    /// Asks for a sync of what is committed by the time that the request is met.
    pub(crate) fn request(&self, request: SyncRequest) {
        let mut state = self.state.lock();
        if state.requested != Some(SyncRequest::Checkpoint) {
            state.requested = Some(request);
        }
        self.ready.notify_one();
    }

    /// Says that no frame will come any more.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_all();
    }

    /// Waits for something to do. `None` where nothing will come any more. A request goes before frames, or it would never
    /// be met while there are always some.
    pub(crate) fn wait(&self) -> Option<CommitWork> {
        let mut state = self.state.lock();
        loop {
            if let Some(request) = state.requested.take() {
                return Some(CommitWork::Sync(request));
            }
            if let Some(group) = self.group(&mut state) {
                return Some(CommitWork::Commit(group));
            }
            if state.closed {
                return None;
            }
            state = state.wait(&self.ready);
        }
    }

    /// The frames that can be committed now, up to the next epoch and to `group_bytes`; `None` where there are none.
    fn take_group(&self) -> Option<Vec<SealedFrame>> {
        self.group(&mut self.state.lock())
    }

    fn group(&self, state: &mut State) -> Option<Vec<SealedFrame>> {
        let mut group = Vec::new();
        let mut bytes = 0;
        while bytes < self.group_bytes {
            let next = state.next;
            let Some(entry) = state.frames.first_entry().filter(|entry| *entry.key() == next) else {
                break;
            };
            if entry.get().frame.commitment.kind == FrameKind::Epoch && !group.is_empty() {
                break;
            }
            let sealed = entry.remove();
            state.next += 1;
            bytes += sealed.frame.body.len();
            group.push(sealed);
        }
        (!group.is_empty()).then_some(group)
    }

    /// How many sealed frames wait.
    pub(super) fn length(&self) -> usize {
        self.state.lock().frames.len()
    }
}

/// How far frames have come: the position of the last slice among them, and the entries in them.
#[derive(Clone, Copy, Default)]
struct Reached {
    position: StagedPosition,
    entries: EntryCounts,
}

impl Reached {
    /// With these frames, which follow.
    fn with(mut self, frames: &[SealedFrame]) -> Self {
        for sealed in frames {
            self.entries.add(&sealed.frame.commitment);
            let is_event = sealed.frame.commitment.kind == FrameKind::Event;
            // Whatever is told inexactly, a process before this one dropped.
            if is_event
                && matches!(Event::decode(&sealed.frame.body), Ok(Event::Dropped(dropped)) if dropped.exact)
            {
                self.entries.some_are_missing();
            }
            if let Some(staged) = &sealed.staged {
                self.position = staged.last;
            }
        }
        self
    }
}

/// See the module.
pub(crate) struct Committing {
    committer: Committer,
    /// What was committed, and what of it a sync has covered.
    committed: Reached,
    synced: Reached,
    /// No entry that was committed and that no sync has covered is older; `None` where there is none.
    unsynced: Option<Steady>,
    /// Frames that were committed and hold something of sources, as far as no sync has covered them.
    sourced: VecDeque<SourcedFrame>,
    /// The first frame that an epoch may have which has not been committed yet, and before which nothing is acknowledged.
    awaits_epoch: Option<u64>,
}

impl Committing {
    pub(super) fn new(committer: Committer) -> Self {
        let (committed, synced) = (Reached::default(), Reached::default());
        Committing {
            committer,
            committed,
            synced,
            unsynced: None,
            sourced: VecDeque::new(),
            awaits_epoch: None,
        }
    }
}

/// What became of acknowledgements.
struct Held {
    /// Whether what is written has another turn since, so that they wait for an epoch, which is to be asked for.
    moved: bool,
    /// Whether the epoch that they wait for was committed just now, so that they wait for a checkpoint.
    held: bool,
}

impl Engine {
    /// Does what the queue gave to do.
    ///
    /// # Errors
    /// `Unavailable` where the medium fails; the log then refuses everything.
    pub(crate) fn work_off(&self, committing: &mut Committing, work: CommitWork) -> Result<()> {
        match work {
            CommitWork::Commit(group) => self.commit(committing, group),
            CommitWork::Sync(request) => {
                self.sync(committing)?;
                if request == SyncRequest::Checkpoint {
                    self.checkpoints.request();
                }
                Ok(())
            }
        }
    }

    /// Commits the frames that are ready, in groups that each lie in one epoch. Returns how many there were.
    ///
    /// # Errors
    /// `Unavailable` where nothing takes them; the log then refuses everything.
    pub(super) fn commit_ready(&self, committing: &mut Committing) -> Result<usize> {
        let mut count = 0;
        while let Some(group) = self.commits.take_group() {
            count += group.len();
            self.commit(committing, group)?;
        }
        Ok(count)
    }

    fn commit(&self, committing: &mut Committing, group: Vec<SealedFrame>) -> Result<()> {
        let commit = || self.require_in_place().and_then(|()| self.commit_group(committing, group));
        timed(&*self.environment.clock, &self.meter.committing, commit).inspect_err(|error| self.fail(error))
    }

    fn commit_group(&self, committing: &mut Committing, group: Vec<SealedFrame>) -> Result<()> {
        let staged = || group.iter().filter_map(|sealed| sealed.staged.as_ref());
        let (blocks, bytes) = (staged().count(), staged().map(|staged| staged.bytes).sum());
        let since = staged().map(|staged| staged.since).min();
        let first = group.first().map_or(0, |sealed| sealed.frame.commitment.frame);
        let end = group.last().map_or(0, |sealed| sealed.frame.commitment.frame + 1);
        let begins_epoch = |sealed: &&SealedFrame| sealed.frame.commitment.kind == FrameKind::Epoch;
        let epoch = group.first().filter(begins_epoch).map(|_| first);
        let (before, after) = (committing.committed, committing.committed.with(&group));
        let frames = group.into_iter().map(|SealedFrame { frame, staged }| {
            let sources = staged.map_or_else(Vec::new, |staged| staged.sources);
            if !sources.is_empty() {
                committing.sourced.push_back(SourcedFrame::new(&frame.commitment, sources));
            }
            frame
        });
        let frames = frames.collect();
        let withheld = committing.committer.withholds();
        let acknowledged = committing.committer.commit(frames);
        if acknowledged.is_ok() {
            committing.committed = after;
        }
        match committing.committer.synced() {
            synced if synced >= end => (committing.synced, committing.unsynced) = (after, None),
            // An epoch begins, and the segment before it was synced.
            synced if synced >= first => (committing.synced, committing.unsynced) = (before, since),
            _ => committing.unsynced = committing.unsynced.into_iter().chain(since).min(),
        }
        let Held { moved, held } = self.hold_acknowledgements(committing, epoch);
        self.deliver(committing);
        self.pass_sources_on(committing);
        let frames = committing.committer.synced();
        self.progress.synced(frames, committing.synced.entries, committing.unsynced);
        if held || committing.committer.wants_sync() || withheld && !committing.committer.withholds() {
            // Somebody may have asked for a checkpoint while none could cover what they had in mind, before the event of an
            // abandoned segment was durable.
            self.request_checkpoint();
        }
        let (events, full) = (committing.committer.take_events(), committing.committer.became_full());
        let requested = self.staging.with_sequencer(|sequencer| {
            sequencer.committed(blocks, bytes);
            events.into_iter().for_each(|event| drop(sequencer.request_event(event)));
            match full {
                true => sequencer.request_epoch(&*self.environment.random),
                false => Ok(()),
            }
        });
        let told = self.tell_switches(moved);
        let acknowledged = acknowledged?;
        told?;
        self.events_are_durable(committing.committer.synced());
        self.progress.committed(end, after.position);
        if acknowledged {
            self.progress.durable(after.position);
        }
        requested
    }

    /// Makes what was committed durable, where the mode leaves that to time or to close. Returns whether a checkpoint has to
    /// wait: a segment was abandoned, and the event of that is not durable yet.
    ///
    /// # Errors
    /// `Unavailable` where the medium fails; the log then refuses everything.
    pub(super) fn sync(&self, committing: &mut Committing) -> Result<bool> {
        let synced = self.require_in_place().and_then(|()| committing.committer.sync());
        if synced.is_ok() {
            (committing.synced, committing.unsynced) = (committing.committed, None);
        }
        let Held { moved, .. } = self.hold_acknowledgements(committing, None);
        self.deliver(committing);
        self.pass_sources_on(committing);
        let frames = committing.committer.synced();
        self.progress.synced(frames, committing.synced.entries, committing.unsynced);
        let events = committing.committer.take_events();
        if !events.is_empty() {
            self.staging.with_sequencer(|sequencer| {
                events.into_iter().for_each(|event| drop(sequencer.request_event(event)));
            });
        }
        let told = self.tell_switches(moved);
        synced.and(told).inspect_err(|error| self.fail(error))?;
        self.events_are_durable(committing.committer.synced());
        self.progress.durable(committing.synced.position);
        Ok(committing.committer.withholds())
    }

    /// Where another path has taken over, nothing that lies there is acknowledged before a checkpoint there covers the first epoch that does,
    /// and all before it: should the path before be lost, frames that nobody has signed and the key of the epoch at work are lost with it, and
    /// then nothing that comes after them can be gone on with. `epoch` was committed just now.
    fn hold_acknowledgements(&self, committing: &mut Committing, epoch: Option<u64>) -> Held {
        let moved = committing.committer.take_moved();
        if let Some(first) = moved {
            self.await_epoch(committing, first);
        }
        let moved = moved.is_some();
        let epoch = epoch.filter(|epoch| committing.awaits_epoch.is_some_and(|first| first <= *epoch));
        let Some(epoch) = epoch else { return Held { moved, held: false } };
        committing.awaits_epoch = None;
        self.progress.hold_until(epoch + 1);
        Held { moved, held: true }
    }

    /// Has nothing be acknowledged before a checkpoint covers an epoch that begins in this frame or behind it.
    pub(super) fn await_epoch(&self, committing: &mut Committing, first: u64) {
        if self.tuning.durability != Durability::Os {
            committing.awaits_epoch = Some(first);
            self.progress.hold_until(u64::MAX);
        }
    }

    /// Has what frames hold of sources known, as far as a sync has covered them.
    fn pass_sources_on(&self, committing: &mut Committing) {
        let synced = committing.committer.synced();
        let count = committing.sourced.partition_point(|sourced| sourced.frame < synced);
        self.take_durable_sources(committing.sourced.drain(..count));
    }

    /// Gives the checkpointer what has become durable, unless it has to wait for an event to become so, too.
    pub(super) fn deliver(&self, committing: &mut Committing) {
        if !committing.committer.withholds() {
            self.checkpoints.deliver(committing.committer.take_durable(), committing.synced.position);
        }
    }
}
