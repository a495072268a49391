//! Paths that cannot be looked at: that is no word of what the log is, neither that something is missing nor that it contradicts.

use super::world::World;
use crate::crash::world::OpenWrap;
use bulla::mirror::Mirror;
use bulla::store::{Item, Lock, Store, StoreFile};
use bulla::{ErrorKind, Query, Reader, Verify};
use bulla_testkit::Memory;
use bulla_testkit::fault::{Fault, FaultStore};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What fails of a path: reading files whose name begins so; and of the times that its segments are listed, as many as there are from the
/// first of these on, up to the second.
#[derive(Clone, Debug, Default)]
struct Broken {
    name: Arc<Mutex<Option<&'static str>>>,
    lists: Arc<Mutex<Lists>>,
    /// How often something is opened or listed before nothing is there any more.
    going: Arc<Mutex<Option<usize>>>,
}

impl Broken {
    fn is_gone(&self) -> bool {
        let mut going = self.going.lock().unwrap();
        let is_gone = *going == Some(0);
        *going = going.map(|left| left.saturating_sub(1));
        is_gone
    }
}

#[derive(Debug, Default)]
struct Lists {
    count: usize,
    fail: Range<usize>,
    /// Whether its own directory is not synced either.
    no_sync: bool,
}

/// A path of which something is broken.
#[derive(Debug)]
struct Unreadable {
    store: FaultStore,
    broken: Broken,
}

impl Store for Unreadable {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        match *self.broken.name.lock().unwrap() {
            Some(broken) if path.starts_with(broken) => Err(io::Error::from_raw_os_error(5)),
            _ if self.broken.is_gone() => Err(io::ErrorKind::NotFound.into()),
            _ => self.store.open(path),
        }
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
        if directory == "segments" {
            let mut lists = self.broken.lists.lock().unwrap();
            lists.count += 1;
            if lists.fail.contains(&(lists.count - 1)) {
                return Err(io::Error::from_raw_os_error(5));
            }
        }
        if self.broken.is_gone() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.store.list(directory)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.store.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.store.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        if path.is_empty() && self.broken.lists.lock().unwrap().no_sync {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.store.sync_directory(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        self.store.lock(path)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.store.is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.store.describe(path)
    }
}

/// A log that went on on its second path, where what is named can be made unreadable.
fn moved() -> (World, Broken) {
    let mut world = World::new(&["/backup"]);
    let log = world.open();
    // So many frames that a tile is full.
    world.append_each(&log, 0..300);
    world.machine.fail_below("audit", Fault::SyncFails);
    world.append(&log, 300..310);
    log.close().unwrap();
    world.machine.heal();
    let broken = break_backup(&mut world);
    (world, broken)
}

/// Has what fails of the second path be what is named from now on.
fn break_backup(world: &mut World) -> Broken {
    let broken = Broken::default();
    let (machine, there) = (world.machine.clone(), broken.clone());
    world.open_paths_by(move |path| {
        let store = machine.store(path.to_str().unwrap().trim_start_matches('/'));
        Arc::new(Unreadable { store, broken: there.clone() })
    });
    broken
}

#[test]
fn a_path_that_cannot_be_looked_at_is_not_missing() {
    let (world, broken) = moved();
    for name in ["path", "checkpoint"] {
        *broken.name.lock().unwrap() = Some(name);
        let error = Verify::open_store(world.log()).and_then(|verify| verify.run().map(|_| ())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
        assert!(error.to_string().contains("backup"), "{name}: {error}");
        let error = world.try_open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
        let said = error.to_string();
        assert!(said.contains("backup, a path of the log, cannot be looked at"), "{name}: {said}");
        assert!(!said.contains("missing") && !said.contains("lost for good"), "{name}: {said}");
        *broken.name.lock().unwrap() = None;
        world.check(310);
    }
}

#[test]
fn a_path_whose_checkpoint_cannot_be_compared_contradicts_nothing() {
    let (world, broken) = moved();
    *broken.name.lock().unwrap() = Some("tile");
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    *broken.name.lock().unwrap() = None;
    let log = world.open();
    world.append(&log, 310..320);
    log.close().unwrap();
    world.check(320);
}

#[test]
fn a_path_that_cannot_be_read_is_not_refused_as_none_when_it_is_named() {
    let (world, broken) = moved();
    world.set("backup_paths", "/backup");
    *broken.name.lock().unwrap() = Some("path");
    let error = world.try_set("backup_paths", "/backup,/third").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("/backup, a backup path, cannot be looked at"), "{error}");
    *broken.name.lock().unwrap() = None;
    world.set("backup_paths", "/backup,/third");
}

/// Nobody can tell of the log's own directory that it is none where what would tell cannot be read; whether another path has the
/// configuration or not.
#[test]
fn the_first_directory_that_cannot_be_looked_at_is_not_missing() {
    for was_used in [false, true] {
        let world = World::new(&["/backup"]);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        if was_used {
            world.machine.fail_below("audit", Fault::NoSpace);
            world.append_stepped(&log, 4..8);
            world.machine.heal();
            world.machine.fail_below("backup", Fault::SyncFails);
            world.append_stepped(&log, 8..12);
        }
        log.close().unwrap();
        world.machine.heal();
        let broken = Broken::default();
        *broken.name.lock().unwrap() = Some("bulla.toml");
        broken.lists.lock().unwrap().fail = 0..1000;
        let first = Unreadable { store: world.machine.store("audit"), broken };
        let error = world.open_stepped_in(Arc::new(first)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("audit, a path of the log, cannot be looked at"), "{error}");
        world.check(if was_used { 12 } else { 4 });
    }
}

/// A log that went on on its second path, and was killed there with frames that nobody had signed.
fn killed_on_the_second() -> World {
    let world = World::with_erasure(&["/backup"], true);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::SyncFails);
    (4..8).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.killed()
}

