//! A machine with several disks, and a log that may lie on all of them.

use crate::crash::world::OpenWrap;
use crate::simulate::{KeyStore, copied, place};
use bulla::environment::{Clock, Environment, Interrupt};
use bulla::event::{Dropped, Event};
use bulla::store::Store;
use bulla::{
    Configure, Entry, Export, Init, Log, LogId, Options, Query, Reader, Report, Restore, Restored, Step,
    Verify, join_paths,
};
use bulla_proof::commitment::Commitment;
use bulla_testkit::fault::{Fault, Faults};
use bulla_vault::{Access, Settings, Vault};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use zeroize::Zeroizing;

const RECIPIENT: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";

pub(super) struct World {
    pub(super) machine: Faults,
    environment: Environment,
    /// The directory that is named as the log's.
    own: &'static str,
    /// What the vault lies in, of a log with erasure.
    vault: Option<TempDir>,
}

/// A clock on which waiting takes no time.
pub(super) struct Hasty(pub(super) Arc<dyn Clock>);

impl Clock for Hasty {
    fn now(&self) -> i64 {
        self.0.now()
    }

    fn steady(&self) -> u64 {
        self.0.steady()
    }

    fn wait(&self, _: Duration, _: &Interrupt) {
        std::thread::yield_now();
    }
}

/// The key directory of a machine, whose vault lies in a real directory, where there is one.
fn keys_of(machine: &Faults, vault: Option<&TempDir>) -> Arc<dyn Store> {
    let files = machine.store("audit.keys");
    match vault {
        Some(place) => Arc::new(KeyStore::new(files, place.path())),
        None => Arc::new(files),
    }
}

/// An environment whose backup paths lie on this machine, below the paths' own names.
fn environment(machine: &Faults) -> Environment {
    let machine = machine.clone();
    Environment {
        key_wrap: Arc::new(OpenWrap),
        backup_paths: Some(Arc::new(move |path| {
            Arc::new(machine.store(path.to_str().unwrap().trim_start_matches('/'))) as Arc<dyn Store>
        })),
        ..Environment::default()
    }
}

impl World {
    /// A log with these backup paths.
    pub(super) fn new(paths: &[&str]) -> World {
        Self::made(paths, RECIPIENT, false)
    }

    /// The same, with erasure if `erasure`: then with a vault, which follows the log.
    pub(super) fn with_erasure(paths: &[&str], erasure: bool) -> World {
        Self::made(paths, RECIPIENT, erasure)
    }

    /// A log that took four entries on its own directory, and then four on each of these paths, since the one before failed; nothing fails any
    /// more, and it is closed.
    pub(super) fn handed_on(paths: &[&str]) -> World {
        let world = World::with_erasure(paths, false);
        world.hand_on(paths);
        world
    }

    /// Has a log take four entries on its own directory, and then four on each of its paths.
    pub(super) fn hand_on(&self, paths: &[&str]) {
        let log = self.open_stepped().unwrap();
        self.append_stepped(&log, 0..4);
        for (failing, first) in ["/audit"].iter().chain(paths).take(paths.len()).zip((4..).step_by(4)) {
            self.machine.fail_below(failing.trim_start_matches('/'), Fault::NoSpace);
            self.append_stepped(&log, first..first + 4);
        }
        log.close().unwrap();
        self.machine.heal();
    }

    /// The same without erasure, that this age recipient can read.
    pub(super) fn with_recipient(paths: &[&str], recipient: &str) -> World {
        Self::made(paths, recipient, false)
    }

    fn made(paths: &[&str], recipient: &str, erasure: bool) -> World {
        let machine = Faults::new();
        let environment = environment(&machine);
        let init = Init::default().origin("example.com/audit").recipient(recipient).erasure(erasure);
        let vault = erasure.then(place);
        init.create_in(&machine.store("audit"), &*keys_of(&machine, vault.as_ref()), &environment).unwrap();
        let world = World { machine, environment, own: "audit", vault };
        if !paths.is_empty() {
            world.configure(paths).unwrap();
        }
        world
    }

    /// The same after the death of the process.
    pub(super) fn killed(&self) -> World {
        self.on(self.machine.kill())
    }

