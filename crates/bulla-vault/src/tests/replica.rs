//! Replicas: what is in them, what becomes of one that is not as it should be, and a vault that is lost.

use super::*;
use record::Changes;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::mpsc::channel;
use std::time::Duration;
use table::Table;
use transaction_error::TransactionError;

/// A vault with a replica.
struct Pair {
    world: World,
    replica: TempDir,
}

impl Pair {
    fn new() -> Self {
        let replica = tempfile::tempdir().unwrap();
        let replicas = vec![ReplicaLocation::new(replica.path())];
        let world = World::with(Settings { replicas, ..Settings::default() });
        Pair { world, replica }
    }

    fn assert_same(&self) {
        let kept = |path: &Path| kept(path, &FileSystem::new(path));
        // Not assert_eq: it would print all of it.
        assert!(kept(self.world.path()) == kept(self.replica.path()));
    }

    /// Which file the replica's database is.
    fn database(&self) -> u64 {
        fs::metadata(self.replica.path().join("vault/vault.db")).unwrap().ino()
    }

    /// The replica, in the place of a vault that is lost.
    fn taken_up(&self) -> World {
        let place = tempfile::tempdir().unwrap();
        copy(self.replica.path(), place.path());
        World { place, settings: Settings::default() }
    }

    fn refusal(&self) -> (ErrorKind, String) {
        let (kind, message) = self.world.refusal();
        let name = self.replica.path().display().to_string();
        // Whichever of the two is damaged comes first.
        let (of_replica, of_vault) = (
            format!("{name}, a replica of the vault"),
            format!("it was not copied over its replica in {name}"),
        );
        assert!(message.starts_with(&of_replica) || message.contains(&of_vault), "{message}");
        (kind, message)
    }
}

/// Who waits for another process's transaction waits as long as it takes here, but for that.
#[test]
fn whoever_gives_up_ends_a_wait_for_another_process() {
    let world = World::new();
    let replica = tempfile::tempdir().unwrap();
    let settings = Settings { replicas: vec![ReplicaLocation::new(replica.path())], ..Settings::default() };
    let vault = Vault::open(world.path(), LOG, Access::Write, &settings).unwrap();
    assert_eq!(number(&vault, "one"), 0);
    vault.shared.database.patience().endless.store(true, std::sync::atomic::Ordering::Relaxed);
    // The vault's database, and then its replica's.
    for held in [world.file("vault"), replica.path().join("vault")] {
        let other = Database::open(&held).map_err(|error| error.into_error("test")).unwrap();
        let held = other.write(|_| {
            let (waiting, given_up) = (|| vault.resolve(&["two"]), || vault.give_up());
            let resolved = std::thread::scope(|scope| {
                let waiting = scope.spawn(waiting);
                scope.spawn(given_up);
                waiting.join().unwrap()
            });
            Ok(resolved.map(|subjects| subjects[0].number))
        });
        match held.map_err(|error| error.into_error("test")).unwrap() {
            Err(error) => {
                assert!(error.to_string().contains("database is locked"), "{error}");
                assert_eq!(vault.replicas()[0].failure, None);
            }
            // The vault has somebody new, and the replica is left out.
            Ok(number) => {
                assert_eq!(number, 1);
                let failure = vault.replicas()[0].failure.clone().unwrap();
                assert!(failure.contains("database is locked"), "{failure}");
            }
        }
    }
    assert!(vault.replicas()[0].failure.is_some());
    // Nobody else has it now.
    assert_eq!(number(&vault, "three"), 2);
}

#[test]
fn a_replica_has_what_the_vault_has() {
    let pair = Pair::new();
    let vault = pair.world.open();
    pair.assert_same();
    let made = pair.database();
    fill(&vault, "s", 100);
    pair.assert_same();
    vault.confirm(erase(&vault, &["s7", "s42"]).unwrap().unwrap().numbers()).unwrap();
    pair.assert_same();
    vault.begin_erasure(&["s3"]).unwrap().unwrap().withdraw().unwrap();
    vault.follow(head(12)).unwrap();
    pair.assert_same();
    // New keys, a bucket that is halved.
    vault.skip_to((u64::from(keys::AHEAD) << keys::ROWS_LOG2) - 2000).unwrap();
    (0..28).for_each(|batch| drop(fill(&vault, &format!("b{batch}/"), 500)));
    let buckets = vault.shared.snapshot(|it| index::Bucket::all(it.txn, it.keys)).unwrap();
    assert!(buckets.len() > 1 && vault.shared.keys().rows.len() > keys::AHEAD as usize);
    pair.assert_same();
    assert_eq!(pair.database(), made, "nothing of this was worth a copy");
    assert_eq!(vault.replicas()[0].failure, None);
    drop(vault);
    pair.assert_same();
    drop(pair.world.open());
    assert_eq!(pair.database(), made, "it was up to date");
    pair.assert_same();
}

