//! The engine: stage, seal, commit, checkpoint, each a step that does what there is to do and returns.
//!
//! Nothing here has a thread. [`crate::Log`] drives the steps from threads; a test drives them from a seed.
//!
//! What the threads share lies in queues: the staging queue, from producers to the threads that seal; the commit queue, from those
//! to the committing thread; the checkpoint queue, from that to the checkpointing thread. The committer and the checkpointer
//! themselves are values of which their threads are the owners, [`SerialStages`]. Where a log has no threads the engine
//! keeps them, and whoever takes a step has them while it takes it. [`locks`] has the order of what locks there are.

pub(crate) mod change;
pub(crate) mod checkpointing;
pub(crate) mod committing;
mod directories;
mod dropping;
mod erasing;
mod following;
pub(crate) mod grouping;
mod locks;
mod paths;
pub(crate) mod pins;
pub(crate) mod progress;
mod sealing;
pub(crate) mod sequencer;
pub(crate) mod sources;
mod subject_keys;
mod telemetry;
#[cfg(test)]
mod tests;

use crate::erase::{HoldDifference, ResumedErasure};
use crate::format::config::{self, LogConfig};
use crate::format::event::Event;
use crate::format::options::{Durability, OnFailure, Options, Tuning};
use crate::format::sealed::LogIdentity;
use crate::index::Indexer;
use crate::keys;
use crate::keys::seal_state::Attempt;
use crate::scan::lost::{LostFrames, are_lost};
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::write::back_off::BackOff;
use crate::write::checkpoint::Checkpointer;
use crate::write::commit::{Committer, Policy};
use crate::write::kept_pin::Pinned;
use crate::write::recover::Recovery;
use crate::write::stage::queue::{AssignFrames, Bounds, StagingQueue};
use crate::write::telemetry::{Meter, WitnessTelemetry};
use bulla_crypto::environment::Environment;
use bulla_crypto::ml_dsa::MlDsaSigningKey;
use bulla_crypto::signing::SigningKey;
use bulla_proof::LogKey;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use bulla_vault::ReplicaState;
use checkpointing::{CheckpointQueue, Checkpointing};
use committing::{CommitQueue, Committing};
pub(crate) use directories::Directories;
use dropping::{Dropping, SetAside, left_untold};
pub(crate) use erasing::{Course, Leftover, after_resumed, course, leftover};
use locks::{Rank, RankedMutex};
use pins::PinAtHand;
use progress::Progress;
use sequencer::{AssignedFrame, Sequencer};
use sources::Sources;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, RwLock, Weak};
use subject_keys::{SubjectKeys, refuse_unfinished};
pub(crate) use subject_keys::{
    Vaults, check_kept_replicas, check_replicas, followed_more, mark_given_up, older_log, require_newest,
};

/// The stages that one thread each takes at a time: whoever has this can commit and checkpoint.
pub(crate) struct SerialStages {
    pub(crate) committing: Committing,
    pub(crate) checkpointing: Checkpointing,
}

/// Is told names of data subjects.
pub(crate) type TellErased = dyn Fn(&[&str]) + Send + Sync;

