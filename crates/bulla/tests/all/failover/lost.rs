//! A disk that is lost for good, with frames on it that nobody had signed: what was signed, and whatever was acknowledged on another path
//! since, is gone on from.

use super::world::World;
use crate::helpers::{in_full, one_in};
use bulla::event::Event;
use bulla::{Entry, ErrorKind, Finding, FindingKind, Log, LoggedEvent, Reader, Severity, Step, Verify};
use bulla_testkit::fault::Fault;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What fails of the first path, and when.
#[derive(Clone, Copy, Debug)]
enum Failing {
    /// All that is written there, this way; with frames there that nobody has signed, or without.
    Path(Fault, bool),
    /// All that is written there, and then the seal state, so that nothing is signed any more.
    Signing,
    /// Its checkpoint, once the seal state speaks of the tree.
    Checkpoint,
    /// All that is written there, once the log is opened again.
    Opening,
}

/// A life in which the first path fails. `acknowledged` is how many entries, from the first on, were by then.
fn live(world: &World, failing: Failing, acknowledged: &Arc<AtomicU64>) -> bulla::Result<()> {
    let mut log = world.open_stepped()?;
    let told = acknowledged.clone();
    log.when_durable(move |entries| told.store(entries, Ordering::Relaxed));
    world.try_append_stepped(&log, 0..4)?;
    match failing {
        Failing::Path(fault, unsigned) => {
            if unsigned {
                world.commit_stepped(&log, 4)?;
            }
            world.machine.fail_below("audit", fault);
        }
        Failing::Signing => {
            world.machine.fail_below("audit", Fault::WriteFails);
            world.machine.fail_below("audit.keys/seal.state.tmp", Fault::WriteFails);
        }
        Failing::Checkpoint => {
            world.commit_stepped(&log, 4)?;
            world.machine.fail_below("audit/checkpoint.tmp", Fault::WriteFails);
            log.step(Step::Checkpoint)?;
        }
        Failing::Opening => {
            world.commit_stepped(&log, 4)?;
            drop(log);
            world.machine.fail_below("audit", Fault::SyncFails);
            log = world.open_stepped()?;
        }
    }
    (5..8).try_for_each(|number| world.commit_stepped(&log, number))?;
    while log.step(Step::Seal)? {
        log.step(Step::Commit)?;
    }
    log.step(Step::Checkpoint)?;
    world.try_append_stepped(&log, 8..10)?;
    log.close()
}

/// Opens a log whose first directory is lost, in the way that whoever asks for it is told.
fn without_the_first(world: World) -> (World, bulla::Result<Log>) {
    match world.try_open() {
        Ok(log) => (world, Ok(log)),
        Err(error) => {
            // Whether the writer had left it or not, what lay there alone is needed.
            assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Tampered), "{error}");
            assert!(error.to_string().contains("under the name of another path"), "{error}");
            let world = world.named("backup");
            world.configure(&[]).unwrap();
            let log = world.try_open();
            (world, log)
        }
    }
}

/// Appends to a log that has lost a path, once more after it was closed. Says what can be read of it, and how many segments nothing leads to.
fn goes_on(world: &World, log: Log, what: &str) -> (BTreeSet<u64>, usize) {
    world.append(&log, 100..104);
    log.close().unwrap();
    let log = world.open();
    world.append(&log, 104..108);
    log.close().unwrap();
    let report = world.verify();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let others = violations.filter(|finding| finding.kind != FindingKind::FramesMissing);
    assert_eq!(others.count(), 0, "{what}: {:#?}", report.findings);
    let left = world.salvaged();
    assert!((100..108).all(|number| left.contains(&number)), "{what}: {left:?}");
    let files = ["audit", "backup", "other"].into_iter().flat_map(|path| world.files_below(path).into_keys());
    let aside = files.filter_map(|name| Some(name.strip_prefix("segments/")?.to_owned()));
    let aside = aside.filter(|name| name.contains(".at-")).collect::<BTreeSet<_>>();
    let is_said = |name: &String| {
        let said = format!("segments/{name} ");
        report
            .findings
            .iter()
            .any(|finding| finding.kind == FindingKind::UnknownFile && finding.detail.starts_with(&said))
    };
    assert!(aside.iter().all(is_said), "{what}: {:#?}", report.findings);
    // Each is told of by the log itself, where its events can be read: somebody has said that what is missing is lost.
    let mut told = BTreeSet::new();
    let tell = |logged: LoggedEvent| {
        if let Ok(Event::Abandoned { segment, .. }) = logged.event
            && segment.contains(".at-")
        {
            told.insert(segment);
        }
        Ok(())
    };
    if Reader::open_store(world.log()).and_then(|reader| reader.events(tell)).is_ok() {
        assert_eq!(told, aside, "{what}");
    }
    (left, aside.len())
}

