//! What witnesses have cosigned goes with the log from path to path.

use super::world::World;
use crate::helpers::one_in;
use bulla::store::{Store, replace};
use bulla::{Entry, Log};
use bulla_testkit::fault::Fault;

/// The newest checkpoint that is cosigned as the log asks for, and a witness's own.
const COSIGNED: [&str; 2] = ["checkpoint.witnessed", "cosigned/0123abcd"];

fn append(log: &Log, numbers: std::ops::Range<u64>) -> bulla::Result<()> {
    let mut producer = log.producer()?;
    for number in numbers {
        producer.append(&Entry::new("read", &number.to_string()).payload(&[7; 100]))?;
        let _ = producer.flush()?;
        log.flush()?;
    }
    Ok(())
}

/// Keeps the newest checkpoint as what witnesses have cosigned, as the round of witnesses does. The log's signature is what counts of it here.
fn cosign(store: &dyn Store) -> std::io::Result<Vec<u8>> {
    let checkpoint = bulla::store::read_small(store, "checkpoint", 1 << 20).map_err(std::io::Error::other)?;
    if store.list("cosigned").is_err() {
        store.create_directory("cosigned")?;
        store.sync_directory("")?;
    }
    COSIGNED.iter().try_for_each(|name| replace(store, name, &checkpoint))?;
    Ok(checkpoint)
}

/// A life in which the first path fails, with what witnesses have cosigned where `is_gone` says so. `cosigned` is that.
fn live(world: &World, is_gone: bool, cosigned: &mut Option<Vec<u8>>) -> bulla::Result<()> {
    let store = world.log();
    let log = world.open_stepped_in(store.clone())?;
    append(&log, 0..2)?;
    let checkpoint = cosign(&*store).map_err(|error| bulla::Error::io("cosigning", error))?;
    *cosigned = Some(checkpoint);
    append(&log, 2..4)?;
    world.machine.fail_below("audit", Fault::NoSpace);
    if is_gone {
        for name in COSIGNED {
            world.machine.remove_file(&format!("audit/{name}"));
        }
    }
    append(&log, 4..8)?;
    log.close()
}

fn check(world: &World, cosigned: &[u8], what: &str) {
    if world.machine.read("backup/checkpoint").is_none() {
        return;
    }
    for name in COSIGNED {
        let there = world.machine.read(&format!("backup/{name}"));
        assert_eq!(there.as_deref(), Some(cosigned), "{what}: {name}");
    }
}

#[test]
fn a_path_that_takes_over_has_what_witnesses_cosigned_before_it_has_the_checkpoint() {
    for is_gone in [false, true] {
        let world = World::new(&["/backup"]);
        let first = world.machine.operations();
        let mut cosigned = None;
        live(&world, is_gone, &mut cosigned).unwrap();
        assert!(world.machine.read("backup/checkpoint").is_some());
        check(&world, &cosigned.unwrap(), "at the end");
        let last = world.machine.operations();
        for point in one_in(5, first..last) {
            let world = World::new(&["/backup"]);
            world.machine.stop_at(point);
            let mut cosigned = None;
            let outcome = live(&world, is_gone, &mut cosigned);
            let Some(cosigned) = cosigned.filter(|_| outcome.is_err()) else { continue };
            for after in [world.after_power_cut(point), world.killed()] {
                let what = format!("gone: {is_gone}, at {point} of {last}");
                check(&after, &cosigned, &what);
                let log = after.try_open().unwrap_or_else(|error| panic!("{what}: {error}"));
                after.append(&log, 100..104);
                log.close().unwrap();
                check(&after, &cosigned, &what);
            }
        }
    }
}

/// What an earlier version has left behind on another path comes along when the log is opened; what a path has of more frames stays.
#[test]
fn opening_brings_what_witnesses_cosigned_to_the_path_in_use() {
    let world = World::new(&["/backup"]);
    let mut cosigned = None;
    live(&world, false, &mut cosigned).unwrap();
    let cosigned = cosigned.unwrap();
    world.machine.heal();
    for name in COSIGNED {
        assert!(world.machine.remove_file(&format!("backup/{name}")));
    }
    world.open().close().unwrap();
    check(&world, &cosigned, "opened");
    let log = world.open();
    let newer = cosign(&*world.log()).unwrap();
    assert_ne!(newer, cosigned);
    log.close().unwrap();
    world.open().close().unwrap();
    check(&world, &newer, "opened again");
}
