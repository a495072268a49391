//! Paths that are named again after they were lost, and what may not count as lost at all.

use super::world::World;
use crate::helpers::{in_full, in_turn};
use bulla::{Effect, ErrorKind, Log, Step};
use bulla_testkit::fault::Fault;
use std::collections::{BTreeMap, BTreeSet};

/// What the key directory remembers of a path.
fn fate(world: &World, id: &str) -> Option<String> {
    let known = String::from_utf8(world.machine.read("audit.keys/paths")?).unwrap();
    let line = known.lines().find(|line| line.starts_with(id))?;
    // Behind a colon stands how many frames were signed when a path was lost.
    Some(line.split([' ', ':']).nth(1)?.to_owned())
}

fn segments(files: &BTreeMap<String, Vec<u8>>) -> Vec<(&String, &Vec<u8>)> {
    files.iter().filter(|(name, _)| name.starts_with("segments/") && name.ends_with(".seg")).collect()
}

/// A log that went on on its backup path, where nobody has signed anything yet; `unsigned` frames lie before that on its own.
fn just_switched(erasure: bool, unsigned: u64, fault: Fault) -> World {
    let world = World::with_erasure(&["/backup"], erasure);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    (4..4 + unsigned).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.fail_below("audit", fault);
    (10..14).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.killed()
}

/// The log has gone on with other frames of the numbers that lie there: nobody had signed these, and they count for nothing.
#[test]
fn what_nobody_had_signed_on_a_path_that_is_found_is_no_hindrance() {
    for (erasure, unsigned, fault) in
        [(false, 0, Fault::SyncFails), (false, 1, Fault::WriteFails), (true, 0, Fault::WriteFails)]
    {
        let world = just_switched(erasure, unsigned, fault);
        let found = world.files_below("backup");
        assert!(!segments(&found).is_empty());
        world.destroy("backup");
        world.configure(&[]).unwrap();
        // As many frames as lie on the other one, and more.
        let log = world.open();
        world.append_each(&log, 100..120);
        log.close().unwrap();
        let salvaged = world.salvaged();

        world.put_back("backup", &found);
        world.configure(&["/backup"]).unwrap();
        let what = format!("{erasure}, {unsigned}, {fault:?}");
        assert_eq!(world.exported().map_err(|error| error.to_string()), Ok(()), "{what}");
        assert_eq!(world.salvaged(), salvaged, "{what}");
        // It is all there, for people.
        let there = world.files_below("backup");
        assert!(segments(&there).is_empty(), "{what}: {:?}", there.keys());
        for (name, content) in segments(&found) {
            assert_eq!(there.get(&name.replace("segments/", "set-aside/")), Some(content), "{what}");
        }
        // Once more changes nothing.
        world.configure(&["/backup"]).unwrap();
        let again = world.files_below("backup").into_iter().filter(|(name, _)| !name.ends_with(".lock"));
        assert_eq!(again.collect::<BTreeMap<_, _>>(), there);
        let log = world.open();
        world.append(&log, 120..124);
        log.close().unwrap();
        let entries = if unsigned == 0 { 0..4 } else { 0..5 };
        world.check_contains(entries.chain(100..124));
        // And lost again, as it has nothing of the log.
        world.destroy("backup");
        world.configure(&[]).unwrap();
        world.check_contains((0..4).chain(100..124));
    }
}

/// The same of the log's own directory.
#[test]
fn what_nobody_had_signed_in_the_own_directory_that_is_found_is_no_hindrance() {
    let world = World::with_erasure(&["/backup"], false);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    world.machine.heal();
    world.commit_stepped(&log, 8).unwrap();
    world.machine.fail_below("backup", Fault::SyncFails);
    (9..12).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    let found = world.files_below("audit");
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let log = world.open();
    world.append_each(&log, 100..120);
    log.close().unwrap();

    world.put_back("audit", &found);
    let world = world.named("audit");
    world.configure(&["/backup"]).unwrap();
    let log = world.open();
    world.append(&log, 120..124);
    log.close().unwrap();
    world.check_contains((0..8).chain(100..124));
    // What is signed lies where it did.
    let there = world.files_below("audit");
    assert!(!segments(&there).is_empty());
    assert!(there.keys().any(|name| name.starts_with("set-aside/")), "{:?}", there.keys());
}

/// What follows signed frames in their segment as well.
#[test]
fn what_nobody_had_signed_behind_signed_frames_is_no_hindrance() {
    for erasure in [false, true] {
        let world = just_switched(erasure, 1, Fault::WriteFails);
        let found = world.files_below("audit");
        world.destroy("audit");
        let world = world.named("backup");
        world.configure(&[]).unwrap();
        let log = world.open();
        world.append_each(&log, 100..120);
        log.close().unwrap();

        world.put_back("audit", &found);
        let world = world.named("audit");
        world.configure(&["/backup"]).unwrap();
        assert_eq!(world.exported().map_err(|error| error.to_string()), Ok(()), "{erasure}");
        let log = world.open();
        world.append(&log, 120..124);
        log.close().unwrap();
        world.check_contains((0..4).chain(100..124));
        // What is signed lies where it did, and the rest beside it.
        let there = world.files_below("audit");
        let cut = there.iter().find(|(name, _)| name.contains(".from-")).unwrap();
        let (name, offset) = cut.0.strip_prefix("set-aside/").unwrap().split_once(".from-").unwrap();
        let (before, offset) = (&found[&format!("segments/{name}")], offset.parse::<usize>().unwrap());
        assert!(there[&format!("segments/{name}")].starts_with(&before[..offset]), "{erasure}");
        assert_eq!(cut.1, &before[offset..], "{erasure}");
    }
}