/// Sweeps such crashes of a log with erasure, which has a vault that follows it, or without.
fn lose_the_first_after_a_crash(erasure: bool) {
    let (mut unreachable, mut swept) = (0, 0);
    for failing in [
        Failing::Path(Fault::SyncFails, false),
        Failing::Path(Fault::WriteFails, true),
        Failing::Path(Fault::SyncFails, true),
        Failing::Signing,
        Failing::Checkpoint,
        Failing::Opening,
    ] {
        let world = World::with_erasure(&["/backup"], erasure);
        let first = world.machine.operations();
        let lived = live(&world, failing, &Arc::default());
        assert_eq!(lived.is_err(), matches!(failing, Failing::Signing), "{failing:?}: {lived:?}");
        let last = world.machine.operations();
        let (mut went_on, mut refused) = (0, 0);
        for point in one_in(5, first..last) {
            let world = World::with_erasure(&["/backup"], erasure);
            world.machine.stop_at(point);
            let acknowledged = Arc::new(AtomicU64::new(0));
            if live(&world, failing, &acknowledged).is_ok() {
                continue;
            }
            let after = world.killed();
            let what = format!("erasure {erasure}, {failing:?} at {point} of {last}");
            let there = after.files_below("backup");
            if !there.contains_key("checkpoint") {
                // It had not taken over yet.
                assert!(!there.keys().any(|name| name.starts_with("segments/")), "{what}");
                continue;
            }
            after.destroy("audit");
            let (after, log) = without_the_first(after);
            let log = match log {
                // It has followed frames that nobody had signed, some of which are lost: nothing was acknowledged since.
                Err(error)
                    if erasure && error.to_string().contains("the vault in audit.keys has followed") =>
                {
                    assert!(acknowledged.load(Ordering::Relaxed) <= 5, "{what}: {error}");
                    refused += 1;
                    continue;
                }
                log => log.unwrap_or_else(|error| panic!("{what}: {error}")),
            };
            went_on += 1;
            let (left, set_aside) = goes_on(&after, log, &what);
            unreachable += set_aside;
            // What was acknowledged since the switch lies on the second path, and is there.
            let acknowledged = acknowledged.load(Ordering::Relaxed);
            let without_4 = matches!(failing, Failing::Path(_, false) | Failing::Signing);
            let entries = [0, 1, 2, 3].into_iter().chain((!without_4).then_some(4)).chain(5..10);
            let acknowledged = entries.take(usize::try_from(acknowledged).unwrap());
            for number in acknowledged.filter(|number| *number > 4) {
                assert!(left.contains(&number), "{what}: {number} was acknowledged, and there is {left:?}");
            }
        }
        assert!(
            went_on > 5 && refused * 2 < went_on,
            "{failing:?}: {went_on} went on, and {refused} did not"
        );
        swept += last - first;
    }
    assert!(unreachable > 2, "{unreachable} segments that nothing leads to");
    println!("swept: a disk lost after a switch, erasure {erasure}, {swept} crash points");
}

#[test]
fn a_crash_before_the_first_checkpoint_elsewhere_and_the_loss_of_the_first_disk_leave_a_log_that_goes_on() {
    lose_the_first_after_a_crash(false);
}

#[test]
fn so_they_do_with_a_vault_that_has_followed_more_than_is_left() {
    lose_the_first_after_a_crash(true);
}

