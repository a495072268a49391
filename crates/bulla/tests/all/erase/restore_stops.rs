//! An older vault or key directory that is opened or restored, cut short anywhere: the log opens after that.

use super::older_log::{
    is_gone_on_with, nothing_is_read, truncated, without_its_newest_part, without_its_newest_part_and_before,
};
use super::restored::{erase, put_back, replace};
use super::stops::{self, Stop};
use super::world::{World, copy};
use crate::helpers::in_full;
use crate::workshop::{Operation, Watch};
use bulla::control::SubjectKeys;
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::{ErrorKind, FindingKind, Log, Options, Query, Reader, Restore, Severity};
use bulla_vault::Access;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A log from which `user_7` and `user_9` were erased, its vault from before that.
fn with_older_vault() -> (World, [u64; 2]) {
    let world = World::new();
    world.append(0..60);
    let number = |name| world.vault(Access::Read).find(name).unwrap().unwrap().number;
    let numbers = ["user_7", "user_9"].map(number);
    let backup = copy(&world.keys());
    erase(&world, "user_7");
    erase(&world, "user_9");
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    (world, numbers)
}

/// A log with people who are new since the backup from which all of its key directory is.
fn with_older_keys() -> World {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.append(20..50);
    erase(&world, "user_7");
    erase(&world, "user_30");
    replace(backup.path(), &world.keys());
    world
}

/// That the log opens, and says once that each was erased, and nothing is left of them.
fn is_followed(world: &World, erased: &[&str], what: &str) {
    Log::open(&world.directory, Options::default())
        .unwrap_or_else(|error| panic!("{what}: {error}"))
        .close()
        .unwrap();
    let vault = world.vault(Access::Read);
    assert!(vault.unconfirmed().unwrap().is_none(), "{what}");
    assert!(erased.iter().all(|name| vault.find(name).unwrap().is_none()), "{what}");
    assert!(vault.find("user_8").unwrap().is_some(), "{what}");
    drop(vault);
    let events = world.events().into_iter().filter(|(_, event)| matches!(event, Event::Erased { .. }));
    assert_eq!(events.count(), erased.len(), "{what}");
    assert!(!world.keys().join("erasure.pending").exists(), "{what}");
}

/// What the vault has got to, of an erasure that it does again because the log tells of it: there is no order beside it.
pub(super) const STEPS: [&str; 3] = ["intended", "committed", "destroyed"];

pub(super) fn begin(world: &World, numbers: &[u64], step: &str) {
    let vault = world.vault(Access::Write);
    let erasure = world.begin_erasure(&vault, numbers);
    match step {
        "intended" => drop(erasure),
        "committed" => drop(erasure.commit().unwrap()),
        _ => drop(erasure.commit().unwrap().destroy().unwrap()),
    }
}

#[test]
fn a_vault_that_was_restored_goes_on_with_what_the_log_tells() {
    let (made, numbers) = with_older_vault();
    for step in STEPS {
        for numbers in [&numbers[..], &numbers[..1], &numbers[1..]] {
            let world = made.copied();
            begin(&world, numbers, step);
            is_followed(&world, &["user_7", "user_9"], step);
            assert!(world.verified().ok, "{step}");
        }
    }
    // Whom the log tells nothing of, nobody erases for it.
    let world = made.copied();
    let other = world.vault(Access::Read).find("user_8").unwrap().unwrap().number;
    begin(&world, &[numbers[0], other], "committed");
    let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unavailable && error.to_string().contains("erasure.pending"),
        "{error}"
    );
}

#[test]
fn a_restore_goes_on_with_what_the_log_tells() {
    let made = with_older_keys();
    let number = made.vault(Access::Read).find("user_7").unwrap().unwrap().number;
    for step in STEPS {
        let world = made.copied();
        begin(&world, &[number], step);
        assert_eq!(Restore::new(&world.directory, world.identity()).run().unwrap().lost, 29, "{step}");
        is_restored(&world, step);
    }
}

fn is_restored(world: &World, what: &str) {
    is_followed(world, &["user_7", "user_30"], what);
    assert!(!world.keys().join("restoring").exists(), "{what}");
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 50, "{what}");
    let report = world.verified();
    // What was cut short leaves bytes and files that count for nothing.
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let kinds = violations.map(|finding| finding.kind).collect::<Vec<_>>();
    assert_eq!(kinds, [FindingKind::KeyLost], "{what}: {report:?}");
}

/// Whose key is lost is not said to be nobody, whatever the restore has got to.
fn is_not_called_unknown(world: &World, name: &str, what: &str) {
    let id = bulla::info(&world.directory).unwrap().id;
    let keys = SubjectKeys::in_directory(world.keys(), id).unwrap();
    let reader =
        Reader::open(&world.directory).unwrap().identity(world.identity()).group_keys(Arc::new(keys));
    match reader.for_each(&Query::new().subject(name), |_, _| Ok(())) {
        Ok(read) => assert!(read.entries == 0 && read.undecided > 0, "{what}: {read:?}"),
        // The log tells already that a part was given up, and the vault does not follow that yet.
        Err(error) if error.to_string().contains("a part of the log was given up") => {}
        Err(error) => assert_ne!(error.kind(), ErrorKind::Tampered, "{what}: {error}"),
    }
}

