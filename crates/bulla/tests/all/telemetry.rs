//! What a log tells of itself is what was done.

use crate::workshop::Workshop;
use bulla::{Durability, Entry, ErrorKind, Init, Log, Options, Step};
use bulla_proof::commitment::FrameKind;
use bulla_proof::entry::MAX_STRING;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::Arc;
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
