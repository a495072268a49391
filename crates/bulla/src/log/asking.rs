//! What of asking a log's witnesses needs no thread: for which checkpoint each is to be asked now, and what becomes of its answer.
//! [`super::witnesses`] has it done by threads; of a log without any, whoever steps it does, by [`SteppedWitnesses`].

use crate::format::config::{AskedWitness, LogConfig};
use crate::keys::refusals::{self, WitnessRefusal};
use crate::scan::cosignatures::read_published;
use crate::witness::{Asked, Job, Post, Refusal, Witnessing, ask};
use crate::write::engine::Engine;
use bulla_crypto::environment::Clock;
use bulla_http::Answer;
use bulla_proof::tree::TreeHead;
use bulla_store::{Result, Store};
use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// See the module.
pub(super) struct Asking {
    engine: Arc<Engine>,
    /// Counts policies: an answer to what an earlier one had asked is of nobody.
    generation: u64,
    witnessing: Option<Witnessing>,
    /// When the newest target was begun with, by the steady clock.
    since: Option<u64>,
    /// What was told last of what fails here.
    told: Option<String>,
    /// The witnesses that refuse the log for good, as the key directory remembers them.
    refusals: Vec<WitnessRefusal>,
}

/// What a witness is to be asked. It keeps nothing of the log open but its store.
#[doc(hidden)]
pub struct Question {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    generation: u64,
    index: usize,
    witness: Arc<AskedWitness>,
    known: Option<u64>,
    job: Job,
}

/// What a witness answers to a body that is posted to it, status and body, or why there is no answer.
#[doc(hidden)]
pub type Posted = Result<(u16, Vec<u8>), String>;

/// What came of a question.
#[doc(hidden)]
pub struct Answered {
    /// Of which policy.
    generation: u64,
    index: usize,
    head: TreeHead,
    asked: Asked,
}

impl Asking {
    pub(super) fn new(engine: &Arc<Engine>) -> Self {
        let mut asking = Asking {
            engine: engine.clone(),
            generation: 0,
            witnessing: None,
            since: None,
            told: None,
            refusals: Vec::new(),
        };
        match refusals::load(&*engine.keys) {
            Ok(kept) => asking.refusals = kept,
            Err(error) => asking.tell(&error.to_string()),
        }
        asking
    }

    /// Whether every witness that there is was asked for the newest target, and has answered or failed.
    pub(super) fn is_settled(&self) -> bool {
        self.witnessing.as_ref().is_none_or(Witnessing::is_settled)
    }

    /// Has the newest checkpoint asked for, where it is time for that.
    ///
    /// # Errors
    /// Where the log's files cannot be read.
    pub(super) fn begin(&mut self, closing: bool) -> Result<()> {
        let engine = &self.engine;
        let config = engine.config();
        let stale = self.witnessing.as_ref().is_some_and(|witnessing| !witnessing.is_of(&config));
        if stale || self.witnessing.is_none() && config.witness_policy.is_some() {
            self.generation += 1;
            self.witnessing = Witnessing::new(&engine.log, &config, &self.refusals)?;
            self.since = None;
            self.publish_standing();
            let told = self.witnessing.as_ref().map_or_else(Vec::new, Witnessing::told_of_refusals);
            told.iter().for_each(|told| self.tell(told));
        }
        let engine = &self.engine;
        let now = engine.environment.clock.steady();
        let Some(witnessing) = &mut self.witnessing else { return Ok(()) };
        let published = engine.published();
        let interval = u64::try_from(engine.tuning.witness_interval.as_nanos()).unwrap_or(u64::MAX);
        let due = closing || self.since.is_none_or(|since| now.saturating_sub(since) >= interval);
        if due
            && published.size > 0
            && witnessing.targeted() != Some(published)
            && let Some(job) = job(engine, &config)?
        {
            witnessing.target(job);
            self.since = Some(now);
        }
        Ok(())
    }

    /// What is to be asked now, of each witness that is to be.
    pub(super) fn questions(&mut self, closing: bool) -> Vec<Question> {
        let (engine, generation) = (&self.engine, self.generation);
        let Some(witnessing) = &mut self.witnessing else { return Vec::new() };
        let begun = witnessing.next(engine.environment.clock.steady(), closing).into_iter();
        let question = |(index, witness, known, job)| Question {
            store: engine.log.clone(),
            clock: engine.environment.clock.clone(),
            generation,
            index,
            witness,
            known,
            job,
        };
        begun.map(question).collect()
    }

    /// Keeps what a witness answered.
    pub(super) fn take(&mut self, Answered { generation, index, head, asked }: Answered) {
        let engine = &self.engine;
        let Some(witnessing) = self.witnessing.as_mut().filter(|_| generation == self.generation) else {
            return;
        };
        // Where the directory was moved or replaced, nothing is written to it any more.
        if engine.require_in_place().is_err() {
            return;
        }
        let taken = witnessing.take(index, head, asked, engine.environment.clock.steady());
        if let Some((head, note)) = taken.cosigned {
            engine.publish_cosigned(head, note);
        }
        if let Some(told) = taken.told {
            self.tell(&told);
        }
        if let Err(error) = self.remember(index, head.size) {
            self.tell(&error.to_string());
        }
        self.publish_standing();
    }

