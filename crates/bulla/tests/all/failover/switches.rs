//! Switches at the worst moments: while something is being committed, before a checkpoint covers what was, when others are full too, and
//! while the configuration is changed.

use super::world::{Hasty, World};
use crate::helpers::one_in;
use bulla::environment::{Clock, Interrupt, SystemClock};
use bulla::store::Store;
use bulla::{Configure, ErrorKind};
use bulla_testkit::fault::Fault;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A clock that has another path take over when it is asked for the time so often, as another thread may at any moment.
#[derive(Default)]
struct Switching {
    log: OnceLock<Arc<dyn Store>>,
    left: AtomicI64,
}

impl Clock for Switching {
    fn now(&self) -> i64 {
        SystemClock.now()
    }

    fn steady(&self) -> u64 {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            let paths = self.log.get().unwrap().paths().unwrap();
            paths.fail_over(paths.turn(), "another thread found that it fails");
        }
        SystemClock.steady()
    }

    fn wait(&self, time: Duration, interrupt: &Interrupt) {
        SystemClock.wait(time, interrupt);
    }
}

/// The name of a segment is synced where the segment lies, whichever path is in use by then.
#[test]
fn a_switch_at_any_moment_of_a_commit_takes_nothing_that_was_acknowledged() {
    for moment in 0.. {
        let mut world = World::new(&["/backup"]);
        let log = world.open();
        world.append(&log, 0..4);
        // What follows begins a segment.
        let before = world.killed();
        drop(log);
        world = before;
        let clock = Arc::new(Switching::default());
        world.set_clock(clock.clone());
        let joined = world.log();
        clock.log.set(joined.clone()).unwrap();
        clock.left.store(moment, Ordering::Relaxed);
        let log = world.open_stepped_in(joined).unwrap();
        world.append_stepped(&log, 4..6);
        if clock.left.load(Ordering::Relaxed) >= 0 {
            assert!(moment > 20, "{moment} moments");
            println!("swept: a switch at {moment} moments");
            return;
        }
        for seed in 0..8 {
            let after = world.after_power_cut(seed);
            let log = after.try_open().unwrap_or_else(|error| panic!("{moment}, {seed}: {error}"));
            after.append(&log, 100..102);
            log.close().unwrap();
            after.check_contains((0..6).chain(100..102));
        }
    }
}

/// Until a checkpoint on another path covers what was acknowledged on one, the log is not opened without that.
#[test]
fn a_path_is_left_once_a_checkpoint_elsewhere_covers_what_it_took() {
    let world = World::new(&["/backup"]);
    world.set("on_failure", "block");
    let log = world.open();
    world.append(&log, 0..4);
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::SyncFails);
    world.append(&log, 4..20);
    world.machine.heal();
    // Nothing is signed any more, so the log goes back and forth.
    for path in ["audit", "backup"] {
        for name in ["tile", "checkpoint", "checkpoint.tmp"] {
            world.machine.fail_below(&format!("{path}/{name}"), Fault::WriteFails);
        }
    }
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| world.try_append(&log, 20..24));
        let flushing = scope.spawn(|| log.flush());
        for _ in 0..8 {
            world.wait_for_failures(4);
            let killed = world.killed();
            killed.destroy("backup");
            let error = killed.try_open().err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.to_string().contains("backup is a path of the log, and is missing"), "{error}");
        }
        world.machine.heal();
        appending.join().unwrap().unwrap();
        flushing.join().unwrap().unwrap();
    });
    log.close().unwrap();
    world.check(24);
}

/// Paths that were used before and are full now are not tried in the place of one that has room.
#[test]
fn where_two_paths_are_full_the_third_takes_over() {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open();
    world.append(&log, 0..10);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 10..20);
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append(&log, 20..30);
    log.close().unwrap();
    world.machine.heal();
    world.check(30);
    let replaced = world.replaced();
    assert_eq!(replaced.last().unwrap().1, world.id("other"), "{replaced:?}");
}

