//! What is missing before segments of a log that has lost a path: lost with that, or damaged here.

use super::world::World;
use crate::helpers::in_full;
use bulla::{ErrorKind, Step};
use bulla_testkit::fault::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A log that lost a path some time ago, and how many entries were acknowledged since then, in several segments, of which a checkpoint covers one.
fn rolled() -> (World, u64) {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::WriteFails);
    world.append_stepped(&log, 4..8);
    log.close().unwrap();
    let world = world.killed().named("backup");
    world.destroy("audit");
    world.configure(&[]).unwrap();
    let log = world.open_with_small_segments();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let told = acknowledged.clone();
    log.when_durable(move |entries| told.store(entries, Ordering::Relaxed));
    world.commit_sized(&log, 100, 100).unwrap();
    log.step(Step::Checkpoint).unwrap();
    (101..400).for_each(|number| world.commit_sized(&log, number, 100).unwrap());
    (world.killed(), acknowledged.load(Ordering::Relaxed))
}

/// A file with zeros in the place of each piece of so many bytes.
fn each_without(whole: &[u8], piece: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..whole.len()).step_by(piece).map(move |at| {
        let mut content = whole.to_vec();
        content[at..(at + piece).min(whole.len())].fill(0);
        content
    })
}

/// A session whose last segment, which is below this path, is damaged wherever it is cut short.
fn no_cut_of_what_is_signed_next_is_opened(world: &World, path: &str) {
    let log = world.open_stepped().unwrap();
    (200..206).for_each(|number| world.append_stepped(&log, number..number + 1));
    log.close().unwrap();
    let world = world.killed();
    let there = world.files_below(path);
    let (name, whole) = there.iter().rfind(|(name, _)| name.ends_with(".seg")).unwrap();
    for length in (0..whole.len()).step_by(if in_full() { 1 } else { 37 }) {
        let world = world.killed();
        world.machine.overwrite(&format!("{path}/{name}"), &whole[..length]);
        let error = world.open_stepped().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{length} of {}: {error}", whole.len());
    }
}

/// What fills a segment was durable before the next one was begun, so what is missing there is no write that failed.
#[test]
fn a_segment_that_was_full_is_damaged_where_its_end_is_missing() {
    let (world, acknowledged) = rolled();
    assert_eq!(acknowledged, 300);
    let there = world.files_below("backup");
    let mut segments = there.iter().filter(|(name, _)| name.ends_with(".seg")).collect::<Vec<_>>();
    // What the last one may have of a torn write is another matter.
    segments.pop();
    let (mut tried, mut refused) = (0, 0);
    for (name, whole) in segments {
        let (sectors, pages) = (each_without(whole, 512), each_without(whole, 4096));
        let step = if in_full() { 1 } else { 97 };
        let cut = (1..whole.len().min(8192)).step_by(step).map(|count| whole[..whole.len() - count].to_vec());
        for (index, content) in sectors.chain(pages).chain(cut).enumerate() {
            let what = format!("{name}, {index}, {} bytes", content.len());
            let world = world.killed();
            world.machine.overwrite(&format!("backup/{name}"), &content);
            tried += 1;
            match world.open_stepped() {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
                    refused += 1;
                }
                // The damage is below the anchors.
                Ok(log) => assert!(log.recovery().entries + 1 >= 300, "{what}: {:?}", log.recovery()),
            }
        }
    }
    assert!(tried > 150 && refused * 5 > tried * 4, "{refused} of {tried}");
}

/// What was signed after a path was said to be lost lay on none that is lost: where it is missing, it is damage, and what follows it is not passed over.
#[test]
fn what_was_signed_since_a_path_was_lost_was_not_lost_with_it() {
    let world = World::handed_on(&["/backup"]);
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 100..102);
    (102..104).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    let mut segments = world.files_below("backup").into_iter().filter(|(name, _)| name.ends_with(".seg"));
    let (name, whole) = segments.next_back().unwrap();
    let sectors = each_without(&whole, 512);
    let cut = (0..whole.len()).step_by(if in_full() { 1 } else { 61 }).map(|length| whole[..length].to_vec());
    let (mut tried, mut refused) = (0, 0);
    for content in sectors.chain(cut) {
        let world = world.killed();
        world.machine.overwrite(&format!("backup/{name}"), &content);
        tried += 1;
        match world.open_stepped() {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
                refused += 1;
            }
            // The end may be a write that tore, or was never begun: that is told.
            Ok(log) => {
                let recovery = log.recovery();
                let is_told = recovery.entries == 2 || recovery.torn_bytes > 0 || content.len() < whole.len();
                assert!(is_told, "{} of {}: {recovery:?}", content.len(), whole.len());
                log.close().unwrap();
                let left = world.salvaged();
                assert!((4..8).chain(100..102).all(|number| left.contains(&number)), "{left:?}");
            }
        }
    }
    assert!(tried > 30 && refused * 2 > tried, "{refused} of {tried}");
}

