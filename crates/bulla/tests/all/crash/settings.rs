//! Settings that are changed together, cut short at every operation: a log has all of what was asked for, or nothing of it.

use super::configure::log;
use super::for_each;
use super::points::Image;
use super::scenario::{MODES, Scenario, Shape, is_unavailable};
use super::world::{History, Outcome, environment, must, tail};
use bulla::keys::settings as host_settings;
use bulla::{Configure, ErrorKind, Options, Setting, SettingPlace};
use bulla_testkit::fault::Faults;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SCENARIO: Scenario = Scenario { shape: Shape::Short, mode: MODES[0], seed: 13 };
const LOG: &str = "audit/bulla.toml";
const HOST: &str = "audit.keys/settings.toml";

/// A change, and what is in the two files before it besides what they have anyway.
struct Change {
    of: &'static [(&'static str, Option<&'static str>)],
    misplaced: &'static [(&'static str, &'static str)],
}

/// Of each file; of both; and of one, where what is changed is in the other, too: alone, and with something else.
const CHANGES: [Change; 10] = [
    Change { of: &[("linger", Some("20 ms")), ("durability", Some("group"))], misplaced: &[] },
    Change { of: &[("block_size", Some("2 MiB")), ("retries", Some("9"))], misplaced: &[] },
    Change { of: &[("memory", None), ("linger", Some("9 ms"))], misplaced: &[] },
    Change { of: &[("linger", Some("20 ms")), ("retries", Some("9"))], misplaced: &[] },
    Change { of: &[("linger", Some("20 ms")), ("log.fields.client", Some("drop"))], misplaced: &[] },
    Change { of: &[("linger", Some("20 ms"))], misplaced: &[(LOG, "linger = \"1 h\"\n")] },
    Change { of: &[("block_size", Some("2 MiB"))], misplaced: &[(HOST, "block_size = \"4 MiB\"\n")] },
    Change {
        of: &[("linger", Some("20 ms")), ("append_timeout", Some("7 s"))],
        misplaced: &[(LOG, "linger = \"3 ms\"\n")],
    },
    Change {
        of: &[("writers", Some("2")), ("block_size", Some("2 MiB"))],
        misplaced: &[(HOST, "block_size = \"4 MiB\"\n")],
    },
    Change {
        of: &[("block_size", Some("2 MiB")), ("log.heartbeat", Some("1 min"))],
        misplaced: &[(HOST, "block_size = \"4 MiB\"\n")],
    },
];

impl Change {
    fn log(&self) -> (Faults, History) {
        let (machine, history) = log(&SCENARIO);
        for (file, line) in self.misplaced {
            let mut text = machine.read(file).expect("the log has it");
            text.extend(line.bytes());
            machine.overwrite(file, &text);
        }
        (machine, history)
    }

    fn make(&self, machine: &Faults, history: &mut History) -> bulla::Result<()> {
        let number = history.begin_session();
        let environment = environment(history.seed.rotate_left(23) ^ number, &history.recorder);
        let configure = self.of.iter().try_fold(Configure::default(), |all, (name, value)| match value {
            Some(value) => all.set(name, value),
            None => all.unset(name),
        })?;
        let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
        configure.apply_in(log, keys, &environment).map(drop)
    }
}

/// The log's settings as they count, with its rules for fields; `None` where no writer would go by them.
fn settings(machine: &Faults) -> Outcome<Option<(Vec<Setting>, String)>> {
    let (log, free) = bulla::config::load(&machine.store("audit")).map_err(|error| error.to_string())?;
    let host = match host_settings::load(&machine.store("audit.keys")) {
        Err(error) if error.io_error().is_none() => return Ok(None),
        loaded => loaded.map_err(|error| error.to_string())?,
    };
    let count = |options: Options| (options.settings(), format!("{:?}", log.fields));
    let is_refused = !free.misplaced(SettingPlace::Log).is_empty();
    Ok((!is_refused).then(|| count(free.with_host(host))))
}

#[test]
fn settings_that_are_changed_together_are_all_changed_or_none_wherever_that_is_cut_short() {
    let mut points = Vec::new();
    let mut refused = 0;
    for (index, change) in CHANGES.iter().enumerate() {
        let (machine, mut history) = change.log();
        let before = (machine.read(LOG), machine.read(HOST));
        let made = change.make(&machine, &mut history);
        if let Err(error) = &made {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!((machine.read(LOG), machine.read(HOST)) == before, "it was refused, and began");
            let names = change.of.iter().map(|(name, _)| format!("`{name}`"));
            for named in names.chain(["settings.toml".to_owned(), "bulla.toml".to_owned()]) {
                assert!(error.to_string().contains(&named), "{named}: {error}");
            }
            refused += 1;
        }
        points.extend((0..machine.operations()).map(|stop| (index, stop)));
    }
    assert_eq!(refused, 5, "what changes two files is refused, but one setting that is moved");
    let seen = [const { AtomicU64::new(0) }; 2];
    for_each(&points, |&(index, stop)| {
        let change = &CHANGES[index];
        let (machine, mut history) = change.log();
        let old = settings(&machine)?;
        machine.stop_at(stop);
        let stopped = change.make(&machine, &mut history);
        if !matches!(&stopped, Err(error) if error.kind() == ErrorKind::Invalid) {
            is_unavailable(&stopped)?;
        }
        let (whole, mut of_whole) = change.log();
        let is_refused = change.make(&whole, &mut of_whole).is_err();
        let new = settings(&whole)?;
        must!(is_refused || new.is_some(), "a setting is still where it does not belong");
        for cut in (0..8).map(Some).chain([None]) {
            let mut image = Image::of(&machine, &history, cut);
            let context = |failure: String| {
                format!("{:?} stopped at operation {stop}, {cut:?}: {failure}\n{}", change.of, tail(&machine))
            };
            let left = settings(&image.machine).map_err(context)?;
            let is_one = left == old || left == new;
            is_one.then_some(()).ok_or_else(|| context(format!("half of it: {left:?}")))?;
            seen[usize::from(left == new)].fetch_add(1, Ordering::Relaxed);
            if is_refused {
                continue;
            }
            let again = change.make(&image.machine, &mut image.history);
            again.map_err(|error| context(format!("changing it again: {error}")))?;
            let is_new = settings(&image.machine).map_err(context)? == new;
            is_new.then_some(()).ok_or_else(|| context("changed again, it is another".to_owned()))?;
        }
        Ok(())
    });
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) > 0), "{seen:?}");
    println!("swept: {} points of changes of settings; old and new: {seen:?}", points.len());
}
