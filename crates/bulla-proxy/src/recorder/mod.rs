//! [`Recorder`]: turns operations into entries of the log, for all connections of one worker.
//!
//! Invariants:
//! - tickets are given in the order of the entries, and one is durable once all before it are;
//! - at most one group of entries is on its way to the medium for each worker: what is recorded meanwhile goes with the next one,
//!   so that one sync serves all connections;
//! - what the log says of a group is about its entries, and what it says of an entry that tells of a gap is about that alone;
//! - nothing is allocated for an entry in the steady state, but for keys that are written in another form than they have.
//!
//! Where the log's memory is full, entries wait in a backlog as long as the log's option `append_timeout` says, and meanwhile
//! nothing is read that would make more. Where operations are missing, an entry `gap` says how many as soon as the log takes that, and
//! they count as told once it is durable. An operation is missing where its result is: what only says that it is about to be done, or
//! that its reply begins, counts for nothing, as the result is yet to come or it is not done. What the log took and then lost, [`Losses`]
//! tell by its tickets; it goes on with what comes after.

mod backlog;
mod durable;
pub(crate) mod learning;
mod losses;
mod payload;
mod renewal;
#[cfg(test)]
mod tests;

use crate::command::Unknowable;
use crate::config::Unrecordable;
use crate::counters::{Counters, RefusedCommand};
use crate::session::{CarriedOut, Operation, Record, Stage, Status, Target, Ticket, Unrecorded};
use crate::subject::{Key, Learned, Rules, Said, Whose};
use crate::warnings::{Kind, Warnings};
use backlog::Backlog;
use bulla::environment::Clock;
use bulla::{Entry, Error, ErrorKind, Producer, Receipt};
pub use durable::Durable;
use durable::Group;
pub use losses::Losses;
pub(crate) use renewal::Renewal;
use renewal::patience;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How entries come to be, for all workers alike.
pub struct Recording {
    /// Whose data keys are.
    pub rules: Rules,
    /// What values said of that.
    pub learned: Arc<Learned>,
    /// What becomes of commands while the log takes no entries.
    pub unrecordable: Unrecordable,
    /// The users whose claims count.
    pub claims: Vec<String>,
    /// How many bytes of each value are recorded, if any.
    pub record_values: Option<usize>,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// Who is told what an operator should know of.
    pub warnings: Arc<Warnings>,
}

/// See the module.
pub struct Recorder {
    recording: Arc<Recording>,
    durable: Arc<Durable>,
    log: Appender,
    /// How many entries were sent on their way.
    flushed: Ticket,
    /// How often a group did not become durable, as far as was looked.
    failures_seen: u64,
    /// The time of what came last, once an entry was of it.
    time: Option<i64>,
    payload: String,
}

/// The way into the log.
struct Appender {
    /// `None` while there is no log.
    producer: Option<Producer>,
    clock: Arc<dyn Clock>,
    /// How many entries were given a ticket: the log has them, or they are in the backlog, or lost.
    recorded: Ticket,
    /// What the log had no memory for.
    backlog: Backlog,
    /// How long that may last, in nanoseconds.
    patience: u64,
    /// Whether the log takes entries, as far as is known.
    takes: bool,
    /// How many operations it did not take of which no entry tells that it was given; `None` where there is nothing to tell.
    missing: Option<u64>,
}

impl Recorder {
    /// Records with `producer`. `changed` is called by a thread of the log whenever more is durable. What one that ended by a defect has not
    /// told of, it has to.
    pub fn new(
        producer: Option<Producer>,
        recording: Arc<Recording>,
        clock: Arc<dyn Clock>,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let patience = producer.as_ref().map_or(0, patience);
        let takes = producer.is_some();
        if !takes {
            recording.counters.taking_nothing.add(1);
        }
        let durable = Arc::new(Durable::new(changed));
        let log = Appender {
            producer,
            clock,
            recorded: 0,
            backlog: Backlog::default(),
            patience,
            takes,
            missing: Some(recording.counters.orphaned.take()).filter(|missing| *missing > 0),
        };
        let payload = String::new();
        Recorder { recording, durable, log, flushed: 0, failures_seen: 0, time: None, payload }
    }

    /// From now on entries come to be like this.
    pub fn adopt(&mut self, recording: Arc<Recording>) {
        self.recording = recording;
    }

    /// What is recorded from now on is of a later time: something came. Entries about what came together have one time.
    pub fn go_on(&mut self) {
        self.time = None;
    }