    /// The same log on what is left of its machine. What the vault has committed is synced, so that a copy of its files is what is left of it.
    fn on(&self, machine: Faults) -> World {
        let vault = self.vault.as_ref().map(|place| copied(place.path()));
        World { environment: environment(&machine), machine, own: self.own, vault }
    }

    /// A copy of the vault, which nobody has open.
    pub(super) fn vault_copy(&self) -> TempDir {
        copied(self.vault.as_ref().unwrap().path())
    }

    /// A copy of a copy of a vault.
    pub(super) fn copy_of(vault: &TempDir) -> TempDir {
        copied(vault.path())
    }

    /// Puts a copy of the vault in its place.
    pub(super) fn put_vault_back(&mut self, vault: TempDir) {
        self.vault = Some(vault);
    }

    /// The store of the key directory.
    pub(super) fn keys(&self) -> Arc<dyn Store> {
        keys_of(&self.machine, self.vault.as_ref())
    }

    /// The same log by the name of another of its paths.
    pub(super) fn named(self, own: &'static str) -> World {
        World { own, ..self }
    }

    /// Has this open the backup paths from now on.
    pub(super) fn open_paths_by(
        &mut self,
        open: impl Fn(&std::path::Path) -> Arc<dyn Store> + Send + Sync + 'static,
    ) {
        self.environment.backup_paths = Some(Arc::new(open));
    }

