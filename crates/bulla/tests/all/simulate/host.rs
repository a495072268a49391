//! The host that a simulated log lies on: a machine that loses what was not synced and fails on request, its clock and randomness,
//! and a real directory for the vault, whose files SQLite opens itself.
//!
//! - The machine stops at a moment: an operation on a file, or a draw of randomness, which the vault makes between its own writes.
//!   What is on the disk then is taken down at that moment, the vault's files too.
//! - What the vault has committed is synced: a copy of its files is what a crash leaves of them. What a disk may keep of a transaction
//!   that is under way, and of a root that is being replaced, the tests of `bulla-vault` have.

use super::outcome::{Outcome, checkpoint_of, sound};
use crate::crash::world::{OpenWrap, Recorder};
use crate::erase::world::copy_into;
use crate::helpers::Rng;
use crate::workshop::{Operation, Watch, Watched};
use bulla::environment::{Clock, Environment, Interrupt, OpenPath, Random};
use bulla::store::{FileSystem, Item, Lock, Store, StoreFile};
use bulla::{Error, LogId};
use bulla_testkit::fault::{Fault, FaultStore, Faults};
use bulla_vault::{Access, Settings, Vault};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// A clock that goes on by a millisecond whenever it is asked, on which waiting takes no time, and which somebody sets; and beside it the
/// steady one, which goes on by as much, and further where time passes.
pub(super) struct HostClock(AtomicI64, AtomicU64);

impl HostClock {
    /// Nanoseconds since the epoch at which a simulation begins.
    pub(super) const START: i64 = 1_700_000_000_000_000_000;

    pub(super) fn new() -> Self {
        HostClock(AtomicI64::new(Self::START), AtomicU64::new(0))
    }