/// Somebody has put it back to what it was, or changed it, while it is in use: nothing is written on top of that.
#[test]
fn a_replica_that_another_has_changed_is_copied_anew_and_not_gone_on_with() {
    for older in [true, false] {
        let pair = Pair::new();
        let vault = pair.world.open();
        fill(&vault, "s", 10);
        let made = pair.database();
        let other =
            Database::open(&pair.replica.path().join("vault")).map_err(|error| error.into_error("test"));
        let keys = vault.shared.keys();
        let changed = other.unwrap().write(|txn| {
            let last = Changes::read(txn, &keys)?;
            let tag = if older { last.tag } else { [7; 8] };
            Changes { count: last.count - u64::from(older), tag }.write(txn, &keys)?;
            txn.delete_range(Table::Rows, 0..=0)
        });
        changed.map_err(|error| error.into_error("test")).unwrap();
        // A root of an earlier generation came with it.
        fs::write(pair.replica.path().join("roots/77.root"), "old").unwrap();
        fill(&vault, "t", 10);
        pair.assert_same();
        assert_ne!(pair.database(), made);
        assert_eq!(vault.replicas()[0].failure, None);
        // It is gone on with as ever.
        let made = pair.database();
        fill(&vault, "u", 10);
        pair.assert_same();
        assert_eq!(pair.database(), made);
    }
}

/// The commit of a transaction failed, and what it wrote is there all the same.
#[test]
fn what_a_failed_commit_has_left_is_durable_and_in_the_replica_before_it_is_given_out() {
    let pair = Pair::new();
    let vault = pair.world.open();
    fill(&vault, "s", 10);
    // The vault that this one would have become.
    let ahead = tempfile::tempdir().unwrap();
    copy(pair.world.path(), ahead.path());
    let other = Vault::open(ahead.path(), LOG, Access::Write, &Settings::default()).unwrap();
    assert_eq!(number(&other, "new"), 10);
    vault.shared.database.fail();
    for file in ["vault.db", "vault.db-wal"] {
        let [from, to] = [ahead.path(), pair.world.path()].map(|place| place.join("vault").join(file));
        fs::write(to, fs::read(from).unwrap()).unwrap();
    }
    assert_eq!(vault.find("new").unwrap().unwrap().number, 10);
    // It is in the file, whatever becomes of the log of changes.
    let cut = tempfile::tempdir().unwrap();
    copy(pair.world.path(), cut.path());
    for file in ["vault.db-wal", "vault.db-shm"] {
        fs::remove_file(cut.path().join("vault").join(file)).unwrap();
    }
    let cut = Vault::open(cut.path(), LOG, Access::Read, &Settings::default()).unwrap();
    assert_eq!(cut.find("new").unwrap().unwrap().number, 10);
    assert_eq!(number(&vault, "new"), 10);
    pair.assert_same();
    assert_eq!(vault.replicas()[0].failure, None);
}

/// What is too much to be remembered is copied.
#[test]
fn a_large_transaction_is_followed_by_a_copy() {
    let pair = Pair::new();
    let vault = pair.world.open();
    let made = pair.database();
    fill(&vault, "s", 20_000);
    assert_ne!(pair.database(), made);
    pair.assert_same();
    fill(&vault, "t", 10);
    pair.assert_same();
    assert_eq!(vault.replicas()[0].failure, None);
}

#[test]
fn a_lost_vault_is_taken_up_from_its_replica() {
    let pair = Pair::new();
    let vault = pair.world.open();
    let subjects = fill(&vault, "s", 300);
    vault.confirm(erase(&vault, &["s7"]).unwrap().unwrap().numbers()).unwrap();
    let late = vault.resolve(&["late"]).unwrap().remove(0);
    // As it is this moment: whoever was given out is there.
    let world = pair.taken_up();
    drop(vault);
    let vault = world.open();
    assert_sound(&vault);
    for (index, subject) in subjects.iter().enumerate().filter(|(index, _)| *index != 7) {
        let found = vault.find(&format!("s{index}")).unwrap().unwrap();
        assert_eq!((found.number, found.key.bytes()), (subject.number, subject.key.bytes()));
    }
    assert_eq!(key(&vault, "late"), *late.key.bytes());
    assert!(vault.find("s7").unwrap().is_none() && vault.key(7).unwrap().is_none());
    assert_eq!(number(&vault, "new"), 301);
}

/// The thread that looks somebody up while another one's transaction is on its way to the replicas has to wait for it.
#[test]
fn nobody_is_given_out_who_is_not_in_the_replica() {
    let pair = Pair::new();
    let settings = Settings { cache: 0, ..pair.world.settings.clone() };
    let vault = Vault::open(pair.world.path(), LOG, Access::Write, &settings).unwrap();
    fill(&vault, "s", 3);
    let replicas = vault.shared.replicas();
    let (turn, keys) = (replicas.turn(), vault.shared.keys());
    assert_eq!(number(&vault, "s1"), 1, "who is in the replica is not waited for");
    let committed =
        vault.shared.database.write(|txn| Changes::read(txn, &keys)?.next(&SystemRandom)?.write(txn, &keys));
    committed.map_err(|error| error.into_error("test")).unwrap();
    let (done, wait) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| done.send(number(&vault, "s1")).unwrap());
        wait.recv_timeout(Duration::from_millis(200)).unwrap_err();
        drop(turn);
        assert_eq!(wait.recv().unwrap(), 1);
    });
}

