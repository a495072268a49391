//! How much a log has of sources: many of them, many ranges, many labels.

use super::*;
use bulla_testkit::allocator::most_held_here;

/// Whoever follows lets a range begin where the last one that was taken ended, so what was refused between them leaves no hole.
#[test]
fn what_is_refused_between_records_parts_no_range() {
    let machine = made(false);
    let log = open(&machine);
    let source = log.source(id(1), b"label").unwrap();
    let mut producer = log.producer().unwrap();
    let (mut taken, mut at) = (0, 0);
    let long = "x".repeat(70_000);
    for record in 0..10_000 {
        at += 7;
        if record % 3 != 0 {
            let entry = Entry::new("read", &long);
            let refused =
                producer.append_from(&entry, &source, &Place { range: taken..at, check: 0 }).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
            continue;
        }
        append(&mut producer, &source, 1, taken, at).unwrap();
        taken = at;
        if record % 50 == 0 {
            log.flush().unwrap();
        }
    }
    log.flush().unwrap();
    assert_eq!(held(&log.sources().unwrap())[&id(1)], [(0, taken, check(1, taken))]);
    drop(producer);
    log.close().unwrap();
    assert_eq!(held(&read(&without_state(&machine)).unwrap())[&id(1)], [(0, taken, check(1, taken))]);
    let lengths = sections(&machine);
    assert!(lengths.len() > 60 && lengths[1..].iter().all(|length| *length <= 64), "{lengths:?}");
}

/// Ten thousand files that say a line each now and then.
#[test]
fn many_sources_in_each_block_cost_some_bytes_each() {
    const SOURCES: u64 = 10_000;
    let machine = made(false);
    let options = || options().memory(256 << 20).block_size(8 << 20);
    let log = open_in(&machine, options(), Environment::default()).unwrap();
    let label = |number: u64| format!("/var/log/some/service-{number}.log");
    let sources = (0..SOURCES)
        .map(|number| log.source(id(number), label(number).as_bytes()).unwrap())
        .collect::<Vec<_>>();
    let mut producer = log.producer().unwrap();
    let mut rounds = |rounds: std::ops::Range<u64>| {
        for round in rounds {
            for (number, source) in sources.iter().enumerate() {
                append(&mut producer, source, number as u64, 100 * round, 100 * (round + 1)).unwrap();
            }
            log.flush().unwrap();
        }
    };
    rounds(0..4);
    let ((), few) = most_held_here(|| rounds(4..6));
    let ((), many) = most_held_here(|| rounds(6..20));
    // What is known of a source does not grow with its blocks; what grows is the simulated disk.
    let contents = machine.files().into_iter().filter_map(|path| machine.read(&path));
    let disk = contents.map(|content| content.len()).sum::<usize>();
    assert!(many < few + 2 * disk, "{many} bytes, before it {few}, on a disk of {disk}");
    drop(producer);
    log.close().unwrap();
    let lengths = sections(&machine);
    assert_eq!(lengths.len(), 20, "a block each round");
    // An id, no label, one range, of which the numbers take three bytes at most, and a check.
    let each = 16 + 1 + 1 + 3 + 1 + 8;
    let plain = SOURCES as u32 * each + 2;
    assert!(
        lengths[1..].iter().all(|length| (16 * SOURCES as u32..plain / 8 * 9 + 16).contains(length)),
        "{lengths:?}"
    );
    assert!(lengths[0] > plain && lengths[0] < 3 * plain, "{lengths:?}");
    for machine in [machine.kill(), without_state(&machine)] {
        let (states, held) = most_held_here(|| read(&machine).unwrap());
        assert!(held < 800 * SOURCES as usize, "{held} bytes");
        assert_eq!(states.len(), SOURCES as usize);
        for (number, state) in states.iter().enumerate() {
            assert_eq!((state.id, ends(state)), (id(number as u64), vec![(0, 2_000)]));
            assert_eq!(state.label, label(number as u64).as_bytes());
        }
    }
}

#[test]
fn ranges_that_never_meet_come_to_an_end() {
    let machine = made(false);
    let log = open(&machine);
    let mut producer = log.producer().unwrap();
    let [source, sound] = [1, 2].map(|number| log.source(id(number), b"").unwrap());
    for round in 0..5_000 {
        // They meet only where they are sorted.
        append(&mut producer, &source, 1, 10 * round, 10 * round + 5).unwrap();
        append(&mut producer, &sound, 2, 10 * (9_999 - round), 10 * (10_000 - round)).unwrap();
    }
    log.flush().unwrap();
    let refused = append(&mut producer, &source, 1, 100_000, 100_001).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    append(&mut producer, &sound, 2, 100_000, 100_001).unwrap();
    log.flush().unwrap();
    let states = log.sources().unwrap();
    assert_eq!((states[0].ranges.len(), ends(&states[1])), (5_000, vec![(50_000, 100_001)]));
    drop(producer);
    log.close().unwrap();
    let log = open(&machine);
    let source = log.source(id(1), b"").unwrap();
    let mut producer = log.producer().unwrap();
    assert_eq!(append(&mut producer, &source, 1, 7, 8).unwrap_err().kind(), ErrorKind::Refused);
    source.end();
}

#[test]
fn there_are_only_so_many_sources_until_some_end() {
    let machine = made(false);
    let log = open(&machine);
    let mut producer = log.producer().unwrap();
    let sources = (0..65_536).map(|number| log.source(id(number), b"a label").unwrap()).collect::<Vec<_>>();
    let refused = log.source(id(65_536), b"").unwrap_err();
    assert!(refused.kind() == ErrorKind::Invalid && refused.to_string().contains("end those"), "{refused}");
    for (number, source) in sources.iter().enumerate() {
        append(&mut producer, source, number as u64, 0, 1).unwrap();
    }
    log.flush().unwrap();
    assert_eq!(log.sources().unwrap().len(), 65_536);
    log.source(id(65_536), b"").unwrap_err();
    log.source(id(7), b"is known").unwrap();
    sources[7].end();
    producer.append(&Entry::new("read", "7 1 2")).unwrap();
    log.flush().unwrap();
    log.source(id(65_536), b"").unwrap();
    drop(producer);
    log.close().unwrap();
    for machine in [machine.kill(), without_state(&machine)] {
        assert_eq!(read(&machine).unwrap().len(), 65_535);
    }
}
