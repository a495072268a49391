//! How far the log has come, what receipts wait for, and what is told of entries.
//!
//! Invariant: what is counted as durable a sync has covered, in every durability mode. Receipts answer sooner in mode `os`.
#![expect(
    clippy::disallowed_methods,
    reason = "whoever waits for durability waits by the operating system's clock"
)]

use super::locks::{Rank, RankedMutex};
use super::sequencer::AssignedFrame;
use crate::format::config::allowed::AllowedConfig;
use crate::write::stage::queue::{StagedPosition, Steady};
use crate::write::telling;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a receipt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The operating system has the entries.
    Written,
    /// They are as durable as the mode makes them.
    Durable,
    /// A published checkpoint covers them.
    Checkpointed,
}

/// The entries of the frames up to some frame, counted since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryCounts {
    /// Those that are in blocks.
    pub(crate) kept: u64,
    /// Those before the first that is in a gap.
    pub(crate) prefix: u64,
    /// Those that are in blocks, and those that a gap tells of.
    pub(crate) settled: u64,
    gap: bool,
}

impl EntryCounts {
    /// Counts the entries of the next frame.
    pub(super) fn add(&mut self, frame: &Commitment) {
        self.settled += frame.entries;
        match frame.kind {
            FrameKind::Block => {
                self.kept += frame.entries;
                self.prefix += if self.gap { 0 } else { frame.entries };
            }
            FrameKind::Gap => self.gap = true,
            FrameKind::Epoch | FrameKind::Event => {}
        }
    }

    /// Entries were dropped before those of the frames to come.
    pub(super) fn some_are_missing(&mut self) {
        self.gap = true;
    }
}

struct State {
    written: StagedPosition,
    durable: StagedPosition,
    checkpointed: StagedPosition,
    /// The entries that a sync has covered.
    entries: EntryCounts,
    /// No entry that was committed and that no sync has covered is older; `None` where there is none.
    unsynced: Option<Steady>,
    /// What is not acknowledged before a checkpoint is published that covers so many frames.
    held: Option<(u64, Held)>,
    /// How many frames were committed.
    committed: u64,
    /// The tree that the published checkpoint covers.
    published: TreeHead,
    /// Which `[log]` may follow what the published checkpoint covers.
    terms: AllowedConfig,
    /// First and last position of slices whose entries were lost to a failure inside.
    lost: Vec<(StagedPosition, StagedPosition)>,
    failure: Option<(ErrorKind, String)>,
    /// Whom to tell that slices are durable, or cannot become so.
    waiting: Vec<Waiting>,
}

/// What is acknowledged once a checkpoint is published.
#[derive(Clone, Copy, Default)]
struct Held {
    durable: StagedPosition,
    entries: EntryCounts,
    /// How many frames have all of these.
    frames: u64,
}

/// Somebody who is told, once, what became of the slices after `from` up to `to`.
struct Waiting {
    from: StagedPosition,
    to: StagedPosition,
    tell: Box<dyn FnOnce(Result<()>) + Send>,
}

impl State {
    /// What became of the slices after `from` up to `to`, of which `come` says how far they have come; `None` while that is open.
    fn outcome(&self, from: StagedPosition, to: StagedPosition, come: StagedPosition) -> Option<Result<()>> {
        if come >= to {
            let lost = self.lost.iter().any(|&(first, last)| first <= to && last > from);
            return Some(match lost {
                false => Ok(()),
                true => Err(Error::unavailable(
                    "a block was lost inside; entries of this receipt may be among it",
                )),
            });
        }
        self.failure.as_ref().map(|(kind, message)| Err(Error::new(*kind, message.clone())))
    }
}

/// See the module.
pub(crate) struct Progress {
    state: RankedMutex<State>,
    changed: Condvar,
    /// Whom to tell how many entries from the first on are durable, when there are more.
    teller: Mutex<Option<Arc<TellDurable>>>,
}

/// Is told how many entries from the first on are durable.
pub(crate) type TellDurable = dyn Fn(u64) + Send + Sync;

