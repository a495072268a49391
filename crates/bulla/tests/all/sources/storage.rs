//! What the storage and the key directory may do: lose the key, keep what is old, damage sections, lose blocks.

use super::*;
use bulla_testkit::fault::Fault;

/// A log with some blocks of a source, and what is held of it.
fn with_some() -> (Faults, Held) {
    let machine = made(false);
    for session in 0..3 {
        let log = open(&machine);
        let source = log.source(id(1), b"label").unwrap();
        let mut producer = log.producer().unwrap();
        for record in 3 * session..3 * (session + 1) {
            append(&mut producer, &source, 1, 10 * record, 10 * (record + 1)).unwrap();
            log.flush().unwrap();
        }
        drop(producer);
        log.close().unwrap();
    }
    let held = held(&read(&machine).unwrap());
    assert_eq!(held, told_by_entries(&machine, false));
    (machine, held)
}

#[test]
fn without_the_key_sources_are_refused_and_entries_are_taken() {
    let (machine, _) = with_some();
    let key = machine.read("audit.keys/sources.key").unwrap();
    machine.remove_file("audit.keys/sources.key");
    let log = open(&machine);
    for refused in [log.source(id(1), b"").map(drop), log.sources().map(drop), read(&machine).map(drop)] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoKey, "{refused}");
        assert!(refused.to_string().contains("sources.key is missing"), "{refused}");
    }
    assert_eq!(machine.read("audit.keys/sources.key"), None, "none is made in its place");
    log.producer().unwrap().append(&Entry::new("read", "1 90 91")).unwrap();
    log.flush().unwrap();
    machine.overwrite("audit.keys/sources.key", &key);
    assert_eq!(log.source(id(1), b"").unwrap().id(), id(1), "it was restored");
    log.close().unwrap();
    // Another log's, and one that is damaged.
    let (other, _) = with_some();
    let wrong = other.read("audit.keys/sources.key").unwrap();
    for (wrong, kind) in [(&wrong[..], ErrorKind::Refused), (&key[..50], ErrorKind::Unavailable)] {
        machine.overwrite("audit.keys/sources.key", wrong);
        let log = open(&machine);
        assert_eq!(log.source(id(1), b"").unwrap_err().kind(), kind);
        log.producer().unwrap().append(&Entry::new("read", "x")).unwrap();
        log.close().unwrap();
    }
}

/// What failed may have come about all the same, and be there until the power goes.
#[test]
fn a_key_stays_that_was_made_by_an_attempt_that_failed() {
    let mut found = 0;
    for fault in [Fault::NamePersistsButFails, Fault::SyncFails, Fault::SyncPersistsButFails] {
        'operations: for operation in 0.. {
            for stop in (0..).step_by(if in_full() { 1 } else { 7 }) {
                let machine = made(false);
                let log = open(&machine);
                let begun = machine.operations();
                machine.fail_at(begun + operation, fault);
                let first = log.source(id(1), b"");
                if first.is_ok() && machine.operations() <= begun + operation {
                    break 'operations;
                }
                machine.heal();
                if first.is_ok() || machine.read("audit.keys/sources.key").is_none() {
                    continue 'operations;
                }
                found += 1;
                let source = log.source(id(1), b"").unwrap();
                append(&mut log.producer().unwrap(), &source, 1, 0, 10).unwrap();
                machine.stop_at(machine.operations() + stop);
                let flushed = log.flush();
                for seed in 0..8 {
                    let log = open(&machine.crash(seed));
                    let sources = log.sources();
                    assert!(sources.is_ok(), "{fault:?}, {operation}, {stop}, {seed}: {sources:?}");
                }
                if flushed.is_ok() {
                    break;
                }
            }
        }
    }
    assert!(found > 4, "{found}");
}

#[test]
fn a_log_that_never_had_sources_has_no_key_of_them() {
    let machine = made(false);
    let log = open(&machine);
    log.producer().unwrap().append(&Entry::new("read", "x")).unwrap();
    assert_eq!(log.sources().unwrap(), []);
    log.close().unwrap();
    assert_eq!(read(&machine).unwrap(), []);
    assert!(!machine.files().iter().any(|path| path.contains("sources")), "{:?}", machine.files());
    let log = open(&machine);
    log.source(id(1), b"").unwrap();
    assert!(machine.files().iter().any(|path| path == "audit.keys/sources.key"));
}