/// See the module.
pub(crate) struct Engine {
    pub(crate) tuning: Tuning,
    pub(crate) environment: Environment,
    pub(crate) staging: StagingQueue<Sequencer>,
    pub(crate) commits: CommitQueue,
    pub(crate) checkpoints: CheckpointQueue,
    /// The committer and the checkpointer, while no thread has them.
    serial: RankedMutex<Option<SerialStages>>,
    pub(crate) progress: Progress,
    pub(crate) meter: Arc<Meter>,
    pub(crate) back_off: Arc<BackOff>,
    pub(crate) recovery: Recovery,
    /// The log's pin, as it was when the log was opened.
    pub(crate) pinned: Option<Pinned>,
    /// The number of the first frame that this process made.
    opened_at: u64,
    sources: Sources,
    identity: LogIdentity,
    pub(crate) log: Arc<dyn Store>,
    pub(crate) keys: Arc<dyn Store>,
    /// Whoever opened the log has them, and lets go of them when it is closed.
    directories: Weak<Directories>,
    /// Of a log with erasure.
    subject_keys: Option<SubjectKeys>,
    /// In how many groups of a block what they have in common has to occur, or 0.
    common: u32,
    /// Held for reading while a block is sealed, for writing while keys of data subjects are destroyed: a block has the keys
    /// of before an erasure and a frame before its event, or neither.
    sealing: RwLock<()>,
    /// Held by whoever erases, holds or releases data subjects: the files of that are read, changed and replaced. In it is the
    /// number of frames up to the last event of a hold, as far as that is known.
    erasing: RankedMutex<Option<u64>>,
    /// Are told whom an erasure names, once their keys are destroyed.
    pub(crate) when_erased: RwLock<Vec<Box<TellErased>>>,
    /// Whether somebody has the personal records.
    pub(crate) has_records: AtomicBool,
    /// How the file of holds differed, when the log was opened, from what the log tells.
    pub(crate) hold_differences: Vec<HoldDifference>,
    /// The frames that were lost for good with a path, under the checkpoint that was there when the log was opened.
    pub(crate) lost: LostFrames,
    /// The erasure that was cut short before, and what opening the log made of it.
    pub(crate) resumed: Option<ResumedErasure>,
    /// Held by whoever changes `[log]` or begins an epoch that somebody asked for.
    changing: RankedMutex<()>,
    indexer: Indexer,
    dropping: Dropping,
    /// How the witnesses stand that the log asks, as whoever asks them has it.
    witnesses: RankedMutex<Vec<WitnessTelemetry>>,
    /// The clock, in seconds, at the newest epoch or event that was sealed or asked for as a sign of life.
    told: AtomicI64,
}

impl Engine {
    /// Opens a log: recovers it, begins an epoch, and has that durable together with the events of the recovery.
    ///
    /// The caller holds the locks, `directories`, until the log is closed.
    ///
    /// # Errors
    /// As [`find`](crate::write::recover::find) and [`adopt`](crate::write::recover::Found::adopt); `Invalid` for options that do
    /// not fit together, `Tampered` where one of the log's file is out of its bounds.
    pub(crate) fn open(
        stores: (Arc<dyn Store>, Arc<dyn Store>),
        directories: &Arc<Directories>,
        options: Options,
        environment: Environment,
    ) -> Result<Self> {
        refuse_unfinished(&*stores.1)?;
        Self::open_as(stores, directories, options, environment, (Vaults::Newest, None))
    }