    /// How far this recorder's entries are durable.
    pub fn durable(&self) -> &Arc<Durable> {
        &self.durable
    }

    /// Whether everything that was recorded is on its way.
    pub fn is_flushed(&self) -> bool {
        self.flushed == self.log.taken()
    }

    /// Up to which ticket the log has taken entries, but for those that were lost.
    pub fn taken(&self) -> Ticket {
        self.log.taken()
    }

    /// Whether the log takes entries, as far as is known.
    pub fn is_taking(&self) -> bool {
        self.log.takes
    }

    /// Whether something is to be tried again ([`Recorder::try_again`]).
    pub fn has_to_retry(&self) -> bool {
        self.is_full() || !self.log.takes || self.log.missing.is_some()
    }

    /// Whether entries wait for memory of the log.
    pub fn is_full(&self) -> bool {
        !self.log.backlog.is_empty()
    }

    /// As if the log had taken nothing just now.
    #[cfg(test)]
    pub(crate) fn stop_taking(&mut self) {
        self.log.stop_taking(&self.recording.counters);
    }

    /// Sends what was recorded on its way to the medium, unless a group of entries is on it already.
    pub fn flush(&mut self) {
        if !self.is_flushed() {
            self.send();
        }
    }

    /// Finds out, where a group did not become durable, whether the log goes on: by another group, which may be empty.
    pub fn look_at_failures(&mut self) {
        self.log.tell_of(self.durable.told_in_vain.swap(0, Ordering::AcqRel));
        let failures = self.durable.failures.load(Ordering::Acquire);
        if failures != self.failures_seen && self.log.takes {
            self.failures_seen = failures;
            self.send();
        }
    }

    /// Tries again what the log did not take: to give it the backlog, or to have it tell how many operations are missing.
    pub fn try_again(&mut self) {
        if self.is_full() {
            self.drain(|producer, entry| producer.try_append(entry));
        } else {
            self.tell_missing();
        }
    }

    /// Has the log take what it takes, for whoever ends. Waits for memory as the log's option `append_timeout` says.
    pub fn finish(&mut self) {
        self.drain(Producer::append);
        if self.is_full() {
            self.give_up(&Error::new(ErrorKind::Timeout, "the memory of the log stayed full"));
        }
        if self.log.missing.is_some() && !self.is_flushed() && self.durable.is_on_its_way() {
            // They go before the gap. Nobody waits for them any more, and nobody is told that they are durable.
            drop(self.log.flush());
            self.durable.losses.note(self.flushed, self.log.taken());
            self.flushed = self.log.taken();
        }
        self.tell_missing();
    }