/// A log whose opening dies on `path`, since the other one fails, just before it signs the tree over what it has written there: more than one segment.
fn opened_on(path: &str, failing: &str, log: &World) -> World {
    let dies_at = |operation| {
        let world = log.killed();
        world.machine.fail_below(failing, Fault::SyncFails);
        world.machine.stop_at(world.machine.operations() + operation);
        let opened = world.open_stepped().map(drop);
        let world = world.killed();
        drop(opened);
        let before = log.files_below(path);
        let is_new = |name: &String| name.starts_with("tile/entries") && !before.contains_key(name);
        world.files_below(path).keys().any(is_new).then_some(world)
    };
    (0..).find_map(dies_at).unwrap()
}

/// It is cut short at any operation, and a power cut may take what was not synced.
#[test]
fn setting_aside_that_is_cut_short_ends_as_if_it_had_not_been() {
    let paths = [("backup", "audit"), ("audit", "backup")];
    for ((path, others), entries) in paths.into_iter().flat_map(|paths| [(paths, 0), (paths, 20)]) {
        let made = match path {
            "backup" => {
                let log = World::new(&["/backup"]);
                let opened = log.open_stepped().unwrap();
                (0..4).for_each(|number| log.commit_stepped(&opened, number).unwrap());
                opened_on(path, others, &log.killed())
            }
            _ => opened_on(path, others, &just_switched(false, 9, Fault::WriteFails)),
        };
        let before = made.files_below(path);
        made.destroy(path);
        let made = made.named(others);
        made.configure(&[]).unwrap();
        let log = made.open_stepped().unwrap();
        (100..100 + entries).for_each(|number| made.append_stepped(&log, number..number + 1));
        log.close().unwrap();
        made.put_back(path, &before);
        let made = made.named("audit");
        let configured = made.killed();
        configured.configure(&["/backup"]).unwrap();
        // What is set aside may be there twice.
        let lies = |world: &World| {
            let files = world.files_below(path).into_iter();
            let files = files.filter(|(name, _)| !name.ends_with(".lock") && !name.ends_with(".tmp"));
            files.partition::<BTreeMap<_, _>, _>(|(name, _)| name.starts_with("set-aside/"))
        };
        let (aside, kept) = lies(&configured);
        let is_cut = aside.keys().any(|name| name.contains(".from-"));
        assert!(aside.len() > 1 && is_cut == (path == "audit"), "{path}, {entries}: {:?}", aside.keys());
        for operation in 0.. {
            let mut is_done = false;
            for power_cut in in_turn(&[None, Some(0), Some(1), Some(2)], operation + entries / 20) {
                let what = format!("{path}, {entries}, {operation}, {power_cut:?}");
                let world = made.killed();
                world.machine.stop_at(world.machine.operations() + operation);
                is_done = world.configure(&["/backup"]).is_ok();
                let world = match power_cut {
                    None => world.killed(),
                    Some(seed) => world.after_power_cut(seed),
                };
                world.configure(&["/backup"]).unwrap_or_else(|error| panic!("{what}: {error}"));
                let (now_aside, now_kept) = lies(&world);
                assert_eq!(now_kept, kept, "{what}");
                for (name, content) in &now_aside {
                    let of = aside.iter().find(|(of, _)| name.starts_with(*of));
                    assert_eq!(of.map(|(_, of)| of), Some(content), "{what}: {name}");
                }
                assert!(aside.keys().all(|name| now_aside.contains_key(name)), "{what}");
                let report = world.verify();
                assert!(report.ok, "{what}: {:#?}", report.findings);
                let log = world.open_stepped().unwrap();
                world.append_stepped(&log, 200..201);
                log.close().unwrap();
                world.check_contains((0..4).chain(100..100 + entries).chain(200..201));
            }
            if is_done {
                break;
            }
        }
    }
}

/// Names the backup path again, or the log's own directory; where it has other frames than the log that nobody has signed either, as the refusal says:
/// once the log was opened with the other path alone.
fn name_again(world: World, others: &'static str, what: &str) -> World {
    match world.configure(&["/backup"]) {
        Ok(()) => world,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
            assert!(error.to_string().contains("Open the log once with that alone"), "{what}: {error}");
            let world = world.named(others);
            world.open_stepped().and_then(Log::close).unwrap_or_else(|error| panic!("{what}: {error}"));
            let world = world.named("audit");
            world.configure(&["/backup"]).unwrap_or_else(|error| panic!("{what}: {error}"));
            world
        }
    }
}

