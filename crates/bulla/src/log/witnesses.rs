//! The threads that ask a log's witnesses: one that says who is asked for what and keeps the answers, and one for each witness that is
//! being asked, which waits for the network.
//!
//! Nobody waits for these: not whoever appends, commits or signs; whoever closes the log does for [`CLOSING`] at most, and what is
//! still being asked then is left to its own limit in time, and writes nothing any more.

use crate::format::config::LogConfig;
use crate::keys::refusals::{self, WitnessRefusal};
use crate::scan::cosignatures::read_published;
use crate::witness::{Asked, Job, Refusal, Witnessing, ask};
use crate::write::engine::Engine;
use bulla_http::Client;
use bulla_proof::tree::TreeHead;
use bulla_store::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long closing a log waits for its witnesses, at most.
pub(crate) const CLOSING: Duration = Duration::from_secs(5);
/// How often it is looked whether there is a new checkpoint.
const TICK: Duration = Duration::from_millis(200);

/// See the module.
pub(super) struct Witnesses {
    thread: JoinHandle<()>,
    messages: Sender<Message>,
}

enum Message {
    /// The log is being closed, and signs no more.
    Close,
    /// What came of asking a witness for a checkpoint, of the policy that counted then.
    Asked { generation: u64, index: usize, head: TreeHead, asked: Asked },
}

impl Witnesses {
    /// Asks the log's witnesses from now on, as they are in `[log]` at any time.
    ///
    /// # Errors
    /// Where the thread cannot be started.
    pub(super) fn start(engine: &Arc<Engine>) -> std::io::Result<Self> {
        let (messages, received) = channel();
        let (engine, answers) = (engine.clone(), messages.clone());
        let run = move || {
            Asking {
                engine: &engine,
                answers,
                generation: 0,
                witnessing: None,
                client: None,
                since: None,
                told: None,
                refusals: Vec::new(),
            }
            .run(&received);
        };
        let thread = std::thread::Builder::new().name("bulla-witnesses".to_owned()).spawn(run)?;
        Ok(Witnesses { thread, messages })
    }

    /// Asks for the last checkpoint, and ends: after [`CLOSING`] at the latest.
    pub(super) fn close(self) {
        // It has ended by itself where it does not hear.
        let _ = self.messages.send(Message::Close);
        let _ = self.thread.join();
    }
}

struct Asking<'a> {
    engine: &'a Arc<Engine>,
    answers: Sender<Message>,
    /// Counts policies: an answer to what an earlier one had asked is of nobody.
    generation: u64,
    witnessing: Option<Witnessing>,
    client: Option<Client>,
    /// When the newest target was begun with, by the steady clock.
    since: Option<u64>,
    /// What was told last of what fails here.
    told: Option<String>,
    /// The witnesses that refuse the log for good, as the key directory remembers them.
    refusals: Vec<WitnessRefusal>,
}

impl Asking<'_> {
    fn run(mut self, messages: &Receiver<Message>) {
        match refusals::load(&*self.engine.keys) {
            Ok(kept) => self.refusals = kept,
            Err(error) => self.tell(&error.to_string()),
        }
        loop {
            if let Err(error) = self.begin(false) {
                self.tell(&error.to_string());
            }
            match messages.recv_timeout(TICK) {
                Ok(Message::Asked { generation, index, head, asked }) => {
                    self.take(generation, index, head, asked)
                }
                Ok(Message::Close) => return self.finish(messages),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Asks for what the log signed last, and waits for the answers, but not longer than [`CLOSING`].
    fn finish(mut self, messages: &Receiver<Message>) {
        let until = bulla_crypto::clock::Deadline::after(CLOSING);
        if self.engine.progress.failure().is_some() || self.begin(true).is_err() {
            return;
        }
        while self.witnessing.as_ref().is_some_and(|witnessing| !witnessing.is_settled()) {
            match messages.recv_timeout(until.left()) {
                Ok(Message::Asked { generation, index, head, asked }) => {
                    self.take(generation, index, head, asked);
                    // One that was slow has yet to be asked for the last one.
                    self.ask(true);
                }
                Ok(Message::Close) => {}
                Err(_) => return self.give_up(),
            }
        }
    }

    /// Tells who has not answered, and ends.
    fn give_up(mut self) {
        let why = format!("it has not answered within {} s of closing the log", CLOSING.as_secs());
        let told = self.witnessing.as_mut().map_or_else(Vec::new, |witnessing| witnessing.give_up(&why));
        told.iter().for_each(|told| self.tell(told));
        self.publish_standing();
    }

    /// Has the newest checkpoint asked for, where it is time for that, and whoever is to be asked asked.
    fn begin(&mut self, closing: bool) -> Result<()> {
        let engine = self.engine;
        let config = engine.config();
        let stale = self.witnessing.as_ref().is_some_and(|witnessing| !witnessing.is_of(&config));
        if stale || self.witnessing.is_none() && config.witness_policy.is_some() {
            self.generation += 1;
            self.witnessing = Witnessing::new(&engine.log, &config)?;
            self.since = None;
            self.publish_standing();
        }
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
        self.ask(closing);
        Ok(())
    }

    /// Starts a thread for each witness that is to be asked now.
    fn ask(&mut self, closing: bool) {
        let engine = self.engine;
        let now = engine.environment.clock.steady();
        let Some(witnessing) = &mut self.witnessing else { return };
        let begun = witnessing.next(now, closing);
        if begun.is_empty() {
            return;
        }
        let client = match &self.client {
            Some(client) => Ok(client.clone()),
            None => {
                Client::new(&bulla_http::Options { plain_loopback: true, ..bulla_http::Options::default() })
            }
        };
        self.client = client.as_ref().ok().cloned();
        for (index, witness, known, job) in begun {
            let (answers, generation, head) = (self.answers.clone(), self.generation, job.head);
            let (store, clock) = (engine.log.clone(), engine.environment.clock.clone());
            let failed = |why: String| Asked { known, outcome: Err(Refusal::passing(why)) };
            let started = client.clone().map_err(|error| error.to_string()).and_then(|client| {
                let answers = answers.clone();
                let run = move || {
                    let asked = ask(&client, &*store, &*clock, (&witness, known), &job);
                    // Nobody listens any more where the log was closed.
                    let _ = answers.send(Message::Asked { generation, index, head, asked });
                };
                let thread = std::thread::Builder::new().name("bulla-witness".to_owned()).spawn(run);
                thread.map(drop).map_err(|error| format!("starting a thread that asks it: {error}"))
            });
            if let Err(why) = started {
                let _ = answers.send(Message::Asked { generation, index, head, asked: failed(why) });
            }
        }
    }

    fn take(&mut self, generation: u64, index: usize, head: TreeHead, asked: Asked) {
        let engine = self.engine;
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

    fn publish_standing(&self) {
        let standing = self.witnessing.as_ref().map(Witnessing::telemetry);
        self.engine.set_witnesses(standing.unwrap_or_default());
    }

    /// Tells what fails, once.
    fn tell(&mut self, what: &str) {
        if self.told.as_deref() != Some(what) {
            self.engine.back_off.tell(&what);
            self.told = Some(what.to_owned());
        }
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
