//! What is counted as durable a sync has covered, and what is said of the first entries holds of each of them.

use crate::workshop::Workshop;
use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::{Durability, Entry, Error, ErrorKind, Init, Log, Options, Producer, Receipt, Result, Step};
use bulla_testkit::fault::{Fault, Faults};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn append(producer: &mut Producer, number: u64) -> Receipt {
    producer.append(&Entry::new("read", &number.to_string())).unwrap();
    producer.flush().unwrap()
}

/// Acknowledged, from the first on, and lost; as the log and its telemetry have it.
fn counts(log: &Log) -> (u64, u64, u64) {
    let told = (log.acknowledged(), log.durable_prefix(), log.lost());
    let telemetry = log.telemetry();
    assert_eq!(told, (telemetry.entries, telemetry.durable_prefix, telemetry.lost));
    told
}

/// A log on a simulated machine, without threads.
fn stepped(machine: &Faults, durability: Durability) -> Log {
    let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
    Init::default().erasure(false).create_in(&*log, &*keys, &Environment::default()).unwrap();
    Log::open_stepped(log, keys, Options::default().durability(durability), Environment::default()).unwrap()
}

/// Seals and commits what was flushed.
fn commit(log: &Log) -> Result<bool> {
    while log.step(Step::Seal).unwrap() {}
    log.step(Step::Commit)
}

/// AES-GCM that refuses a block when it is told to.
#[derive(Default)]
struct Refusing {
    armed: AtomicBool,
}

