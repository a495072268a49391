//! A lost path whose frames were the beginning of what lies on several others.

use super::world::World;
use crate::helpers::in_full;
use bulla::event::Event;
use bulla::{ErrorKind, FindingKind, Severity};
use bulla_store::Store;
use bulla_testkit::fault::Fault;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// What nothing leads to any more may lie on a path that is not in use: that is no fault of the one that is.
#[test]
fn what_a_lost_path_leaves_without_a_beginning_is_set_aside_on_whichever_path_it_lies() {
    let after = scattered();
    let healthy = after.killed();
    // Where the path that has it takes no other name, nobody goes on; the one in use is not held for one that failed.
    after.machine.fail_below("other/segments", Fault::NameFails);
    let error = after.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("other/segments"), "{error}");
    go_on(healthy);
}

/// A full disk is why a log leaves a path in most cases.
#[test]
fn what_nothing_leads_to_is_set_aside_on_a_path_that_is_full() {
    let after = scattered();
    after.machine.fail_below("other", Fault::NoSpace);
    go_on(after);
}

/// The log tells of each once, wherever opening it is cut short, and cut short again.
#[test]
fn what_is_set_aside_is_told_of_wherever_opening_the_log_is_cut_short() {
    let made = scattered();
    let step = if in_full() { 1 } else { 3 };
    let mut twice = 0;
    for first in (0..).step_by(step) {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + first);
        let opened = world.open_stepped();
        let is_done = opened.is_ok();
        let once = world.killed();
        drop(opened);
        for second in (0..).step_by(step) {
            let world = once.killed();
            world.machine.stop_at(world.machine.operations() + second);
            let opened = world.open_stepped();
            let is_done = opened.is_ok();
            let world = world.killed();
            drop(opened);
            let log = world.open_stepped().unwrap();
            world.append_stepped(&log, 200..201);
            log.close().unwrap();
            let lies = ["backup", "other"].into_iter().flat_map(|path| world.files_below(path).into_keys());
            let lies = lies.filter_map(|name| Some(name.strip_prefix("segments/")?.to_owned()));
            let lies = lies.filter(|name| name.contains(".at-")).collect::<BTreeSet<_>>();
            let told = world.told(|event| match event {
                Event::Abandoned { segment, .. } => segment.contains(".at-").then_some(segment),
                _ => None,
            });
            assert_eq!(told.iter().cloned().collect::<BTreeSet<_>>(), lies, "{first}, {second}");
            assert_eq!(told.len(), lies.len(), "{first}, {second}: {told:?}");
            twice += 1;
            if is_done {
                break;
            }
        }
        if is_done {
            break;
        }
    }
    assert!(twice > 50, "{twice}");
}

/// A copy of such a segment on another path would stand in the way as it does itself.
#[test]
fn what_nothing_leads_to_is_set_aside_on_each_path_that_has_it() {
    let after = scattered();
    let there = after.files_below("other");
    let (name, content) = there.iter().rfind(|(name, _)| name.starts_with("segments/")).unwrap();
    after.machine.overwrite(&format!("backup/{name}"), content);
    let path = |path: &str| after.files_below(path).keys().any(|other| other == name);
    assert!(path("backup") && path("other"));
    go_on(after);
}

/// Whatever has the name that it would get.
#[test]
fn what_nothing_leads_to_gets_a_name_that_is_free() {
    let opened = scattered();
    opened.open_stepped().unwrap().close().unwrap();
    let aside = opened.files_below("other").into_keys().filter(|name| name.contains(".at-"));
    let aside = aside.collect::<Vec<_>>();
    assert_eq!(aside.len(), 2);
    let after = scattered();
    after.machine.store("other").create_directory(&aside[0]).unwrap();
    after.machine.overwrite(&format!("other/{}", aside[1]), b"put there by somebody");
    let log = after.open_stepped().unwrap();
    after.append_stepped(&log, 100..104);
    log.close().unwrap();
    let there = after.files_below("other");
    assert!(aside.iter().all(|name| there.contains_key(&format!("{name}.1"))), "{:?}", there.keys());
    assert!((100..104).all(|number| after.salvaged().contains(&number)));
}

/// A generation behind which there is none leaves no name, and is told.
#[test]
fn a_segment_of_the_last_generation_is_told() {
    let refused = |directory: &str| {
        let after = scattered();
        let name = format!("{directory}/segments/{:020}-{}.seg", 2, u32::MAX);
        after.machine.overwrite(&name, b"");
        after.try_open().err().map(|error| error.to_string())
    };
    let told = refused("other").unwrap();
    assert!(told.contains("00000000000000000002-4294967295.seg leaves no name"), "{told}");
}

/// Such a name is no proof: where no path was lost, nothing was, and no event says so.
#[test]
fn a_file_with_the_name_of_what_is_set_aside_is_not_told_of_where_no_path_was_lost() {
    for paths in [&[][..], &["/backup"]] {
        let world = World::new(paths);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        let world = world.killed();
        // An opening tells of what one set aside that went on at this frame, or at one that nobody has signed.
        let next = bulla::info_of(world.log()).unwrap().tree_size;
        for next in 0..next + 8 {
            let name = format!("audit/segments/{:020}.seg.at-{next}", 0);
            world.machine.overwrite(&name, b"put there by somebody");
        }
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 4..8);
        log.close().unwrap();
        assert_eq!(world.abandoned(), 0);
        world.check_contains(0..8);
    }
}

/// A log of which each path has frames that nobody has signed, and the first one is lost.
fn scattered() -> World {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    // Nobody has signed these frames: each path that takes over has the checkpoint of the first one, and some of what follows.
    world.commit_stepped(&log, 4).unwrap();
    world.machine.fail_below("audit", Fault::SyncFails);
    world.commit_stepped(&log, 5).unwrap();
    world.machine.fail_below("backup", Fault::SyncFails);
    world.commit_stepped(&log, 6).unwrap();
    let killed = world.killed();
    killed.destroy("audit");
    let lost = killed.named("backup");
    lost.configure(&["/other"]).unwrap();
    lost
}

fn go_on(mut after: World) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    after.tell_of_paths(move |what| tell.lock().unwrap().push(what.to_owned()));
    let segments = |path: &str| {
        let files = after.files_below(path).into_keys();
        files.filter(|name| name.starts_with("segments/")).collect::<Vec<_>>()
    };
    let before = segments("other");
    assert!(!before.is_empty());
    let log = after.try_open().unwrap();
    after.append(&log, 100..104);
    log.close().unwrap();
    assert_eq!(*told.lock().unwrap(), [""; 0], "no path failed");
    let there = segments("other");
    assert_eq!(there.len(), before.len(), "{there:?}");
    for name in before {
        let aside = format!("{name}.at-");
        assert!(there.iter().any(|name| name.starts_with(&aside)), "{name}: {there:?}");
    }
    // What was set aside stands in nobody's way when the log comes to its frames.
    let log = after.open();
    after.append_each(&log, 104..140);
    log.close().unwrap();
    let log = after.open();
    after.append(&log, 140..144);
    log.close().unwrap();
    let left = after.salvaged();
    assert!((100..144).all(|number| left.contains(&number)), "{left:?}");
    let report = after.verify();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let others = violations.filter(|finding| finding.kind != FindingKind::FramesMissing);
    assert_eq!(others.count(), 0, "{:#?}", report.findings);
}
