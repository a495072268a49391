//! What an append costs its thread: no allocation and no system call, but for the hand-over of a buffer. So too where
//! the log has a rule for every field, and where data subjects have keys.

use crate::helpers::in_full;
use crate::workshop::Workshop;
use bulla::{Entry, Log, Options, Place, Producer, SourceId};
use bulla_testkit::allocator::allocations;
use bulla_testkit::{alone, is_alone};
use std::process::Command;
use std::time::Duration;

/// More than all buffers of [`options`] hold, and in full five times as many.
fn appends() -> usize {
    if in_full() { 1_000_000 } else { 100_000 }
}

/// As many where every field has a rule, which takes longer.
fn ruled() -> usize {
    appends() / 5 * 2
}

/// An entry whose row is of a hundred bytes.
fn entry() -> Entry<'static> {
    let entry = Entry::new("read", "user_42/email").subject("user_42").purpose("fulfilling user request");
    let entry = entry.controller("example.com").actor("service-7").client("192.0.2.17").stream("a");
    assert!((95..=105).contains(&entry.measure().unwrap()), "{:?}", entry.measure());
    entry
}

/// A rule for each field that can have one, those that cost most where there is a choice.
const RULES: [(&str, &str); 12] = [
    ("location", "strip-query"),
    ("controller", "pseudonymise"),
    ("processor", "pseudonymise"),
    ("purpose", "pseudonymise"),
    ("actor", "pseudonymise"),
    ("client", "truncate-ip:24/48"),
    ("stream", "pseudonymise"),
    ("status", "drop"),
    ("duration", "drop"),
    ("size", "drop"),
    ("flags", "drop"),
    ("payload", "cap:16"),
];

/// An entry from which every rule takes something, with more data subjects than an entry holds by itself.
fn full_entry() -> Entry<'static> {
    let entry = entry().subject("user_43").subject("user_44").processor("processor.example");
    let entry = entry.client("[2001:db8:17:18::19]:443").payload("a payload that is cut off");
    Entry { location: Some(b"user_42/email?token=7"), ..entry }.status(200).duration(3).size(4).flags(5)
}

fn options() -> Options {
    Options::default().memory(64 << 20).compression(1).append_timeout(Duration::from_secs(60))
}

/// Has every buffer made: nothing comes back while the medium stands still.
fn warm_up(workshop: &Workshop, producer: &mut Producer) {
    workshop.gate.shut();
    let mut refused = 0;
    while refused < 1000 {
        match producer.try_append(&entry()) {
            Ok(()) => refused = 0,
            Err(_) => {
                refused += 1;
                std::thread::yield_now();
            }
        }
    }
    workshop.gate.wait_until_reached();
    workshop.gate.open();
    producer.flush().unwrap().durable().unwrap();
}

#[test]
fn a_warm_producer_appends_without_allocating() {
    appends_without_allocating(&Workshop::new(), &entry(), appends());
}

#[test]
fn nor_does_it_allocate_where_every_field_has_a_rule() {
    appends_without_allocating(&Workshop::with_rules(&RULES), &full_entry(), ruled());
    // A client that is no address is dropped, which is counted.
    let stranger = full_entry().client("host.example.com");
    appends_without_allocating(&Workshop::with_rules(&RULES), &stranger, ruled());
}

#[test]
fn nor_does_it_allocate_where_data_subjects_have_keys() {
    appends_without_allocating(&Workshop::with_erasure(), &entry(), appends());
}

/// What is staged with an entry is a few bytes more.
#[test]
fn nor_does_it_allocate_where_entries_come_from_a_source() {
    let workshop = Workshop::new();
    let log = workshop.open(options());
    let source = log.source(SourceId([1; 16]), b"a file").unwrap();
    let mut producer = log.producer().unwrap();
    warm_up(&workshop, &mut producer);
    let (entry, appends) = (entry(), appends() as u64);
    let start = allocations();
    for number in 0..appends {
        let place = Place { range: 100 * number..100 * (number + 1), check: number };
        producer.append_from(&entry, &source, &place).unwrap();
    }
    assert_eq!(allocations() - start, 0);
    producer.flush().unwrap().durable().unwrap();
    let state = log.sources().unwrap().remove(0);
    assert_eq!((state.ranges.len(), state.resume(0).0), (1, 100 * appends));
    drop(producer);
    log.close().unwrap();
}

