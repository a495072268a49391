//! The numbering: frame and entry numbers, without holes, in the order in which work leaves the hand-over.
//!
//! An epoch takes its `[log]` along as it gets its number. While `[log]` is being changed no epoch gets one: after the
//! event that allows the change, one with the old `[log]` would take the permission back.

use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::format::sealed::FrameNumbers;
use crate::write::stage::handover::Numbering;
use bulla_crypto::environment::Random;
use bulla_crypto::epoch::{EpochKeys, EpochSecret};
use bulla_store::Result;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// What a sealer needs to know of a frame.
pub(crate) struct Ticket {
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
    Epoch(EpochSecret, [u8; 32], Place),
    Event(Event, Place),
}

/// The frame of an event or an epoch, once it has a number.
pub(crate) type Place = Arc<OnceLock<u64>>;

/// Invariant: `requests` has an epoch in front until there is a first one, so a block always finds keys.
pub(crate) struct Counter {
    /// The `[log]` of epochs to come.
    config: Arc<LogConfig>,
    /// Whether that is being changed, and whether an epoch waits for the outcome.
    changing: bool,
    postponed: bool,
    next_frame: u64,
    next_entry: u64,
    keys: Option<Arc<EpochKeys>>,
    requests: VecDeque<Request>,
    /// Bytes of rows numbered and not yet committed, and their bound.
    in_flight: usize,
    limit: usize,
}

impl Counter {
    /// The numbering of a log that goes on at these numbers, in a new epoch.
    pub(crate) fn new(
        config: Arc<LogConfig>,
        next_frame: u64,
        next_entry: u64,
        in_flight: usize,
        random: &dyn Random,
    ) -> Result<Self> {
        let mut counter = Counter {
            config,
            changing: false,
            postponed: false,
            next_frame,
            next_entry,
            keys: None,
            requests: VecDeque::new(),
            in_flight: 0,
            limit: in_flight,
        };
        counter.request_epoch(random)?;
        Ok(counter)
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
    pub(crate) fn begin_epoch(&mut self, random: &dyn Random) -> Result<Place> {
        let secret = EpochSecret::generate(random)?;
        let mut salt = [0; 32];
        random.fill(&mut salt)?;
        let place = Place::default();
        self.requests.push_back(Request::Epoch(secret, salt, place.clone()));
        Ok(place)
    }

    /// Records an event before the next block, and says in which frame.
    pub(crate) fn request_event(&mut self, event: Event) -> Place {
        let place = Place::default();
        self.requests.push_back(Request::Event(event, place.clone()));
        place
    }

    /// Records that `[log]` may change. No epoch begins until that is settled.
    pub(crate) fn begin_change(&mut self, event: Event) -> Place {
        self.changing = true;
        self.request_event(event)
    }

    /// `[log]` is this one from now on, and an epoch begins with it.
    pub(crate) fn change(&mut self, config: Arc<LogConfig>, random: &dyn Random) -> Result<Place> {
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

    /// Rows of so many bytes were committed, or lost.
    pub(crate) fn committed(&mut self, bytes: usize) {
        self.in_flight -= bytes;
    }

    fn ticket(&mut self, entries: u64, keys: Arc<EpochKeys>, control: Option<Control>) -> Ticket {
        let numbers =
            FrameNumbers { frame: self.next_frame, first_entry: self.next_entry, epoch: keys.number() };
        self.next_frame += 1;
        self.next_entry += entries;
        Ticket { numbers, keys, control }
    }
}

impl Numbering for Counter {
    type Ticket = Ticket;

    fn control(&mut self) -> Option<Ticket> {
        let control = match self.requests.pop_front()? {
            Request::Epoch(secret, random, place) => {
                place.get_or_init(|| self.next_frame);
                let keys = EpochKeys::derive(&secret, random, self.config.id, self.next_frame);
                self.keys = Some(Arc::new(keys.expect("HKDF gives 32 bytes")));
                Control::Epoch(secret, self.config.clone())
            }
            Request::Event(event, place) => {
                place.get_or_init(|| self.next_frame);
                Control::Event(event)
            }
        };
        let keys = self.keys.clone().expect("an epoch comes first");
        Some(self.ticket(0, keys, Some(control)))
    }

    fn admits(&self) -> bool {
        self.in_flight < self.limit
    }

    fn block(&mut self, entries: u64, bytes: usize) -> Ticket {
        self.in_flight += bytes;
        let keys = self.keys.clone().expect("an epoch comes first");
        self.ticket(entries, keys, None)
    }
}
