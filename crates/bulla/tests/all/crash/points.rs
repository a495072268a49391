//! A crash at every operation of a scenario, and at every operation of the recovery from one: each in one of the ways in
//! which a disk may keep it, in turn; in all of them where a sweep is in full.

use super::for_each;
use super::scenario::{MODES, Scenario, Shape, is_unavailable};
use super::world::{History, Outcome, must, tail};
use crate::helpers::{Rng, in_full, in_turn};
use bulla::ErrorKind;
use bulla_proof::hash::{Hash, sha256};
use bulla_testkit::fault::Faults;
use std::collections::HashSet;
use std::sync::Mutex;

/// Steps of a session after a crash.
const MORE: u64 = 8;

const KILLED: &str = "killed";

/// What a crash left, and what the log in it must hold.
pub(super) struct Image {
    pub(super) machine: Faults,
    pub(super) history: History,
    what: String,
}

impl Image {
    /// What is left of `machine`: `None` is the death of the process, a seed a power cut.
    pub(super) fn of(machine: &Faults, history: &History, cut: Option<u64>) -> Image {
        let mut history = history.fork(history.seed.rotate_left(9) ^ cut.map_or(1 << 60, |seed| seed + 1));
        let (machine, what) = match cut {
            None => (machine.kill(), KILLED.to_owned()),
            Some(seed) => {
                history.power_cut();
                (machine.crash(seed), format!("power cut with seed {seed}"))
            }
        };
        history.note_checkpoint(&machine);
        Image { machine, history, what }
    }

    /// What is left, and what must hold of it. Of a process that died, what a power cut could take and leave is a part of it.
    fn state(&self, scenario: &Scenario) -> Hash {
        let mut state = format!("{scenario:?} {}", self.history.state()).into_bytes();
        let styles = if self.what == KILLED { 0..2 } else { 0..0 };
        for disk in std::iter::once(self.machine.clone()).chain(styles.map(|style| self.machine.crash(style)))
        {
            for path in disk.files() {
                let content = sha256(&[&disk.read(&path).unwrap_or_default()]);
                state.extend(format!("\n{path} {content}").bytes());
            }
            state.push(b'\n');
        }
        sha256(&[&state])
    }

    /// The log must be sound, open, go on, and hold what it should.
    pub(super) fn check(mut self, scenario: &Scenario) -> Outcome {
        self.survives(scenario).map_err(|failure| {
            format!(
                "{failure}\n  after: {}\n  the trace of the image ends with\n{}",
                self.what,
                tail(&self.machine)
            )
        })
    }

    fn survives(&mut self, scenario: &Scenario) -> Outcome {
        let Image { machine, history, .. } = self;
        if !self::is_log(machine) {
            must!(history.written.is_empty(), "the log is gone");
            let opened = scenario.session(machine, history, MORE);
            must!(
                opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable),
                "half of a log was opened: {opened:?}"
            );
            return Ok(());
        }
        history.check_unopened(machine)?;
        let outcome = scenario.session(machine, history, MORE);
        must!(outcome.is_ok(), "opening it again: {outcome:?}");
        history.check_closed(machine)?;
        // Once closed, nothing is left to lose.
        history.check_after_power_cut(machine).map_err(|failure| format!("power cut after close: {failure}"))
    }
}

/// The states that a test has examined. Many crashes leave the same, and the same must hold of it: once is enough. All that
/// differs then is which keys are drawn next.
#[derive(Default)]
pub(super) struct Examined(Mutex<HashSet<Hash>>);

impl Examined {
    pub(super) fn is_new(&self, scenario: &Scenario, image: &Image) -> bool {
        self.0.lock().expect("nothing panics here").insert(image.state(scenario))
    }

    pub(super) fn count(&self) -> u64 {
        self.0.lock().expect("nothing panics here").len() as u64
    }
}

/// Whether `init` came to its end.
pub(super) fn is_log(machine: &Faults) -> bool {
    machine.read("audit/bulla.toml").is_some()
}

/// The scenario up to operation `stop`.
fn crashed(scenario: &Scenario, stop: u64) -> Outcome<(Faults, History)> {
    let (machine, mut history) = (Faults::new(), scenario.history());
    machine.stop_at(stop);
    is_unavailable(&scenario.run(&machine, &mut history))?;
    must!(machine.stopped(), "the scenario was over before operation {stop}");
    Ok((machine, history))
}

/// Operations of the scenario when nothing goes wrong.
pub(super) fn operations(scenario: &Scenario) -> u64 {
    let (machine, mut history) = (Faults::new(), scenario.history());
    scenario.run(&machine, &mut history).expect("nothing goes wrong");
    history.check_closed(&machine).expect("nothing goes wrong");
    machine.operations()
}

/// Everything at once: where a scenario is stopped, it prints what it takes to see that again.
fn replay(scenario: &Scenario, stop: u64, machine: &Faults, failure: &str) -> String {
    format!(
        "{scenario:?} stopped at operation {stop}: {failure}\n  the trace before ends with\n{}",
        tail(machine)
    )
}

