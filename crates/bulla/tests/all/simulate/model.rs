//! What was promised of a log: which entries, who is erased, who is held, what was published.
//!
//! - What was acknowledged stays. What was not may be there or not after a crash, in each producer's order and without a gap; what was
//!   found then stays, too.
//! - What ended in an error may have been done or not, once for all: the next time that everything of the log was looked at says so.

use super::entries::{Id, Made};
use super::outcome::{Outcome, must};
use super::paths::Switches;
use crate::crash::world::Recorder;
use bulla::Hash;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of something that was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is done: nothing takes it back.
    Done,
    /// It ended in an error, in this session. Opening the log goes on with it or not, and then it is known.
    Unknown(u64),
    /// The log does not tell of it, and will not.
    NotDone,
}

/// An order to erase.
#[derive(Debug)]
pub(super) struct Erasing {
    pub(super) note: String,
    /// The whole of it, to give it again.
    pub(super) order: String,
    /// Whom it names, by their places in the list of names.
    pub(super) ordered: Vec<usize>,
    /// Whom of these the log says that it reached.
    pub(super) names: Vec<usize>,
    pub(super) told: Told,
    /// The event that tells of it, and the numbers that it names.
    pub(super) event: Option<(u64, Vec<u64>)>,
}

/// An order to hold, and the one to release it.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) note: String,
    pub(super) name: usize,
    pub(super) by: &'static str,
    pub(super) told: Told,
    pub(super) release: Option<(String, Told)>,
    /// Whether the number that is held is nobody's any more, whose key a restore lost.
    pub(super) is_nobodys: bool,
}

/// Keys that a restore lost.
#[derive(Debug)]
pub(super) struct Loss {
    /// The number of frames that there were.
    pub(super) frames: u64,
    /// Whose they were.
    pub(super) names: Vec<usize>,
}

/// What a producer was told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promise {
    pub(super) session: u64,
    /// So many entries were accepted.
    pub(super) appended: u64,
    /// So many survive the end of the process.
    pub(super) written: u64,
    /// So many survive a power cut.
    pub(super) synced: u64,
}

/// See the module.
pub(super) struct Model {
    pub(super) seed: u64,
    pub(super) payload: u64,
    pub(super) recorder: Recorder,
    /// By the producers' numbers, none of which comes twice.
    pub(super) producers: BTreeMap<u64, Promise>,
    /// The session that opened the log last.
    pub(super) session: u64,
    /// How many entries each session counted as durable.
    pub(super) counted: BTreeMap<u64, u64>,
    pub(super) erasures: Vec<Erasing>,
    pub(super) holds: Vec<Holding>,
    pub(super) losses: Vec<Loss>,
    /// Every checkpoint that anybody could have seen, and its note.
    pub(super) published: BTreeMap<(u64, Hash), Vec<u8>>,
    /// The recipients that `[log]` may have.
    pub(super) recipients: Vec<Vec<String>>,
    /// Whose each number of the vault is; it is nobody else's ever after.
    pub(super) numbers: BTreeMap<u64, usize>,
    pub(super) erased_numbers: BTreeSet<u64>,
    pub(super) switches: Switches,
}

impl Model {
    pub(super) fn new(seed: u64, payload: u64, recipients: Vec<String>) -> Self {
        Model {
            seed,
            payload,
            recorder: Recorder::default(),
            producers: BTreeMap::new(),
            session: 0,
            counted: BTreeMap::new(),
            erasures: Vec::new(),
            holds: Vec::new(),
            losses: Vec::new(),
            published: BTreeMap::new(),
            recipients: vec![recipients],
            numbers: BTreeMap::new(),
            erased_numbers: BTreeSet::new(),
            switches: Switches::default(),
        }
    }

    pub(super) fn made(&self, id: Id) -> Made {
        Made::new(self.seed, self.payload, id)
    }

    pub(super) fn promise(&mut self, producer: u64) -> &mut Promise {
        self.producers.entry(producer).or_default()
    }

    /// The power was cut: what was given to the operating system alone may be gone.
    pub(super) fn power_cut(&mut self) {
        self.producers.values_mut().for_each(|promise| promise.written = promise.synced);
    }

    /// The log was opened: what it adopted it has made durable.
    pub(super) fn opened(&mut self, session: u64) {
        self.session = session;
        self.producers.values_mut().for_each(|promise| promise.synced = promise.written);
    }

    /// All that a session appended is durable.
    pub(super) fn keep_all(&mut self, session: u64) {
        for promise in self.producers.values_mut().filter(|promise| promise.session == session) {
            (promise.written, promise.synced) = (promise.appended, promise.appended);
        }
    }

    /// How many entries a session appended.
    pub(super) fn appended(&self, session: u64) -> u64 {
        let of_session = self.producers.values().filter(|promise| promise.session == session);
        of_session.map(|promise| promise.appended).sum()
    }

    /// Whether somebody is held; nothing where that is not known.
    pub(super) fn is_held(&self, name: usize) -> Option<bool> {
        let mut held = Some(false);
        for hold in self.holds.iter().filter(|hold| hold.name == name && !hold.is_nobodys) {
            match (hold.told, hold.release.as_ref().map(|(_, told)| *told)) {
                (Told::NotDone, _) | (Told::Done, Some(Told::Done)) => {}
                (Told::Done, None | Some(Told::NotDone)) => return Some(true),
                _ => held = None,
            }
        }
        held
    }

    /// Takes down that a session counts so many entries as durable.
    pub(super) fn count(&mut self, session: u64, entries: u64) -> Outcome {
        let appended = self.appended(session);
        must!(entries <= appended, "{entries} entries are called durable, {appended} were appended");
        let counted = self.counted.entry(session).or_default();
        must!(*counted <= entries, "{counted} entries were durable, now {entries} are");
        *counted = entries;
        Ok(())
    }
}

impl Holding {
    /// Whether it may hold somebody.
    pub(super) fn may_hold(&self) -> bool {
        !self.is_nobodys
            && self.told != Told::NotDone
            && self.release.as_ref().is_none_or(|(_, told)| *told != Told::Done)
    }
}
