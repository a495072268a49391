//! A directory that is moved, or replaced, while a log is open.

use super::{NEVER, Place, contents, options, unavailable};
use crate::helpers::{hold_order, release_order};
use bulla::control::Client;
use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::store::{FileSystem, Item, Lock, Store, StoreFile};
use bulla::{Durability, Entry, ErasureOrder, Init, Log, Options, Step};
use bulla_testkit::Memory;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MODES: [Durability; 3] = [Durability::Group, Durability::Interval(NEVER), Durability::Os];

/// What an operator, or an attacker, does to a log `audit` under its writer. `Log::open` finds the writer's log in the first
/// two directories then, and what is at its old place in the others, where that is a log.
struct Attack {
    what: &'static str,
    /// What the error names.
    named: &'static str,
    carry_out: fn(&Place),
    moved: (&'static str, &'static str),
    other: Option<(&'static str, &'static str)>,
}

const ATTACKS: [Attack; 6] = [
    Attack {
        what: "both directories are moved, and a new log is made in their place",
        named: "audit",
        carry_out: |place| {
            place.rename("audit", "old");
            place.rename("audit.keys", "old.keys");
            Init::default().erasure(false).create(place.path("audit")).unwrap();
        },
        moved: ("old", "old.keys"),
        other: Some(("audit", "audit.keys")),
    },
    Attack {
        what: "a new log with other keys is put in the place of the log",
        named: "audit",
        carry_out: |place| {
            place.rename("audit", "old");
            let init = Init::default().erasure(false);
            init.create_with_keys(place.path("audit"), place.path("others.keys")).unwrap();
        },
        moved: ("old", "audit.keys"),
        other: Some(("audit", "others.keys")),
    },
    Attack {
        what: "the log is moved",
        named: "audit",
        carry_out: |place| place.rename("audit", "old"),
        moved: ("old", "audit.keys"),
        other: None,
    },
    Attack {
        what: "the key directory is replaced by a copy of itself",
        named: "audit.keys",
        carry_out: |place| {
            place.copy("audit.keys", "copy");
            place.rename("audit.keys", "old.keys");
            place.rename("copy", "audit.keys");
        },
        moved: ("audit", "old.keys"),
        other: None,
    },
    Attack {
        what: "the log is replaced by a link to it, after it was moved",
        named: "audit",
        carry_out: |place| {
            place.rename("audit", "old");
            place.copy("old", "copy");
            std::os::unix::fs::symlink(place.path("copy"), place.path("audit")).unwrap();
        },
        moved: ("old", "audit.keys"),
        other: None,
    },
    Attack {
        what: "the lock alone is replaced, so that a second writer could have it",
        named: "audit",
        carry_out: |place| {
            fs::remove_file(place.path("audit/LOCK")).unwrap();
            fs::write(place.path("audit/LOCK"), "").unwrap();
        },
        moved: ("audit", "audit.keys"),
        other: None,
    },
];

fn entry(location: &str) -> Entry<'_> {
    Entry::new("read", location)
}

#[test]
fn a_log_whose_directory_is_replaced_fails_and_nothing_more_is_written_to_either() {
    for durability in MODES {
        for Attack { what, named, carry_out, moved, other } in ATTACKS {
            let what = format!("{durability:?}: {what}");
            let place = Place::new(Init::default().erasure(false));
            let log = place.open_stepped(durability);
            let mut producer = log.producer().unwrap();
            producer.append(&entry("before")).unwrap();
            let before = producer.flush().unwrap();
            while log.step(Step::Seal).unwrap() {}
            log.step(Step::Commit).unwrap();

            carry_out(&place);
            let all = contents(place.directory.path());
            producer.append(&entry("after")).unwrap();
            let after = producer.flush().unwrap();
            while log.step(Step::Seal).unwrap() {}
            let step = if matches!(durability, Durability::Interval(_)) { Step::Sync } else { Step::Commit };
            let error = unavailable(log.step(step));
            let name = place.path(named).display().to_string();
            assert!(error.starts_with(&format!("{name} was replaced or moved")), "{what}: {error}");
            // In mode `interval` nothing was durable yet, and so nothing is acknowledged.
            assert_eq!(before.durable().is_ok(), !matches!(durability, Durability::Interval(_)), "{what}");
            assert_eq!(unavailable(after.durable()), error, "{what}");
            assert_eq!(unavailable(producer.append(&entry("later"))), error, "{what}");
            for refused in [Step::Sync, Step::Checkpoint] {
                assert_eq!(unavailable(log.step(refused)), error, "{what}");
            }
            unavailable(log.rotate());
            let linger = bulla::Configure::default().set("linger", "20 ms").unwrap();
            assert_eq!(unavailable(log.configure(&linger)), error, "{what}");
            drop(producer);
            assert_eq!(unavailable(log.close()), error, "{what}");
            assert!(contents(place.directory.path()) == all, "{what}: something was written");

            if let Some((log, keys)) = other {
                assert_eq!(place.verified(log, keys), 0, "{what}");
            }
            let [log, keys] = [moved.0, moved.1].map(|name| place.path(name));
            let log = Log::open_with_keys(log, keys, options()).unwrap();
            assert_eq!(log.recovery().entries, 1, "{what}: what was written is adopted");
            log.close().unwrap();
            assert_eq!(place.verified(moved.0, moved.1), 1, "{what}");
        }
    }
}

