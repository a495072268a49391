//! A life of a log: all of it follows from a seed.
//!
//! Sessions open the log, take steps, and end: in order, by the death of the process, by a power cut, or by what fails. After each the
//! disk is what it is, and the next session goes on from that.

use super::backups::Backup;
use super::beside::{Beside, Lives};
use super::host::Host;
use super::model::Model;
use super::observed::{Covers, Observed, Whose};
use super::outcome::{Outcome, must, sound};
use super::plan::{Plan, RECIPIENT};
use super::sources;
use crate::helpers::Rng;
use bulla::keys::signing::SigningKey;
use bulla::{
    Answered, Configure, Error, ErrorKind, Log, Producer, Question, Receipt, Recovery, Source, Step,
    SteppedWitnesses,
};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// What was done, a line each: kept by whoever has the simulation run, so that a panic leaves it.
#[derive(Clone, Default)]
pub(super) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn add(&self, line: String) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
    }
}

/// See the module.
pub(super) struct Life {
    pub(super) rng: Rng,
    pub(super) plan: Plan,
    pub(super) host: Host,
    pub(super) model: Model,
    pub(super) whose: Whose,
    /// Of a log with a vault.
    pub(super) erasure_key: Option<Arc<SigningKey>>,
    pub(super) sessions: u64,
    pub(super) orders: u64,
    pub(super) backup: Option<Backup>,
    /// Whether the log was closed in order, last.
    pub(super) in_order: bool,
    /// Whether the process died, last, on a machine that went on.
    pub(super) killed: bool,
    /// Whether the seal state may be older than the checkpoint, of a key directory that is being restored.
    pub(super) older_keys: bool,
    pub(super) trace: Trace,
    pub(super) beside: Beside,
}

/// A log that is open.
pub(super) struct Session {
    pub(super) log: Log,
    pub(super) number: u64,
    pub(super) producers: Vec<(Producer, u64)>,
    pub(super) receipts: Vec<Given>,
    /// Whether anything was to fail since the log was opened: only then may something.
    pub(super) troubled: bool,
    /// Whether an error ended it.
    pub(super) failed: bool,
    /// Where some entries are from.
    pub(super) source: Option<Source>,
    /// Of a log that has asked for cosignatures: what witnesses are to be asked, and what came of it.
    pub(super) asking: Option<SteppedWitnesses>,
    pub(super) questions: Vec<Question>,
    pub(super) answers: Vec<Answered>,
}

impl Session {
    /// One in which nothing has failed.
    pub(super) fn new(log: Log, number: u64) -> Self {
        Session {
            log,
            number,
            producers: Vec::new(),
            receipts: Vec::new(),
            troubled: false,
            failed: false,
            source: None,
            asking: None,
            questions: Vec::new(),
            answers: Vec::new(),
        }
    }
}

/// A receipt that a producer gave.
pub(super) struct Given {
    pub(super) receipt: Receipt,
    pub(super) producer: u64,
    /// How many entries of that producer it covers, from the first on.
    pub(super) count: u64,
    /// What it told by itself, once.
    pub(super) told: Arc<Mutex<Vec<bool>>>,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Close,
    Drop,
    Kill,
    PowerCut,
}

impl Life {
    /// Makes a log and lives through it; what does not hold ends it.
    pub(super) fn live(seed: u64, lives: Lives, trace: &Trace) -> Outcome<Life> {
        let mut life = Self::begin(seed, lives, trace)?;
        for _ in 0..life.plan.sessions {
            life.session()?;
            if life.beside.detached.is_none() {
                life.between_sessions()?;
            }
            if life.beside.paths.len() > 1 {
                life.between_sessions_of_paths()?;
            }
        }
        life.end()?;
        Ok(life)
    }

    fn begin(seed: u64, lives: Lives, trace: &Trace) -> Outcome<Life> {
        let mut rng = Rng(seed.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ 0x1405_7b7e_f767_814f);
        let plan = Plan::draw(&mut rng);
        trace.add(format!("{plan:?}"));
        let mut beside = Beside::draw(seed, lives)?;
        let host = Host::with_paths(plan.vault, beside.paths);
        let model = Model::new(seed, plan.payload, vec![RECIPIENT.to_owned()]);
        let environment = host.environment(rng.next(), &model.recorder);
        let policy = Self::witness_policy(&beside.witnesses);
        let init = policy.map_or_else(|| plan.init(), |policy| plan.init().witness_policy(policy));
        let created = init.create_in(&*host.log(), &*host.keys(), &environment);
        let created = sound("making a log", created)?;
        if let [_, backups @ ..] = beside.paths
            && !backups.is_empty()
        {
            let backups = backups.iter().map(|path| format!("/{path}")).collect::<Vec<_>>().join(",");
            let configure = Configure::default().set("backup_paths", &backups);
            let environment = host.environment(beside.rng.next(), &model.recorder);
            let set = configure.and_then(|set| set.apply_in(host.log(), host.keys(), &environment));
            sound("backup paths", set)?;
        }
        let text = |path: &str| host.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let erasure_key = match plan.vault {
            true => {
                Some(Arc::new(sound("the erasure key", SigningKey::parse(&text("audit.keys/erasure.key")?))?))
            }
            false => None,
        };
        let seal_key = text("audit.keys/seal.key")?;
        let whose = Whose { key: created.verifier_key, id: created.id, seal_key, has_vault: plan.vault };
        let trace = trace.clone();
        let mut life = Life {
            rng,
            plan,
            host,
            model,
            whose,
            erasure_key,
            sessions: 0,
            orders: 0,
            backup: None,
            in_order: true,
            killed: false,
            older_keys: false,
            trace,
            beside,
        };
        life.model.note_checkpoint(&life.host)?;
        Ok(life)
    }

