//! What a log tells of itself is what was done.

use crate::workshop::Workshop;
use bulla::environment::{AesGcm, Cipher, Clock, Environment, Interrupt};
use bulla::{Durability, Entry, Error, ErrorKind, Init, Log, Options, Result, Step};
use bulla_proof::commitment::FrameKind;
use bulla_proof::entry::MAX_STRING;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A few entries fill a segment.
fn small() -> Options {
    Options::default().memory(64 << 20).compression(1).writers(2).segment_size(64 << 10)
}

#[test]
fn what_was_appended_is_counted() {
    let workshop = Workshop::with_erasure();
    let log = workshop.open(small());
    let begun = log.telemetry();
    assert_eq!((begun.entries, begun.blocks, begun.row_bytes), (0, 0, 0));
    let mut producer = log.producer().unwrap();
    let long = "x".repeat(MAX_STRING + 1);
    let mut bytes = 0;
    for number in 0..5_000_u64 {
        // Text that neither a dictionary nor a compressor makes much of.
        let payload =
            format!("{:x}", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let subject = format!("user_{}", number % 7);
        let entry = Entry::new("read", "here").subject(&subject).purpose(&payload).payload(&payload);
        bytes += entry.measure().unwrap() as u64 + 4;
        producer.append(&entry).unwrap();
        if number % 1000 == 0 {
            producer.append(&Entry::new("read", "here").purpose(&long)).unwrap_err();
            producer.flush().unwrap().durable().unwrap();
        }
    }
    let batch = [Entry::new("read", "here"), Entry::new("read", "here").purpose(&long)];
    producer.append_batch(&batch).unwrap_err();
    producer.flush().unwrap().checkpointed().unwrap();
    let told = log.telemetry();
    drop(producer);
    log.close().unwrap();

    let blocks = workshop.frames().iter().filter(|frame| frame.kind == FrameKind::Block).count() as u64;
    assert_eq!((told.entries, told.row_bytes, told.blocks), (5_000, bytes, blocks));
    assert_eq!((told.refused, told.lost, told.timeouts, told.abandoned), (6, 0, 0, 0));
    assert!((blocks..=7 * blocks).contains(&told.groups), "{told:?}");
    assert!(
        told.segments > 1
            && told.written_bytes
                < bulla::info_of(std::sync::Arc::new(workshop.store.clone())).unwrap().bytes,
        "{told:?}"
    );
    assert!(told.syncs.count > blocks / 2 && told.syncs.longest <= told.syncs.time, "{told:?}");
    assert!(told.checkpoints.count > 0 && told.dictionary_hits < told.dictionary_lookups, "{told:?}");
    let stages = told.stages;
    for time in [stages.group, stages.encode, stages.compress, stages.hash, stages.encrypt, stages.commit] {
        assert!(time > Duration::ZERO, "{stages:?}");
    }
    let queues = told.queues;
    assert_eq!((queues.staged_bytes, queues.in_flight_bytes, queues.sealed_frames), (0, 0, 0), "{told:?}");
    assert_eq!(queues.buffers, 1, "the producer's own");
}

#[test]
fn what_waited_is_counted() {
    let workshop = Workshop::new();
    let log = workshop.open(small().append_timeout(Duration::from_millis(50)));
    let mut producer = log.producer().unwrap();
    workshop.gate.shut();
    let payload = [7; 10_000];
    let entry = Entry::new("fill", "x").payload(&payload);
    // Memory that was full for a moment may have been taken from the producer since: until it stays full.
    let error = loop {
        while producer.append(&entry).is_ok() {}
        if let Err(error) = producer.try_append(&entry) {
            break error;
        }
    };
    let told = log.telemetry();
    // Whatever is wrong, the log can be closed.
    workshop.gate.open();
    assert_eq!((error.kind(), told.refused), (ErrorKind::Timeout, 0));
    assert!(told.timeouts >= 2, "{told:?}");
    assert!(told.backpressure.count >= 1, "{told:?}");
    assert!(told.backpressure.longest >= Duration::from_millis(50), "{told:?}");
    assert!(told.queues.staged_bytes > 0 && told.queues.in_flight_bytes > 0, "{told:?}");
    drop(producer);
    log.close().unwrap();
}

#[test]
fn a_segment_that_is_given_up_is_counted() {
    let machine = Faults::new();
    let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
    Init::default().erasure(false).create_in(&*log, &*keys, &Default::default()).unwrap();
    let log =
        Log::open_stepped(log, keys, small().durability(Durability::Group), Default::default()).unwrap();
    let before = log.telemetry();
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", "here")).unwrap();
    log.step(Step::Linger).unwrap();
    log.step(Step::Seal).unwrap();
    // The write, then the sync.
    machine.fail_at(machine.operations() + 1, Fault::SyncFails);
    log.step(Step::Commit).unwrap();
    let after = log.telemetry();
    assert_eq!((after.abandoned - before.abandoned, after.segments - before.segments), (1, 1));
    assert_eq!(after.entries, 1);
}

/// A clock that says what it is told, in seconds.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> i64 {
        0
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}

    fn steady(&self) -> u64 {
        self.0.load(SeqCst) * 1_000_000_000
    }
}

/// AES-GCM that refuses to seal while it is told to: the log loses the block.
#[derive(Default)]
struct Refusing(AtomicBool);

