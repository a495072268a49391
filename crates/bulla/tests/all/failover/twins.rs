//! What somebody who holds the disk of a path can put there: a segment by the name of another path's, the beginning of one, the checkpoint
//! that all can read, a damaged tile, a lock. None of it hides what another path has, and none moves the log without a word.

use super::world::World;
use bulla::store::Store;
use bulla::{ErrorKind, FindingKind, Severity};
use bulla_testkit::fault::Fault;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A log that has left `audit` and `backup`, in this order, and is written on `other`: 20 entries on each, in a frame of its own.
fn moved_twice() -> World {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open();
    world.append_each(&log, 0..20);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 20..40);
    log.flush().unwrap();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_each(&log, 40..60);
    log.close().unwrap();
    world.machine.heal();
    world.check(60);
    world
}

fn copy_checkpoint(world: &World, from: &str, to: &str) {
    let checkpoint = world.machine.read(&format!("{from}/checkpoint")).unwrap();
    world.machine.overwrite(&format!("{to}/checkpoint"), &checkpoint);
}

/// The name of the longest segment on a path.
fn segment_of(world: &World, path: &str) -> String {
    let segments = world.files_below(path).into_iter().filter(|(name, _)| name.starts_with("segments/"));
    segments.max_by_key(|(_, content)| content.len()).unwrap().0
}

/// What is told of the paths of a log that is opened, and of 4 entries that are appended.
fn told_when_opened(world: &mut World, first: u64) -> Vec<String> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    world.tell_of_paths(move |what| tell.lock().unwrap().push(what.to_owned()));
    let log = world.open();
    world.append(&log, first..first + 4);
    log.close().unwrap();
    world.tell_of_paths(|_| ());
    let told = told.lock().unwrap();
    told.clone()
}

/// That a segment is told to be on two paths, that nothing of the log is missing all the same, and that nobody writes on.
fn hides_nothing(world: &World, places: [&str; 2], case: &str) {
    let report = world.verify();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let violations = violations.collect::<Vec<_>>();
    assert!(
        violations.len() == 1
            && violations[0].kind == FindingKind::PathMismatch
            && places.iter().all(|place| violations[0].detail.contains(place)),
        "{case}: {:#?}",
        report.findings
    );
    assert_eq!(world.salvaged(), (0..60).collect(), "{case}");
    assert_eq!(world.numbers(), (0..60).collect(), "{case}");
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{case}: {error}");
    assert!(places.iter().all(|place| error.to_string().contains(place)), "{case}: {error}");
}

#[test]
fn a_segment_by_the_name_of_another_paths_is_told_and_hides_nothing() {
    for checkpoint_too in [false, true] {
        let world = moved_twice();
        let own = segment_of(&world, "other");
        let content = world.machine.read(&format!("other/{own}")).unwrap();
        if checkpoint_too {
            copy_checkpoint(&world, "other", "backup");
            copy_checkpoint(&world, "other", "audit");
        }
        for path in ["audit", "backup"] {
            let there = format!("{path}/{own}");
            let places = [&*there, &format!("other/{own}")];
            let mut changed = content.clone();
            let middle = changed.len() / 2;
            changed[middle] ^= 1;
            let before = world.machine.read(&format!("audit/{}", segment_of(&world, "audit"))).unwrap();
            let (longer, cut) = ([&changed[..], b"x"].concat(), &changed[..middle + 1]);
            let fakes: [(&str, &[u8]); 5] = [
                ("junk", b"xxxxxxxxx"),
                ("changed and cut", cut),
                ("changed", &changed),
                ("frames of another segment", &before),
                ("changed, and more", &longer),
            ];
            for (what, fake) in fakes {
                world.machine.overwrite(&there, fake);
                hides_nothing(&world, places, &format!("{path}, {what}, {checkpoint_too}"));
            }
            // The same bytes are no harm, nor are the first of them, wherever the rest is.
            for length in [content.len(), content.len() - 1, middle, 1, 0] {
                world.machine.overwrite(&there, &content[..length]);
                world.check(60);
                world.machine.overwrite(&format!("other/{own}"), &content[..length]);
                world.machine.overwrite(&there, &content);
                world.check(60);
                world.machine.overwrite(&format!("other/{own}"), &content);
            }
            world.machine.remove_file(&there);
        }
    }
}

/// Whoever holds a path gains nothing by what is cut off from a copy there: what no path has any more is missing.
#[test]
fn what_is_cut_off_from_every_copy_is_missing() {
    let world = moved_twice();
    let own = segment_of(&world, "other");
    let content = world.machine.read(&format!("other/{own}")).unwrap();
    for (here, there) in [(content.len() / 3, content.len() / 2), (content.len() / 2, content.len() / 3)] {
        world.machine.overwrite(&format!("other/{own}"), &content[..here]);
        world.machine.overwrite(&format!("audit/{own}"), &content[..there]);
        let report = world.verify();
        let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
        let kinds = violations.map(|finding| finding.kind).collect::<Vec<_>>();
        assert!(
            !kinds.is_empty() && kinds.iter().all(|kind| *kind == FindingKind::FramesMissing),
            "{:#?}",
            report.findings
        );
        let left = world.salvaged();
        assert!((0..45).all(|number| left.contains(&number)) && !left.contains(&59), "{left:?}");
        assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered);
    }
}

