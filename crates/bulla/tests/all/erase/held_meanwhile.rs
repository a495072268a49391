//! An erasure that was cut short, and a hold of which the log tells since then: files that were put back bring both together.

use super::restore_stops::{STEPS, begin};
use super::restored::{put_back, replace};
use super::states::write_pending;
use super::stops::{self, Stop};
use super::world::{World, copy};
use crate::helpers::in_full;
use bulla::event::Event;
use bulla::{ErrorKind, FindingKind, Log, Options, Restore, ResumedErasure};
use bulla_vault::{Access, Unconfirmed};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use tempfile::TempDir;

const HELD: &str = "user_7";

/// A log that tells of a hold on [`HELD`], and its key directory from before that, when an erasure of theirs was cut short at `step`.
fn cut_short(step: &str) -> (World, TempDir, Unconfirmed) {
    let world = World::new();
    world.append(0..60);
    let before = copy(&world.keys());
    let number = world.vault(Access::Read).find(HELD).unwrap().unwrap().number;
    write_pending(&world, &world.order(&[HELD]), number);
    begin(&world, &[number], step);
    let unconfirmed = world.vault(Access::Read).unconfirmed().unwrap().unwrap();
    let keys = copy(&world.keys());
    // The log goes on as if it had not been begun.
    fs::remove_file(world.keys().join("erasure.pending")).unwrap();
    put_back(before.path(), &world.keys(), &["vault", "roots"]);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.hold(&world.hold(HELD, "legal", "case 4711")).unwrap();
    log.close().unwrap();
    (world, keys, unconfirmed)
}

/// The vault of `keys` in place of the log's, with what was written down of the erasure.
fn put_vault_back(world: &World, keys: &Path) {
    put_back(keys, &world.keys(), &["vault", "roots", "erasure.pending"]);
}

fn erasures(world: &World) -> usize {
    world.events().iter().filter(|(_, event)| matches!(event, Event::Erased { .. })).count()
}

/// That the person is there, and held, and that nothing is left of the erasure.
fn is_kept(world: &World, what: &str) {
    assert!(world.vault(Access::Read).find(HELD).unwrap().is_some(), "{what}");
    assert!(world.vault(Access::Read).unconfirmed().unwrap().is_none(), "{what}");
    assert!(!world.keys().join("erasure.pending").exists(), "{what}");
    assert_eq!(erasures(world), 0, "{what}");
    assert_eq!(bulla::holds(&world.directory, world.keys()).unwrap().holds.len(), 1, "{what}");
    let report = world.verified();
    assert!(report.ok, "{what}: {report:?}");
}

/// That the keys, which are gone, are told of as erased, and that verification says that the person was held.
fn is_told(world: &World, what: &str) {
    assert_eq!(erasures(world), 1, "{what}");
    let report = world.verified();
    assert!(report.findings.iter().any(|it| it.kind == FindingKind::ErasedWhileHeld), "{what}: {report:?}");
}

#[test]
fn an_erasure_that_was_cut_short_is_withdrawn_where_the_log_tells_of_a_hold_since() {
    for step in STEPS {
        let (world, keys, unconfirmed) = cut_short(step);
        let resumed = |resumed: Option<&ResumedErasure>| match resumed {
            Some(ResumedErasure::Finished { numbers }) if unconfirmed.erased => {
                assert_eq!(*numbers, unconfirmed.numbers, "{step}");
            }
            Some(ResumedErasure::Withdrawn { numbers, reason }) if !unconfirmed.erased => {
                assert_eq!(*numbers, unconfirmed.numbers, "{step}");
                assert!(reason.contains("is held by"), "{reason}");
            }
            other => panic!("{step}: {other:?}"),
        };
        let ended = |world: &World| match unconfirmed.erased {
            false => is_kept(world, step),
            true => is_told(world, step),
        };
        // The vault is put back, with the file of holds or without it, and the log opened.
        for delete in [false, true] {
            let opened = world.copied();
            put_vault_back(&opened, keys.path());
            if delete {
                fs::remove_file(opened.keys().join("holds")).unwrap();
            }
            let log = Log::open(&opened.directory, Options::default()).unwrap();
            assert_eq!(log.hold_differences().len(), usize::from(delete), "{step}");
            resumed(log.resumed_erasure());
            log.close().unwrap();
            ended(&opened);
        }
        // What is finished is told of where opening the log fails behind it.
        if unconfirmed.erased {
            let opened = world.copied();
            put_vault_back(&opened, keys.path());
            fs::remove_file(opened.keys().join("holds")).unwrap();
            fs::create_dir(opened.keys().join("holds")).unwrap();
            let error = Log::open(&opened.directory, Options::default()).err().unwrap().to_string();
            let finished = ResumedErasure::Finished { numbers: unconfirmed.numbers.clone() }.to_string();
            assert!(error.starts_with(&finished) && error.contains("holds"), "{step}: {error}");
            is_told(&opened, step);
        }
        // All of the key directory is from then, and taken up.
        replace(keys.path(), &world.keys());
        let restored = Restore::new(&world.directory, world.identity()).run().unwrap();
        assert_eq!((restored.lost, restored.hold_differences.len()), (0, 1), "{step}");
        resumed(restored.resumed.as_ref());
        ended(&world);
    }
}