impl Cipher for Refusing {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        match self.0.load(SeqCst) {
            true => Err(Error::unavailable("the cipher refuses, as the test wants it")),
            false => AesGcm.seal(key, frame, additional, text),
        }
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

/// A log without threads, with its clock and cipher.
struct Stepped {
    log: Log,
    clock: Arc<Hand>,
    cipher: Arc<Refusing>,
}

impl Stepped {
    fn new(durability: Durability) -> Stepped {
        let machine = Faults::new();
        let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
        let (clock, cipher) = (Arc::<Hand>::default(), Arc::<Refusing>::default());
        let environment =
            Environment { clock: clock.clone(), cipher: cipher.clone(), ..Environment::default() };
        Init::default().erasure(false).create_in(&*log, &*keys, &environment).unwrap();
        let log = Log::open_stepped(log, keys, small().durability(durability), environment).unwrap();
        Stepped { log, clock, cipher }
    }

    /// Takes steps at a time.
    fn at(&self, second: u64, steps: &[Step]) {
        self.clock.0.store(second, SeqCst);
        for step in steps {
            self.log.step(*step).unwrap();
        }
    }

    /// How many entries are not durable at a time, and how many seconds the oldest of them is old, at most.
    fn behind(&self, second: u64) -> (u64, u64) {
        self.at(second, &[]);
        let queues = self.log.telemetry().queues;
        assert_eq!(queues.lag.subsec_nanos(), 0);
        (queues.pending_entries, queues.lag.as_secs())
    }
}

fn here<'a>() -> Entry<'a> {
    Entry::new("read", "here")
}

#[test]
fn how_far_behind_the_log_is_is_told_from_the_append_to_the_sync() {
    let it = Stepped::new(Durability::Interval(Duration::from_secs(1)));
    assert_eq!(it.behind(9), (0, 0));
    it.at(10, &[]);
    let mut producer = it.log.producer().unwrap();
    producer.append(&here()).unwrap();
    it.at(12, &[]);
    producer.append(&here()).unwrap();
    assert_eq!(it.behind(13), (2, 3), "in the producer's buffer");
    it.at(14, &[Step::Linger]);
    assert_eq!(it.behind(15), (2, 5), "in the queue");
    it.at(16, &[Step::Seal]);
    producer.append(&here()).unwrap();
    assert_eq!(it.behind(17), (3, 7), "sealed, and one more in the buffer");
    it.at(18, &[Step::Commit]);
    assert_eq!(it.behind(19), (3, 9), "written");
    it.at(20, &[Step::Sync]);
    // The third came at 16. That it did not come before 14 is what is known.
    assert_eq!(it.behind(21), (1, 7), "the others are durable");
    it.at(22, &[Step::Linger, Step::Seal, Step::Commit]);
    assert_eq!(it.behind(23), (1, 9));
    it.at(24, &[Step::Sync]);
    assert_eq!(it.behind(25), (0, 0));
    assert_eq!(it.log.acknowledged(), 3);
}

#[test]
fn the_oldest_entry_counts_whichever_producer_appended_it_and_however_large_it_is() {
    let it = Stepped::new(Durability::Group);
    let all = [Step::Linger, Step::Seal, Step::Commit];
    let (mut one, mut other) = (it.log.producer().unwrap(), it.log.producer().unwrap());
    it.at(1, &[]);
    one.append(&here()).unwrap();
    it.at(2, &[]);
    other.append(&here()).unwrap();
    // What one has in its buffer is older than what the other gave.
    let _receipt = other.flush().unwrap();
    it.at(3, &[Step::Seal, Step::Commit]);
    assert_eq!(it.behind(4), (1, 3));
    it.at(5, &all);
    assert_eq!(it.behind(6), (0, 0));
    // It does not fit a buffer.
    let large = vec![7; 1 << 20];
    one.append(&here().payload(&large)).unwrap();
    assert_eq!(it.behind(8), (1, 2));
    it.at(9, &all);
    assert_eq!(it.behind(10), (0, 0));
    assert_eq!(it.log.acknowledged(), 3);
}

#[test]
fn what_a_gap_tells_of_is_awaited_no_longer() {
    let it = Stepped::new(Durability::Group);
    let mut producer = it.log.producer().unwrap();
    producer.append(&here()).unwrap();
    it.cipher.0.store(true, SeqCst);
    it.at(1, &[Step::Linger, Step::Seal]);
    assert_eq!(it.behind(2), (1, 2));
    it.at(3, &[Step::Commit]);
    assert_eq!((it.behind(4), it.log.lost()), ((0, 0), 1));
}

#[test]
fn what_nothing_takes_stays_behind_and_grows_old() {
    let machine = Faults::new();
    let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
    let clock = Arc::<Hand>::default();
    let environment = Environment { clock: clock.clone(), ..Environment::default() };
    Init::default().erasure(false).create_in(&*log, &*keys, &environment).unwrap();
    let log = Log::open_stepped(log, keys, small().retries(0), environment).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&here()).unwrap();
    log.step(Step::Linger).unwrap();
    log.step(Step::Seal).unwrap();
    machine.fail_below("audit", Fault::WriteFails);
    log.step(Step::Commit).unwrap_err();
    clock.0.store(60, SeqCst);
    let queues = log.telemetry().queues;
    assert_eq!((queues.pending_entries, queues.lag), (1, Duration::from_secs(60)));
}
