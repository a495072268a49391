//! A panic inside the log: whoever appends, waits or closes is told, nobody hangs, and the log holds what was
//! acknowledged.

use crate::workshop::{Operation, Watch, Workshop};
use bulla::environment::{AesGcm, Cipher, Environment, KeyWrap, Random, SystemRandom};
use bulla::keys::recipients::Age;
use bulla::{
    Durability, Entry, Error, ErrorKind, FindingKind, Log, Options, Producer, Receipt, Result, Step,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const MODES: [Durability; 3] =
    [Durability::Group, Durability::Interval(Duration::from_millis(1)), Durability::Os];

/// Panics in whatever comes to a place, once or always.
#[derive(Debug)]
struct Mine {
    place: &'static str,
    always: bool,
    armed: AtomicBool,
}

impl Mine {
    fn new(place: &'static str, always: bool) -> Arc<Self> {
        Arc::new(Mine { place, always, armed: AtomicBool::new(false) })
    }

    fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    fn pass(&self, place: &str) {
        if place.starts_with(self.place) && self.armed.fetch_and(self.always, Ordering::SeqCst) {
            panic!("{place}, as the test wants it");
        }
    }

    fn environment(self: &Arc<Self>) -> Environment {
        let (random, cipher, key_wrap) = (self.clone(), self.clone(), self.clone());
        Environment { random, cipher, key_wrap, ..Environment::default() }
    }

    fn open(self: &Arc<Self>, workshop: &Workshop, options: Options) -> Log {
        let (store, keys) = workshop.watched(self.clone());
        Log::open_stores(store, keys, options, self.environment()).unwrap()
    }
}

impl Watch for Mine {
    fn before(&self, operation: Operation, path: &str) -> std::io::Result<()> {
        self.pass(&format!("{operation:?} {path}"));
        Ok(())
    }
}

impl Random for Mine {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        self.pass("Random");
        SystemRandom.fill(bytes)
    }
}

impl KeyWrap for Mine {
    fn wrap(&self, recipients: &[String], key: &[u8; 32], limit: Duration) -> Result<Vec<u8>> {
        self.pass("Wrap");
        Age::default().wrap(recipients, key, limit)
    }
}

impl Cipher for Mine {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        self.pass("Encrypt");
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

/// Does `work`; fails where it does not come to an end.
fn without_hanging(what: &str, work: impl FnOnce() + Send + 'static) {
    let (done, end) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    if end.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("{what}: somebody still waits");
    }
    thread.join().unwrap_or_else(|panic| {
        println!("{what}");
        resume_unwind(panic)
    });
}

/// A few entries fill a segment.
fn small(durability: Durability) -> Options {
    let options = Options::default().memory(64 << 20).compression(0).writers(2).durability(durability);
    options.segment_size(64 << 10).checkpoint_interval(Duration::from_millis(1))
}

fn append(producer: &mut Producer, number: u64) -> Result<Receipt> {
    stage(producer, number)?;
    producer.flush()
}

fn stage(producer: &mut Producer, number: u64) -> Result<()> {
    let payload = [7; 30_000];
    producer.append(&Entry::new("read", &number.to_string()).payload(&payload)).map(|_| ())
}

fn is_told(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("panicked"), "{error}");
}

/// The log opens, goes on, verifies, and holds entries in order, so many at least and at most.
fn is_sound(workshop: &Workshop, least: u64, most: u64) {
    let log = workshop.open(Options::default());
    let mut producer = log.producer().unwrap();
    append(&mut producer, most).unwrap().checkpointed().unwrap();
    drop(producer);
    log.close().unwrap();
    let report = workshop.verify().identity(workshop.identity()).run().unwrap();
    assert!(report.ok && report.anchored && report.pending == 0, "{:#?}", report.findings);
    let allowed = [FindingKind::Abandoned, FindingKind::UnknownFile];
    let strange = report.findings.iter().find(|finding| !allowed.contains(&finding.kind));
    assert_eq!(strange, None, "a number without an outcome");

    let mut out = Vec::new();
    workshop.export().run(&mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let locations = lines.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["location"].as_str().unwrap().parse::<u64>().unwrap()
    });
    let locations = locations.collect::<Vec<_>>();
    let kept = locations.len() as u64 - 1;
    assert!((least..=most).contains(&kept), "{kept} of {least} acknowledged and {most} appended");
    assert!(locations.into_iter().eq((0..kept).chain([most])));
}

/// The log fails at `mine`, everybody is told, and what was acknowledged is there when it is opened again.
fn fails(mine: &Arc<Mine>, durability: Durability) {
    let workshop = Workshop::new();
    let log = mine.open(&workshop, small(durability));
    let mut producer = log.producer().unwrap();
    let early = append(&mut producer, 0).unwrap();
    early.checkpointed().unwrap();
    mine.arm();
    let (mut appended, mut acknowledged) = (1, 1);
    // Not at once: the others go on until they are told.
    let refusal = loop {
        if let Err(refusal) = stage(&mut producer, appended) {
            break refusal;
        }
        // It is taken, and may be kept though nobody is told so any more.
        appended += 1;
        assert!(appended < 1000, "nothing comes there");
        let receipt = match producer.flush() {
            Ok(receipt) => receipt,
            Err(refusal) => break refusal,
        };
        match receipt.durable().and_then(|()| {
            acknowledged = appended;
            receipt.checkpointed()
        }) {
            Ok(()) => {}
            Err(error) => is_told(&error),
        }
    };
    is_told(&refusal);
    is_told(&producer.flush().unwrap_err());
    is_told(&producer.try_append(&Entry::new("read", "x")).unwrap_err());
    match log.flush() {
        Ok(()) => acknowledged = appended,
        Err(error) => is_told(&error),
    }
    is_told(&log.close().unwrap_err());
    is_told(&producer.append(&Entry::new("read", "x")).unwrap_err());
    early.checkpointed().unwrap();
    drop(producer);
    is_sound(&workshop, acknowledged, appended);
}

