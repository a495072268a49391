//! A life of a log: what is done to it is chosen by a seed.

use super::world::{Counts, History, Outcome, environment};
use crate::helpers::Rng;
use bulla::{
    Durability, ErrorKind, Init, Log, Options, Place, Producer, Receipt, Source, SourceId, Step, Telemetry,
};
use bulla_testkit::fault::Faults;
use std::sync::Arc;
use std::time::Duration;

/// An age recipient, to be named only: keys are wrapped by the simulated environment.
pub(super) const RECIPIENT: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";

/// The source that the first two producers of all sessions have their entries from.
pub(super) const SOURCE: SourceId = SourceId([7; 16]);

/// Where the pin lies, and in which directory of the machine.
pub(super) const PIN: &str = "/audit.pin";
pub(super) const ELSEWHERE: &str = "elsewhere";

/// Where in the source an entry of a producer of this name stands, if it is from there. What the two have of a session meets, record
/// by record, and what they have of two sessions does not.
pub(super) fn place(name: &str, index: u64) -> Option<Place> {
    let (session, writer) = name.strip_prefix('s')?.split_once('p')?;
    let (session, writer) = (session.parse::<u64>().ok()?, writer.parse::<u64>().ok()?);
    let start = (session << 32) + 10 * (2 * index + writer);
    (writer < 2).then(|| Place { range: start..start + 10, check: start ^ 0x5555_5555 })
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Three sessions with large payloads: segments rotate several times.
    Rotations,
    /// The same, shorter.
    Short,
    /// Two sessions that pass frame 256, where tiles become full.
    Tiles,
}

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) shape: Shape,
    pub(super) mode: Durability,
    pub(super) seed: u64,
}

pub(super) const MODES: [Durability; 3] =
    [Durability::Group, Durability::Interval(Duration::from_secs(1)), Durability::Os];

impl Scenario {
    pub(super) fn history(&self) -> History {
        History::new(self.seed, if self.shape == Shape::Tiles { 30 } else { 2500 })
    }

    pub(super) fn options(&self) -> Options {
        let options = Options::default().memory(64 << 20).block_size(4 << 10).segment_size(64 << 10);
        options.writers(1).compression(0).retries(2).durability(self.mode)
    }

    /// Makes a log and runs its life, up to the first failure.
    ///
    /// # Errors
    /// The failure, which is `Unavailable`: nothing else can come of a crash or a fault.
    pub(super) fn run(&self, machine: &Faults, history: &mut History) -> bulla::Result<()> {
        self.init(machine, history)?;
        self.live(machine, history)
    }

    /// Makes the log.
    pub(super) fn init(&self, machine: &Faults, history: &History) -> bulla::Result<()> {
        let init = Init::default().origin("example.com/audit").recipient(RECIPIENT);
        let environment = environment(self.seed ^ 0xabcd, &history.recorder);
        init.create_in(&machine.store("audit"), &machine.store("audit.keys"), &environment).map(|_| ())
    }

    /// The sessions of its life.
    pub(super) fn live(&self, machine: &Faults, history: &mut History) -> bulla::Result<()> {
        for steps in self.sessions() {
            self.session(machine, history, *steps)?;
        }
        Ok(())
    }

    pub(super) fn sessions(&self) -> &'static [u64] {
        match self.shape {
            Shape::Rotations => &[70, 45, 20],
            Shape::Short => &[45, 15],
            Shape::Tiles => &[30, 12],
        }
    }

    /// Opens the log, does so many steps, and closes it.
    pub(super) fn session(&self, machine: &Faults, history: &mut History, steps: u64) -> bulla::Result<()> {
        self.session_around(machine, history, (steps, 0), |_| Ok(()))
    }

    /// Opens the log, does so many steps before something else and after it, and closes it.
    pub(super) fn session_around(
        &self,
        machine: &Faults,
        history: &mut History,
        (before, after): (u64, u64),
        meanwhile: impl FnOnce(&Log) -> bulla::Result<()>,
    ) -> bulla::Result<()> {
        let number = history.begin_session();
        let seed = history.seed.rotate_left(17) ^ number.wrapping_mul(0x5851_f42d_4c95_7f2d);
        let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
        let (mut options, mut environment) = (self.options(), environment(seed, &history.recorder));
        if history.pinned {
            options = options.pin(PIN);
            environment.pins = Some(Arc::new(machine.store(ELSEWHERE)));
        }
        let opened = Log::open_stepped(log, keys, options, environment);
        let opened = opened.inspect_err(|_| history.note_checkpoint(machine))?;
        // What recovery adopted, it has made durable.
        history.synced = history.written.clone();
        let mut session = Session {
            scenario: self,
            log: opened,
            machine,
            history,
            name: format!("s{number}p"),
            writers: Vec::new(),
            receipts: Vec::new(),
        };
        let source = session.log.source(SOURCE, format!("session {number}").as_bytes());
        let source = match source {
            Ok(source) => source,
            Err(error) => return session.end(Err(error)),
        };
        for index in 0..3 {
            let name = format!("{}{index}", session.name);
            let producer = session.log.producer()?;
            // The third one has its entries from nowhere.
            let source = (index < 2).then(|| source.clone());
            session.writers.push(Writer { name, producer, source, appended: 0 });
        }
        let mut rng = Rng(seed);
        let burst = if self.shape == Shape::Tiles && number == 1 { 248 } else { 0 };
        let done = session.burst(burst).and_then(|()| session.steps(&mut rng, before));
        let done = done.and_then(|()| meanwhile(&session.log)).and_then(|()| session.steps(&mut rng, after));
        session.end(done)
    }
}