fn appends_without_allocating(workshop: &Workshop, entry: &Entry<'_>, appends: usize) {
    let log = workshop.open(options());
    let mut producer = log.producer().unwrap();
    warm_up(workshop, &mut producer);
    let batch = vec![entry.clone(); 1000];

    let start = allocations();
    for _ in 0..appends {
        producer.append(entry).unwrap();
    }
    let appended = allocations();
    for _ in 0..appends / batch.len() {
        producer.append_batch(&batch).unwrap();
    }
    let batched = allocations();
    assert_eq!((appended - start, batched - appended), (0, 0));

    // Until so many were taken; one that is refused allocates its message, which is not counted.
    let (mut taken, mut allocated) = (0, 0);
    while taken < appends {
        let before = allocations();
        match producer.try_append(entry) {
            Ok(()) => {
                taken += 1;
                allocated += allocations() - before;
            }
            Err(_) => std::thread::yield_now(),
        }
    }
    assert_eq!(allocated, 0);
    drop(producer);
    log.close().unwrap();
}

/// A producer that nobody warmed up pays for the first buffers, and for nothing else.
#[test]
fn a_cold_producer_allocates_its_buffers() {
    let workshop = Workshop::new();
    let log = workshop.open(options());
    let mut producer = log.producer().unwrap();
    let (entry, appends) = (entry(), appends());
    let start = allocations();
    for _ in 0..appends {
        producer.append(&entry).unwrap();
    }
    let allocated = allocations() - start;
    println!("{allocated} allocations in {appends} appends");
    // At most 256 buffers, of two pieces each.
    assert!((2..=2 * 256).contains(&allocated), "{allocated} allocations");
    drop(producer);
    log.close().unwrap();
}

/// The system calls of the thread that appends, as `strace` sees them.
#[test]
fn appending_makes_no_system_calls() {
    makes_no_system_calls("append_path::appending_makes_no_system_calls", Workshop::new, &entry(), appends());
}

#[test]
fn nor_does_it_where_every_field_has_a_rule() {
    let workshop = || Workshop::with_rules(&RULES);
    let test = "append_path::nor_does_it_where_every_field_has_a_rule";
    makes_no_system_calls(test, workshop, &full_entry(), ruled());
}

#[test]
fn nor_does_it_where_data_subjects_have_keys() {
    let test = "append_path::nor_does_it_where_data_subjects_have_keys";
    makes_no_system_calls(test, Workshop::with_erasure, &entry(), appends());
}

#[test]
fn nor_does_it_where_entries_come_from_a_source() {
    let test = "append_path::nor_does_it_where_entries_come_from_a_source";
    makes_no_system_calls_in(test, appends(), || {
        let log = Workshop::new().open(options());
        let source = log.source(SourceId([1; 16]), b"a file").unwrap();
        append_between_markers(&log, appends(), |producer, number| {
            let place = Place { range: number..number + 1, check: number };
            producer.append_from(&entry(), &source, &place).unwrap();
        });
        assert_eq!(log.sources().unwrap()[0].resume(0).0, appends() as u64);
    });
}

fn makes_no_system_calls(test: &str, workshop: impl Fn() -> Workshop, entry: &Entry<'_>, appends: usize) {
    makes_no_system_calls_in(test, appends, || {
        let log = workshop().open(options());
        append_between_markers(&log, appends, |producer, _| producer.append(entry).unwrap());
    });
}

/// `run` is what happens in a process of its own.
fn makes_no_system_calls_in(test: &str, appends: usize, run: impl Fn()) {
    if is_alone() {
        return run();
    }
    let place = tempfile::tempdir().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-ff", "-e", "trace=all", "-o"]).arg(place.path().join("trace"));
    let output = alone(strace, test).output();
    let output = output.expect("this test needs strace: `apt-get install strace`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let traces = std::fs::read_dir(place.path()).unwrap().map(|file| file.unwrap().path());
    let traces = traces.map(|path| std::fs::read_to_string(path).unwrap());
    let appending = traces.filter(|trace| trace.matches(MARKER).count() == 2).collect::<Vec<_>>();
    assert_eq!(appending.len(), 1, "one thread appends");
    let between = appending[0].split(MARKER).nth(1).unwrap();
    let calls = between.lines().skip(1).filter(|line| line.contains('(')).collect::<Vec<_>>();
    let mut names = calls.iter().map(|call| call.split('(').next().unwrap()).collect::<Vec<_>>();
    names.sort_unstable();
    let kinds = names.chunk_by(|a, b| a == b).map(|calls| format!("{} {}", calls.len(), calls[0]));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    println!("{} system calls in {appends} appends: {kinds}", calls.len());
    assert!(calls.len() < appends / 100, "{} system calls in {appends} appends: {kinds}", calls.len());
}

/// A system call that nothing else here makes.
const MARKER: &str = "getppid()";

fn append_between_markers(log: &Log, appends: usize, append: impl Fn(&mut Producer, u64)) {
    let mut producer = log.producer().unwrap();
    append(&mut producer, 0);
    let _ = std::os::unix::process::parent_id();
    for number in 1..appends as u64 {
        append(&mut producer, number);
    }
    let _ = std::os::unix::process::parent_id();
    producer.flush().unwrap().durable().unwrap();
    assert_eq!(log.acknowledged(), appends as u64);
}
