//! What a log says of the sources of its entries: exactly what the entries in it are of, whatever was lost and whatever is at hand.

mod limits;
mod passed;
mod storage;
mod verified;

use crate::helpers::{Rng, in_full};
use crate::register::ByName;
use bulla::environment::{AesGcm, Cipher, Clock, Environment, Interrupt, SystemClock};
use bulla::keys::group::Subjects;
use bulla::keys::recipients::IdentityFile;
use bulla::{
    Durability, Entry, ErrorKind, Export, FindingKind, Init, Log, Options, Place, Producer, Result, Source,
    SourceId, SourceState, Step, Verify,
};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_testkit::fault::Faults;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// AES-GCM that refuses a block now and then, body or section, as a seed has it.
struct Refusing(Mutex<Rng>);

impl Cipher for Refusing {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        // What is kept of sources is sealed under a key of its own, and no block.
        if frame > 0 && self.0.lock().unwrap().below(5) == 0 {
            return Err(bulla::Error::unavailable("the cipher refuses, as the test wants it"));
        }
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

fn options() -> Options {
    Options::default().memory(64 << 20).block_size(4 << 10).writers(1).compression(0)
}

fn made(erasure: bool) -> Faults {
    let machine = Faults::new();
    let init = Init::default().erasure(erasure);
    init.create_in(&machine.store("audit"), &machine.store("audit.keys"), &environment(erasure)).unwrap();
    machine
}

fn environment(erasure: bool) -> Environment {
    let subjects = erasure.then(|| Arc::new(ByName) as Arc<dyn Subjects>);
    Environment { subjects, ..Environment::default() }
}

fn open_in(machine: &Faults, options: Options, environment: Environment) -> Result<Log> {
    let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
    Log::open_stepped(log, keys, options, environment)
}

fn open(machine: &Faults) -> Log {
    open_in(machine, options(), Environment::default()).unwrap()
}

fn id(number: u64) -> SourceId {
    let mut id = [0xa5; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    SourceId(id)
}

/// What the caller would know a record again by.
fn check(source: u64, end: u64) -> u64 {
    source.wrapping_mul(0x9e37_79b9) ^ end
}

fn append(producer: &mut Producer, source: &Source, number: u64, start: u64, end: u64) -> Result<()> {
    let location = format!("{number} {start} {end}");
    let subject = format!("user_{}", start % 3);
    let entry = Entry::new("read", &location).subject(&subject);
    producer.append_from(&entry, source, &Place { range: start..end, check: check(number, end) })
}

/// What each source's ranges are, with their checks.
type Held = BTreeMap<SourceId, Vec<(u64, u64, u64)>>;

fn held(states: &[SourceState]) -> Held {
    let ranges = |state: &SourceState| {
        let with_checks = state.ranges.iter().zip(&state.checks);
        with_checks.map(|(range, check)| (range.start, range.end, *check)).collect::<Vec<_>>()
    };
    states.iter().map(|state| (state.id, ranges(state))).collect()
}

/// Beginning and end of each range of a source.
fn ends(state: &SourceState) -> Vec<(u64, u64)> {
    state.ranges.iter().map(|range| (range.start, range.end)).collect()
}

fn read(machine: &Faults) -> Result<Vec<SourceState>> {
    bulla::sources_of(Arc::new(machine.store("audit")), &machine.store("audit.keys"))
}

fn without_state(machine: &Faults) -> Faults {
    let machine = machine.kill();
    machine.remove_file("audit.keys/sources.state");
    machine
}

/// What the entries of the log are of.
fn told_by_entries(machine: &Faults, erasure: bool) -> Held {
    let identity = String::from_utf8(machine.read("audit.keys/identity.age").unwrap()).unwrap();
    let export = Export::open_store(Arc::new(machine.store("audit"))).unwrap();
    let export = export.identity(Arc::new(IdentityFile::parse(&identity).unwrap()));
    let export = if erasure { export.group_keys(Arc::new(ByName)) } else { export };
    let mut out = Vec::new();
    export.run(&mut out).unwrap();
    let mut records = BTreeMap::<u64, Vec<(u64, u64)>>::new();
    for line in String::from_utf8(out).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let words = line["location"].as_str().unwrap().split(' ').map(|word| word.parse::<u64>().unwrap());
        let [number, start, end] = words.collect::<Vec<_>>()[..] else { panic!("{line}") };
        records.entry(number).or_default().push((start, end));
    }
    let of_source = |(number, mut records): (u64, Vec<(u64, u64)>)| {
        records.sort_unstable();
        let mut ranges = Vec::<(u64, u64, u64)>::new();
        for (start, end) in records {
            match ranges.last_mut() {
                Some(last) if last.1 == start => (last.1, last.2) = (end, check(number, end)),
                last => {
                    assert!(last.is_none_or(|last| last.1 < start), "a record is in the log twice");
                    ranges.push((start, end, check(number, end)));
                }
            }
        }
        (id(number), ranges)
    };
    records.into_iter().map(of_source).collect()
}

/// A life of a log with sources, in which blocks are lost. Each producer has records of all sources, so that those of one source come to
/// blocks in any order.
fn live(seed: u64) {
    let erasure = seed % 4 == 3;
    let machine = made(erasure);
    let mut rng = Rng(seed);
    let mut next = [0_u64; 4];
    let (mut gaps, mut sections) = (0, 0);
    let durability =
        [Durability::Group, Durability::Interval(Duration::from_secs(1)), Durability::Os][seed as usize % 3];
    for session in 0..3 {
        let cipher = Arc::new(Refusing(Mutex::new(Rng(rng.next()))));
        let environment = Environment { cipher, ..environment(erasure) };
        let log = open_in(&machine, options().durability(durability), environment).unwrap();
        assert_eq!(held(&log.sources().unwrap()), told_by_entries(&machine, erasure), "seed {seed}");
        let sources = [0, 1, 2, 3].map(|number| log.source(id(number), b"label").unwrap());
        let mut producers = [(); 2].map(|()| log.producer().unwrap());
        for _ in 0..60 {
            match rng.below(8) {
                0..=3 => {
                    for _ in 0..rng.below(20) {
                        let (source, producer) = (rng.below(4), rng.below(2));
                        let start = next[source as usize];
                        let end = start + 1 + rng.below(300);
                        let source_of = &sources[source as usize];
                        append(&mut producers[producer as usize], source_of, source, start, end).unwrap();
                        next[source as usize] = end;
                    }
                }
                4 => drop(producers[rng.below(2) as usize].flush().unwrap()),
                5 => drop(log.step(Step::Seal).unwrap()),
                6 => drop(log.step(Step::Commit).unwrap()),
                _ => drop(log.step(Step::Checkpoint).unwrap()),
            }
        }
        drop(producers);
        if rng.below(3) == 0 {
            // What is durable by now counts, and nothing else: the process dies.
            let left = machine.crash(rng.next());
            let reopened = open_in(&left, options(), self::environment(erasure)).unwrap();
            let sources = reopened.sources().unwrap();
            reopened.close().unwrap();
            assert_eq!(held(&sources), told_by_entries(&left, erasure), "seed {seed}");
        }
        let lost = log.lost();
        log.close().unwrap();
        gaps += lost;
        let expected = told_by_entries(&machine, erasure);
        sections += expected.len();
        for machine in [machine.kill(), without_state(&machine)] {
            assert_eq!(held(&read(&machine).unwrap()), expected, "seed {seed}, session {session}");
        }
    }
    assert!(gaps > 0 && sections > 0, "seed {seed}: {gaps} entries lost, {sections} sources");
    let report = Verify::open_store(Arc::new(machine.store("audit"))).unwrap().run().unwrap();
    assert!(report.ok, "{:#?}", report.findings);
}

#[test]
fn what_the_log_says_is_what_its_entries_are_of() {
    (0..if in_full() { 200 } else { 24 }).for_each(live);
}

/// A log that has threads, and several producers that read one source by turns.
#[test]
fn threads_that_share_a_source_leave_no_hole() {
    let machine = made(false);
    let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
    let log = Log::open_stores(log, keys, options().writers(2), Environment::default()).unwrap();
    let source = log.source(id(1), b"shared").unwrap();
    let next = Mutex::new(0_u64);
    let most = 20_000;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (mut producer, source, next) = (log.producer().unwrap(), source.clone(), &next);
            scope.spawn(move || {
                loop {
                    let start = {
                        let mut next = next.lock().unwrap();
                        *next += 7;
                        *next - 7
                    };
                    if start >= 7 * most {
                        break;
                    }
                    append(&mut producer, &source, 1, start, start + 7).unwrap();
                }
                producer.flush().unwrap().durable().unwrap();
                // Whoever is told that something is durable finds it among what the log holds.
            });
        }
    });
    let states = log.sources().unwrap();
    assert_eq!((ends(&states[0]), states[0].label.as_slice()), (vec![(0, 7 * most)], &b"shared"[..]));
    log.close().unwrap();
    assert_eq!(held(&read(&without_state(&machine)).unwrap()), told_by_entries(&machine, false));
}