/// The log is opened without the path, and written to, and that is cut short at any operation: nothing that was acknowledged since is lost where the path is
/// found, and nothing that lies there where nothing was written without it.
#[test]
fn what_was_acknowledged_without_a_path_outlasts_that_it_is_found() {
    let just_switched = [
        (false, 0, Fault::WriteFails),
        (false, 0, Fault::NoSpace),
        (false, 1, Fault::WriteFails),
        (true, 0, Fault::WriteFails),
        (true, 3, Fault::SyncFails),
    ]
    .map(|(erasure, unsigned, fault)| (just_switched(erasure, unsigned, fault), (erasure, unsigned, fault)));
    let (mut acknowledged, mut nothing_written) = (0, 0);
    for (made, how) in &just_switched {
        for (path, others) in [("backup", "audit"), ("audit", "backup")] {
            let base = made.killed();
            let found = base.files_below(path);
            base.destroy(path);
            let base = base.named(others);
            base.configure(&[]).unwrap();
            for operation in (0..).step_by(if in_full() { 1 } else { 5 }) {
                let mut is_done = false;
                for power_cut in [None, Some(operation % 8)] {
                    let what = format!("{path}, {how:?}, {operation}, {power_cut:?}");
                    let world = base.killed();
                    world.machine.stop_at(world.machine.operations() + operation);
                    let opened = world.open_stepped();
                    let mut kept = Vec::new();
                    if let Ok(log) = &opened {
                        kept.extend((100..106).filter(|number| world.commit_stepped(log, *number).is_ok()));
                    }
                    is_done = kept.len() == 6;
                    acknowledged += kept.len();
                    let after = match power_cut {
                        None => world.killed(),
                        Some(seed) => world.after_power_cut(seed),
                    };
                    drop(opened);
                    // Under whichever names: an opening that was cut short may have set some aside.
                    let written = |world: &World| {
                        let files = world.files_below(others).into_iter();
                        let files = files.filter(|(name, content)| {
                            name.starts_with("segments/") && !name.ends_with(".tmp") && !content.is_empty()
                        });
                        files.map(|(_, content)| content).collect::<BTreeSet<_>>()
                    };
                    if written(&after) == written(&base) {
                        kept.extend(10..14);
                        nothing_written += 1;
                    }
                    after.put_back(path, &found);
                    let after = name_again(after.named("audit"), others, &what);
                    let log = after.open_stepped().unwrap_or_else(|error| panic!("{what}: {error}"));
                    after.append_stepped(&log, 200..201);
                    log.close().unwrap();
                    let report = after.verify();
                    assert!(report.ok, "{what}: {:#?}", report.findings);
                    let there = after.salvaged();
                    kept.extend((0..4).chain([200]));
                    assert!(kept.iter().all(|number| there.contains(number)), "{what}: {kept:?}, {there:?}");
                }
                if is_done {
                    break;
                }
            }
        }
    }
    assert!(acknowledged > 30 && nothing_written > 30, "{acknowledged}, {nothing_written}");
}

/// A crash leaves of the frames of one write what was written, each in its place, and zeros for what was not.
#[test]
fn a_first_write_without_a_path_that_is_torn_anywhere_is_no_hindrance_once_it_is_found() {
    for (path, others, unsigned, fault) in [
        ("audit", "backup", 2, Fault::WriteFails),
        ("audit", "backup", 0, Fault::SyncFails),
        ("backup", "audit", 0, Fault::NoSpace),
        ("backup", "audit", 1, Fault::WriteFails),
    ] {
        let base = just_switched(false, unsigned, fault);
        let found = base.files_below(path);
        base.destroy(path);
        let base = base.named(others);
        base.configure(&[]).unwrap();
        // Two frames are signed; what is adopted behind them is durable under its new name.
        let adopted = base.killed().open_stepped().unwrap().recovery().frames;
        let name = format!("segments/{:020}.seg", 2 + adopted);
        let dies_at = |operation| {
            let world = base.killed();
            world.machine.stop_at(world.machine.operations() + operation);
            let opened = world.open_stepped();
            let log = opened.iter().try_for_each(|log| world.commit_stepped(log, 100));
            let world = world.killed();
            drop((opened, log));
            let content = world.files_below(others).remove(&name).filter(|content| !content.is_empty());
            content.map(|content| (world, content))
        };
        let (world, whole) = (0..).find_map(dies_at).unwrap();
        for kept in (0..=whole.len()).step_by(if in_full() { 1 } else { 13 }) {
            let what = format!("{path}, {unsigned}, {fault:?}, {kept} of {}", whole.len());
            let world = world.killed();
            let torn = [&whole[..kept], &vec![0; whole.len() - kept]].concat();
            world.machine.overwrite(&format!("{others}/{name}"), &torn);
            world.put_back(path, &found);
            let world = name_again(world.named("audit"), others, &what);
            let log = world.open_stepped().unwrap_or_else(|error| panic!("{what}: {error}"));
            world.append_stepped(&log, 200..201);
            log.close().unwrap();
            let report = world.verify();
            assert!(report.ok, "{what}: {:#?}", report.findings);
            let there = world.salvaged();
            assert!((0..4).chain([200]).all(|number| there.contains(&number)), "{what}: {there:?}");
        }
    }
}