/// Behind, by transactions and by an erasure, after which the keys of whoever was erased are destroyed in it.
#[test]
fn a_replica_that_is_behind_is_made_anew() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 100);
    let alone = Settings::default();
    let vault = Vault::open(pair.world.path(), LOG, Access::Write, &alone).unwrap();
    vault.resolve(&["new"]).unwrap();
    drop(vault);
    drop(pair.world.open());
    pair.assert_same();

    let vault = Vault::open(pair.world.path(), LOG, Access::Write, &alone).unwrap();
    vault.confirm(erase(&vault, &["s7"]).unwrap().unwrap().numbers()).unwrap();
    drop(vault);
    let root = pair.replica.path().join("roots/0.root");
    let was = fs::read(&root).unwrap();
    fs::hard_link(&root, pair.replica.path().join("witness")).unwrap();
    drop(pair.world.open());
    pair.assert_same();
    let now = fs::read(pair.replica.path().join("witness")).unwrap();
    assert!(!root.exists() && now.len() == was.len() && now[..32] != was[..32]);
}

/// Two copies that went on apart may have had equally many transactions.
#[test]
fn a_replica_that_went_its_own_way_is_made_anew() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    let other = pair.taken_up();
    let alone = Settings::default();
    Vault::open(pair.world.path(), LOG, Access::Write, &alone).unwrap().resolve(&["here"]).unwrap();
    other.open().resolve(&["there"]).unwrap();
    for name in ["vault", "roots"] {
        fs::remove_dir_all(pair.replica.path().join(name)).unwrap();
        copy(&other.file(name), &pair.replica.path().join(name));
    }
    let vault = pair.world.open();
    pair.assert_same();
    assert!(vault.find("here").unwrap().is_some() && vault.find("there").unwrap().is_none());
}

#[test]
fn files_of_the_roots_that_are_missing_or_others_are_written_again() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    for name in ["roots/0.root", "roots/0.keys"] {
        fs::remove_file(pair.replica.path().join(name)).unwrap();
        drop(pair.world.open());
        pair.assert_same();
        fs::write(pair.replica.path().join(name), b"something else").unwrap();
        drop(pair.world.open());
        pair.assert_same();
    }
    fs::write(pair.replica.path().join("roots/9.root"), b"of an erasure that never came to be").unwrap();
    drop(pair.world.open());
    pair.assert_same();
}

/// What is half made, in a directory with other things in it, is made to its end.
#[test]
fn an_attempt_that_was_cut_short_is_replaced() {
    let pair = Pair::new();
    fs::create_dir(pair.replica.path().join("vault")).unwrap();
    fs::write(pair.replica.path().join("vault/vault.db.tmp"), vec![1; 1 << 20]).unwrap();
    fs::write(pair.replica.path().join("notes"), b"mine").unwrap();
    fill(&pair.world.open(), "s", 10);
    pair.assert_same();
    assert!(!pair.replica.path().join("vault/vault.db.tmp").exists());
    assert_eq!(fs::read(pair.replica.path().join("notes")).unwrap(), b"mine");
}

#[test]
fn a_missing_directory_is_named() {
    let mut pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    let elsewhere = tempfile::tempdir().unwrap();
    let away = elsewhere.path().join("away");
    fs::rename(pair.replica.path(), &away).unwrap();
    // As the next process names it; this one holds the directory that it found.
    pair.world.settings.replicas = vec![ReplicaLocation::new(pair.replica.path())];
    let (kind, message) = pair.refusal();
    assert_eq!((kind, message.contains("mount it")), (ErrorKind::Unavailable, true), "{message}");
    assert!(!pair.replica.path().exists(), "nothing is made in the place of what is not mounted");
    fs::rename(&away, pair.replica.path()).unwrap();
    drop(pair.world.open());
    pair.assert_same();
}

/// SQLite would follow the one, and wait at the other for ever.
#[test]
fn a_link_or_a_pipe_in_the_place_of_its_files_is_refused() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    let vault = pair.replica.path().join("vault");
    let pipe = vault.join("vault.db-journal");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (kind, message) = pair.refusal();
    assert!(kind == ErrorKind::Unavailable && message.contains("vault.db-journal"), "{message}");
    fs::remove_file(&pipe).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let away = elsewhere.path().join("vault");
    fs::rename(&vault, &away).unwrap();
    std::os::unix::fs::symlink(&away, &vault).unwrap();
    let (kind, message) = pair.refusal();
    assert!(kind == ErrorKind::Unavailable && message.contains("symbolic link"), "{message}");
    fs::remove_file(&vault).unwrap();
    fs::rename(&away, &vault).unwrap();
    drop(pair.world.open());
    pair.assert_same();
}

