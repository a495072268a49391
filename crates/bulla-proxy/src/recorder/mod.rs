//! [`Recorder`]: turns operations into entries of the log, for all connections of one worker.
//!
//! Invariants:
//! - tickets are given in the order of the entries, and one is durable once all before it are;
//! - at most one group of entries is on its way to the medium for each worker: what is recorded meanwhile goes with the next one,
//!   so that one sync serves all connections;
//! - nothing is allocated for an entry in the steady state, but for keys that are written in another form than they have.
//!
//! Where the log takes nothing, an entry `gap` says how many operations are missing as soon as it takes that. Where its memory is full, the worker waits for it, as long as the log's option `append_timeout` says: no connection of
//! its could go on without.

mod forget;
mod payload;
#[cfg(test)]
mod tests;

use crate::command::{Access, Unknowable};
use crate::config::Unrecordable;
use crate::counters::{Counters, RefusedCommand};
use crate::session::{CarriedOut, Operation, Record, Stage, Status, Target, Ticket, Unrecorded};
use crate::subject::{Key, Learned, Rules, Whose};
use crate::warnings::{Kind, Warnings};
use bulla::{Entry, Error, ErrorKind, Log, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// How many entries of one worker are durable, as the log's own thread tells it.
pub struct Durable {
    /// The ticket up to which entries are.
    ticket: AtomicU64,
    /// Whether a group of them is on its way.
    on_its_way: AtomicBool,
    /// Entries were lost, or will never be durable.
    failed: AtomicBool,
    /// Called when any of these has changed.
    changed: Box<dyn Fn() + Send + Sync>,
}

impl Durable {
    /// The ticket up to which entries are durable.
    pub fn ticket(&self) -> Ticket {
        self.ticket.load(Ordering::Acquire)
    }

    /// Whether a group of entries is on its way.
    pub fn is_on_its_way(&self) -> bool {
        self.on_its_way.load(Ordering::Acquire)
    }

    /// Whether entries will never be durable that were recorded.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

/// See the module.
pub struct Recorder {
    recording: Arc<Recording>,
    durable: Arc<Durable>,
    log: Appender,
    /// How many entries were sent on their way.
    flushed: Ticket,
    payload: String,
}

/// The way into the log.
struct Appender {
    producer: Producer,
    /// How many entries the log was given.
    recorded: Ticket,
    /// Whether the log takes entries, as far as is known.
    takes: bool,
    /// How many operations it did not take since it last did.
    missing: u64,
}

impl Recorder {
    /// Records in `log`. `changed` is called by a thread of the log whenever more is durable.
    ///
    /// # Errors
    /// As [`Log::producer`].
    pub fn new(
        log: &Log,
        recording: Arc<Recording>,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> bulla::Result<Self> {
        let durable = Durable {
            ticket: AtomicU64::new(0),
            on_its_way: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            changed: Box::new(changed),
        };
        Ok(Recorder {
            recording,
            durable: Arc::new(durable),
            log: Appender { producer: log.producer()?, recorded: 0, takes: true, missing: 0 },
            flushed: 0,
            payload: String::new(),
        })
    }

    /// From now on entries come to be like this.
    pub fn adopt(&mut self, recording: Arc<Recording>) {
        self.recording = recording;
    }

    /// How far this recorder's entries are durable.
    pub fn durable(&self) -> &Arc<Durable> {
        &self.durable
    }

    /// Whether everything that was recorded is on its way.
    pub fn is_flushed(&self) -> bool {
        self.flushed == self.log.recorded
    }

    /// Sends what was recorded on its way to the medium, unless a group of entries is on it already.
    pub fn flush(&mut self) {
        if self.is_flushed() || self.durable.on_its_way.swap(true, Ordering::AcqRel) {
            return;
        }
        let (durable, ticket) = (self.durable.clone(), self.log.recorded);
        self.flushed = ticket;
        let told = self.log.producer.flush().and_then(|receipt| {
            receipt.when_durable(move |outcome| {
                match outcome {
                    Ok(()) => drop(durable.ticket.fetch_max(ticket, Ordering::AcqRel)),
                    Err(_) => durable.failed.store(true, Ordering::Release),
                }
                durable.on_its_way.store(false, Ordering::Release);
                (durable.changed)();
            })
        });
        if told.is_err() {
            self.durable.failed.store(true, Ordering::Release);
            self.durable.on_its_way.store(false, Ordering::Release);
            (self.durable.changed)();
        }
    }
}

impl Appender {
    fn append(&mut self, entry: &Entry<'_>, recording: &Recording) -> Result<(), Unrecorded> {
        let counters = &recording.counters;
        let appended = match self.takes || self.resume(counters) {
            true => match self.producer.try_append(entry) {
                Err(error) if error.kind() == ErrorKind::Timeout => {
                    counters.waits.add(1);
                    self.producer.append(entry)
                }
                appended => appended,
            },
            false => Err(Error::unavailable("the log takes no entries")),
        };
        match appended {
            Ok(()) => {
                self.recorded += 1;
                counters.recorded.add(1);
                Ok(())
            }
            Err(error) => {
                // What is wrong with one entry is not wrong with the next.
                if self.takes && error.kind() != ErrorKind::Invalid {
                    self.takes = false;
                    counters.taking_nothing.add(1);
                }
                let told = || format!("an operation could not be recorded: {error}");
                recording.warnings.once(Kind::Unrecorded, told);
                self.missing += 1;
                counters.unrecorded.add(1);
                match recording.unrecordable {
                    Unrecordable::Pass => Ok(()),
                    Unrecordable::Refuse => Err(Unrecorded),
                }
            }
        }
    }

    /// Has the log tell how many operations it did not take, if it takes that by now.
    fn resume(&mut self, counters: &Counters) -> bool {
        let payload = format!("{{\"unrecorded\":{}}}", self.missing);
        let gap = Entry { operation: "gap", payload: Some(payload.as_bytes()), ..Entry::default() };
        self.takes = self.producer.try_append(&gap).is_ok();
        if self.takes {
            counters.taking_nothing.subtract(1);
            (self.recorded, self.missing) = (self.recorded + 1, 0);
        }
        self.takes
    }
}

impl Record for Recorder {
    fn record(&mut self, operation: &Operation<'_>) -> Result<(), Unrecorded> {
        let Recorder { recording, log, payload, .. } = self;
        let claims_count = recording.claims.iter().any(|user| user == operation.actor);
        let whose = match operation.target {
            Target::Key { key, length, .. } => {
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
                entry.operation = verb(access);
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
            Target::Server => {}
            Target::Unaudited => {
                entry.operation = "relay";
                recording.counters.unaudited.add(1);
            }
        }
        if operation.status == Status::Unknown && operation.stage == Stage::Over {
            recording.counters.unknown.add(1);
        }
        log.append(&entry, recording)
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
                !self.durable.has_failed() && (self.log.takes || self.log.resume(&self.recording.counters))
            }
        }
    }

    fn ticket(&self) -> Ticket {
        self.log.recorded
    }

    fn learn(&mut self, carried_out: &CarriedOut<'_>) {
        let Recording { rules, learned, .. } = &*self.recording;
        let mut last = 0;
        for used in &carried_out.effect.keys {
            let writes = matches!(used.access, Access::Create | Access::Write | Access::Update);
            if !writes || used.argument == last {
                continue;
            }
            last = used.argument;
            let database = used.database.unwrap_or(carried_out.database);
            let arguments = carried_out.arguments;
            // One of that name has gone without a command, and what was known of it holds no more.
            if carried_out.created
                && let Some(key) = arguments.get(used.argument).filter(|_| arguments.is_whole(used.argument))
            {
                learned.forget_gone(database, key, carried_out.came);
            }
            let words = (carried_out.command, used.argument, arguments as &_);
            rules.learn(database, words, carried_out.answer, (learned, carried_out.answered));
        }
    }

    fn forget(&mut self, carried_out: &CarriedOut<'_>) {
        forget::follow(&self.recording.learned, carried_out);
    }
}

/// The word of an entry for what became of a key.
fn verb(access: Access) -> &'static str {
    match access {
        Access::Create => "create",
        Access::Read => "read",
        Access::Write => "write",
        Access::Update => "update",
        Access::Delete => "delete",
    }
}
