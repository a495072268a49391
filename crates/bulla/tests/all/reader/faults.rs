//! The index and a medium that fails: no entry is kept from being committed, and no answer is cut short.

use super::world::{Row, World, answer, reader};
use crate::helpers::strikes;
use bulla::Query;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::Arc;

/// Blocks of each session: more than one part covers.
const BLOCKS: usize = 66;

fn begin(machine: &Faults) -> World {
    World::on(Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")), 81)
}

/// A session of a log. What fails of it is told.
fn session(world: &mut World) -> bulla::Result<()> {
    let log = world.try_open(bulla::Options::default().memory(64 << 20).writers(1).retries(0))?;
    let mut producer = log.producer()?;
    for block in 0..BLOCKS {
        let row = Row::new(0, "read").subject(&format!("user_{block}"));
        let location = world.rows.len().to_string();
        producer.append(
            &bulla::Entry::new("read", &location).time(0).subject(&row.subjects.as_ref().unwrap()[0]),
        )?;
        world.rows.push(row);
        let receipt = producer.flush()?;
        while log.step(bulla::Step::Seal)? {
            log.step(bulla::Step::Commit)?;
        }
        assert!(receipt.durable_within(std::time::Duration::ZERO)?);
    }
    log.flush()?;
    drop(producer);
    log.close()
}

/// The operations of two sessions that touch the index, as the trace has them.
fn operations() -> Vec<(u64, String)> {
    let machine = Faults::new();
    let mut world = begin(&machine);
    let from = machine.operations() as usize;
    session(&mut world).unwrap();
    session(&mut world).unwrap();
    let trace = machine.trace();
    let lines = trace.iter().enumerate().skip(from).filter(|(_, line)| line.contains("index/"));
    lines.map(|(number, line)| (number as u64, line.clone())).collect()
}

/// Every query has its answer.
fn check(world: &World, machine: &Faults, entries: usize, context: &str) {
    let store = || reader(machine.store("audit"), &world.key);
    let (all, _) = answer(&store(), &Query::new()).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(all.len(), entries, "{context}");
    for user in [0, 5, 63, BLOCKS - 1] {
        let (found, _) = answer(&store(), &Query::new().subject(format!("user_{user}"))).unwrap();
        assert_eq!(found.len(), (user..entries).step_by(BLOCKS).count(), "{context}: user {user}");
    }
}

#[test]
fn no_failure_of_the_index_keeps_an_entry_from_being_committed() {
    let operations = operations();
    let kinds = |kind: &str| operations.iter().filter(|(_, line)| line.contains(kind)).count();
    assert!(kinds("Create") >= 2 && kinds("Write") >= 4 && kinds("Sync") >= 2, "{operations:#?}");
    for (number, line) in &operations {
        for fault in Fault::ALL.into_iter().filter(|fault| strikes(*fault, line)) {
            let machine = Faults::new();
            let mut world = begin(&machine);
            machine.fail_at(*number, fault);
            let context = format!("{fault:?} at {line}");
            for _ in 0..2 {
                session(&mut world).unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            // Before a reader mends anything.
            let found = world.verify(machine.store("audit")).run().unwrap();
            assert_eq!(found.findings, [], "{context}");
            check(&world, &machine, 2 * BLOCKS, &context);
        }
    }
}

#[test]
fn a_power_cut_at_the_index_takes_no_entry_and_no_answer() {
    for (number, line) in operations() {
        for seed in 0..6 {
            let machine = Faults::new();
            let mut world = begin(&machine);
            machine.stop_at(number);
            while session(&mut world).is_ok() {}
            let machine = machine.crash(seed);
            let world = on(world, &machine);
            let context = format!("{line}, seed {seed}");
            // As many as were durable, then as many as another session adds.
            world.open().close().unwrap();
            let kept = answer(&reader(machine.store("audit"), &world.key), &Query::new()).unwrap().0.len();
            assert!(kept + 1 >= world.rows.len(), "{context}: {kept} of {}", world.rows.len());
            check(&world, &machine, kept, &context);
            let found = world.verify(machine.store("audit")).run().unwrap();
            assert!(found.ok, "{context}: {:#?}", found.findings);
        }
    }
}

/// The same log on another machine.
fn on(world: World, machine: &Faults) -> World {
    world.moved(Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")))
}