/// A write that tore on a path, was done again on another one, and lost with that, is no damage.
#[test]
fn a_frame_that_tore_before_the_lost_path_took_it_is_no_damage() {
    for fault in [Fault::WriteTearsAndFails, Fault::NoSpace, Fault::SyncFails] {
        for (before, on_second) in (1..12).flat_map(|before| [(before, 1), (before, 2)]) {
            let world = World::new(&["/backup"]);
            let log = world.open_stepped().unwrap();
            world.append_stepped(&log, 0..before);
            world.machine.fail_below("audit", fault);
            (before..before + on_second).for_each(|number| world.commit_stepped(&log, number).unwrap());
            world.machine.heal();
            world.machine.fail_below("backup", Fault::SyncFails);
            (20..23).for_each(|number| world.commit_stepped(&log, number).unwrap());
            for lost in [world.killed(), world.after_power_cut(before)] {
                lost.destroy("backup");
                lost.configure(&[]).unwrap();
                let what = format!("{fault:?}, {before}, {on_second}");
                let log = lost.open_stepped().map_err(|error| format!("{what}: {error}")).unwrap();
                lost.append_stepped(&log, 100..104);
                log.close().unwrap();
                let left = lost.salvaged();
                assert!((0..before).chain(100..104).all(|number| left.contains(&number)), "{what}: {left:?}");
            }
        }
    }
}

/// With one path left, too: what nobody has signed since the loss may pass for what lay on the other one.
#[test]
fn nothing_is_acknowledged_before_something_was_signed_without_the_lost_path() {
    let world = World::handed_on(&["/backup"]);
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let log = world.open_with_small_segments();
    let count = Arc::new(AtomicU64::new(0));
    let told = count.clone();
    log.when_durable(move |entries| told.store(entries, Ordering::Relaxed));
    (100..103).for_each(|number| world.commit_sized(&log, number, 30_000).unwrap());
    (103..106).for_each(|number| world.commit_stepped(&log, number).unwrap());
    assert_eq!(count.load(Ordering::Relaxed), 0);
    log.step(Step::Checkpoint).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 6);
    world.commit_stepped(&log, 106).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 7);
    let world = world.killed();
    let there = world.files_below("backup");
    let segments = there.iter().filter(|(name, _)| name.ends_with(".seg")).collect::<Vec<_>>();
    let (name, whole) = segments[segments.len() - 2];
    // Where that segment is cut short nothing behind it is passed over.
    for length in (0..whole.len()).step_by(if in_full() { 29 } else { 1009 }) {
        let world = world.killed();
        world.machine.overwrite(&format!("backup/{name}"), &whole[..length]);
        match world.open_stepped() {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Tampered, "{length} of {}: {error}", whole.len());
            }
            Ok(log) => log.close().unwrap(),
        }
        let left = world.salvaged();
        assert!((103..107).all(|number| left.contains(&number)), "{length} of {}: {left:?}", whole.len());
    }
}

/// Where what the lost path had was signed, and is given up, the numbers are given again.
#[test]
fn what_was_signed_since_a_part_was_given_up_was_not_lost_either() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    (4..60).for_each(|number| world.append_stepped(&log, number..number + 1));
    log.close().unwrap();
    let world = world.killed();
    world.destroy("backup");
    world.configure(&[]).unwrap();
    world.give_up().map(drop).unwrap();
    no_cut_of_what_is_signed_next_is_opened(&world, "audit");
}

/// So it is where less is left than when that began, since another path was lost while it was cut short.
#[test]
fn less_may_be_left_than_when_giving_a_part_up_began() {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    (4..40).for_each(|number| world.append_stepped(&log, number..number + 1));
    world.machine.fail_below("backup", Fault::NoSpace);
    (40..44).for_each(|number| world.append_stepped(&log, number..number + 1));
    log.close().unwrap();
    let world = world.killed();
    world.destroy("other");
    world.configure(&["/backup"]).unwrap();
    give_up_no_further_than_that_it_is_noted(&world);
    let world = world.killed();
    world.destroy("backup");
    world.configure(&[]).unwrap();
    world.go_on_giving_up().map(drop).unwrap();
    no_cut_of_what_is_signed_next_is_opened(&world, "audit");
}

