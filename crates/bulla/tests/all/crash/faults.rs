//! A fault at every operation of a scenario: the log goes on, or refuses and recovers once the medium is mended.

use super::for_each;
use super::points::{Examined, Image, is_log, operations};
use super::scenario::{MODES, Scenario, Shape, is_unavailable};
use super::world::{Counts, History, Outcome, environment, must, tail};
use crate::helpers::{Rng, in_full, in_turn, one_in, strikes};
use bulla::{Durability, Log, Options};
use bulla_testkit::fault::{Fault, Faults};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Makes a log, breaks something with `harm`, and runs the log's life. Sessions that fail are followed by the next
/// one, on a medium that was mended.
fn with_harm(scenario: &Scenario, harm: impl Fn(&Faults), stop: u64) -> Outcome<(Faults, History)> {
    let (machine, mut history) = (Faults::new(), scenario.history());
    must!(scenario.init(&machine, &history).is_ok(), "init fails");
    harm(&machine);
    machine.stop_at(stop);
    for steps in scenario.sessions() {
        let outcome = scenario.session(&machine, &mut history, *steps);
        let context = || format!("{scenario:?}:\n{}", tail(&machine));
        is_unavailable(&outcome).map_err(|failure| format!("{failure}\n{}", context()))?;
        if machine.stopped() {
            break;
        }
        if outcome.is_err() {
            history.check_unopened(&machine).map_err(|failure| format!("{failure}\n{}", context()))?;
            machine.heal();
        }
    }
    machine.heal();
    Ok((machine, history))
}

/// How a scenario ends in which something was harmed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Crash,
}

/// What `harm` leaves is sound, after the scenario ran to its end and after a crash somewhere in it: one of the two, in turn,
/// unless a sweep is in full.
fn check_harm(
    scenario: &Scenario,
    from: u64,
    seed: u64,
    examined: &Examined,
    harm: impl Fn(&Faults),
) -> Outcome {
    let context = |machine: &Faults, failure: String| {
        format!("{scenario:?}: {failure}\n  the trace\n{}", tail(machine))
    };
    let ends = in_turn(&[End::Whole, End::Crash], seed);
    if ends.contains(&End::Whole) {
        let (machine, history) = with_harm(scenario, &harm, u64::MAX)?;
        let image = Image::of(&machine, &history, None);
        if examined.is_new(scenario, &image) {
            image.check(scenario).map_err(|failure| context(&machine, failure))?;
        }
    }
    if !ends.contains(&End::Crash) {
        return Ok(());
    }
    let mut rng = Rng(seed);
    let (machine, history) = with_harm(scenario, &harm, from + 1 + rng.below(30))?;
    for cut in in_turn(&[Some(0), Some(rng.next()), None], seed / 2) {
        let image = Image::of(&machine, &history, cut);
        must!(is_log(&image.machine), "the log is gone");
        if examined.is_new(scenario, &image) {
            image.check(scenario).map_err(|failure| context(&machine, format!("then a crash: {failure}")))?;
        }
    }
    Ok(())
}

/// The scenarios, with their traces after `init`.
fn scenarios() -> [(Scenario, Vec<String>); 3] {
    MODES.map(|mode| {
        let scenario = Scenario { shape: Shape::Short, mode, seed: 5 };
        let (machine, mut history) = (Faults::new(), scenario.history());
        scenario.run(&machine, &mut history).expect("nothing goes wrong");
        (scenario, machine.trace())
    })
}

/// The first operation after `init`.
fn first_operation(scenario: &Scenario) -> usize {
    let machine = Faults::new();
    scenario.init(&machine, &scenario.history()).expect("nothing goes wrong");
    machine.operations() as usize
}

/// Whatever fails, at whichever operation: no file is left, and it can be done again in the same place.
#[test]
fn making_a_log_that_fails_leaves_nothing_behind() {
    let scenario = Scenario { shape: Shape::Short, mode: Durability::Group, seed: 5 };
    let (mut failed, mut made) = (0, 0);
    for number in 0..=first_operation(&scenario) as u64 {
        for fault in Fault::ALL {
            let machine = Faults::new();
            machine.fail_at(number, fault);
            match scenario.init(&machine, &scenario.history()) {
                Ok(()) => made += 1,
                outcome => {
                    is_unavailable(&outcome).unwrap();
                    assert_eq!(machine.files(), [] as [&str; 0], "{fault:?} at {number}: {}", tail(&machine));
                    machine.heal();
                    scenario.init(&machine, &scenario.history()).unwrap();
                    failed += 1;
                }
            }
        }
    }
    assert!(failed > 100 && made > 0, "{failed} {made}");
}

fn every_fault(lasting: bool) {
    let mut points = Vec::new();
    for (scenario, trace) in scenarios() {
        for (number, line) in trace.iter().enumerate().skip(first_operation(&scenario)) {
            let faults = Fault::ALL.into_iter().filter(|fault| strikes(*fault, line)).collect::<Vec<_>>();
            let faults = if faults.is_empty() { faults } else { in_turn(&faults, number as u64) };
            points.extend(faults.into_iter().map(|fault| (scenario, number as u64, fault)));
        }
    }
    let points = one_in(3, points.into_iter().step_by(if lasting { 4 } else { 1 }));
    let examined = Examined::default();
    let points = points.into_iter().enumerate().collect::<Vec<_>>();
    for_each(&points, |&(index, (scenario, number, fault))| {
        let harm = |machine: &Faults| match lasting {
            false => machine.fail_at(number, fault),
            true => machine.fail_from(number, fault),
        };
        let context = |failure| format!("{fault:?} at operation {number} (lasting: {lasting}): {failure}");
        let seed = if in_full() { number } else { index as u64 };
        check_harm(&scenario, number, seed, &examined, harm).map_err(context)
    });
    println!("swept: {} faults (lasting: {lasting}), {} images", points.len(), examined.count());
}

