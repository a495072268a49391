//! What happens when entries come faster than the medium takes them, one by one, or too large.

use crate::workshop::Workshop;
use bulla::{Entry, ErrorKind, Log, Options, Producer};
use bulla_proof::commitment::FrameKind;
use bulla_proof::entry::{MAX_PAYLOAD, MAX_STRING};
use std::time::{Duration, Instant};

const LEAST_MEMORY: usize = 64 << 20;

/// Not within a test's patience.
const NEVER: Duration = Duration::from_secs(3600);

fn tight() -> Options {
    Options::default().memory(LEAST_MEMORY).compression(0)
}

/// Appends entries of a kilobyte, at the times that they are counted by, until there is no memory left.
fn fill(producer: &mut Producer, count: &mut i64) {
    let payload = [7; 1000];
    let entry = Entry::new("fill", "x").payload(&payload);
    loop {
        match producer.append(&entry.clone().time(*count)) {
            Ok(()) => *count += 1,
            Err(error) => return assert_eq!(error.kind(), ErrorKind::Timeout, "{error}"),
        }
    }
}

/// A log whose medium has stopped and whose memory is full, with the number of entries in it.
fn full(workshop: &Workshop) -> (Log, Producer, i64) {
    let log = workshop.open(tight().append_timeout(Duration::from_millis(500)));
    let mut producer = log.producer().unwrap();
    workshop.gate.shut();
    let mut count = 0;
    fill(&mut producer, &mut count);
    workshop.gate.wait_until_reached();
    (log, producer, count)
}

#[test]
fn a_stopped_medium_loses_nothing_and_memory_stays_bounded() {
    let workshop = Workshop::new();
    let (log, mut producer, mut count) = full(&workshop);
    // Staged and in flight: an eighth and a quarter of the memory, and not much less.
    let bytes = count as usize * 1000;
    assert!((LEAST_MEMORY / 4..LEAST_MEMORY * 3 / 8 + (4 << 20)).contains(&bytes), "{bytes} bytes");

    let begin = Instant::now();
    let entry = Entry::new("refused", "x").time(-1);
    for _ in 0..100 {
        assert_eq!(producer.try_append(&entry).unwrap_err().kind(), ErrorKind::Timeout);
    }
    let batch = producer.append_batch(std::slice::from_ref(&entry)).unwrap_err();
    assert_eq!((batch.staged, batch.error.kind()), (0, ErrorKind::Timeout));
    let append = producer.append(&entry).unwrap_err();
    assert_eq!(append.kind(), ErrorKind::Timeout);
    // Two waited, each for its time; a hundred did not.
    let waited = begin.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(25)).contains(&waited), "{waited:?}");
    assert_eq!(log.acknowledged(), 0);

    workshop.gate.open();
    for _ in 0..1000 {
        producer.append(&entry.clone().time(count)).unwrap();
        count += 1;
    }
    producer.flush().unwrap().durable().unwrap();
    assert_eq!(log.acknowledged(), count as u64);
    drop(producer);
    log.close().unwrap();
    assert!(workshop.entries().into_iter().eq(0..count));
}

#[test]
fn an_append_that_waits_goes_on_when_the_medium_does() {
    let workshop = Workshop::new();
    let log = workshop.open(tight().append_timeout(NEVER));
    workshop.gate.shut();
    // More than fits: it waits before it is through.
    let count = 2 * LEAST_MEMORY as i64 / 1000;
    std::thread::scope(|scope| {
        let mut producer = log.producer().unwrap();
        scope.spawn(move || {
            let payload = [7; 1000];
            for time in 0..count {
                producer.append(&Entry::new("fill", "x").payload(&payload).time(time)).unwrap();
            }
        });
        workshop.gate.wait_until_reached();
        workshop.gate.open();
    });
    log.close().unwrap();
    assert!(workshop.entries().into_iter().eq(0..count));
}

#[test]
fn a_thousand_slow_producers_share_blocks() {
    const PRODUCERS: i64 = 1000;
    let workshop = Workshop::new();
    let log = workshop.open(Options::default().memory(1 << 30).writers(2).linger(NEVER));
    let mut producers = (0..PRODUCERS).map(|_| log.producer().unwrap()).collect::<Vec<_>>();
    for round in 0..3 {
        for (index, producer) in producers.iter_mut().enumerate() {
            let time = round * PRODUCERS + index as i64;
            producer.append(&Entry::new("read", "user_42/email").subject("user_42").time(time)).unwrap();
        }
        log.flush().unwrap();
    }
    drop(producers);
    log.close().unwrap();
    let mut times = workshop.entries();
    times.sort_unstable();
    assert!(times.into_iter().eq(0..3 * PRODUCERS));
    let blocks = workshop.frames().iter().filter(|frame| frame.kind == FrameKind::Block).count();
    println!("{blocks} blocks");
    assert!(blocks <= 6, "{blocks} blocks for three rounds");
}

