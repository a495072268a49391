//! A log that fails for good and is opened again while the proxy runs.

use super::faults::{DISK, fail, wait_until};
use super::world::{MODES, World};
use bulla::environment::Environment;
use bulla::{ErrorKind, Log, Options};
use bulla_proxy::config::{Config, Unrecordable};
use bulla_proxy::counters::Counters;
use bulla_proxy::logs::Logs;
use bulla_proxy::proxy::Proxy;
use bulla_proxy::warnings::Kind;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A world whose proxy has its log opened again.
struct Reopening {
    world: World,
    machine: Faults,
    logs: Arc<Logs>,
    counters: Arc<Counters>,
    told: Arc<Mutex<Vec<Kind>>>,
}

impl Reopening {
    fn new(mode: &str, change: impl FnOnce(Config) -> Config) -> Reopening {
        let (machine, environment) = (Faults::new(), Environment::default());
        let options = Options::default().retries(0).retry_delay(Duration::ZERO);
        let mut world = World::on(&machine, options.clone(), environment.clone(), "", "");
        let mode =
            Config::parse(format!("mode = \"{mode}\"\n[log]\ndirectory = \"x\"\n").as_bytes()).unwrap().mode;
        let config = change(Config { mode, ..world.config("", None, "") });
        let told = Arc::<Mutex<Vec<_>>>::default();
        let warned = told.clone();
        let warn = Arc::new(move |kind, _: &str| warned.lock().unwrap().push(kind));
        let mut logs = None;
        world.give_log(|log| {
            let logs = logs.insert(Arc::new(Logs::new(log, options, environment.clone(), |_| {})));
            Proxy::start_reopening(&config, logs, &environment, warn).unwrap()
        });
        let counters = world.proxy().counters().clone();
        Reopening { world, machine, logs: logs.unwrap(), counters, told }
    }

    fn asks(&self, line: &str) -> String {
        self.world.connect().ask(line)
    }

    /// Has the log fail for good, at `fault`.
    fn fail(&self, fault: Fault) {
        wait_until(|| self.logs.with(|log| log.acknowledged() > 0) == Some(true));
        fail(&self.machine, fault);
        wait_until(|| {
            self.asks("SET b 1");
            self.counters.log_failed.get() == 1
        });
    }

    /// Mends what it failed at, and waits until it takes entries.
    fn mend(&self) {
        let before = self.counters.log_reopened.get();
        self.machine.heal();
        wait_until(|| self.counters.log_reopened.get() > before);
        assert_eq!(self.counters.log_failed.get(), 0);
        wait_until(|| self.counters.taking_nothing.get() == 0);
    }

    /// Ends it in order; all entries.
    fn end(mut self) -> Vec<String> {
        self.world.end_proxy();
        let (lost, closed) = self.logs.close(&self.counters);
        closed.unwrap();
        assert_eq!((lost, self.counters.untold.get()), (0, 0));
        self.world.read(false).into_iter().map(|(_, entry)| entry).collect()
    }
}

/// What an entry says that is missing: operations that were not recorded, and entries that may be lost.
fn missing(entry: &str) -> [u64; 2] {
    let payload = entry.strip_prefix("gap  - payload=").unwrap_or_else(|| panic!("{entry}"));
    let payload = serde_json::from_str::<serde_json::Value>(payload).unwrap();
    ["unrecorded", "lost_at_most"].map(|name| payload[name].as_u64().unwrap())
}