fn step() -> usize {
    if in_full() { 1 } else { 7 }
}

#[test]
fn opening_with_an_older_vault_stops_anywhere_and_the_log_opens() {
    let (made, _) = with_older_vault();
    for operations in (0..).step_by(step()) {
        let world = made.copied();
        let stop = Stop::after(operations);
        let opened = stops::open(&world, &stop);
        let stopped = stop.stopped();
        drop(opened);
        is_followed(&world, &["user_7", "user_9"], &operations.to_string());
        assert!(world.verified().ok, "{operations}");
        if !stopped {
            assert!(operations > 10);
            break;
        }
    }
}

#[test]
fn a_restore_stops_anywhere_and_is_done_again() {
    let made = with_older_keys();
    let mut interrupted = 0;
    for operations in (0..).step_by(step()) {
        let world = made.copied();
        let (log, keys) = stops::stores(&world, &Stop::after(operations));
        let restore = || Restore::new(&world.directory, world.identity());
        let done = restore().environment(Environment::default()).run_in(log, keys);
        is_not_called_unknown(&world, "user_40", &operations.to_string());
        if world.keys().join("restoring").exists() || done.is_err() {
            interrupted += 1;
            // Until it is done again the log opens where all was done, and not otherwise.
            if let Err(error) = Log::open(&world.directory, Options::default()).map(drop) {
                assert!(
                    error.kind() == ErrorKind::Refused && error.to_string().contains("bulla restore"),
                    "{error}"
                );
                restore().run().unwrap_or_else(|error| panic!("{operations}: {error}"));
            }
        }
        is_restored(&world, &operations.to_string());
        if done.is_ok() {
            break;
        }
    }
    assert!(interrupted > 3, "{interrupted}");
}

/// With a log whose newest part is lost: what that told of whom it erased is asked of the vault before it follows what is left. The log tells
/// once that it is given up, with what the vault knew of before anything was done.
#[test]
fn a_restore_of_an_older_log_stops_anywhere_and_is_done_again() {
    let made = without_its_newest_part(World::new());
    let followed = made.vault(Access::Read).follows().unwrap().size;
    let lost_frames = followed - bulla::info(&made.directory).unwrap().tree_size;
    let (mut asked_again, mut not_asked) = (0, 0);
    for operations in (0..).step_by(if in_full() { 1 } else { 3 }) {
        let world = made.copied();
        let what = operations.to_string();
        let (log, keys) = stops::stores(&world, &Stop::after(operations));
        let restore = || Restore::new(&world.directory, world.identity());
        let done = restore().older_log().environment(Environment::default()).run_in(log, keys);
        is_not_called_unknown(&world, "user_7", &what);
        if let Err(error) = Log::open(&world.directory, Options::default()).map(drop) {
            assert!(error.to_string().contains("bulla restore"), "{what}: {error}");
            let was_signed = !truncated(&world).is_empty();
            // It has to be said again as long as the vault says that the log was longer.
            let restored = match restore().run() {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
                    asked_again += 1;
                    restore().older_log().run()
                }
                restored => {
                    not_asked += 1;
                    restored
                }
            };
            let restored = restored.unwrap_or_else(|error| panic!("{what}: {error}"));
            // Once that is signed, the part is given up, though the record of it is still there.
            let left = if was_signed { 0 } else { lost_frames };
            assert_eq!((restored.lost, restored.outlook.lost_frames), (1, left), "{what}");
        }
        assert_eq!(truncated(&world), [followed], "{what}");
        is_gone_on_with(&world, &what);
        if let Ok(restored) = done {
            assert_eq!(restored.lost, 1, "{what}");
            break;
        }
    }
    assert!(asked_again > 1 && not_asked > 1, "{asked_again} {not_asked}");
}

