//! A change of `[log]`, cut short at every operation: the log goes on with the old one or with the new one. So it is where
//! the log is opened for the change, and where it is at work before and after.

use super::for_each;
use super::points::{Examined, Image};
use super::scenario::{MODES, RECIPIENT, Scenario, Shape, is_unavailable};
use super::world::{History, Outcome, environment, must, tail};
use crate::helpers::{in_full, in_turn, one_in, strikes};
use bulla::{Configure, Configured, Durability};
use bulla_testkit::fault::{Fault, Faults};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const OTHER: &str = "age1a37dpy8amjrxz7sc0jj3j4ys3mtqp9m9tmcan64s6g0w6qq20pnqvxphr3";
/// Steps of the sessions before the change and after it.
const STEPS: u64 = 12;

/// A log that was written to, on a machine of its own.
pub(super) fn log(scenario: &Scenario) -> (Faults, History) {
    static MADE: Mutex<Vec<(String, Faults, History)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().expect("nothing panics here");
    let name = format!("{scenario:?}");
    if !made.iter().any(|(of, ..)| *of == name) {
        let (machine, history) = make(scenario);
        made.push((name.clone(), machine, history));
    }
    let (_, machine, history) = made.iter().find(|(of, ..)| *of == name).expect("it was made");
    (machine.kill(), history.fork(history.seed))
}

/// The same, whose file says how it is written to: a change of it goes by that.
fn make(scenario: &Scenario) -> (Faults, History) {
    let (machine, mut history) = (Faults::new(), scenario.history());
    scenario.init(&machine, &history).expect("nothing goes wrong");
    let durability = match scenario.mode {
        Durability::Group => "group",
        Durability::Interval(_) => "interval 1 s",
        Durability::Os => "os",
        mode => panic!("{mode:?} is not tried"),
    };
    let mut text = machine.read("audit/bulla.toml").expect("a log has one");
    text.extend(b"writers = 1\nretries = 2\n");
    machine.overwrite("audit/bulla.toml", &text);
    let host = format!("[settings]\nmemory = \"64 MiB\"\ndurability = \"{durability}\"\n");
    machine.overwrite("audit.keys/settings.toml", host.as_bytes());
    scenario.session(&machine, &mut history, STEPS).expect("nothing goes wrong");
    (machine, history)
}

/// How a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The log is opened for it.
    Opened,
    /// The log is at work, and goes on.
    AtWork,
}

const WAYS: [Way; 2] = [Way::Opened, Way::AtWork];

impl Way {
    /// Changes the configuration; the operation with which that began.
    fn change(self, scenario: &Scenario, machine: &Faults, history: &mut History) -> bulla::Result<u64> {
        let begun = Cell::new(machine.operations());
        match self {
            Way::Opened => change(machine, history).map(drop)?,
            Way::AtWork => scenario.session_around(machine, history, (STEPS, STEPS), |log| {
                begun.set(machine.operations());
                let changed = log.configure(&to_other())?;
                assert!(changed.changed && changed.live && is_new(machine) == Ok(true), "{changed:?}");
                Ok(())
            })?,
        }
        Ok(begun.get())
    }
}

fn to_other() -> Configure {
    Configure::default().recipients([OTHER]).expect("it is one")
}

fn change(machine: &Faults, history: &mut History) -> bulla::Result<Configured> {
    let number = history.begin_session();
    let environment = environment(history.seed.rotate_left(29) ^ number, &history.recorder);
    let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
    let changed = to_other().apply_in(log, keys, &environment);
    history.note_checkpoint(machine);
    // What opening adopts, it makes durable.
    if changed.is_ok() {
        history.synced = history.written.clone();
    }
    changed
}

/// Whether the file has the new recipients.
fn is_new(machine: &Faults) -> Outcome<bool> {
    let (config, _) = bulla::config::load(&machine.store("audit")).map_err(|error| error.to_string())?;
    match config.recipients.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [RECIPIENT] => Ok(false),
        [OTHER] => Ok(true),
        _ => Err(format!("strange recipients: {:?}", config.recipients)),
    }
}

/// Events in the log that tell of a change, whatever came of it.
fn told(machine: &Faults) -> usize {
    let segments = machine.files().into_iter().filter(|path| path.ends_with(".seg"));
    let count = |path: String| {
        let content = machine.read(&path).unwrap_or_default();
        content.windows(21).filter(|window| window == b"{\"event\":\"configured\"").count()
    };
    segments.map(count).sum()
}