/// What is put behind a copy is what it would be behind the segment itself: bytes that nobody has signed, which opening has the log tell.
#[test]
fn what_is_put_behind_a_copy_counts_for_nothing() {
    for path in ["audit", "backup", "other"] {
        let world = moved_twice();
        let own = segment_of(&world, "other");
        let content = world.machine.read(&format!("other/{own}")).unwrap();
        world.machine.overwrite(&format!("{path}/{own}"), &[&content[..], &[7; 100]].concat());
        let findings = world.verify().findings;
        let violation = findings.iter().find(|finding| finding.severity == Severity::Violation).unwrap();
        assert_eq!(violation.kind, FindingKind::TailDamaged, "{path}: {violation}");
        // What a write that was cut short leaves.
        world.machine.overwrite(&format!("{path}/{own}"), &[&content[..], &[0; 100]].concat());
        world.check(60);
        let log = world.open();
        assert_eq!(log.recovery().torn_bytes, 100, "{path}");
        world.append(&log, 60..64);
        log.close().unwrap();
        world.check(64);
    }
}

/// All can read a checkpoint, and copy it.
#[test]
fn a_checkpoint_that_is_copied_to_another_path_moves_nobody_there() {
    for to in [&["backup"][..], &["audit"], &["audit", "backup"]] {
        let mut world = moved_twice();
        let replaced = world.replaced();
        to.iter().for_each(|path| copy_checkpoint(&world, "other", path));
        let before = ["audit", "backup"].map(|path| world.files_below(path));
        assert_eq!(told_when_opened(&mut world, 60), [""; 0], "{to:?}");
        assert_eq!(["audit", "backup"].map(|path| world.files_below(path)), before, "{to:?}");
        assert_eq!(world.replaced(), replaced, "{to:?}");
        world.check(64);
    }
    // So it is of paths that were never used.
    let mut world = World::new(&["/backup", "/other"]);
    told_when_opened(&mut world, 0);
    copy_checkpoint(&world, "audit", "backup");
    told_when_opened(&mut world, 4);
    assert!(world.files_below("backup").into_keys().all(|name| !name.starts_with("segments/")));
    world.check(8);
}

#[test]
fn a_left_path_that_is_missing_is_told_whenever_the_log_is_opened() {
    let mut world = moved_twice();
    world.destroy("backup");
    for first in [60, 64] {
        let told = told_when_opened(&mut world, first);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("backup, a path of the log that was left, is missing"), "{told:?}");
    }
}

#[test]
fn somebody_who_holds_the_lock_of_a_left_path_stops_nobody() {
    let mut world = moved_twice();
    let held = world.machine.store("backup").lock("LOCK").unwrap();
    let told = told_when_opened(&mut world, 60);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("backup/LOCK is locked"), "{told:?}");
    drop(held);
    world.check(64);
    let _held = world.machine.store("other").lock("LOCK").unwrap();
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("other/LOCK"), "{error}");
}

#[test]
fn a_tile_that_is_damaged_on_any_path_is_found_there() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append_each(&log, 0..300);
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 300..310);
    log.close().unwrap();
    world.machine.heal();
    world.check(310);
    for path in ["audit", "backup"] {
        let full = ["tile/0/000", "tile/entries/000"].map(str::to_owned);
        let partial = world.files_below(path).into_keys().filter(|name| name.starts_with("tile/0/001.p/"));
        for name in full.into_iter().chain(partial) {
            let there = format!("{path}/{name}");
            let right = world.machine.read(&there).unwrap();
            world.machine.overwrite(&there, b"junk");
            let report = world.verify();
            let found = report.findings.iter().find(|finding| finding.detail.contains(&there));
            let found = found.unwrap_or_else(|| panic!("{there}: {:#?}", report.findings));
            assert!(
                !report.ok && matches!(found.kind, FindingKind::TileDamaged | FindingKind::BundleDamaged)
            );
            world.machine.overwrite(&there, &right);
        }
    }
    world.check(310);
}

/// Before the first switch no other path says which log it is of: nobody is told to make a new one all the same.
#[test]
fn a_first_disk_that_is_lost_before_any_switch_is_asked_for() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..10);
    log.close().unwrap();
    world.destroy("audit");
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("audit, a path of the log, is missing"), "{error}");
    assert!(!error.to_string().contains("init"), "{error}");
}

