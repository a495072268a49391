//! What lies past the checkpoint: pending while a writer is at work, signed by nobody when none is. `unsigned.rs` has more.

use super::image::Image;
use super::layout::{Frame, HEAD, Layout};
use super::world::{Level, Made, World, short};
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn pending_beside_a_writer_and_unsigned_without_one() {
    let mut world = World::new(4);
    let log = world.open();
    world.block(&log, 3);
    log.flush().unwrap();
    world.block(&log, 2);
    world.gap(&log, 1);
    // An abandoned segment whose event no checkpoint covers yet.
    world.abandon(&log, 1);
    let live = |world: &World, made: &Made, level| {
        made.verify_store(Arc::new(world.machine.store("audit")), level).unwrap()
    };
    for level in Level::ALL {
        let report = live(&world, &world.made(), level);
        assert!(report.ok, "{:#?}", report.findings);
        assert_eq!((report.tree_size, report.entries, report.pending), (2, 3, 4));
        let made = world.made();
        let findings = made.findings(&made.image, level);
        assert!(
            findings.iter().any(|text| text.starts_with("unsigned-tail") && text.contains(" f2-5")),
            "{findings:#?}"
        );
    }
    // Before the event is even written: the segment was given up, the next one is begun.
    log.close().unwrap();
    let report = live(&world, &world.made(), Level::Identity);
    let kinds = report.findings.iter().map(short).collect::<Vec<_>>();
    assert!(report.ok && report.pending == 0, "{kinds:#?}");
}

/// Every byte of a tail that no checkpoint covers, with frames, a copy's worth of epochs and a torn end: whatever it
/// holds, it is told as signed by nobody, from where it begins, and as nothing else. Without keys no level vouches for what it
/// says. With the seal key it is a violation, but where a crash can have left it: that tears the last frame alone.
#[test]
fn every_byte_of_an_unsigned_tail() {
    let mut world = World::new(8);
    let log = world.open();
    world.block(&log, 3);
    log.flush().unwrap();
    world.gap(&log, 2);
    world.block(&log, 2);
    world.die(log, 2, 100);
    let made = world.made();
    let layout = Layout::of(&made.image);
    let tail = layout.counted().filter(|frame| frame.number >= 2).collect::<Vec<_>>();
    let [first, .., last] = tail[..] else { panic!("no tail") };
    let segment = format!("segments/{}", first.segment);
    let length = made.image.get(&segment).len();
    assert_eq!((first.number, last.number, length - last.end()), (2, 4, 100));
    let mut of_last = BTreeSet::new();
    for at in first.offset..length {
        let frame = tail.iter().find(|frame| (frame.offset..frame.end()).contains(&at));
        // A header has a checksum; whether a commitment is one depends on the byte; bodies and seals are not read.
        let frames = match frame.map(|frame| (frame, at - frame.offset)) {
            Some((frame, 0..24)) => vec![frame.number - first.number],
            Some((frame, 24..HEAD)) => vec![frame.number - first.number, 3],
            _ => vec![3],
        };
        let told_as = |kind: &str, frames: u64| {
            let Frame { segment, offset, number, .. } = first;
            format!("{kind} {segment}@{offset} f{number}-{}", number + frames.max(1) - 1)
        };
        for level in Level::ALL {
            let told = made.findings(&made.image.flipped(&segment, at, |byte| byte ^ (1 << (at % 8))), level);
            let kinds = match level >= Level::SealKey {
                false => &["unsigned-tail"][..],
                // A later group follows.
                true if at < last.offset => &["tail-damaged"],
                true => &["unsigned-tail", "tail-damaged"],
            };
            let expected = kinds.iter().flat_map(|kind| frames.iter().map(|&frames| [told_as(kind, frames)]));
            let expected = expected.collect::<Vec<_>>();
            assert!(
                expected.iter().any(|expected| told == *expected),
                "{at}, {level:?}: {told:?}, not {expected:?}"
            );
            if level == Level::SealKey && at >= last.offset {
                of_last.insert(told[0].split(' ').next().map(str::to_owned));
            }
        }
    }
    assert_eq!(of_last.len(), 2, "{of_last:?}");
}

#[test]
fn an_empty_log() {
    let world = World::new(5);
    let made = world.made();
    for level in Level::ALL {
        let report = made.verify(&made.image, level).unwrap();
        assert!(report.ok, "{:#?}", report.findings);
        assert_eq!((report.tree_size, report.entries, report.pending), (0, 0, 0));
    }
    // Files, but a checkpoint over none of them.
    let log = world.open();
    drop(log);
    let other = world.made();
    let mut image = other.image.with("checkpoint", made.image.get("checkpoint").to_vec());
    let findings = made.findings(&image, Level::Key);
    assert!(findings.contains(&"unsigned-tail 00000000000000000000.seg@0 f0-0".to_owned()), "{findings:#?}");
    assert!(findings.contains(&"unknown-file".to_owned()), "{findings:#?}");
    image = Image::default();
    for path in ["bulla.toml", "checkpoint"] {
        image.put(path, made.image.get(path).to_vec());
    }
    image.put("segments/00000000000000000007.seg", b"garbage".to_vec());
    let findings = made.findings(&image, Level::Key);
    assert_eq!(findings, ["unsigned-tail 00000000000000000007.seg@0 f0-0"]);
    assert_eq!(made.findings(&image, Level::SealKey), ["tail-damaged 00000000000000000007.seg@0 f0-0"]);
}

/// A log of one epoch whose frame is damaged is a damaged log, not one of other recipients.
#[test]
fn the_only_epoch_is_damaged() {
    let mut world = World::new(6);
    let log = world.open();
    world.block(&log, 3);
    log.close().unwrap();
    let made = world.made();
    let damaged = made.image.flipped("segments/00000000000000000000.seg", 200, |byte| byte ^ 1);
    let findings = made.findings(&damaged, Level::Identity);
    let segment = "00000000000000000000.seg";
    let at = super::layout::Layout::of(&made.image).frame(1).offset;
    let expected = [format!("body-damaged {segment}@0 f0-0"), format!("not-opened {segment}@{at} f1-1 e0-2")];
    assert_eq!(findings, expected);
}