/// What is left is sound, goes on with one `[log]` or the other, and can be changed then.
fn check(image: Image, scenario: &Scenario, outcomes: &Outcomes) -> Outcome {
    if !outcomes.examined.is_new(scenario, &image) {
        return Ok(());
    }
    let Image { machine, mut history, .. } = image;
    history.check_unopened(&machine)?;
    let new = is_new(&machine)?;
    outcomes.count(new, told(&machine));
    let outcome = scenario.session(&machine, &mut history, STEPS);
    must!(outcome.is_ok(), "opening it again: {outcome:?}");
    history.check_closed(&machine)?;
    must!(is_new(&machine)? == new, "opening it changed its configuration");
    let state = machine.read("audit.keys/seal.state").ok_or("the seal state is gone")?;
    let (config, _) = bulla::config::load(&machine.store("audit")).map_err(|error| error.to_string())?;
    must!(state[24..56] == config.digest.0 && state[160..192] == config.digest.0, "the seal state differs");

    let changed = change(&machine, &mut history).map_err(|error| format!("changing it again: {error}"))?;
    must!(changed.changed != new && is_new(&machine)?, "it was not changed: {changed:?}");
    history.check_closed(&machine)?;
    let outcome = scenario.session(&machine, &mut history, STEPS);
    must!(outcome.is_ok(), "opening it at last: {outcome:?}");
    history.check_closed(&machine.crash(0))
}

/// What was left how often: whether the file was new, and how many events told of a change.
#[derive(Default)]
struct Outcomes {
    counts: [AtomicU64; 3],
    examined: Examined,
}

impl Outcomes {
    fn count(&self, new: bool, told: usize) {
        let which = match (new, told) {
            (false, 0) => 0,
            (false, _) => 1,
            (true, _) => 2,
        };
        self.counts[which].fetch_add(1, Ordering::Relaxed);
    }

    /// Old, told of and not carried out, and new.
    fn all(&self) -> [u64; 3] {
        [0, 1, 2].map(|which| self.counts[which].load(Ordering::Relaxed))
    }
}

fn scenarios() -> [Scenario; 3] {
    MODES.map(|mode| Scenario { shape: Shape::Short, mode, seed: 11 })
}

/// The operations of a change in a scenario, with a line of the trace each.
fn operations(scenario: &Scenario, way: Way) -> BTreeMap<u64, String> {
    let (machine, mut history) = log(scenario);
    let first = way.change(scenario, &machine, &mut history).expect("nothing goes wrong");
    history.check_closed(&machine).expect("nothing goes wrong");
    // Before the operations it says that the process before this one died.
    let trace = machine.trace().split_off(1);
    (first..machine.operations()).map(|number| (number, trace[number as usize].clone())).collect()
}

/// The change, stopped at an operation.
fn stopped(scenario: &Scenario, way: Way, stop: u64) -> Outcome<(Faults, History)> {
    let (machine, mut history) = log(scenario);
    machine.stop_at(stop);
    is_unavailable(&way.change(scenario, &machine, &mut history).map(|_| ()))?;
    must!(machine.stopped(), "it was over before operation {stop}");
    Ok((machine, history))
}

fn survives_a_crash_at_every_operation(way: Way) {
    let mut points = Vec::new();
    for scenario in scenarios() {
        points.extend(operations(&scenario, way).into_keys().map(|stop| (scenario, stop)));
    }
    let points = one_in(4, points);
    let outcomes = Outcomes::default();
    for_each(&points, |&(scenario, stop)| {
        let (machine, history) = stopped(&scenario, way, stop)?;
        let cuts = (0..5).map(|seed| Some(seed + 8 * (stop % 1000))).chain([None]).collect::<Vec<_>>();
        for cut in in_turn(&cuts, stop) {
            check(Image::of(&machine, &history, cut), &scenario, &outcomes).map_err(|failure| {
                format!("{scenario:?} stopped at operation {stop}, {cut:?}: {failure}\n{}", tail(&machine))
            })?;
        }
        Ok(())
    });
    let all = outcomes.all();
    println!("swept: {} points of a change; old, told of only, new: {all:?}", points.len());
    assert!(all.iter().all(|count| *count > 0), "{all:?}");
}