#[test]
fn a_log_at_work_acknowledges_nothing_that_is_not_in_it_and_leaves_the_other_alone() {
    // Both are written by one process here, which a vault allows for one at a path.
    let place = Place::new(Init::default().erasure(false));
    let log = Log::open(place.path("audit"), options()).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&entry("before")).unwrap();
    producer.flush().unwrap().checkpointed().unwrap();

    place.rename("audit", "old");
    place.rename("audit.keys", "old.keys");
    Init::default().erasure(false).create(place.path("audit")).unwrap();
    let other = Log::open(place.path("audit"), options()).unwrap();
    producer.append(&entry("after")).unwrap();
    let error = unavailable(producer.flush().unwrap().durable());
    assert!(error.contains("audit was replaced or moved"), "{error}");
    drop(producer);
    assert_eq!(unavailable(log.close()), error);

    let status = Client::connect(place.path("audit.keys")).unwrap().expect("the other one's socket is there");
    assert_eq!(status.status().log, bulla::info(place.path("audit")).unwrap().id);
    let mut producer = other.producer().unwrap();
    producer.append(&entry("theirs")).unwrap();
    drop(producer);
    other.close().unwrap();
    assert_eq!(place.verified("audit", "audit.keys"), 1);
    assert_eq!(place.verified("old", "old.keys"), 1);
    let log = Log::open(place.path("old"), options()).unwrap();
    assert_eq!(log.recovery().entries, 0, "nothing was written after the last checkpoint");
    log.close().unwrap();
}

#[test]
fn a_log_that_is_closed_without_another_entry_says_so_too() {
    let place = Place::new(Init::default());
    let log = Log::open(place.path("audit"), options()).unwrap();
    place.rename("audit.keys", "old.keys");
    let error = unavailable(log.close());
    assert!(error.contains("audit.keys was replaced or moved"), "{error}");
    place.rename("old.keys", "audit.keys");
    Log::open(place.path("audit"), options()).unwrap().close().unwrap();
}

#[test]
fn nobody_is_erased_or_held_by_a_log_that_is_not_where_it_was() {
    let place = Place::new(Init::default());
    let log = Log::open(place.path("audit"), options()).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&entry("x").subject("s")).unwrap();
    producer.flush().unwrap().checkpointed().unwrap();
    drop(producer);
    let authority = fs::read_to_string(place.path("audit.keys/erasure.key")).unwrap();
    let info = bulla::info(place.path("audit")).unwrap();
    let key = SigningKey::parse(&authority).unwrap();
    let order = ErasureOrder::give(&key, info.id, &["s"], None, &Environment::default()).unwrap();
    let hold = hold_order(&place.path("audit"), "s", "legal", "case 4711").unwrap();
    let release = release_order(&place.path("audit"), "s", "legal");
    place.rename("audit.keys", "old.keys");
    let before = contents(&place.path("old.keys"));
    for result in [log.erase(&order).map(drop), log.hold(&hold).map(drop), log.release(&release)] {
        assert!(unavailable(result).contains("audit.keys was replaced or moved"));
    }
    assert!(contents(&place.path("old.keys")) == before);
    drop(log);
}

/// A store that counts how often its locks are looked at, and cannot tell for some times.
#[derive(Debug)]
struct Looked {
    store: Memory,
    looks: Arc<Looks>,
}

#[derive(Debug, Default)]
struct Looks {
    count: AtomicU64,
    fail: AtomicU64,
}

#[derive(Debug)]
struct LookedLock {
    lock: Box<dyn Lock>,
    looks: Arc<Looks>,
}

impl Lock for LookedLock {
    fn is_in_place(&self) -> io::Result<bool> {
        self.looks.count.fetch_add(1, Ordering::Relaxed);
        let fails =
            self.looks.fail.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if fails.is_ok() { Err(io::Error::other("stale handle")) } else { self.lock.is_in_place() }
    }
}

impl Store for Looked {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.create(path)
    }
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.open(path)
    }
    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.open_write(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.store.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.store.remove(path)
    }
    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.store.list(directory)
    }
    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.store.create_directory(path)
    }
    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.store.remove_directory(path)
    }
    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.store.sync_directory(path)
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(LookedLock { lock: self.store.lock(path)?, looks: self.looks.clone() }))
    }
    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.store.is_locked(path)
    }
    fn describe(&self, path: &str) -> String {
        self.store.describe(path)
    }
}

