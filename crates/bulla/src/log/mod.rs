//! The log as a program uses it: [`Log`], [`Producer`], [`Receipt`].
#![expect(
    clippy::disallowed_methods,
    reason = "the threads of a log, and what the checkpointing one waits by"
)]

mod asking;
pub(crate) mod closer;
mod closing;
mod held;
mod personal;
mod producer;
mod producers;
mod receipt;
pub(crate) mod record;
mod source;
mod threads;
mod watch;
mod witnesses;

pub use asking::{Answered, Posted, Question, SteppedWitnesses};
pub use closing::Closing;
pub use held::Held;
pub use personal::{PersonalChanges, PersonalRecords, PersonalRecordsRead};
pub use producer::{BatchError, Producer};
pub use producers::Producers;
pub use receipt::Receipt;
pub use source::{Place, Source};
pub use watch::Watch;

use crate::admin::configure::{Configure, Configured};
use crate::control;
use crate::erase::{Erasure, ErasureOrder, HoldDifference, HoldOrder, ReleaseOrder, ResumedErasure};
use crate::fields::CompiledRules;
use crate::format::config::load_of_log;
use crate::format::event::{Event, ExportRecord};
use crate::format::options::Options;
use crate::format::sources::SourceId;
use crate::format::sources::table::SourceState;
use crate::keys::{default_keys, digest};
use crate::scan::lost::LostFrames;
use crate::scan::paths;
use crate::write::engine::{Directories, Engine};
use crate::write::kept_pin::Pinned;
use crate::write::recover::Recovery;
use crate::write::telemetry::Telemetry;
use crate::write::telling;
use asking::Asking;
use bulla_crypto::environment::Environment;
use bulla_store::process;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};
use bulla_vault::ReplicaState;
use std::fmt::{self, Debug};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use threads::Threads;
use witnesses::Witnesses;
use zeroize::Zeroizing;

/// A log that is open for appending. One at a time: its directory and its key directory are locked.
///
/// It is closed by [`Log::close`], or where it is dropped. A process that ends while it is open (by [`std::process::exit`], by a signal, or because
/// nobody drops it, as of what is static) is as one that crashed: what a receipt called durable is there, and what came later may be lost.
///
/// ```
/// # fn main() -> bulla::Result<()> {
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// use bulla::{Entry, Init, Log, Options};
/// Init::default().create(&directory)?;
/// let log = Log::open(&directory, Options::default())?;
/// let mut producer = log.producer()?;
/// producer.append(&Entry::new("read", "user_42/email").subject("user_42").purpose("support"))?;
/// producer.flush()?.durable()?;
/// drop(producer);
/// log.close()
/// # }
/// ```
pub struct Log {
    engine: Arc<Engine>,
    /// The rules for fields; `None` where every field is kept.
    minimise: Option<Arc<CompiledRules>>,
    threads: Option<Threads>,
    /// What asks its witnesses, of a log with threads.
    witnesses: Option<Witnesses>,
    /// The server that takes requests of other processes, or why there is none.
    control: Option<Result<control::Server>>,
    /// The locks; `None` once it is closed.
    directories: Option<Arc<Directories>>,
    /// The position up to which receipts of the log answer for entries that were lost.
    flushed: AtomicU64,
    /// The entries that were dropped for which they do.
    dropped: AtomicU64,
    owner: u32,
}