#[test]
fn a_change_of_the_configuration_survives_a_crash_at_every_operation() {
    survives_a_crash_at_every_operation(Way::Opened);
}

#[test]
fn a_change_of_a_log_at_work_survives_a_crash_at_every_operation() {
    survives_a_crash_at_every_operation(Way::AtWork);
}

#[test]
fn a_crash_inside_the_recovery_of_a_change_is_survived() {
    let scenario = Scenario { shape: Shape::Short, mode: Durability::Group, seed: 12 };
    let points = operations(&scenario, Way::Opened).into_keys();
    let points = points.step_by(if in_full() { 5 } else { 35 }).zip(0_u64..).collect::<Vec<_>>();
    let outcomes = Outcomes::default();
    for_each(&points, |&(stop, index)| {
        let (machine, history) = stopped(&scenario, Way::Opened, stop)?;
        let cut = [None, Some(1), Some(6), Some(7)][index as usize % 4];
        let image = Image::of(&machine, &history, cut);
        let new = is_new(&image.machine)?;
        // Opened by a writer, or by another change.
        for again in in_turn(&[false, true], index + index / 4) {
            let crashed = |at: u64| -> Outcome<(Faults, History)> {
                let (machine, mut history) = (image.machine.kill(), image.history.fork(at));
                machine.stop_at(at);
                is_unavailable(&match again {
                    false => scenario.session(&machine, &mut history, 2),
                    true => change(&machine, &mut history).map(|_| ()),
                })?;
                Ok((machine, history))
            };
            let (whole, _) = crashed(u64::MAX)?;
            for at in 0..whole.operations() {
                let (second, history) = crashed(at)?;
                for cut in in_turn(&[Some(at % 8), None], at / 3) {
                    let left = Image::of(&second, &history, cut);
                    must!(again || is_new(&left.machine)? == new, "the configuration changed by itself");
                    check(left, &scenario, &outcomes).map_err(|failure| {
                        format!(
                            "stopped at {stop}, then at {at} ({again}), {cut:?}: {failure}\n{}",
                            tail(&second)
                        )
                    })?;
                }
            }
        }
        Ok(())
    });
    println!(
        "swept: {} points before recoveries of a change; old, told of only, new: {:?}",
        points.len(),
        outcomes.all()
    );
}

#[test]
fn any_operation_of_a_change_may_fail() {
    let mut points = Vec::new();
    for (scenario, way) in scenarios().into_iter().flat_map(|scenario| WAYS.map(|way| (scenario, way))) {
        for (number, line) in operations(&scenario, way) {
            let faults = Fault::ALL.into_iter().filter(|fault| strikes(*fault, &line)).collect::<Vec<_>>();
            let faults = if faults.is_empty() { faults } else { in_turn(&faults, number) };
            for (index, fault) in faults.into_iter().enumerate() {
                let lasting = in_turn(&[false, true], number + index as u64).into_iter();
                points.extend(lasting.map(|lasting| (scenario, way, number, fault, lasting)));
            }
        }
    }
    let points = one_in(4, points);
    let (outcomes, failed) = (Outcomes::default(), AtomicU64::new(0));
    for_each(&points, |&(scenario, way, number, fault, lasting)| {
        let (machine, mut history) = log(&scenario);
        match lasting {
            false => machine.fail_at(number, fault),
            true => machine.fail_from(number, fault),
        }
        let changed = way.change(&scenario, &machine, &mut history).map(|_| ());
        machine.heal();
        let context = |failure| {
            let tail = tail(&machine);
            format!("{way:?}, {fault:?} at {number} (lasting: {lasting}): {failure}\n{tail}")
        };
        is_unavailable(&changed).map_err(context)?;
        must!(changed.is_err() || is_new(&machine)?, "it said that it was done");
        failed.fetch_add(u64::from(changed.is_err()), Ordering::Relaxed);
        for cut in in_turn(&[None, Some(number)], number / 2) {
            check(Image::of(&machine, &history, cut), &scenario, &outcomes).map_err(context)?;
        }
        Ok(())
    });
    let all = outcomes.all();
    println!(
        "swept: {} faults of a change, {failed:?} failures; old, told of only, new: {all:?}",
        points.len()
    );
    assert!(all.iter().all(|count| *count > 0) && failed.into_inner() > 0, "{all:?}");
}