    /// Lets time pass on the steady clock.
    pub(super) fn pass(&self, time: Duration) {
        self.1.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Puts it forward, or back.
    pub(super) fn jump(&self, by: i64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for HostClock {
    fn now(&self) -> i64 {
        self.0.fetch_add(1_000_000, Ordering::Relaxed)
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}

    fn steady(&self) -> u64 {
        self.1.fetch_add(1_000_000, Ordering::Relaxed)
    }
}

/// When the machine is to stop, and what its vault was then.
#[derive(Debug)]
struct Moments {
    machine: Faults,
    vault: Option<PathBuf>,
    state: Mutex<State>,
}

/// What is to go wrong at an operation on a certain file.
#[derive(Clone, Debug)]
pub(super) struct Strike {
    /// What its path begins with.
    pub(super) path: &'static str,
    /// So many operations on it pass before.
    pub(super) after: u64,
    pub(super) fault: Option<Fault>,
    /// The machine stops so many moments after that.
    pub(super) stop_in: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// So many moments pass before the machine stops.
    stop_in: Option<u64>,
    /// So many draws of randomness succeed before so many fail.
    random_fails: Option<(u64, u64)>,
    strike: Option<Strike>,
    /// Whether it stopped between two operations on its own files. At one of these it stops by itself, and that may be done in part.
    stopped: bool,
    image: Option<TempDir>,
}

impl Moments {
    /// Another moment. True where the machine stops at it.
    fn pass(&self, state: &mut State) -> bool {
        match state.stop_in {
            Some(0) => {
                state.stop_in = None;
                state.image = self.vault.as_deref().map(copied);
                self.machine.stop_at(self.machine.operations());
                // Of what it stops at, half of the times nothing is done.
                state.stopped = self.machine.operations().is_multiple_of(2);
                true
            }
            Some(left) => {
                state.stop_in = Some(left - 1);
                false
            }
            None => false,
        }
    }

    fn before_operation(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock().expect("nothing panics here");
        match &mut state.strike {
            Some(strike) if path.starts_with(strike.path) && strike.after > 0 => strike.after -= 1,
            Some(strike) if path.starts_with(strike.path) => {
                strike.fault.iter().for_each(|fault| self.machine.fail_at(self.machine.operations(), *fault));
                let stop_in = strike.stop_in;
                state.stop_in = stop_in.or(state.stop_in);
                state.strike = None;
            }
            _ => {}
        }
        self.pass(&mut state);
        if state.stopped { Err(io::Error::other("the machine stopped")) } else { Ok(()) }
    }

    /// Whether a draw of randomness fails.
    fn draw_fails(&self) -> bool {
        let mut state = self.state.lock().expect("nothing panics here");
        state.stopped |= self.pass(&mut state);
        let fails = match &mut state.random_fails {
            Some((0, 0)) | None => false,
            Some((0, left)) => {
                *left -= 1;
                true
            }
            Some((before, _)) => {
                *before -= 1;
                false
            }
        };
        fails || state.stopped || self.machine.stopped()
    }

    fn stopped(&self) -> bool {
        self.state.lock().expect("nothing panics here").stopped || self.machine.stopped()
    }
}

impl Watch for Moments {
    fn before(&self, _: Operation, path: &str) -> io::Result<()> {
        self.before_operation(path)
    }

    fn before_sync_directory(&self, path: &str) -> io::Result<()> {
        self.before_operation(path)
    }
}

/// Random bytes from a seed, and none once the machine has stopped.
struct SeededRandom {
    rng: Mutex<Rng>,
    moments: Arc<Moments>,
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> bulla::Result<()> {
        if self.moments.draw_fails() {
            return Err(Error::unavailable("the simulated machine gives no randomness"));
        }
        let mut rng = self.rng.lock().expect("nothing panics here");
        bytes.fill_with(|| (rng.next() >> 32) as u8);
        Ok(())
    }
}

/// The key directory: its files are the machine's, its vault lies in a real directory.
#[derive(Debug)]
pub(crate) struct KeyStore {
    files: FaultStore,
    vault: FileSystem,
}

impl KeyStore {
    pub(crate) fn new(files: FaultStore, vault: &Path) -> Self {
        KeyStore { files, vault: FileSystem::new(vault) }
    }
}

impl Store for KeyStore {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.files.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.files.open(path)
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.files.open_write(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.remove(path)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.files.list(directory)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.files.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.files.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.files.sync_directory(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        self.files.lock(path)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.files.is_locked(path)
    }

    fn directory(&self) -> Option<&FileSystem> {
        Some(&self.vault)
    }

    fn describe(&self, path: &str) -> String {
        self.files.describe(path)
    }
}

/// Paths on the machine, and what is there.
pub(super) type KeyFiles = Vec<(String, Vec<u8>)>;

/// See the module.
pub(super) struct Host {
    pub(super) machine: Faults,
    pub(super) clock: Arc<HostClock>,
    /// The directories of the machine that are the log's paths, its own before the others.
    pub(super) paths: &'static [&'static str],
    /// What was told of paths that were replaced.
    pub(super) told: Arc<Mutex<Vec<String>>>,
    /// What the vault lies in, and its roots; of a log with a vault.
    vault: Option<TempDir>,
    moments: Arc<Moments>,
}

impl Host {
    /// One with an empty disk.
    pub(super) fn new(with_vault: bool) -> Self {
        Self::with_paths(with_vault, &["audit"])
    }

    /// The same, whose log has these paths.
    pub(super) fn with_paths(with_vault: bool, paths: &'static [&'static str]) -> Self {
        Self::of(Faults::new(), Arc::new(HostClock::new()), with_vault.then(place), paths)
    }

    fn of(
        machine: Faults,
        clock: Arc<HostClock>,
        vault: Option<TempDir>,
        paths: &'static [&'static str],
    ) -> Self {
        let path = vault.as_ref().map(|place| place.path().to_owned());
        let moments = Moments { machine: machine.clone(), vault: path, state: Mutex::default() };
        Host { machine, clock, paths, told: Arc::default(), vault, moments: Arc::new(moments) }
    }

    /// What a crash leaves now, or left when the machine stopped: `None` is the death of the process, a seed a power cut.
    pub(super) fn crashed(&self, cut: Option<u64>) -> Self {
        let machine = match cut {
            None => self.machine.kill(),
            Some(seed) => self.machine.crash(seed),
        };
        let image = self.moments.state.lock().expect("nothing panics here").image.take();
        let vault = self.vault.as_ref().map(|place| image.unwrap_or_else(|| copied(place.path())));
        Host { told: self.told.clone(), ..Self::of(machine, self.clock.clone(), vault, self.paths) }
    }

    /// The machine stops after so many moments from now.
    pub(super) fn stop_in(&self, moments: u64) {
        self.moments.state.lock().expect("nothing panics here").stop_in = Some(moments);
    }

    /// Something goes wrong at an operation on a certain file.
    pub(super) fn strike(&self, strike: Strike) {
        self.moments.state.lock().expect("nothing panics here").strike = Some(strike);
    }

    /// Of the draws of randomness from now on, some fail after some that succeed.
    pub(super) fn fail_random(&self, after: u64, count: u64) {
        self.moments.state.lock().expect("nothing panics here").random_fails = Some((after, count));
    }

    /// Whether the machine stopped.
    pub(super) fn stopped(&self) -> bool {
        self.moments.stopped()
    }

    /// Withdraws every fault that is still to come, and the stop.
    pub(super) fn heal(&self) {
        self.machine.heal();
        *self.moments.state.lock().expect("nothing panics here") = State::default();
    }

    /// The store of the log's own directory.
    pub(super) fn log(&self) -> Arc<dyn Store> {
        self.watched(Arc::new(self.machine.store("audit")))
    }

    /// The log with all of its paths, for whoever reads it.
    pub(super) fn joined(&self) -> Outcome<Arc<dyn Store>> {
        if self.paths.len() == 1 {
            return Ok(self.log());
        }
        let environment = Environment { backup_paths: Some(self.open_path()), ..Environment::default() };
        sound("joining paths", bulla::join_paths(self.log(), Some(&self.keys()), &[], &environment))
    }

    /// What opens backup paths, which lie on the machine.
    fn open_path(&self) -> OpenPath {
        let (machine, watch) = (self.machine.clone(), self.moments.clone());
        Arc::new(move |path| {
            let store = machine.store(path.to_string_lossy().trim_start_matches('/'));
            Arc::new(Watched { store: Arc::new(store), watch: watch.clone() })
        })
    }

    /// The key directory's.
    pub(super) fn keys(&self) -> Arc<dyn Store> {
        let files = self.machine.store("audit.keys");
        match &self.vault {
            Some(place) => self.watched(Arc::new(KeyStore::new(files, place.path()))),
            None => self.watched(Arc::new(files)),
        }
    }

    fn watched(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Watched { store, watch: self.moments.clone() })
    }

