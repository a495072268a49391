//! What was passed without an entry: known again where it goes on from what the log has, and nowhere else.

use super::*;

const FILE: &str = "audit.keys/sources.passed";

fn pass(source: &Source, number: u64, start: u64, end: u64) {
    source.pass(&Place { range: start..end, check: check(number, end) }).unwrap();
}

/// What was passed of each source, as whoever only reads the log is told; it is what whoever opens it is told.
fn passed(machine: &Faults) -> BTreeMap<SourceId, (std::ops::Range<u64>, u64)> {
    let read = read(machine).unwrap();
    assert_eq!(read, open(&machine.kill()).sources().unwrap());
    read.into_iter().filter_map(|state| Some((state.id, state.passed?))).collect()
}

/// A log that has 0 to 10 of source 1 and nothing of source 2, of both of which something was passed.
fn with_passed() -> Faults {
    let machine = made(false);
    let log = open(&machine);
    let (one, two) = (log.source(id(1), b"one").unwrap(), log.source(id(2), b"two").unwrap());
    append(&mut log.producer().unwrap(), &one, 1, 0, 10).unwrap();
    pass(&one, 1, 10, 12);
    pass(&one, 1, 10, 15);
    pass(&two, 2, 0, 3);
    // Also while the entry before it is not durable yet.
    one.keep_passed().unwrap();
    log.close().unwrap();
    machine
}

#[test]
fn what_was_passed_is_known_again_until_an_entry_comes_behind_it() {
    let machine = with_passed();
    let expected = BTreeMap::from([(id(1), (10..15, check(1, 15))), (id(2), (0..3, check(2, 3)))]);
    assert_eq!(passed(&machine), expected);
    let states = read(&machine).unwrap();
    assert_eq!(
        (&states[1].label[..], &states[1].ranges[..], states[1].last_frame),
        (&b"two"[..], &[][..], 0)
    );
    assert_eq!(states[0].resume(0), (10, Some(check(1, 10))));
    assert_eq!(states[0].passed_from(10), Some((15, check(1, 15))));
    assert_eq!(states[0].passed_from(0), None);

    let log = open(&machine);
    let (one, two) = (log.source(id(1), b"one").unwrap(), log.source(id(2), b"two").unwrap());
    append(&mut log.producer().unwrap(), &one, 1, 10, 20).unwrap();
    append(&mut log.producer().unwrap(), &two, 2, 0, 5).unwrap();
    log.flush().unwrap();
    assert!(log.sources().unwrap().iter().all(|state| state.passed.is_none()));
    pass(&one, 1, 20, 21);
    two.keep_passed().unwrap();
    log.close().unwrap();
    assert_eq!(passed(&machine), BTreeMap::from([(id(1), (20..21, check(1, 21)))]));
    assert_eq!(read(&machine).unwrap()[1].label, b"two");
}

#[test]
fn what_was_not_kept_or_has_ended_is_forgotten() {
    let machine = with_passed();
    let log = open(&machine);
    let (one, two) = (log.source(id(1), b"one").unwrap(), log.source(id(2), b"two").unwrap());
    pass(&two, 2, 0, 4);
    drop(log);
    assert_eq!(passed(&machine.kill())[&id(2)], (0..3, check(2, 3)));
    assert_eq!(one.keep_passed().unwrap_err().kind(), ErrorKind::Closed);

    let log = open(&machine);
    let source = log.source(id(2), b"two").unwrap();
    source.end();
    assert_eq!(source.pass(&Place { range: 0..4, check: 0 }).unwrap_err().kind(), ErrorKind::Refused);
    source.keep_passed().unwrap();
    log.close().unwrap();
    assert!(!passed(&machine).contains_key(&id(2)));
    let empty = open(&machine).source(id(3), b"").unwrap().pass(&Place { range: 4..4, check: 0 });
    assert_eq!(empty.unwrap_err().kind(), ErrorKind::Invalid);
}

/// Whatever `sources.passed` is, and whatever log it lies beside.
#[test]
fn it_counts_only_where_the_log_ends_where_it_begins() {
    // The entry before it is lost.
    let machine = made(false);
    let log = open(&machine);
    let source = log.source(id(1), b"one").unwrap();
    append(&mut log.producer().unwrap(), &source, 1, 0, 10).unwrap();
    log.flush().unwrap();
    let before = machine.kill();
    append(&mut log.producer().unwrap(), &source, 1, 10, 20).unwrap();
    pass(&source, 1, 20, 30);
    source.keep_passed().unwrap();
    let kept = machine.read(FILE).unwrap();
    assert_eq!(passed(&machine.kill()), BTreeMap::new());
    log.close().unwrap();
    assert_eq!(passed(&machine), BTreeMap::from([(id(1), (20..30, check(1, 30)))]));
    // The log is put back.
    before.overwrite(FILE, &kept);
    assert_eq!(passed(&before), BTreeMap::new());
    // It is put back, and the log has come past it.
    let log = open(&machine);
    append(&mut log.producer().unwrap(), &log.source(id(1), b"").unwrap(), 1, 20, 40).unwrap();
    log.close().unwrap();
    machine.overwrite(FILE, &kept);
    assert_eq!(passed(&machine), BTreeMap::new());
    // It is damaged, cut short, another log's, or another file.
    let machine = with_passed();
    let kept = machine.read(FILE).unwrap();
    let state = machine.read("audit.keys/sources.state").unwrap();
    let damaged = (0..kept.len()).step_by(5).flat_map(|at| {
        let mut damaged = kept.clone();
        damaged[at] ^= 1;
        [damaged, kept[..at].to_vec()]
    });
    let others = [with_passed().read(FILE).unwrap(), state];
    for wrong in damaged.chain(others) {
        machine.overwrite(FILE, &wrong);
        assert_eq!(passed(&machine), BTreeMap::new());
    }
    machine.overwrite(FILE, &kept);
    assert_eq!(passed(&machine).len(), 2);
}