/// The frames that lie there would have their numbers given once more.
#[test]
fn a_path_that_is_not_listed_is_not_left_out_of_a_log_that_is_opened() {
    let (mut failed, mut opened) = (0, 0);
    for nth in 0.. {
        let mut world = killed_on_the_second();
        let broken = break_backup(&mut world);
        broken.lists.lock().unwrap().fail = nth..nth + 1;
        match world.open_stepped() {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "list {nth}: {error}");
                assert!(
                    error.to_string().contains("backup/segments cannot be listed"),
                    "list {nth}: {error}"
                );
                failed += 1;
            }
            Ok(log) => {
                // Once it is known where the log ends, one that is not listed is left out.
                world.append_stepped(&log, 8..12);
                log.close().unwrap();
                opened += 1;
            }
        }
        let count = broken.lists.lock().unwrap().count;
        broken.lists.lock().unwrap().fail = 0..0;
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 100..104);
        log.close().unwrap();
        world.check_contains((0..8).chain(100..104));
        if count <= nth {
            break;
        }
    }
    assert!(failed > 1 && opened > 0, "{failed} failed, {opened} opened");
}

/// So it is with a path of which something failed before: what is acknowledged may lie there alone. Nobody knows less of it where a path of
/// the log was lost before.
#[test]
fn a_path_that_failed_before_it_was_listed_is_not_left_out_of_a_log_that_is_opened() {
    for lost_before in [false, true] {
        let world = World::new(&["/backup", "/third"]);
        if lost_before {
            world.destroy("third");
            world.configure(&["/backup"]).unwrap();
        }
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.commit_stepped(&log, 4).unwrap();
        let world = world.killed();
        let broken = Broken::default();
        *broken.lists.lock().unwrap() = Lists { fail: 0..1000, no_sync: true, ..Lists::default() };
        let first = Unreadable { store: world.machine.store("audit"), broken };
        let error = world.open_stepped_in(Arc::new(first)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "lost before: {lost_before}: {error}");
        assert!(error.to_string().contains("audit/segments cannot be listed"), "{error}");
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 5..8);
        log.close().unwrap();
        world.check(8);
    }
}

/// Whenever it goes in a reading: nothing is wrong with the log for that.
#[test]
fn a_path_that_goes_while_it_is_read_is_missing() {
    type Read = fn(&World) -> bulla::Result<()>;
    let one: Read = |world| {
        let query = Query { first_entry: Some(305), last_entry: Some(305), ..Query::new() };
        let reader = Reader::open_store(world.log())?.identity(Arc::new(OpenWrap));
        reader.for_each(&query, |_, _| Ok(())).map(drop)
    };
    let event: Read = |world| {
        let reader = Reader::open_store(world.log())?;
        let mut events = Vec::new();
        reader.events(|event| {
            events.push(event.frame);
            Ok(())
        })?;
        reader.prove_event(*events.last().unwrap()).map(drop)
    };
    let proof: Read = |world| {
        let query = Query { first_entry: Some(305), last_entry: Some(305), ..Query::new() };
        Reader::open_store(world.log())?.identity(Arc::new(OpenWrap)).prove(&query).map(drop)
    };
    let growth: Read = |world| {
        let old = world.machine.read("audit/checkpoint").unwrap();
        Reader::open_store(world.log())?.prove_consistency(&old).map(drop)
    };
    let copy: Read =
        |world| Mirror::open_stores(world.log(), Arc::new(Memory::new()), None)?.poll(|_| {}).map(drop);
    let following: Read = |world| {
        let reader = Reader::open_store(world.log())?.identity(Arc::new(OpenWrap));
        let mut follow = reader.follow(&Query::new())?;
        follow.poll(|_| Ok(())).map(drop)
    };
    let (world, broken) = moved();
    for (what, read) in [
        ("all", World::exported as Read),
        ("one", one),
        ("events", World::events),
        ("epochs", |world| bulla::epochs_of(world.log()).map(drop)),
        ("sources", |world| bulla::sources_of(world.log(), &*world.keys()).map(drop)),
        ("an event's proof", event),
        ("a proof", proof),
        ("a proof of growth", growth),
        ("a copy", copy),
        ("following", following),
    ] {
        let mut missed = 0;
        for times in 0.. {
            *broken.going.lock().unwrap() = Some(times);
            let done = read(&world);
            let left = broken.going.lock().unwrap().take();
            if let Err(error) = &done {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}, {times}: {error}");
                assert!(error.to_string().contains("backup"), "{what}, {times}: {error}");
                missed += 1;
            }
            if left != Some(0) {
                done.unwrap();
                break;
            }
        }
        assert!(missed > 3, "{what}");
    }
}