impl Cipher for Refusing {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        match self.armed.swap(false, Ordering::SeqCst) {
            true => Err(Error::unavailable("the cipher refuses, as the test wants it")),
            false => AesGcm.seal(key, frame, additional, text),
        }
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

#[test]
fn a_gap_ends_the_first_and_not_the_count() {
    let (workshop, cipher) = (Workshop::new(), Arc::new(Refusing::default()));
    let (store, keys) = workshop.watched(workshop.gate.clone());
    let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
    let log = Log::open_stores(store, keys, Options::default().writers(1), environment).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let teller = heard.clone();
    log.when_durable(move |entries| teller.lock().unwrap().push(entries));
    let mut producer = log.producer().unwrap();
    append(&mut producer, 0).durable().unwrap();
    append(&mut producer, 1).durable().unwrap();
    assert_eq!(counts(&log), (2, 2, 0));
    // Where the index encrypts first, nothing is lost by it.
    let mut number = 2;
    while log.lost() == 0 {
        cipher.armed.store(true, Ordering::SeqCst);
        let _ = append(&mut producer, number).durable();
        number += 1;
        assert!(number < 100, "the cipher is not asked");
    }
    let first_lost = number - 1;
    assert_eq!(counts(&log), (first_lost, first_lost, 1));
    for more in 1..5 {
        append(&mut producer, number).durable().unwrap();
        number += 1;
        assert_eq!(counts(&log), (first_lost + more, first_lost, 1));
    }
    drop(producer);
    let (told, closed) = log.close_with_telemetry();
    closed.unwrap();
    assert_eq!((told.entries, told.durable_prefix, told.lost), (first_lost + 4, first_lost, 1));
    assert!(heard.lock().unwrap().iter().copied().eq(1..=first_lost), "once a group, and not after the gap");
}

#[test]
fn counts_follow_the_sync_in_every_mode() {
    for (mode, after_commit) in [(Durability::Group, 1), (Durability::Interval(HOUR), 0), (Durability::Os, 0)]
    {
        let log = stepped(&Faults::new(), mode);
        let mut producer = log.producer().unwrap();
        let receipt = append(&mut producer, 0);
        assert_eq!(counts(&log), (0, 0, 0), "{mode:?}");
        commit(&log).unwrap();
        assert_eq!(counts(&log), (after_commit, after_commit, 0), "{mode:?}");
        // Of mode `os` the receipt says so: it speaks of the operating system.
        let answered = receipt.durable_within(Duration::ZERO).unwrap();
        assert_eq!(answered, mode != Durability::Interval(HOUR), "{mode:?}");
        log.step(Step::Sync).unwrap();
        assert_eq!(counts(&log), (1, 1, 0), "{mode:?}");
        assert!(receipt.durable_within(Duration::ZERO).unwrap());
        // What is not synced when the log is closed is so afterwards.
        producer.append(&Entry::new("read", "1")).unwrap();
        drop(producer);
        let (told, closed) = log.close_with_telemetry();
        closed.unwrap();
        assert_eq!((told.entries, told.durable_prefix, told.lost), (2, 2, 0), "{mode:?}");
    }
}

/// Whoever asks a receipt to tell is told once: after the sync, at once where that was before, and what was lost.
#[test]
fn a_receipt_tells_without_anybody_waiting() {
    let log = stepped(&Faults::new(), Durability::Group);
    let mut producer = log.producer().unwrap();
    let (told, hear) = mpsc::channel();
    let tell = |number: u32| {
        let told = told.clone();
        move |outcome: Result<()>| told.send((number, outcome.is_ok())).unwrap()
    };
    let first = append(&mut producer, 0);
    first.when_durable(tell(1)).unwrap();
    append(&mut producer, 1).when_durable(tell(2)).unwrap();
    assert_eq!(hear.try_iter().count(), 0, "nothing is durable");
    commit(&log).unwrap();
    assert!(hear.try_iter().eq([(1, true), (2, true)]));
    first.when_durable(tell(3)).unwrap();
    assert!(hear.try_iter().eq([(3, true)]));

    let (workshop, cipher) = (Workshop::new(), Arc::new(Refusing::default()));
    let (store, keys) = workshop.watched(workshop.gate.clone());
    let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
    let log = Log::open_stores(store, keys, Options::default().writers(1), environment).unwrap();
    let mut producer = log.producer().unwrap();
    let lost = (4..100).any(|number| {
        cipher.armed.store(true, Ordering::SeqCst);
        append(&mut producer, 0).when_durable(tell(number)).unwrap();
        let (of, is_durable) = hear.recv().unwrap();
        assert_eq!(of, number);
        !is_durable
    });
    assert!(lost && log.lost() == 1, "the cipher is not asked");
}

/// A segment is synced before the next one is begun: what is in it is counted, and what begins the next one is not.
#[test]
fn what_a_rotation_syncs_is_counted() {
    for mode in [Durability::Interval(HOUR), Durability::Os] {
        let machine = Faults::new();
        let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
        Init::default().erasure(false).create_in(&*log, &*keys, &Environment::default()).unwrap();
        let options = Options::default().segment_size(64 << 10).compression(0).durability(mode);
        let log = Log::open_stepped(log, keys, options, Environment::default()).unwrap();
        let mut producer = log.producer().unwrap();
        let payload =
            (0..70_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>();
        producer.append(&Entry::new("read", "large").payload(&payload)).unwrap();
        let _ = producer.flush().unwrap();
        commit(&log).unwrap();
        assert_eq!(counts(&log), (0, 0, 0), "{mode:?}");
        let _ = append(&mut producer, 1);
        commit(&log).unwrap();
        assert_eq!(counts(&log), (1, 1, 0), "{mode:?}");
        log.step(Step::Sync).unwrap();
        assert_eq!(counts(&log), (2, 2, 0), "{mode:?}");
    }
}

#[test]
fn where_no_sync_succeeds_nothing_is_called_durable() {
    for mode in [Durability::Group, Durability::Interval(HOUR), Durability::Os] {
        let machine = Faults::new();
        let log = stepped(&machine, mode);
        let mut producer = log.producer().unwrap();
        machine.fail_below("audit/segments", Fault::SyncFails);
        let receipt = append(&mut producer, 0);
        let committed = commit(&log).and_then(|_| log.step(Step::Sync));
        assert_eq!(committed.unwrap_err().kind(), ErrorKind::Unavailable, "{mode:?}");
        assert_eq!(counts(&log), (0, 0, 0), "{mode:?}");
        if mode != Durability::Os {
            receipt.durable().unwrap_err();
        }
        drop(producer);
        let (told, closed) = log.close_with_telemetry();
        assert_eq!(closed.unwrap_err().kind(), ErrorKind::Unavailable, "{mode:?}");
        assert_eq!((told.entries, told.durable_prefix), (0, 0), "{mode:?}");
    }
}

/// Neither the hour between two syncs nor that between two checkpoints is waited for.
#[test]
fn a_checkpoint_that_is_asked_for_brings_its_sync() {
    for mode in [Durability::Interval(HOUR), Durability::Os, Durability::Group] {
        let (done, end) = mpsc::channel();
        let work = std::thread::spawn(move || {
            let workshop = Workshop::new();
            let log = workshop.open(Options::default().durability(mode).checkpoint_interval(HOUR));
            let mut producer = log.producer().unwrap();
            append(&mut producer, 0).checkpointed().unwrap();
            assert_eq!(counts(&log), (1, 1, 0));
            producer.append(&Entry::new("read", "1")).unwrap();
            log.flush().unwrap();
            assert_eq!(counts(&log), (2, 2, 0));
            drop(producer);
            log.close().unwrap();
            done.send(()).unwrap();
        });
        let ended = end.recv_timeout(Duration::from_secs(60));
        assert_ne!(ended, Err(mpsc::RecvTimeoutError::Timeout), "{mode:?}: it waits for the hour to pass");
        work.join().unwrap();
    }
}