#[test]
fn what_is_no_replica_of_this_vault_is_refused_and_left_alone() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    // Another log's.
    let other = World { place: tempfile::tempdir().unwrap(), settings: Settings::default() };
    Vault::create(other.path(), LogId([9; 16]), &other.settings).unwrap();
    let refused = |path: &Path| {
        let before = kept(path, &FileSystem::new(path));
        let settings = Settings { replicas: vec![ReplicaLocation::new(path)], ..pair.world.settings.clone() };
        let error = Vault::open(pair.world.path(), LOG, Access::Write, &settings).unwrap_err();
        assert!(before == kept(path, &FileSystem::new(path)));
        (error.kind(), error.to_string())
    };
    let (kind, message) = refused(other.path());
    assert_eq!((kind, message.contains("of another log, 0909")), (ErrorKind::Refused, true), "{message}");
    let (kind, message) = refused(pair.world.path());
    assert_eq!((kind, message.contains("the vault itself")), (ErrorKind::Refused, true), "{message}");
    let place = || ReplicaLocation::new(pair.replica.path());
    let twice = Settings { replicas: vec![place(), place()], ..pair.world.settings.clone() };
    let error = Vault::open(pair.world.path(), LOG, Access::Write, &twice).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("named twice")), (ErrorKind::Refused, true));
    let many = Settings { replicas: (0..5).map(|_| place()).collect(), ..pair.world.settings.clone() };
    let error = Vault::open(pair.world.path(), LOG, Access::Write, &many).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    drop(pair.world.open());
}

/// The roots of another log, whose database is lost or not mounted: they are destroyed nowhere but there.
#[test]
fn roots_of_another_log_are_refused_and_left_alone() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    let other = World { place: tempfile::tempdir().unwrap(), settings: Settings::default() };
    Vault::create(other.path(), LogId([9; 16]), &other.settings).unwrap();
    fs::remove_dir_all(other.path().join("vault")).unwrap();
    let read = |name: &str| fs::read(other.path().join("roots").join(name)).unwrap();
    let (root, keys) = (read("0.root"), read("0.keys"));
    let settings =
        Settings { replicas: vec![ReplicaLocation::new(other.path())], ..pair.world.settings.clone() };
    let refuses = || {
        let error = Vault::open(pair.world.path(), LOG, Access::Write, &settings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("not known to be of this log"), "{error}");
    };
    refuses();
    assert!(read("0.root") == root && read("0.keys") == keys);
    fs::remove_file(other.path().join("roots/0.keys")).unwrap();
    refuses();
    assert!(read("0.root") == root);
}

/// By a number, by an erasure, or by a transaction that is neither: the vault is from a backup.
#[test]
fn a_replica_that_is_newer_is_refused_and_left_alone() {
    let changes: [fn(&Vault); 3] = [
        |vault| drop(vault.resolve(&["new"]).unwrap()),
        |vault| vault.confirm(erase(vault, &["s3"]).unwrap().unwrap().numbers()).unwrap(),
        |vault| vault.follow(head(7)).unwrap(),
    ];
    for change in changes {
        let pair = Pair::new();
        fill(&pair.world.open(), "s", 10);
        let backup = tempfile::tempdir().unwrap();
        copy(pair.world.path(), backup.path());
        change(&pair.world.open());
        for name in ["vault", "roots"] {
            fs::remove_dir_all(pair.world.file(name)).unwrap();
            copy(&backup.path().join(name), &pair.world.file(name));
        }
        let before = kept(pair.replica.path(), &FileSystem::new(pair.replica.path()));
        let (kind, message) = pair.refusal();
        assert_eq!((kind, message.contains("it is newer than")), (ErrorKind::Refused, true), "{message}");
        assert!(before == kept(pair.replica.path(), &FileSystem::new(pair.replica.path())));
        // As the message says.
        for name in ["vault", "roots"] {
            fs::remove_dir_all(pair.world.file(name)).unwrap();
            copy(&pair.replica.path().join(name), &pair.world.file(name));
        }
        drop(pair.world.open());
        pair.assert_same();
    }
}

/// The vault that took its place has had more transactions, but nobody's of the replica.
#[test]
fn a_replica_that_alone_knows_somebody_is_refused() {
    let changes: [fn(&Vault); 2] = [
        |vault| drop(fill(vault, "new", 5)),
        |vault| vault.confirm(erase(vault, &["s3"]).unwrap().unwrap().numbers()).unwrap(),
    ];
    for change in changes {
        let pair = Pair::new();
        fill(&pair.world.open(), "s", 10);
        let backup = World { place: tempfile::tempdir().unwrap(), settings: pair.world.settings.clone() };
        copy(pair.world.path(), backup.path());
        change(&pair.world.open());
        let alone = Settings::default();
        let vault = Vault::open(backup.path(), LOG, Access::Write, &alone).unwrap();
        (0..50).for_each(|frames| vault.follow(head(frames)).unwrap());
        drop(vault);
        let (kind, message) = backup.refusal();
        assert_eq!((kind, message.contains("it is newer than")), (ErrorKind::Refused, true), "{message}");
    }
}