/// A stepped log whose locks are looked at by somebody who counts.
fn looked(options: Options) -> (Log, Arc<Looks>) {
    let (log, keys) = (Memory::new(), Memory::new());
    Init::default().erasure(false).create_in(&log, &keys, &Environment::default()).unwrap();
    let looks = Arc::new(Looks::default());
    let store = |store| Arc::new(Looked { store, looks: looks.clone() });
    let log = Log::open_stepped(store(log), store(keys), options, Environment::default()).unwrap();
    (log, looks)
}

#[test]
fn each_lock_is_looked_at_once_a_group_however_many_entries_it_has() {
    let (log, looks) = looked(options());
    let mut producer = log.producer().unwrap();
    for entries in [1, 10, 5000] {
        for _ in 0..entries {
            producer.append(&entry("x")).unwrap();
        }
        let receipt = producer.flush().unwrap();
        while log.step(Step::Seal).unwrap() {}
        looks.count.store(0, Ordering::Relaxed);
        log.step(Step::Commit).unwrap();
        receipt.durable().unwrap();
        assert_eq!(looks.count.load(Ordering::Relaxed), 2, "{entries} entries, two directories");
    }
}

#[test]
fn where_it_cannot_be_told_it_is_asked_again_and_then_the_log_fails() {
    let commit = |failures| {
        let (log, looks) = looked(options().retries(3));
        let mut producer = log.producer().unwrap();
        producer.append(&entry("x")).unwrap();
        let receipt = producer.flush().unwrap();
        while log.step(Step::Seal).unwrap() {}
        looks.fail.store(failures, Ordering::Relaxed);
        let committed = log.step(Step::Commit);
        assert_eq!(receipt.durable().is_ok(), committed.is_ok());
        drop(producer);
        assert_eq!(log.close().is_ok(), committed.is_ok());
        committed
    };
    assert!(commit(3).unwrap());
    let error = unavailable(commit(4));
    assert!(error.contains("looking whether memory: is where it was: stale handle"), "{error}");
}

/// The lock of a store that is no directory is always in its place; that of the file system says what is so.
#[test]
fn a_store_s_lock_is_in_its_place_for_as_long_as_its_name_leads_to_it() {
    assert!(Memory::new().lock("LOCK").unwrap().is_in_place().unwrap());
    let place = tempfile::tempdir().unwrap();
    let lock = FileSystem::new(place.path()).lock("LOCK").unwrap();
    assert!(lock.is_in_place().unwrap());
    fs::remove_file(place.path().join("LOCK")).unwrap();
    assert!(!lock.is_in_place().unwrap());
}

/// What it is called, and how it is done.
type SegmentAttack = (&'static str, fn(&Path));

/// The current segment alone: the directories and their locks are where they were.
#[test]
fn a_log_whose_current_segment_is_taken_away_fails_and_acknowledges_nothing_more() {
    let attacks: [SegmentAttack; 4] = [
        ("removed", |segment| fs::remove_file(segment).unwrap()),
        ("moved", |segment| fs::rename(segment, segment.with_extension("moved")).unwrap()),
        ("replaced by a copy", |segment| {
            let copy = segment.with_extension("copy");
            fs::copy(segment, &copy).unwrap();
            fs::rename(copy, segment).unwrap();
        }),
        ("cut", |segment| {
            let file = fs::File::options().write(true).open(segment).unwrap();
            file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        }),
    ];
    for durability in MODES {
        for (what, carry_out) in attacks {
            let what = format!("{durability:?}: {what}");
            let place = Place::new(Init::default().erasure(false));
            let log = place.open_stepped(durability);
            let mut producer = log.producer().unwrap();
            let mut append = |location| {
                producer.append(&entry(location)).unwrap();
                let receipt = producer.flush().unwrap();
                while log.step(Step::Seal).unwrap() {}
                (receipt, log.step(Step::Commit).and_then(|_| log.step(Step::Sync)))
            };
            let (before, done) = append("before");
            done.unwrap();
            before.durable().unwrap();

            let segments = place.path("audit/segments");
            let segment = fs::read_dir(segments).unwrap().next().unwrap().unwrap().path();
            carry_out(&segment);
            let (after, failed) = append("after");
            let error = unavailable(failed);
            let name = segment.display();
            assert!(error.starts_with(&format!("{name} was removed, cut or replaced")), "{what}: {error}");
            assert_eq!(unavailable(after.durable()), error, "{what}");
            assert_eq!(unavailable(producer.append(&entry("again"))), error, "{what}");
            assert_eq!(unavailable(log.close()), error, "{what}");
        }
    }
}