/// An older vault may have keys of people of whom only the part that is given up told that they were erased. Put in place when that was cut
/// short, it is not taken for the one with which that was begun, whatever the file says that tells of it.
#[test]
fn a_restore_of_an_older_log_that_stops_anywhere_reads_nothing_under_a_vault_from_before() {
    let (made, older) = without_its_newest_part_and_before(World::new());
    let followed = made.vault(Access::Read).follows().unwrap().size;
    let mut interrupted = 0;
    for operations in (0..).step_by(if in_full() { 1 } else { 3 }) {
        let begun = made.copied();
        let restore = |world: &World| Restore::new(&world.directory, world.identity()).older_log();
        let (log, keys) = stops::stores(&begun, &Stop::after(operations));
        let done = restore(&begun).environment(Environment::default()).run_in(log, keys).is_ok();
        put_back(older.path(), &begun.keys(), &["vault", "roots"]);
        if let Ok(restoring) = std::fs::read_to_string(begun.keys().join("restoring")) {
            interrupted += 1;
            let less = restoring.replace(&format!("older-log {followed} "), "older-log 0 ");
            assert_ne!(less, restoring);
            for (restoring, known) in [(restoring, followed), (less, 0)] {
                let (world, what) = (begun.copied(), format!("{operations}, {known}"));
                std::fs::write(world.keys().join("restoring"), restoring).unwrap();
                assert!(restore(&world).look().unwrap().vault_behind, "{what}");
                assert_eq!(restore(&world).run().unwrap_err().kind(), ErrorKind::Refused, "{what}");
                let done = restore(&world).older_vault().run();
                done.unwrap_or_else(|error| panic!("{what}: {error}"));
                // What the log has told already it does not tell again.
                let told = truncated(&world);
                assert!(told == [known] || told == [followed], "{what}: {told:?}");
                nothing_is_read(&world, &what);
                Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
                nothing_is_read(&world, &what);
            }
        }
        if done {
            break;
        }
    }
    assert!(interrupted > 3, "{interrupted}");
}

/// Each attempt that is cut short may have added frames. The vault followed few more than there are, and other ones.
#[test]
fn a_restore_of_an_older_log_that_is_cut_short_again_and_again_is_done_again() {
    for openings in 1..=3 {
        let made = World::new();
        made.append(0..3);
        let (log, keys) = (copy(&made.directory), copy(&made.keys()));
        (0..openings).for_each(|number| made.append(3 + number..4 + number));
        let newer = copy(&made.keys());
        replace(log.path(), &made.directory);
        replace(keys.path(), &made.keys());
        put_back(newer.path(), &made.keys(), &["vault", "roots"]);
        for operations in (0..).step_by(if in_full() { 1 } else { 5 }) {
            let world = made.copied();
            let restore = || Restore::new(&world.directory, world.identity()).older_log();
            let cut_short = || {
                let (log, keys) = stops::stores(&world, &Stop::after(operations));
                restore().environment(Environment::default()).run_in(log, keys).is_err()
            };
            let stops = (0..3).filter(|_| cut_short()).count();
            restore().run().unwrap_or_else(|error| panic!("{openings}, {operations}: {error}"));
            world.append(10..11);
            assert!(world.verified().ok, "{openings}, {operations}");
            if stops == 0 {
                assert!(operations > 10);
                break;
            }
        }
    }
}

/// Has the sync fail, once, whose number among those of segments this is.
#[derive(Debug)]
struct Blink(AtomicI64);

impl Blink {
    fn sync(&self, path: &str) -> io::Result<()> {
        match path.starts_with("segments") && self.0.fetch_sub(1, Ordering::SeqCst) == 0 {
            true => Err(io::Error::other("it blinked")),
            false => Ok(()),
        }
    }
}

impl Watch for Blink {
    fn before(&self, operation: Operation, path: &str) -> io::Result<()> {
        if operation == Operation::Sync { self.sync(path) } else { Ok(()) }
    }

    fn before_sync_directory(&self, path: &str) -> io::Result<()> {
        self.sync(path)
    }
}

/// Numbers that no checkpoint covers yet are those that a restore must not give again; and where a sync of the segment that
/// opening begins fails once, no checkpoint covers them before the log has told of that segment.
#[test]
fn a_restore_counts_what_was_adopted_though_a_sync_fails_once() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    let options = Options::default().checkpoint_interval(Duration::from_secs(3600)).writers(1);
    let log = Log::open(&world.directory, options).unwrap();
    let mut producer = log.producer().unwrap();
    (20..50).for_each(|number| World::put(&mut producer, number));
    producer.flush().unwrap().durable().unwrap();
    // As a process leaves it that is killed.
    let killed = world.copied();
    drop(producer);
    log.close().unwrap();
    replace(backup.path(), &killed.keys());
    for sync in 0.. {
        let world = killed.copied();
        let blink = Arc::new(Blink(AtomicI64::new(sync)));
        let (log, keys) = stops::stores(&world, &blink);
        let restore = || Restore::new(&world.directory, world.identity());
        // What recovery itself cannot sync is an error, and done again.
        let restored = restore().environment(Environment::default()).run_in(log, keys);
        let lost = restored.or_else(|_| restore().run()).unwrap().lost;
        assert_eq!(lost, 30, "sync {sync}");
        assert_eq!(world.vault(Access::Read).next_number().unwrap(), 50, "sync {sync}");
        if blink.0.load(Ordering::SeqCst) >= 0 {
            assert!(sync > 2, "{sync}");
            break;
        }
    }
}
