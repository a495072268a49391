//! The sequencer: gives frames and entries their numbers, without holes, in the order in which work leaves the staging
//! queue.
//!
//! An epoch is begun with the `[log]` that there is when it gets its number. While `[log]` is being changed no epoch gets
//! one: after the event that allows the change, an epoch with the old `[log]` would take the permission back.

use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::format::sealed::FrameNumbers;
use crate::write::stage::queue::{AssignFrames, Steady};
use bulla_crypto::environment::{Clock, Random};
use bulla_crypto::epoch::{EpochKeys, EpochSecret};
use bulla_store::Result;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// A frame's numbers, and what a writer needs besides to seal it.
pub(crate) struct FrameAssignment {
    pub(crate) numbers: FrameNumbers,
    pub(crate) keys: Arc<EpochKeys>,
    pub(crate) control: Option<Control>,
}

/// A frame that is no block.
pub(crate) enum Control {
    Epoch(EpochSecret, Arc<LogConfig>),
    Event(Event),
}

enum Request {
    Epoch(EpochSecret, [u8; 32], AssignedFrame),
    Event(Event, AssignedFrame),
}

/// The number of the frame of an event or an epoch, once it has one. Whoever asked for the frame waits for that.
pub(crate) type AssignedFrame = Arc<OnceLock<u64>>;

/// See the module. Invariant: until there is a first epoch, one is in front of `requests`, so a block always finds keys.
pub(crate) struct Sequencer {
    /// The `[log]` of epochs to come.
    config: Arc<LogConfig>,
    /// Whether `[log]` is being changed, and whether an epoch was asked for meanwhile.
    changing: bool,
    postponed: bool,
    next_frame: u64,
    next_entry: u64,
    keys: Option<Arc<EpochKeys>>,
    requests: VecDeque<Request>,
    /// Bytes of rows numbered and not yet committed, and their bound.
    in_flight: usize,
    limit: usize,
    /// Of each block that is numbered and not yet committed the date that none of its entries is older than.
    dates: VecDeque<Steady>,
    clock: Arc<dyn Clock>,
}

impl Sequencer {
    /// The sequencer of a log that goes on at these numbers, in a new epoch.
    pub(crate) fn new(
        config: Arc<LogConfig>,
        next_frame: u64,
        next_entry: u64,
        in_flight: usize,
        (clock, random): (Arc<dyn Clock>, &dyn Random),
    ) -> Result<Self> {
        let mut sequencer = Sequencer {
            config,
            changing: false,
            postponed: false,
            next_frame,
            next_entry,
            keys: None,
            requests: VecDeque::new(),
            in_flight: 0,
            limit: in_flight,
            dates: VecDeque::new(),
            clock,
        };
        sequencer.request_epoch(random)?;
        Ok(sequencer)
    }

    /// The `[log]` that the next epoch is begun with.
    pub(crate) fn config(&self) -> &Arc<LogConfig> {
        &self.config
    }

    /// Begins a new epoch, and with it a new segment, before the next block, or once a change of `[log]` is settled.
    pub(crate) fn request_epoch(&mut self, random: &dyn Random) -> Result<()> {
        self.postponed = self.changing;
        if self.changing { Ok(()) } else { self.begin_epoch(random).map(drop) }
    }

    /// Begins a new epoch before the next block, while `[log]` is not being changed, and says in which frame.
    pub(crate) fn begin_epoch(&mut self, random: &dyn Random) -> Result<AssignedFrame> {
        let secret = EpochSecret::generate(random)?;
        let mut salt = [0; 32];
        random.fill(&mut salt)?;
        let frame = AssignedFrame::default();
        self.requests.push_back(Request::Epoch(secret, salt, frame.clone()));
        Ok(frame)
    }

    /// Records an event before the next block, and says in which frame.
    pub(crate) fn request_event(&mut self, event: Event) -> AssignedFrame {
        let frame = AssignedFrame::default();
        self.requests.push_back(Request::Event(event, frame.clone()));
        frame
    }

    /// Records that `[log]` may change. No epoch begins until that is settled.
    pub(crate) fn begin_change(&mut self, event: Event) -> AssignedFrame {
        self.changing = true;
        self.request_event(event)
    }

    /// `[log]` is this one from now on, and an epoch begins with it.
    pub(crate) fn change(&mut self, config: Arc<LogConfig>, random: &dyn Random) -> Result<AssignedFrame> {
        (self.changing, self.postponed) = (false, false);
        self.config = config;
        self.begin_epoch(random)
    }

    /// `[log]` stays as it was.
    pub(crate) fn give_up_change(&mut self, random: &dyn Random) -> Result<()> {
        self.changing = false;
        if std::mem::take(&mut self.postponed) { self.request_epoch(random) } else { Ok(()) }
    }

    /// Bytes of rows numbered and not yet committed.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The first blocks, so many, which have rows of so many bytes, were committed, or lost.
    pub(crate) fn committed(&mut self, blocks: usize, bytes: usize) {
        self.in_flight -= bytes;
        self.dates.drain(..blocks);
    }

    /// No entry that is numbered and not yet committed is older; `None` where there is none.
    pub(crate) fn oldest(&self) -> Option<Steady> {
        self.dates.iter().min().copied()
    }

    fn assign(&mut self, entries: u64, keys: Arc<EpochKeys>, control: Option<Control>) -> FrameAssignment {
        let numbers =
            FrameNumbers { frame: self.next_frame, first_entry: self.next_entry, epoch: keys.number() };
        self.next_frame += 1;
        self.next_entry += entries;
        FrameAssignment { numbers, keys, control }
    }
}

impl AssignFrames for Sequencer {
    type Assignment = FrameAssignment;

    fn control(&mut self) -> Option<FrameAssignment> {
        let control = match self.requests.pop_front()? {
            Request::Epoch(secret, random, frame) => {
                frame.get_or_init(|| self.next_frame);
                let keys = EpochKeys::derive(&secret, random, self.config.id, self.next_frame);
                self.keys = Some(Arc::new(keys.expect("HKDF gives 32 bytes")));
                Control::Epoch(secret, self.config.clone())
            }
            Request::Event(event, frame) => {
                frame.get_or_init(|| self.next_frame);
                Control::Event(event)
            }
        };
        let keys = self.keys.clone().expect("an epoch comes first");
        Some(self.assign(0, keys, Some(control)))
    }

    fn has_control(&self) -> bool {
        !self.requests.is_empty()
    }

    fn admits(&self) -> bool {
        self.in_flight < self.limit
    }

    fn block(&mut self, entries: u64, bytes: usize, since: Steady) -> FrameAssignment {
        self.in_flight += bytes;
        self.dates.push_back(since);
        let keys = self.keys.clone().expect("an epoch comes first");
        self.assign(entries, keys, None)
    }

    fn now(&self) -> Steady {
        self.clock.steady()
    }

    fn seconds(&self) -> i64 {
        self.clock.now().div_euclid(1_000_000_000)
    }
}