/// Large rows have places, too, and what a receipt calls durable is told of.
#[test]
fn an_entry_of_any_size_has_its_place() {
    let machine = made(false);
    let log = open(&machine);
    let source = log.source(id(1), b"").unwrap();
    let mut producer = log.producer().unwrap();
    let mut start = 0;
    for payload in [0, 3_000, 4_000, 4_050, 4_090, 5_000, 100_000, 1 << 20, 1] {
        let payload = vec![7; payload];
        let entry = Entry::new("read", "x").payload(&payload);
        let place = Place { range: start..start + 5, check: start };
        match start % 2 {
            0 => producer.append_from(&entry, &source, &place).unwrap(),
            _ => producer.try_append_from(&entry, &source, &place).unwrap(),
        }
        start += 5;
    }
    log.flush().unwrap();
    let [state] = &log.sources().unwrap()[..] else { panic!("one source") };
    assert_eq!((ends(state), &state.checks[..]), (vec![(0, start)], &[start - 5][..]));
    assert_eq!(state.resume(0), (start, Some(start - 5)));
}

/// What was committed and not synced may be gone after a power cut: nobody is told of it before.
#[test]
fn what_is_not_durable_is_not_told() {
    for durability in [Durability::Interval(Duration::from_secs(1)), Durability::Os] {
        let machine = made(false);
        let log = open_in(&machine, options().durability(durability), Environment::default()).unwrap();
        let source = log.source(id(1), b"").unwrap();
        let mut producer = log.producer().unwrap();
        for round in 0..3 {
            append(&mut producer, &source, 1, 10 * round, 10 * (round + 1)).unwrap();
            let receipt = producer.flush().unwrap();
            assert!(log.step(Step::Seal).unwrap() && log.step(Step::Commit).unwrap());
            let before = log.sources().unwrap().first().map_or(0, |state| state.ranges[0].end);
            assert_eq!(before, 10 * round, "{durability:?}");
            log.step(Step::Sync).unwrap();
            receipt.durable().unwrap();
            assert_eq!(ends(&log.sources().unwrap()[0]), [(0, 10 * (round + 1))], "{durability:?}");
        }
    }
}

