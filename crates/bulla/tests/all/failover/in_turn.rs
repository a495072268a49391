//! Two paths that are lost one after the other, and found: what counts on either depends on what was signed since, and on where that lies.

use super::world::World;
use bulla::{ErrorKind, Severity};
use bulla_testkit::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type Files = BTreeMap<String, Vec<u8>>;

/// A log on the last of three paths, without the first one, that was lost with frames which nobody had signed, and without the second, on which it has gone on
/// since; what lay on these two, and what it had by then.
fn lost_in_turn(more: bool) -> (World, Files, Files, Vec<u64>) {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.commit_stepped(&log, 4).unwrap();
    world.machine.fail_below("audit", Fault::SyncFails);
    world.commit_stepped(&log, 5).unwrap();
    world.machine.fail_below("backup", Fault::SyncFails);
    world.commit_stepped(&log, 6).unwrap();
    let world = world.killed();
    let older = world.files_below("audit");
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&["/other"]).unwrap();
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 100..104);
    world.append_stepped(&log, 104..108);
    log.close().unwrap();
    let mut numbers = (0..4).chain(100..108).collect::<Vec<_>>();
    let world = if more {
        let log = world.open_stepped().unwrap();
        // Nobody signs these.
        (108..111).for_each(|number| world.commit_stepped(&log, number).unwrap());
        numbers.extend(108..111);
        world.killed()
    } else {
        world
    };
    let newer = world.files_below("backup");
    world.destroy("backup");
    let world = world.named("other");
    world.configure(&[]).unwrap();
    (world, older, newer, numbers)
}

/// The log has all of that, and goes on.
fn is_whole(world: &World, numbers: &[u64], what: &str) {
    let log = world.open_stepped().map_err(|error| format!("{what}: {error}")).unwrap();
    world.append_stepped(&log, 200..204);
    log.close().unwrap();
    assert_eq!(world.exported().map_err(|error| error.to_string()), Ok(()), "{what}");
    let all = numbers.iter().copied().chain(200..204).collect();
    assert_eq!(world.salvaged(), all, "{what}");
    let report = world.verify();
    let bad = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    assert_eq!(bad.count(), 0, "{what}: {:#?}", report.findings);
}

#[test]
fn the_newer_one_can_be_named_first() {
    for more in [false, true] {
        let (world, older, newer, numbers) = lost_in_turn(more);
        world.put_back("backup", &newer);
        world.configure(&["/backup"]).unwrap();
        world.put_back("audit", &older);
        let world = world.named("audit");
        world.configure(&["/other", "/backup"]).unwrap();
        is_whole(&world, &numbers, &format!("{more}"));
    }
}

/// Nothing tells yet what of it counts: the log is not gone on with, and what came to nothing is set aside once the newer one is named.
#[test]
fn the_older_one_can_be_named_first() {
    for more in [false, true] {
        let (world, older, newer, numbers) = lost_in_turn(more);
        world.put_back("audit", &older);
        let other = world.files_below("other");
        let world = world.named("audit");
        world.configure(&["/other"]).unwrap();
        assert_eq!((world.files_below("audit"), world.files_below("other")), (older, other));
        let refused = world.open_stepped().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Tampered, "{refused}");
        world.put_back("backup", &newer);
        world.configure(&["/other", "/backup"]).unwrap();
        is_whole(&world, &numbers, &format!("{more}"));
    }
}

#[test]
fn both_can_be_named_at_once() {
    for more in [false, true] {
        let (world, older, newer, numbers) = lost_in_turn(more);
        world.put_back("audit", &older);
        world.put_back("backup", &newer);
        let world = world.named("audit");
        world.configure(&["/other", "/backup"]).unwrap();
        is_whole(&world, &numbers, &format!("{more}"));
    }
}

