//! A log whose newest part is lost for good, beside a seal state that speaks of it: how far it went, and which vault has followed it.

use super::lost_seal_state::{content, counts, seal_key};
use super::older_log::{is_gone_on_with, nothing_is_read, truncated};
use super::restored::{erase, put_back, replace};
use super::stops::{self, Stop};
use super::world::{World, copy};
use crate::helpers::in_full;
use bulla::control::SubjectKeys;
use bulla::{ErrorKind, Log, Options, Outlook, Query, Reader, Restore, Restored, open_log};
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

/// A key directory that was copied before a part was given up, or meanwhile, knows nothing of what the log told since, however many frames it knew of.
#[test]
fn a_key_directory_from_before_the_end_of_an_attempt_is_behind_what_is_lost_since() {
    let made = World::new();
    made.append(0..20);
    let left = copy(&made.directory);
    (20..32).for_each(|number| made.append(number..number + 1));
    let known = bulla::info(&made.directory).unwrap().tree_size;
    replace(left.path(), &made.directory);
    for operations in (0..).step_by(if in_full() { 1 } else { 5 }) {
        let world = made.copied();
        let done = stopped(&world, give_up(&world), operations);
        let what = format!("{operations}: {done:?}");
        if done.is_ok() {
            assert!(operations > 20, "{what}");
            break;
        }
        let keys = copy(&world.keys());
        give_up(&world).run().unwrap_or_else(|error| panic!("{what}: {error}"));
        world.append(60..62);
        erase(&world, "user_7");
        let newest = copy(&world.keys());
        let lost = bulla::info(&world.directory).unwrap().tree_size;
        assert!(lost < known, "{lost} of {known}");
        replace(left.path(), &world.directory);
        replace(keys.path(), &world.keys());
        put_back(newest.path(), &world.keys(), &["seal.state"]);
        let before = counts(&world);
        let error = give_up(&world).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
        assert!(error.to_string().contains("say `--older-vault`"), "{what}: {error}");
        assert!(counts(&world) == before, "{what}");
        let older = world.copied();
        give_up(&older).older_vault().run().unwrap_or_else(|error| panic!("{what}: {error}"));
        nothing_is_read(&older, &what);
        put_back(newest.path(), &world.keys(), &["vault", "roots"]);
        give_up(&world).run().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(truncated(&world), [lost], "{what}");
        is_not_read(&world, &what);
        is_gone_on_with(&world, &what);
    }
}

/// Beside the seal state of an attempt, a key directory that knows nothing of that tells neither what was lost nor who was erased in it.
#[test]
fn a_seal_state_of_an_attempt_of_which_nothing_else_is_there_is_not_gone_on_with() {
    let made = World::new();
    made.append(0..10);
    let before = copy(&made.keys());
    made.append(10..20);
    let left = copy(&made.directory);
    (20..28).for_each(|number| made.append(number..number + 1));
    let at_loss = copy(&made.keys());
    erase(&made, "user_7");
    replace(left.path(), &made.directory);
    let state = |world: &World| std::fs::read(world.keys().join("seal.state")).unwrap();
    let (newest, mut own) = (state(&made), 0);
    for operations in (1..).step_by(if in_full() { 1 } else { 4 }) {
        let world = made.copied();
        let done = stopped(&world, give_up(&world), operations);
        if state(&world) == newest {
            continue;
        }
        own += 1;
        let of_attempt = copy(&world.keys());
        for backup in [&before, &at_loss] {
            let world = world.copied();
            let what = format!("{operations}, {}: {done:?}", backup.path() == before.path());
            replace(backup.path(), &world.keys());
            put_back(of_attempt.path(), &world.keys(), &["seal.state"]);
            is_not_read(&world, &what);
            let before = counts(&world);
            Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
            for restore in [Restore::new(&world.directory, world.identity()), give_up(&world)] {
                // One that has followed more than is left says so.
                let kind = restore.run().unwrap_err().kind();
                assert!(matches!(kind, ErrorKind::Refused | ErrorKind::Tampered), "{what}: {kind:?}");
            }
            assert!(counts(&world) == before, "{what}");
            match give_up(&world).older_vault().run() {
                Ok(_) => {
                    nothing_is_read(&world, &what);
                    assert_eq!(truncated(&world).len(), 1, "{what}");
                }
                // It has followed frames of what the log tells was given up.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}"),
            }
            is_not_read(&world, &what);
        }
        if done.is_ok() {
            break;
        }
    }
    assert!(own > 4, "{own}");
}