    pub(super) fn say(&self, what: impl Debug, came: impl Debug) {
        let operations = self.host.machine.operations();
        let line = format!("{}.{operations} {what:?}: {came:?}", self.sessions);
        self.trace.add(self.host.without_place(line));
    }

    /// Opens the log, takes steps, and ends.
    fn session(&mut self) -> Outcome {
        self.sessions += 1;
        let mut troubled = self.rng.below(100) < self.plan.trouble;
        if troubled && self.rng.below(2) == 0 {
            self.trouble();
        } else if troubled {
            troubled = false;
        }
        self.before_opening(&mut troubled);
        let is_whole = self.beside.detached.is_none();
        let signed = if is_whole { self.model.signed_entries(&self.host)? } else { 0 };
        let in_order = self.in_order;
        let Some(log) = self.open(troubled)? else { return Ok(()) };
        must!(
            !in_order || log.recovery() == Recovery::default(),
            "of a log that was closed is left {:?}",
            log.recovery()
        );
        let mut session = Session::new(log, self.sessions);
        session.troubled = troubled;
        self.note_switches()?;
        // What it lacks it may be asked for.
        session.troubled |= self.beside.detached.is_some();
        if self.rng.below(4) == 0 && is_whole {
            self.look_at_recovery(&mut session, signed)?;
        }
        if self.plan.tiles && self.sessions == 1 && !self.host.stopped() {
            self.many_frames(&mut session, 247)?;
        }
        let steps = 1 + self.rng.below(self.plan.steps);
        let trouble_at = (self.rng.below(100) < self.plan.trouble).then(|| self.rng.below(steps));
        for step in 0..steps {
            if trouble_at == Some(step) && !session.troubled {
                session.troubled = true;
                self.trouble();
            }
            self.step_beside(&mut session)?;
            self.step(&mut session)?;
            self.poll(&mut session)?;
            if self.host.stopped() || session.failed {
                break;
            }
        }
        self.finish(session)
    }

    /// Opens the log; nothing where that fails, as it may where it is `troubled`.
    fn open(&mut self, troubled: bool) -> Outcome<Option<Log>> {
        let was_left = self.has_left_detached();
        let mut opened = self.try_to_open();
        if self.misses_path(&opened, was_left)? {
            opened = self.try_to_open();
        }
        self.say("open", opened.as_ref().map(Log::recovery));
        match opened {
            Ok(log) => {
                self.model.opened(self.sessions);
                self.model.note_checkpoint(&self.host)?;
                Ok(Some(log))
            }
            Err(error) => {
                must!(
                    troubled && self.may_pass(&error) || self.is_for_want_of_path(&error),
                    "opening: {:?}: {error}",
                    error.kind()
                );
                if !self.host.stopped() {
                    self.model.note_checkpoint(&self.host)?;
                }
                self.crash(None, true)?;
                Ok(None)
            }
        }
    }