#[test]
fn a_replica_that_is_damaged_is_named() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 3000);
    let data = pair.replica.path().join("vault/vault.db");
    let whole = fs::read(&data).unwrap();
    let noise = b"no database".repeat(1000);
    for damaged in [&[], &whole[..4096], &whole[..whole.len() - 1], &noise] {
        fs::write(&data, damaged).unwrap();
        let (kind, message) = pair.refusal();
        assert_eq!(kind, ErrorKind::Unavailable, "{message}");
        assert!(message.ends_with("remove `vault` in it, and it is made anew"), "{message}");
    }
    fs::remove_dir_all(pair.replica.path().join("vault")).unwrap();
    drop(pair.world.open());
    pair.assert_same();
}

/// A replica whose medium fails in the middle: the log goes on, but nobody is erased.
#[test]
fn a_replica_that_fails_is_left_out_until_the_vault_is_opened_again() {
    let pair = Pair::new();
    let vault = pair.world.open();
    fill(&vault, "s", 10);
    vault.shared.replicas().make_read_only(0);
    assert_eq!(number(&vault, "new"), 10);
    let [state] = &vault.replicas()[..] else { panic!("one") };
    assert_eq!(state.path, pair.replica.path().display().to_string());
    assert!(state.failure.is_some());
    let error = vault.begin_erasure(&["s3"]).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("whoever is erased now would stay in it"), "{error}");
    assert_eq!(vault.unconfirmed().unwrap(), None);
    assert_eq!(number(&vault, "s3"), 3, "nobody is held back");
    drop(vault);
    let vault = pair.world.open();
    pair.assert_same();
    vault.confirm(erase(&vault, &["s3"]).unwrap().unwrap().numbers()).unwrap();
    pair.assert_same();
}

/// One that fails at any step of an erasure: nobody is erased, or whoever is, is so in the replica too.
#[test]
fn a_replica_that_fails_while_somebody_is_erased() {
    for step in 0..3 {
        let pair = Pair::new();
        let vault = pair.world.open();
        fill(&vault, "s", 10);
        let fail = |at| {
            if at == step {
                vault.shared.replicas().make_read_only(0)
            }
        };
        fail(0);
        let Ok(erasure) = vault.begin_erasure(&["s3"]) else { panic!("nobody has noticed yet") };
        fail(1);
        match erasure.unwrap().commit() {
            Err(error) => {
                assert_eq!((step, error.kind()), (0, ErrorKind::Unavailable), "{error}");
                vault.resume_erasure().unwrap().unwrap().withdraw().unwrap();
                assert_eq!(number(&vault, "s3"), 3);
            }
            Ok(committed) => {
                assert!(step > 0);
                fail(2);
                let erased = committed.destroy().unwrap();
                let roots = FileSystem::new(pair.replica.path()).list("roots").unwrap();
                assert!(roots.iter().all(|file| file.name.starts_with("1.")), "{roots:?}");
                vault.confirm(erased.numbers()).unwrap();
            }
        }
        assert!(vault.replicas()[0].failure.is_some());
        drop(vault);
        drop(pair.world.open());
        pair.assert_same();
    }
}

/// The root of an erasure that failed, for a reason of the vault's own, is not merely written over by name.
#[test]
fn the_root_of_a_failed_attempt_is_overwritten_in_the_replica() {
    let pair = Pair::new();
    let vault = pair.world.open();
    fill(&vault, "s", 10);
    fill(&vault, "t", 10);
    let sound = vault.shared.snapshot(|it| Ok(it.txn.get(Table::Rows, 1)?.unwrap())).unwrap();
    let put = |bytes: &[u8]| vault.shared.change(|change| change.txn.put(Table::Rows, 1, bytes)).unwrap();
    put(&[0; 64]);
    let erasure = vault.begin_erasure(&["s1"]).unwrap().unwrap();
    assert_eq!(erasure.commit().err().unwrap().kind(), ErrorKind::Unavailable);
    put(&sound);
    let (root, witness) = (pair.replica.path().join("roots/1.root"), pair.replica.path().join("witness"));
    let was = fs::read(&root).unwrap();
    fs::hard_link(&root, &witness).unwrap();
    vault.resume_erasure().unwrap().unwrap().commit().unwrap().destroy().unwrap();
    assert_ne!(fs::read(&witness).unwrap()[..32], was[..32]);
    pair.assert_same();
}

/// What cannot be written at opening is refused then.
#[test]
fn a_replica_that_cannot_be_written_is_refused() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    for name in ["roots/0.keys.tmp", "vault/vault.db.tmp"] {
        let obstacle = pair.replica.path().join(name);
        fs::create_dir(&obstacle).unwrap();
        if name.starts_with("vault") {
            // It has to be made anew.
            fs::remove_file(pair.replica.path().join("vault/vault.db")).unwrap();
        }
        let (kind, message) = pair.refusal();
        let written = message.contains(&format!("writing {}", pair.replica.path().join("").display()));
        assert_eq!((kind, written), (ErrorKind::Unavailable, true), "{message}");
        fs::remove_dir(&obstacle).unwrap();
        drop(pair.world.open());
        pair.assert_same();
    }
}