fn every_point(scenario: Scenario, first: u64, step: usize) {
    let operations = operations(&scenario);
    let points: Vec<u64> = (first..operations).step_by(step).collect();
    let examined = Examined::default();
    for_each(&points, |&stop| {
        let (machine, history) = crashed(&scenario, stop)?;
        // All eight styles of power cut; which subsets of the last ones is chosen by the point.
        let cuts = (0..8).map(|seed| Some(seed + 8 * (stop % 1000))).chain([None]).collect::<Vec<_>>();
        for cut in in_turn(&cuts, stop / step as u64) {
            let image = Image::of(&machine, &history, cut);
            if examined.is_new(&scenario, &image) {
                image.check(&scenario).map_err(|failure| replay(&scenario, stop, &machine, &failure))?;
            }
        }
        Ok(())
    });
    println!("swept: {scenario:?}: {} crash points, {} images", points.len(), examined.count());
}

/// In short every other operation is stopped at in one of the modes, in turn.
fn rotations(which: usize) {
    let (first, step) = if in_full() { (0, 1) } else { (2 * which as u64, 2 * MODES.len()) };
    every_point(Scenario { shape: Shape::Rotations, mode: MODES[which], seed: 1 }, first, step);
}

#[test]
fn group_survives_a_crash_at_every_operation() {
    rotations(0);
}

#[test]
fn interval_survives_a_crash_at_every_operation() {
    rotations(1);
}

#[test]
fn os_survives_a_crash_at_every_operation() {
    rotations(2);
}

#[test]
fn full_tiles_survive_a_crash_at_every_operation() {
    // Tiles are written alike in all modes: in short every fourth operation is stopped at in one of them, in turn.
    let step = if in_full() { 1 } else { 4 * MODES.len() };
    for (which, mode) in MODES.into_iter().enumerate() {
        let first = 40 + if in_full() { 0 } else { 4 * which as u64 };
        every_point(Scenario { shape: Shape::Tiles, mode, seed: 2 }, first, step);
    }
}

/// A crash at operation `at` of opening and going on after another crash.
fn crashed_again(scenario: &Scenario, image: &Image, at: u64) -> Outcome<(Faults, History)> {
    let (machine, mut history) = (image.machine.kill(), image.history.clone());
    history.recorder = history.recorder.fork();
    machine.stop_at(at);
    is_unavailable(&scenario.session(&machine, &mut history, MORE))?;
    Ok((machine, history))
}

#[test]
fn a_crash_inside_recovery_is_survived() {
    let mut points = Vec::new();
    for (which, mode) in MODES.into_iter().enumerate() {
        let scenario = Scenario { shape: Shape::Short, mode, seed: 3 };
        let operations = operations(&scenario);
        let cut = |stop: u64| [None, Some(1), Some(6), Some(7)][(stop / 11) as usize % 4];
        let step = if in_full() { 11 } else { 66 };
        points.extend((30 + which as u64..operations).step_by(step).map(|stop| (scenario, stop, cut(stop))));
    }
    let examined = Examined::default();
    for_each(&points, |&(scenario, stop, cut)| {
        let (machine, history) = crashed(&scenario, stop)?;
        let image = Image::of(&machine, &history, cut);
        let (whole, _) = crashed_again(&scenario, &image, u64::MAX)?;
        for again in 0..whole.operations() {
            let (second, history) = crashed_again(&scenario, &image, again)?;
            for cut in in_turn(&[Some(again % 8), None], again / 3) {
                let left = Image::of(&second, &history, cut);
                if !examined.is_new(&scenario, &left) {
                    continue;
                }
                left.check(&scenario).map_err(|failure| {
                    let failure = format!(
                        "{failure}\n  and at operation {again} after {}: {}",
                        image.what,
                        tail(&second)
                    );
                    replay(&scenario, stop, &machine, &failure)
                })?;
            }
        }
        Ok(())
    });
    println!("swept: {} crashes before recoveries, {} images", points.len(), examined.count());
}

#[test]
fn crashes_after_crashes_are_survived() {
    let seeds: Vec<u64> = (0..if in_full() { 360 } else { 60 }).collect();
    let scenarios = MODES.map(|mode| Scenario { shape: Shape::Short, mode, seed: 4 });
    let operations = scenarios.map(|scenario| operations(&scenario));
    for_each(&seeds, |&seed| {
        let mut rng = Rng(seed);
        let which = rng.below(3) as usize;
        let scenario = scenarios[which];
        let stop = 30 + rng.below(operations[which] - 30);
        let (mut machine, mut history) = crashed(&scenario, stop)?;
        let mut story = format!("{scenario:?} stopped at operation {stop}:\n{}\n", tail(&machine));
        for _ in 0..3 {
            let cut = (rng.below(3) > 0).then(|| rng.next());
            let image = Image::of(&machine, &history, cut);
            if is_log(&image.machine) {
                image
                    .history
                    .check_unopened(&image.machine)
                    .map_err(|failure| format!("{failure}\n{story}"))?;
            }
            let at = rng.below(40);
            (machine, history) =
                crashed_again(&scenario, &image, at).map_err(|failure| format!("{failure}\n{story}"))?;
            story += &format!("{}, stopped at operation {at}:\n{}\n", image.what, tail(&machine));
        }
        let cut = (rng.below(3) > 0).then(|| rng.next());
        Image::of(&machine, &history, cut)
            .check(&scenario)
            .map_err(|failure| format!("seed {seed}: {failure}\n{story}"))
    });
}