/// The log has gone on without the path, and what it has acknowledged since nobody has signed.
#[test]
fn what_the_log_went_on_with_unsigned_is_not_given_up_for_a_path_that_is_found() {
    // The other directory has what is signed, or the one that is lost has it.
    for (path, others) in [("backup", "audit"), ("audit", "backup")] {
        for (unsigned, fault) in
            [(0, Fault::WriteFails), (0, Fault::NoSpace), (0, Fault::SyncFails), (2, Fault::WriteFails)]
        {
            let what = format!("{path}, {unsigned}, {fault:?}");
            let world = just_switched(false, unsigned, fault);
            let found = world.files_below(path);
            world.destroy(path);
            let world = world.named(others);
            world.configure(&[]).unwrap();
            let log = world.open_stepped().unwrap();
            // Whether or not somebody was told, it is durable.
            (100..103).for_each(|number| world.commit_stepped(&log, number).unwrap());
            let world = world.killed();
            drop(log);

            world.put_back(path, &found);
            // Nothing tells what it has acknowledged where that is damaged.
            let damaged = world.killed();
            let files = damaged.files_below(others);
            let (name, content) = segments(&files).pop().unwrap();
            let content = [&[!content[0]], &content[1..]].concat();
            damaged.machine.overwrite(&format!("{others}/{name}"), &content);
            match damaged.named("audit").configure(&["/backup"]) {
                // What is found has no more than what is signed.
                Ok(()) => assert_eq!((path, unsigned), ("audit", 0), "{what}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
                    assert!(error.to_string().contains("Mend that first"), "{what}: {error}");
                }
            }

            let world = name_again(world.named("audit"), others, &what);
            let log = world.open_stepped().unwrap_or_else(|error| panic!("{what}: {error}"));
            world.append_stepped(&log, 200..201);
            log.close().unwrap();
            let kept = if path == "backup" { 0..4 + unsigned } else { 0..4 };
            world.check_contains(kept.chain(100..103).chain(200..201));
        }
    }
}

/// The tree was written where the log went on, and the seal state speaks of it, and the writer died before it published the checkpoint. Whoever opened it next
/// wrote behind that on the first path, and died as well; then that is lost, and the log goes on from the tree on the other one.
#[test]
fn what_the_log_went_on_with_behind_a_tree_that_nobody_published_is_not_given_up_for_a_path_that_is_found() {
    for (unsigned, fault) in
        (0..3).flat_map(|unsigned| [(unsigned, Fault::WriteFails), (unsigned, Fault::SyncFails)])
    {
        let what = format!("{unsigned}, {fault:?}");
        let world = World::with_erasure(&["/backup"], false);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        (4..4 + unsigned).for_each(|number| world.commit_stepped(&log, number).unwrap());
        world.machine.fail_below("audit", fault);
        (10..14).for_each(|number| world.commit_stepped(&log, number).unwrap());
        world.machine.heal();
        for path in ["backup", "audit"] {
            world.machine.fail_below(&format!("{path}/checkpoint.tmp"), Fault::WriteFails);
        }
        log.step(Step::Checkpoint).unwrap_err();
        let world = world.killed();
        drop(log);
        // Whoever opens it next goes on with the first path, and dies behind the tree.
        let next = format!("segments/{:020}.seg", 9 + unsigned);
        let dies_at = |operation| {
            let opening = world.killed();
            opening.machine.fail_below("backup", fault);
            opening.machine.stop_at(opening.machine.operations() + operation);
            let opened = opening.open_stepped();
            let dead = opening.killed();
            drop(opened);
            dead.files_below("audit").get(&next).is_some_and(|segment| !segment.is_empty()).then_some(dead)
        };
        let world = (0..).find_map(dies_at).unwrap();
        let found = world.files_below("audit");
        world.destroy("audit");
        let world = world.named("backup");
        world.configure(&[]).unwrap();
        let log = world.open_stepped().unwrap();
        (100..103).for_each(|number| world.commit_stepped(&log, number).unwrap());
        let world = world.killed();
        drop(log);

        world.put_back("audit", &found);
        let world = name_again(world.named("audit"), "backup", &what);
        let log = world.open_stepped().unwrap_or_else(|error| panic!("{what}: {error}"));
        world.append_stepped(&log, 200..201);
        log.close().unwrap();
        world.check_contains((0..4 + unsigned).chain(10..14).chain(100..103).chain(200..201));
    }
}

