//! A log whose vault has a replica.

use super::world::{World, copy, copy_into};
use bulla::{Configure, ErrorKind, Init, Log, Options, Restore};
use bulla_vault::Access;
use std::fs;

fn open(world: &World) -> bulla::Result<Log> {
    Log::open(&world.directory, Options::default())
}

/// The directory with the vault is lost, but for the little that other backups have of it.
#[test]
fn a_log_goes_on_with_the_replica_of_its_vault() {
    let world = World::new();
    let replica = world.with_replica();
    world.append(0..200);
    let log = open(&world).unwrap();
    log.erase(&world.order(&["user_7"])).unwrap();
    log.close().unwrap();
    world.append(200..300);
    let (whole, withheld) = world.entries();
    for name in ["vault", "roots"] {
        fs::remove_dir_all(world.keys().join(name)).unwrap();
        copy_into(&replica.join(name), &world.keys().join(name));
    }
    assert_eq!(world.entries(), (whole, withheld), "whoever was read is read, whoever was erased is not");
    world.append(300..400);
    assert!(world.verified().ok);
    let vault = world.vault(Access::Read);
    // Fifty people and the one who came back.
    assert_eq!(vault.next_number().unwrap(), 51);
}

/// All of it is lost, and the backup of the rest is old.
#[test]
fn with_a_replica_a_restored_key_directory_has_lost_nobody() {
    let world = World::new();
    let replica = world.with_replica();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.append(20..200);
    fs::remove_dir_all(world.keys()).unwrap();
    copy_into(backup.path(), &world.keys());
    let restore = || Restore::new(&world.directory, world.identity());
    let take_up = || restore().run();
    let is_refused = |restore: &dyn Fn() -> Restore, kind, why| {
        for error in [restore().look().map(drop), restore().run().map(drop)] {
            let error = error.unwrap_err();
            assert_eq!((error.kind(), error.to_string().contains(why)), (kind, true), "{error}");
            assert!(!world.keys().join("restoring").exists(), "before anything is written");
        }
    };
    is_refused(&restore, ErrorKind::Refused, "it is newer than");
    let unmounted = replica.with_extension("unmounted");
    fs::rename(&replica, &unmounted).unwrap();
    is_refused(&restore, ErrorKind::Unavailable, "there is no such directory: mount it");
    fs::rename(&unmounted, &replica).unwrap();
    // Nor is a new vault made beside a replica of the one that is lost, all of it or what it has of the roots.
    for name in ["vault", "roots"] {
        fs::remove_dir_all(world.keys().join(name)).unwrap();
    }
    let new_vault = || restore().new_vault();
    is_refused(&new_vault, ErrorKind::Refused, "in the place of");
    fs::rename(replica.join("vault"), &unmounted).unwrap();
    is_refused(&new_vault, ErrorKind::Refused, "roots");
    fs::rename(&unmounted, replica.join("vault")).unwrap();
    assert!(!world.keys().join("vault").exists());
    for name in ["vault", "roots"] {
        copy_into(&backup.path().join(name), &world.keys().join(name));
    }
    for name in ["vault", "roots"] {
        fs::remove_dir_all(world.keys().join(name)).unwrap();
        copy_into(&replica.join(name), &world.keys().join(name));
    }
    assert_eq!(open(&world).unwrap_err().kind(), ErrorKind::Refused, "`seal.state` is old");
    assert_eq!(take_up().unwrap().lost, 0);
    world.append(200..300);
    let (whole, withheld) = world.entries();
    assert_eq!((whole.len(), withheld.len()), (300, 0));
    assert!(world.verified().ok);
}

#[test]
fn while_a_replica_is_left_out_nobody_is_erased() {
    let world = World::new();
    let replica = world.with_replica();
    world.append(0..100);
    let log = open(&world).unwrap();
    // In the way of the root that an erasure makes.
    let obstacle = replica.join("roots/1.root.tmp");
    fs::create_dir(&obstacle).unwrap();
    let order = world.order(&["user_7"]);
    for _ in 0..2 {
        let error = log.erase(&order).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("a replica of the vault, is left out"), "{error}");
    }
    let [state] = &log.vault_replicas()[..] else { panic!("there is one") };
    assert_eq!(state.path, replica.to_str().unwrap());
    assert!(state.failure.as_ref().unwrap().contains("1.root"), "{state:?}");
    let mut producer = log.producer().unwrap();
    (100..200).for_each(|number| World::put(&mut producer, number));
    drop(producer);
    log.close().unwrap();
    assert_eq!(world.entries().0.len(), 200);

    fs::remove_dir(&obstacle).unwrap();
    let log = open(&world).unwrap();
    assert_eq!(log.vault_replicas()[0].failure, None);
    log.erase(&order).unwrap();
    log.close().unwrap();
    assert!(!world.entries().1.is_empty() && world.verified().ok);
}

#[test]
fn a_place_that_can_hold_no_replica_is_refused() {
    let world = World::new();
    // To be set as well as to be opened with.
    let set = |path: &std::path::Path| {
        let told = |error: bulla::Error| (error.kind(), error.to_string());
        let place = path.to_str().unwrap();
        let set = Configure::default().set("vault_replicas", place).unwrap().apply(&world.directory);
        let text = format!("[settings]\nvault_replicas = [{place:?}]\n");
        fs::write(world.keys().join("settings.toml"), text).unwrap();
        let opened = open(&world).map(drop).map_err(told);
        assert_eq!(set.map(drop).map_err(told), opened);
        opened
    };
    let refused = |path: &std::path::Path| set(path).unwrap_err();
    let missing = world.directory.with_file_name("missing");
    let (kind, message) = refused(&missing);
    assert_eq!(
        (kind, message.contains("there is no such directory: mount it")),
        (ErrorKind::Unavailable, true)
    );
    let (kind, message) = refused(&world.directory.join("tile"));
    assert_eq!(
        (kind, message.contains("lies in the log's directory")),
        (ErrorKind::Refused, true),
        "{message}"
    );
    let (kind, message) = refused(&world.keys());
    assert_eq!(
        (kind, message.contains("lies in the key directory")),
        (ErrorKind::Refused, true),
        "{message}"
    );
    fs::create_dir(&missing).unwrap();
    set(&missing).unwrap();

    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().erasure(false).create(&directory).unwrap();
    let error = Log::open(&directory, Options::default().vault_replicas([place.path()])).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("no vault")), (ErrorKind::Invalid, true), "{error}");
}