fn fails_at(places: &[&'static str]) {
    for &place in places {
        for (durability, always) in MODES.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
            let what = format!("{place}, {durability:?}, always: {always}");
            without_hanging(&what, move || fails(&Mine::new(place, always), durability));
        }
    }
}

#[test]
fn a_panic_in_a_writer_fails_the_log() {
    // When the next segment's epoch is sealed: its number is given out already.
    fails_at(&["Wrap"]);
}

#[test]
fn a_panic_in_the_committer_fails_the_log() {
    // In mode `interval` it is the checkpoint thread that syncs.
    fails_at(&["Create segments/", "Write segments/", "Sync segments/", "Random"]);
}

#[test]
fn a_panic_in_the_checkpoint_thread_fails_the_log() {
    fails_at(&["Create tile/", "Sync tile/", "Rename seal.state", "Create checkpoint", "Rename checkpoint"]);
}

/// Sealing alone is guarded closer: the log goes on, and says what it lost.
#[test]
fn a_panic_while_a_block_is_sealed_costs_that_block_alone() {
    without_hanging("sealing", || {
        let workshop = Workshop::new();
        let mine = Mine::new("Encrypt", false);
        let log = mine.open(&workshop, small(Durability::Group));
        let mut producer = log.producer().unwrap();
        append(&mut producer, 0).unwrap().durable().unwrap();
        mine.arm();
        let lost = append(&mut producer, 1).unwrap();
        assert_eq!(lost.durable().unwrap_err().kind(), ErrorKind::Unavailable);
        append(&mut producer, 2).unwrap().checkpointed().unwrap();
        assert_eq!(lost.checkpointed().unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(log.flush().unwrap_err().kind(), ErrorKind::Unavailable, "it answers for that once");
        log.flush().unwrap();
        assert_eq!(log.acknowledged(), 2);
        drop(producer);
        log.close().unwrap();

        let report = workshop.verify().identity(workshop.identity()).run().unwrap();
        let [gap] = &report.findings[..] else { panic!("{:#?}", report.findings) };
        assert_eq!((report.ok, gap.kind, gap.entries), (true, FindingKind::Gap, Some((1, 1))));
        let mut out = Vec::new();
        assert_eq!(workshop.export().run(&mut out).unwrap().entries, 2);
    });
}

/// Frames that a panic left half-way are not durable, whoever syncs next.
#[test]
fn nothing_signs_what_a_panic_left_unwritten() {
    for (durability, place) in
        MODES.into_iter().flat_map(|mode| [(mode, "Write segments/"), (mode, "Sync segments/")])
    {
        let workshop = Workshop::new();
        let mine = Mine::new(place, false);
        let (store, keys) = workshop.watched(mine.clone());
        let log = Log::open_stepped(store, keys, small(durability), mine.environment()).unwrap();
        let mut producer = log.producer().unwrap();
        let early = append(&mut producer, 0).unwrap();
        log.flush().unwrap();
        early.checkpointed().unwrap();
        let late = append(&mut producer, 1).unwrap();
        log.step(Step::Seal).unwrap();
        mine.arm();
        let panics = |step: &Step| catch_unwind(AssertUnwindSafe(|| log.step(*step))).is_err();
        assert!([Step::Commit, Step::Sync].iter().any(panics), "{durability:?}, {place}");
        // As the checkpoint thread does, which nobody has stopped yet.
        assert!(log.step(Step::Sync).is_err(), "{durability:?}, {place}");
        assert!(late.durable_within(Duration::ZERO).is_err() || durability == Durability::Os);
        assert!(late.checkpointed().is_err());
        log.close().unwrap_err();
        drop(producer);
        is_sound(&workshop, 1, 2);
    }
}

#[test]
fn a_panic_while_closing_is_an_error() {
    for close in [|log: Log| is_told(&log.close().unwrap_err()), drop] {
        without_hanging("closing", move || {
            let workshop = Workshop::new();
            let mine = Mine::new("Create checkpoint", true);
            let hour = Duration::from_secs(3600);
            let log = mine.open(&workshop, small(Durability::Group).checkpoint_interval(hour));
            let mut producer = log.producer().unwrap();
            let receipt = append(&mut producer, 0).unwrap();
            receipt.durable().unwrap();
            mine.arm();
            close(log);
            is_told(&receipt.checkpointed().unwrap_err());
            drop(producer);
            is_sound(&workshop, 1, 1);
        });
    }
}