/// Whatever `sources.state` is: it is a cache.
#[test]
fn what_is_kept_is_used_only_where_it_is_of_this_history() {
    let (machine, expected) = with_some();
    let newest = machine.read("audit.keys/sources.state").unwrap();
    let (older, _) = with_some();
    let stale = |content: Option<&[u8]>| {
        let machine = machine.kill();
        match content {
            Some(content) => machine.overwrite("audit.keys/sources.state", content),
            None => drop(machine.remove_file("audit.keys/sources.state")),
        }
        assert_eq!(held(&read(&machine).unwrap()), expected);
        let log = open(&machine);
        assert_eq!(held(&log.sources().unwrap()), expected);
        log.source(id(1), b"").unwrap();
    };
    stale(None);
    stale(Some(b""));
    stale(Some(&older.read("audit.keys/sources.state").unwrap()));
    for at in (0..newest.len()).step_by(5) {
        let mut damaged = newest.clone();
        damaged[at] ^= 1;
        stale(Some(&damaged));
        stale(Some(&newest[..at]));
    }
    // Two futures of the log, each with a state of its own that tells of frames with the same numbers.
    let (one, other) = (machine.kill(), machine.kill());
    for (machine, end) in [(&one, 91), (&other, 95)] {
        let log = open(machine);
        let source = log.source(id(1), b"").unwrap();
        append(&mut log.producer().unwrap(), &source, 1, 90, end).unwrap();
        log.close().unwrap();
    }
    let state = other.read("audit.keys/sources.state").unwrap();
    one.overwrite("audit.keys/sources.state", &state);
    assert_eq!(held(&read(&one).unwrap())[&id(1)], [(0, 91, check(1, 91))]);
    assert_eq!(held(&open(&one).sources().unwrap())[&id(1)], [(0, 91, check(1, 91))]);
    // An older one is gone on from.
    machine.overwrite("audit.keys/sources.state", &newest);
    one.overwrite("audit.keys/sources.state", &newest);
    assert_eq!(held(&read(&one).unwrap())[&id(1)], [(0, 91, check(1, 91))]);
}

/// Every byte of a section: nobody who reads entries is told, whoever verifies or has the key is.
#[test]
fn damage_to_a_section_is_found_by_its_digest_and_by_its_tag() {
    let (machine, expected) = with_some();
    let block = commitments(&machine).into_iter().find(|frame| frame.kind == FrameKind::Block).unwrap();
    let encoded = block.encode();
    let place = machine.files().into_iter().find_map(|path| {
        let content = machine.read(&path).filter(|_| path.ends_with(".seg"))?;
        let at = content.windows(encoded.len()).position(|bytes| bytes == encoded)? + encoded.len();
        Some((path, content, at))
    });
    let (segment, content, at) = place.unwrap();
    let section = at + block.sealed_length() as usize..at + block.body_length as usize;
    assert_eq!(section.len(), block.sources_length as usize);
    for byte in section {
        let damaged = machine.kill();
        let mut content = content.clone();
        content[byte] ^= 0x10;
        damaged.overwrite(&segment, &content);
        let report = Verify::open_store(Arc::new(damaged.store("audit"))).unwrap().run().unwrap();
        let kinds = report.findings.iter().map(|finding| (finding.kind, finding.frame)).collect::<Vec<_>>();
        assert_eq!(kinds, [(FindingKind::BodyDamaged, Some(block.frame))], "byte {byte}");
        // What was kept before is not damaged.
        assert_eq!(held(&read(&damaged).unwrap()), expected);
        let refused = read(&without_state(&damaged)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Tampered, "{refused}");
        assert!(refused.to_string().contains(&format!("frame {}", block.frame)), "{refused}");
        let log = open(&without_state(&damaged));
        assert_eq!(log.source(id(1), b"").unwrap_err().kind(), ErrorKind::Tampered);
        log.producer().unwrap().append(&Entry::new("read", "x")).unwrap();
        log.close().unwrap();
    }
}

/// Where the storage has lost blocks, nobody takes it for a log that holds less.
#[test]
fn sections_that_are_gone_are_not_passed_over() {
    let (machine, _) = with_some();
    let segments = machine.files().into_iter().filter(|path| path.ends_with(".seg")).collect::<Vec<_>>();
    for segment in segments {
        let content = machine.read(&segment).unwrap();
        for kept in [None, Some(0), Some(content.len() / 2)] {
            let damaged = machine.kill();
            match kept {
                Some(length) => damaged.overwrite(&segment, &content[..length]),
                None => drop(damaged.remove_file(&segment)),
            }
            let refused = read(&without_state(&damaged)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Tampered, "{segment}, {kept:?}: {refused}");
        }
    }
}

/// A clock that somebody sets, in nanoseconds.
#[derive(Default)]
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> i64 {
        SystemClock.now()
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}

    fn steady(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn what_is_known_is_kept_with_a_checkpoint_once_a_minute() {
    let machine = made(false);
    let clock = Arc::new(SetClock::default());
    let environment = Environment { clock: clock.clone(), ..Environment::default() };
    let log = open_in(&machine, options(), environment).unwrap();
    let source = log.source(id(1), b"label").unwrap();
    let mut producer = log.producer().unwrap();
    let mut kept = Vec::new();
    for round in 0..6 {
        append(&mut producer, &source, 1, round, round + 1).unwrap();
        log.flush().unwrap();
        kept.push(machine.read("audit.keys/sources.state"));
        clock.0.fetch_add(25_000_000_000, Ordering::Relaxed);
    }
    // It is written at 75 seconds, for the first time, and at 150.
    assert_eq!(kept.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, false, true, true, true]);
    assert_eq!((&kept[3], &kept[4]), (&kept[4], &kept[5]));
    clock.0.fetch_add(25_000_000_000, Ordering::Relaxed);
    append(&mut producer, &source, 1, 6, 7).unwrap();
    log.flush().unwrap();
    let later = machine.read("audit.keys/sources.state");
    assert_ne!(later, kept[5]);
    // The process dies; what the checkpoint before it covers need not be read again.
    let left = machine.kill();
    assert_eq!(held(&open(&left).sources().unwrap())[&id(1)], [(0, 7, check(1, 7))]);
}
