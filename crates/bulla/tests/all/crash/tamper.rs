//! A torn tail is what a crash leaves; anything else that is missing or changed is told as tampering.

use super::points::Image;
use super::scenario::{Scenario, Shape};
use super::world::{History, OpenWrap, Outcome};
use crate::helpers::in_full;
use crate::register::ByName;
use bulla::event::Event;
use bulla::segment::SegmentName;
use bulla::{Durability, ErrorKind, Export, Log, Severity, Step, Verify};
use bulla_testkit::fault::Faults;
use std::sync::Arc;
use std::time::Duration;

const SCENARIO: Scenario = Scenario { shape: Shape::Short, mode: Durability::Group, seed: 9 };

/// A log that was closed, and another future of it: what was written after it was opened again and killed.
fn log() -> (Faults, History) {
    let (machine, mut history) = (Faults::new(), SCENARIO.history());
    SCENARIO.run(&machine, &mut history).unwrap();
    (machine, history)
}

/// Appends an entry that is acknowledged, and published by no checkpoint yet; then nothing un-synced survives.
fn acknowledged_then_cut(machine: &Faults) -> Faults {
    let log = open(machine).unwrap();
    let mut producer = log.producer().unwrap();
    SCENARIO.history().with_entry("one", 0, |entry| producer.append(entry)).unwrap();
    let receipt = producer.flush().unwrap();
    while log.step(Step::Seal).unwrap() {}
    log.step(Step::Commit).unwrap();
    assert!(receipt.durable_within(Duration::ZERO).unwrap());
    machine.crash(0)
}

fn open(machine: &Faults) -> bulla::Result<Log> {
    let environment = super::world::environment(77, &Default::default());
    let (log, keys) = (machine.store("audit"), machine.store("audit.keys"));
    Log::open_stepped(Arc::new(log), Arc::new(keys), SCENARIO.options(), environment)
}

fn kind(machine: &Faults) -> ErrorKind {
    open(machine).expect_err("it must not open").kind()
}

/// The last segment's path and content.
fn last_segment(machine: &Faults) -> (String, Vec<u8>) {
    let name = |path: &String| SegmentName::parse(path.strip_prefix("audit/segments/")?);
    let path = machine.files().into_iter().filter(|path| name(path).is_some()).max_by_key(name).unwrap();
    let content = machine.read(&path).unwrap();
    (path, content)
}

/// Damages a byte of a file, or mends what this has damaged.
fn flip(machine: &Faults, path: &str, at: usize) {
    let mut content = machine.read(path).unwrap();
    content[at] ^= 0x21;
    machine.overwrite(path, &content);
}

