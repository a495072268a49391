//! A seal state that is lost is made anew from the seal key, a vault that is lost is replaced by an empty one, and what a restore comes to is told before it is done.

use super::restored::{erase, put_back};
use super::stops::Stop;
use super::world::{World, copy};
use bulla::keys::seal_chain::render_seal_key;
use bulla::{ErrorKind, FindingKind, Log, Options, Outlook, Restore, info};
use bulla_vault::Access;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use zeroize::Zeroizing;

pub(super) fn seal_key(world: &World) -> Zeroizing<String> {
    Zeroizing::new(std::fs::read_to_string(world.keys().join("seal.key")).unwrap())
}

fn restore(world: &World) -> Restore {
    Restore::new(&world.directory, world.identity())
}

/// Everything in a directory, and what it is.
pub(super) fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for item in std::fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => found.extend(content(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

/// All that counts: readers of the vault have files of their own beside it.
pub(super) fn counts(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = content(&world.directory);
    found.extend(content(&world.keys()));
    let of_readers = |path: &Path| path.to_string_lossy().contains("vault.db-");
    found.retain(|path, _| !of_readers(path));
    found
}

#[test]
fn a_lost_seal_state_is_made_anew_from_the_seal_key_and_nobody_s_key_is_lost() {
    let world = World::new();
    world.append(0..20);
    erase(&world, "user_7");
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.hold(&world.hold("user_8", "legal", "case 4711")).unwrap();
    log.close().unwrap();
    world.append(20..40);
    std::fs::remove_file(world.keys().join("seal.state")).unwrap();
    let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
    assert!(error.kind() == ErrorKind::NoKey && error.to_string().contains("--seal-key"), "{error}");
    assert_eq!(restore(&world).run().unwrap_err().kind(), ErrorKind::NoKey, "no seal key was given");
    let restored = restore(&world).seal_key(seal_key(&world)).run().unwrap();
    assert!(restored.outlook.makes_seal_state);
    assert_eq!((restored.lost, restored.hold_differences.len(), restored.outlook.known.frames), (0, 0, 0));
    world.append(40..60);
    // Fifty people, of whom one is somebody new after being erased.
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 51);
    assert!(world.verified().ok);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let error = log.erase(&world.order(&["user_8"])).unwrap_err();
    assert!(error.to_string().contains("held by legal"), "{error}");
    log.close().unwrap();
}

#[test]
fn a_seal_key_that_is_not_the_log_s_changes_nothing() {
    let world = World::new();
    world.append(0..20);
    let others = World::new();
    let id = info(&world.directory).unwrap().id;
    // Also where none is needed.
    let before = counts(&world);
    let error = restore(&world).seal_key(seal_key(&others)).run().unwrap_err();
    assert_eq!((error.kind(), counts(&world) == before), (ErrorKind::Refused, true), "{error}");
    for log in [id, others.id] {
        assert!(error.to_string().contains(&log.to_string()), "{error}");
    }
    std::fs::remove_file(world.keys().join("seal.state")).unwrap();
    let before = counts(&world);
    let keys = [
        (seal_key(&others), ErrorKind::Refused),
        (render_seal_key(id, &[7; 32]), ErrorKind::Tampered),
        (Zeroizing::new("none".to_owned()), ErrorKind::Invalid),
    ];
    for (key, kind) in keys {
        let error = restore(&world).seal_key(key).run().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(counts(&world), before, "{error}");
    }
}

#[test]
fn with_a_lost_seal_state_an_older_copy_of_the_log_is_found_by_the_vault() {
    let world = World::new();
    world.append(0..20);
    let older = copy(&world.directory);
    world.append(20..40);
    world.append(40..60);
    std::fs::remove_dir_all(&world.directory).unwrap();
    super::world::copy_into(older.path(), &world.directory);
    std::fs::remove_file(world.keys().join("seal.state")).unwrap();
    let before = counts(&world);
    let error = restore(&world).seal_key(seal_key(&world)).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    assert!(error.to_string().contains("an older copy of the log"), "{error}");
    assert_eq!(counts(&world), before);
}

#[test]
fn what_a_restore_comes_to_is_told_before_anything_is_changed() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.append(20..50);
    let known = info(&world.directory).unwrap();
    erase(&world, "user_7");
    erase(&world, "user_30");
    for name in ["seal.state", "vault", "roots"] {
        put_back(backup.path(), &world.keys(), &[name]);
    }
    let log = info(&world.directory).unwrap();
    let before = counts(&world);
    let looked = restore(&world).look().unwrap();
    assert_eq!(counts(&world), before, "looking changes nothing");
    let told = Rc::new(RefCell::new(None::<Outlook>));
    let teller = told.clone();
    let files = (world.directory.clone(), world.keys());
    let restored = restore(&world)
        .when_looked(move |outlook| {
            let mut now = content(&files.0);
            now.extend(content(&files.1));
            now.retain(|path, _| !path.to_string_lossy().contains("vault.db-"));
            assert_eq!(now, before, "it is told before");
            *teller.borrow_mut() = Some(outlook.clone());
        })
        .run()
        .unwrap();
    assert_eq!(told.borrow().as_ref(), Some(&looked));
    assert_eq!(restored.outlook, looked);
    assert!(looked.known.frames < known.tree_size && looked.known.entries == 20, "{looked:?}");
    assert_eq!(
        (looked.log.frames, looked.log.entries, looked.log.time),
        (log.tree_size, 50, log.signed_time)
    );
    assert!(looked.known.time.is_some() && looked.known.time <= known.signed_time, "{looked:?}");
    assert_eq!((&looked.erased[..], looked.lost, restored.lost), (&[7][..], 29, 29));
    let again = restore(&world).look().unwrap();
    assert_eq!((&again.erased[..], again.lost), (&[][..], 0));
}

