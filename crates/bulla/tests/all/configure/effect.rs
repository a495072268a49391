//! A change that fails says what came of it: nothing, all of it, or that nobody knows.

use super::{Made, Person, person};
use crate::helpers::in_full;
use bulla::{Configure, Configured, Effect, ErrorKind, Log, Result};
use bulla_testkit::fault::{Fault, Faults};

/// What goes wrong from some operation on.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// Everything fails: the machine stops.
    Stops,
    Fails(Fault),
}

impl Wrong {
    fn from(self, machine: &Faults, operation: u64) {
        match self {
            Wrong::Stops => machine.stop_at(operation),
            Wrong::Fails(fault) => machine.fail_from(operation, fault),
        }
    }

    fn all() -> impl Iterator<Item = Wrong> {
        [Wrong::Stops].into_iter().chain(Fault::ALL.map(Wrong::Fails))
    }
}

/// A log that is opened for a change, or is at work when it comes.
#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    Live,
}

/// How often nothing came of it, all of it did, and nobody knew.
#[derive(Debug, Default)]
struct Told {
    nothing: u32,
    done: u32,
    unknown: u32,
}

/// A log's machine, and what changes the log.
struct Change<'a> {
    made: &'a Made,
    configure: Configure,
    /// What is said of it, once it is done.
    said: &'a str,
    /// Whether the configuration is the new one.
    is_new: &'a dyn Fn(&Made) -> bool,
}

impl Change<'_> {
    /// Applies it to a copy on which this goes wrong, from `operation` after the change begins on; whether that was reached.
    fn fails_at(&self, operation: u64, wrong: Wrong, state: State, told: &mut Told) -> bool {
        let made = self.made.killed();
        let log = matches!(state, State::Live).then(|| {
            let log = made.open().unwrap();
            log.flush().unwrap();
            log
        });
        let begun = made.machine.operations();
        wrong.from(&made.machine, begun + operation);
        let changed = match &log {
            Some(log) => log.configure(&self.configure),
            None => made.apply(&self.configure),
        };
        let is_over = made.machine.operations() <= begun + operation;
        made.machine.heal();
        let machines = [made.machine.kill(), made.machine.crash(operation)];
        drop::<Option<Log>>(log);
        for machine in machines {
            let left = Made { machine, owner: owner(&made) };
            self.check(&left, &changed, &format!("{operation}, {wrong:?}, {state:?}: {changed:?}"));
            left.append(1).unwrap();
            assert!(left.verify().ok);
        }
        match changed.map_err(|error| error.effect()) {
            Ok(_) => {}
            Err(None) => told.nothing += 1,
            Err(Some(Effect::Done)) => told.done += 1,
            Err(Some(Effect::Unknown)) => told.unknown += 1,
        }
        !is_over
    }

    fn check(&self, left: &Made, changed: &Result<Configured>, what: &str) {
        let is_new = (self.is_new)(left);
        let Err(error) = changed else { return assert!(is_new, "{what}") };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}");
        let (text, done) =
            (error.to_string(), format!("it is done: {}; what failed after that: ", self.said));
        let maybe =
            "it may be done: `bulla config DIR` tells whether the configuration is changed; what failed: ";
        assert_eq!(error.effect() == Some(Effect::Done), text.contains(&done), "{what}");
        assert_eq!(error.effect() == Some(Effect::Unknown), text.contains(maybe), "{what}");
        match error.effect() {
            Some(Effect::Done) => assert!(is_new, "{what}"),
            Some(Effect::Unknown) => {}
            None => assert!(!is_new, "{what}"),
        }
    }

    /// At every operation, or at some of them.
    fn fails_anywhere(&self, state: State) -> Told {
        let mut told = Told::default();
        for (first, wrong) in Wrong::all().enumerate() {
            let step = if in_full() { 1 } else { 3 };
            let mut operations = (first as u64 % step..).step_by(step as usize);
            while self.fails_at(operations.next().unwrap(), wrong, state, &mut told) {}
        }
        told
    }
}

fn owner(made: &Made) -> Person {
    let Person { identity, recipient } = &made.owner;
    Person { identity: identity.clone(), recipient: recipient.clone() }
}

#[test]
fn a_change_of_log_that_fails_anywhere_says_whether_it_is_done() {
    let (made, other) = (Made::filled(), person());
    let configure = Configure::default().add_recipients([&other.recipient]).unwrap();
    let is_new = |left: &Made| left.config().recipients.contains(&other.recipient);
    let said = "the configuration is changed, and that is recorded in the log";
    let change = Change { made: &made, configure, said, is_new: &is_new };
    for state in [State::Closed, State::Live] {
        let told = change.fails_anywhere(state);
        assert!(told.nothing > 10 && told.done > 10 && told.unknown > 0, "{state:?}: {told:?}");
    }
}

/// One of each of the two files. Nothing is done after either is written, so that nothing fails then.
#[test]
fn a_change_of_settings_that_fails_anywhere_says_whether_it_is_done() {
    let made = Made::filled();
    for (name, value, path) in
        [("retries", "9", "audit/bulla.toml"), ("linger", "20 ms", "audit.keys/settings.toml")]
    {
        let configure = Configure::default().set(name, value).unwrap();
        let is_new = |left: &Made| left.machine.read(path).is_some_and(|text| sets_last(&text, name));
        let change = Change { made: &made, configure, said: "nothing is said", is_new: &is_new };
        for state in [State::Closed, State::Live] {
            let told = change.fails_anywhere(state);
            assert!(told.nothing > 2 && told.unknown > 0 && told.done == 0, "{name}, {state:?}: {told:?}");
        }
    }
}

/// Whether a setting of this name is on the last line.
fn sets_last(text: &[u8], name: &str) -> bool {
    let text = String::from_utf8_lossy(text);
    text.lines().last().is_some_and(|line| line.starts_with(name))
}