/// A killed log whose last segment has groups above the checkpoint: frames that begin at these offsets.
fn unclosed() -> (Faults, History, Vec<usize>) {
    let (machine, mut history) = log();
    let before = last_segment(&machine).1.len();
    let log = open(&machine).unwrap();
    let mut producer = log.producer().unwrap();
    for index in 0..6 {
        history.with_entry("group", index, |entry| producer.append(entry)).unwrap();
        let receipt = producer.flush().unwrap();
        while log.step(Step::Seal).unwrap() {}
        log.step(Step::Commit).unwrap();
        assert!(receipt.durable_within(Duration::ZERO).unwrap());
        history.appended.insert("group".to_owned(), index + 1);
    }
    // The last group is torn by some tests; what came before it was acknowledged.
    history.written.insert("group".to_owned(), 5);
    let machine = machine.kill();
    let segment = last_segment(&machine).1;
    let mut offsets = Vec::new();
    let mut at = before;
    while at < segment.len() {
        offsets.push(at);
        at += 24 + 152 + 32 + u32::from_le_bytes(segment[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    assert_eq!(offsets.len(), 7, "an epoch and six groups");
    (machine, history, offsets)
}

/// Reading goes on where writing is refused; whether a verification with what the host keeps finds anything, and how many
/// entries are read.
fn reads(machine: &Faults) -> Outcome<(bool, u64)> {
    let store = Arc::new(machine.store("audit"));
    let state = machine.read("audit.keys/seal.state").ok_or("the seal state is gone")?;
    let verify = Verify::open_store(store.clone()).and_then(|verify| verify.seal_state(&state)?.run());
    let report = verify.map_err(|error| error.to_string())?;
    let export = Export::open_store(store)
        .unwrap()
        .identity(Arc::new(OpenWrap))
        .group_keys(Arc::new(ByName))
        .salvage(true);
    let exported = export.run(&mut Vec::new()).map_err(|error| error.to_string())?;
    Ok((report.ok, exported.entries))
}

#[test]
fn damage_before_a_later_group_is_tampering() {
    let (machine, _, offsets) = unclosed();
    let (path, content) = last_segment(&machine);
    for (index, &offset) in offsets[..offsets.len() - 1].iter().enumerate() {
        let end = offsets[index + 1];
        for at in [offset, offset + 21, offset + 24, offset + 60, offset + 180, end - 40, end - 1] {
            let machine = machine.kill();
            let mut damaged = content.clone();
            damaged[at] ^= 4;
            machine.overwrite(&path, &damaged);
            assert_eq!(kind(&machine), ErrorKind::Tampered, "offset {at}, in the frame at {offset}");
            let (ok, entries) = reads(&machine).unwrap();
            assert!(!ok && entries > 0, "a tampered log opens for reading");
        }
        let machine = machine.kill();
        let cut = [&content[..offset], &content[end..]].concat();
        machine.overwrite(&path, &cut);
        assert_eq!(kind(&machine), ErrorKind::Tampered, "the frame at {offset} was cut out");
    }
}

#[test]
fn a_torn_last_group_is_cut_kept_and_recorded() {
    let (machine, history, offsets) = unclosed();
    let (path, content) = last_segment(&machine);
    let last = *offsets.last().unwrap();
    for cut in [last + 1, last + 100, last + 200, content.len() - 1] {
        let machine = machine.kill();
        machine.overwrite(&path, &content[..cut]);
        let log = open(&machine).unwrap();
        let recovery = log.recovery();
        assert_eq!(recovery.frames, offsets.len() as u64 - 1);
        assert_eq!(recovery.torn_bytes, (cut - last) as u64);
        log.close().unwrap();
        assert_eq!(machine.read(&path).unwrap(), &content[..cut], "no byte is removed");
        let events = events(&machine);
        let name = path.rsplit('/').next().unwrap();
        let told = events.iter().find_map(|event| match event {
            Event::Recovered { segment, offset, length, sha256, .. } if segment == name => {
                Some((*offset as usize, *length as usize, sha256.clone()))
            }
            _ => None,
        });
        let (offset, length, sha256) = told.expect("an event tells of the torn tail");
        assert_eq!(offset + length, cut);
        assert_eq!(sha256, bulla_proof::sha256(&[&content[offset..cut]]).to_string());
        history.clone().check_closed(&machine).unwrap();
        // Whoever changes what was kept is found out.
        let mut changed = content[..cut].to_vec();
        changed[cut - 1] ^= 1;
        machine.overwrite(&path, &changed);
        assert!(!reads(&machine).unwrap().0);
    }
}

/// Every event in the log, found by its mark.
fn events(machine: &Faults) -> Vec<Event> {
    let mut events = Vec::new();
    for path in machine.files().iter().filter(|path| path.ends_with(".seg")) {
        let content = machine.read(path).unwrap();
        let starts = content.windows(10).enumerate().filter(|(_, window)| window == b"{\"event\":\"");
        for (start, _) in starts {
            let end = content[start..].iter().position(|byte| *byte == b'}').unwrap();
            events.extend(Event::decode(&content[start..=start + end]));
        }
    }
    events
}

#[test]
fn frames_missing_below_an_anchor_are_tampering() {
    let (machine, _) = log();
    let (path, content) = last_segment(&machine);
    for cut in [content.len() - 1, content.len() - 300, content.len() / 2, 1, 0] {
        let machine = machine.kill();
        machine.overwrite(&path, &content[..cut]);
        assert_eq!(kind(&machine), ErrorKind::Tampered, "cut to {cut}");
        assert!(!reads(&machine).unwrap().0);
    }
    let removed = machine.kill();
    removed.remove_file(&path);
    assert_eq!(kind(&removed), ErrorKind::Tampered);
    // The checkpoint put back to an older one, and frames cut down to it: the seal state remembers.
    let (before, history) = (Faults::new(), &mut SCENARIO.history());
    SCENARIO.init(&before, history).unwrap();
    SCENARIO.session(&before, history, 45).unwrap();
    let old = before.kill();
    SCENARIO.session(&before, history, 15).unwrap();
    let rolled = before.kill();
    for file in rolled.files().iter().filter(|file| file.starts_with("audit/")) {
        rolled.remove_file(file);
    }
    for file in old.files().iter().filter(|file| file.starts_with("audit/")) {
        rolled.overwrite(file, &old.read(file).unwrap());
    }
    assert_eq!(kind(&rolled), ErrorKind::Tampered, "an older copy of the log was restored");
    assert!(!reads(&rolled).unwrap().0, "the seal state says so");
    let report = Verify::open_store(Arc::new(rolled.store("audit"))).unwrap().run().unwrap();
    assert!(report.ok, "nothing in it says so: {:#?}", report.findings);
}

/// The numbers of what is written next follow from the last frame that is signed. So damage in its head is refused: mended later, the log would have signed
/// wrong ones.
#[test]
fn damage_in_what_is_signed_makes_no_wrong_number_of_what_is_written_next() {
    let (machine, history) = log();
    let (path, whole) = last_segment(&machine);
    let mut refused = 0;
    let step = if in_full() { 1 } else { 13 };
    for at in (0..whole.len()).step_by(step) {
        let machine = machine.kill();
        flip(&machine, &path, at);
        let Ok(log) = open(&machine) else {
            refused += 1;
            continue;
        };
        let mut producer = log.producer().unwrap();
        history.with_entry("next", 0, |entry| producer.append(entry)).unwrap();
        drop(producer);
        log.close().unwrap();
        flip(&machine, &path, at);
        let report = Verify::open_store(Arc::new(machine.store("audit"))).unwrap().run().unwrap();
        assert!(report.ok, "byte {at}: {:#?}", report.findings);
    }
    assert!((300..whole.len()).contains(&(refused * step)), "{refused} of {}", whole.len());
}

/// A segment with what is adopted begins with a copy of its epoch's frame. A copy of a damaged one would stay when that was mended, so the log is refused.
#[test]
fn a_damaged_epoch_is_not_copied() {
    let (machine, history) = log();
    let opened = open(&machine).unwrap();
    let mut producer = opened.producer().unwrap();
    let mut append = |name| {
        history.with_entry(name, 0, |entry| producer.append(entry)).unwrap();
        let _ = producer.flush().unwrap();
        while opened.step(Step::Seal).unwrap() {
            opened.step(Step::Commit).unwrap();
        }
    };
    append("signed");
    opened.step(Step::Checkpoint).unwrap();
    let signed = last_segment(&machine).1.len();
    append("adopted");
    let machine = machine.kill();
    let (path, whole) = last_segment(&machine);
    let (mut wrong, mut refused) = (Vec::new(), 0);
    let step = if in_full() { 1 } else { 13 };
    for at in (0..signed).step_by(step) {
        let machine = machine.kill();
        flip(&machine, &path, at);
        let Ok(log) = open(&machine) else {
            refused += 1;
            continue;
        };
        log.close().unwrap();
        flip(&machine, &path, at);
        let report = Verify::open_store(Arc::new(machine.store("audit"))).unwrap().run().unwrap();
        if !report.ok {
            wrong.push(at);
        }
    }
    assert!(refused * step > 100, "{refused} of {}", whole.len());
    // Nobody can tell any more what the seal of a frame below the seal state has to be.
    assert!(wrong.len() * step < 32 + step, "{wrong:?}");
}

#[test]
fn an_older_key_directory_signs_nothing_wrong() {
    let (machine, mut history) = (Faults::new(), SCENARIO.history());
    SCENARIO.init(&machine, &history).unwrap();
    let first = machine.read("audit.keys/seal.state").unwrap();
    SCENARIO.session(&machine, &mut history, 45).unwrap();
    let second = machine.read("audit.keys/seal.state").unwrap();
    SCENARIO.session(&machine, &mut history, 15).unwrap();
    history.check_closed(&machine).unwrap();
    for state in [first, second] {
        let restored = machine.kill();
        restored.overwrite("audit.keys/seal.state", &state);
        // It only knows less: the log is checked from there on, and goes on.
        let (opened, mut history) = (restored.kill(), history.fork(99));
        SCENARIO.session(&opened, &mut history, 8).unwrap();
        history.check_closed(&opened).unwrap();
        assert!(reads(&restored).unwrap().0, "what it knows is there");
        // Rewriting what follows an older state is still found out.
        let (path, mut content) = last_segment(&restored);
        let at = content.len() - 1;
        content[at] ^= 1;
        restored.overwrite(&path, &content);
        assert_eq!(kind(&restored), ErrorKind::Tampered);
        assert!(!reads(&restored).unwrap().0, "a seal does not hold");
    }
    let lost = machine.kill();
    lost.remove_file("audit.keys/seal.state");
    assert_eq!(kind(&lost), ErrorKind::NoKey);
    let mut damaged = machine.read("audit.keys/seal.state").unwrap();
    damaged[60] ^= 1;
    lost.overwrite("audit.keys/seal.state", &damaged);
    assert_eq!(kind(&lost), ErrorKind::Unavailable);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (machine, _) = log();
    let edited = machine.kill();
    let text = String::from_utf8(edited.read("audit/bulla.toml").unwrap()).unwrap();
    edited.overwrite("audit/bulla.toml", text.replacen("[log]", "# edited\n[log]", 1).as_bytes());
    assert_eq!(kind(&edited), ErrorKind::Refused);
    let settings = machine.kill();
    settings.overwrite("audit/bulla.toml", format!("{text}\n# edited\n").as_bytes());
    assert!(open(&settings).is_ok(), "[settings] may be edited");

    let log = open(&machine).unwrap();
    assert_eq!(kind(&machine), ErrorKind::Locked, "a second writer");
    drop(log);

    let (other, mut history) = (Faults::new(), SCENARIO.history());
    Scenario { seed: 10, ..SCENARIO }.run(&other, &mut history).unwrap();
    let mixed = machine.kill();
    for file in other.files().iter().filter(|file| file.starts_with("audit.keys/")) {
        mixed.overwrite(file, &other.read(file).unwrap());
    }
    assert_eq!(kind(&mixed), ErrorKind::Refused, "the keys of another log");
    mixed.overwrite("audit.keys/signing.key", &machine.read("audit.keys/signing.key").unwrap());
    assert_eq!(kind(&mixed), ErrorKind::Refused, "the seal state of another log");
    let report = Verify::open_store(Arc::new(mixed.store("audit"))).unwrap().run().unwrap();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    assert_eq!(violations.count(), 0, "the log itself is sound");
}

#[test]
fn groups_above_the_checkpoint_are_adopted() {
    let (machine, mut history, _) = unclosed();
    history.written.insert("group".to_owned(), 6);
    Image::of(&machine, &history, None).check(&SCENARIO).unwrap();
}

#[test]
fn frames_that_were_adopted_are_counted_right_however_often_recovery_was_cut_short() {
    let (machine, history, offsets) = unclosed();
    let (path, content) = last_segment(&machine);
    // Of the last group half is there, so that what was adopted lies before a torn tail, in a file that stays.
    machine.overwrite(&path, &content[..(offsets[6] + content.len()) / 2]);
    let adopted = |machine: &Faults| -> Vec<u64> {
        let told = events(machine).into_iter().filter_map(|event| match event {
            Event::Recovered { segment, offset, adopted, .. } => {
                assert_eq!(adopted, written_elsewhere(machine, &segment, offset as usize), "{segment}");
                Some((segment, adopted))
            }
            _ => None,
        });
        told.filter(|(segment, _)| path.ends_with(segment)).map(|(_, adopted)| adopted).collect()
    };
    let whole = machine.kill();
    let before = whole.operations();
    open(&whole).unwrap().close().unwrap();
    let operations = whole.operations() - before;
    assert_eq!(adopted(&whole), [6], "an epoch and five groups");
    let mut cut_short = 0;
    for stop in 0..operations {
        let mut machine = machine.kill();
        // The second try is cut short as well, at the same place or where its own operations end.
        for stop in [stop, stop, stop.saturating_sub(1)] {
            machine.stop_at(machine.operations() + stop);
            let opened = open(&machine).and_then(Log::close);
            cut_short += u32::from(opened.is_err());
            machine = machine.kill();
        }
        open(&machine).unwrap().close().unwrap();
        let told = adopted(&machine);
        assert!(!told.is_empty() && told.iter().all(|&adopted| adopted == 6), "stopped at {stop}: {told:?}");
        history.clone().check_closed(&machine).unwrap();
    }
    assert!(u64::from(cut_short) > 2 * operations, "{cut_short} of three times {operations}");
}

/// How many whole frames from `offset` of a segment on stand, byte for byte, in another one; the copy of an epoch's frame with which a
/// segment may begin is no frame of its own.
fn written_elsewhere(machine: &Faults, segment: &str, offset: usize) -> u64 {
    let path = format!("audit/segments/{segment}");
    let content = machine.read(&path).unwrap();
    let others = machine.files().into_iter().filter(|other| other.ends_with(".seg") && *other != path);
    let others = others.map(|other| machine.read(&other).unwrap()).collect::<Vec<_>>();
    let (mut count, mut at) = (0, offset);
    while let Some(length) = content.get(at + 8..at + 12) {
        let end = at + 24 + 152 + 32 + u32::from_le_bytes(length.try_into().unwrap()) as usize;
        let Some(frame) = content.get(at..end) else { break };
        if !others.iter().any(|other| other.windows(frame.len()).any(|window| window == frame)) {
            break;
        }
        let number = u64::from_le_bytes(frame[48..56].try_into().unwrap());
        count += u64::from(number >= SegmentName::parse(segment).unwrap().first);
        at = end;
    }
    count
}

#[test]
fn a_log_whose_init_was_killed_keeps_what_it_acknowledged() {
    let whole = Faults::new();
    SCENARIO.init(&whole, &SCENARIO.history()).unwrap();
    let mut logs = 0;
    for stop in 0..=whole.operations() {
        let machine = Faults::new();
        machine.stop_at(stop);
        let _ = SCENARIO.init(&machine, &SCENARIO.history());
        let killed = machine.kill();
        if open(&killed.kill()).is_err() {
            continue;
        }
        let mut history = SCENARIO.history();
        history.appended.insert("one".to_owned(), 1);
        history.written.insert("one".to_owned(), 1);
        let image = acknowledged_then_cut(&killed);
        Image::of(&image, &history, None).check(&SCENARIO).unwrap();
        logs += 1;
    }
    assert!(logs > 1, "only a log that was finished opens");
}