    /// The same, with a vault that may be older than the log where the caller sees to it, in an attempt to give a part of the log up.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub(crate) fn open_as(
        (log, keys): (Arc<dyn Store>, Arc<dyn Store>),
        directories: &Arc<Directories>,
        options: Options,
        environment: Environment,
        (vaults, attempt): (Vaults, Option<Attempt>),
    ) -> Result<Self> {
        let (config, settings) = config::load_of_log(&*log)?;
        let given = options.pinned().map(Path::to_owned);
        let tuning = tuning((&*log, &*keys), settings, options)?;
        keys::places::check(&tuning, &*log, &*keys)?;
        let config = Arc::new(config);
        let signing = load_signing_key(&*keys, &config)?;
        let pin = PinAtHand::look(given.as_deref(), (&*log, &*keys), &config, &environment)?;
        let (subject_keys, found, line) = SubjectKeys::load(
            (&log, &keys),
            &config,
            &environment,
            vaults,
            (&tuning.vault_replicas, pin.as_ref()),
        )?;
        let followed = found.followed;
        // All that speaks against going on was asked: from here on the log is written to.
        let take_up = |pin: PinAtHand| pin.take_up((&*log, &*keys), (&config, &signing), found.signed());
        let pin = pin.map(take_up).transpose()?;
        let pinned = pin.as_ref().map(|pin| pin.state().clone());
        config::arriving::take_up(&*log)?;
        let parts = found.parts().clone();
        let mut recovered = paths::adopt(found, (&*log, &*keys), &config, tuning.segment_size)?;
        if let Some(vault) = subject_keys.as_ref().and_then(|subject_keys| subject_keys.vault.as_ref()) {
            recovered.parts.extend(&vault.given_up()?);
        }
        let now = u64::try_from(environment.clock.now().div_euclid(1_000_000_000)).unwrap_or(0);
        let signed = recovered.next_frame - recovered.adopted.len() as u64;
        let untold = left_untold((&log, &*keys), (signed, &recovered.dropped), now)?;
        if let Some(paths) = log.paths().filter(|_| attempt.is_none()) {
            // An attempt to give a part up may come to nothing, and then the log was longer.
            paths.number_lost(recovered.next_frame)?;
        }
        let drops = tuning.on_failure == OnFailure::Drop;
        let set_aside = tuning.error_path.as_deref().filter(|_| drops);
        let set_aside = set_aside.map(|path| SetAside::new(path, tuning.error_path_size, &environment));
        let dropping = Dropping::new(set_aside);
        let policy = Policy {
            durability: tuning.durability,
            kept: tuning.in_flight,
            segment_size: tuning.segment_size,
        };
        let clock = environment.clock.clone();
        let back_off = Arc::new(BackOff::new(clock.clone(), tuning.retries, tuning.retry_delay));
        if let Some(tell) = &environment.trying_again {
            back_off.when_trying_again(tell.clone());
        }
        let meter = Arc::new(Meter::default());
        let waiting = (clock, back_off.clone(), meter.clone());
        let (after, start) = ((recovered.chain, recovered.terms, recovered.holds), recovered.start);
        let committer = Committer::new(log.clone(), waiting, policy, after, start, recovered.adopted)?;
        let (next_frame, next_entry) = (recovered.next_frame, recovered.next_entry);
        let given = (environment.clock.clone(), &*environment.random);
        let mut sequencer = Sequencer::new(config.clone(), next_frame, next_entry, tuning.in_flight, given)?;
        for event in recovered.events {
            sequencer.request_event(event);
        }
        let bounds = Bounds {
            buffers: tuning.buffers,
            buffer_size: tuning.buffer_size,
            large_rows: tuning.large_rows,
            block_size: tuning.block_size,
            most_block_size: tuning.most_block_size,
        };
        let tree = (recovered.tiles, recovered.bundle);
        let indexer = Indexer::new(log.clone(), next_frame);
        let subjects = subject_keys.as_ref().map(|subject_keys| subject_keys.subjects.clone());
        let checkpointer = Checkpointer::new(
            log.clone(),
            keys.clone(),
            config.clone(),
            (signing, pin),
            subjects,
            (followed, recovered.parts, attempt),
            tree,
        );
        let progress = Progress::new(checkpointer.published(), checkpointer.terms());
        let commits = CommitQueue::new(next_frame, tuning.in_flight);
        let serial = SerialStages {
            committing: Committing::new(committer),
            checkpointing: Checkpointing::new(checkpointer),
        };
        // What the file of holds has is compared with what is left, where some of what it followed may be lost.
        let holds = Some(recovered.holds).filter(|_| !are_lost(&*log));
        let mut engine = Engine {
            identity: LogIdentity { log: config.id, hash: config.hash },
            log,
            keys,
            directories: Arc::downgrade(directories),
            subject_keys,
            common: config.common.unwrap_or(0),
            sealing: RwLock::new(()),
            erasing: RankedMutex::new(Rank::Erasing, holds),
            when_erased: RwLock::default(),
            has_records: AtomicBool::new(false),
            hold_differences: Vec::new(),
            lost: LostFrames::default(),
            resumed: None,
            changing: RankedMutex::new(Rank::Changing, ()),
            tuning,
            environment,
            back_off,
            indexer,
            staging: StagingQueue::new(bounds, sequencer),
            progress,
            meter,
            recovery: recovered.report,
            pinned,
            opened_at: next_frame,
            sources: Sources::new(),
            commits,
            checkpoints: CheckpointQueue::new(),
            serial: RankedMutex::new(Rank::SerialStages, Some(serial)),
            witnesses: RankedMutex::new(Rank::Leaf, Vec::new()),
            told: AtomicI64::new(0),
            dropping,
        };
        if let Some((note, untold)) = untold {
            engine.take_note_up(note, untold);
        }
        if engine.log.paths().is_some_and(|paths| paths.others() > 0 || paths.has_lost_one()) {
            // The last epoch may lie on another path than the one in use; and what is not signed since a path was lost may pass for what lay there.
            engine.at_rest(|stages| {
                engine.await_epoch(&mut stages.committing, next_frame);
                Ok(())
            })?;
        }
        let mut sealer = engine.sealer();
        while engine.seal_next(&mut sealer, false) {}
        engine.step_commit()?;
        let settled = engine.follow_erasures(&recovered.erased, (vaults, line, parts))?;
        engine.resumed = settled.resumed;
        match engine.finish_opening() {
            Ok(differences) => {
                engine.hold_differences = settled.differences;
                engine.hold_differences.extend(differences);
                if are_lost(&*engine.log) {
                    match Snapshot::of(engine.log.clone()).and_then(Manifest::lost_of) {
                        Ok(lost) => engine.lost = lost,
                        Err(error) => engine.tell_of_paths(&format!(
                            "a path of the log is lost, and which frames with it cannot be told: {error}"
                        )),
                    }
                }
                // Who opens a log has nobody yet to close it.
                if engine.tuning.on_failure.goes_on() {
                    engine.back_off.go_on_for_ever();
                }
                Ok(engine)
            }
            Err(error) => Err(after_resumed(engine.resumed.as_ref(), error)),
        }
    }

    /// Signs what was recovered, and brings the holds in line with it. Returns how these differed.
    fn finish_opening(&self) -> Result<Vec<HoldDifference>> {
        let mut differences = Vec::new();
        if self.vault().is_ok() {
            // It comes before anybody new gets a number, so that a backup from before this is older than the checkpoint.
            self.at_rest(|stages| {
                stages.checkpointing.checkpointer.follow();
                self.drain_with(stages)
            })?;
            differences = self.settle_holds()?;
        } else if self.published().size < self.opened_at {
            // The seal state may speak of them already: until they are signed nobody who goes by that is answered.
            self.drain()?;
        }
        self.progress.failure().map_or(Ok(differences), Err)
    }

    /// Lets go of the vault, which another log may write to from now on: receipts and producers that are left keep this one from being dropped.
    pub(crate) fn end_vault(&self) {
        if let Some(vault) = self.subject_keys.as_ref().and_then(|keys| keys.vault.as_ref()) {
            vault.end_writing();
        }
    }

    /// The vault's replicas.
    pub(crate) fn replicas(&self) -> Vec<ReplicaState> {
        self.subject_keys.as_ref().map_or_else(Vec::new, SubjectKeys::replicas)
    }

    /// Gives the stages to threads, which take the steps from now on. `None` where others have them already.
    pub(crate) fn give_stages(&self) -> Option<SerialStages> {
        self.serial.lock().take()
    }

    /// Takes the stages back when the threads have ended.
    pub(crate) fn take_stages_back(&self, stages: SerialStages) {
        *self.serial.lock() = Some(stages);
    }

    /// Does something with the stages.
    ///
    /// # Errors
    /// As `work`; `Unavailable` where threads have the stages.
    fn at_rest<T>(&self, work: impl FnOnce(&mut SerialStages) -> Result<T>) -> Result<T> {
        self.if_at_rest(work).unwrap_or_else(|| Err(Error::unavailable("the log's threads take its steps")))
    }

    /// Does something with the stages, unless threads have them.
    fn if_at_rest<T>(&self, work: impl FnOnce(&mut SerialStages) -> T) -> Option<T> {
        self.serial.lock().as_mut().map(work)
    }

    /// Commits the frames that are sealed, as a step. Returns how many there were.
    ///
    /// # Errors
    /// `Unavailable` where nothing takes them; the log then refuses everything.
    pub(crate) fn step_commit(&self) -> Result<usize> {
        self.at_rest(|stages| self.commit_ready(&mut stages.committing))
    }

    /// Syncs, as a step, where the durability mode leaves that to time.
    ///
    /// # Errors
    /// As [`Engine::step_commit`].
    pub(crate) fn step_sync(&self) -> Result<()> {
        self.at_rest(|stages| self.sync(&mut stages.committing)).map(|_| ())
    }

    /// Publishes a checkpoint, as a step, over what is durable, if that has grown; syncs first, unless the mode leaves that to
    /// the operating system.
    ///
    /// # Errors
    /// As [`Engine::publish`].
    pub(crate) fn step_checkpoint(&self) -> Result<()> {
        self.at_rest(|stages| {
            if self.tuning.durability != Durability::Os {
                self.sync(&mut stages.committing)?;
            }
            self.publish(&mut stages.checkpointing)
        })
    }

    /// Publishes, as a step, what is durable of a log that has failed.
    ///
    /// # Errors
    /// As [`Engine::publish`].
    pub(crate) fn step_publish(&self) -> Result<()> {
        self.at_rest(|stages| {
            // A panic may have come between the sync and this.
            self.deliver(&mut stages.committing);
            self.publish(&mut stages.checkpointing)
        })
    }

    /// Does by hand whatever is left to do: seals, commits, syncs and signs until nothing is left.
    ///
    /// # Errors
    /// As the steps.
    pub(crate) fn drain(&self) -> Result<()> {
        self.at_rest(|stages| self.drain_with(stages))
    }

    fn drain_with(&self, stages: &mut SerialStages) -> Result<()> {
        let mut sealer = self.sealer();
        // Where one path takes no frames and another one no checkpoint, each round would have the next one tell of it.
        let mut rounds = self.log.paths().map(|paths| paths.others() + 1);
        loop {
            self.staging.take_all();
            let mut idle = true;
            while self.seal_next(&mut sealer, false) {
                idle = false;
                self.commit_ready(&mut stages.committing)?;
            }
            self.commit_ready(&mut stages.committing)?;
            if let Some(error) = self.progress.failure() {
                return Err(error);
            }
            let withheld = self.sync(&mut stages.committing)?;
            let has_control = || self.staging.look_at_sequencer(AssignFrames::has_control);
            if idle && !withheld && !has_control() {
                self.publish(&mut stages.checkpointing)?;
                // Publishing may have found that a path fails, which an event is to tell.
                if !has_control() || rounds == Some(0) {
                    return Ok(());
                }
                rounds = rounds.map(|left| left - 1);
            }
        }
    }

    /// Drains the log for the last time, and writes the rest of the index and what is kept of sources.
    ///
    /// # Errors
    /// As [`Engine::drain`]. The index is no reason for one.
    pub(crate) fn drain_and_finish(&self) -> Result<()> {
        self.drain()?;
        if let Some(unsaved) = self.unsaved_sources(true) {
            self.save_sources(&unsaved);
        }
        self.indexer.finish(&self.environment);
        Ok(())
    }

    /// Records an event, and waits until a checkpoint covers it. Returns its frame.
    ///
    /// # Errors
    /// As [`Engine::drain`].
    pub(crate) fn record(&self, event: Event) -> Result<u64> {
        let frame = self.staging.with_sequencer(|sequencer| sequencer.request_event(event));
        self.wait_for_checkpoint(&frame)
    }

    /// Waits until a checkpoint covers a frame; where nobody else takes the steps, takes them. Returns its number.
    ///
    /// # Errors
    /// As [`Engine::drain`].
    fn wait_for_checkpoint(&self, frame: &AssignedFrame) -> Result<u64> {
        let Some(drained) = self.if_at_rest(|stages| self.drain_with(stages)) else {
            self.progress.wait_committed(frame)?;
            self.request_checkpoint();
            return self.progress.wait_published(frame);
        };
        drained?;
        // The event of a segment that was abandoned may have to come first.
        let covered = frame.get().filter(|frame| **frame < self.published().size).copied();
        covered.ok_or_else(|| Error::unavailable("no checkpoint covers it yet: try again"))
    }

    /// Stops everything with `error`: producers, the threads that seal and the committing thread are woken and told.
    pub(crate) fn fail(&self, error: &Error) {
        self.progress.fail(error);
        self.staging.fail();
        self.commits.close();
    }

    /// Does `work`; a panic in it fails the log. It may have left a number without an outcome, and everybody would wait for
    /// that.
    pub(crate) fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
            let error = Error::unavailable("the log panicked");
            self.fail(&error);
            error
        })
    }

    /// The tree that the published checkpoint covers.
    pub(crate) fn published(&self) -> TreeHead {
        self.progress.published()
    }

    fn seconds(&self) -> i64 {
        self.environment.clock.now().div_euclid(1_000_000_000)
    }
}