/// Several: each is as good as the vault, and one that fails leaves the others.
#[test]
fn of_several_replicas_each_has_all() {
    let pair = Pair::new();
    let second = tempfile::tempdir().unwrap();
    let places = [pair.replica.path(), second.path()].map(ReplicaLocation::new).to_vec();
    let settings = Settings { replicas: places, ..pair.world.settings.clone() };
    let vault = Vault::open(pair.world.path(), LOG, Access::Write, &settings).unwrap();
    fill(&vault, "s", 10);
    vault.shared.replicas().make_read_only(1);
    fill(&vault, "t", 10);
    pair.assert_same();
    assert_eq!(vault.replicas().iter().map(|it| it.failure.is_some()).collect::<Vec<_>>(), [false, true]);
    vault.begin_erasure(&["s3"]).err().unwrap();
}

#[test]
fn who_only_reads_needs_no_replica_and_touches_none() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 10);
    fs::remove_dir_all(pair.replica.path().join("vault")).unwrap();
    let reader = Vault::open(pair.world.path(), LOG, Access::Read, &pair.world.settings).unwrap();
    assert_eq!(reader.find("s3").unwrap().unwrap().number, 3);
    assert!(reader.replicas().is_empty() && !pair.replica.path().join("vault").exists());
    // A handle that writes beside it has them all the same.
    let vault = pair.world.open();
    assert_eq!(vault.replicas().len(), 1);
    fill(&vault, "t", 5);
    pair.assert_same();
    drop(vault);
    assert!(reader.replicas().is_empty());
}

/// A vault that is damaged where it is copied from is named, and not the replica that it is copied to.
#[test]
fn a_damaged_vault_is_not_taken_for_a_damaged_replica() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 3000);
    fs::remove_dir_all(pair.replica.path().join("vault")).unwrap();
    let data = pair.world.file("vault/vault.db");
    let mut bytes = fs::read(&data).unwrap();
    // Opening itself reads the last row, and none in the middle.
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0x55);
    fs::write(&data, bytes).unwrap();
    let (kind, message) = pair.refusal();
    assert_eq!(kind, ErrorKind::Unavailable);
    assert!(
        message.contains("vault/vault.db is damaged (") && !message.contains("is made anew"),
        "{message}"
    );
}

/// Opening a vault finds that it is damaged, and the replica, which is behind, may be the last good one.
#[test]
fn a_vault_that_is_refused_as_damaged_leaves_the_replica_as_it_was() {
    type Damage = fn(&mut snapshot::Change<'_, '_>) -> Result<(), TransactionError>;
    let kinds: [(Damage, &str); 2] = [
        (
            |change| {
                change.meta.next_number -= 1;
                change.meta.indexed = record::Indexed::up_to(change.meta.next_number);
                Ok(())
            },
            "beyond the last number",
        ),
        (|change| change.txn.delete_range(Table::Buckets, 0..=0), "index bucket for prefix 0 is missing"),
    ];
    for (damage, told) in kinds {
        let pair = Pair::new();
        fill(&pair.world.open(), "s", 10);
        let alone = Vault::open(pair.world.path(), LOG, Access::Write, &Settings::default()).unwrap();
        fill(&alone, "t", 10);
        alone.shared.change(damage).unwrap();
        drop(alone);
        let replica = || kept(pair.replica.path(), &FileSystem::new(pair.replica.path()));
        let (before, file) = (replica(), pair.database());
        let (kind, message) = pair.world.refusal();
        assert_eq!((kind, message.contains(told)), (ErrorKind::Unavailable, true), "{message}");
        assert!(before == replica() && file == pair.database(), "{told}: the replica was written");
    }
}

/// The rows of a table, as they lie in a database.
fn rows_of(database: &Database, table: Table) -> Vec<(u64, Vec<u8>)> {
    let mut rows = Vec::new();
    let read = database.read(|txn| {
        txn.all(table, |id, row| {
            rows.push((id, row.to_vec()));
            Ok(())
        })
    });
    read.map_err(|error| error.into_error("test")).unwrap();
    rows
}