    /// Has the log tell how many operations it did not take, if it takes that by now: it takes entries again then. Of a log that failed
    /// before anything was not taken nothing is asked, since it fails for good. What was recorded before the gap is sent first, so that the
    /// gap's receipt is of the gap alone; where that has to wait for the group that is on its way, so does the gap.
    fn tell_missing(&mut self) {
        // What waits for memory was given a ticket before.
        let Some(missing) = self.log.missing.filter(|_| self.log.backlog.is_empty()) else { return };
        self.flush();
        if !self.is_flushed() {
            return;
        }
        let Recorder { recording, durable, log, .. } = self;
        let counters = &recording.counters;
        let payload = format!("{{\"unrecorded\":{missing}}}");
        let gap = Entry { operation: "gap", payload: Some(payload.as_bytes()), ..Entry::default() };
        match log.try_append(&gap) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Timeout => return,
            Err(_) => return log.stop_taking(counters),
        }
        if !std::mem::replace(&mut log.takes, true) {
            counters.taking_nothing.subtract(1);
        }
        counters.recorded.add(1);
        log.missing = None;
        let (durable, of_log) = (durable.clone(), counters.clone());
        let told = log.flush().and_then(|receipt| {
            receipt.when_durable(move |outcome| match outcome {
                Ok(()) => of_log.untold.subtract(missing),
                Err(_) => durable.tell_again(missing),
            })
        });
        if told.is_err() {
            log.missing = Some(missing);
            log.stop_taking(counters);
        }
    }

    fn send(&mut self) {
        if self.durable.on_its_way.swap(true, Ordering::AcqRel) {
            return;
        }
        let (durable, last) = (self.durable.clone(), self.log.taken());
        let group = || Group { before: self.flushed, last, last_lost: self.log.recorded };
        let (sent, refused) = (group(), group());
        self.flushed = last;
        let told = self
            .log
            .flush()
            .and_then(|receipt| receipt.when_durable(move |outcome| durable.decide(&sent, outcome.is_ok())));
        if told.is_err() {
            self.log.stop_taking(&self.recording.counters);
            self.durable.decide(&refused, false);
        }
    }

    /// Gives the log the backlog, in its order, as far as `append` can. What the log has had no memory for too long it never gets.
    fn drain(&mut self, append: impl Fn(&mut Producer, &Entry<'_>) -> bulla::Result<()>) {
        while let Some(appended) = self.append_first(&append) {
            let Recorder { recording, durable, log, .. } = self;
            match appended {
                Ok(()) => {
                    recording.counters.recorded.add(1);
                    log.backlog.since = log.clock.steady();
                    log.backlog.pop();
                }
                Err(error) if error.kind() == ErrorKind::Timeout && !log.is_out_of_patience() => return,
                Err(error) if error.kind() == ErrorKind::Invalid => {
                    durable.losses.note(log.taken(), log.taken() + 1);
                    let results = log.backlog.pop();
                    log.miss(results, &error, recording);
                }
                Err(error) => self.give_up(&error),
            }
        }
    }

    /// Gives the log the entry that waits longest; `None` where none does.
    fn append_first(
        &mut self,
        append: impl Fn(&mut Producer, &Entry<'_>) -> bulla::Result<()>,
    ) -> Option<bulla::Result<()>> {
        let Appender { backlog, producer, .. } = &mut self.log;
        let entry = backlog.first()?;
        Some(producer.as_mut().map_or_else(|| Err(gone()), |producer| append(producer, &entry)))
    }

    /// The log never gets the backlog.
    fn give_up(&mut self, error: &Error) {
        let Recorder { recording, durable, log, .. } = self;
        durable.losses.note(log.taken(), log.recorded);
        let results = log.backlog.clear();
        log.miss(results, error, recording);
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Closed, "the log has failed, and is not opened again yet")
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let Recorder { recording, log, .. } = self;
        let held = log.backlog.clear();
        recording.counters.unrecorded.add(held);
        recording.counters.untold.add(held);
        recording.counters.orphaned.add(log.missing.unwrap_or(0) + held);
        if !log.takes {
            recording.counters.taking_nothing.subtract(1);
        }
    }
}

impl Appender {
    /// Up to which ticket the log has taken entries, but for those that were lost.
    fn taken(&self) -> Ticket {
        self.recorded - self.backlog.len()
    }