/// The commitments under the checkpoint.
fn commitments(machine: &Faults) -> Vec<Commitment> {
    let mut frames = Vec::new();
    let text = String::from_utf8(machine.read("audit/checkpoint").unwrap()).unwrap();
    let size = text.lines().nth(1).unwrap().parse::<u64>().unwrap();
    assert!(size < 256, "one bundle has them all");
    let bundle = machine.read(&format!("audit/{}", bulla_proof::tile::entries_path(0, size as u16))).unwrap();
    for entry in bulla_proof::tile::parse_bundle(&bundle, size as u16).unwrap() {
        frames.push(Commitment::decode(entry).unwrap());
    }
    frames
}

/// How long the section of each block is.
fn sections(machine: &Faults) -> Vec<u32> {
    let blocks = commitments(machine).into_iter().filter(|frame| frame.kind == FrameKind::Block);
    blocks.map(|frame| frame.sources_length).collect()
}

#[test]
fn a_block_without_sources_has_no_section_and_a_label_goes_with_one_block_alone() {
    let machine = made(false);
    let producer_of = |log: &Log, source: Option<&Source>, start: u64| {
        let mut producer = log.producer().unwrap();
        match source {
            Some(source) => append(&mut producer, source, 1, start, start + 1).unwrap(),
            None => producer.append(&Entry::new("read", "1 0 0")).unwrap(),
        }
        log.flush().unwrap();
    };
    let log = open(&machine);
    producer_of(&log, None, 0);
    let source = log.source(id(1), &[b'x'; 300]).unwrap();
    producer_of(&log, Some(&source), 0);
    producer_of(&log, Some(&source), 1);
    source.relabel(&[b'y'; 300]).unwrap();
    source.relabel(&[b'x'; 300]).unwrap();
    producer_of(&log, Some(&source), 2);
    assert_eq!(log.sources().unwrap()[0].label, [b'x'; 300]);
    assert_eq!(log.source(id(1), &[b'z'; 300]).unwrap().id(), source.id());
    producer_of(&log, Some(&source), 3);
    assert_eq!(log.sources().unwrap()[0].label, [b'z'; 300]);
    producer_of(&log, None, 0);
    log.close().unwrap();
    let short = 16 + 16 + 1 + 1 + 1 + 1 + 1 + 8 + 16;
    let lengths = sections(&machine);
    let long = |length: &u32| (300..400).contains(length);
    assert!(lengths[0] == 0 && lengths[5] == 0, "{lengths:?}");
    assert!(
        long(&lengths[1]) && lengths[2] <= short && long(&lengths[3]) && long(&lengths[4]),
        "{lengths:?}"
    );
    // Who says what was said last says nothing.
    let log = open(&machine);
    let source = log.source(id(1), &[b'z'; 300]).unwrap();
    producer_of(&log, Some(&source), 4);
    log.close().unwrap();
    assert!(sections(&machine)[6] <= short);
    for machine in [machine.kill(), without_state(&machine)] {
        let [state] = &read(&machine).unwrap()[..] else { panic!("one source") };
        assert_eq!((&state.label[..], ends(state)), (&[b'z'; 300][..], vec![(0, 5)]));
    }
}