/// Where the newest is lost for good, what is signed on an older one that is found is gone on from, once what was signed since is given up.
#[test]
fn what_is_signed_on_an_older_one_is_kept_where_the_newer_one_is_not_found() {
    for last in [true, false] {
        let world = World::new(&["/backup", "/other"]);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.machine.fail_below("audit", Fault::NoSpace);
        world.append_stepped(&log, 4..8);
        if last {
            world.commit_stepped(&log, 8).unwrap();
        }
        world.machine.fail_below("backup", Fault::NoSpace);
        world.append_stepped(&log, 9..12);
        log.close().unwrap();
        let world = world.killed();
        let found = world.files_below("backup");
        world.destroy("backup");
        world.destroy("other");
        world.configure(&[]).unwrap();
        world.put_back("backup", &found);
        world.configure(&["/backup"]).unwrap();
        assert_eq!(world.open_stepped().err().map(|error| error.kind()), Some(ErrorKind::Tampered));
        world.give_up().unwrap();
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 20..22);
        log.close().unwrap();
        let left = world.salvaged();
        assert!((0..8).chain(20..22).all(|number| left.contains(&number)), "{last}: {left:?}");
    }
}

/// A segment that is whole was torn by nobody: it is led to by what is found.
#[test]
fn a_whole_segment_that_a_found_path_leads_to_stays() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.commit_stepped(&log, 4).unwrap();
    world.machine.fail_below("audit", Fault::SyncFails);
    world.commit_stepped(&log, 5).unwrap();
    let world = world.killed();
    let found = world.files_below("audit");
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let before = world.files_below("backup");
    world.put_back("audit", &found);
    let mut world = world.named("audit");
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    world.tell_of_paths(move |what| tell.lock().unwrap().push(what.to_owned()));
    world.configure(&["/backup"]).unwrap();
    assert_eq!(*told.lock().unwrap(), [""; 0]);
    let segments =
        |files: Files| files.into_iter().filter(|(name, _)| name.ends_with(".seg")).collect::<Files>();
    assert_eq!(segments(world.files_below("backup")), segments(before));
    let log = world.open_stepped().unwrap();
    assert_eq!(log.recovery().entries, 2);
    log.close().unwrap();
    world.check_contains(0..6);
}

/// A log of which the first path failed, and then the second, before anything was signed there; killed, and both others lost. What lay on those.
fn two_lost_at_once() -> (World, [(&'static str, Files); 2]) {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    (4..16).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.fail_below("backup", Fault::NoSpace);
    (20..23).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    let there = ["backup", "other"].map(|path| (path, world.files_below(path)));
    there.iter().for_each(|(path, _)| world.destroy(path));
    world.configure(&[]).unwrap();
    (world, there)
}

/// What lies on a path behind frames that came to nothing comes to nothing, on whichever path these lay.
#[test]
fn a_path_that_is_found_behind_numbers_given_again_is_no_hindrance() {
    let (lost, there) = two_lost_at_once();
    // One session without them signs fewer frames, as many and more than the second path has.
    for (found, entries) in
        (1..24).flat_map(|entries| [(&["other"][..], entries), (&["backup", "other"], entries)])
    {
        let world = lost.killed();
        let log = world.open_stepped().unwrap();
        (200..200 + entries).for_each(|number| world.commit_stepped(&log, number).unwrap());
        log.close().unwrap();
        there
            .iter()
            .filter(|(path, _)| found.contains(path))
            .for_each(|(path, files)| world.put_back(path, files));
        let paths = found.iter().map(|path| format!("/{path}")).collect::<Vec<_>>();
        let what = format!("{found:?}, {entries}");
        world.configure(&paths.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let log = world.open_stepped().map_err(|error| format!("{what}: {error}")).unwrap();
        world.append_stepped(&log, 300..301);
        log.close().unwrap();
        world.check_contains((0..4).chain(200..200 + entries).chain(300..301));
    }
}

/// Where nothing was signed since, what the other one has may lead there.
#[test]
fn a_path_that_is_found_before_the_one_that_leads_to_it_is_kept() {
    let (world, there) = two_lost_at_once();
    for ((path, files), named) in there.iter().rev().zip([&["/other"][..], &["/backup", "/other"]]) {
        world.put_back(path, files);
        world.configure(named).unwrap();
    }
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 300..301);
    log.close().unwrap();
    world.check_contains((0..16).chain(20..23).chain(300..301));
}
