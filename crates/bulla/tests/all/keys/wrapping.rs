//! What a writer does when a key cannot be wrapped: at opening, at rotation, for a while, for good.

use bulla::environment::{Clock, Environment, Interrupt, KeyWrap, SystemClock};
use bulla::keys::recipients::Age;
use bulla::{Entry, Error, ErrorKind, Init, Log, Options, Query, Reader, Verify};
use bulla_testkit::fault::Faults;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Wraps, but for those times at which it fails.
struct Flaky {
    calls: AtomicU32,
    fails: fn(u32) -> Option<io::ErrorKind>,
}

impl KeyWrap for Flaky {
    fn wrap(&self, recipients: &[String], key: &[u8; 32], limit: Duration) -> bulla::Result<Vec<u8>> {
        assert_eq!(limit, Duration::from_secs(7), "the setting");
        match (self.fails)(self.calls.fetch_add(1, Ordering::Relaxed)) {
            Some(kind) => Err(Error::io("age-plugin-x failed", kind.into())),
            None => Age::default().wrap(recipients, key, limit),
        }
    }
}

/// Time that passes at once, and is told.
struct Waits(Mutex<Vec<Duration>>);

impl Clock for Waits {
    fn now(&self) -> i64 {
        SystemClock.now()
    }

    fn wait(&self, duration: Duration, _: &Interrupt) {
        self.0.lock().unwrap().push(duration);
    }
}

struct World {
    machine: Faults,
    flaky: Arc<Flaky>,
    waits: Arc<Waits>,
}

impl World {
    fn new(fails: fn(u32) -> Option<io::ErrorKind>) -> Self {
        let machine = Faults::new();
        let (log, keys) = (machine.store("audit"), machine.store("audit.keys"));
        Init::default().erasure(false).create_in(&log, &keys, &Environment::default()).unwrap();
        let flaky = Arc::new(Flaky { calls: AtomicU32::new(0), fails });
        World { machine, flaky, waits: Arc::new(Waits(Mutex::default())) }
    }

    fn open(&self) -> bulla::Result<Log> {
        let environment =
            Environment { key_wrap: self.flaky.clone(), clock: self.waits.clone(), ..Environment::default() };
        let (log, keys) = (self.machine.store("audit"), self.machine.store("audit.keys"));
        let options = Options::default()
            .segment_size(64 << 10)
            .retry_delay(Duration::from_millis(10))
            .plugin_timeout(Duration::from_secs(7));
        Log::open_stores(Arc::new(log), Arc::new(keys), options, environment)
    }

    /// Appends entries, one acknowledged after the other, up to `count` or an error; how many were.
    fn append(&self, log: &Log, count: i64) -> (i64, Option<Error>) {
        let payload = incompressible();
        let mut producer = log.producer().unwrap();
        for number in 0..count {
            let entry = Entry::new("write", "x").payload(&payload).time(number);
            let durable = producer.append(&entry).and_then(|()| producer.flush()).and_then(|it| it.durable());
            if let Err(error) = durable {
                return (number, Some(error));
            }
        }
        (count, None)
    }

    /// The times of all entries, after a verification of everything.
    fn entries(&self) -> Vec<i64> {
        let store = || Arc::new(self.machine.store("audit"));
        let report = Verify::open_store(store()).unwrap().run().unwrap();
        assert!(report.ok, "{:?}", report.findings);
        let identity = String::from_utf8(self.machine.read("audit.keys/identity.age").unwrap()).unwrap();
        let identity = bulla::keys::recipients::IdentityFile::parse(&identity).unwrap();
        let mut times = Vec::new();
        let reader = Reader::open_store(store()).unwrap().identity(Arc::new(identity));
        reader
            .for_each(&Query::default(), |_, entry| {
                times.push(entry.time.unwrap());
                Ok(())
            })
            .unwrap();
        times
    }
}

fn incompressible() -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..2048).flat_map(|_| next()).collect()
}

const TRANSIENT: Option<io::ErrorKind> = Some(io::ErrorKind::ConnectionRefused);

#[test]
fn a_failure_that_passes_costs_a_wait_and_no_entry() {
    // The first is the opening's. Three times it fails at the second rotation.
    let world = World::new(|call| if (2..5).contains(&call) { TRANSIENT } else { None });
    let log = world.open().unwrap();
    let (acknowledged, error) = world.append(&log, 30);
    assert!(error.is_none(), "{error:?}");
    log.close().unwrap();
    assert!(world.entries().into_iter().eq(0..acknowledged));
    let waits = world.waits.0.lock().unwrap().clone();
    assert_eq!(waits, [10, 20, 40].map(Duration::from_millis), "it doubles");
    assert!(world.flaky.calls.load(Ordering::Relaxed) > 5, "epochs came after it");
}

#[test]
fn one_that_stays_stops_the_log_and_loses_nothing_that_was_acknowledged() {
    let world = World::new(|call| if (2..).contains(&call) { TRANSIENT } else { None });
    let log = world.open().unwrap();
    let (acknowledged, error) = world.append(&log, 30);
    let error = error.unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("age-plugin-x failed"), "{error}");
    assert_eq!(world.flaky.calls.load(Ordering::Relaxed), 2 + 4, "tried again as often as a write is");
    assert!(acknowledged > 0);
    assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Unavailable);

    let mended = World { flaky: Arc::new(Flaky { calls: AtomicU32::new(0), fails: |_| None }), ..world };
    mended.open().unwrap().close().unwrap();
    // The one that got an error may be there or not.
    let entries = mended.entries();
    let count = entries.len() as i64;
    assert!((acknowledged..=acknowledged + 1).contains(&count), "{count} of {acknowledged}");
    assert!(entries.into_iter().eq(0..count));
}

/// A plugin that hung had `plugin_timeout`; the entries behind it have waited long enough.
#[test]
fn one_that_hung_is_not_asked_again() {
    let world = World::new(|call| (call == 2).then_some(io::ErrorKind::TimedOut));
    let log = world.open().unwrap();
    let (_, error) = world.append(&log, 30);
    assert_eq!(error.unwrap().kind(), ErrorKind::Unavailable);
    assert_eq!(world.flaky.calls.load(Ordering::Relaxed), 3);
    assert!(world.waits.0.lock().unwrap().is_empty());
}

#[test]
fn at_opening_it_is_an_error_of_opening() {
    let world = World::new(|call| (call < 4).then_some(io::ErrorKind::NotFound));
    let error = world.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("age-plugin-x failed"), "{error}");
    // Nothing is left of it, and nothing in its way.
    let log = world.open().unwrap();
    assert!(world.append(&log, 3).1.is_none());
    log.close().unwrap();
    assert!(world.entries().into_iter().eq(0..3));
}