#[test]
fn a_source_that_has_ended_is_forgotten() {
    let machine = made(false);
    let log = open(&machine);
    let mut producer = log.producer().unwrap();
    let [one, two] = [1, 2].map(|number| log.source(id(number), b"label").unwrap());
    append(&mut producer, &one, 1, 0, 5).unwrap();
    append(&mut producer, &two, 2, 0, 5).unwrap();
    log.flush().unwrap();
    one.end();
    one.end();
    let refused = append(&mut producer, &one, 1, 5, 6).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    assert_eq!(log.source(id(1), b"label").unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(log.sources().unwrap().len(), 2, "no block says so yet");
    // One of any other source, or of none, says it.
    producer.append(&Entry::new("read", "x")).unwrap();
    log.flush().unwrap();
    assert_eq!(held(&log.sources().unwrap()), held(&[state(2, 0..5)]));
    // Nothing of it is left, and it may come again.
    let again = log.source(id(1), b"again").unwrap();
    append(&mut producer, &again, 1, 100, 101).unwrap();
    assert_eq!(append(&mut producer, &one, 1, 5, 6).unwrap_err().kind(), ErrorKind::Refused);
    log.flush().unwrap();
    let expected = held(&[state(1, 100..101), state(2, 0..5)]);
    assert_eq!(held(&log.sources().unwrap()), expected);
    two.end();
    drop(producer);
    log.close().unwrap();
    // No block came any more.
    for machine in [machine.kill(), without_state(&machine)] {
        assert_eq!(held(&read(&machine).unwrap()), expected);
    }
}

fn state(number: u64, range: std::ops::Range<u64>) -> SourceState {
    let machine = made(false);
    let log = open(&machine);
    let mut producer = log.producer().unwrap();
    let source = log.source(id(number), b"").unwrap();
    append(&mut producer, &source, number, range.start, range.end).unwrap();
    log.flush().unwrap();
    log.sources().unwrap().remove(0)
}

/// Of what was staged before it, in whichever buffer, nothing comes after the block that says that a source has ended.
#[test]
fn an_end_comes_after_what_was_staged() {
    let machine = made(false);
    let log = open(&machine);
    let mut producers = (0..3).map(|_| log.producer().unwrap()).collect::<Vec<_>>();
    let source = log.source(id(1), b"label").unwrap();
    append(&mut producers[0], &source, 1, 0, 5).unwrap();
    source.end();
    log.flush().unwrap();
    assert_eq!(ends(&log.sources().unwrap()[0]), [(0, 5)]);
    producers[0].append(&Entry::new("read", "x")).unwrap();
    log.flush().unwrap();
    assert_eq!(log.sources().unwrap(), []);
    // One of which nothing was ever appended is forgotten like that, too.
    log.source(id(2), b"label").unwrap().end();
    producers[0].append(&Entry::new("read", "x")).unwrap();
    log.flush().unwrap();
    log.source(id(2), b"label").unwrap();
    // Some rows of it fill no buffer and wait, while blocks of others are sealed; all are sealed before any is durable.
    let source = log.source(id(3), b"label").unwrap();
    for record in 0..300 {
        append(&mut producers[1 + record as usize % 2], &source, 3, 10 * record, 10 * (record + 1)).unwrap();
    }
    source.end();
    for _ in 0..1_000 {
        producers[0].append(&Entry::new("read", "x")).unwrap();
        while log.step(Step::Seal).unwrap() {}
    }
    producers.into_iter().for_each(drop);
    while log.step(Step::Seal).unwrap() {}
    log.flush().unwrap();
    log.producer().unwrap().append(&Entry::new("read", "x")).unwrap();
    log.flush().unwrap();
    assert_eq!(log.sources().unwrap(), []);
    log.close().unwrap();
    assert_eq!(read(&without_state(&machine)).unwrap(), []);
}

#[test]
fn what_is_no_place_is_refused_and_takes_nothing() {
    let (machine, other) = (made(false), made(false));
    let (log, other) = (open(&machine), open(&other));
    let mut producer = log.producer().unwrap();
    let source = log.source(id(1), &[7; 4096]).unwrap();
    let foreign = other.source(id(1), b"").unwrap();
    assert_eq!(log.source(id(2), &[7; 4097]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(source.relabel(&[7; 4097]).unwrap_err().kind(), ErrorKind::Invalid);
    for (source, start, end) in [(&source, 5, 5), (&source, 5, 4), (&foreign, 4, 5)] {
        let refused = append(&mut producer, source, 1, start, end).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    log.flush().unwrap();
    assert_eq!((log.acknowledged(), log.sources().unwrap()), (0, vec![]));
    append(&mut producer, &source, 1, u64::MAX - 1, u64::MAX).unwrap();
    log.flush().unwrap();
    assert_eq!(ends(&log.sources().unwrap()[0]), [(u64::MAX - 1, u64::MAX)]);
    drop(producer);
    log.close().unwrap();
    // A source is one of a log as it was opened.
    let log = open(&machine);
    let mut producer = log.producer().unwrap();
    assert_eq!(append(&mut producer, &source, 1, 0, 1).unwrap_err().kind(), ErrorKind::Invalid);
}