/// Though all that the first path has is signed. What is acknowledged is told of each way that fails it, and at each opening of such a log.
#[test]
fn nothing_on_another_path_is_acknowledged_before_a_checkpoint_covers_the_epoch_that_begins_there() {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let watch = |log: &Log| {
        let told = acknowledged.clone();
        log.when_durable(move |entries| told.store(entries, Ordering::Relaxed));
    };
    for fault in [Fault::WriteFails, Fault::SyncFails, Fault::NoSpace] {
        let world = World::new(&["/backup"]);
        let mut log = world.open_stepped().unwrap();
        watch(&log);
        world.append_stepped(&log, 0..4);
        world.machine.fail_below("audit", fault);
        for next in [4, 10] {
            let before = acknowledged.load(Ordering::Relaxed);
            for number in next..next + 5 {
                world.commit_stepped(&log, number).unwrap();
                let told = acknowledged.load(Ordering::Relaxed);
                assert_eq!(told, before, "{fault:?}: after {number}");
            }
            assert!(world.files_below("backup").keys().any(|name| name.ends_with(".seg")), "{fault:?}");
            log.step(Step::Checkpoint).unwrap();
            assert_eq!(acknowledged.load(Ordering::Relaxed), before + 5, "{fault:?}");
            // From here on each is acknowledged as it becomes durable.
            world.commit_stepped(&log, next + 5).unwrap();
            assert_eq!(acknowledged.load(Ordering::Relaxed), before + 6, "{fault:?}");
            log.close().unwrap();
            log = world.open_stepped().unwrap();
            acknowledged.store(0, Ordering::Relaxed);
            watch(&log);
        }
        log.close().unwrap();
    }
}

/// A log that has lost a path goes on without segments that nothing leads to. What it wrote since, and is damaged, is none of them, nor is what follows that.
#[test]
fn damage_in_what_was_written_since_a_path_was_lost_is_refused() {
    for (erasure, bytes, entries) in [(false, 100, 4), (true, 100, 4), (false, 6000, 30)] {
        let world = World::with_erasure(&["/backup"], erasure);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.commit_stepped(&log, 4).unwrap();
        world.machine.fail_below("audit", Fault::WriteFails);
        world.commit_stepped(&log, 10).unwrap();
        let world = world.killed().named("backup");
        world.destroy("audit");
        world.configure(&[]).unwrap();
        let log = world.open_with_small_segments();
        let numbers = 100..100 + entries;
        numbers.clone().for_each(|number| world.commit_sized(&log, number, bytes).unwrap());
        let world = world.killed();
        let there = world.files_below("backup");
        let segments = there.iter().filter(|(name, _)| name.ends_with(".seg")).collect::<Vec<_>>();
        assert_eq!(segments.len() > 2, bytes > 4096, "{:?}", there.keys());
        let (mut tried, mut refused) = (0, 0);
        for (name, whole) in segments {
            let step = if in_full() { 1 } else { 13 } * usize::try_from(entries).unwrap() / 4;
            for byte in (0..whole.len()).step_by(step) {
                let what = format!("{erasure}, {bytes}, {name} at {byte} of {}", whole.len());
                let world = world.killed();
                let mut damaged = whole.clone();
                damaged[byte] ^= 0x20;
                world.machine.overwrite(&format!("backup/{name}"), &damaged);
                tried += 1;
                match world.try_open() {
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
                        refused += 1;
                    }
                    // In the last write, which may have been torn, or where verification looks: all others are adopted.
                    Ok(log) => assert!(log.recovery().entries + 1 >= entries, "{what}: {:?}", log.recovery()),
                }
            }
        }
        assert!(refused * 2 > tried, "{refused} of {tried}");
        let log = world.try_open().unwrap();
        let (left, _) = goes_on(&world, log, "whole");
        assert!(numbers.clone().all(|number| left.contains(&number)), "{left:?}");
    }
}