    pub(super) fn environment(&self, seed: u64, recorder: &Recorder) -> Environment {
        let random = SeededRandom { rng: Mutex::new(Rng(seed)), moments: self.moments.clone() };
        let told = self.told.clone();
        Environment {
            clock: self.clock.clone(),
            random: Arc::new(random),
            cipher: Arc::new(recorder.clone()),
            key_wrap: Arc::new(OpenWrap),
            subjects: None,
            trying_again: None,
            pins: None,
            path_replaced: Some(Arc::new(move |what| {
                told.lock().expect("nothing panics here").push(what.to_owned());
            })),
            backup_paths: (self.paths.len() > 1).then(|| self.open_path()),
        }
    }

    /// A file's content as reads see it.
    pub(super) fn read(&self, path: &str) -> Outcome<Vec<u8>> {
        self.machine.read(path).ok_or_else(|| format!("{path} is gone"))
    }

    /// A file of the log as reads see it: of the path on which it has come furthest, or else of any other.
    pub(super) fn read_of_log(&self, name: &str) -> Outcome<Vec<u8>> {
        let furthest = self.furthest();
        let paths = std::iter::once(furthest).chain(self.paths.iter().copied());
        let read = |path| self.machine.read(&format!("{path}/{name}"));
        paths.into_iter().find_map(read).ok_or_else(|| format!("{name} is gone"))
    }

