//! A vault that cannot be written: as with a medium that cannot be, rows wait, appends wait and are refused, and nothing that
//! was accepted is dropped for it.

use crate::register::ByName;
use crate::workshop::Workshop;
use bulla::environment::{Clock, Environment, Interrupt, SystemClock};
use bulla::keys::group::Subjects;
use bulla::vault::Subject;
use bulla::{Durability, Entry, Error, ErrorKind, FindingKind, Log, Options, Producer, Receipt, Result};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const MODES: [Durability; 3] =
    [Durability::Group, Durability::Interval(Duration::from_millis(1)), Durability::Os];

/// Data subjects whose vault's disk is full when the test wants it.
struct Full {
    /// How often it is asked before there is room again.
    left: AtomicU32,
    refused: AtomicU32,
    kind: ErrorKind,
}

impl Full {
    fn new(kind: ErrorKind) -> Arc<Self> {
        Arc::new(Full { left: AtomicU32::new(0), refused: AtomicU32::new(0), kind })
    }

    fn fill_for(&self, times: u32) {
        self.left.store(times, Ordering::SeqCst);
    }

    fn refused(&self) -> u32 {
        self.refused.load(Ordering::SeqCst)
    }
}

impl Subjects for Full {
    fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        let less = |left: u32| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err() {
            return ByName.resolve(subjects);
        }
        self.refused.fetch_add(1, Ordering::SeqCst);
        match self.kind {
            ErrorKind::Unavailable => Err(Error::io("the vault", io::ErrorKind::StorageFull.into())),
            kind => Err(Error::new(kind, "the vault: as the test wants it")),
        }
    }

    fn next_number(&self) -> Result<u64> {
        ByName.next_number()
    }

    fn require_at_least(&self, next: u64) -> Result<()> {
        ByName.require_at_least(next)
    }
}

/// Time that stands still in waits between attempts, until the test lets it go on, from when on these take none.
#[derive(Default)]
struct Standing {
    state: Mutex<(bool, u32)>,
    changed: Condvar,
}

impl Standing {
    fn wait_until_reached(&self) {
        let state = self.state.lock().unwrap();
        let minute = Duration::from_secs(60);
        let (state, _) =
            self.changed.wait_timeout_while(state, minute, |(_, waiting)| *waiting == 0).unwrap();
        assert!(state.1 > 0, "nobody waits before another attempt");
    }

    fn go_on(&self) {
        self.state.lock().unwrap().0 = true;
        self.changed.notify_all();
    }
}

impl Clock for Standing {
    fn now(&self) -> i64 {
        SystemClock.now()
    }

    fn wait(&self, _: Duration, _: &Interrupt) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(goes_on, _)| !*goes_on).unwrap());
    }
}

fn open(workshop: &Workshop, full: &Arc<Full>, clock: Arc<dyn Clock>, options: Options) -> Log {
    let (store, keys) = workshop.watched(workshop.gate.clone());
    let environment = Environment { clock, subjects: Some(full.clone()), ..Environment::default() };
    Log::open_stores(store, keys, options, environment).unwrap()
}

fn append(producer: &mut Producer, number: u64) -> Receipt {
    let (location, subject) = (number.to_string(), format!("user_{}", number % 7));
    producer.append(&Entry::new("write", &location).subject(&subject)).unwrap();
    producer.flush().unwrap()
}

/// The numbers of the entries that the log holds once it is opened again. It has no gap.
fn reopened(workshop: &Workshop) -> Vec<u64> {
    workshop.open(Options::default()).close().unwrap();
    let report = workshop.verify().identity(workshop.identity()).group_keys(Arc::new(ByName)).run().unwrap();
    assert!(report.ok, "{:#?}", report.findings);
    let gap = report.findings.iter().find(|finding| finding.kind == FindingKind::Gap);
    assert_eq!(gap, None, "entries that were accepted were dropped");
    let mut out = Vec::new();
    workshop.export().group_keys(Arc::new(ByName)).run(&mut out).unwrap();
    let of_line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["location"].as_str().unwrap().parse().unwrap()
    };
    String::from_utf8(out).unwrap().lines().map(of_line).collect()
}

