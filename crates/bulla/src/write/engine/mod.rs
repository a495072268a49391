//! The engine: stage, seal, commit, checkpoint, each a step that does what there is to do and returns.
//!
//! Nothing here has a thread or a clock of its own. [`crate::Log`] drives the steps from threads; a test drives
//! them from a seed.

pub(crate) mod change;
mod directories;
mod erasing;
pub(crate) mod grouping;
pub(crate) mod numbering;
mod people;
pub(crate) mod progress;
mod telemetry;

use crate::format::config::{self, LogConfig};
use crate::format::epoch::seal_epoch;
use crate::format::event::Event;
use crate::format::groups::Grouping;
use crate::format::options::{Durability, Options, Tuning};
use crate::format::sealed::{LogIdentity, Sealed};
use crate::index::{Gathered, Indexer};
use crate::keys;
use crate::write::checkpoint::Checkpointer;
use crate::write::commit::{Committer, Counts, Policy};
use crate::write::recover::{self, Recovery};
use crate::write::seal::BlockSealer;
use crate::write::stage::handover::{Batch, Bounds, Handover, Sequence, Work};
use crate::write::stage::target::Made;
use crate::write::telemetry::{Meter, Waits, count, timed};
use bulla_columns::account::Account;
use bulla_crypto::environment::Environment;
use bulla_crypto::group::BlockContext;
use bulla_crypto::{epoch::EpochSecret, scrub::scrubbed, signing::SigningKey};
use bulla_proof::commitment::FrameKind;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};
use bulla_vault::ReplicaState;
pub(crate) use directories::take_locks;
use numbering::{Control, Counter, Ticket};
pub(crate) use people::Vaults;
use people::{People, older, refuse_unfinished};
use progress::Progress;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// A sealed frame in the order of numbers, with what its commitment settles.
struct Waiting {
    frame: Sealed,
    /// Bytes of rows that it frees, and the place of the last slice in it.
    staged: Option<(usize, Sequence)>,
}

/// Sealed frames, until all before them are there.
struct Reorder {
    frames: BTreeMap<u64, Waiting>,
    next: u64,
    closed: bool,
}

/// What was committed last, and is checkpointed next.
struct Commit {
    committer: Committer,
    sequence: Sequence,
    /// The last place that a sync has covered.
    synced: Sequence,
}

/// What publishing needs; one at a time.
struct Publish {
    checkpointer: Checkpointer,
    sequence: Sequence,
}

/// See the module.
pub(crate) struct Engine {
    pub(crate) tuning: Tuning,
    pub(crate) environment: Environment,
    pub(crate) handover: Handover<Counter>,
    pub(crate) progress: Progress,
    pub(crate) meter: Meter,
    /// Counts that are not behind the locks of those at work.
    committed: Arc<Mutex<Counts>>,
    published: Mutex<Waits>,
    pub(crate) recovery: Recovery,
    identity: LogIdentity,
    pub(crate) log: Arc<dyn Store>,
    keys: Arc<dyn Store>,
    /// Of a log with erasure.
    people: Option<People>,
    /// Held for reading while a block is sealed, for writing while keys of data subjects are destroyed.
    sealing: RwLock<()>,
    /// One erasure at a time.
    erasing: Mutex<()>,
    /// One change of `[log]` at a time, or rotation that somebody asked for.
    changing: Mutex<()>,
    /// Whether threads take the steps.
    driven: AtomicBool,
    indexer: Indexer,
    reorder: Mutex<Reorder>,
    arrived: Condvar,
    commit: Mutex<Commit>,
    publish: Mutex<Publish>,
    wishes: Mutex<Wishes>,
    wished: Condvar,
}

/// What the thread that checkpoints is asked for.
#[derive(Default)]
struct Wishes {
    checkpoint: bool,
    closed: bool,
}