/// It is found to be as far as the vault by two records, whatever has become of the rest.
#[test]
fn a_replica_with_other_rows_than_the_vault_is_made_anew() {
    let pair = Pair::new();
    let vault = pair.world.open();
    fill(&vault, "s", 50);
    let replica = || {
        let database = Database::open(&pair.replica.path().join("vault"));
        database.map_err(|error| error.into_error("test")).unwrap()
    };
    let older = table::TABLES.map(|table| rows_of(&replica(), table));
    vault.confirm(erase(&vault, &["s7"]).unwrap().unwrap().numbers()).unwrap();
    fill(&vault, "t", 50);
    drop(vault);
    let mut alterations = 0;
    for (table, older) in table::TABLES.into_iter().zip(older) {
        let rows = rows_of(&replica(), table);
        // Those of which it is told how far it is are compared first: they are not altered here.
        let rows = rows.into_iter().filter(|(id, _)| table != Table::Records || ![1, 4].contains(id));
        for (id, row) in rows.step_by(37) {
            let zeros = vec![0; row.len()];
            let mut flipped = row.clone();
            *flipped.last_mut().unwrap() ^= 1;
            let cut = row[..row.len() - 1].to_vec();
            let before = older.iter().find(|(older, _)| *older == id).map(|(_, row)| row.clone());
            let kinds = [Some(zeros), Some(flipped), Some(cut), before.filter(|before| *before != row), None];
            for kind in kinds {
                let made = pair.database();
                let altered = replica().write(|txn| match &kind {
                    Some(row) => txn.put(table, id, row),
                    None => txn.delete_range(table, id..=id),
                });
                altered.map_err(|error| error.into_error("test")).unwrap();
                drop(pair.world.open());
                assert_ne!(pair.database(), made, "{table:?} {id}");
                pair.assert_same();
                alterations += 1;
            }
        }
        // One more than there are.
        let more = replica().write(|txn| txn.put(table, 1 << 40, b"more"));
        more.map_err(|error| error.into_error("test")).unwrap();
        drop(pair.world.open());
        pair.assert_same();
    }
    assert!(alterations > 20, "{alterations}");
    let made = pair.database();
    drop(pair.world.open());
    assert_eq!(pair.database(), made, "it was up to date");
    // What the documents say to do with it.
    let vault = pair.taken_up().open();
    assert_eq!((number(&vault, "s8"), number(&vault, "t9")), (8, 59));
    assert_eq!(vault.check(&|number| number == 7, &|_| ()).unwrap().damage, []);
}

/// Puts a row into a database, or takes it out, behind the vault's back.
fn put(directory: &Path, table: Table, id: u64, row: Option<&[u8]>) {
    let database =
        Database::open(&directory.join("vault")).map_err(|error| error.into_error("test")).unwrap();
    let altered = database.write(|txn| match row {
        Some(row) => txn.put(table, id, row),
        None => txn.delete_range(table, id..=id),
    });
    altered.map_err(|error| error.into_error("test")).unwrap();
}

/// What a medium or a hand can make of a row: other bytes, fewer, and none.
fn damaged_rows(row: &[u8]) -> [Option<Vec<u8>>; 4] {
    let mut flipped = row.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    [Some(flipped), Some(vec![0; row.len()]), Some(row[..row.len() - 1].to_vec()), None]
}

/// One that is level with the vault, one that is behind, and one that is not there yet: it may be the last good copy.
#[test]
fn no_damaged_row_of_the_vault_is_copied_over_a_replica() {
    for stage in ["level", "behind", "new"] {
        let pair = Pair::new();
        fill(&pair.world.open(), "s", 400);
        let alone = Settings::default();
        if stage == "behind" {
            fill(&Vault::open(pair.world.path(), LOG, Access::Write, &alone).unwrap(), "t", 400);
        }
        if stage == "new" {
            fs::remove_dir_all(pair.replica.path().join("vault")).unwrap();
            fs::remove_dir_all(pair.replica.path().join("roots")).unwrap();
        }
        let files = || {
            let is_there = pair.replica.path().join("vault/vault.db").exists();
            is_there
                .then(|| (kept(pair.replica.path(), &FileSystem::new(pair.replica.path())), pair.database()))
        };
        let before = files();
        for table in [Table::Rows, Table::Index] {
            let vault = Database::open(&pair.world.file("vault")).map_err(|error| error.into_error("test"));
            // Opening itself reads the last row. A row that both have is at its start, one that only the vault has at its end.
            let rows = rows_of(&vault.unwrap(), table);
            for (id, row) in [&rows[1], &rows[rows.len() - 2]] {
                for damage in damaged_rows(row) {
                    // What neither of them has, no copy takes away.
                    if stage == "behind" && *id != rows[1].0 && damage.is_none() {
                        continue;
                    }
                    put(pair.world.path(), table, *id, damage.as_deref());
                    let (kind, message) = pair.refusal();
                    assert_eq!(kind, ErrorKind::Unavailable, "{message}");
                    assert!(
                        message.contains("vault/vault.db is damaged (") && message.contains("row"),
                        "{message}"
                    );
                    assert!(!message.contains("is made anew"), "{message}");
                    assert!(files() == before, "{stage}, {table:?} {id}: the replica was written");
                }
                put(pair.world.path(), table, *id, Some(row));
            }
        }
        assert_eq!(pair.replica.path().join("roots").exists(), stage != "new");
        drop(pair.world.open());
        pair.assert_same();
    }
}

/// It is authentic, and the replica is as far as the vault: the medium has lost what was written to it last.
#[test]
fn an_older_row_of_the_vault_is_not_copied_over_a_replica() {
    let pair = Pair::new();
    let vault = pair.world.open();
    fill(&vault, "s", 40);
    let rows = |table| rows_of(&vault.shared.database, table);
    let older = [Table::Rows, Table::Index].map(rows);
    fill(&vault, "t", 40);
    let newer = [Table::Rows, Table::Index].map(rows);
    drop(vault);
    let before = pair.database();
    for (table, (older, newer)) in [Table::Rows, Table::Index].into_iter().zip(older.iter().zip(&newer)) {
        let changed = older.iter().find(|row| !newer.contains(row)).unwrap();
        put(pair.world.path(), table, changed.0, Some(&changed.1));
        let (kind, message) = pair.refusal();
        assert_eq!(kind, ErrorKind::Unavailable);
        assert!(message.contains("is older than the rest"), "{message}");
        assert_eq!(pair.database(), before);
        let good = newer.iter().find(|row| row.0 == changed.0).unwrap();
        put(pair.world.path(), table, good.0, Some(&good.1));
    }
    drop(pair.world.open());
    assert_eq!(pair.database(), before);
    pair.assert_same();
}