impl Log {
    /// Opens the log in `directory`, with its keys in `DIR.keys`.
    ///
    /// What a crash left is recovered first; [`Log::recovery`] says what that was.
    ///
    /// # Errors
    /// `Locked` where another writer has it, `Tampered` where it is not what was written or is older than its pin, `Refused` where
    /// keys, pin and log do not belong together, or the pin is gone, `Invalid` for options out of their limits, else `Unavailable`.
    ///
    /// Both directories are opened now, and held. Where one is moved or replaced while the log is open, the log fails
    /// with `Unavailable`, and writes to neither.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self> {
        let keys = default_keys(directory.as_ref());
        Self::open_with_keys(directory, keys, options)
    }

    /// Opens the log in `directory`, with its keys in another place.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_with_keys(
        directory: impl AsRef<Path>,
        keys: impl AsRef<Path>,
        options: Options,
    ) -> Result<Self> {
        let log = Arc::new(FileSystem::new(directory.as_ref()));
        let keys = Arc::new(FileSystem::new(keys.as_ref()));
        Self::open_stores(log, keys, options, Environment::default())
    }

    /// Opens a log in any stores and environment.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_stores(
        log: Arc<dyn Store>,
        keys: Arc<dyn Store>,
        options: Options,
        environment: Environment,
    ) -> Result<Self> {
        Self::open_stepped(log, keys, options, environment)?.begin()
    }

    /// Has threads take its steps from now on, and other processes ask for things.
    fn begin(mut self) -> Result<Self> {
        self.threads = Some(Threads::start(&self.engine)?);
        let asks = self.engine.config().witness_policy.is_some();
        match asks.then(|| Witnesses::start(&self.engine)).transpose() {
            Ok(witnesses) => self.witnesses = witnesses,
            Err(error) => {
                self.engine.back_off.tell(&format!("no witness is asked: starting a thread: {error}"))
            }
        }
        let directory = self.engine.keys.directory().cloned();
        self.control = directory.map(|directory| control::Server::start(&self.engine, &directory));
        Ok(self)
    }

    /// Opens a log without threads: nothing happens but by [`Log::step`]. For simulators and tests.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_stepped(
        log: Arc<dyn Store>,
        keys: Arc<dyn Store>,
        options: Options,
        environment: Environment,
    ) -> Result<Self> {
        let log = paths::join_to_write(log, Some(&keys), &[], &environment)?;
        load_of_log(&*log)?;
        let directories = Directories::lock(&*log, &*keys)?;
        Self::open_locked(directories, (log, keys), options, environment)
    }

    /// The same of one whose locks are held.
    fn open_locked(
        directories: Arc<Directories>,
        (log, keys): (Arc<dyn Store>, Arc<dyn Store>),
        options: Options,
        environment: Environment,
    ) -> Result<Self> {
        crate::admin::configure::remove_leftover(&*log);
        // This comes before anything is written, because it finds out whether a key is missing.
        let (config, _) = load_of_log(&*log)?;
        let minimise = CompiledRules::load(&config, &*keys, &environment)?.map(Arc::new);
        let engine = Arc::new(Engine::open((log, keys), &directories, options, environment)?);
        engine.drop_in_outages();
        if engine.config().digest != config.digest {
            return Err(Error::unavailable("the configuration was edited while the log was opened"));
        }
        let flushed = AtomicU64::new(0);
        let directories = Some(directories);
        Ok(Log {
            engine,
            minimise,
            threads: None,
            witnesses: None,
            control: None,
            directories,
            flushed,
            dropped: AtomicU64::new(0),
            owner: process::id(),
        })
    }

    /// A new producer, for one thread.
    ///
    /// # Errors
    /// `Invalid` where there are as many as `memory` allows.
    pub fn producer(&self) -> Result<Producer> {
        check_owner(self.owner)?;
        Producer::of(&self.engine, self.minimise.as_ref(), self.owner)
    }

    /// By what another thread can make producers of this log.
    pub fn producers(&self) -> Producers {
        let (engine, minimise) = (Arc::downgrade(&self.engine), self.minimise.clone());
        Producers { engine, minimise, owner: self.owner }
    }

    /// Commits everything that any producer has appended so far, and publishes a checkpoint over it.
    ///
    /// # Errors
    /// Where it cannot be committed.
    pub fn flush(&self) -> Result<()> {
        check_owner(self.owner)?;
        if self.threads.is_none() {
            self.engine.drain()?;
            return self.receipt()?.refuse_dropped();
        }
        self.receipt()?.checkpointed()
    }

    /// Queues everything that any producer has appended so far, and gives a receipt for it: what [`Log::flush`] waits for. Who waits by the
    /// receipt keeps nobody from closing the log meanwhile.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn receipt(&self) -> Result<Receipt> {
        check_owner(self.owner)?;
        let to = self.engine.staging.take_all();
        let from = self.flushed.swap(to, Ordering::Relaxed).min(to);
        let all = self.engine.meter.dropped();
        let dropped = all.saturating_sub(self.dropped.swap(all, Ordering::Relaxed));
        Ok(Receipt { engine: self.engine.clone(), from, to, dropped, owner: self.owner })
    }

    /// Begins an epoch, whose key opens nothing that was sealed before; its number.
    ///
    /// # Errors
    /// Where it cannot be committed.
    pub fn rotate(&self) -> Result<u64> {
        check_owner(self.owner)?;
        self.engine.rotate()
    }

    /// Changes the log's configuration while it is open. Recipients count from the epoch that this begins, for all that
    /// is appended after it; settings from the next time that the log is opened.
    ///
    /// # Errors
    /// `Refused` where rules for fields would change, else as [`Configure::apply`]. Where the medium leaves it unclear
    /// which configuration there is, the log takes nothing more. [`Error::effect`](crate::Error::effect) says whether it is the new one.
    pub fn configure(&self, configure: &Configure) -> Result<Configured> {
        check_owner(self.owner)?;
        configure.apply_to(&self.engine)
    }

    /// Records in the log that entries of it were given out, under a checkpoint.
    ///
    /// # Errors
    /// `Invalid` where the record is none, else where it cannot be committed.
    pub fn record_export(&self, record: &ExportRecord) -> Result<()> {
        check_owner(self.owner)?;
        self.engine.record(record.clone().event()?).map(|_| ())
    }

    /// Why the log does not listen on the control socket, where it should. It is written all the same; whoever wants
    /// something of it that goes through the socket has to wait until it is closed.
    pub fn control_failure(&self) -> Option<&Error> {
        self.control.as_ref()?.as_ref().err()
    }

    /// The replicas of the vault, and which of them were left out because they failed. The log goes on without those;
    /// only [`Log::erase`] does not, until it is opened again.
    pub fn vault_replicas(&self) -> Vec<ReplicaState> {
        self.engine.replicas()
    }

    /// The log's origin.
    pub fn origin(&self) -> String {
        self.engine.config().origin.clone()
    }

    /// What opening found beyond the last checkpoint.
    pub fn recovery(&self) -> Recovery {
        self.engine.recovery
    }

    /// The log's pin, as it was when the log was opened; `None` where it has none.
    pub fn pinned(&self) -> Option<&Pinned> {
        self.engine.pinned.as_ref()
    }

    /// What was done since the log was opened, and how much is under way.
    pub fn telemetry(&self) -> Telemetry {
        self.engine.telemetry()
    }

    /// How many entries are durable, of those that were appended since the log was opened: those that a sync has covered,
    /// whatever the durability mode. In mode `os` that is at rotation, at a flush or checkpoint, and at close; what the
    /// operating system was given since then is not counted, though a receipt answers for it.
    pub fn acknowledged(&self) -> u64 {
        self.engine.progress.entries().kept
    }

    /// How many entries, from the first one on that was appended since the log was opened, are durable without one missing,
    /// in the order in which the log numbered them: that of the appends where there is one producer. What comes after it may
    /// be durable in part; after an entry that was lost it grows no more.
    pub fn durable_prefix(&self) -> u64 {
        self.engine.progress.entries().prefix
    }

    /// Has `tell` called whenever [`Log::durable_prefix`] has grown, with what it is then: after a sync, by the thread of the log
    /// that committed, which goes on when `tell` returns. It takes the place of one that was given before.
    pub fn when_durable(&self, tell: impl Fn(u64) + Send + Sync + 'static) {
        self.engine.progress.when_durable(Arc::new(tell));
    }

    /// Entries that were accepted since the log was opened and then lost inside: gaps in the log say so, too.
    pub fn lost(&self) -> u64 {
        self.engine.meter.lost()
    }

    /// Entries that were dropped since the log was opened, as nothing took what it writes: [`OnFailure::Drop`](crate::OnFailure::Drop). An
    /// event in the log says so as well, once something takes it again.
    pub fn dropped(&self) -> u64 {
        self.engine.meter.dropped()
    }

    /// Values of `client` that were dropped since the log was opened: its rule is `truncate-ip`, and they were no
    /// addresses. Of a producer those that it had flushed, or staged in buffers that are full.
    pub fn not_addresses(&self) -> u64 {
        self.minimise.as_ref().map_or(0, |minimise| minimise.not_addresses())
    }

    /// Erases data subjects, as `order` says: destroys their keys, has the log tell of it under a checkpoint, and returns
    /// in which frame. Appending goes on meanwhile; entries of these data subjects that come later have new keys.
    ///
    /// # Errors
    /// `Refused` where the log has no erasure, the order is not signed with its erasure key, somebody of it is held, or
    /// the vault knows nobody of it; `Unavailable` where a replica of the vault was left out. Else where the vault or the
    /// log cannot be written: then it goes on when the log is opened again, or the order is given again.
    pub fn erase(&self, order: &ErasureOrder) -> Result<Erasure> {
        check_owner(self.owner)?;
        self.engine.erase(order, None)
    }

    /// The same where those whom the log knows by the names of `order` have just these `numbers`, ascending, and nobody
    /// else does: whoever has looked who they are ([`crate::Reader::preview_erasure`]) erases nobody who came in between.
    ///
    /// # Errors
    /// As [`Log::erase`]; `Refused` where they are others, of whom none is erased then.
    pub fn erase_only(&self, order: &ErasureOrder, numbers: &[u64]) -> Result<Erasure> {
        check_owner(self.owner)?;
        self.engine.erase(order, Some(numbers))
    }

    /// Holds a data subject, as `order` says, and has the log tell of it under a checkpoint: it is not erased until
    /// [`Log::release`]. False where the same holds it for that reason already.
    ///
    /// # Errors
    /// `Refused` where the log has no erasure, the order is not signed with its erasure key or was carried out before, the vault does not
    /// know the data subject, or the same holds it for another reason; `Invalid` for texts that are empty or longer than 1,024
    /// bytes, else where a file cannot be written: opening the log goes on then.
    pub fn hold(&self, order: &HoldOrder) -> Result<bool> {
        check_owner(self.owner)?;
        self.engine.hold(order)
    }

    /// Releases the hold that `order` is about, and has the log tell of it under a checkpoint.
    ///
    /// # Errors
    /// `Refused` where there is no such hold, else as [`Log::hold`].
    pub fn release(&self, order: &ReleaseOrder) -> Result<()> {
        check_owner(self.owner)?;
        self.engine.release(order)
    }

    /// Has `tell` called when something failed that may pass (a disk that is full, a plugin that does not answer), with what
    /// failed: before the first wait, once for each thing that is tried again, by the thread of the log that tries it, which
    /// goes on when `tell` returns. Where the attempts end the log fails. It takes the place of what
    /// [`Environment::trying_again`] names, which is told while the log is opened, too.
    pub fn when_trying_again(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        self.engine.back_off.when_trying_again(Arc::new(tell));
    }

    /// How the file of holds in the key directory differed, when the log was opened, from what the log's signed events tell. It
    /// was brought in line with them then: a hold of which the log tells holds, whoever deleted the file.
    pub fn hold_differences(&self) -> &[HoldDifference] {
        &self.engine.hold_differences
    }

    /// The frames that were lost for good with a path of the log, as they were when it was opened: what the events among them told of
    /// holds and erasures is not known.
    pub fn lost_frames(&self) -> &LostFrames {
        &self.engine.lost
    }

    /// The erasure that was cut short before the log was opened, and what opening it made of that.
    pub fn resumed_erasure(&self) -> Option<&ResumedErasure> {
        self.engine.resumed.as_ref()
    }

    /// The key of the digests that stand for what is too long for an entry, which is made the first time: the same as long as the
    /// log lives, and in no entry.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be read or written, or is damaged; `Refused` where it is another log's.
    pub fn digest_key(&self) -> Result<Zeroizing<[u8; 32]>> {
        let engine = &self.engine;
        digest::load_or_make(&*engine.keys, engine.config().id, &*engine.environment.random)
    }

    /// Has `tell` called with the names that an order to erase has, once it is carried out and before [`Log::erase`], or whoever asked for
    /// it through the control socket, is told: whoever knows of these people apart from the log forgets them then. The log waits for
    /// it, and no entry is sealed meanwhile; so `tell` must wait for nothing of the log. Whoever was to be told before is told as well.
    pub fn when_erased(&self, tell: impl Fn(&[&str]) + Send + Sync + 'static) {
        self.engine.when_erased.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(tell));
    }

    /// What the program that writes this log keeps about data subjects from one run to the next. `None` where the log has no vault, since
    /// nothing that is kept would go with a person, and while somebody else has them.
    ///
    /// # Errors
    /// As [`Log::digest_key`].
    pub fn personal_records(&self) -> Result<Option<PersonalRecords>> {
        check_owner(self.owner)?;
        let digest_key = self.digest_key()?;
        if self.engine.vault().is_err() || self.engine.has_records.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        Ok(Some(PersonalRecords::new(&self.engine, digest_key)))
    }

    /// The source with this id, of which `label` is said from now on: bytes of the caller's, which come back with what the log has of
    /// the source, the newest ones. To append entries from it: [`Producer::append_from`].
    ///
    /// The first call reads what the log has of all its sources, under a checkpoint that it may have to wait for, and makes the key
    /// of that in the key directory, `sources.key`, where the log has none yet.
    ///
    /// # Errors
    /// `Invalid` where the label has more than 4,096 bytes, or the log has 65,536 sources already: those count of which it has
    /// something and those that were asked for, until they [end](Source::end). `Refused` where the source has ended and no durable
    /// block says so yet. `NoKey` where blocks say something of sources and `sources.key` is missing, `Tampered` where something of
    /// that is damaged; else where no checkpoint can be published, or a file cannot be read or written.
    pub fn source(&self, id: SourceId, label: &[u8]) -> Result<Source> {
        check_owner(self.owner)?;
        Ok(Source::new(&self.engine, self.engine.source(id, label)?, self.owner))
    }

    /// What the log has of its sources, by id: as far as it is durable.
    ///
    /// # Errors
    /// As [`Log::source`].
    pub fn sources(&self) -> Result<Vec<SourceState>> {
        check_owner(self.owner)?;
        self.engine.source_states()
    }

    /// By what another thread can see how this log is doing.
    pub fn watch(&self) -> Watch {
        Watch { engine: Arc::downgrade(&self.engine) }
    }

    /// Says that all has been appended that there is. With [`OnFailure::Drop`](crate::OnFailure::Drop) nothing more can be dropped then, and
    /// the log, which would go on trying until it is closed, fails from now on as with `Refuse`: once it has tried as often as `retries` says.
    /// So whoever waits for what is left hears how it went. With another `on_failure` nothing changes.
    pub fn end_dropping(&self) {
        self.engine.end_dropping();
    }

    /// By what another thread can say that this log is about to be closed.
    pub fn closing(&self) -> Closing {
        Closing { back_off: self.engine.back_off.clone(), vault: self.engine.shared_vault() }
    }

    /// Seals, commits, syncs and signs everything, and lets go of the log. Producers that are left can append no
    /// more; what they append while the log is being closed is kept only as far as a receipt says so. Waits between
    /// attempts at what fails are cut short as [`Closing::announce`] says.
    ///
    /// # Errors
    /// The failure that kept anything from being committed. `Invalid` where what is told of a receipt ([`Receipt::when_durable`]) calls
    /// this: a thread of its own then closes the log, as where the log is dropped there, and the exit of the process waits until it has.
    /// `Closed` in a forked child, where closing and dropping do nothing.
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    /// The same, and what was done until then, closing included, whatever came of it.
    ///
    /// # Errors
    /// As [`Log::close`].
    pub fn close_with_telemetry(mut self) -> (Telemetry, Result<()>) {
        let closed = self.shut();
        (self.engine.telemetry(), closed)
    }

    /// The same, and nobody else can write the log until it is opened again by what is returned, or that is dropped.
    pub fn close_holding(mut self) -> (Telemetry, Result<()>, Option<Held>) {
        let held = self.directories.clone().map(|directories| {
            let (log, keys) = (self.engine.log.clone(), self.engine.keys.clone());
            Held { directories, log, keys, owner: self.owner }
        });
        let closed = self.shut();
        (self.engine.telemetry(), closed, held)
    }

    /// Takes one step of a stepped log; false when there was nothing to do.
    ///
    /// # Errors
    /// As the step does; the log then refuses everything. `Unavailable` where the log has threads, which take this step.
    pub fn step(&self, step: Step) -> Result<bool> {
        check_owner(self.owner)?;
        match step {
            Step::Heartbeat => Ok(self.engine.beat().is_some()),
            Step::Linger => {
                let queued = self.engine.staging.expire_linger() > 0;
                self.engine.set_rows_aside();
                Ok(queued)
            }
            Step::Seal => Ok(self.engine.seal_next(&mut self.engine.sealer(), false)),
            Step::Commit => Ok(self.engine.step_commit()? > 0),
            Step::Sync => self.engine.step_sync().map(|()| true),
            Step::Checkpoint => {
                let before = self.engine.published().size;
                self.engine.step_checkpoint()?;
                Ok(self.engine.published().size > before)
            }
        }
    }

    /// The witnesses of a stepped log, which nobody asks but whoever steps it.
    #[doc(hidden)]
    pub fn stepped_witnesses(&self) -> SteppedWitnesses {
        SteppedWitnesses(Asking::new(&self.engine))
    }

    /// Has the log tell, before the next block, of an erasure that it did not carry out: for tests of what reads that.
    ///
    /// # Errors
    /// `Refused` for any other event, and for an erasure that verification would object to: one that nobody ordered, or of
    /// more than were ordered.
    #[doc(hidden)]
    pub fn record(&self, event: Event) -> Result<()> {
        check_owner(self.owner)?;
        self.engine.tell(event)
    }

    fn shut(&mut self) -> Result<()> {
        if self.directories.is_none() {
            return Ok(());
        }
        check_owner(self.owner)?;
        if self.threads.is_some() && telling::is_telling() {
            return self.shut_elsewhere();
        }
        self.engine.back_off.announce_close();
        // First, because what it does for others needs the threads.
        if let Some(Ok(control)) = self.control.take() {
            control.stop();
        }
        self.engine.staging.close();
        let threads = self.threads.take();
        let is_stepped = threads.is_none();
        if let Some(threads) = threads {
            threads.join(&self.engine);
        }
        let result = match self.engine.progress.failure() {
            // A panic that went on from here would drop the log, which closes it again: a second panic would end the process.
            None => self.engine.guarded(|| self.engine.drain_and_finish()).and_then(|drained| drained),
            Some(failure) => {
                // What is durable can be signed all the same, unless that fails too.
                let _ = self.engine.guarded(|| self.engine.step_publish());
                Err(failure)
            }
        };
        if is_stepped {
            self.engine.set_rows_aside();
        }
        if let Some(witnesses) = self.witnesses.take() {
            witnesses.close();
        }
        self.engine.end_vault();
        self.directories = None;
        result
    }

    /// Has a thread of its own shut it, since this one is waited for; the exit of the process waits for that thread. Where none can be started,
    /// the log stays open as long as the process lives.
    fn shut_elsewhere(&mut self) -> Result<()> {
        let rest = ManuallyDrop::new(Log {
            engine: self.engine.clone(),
            minimise: None,
            threads: self.threads.take(),
            witnesses: self.witnesses.take(),
            control: self.control.take(),
            directories: self.directories.take(),
            flushed: AtomicU64::default(),
            dropped: AtomicU64::default(),
            owner: self.owner,
        });
        closer::close_elsewhere(move || drop(ManuallyDrop::into_inner(rest)))?;
        Err(Error::invalid(
            "what is told of a receipt cannot wait until the log is closed: a thread of its own closes it, and nobody learns of its errors",
        ))
    }

    /// Leaves alone what came along into a forked child: threads that the child has not got, locks that they may have had, memory that they
    /// were changing, a database that is its parent's.
    fn forget(&mut self) {
        std::mem::forget((self.threads.take(), self.control.take(), self.directories.take()));
        std::mem::forget((self.engine.clone(), self.minimise.take()));
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if check_owner(self.owner).is_err() {
            return self.forget();
        }
        // Whoever wants to know of errors calls `close`.
        let _ = self.shut();
    }
}

impl Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("origin", &self.engine.config().origin).finish_non_exhaustive()
    }
}

/// A step of a log without threads. Of a log with threads these are refused, but for [`Step::Linger`], [`Step::Seal`] and
/// [`Step::Heartbeat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Queue the event that says that the writer is at work, where the log promises one by now.
    Heartbeat,
    /// Queue what producers have staged, and write what was dropped to a file of the setting `error_path`.
    Linger,
    /// Number and seal one frame.
    Seal,
    /// Commit the frames that are sealed.
    Commit,
    /// Sync, where the durability mode leaves that to time.
    Sync,
    /// Publish a checkpoint over what is durable.
    Checkpoint,
}

/// Refuses a handle that came along into a forked child: the log is its parent's, and a lock inside may have been held, at the
/// time of the fork, by a thread that the child has not got.
#[inline]
fn check_owner(owner: u32) -> Result<()> {
    match owner == process::id() {
        true => Ok(()),
        false => Err(foreign()),
    }
}

#[cold]
fn foreign() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the log belongs to the process that opened it, not to its child: a child connects to its local socket",
    )
}