/// How many people some entries are of.
fn people(entries: std::ops::Range<u64>) -> u64 {
    entries.flat_map(World::subjects).collect::<BTreeSet<_>>().len() as u64
}

fn lose_the_vault(world: &World) {
    for name in ["vault", "roots"] {
        std::fs::remove_dir_all(world.keys().join(name)).unwrap();
    }
}

#[test]
fn a_log_that_lost_its_vault_goes_on_with_a_new_one_and_gives_no_number_twice() {
    let world = World::new();
    world.append(0..20);
    erase(&world, "user_7");
    lose_the_vault(&world);
    assert!(Log::open(&world.directory, Options::default()).is_err());
    assert!(restore(&world).run().is_err(), "only who says so gets a new one");
    let before = counts(&world);
    let looked = restore(&world).new_vault().look().unwrap();
    assert_eq!(counts(&world), before);
    let restored = restore(&world).new_vault().run().unwrap();
    assert_eq!((looked.lost, restored.lost, &looked.erased[..]), (19, 19, &[][..]));
    world.append(20..30);
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 20 + people(20..30));
    let (whole, withheld) = world.entries();
    assert_eq!((whole, withheld), ((20..30).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>()));
    let findings = world.verified().findings;
    assert!(findings.iter().all(|finding| finding.kind == FindingKind::KeyLost), "{findings:?}");
}

#[test]
fn a_new_vault_is_made_in_the_place_of_none() {
    let world = World::new();
    world.append(0..20);
    let whole = copy(&world.keys());
    for left in [&["vault", "roots"][..], &["vault"], &["roots"]] {
        lose_the_vault(&world);
        for name in left {
            super::world::copy_into(&whole.path().join(name), &world.keys().join(name));
        }
        let before = counts(&world);
        let error = restore(&world).new_vault().run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{left:?}: {error}");
        assert!(error.to_string().contains("move it away"), "{error}");
        assert_eq!(counts(&world), before, "{left:?}");
        for name in ["vault", "roots"] {
            std::fs::create_dir_all(world.keys().join(name)).unwrap();
        }
    }
}