/// Else the tiles of a tree that came to nothing would lie among those of the one that the log goes on with.
#[test]
fn what_was_written_of_a_tree_that_nobody_signed_is_removed() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.commit_stepped(&log, 4).unwrap();
    world.machine.fail_below("audit", Fault::SyncFails);
    (5..12).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.fail_below("audit.keys/seal.state.tmp", Fault::WriteFails);
    log.step(Step::Checkpoint).unwrap_err();
    let world = world.killed().named("backup");
    world.destroy("audit");
    world.configure(&[]).unwrap();
    let log = world.open_stepped().unwrap();
    (100..120).for_each(|number| world.commit_stepped(&log, number).unwrap());
    log.close().unwrap();
    let report = world.verify();
    let others = report.findings.iter().filter(|finding| {
        !matches!(
            finding.kind,
            FindingKind::FramesMissing | FindingKind::UnknownFile | FindingKind::PathMissing
        )
    });
    assert_eq!(others.count(), 0, "{:#?}", report.findings);
}

/// A log that went from its own directory to a backup path and back, and whose last frames on the backup path nobody has signed.
fn gone_back(erasure: bool) -> World {
    let world = World::with_erasure(&["/backup"], erasure);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    world.machine.heal();
    world.commit_stepped(&log, 8).unwrap();
    world.machine.fail_below("backup", Fault::SyncFails);
    (9..12).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.killed()
}

#[test]
fn a_backup_path_that_is_lost_for_good_is_left_out_and_the_log_goes_on() {
    // With no other path, and with a new disk in the place of the lost one.
    for (paths, erasure) in [(&[][..], true), (&["/backup"], true), (&["/other"], true), (&["/other"], false)]
    {
        let world = gone_back(erasure);
        world.destroy("backup");
        let error = world.try_open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("set backup_paths PATHS"), "{error}");
        if paths == ["/backup"] {
            // Only leaving it out says that it is lost.
            let before = world.machine.files();
            for named in [&["/backup"][..], &["/backup", "/other"], &["/other", "/backup"]] {
                let error = world.configure(named).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Refused, "{named:?}: {error}");
                assert!(error.to_string().contains("leave it out of `backup_paths`"), "{named:?}: {error}");
                assert_eq!(world.machine.files(), before, "{named:?}");
            }
            world.configure(&[]).unwrap();
        }
        world.configure(paths).unwrap();
        // Whatever is changed besides, it stays known that one was lost.
        world.set("linger", "7 ms");
        world.configure(paths).unwrap();
        let log = world.open();
        let (left, unreachable) = goes_on(&world, log, &format!("{paths:?}"));
        assert!((0..4).all(|number| left.contains(&number)), "{paths:?}: {left:?}");
        assert!(unreachable > 0, "{paths:?}");
        if let [path] = paths {
            world.machine.fail_below("audit", Fault::NoSpace);
            let log = world.open();
            world.append(&log, 200..204);
            log.close().unwrap();
            assert!(world.files_below(&path[1..]).keys().any(|name| name.ends_with(".seg")));
        }
    }
}

/// Whoever sets what is set, at each start of a machine, has no other path made where a disk is not mounted.
#[test]
fn leaving_a_path_out_that_was_cut_short_has_no_other_one_made_in_its_place() {
    let first = gone_back(false).machine.operations();
    for point in 0.. {
        let world = gone_back(false);
        assert_eq!(world.machine.operations(), first);
        let found = world.files_below("backup");
        world.destroy("backup");
        let next = world.machine.operations();
        world.machine.stop_at(next + point);
        if world.configure(&[]).is_ok() {
            assert!(point > 3, "{point} operations");
            return;
        }
        let world = world.killed();
        let settings = world.machine.read("audit.keys/settings.toml").unwrap_or_default();
        let is_named_yet = String::from_utf8_lossy(&settings).contains("/backup");
        let named = world.configure(&["/backup"]);
        assert_eq!(named.is_err(), is_named_yet, "at {point}: {named:?}");
        if let Err(error) = named {
            assert_eq!(error.kind(), ErrorKind::Refused, "at {point}: {error}");
            world.put_back("backup", &found);
            let log = world.open();
            world.append(&log, 100..104);
            log.close().unwrap();
            world.check_contains((0..4).chain(100..104));
        }
    }
}

