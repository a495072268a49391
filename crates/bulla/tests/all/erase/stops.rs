//! An erasure whose writer stops at any of its operations on files: opening the log finishes it, or it never began.

use super::states::write_pending;
use super::world::World;
use crate::helpers::in_full;
use crate::workshop::{Operation, Watch, Watched};
use bulla::environment::Environment;
use bulla::store::{FileSystem, Store};
use bulla::{ErrorKind, Log, Options};
use bulla_vault::Access;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Lets so many operations through, and from then on none.
#[derive(Debug)]
pub(super) struct Stop(pub(super) AtomicI64);

impl Stop {
    /// After so many operations.
    pub(super) fn after(operations: i64) -> Arc<Self> {
        Arc::new(Stop(AtomicI64::new(operations)))
    }

    /// Whether it has stopped.
    pub(super) fn stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst) < 0
    }
}

impl Watch for Stop {
    fn before(&self, _: Operation, _: &str) -> io::Result<()> {
        match self.0.fetch_sub(1, Ordering::SeqCst) {
            1.. => Ok(()),
            _ => Err(io::Error::other("it has stopped")),
        }
    }
}

/// The stores of the log and of its keys.
pub(super) fn stores(world: &World, watch: &Arc<impl Watch + 'static>) -> (Arc<dyn Store>, Arc<dyn Store>) {
    let store = |path: &Path| -> Arc<dyn Store> {
        Arc::new(Watched { store: Arc::new(FileSystem::new(path)), watch: watch.clone() })
    };
    (store(&world.directory), store(&world.keys()))
}

pub(super) fn open(world: &World, watch: &Arc<impl Watch + 'static>) -> bulla::Result<Log> {
    let options = Options::default().retries(0).writers(1);
    let (log, keys) = stores(world, watch);
    Log::open_stores(log, keys, options, Environment::default())
}

/// Lets no checkpoint be published, from when that is asked.
#[derive(Debug, Default)]
struct Unpublished(AtomicBool);

impl Watch for Unpublished {
    fn before(&self, _: Operation, path: &str) -> io::Result<()> {
        match path.starts_with("checkpoint") && self.0.load(Ordering::SeqCst) {
            true => Err(io::Error::other("it has stopped")),
            false => Ok(()),
        }
    }
}

/// The vault and the seal state know of frames by then that no checkpoint covers; whoever opens the log signs those, and may be
/// cut short, too.
#[test]
fn a_writer_that_stops_before_its_checkpoint_and_the_next_anywhere_are_gone_on_with() {
    for erasing in [false, true] {
        let made = World::new();
        let unpublished = Arc::<Unpublished>::default();
        let log = open(&made, &unpublished).unwrap();
        World::put(&mut log.producer().unwrap(), 0);
        World::put(&mut log.producer().unwrap(), 1);
        unpublished.0.store(true, Ordering::SeqCst);
        log.close().unwrap_err();
        if erasing {
            let number = made.vault(Access::Read).find("user_1").unwrap().unwrap().number;
            write_pending(&made, &made.order(&["user_1"]), number);
            let _ = made.begin_erasure(&made.vault(Access::Write), &[number]).commit().unwrap();
        }
        next_is_gone_on_with(&made);
    }
}

/// Whoever opens the log is cut short anywhere, and the next goes on.
fn next_is_gone_on_with(made: &World) {
    let mut stops = 0;
    for operations in (0..).step_by(if in_full() { 1 } else { 2 }) {
        let world = made.copied();
        let stop = Stop::after(operations);
        drop(open(&world, &stop));
        let stopped = stop.stopped();
        world.append(2..3);
        assert!(world.verified().ok, "{operations}");
        if !stopped {
            break;
        }
        stops += 1;
    }
    assert!(stops > 10, "{stops}");
}

#[test]
fn an_erasure_that_stops_anywhere_is_finished_or_never_began() {
    let (mut finished, mut never, mut said) = (0, 0, 0);
    for operations in (0..).step_by(if in_full() { 1 } else { 2 }) {
        let world = World::new();
        world.append(0..60);
        let order = world.order(&["user_7"]);
        let stop = Stop::after(i64::MAX);
        let log = open(&world, &stop).unwrap();
        // What opening leaves to be signed is not what this is about.
        log.flush().unwrap();
        stop.0.store(operations, Ordering::SeqCst);
        let done = log.erase(&order);
        let left = stop.0.swap(0, Ordering::SeqCst);
        drop(log);

        let log = Log::open(&world.directory, Options::default()).unwrap();
        let erased = world.vault(Access::Read).find("user_7").unwrap().is_none();
        // Whoever opens the log is told of what that finished.
        let resumed = log.resumed_erasure().map(ToString::to_string);
        let what = if erased { "is finished" } else { "neither the vault nor the log knows" };
        assert!(resumed.iter().all(|resumed| resumed.contains(what)), "{operations}: {resumed:?}");
        assert!(erased || done.is_err(), "{operations}: {done:?}");
        if let Err(error) = done {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{operations}: {error}");
            // So is whoever gave the order, as far as that can be told.
            let told =
                ["are erased, and the log may not tell of it yet", "an erasure was begun, and neither"];
            let says = told.iter().any(|told| error.to_string().contains(told));
            assert_eq!(says, erased, "{operations}: {error}");
            said += u32::from(resumed.is_some());
            *(if erased { &mut finished } else { &mut never }) += 1;
            // Whoever gives it again learns that it is done.
            assert_eq!(log.erase(&order).unwrap().before, erased, "{operations}");
        }
        log.close().unwrap();
        assert!(!world.keys().join("erasure.pending").exists(), "{operations}");
        let (_, withheld) = world.entries();
        assert_eq!(withheld, [7, 57], "{operations}");
        assert!(world.verified().ok, "{operations}");
        if left > 0 {
            break;
        }
    }
    assert!(finished > 10 && never > 2 && said > 10, "{finished} {never} {said}");
}