/// Two paths are found, of which the log went on on the second one when the first one was lost, until that was lost as well, with nothing signed on either:
/// nothing tells which was later. Whoever knows names that one first.
#[test]
fn of_two_paths_that_are_found_the_one_that_was_written_to_last_is_named_first() {
    let made = World::with_erasure(&["/backup", "/other"], false);
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 0..4);
    made.machine.fail_below("audit", Fault::NoSpace);
    made.append_stepped(&log, 4..8);
    made.machine.heal();
    made.machine.fail_below("backup", Fault::WriteFails);
    (20..22).for_each(|number| made.commit_stepped(&log, number).unwrap());
    let made = made.killed();
    let earlier = made.files_below("other");
    made.destroy("other");
    made.configure(&["/backup"]).unwrap();
    made.machine.fail_below("backup", Fault::WriteFails);
    let log = made.open_stepped().unwrap();
    (100..103).for_each(|number| made.commit_stepped(&log, number).unwrap());
    let made = made.killed();
    let later = made.files_below("audit");
    made.destroy("audit");
    let made = made.named("backup");
    made.configure(&[]).unwrap();

    let refused = |world: &World, paths: &[&str]| {
        let before = world.files_below("audit");
        let error = world.configure(paths).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("have different frames of the number"), "{error}");
        let after = world.files_below("audit");
        assert_eq!(segments(&after), segments(&before));
    };
    // The earlier one first, and the later one then.
    let wrong = made.killed();
    wrong.put_back("other", &earlier);
    wrong.configure(&["/other"]).unwrap();
    wrong.put_back("audit", &later);
    refused(&wrong.named("audit"), &["/backup", "/other"]);
    // Both at once.
    made.put_back("audit", &later);
    made.put_back("other", &earlier);
    let made = made.named("audit");
    refused(&made, &["/backup", "/other"]);
    made.configure(&["/backup"]).unwrap();
    refused(&made, &["/backup", "/other"]);
    made.open_stepped().and_then(Log::close).unwrap();
    made.configure(&["/backup", "/other"]).unwrap();
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 200..201);
    log.close().unwrap();
    made.check_contains((0..8).chain(100..103).chain(200..201));
}

/// The path that is found has the last frame of those that the log has adopted elsewhere, and no other: a segment is counted up to where the next one
/// begins.
#[test]
fn a_copy_of_what_was_adopted_elsewhere_on_a_path_that_is_found_is_no_hindrance() {
    for unsigned in 0..3 {
        let world = World::with_erasure(&["/backup"], false);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        (4..4 + unsigned).for_each(|number| world.commit_stepped(&log, number).unwrap());
        world.machine.fail_below("audit", Fault::SyncFails);
        world.commit_stepped(&log, 10).unwrap();
        let world = world.killed();
        drop(log);
        let found = world.files_below("backup");
        world.destroy("backup");
        world.configure(&[]).unwrap();
        world.open_stepped().unwrap().close().unwrap();
        world.check_contains((0..4 + unsigned).chain([10]));
        world.put_back("backup", &found);
        let damaged = world.killed();
        world.configure(&["/backup"]).unwrap();
        let report = world.verify();
        assert!(report.ok, "{unsigned}: {:#?}", report.findings);

        // It stays where the other one is damaged: nothing else has that frame.
        let (name, _) = *segments(&found).last().unwrap();
        let of_others = world.files_below("audit");
        let (holding, mut content) = of_others.into_iter().rfind(|(holding, _)| holding < name).unwrap();
        if unsigned > 0 {
            let body = content.len() - 100;
            content[body] ^= 1;
            damaged.machine.overwrite(&format!("audit/{holding}"), &content);
            damaged.configure(&["/backup"]).unwrap();
            assert_eq!(segments(&damaged.files_below("backup")), segments(&found), "{unsigned}");
            assert_eq!(damaged.salvaged(), (0..4 + unsigned).chain([10]).collect(), "{unsigned}");
        }
    }
}

/// Nothing would set it aside later.
#[test]
fn a_path_that_is_found_while_the_others_are_damaged_is_no_hindrance_once_that_is_mended() {
    let world = just_switched(false, 1, Fault::WriteFails);
    let found = world.files_below("backup");
    world.destroy("backup");
    world.configure(&[]).unwrap();
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 100..104);
    log.close().unwrap();
    let files = world.files_below("audit");
    let bundles = files.iter().filter(|(name, _)| name.starts_with("tile/entries/000.p/"));
    let width = |name: &str| name.rsplit('/').next().unwrap().parse::<u64>().unwrap();
    let (name, content) = bundles.max_by_key(|(name, _)| width(name)).unwrap();
    assert!(world.machine.remove_file(&format!("audit/{name}")));
    world.put_back("backup", &found);
    let changed = world.configure(&["/backup"]);
    world.machine.overwrite(&format!("audit/{name}"), content);
    if changed.is_err() {
        world.configure(&["/backup"]).unwrap();
    }
    world.check_contains((0..5).chain(100..104));
}

