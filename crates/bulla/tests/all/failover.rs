//! A log on several paths: what is acknowledged is there whichever of them fails, in whatever way and whenever, and whoever reads is told
//! what is missing.

mod adopted;
mod arriving;
mod beside;
mod copies;
mod cosigned;
mod crashes;
mod directories;
mod dropping;
mod forgotten;
mod gaps;
mod given_up;
mod histories;
mod in_turn;
mod lost;
mod named_again;
mod named_numbers;
mod only_there;
mod outage;
mod overtaken;
mod partial;
mod returning;
mod scattered;
mod set_aside;
mod spread;
mod switches;
mod told;
mod twins;
mod unmounted;
mod unreadable;
mod world;

use bulla::{ErrorKind, FindingKind, Log, Severity};
use bulla_testkit::fault::Fault;
use world::World;

#[test]
fn a_path_that_fails_in_any_way_is_replaced_and_nothing_acknowledged_is_lost() {
    for fault in Fault::ALL {
        let world = World::new(&["/backup"]);
        let log = world.open();
        world.append(&log, 0..20);
        world.machine.fail_below("audit", fault);
        world.append(&log, 20..40);
        log.flush().unwrap();
        world.append(&log, 40..60);
        assert_eq!(log.telemetry().failovers.count, 1, "{fault:?}");
        log.close().unwrap();
        world.check(60);
        let replaced = world.replaced();
        assert_eq!(replaced.len(), 1, "{fault:?}");
        assert_eq!(replaced[0], (world.id("audit"), world.id("backup")), "{fault:?}");
        // It goes on where it was left, and the first path is as it was.
        world.machine.heal();
        let before = world.files_below("audit");
        let log = world.open();
        world.append(&log, 60..80);
        log.close().unwrap();
        world.check(80);
        let after = world.files_below("audit");
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{fault:?}");
        assert_eq!(before["checkpoint"], after["checkpoint"], "{fault:?}");
    }
}

#[test]
fn a_path_that_fails_while_nothing_is_appended_is_replaced_by_the_checkpoint() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..10);
    log.flush().unwrap();
    world.append(&log, 10..20);
    world.machine.fail_below("audit/checkpoint", Fault::WriteFails);
    world.machine.fail_below("audit/checkpoint.tmp", Fault::WriteFails);
    log.flush().unwrap();
    log.close().unwrap();
    world.machine.heal();
    world.check(20);
    assert_eq!(world.replaced().len(), 1);
}

#[test]
fn paths_that_fail_one_after_the_other_are_all_used_and_the_first_one_again() {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open();
    let mut count = 0;
    for failing in ["audit", "backup", "other", "audit"] {
        world.append(&log, count..count + 10);
        // Where a checkpoint was published since, a path that failed before may take over again.
        log.flush().unwrap();
        count += 10;
        world.machine.heal();
        world.machine.fail_below(failing, Fault::NoSpace);
    }
    world.append(&log, count..count + 10);
    log.close().unwrap();
    world.machine.heal();
    world.check(count + 10);
    let to = world.replaced().into_iter().map(|(_, to)| to).collect::<Vec<_>>();
    let ids = ["backup", "other", "audit", "backup"].map(|path| world.id(path));
    // The next one in a ring takes over, and `audit` works again by then.
    assert_eq!(to, ids);
}

/// Two that look as if they took the log, and then do not, are no reason not to try the third one.
#[test]
fn a_path_that_works_is_found_behind_all_that_fail() {
    for fault in [Fault::WriteFails, Fault::SyncFails, Fault::WritePersistsButFails, Fault::NoSpace] {
        for part in ["segments", "checkpoint.tmp"] {
            let world = World::new(&["/backup", "/other"]);
            let log = world.open();
            world.append(&log, 0..20);
            for path in ["audit", "backup"] {
                world.machine.fail_below(&format!("{path}/{part}"), fault);
            }
            world.append(&log, 20..40);
            log.flush().unwrap();
            log.close().unwrap();
            world.machine.heal();
            world.check(40);
            assert_eq!(world.replaced().last().unwrap().1, world.id("other"), "{fault:?} {part}");
        }
    }
}

#[test]
fn where_no_path_takes_it_the_log_fails_and_goes_on_later_with_all_that_was_acknowledged() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..20);
    world.machine.fail_below("audit", Fault::WriteFails);
    world.machine.fail_below("backup", Fault::WriteFails);
    let error = world.try_append(&log, 20..40).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let _ = log.close();
    world.machine.heal();
    let log = world.open();
    world.append(&log, 40..60);
    log.close().unwrap();
    world.check_contains((0..20).chain(40..60));
}

#[test]
fn opening_goes_on_elsewhere_where_the_path_in_use_cannot_be_written() {
    for fault in [Fault::WriteFails, Fault::NoSpace, Fault::NameFails, Fault::SyncFails] {
        let world = World::new(&["/backup"]);
        let log = world.open();
        world.append(&log, 0..20);
        let killed = world.killed();
        drop(log);
        killed.machine.fail_below("audit", fault);
        let log = killed.open();
        killed.append(&log, 20..40);
        log.close().unwrap();
        killed.machine.heal();
        killed.check(40);
        assert_eq!(killed.replaced().len(), 1, "{fault:?}");
    }
}