#[test]
fn any_operation_may_fail_once() {
    every_fault(false);
}

#[test]
fn any_operation_may_fail_until_the_medium_is_mended() {
    every_fault(true);
}

#[test]
fn any_two_operations_may_fail() {
    let seeds: Vec<u64> = (0..if in_full() { 400 } else { 65 }).collect();
    let scenarios = MODES.map(|mode| Scenario { shape: Shape::Short, mode, seed: 6 });
    let operations = scenarios.map(|scenario| operations(&scenario));
    for_each(&seeds, |&seed| {
        let mut rng = Rng(seed);
        let which = rng.below(3) as usize;
        let first = 30 + rng.below(operations[which] - 30);
        let faults: Vec<(u64, Fault)> = (0..2 + rng.below(6))
            .map(|_| (first + rng.below(12), Fault::ALL[rng.below(8) as usize]))
            .collect();
        let harm =
            |machine: &Faults| faults.iter().for_each(|(number, fault)| machine.fail_at(*number, *fault));
        check_harm(&scenarios[which], first, seed, &Examined::default(), harm)
            .map_err(|failure| format!("{faults:?}: {failure}"))
    });
}

#[test]
fn the_disk_may_be_full() {
    let mut limits = Vec::new();
    for mode in MODES {
        let scenario = Scenario { shape: Shape::Short, mode, seed: 7 };
        limits.extend((0..60).map(|step| (scenario, 2500 + step * 3100)));
    }
    let limits = one_in(3, limits);
    for_each(&limits, |&(scenario, limit)| {
        let harm = |machine: &Faults| machine.limit_space(limit);
        check_harm(&scenario, 30, limit, &Examined::default(), harm)
            .map_err(|failure| format!("{limit} bytes: {failure}"))
    });
}

/// Appends from two threads to a log with threads of its own, until something fails. Returns what was acknowledged.
fn threads(machine: &Faults, history: &History, options: Options) -> bulla::Result<Counts> {
    let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
    let log = Log::open_stores(log, keys, options, environment(history.seed, &history.recorder))?;
    let acknowledged = Mutex::new(Counts::new());
    let append = |name: &'static str| -> bulla::Result<()> {
        let mut producer = log.producer()?;
        for index in 0..120 {
            history.with_entry(name, index, |entry| producer.append(entry))?;
            if index % 10 == 9 {
                let receipt = producer.flush()?;
                match index % 40 {
                    39 => receipt.checkpointed()?,
                    _ => receipt.durable()?,
                }
                acknowledged.lock().expect("nothing panics here").insert(name.to_owned(), index + 1);
            }
        }
        Ok(())
    };
    let appended = std::thread::scope(|scope| {
        let others = ["t0", "t1"].map(|name| scope.spawn(|| append(name)));
        others.map(|other| other.join().expect("a producer does not panic"))
    });
    // What failed, if anything, failed for everybody: what matters is what was acknowledged before.
    let closed = log.close();
    for outcome in appended.into_iter().chain([closed]) {
        assert!(is_unavailable(&outcome).is_ok(), "{outcome:?}");
    }
    Ok(acknowledged.into_inner().expect("nothing panics here"))
}

#[test]
fn a_log_with_threads_survives_faults() {
    let seeds: Vec<u64> = (0..if in_full() { 60 } else { 30 }).collect();
    for_each(&seeds, |&seed| {
        let mut rng = Rng(seed);
        let scenario = Scenario { shape: Shape::Short, mode: MODES[(seed % 2) as usize], seed };
        let mode = match scenario.mode {
            Durability::Group => Durability::Group,
            _ => Durability::Interval(Duration::from_millis(2)),
        };
        let options = scenario.options().writers(2).durability(mode);
        let options = options.checkpoint_interval(Duration::from_millis(5)).linger(Duration::from_millis(1));
        let (machine, mut history) = (Faults::new(), scenario.history());
        must!(scenario.init(&machine, &history).is_ok(), "init fails");
        let first = 40 + rng.below(150);
        let faults: Vec<(u64, Fault)> =
            (0..rng.below(5)).map(|_| (first + rng.below(12), Fault::ALL[rng.below(8) as usize])).collect();
        faults.iter().for_each(|(number, fault)| machine.fail_at(*number, *fault));
        if seed % 3 == 0 {
            machine.stop_at(first + 20);
        }
        history.appended.extend(["t0", "t1"].map(|name| (name.to_owned(), 120)));
        let acknowledged = match threads(&machine, &history, options) {
            Ok(acknowledged) => acknowledged,
            Err(error) => {
                is_unavailable(&Err(error))?;
                Counts::new()
            }
        };
        history.written.clone_from(&acknowledged);
        history.synced = acknowledged;
        for cut in [None, Some(0), Some(rng.next())] {
            Image::of(&machine, &history, cut).check(&scenario).map_err(|failure| {
                format!("seed {seed}, {faults:?}, {scenario:?}: {failure}\n  the trace\n{}", tail(&machine))
            })?;
        }
        Ok(())
    });
}