#[test]
fn once_it_can_be_written_again_everything_is_committed_in_order() {
    for mode in MODES {
        let workshop = Workshop::with_erasure();
        let (full, clock) = (Full::new(ErrorKind::Unavailable), Arc::new(Standing::default()));
        let log = open(&workshop, &full, clock.clone(), Options::default().durability(mode).writers(2));
        let mut producer = log.producer().unwrap();
        append(&mut producer, 0).durable().unwrap();
        full.fill_for(3);
        let mut receipts = vec![append(&mut producer, 1)];
        clock.wait_until_reached();
        for number in 2..50 {
            receipts.push(append(&mut producer, number));
        }
        assert!(!receipts[0].durable_within(Duration::ZERO).unwrap(), "{mode:?}");
        clock.go_on();
        receipts.iter().for_each(|receipt| receipt.durable().unwrap());
        log.flush().unwrap();
        assert_eq!((log.acknowledged(), log.durable_prefix(), log.lost()), (50, 50, 0), "{mode:?}");
        assert_eq!(full.refused(), 3);
        drop(producer);
        log.close().unwrap();
        assert!(reopened(&workshop).into_iter().eq(0..50), "{mode:?}");
    }
}

#[test]
fn appends_wait_meanwhile_and_are_refused_in_time() {
    let workshop = Workshop::with_erasure();
    let (full, clock) = (Full::new(ErrorKind::Unavailable), Arc::new(Standing::default()));
    let options = Options::default().memory(64 << 20).compression(0).writers(2);
    let options = options.append_timeout(Duration::from_millis(200));
    let log = open(&workshop, &full, clock.clone(), options);
    let mut producer = log.producer().unwrap();
    // Two writers ask: each is refused once.
    full.fill_for(2);
    let payload = [7; 10_000];
    let mut count = 0_u64;
    let refusal = loop {
        let location = count.to_string();
        match producer.append(&Entry::new("write", &location).subject("user").payload(&payload)) {
            Ok(()) => count += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal.kind(), ErrorKind::Timeout, "{refusal}");
    assert!(log.telemetry().backpressure.longest >= Duration::from_millis(200));
    assert_eq!((log.acknowledged(), log.lost()), (0, 0));
    clock.go_on();
    producer.flush().unwrap().checkpointed().unwrap();
    assert_eq!((log.acknowledged(), log.durable_prefix(), log.lost()), (count, count, 0));
    drop(producer);
    log.close().unwrap();
    assert!(reopened(&workshop).into_iter().eq(0..count));
}

/// What the keys were had for before is committed; the log takes no more, and says why.
#[test]
fn where_attempts_end_the_log_fails_as_for_its_own_disk() {
    for (mode, kind) in MODES.into_iter().flat_map(|mode| {
        [ErrorKind::Unavailable, ErrorKind::Tampered, ErrorKind::Refused].map(|kind| (mode, kind))
    }) {
        let workshop = Workshop::with_erasure();
        let (full, clock) = (Full::new(kind), Arc::new(Standing::default()));
        clock.go_on();
        let log = open(&workshop, &full, clock, Options::default().durability(mode).writers(1));
        let mut producer = log.producer().unwrap();
        append(&mut producer, 0).durable().unwrap();
        log.flush().unwrap();
        full.fill_for(u32::MAX);
        let receipt = append(&mut producer, 1);
        let error = receipt.durable().unwrap_err();
        assert_eq!(error.kind(), kind, "{mode:?}: {error}");
        assert!(error.to_string().contains("want of its data subjects' keys: the vault: "), "{error}");
        // Only what may pass is tried again.
        assert_eq!(full.refused(), if kind == ErrorKind::Unavailable { 4 } else { 1 });
        // Whoever waited may be told before whoever appends.
        let refusal = loop {
            match producer.append(&Entry::new("write", "2")) {
                Ok(()) => std::thread::yield_now(),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!((refusal.kind(), refusal.to_string()), (kind, error.to_string()));
        assert_eq!((log.acknowledged(), log.durable_prefix(), log.lost()), (1, 1, 0), "{mode:?}");
        drop(producer);
        let (told, closed) = log.close_with_telemetry();
        assert_eq!(closed.unwrap_err().kind(), kind);
        assert_eq!((told.entries, told.durable_prefix, told.lost), (1, 1, 0), "{mode:?}");
        assert_eq!(reopened(&workshop), [0], "{mode:?}");
    }
}

#[test]
fn closing_ends_the_waits_and_makes_every_attempt() {
    let workshop = Workshop::with_erasure();
    let full = Full::new(ErrorKind::Unavailable);
    // Waits of ten minutes.
    let log = open(&workshop, &full, Arc::new(SystemClock), Options::default().retries(600).writers(1));
    let mut producer = log.producer().unwrap();
    full.fill_for(u32::MAX);
    let receipt = append(&mut producer, 0);
    while full.refused() == 0 {
        std::thread::yield_now();
    }
    let start = Instant::now();
    drop(producer);
    assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(receipt.durable().unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(full.refused(), 601);
    assert!(reopened(&workshop).is_empty());
}