struct Writer {
    name: String,
    producer: Producer,
    source: Option<Source>,
    appended: u64,
}

struct Session<'a> {
    scenario: &'a Scenario,
    log: Log,
    machine: &'a Faults,
    history: &'a mut History,
    /// What the names of its producers begin with.
    name: String,
    writers: Vec<Writer>,
    receipts: Vec<(Receipt, String, u64)>,
}

impl Session<'_> {
    /// As many frames, committed as one group.
    fn burst(&mut self, frames: u64) -> bulla::Result<()> {
        for index in 0..frames {
            self.append((index % 3) as usize)?;
            self.log.step(Step::Linger)?;
            self.log.step(Step::Seal)?;
        }
        Ok(())
    }

    fn steps(&mut self, rng: &mut Rng, steps: u64) -> bulla::Result<()> {
        for _ in 0..steps {
            let outcome = self.step(rng);
            self.poll();
            outcome?;
        }
        Ok(())
    }

    fn step(&mut self, rng: &mut Rng) -> bulla::Result<()> {
        let writer = rng.below(3) as usize;
        match rng.below(20) {
            0..=6 => {
                for _ in 0..=rng.below(4) {
                    self.append(writer)?;
                }
                return Ok(());
            }
            7..=8 => {
                let Writer { producer, name, appended, .. } = &mut self.writers[writer];
                let receipt = producer.flush()?;
                self.receipts.push((receipt, name.clone(), *appended));
                return Ok(());
            }
            9 => self.log.step(Step::Linger),
            10..=12 => self.log.step(Step::Seal),
            13..=16 => {
                while rng.below(3) > 0 && self.log.step(Step::Seal)? {}
                self.log.step(Step::Commit)
            }
            17 => self.log.step(Step::Sync),
            18 => self.log.step(Step::Checkpoint),
            _ if rng.below(3) == 0 => return self.flush(),
            _ => self.log.step(Step::Checkpoint),
        }
        .map(|_| ())
    }

    fn append(&mut self, writer: usize) -> bulla::Result<()> {
        let Writer { name, producer, source, appended } = &mut self.writers[writer];
        self.history.with_entry(name, *appended, |entry| match source {
            Some(source) => producer.append_from(entry, source, &place(name, *appended).expect("it has one")),
            None => producer.append(entry),
        })?;
        *appended += 1;
        self.history.appended.insert(name.clone(), *appended);
        Ok(())
    }

    fn flush(&mut self) -> bulla::Result<()> {
        self.log.flush()?;
        self.keep_all();
        let appended = self.writers.iter().map(|writer| writer.appended).sum::<u64>();
        assert_eq!(self.log.acknowledged(), appended, "what is flushed is durable");
        Ok(())
    }

    /// Everything that was appended is durable, and signed.
    fn keep_all(&mut self) {
        for Writer { name, appended, .. } in &self.writers {
            self.history.synced.insert(name.clone(), *appended);
            self.history.written.insert(name.clone(), *appended);
        }
    }

    /// Asks the receipts and the log what was acknowledged, and looks at the checkpoint.
    fn poll(&mut self) {
        let History { written, synced, .. } = self.history;
        let power = self.scenario.mode != Durability::Os;
        let keep = |counts: &mut Counts, name: &str, count: u64| {
            let known = counts.entry(name.to_owned()).or_default();
            *known = count.max(*known);
        };
        self.receipts.retain(|(receipt, name, count)| {
            let acknowledged = receipt.durable_within(Duration::ZERO).unwrap_or(false);
            if acknowledged {
                keep(written, name, *count);
                if power {
                    keep(synced, name, *count);
                }
            }
            !acknowledged
        });
        let told = self.log.telemetry();
        note_counts(self.history, &self.name, &told);
        self.history.note_checkpoint(self.machine);
    }

    /// Closes the log. One that failed is asked for more first: it must not claim anything any more.
    fn end(mut self, done: bulla::Result<()>) -> bulla::Result<()> {
        if done.is_err() {
            for step in [
                Step::Commit,
                Step::Sync,
                Step::Checkpoint,
                Step::Seal,
                Step::Commit,
                Step::Sync,
                Step::Checkpoint,
            ] {
                let _ = self.log.step(step);
                self.poll();
            }
            if self.flush().is_ok() {
                self.poll();
            }
        }
        let Session { log, machine, history, name, writers, receipts, scenario: _ } = self;
        let names: Counts = writers.iter().map(|writer| (writer.name.clone(), writer.appended)).collect();
        drop((writers, receipts));
        let (told, closed) = log.close_with_telemetry();
        note_counts(history, &name, &told);
        history.note_checkpoint(machine);
        if done.is_ok() && closed.is_ok() {
            history.written.extend(names.clone());
            history.synced.extend(names);
        }
        done.and(closed)
    }
}

/// Nothing is lost inside here, so that what is counted are the first.
fn note_counts(history: &mut History, session: &str, told: &Telemetry) {
    assert_eq!((told.durable_prefix, told.lost), (told.entries, 0));
    let counted = history.counted.entry(session.to_owned()).or_default();
    assert!(*counted <= told.entries, "what was durable is so no more");
    *counted = told.entries;
}

/// A failure that a crash or a fault may cause.
pub(super) fn is_unavailable(outcome: &bulla::Result<()>) -> Outcome {
    match outcome {
        Err(error) if error.kind() != ErrorKind::Unavailable => Err(format!("failed with {error:?}")),
        _ => Ok(()),
    }
}