/// Taking keys up begins an epoch, for which there would be no reason.
#[test]
fn where_nothing_is_lost_or_older_a_restore_changes_nothing() {
    let world = World::new();
    world.append(0..20);
    erase(&world, "user_7");
    let before = counts(&world);
    for restore in [restore(&world), restore(&world).seal_key(seal_key(&world))] {
        let restored = restore.run().unwrap();
        assert!(!restored.outlook.needed && restored.lost == 0, "{restored:?}");
        assert_eq!(counts(&world), before);
    }
    // One that was begun is to be finished, and is no reason to take a vault that has somebody's keys for none.
    std::fs::write(world.keys().join("restoring"), "2 1\n").unwrap();
    let before = counts(&world);
    let error = restore(&world).new_vault().run().unwrap_err();
    assert_eq!((error.kind(), counts(&world) == before), (ErrorKind::Refused, true), "{error}");
    assert!(error.to_string().contains("move it away"), "{error}");
    // Nor are the roots anybody's to replace, where the vault is only somewhere else.
    let vault = world.keys().join("vault");
    let elsewhere = world.keys().with_extension("elsewhere");
    std::fs::rename(&vault, &elsewhere).unwrap();
    let before = counts(&world);
    let error = restore(&world).new_vault().run().unwrap_err();
    assert_eq!((error.kind(), counts(&world) == before), (ErrorKind::Refused, true), "{error}");
    assert!(error.to_string().contains("roots is there"), "{error}");
    std::fs::rename(&elsewhere, &vault).unwrap();
    // So it is where that one was to make a new vault, and the one that was lost is back.
    std::fs::write(world.keys().join("restoring"), "2 1 new-vault\n").unwrap();
    let before = counts(&world);
    let error = restore(&world).new_vault().run().unwrap_err();
    assert_eq!((error.kind(), counts(&world) == before), (ErrorKind::Refused, true), "{error}");
    assert!(error.to_string().contains("has the keys of 19 data subjects"), "{error}");
    assert!(restore(&world).run().unwrap().outlook.needed);
    world.append(20..40);
    assert!(world.verified().ok);
}

#[test]
fn a_restore_with_a_new_vault_stops_anywhere_and_is_done_again() {
    let made = World::new();
    made.append(0..20);
    erase(&made, "user_7");
    lose_the_vault(&made);
    let mut stopped = 0;
    for operations in (0..).step_by(8) {
        let world = made.copied();
        let (log, keys) = super::stops::stores(&world, &Stop::after(operations));
        let done = restore(&world).new_vault().run_in(log, keys);
        if done.is_err() {
            stopped += 1;
            // That it is a new vault was said when it was begun.
            let again = || match stopped % 2 {
                0 => restore(&world),
                _ => restore(&world).new_vault(),
            };
            if world.keys().join("restoring").exists() {
                let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
                assert!(error.to_string().contains("`bulla restore --new-vault`"), "{operations}: {error}");
            }
            if stopped % 2 == 1 || world.keys().join("restoring").exists() {
                let looked = again().look().unwrap_or_else(|error| panic!("{operations}: {error}"));
                let restored = again().run().unwrap_or_else(|error| panic!("{operations}: {error}"));
                assert_eq!((&restored.outlook, restored.lost), (&looked, 19), "{operations}");
                assert_eq!(looked.lost, 19, "{operations}");
            } else {
                restore(&world).new_vault().run().unwrap();
            }
        }
        world.append(20..30);
        let next = world.vault(Access::Read).next_number().unwrap();
        assert_eq!(next, 20 + people(20..30), "{operations}");
        assert_eq!(world.entries().0, (20..30).collect::<Vec<_>>(), "{operations}");
        if done.is_ok() {
            break;
        }
    }
    assert!(stopped > 3, "{stopped}");

    // While it is made the database is no vault yet, and SQLite may keep beside it what it has begun.
    for journal in [None, Some(&[0; 512][..])] {
        let world = made.copied();
        std::fs::write(world.keys().join("restoring"), "0 20 new-vault\n").unwrap();
        std::fs::create_dir(world.keys().join("vault")).unwrap();
        let file = |name: &str| world.keys().join("vault").join(name);
        std::fs::write(file("vault.db"), "").unwrap();
        journal.iter().for_each(|journal| std::fs::write(file("vault.db-journal"), journal).unwrap());
        assert_eq!((restore(&world).look().unwrap().lost, restore(&world).run().unwrap().lost), (19, 19));
        world.append(20..30);
        assert_eq!(world.entries().0, (20..30).collect::<Vec<_>>());
    }
}
