use super::*;
use crate::scan::stored_tree::tests::{head, stored};
use bulla_crypto::environment::SystemClock;
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::sign_checkpoint;
use bulla_proof::hash::Hash;
use bulla_store::{Item, StoreFile};
use bulla_testkit::Memory;
use std::sync::Mutex;

const NAME: &str = "mnt/audit.pin";
const LOCK: &str = "mnt/audit.pin.lock";

fn key() -> SigningKey {
    SigningKey::from_seed("example.com/audit", &[7; 32]).unwrap()
}

fn note(head: TreeHead) -> Vec<u8> {
    let checkpoint = Checkpoint::new("example.com/audit", head.size, head.root);
    sign_checkpoint(&checkpoint, key().verifier(), |text| key().sign(text)).into_bytes()
}

/// A place for a pin of this head, if it is to be there.
fn pins(pinned: Option<TreeHead>) -> Memory {
    let pins = Memory::new();
    pins.create_directory("mnt").unwrap();
    pinned.iter().for_each(|head| bulla_store::replace(&pins, NAME, &note(*head)).unwrap());
    pins
}

fn pin(pins: impl Store + 'static, clock: impl Clock + 'static) -> Pin {
    Pin::at(Path::new("/mnt/audit.pin"), Some(Arc::new(pins)), Arc::new(clock))
}

fn content(pins: &Memory) -> Vec<u8> {
    bulla_store::read_small(pins, NAME, 1 << 20).unwrap()
}

#[test]
fn a_pin_goes_forward_along_its_own_tree_and_nowhere_else() {
    let (log, roots) = stored(600);
    let other = |size| TreeHead { size, root: Hash([9; 32]) };
    let at = |size| head(&roots, size);
    for (before, to, expected) in [
        (at(0), at(600), Some(Advanced::To(at(600)))),
        (at(256), at(600), Some(Advanced::To(at(600)))),
        (at(599), at(600), Some(Advanced::To(at(600)))),
        (at(600), at(600), Some(Advanced::To(at(600)))),
        (at(600), at(300), Some(Advanced::IsAhead(at(600)))),
        (other(600), at(300), Some(Advanced::IsAhead(other(600)))),
        (other(300), at(600), None),
        (other(600), at(600), None),
        (other(0), at(600), None),
    ] {
        let pins = pins(Some(before));
        let advanced =
            pin(pins.clone(), SystemClock).advance((&log, key().verifier()), (to, &note(to)), None);
        let what = format!("{} to {}", before.size, to.size);
        match (&expected, advanced) {
            (Some(expected), Ok(advanced)) => assert_eq!(*expected, advanced, "{what}"),
            (None, Err(error)) => assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}"),
            (_, advanced) => panic!("{what}: {advanced:?}"),
        }
        let left = if expected == Some(Advanced::To(to)) { to } else { before };
        assert!(content(&pins) == note(left), "{what}");
    }
}

#[test]
fn a_pin_is_made_where_nothing_is_and_advanced_where_it_is() {
    let (log, roots) = stored(2);
    let empty = pins(None);
    let made = || pin(empty.clone(), SystemClock);
    let (first, second) = (head(&roots, 1), head(&roots, 2));
    let advanced = made().advance((&log, key().verifier()), (second, &note(second)), None);
    assert_eq!(advanced.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(made().read(key().verifier()).unwrap(), PinFile::Nothing);
    made().make(&note(first)).unwrap();
    assert_eq!(made().read(key().verifier()).unwrap(), PinFile::Head(first));
    assert_eq!(made().make(&note(second)).unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(content(&empty) == note(first));
}

/// A place for pins that tells of each look at the pin, and each change of it, without its lock.
#[derive(Clone, Debug)]
struct Watched {
    memory: Memory,
    unlocked: Arc<Mutex<Vec<&'static str>>>,
}

impl Watched {
    fn look(&self, operation: &'static str) {
        if !self.memory.is_locked(LOCK).unwrap() {
            self.unlocked.lock().unwrap().push(operation);
        }
    }
}

impl Store for Watched {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.memory.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.look("open");
        self.memory.open(path)
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.memory.open_write(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.look("rename");
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.memory.remove(path)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.memory.list(directory)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.memory.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.memory.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.look("sync");
        self.memory.sync_directory(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        self.memory.lock(path)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.memory.is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.memory.describe(path)
    }
}

#[test]
fn a_pin_is_compared_and_replaced_under_its_lock() {
    let (log, roots) = stored(2);
    let watched = Watched { memory: pins(None), unlocked: Arc::default() };
    let pin = pin(watched.clone(), SystemClock);
    pin.make(&note(head(&roots, 1))).unwrap();
    let to = head(&roots, 2);
    pin.advance((&log, key().verifier()), (to, &note(to)), None).unwrap();
    assert_eq!(*watched.unlocked.lock().unwrap(), [""; 0]);
    assert!(!watched.memory.is_locked(LOCK).unwrap(), "it is let go of");
    // Who only reads needs no lock, and can be without the right to make one.
    pin.read(key().verifier()).unwrap();
    assert_eq!(*watched.unlocked.lock().unwrap(), ["open"]);
}

/// A clock on which somebody else, who has the lock, advances the pin and lets go while one waits.
struct Meanwhile {
    pins: Memory,
    lock: Mutex<Option<Box<dyn Lock>>>,
    to: TreeHead,
}

impl Clock for Meanwhile {
    fn now(&self) -> i64 {
        0
    }

    fn wait(&self, _: Duration, _: &Interrupt) {
        bulla_store::replace(&self.pins, NAME, &note(self.to)).unwrap();
        *self.lock.lock().unwrap() = None;
    }
}

#[test]
fn who_waits_for_the_lock_does_not_undo_what_was_done_meanwhile() {
    let (log, roots) = stored(9);
    let pins = pins(Some(head(&roots, 1)));
    let lock = Mutex::new(Some(pins.lock(LOCK).unwrap()));
    let clock = Meanwhile { pins: pins.clone(), lock, to: head(&roots, 9) };
    let to = head(&roots, 5);
    let advanced = pin(pins.clone(), clock).advance((&log, key().verifier()), (to, &note(to)), None);
    assert_eq!(advanced.unwrap(), Advanced::IsAhead(head(&roots, 9)));
    assert!(content(&pins) == note(head(&roots, 9)));
}

/// A clock on which waiting takes no time.
struct Hurried;

impl Clock for Hurried {
    fn now(&self) -> i64 {
        0
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

#[test]
fn a_lock_that_is_never_let_go_of_is_told() {
    let (log, roots) = stored(2);
    let pins = pins(Some(head(&roots, 1)));
    let _held = pins.lock(LOCK).unwrap();
    let to = head(&roots, 2);
    let advanced = pin(pins.clone(), Hurried).advance((&log, key().verifier()), (to, &note(to)), None);
    let error = advanced.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unavailable && error.to_string().contains("audit.pin.lock"),
        "{error}"
    );
}

#[test]
fn a_path_that_names_no_file_is_refused() {
    for path in ["audit.pin", "/", "/mnt/..", "/mnt/"] {
        let pin = Pin::at(Path::new(path), None, Arc::new(SystemClock));
        let error = pin.read(key().verifier()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path}: {error}");
    }
}