/// A log that tells of a hold, with a vault that has begun to erase whom it holds.
fn held_and_begun() -> World {
    let world = World::new();
    world.append(0..60);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.hold(&world.hold(HELD, "legal", "case 4711")).unwrap();
    log.close().unwrap();
    let number = world.vault(Access::Read).find(HELD).unwrap().unwrap().number;
    write_pending(&world, &world.order(&[HELD]), number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
    world
}

#[test]
fn withdrawing_an_erasure_stops_anywhere_and_is_done_again() {
    let made = held_and_begun();
    for operations in (0..).step_by(if in_full() { 1 } else { 5 }) {
        let world = made.copied();
        let stop = Stop::after(operations);
        drop(stops::open(&world, &stop));
        Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
        is_kept(&world, &operations.to_string());
        if !stop.stopped() {
            assert!(operations > 10);
            break;
        }
    }
}

/// The frame that tells of it may be durable, and no checkpoint over it yet.
#[test]
fn a_hold_that_opening_the_log_adopts_counts_too() {
    let made = World::new();
    made.append(0..60);
    let number = made.vault(Access::Read).find(HELD).unwrap().unwrap().number;
    let (mut adopted, mut erased) = (0, 0);
    for operations in 0.. {
        let world = made.copied();
        let stop = Stop::after(i64::MAX);
        let log = stops::open(&world, &stop).unwrap();
        log.flush().unwrap();
        stop.0.store(operations, Ordering::SeqCst);
        let done = log.hold(&world.hold(HELD, "legal", "case 4711"));
        stop.0.store(0, Ordering::SeqCst);
        drop(log);
        let _ = fs::remove_file(world.keys().join("holds"));
        write_pending(&world, &world.order(&[HELD]), number);
        let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
        let log = Log::open(&world.directory, Options::default()).unwrap();
        match log.resumed_erasure().unwrap() {
            ResumedErasure::Withdrawn { .. } => adopted += u32::from(log.recovery().frames > 0),
            _ => erased += 1,
        }
        log.close().unwrap();
        // Whether the log tells of a hold or of none: who was held then is there.
        assert!(world.verified().ok, "{operations}");
        if done.is_ok() {
            break;
        }
    }
    assert!(adopted > 0 && erased > 0, "{adopted} {erased}");
}

/// Who is held is unknown then: better nobody is erased.
#[test]
fn an_erasure_that_was_cut_short_is_withdrawn_while_the_holds_are_damaged() {
    let world = World::new();
    world.append(0..60);
    let number = world.vault(Access::Read).find(HELD).unwrap().unwrap().number;
    write_pending(&world, &world.order(&[HELD]), number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
    fs::write(world.keys().join("holds"), "{").unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let withdrawn = log.resumed_erasure().unwrap().to_string();
    assert!(withdrawn.contains("holds") && withdrawn.contains("is withdrawn"), "{withdrawn}");
    log.close().unwrap();
    assert!(world.vault(Access::Read).find(HELD).unwrap().is_some() && erasures(&world) == 0);
}

/// The bytes of the vault's record of an erasure of one.
fn record(world: &World) -> Vec<u8> {
    let bytes = fs::read(world.keys().join("vault/vault.db")).unwrap();
    let at = bytes.windows(8).position(|bytes| bytes == b"bullaVE3").unwrap();
    bytes[at..at + 28 + 32 + 16].to_vec()
}

/// The record says that keys are destroyed, and is of a later time than the vault, which has them.
#[test]
fn an_erasure_that_is_said_to_be_done_and_is_not_is_refused() {
    for world in [held_and_begun(), {
        let world = held_and_begun();
        let log = Log::open(&world.directory, Options::default()).unwrap();
        log.release(&world.release(HELD, "legal")).unwrap();
        log.close().unwrap();
        let number = world.vault(Access::Read).find(HELD).unwrap().unwrap().number;
        write_pending(&world, &world.order(&[HELD]), number);
        let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
        world
    }] {
        let sound = copy(&world.keys());
        let begun = record(&world);
        let later = world.copied();
        let _ = later.vault(Access::Write).resume_erasure().unwrap().unwrap().commit().unwrap();
        let done = record(&later);
        let database = world.keys().join("vault/vault.db");
        let mut bytes = fs::read(&database).unwrap();
        let places = bytes.windows(begun.len()).enumerate().filter(|(_, bytes)| *bytes == begun);
        for at in places.map(|(at, _)| at).collect::<Vec<_>>() {
            bytes[at..at + done.len()].copy_from_slice(&done);
        }
        fs::write(&database, bytes).unwrap();
        assert!(world.vault(Access::Read).unconfirmed().unwrap().unwrap().erased);

        let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("`vault` and `roots`"), "{error}");
        assert_eq!(erasures(&world), 0);
        // With parts of one time it goes on.
        put_back(sound.path(), &world.keys(), &["vault", "roots"]);
        Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
        assert!(world.verified().ok);
    }
}