    /// Gives the log an entry, which is the result of so many operations.
    fn append(&mut self, entry: &Entry<'_>, results: u64, recording: &Recording) -> Result<(), Unrecorded> {
        let counters = &recording.counters;
        if !self.takes {
            return self.go_without(results, &Error::unavailable("the log takes no entries"), recording);
        }
        // What came before it goes first.
        if self.backlog.is_empty() {
            match self.try_append(entry) {
                Ok(()) => {
                    self.recorded += 1;
                    counters.recorded.add(1);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Timeout => {
                    counters.waits.add(1);
                    self.backlog.since = self.clock.steady();
                }
                Err(error) => return self.go_without(results, &error, recording),
            }
        }
        self.recorded += 1;
        self.backlog.push(entry, results);
        Ok(())
    }

    fn try_append(&mut self, entry: &Entry<'_>) -> bulla::Result<()> {
        self.producer.as_mut().map_or_else(|| Err(gone()), |producer| producer.try_append(entry))
    }

    fn flush(&mut self) -> bulla::Result<Receipt> {
        self.producer.as_mut().map_or_else(|| Err(gone()), Producer::flush)
    }

    /// What becomes of an entry that the log did not take.
    #[cold]
    fn go_without(&mut self, results: u64, error: &Error, recording: &Recording) -> Result<(), Unrecorded> {
        self.miss(results, error, recording);
        match recording.unrecordable {
            Unrecordable::Pass => Ok(()),
            Unrecordable::Refuse => Err(Unrecorded),
        }
    }

    /// The log did not take something, the results of so many operations.
    fn miss(&mut self, count: u64, error: &Error, recording: &Recording) {
        // What is wrong with one entry is not wrong with the next.
        if error.kind() != ErrorKind::Invalid {
            self.stop_taking(&recording.counters);
            // Whether or not anything is missing, this is how it is found out that it takes entries again.
            self.missing.get_or_insert(0);
        }
        recording.warnings.once(Kind::Unrecorded, || format!("an operation could not be recorded: {error}"));
        self.tell_of(count);
        recording.counters.unrecorded.add(count);
        recording.counters.untold.add(count);
    }

    /// So many operations are to be told of besides.
    fn tell_of(&mut self, count: u64) {
        if count > 0 {
            *self.missing.get_or_insert(0) += count;
        }
    }

    fn stop_taking(&mut self, counters: &Counters) {
        if std::mem::take(&mut self.takes) {
            counters.taking_nothing.add(1);
        }
    }

    fn is_out_of_patience(&self) -> bool {
        self.clock.steady().saturating_sub(self.backlog.since) >= self.patience
    }
}

impl Record for Recorder {
    fn record(&mut self, operation: &Operation<'_>) -> Result<(), Unrecorded> {
        self.tell_missing();
        let Recorder { recording, log, payload, time, .. } = self;
        let claims_count = recording.claims.iter().any(|user| user == operation.actor);
        let whose = match (operation.target, operation.subject) {
            (Target::Key { .. }, Some(subject)) => Some(Whose::Subject(subject.into())),
            (Target::Key { key, length, .. }, None) => {
                let known = Key { bytes: key, whole: key.len() as u64 == length };
                Some(recording.rules.whose(operation.database, known, &recording.learned))
            }
            _ => None,
        };
        // What is nobody's could not be erased with anybody.
        let is_somebodys = matches!(whose, Some(Whose::Subject(_) | Whose::Default(_)));
        let most = recording.record_values.filter(|_| is_somebodys);
        payload.clear();
        payload::describe(operation, claims_count, most, payload);
        let location;
        let mut entry = Entry {
            time: Some(*time.get_or_insert_with(|| log.clock.now())),
            operation: "administer",
            client: Some(operation.client),
            actor: Some(operation.actor),
            purpose: operation.purpose.filter(|_| claims_count),
            status: Some(operation.status as u32),
            duration: operation.duration,
            size: operation.size,
            payload: Some(payload.as_bytes()),
            ..Entry::default()
        };
        match operation.target {
            Target::Key { key, length, digest, access } => {
                entry.operation = access.word();
                location = recording.rules.location(key, length, digest.as_ref());
                entry.location = Some(location.as_bytes());
                match &whose {
                    Some(Whose::Subject(subject)) => entry = entry.subject(subject),
                    Some(Whose::Default(subject)) => entry = entry.subject(subject),
                    Some(Whose::Unmapped | Whose::Undecided) | None => recording.counters.unmapped.add(1),
                }
            }
            Target::Unknowable(Unknowable::Script, _) => entry.operation = "execute",
            Target::Unknowable(..) => entry.operation = "access",
            Target::Unlisted(..) => entry.operation = "list",
            Target::Server(_) => {}
            Target::Unaudited => {
                entry.operation = "relay";
                recording.counters.unaudited.add(1);
            }
        }
        if operation.status == Status::Unknown && operation.stage == Stage::Over {
            recording.counters.unknown.add(1);
        }
        log.append(&entry, u64::from(operation.stage == Stage::Over), recording)
    }

    fn refused(&mut self, why: RefusedCommand) {
        self.recording.counters.refused_command(why).add(1);
    }

    fn redirected(&mut self) {
        let Recording { counters, warnings, .. } = &*self.recording;
        counters.redirects.add(1);
        warnings.once(Kind::Redirect, || {
            "an answer sends a client to another server (MOVED, ASK, SENTINEL), where nothing is recorded of it".to_owned()
        });
    }

    fn takes(&mut self) -> bool {
        match self.recording.unrecordable {
            Unrecordable::Pass => true,
            Unrecordable::Refuse => {
                self.tell_missing();
                self.log.takes
            }
        }
    }

    fn now(&mut self) -> i64 {
        let Recorder { time, log, .. } = self;
        *time.get_or_insert_with(|| log.clock.now())
    }

    fn ticket(&self) -> Ticket {
        self.log.recorded
    }

    fn held(&self) -> Ticket {
        if self.log.backlog.is_empty() { 0 } else { self.log.recorded }
    }

    fn missed(&mut self, count: u64) {
        let Recorder { recording, log, .. } = self;
        log.tell_of(count);
        recording.counters.unrecorded.add(count);
        recording.counters.untold.add(count);
    }

    fn learn<'a>(&mut self, carried_out: &CarriedOut<'a>) -> Said<'a> {
        let Recording { rules, learned, .. } = &*self.recording;
        learning::learn(rules, learned, carried_out)
    }

    fn forget(&mut self, carried_out: &CarriedOut<'_>, said: &Said<'_>) {
        learning::forget(&self.recording.learned, carried_out, said.contested);
    }
}
