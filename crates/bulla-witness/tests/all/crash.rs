//! A machine that stops at any operation, or whose disk fails at any: what was answered is never forgotten.

use crate::world::{Log, ORIGIN, World};
use bulla_proof::CosignatureAlgorithm::Ed25519;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::Arc;

fn world(machine: &Faults) -> World {
    World::of(Arc::new(machine.store("state")), Arc::new(machine.store("keys")))
}

/// Asks a witness for trees that grow, and returns the largest that it cosigned.
fn ask(world: &World, log: &Log) -> usize {
    let mut most = 0;
    let Ok(witness) = world.open(&[log]) else { return 0 };
    let mut old = witness.logs()[0].1.unwrap_or(0) as usize;
    for size in [3, 8, 8, 13] {
        let answer = witness.add_checkpoint(&log.request(old.min(size), size));
        match answer.status {
            200 => (most, old) = (most.max(size), size),
            409 => old = answer.body.trim_end().parse().unwrap(),
            status => assert_eq!(status, 500),
        }
    }
    most
}

#[test]
fn what_was_cosigned_is_kept_whenever_the_machine_stops() {
    let log = Log::new(ORIGIN, 0, 30);
    let other = Log::new(ORIGIN, 1, 30);
    let begun = Faults::new();
    world(&begun).begin(Ed25519).unwrap();
    let operations = {
        let machine = begun.crash(0);
        ask(&world(&machine), &log);
        machine.operations()
    };
    assert!(operations > 20, "{operations}");
    for stop in 0..=operations {
        let machine = begun.crash(0);
        machine.stop_at(stop);
        let cosigned = ask(&world(&machine), &log);
        // The process killed, and the power cut in some ways.
        for crashed in std::iter::once(machine.kill()).chain((0..16).map(|seed| machine.crash(seed))) {
            let world = world(&crashed);
            let witness = world.open(&[&log]).unwrap_or_else(|error| panic!("stopped at {stop}: {error}"));
            let size = witness.logs()[0].1.unwrap_or(0) as usize;
            assert!(size >= cosigned, "stopped at {stop}: {cosigned} was cosigned and {size} is known");
            if cosigned > 0 {
                assert_eq!(witness.add_checkpoint(&other.request(size, 30)).status, 422);
            }
            assert_eq!(witness.add_checkpoint(&log.request(size, 30)).status, 200, "its own history goes on");
        }
    }
}

#[test]
fn what_cannot_be_kept_is_not_cosigned() {
    let log = Log::new(ORIGIN, 0, 30);
    let begun = Faults::new();
    world(&begun).begin(Ed25519).unwrap();
    let operations = {
        let machine = begun.crash(0);
        ask(&world(&machine), &log);
        machine.operations()
    };
    let mut failed = 0;
    for fault in Fault::ALL {
        for at in 0..=operations {
            let machine = begun.crash(0);
            machine.fail_at(at, fault);
            let of = world(&machine);
            let cosigned = ask(&of, &log);
            failed +=
                usize::from(of.told.lock().unwrap().iter().any(|told| told.contains("nothing is cosigned")));
            machine.heal();
            let crashed = machine.crash(at);
            let witness =
                world(&crashed).open(&[&log]).unwrap_or_else(|error| panic!("{fault:?} at {at}: {error}"));
            let size = witness.logs()[0].1.unwrap_or(0) as usize;
            assert!(size >= cosigned, "{fault:?} at {at}: {cosigned} was cosigned and {size} is known");
        }
    }
    assert!(failed > 50, "{failed} faults were met");
}

#[test]
fn a_beginning_that_is_cut_short_is_begun_again() {
    let operations = {
        let machine = Faults::new();
        world(&machine).begin(Ed25519).unwrap();
        machine.operations()
    };
    let log = Log::new(ORIGIN, 0, 30);
    for stop in 0..=operations {
        let machine = Faults::new();
        machine.stop_at(stop);
        let begun = world(&machine).begin(Ed25519);
        for crashed in std::iter::once(machine.kill()).chain((0..8).map(|seed| machine.crash(seed))) {
            let world = world(&crashed);
            // With the key that is there, or with another one.
            if begun.is_ok() || world.open(&[&log]).is_err() {
                let again = world.begin(Ed25519);
                assert_eq!(again.is_err(), begun.is_ok(), "stopped at {stop}: {again:?}");
            }
            assert_eq!(
                world.open(&[&log]).unwrap().add_checkpoint(&log.request(0, 3)).status,
                200,
                "stopped at {stop}"
            );
        }
    }
}