    /// Ends a session, and leaves what the next one finds.
    fn finish(&mut self, mut session: Session) -> Outcome {
        let ends = [
            End::Close,
            End::Close,
            End::Close,
            End::Drop,
            End::Kill,
            End::Kill,
            End::PowerCut,
            End::PowerCut,
        ];
        // What a process that died has left unsynced, the next one may rely on.
        let end = match self.killed && self.rng.below(2) == 0 {
            true => End::PowerCut,
            false => *self.rng.one(&ends),
        };
        if session.failed && !self.host.stopped() {
            // One that failed must not claim anything any more, whether or not the medium is mended.
            if self.rng.below(2) == 0 {
                self.host.heal();
            }
            for step in
                [Step::Commit, Step::Sync, Step::Checkpoint, Step::Seal, Step::Commit, Step::Checkpoint]
            {
                let _ = session.log.step(step);
                self.poll(&mut session)?;
            }
        }
        if self.host.stopped() {
            self.say("the machine stopped", ());
            drop(session.producers);
            drop(session.log);
            let cut = (self.rng.below(3) > 0).then(|| self.rng.next());
            return self.crash(cut, false);
        }
        if end == End::Close && self.beside.rng.below(2) == 0 {
            self.ask_before_closing(&mut session)?;
        }
        let Session { log, number, producers, receipts, troubled, .. } = session;
        match end {
            End::Kill | End::PowerCut => {
                let cut = (end == End::PowerCut).then(|| self.rng.next());
                let left = self.host.crashed(cut);
                // What the old one does now nobody sees.
                self.host.machine.stop_at(self.host.machine.operations());
                drop((producers, log));
                self.say(end, cut);
                self.arrive(left, cut)
            }
            End::Close | End::Drop => {
                drop(producers);
                let closed = match end {
                    End::Close => {
                        let (told, closed) = log.close_with_telemetry();
                        self.model.count(number, told.entries)?;
                        Some(closed)
                    }
                    _ => {
                        drop(log);
                        None
                    }
                };
                self.say(end, &closed);
                match closed {
                    Some(Ok(())) => {
                        self.model.keep_all(number);
                        let last = receipts.iter().try_for_each(|given| given.receipt.checkpointed());
                        sound("a receipt of a log that is closed", last)?;
                        if self.host.stopped() {
                            return self.crash(None, false);
                        }
                        self.host.heal();
                        self.note_switches()?;
                        if !troubled {
                            self.keep_switches();
                        }
                        self.closed()
                    }
                    Some(Err(error)) => {
                        must!(troubled && self.may_pass(&error), "closing: {:?}: {error}", error.kind());
                        self.crash(None, false)
                    }
                    None => self.crash(None, false),
                }
            }
        }
    }

    /// What is left of the host after a crash takes its place. Where the machine did not stop the process ends here.
    pub(super) fn crash(&mut self, cut: Option<u64>, may_cut: bool) -> Outcome {
        let cut = match may_cut && self.rng.below(2) == 0 {
            true => Some(self.rng.next()),
            false => cut,
        };
        let left = self.host.crashed(cut);
        self.say("left", cut);
        self.arrive(left, cut)
    }

    fn arrive(&mut self, left: Host, cut: Option<u64>) -> Outcome {
        self.note_switches()?;
        self.forget_switches();
        self.host = left;
        self.cut_line()?;
        self.in_order = false;
        self.killed = cut.is_none();
        if cut.is_some() {
            self.model.power_cut();
        }
        self.model.note_checkpoint(&self.host)?;
        if self.beside.detached.is_some() {
            return self.verify_without_path();
        }
        if self.rng.below(2) == 0 && !self.older_keys {
            self.model.verify_unopened(&self.host, &self.whose)?;
            self.check_cosignatures()?;
        }
        Ok(())
    }

    /// The log was closed in order: all is there.
    fn closed(&mut self) -> Outcome {
        (self.in_order, self.killed) = (true, false);
        if self.beside.detached.is_some() {
            return self.verify_without_path();
        }
        if self.rng.below(2) == 0 {
            self.model.verify_unopened(&self.host, &self.whose)?;
        }
        if self.rng.below(3) == 0 {
            self.examine_closed()?;
        }
        if self.rng.below(3) == 0 {
            // Nothing is left to lose.
            let cut = self.rng.next();
            self.host = self.host.crashed(Some(cut));
            self.cut_line()?;
            self.say("a power cut after closing", cut);
            self.examine_closed()?;
        }
        Ok(())
    }

    /// Looks at all of a log that nobody has open.
    pub(super) fn examine_closed(&mut self) -> Outcome<Observed> {
        let observed = self.examine(Covers::Everything, false)?;
        if self.plan.sources {
            sources::check_closed(&self.host, &observed, self.rng.below(2) == 0)?;
        }
        Ok(observed)
    }

    /// Whether it is an error of what was to fail, or of what is missing.
    pub(super) fn may_pass(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::Unavailable || self.is_for_want_of_path(error)
    }

    /// Opens the log once more where nothing fails, and looks at all of it.
    fn end(&mut self) -> Outcome {
        self.sessions += 1;
        self.attach();
        let Some(log) = self.open(false)? else { return Err("the log does not open".to_owned()) };
        sound("closing at last", log.close())?;
        let observed = self.examine_closed()?;
        self.compare_trees(observed.size)?;
        self.finish_mirror()?;
        let cut = self.rng.next();
        self.host = self.host.crashed(Some(cut));
        let observed = self.examine(Covers::Everything, false)?;
        if self.beside.paths.len() > 1 { self.lose_path(&observed) } else { Ok(()) }
    }
}