    /// Has the key directory remember whether a witness refuses the log, which has so many frames: for whoever looks after the writer has ended.
    fn remember(&mut self, index: usize, frames: u64) -> Result<()> {
        let Some(witnessing) = &self.witnessing else { return Ok(()) };
        let (key_id, why) = witnessing.refusal(index);
        let known = self.refusals.iter().position(|refusal| refusal.key_id == key_id);
        match (known, why) {
            (None, Some(why)) => {
                let time = self.engine.environment.clock.now().div_euclid(1_000_000_000);
                self.refusals.push(WitnessRefusal::new(key_id, time, frames, why));
            }
            // What fails in passing mends nothing.
            (Some(at), None) if witnessing.has_cosigned(index, frames) => drop(self.refusals.remove(at)),
            _ => return Ok(()),
        }
        refusals::store(&*self.engine.keys, &self.refusals)
    }

    /// Tells who has not answered, for that reason.
    pub(super) fn give_up(&mut self, why: &str) {
        let told = self.witnessing.as_mut().map_or_else(Vec::new, |witnessing| witnessing.give_up(why));
        told.iter().for_each(|told| self.tell(told));
        self.publish_standing();
    }

    fn publish_standing(&self) {
        let standing = self.witnessing.as_ref().map(Witnessing::telemetry);
        self.engine.set_witnesses(standing.unwrap_or_default());
    }

    /// Tells what fails, once.
    pub(super) fn tell(&mut self, what: &str) {
        if self.told.as_deref() != Some(what) {
            self.engine.back_off.tell(&what);
            self.told = Some(what.to_owned());
        }
    }
}

impl Question {
    /// Asks, by `post`.
    pub(super) fn ask(&self, post: &Post<'_>) -> Answered {
        let Question { store, clock, witness, known, job, .. } = self;
        self.answered(ask(post, &**store, &**clock, (witness, *known), job))
    }

    /// That it could not be asked.
    pub(super) fn failed(&self, why: String) -> Answered {
        self.answered(Asked { known: self.known, outcome: Err(Refusal::passing(why)) })
    }

    fn answered(&self, asked: Asked) -> Answered {
        Answered { generation: self.generation, index: self.index, head: self.job.head, asked }
    }
}

/// The witnesses of a log without threads, which whoever steps the log has asked: for simulators and tests.
#[doc(hidden)]
pub struct SteppedWitnesses(pub(super) Asking);

impl SteppedWitnesses {
    /// What is to be asked now, of each witness that is to be. With `closing` each is asked for the newest checkpoint, whatever it paused
    /// for.
    ///
    /// # Errors
    /// Where the log's files cannot be read.
    pub fn questions(&mut self, closing: bool) -> Result<Vec<Question>> {
        self.0.begin(closing)?;
        Ok(self.0.questions(closing))
    }

    /// Keeps what a witness answered.
    pub fn take(&mut self, answered: Answered) {
        self.0.take(answered);
    }
}

impl Question {
    /// The name of the witness in the log's policy.
    pub fn witness(&self) -> &str {
        &self.witness.name
    }

    /// Asks by `post`, which is given the body.
    pub fn ask_by(&self, post: &dyn Fn(&[u8]) -> Posted) -> Answered {
        self.ask(&|_, body| post(body).map(|(status, body)| Answer { status, content_type: None, body }))
    }
}

impl Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.job.head.size;
        f.debug_struct("Question")
            .field("witness", &self.witness.name)
            .field("size", &size)
            .finish_non_exhaustive()
    }
}

impl Debug for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.asked.outcome.as_ref().map(|(_, time)| time);
        f.debug_struct("Answered")
            .field("size", &self.head.size)
            .field("outcome", &outcome)
            .finish_non_exhaustive()
    }
}

impl Debug for SteppedWitnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteppedWitnesses").finish_non_exhaustive()
    }
}

/// The checkpoint that is published, to be asked for.
fn job(engine: &Arc<Engine>, config: &LogConfig) -> Result<Option<Job>> {
    let Some((note, head)) = read_published(&*engine.log, config)? else { return Ok(None) };
    let text = note.find("\n\n").map(|end| note[..=end].into());
    let known = Arc::new(AtomicU64::new(head.size));
    let engine: Weak<Engine> = Arc::downgrade(engine);
    let newest = Arc::new(move || {
        let now = engine.upgrade().map_or(0, |engine| engine.published().size);
        known.fetch_max(now, Ordering::Relaxed).max(now)
    });
    Ok(text.map(|text| Job { note: note.into(), text, head, newest }))
}