/// What is damaged in both is no reason to refuse the rest: nothing of it is lost with the copy.
#[test]
fn a_row_that_is_damaged_in_both_keeps_no_replica_from_following() {
    let pair = Pair::new();
    fill(&pair.world.open(), "s", 400);
    for place in [pair.world.path(), pair.replica.path()] {
        put(place, Table::Rows, 3, Some(b"damaged"));
    }
    fill(&Vault::open(pair.world.path(), LOG, Access::Write, &Settings::default()).unwrap(), "t", 400);
    drop(pair.world.open());
    pair.assert_same();
}

/// While a writer runs: by a journal that does not go on from what the replica has, and by a transaction that is too large for one.
#[test]
fn a_damaged_vault_is_not_copied_over_a_replica_that_it_would_follow_with() {
    for count in [10, 20_000] {
        let pair = Pair::new();
        let vault = pair.world.open();
        fill(&vault, "s", 400);
        put(pair.world.path(), Table::Rows, 3, Some(b"damaged"));
        if count == 10 {
            let other = Changes { count: 1, tag: [7; 8] };
            let sealed = vault.shared.keys().vouch(Table::Records, 4, other.encode());
            put(pair.replica.path(), Table::Records, 4, Some(&sealed));
        }
        let replica = || kept(pair.replica.path(), &FileSystem::new(pair.replica.path()));
        let (before, file) = (replica(), pair.database());
        fill(&vault, "t", count);
        let failure = vault.replicas()[0].failure.clone().expect("it is left out");
        assert!(failure.contains("vault.db is damaged (its row 3"), "{failure}");
        assert!(before == replica() && file == pair.database(), "the replica was written");
        let error = vault.begin_erasure(&["s300"]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "nobody is erased");
    }
}

/// Root and keys in memory are good still: those of a replica that another has changed are not replaced by what became of the vault's.
#[test]
fn damaged_roots_of_the_vault_are_not_copied_over_those_of_a_replica() {
    for name in ["roots/0.keys", "roots/0.root"] {
        let pair = Pair::new();
        let vault = pair.world.open();
        fill(&vault, "s", 10);
        let mut bytes = fs::read(pair.world.file(name)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(pair.world.file(name), bytes).unwrap();
        let other = Changes { count: 1, tag: [7; 8] };
        let sealed = vault.shared.keys().vouch(Table::Records, 4, other.encode());
        put(pair.replica.path(), Table::Records, 4, Some(&sealed));
        let replica = || kept(pair.replica.path(), &FileSystem::new(pair.replica.path()));
        let (before, file) = (replica(), pair.database());
        fill(&vault, "t", 10);
        let failure = vault.replicas()[0].failure.clone().expect("it is left out");
        assert!(failure.contains("roots/0."), "{failure}");
        assert!(before == replica() && file == pair.database(), "the replica was written");
    }
}

/// Under the name of the copy that is being made there may be a link to a file of somebody else's, or one that others read.
#[test]
fn the_copy_of_a_vault_is_a_file_of_its_own() {
    let pair = Pair::new();
    drop(pair.world.open());
    let directory = pair.replica.path().join("vault");
    let other = pair.replica.path().join("other");
    fs::write(&other, "somebody else's").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(directory.join("vault.db")).unwrap();
    fs::hard_link(&other, directory.join("vault.db.tmp")).unwrap();
    drop(pair.world.open());
    assert_eq!(fs::read(&other).unwrap(), b"somebody else's");
    let made = fs::metadata(directory.join("vault.db")).unwrap();
    assert_eq!((made.mode() & 0o777, made.nlink()), (0o600, 1));
    pair.assert_same();
}

#[test]
fn a_directory_in_the_place_of_a_file_of_a_replica_is_named() {
    for name in ["vault.db", "vault.db-wal", "vault.db-shm", "vault.db.tmp"] {
        for gone in [false, true] {
            let pair = Pair::new();
            let vault = pair.world.open();
            fill(&vault, "s", 10);
            drop(vault);
            let directory = pair.replica.path().join("vault");
            if gone || name == "vault.db" || name == "vault.db.tmp" {
                // It is made anew.
                fs::remove_file(directory.join("vault.db")).unwrap();
            }
            let _ = fs::remove_file(directory.join(name));
            fs::create_dir(directory.join(name)).unwrap();
            let (kind, message) = pair.refusal();
            assert_eq!(kind, ErrorKind::Unavailable, "{message}");
            let expected = format!("{name}` is a directory, and has to be a file: remove it");
            assert!(message.contains(&expected), "{message}");
            fs::remove_dir(directory.join(name)).unwrap();
            drop(pair.world.open());
            pair.assert_same();
        }
    }
}
