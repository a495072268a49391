//! A pin on another disk, with a crash or a fault at every operation: it is never behind a checkpoint that anybody saw, never ahead of
//! what is durable, and no crash makes a log look as if it had been put back.

use super::for_each;
use super::points::{Examined, Image, is_log};
use super::scenario::{ELSEWHERE, MODES, PIN, Scenario, Shape, is_unavailable};
use super::world::{History, Outcome, must, tail};
use crate::helpers::{in_turn, one_in, strikes};
use bulla::store::Store;
use bulla_proof::{Checkpoint, SignedNote};
use bulla_testkit::fault::{Fault, Faults};
use std::sync::atomic::{AtomicU64, Ordering};

const SCENARIO: Scenario = Scenario { shape: Shape::Short, mode: MODES[0], seed: 21 };

/// A machine with a disk for the pin, and the log on it, which has none yet.
fn machine() -> (Faults, History) {
    let (machine, mut history) = (Faults::new(), SCENARIO.history());
    machine.store(ELSEWHERE).create_directory("").unwrap();
    SCENARIO.init(&machine, &history).unwrap();
    history.pinned = true;
    (machine, history)
}

fn path() -> String {
    format!("{ELSEWHERE}{PIN}")
}

fn size(note: &[u8]) -> Outcome<u64> {
    let checkpoint = SignedNote::parse(note).and_then(|note| Checkpoint::parse(note.text));
    Ok(checkpoint.map_err(|error| format!("it is no checkpoint: {error}"))?.size)
}

/// Where there is a pin, it is whole, and it covers what the checkpoint does.
fn check_pin(machine: &Faults) -> Outcome<bool> {
    let Some(pin) = machine.read(&path()) else { return Ok(false) };
    let checkpoint = machine.read("audit/checkpoint").ok_or("the checkpoint is gone")?;
    let (pinned, signed) = (size(&pin)?, size(&checkpoint)?);
    must!(pinned >= signed, "the pin covers {pinned} frames, the checkpoint {signed}");
    Ok(pinned > signed)
}

/// The log opens with its pin, goes on, and has it where it is itself.
fn check(image: Image) -> Outcome<bool> {
    must!(is_log(&image.machine), "the log is gone");
    let is_ahead = check_pin(&image.machine)?;
    let machine = image.machine.clone();
    image.check(&SCENARIO)?;
    must!(machine.read(&path()) == machine.read("audit/checkpoint"), "the pin is not the checkpoint");
    Ok(is_ahead)
}

#[test]
fn a_pin_is_neither_behind_nor_ahead_wherever_the_writer_dies() {
    let (whole, mut history) = machine();
    let first = whole.operations();
    SCENARIO.live(&whole, &mut history).unwrap();
    let points = one_in(2, first..whole.operations());
    let (examined, ahead) = (Examined::default(), AtomicU64::new(0));
    for_each(&points, |&stop| {
        let (machine, mut history) = machine();
        machine.stop_at(stop);
        is_unavailable(&SCENARIO.live(&machine, &mut history))?;
        must!(machine.stopped(), "it was over before operation {stop}");
        let cuts = (0..8).map(|seed| Some(seed + 8 * (stop % 1000))).chain([None]).collect::<Vec<_>>();
        for cut in in_turn(&cuts, stop / 2) {
            let image = Image::of(&machine, &history, cut);
            if examined.is_new(&SCENARIO, &image) {
                let context =
                    |failure| format!("stopped at operation {stop}, {cut:?}: {failure}\n{}", tail(&machine));
                ahead.fetch_add(check(image).map_err(context)?.into(), Ordering::Relaxed);
            }
        }
        Ok(())
    });
    let ahead = ahead.load(Ordering::Relaxed);
    assert!(ahead > 0, "somewhere the writer has died between pin and checkpoint");
    println!("swept: pins, {} crash points, {} images, {ahead} ahead", points.len(), examined.count());
}

#[test]
fn whatever_fails_of_the_disk_that_the_pin_is_on_costs_nothing() {
    let (whole, mut history) = machine();
    let first = whole.operations();
    SCENARIO.live(&whole, &mut history).unwrap();
    let mut points = Vec::new();
    for (number, line) in whole.trace().iter().enumerate().skip(first as usize) {
        if line.contains(ELSEWHERE) {
            let faults = Fault::ALL.into_iter().filter(|fault| strikes(*fault, line));
            points.extend(
                faults.flat_map(|fault| [(number as u64, fault, false), (number as u64, fault, true)]),
            );
        }
    }
    let points = one_in(4, points);
    let failed = AtomicU64::new(0);
    for_each(&points, |&(number, fault, lasting)| {
        let (machine, mut history) = machine();
        let mut has_failed = false;
        match lasting {
            false => machine.fail_at(number, fault),
            true => machine.fail_from(number, fault),
        }
        let context = |failure: String| {
            format!("{fault:?} at {number} (lasting: {lasting}): {failure}\n{}", tail(&machine))
        };
        for steps in SCENARIO.sessions() {
            let outcome = SCENARIO.session(&machine, &mut history, *steps);
            is_unavailable(&outcome).map_err(context)?;
            check_pin(&machine).map_err(context)?;
            if outcome.is_err() {
                has_failed = true;
                machine.heal();
            }
        }
        machine.heal();
        failed.fetch_add(has_failed.into(), Ordering::Relaxed);
        check(Image::of(&machine, &history, None)).map(drop).map_err(context)
    });
    let failed = failed.load(Ordering::Relaxed);
    assert!(failed > 0 && failed < points.len() as u64, "{failed} of {}", points.len());
    println!("swept: faults of the disk of a pin, {}, {failed} that lasted", points.len());
}