/// What is set aside is there after a power cut that takes all that was not synced.
#[test]
fn what_is_set_aside_outlasts_a_power_cut() {
    for (path, others) in [("backup", "audit"), ("audit", "backup")] {
        let made = just_switched(false, 1, Fault::WriteFails);
        let found = made.files_below(path);
        made.destroy(path);
        let made = made.named(others);
        made.configure(&[]).unwrap();
        let log = made.open_stepped().unwrap();
        (100..120).for_each(|number| made.append_stepped(&log, number..number + 1));
        log.close().unwrap();
        made.put_back(path, &found);
        let made = made.named("audit");
        made.configure(&["/backup"]).unwrap();
        let aside = |world: &World| {
            let files = world.files_below(path).into_iter();
            files.filter(|(name, _)| name.starts_with("set-aside/")).collect::<BTreeMap<_, _>>()
        };
        let before = aside(&made);
        assert!(!before.is_empty());
        for seed in 0..8 {
            let after = aside(&made.after_power_cut(seed));
            assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{path}, {seed}");
            assert_eq!(after, before, "{path}, {seed}");
        }
    }
}

/// What a crash left behind there, an event on another path explains by its length and its digest.
#[test]
fn what_an_event_explains_stays_as_it_is() {
    let world = World::with_erasure(&["/backup"], false);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    (4..6).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    let files = world.files_below("audit");
    let (name, content) = segments(&files).pop().unwrap();
    world.machine.overwrite(&format!("audit/{name}"), &[&content[..], &[0; 777]].concat());
    world.machine.fail_below("audit", Fault::NoSpace);
    let log = world.open();
    world.append_each(&log, 10..14);
    log.close().unwrap();
    world.machine.heal();
    world.check_contains((0..6).chain(10..14));
    let found = world.files_below("audit");
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let log = world.open();
    world.append_each(&log, 100..120);
    log.close().unwrap();

    world.put_back("audit", &found);
    let world = world.named("audit");
    world.configure(&["/backup"]).unwrap();
    assert_eq!(segments(&world.files_below("audit")), segments(&found));
    world.check_contains((0..6).chain(10..14).chain(100..120));
}

/// The path in use is lost, and the others lack what is signed: nobody goes on without it. Once it is found all of it counts.
#[test]
fn a_path_that_is_found_with_what_is_signed_there_alone_is_taken_up_with_all_of_it() {
    let world = World::with_erasure(&["/backup"], false);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    (8..10).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    drop(log);
    let found = world.files_below("backup");
    world.destroy("backup");
    world.configure(&[]).unwrap();
    assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered);
    world.put_back("backup", &found);
    world.configure(&["/backup"]).unwrap();
    assert_eq!(world.files_below("backup"), found);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 10..12);
    log.close().unwrap();
    world.check_contains(0..12);
}

/// Frames that a later checkpoint on another path covers, and those that can still be taken up, stay, though no checkpoint on that path covers them.
#[test]
fn what_is_signed_or_may_be_taken_up_is_not_set_aside() {
    // Not gone on without it.
    let world = just_switched(false, 1, Fault::WriteFails);
    let found = world.files_below("backup");
    world.destroy("backup");
    world.configure(&[]).unwrap();
    world.put_back("backup", &found);
    world.configure(&["/backup"]).unwrap();
    assert_eq!(world.files_below("backup"), found);
    let log = world.open();
    world.append(&log, 20..24);
    log.close().unwrap();
    world.check_contains((0..5).chain(10..14).chain(20..24));

    // Signed on the next path alone.
    let world = World::with_erasure(&["/backup", "/other"], false);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    (4..8).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_stepped(&log, 8..12);
    log.close().unwrap();
    world.machine.heal();
    let found = world.files_below("backup");
    world.destroy("backup");
    world.configure(&["/other"]).unwrap();
    let log = world.open();
    world.append(&log, 12..16);
    log.close().unwrap();
    world.put_back("backup", &found);
    world.configure(&["/backup", "/other"]).unwrap();
    assert_eq!(segments(&world.files_below("backup")), segments(&found));
    world.check_contains(0..16);
}

/// It may tell where the segment ends behind which something lies, and then that is explained.
#[test]
fn a_damaged_event_has_nothing_cut_off_that_it_may_explain() {
    let made = just_switched(false, 1, Fault::WriteFails);
    let found = made.files_below("audit");
    made.destroy("audit");
    let made = made.named("backup");
    made.configure(&[]).unwrap();
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 100..104);
    log.close().unwrap();
    made.put_back("audit", &found);
    let made = made.named("audit");
    let there = made.files_below("backup");
    let event = br#"{"event":"#;
    let mut damaged = 0;
    for (name, whole) in segments(&there) {
        let events = whole.windows(event.len()).enumerate().filter(|(_, window)| window == event);
        for (at, _) in events {
            let world = made.killed();
            let mut content = whole.clone();
            content[at] ^= 1;
            world.machine.overwrite(&format!("backup/{name}"), &content);
            match world.configure(&["/backup"]) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Tampered, "{name} at {at}: {error}");
                    assert!(error.to_string().contains("Mend that first"), "{name} at {at}: {error}");
                    assert_eq!(segments(&world.files_below("audit")), segments(&found), "{name} at {at}");
                    damaged += 1;
                }
                // Nothing counts in it.
                Ok(()) => assert!(world.verify().ok, "{name} at {at}"),
            }
            world.machine.overwrite(&format!("backup/{name}"), whole);
            world.configure(&["/backup"]).unwrap();
            world.check_contains((0..4).chain(100..104));
        }
    }
    assert!(damaged > 1, "{damaged}");
}