/// What a log is run with: these options, and, where they say nothing, the settings of the log and of the key directory.
///
/// # Errors
/// `Refused` where a setting of the log belongs in the key directory; `Invalid` for options that do not fit together; where a
/// setting is out of its bounds, or those of the key directory cannot be read.
pub(crate) fn tuning(
    (log, keys): (&dyn Store, &dyn Store),
    settings: Options,
    options: Options,
) -> Result<Tuning> {
    keys::settings::refuse_misplaced(&settings, log, keys)?;
    let host = keys::settings::load(keys)?;
    let all = settings.clone().with_host(host.clone());
    // What is wrong is looked for in the log's file first: it may have been edited by anybody.
    Tuning::try_from(options.or(all)).or_else(|error| {
        config::check_bounds(log, settings)?;
        keys::settings::check_bounds(keys, host).and(Err(error))
    })
}

/// Refuses a key directory whose signing key is another log's. One that has none, or none that can be read, is for whoever
/// needs it.
///
/// # Errors
/// `Refused`, naming the key.
pub fn refuse_other_keys(keys: &dyn Store, config: &LogConfig) -> Result<()> {
    match load_signing_key(keys, config) {
        Err(error) if error.kind() == ErrorKind::Refused => Err(error),
        _ => Ok(()),
    }
}

