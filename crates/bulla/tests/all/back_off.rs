//! Waits between attempts at what fails: how long they get, and that nobody who closes a log sits them out.

use crate::workshop::{Operation, Watch, Workshop};
use bulla::environment::{Clock, Environment, Interrupt, SystemClock};
use bulla::{Durability, Entry, ErrorKind, FindingKind, Log, Options, Producer, Receipt};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A disk that is full for so many writes to segments, and then is not.
#[derive(Debug)]
struct Full {
    left: AtomicU32,
    refused: AtomicU32,
}

impl Full {
    fn never() -> Arc<Self> {
        Arc::new(Full { left: AtomicU32::new(0), refused: AtomicU32::new(0) })
    }

    fn fill_for(&self, writes: u32) {
        self.left.store(writes, Ordering::SeqCst);
    }

    fn refused(&self) -> u32 {
        self.refused.load(Ordering::SeqCst)
    }

    fn wait_until_refused(&self) {
        while self.refused() == 0 {
            std::thread::yield_now();
        }
    }
}

impl Watch for Full {
    fn before(&self, operation: Operation, path: &str) -> io::Result<()> {
        let segment = operation == Operation::Write && path.starts_with("segments/");
        let less = |left: u32| left.checked_sub(1);
        if segment && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

/// Time that passes at once where somebody waits between attempts, and is told.
#[derive(Default)]
struct Told(Mutex<Vec<Duration>>);

impl Clock for Told {
    fn now(&self) -> i64 {
        SystemClock.now()
    }

    fn wait(&self, time: Duration, _: &Interrupt) {
        self.0.lock().unwrap().push(time);
    }
}

fn open(workshop: &Workshop, full: &Arc<Full>, options: Options, environment: Environment) -> Log {
    let (store, keys) = workshop.watched(full.clone());
    Log::open_stores(store, keys, options, environment).unwrap()
}

fn append(producer: &mut Producer, number: u64) -> Receipt {
    producer.append(&Entry::new("write", &number.to_string())).unwrap();
    producer.flush().unwrap()
}

/// What the log holds, by an export of all that is signed, after it was opened again.
fn reopened(workshop: &Workshop) -> Vec<String> {
    let log = workshop.open(Options::default());
    log.close().unwrap();
    let report = workshop.verify().identity(workshop.identity()).run().unwrap();
    assert!(report.ok, "{:#?}", report.findings);
    assert!(report.findings.iter().all(|finding| finding.kind == FindingKind::Abandoned), "{report:#?}");
    let mut out = Vec::new();
    workshop.export().run(&mut out).unwrap();
    let of_line = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["location"].as_str().unwrap().to_owned()
    };
    String::from_utf8(out).unwrap().lines().map(of_line).collect()
}

/// Twelve attempts at a segment and twelve at another, whose waits would come to 80 seconds if they doubled for ever.
#[test]
fn no_wait_is_longer_than_a_second() {
    let workshop = Workshop::new();
    let (full, clock) = (Full::never(), Arc::new(Told::default()));
    let environment = Environment { clock: clock.clone(), ..Environment::default() };
    let log = open(&workshop, &full, Options::default().retries(11), environment);
    let mut producer = log.producer().unwrap();
    append(&mut producer, 0).durable().unwrap();
    full.fill_for(u32::MAX);
    assert_eq!(append(&mut producer, 1).durable().unwrap_err().kind(), ErrorKind::Unavailable);
    let waits = clock.0.lock().unwrap().clone();
    assert_eq!((waits.len(), full.refused()), (22, 24));
    assert_eq!(waits[..2], [20, 40].map(Duration::from_millis), "the first ones double");
    assert_eq!(waits.iter().max(), Some(&Duration::from_secs(1)));
    drop(producer);
    full.fill_for(0);
    log.close().unwrap_err();
    assert_eq!(reopened(&workshop), ["0"]);
}

/// On a disk that stays full: every attempt is made, whoever waits is told, and nothing that was acknowledged is lost.
#[test]
fn closing_ends_the_waits_between_attempts() {
    for durability in [Durability::Group, Durability::Interval(Duration::from_millis(1)), Durability::Os] {
        let (workshop, full) = (Workshop::new(), Full::never());
        // Waits of ten minutes, and twice that for a new segment.
        let options = Options::default().retries(600).durability(durability);
        let log = open(&workshop, &full, options, Environment::default());
        let mut producer = log.producer().unwrap();
        append(&mut producer, 0).durable().unwrap();
        full.fill_for(u32::MAX);
        let receipt = append(&mut producer, 1);
        full.wait_until_refused();
        let start = Instant::now();
        assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        assert_eq!(receipt.durable().unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(full.refused(), 2 * 601, "every attempt is made");
        drop(producer);
        full.fill_for(0);
        assert_eq!(reopened(&workshop), ["0"]);
    }
}

/// Announced first, and then given up, by another thread: what was acknowledged is there, and so is the count of it.
#[test]
fn nothing_is_tried_again_once_whoever_closes_gives_up() {
    let (workshop, full) = (Workshop::new(), Full::never());
    let options = Options::default().retries(1000).retry_delay(Duration::from_secs(1));
    let log = open(&workshop, &full, options, Environment::default());
    let mut producer = log.producer().unwrap();
    append(&mut producer, 0).durable().unwrap();
    full.fill_for(u32::MAX);
    let receipt = append(&mut producer, 1);
    full.wait_until_refused();
    log.closing().give_up();
    assert_eq!(receipt.durable().unwrap_err().kind(), ErrorKind::Unavailable);
    drop(producer);
    let (telemetry, closed) = log.close_with_telemetry();
    assert_eq!(closed.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!((telemetry.entries, telemetry.durable_prefix), (1, 1));
    assert!(full.refused() < 1000, "{full:?}");
    full.fill_for(0);
    assert_eq!(reopened(&workshop), ["0"]);
}

/// Before the first wait, once for each thing.
#[test]
fn what_is_tried_again_while_a_log_is_opened_is_told() {
    let (workshop, full) = (Workshop::new(), Full::never());
    full.fill_for(3);
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = {
        let told = told.clone();
        move |what: &str| told.lock().unwrap().push(what.to_owned())
    };
    let environment = Environment { trying_again: Some(Arc::new(tell)), ..Environment::default() };
    open(&workshop, &full, Options::default(), environment).close().unwrap();
    let told = told.lock().unwrap();
    assert!(told.len() == 1 && told[0].starts_with("writing: "), "{told:?}");
    assert_eq!(full.refused(), 3);
}

/// On a disk on which there is room again: what was staged is committed, and closing succeeds.
#[test]
fn what_can_be_written_while_the_log_is_closed_is_committed() {
    let (workshop, full) = (Workshop::new(), Full::never());
    let options = Options::default().retries(600).retry_delay(Duration::from_secs(1));
    let log = open(&workshop, &full, options, Environment::default());
    let mut producer = log.producer().unwrap();
    full.fill_for(300);
    let receipt = append(&mut producer, 0);
    full.wait_until_refused();
    producer.append(&Entry::new("write", "1")).unwrap();
    drop(producer);
    log.close().unwrap();
    receipt.checkpointed().unwrap();
    assert_eq!(full.refused(), 300);
    assert_eq!(reopened(&workshop), ["0", "1"]);
}

/// Announced by another thread, as a signal does, while somebody waits for a receipt.
#[test]
fn closing_is_announced_to_who_waits_for_a_receipt() {
    let (workshop, full) = (Workshop::new(), Full::never());
    let log = open(&workshop, &full, Options::default().retries(600), Environment::default());
    let mut producer = log.producer().unwrap();
    full.fill_for(u32::MAX);
    let receipt = append(&mut producer, 0);
    full.wait_until_refused();
    let start = Instant::now();
    let closing = log.closing();
    std::thread::spawn(move || closing.announce());
    assert_eq!(receipt.durable().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    log.close().unwrap_err();
}
