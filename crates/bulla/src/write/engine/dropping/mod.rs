//! What a log with `on_failure = "drop"` does while nothing takes what it writes: it drops entries for which it has no memory, counts
//! them, and has an event tell of them as soon as something takes it again.
//!
//! Invariants:
//! - before anything is dropped the key directory has a note of that, as far as it takes one, which stays until the event is durable and
//!   nothing that is acknowledged may be lost without it: a process that dies in between has the next opening tell what the note says;
//! - the event has a number before any entry that comes after those that were dropped;
//! - a receipt over entries of which some were dropped says so, and is never one that they are durable.

mod set_aside;

use super::Engine;
use super::locks::{Rank, RankedMutex};
use super::sequencer::AssignedFrame;
use crate::format::event::{Dropped, Event};
use crate::format::options::OnFailure;
use crate::keys::dropping::{self, DroppingNote};
use crate::scan::events::each_event;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::write::back_off::WatchOutages;
use crate::write::stage::queue::OutageNumber;
use bulla_store::{Error, Result, Store};
use bulla_text::spelling::{agreeing, counted};
pub(super) use set_aside::SetAside;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// What the log knows of entries that it drops.
pub(super) struct Dropping {
    state: RankedMutex<State>,
    /// Whether some event tells of entries that were dropped and is not durable yet.
    is_untold: AtomicBool,
    pub(super) set_aside: Option<SetAside>,
}

#[derive(Default)]
struct State {
    /// Why nothing takes what is written, while that is so.
    outage: Option<String>,
    /// The number of the last outage, counted from 1.
    outages: OutageNumber,
    /// The frames of events that are not durable yet, and how many entries each of them tells of.
    untold: Vec<(AssignedFrame, u64)>,
    /// What the key directory says.
    note: Option<DroppingNote>,
    /// No event that tells of later entries is before this frame.
    told: u64,
    /// Why the key directory took no note; it is said once in an outage.
    failure: Option<String>,
}

impl Dropping {
    pub(super) fn new(set_aside: Option<SetAside>) -> Self {
        let state = RankedMutex::new(Rank::Dropping, State::default());
        Dropping { state, is_untold: AtomicBool::new(false), set_aside }
    }
}

/// Tells an engine of outages.
struct Watch(Weak<Engine>);

impl WatchOutages for Watch {
    fn outage(&self, why: &dyn Display) {
        if let Some(engine) = self.0.upgrade() {
            engine.outage(&why.to_string());
        }
    }

    fn over(&self) {
        if let Some(engine) = self.0.upgrade() {
            engine.outage_over();
        }
    }
}

/// What entries a process dropped that died, and did not have the log tell of; `None` where it told all, or dropped none.
///
/// `recovered` are the frames of events beyond the checkpoint that tell of such, with their numbers of entries; the checkpoint covers the
/// first `signed` frames.
///
/// # Errors
/// `Unavailable` where the note in the key directory is damaged, or cannot be read.
pub(super) fn left_untold(
    (log, keys): (&Arc<dyn Store>, &dyn Store),
    (signed, recovered): (u64, &[(u64, u64)]),
    now: u64,
) -> Result<Option<(DroppingNote, Option<Dropped>)>> {
    let Some(note) = dropping::load(keys)? else { return Ok(None) };
    let mut told = recovered
        .iter()
        .filter(|(frame, _)| *frame >= note.after)
        .map(|(_, entries)| *entries)
        .collect::<Vec<_>>();
    // A log of which a path is lost cannot be read whole, and need not be where nothing that is signed tells of them.
    let read = match note.after >= signed {
        true => Ok(()),
        false => Manifest::load(Snapshot::of(log.clone())?).and_then(|manifest| {
            each_event(&manifest, note.after, |_, event| {
                if let Event::Dropped(dropped) = event {
                    told.push(dropped.entries);
                }
            })
        }),
    };
    let sum = told.iter().fold(0_u64, |sum, entries| sum.saturating_add(*entries));
    if read.is_ok() && !note.open && sum >= note.entries {
        return Ok(Some((note, None)));
    }
    let (entries, reason) = match read {
        Ok(()) => (note.entries.saturating_sub(sum), "the process ended before it told how many"),
        // It may have told of all of them.
        Err(_) => (0, "the process ended, and whether it told how many cannot be read"),
    };
    let reason = reason.to_owned();
    let (from, to) = (note.from, now.max(note.from));
    Ok(Some((note, Some(Dropped { entries, exact: false, producers: 0, set_aside: 0, from, to, reason }))))
}

impl Engine {
    /// Has the log drop entries in an outage, where it is to.
    pub(crate) fn drop_in_outages(self: &Arc<Self>) {
        if self.tuning.on_failure == OnFailure::Drop {
            self.back_off.watch_outages(Arc::new(Watch(Arc::downgrade(self))));
        }
    }

    /// Has the log fail at an outage, where it would drop entries in it.
    pub(crate) fn end_dropping(&self) {
        if self.tuning.on_failure == OnFailure::Drop {
            self.back_off.go_on_no_longer();
        }
    }