/// It is no path of the log any more, and what lies there is read by whoever names it.
#[test]
fn a_lost_path_that_is_found_is_named_again() {
    let world = gone_back(true);
    let found = world.files_below("backup");
    world.destroy("backup");
    world.configure(&[]).unwrap();
    let log = world.open();
    goes_on(&world, log, "without");
    world.put_back("backup", &found);
    world.configure(&["/backup"]).unwrap();
    let left = world.salvaged();
    assert!((0..8).chain(100..108).all(|number| left.contains(&number)), "{left:?}");
    let log = world.open();
    world.append(&log, 108..112);
    log.close().unwrap();
    assert!(world.salvaged().contains(&111));
}

/// All that is signed lies on a path that the writer has left: the next one has a checkpoint and no frames.
#[test]
fn a_left_path_that_is_lost_is_left_out_and_the_log_goes_on() {
    for erasure in [true, false] {
        let world = World::with_erasure(&["/backup", "/other"], erasure);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.machine.fail_below("audit", Fault::NoSpace);
        world.append_stepped(&log, 4..8);
        world.commit_stepped(&log, 8).unwrap();
        world.machine.fail_below("backup", Fault::WriteFails);
        log.step(Step::Checkpoint).unwrap();
        let world = world.killed();
        world.destroy("backup");
        // That it is missing says nothing of what lay there.
        let error = world.try_open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        assert!(error.to_string().contains("Mount it; where it is lost for good, leave it out"), "{error}");
        world.configure(&["/other"]).unwrap();
        let log = world.open();
        let (left, _) = goes_on(&world, log, &format!("erasure: {erasure}"));
        assert!((0..4).all(|number| left.contains(&number)), "{left:?}");
    }
}

/// What it told may have been an erasure, of which an older vault does not know: it is said that nobody can tell. Where no path is lost, whoever
/// took the frames away has nothing forgotten.
#[test]
fn an_older_vault_passes_over_the_events_that_are_lost_with_a_path_and_over_no_others() {
    let mut world = World::with_erasure(&["/backup"], true);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", "4711").subject("ada")).unwrap();
    let _ = producer.flush().unwrap();
    log.close().unwrap();
    let older = world.vault_copy();
    let log = world.open_stepped().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    world.machine.heal();
    world.machine.fail_below("backup", Fault::SyncFails);
    world.append_stepped(&log, 8..12);
    log.close().unwrap();
    world.machine.heal();
    world.put_vault_back(older);

    let without = world.killed();
    let segments = without.files_below("backup").into_keys().filter(|name| name.ends_with(".seg"));
    segments.for_each(|name| assert!(without.machine.remove_file(&format!("backup/{name}"))));
    assert_eq!(without.try_open().err().unwrap().kind(), ErrorKind::Tampered);

    let mut lost = world.killed();
    let found = lost.files_below("backup");
    lost.destroy("backup");
    lost.configure(&[]).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let all = told.clone();
    lost.tell_of_paths(move |what| all.lock().unwrap().push(what.to_owned()));
    // It may have the keys of somebody who was erased: neither before it was let pass over that, nor after, is anything read under them.
    let error = lost.read_with_keys().unwrap_err();
    assert!(error.to_string().contains("the keys at hand do not follow it"), "{error}");
    let log = lost.open();
    lost.append(&log, 12..16);
    log.close().unwrap();
    let error = lost.read_with_keys().unwrap_err();
    assert!(error.to_string().contains("the keys at hand do not follow it"), "{error}");
    let said = |what: &String| what.contains("lost with a path of the log: whether one tells of an erasure");
    assert_eq!(told.lock().unwrap().iter().filter(|what| said(what)).count(), 1, "{told:?}");
    // It follows what is written since, and that it has not followed those stays so.
    lost.open().close().unwrap();
    assert_eq!(told.lock().unwrap().iter().filter(|what| said(what)).count(), 2, "{told:?}");

    // Until the path is found.
    lost.put_back("backup", &found);
    lost.configure(&["/backup"]).unwrap();
    lost.open().close().unwrap();
    assert_eq!(told.lock().unwrap().iter().filter(|what| said(what)).count(), 2, "{told:?}");
    lost.read_with_keys().unwrap();
}

