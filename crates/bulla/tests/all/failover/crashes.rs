//! A crash at every operation of a life in which paths fail: what was acknowledged is there, and the log goes on.

use super::world::World;
use crate::helpers::one_in;
use bulla::{Entry, Log};
use bulla_testkit::fault::Fault;

/// Appends so many entries in a step each, and says how many were acknowledged.
fn append(log: &Log, numbers: std::ops::Range<u64>, acknowledged: &mut u64) -> bulla::Result<()> {
    let mut producer = log.producer()?;
    for number in numbers {
        producer.append(&Entry::new("read", &number.to_string()).payload(&[7; 100]))?;
        let _ = producer.flush()?;
        log.flush()?;
        *acknowledged = number + 1;
    }
    Ok(())
}

/// A life in which the first path fails, and then the second one, and the log is opened again in between.
fn live(world: &World, fault: Fault, acknowledged: &mut u64) -> bulla::Result<()> {
    let log = world.open_stepped()?;
    append(&log, 0..4, acknowledged)?;
    world.machine.fail_below("audit", fault);
    append(&log, 4..8, acknowledged)?;
    log.close()?;
    let log = world.open_stepped()?;
    append(&log, 8..12, acknowledged)?;
    world.machine.heal();
    world.machine.fail_below("backup", fault);
    append(&log, 12..16, acknowledged)?;
    log.close()
}

#[test]
fn a_crash_at_any_operation_of_a_switch_takes_nothing_that_was_acknowledged() {
    let faults = [
        (Fault::NoSpace, true),
        (Fault::NoSpace, false),
        (Fault::WriteTearsAndFails, false),
        (Fault::SyncFails, true),
        (Fault::NameFails, false),
    ];
    for (fault, erasure) in faults {
        let world = World::with_erasure(&["/backup"], erasure);
        let first = world.machine.operations();
        let mut all = 0;
        live(&world, fault, &mut all).unwrap();
        assert_eq!(all, 16);
        let last = world.machine.operations();
        for point in one_in(11, first..last) {
            let world = World::with_erasure(&["/backup"], erasure);
            world.machine.stop_at(point);
            let mut acknowledged = 0;
            let outcome = live(&world, fault, &mut acknowledged);
            if outcome.is_ok() {
                // Not every life has as many operations.
                assert!(point + 32 > last, "{fault:?} at {point} of {last}");
                continue;
            }
            assert!(world.machine.stopped(), "{fault:?} at {point}: {outcome:?}");
            // A power cut, in one of the ways in which disks may keep what was not synced; and the death of the process alone.
            for after in [world.after_power_cut(point), world.killed()] {
                let what = format!("{fault:?}, erasure {erasure}, at {point}, {acknowledged} acknowledged");
                let log = after.try_open().unwrap_or_else(|error| panic!("{what}: {error}"));
                after.append(&log, 100..104);
                log.close().unwrap();
                after.check_contains((0..acknowledged).chain(100..104));
            }
        }
        println!("swept: a switch, {fault:?}, erasure {erasure}, {} crash points", last - first);
    }
}