impl Progress {
    /// Of a log whose published checkpoint covers this tree, which this `[log]` may follow.
    pub(super) fn new(published: TreeHead, terms: AllowedConfig) -> Self {
        let state = State {
            written: 0,
            durable: 0,
            checkpointed: 0,
            entries: EntryCounts::default(),
            unsynced: None,
            held: None,
            committed: 0,
            published,
            terms,
            lost: Vec::new(),
            failure: None,
            waiting: Vec::new(),
        };
        let state = RankedMutex::new(Rank::Leaf, state);
        Progress { state, changed: Condvar::new(), teller: Mutex::new(None) }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    /// So many frames are committed, and with them all slices up to `position`.
    pub(super) fn committed(&self, frames: u64, position: StagedPosition) {
        self.change(|state| {
            state.committed = state.committed.max(frames);
            state.written = state.written.max(position);
        });
    }

    /// All slices up to `position` are as durable as the mode makes them.
    pub(super) fn durable(&self, position: StagedPosition) {
        self.change(|state| match &mut state.held {
            Some((_, held)) => held.durable = held.durable.max(position),
            None => state.durable = state.durable.max(position),
        });
        self.tell_waiting();
    }

    /// Has nothing more be acknowledged before a checkpoint is published that covers so many frames, more than are committed by now.
    pub(super) fn hold_until(&self, frames: u64) {
        let mut state = self.state.lock();
        let held = Held { durable: state.durable, entries: state.entries, frames: state.committed };
        state.held.get_or_insert((frames, held)).0 = frames;
    }

    /// Of the first `synced` frames, which a sync has covered, those that may be acknowledged: all, unless nothing more is before a checkpoint
    /// covers what lies on another path.
    pub(super) fn acknowledged(&self, synced: u64) -> u64 {
        let state = self.state.lock();
        match state.held {
            Some(_) => state.published.size.min(synced),
            None => synced,
        }
    }

    /// A sync has covered so many frames, and these entries. Of those that were committed and that none has covered none is older than
    /// `unsynced`.
    pub(super) fn synced(&self, frames: u64, entries: EntryCounts, unsynced: Option<Steady>) {
        let before = {
            let mut state = self.state.lock();
            state.unsynced = unsynced;
            if let Some((_, held)) = &mut state.held {
                (held.frames, held.entries) = (frames, entries);
                return;
            }
            std::mem::replace(&mut state.entries, entries)
        };
        self.tell_prefix(before, entries);
    }

    fn tell_prefix(&self, before: EntryCounts, entries: EntryCounts) {
        if entries.prefix > before.prefix {
            let teller = self.teller.lock().unwrap_or_else(PoisonError::into_inner).clone();
            teller.iter().for_each(|tell| tell(entries.prefix));
        }
    }

    /// Has `tell` told, once, when the slices after `from` up to `to` are durable, or why they cannot become so: at once where that is
    /// known already.
    pub(crate) fn tell_durable(
        &self,
        from: StagedPosition,
        to: StagedPosition,
        tell: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let mut state = self.state.lock();
        if let Some(outcome) = state.outcome(from, to, state.durable) {
            drop(state);
            return telling::tell(|| tell(outcome));
        }
        state.waiting.push(Waiting { from, to, tell: Box::new(tell) });
    }

    /// Tells those whose wait is over, without the mutex: they may ask for anything.
    fn tell_waiting(&self) {
        let mut state = self.state.lock();
        let mut due = Vec::new();
        // One pass: while many wait, whoever commits holds the mutex for no longer than that takes.
        for waiting in std::mem::take(&mut state.waiting) {
            match state.outcome(waiting.from, waiting.to, state.durable) {
                Some(outcome) => due.push((waiting.tell, outcome)),
                None => state.waiting.push(waiting),
            }
        }
        drop(state);
        due.into_iter().for_each(|(tell, outcome)| telling::tell(|| tell(outcome)));
    }

    /// Has `tell` told, from now on, how many entries from the first on are durable, whenever there are more.
    pub(crate) fn when_durable(&self, tell: Arc<TellDurable>) {
        *self.teller.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
    }

    /// A checkpoint over this tree is published. It covers the slices up to `position`, and this `[log]` may follow.
    pub(super) fn checkpointed(&self, position: StagedPosition, head: TreeHead, terms: AllowedConfig) {
        let mut told = None;
        self.change(|state| {
            state.checkpointed = state.checkpointed.max(position);
            state.published = head;
            state.terms = terms;
            let Some((frames, held)) = state.held else { return };
            // What it covers may be acknowledged in any case.
            state.durable = state.durable.max(position);
            if head.size >= held.frames.min(frames) {
                state.durable = state.durable.max(held.durable);
                told = Some((std::mem::replace(&mut state.entries, held.entries), held.entries));
            }
            state.held.take_if(|(frames, _)| head.size >= *frames);
        });
        if let Some((before, entries)) = told {
            self.tell_prefix(before, entries);
        }
        self.tell_waiting();
    }

    /// The tree that the published checkpoint covers.
    pub(super) fn published(&self) -> TreeHead {
        self.state.lock().published
    }

    /// Whether the published checkpoint covers what allows an epoch with another `[log]`, this one.
    pub(super) fn allows(&self, digest: Hash) -> bool {
        self.state.lock().terms.next == digest
    }

    /// Whether it covers what allows this `[log]`, the one at work or the next.
    pub(super) fn admits(&self, digest: Hash) -> bool {
        self.state.lock().terms.admit(digest)
    }

    pub(crate) fn lost(&self, first: StagedPosition, last: StagedPosition) {
        self.change(|state| state.lost.push((first, last)));
    }

    /// Notes why nothing can be committed any more. Of several failures the first is told: the others follow from it.
    pub(crate) fn fail(&self, error: &Error) {
        self.change(|state| {
            state.failure.get_or_insert_with(|| (error.kind(), error.to_string()));
        });
        self.tell_waiting();
    }

    /// Why nothing can be committed any more, if so.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.as_ref().map(|(kind, message)| Error::new(*kind, message.clone()))
    }