/// A path that took frames of the attempt is lost before that is done: what the attempt had signed there is lost with it.
#[test]
fn what_an_attempt_had_signed_may_be_lost_before_it_is_done() {
    let made = World::new(&["/backup", "/other"]);
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 0..4);
    made.machine.fail_below("audit", Fault::NoSpace);
    made.append_stepped(&log, 4..8);
    log.close().unwrap();
    let made = made.killed();
    made.destroy("backup");
    made.configure(&["/other"]).unwrap();
    let step = if in_full() { 3 } else { 48 };
    let mut has_lost = 0;
    for (first, second) in (18..120).step_by(step).flat_map(|first| [(first, 53), (first, 56), (first, 59)]) {
        // It goes from the first path to the other one, and back.
        let begin = || {
            let world = made.killed();
            let now = world.machine.operations();
            world.machine.fail_at(now + first, Fault::WriteFails);
            world.machine.fail_at(now + first + second, Fault::WriteFails);
            (world, now)
        };
        let (world, now) = begin();
        if world.give_up().is_err() {
            continue;
        }
        let length = world.machine.operations() - now;
        let mut gone_on_with = None;
        for stop in length - 8..length {
            let (world, now) = begin();
            world.machine.stop_at(now + stop);
            let is_done = world.give_up().is_ok();
            let world = world.killed();
            if is_done || world.machine.read("audit.keys/restoring").is_none() {
                continue;
            }
            world.destroy("other");
            world.configure(&[]).unwrap();
            let what = format!("{first}, {second}, {stop}");
            if let Err(error) = world.go_on_giving_up() {
                // Its checkpoint was lost as well.
                assert!(error.to_string().contains("bulla restore --older-log"), "{what}: {error}");
                continue;
            }
            let lost =
                bulla::lost_frames_of(world.log()).map_err(|error| format!("{what}: {error}")).unwrap();
            has_lost += usize::from(!lost.frames.is_empty());
            gone_on_with = Some(world.killed());
            let log = world.open_stepped().map_err(|error| format!("{what}: {error}")).unwrap();
            log.close().unwrap();
        }
        if let Some(world) = gone_on_with {
            no_cut_of_what_is_signed_next_is_opened(&world, "audit");
        }
    }
    assert!(has_lost > 10, "{has_lost}");
}

/// An attempt of which nothing but its record is there.
fn give_up_no_further_than_that_it_is_noted(world: &World) {
    world.machine.stop_at(world.machine.operations() + 8);
    world.give_up().map(drop).unwrap_err();
    assert!(world.killed().machine.read("audit.keys/restoring").is_some());
}

/// The path is found: nothing is given up, and what lay on another one that is still lost counts as lost as before.
#[test]
fn an_attempt_to_give_a_part_up_that_comes_to_nothing_says_nothing_of_other_paths() {
    let world = World::new(&["/backup", "/other"]);
    world.hand_on(&["/backup", "/other"]);
    let world = world.killed();
    world.destroy("backup");
    world.configure(&["/other"]).unwrap();
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 12..14);
    log.close().unwrap();
    let lost = |world: &World| bulla::lost_frames_of(world.log()).unwrap();
    let before = lost(&world);
    assert!(!before.frames.is_empty());
    let world = world.killed();
    let other = world.files_below("other");
    world.destroy("other");
    world.configure(&[]).unwrap();
    give_up_no_further_than_that_it_is_noted(&world);
    let world = world.killed();
    world.put_back("other", &other);
    world.configure(&["/other"]).unwrap();
    world.take_up().map(drop).unwrap();
    assert_eq!(lost(&world), before);
    world.events().map(drop).unwrap();
}

/// Nothing tells how many frames were signed where `seal.state` cannot be read, and it is there again by the time that the log is opened.
#[test]
fn what_is_signed_since_a_path_was_lost_without_a_number_was_not_lost_with_it() {
    let world = World::handed_on(&["/backup"]);
    world.destroy("audit");
    let world = world.named("backup");
    let state = world.machine.read("audit.keys/seal.state").unwrap();
    world.machine.remove_file("audit.keys/seal.state");
    world.configure(&[]).unwrap();
    world.machine.overwrite("audit.keys/seal.state", &state);
    no_cut_of_what_is_signed_next_is_opened(&world, "backup");
}

/// An older seal state, as a key directory from a backup has, knows less of what was signed than the checkpoint.
#[test]
fn what_was_signed_when_a_path_was_lost_the_checkpoint_tells_too() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..6);
    world.machine.heal();
    let state = world.machine.read("audit.keys/seal.state").unwrap();
    world.append_stepped(&log, 6..8);
    world.machine.fail_below("backup", Fault::NoSpace);
    (8..10).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.heal();
    world.machine.fail_below("audit", Fault::NoSpace);
    (10..12).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    world.machine.overwrite("audit.keys/seal.state", &state);
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 200..201);
    log.close().unwrap();
    let left = world.salvaged();
    assert!((4..6).chain(200..201).all(|number| left.contains(&number)), "{left:?}");
}

/// Nor is it told of as lost: who has the storage took it away.
#[test]
fn what_is_removed_that_was_signed_since_is_not_told_of_as_lost() {
    let world = World::handed_on(&["/backup"]);
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let log = world.open_with_small_segments();
    world.append_stepped(&log, 100..102);
    (102..106).for_each(|number| world.commit_sized(&log, number, 70_000).unwrap());
    log.close().unwrap();
    let lost = |world: &World| bulla::lost_frames_of(world.log()).unwrap();
    let before = lost(&world);
    let signed_then = bulla::info_of(world.log()).unwrap().tree_size;
    assert!(before.frames.last().unwrap().end < signed_then && world.events().is_ok());
    let mut names = world.files_below("backup").into_keys().filter(|name| name.ends_with(".seg"));
    // The last one has events of which each is asked for.
    let name = names.next_back().unwrap();
    let world = world.killed();
    world.machine.overwrite(&format!("backup/{name}"), &[]);
    assert_eq!(lost(&world), before);
    assert_eq!(world.events().map(drop).unwrap_err().kind(), ErrorKind::Tampered);
}