/// What that thread has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The time is up.
    Tick,
    /// Somebody waits for a checkpoint.
    Checkpoint,
    /// The log is being closed.
    Close,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Opens a log: recovers it, begins an epoch, and has that durable together with the events of the recovery.
    ///
    /// The caller holds the locks of both directories.
    ///
    /// # Errors
    /// As [`recover::recover`]; `Invalid` for options that do not fit together.
    pub(crate) fn open(
        log: Arc<dyn Store>,
        keys: Arc<dyn Store>,
        options: Options,
        environment: Environment,
    ) -> Result<Self> {
        refuse_unfinished(&*keys)?;
        Self::open_as(log, keys, options, environment, Vaults::Newest)
    }

    /// The same, with a vault that may be older than the log where the caller sees to it.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub(crate) fn open_as(
        log: Arc<dyn Store>,
        keys: Arc<dyn Store>,
        options: Options,
        environment: Environment,
        vaults: Vaults,
    ) -> Result<Self> {
        let (config, settings) = config::load(&*log)?;
        let tuning = Tuning::try_from(options.or(settings))?;
        let config = Arc::new(config);
        let signing = load_signing_key(&*keys, &config)?;
        let people = People::load((&*log, &*keys), &config, &environment, vaults, &tuning.vault_replicas)?;
        let recovered = recover::recover(&*log, &*keys, &config, tuning.segment_size)?;
        let has_vault = people.as_ref().is_some_and(|people| people.vault.is_some());
        if recovered.keys_are_older && vaults == Vaults::Newest && has_vault {
            return Err(older(&*keys));
        }
        if let Some(people) =
            people.as_ref().filter(|_| recovered.report.entries > 0 && vaults == Vaults::Newest)
        {
            people.subjects.require_signed(recovered.known)?;
        }
        let policy = Policy {
            durability: tuning.durability,
            retries: tuning.retries,
            retry_delay: tuning.retry_delay,
            kept: tuning.in_flight,
            segment_size: tuning.segment_size,
        };
        let clock = environment.clock.clone();
        let (after, start) = ((recovered.chain, recovered.terms), recovered.start);
        let committer = Committer::new(log.clone(), clock, policy, after, start, recovered.adopted)?;
        let (next_frame, next_entry) = (recovered.next_frame, recovered.next_entry);
        let mut counter =
            Counter::new(config.clone(), next_frame, next_entry, tuning.in_flight, &*environment.random)?;
        for event in recovered.events {
            counter.request_event(event);
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
        let subjects = people.as_ref().map(|people| people.subjects.clone());
        let checkpointer =
            Checkpointer::new(log.clone(), keys.clone(), config.clone(), signing, subjects, tree);
        let engine = Engine {
            identity: LogIdentity { log: config.id, hash: config.hash },
            log,
            keys,
            people,
            sealing: RwLock::new(()),
            erasing: Mutex::new(()),
            changing: Mutex::new(()),
            driven: AtomicBool::new(false),
            tuning,
            environment,
            indexer,
            handover: Handover::new(bounds, counter),
            progress: Progress::default(),
            meter: Meter::default(),
            committed: committer.counts(),
            published: Mutex::default(),
            recovery: recovered.report,
            reorder: Mutex::new(Reorder { frames: BTreeMap::new(), next: next_frame, closed: false }),
            arrived: Condvar::new(),
            commit: Mutex::new(Commit { committer, sequence: 0, synced: 0 }),
            publish: Mutex::new(Publish { checkpointer, sequence: 0 }),
            wishes: Mutex::default(),
            wished: Condvar::new(),
        };
        let mut sealer = engine.sealer();
        while engine.seal_next(&mut sealer, false) {}
        engine.commit_ready()?;
        engine.follow_erasures(&recovered.erased)?;
        if engine.vault().is_ok() {
            // Before anybody new gets a number: then a backup from before this is older than the checkpoint.
            lock(&engine.publish).checkpointer.follow();
            engine.checkpoint(true)?;
        }
        engine.progress.failure().map_or(Ok(engine), Err)
    }

    /// The vault's replicas.
    pub(crate) fn replicas(&self) -> Vec<ReplicaState> {
        self.people.as_ref().map_or_else(Vec::new, People::replicas)
    }

    /// From now on threads take the steps.
    pub(crate) fn drive(&self) {
        self.driven.store(true, Ordering::Relaxed);
    }

    /// Records an event, and waits until a checkpoint covers it. Returns its frame.
    ///
    /// # Errors
    /// As [`Engine::drain`].
    pub(crate) fn record(&self, event: Event) -> Result<u64> {
        let place = self.handover.with_numbering(|counter| counter.request_event(event));
        self.wait_for_checkpoint(&place)
    }

    /// Waits until a checkpoint covers a frame. Returns its number.
    ///
    /// # Errors
    /// As [`Engine::drain`].
    fn wait_for_checkpoint(&self, place: &numbering::Place) -> Result<u64> {
        if self.driven.load(Ordering::Relaxed) {
            self.progress.wait_committed(place)?;
            self.wish_checkpoint();
            return self.progress.wait_published(place);
        }
        self.drain()?;
        // The event of a segment that was abandoned may have to come first.
        let covered = place.get().filter(|frame| **frame < self.published()).copied();
        covered.ok_or_else(|| Error::unavailable("no checkpoint covers it yet: try again"))
    }

    /// Working memory for [`Engine::seal_next`].
    pub(crate) fn sealer(&self) -> BlockSealer {
        let account = Account::timed_by({
            let clock = self.environment.clock.clone();
            Arc::new(move || clock.steady())
        });
        BlockSealer::new(self.tuning.compression, account)
    }

    /// FrameNumbers and seals the next frame; waits for one where `block`. False where there is none.
    pub(crate) fn seal_next(&self, sealer: &mut BlockSealer, block: bool) -> bool {
        match self.handover.take(block) {
            None => false,
            Some(Work::Control(ticket)) => {
                let epoch = ticket.numbers.epoch;
                match self.seal_control(ticket) {
                    Ok(frame) => self.put(Waiting { frame, staged: None }),
                    Err(error) => self.fail(&error),
                }
                // The index of those before it has their keys until it is written.
                self.indexer.begin_epoch(epoch, &self.environment);
                true
            }
            Some(Work::Block(ticket, batch)) => {
                let mut frame = self.seal_block(sealer, &ticket, &batch);
                let account = sealer.account().settle();
                if frame.commitment.kind == FrameKind::Block {
                    self.meter.sealed(&account);
                    count(&self.meter.blocks, 1);
                    count(&self.meter.groups, frame.groups);
                    count(&self.meter.row_bytes, batch.bytes as u64);
                }
                let gathered = gather(&mut frame, &ticket);
                let staged = Some((batch.bytes, batch.last));
                let (body, dictionaries) = match self.tuning.block_size_chosen {
                    true => (usize::MAX, 0),
                    false => (frame.body.len(), account.dictionaries),
                };
                self.handover.release(batch, Made { groups: frame.groups, body, dictionaries });
                self.put(Waiting { frame, staged });
                // Last: no block waits for the index.
                self.indexer.add(gathered, &self.environment);
                true
            }
        }
    }

    /// A block; a gap in its place where sealing fails, so that its number has an outcome all the same.
    fn seal_block(&self, sealer: &mut BlockSealer, ticket: &Ticket, batch: &Batch) -> Sealed {
        let cipher = &*self.environment.cipher;
        let _sealing = self.sealing.read().unwrap_or_else(PoisonError::into_inner);
        let sealed = catch_unwind(AssertUnwindSafe(|| {
            let (rows, grouping) = self.group(batch, ticket)?;
            let clock = &*self.environment.clock;
            let seal = || sealer.seal(self.identity, ticket.numbers, &ticket.keys, cipher, &rows, &grouping);
            timed(clock, &self.meter.sealing, seal)
        }));
        if let Ok(Ok(frame)) = sealed {
            return frame;
        }
        *sealer = self.sealer();
        let first = batch.last + 1 - batch.slices.len() as u64;
        self.progress.lost(first, batch.last);
        count(&self.meter.lost, batch.entries);
        Sealed::gap(self.identity, ticket.numbers, self.seconds(), batch.entries)
    }

    /// A block's rows, and which of them are in which group.
    fn group<'b>(&self, batch: &'b Batch, ticket: &Ticket) -> Result<(Vec<&'b [u8]>, Grouping)> {
        timed(&*self.environment.clock, &self.meter.grouping, || {
            let mut rows = Vec::with_capacity(usize::try_from(batch.entries).unwrap_or(0));
            batch.slices.iter().for_each(|slice| rows.extend(slice.rows()));
            let Some(People { subjects, .. }) = &self.people else { return Ok((rows, Grouping::NONE)) };
            let (log, frame) = (self.identity.log, ticket.numbers.frame);
            let place = BlockContext { log, epoch_random: ticket.keys.random(), frame };
            let grouping = self.with_retries(is_passing, || grouping::group(&rows, place, &**subjects))?;
            Ok((rows, grouping))
        })
    }

    fn seal_control(&self, ticket: Ticket) -> Result<Sealed> {
        let seconds = self.seconds();
        match ticket.control {
            Some(Control::Event(event)) => Ok(Sealed::event(self.identity, ticket.numbers, seconds, &event)),
            Some(Control::Epoch(secret, config)) => {
                let wrapped = self.wrap_with_retries(&secret, &config.recipients)?;
                Ok(seal_epoch(self.identity, ticket.numbers, seconds, config.digest, &ticket.keys, wrapped))
            }
            None => Err(Error::unavailable("a frame without content was numbered")),
        }
    }

    /// Wraps an epoch's key. A plugin, and what it talks to, may fail and come back, as a medium; one that hung had its
    /// time.
    fn wrap_with_retries(&self, secret: &EpochSecret, recipients: &[String]) -> Result<Vec<u8>> {
        let wrap = || {
            let limit = self.tuning.plugin_timeout;
            scrubbed(|| self.environment.key_wrap.wrap(recipients, secret.bytes(), limit))
        };
        self.with_retries(|error| is_passing(error) && !timed_out(error), wrap)
    }

    /// Tries again, later and later, after an error that may pass.
    fn with_retries<T>(
        &self,
        passes: impl Fn(&Error) -> bool,
        mut attempt: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let mut delay = self.tuning.retry_delay;
        for _ in 0..self.tuning.retries {
            match attempt() {
                Err(error) if passes(&error) => {}
                done => return done,
            }
            self.environment.clock.sleep(delay);
            delay = delay.saturating_mul(2);
        }
        attempt()
    }

    fn seconds(&self) -> i64 {
        self.environment.clock.now().div_euclid(1_000_000_000)
    }

    fn put(&self, waiting: Waiting) {
        let mut reorder = lock(&self.reorder);
        let number = waiting.frame.commitment.frame;
        reorder.frames.insert(number, waiting);
        if number == reorder.next {
            self.arrived.notify_one();
        }
    }

    /// Waits until frames are ready to be committed; false when none will come any more.
    pub(crate) fn wait_for_frames(&self) -> bool {
        let mut reorder = lock(&self.reorder);
        loop {
            let next = reorder.next;
            if reorder.frames.contains_key(&next) {
                return true;
            }
            if reorder.closed {
                return false;
            }
            reorder = self.arrived.wait(reorder).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No frame will be sealed any more.
    pub(crate) fn close_reorder(&self) {
        lock(&self.reorder).closed = true;
        self.arrived.notify_all();
    }

    /// Commits the frames that are ready, in groups that each lie in one epoch. Returns how many there were.
    ///
    /// # Errors
    /// `Unavailable` where nothing takes them; the log then refuses everything.
    pub(crate) fn commit_ready(&self) -> Result<usize> {
        let mut count = 0;
        loop {
            let group = self.take_group();
            if group.is_empty() {
                return Ok(count);
            }
            count += group.len();
            let commit = || self.commit_group(group);
            timed(&*self.environment.clock, &self.meter.committing, commit)
                .inspect_err(|error| self.fail(error))?;
        }
    }

    /// The frames that are ready, up to the next epoch and to a bound on one write.
    fn take_group(&self) -> Vec<Waiting> {
        let mut reorder = lock(&self.reorder);
        let mut group = Vec::new();
        let mut bytes = 0;
        while bytes < self.tuning.in_flight {
            let next = reorder.next;
            let Some(entry) = reorder.frames.first_entry().filter(|entry| *entry.key() == next) else {
                break;
            };
            if entry.get().frame.commitment.kind == FrameKind::Epoch && !group.is_empty() {
                break;
            }
            let waiting = entry.remove();
            reorder.next += 1;
            bytes += waiting.frame.body.len();
            group.push(waiting);
        }
        group
    }

    fn commit_group(&self, group: Vec<Waiting>) -> Result<()> {
        let mut commit = lock(&self.commit);
        let staged = group.iter().filter_map(|waiting| waiting.staged.map(|(bytes, _)| bytes)).sum();
        let last = group.iter().rev().find_map(|waiting| waiting.staged.map(|(_, last)| last));
        let blocks = group.iter().filter(|waiting| waiting.frame.commitment.kind == FrameKind::Block);
        let entries = blocks.map(|waiting| waiting.frame.commitment.entries).sum();
        let committed = group.last().map_or(0, |waiting| waiting.frame.commitment.frame + 1);
        let frames = group.into_iter().map(|waiting| waiting.frame).collect();
        let acknowledged = commit.committer.commit(frames);
        commit.sequence = last.unwrap_or(commit.sequence);
        if self.tuning.durability == Durability::Group && acknowledged.is_ok() {
            commit.synced = commit.sequence;
        }
        let sequence = commit.sequence;
        let (events, full) = (commit.committer.take_events(), commit.committer.became_full());
        let wants_sync = commit.committer.wants_sync();
        drop(commit);
        if wants_sync {
            // Somebody may have asked for a checkpoint that was withheld.
            self.wish_checkpoint();
        }
        self.handover.with_numbering(|counter| {
            counter.committed(staged);
            events.into_iter().for_each(|event| drop(counter.request_event(event)));
            match full {
                true => counter.request_epoch(&*self.environment.random),
                false => Ok(()),
            }
        })?;
        let acknowledged = acknowledged?;
        self.progress.written(entries);
        self.progress.committed(committed);
        if acknowledged {
            self.progress.durable(sequence);
        }
        Ok(())
    }

    /// Makes what was committed durable, where the mode leaves that to time or to close.
    ///
    /// # Errors
    /// `Unavailable` where the medium fails; the log then refuses everything.
    pub(crate) fn sync(&self) -> Result<()> {
        self.sync_and_tell().map(|_| ())
    }

    /// Syncs; true where a segment was abandoned and an event of that is to be committed.
    fn sync_and_tell(&self) -> Result<bool> {
        let mut commit = lock(&self.commit);
        let synced = commit.committer.sync();
        let events = commit.committer.take_events();
        if synced.is_ok() {
            commit.synced = commit.sequence;
        }
        let sequence = commit.sequence;
        drop(commit);
        let told = !events.is_empty();
        if told {
            self.handover.with_numbering(|counter| {
                events.into_iter().for_each(|event| drop(counter.request_event(event)))
            });
        }
        synced.inspect_err(|error| self.fail(error))?;
        self.progress.durable(sequence);
        Ok(told)
    }

    /// Publishes a checkpoint over what is durable, if that has grown; syncs first where `sync`.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be written, after retries; the log then refuses everything.
    pub(crate) fn checkpoint(&self, sync: bool) -> Result<()> {
        if sync || self.tuning.durability != Durability::Os {
            self.sync()?;
        }
        self.publish_durable()
    }

    /// Publishes a checkpoint over what is durable by now.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    pub(crate) fn publish_durable(&self) -> Result<()> {
        let mut publish = lock(&self.publish);
        let mut commit = lock(&self.commit);
        let durable = commit.committer.take_durable();
        let sequence = (!commit.committer.withholds()).then_some(commit.synced);
        drop(commit);
        if let Some(durable) = durable {
            publish.checkpointer.add(durable);
        }
        // Only now is it the checkpointer's: what it did not take, no checkpoint covers.
        publish.sequence = sequence.unwrap_or(publish.sequence);
        self.publish_with_retries(&mut publish).inspect_err(|error| self.fail(error))?;
        self.progress.checkpointed(publish.sequence, publish.checkpointer.published());
        Ok(())
    }

    fn publish_with_retries(&self, publish: &mut Publish) -> Result<()> {
        let clock = &*self.environment.clock;
        let start = clock.steady();
        let publishing = || self.with_retries(|_| true, || publish.checkpointer.publish());
        if timed(clock, &self.meter.publishing, publishing)? {
            lock(&self.published).add(Duration::from_nanos(clock.steady().saturating_sub(start)));
        }
        Ok(())
    }

    /// Does by hand whatever is left to do: seals, commits, syncs and signs until nothing is left.
    ///
    /// # Errors
    /// As the steps.
    pub(crate) fn drain(&self) -> Result<()> {
        let mut sealer = self.sealer();
        loop {
            self.handover.take_all();
            let mut idle = true;
            while self.seal_next(&mut sealer, false) {
                idle = false;
                self.commit_ready()?;
            }
            self.commit_ready()?;
            if let Some(error) = self.progress.failure() {
                return Err(error);
            }
            if !self.sync_and_tell()? && idle {
                break;
            }
        }
        self.checkpoint(true)
    }

    /// Drains the log for the last time, and writes the rest of the index.
    ///
    /// # Errors
    /// As [`Engine::drain`]. The index is no reason for one.
    pub(crate) fn drain_and_finish(&self) -> Result<()> {
        self.drain()?;
        self.indexer.finish(&self.environment);
        Ok(())
    }

    /// Asks for a checkpoint soon.
    pub(crate) fn wish_checkpoint(&self) {
        lock(&self.wishes).checkpoint = true;
        self.wished.notify_all();
    }

    /// Ends the threads that wait in [`Engine::wait_for_wish`].
    pub(crate) fn wish_close(&self) {
        lock(&self.wishes).closed = true;
        self.wished.notify_all();
    }

    /// Waits up to `time` for something to do.
    pub(crate) fn wait_for_wish(&self, time: Duration) -> Wish {
        let wishes = lock(&self.wishes);
        let idle = |wishes: &mut Wishes| !wishes.checkpoint && !wishes.closed;
        let (mut wishes, _) =
            self.wished.wait_timeout_while(wishes, time, idle).unwrap_or_else(PoisonError::into_inner);
        match (wishes.closed, std::mem::take(&mut wishes.checkpoint)) {
            (true, _) => Wish::Close,
            (_, true) => Wish::Checkpoint,
            _ => Wish::Tick,
        }
    }

    /// Waits up to `time`; true when the log is being closed.
    pub(crate) fn wait_for_close(&self, time: Duration) -> bool {
        let wishes = lock(&self.wishes);
        let open = |wishes: &mut Wishes| !wishes.closed;
        self.wished.wait_timeout_while(wishes, time, open).unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// Stops everything with `error`.
    pub(crate) fn fail(&self, error: &Error) {
        self.progress.fail(error);
        self.handover.fail();
        self.close_reorder();
    }

    /// Works; a panic fails the log. A number that is left without an outcome would have everybody wait for it.
    pub(crate) fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
            let error = Error::unavailable("the log panicked");
            self.fail(&error);
            error
        })
    }

    /// The number of frames that the published checkpoint covers.
    pub(crate) fn published(&self) -> u64 {
        lock(&self.publish).checkpointer.published()
    }
}

fn is_passing(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable
}

fn timed_out(error: &Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
}

/// What a block can be found by.
fn gather(frame: &mut Sealed, ticket: &Ticket) -> Gathered {
    let (tokens, keys) = (std::mem::take(&mut frame.tokens), ticket.keys.clone());
    Gathered { commitment: frame.encoded, frame: ticket.numbers.frame, keys, tokens }
}

fn load_signing_key(keys: &dyn Store, config: &LogConfig) -> Result<SigningKey> {
    let name = keys.describe(keys::files::SIGNING);
    let bytes = zeroize::Zeroizing::new(bulla_store::read_small(keys, keys::files::SIGNING, 4096)?);
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::invalid(format!("{name} is not text")))?;
    let key =
        SigningKey::parse(text).map_err(|error| Error::new(error.kind(), format!("{name}: {error}")))?;
    if *key.verifier() != config.verifier_key {
        return Err(Error::new(ErrorKind::Refused, format!("{name} is not the key of `{}`", config.origin)));
    }
    Ok(key)
}
