//! What is done to a log that is open, and what it has to say to that.

use super::entries::Id;
use super::host::Strike;
use super::life::{Given, Life, Session};
use super::observed::{Covers, Observed};
use super::outcome::{Outcome, must, sound};
use super::sources::{self, SOURCE, place};
use bulla::Step;
use bulla_testkit::fault::Fault;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl Life {
    /// Something is to fail from now on.
    pub(super) fn trouble(&mut self) {
        let next = self.host.machine.operations();
        let within = *self.rng.one(&[8, 25, 60]);
        match self.rng.below(22) {
            0..=6 => {
                for _ in 0..=self.rng.below(3) {
                    let (at, fault) = (next + self.rng.below(within), *self.rng.one(&Fault::ALL));
                    self.host.machine.fail_at(at, fault);
                    self.say("fail at", (at, fault));
                }
            }
            7 | 8 => {
                let (at, fault) = (next + self.rng.below(within), *self.rng.one(&Fault::ALL));
                self.host.machine.fail_from(at, fault);
                self.say("fail from", (at, fault));
            }
            9 => {
                let machine = &self.host.machine;
                let lengths =
                    machine.files().into_iter().filter_map(|path| machine.read(&path)).map(|file| file.len());
                let space = lengths.sum::<usize>() as u64 + self.rng.below(20_000);
                self.host.machine.limit_space(space);
                self.say("limit space", space);
            }
            10 => {
                let (after, count) = (self.rng.below(20), 1 + self.rng.below(3));
                self.host.fail_random(after, count);
                self.say("fail randomness", (after, count));
            }
            11..=13 => return self.stop(2 * within),
            _ => return self.strike(),
        }
        if self.rng.below(3) == 0 {
            self.stop(within);
        }
    }

    /// What goes wrong goes wrong at a certain file, and the machine may stop soon after that.
    fn strike(&mut self) {
        const PATHS: [&str; 11] = [
            "segments",
            "segments",
            "segments",
            "segments",
            "checkpoint",
            "tile",
            "seal.state",
            "holds",
            "erasure.pending",
            "bulla.toml",
            "sources",
        ];
        let strike = Strike {
            path: self.rng.one::<&str>(&PATHS),
            after: self.rng.below(4),
            fault: (self.rng.below(3) > 0).then(|| *self.rng.one(&Fault::ALL)),
            stop_in: (self.rng.below(3) > 0).then(|| self.rng.below(5)),
        };
        self.say("strike", &strike);
        self.host.strike(strike);
    }

    /// The machine stops within so many moments.
    fn stop(&mut self, within: u64) {
        let moments = self.rng.below(within);
        self.host.stop_in(moments);
        self.say("stop in", moments);
    }

    pub(super) fn step(&mut self, session: &mut Session) -> Outcome {
        match self.rng.below(100) {
            0..=29 => self.append(session),
            30..=37 => self.flush_producer(session),
            38..=42 => self.engine_step(session, Step::Linger),
            43..=53 => {
                for _ in 0..=self.rng.below(3) {
                    self.engine_step(session, Step::Seal)?;
                }
                Ok(())
            }
            54..=63 => self.engine_step(session, Step::Commit),
            64..=67 => self.engine_step(session, Step::Sync),
            68..=73 => self.engine_step(session, Step::Checkpoint),
            74 => self.engine_step(session, Step::Heartbeat),
            75..=77 => self.flush(session).map(|_| ()),
            78..=79 => {
                let done = session.log.rotate().map(|_| ());
                self.came(session, "rotate", done).map(|_| ())
            }
            80..=83 => self.erase(session),
            84 => self.erase_again(session),
            85..=87 => self.hold(session),
            88..=89 => self.release(session),
            90..=91 => self.configure(session),
            92..=93 => {
                let by = self.rng.below(7_200_000_000_000) as i64 - 3_600_000_000_000;
                self.host.clock.jump(by);
                self.say("the clock jumps", by);
                Ok(())
            }
            94 => {
                if !session.producers.is_empty() {
                    let which = self.rng.below(session.producers.len() as u64) as usize;
                    let (_, number) = session.producers.swap_remove(which);
                    self.say("drop producer", number);
                }
                Ok(())
            }
            95 => {
                if session.troubled && !self.host.stopped() {
                    self.host.heal();
                    self.beside.failing.clear();
                    self.say("heal", ());
                }
                Ok(())
            }
            _ => self.look(session),
        }
    }

    /// What came of something that the engine was asked for. An error is one of what was to fail, or of what nobody may ask for. True
    /// where it is done.
    pub(super) fn came<T: Debug>(
        &mut self,
        session: &mut Session,
        what: impl Debug,
        came: bulla::Result<T>,
    ) -> Outcome<Option<T>> {
        self.say(&what, &came);
        match came {
            Ok(came) => Ok(Some(came)),
            Err(error) => {
                must!(session.troubled && self.may_pass(&error), "{what:?}: {:?}: {error}", error.kind());
                session.failed |= session.log.watch().failure().is_some();
                Ok(None)
            }
        }
    }

    pub(super) fn engine_step(&mut self, session: &mut Session, step: Step) -> Outcome {
        let done = session.log.step(step);
        self.came(session, step, done).map(|_| ())
    }

    /// As many frames, committed together.
    pub(super) fn many_frames(&mut self, session: &mut Session, frames: u64) -> Outcome {
        for _ in 0..frames {
            self.append(session)?;
            self.engine_step(session, Step::Linger)?;
            self.engine_step(session, Step::Seal)?;
        }
        self.engine_step(session, Step::Commit)
    }

    pub(super) fn append(&mut self, session: &mut Session) -> Outcome {
        if self.plan.sources && session.source.is_none() {
            let label = format!("session {}", session.number);
            let source = session.log.source(SOURCE, label.as_bytes());
            session.source = self.came(session, "source", source.map(Some))?.flatten();
            if session.source.is_none() {
                return Ok(());
            }
        }
        let which = self.rng.below(self.plan.producers) as usize;
        if which >= session.producers.len() {
            let number = self.model.producers.len() as u64;
            let Some(producer) = ({
                let made = session.log.producer();
                self.came(session, "a producer", made)?
            }) else {
                return Ok(());
            };
            self.model.promise(number).session = session.number;
            session.producers.push((producer, number));
        }
        let which = which.min(session.producers.len() - 1);
        let count = 1 + self.rng.below(self.plan.burst);
        let number = session.producers[which].1;
        for done in 0..count {
            let index = self.model.promise(number).appended;
            let made = self.model.made(Id { producer: number, index });
            // It is accepted or not: one that failed is not in the log, or else it would come a second time.
            let (producer, entry) = (&mut session.producers[which].0, made.entry());
            let appended = match (&session.source, place(made.id())) {
                (Some(source), Some(place)) => producer.try_append_from(&entry, source, &place),
                _ => producer.try_append(&entry),
            };
            if appended.is_err() || done + 1 == count {
                let what = format!("append {} of p{number}", done + 1);
                if self.came(session, what, appended)?.is_none() {
                    return Ok(());
                }
            }
            self.model.promise(number).appended += 1;
        }
        Ok(())
    }

    pub(super) fn flush_producer(&mut self, session: &mut Session) -> Outcome {
        if session.producers.is_empty() {
            return Ok(());
        }
        let which = self.rng.below(session.producers.len() as u64) as usize;
        let (producer, number) = &mut session.producers[which];
        let number = *number;
        let receipt = producer.flush();
        if let Some(receipt) = self.came(session, format!("flush p{number}"), receipt)? {
            let count = self.model.promise(number).appended;
            let told = Arc::<Mutex<Vec<bool>>>::default();
            let tell = told.clone();
            let telling = receipt.when_durable(move |came| tell.lock().unwrap().push(came.is_ok()));
            sound("having a receipt tell", telling)?;
            session.receipts.push(Given { receipt, producer: number, count, told });
        }
        Ok(())
    }

    /// Has everything committed and signed. True where that is done.
    pub(super) fn flush(&mut self, session: &mut Session) -> Outcome<bool> {
        let flushed = session.log.flush();
        if self.came(session, "flush", flushed)?.is_none() {
            return Ok(false);
        }
        self.model.keep_all(session.number);
        self.note_switches()?;
        // Where all paths fail, each in another way, there may be one more to tell of.
        if !session.troubled {
            self.keep_switches();
        }
        let (appended, told) = (self.model.appended(session.number), session.log.acknowledged());
        must!(told == appended, "{appended} entries were flushed, {told} are called durable");
        for given in &session.receipts {
            sound("a receipt of what is flushed", given.receipt.checkpointed())?;
        }
        Ok(true)
    }

    /// Asks the receipts and the log what was acknowledged, and looks at the checkpoint.
    pub(super) fn poll(&mut self, session: &mut Session) -> Outcome {
        let survives_power_cut = self.plan.durability.survives_power_cut();
        let model = &mut self.model;
        let (mut wrong, failed) = (None, session.log.watch().failure().is_some());
        session.receipts.retain(|Given { receipt, producer, count, told }| {
            let asked = receipt.durable_within(Duration::ZERO);
            let expected = match &asked {
                Ok(false) => vec![],
                Ok(true) => vec![true],
                Err(_) => vec![false],
            };
            let told = told.lock().unwrap().clone();
            // Of a log that has failed, what was being committed may become durable after that was told.
            let came_after = asked.is_ok() && told == [false] && failed;
            if told != expected && !came_after {
                wrong = Some(format!("a receipt of p{producer} says {asked:?}, and told {told:?}"));
            }
            let acknowledged = asked.unwrap_or(false);
            if acknowledged {
                let promise = model.promise(*producer);
                promise.written = promise.written.max(*count);
                if survives_power_cut {
                    promise.synced = promise.synced.max(*count);
                }
            }
            !acknowledged
        });
        wrong.map_or(Ok(()), Err)?;
        let told = session.log.telemetry();
        must!((told.durable_prefix, told.lost) == (told.entries, 0), "{told:?}");
        model.count(session.number, told.entries)?;
        if !self.host.stopped() {
            model.note_checkpoint(&self.host)?;
        }
        Ok(())
    }

    pub(super) fn check_recipients(&mut self) -> Outcome {
        if self.host.stopped() {
            return Ok(());
        }
        let found = sound("the configuration", bulla::config::load(&*self.host.joined()?))?.0.recipients;
        must!(
            self.model.recipients.contains(&found),
            "recipients are {found:?}, of {:?}",
            self.model.recipients
        );
        Ok(())
    }

    /// Reads what is signed, beside the writer.
    pub(super) fn look(&mut self, session: &mut Session) -> Outcome {
        if self.host.stopped() || self.beside.detached.is_some() {
            return Ok(());
        }
        // Half of the times all of it.
        let covers = match !session.failed && self.rng.below(2) == 0 && self.flush(session)? {
            true => Covers::Everything,
            false => Covers::SoFar,
        };
        if self.host.stopped() || session.failed {
            return Ok(());
        }
        let observed = self.examine(covers, session.troubled)?;
        if let (Covers::Everything, true) = (covers, self.plan.sources) {
            let states = session.log.sources();
            if let Some(states) = self.came(session, "sources", states)? {
                sources::check(&observed, &states)?;
            }
        }
        Ok(())
    }

    /// What opening said that it adopted is what there is more by then than a checkpoint covered before: so many entries.
    pub(super) fn look_at_recovery(&mut self, session: &mut Session, signed: u64) -> Outcome {
        let told = session.log.recovery().entries;
        if !self.flush(session)? || self.host.stopped() {
            return Ok(());
        }
        let found = self.examine(Covers::Everything, session.troubled)?.entries.len() as u64;
        must!(
            found == signed + told,
            "{signed} entries were signed, opening adopted {told}, {found} are there"
        );
        Ok(())
    }

    /// Reads the log, verifies it, and holds it against the model.
    pub(super) fn examine(&mut self, covers: Covers, troubled: bool) -> Outcome<Observed> {
        let observed = self.model.observe(&self.host, &self.whose)?;
        self.say(("observed", covers), (observed.entries.len(), observed.size));
        self.note_switches()?;
        self.model.compare(&observed, covers)?;
        self.compare_switches(&observed, covers)?;
        self.check_cosignatures()?;
        if self.rng.below(2) == 0 || covers == Covers::Everything {
            self.model.verify(&self.host, &self.whose, &observed, covers)?;
        }
        if !troubled {
            self.model.check_vault(&self.host, &self.whose)?;
        }
        let about = (self.rng.below(observed.entries.len().max(1) as u64), self.rng.below(8) as usize);
        self.model.ask(&self.host, &self.whose, &observed, about)?;
        self.model.certify(&self.host, &self.whose, self.rng.next() >> 1)?;
        self.model.prove_growth(&self.host, &self.whose, &observed, self.rng.next() >> 1)?;
        self.check_recipients()?;
        self.model.recorder.check()?;
        Ok(observed)
    }
}