    /// The entries that are durable, of those that were appended since the log was opened.
    pub(crate) fn entries(&self) -> EntryCounts {
        self.state.lock().entries
    }

    /// The same, and the date that none of those which were committed and are not durable is older than.
    pub(super) fn entries_and_unsynced(&self) -> (EntryCounts, Option<Steady>) {
        let state = self.state.lock();
        (state.entries, state.unsynced)
    }

    /// Waits until the frame that `frame` comes to name is committed.
    pub(crate) fn wait_committed(&self, frame: &AssignedFrame) -> Result<u64> {
        self.wait_for_frame(frame, |state| state.committed)
    }

    /// Waits until a checkpoint covers the frame that `frame` comes to name.
    pub(crate) fn wait_published(&self, frame: &AssignedFrame) -> Result<u64> {
        self.wait_for_frame(frame, |state| state.published.size)
    }

    fn wait_for_frame(&self, frame: &AssignedFrame, come: impl Fn(&State) -> u64) -> Result<u64> {
        let mut state = self.state.lock();
        loop {
            if let Some(frame) = frame.get().filter(|frame| **frame < come(&state)) {
                return Ok(*frame);
            }
            if let Some((kind, message)) = &state.failure {
                return Err(Error::new(*kind, message.clone()));
            }
            telling::check_may_wait()?;
            state = state.wait(&self.changed);
        }
    }

    /// Whether the slices after `from` up to `to` have come so far. Waits for that, for `timeout` at most if there is one: of
    /// real time, as condition variables know no other.
    pub(crate) fn wait(
        &self,
        from: StagedPosition,
        to: StagedPosition,
        stage: Stage,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.state.lock();
        loop {
            let come = match stage {
                Stage::Written => state.written,
                Stage::Durable => state.durable,
                Stage::Checkpointed => state.checkpointed,
            };
            if let Some(outcome) = state.outcome(from, to, come) {
                return outcome.map(|()| true);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            telling::check_may_wait()?;
            state = match left {
                Some(left) => state.wait_timeout(&self.changed, left),
                None => state.wait(&self.changed),
            };
        }
    }
}