/// Other paths have a frame there as well, and it is damaged: whatever precedes it, the copy that is whole stays.
#[test]
fn the_only_whole_copy_of_a_frame_stays_behind_a_damaged_one() {
    let made = just_switched(false, 0, Fault::NoSpace);
    let found = made.files_below("backup");
    for (name, content) in segments(&found) {
        if !made.files_below("audit").contains_key(name) {
            made.machine.overwrite(&format!("audit/{name}"), content);
        }
    }
    made.destroy("backup");
    made.configure(&[]).unwrap();
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 50..51);
    log.close().unwrap();
    let (name, whole) = *segments(&found).last().unwrap();
    let stays = |byte: usize, of_others: Option<usize>| {
        let world = made.killed();
        let back = of_others.unwrap_or(60);
        let tail = &whole[whole.len() - back..whole.len() - back + 40];
        for (other, mut content) in world.files_below("audit") {
            let at = content.windows(tail.len()).position(|window| window == tail);
            if let Some(at) = at.filter(|_| of_others.is_some() && other.ends_with(".seg")) {
                content[at + 20] ^= 1;
                world.machine.overwrite(&format!("audit/{other}"), &content);
            }
        }
        world.put_back("backup", &found);
        let mut content = whole.clone();
        content[byte] ^= 0x20;
        world.machine.overwrite(&format!("backup/{name}"), &content);
        world.configure(&["/backup"]).unwrap();
        world.files_below("backup").contains_key(name)
    };
    for byte in [60, 300, 450] {
        for back in (60..240).step_by(40) {
            assert!(stays(byte, Some(back)), "{byte}, {back}");
        }
    }
    // Where they have all of it the copy would end the segment that has it.
    assert!(!stays(60, None) && !stays(450, None));
}

/// A log whose `backup` is found, which alone has frames that are signed on the next path, behind ones that another path has as well. What lies on it.
fn found_with_what_it_alone_has() -> (World, BTreeMap<String, Vec<u8>>) {
    let world = World::with_erasure(&["/backup", "/other"], false);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::SyncFails);
    (4..8).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_stepped(&log, 8..12);
    log.close().unwrap();
    world.machine.heal();
    let found = world.files_below("backup");
    world.destroy("backup");
    world.configure(&["/other"]).unwrap();
    let log = world.open();
    world.append(&log, 12..16);
    log.close().unwrap();
    (world, found)
}

/// What other paths have of a segment is damaged there, so nothing tells what it is; what is behind lies nowhere else.
#[test]
fn a_damaged_frame_has_nothing_behind_it_set_aside_that_no_other_path_has() {
    let (made, found) = found_with_what_it_alone_has();
    let segments = segments(&found);
    let (name, whole) = segments[0];
    let mut damaged = 0;
    for byte in (0..whole.len().min(1500)).step_by(7) {
        let world = made.killed();
        world.put_back("backup", &found);
        let mut content = whole.clone();
        content[byte] ^= 0x20;
        world.machine.overwrite(&format!("backup/{name}"), &content);
        world.configure(&["/backup", "/other"]).unwrap();
        assert!(world.files_below("backup").get(name) == Some(&content), "{byte}");
        damaged += usize::from(!world.verify().ok);
        world.machine.overwrite(&format!("backup/{name}"), whole);
        world.check_contains(0..16);
    }
    assert!(damaged > 50, "{damaged}");
}

/// What is noted of paths is noted before the setting is changed: a change that fails anywhere behind the note says so, and is finished by the same
/// command.
#[test]
fn a_change_that_fails_behind_the_note_says_what_is_noted() {
    let made = World::handed_on(&["/backup", "/other"]);
    let (id, found) = (made.id("backup"), made.files_below("backup"));
    made.destroy("backup");
    for (paths, noted) in [
        (&["/other"][..], "backup counts as lost"),
        (&["/backup", "/other"], "backup is a path of the log again"),
    ] {
        if paths.len() > 1 {
            made.put_back("backup", &found);
        }
        let (before, mut behind) = (fate(&made, &id), 0);
        for fault in [Fault::NoSpace, Fault::SyncFails, Fault::NamePersistsButFails] {
            for operation in 0.. {
                let world = made.killed();
                let failing = world.machine.operations() + operation;
                world.machine.fail_at(failing, fault);
                let changed = world.configure(paths);
                if world.machine.operations() <= failing {
                    changed.unwrap();
                    break;
                }
                if let Err(error) = changed
                    && fate(&world, &id) != before
                {
                    behind += 1;
                    let what = format!("{fault:?}, {operation}: {error}");
                    assert_eq!(error.effect(), Some(Effect::Unknown), "{what}");
                    assert!(
                        what.contains(noted) && what.contains("the same command again sets the rest"),
                        "{what}"
                    );
                }
                world.machine.heal();
                world.configure(paths).unwrap_or_else(|error| panic!("{fault:?}, {operation}: {error}"));
                assert_ne!(fate(&world, &id), before, "{fault:?}, {operation}");
            }
        }
        assert!(behind > 3, "{behind}");
        made.configure(paths).unwrap();
    }
    made.check(12);
}

