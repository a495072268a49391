//! Paths that cannot be looked at: that is no word of what the log is, neither that something is missing nor that it contradicts.

use super::world::World;
use bulla::store::{Item, Lock, Store, StoreFile};
use bulla::{ErrorKind, Verify};
use bulla_testkit::fault::{Fault, FaultStore};
use std::io;
use std::sync::{Arc, Mutex};

/// A path on which reading files whose name begins so fails.
#[derive(Debug)]
struct Unreadable {
    store: FaultStore,
    broken: Arc<Mutex<Option<&'static str>>>,
}

impl Store for Unreadable {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        match *self.broken.lock().unwrap() {
            Some(broken) if path.starts_with(broken) => Err(io::Error::from_raw_os_error(5)),
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
fn moved() -> (World, Arc<Mutex<Option<&'static str>>>) {
    let mut world = World::new(&["/backup"]);
    let log = world.open();
    // So many frames that a tile is full.
    world.append_each(&log, 0..300);
    world.machine.fail_below("audit", Fault::SyncFails);
    world.append(&log, 300..310);
    log.close().unwrap();
    world.machine.heal();
    let broken = Arc::<Mutex<Option<&'static str>>>::default();
    let (machine, there) = (world.machine.clone(), broken.clone());
    world.open_paths_by(move |path| {
        let store = machine.store(path.to_str().unwrap().trim_start_matches('/'));
        Arc::new(Unreadable { store, broken: there.clone() })
    });
    (world, broken)
}

#[test]
fn a_path_that_cannot_be_looked_at_is_not_missing() {
    let (world, broken) = moved();
    for name in ["path", "checkpoint"] {
        *broken.lock().unwrap() = Some(name);
        let error = Verify::open_store(world.log()).and_then(|verify| verify.run().map(|_| ())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
        assert!(error.to_string().contains("backup"), "{name}: {error}");
        let error = world.try_open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
        *broken.lock().unwrap() = None;
        world.check(310);
    }
}

#[test]
fn a_path_whose_checkpoint_cannot_be_compared_contradicts_nothing() {
    let (world, broken) = moved();
    *broken.lock().unwrap() = Some("tile");
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    *broken.lock().unwrap() = None;
    let log = world.open();
    world.append(&log, 310..320);
    log.close().unwrap();
    world.check(320);
}

#[test]
fn a_path_that_cannot_be_read_is_not_refused_as_none_when_it_is_named() {
    let (world, broken) = moved();
    world.set("backup_paths", "/backup");
    *broken.lock().unwrap() = Some("path");
    let error = world.try_set("backup_paths", "/backup,/third").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("/backup, a backup path, cannot be looked at"), "{error}");
    *broken.lock().unwrap() = None;
    world.set("backup_paths", "/backup,/third");
}