/// Else frames that it covers would be written anew, in other places, and what is published would go back.
#[test]
fn recovering_on_another_path_goes_on_from_the_checkpoint_that_was_published_last() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..20);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 20..30);
    log.flush().unwrap();
    world.append_each(&log, 30..35);
    let killed = world.killed();
    drop(log);
    let size = |world: &World| bulla::info_of(world.log()).unwrap().tree_size;
    let (signed, before) = (size(&killed), killed.files_below("backup"));
    killed.machine.fail_below("backup/segments", Fault::NoSpace);
    let log = killed.open();
    assert!(size(&killed) >= signed);
    log.close().unwrap();
    killed.machine.heal();
    killed.check(35);
    let after = killed.files_below("backup");
    let segments = before.iter().filter(|(name, _)| name.ends_with(".seg"));
    for (name, content) in segments {
        assert_eq!(after.get(name), Some(content), "{name} has frames that are signed");
    }
}

#[test]
fn the_death_of_a_path_takes_its_frames_and_no_word_of_which() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    // So many frames that tiles are full before and after.
    world.append_each(&log, 0..300);
    world.machine.fail_below("audit", Fault::SyncFails);
    world.append_each(&log, 300..600);
    log.close().unwrap();
    world.machine.heal();
    world.destroy("audit");

    let report = world.verify();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let violations = violations.collect::<Vec<_>>();
    assert!(violations.iter().all(|finding| finding.kind == FindingKind::FramesMissing), "{violations:#?}");
    let missing = report.findings.iter().find(|finding| finding.kind == FindingKind::PathMissing).unwrap();
    assert!(missing.detail.contains(&world.id("audit")), "{missing}");
    assert!(
        violations
            .iter()
            .any(|finding| finding.frame == Some(0) || finding.entries.is_some_and(|(first, _)| first == 0)),
        "{violations:#?}"
    );
    let left = world.salvaged();
    assert!(left.contains(&599) && left.len() >= 300, "{}", left.len());

    // The log goes on without it, since the writer has left it.
    let log = world.open();
    world.append(&log, 600..620);
    log.close().unwrap();
    assert!(world.salvaged().is_superset(&(600..620).collect()));
}

#[test]
fn a_path_that_is_missing_and_was_not_left_is_asked_for_by_name() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..20);
    log.close().unwrap();
    world.destroy("backup");
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("backup is a path of the log, and is missing"), "{error}");
    world.configure(&[]).unwrap();
    let log = world.open();
    world.append(&log, 20..40);
    log.close().unwrap();
    world.check(40);
}

#[test]
fn a_path_that_holds_frames_is_not_let_go_of() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..20);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 20..40);
    log.close().unwrap();
    world.machine.heal();
    let error = world.configure(&[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    for told in ["holds segments of the log", "not looked for on other paths", "take the directory away"] {
        assert!(error.to_string().contains(told), "{error}");
    }
    world.check(40);
}

#[test]
fn one_locks_all_and_another_writer_is_kept_out_of_each() {
    let world = World::new(&["/backup"]);
    let _log = world.open();
    for path in ["audit", "backup"] {
        let locked = bulla::store::Store::lock(&world.machine.store(path), "LOCK");
        assert_eq!(locked.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{path}");
    }
}

#[test]
fn a_log_that_blocks_waits_for_a_path_and_loses_nothing() {
    for paths in [&[][..], &["/backup"]] {
        let world = World::new(paths);
        world.set("on_failure", "block");
        let log = world.open();
        world.append(&log, 0..20);
        world.machine.fail_below("audit", Fault::NoSpace);
        world.machine.fail_below("backup", Fault::NoSpace);
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            log.when_trying_again(move |why| drop(tell.send(why.to_owned())));
            let appending = scope.spawn(|| world.try_append(&log, 20..40));
            // More attempts than `retries` says, of which each thing that fails is told once: it has begun to wait.
            told.recv().unwrap();
            world.wait_for_failures(8);
            assert!(!appending.is_finished(), "{paths:?}");
            world.machine.heal();
            appending.join().unwrap().unwrap();
        });
        log.close().unwrap();
        world.check(40);
    }
}

/// Where the host names no path, none is opened: nothing that lies in the log's directory counts.
#[test]
fn only_the_key_directory_and_the_reader_name_paths() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..20);
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 20..40);
    log.close().unwrap();
    world.machine.heal();
    assert_eq!(world.entries_of_first_path(), (0..20).collect());
    let config = world.machine.read("audit/bulla.toml").unwrap();
    let named = [&config[..], b"backup_paths = [\"/backup\"]\n"].concat();
    world.machine.overwrite("audit/bulla.toml", &named);
    assert_eq!(world.entries_of_first_path(), (0..20).collect());
    world.machine.overwrite("backup/bulla.toml", &named);
    assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Refused);
    assert_eq!(world.entries_with_also("/backup"), (0..40).collect());
}

/// So that an error in the harness is none of the log's.
#[test]
fn a_log_without_backup_paths_has_no_other_store() {
    let world = World::new(&[]);
    let log = world.open();
    world.append(&log, 0..20);
    world.machine.fail_below("audit", Fault::WriteFails);
    world.try_append(&log, 20..40).unwrap_err();
    assert_eq!(log.telemetry().failovers.count, 0);
    let _: bulla::Result<()> = Log::close(log);
}