/// What lay on a path that was left, and is not there, is missing: whoever reads is told of the path.
#[test]
fn frames_that_are_missing_with_a_left_path_are_told_with_it() {
    let world = moved_twice();
    world.destroy("backup");
    let read = |error: bulla::Error| {
        assert!(error.to_string().contains("backup, a path of the log that was left, is missing"), "{error}");
    };
    read(world.exported().unwrap_err());
    read(world.events().unwrap_err());
}

/// Who holds the disk of a path can remove its checkpoint, so that another path, on which the log has not come as far, has the newest one.
#[test]
fn a_path_that_has_frames_and_no_checkpoint_is_told_and_nobody_answers_from_the_others() {
    let world = moved_twice();
    for path in ["other", "backup", "audit"] {
        let checkpoint = world.machine.read(&format!("{path}/checkpoint")).unwrap();
        world.machine.remove_file(&format!("{path}/checkpoint"));
        // Whoever has the key directory, and who names the paths and has nothing of the log but what is public.
        for report in [world.verify(), world.verify_with_also(&["/backup", "/other"])] {
            let of_kind = report.findings.iter().filter(|found| found.kind == FindingKind::CheckpointDamaged);
            let told = of_kind.map(|found| &found.detail[..]).collect::<Vec<_>>();
            assert!(!report.ok, "{path}");
            assert!(
                matches!(told[..], [told] if told.contains(path) && told.contains("no checkpoint")),
                "{told:?}"
            );
        }
        let refused =
            [world.exported().unwrap_err(), world.events().unwrap_err(), world.try_open().err().unwrap()];
        for error in refused {
            assert_eq!(error.kind(), ErrorKind::Tampered, "{path}: {error}");
            assert!(error.to_string().contains("has segments and no checkpoint"), "{path}: {error}");
        }
        assert_eq!(world.salvaged(), (0..60).collect(), "{path}");
        world.machine.overwrite(&format!("{path}/checkpoint"), &checkpoint);
        world.check(60);
    }
}

/// Two paths are lost, and frames on the third have nothing to lead to them; the log was opened on that, and nothing was signed. A path that is found has frames
/// behind others of those numbers: which of them were written later nothing tells.
#[test]
fn what_follows_other_frames_than_the_log_has_is_no_damage_either() {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..2);
    (2..4).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.fail_below("audit", Fault::NoSpace);
    (4..8).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.fail_below("backup", Fault::NoSpace);
    world.commit_stepped(&log, 10).unwrap();
    let world = world.killed();
    let files = world.files_below("backup");
    world.destroy("audit");
    world.destroy("backup");
    let world = world.named("other");
    world.configure(&[]).unwrap();
    let opened = world.open_stepped().unwrap();
    let world = world.killed();
    drop(opened);
    world.put_back("backup", &files);
    let world = world.named("backup");
    let error = world.configure(&["/other"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("follows other frames than"), "{error}");
    assert!(error.to_string().contains("Open the log once with that alone"), "{error}");
    let world = world.named("other");
    world.open_stepped().unwrap().close().unwrap();
    let world = world.named("backup");
    world.configure(&["/other"]).unwrap();
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 200..201);
    log.close().unwrap();
    // What came before lay on the first path.
    assert_eq!(world.salvaged(), BTreeSet::from([200]));
}

/// The attempt has begun a segment by the name of one on the path that is found. The message tells which of the two is none of the log's.
#[test]
fn a_segment_of_an_attempt_that_comes_to_nothing_is_told_from_that_of_the_log() {
    let made = World::new(&["/backup"]);
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 0..4);
    (4..6).for_each(|number| made.commit_stepped(&log, number).unwrap());
    made.machine.fail_below("audit", Fault::WriteFails);
    made.append_stepped(&log, 6..10);
    log.close().unwrap();
    let made = made.killed();
    let files = made.files_below("backup");
    made.destroy("backup");
    made.configure(&[]).unwrap();
    let mut refused = 0;
    for stop in 0.. {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + stop);
        let is_done = world.give_up().is_ok();
        let world = world.killed();
        if is_done {
            break;
        }
        world.put_back("backup", &files);
        if let Err(error) = world.configure(&["/backup"]) {
            assert!(error.to_string().contains("another history"), "{stop}: {error}");
            break;
        }
        if let Err(error) = world.take_up() {
            let name = "segments/00000000000000000004.seg";
            let told = error.to_string();
            assert!(
                told.contains(&format!("backup/{name} and audit/{name} have one name")),
                "{stop}: {told}"
            );
            refused += 1;
            assert!(told.contains(&format!("audit/{name} has another one, or none")), "{stop}: {told}");
            world.machine.remove_file(&format!("audit/{name}"));
            world.take_up().map(drop).unwrap_or_else(|error| panic!("{stop}: {error}"));
        }
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 10..11);
        log.close().unwrap();
        world.check(11);
    }
    assert!(refused > 20, "{refused}");
}