    /// The path whose checkpoint covers most frames; of those that cover as many, the first one.
    pub(super) fn furthest(&self) -> &'static str {
        let size = |path: &str| {
            let note = self.machine.read(&format!("{path}/checkpoint"))?;
            Some(checkpoint_of(&note).ok()?.size)
        };
        let sizes = self.paths.iter().map(|path| (size(path), *path)).rev();
        sizes.max_by_key(|(size, _)| *size).map_or("audit", |(_, path)| path)
    }

    /// A text in which the vault's directory has the same name in every run.
    pub(super) fn without_place(&self, text: String) -> String {
        match &self.vault {
            Some(place) => text.replace(&place.path().display().to_string(), "audit.keys"),
            None => text,
        }
    }

    /// The log's vault, to read; `None` where it has none.
    pub(super) fn vault(&self, log: LogId) -> Outcome<Option<Vault>> {
        let open = |place: &TempDir| Vault::open(place.path(), log, Access::Read, &Settings::default());
        self.vault.as_ref().map(open).transpose().map_err(|error| format!("opening the vault: {error}"))
    }

    /// A copy of the vault, which nobody has open to write.
    pub(super) fn vault_copy(&self) -> Option<TempDir> {
        self.vault.as_ref().map(|place| copied(place.path()))
    }

    /// Puts a copy of the vault in the place of what is there, and returns that.
    pub(super) fn put_vault_back(&mut self, backup: TempDir) -> Option<TempDir> {
        let machine = self.machine.clone();
        let before = self.vault.take();
        let told = self.told.clone();
        *self = Host { told, ..Self::of(machine, self.clock.clone(), Some(backup), self.paths) };
        before
    }

    /// What is on the disk, as [`Host::content`], but for what a process that died has left unfinished, which counts for nothing, so that an
    /// opening that is refused may have removed it, and for the files that are locked, which have no content and may have been lost with
    /// their name.
    pub(super) fn finished_content(&self) -> KeyFiles {
        let counts =
            |path: &str| ![".tmp", "/LOCK", "/bulla.toml.lock"].iter().any(|end| path.ends_with(end));
        self.content().into_iter().filter(|(path, _)| counts(path)).collect()
    }

    /// The files of the key directory, but for the lock.
    pub(super) fn key_files(&self) -> KeyFiles {
        let paths = self.machine.files().into_iter();
        let paths = paths.filter(|path| path.starts_with("audit.keys/") && !path.ends_with("/LOCK"));
        paths.map(|path| (path.clone(), self.machine.read(&path).unwrap())).collect()
    }

    /// Puts these in the place of those that are there. The key of sources stays, without which nobody could say what they are: it is made
    /// once, and may be newer.
    pub(super) fn put_key_files_back(&self, files: &KeyFiles) {
        let others =
            self.key_files().into_iter().filter(|(path, _)| !files.iter().any(|(kept, _)| kept == path));
        let others = others.filter(|(path, _)| path != "audit.keys/sources.key");
        for (path, _) in others {
            self.machine.remove_file(&path);
        }
        files.iter().for_each(|(path, content)| self.machine.overwrite(path, content));
    }

    /// What is on the disk, for a comparison of two runs: all of the machine's, and the vault's roots. SQLite draws salts of its own; of
    /// the index, which readers make up with the system's randomness, it is the length.
    pub(super) fn content(&self) -> KeyFiles {
        let of_file = |path: String| {
            let content = self.machine.read(&path).unwrap();
            match path.split('/').nth(1) == Some("index") {
                true => (path, content.len().to_le_bytes().to_vec()),
                false => (path, content),
            }
        };
        let mut content = self.machine.files().into_iter().map(of_file).collect::<Vec<_>>();
        if let Some(place) = &self.vault {
            let mut roots = std::fs::read_dir(place.path().join("roots")).unwrap();
            let mut names = Vec::new();
            while let Some(Ok(item)) = roots.next() {
                names.push(item.path());
            }
            names.sort();
            content.extend(names.into_iter().map(|path| {
                (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
            }));
        }
        content
    }
}

/// A directory, in memory where the system has one for that: a vault syncs whatever it commits.
pub(crate) fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory).ok() } else { None };
    made.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

/// A copy of a vault and its roots. The memory that processes share is none of what a crash leaves.
pub(crate) fn copied(from: &Path) -> TempDir {
    let to = place();
    copy_into(from, to.path());
    let _ = std::fs::remove_file(to.path().join("vault/vault.db-shm"));
    to
}
