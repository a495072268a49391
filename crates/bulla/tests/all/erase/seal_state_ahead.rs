//! A log whose newest part is lost for good, beside a seal state that speaks of it: how far it went, and which vault has followed it.

use super::lost_seal_state::{content, counts, seal_key};
use super::older_log::{is_gone_on_with, truncated};
use super::restored::{erase, put_back, replace};
use super::stops::{self, Stop};
use super::world::{World, copy};
use crate::helpers::in_full;
use bulla::control::SubjectKeys;
use bulla::{ErrorKind, Outlook, Query, Reader, Restore, Restored, open_log};
use bulla_vault::Access;
use std::sync::Arc;
use tempfile::TempDir;

/// The log, with a key directory that knows of its newest part; the copy of its vault is of the middle of that part.
struct Made {
    world: World,
    known: u64,
    older: TempDir,
}

/// In what is lost `user_7`, whose entry is left, and `user_30` were erased.
fn without_its_newest_part() -> Made {
    let world = World::new();
    world.append(0..20);
    let log = copy(&world.directory);
    world.append(20..50);
    let older = copy(&world.keys());
    erase(&world, "user_7");
    erase(&world, "user_30");
    let known = bulla::info(&world.directory).unwrap().tree_size;
    replace(log.path(), &world.directory);
    Made { world, known, older }
}

fn give_up(world: &World) -> Restore {
    Restore::new(&world.directory, world.identity()).older_log().seal_key(seal_key(world))
}

/// Gives the part up, and stops after so many operations on files.
fn stopped(world: &World, restore: Restore, operations: i64) -> bulla::Result<Restored> {
    let (log, keys) = stops::stores(world, &Stop::after(operations));
    restore.run_in(log, keys)
}

/// That nobody who has the key directory as it is reads what was logged of `user_7`.
fn is_not_read(world: &World, what: &str) {
    let id = bulla::info(&world.directory).unwrap().id;
    let keys = Arc::new(SubjectKeys::in_directory(world.keys(), id).unwrap());
    let log = open_log(&world.directory, Some(&world.keys()), &[]).unwrap();
    let reader = Reader::open_store(log).unwrap().key(world.key.clone());
    let reader = reader.identity(world.identity()).group_keys(keys);
    let mut found = 0;
    let read = reader.for_each(&Query::new().subject("user_7"), |_, _| {
        found += 1;
        Ok(())
    });
    assert!(read.is_err() || found == 0, "{what}");
}

#[test]
fn what_the_seal_state_speaks_of_is_given_up_only_where_both_are_said() {
    let Made { world, known, .. } = without_its_newest_part();
    let before = counts(&world);
    let without_seal_key = Restore::new(&world.directory, world.identity()).older_log();
    let error = without_seal_key.run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    assert!(error.to_string().contains(&format!("its seal state covers {known}")), "{error}");
    assert!(error.to_string().contains("name the seal key, too (`--seal-key`)"), "{error}");
    let without_older_log = Restore::new(&world.directory, world.identity()).seal_key(seal_key(&world));
    assert_eq!(without_older_log.run().unwrap_err().kind(), ErrorKind::Tampered);
    assert!(counts(&world) == before);

    let looked = give_up(&world).look().unwrap();
    assert!(counts(&world) == before);
    let restored = give_up(&world).run().unwrap();
    assert_eq!(restored.outlook, looked);
    let Outlook { makes_seal_state, vault_behind, lost_frames, log, .. } = looked;
    assert!(makes_seal_state && !vault_behind);
    assert_eq!((looked.known.frames, lost_frames), (known, known - log.frames));
    assert_eq!((truncated(&world), restored.lost), (vec![known], 1));
    is_not_read(&world, "given up");
    is_gone_on_with(&world, "given up");
    // There is nothing left that could be given up.
    assert!(!give_up(&world).look().unwrap().needed);
}

/// The newest vault has followed what the seal state speaks of, and no other, however much more than is left.
#[test]
fn wherever_it_stops_an_older_vault_gives_up_nothing_that_the_seal_state_speaks_of() {
    let Made { world: made, older, .. } = without_its_newest_part();
    for operations in (1..).step_by(if in_full() { 1 } else { 5 }) {
        let world = made.copied();
        let done = stopped(&world, give_up(&world), operations);
        let what = format!("{operations}: {done:?}");
        let right = copy(&world.keys());
        put_back(older.path(), &world.keys(), &["vault", "roots"]);
        is_not_read(&world, &what);
        let keys = counts(&world);
        match give_up(&world).run() {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}"),
            Ok(restored) => panic!("{what}: {restored:?}"),
        }
        assert!(counts(&world) == keys, "{what}");
        put_back(right.path(), &world.keys(), &["vault", "roots"]);
        if done.is_err() {
            give_up(&world).run().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        is_not_read(&world, &what);
        is_gone_on_with(&world, &what);
        if done.is_ok() {
            assert!(operations > 20);
            return;
        }
    }
}