#[test]
fn what_an_idle_producer_left_becomes_durable_without_a_flush() {
    let workshop = Workshop::new();
    let log = workshop.open(tight().linger(Duration::from_millis(1)));
    let mut idle = log.producer().unwrap();
    idle.append(&Entry::new("read", "x").time(0)).unwrap();
    let begin = Instant::now();
    while log.acknowledged() == 0 {
        assert!(begin.elapsed() < Duration::from_secs(30), "still in its buffer");
        std::thread::yield_now();
    }
    drop(idle);
    log.close().unwrap();
    assert_eq!(workshop.entries(), [0]);
}

#[test]
fn the_largest_entries_pass_and_keep_their_place() {
    let workshop = Workshop::new();
    let log = workshop.open(tight().append_timeout(NEVER));
    let mut producer = log.producer().unwrap();
    let payload = vec![7; MAX_PAYLOAD];
    let text = "s".repeat(MAX_STRING);
    let large = Entry::new("large", &text).payload(&payload).subject(&text).purpose(&text).client(&text);
    for time in 0..12 {
        let entry = if time % 2 == 0 { Entry::new("small", "x") } else { large.clone() };
        producer.append(&entry.time(time)).unwrap();
    }
    producer.flush().unwrap().durable().unwrap();
    drop(producer);
    log.close().unwrap();
    assert!(workshop.entries().into_iter().eq(0..12));
}

#[test]
fn large_entries_wait_for_memory_too() {
    let workshop = Workshop::new();
    let log = workshop.open(tight());
    let mut producer = log.producer().unwrap();
    workshop.gate.shut();
    let payload = vec![7; 4 << 20];
    let entry = Entry::new("large", "x").payload(&payload);
    let mut count = 0;
    let stuck = Instant::now();
    // The first timeouts may be those of a moment: until what is in flight has reached the medium and stays there.
    let mut refused = 0;
    while refused < 1000 {
        match producer.try_append(&entry.clone().time(count)) {
            Ok(()) => (count, refused) = (count + 1, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Timeout);
                refused += 1;
                std::thread::yield_now();
            }
        }
        assert!(stuck.elapsed() < Duration::from_secs(60));
    }
    workshop.gate.wait_until_reached();
    // Four or so are staged, four or five in flight.
    assert!((4..=10).contains(&count), "{count} entries of 4 MiB");
    // Small ones have memory of their own.
    producer.try_append(&Entry::new("small", "x").time(count)).unwrap();
    workshop.gate.open();
    drop(producer);
    log.close().unwrap();
    assert!(workshop.entries().into_iter().eq(0..=count));
}

#[test]
fn an_entry_over_a_limit_is_refused_alone() {
    let workshop = Workshop::new();
    let log = workshop.open(tight());
    let mut producer = log.producer().unwrap();
    let good = |time| Entry::new("read", "x").time(time);
    let payload = vec![0; MAX_PAYLOAD + 1];
    let text = "s".repeat(MAX_STRING + 1);
    producer.append(&good(0)).unwrap();
    for bad in [good(9).payload(&payload), good(9).subject(&text), Entry::new("", "x"), good(9).actor(&text)]
    {
        assert_eq!(producer.append(&bad).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(producer.try_append(&bad).unwrap_err().kind(), ErrorKind::Invalid);
        let batch = producer.append_batch(&[good(9), bad]).unwrap_err();
        assert_eq!((batch.staged, batch.error.kind()), (0, ErrorKind::Invalid));
    }
    producer.append_batch(&[good(1), good(2)]).unwrap();
    producer.flush().unwrap().durable().unwrap();
    drop(producer);
    log.close().unwrap();
    assert_eq!(workshop.entries(), [0, 1, 2]);
}

/// Whoever still has a producer learns that the log is closed at the next entry, not when a buffer is full.
#[test]
fn a_closed_log_takes_nothing() {
    let workshop = Workshop::new();
    let log = workshop.open(tight().append_timeout(Duration::MAX));
    let mut producer = log.producer().unwrap();
    let entry = Entry::new("read", "x").time(0);
    producer.append(&entry).unwrap();
    let receipt = producer.flush().unwrap();
    log.close().unwrap();
    receipt.checkpointed().unwrap();
    assert_eq!(producer.append(&entry).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(producer.try_append(&entry).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(
        producer.append_batch(std::slice::from_ref(&entry)).unwrap_err().error.kind(),
        ErrorKind::Closed
    );
    assert_eq!(producer.flush().unwrap_err().kind(), ErrorKind::Closed);
    drop(producer);
    assert_eq!(workshop.entries(), [0]);
}