/// Nor is that hidden by a record which is begun there, with whatever copies of the log.
#[test]
fn what_an_attempt_gives_up_is_not_forgotten_for_another_that_is_begun_without_its_record() {
    let made = World::new();
    made.append(0..10);
    let shorter = copy(&made.directory);
    made.append(10..20);
    let (left, before) = (copy(&made.directory), copy(&made.keys()));
    (20..28).for_each(|number| made.append(number..number + 1));
    erase(&made, "user_7");
    replace(left.path(), &made.directory);
    let state = |world: &World| std::fs::read(world.keys().join("seal.state")).unwrap();
    let newest = state(&made);
    let cut = (1..).map(|operations| {
        let world = made.copied();
        stopped(&world, give_up(&world), operations).unwrap_err();
        world
    });
    let made = cut.into_iter().find(|world| state(world) != newest).unwrap();
    let of_attempt = copy(&made.keys());
    replace(before.path(), &made.keys());
    put_back(of_attempt.path(), &made.keys(), &["seal.state"]);
    let mut begun = 0;
    for logs in [&[&shorter][..], &[&left, &shorter]] {
        for operations in 1.. {
            let world = made.copied();
            for log in logs {
                replace(log.path(), &world.directory);
                stopped(&world, give_up(&world).older_vault(), operations).unwrap_err();
                if world.keys().join("restoring").exists() {
                    // The operations of the vault are not counted: it was not marked yet.
                    put_back(before.path(), &world.keys(), &["vault", "roots"]);
                }
            }
            if content(&world.directory).len() != content(shorter.path()).len() {
                break;
            }
            begun += u64::from(world.keys().join("restoring").exists());
            let what = format!("{}, {operations}", logs.len());
            replace(left.path(), &world.directory);
            for is_found in [false, true] {
                let world = world.copied();
                if is_found && world.keys().join("restoring").exists() {
                    put_back(before.path(), &world.keys(), &["seal.state"]);
                }
                if Restore::new(&world.directory, world.identity()).run().is_ok() {
                    nothing_is_read(&world, &what);
                }
                is_not_read(&world, &what);
            }
        }
    }
    assert!(begun > 2, "{begun}");
}

/// Begun without the seal state, with a vault from before another part was given up, it knew nothing of that.
#[test]
fn a_seal_state_that_knows_of_another_part_is_not_of_what_was_begun_without_it() {
    let made = World::new();
    made.append(0..20);
    let left = copy(&made.directory);
    (20..28).for_each(|number| made.append(number..number + 1));
    let older = copy(&made.keys());
    replace(left.path(), &made.directory);
    give_up(&made).run().unwrap();
    erase(&made, "user_7");
    let newest = copy(&made.keys());
    replace(left.path(), &made.directory);
    put_back(older.path(), &made.keys(), &["vault", "roots"]);
    std::fs::remove_file(made.keys().join("seal.state")).unwrap();
    let mut begun = 0;
    for operations in (1..).step_by(if in_full() { 1 } else { 3 }) {
        let world = made.copied();
        stopped(&world, give_up(&world), operations).unwrap_err();
        if content(&world.directory).len() != content(left.path()).len() {
            break;
        }
        begun += u64::from(world.keys().join("restoring").exists());
        let what = operations.to_string();
        put_back(newest.path(), &world.keys(), &["seal.state"]);
        let error = give_up(&world).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
        is_not_read(&world, &what);
        put_back(newest.path(), &world.keys(), &["vault", "roots"]);
        give_up(&world).run().unwrap_or_else(|error| panic!("{what}: {error}"));
        is_not_read(&world, &what);
    }
    assert!(begun > 1, "{begun}");
}

/// The log tells of a part no more whose event was lost with another one; a vault that is gone on with knows of it all the same.
#[test]
fn whichever_vault_is_gone_on_with_knows_of_all_parts_that_the_seal_state_knows() {
    let made = World::new();
    let nobodys = copy(&made.keys());
    made.append(0..20);
    let left = copy(&made.directory);
    let lose = |world: &World, number: u64| {
        world.append(number..number + 2);
        replace(left.path(), &world.directory);
    };
    lose(&made, 20);
    give_up(&made).run().unwrap();
    lose(&made, 22);
    for new_vault in [false, true] {
        let world = made.copied();
        let restore = give_up(&world);
        match new_vault {
            true => {
                for name in ["vault", "roots"] {
                    std::fs::remove_dir_all(world.keys().join(name)).unwrap();
                }
                restore.new_vault().run().unwrap();
            }
            false => {
                restore.run().unwrap();
                put_back(nobodys.path(), &world.keys(), &["vault", "roots"]);
                assert_eq!(give_up(&world).run().unwrap().lost, 20);
            }
        }
        assert_eq!(truncated(&world).len(), 1, "{new_vault}");
        lose(&world, 24);
        let restored = give_up(&world).run().unwrap_or_else(|error| panic!("{new_vault}: {error}"));
        assert!(!restored.outlook.vault_behind, "{new_vault}");
    }
}