#[test]
fn while_nothing_takes_the_log_little_is_told_and_nothing_untrue() {
    let mut world = World::new(&["/backup"]);
    world.set("on_failure", "block");
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    world.tell_of_paths(move |what| tell.lock().unwrap().push(what.to_owned()));
    world.set_clock(Arc::new(Hasty(Arc::new(SystemClock))));
    let log = world.open();
    world.append(&log, 0..10);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 10..20);
    let waiting = Arc::new(Mutex::new(Vec::new()));
    let tell = waiting.clone();
    log.when_trying_again(move |why| tell.lock().unwrap().push(why.to_owned()));
    world.machine.fail_below("backup", Fault::NoSpace);
    let before = told.lock().unwrap().len();
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| world.try_append(&log, 20..30));
        world.wait_for_failures(300);
        let meanwhile = told.lock().unwrap()[before..].to_vec();
        world.machine.heal();
        appending.join().unwrap().unwrap();
        assert!(meanwhile.len() <= 2, "once for each path: {meanwhile:#?}");
        assert!(meanwhile.iter().all(|told| told.contains("does not take the log")), "{meanwhile:#?}");
    });
    log.close().unwrap();
    world.check(30);
    let waiting = waiting.lock().unwrap();
    assert!((1..=3).contains(&waiting.len()), "{waiting:#?}");
    // Who commits says that no path takes what is written; a checkpoint may be waited for first.
    assert!(waiting.iter().all(|why| why.contains("NoSpace")), "{waiting:#?}");
    let told = told.lock().unwrap();
    let goes_on = told[before..].iter().filter(|told| told.contains("the log goes on in")).count();
    // Where only the checkpoint was waited for, the log did not stand still. One that was tried just before the outage ended may have the
    // log switch once more, which is told, too.
    let stood_still = waiting.iter().any(|why| why.contains("no path takes what is written"));
    assert!((usize::from(stood_still)..=2).contains(&goes_on), "{waiting:#?}: {told:#?}");
    // One for the path that took what followed, and one for that which did after the outage, if it is another one.
    let replaced = world.replaced();
    assert!(replaced.len() <= 2, "{replaced:?}");
    assert!(world.abandoned() <= 4, "{}", world.abandoned());
}

/// The writer would go on on a path that nobody else knows, or be asked for one that it never wrote to.
#[test]
fn the_paths_of_a_log_are_not_changed_while_it_is_written() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..4);
    for paths in ["", "/other", "/backup,/other"] {
        let error = world.try_set("backup_paths", paths).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{paths}: {error}");
        let configure = bulla::Configure::default().set("backup_paths", paths).unwrap();
        let error = log.configure(&configure).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{paths}: {error}");
        assert!(error.to_string().contains("backup_paths"), "{error}");
    }
    // What is no path is set beside it, as ever.
    world.set("linger", "7 ms");
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 4..8);
    log.close().unwrap();
    world.machine.heal();
    world.check(8);
    world.configure(&["/backup", "/other"]).unwrap();
    world.check(8);
}

/// Between a switch and the next checkpoint, what is read of the log is still what was signed last.
#[test]
fn a_change_of_the_configuration_during_which_a_path_fails_is_no_violation() {
    let moved = || {
        let world = World::new(&["/backup"]);
        let log = world.open();
        world.append(&log, 0..4);
        world.machine.fail_below("audit", Fault::SyncFails);
        world.append(&log, 4..8);
        log.close().unwrap();
        world.machine.heal();
        world
    };
    let world = moved();
    let first = world.machine.operations();
    world.set("log.heartbeat", "60 s");
    let last = world.machine.operations();
    for fault in [Fault::NoSpace, Fault::SyncFails, Fault::NameFails] {
        for point in one_in(3, first..last) {
            let world = moved();
            world.machine.fail_at(point, fault);
            if let Err(error) = world.try_set("log.heartbeat", "60 s") {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?} at {point}: {error}");
            }
            world.machine.heal();
            let log = world.open();
            world.append(&log, 8..12);
            log.close().unwrap();
            world.check(12);
        }
    }
    println!("swept: a change on several paths, {} points", last - first);
}

/// The path that fails gives nothing of it back, and the one that takes over has an older one, of before it was left.
#[test]
fn the_path_that_takes_over_has_the_configuration_that_was_changed_on_the_one_that_fails() {
    for changed_live in [false, true] {
        let world = World::new(&["/backup"]);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.machine.fail_below("audit", Fault::NoSpace);
        world.append_stepped(&log, 4..8);
        log.close().unwrap();
        world.machine.heal();
        if !changed_live {
            world.set("log.heartbeat", "1m");
        }
        let log = world.open_stepped().unwrap();
        if changed_live {
            let configure = Configure::default().set("log.heartbeat", "1m").unwrap();
            log.configure(&configure).unwrap();
        }
        world.append_stepped(&log, 8..12);
        let changed = world.machine.read("backup/bulla.toml").unwrap();
        assert!(world.machine.remove_file("backup/bulla.toml"));
        world.machine.fail_below("backup", Fault::WriteFails);
        world.append_stepped(&log, 12..16);
        log.close().unwrap();
        assert!(world.machine.read("audit/bulla.toml").unwrap() == changed, "live: {changed_live}");
        world.machine.heal();
        world.machine.overwrite("backup/bulla.toml", &changed);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 16..20);
        log.close().unwrap();
        world.check(20);
    }
}