/// Reads the key that signs the log's checkpoints.
///
/// # Errors
/// `NoKey` where it is missing, `Refused` where it is another log's; else where it is damaged or cannot be read.
pub(crate) fn load_signing_key(keys: &dyn Store, config: &LogConfig) -> Result<SigningKey> {
    let key = load_key(keys, keys::files::SIGNING, SigningKey::parse)?;
    let other = |name: &str| {
        let name = keys.describe(name);
        Error::new(ErrorKind::Refused, format!("{name} is not the key of `{}`", config.origin))
    };
    if *key.verifier() != config.verifier_key {
        return Err(other(keys::files::SIGNING));
    }
    let Some(LogKey::MlDsa44(known)) = &config.ml_dsa_key else { return Ok(key) };
    let beside = load_key(keys, keys::files::SIGNING_ML_DSA, MlDsaSigningKey::parse)?;
    match beside.verifier() == known {
        true => Ok(key.with_ml_dsa(beside)),
        false => Err(other(keys::files::SIGNING_ML_DSA)),
    }
}

/// Reads a key from its file.
fn load_key<Key>(keys: &dyn Store, name: &str, parse: impl FnOnce(&str) -> Result<Key>) -> Result<Key> {
    let bytes = keys::files::read_secret(keys, name, 4096);
    let bytes = keys::files::or_missing(keys, name, bytes).map_err(|error| match error.kind() {
        ErrorKind::NoKey => {
            let message =
                format!("{error}; where there is none, nobody can go on with this log: begin a new one");
            Error::new(ErrorKind::NoKey, message)
        }
        _ => error,
    });
    let bytes = zeroize::Zeroizing::new(bytes?);
    let damaged = |why: &dyn std::fmt::Display| keys::files::damaged(keys, name, why);
    let text = std::str::from_utf8(&bytes).map_err(|_| damaged(&"it is not text"))?;
    parse(text).map_err(|error| damaged(&error))
}