    /// Has this clock be the machine's from now on.
    pub(super) fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.environment.clock = clock;
    }

    /// The events of entries that were dropped, with their frames.
    pub(super) fn dropped(&self) -> Vec<(u64, Dropped)> {
        let mut dropped = Vec::new();
        let tell = |logged: bulla::LoggedEvent| {
            if let Ok(Event::Dropped(event)) = logged.event {
                dropped.push((logged.frame, event));
            }
            Ok(())
        };
        Reader::open_store(self.log()).unwrap().events(tell).unwrap();
        dropped
    }

    /// The numbers that entries of the log have as locations, and their places in it.
    pub(super) fn numbers(&self) -> BTreeSet<u64> {
        Self::entries_of(self.log())
    }

    /// Waits until so many more operations were tried.
    pub(super) fn wait_for_failures(&self, operations: u64) {
        let until = self.machine.operations() + operations;
        while self.machine.operations() < until {
            std::thread::yield_now();
        }
    }

    pub(super) fn set(&self, name: &str, value: &str) {
        self.try_set(name, value).unwrap();
    }

    pub(super) fn try_set(&self, name: &str, value: &str) -> bulla::Result<()> {
        let configure = Configure::default().set(name, value).unwrap();
        let stores = (Arc::new(self.machine.store(self.own)), self.keys());
        configure.apply_in(stores.0, stores.1, &self.environment).map(|_| ())
    }

    /// Has `tell` told what becomes of paths, from now on.
    pub(super) fn tell_of_paths(&mut self, tell: impl Fn(&str) + Send + Sync + 'static) {
        self.environment.path_replaced = Some(Arc::new(tell));
    }

    /// How many events tell of segments that were given up.
    pub(super) fn abandoned(&self) -> usize {
        let mut abandoned = 0;
        let tell = |logged: bulla::LoggedEvent| {
            abandoned += usize::from(matches!(logged.event, Ok(Event::Abandoned { .. })));
            Ok(())
        };
        Reader::open_store(self.log()).unwrap().events(tell).unwrap();
        abandoned
    }

    pub(super) fn configure(&self, paths: &[&str]) -> bulla::Result<()> {
        let configure = Configure::default().set("backup_paths", &paths.join(",")).unwrap();
        let stores = (Arc::new(self.machine.store(self.own)), self.keys());
        configure.apply_in(stores.0, stores.1, &self.environment).map(|_| ())
    }

    /// The same after a power cut.
    pub(super) fn after_power_cut(&self, seed: u64) -> World {
        self.on(self.machine.crash(seed))
    }

    /// Opens the log without threads.
    pub(super) fn open_stepped(&self) -> bulla::Result<Log> {
        self.open_stepped_in(Arc::new(self.machine.store(self.own)))
    }

    /// The same with the smallest segments.
    pub(super) fn open_with_small_segments(&self) -> Log {
        let options = Self::options().segment_size(64 << 10);
        let log = Arc::new(self.machine.store(self.own));
        Log::open_stepped(log, self.keys(), options, self.environment.clone()).unwrap()
    }

    /// The same of a log whose paths are put together already.
    pub(super) fn open_stepped_in(&self, log: Arc<dyn Store>) -> bulla::Result<Log> {
        Log::open_stepped(log, self.keys(), Self::options(), self.environment.clone())
    }

    fn options() -> Options {
        Options::default().memory(64 << 20).block_size(4 << 10).writers(1).compression(0).retries(1)
    }

    pub(super) fn try_open(&self) -> bulla::Result<Log> {
        let log = Arc::new(self.machine.store(self.own));
        Log::open_stores(log, self.keys(), Self::options(), self.environment.clone())
    }

    pub(super) fn open(&self) -> Log {
        self.try_open().unwrap()
    }

    /// Appends entries with these numbers, and waits until they are durable.
    pub(super) fn try_append(&self, log: &Log, numbers: Range<u64>) -> bulla::Result<()> {
        let mut producer = log.producer()?;
        for number in numbers {
            let location = number.to_string();
            producer.append(&Entry::new("read", &location).payload(&[7; 100]))?;
        }
        producer.flush()?.durable()
    }

    pub(super) fn append(&self, log: &Log, numbers: Range<u64>) {
        self.try_append(log, numbers).unwrap();
    }

    /// The same, each in a frame of its own.
    pub(super) fn append_each(&self, log: &Log, numbers: Range<u64>) {
        numbers.for_each(|number| self.append(log, number..number + 1));
    }

    /// The same of a log without threads, which flushes in place of waiting.
    pub(super) fn try_append_stepped(&self, log: &Log, numbers: Range<u64>) -> bulla::Result<()> {
        let mut producer = log.producer()?;
        for number in numbers {
            producer.append(&Entry::new("read", &number.to_string()).payload(&[7; 100]))?;
        }
        let _ = producer.flush()?;
        log.flush()
    }

    /// Makes an entry durable in a frame of its own, and has nothing signed; of a log without threads.
    pub(super) fn commit_stepped(&self, log: &Log, number: u64) -> bulla::Result<()> {
        self.commit_sized(log, number, 100)
    }

    /// The same of an entry with so many bytes.
    pub(super) fn commit_sized(&self, log: &Log, number: u64, bytes: usize) -> bulla::Result<()> {
        let mut producer = log.producer()?;
        producer.append(&Entry::new("read", &number.to_string()).payload(&vec![7; bytes]))?;
        let _ = producer.flush()?;
        while log.step(Step::Seal)? {}
        log.step(Step::Commit).map(drop)
    }

    pub(super) fn append_stepped(&self, log: &Log, numbers: Range<u64>) {
        self.try_append_stepped(log, numbers).unwrap();
    }

    /// The place of the entry of each number among the log's entries.
    pub(super) fn places(&self) -> BTreeMap<u64, u64> {
        let mut places = BTreeMap::new();
        let reader = Reader::open_store(self.log()).unwrap().identity(Arc::new(OpenWrap));
        let add = |place: u64, entry: &Entry<'_>| {
            places.insert(std::str::from_utf8(entry.location.unwrap()).unwrap().parse().unwrap(), place);
            Ok(())
        };
        reader.for_each(&Query::new(), add).unwrap();
        places
    }

    /// How many entries come before a frame of the first 255, as the list of frames of the first path says.
    pub(super) fn entries_before(&self, frame: u64) -> u64 {
        let bundles =
            self.machine.files().into_iter().filter(|name| name.starts_with("audit/tile/entries/000.p/"));
        let bundle =
            bundles.max_by_key(|name| name.rsplit('/').next().unwrap().parse::<u64>().unwrap()).unwrap();
        let bundle = self.machine.read(&bundle).unwrap();
        let at = usize::try_from(frame).unwrap() * (2 + Commitment::LENGTH) + 2;
        Commitment::decode(&bundle[at..at + Commitment::LENGTH]).unwrap().first_entry
    }

    /// The log with all paths that its keys name.
    pub(super) fn log(&self) -> Arc<dyn Store> {
        self.join(Arc::new(self.machine.store(self.own)))
    }

    /// The same, with this as its own directory.
    pub(super) fn join(&self, first: Arc<dyn Store>) -> Arc<dyn Store> {
        let keys = self.keys();
        join_paths(first, Some(&keys), &[], &self.environment).unwrap()
    }

    pub(super) fn verify(&self) -> Report {
        let seal_key = String::from_utf8(self.machine.read("audit.keys/seal.key").unwrap()).unwrap();
        let state = self.machine.read("audit.keys/seal.state").unwrap();
        let verify = Verify::open_store(self.log()).unwrap().seal_key(&seal_key).unwrap();
        verify.seal_state(&state).unwrap().identity(Arc::new(OpenWrap)).run().unwrap()
    }

    fn entries_of(store: Arc<dyn Store>) -> BTreeSet<u64> {
        let reader = Reader::open_store(store).unwrap().identity(Arc::new(OpenWrap));
        let mut found = BTreeSet::new();
        let add = |_, entry: &Entry<'_>| {
            let number = std::str::from_utf8(entry.location.unwrap()).unwrap().parse().unwrap();
            assert!(found.insert(number), "{number} is there twice");
            Ok(())
        };
        reader.for_each(&Query::new(), add).unwrap();
        found
    }

    /// That the log is sound, and has these entries.
    pub(super) fn check_contains(&self, numbers: impl Iterator<Item = u64>) {
        let report = self.verify();
        assert!(report.ok, "{:#?}", report.findings);
        let found = Self::entries_of(self.log());
        assert!(numbers.into_iter().all(|number| found.contains(&number)), "{found:?}");
    }

    /// That the log is sound, and has the first so many entries and no others.
    pub(super) fn check(&self, entries: u64) {
        self.check_contains(0..entries);
        assert_eq!(Self::entries_of(self.log()).len() as u64, entries);
    }

    /// What can be read of a damaged log.
    pub(super) fn salvaged(&self) -> BTreeSet<u64> {
        let mut out = Vec::new();
        let export = Export::open_store(self.log()).unwrap().identity(Arc::new(OpenWrap)).salvage(true);
        export.run(&mut out).unwrap();
        let number = |line: &str| -> Option<u64> {
            let line = serde_json::from_str::<serde_json::Value>(line).ok()?;
            line.get("location")?.as_str()?.parse().ok()
        };
        String::from_utf8(out).unwrap().lines().filter_map(number).collect()
    }

    /// Reads all entries with the keys of the vault.
    pub(super) fn read_with_keys(&self) -> bulla::Result<()> {
        let log = self.log();
        let vault = self.read_vault(bulla::info_of(log.clone()).unwrap().id);
        let reader = Reader::open_store(log)?.identity(Arc::new(OpenWrap)).group_keys(Arc::new(vault));
        reader.for_each(&Query::new(), |_, _| Ok(())).map(drop)
    }

    /// Exports all of it to nowhere.
    pub(super) fn exported(&self) -> bulla::Result<()> {
        let export = Export::open_store(self.log()).unwrap().identity(Arc::new(OpenWrap));
        export.run(&mut Vec::new()).map(drop)
    }

    /// Reads all events.
    pub(super) fn events(&self) -> bulla::Result<()> {
        Reader::open_store(self.log())?.events(|_| Ok(())).map(drop)
    }

    pub(super) fn entries_of_first_path(&self) -> BTreeSet<u64> {
        Self::entries_of(Arc::new(self.machine.store(self.own)))
    }

    pub(super) fn entries_with_also(&self, path: &str) -> BTreeSet<u64> {
        let log = Arc::new(self.machine.store(self.own));
        Self::entries_of(join_paths(log, None, &[PathBuf::from(path)], &self.environment).unwrap())
    }

    /// A verification with the paths alone that are named, in this order.
    pub(super) fn verify_with_also(&self, paths: &[&str]) -> Report {
        let also = paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let log = Arc::new(self.machine.store(self.own));
        let log = join_paths(log, None, &also, &self.environment).unwrap();
        Verify::open_store(log).unwrap().run().unwrap()
    }

    pub(super) fn told<T>(&self, of: impl Fn(Event) -> Option<T>) -> Vec<T> {
        let mut told = Vec::new();
        let tell = |logged: bulla::LoggedEvent| {
            told.extend(logged.event.ok().and_then(&of));
            Ok(())
        };
        Reader::open_store(self.log()).unwrap().events(tell).unwrap();
        told
    }

    /// The paths that were replaced, and those that replaced them, as events tell.
    pub(super) fn replaced(&self) -> Vec<(String, String)> {
        self.told(|event| match event {
            Event::PathReplaced { from, to, .. } => Some((from, to)),
            _ => None,
        })
    }

    /// How many frames were known of each part that was given up, as events tell.
    pub(super) fn truncated(&self) -> Vec<u64> {
        self.told(|event| match event {
            Event::Truncated { known, .. } => Some(known),
            _ => None,
        })
    }

    /// Goes on with the log as it is, with a seal state that is made anew where it is missing.
    pub(super) fn give_up(&self) -> bulla::Result<Restored> {
        self.give_up_with(|restore| restore)
    }

    /// The same, with more said.
    pub(super) fn give_up_with(&self, said: impl Fn(Restore) -> Restore) -> bulla::Result<Restored> {
        self.restored(|restore| said(self.with_seal_key(restore).older_log()))
    }

    /// The same once it was begun, which says so itself.
    pub(super) fn go_on_giving_up(&self) -> bulla::Result<Restored> {
        self.restored(|restore| self.with_seal_key(restore))
    }

    fn with_seal_key(&self, restore: Restore) -> Restore {
        let seal_key = String::from_utf8(self.machine.read("audit.keys/seal.key").unwrap()).unwrap();
        restore.seal_key(Zeroizing::new(seal_key))
    }

    /// Takes the key directory up as it is.
    pub(super) fn take_up(&self) -> bulla::Result<Restored> {
        self.restored(|restore| restore)
    }

    fn restored(&self, how: impl FnOnce(Restore) -> Restore) -> bulla::Result<Restored> {
        let clock = Arc::new(Hasty(self.environment.clock.clone()));
        let environment = Environment { clock, ..self.environment.clone() };
        let restore = Restore::new(self.own, Arc::new(OpenWrap)).environment(environment);
        how(restore).run_in(Arc::new(self.machine.store(self.own)), self.keys())
    }

    /// The vault, which nobody writes to.
    fn read_vault(&self, log: LogId) -> Vault {
        let place = self.vault.as_ref().unwrap().path();
        Vault::open(place, log, Access::Read, &Settings::default()).unwrap()
    }

    /// How many frames the vault has followed, and how many the newest checkpoint covers.
    pub(super) fn followed_and_signed(&self) -> (u64, u64) {
        let info = bulla::info_of(self.log()).unwrap();
        (self.read_vault(info.id).follows().unwrap().size, info.tree_size)
    }

    /// The number that the vault gives next.
    pub(super) fn next_number(&self) -> u64 {
        let log = bulla::info_of(self.log()).unwrap().id;
        self.read_vault(log).next_number().unwrap()
    }

    /// The id of a path, which the first one has from the log.
    pub(super) fn id(&self, path: &str) -> String {
        match self.machine.read(&format!("{path}/path")) {
            Some(text) => String::from_utf8(text).unwrap().lines().nth(2).unwrap().to_owned(),
            None => bulla::info_of(self.log()).unwrap().id.to_string(),
        }
    }

    /// All that lies on a path.
    pub(super) fn files_below(&self, path: &str) -> BTreeMap<String, Vec<u8>> {
        let files = self.machine.files().into_iter();
        let below =
            files.filter_map(|file| Some((file.strip_prefix(path)?.strip_prefix('/')?.to_owned(), file)));
        below.map(|(name, file)| (name, self.machine.read(&file).unwrap())).collect()
    }

    /// Takes all that lies on a path away.
    pub(super) fn destroy(&self, path: &str) {
        for name in self.files_below(path).into_keys() {
            self.machine.remove_file(&format!("{path}/{name}"));
        }
        // Mount points stay, and are empty.
        let store = self.machine.store(path);
        ["segments", "index"].into_iter().for_each(|directory| drop(store.remove_directory(directory)));
    }

    /// Puts back what lay on a path.
    pub(super) fn put_back(&self, path: &str, files: &BTreeMap<String, Vec<u8>>) {
        self.destroy(path);
        for (name, content) in files {
            self.machine.overwrite(&format!("{path}/{name}"), content);
        }
    }
}