/// With a vault that is made anew nothing but the seal state tells which numbers people had in what is given up.
#[test]
fn no_number_that_was_given_in_what_is_given_up_is_given_again() {
    let Made { world: made, .. } = without_its_newest_part();
    let given = made.vault(Access::Read).next_number().unwrap();
    for name in ["vault", "roots"] {
        std::fs::remove_dir_all(made.keys().join(name)).unwrap();
    }
    for operations in (1..).step_by(if in_full() { 1 } else { 9 }) {
        let world = made.copied();
        let done = stopped(&world, give_up(&world).new_vault(), operations);
        if done.is_err() {
            let begun = world.keys().join("restoring").exists();
            let again = if begun { give_up(&world) } else { give_up(&world).new_vault() };
            again.run().unwrap_or_else(|error| panic!("{operations}: {error}"));
        }
        world.append(50..52);
        assert!(world.vault(Access::Read).next_number().unwrap() > given, "{operations}");
        if done.is_ok() {
            assert!(operations > 20);
            return;
        }
    }
}

/// What was begun while nothing told of it was begun with a vault that may not be the newest.
#[test]
fn a_seal_state_that_is_put_back_tells_which_vault_goes_on_with_what_was_begun_without_it() {
    let Made { world: made, known, older } = without_its_newest_part();
    let newest = copy(&made.keys());
    let log = content(&made.directory);
    put_back(older.path(), &made.keys(), &["vault", "roots"]);
    std::fs::remove_file(made.keys().join("seal.state")).unwrap();
    let mut begun = 0;
    for operations in (1..).step_by(if in_full() { 1 } else { 3 }) {
        let world = made.copied();
        stopped(&world, give_up(&world), operations).unwrap_err();
        if content(&world.directory).len() != log.len() {
            break;
        }
        begun += u64::from(world.keys().join("restoring").exists());
        let what = operations.to_string();
        put_back(newest.path(), &world.keys(), &["seal.state"]);
        assert!(give_up(&world).look().unwrap().vault_behind, "{what}");
        assert_eq!(give_up(&world).run().unwrap_err().kind(), ErrorKind::Refused, "{what}");
        is_not_read(&world, &what);
        put_back(newest.path(), &world.keys(), &["vault", "roots"]);
        let restored = give_up(&world).run().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!restored.outlook.vault_behind, "{what}");
        assert_eq!(truncated(&world), [known], "{what}");
        is_not_read(&world, &what);
        is_gone_on_with(&world, &what);
    }
    assert!(begun > 1, "{begun}");
}

/// It was kept as evidence, and is put back once what it speaks of is given up.
#[test]
fn what_is_given_up_is_not_given_up_once_more() {
    let Made { world: made, known, .. } = without_its_newest_part();
    let spoken_of = copy(&made.keys());
    let mut signed = 0;
    for operations in (1..).step_by(if in_full() { 1 } else { 5 }) {
        let world = made.copied();
        let done = stopped(&world, give_up(&world), operations);
        let what = format!("{operations}: {done:?}");
        put_back(spoken_of.path(), &world.keys(), &["seal.state"]);
        if done.is_ok() {
            let before = counts(&world);
            let error = give_up(&world).run().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains("it is from before that"), "{error}");
            assert!(counts(&world) == before);
            // As one that is lost.
            std::fs::remove_file(world.keys().join("seal.state")).unwrap();
        }
        signed += u64::from(truncated(&world) == [known]);
        give_up(&world).run().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(truncated(&world), [known], "{what}");
        is_not_read(&world, &what);
        is_gone_on_with(&world, &what);
        if done.is_ok() {
            break;
        }
    }
    assert!(signed > 2, "{signed}");
}

/// Of another log it says nothing of this one.
#[test]
fn a_seal_state_of_another_log_gives_nothing_up() {
    let Made { world, .. } = without_its_newest_part();
    let Made { world: others, .. } = without_its_newest_part();
    put_back(&others.keys(), &world.keys(), &["seal.state"]);
    let before = counts(&world);
    let error = give_up(&world).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("belongs to another log"), "{error}");
    assert!(counts(&world) == before);
}

/// A log that is whole needs no other seal state, whatever is said.
#[test]
fn a_seal_state_that_speaks_of_nothing_that_is_lost_is_left() {
    let world = World::new();
    world.append(0..20);
    let before = counts(&world);
    assert!(!give_up(&world).run().unwrap().outlook.needed);
    assert!(counts(&world) == before);
    // A crash between the seal state and the checkpoint.
    let log = copy(&world.directory);
    world.append(20..30);
    for name in ["checkpoint", "tile"] {
        put_back(log.path(), &world.directory, &[name]);
    }
    let before = counts(&world);
    assert!(!give_up(&world).run().unwrap().outlook.needed);
    assert!(counts(&world) == before);
    world.append(30..40);
    assert!(world.verified().ok);
}