#[test]
fn a_log_that_failed_for_good_is_opened_again_and_its_first_entry_says_what_is_missing() {
    for (number, mode) in MODES.iter().enumerate() {
        let it = Reopening::new(mode, |config| config);
        assert_eq!(it.asks("SET a 1"), "OK", "{mode}");
        it.fail(DISK[number % 2]);
        // Nobody else comes in meanwhile.
        let (log, keys) = (Arc::new(it.machine.store("audit")), Arc::new(it.machine.store("keys")));
        let other = Log::open_stores(log, keys, Options::default(), Environment::default());
        assert_eq!(other.unwrap_err().kind(), ErrorKind::Locked, "{mode}");
        it.mend();
        assert_eq!(it.asks("SET c 1"), "OK", "{mode}");
        let (unrecorded, told) = (it.counters.unrecorded.get(), it.told.lock().unwrap().clone());
        for kind in [Kind::LogFailed, Kind::LogReopened] {
            assert!(told.contains(&kind), "{mode}: {told:?}");
        }
        let entries = it.end();
        let at = entries.iter().position(|entry| entry.starts_with("gap ")).unwrap();
        assert_eq!(missing(&entries[at])[0], unrecorded, "{mode}: {entries:?}");
        assert!(entries[..at].iter().all(|entry| !entry.starts_with("write c")), "{mode}: {entries:?}");
        assert!(entries[at + 1..].iter().all(|entry| entry.starts_with("write c")), "{mode}: {entries:?}");
        assert!(entries[0].starts_with("write a") && entries.len() > at + 1, "{mode}: {entries:?}");
    }
}

#[test]
fn all_that_passed_unrecorded_is_told_together_each_time() {
    let it = Reopening::new("async", |config| Config {
        unrecordable: Unrecordable::Pass,
        workers: Some(2),
        ..config
    });
    let mut count = 0;
    let mut done = |times: u64| {
        (0..times).for_each(|_| assert_eq!(it.asks("SET a 1"), "OK"));
        count += times;
    };
    let mut gaps = Vec::new();
    for _ in 0..2 {
        done(2);
        wait_until(|| it.logs.with(|log| log.acknowledged() >= 2) == Some(true));
        fail(&it.machine, Fault::SyncFails);
        let before = it.counters.unrecorded.get();
        while it.counters.taking_nothing.get() < 2 {
            done(1);
        }
        done(10);
        it.mend();
        gaps.push(it.counters.unrecorded.get() - before);
        done(1);
    }
    let entries = it.end();
    let (told, recorded): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.starts_with("gap "));
    let told = told.into_iter().map(|entry| missing(entry)).collect::<Vec<_>>();
    assert_eq!(told.iter().map(|[unrecorded, _]| *unrecorded).collect::<Vec<_>>(), gaps);
    // Of those that may be lost some may be there.
    let lost = told.iter().map(|[_, lost]| lost).sum::<u64>();
    let known = recorded.len() as u64 + gaps.iter().sum::<u64>();
    assert!((known..=known + lost).contains(&count), "{count} {entries:?}");
}

#[test]
fn how_many_entries_may_be_lost_is_counted_until_the_gap_tells_of_them() {
    let it = Reopening::new("async", |config| config);
    assert_eq!(it.asks("SET a 1"), "OK");
    it.fail(Fault::WriteFails);
    wait_until(|| it.told.lock().unwrap().iter().filter(|kind| **kind == Kind::LogFailed).count() == 2);
    let lost = it.counters.lost_at_most.get();
    assert!(lost > 0, "what the log failed at was some entry");
    it.mend();
    assert_eq!(it.counters.lost_at_most.get(), 0);
    let entries = it.end();
    let gap = entries.iter().find(|entry| entry.starts_with("gap ")).unwrap();
    assert_eq!(missing(gap)[1], lost, "{entries:?}");
}

#[test]
fn a_proxy_that_ends_before_its_log_can_be_opened_again_does_so_at_once() {
    let mut it = Reopening::new("before-reply", |config| config);
    assert_eq!(it.asks("SET a 1"), "OK");
    it.fail(Fault::WriteFails);
    wait_until(|| it.told.lock().unwrap().iter().filter(|kind| **kind == Kind::LogFailed).count() == 2);
    it.logs.announce();
    it.world.end_proxy();
    let (_, closed) = it.logs.close(&it.counters);
    closed.unwrap_err();
    assert_eq!(it.counters.untold.get(), it.counters.unrecorded.get());
    // It is let go of.
    it.machine.heal();
    it.world.reopen();
    it.world.log().flush().unwrap();
}