/// So does one that is gone on with once an attempt came to nothing, of which the log tells nothing.
#[test]
fn a_vault_that_is_gone_on_with_knows_of_an_attempt_that_came_to_nothing() {
    let made = World::new();
    made.append(0..20);
    let (left, older) = (copy(&made.directory), copy(&made.keys()));
    made.append(20..22);
    let (whole, newest) = (copy(&made.directory), copy(&made.keys()));
    replace(left.path(), &made.directory);
    let cut = (1..).map(|operations| {
        let world = made.copied();
        stopped(&world, give_up(&world), operations).unwrap_err();
        world
    });
    let marked = |world: &World| !world.vault(Access::Read).given_up().unwrap().is_empty();
    let made = cut.into_iter().find(marked).unwrap();
    replace(whole.path(), &made.directory);
    put_back(newest.path(), &made.keys(), &["seal.state"]);
    Restore::new(&made.directory, made.identity()).run().unwrap();
    made.append(22..24);
    for new_vault in [false, true] {
        let world = made.copied();
        let restore = Restore::new(&world.directory, world.identity());
        if new_vault {
            for name in ["vault", "roots"] {
                std::fs::remove_dir_all(world.keys().join(name)).unwrap();
            }
            restore.new_vault().run().unwrap();
        } else {
            put_back(older.path(), &world.keys(), &["vault", "roots"]);
            restore.run().unwrap();
        }
        world.append(24..26);
        let left = copy(&world.directory);
        world.append(26..28);
        replace(left.path(), &world.directory);
        let restored = give_up(&world).run().unwrap_or_else(|error| panic!("{new_vault}: {error}"));
        assert!(!restored.outlook.vault_behind, "{new_vault}");
        assert_eq!(truncated(&world).len(), 1, "{new_vault}");
    }
}

/// What is known of what was given up, and which vault has followed it, stays known until nothing of that is needed any more.
#[test]
fn a_log_that_is_found_whole_can_be_lost_again_wherever_saying_so_stops() {
    let world = World::new();
    world.append(0..20);
    let left = copy(&world.directory);
    world.append(20..50);
    erase(&world, "user_7");
    let known = bulla::info(&world.directory).unwrap().tree_size;
    let (whole, keys) = (copy(&world.directory), copy(&world.keys()));
    replace(left.path(), &world.directory);
    let mut found = 0;
    for attempt in (1..).step_by(if in_full() { 1 } else { 4 }) {
        let made = world.copied();
        stopped(&made, give_up(&made), attempt).unwrap_err();
        if content(&made.directory).len() != content(left.path()).len() {
            break;
        }
        replace(whole.path(), &made.directory);
        // With the seal state of the attempt, where it has made one, or the newest.
        let with_own = made.copied();
        put_back(keys.path(), &with_own.keys(), &["vault", "roots"]);
        put_back(keys.path(), &made.keys(), &["seal.state"]);
        for (made, operations) in (1..)
            .step_by(if in_full() { 1 } else { 7 })
            .flat_map(|operations| [(&made, operations), (&with_own, operations)])
        {
            let world = made.copied();
            let whole = Restore::new(&world.directory, world.identity());
            let done = stopped(&world, whole, operations);
            let what = format!("{attempt}, {operations}: {done:?}");
            let again = world.copied();
            let again = Restore::new(&again.directory, again.identity()).run();
            again.unwrap_or_else(|error| panic!("{what}: {error}"));
            replace(left.path(), &world.directory);
            let restored = give_up(&world).run().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(!restored.outlook.vault_behind, "{what}");
            let told = truncated(&world);
            assert!(told.len() == 1 && told[0] >= known, "{what}: {told:?}");
            is_not_read(&world, &what);
            is_gone_on_with(&world, &what);
            found += 1;
            if done.is_ok() && std::ptr::eq(made, &with_own) {
                break;
            }
        }
    }
    assert!(found > 4, "{found}");
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
