//! A crash between the switch to another path and the first checkpoint there, while the path before is lost for good: what was signed, and
//! whatever was acknowledged since the switch, is gone on from.

use super::world::World;
use crate::helpers::one_in;
use bulla::{ErrorKind, FindingKind, Severity, Step};
use bulla_testkit::fault::Fault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A life in which the first path fails while frames lie there that nobody has signed. `acknowledged` is how many entries, from the first
/// on, were by then, and `on_backup` whether some of them lie on the second path alone.
fn live(world: &World, fault: Fault, prefix: &Arc<AtomicU64>, unsigned: bool) -> bulla::Result<()> {
    let log = world.open_stepped()?;
    let told = prefix.clone();
    log.when_durable(move |entries| told.store(entries, Ordering::Relaxed));
    world.try_append_stepped(&log, 0..4)?;
    let commit = |number: u64| {
        let mut producer = log.producer()?;
        producer.append(&bulla::Entry::new("read", &number.to_string()).payload(&[7; 100]))?;
        let _ = producer.flush()?;
        while log.step(Step::Seal)? {}
        log.step(Step::Commit)
    };
    if unsigned {
        // Durable, acknowledged, and in no checkpoint.
        commit(4)?;
    }
    world.machine.fail_below("audit", fault);
    for number in 5..8 {
        commit(number)?;
    }
    while log.step(Step::Seal)? {
        log.step(Step::Commit)?;
    }
    log.step(Step::Checkpoint)?;
    world.try_append_stepped(&log, 8..10)?;
    log.close()
}

#[test]
fn a_crash_before_the_first_checkpoint_elsewhere_and_the_loss_of_the_first_disk_leave_a_log_that_goes_on() {
    for (fault, unsigned) in [(Fault::SyncFails, false), (Fault::WriteFails, true), (Fault::SyncFails, true)]
    {
        let world = World::new(&["/backup"]);
        let first = world.machine.operations();
        live(&world, fault, &Arc::default(), unsigned).unwrap();
        let last = world.machine.operations();
        let mut went_on = 0;
        for point in one_in(3, first..last) {
            let world = World::new(&["/backup"]);
            world.machine.stop_at(point);
            let prefix = Arc::new(AtomicU64::new(0));
            if live(&world, fault, &prefix, unsigned).is_ok() {
                continue;
            }
            let after = world.killed();
            after.destroy("audit");
            let what = format!("{fault:?}, unsigned {unsigned}, at {point} of {last}");
            let log = match after.try_open() {
                Ok(log) => log,
                // The writer had not left it yet: it is asked for.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
                    continue;
                }
            };
            went_on += 1;
            after.append(&log, 100..104);
            log.close().unwrap();
            let report = after.verify();
            let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
            let others = violations.filter(|finding| finding.kind != FindingKind::FramesMissing);
            assert_eq!(others.count(), 0, "{what}: {:#?}", report.findings);
            let left = after.salvaged();
            assert!((100..104).all(|number| left.contains(&number)), "{what}: {left:?}");
            // What was acknowledged since the switch lies on the second path, and is there.
            let acknowledged = prefix.load(Ordering::Relaxed);
            let entries = [0, 1, 2, 3].into_iter().chain(unsigned.then_some(4)).chain(5..10);
            let acknowledged = entries.take(usize::try_from(acknowledged).unwrap());
            for number in acknowledged.filter(|number| *number > 4) {
                assert!(left.contains(&number), "{what}: {number} was acknowledged, and there is {left:?}");
            }
            // And it goes on from there.
            let log = after.open();
            after.append(&log, 104..108);
            log.close().unwrap();
            assert!((100..108).all(|number| after.salvaged().contains(&number)), "{what}");
        }
        assert!(went_on > 5, "{fault:?}, {unsigned}: {went_on} crashes after the switch");
        println!("swept: a disk lost after a switch, {fault:?}, {} crash points", last - first);
    }
}

/// What nothing leads to any more may lie on a path that is not in use: that is no fault of the one that is.
#[test]
fn what_a_lost_path_leaves_without_a_beginning_is_set_aside_on_whichever_path_it_lies() {
    let after = scattered();
    let healthy = after.killed();
    // Where the path that has it takes no other name, nobody goes on; the one in use is not held for one that failed.
    after.machine.fail_below("other/segments", Fault::NameFails);
    let error = after.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("other/segments"), "{error}");
    go_on(healthy);
}

/// A log of which each path has frames that nobody has signed, and the first one is lost.
fn scattered() -> World {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    let commit = |number: u64| {
        let mut producer = log.producer().unwrap();
        producer.append(&bulla::Entry::new("read", &number.to_string()).payload(&[7; 100])).unwrap();
        drop(producer.flush().unwrap());
        while log.step(Step::Seal).unwrap() {
            log.step(Step::Commit).unwrap();
        }
    };
    // Nobody has signed these frames: each path that takes over has the checkpoint of the first one, and some of what follows.
    commit(4);
    world.machine.fail_below("audit", Fault::SyncFails);
    commit(5);
    world.machine.fail_below("backup", Fault::SyncFails);
    commit(6);
    world.killed().named("backup")
}

fn go_on(mut after: World) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    after.tell_of_paths(move |what| tell.lock().unwrap().push(what.to_owned()));
    let segments = |path: &str| {
        let files = after.files_below(path).into_keys();
        files.filter(|name| name.starts_with("segments/")).collect::<Vec<_>>()
    };
    let before = segments("other");
    assert!(!before.is_empty());
    let log = after.try_open().unwrap();
    after.append(&log, 100..104);
    log.close().unwrap();
    assert_eq!(*told.lock().unwrap(), [""; 0], "no path failed");
    assert_eq!(segments("other").len(), before.len(), "it lies there");
    assert!(before.iter().all(|name| !segments("other").contains(name)), "by another name");
    // What was set aside stands in nobody's way when the log comes to its frames.
    let log = after.open();
    after.append_each(&log, 104..140);
    log.close().unwrap();
    let log = after.open();
    after.append(&log, 140..144);
    log.close().unwrap();
    let left = after.salvaged();
    assert!((100..144).all(|number| left.contains(&number)), "{left:?}");
    let report = after.verify();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let others = violations.filter(|finding| finding.kind != FindingKind::FramesMissing);
    assert_eq!(others.count(), 0, "{:#?}", report.findings);
}