/// The key directory would note a loss that is none, and what is taken away from then on would pass for it.
#[test]
fn a_path_that_is_there_cannot_count_as_lost() {
    let world = World::handed_on(&["/backup"]);
    let known = world.machine.read("audit.keys/paths").unwrap();
    let world = world.named("backup");
    let error = world.configure(&[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("audit, the log's own directory, is there"), "{error}");
    assert_eq!(world.machine.read("audit.keys/paths").unwrap(), known);
    world.destroy("audit");
    world.configure(&[]).unwrap();
    assert!(String::from_utf8(world.machine.read("audit.keys/paths").unwrap()).unwrap().contains(" lost:"));
}

/// Whoever has the storage of the log's own directory would have the key directory note a loss by a value that is set already.
#[test]
fn the_own_directory_under_another_id_has_nothing_count_as_lost() {
    let world = World::handed_on(&["/backup"]);
    let known = world.machine.read("audit.keys/paths").unwrap();
    let of_backup = String::from_utf8(world.machine.read("backup/path").unwrap()).unwrap();
    let made_up = of_backup.replace(&world.id("backup"), &"cd".repeat(16));
    for planted in [&made_up, &of_backup] {
        world.machine.overwrite("audit/path", planted.as_bytes());
        let error = world.configure(&["/backup"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("Nothing was changed"), "{error}");
        assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered);
        assert_eq!(world.exported().unwrap_err().kind(), ErrorKind::Tampered);
        assert_eq!(world.machine.read("audit.keys/paths").unwrap(), known);
    }
    // Nor where that path is left out.
    let error = world.configure(&[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(world.machine.read("audit.keys/paths").unwrap(), known);
    assert!(world.machine.remove_file("audit/path"));
    world.configure(&["/backup"]).unwrap();
    world.check(8);
}

/// Else what lay there would be missing for good, and nothing that rests on events be answered any more.
#[test]
fn a_path_that_was_emptied_counts_as_lost_once_it_is_left_out() {
    let world = World::handed_on(&["/backup", "/other"]);
    let id = world.id("backup");
    assert_eq!(fate(&world, &id).as_deref(), Some("left"));
    for name in world.files_below("backup").into_keys().filter(|name| name.starts_with("segments/")) {
        assert!(world.machine.remove_file(&format!("backup/{name}")));
    }
    world.configure(&["/other"]).unwrap();
    assert_eq!(fate(&world, &id).as_deref(), Some("lost"));
    let log = world.open();
    world.append(&log, 12..16);
    log.close().unwrap();
    assert!(world.salvaged().contains(&15));
}

/// With it no frame can be lost, so that no hole has to do with it.
#[test]
fn a_path_that_was_tried_and_took_nothing_is_as_spare_as_before() {
    for (file, fault) in [("bulla.toml.tmp", Fault::NoSpace), ("checkpoint.tmp", Fault::WriteFails)] {
        let world = World::with_erasure(&["/backup"], false);
        let id = world.id("backup");
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.machine.fail_below(&format!("backup/{file}"), fault);
        world.machine.fail_below("audit/segments", Fault::NoSpace);
        world.commit_stepped(&log, 4).unwrap_err();
        drop(log);
        assert!(segments(&world.files_below("backup")).is_empty());
        assert_eq!(fate(&world, &id).as_deref(), Some("spare"), "{file}");
        // It stays so with the next checkpoint.
        let world = world.killed();
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 5..8);
        log.step(Step::Checkpoint).unwrap();
        log.close().unwrap();
        assert_eq!(fate(&world, &id).as_deref(), Some("spare"), "{file}");
        world.destroy("backup");
        world.configure(&[]).unwrap();
        assert_eq!(fate(&world, &id), None, "{file}");
    }
}

/// It can be read, which is all that is asked of it.
#[test]
fn what_a_path_has_beyond_the_tree_and_does_not_let_go_of_keeps_no_log_from_being_opened() {
    let world = World::with_erasure(&["/backup", "/other"], false);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_stepped(&log, 8..12);
    log.close().unwrap();
    world.machine.heal();
    world.destroy("backup");
    world.configure(&["/other"]).unwrap();
    let tile = "audit/tile/0/000.p/199";
    world.machine.overwrite(tile, &[0; 32 * 199]);
    world.machine.fail_below(tile, Fault::NameFails);
    let log = world.open();
    world.append(&log, 12..16);
    log.close().unwrap();
    assert!(world.machine.read(tile).is_some());
    assert!(world.salvaged().contains(&15));
}