/// Without a loss that somebody has told of, frames that are gone are no reason to go on.
#[test]
fn a_hole_in_a_log_that_has_lost_no_path_is_refused() {
    let world = gone_back(true);
    let holes = world.files_below("backup").into_keys().filter(|name| name.ends_with(".seg"));
    holes.for_each(|name| assert!(world.machine.remove_file(&format!("backup/{name}"))));
    assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered);
}

/// The newest checkpoint lay there alone: what leads out of other losses does not lead out of this one, which is said before anybody tries.
#[test]
fn that_a_log_is_not_gone_on_with_without_the_path_in_use_is_said_before_that_is_left_out() {
    let mut world = World::with_erasure(&["/backup", "/third"], true);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    log.close().unwrap();
    world.machine.heal();
    let lost = world.files_below("backup");
    world.destroy("backup");
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let said = error.to_string();
    assert!(said.contains("backup is a path of the log, and is missing"), "{said}");
    assert!(said.contains("what is left is read, and not written to any more"), "{said}");
    assert!(!said.contains("names those that are left"), "{said}");

    let told = Arc::new(Mutex::new(Vec::new()));
    let all = told.clone();
    world.tell_of_paths(move |what| all.lock().unwrap().push(what.to_owned()));
    let says = |what: &String| what.contains("no writer goes on with that");
    world.configure(&["/third"]).unwrap();
    assert_eq!(told.lock().unwrap().iter().filter(|what| says(what)).count(), 1, "{told:?}");
    assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered);
    // Nor is anybody answered from what is left as if it were the log.
    let info = bulla::info_of(world.log()).unwrap();
    for error in [world.exported().unwrap_err(), world.events().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        let said = format!("that are there covers {} frames", info.tree_size);
        assert!(error.to_string().contains(&said), "{error}");
    }
    let out_of_reach = info.out_of_reach.unwrap();
    assert_eq!(out_of_reach.start, info.tree_size);
    assert!(out_of_reach.end > out_of_reach.start + 1, "{out_of_reach:?}");
    // Who knows nothing of the seal state but by the paths is told of them, too.
    let report = Verify::open_store(world.log()).unwrap().run().unwrap();
    let is_told = |finding: &&Finding| {
        let (first, last) = (Some(out_of_reach.start), Some(out_of_reach.end - 1));
        finding.kind == FindingKind::FramesMissing && (finding.frame, finding.last_frame) == (first, last)
    };
    assert_eq!(report.findings.iter().filter(is_told).count(), 1, "{:#?}", report.findings);
    assert_eq!(world.verify().findings.iter().filter(is_told).count(), 1);

    // With the path that has the rest nothing is said, and the log goes on.
    world.put_back("backup", &lost);
    world.configure(&["/backup", "/third"]).unwrap();
    assert_eq!(told.lock().unwrap().iter().filter(|what| says(what)).count(), 1, "{told:?}");
    let log = world.open();
    world.append(&log, 8..12);
    log.close().unwrap();
    world.check(12);
}

/// Whoever has the storage of a path of a log that has lost another can name a file so that frames should be in it.
#[test]
fn what_lies_in_another_segment_than_names_tell_is_not_lost() {
    let world = World::handed_on(&["/backup", "/other"]);
    world.destroy("backup");
    world.configure(&["/other"]).unwrap();
    let lost = || bulla::lost_frames_of(world.join(world.log())).unwrap();
    let before = lost();
    assert!(!before.is_empty());
    for frame in 1..before.frames[0].end {
        let planted = format!("other/segments/{frame:020}.seg");
        world.machine.overwrite(&planted, b"x");
        assert_eq!(lost(), before, "{planted}");
        assert!(world.machine.remove_file(&planted));
    }
}