    /// Goes on with a note that an earlier process left: an event is to tell of what it says, or one does already.
    pub(super) fn take_note_up(&self, note: DroppingNote, untold: Option<Dropped>) {
        let mut state = self.dropping.state.lock();
        state.note = Some(note);
        let Some(dropped) = untold else { return self.forget_note(&mut state) };
        self.tell_of_paths(&format!(
            "the process that wrote the log before ended before it told how many entries it had dropped, {} at least: the log says so now",
            dropped.entries
        ));
        let frame = self.staging.with_sequencer(|sequencer| sequencer.request_event(Event::Dropped(dropped)));
        // Of all that the note speaks of, whichever event tells it.
        state.untold.push((frame, note.entries));
        self.dropping.is_untold.store(true, Ordering::Release);
    }

    /// Whether the log sets aside what it drops.
    pub(crate) fn sets_aside(&self) -> bool {
        self.dropping.set_aside.is_some()
    }

    /// Sets an entry aside that was dropped in this outage, where the log does that.
    pub(crate) fn set_aside(&self, outage: OutageNumber, length: usize, encode: &dyn Fn(&mut [u8])) {
        if let Some(aside) = &self.dropping.set_aside {
            aside.take(outage, length, encode);
        }
    }

    /// Nothing takes what is written: entries for which there is no memory are dropped from now on.
    fn outage(&self, why: &str) {
        let mut state = self.dropping.state.lock();
        if state.outage.is_none() {
            state.outage = Some(why.to_owned());
            self.note(&mut state);
            self.tell_of_paths(&format!(
                "nothing takes the log ({why}): entries for which there is no memory are dropped, and counted, until something does"
            ));
            state.outages += 1;
            self.staging.begin_outage(state.outages);
        } else {
            self.note(&mut state);
        }
    }

    /// Something takes what is written again, or that was given up.
    fn outage_over(&self) {
        let mut state = self.dropping.state.lock();
        let Some(reason) = state.outage.take() else { return };
        self.note(&mut state);
        state.failure = None;
        // Rows that wait to be written are in no file yet, and nobody waits until they are.
        let set_aside = self.dropping.set_aside.as_ref().map_or(0, |aside| aside.written(state.outages));
        let told = self.staging.end_outage(|sequencer, rows| {
            let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
            let (entries, (from, to)) = (rows.entries(), rows.times());
            let (from, to) = (seconds(from), seconds(to));
            let producers = rows.producers();
            let dropped = Dropped { entries, exact: true, producers, set_aside, from, to, reason };
            (sequencer.request_event(Event::Dropped(dropped)), entries)
        });
        match told {
            None if state.untold.is_empty() => self.forget_note(&mut state),
            None => {}
            Some((frame, entries)) => {
                self.tell_of_paths(&format!(
                    "{} {} dropped while nothing took the log: an event in it says so as soon as it is durable",
                    counted(entries, "entry"),
                    agreeing(entries, "was", "were")
                ));
                state.untold.push((frame, entries));
                self.dropping.is_untold.store(true, Ordering::Release);
            }
        }
    }

    /// The frames before `synced` are durable: of what their events tell no note is needed any more, as soon as they may be acknowledged.
    /// Until then they may be lost with the path before the one that they lie on.
    pub(super) fn events_are_durable(&self, synced: u64) {
        if !self.dropping.is_untold.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.dropping.state.lock();
        let kept = self.progress.acknowledged(synced);
        if !state.untold.iter().all(|(frame, _)| frame.get().is_some_and(|frame| *frame < kept)) {
            return;
        }
        state.untold.clear();
        state.told = kept;
        self.dropping.is_untold.store(false, Ordering::Release);
        match state.outage {
            None => self.forget_note(&mut state),
            Some(_) => {
                state.note = None;
                self.note(&mut state);
            }
        }
    }

    /// Notes in the key directory how many entries were dropped of which no durable event tells.
    fn note(&self, state: &mut State) {
        let untold = state.untold.iter().map(|(_, entries)| *entries).sum::<u64>();
        let entries = untold.saturating_add(self.staging.dropped());
        let now = u64::try_from(self.seconds()).unwrap_or(0);
        let after = state.told.max(self.published().size);
        let open = state.outage.is_some();
        let before = state.note.unwrap_or(DroppingNote { after, from: now, entries, open });
        let note = DroppingNote { entries: before.entries.max(entries), open, ..before };
        if state.note == Some(note) {
            return;
        }
        match dropping::save(&*self.keys, note) {
            Ok(()) => state.note = Some(note),
            Err(error) => self.fail_to_note(state, &error),
        }
    }

    fn forget_note(&self, state: &mut State) {
        match dropping::remove(&*self.keys) {
            Ok(()) => state.note = None,
            // The next opening finds in the log that all of it was told.
            Err(error) => self.fail_to_note(state, &error),
        }
    }

    fn fail_to_note(&self, state: &mut State, error: &Error) {
        if state.failure.is_none() {
            self.tell_of_paths(&format!(
                "that entries are dropped cannot be noted, and should the process die nobody would learn of it: {error}"
            ));
        }
        state.failure = Some(error.to_string());
    }

    /// Says something to whoever is told of the log's paths.
    pub(crate) fn tell_of_paths(&self, what: &str) {
        if let Some(tell) = &self.environment.path_replaced {
            tell(what);
        }
    }
}
