//! What a backup brings back, the log takes away again.

use super::lost_seal_state::content;
use super::restore_stops::{STEPS, begin};
use super::states::write_pending;
use super::stops::{self, Stop};
use super::world::{World, copy, copy_into};
use bulla::store::{FileSystem, Store};
use bulla::{
    Durability, ErrorKind, FindingKind, HoldDifference, Log, Options, Query, Reader, Restore, ResumedErasure,
};
use bulla_vault::{Access, Settings, Vault};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn put_back(from: &Path, to: &Path, names: &[&str]) {
    for name in names {
        let (from, to) = (from.join(name), to.join(name));
        if from.is_dir() {
            std::fs::remove_dir_all(&to).unwrap();
            super::world::copy_into(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

pub(super) fn erase(world: &World, subject: &str) -> u64 {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let erasure = log.erase(&world.order(&[subject])).unwrap();
    log.close().unwrap();
    erasure.frame
}

/// The same log after a restore that stopped once the log was opened and the seal state replaced.
fn cut_short(made: &World) -> World {
    let checkpoint = |world: &World| std::fs::read(world.directory.join("checkpoint")).unwrap();
    let stopped = (0..).step_by(4).map(|operations| {
        let world = made.copied();
        let (log, keys) = super::stops::stores(&world, &Stop::after(operations));
        assert!(Restore::new(&world.directory, world.identity()).run_in(log, keys).is_err());
        world
    });
    let world = stopped.into_iter().find(|world| checkpoint(world) != checkpoint(made)).unwrap();
    assert!(world.keys().join("restoring").exists());
    world
}

#[test]
fn a_vault_that_was_restored_erases_again_what_the_log_erased() {
    let world = World::new();
    world.append(0..200);
    let backup = copy(&world.keys());
    erase(&world, "user_7");
    erase(&world, "user_9");
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    assert!(world.vault(Access::Read).find("user_7").unwrap().is_some());

    let before = bulla::info(&world.directory).unwrap().tree_size;
    Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
    let vault = world.vault(Access::Read);
    assert!(vault.find("user_7").unwrap().is_none() && vault.find("user_9").unwrap().is_none());
    assert!(vault.find("user_8").unwrap().is_some());
    // The epoch of the opening, and no second event.
    assert_eq!(bulla::info(&world.directory).unwrap().tree_size, before + 1);
    drop(vault);
    assert!(world.verified().ok);
}

/// A key directory from before the last entries, in which an erasure was cut short.
#[test]
fn what_a_restore_finishes_is_told_beforehand_and_what_cannot_be_finished_is_refused_with_nothing_written() {
    for step in STEPS {
        let world = World::new();
        world.append(0..60);
        let number = world.vault(Access::Read).find("user_7").unwrap().unwrap().number;
        let before = copy(&world.keys());
        world.append(60..80);
        // Where nothing is older than the log, it does not open for it either.
        let newest = world.copied();
        replace(before.path(), &world.keys());
        let restore = |world: &World| Restore::new(&world.directory, world.identity());
        for world in [&world, &newest] {
            write_pending(world, &world.order(&["user_7"]), number);
            begin(world, &[number], step);
            let without = world.copied();
            std::fs::remove_file(without.keys().join("erasure.pending")).unwrap();
            match step {
                "intended" => assert_eq!(restore(&without).look().unwrap().finishes, None),
                _ => {
                    for error in [restore(&without).look().map(drop), restore(&without).run().map(drop)] {
                        let error = error.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Unavailable);
                        assert!(error.to_string().contains("erasure.pending: it is missing"), "{error}");
                    }
                    assert!(!without.keys().join("restoring").exists());
                }
            }
        }
        assert_eq!(restore(&newest).look().unwrap().finishes, None, "opening the log finishes it");
        let finishes = restore(&world).look().unwrap().finishes.unwrap();
        assert_eq!((finishes.numbers, finishes.destroyed), (vec![number], step != "intended"));
        let restored = restore(&world).run().unwrap();
        assert_eq!(restored.resumed, Some(ResumedErasure::Finished { numbers: vec![number] }));
    }
}

/// Erases, and leaves what a crash would: the event is durable, no checkpoint covers it yet.
fn erase_uncovered(world: &World, subject: &str) {
    let checkpoint = std::fs::read(world.directory.join("checkpoint")).unwrap();
    let tree = copy(&world.directory.join("tile"));
    erase(world, subject);
    std::fs::write(world.directory.join("checkpoint"), checkpoint).unwrap();
    replace(tree.path(), &world.directory.join("tile"));
}

#[test]
fn a_log_that_an_older_key_directory_is_refused_for_is_left_as_it_is() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.append(20..50);
    erase_uncovered(&world, "user_7");
    let (newest, before) = (copy(&world.keys()), content(&world.directory));
    replace(backup.path(), &world.keys());
    let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Refused && error.to_string().contains("is older than the log"),
        "{error}"
    );
    assert!(content(&world.directory) == before, "refused with nothing written");
    replace(newest.path(), &world.keys());
    Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
    assert!(world.verified().ok);
}

/// Whose key a frame destroyed that no checkpoint covers is not lost, and is erased again where it is back.
#[test]
fn what_a_restore_counts_is_true_of_frames_that_no_checkpoint_covers() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.append(20..50);
    let (back, gone) = (world.vault(Access::Read).find("user_7").unwrap().unwrap().number, "user_30");
    erase_uncovered(&world, gone);
    let other = world.copied();
    replace(backup.path(), &world.keys());
    let restore = || Restore::new(&world.directory, world.identity());
    let outlook = restore().look().unwrap();
    assert_eq!((outlook.lost, outlook.unsigned_entries, outlook.erased), (29, 0, vec![]));
    assert_eq!(restore().run().unwrap().lost, 29);

    let world = other;
    erase_uncovered(&world, "user_7");
    replace(backup.path(), &world.keys());
    let restore = || Restore::new(&world.directory, world.identity());
    assert_eq!(restore().look().unwrap().erased, [back]);
    assert_eq!(restore().run().unwrap().lost, 29);
    assert!(world.vault(Access::Read).find("user_7").unwrap().is_none());
}

#[test]
fn an_erasure_that_no_checkpoint_covers_is_followed_too() {
    let world = World::new();
    world.append(0..200);
    let backup = copy(&world.keys());
    let state = std::fs::read(world.keys().join("seal.state")).unwrap();
    erase_uncovered(&world, "user_7");
    std::fs::write(world.keys().join("seal.state"), state).unwrap();
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert!(log.recovery().frames > 0);
    log.close().unwrap();
    assert!(world.vault(Access::Read).find("user_7").unwrap().is_none());
    assert!(world.verified().ok);
}

#[test]
fn a_key_directory_that_is_older_than_the_log_is_not_written_with() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    // New people, who get numbers, and one who is erased.
    world.append(20..50);
    erase(&world, "user_7");
    erase(&world, "user_30");
    std::fs::remove_dir_all(world.keys()).unwrap();
    super::world::copy_into(backup.path(), &world.keys());
    let refused = || {
        let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("older than the log"), "{error}");
    };
    refused();
    // Whose identity opens nothing has changed nothing.
    let stranger = Restore::new(&world.directory, World::stranger()).run().unwrap_err();
    assert_eq!(stranger.kind(), ErrorKind::NoKey, "{stranger}");
    refused();
    let restored = Restore::new(&world.directory, world.identity()).run().unwrap();
    // Of the thirty that were new one was erased, which is no loss.
    assert_eq!((restored.lost, restored.hold_differences.len()), (29, 0));
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 50);
    world.append(50..100);
    let vault = world.vault(Access::Read);
    assert!(
        vault.find("user_7").unwrap().is_some_and(|back| back.number >= 50),
        "who is back is somebody else"
    );
    assert_eq!(vault.find("user_8").unwrap().map(|known| known.number), Some(8));
    drop(vault);
    // Of those who were new since the backup the keys are lost.
    let (_, withheld) = world.entries();
    let gone = |number: &u64| {
        World::subjects(*number).iter().any(|subject| {
            let known = (0..20).any(|known| World::subjects(known).contains(subject));
            *number < 50 && (!known || subject == "user_7")
        })
    };
    assert_eq!(withheld, (0..100).filter(gone).collect::<Vec<_>>());
}

/// The backup is from before the hold, and nobody is erased for that.
#[test]
fn whom_the_log_says_is_held_is_held_after_a_restore() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap();
    log.close().unwrap();
    world.append(20..50);
    replace(backup.path(), &world.keys());
    let restored = Restore::new(&world.directory, world.identity()).run().unwrap();
    let [HoldDifference::Missing { number: 7, frame }] = restored.hold_differences[..] else {
        panic!("{restored:?}")
    };
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let error = log.erase(&world.order(&["user_7"])).unwrap_err();
    assert!(error.to_string().contains(&format!("held by unknown (frame {frame})")), "{error}");
    log.close().unwrap();
}

/// A number that was given is not given again, whatever was put in place while a restore was not finished.
#[test]
fn a_restore_that_was_cut_short_forgets_nothing() {
    let world = World::new();
    world.append(0..20);
    let early = copy(&world.keys());
    world.append(20..40);
    let late = copy(&world.keys());
    // Nobody is new here: no block tells the numbers up to 40 after `late`.
    world.append(0..10);
    let whole = |backup: &Path, world: &World| {
        for item in std::fs::read_dir(backup).unwrap() {
            put_back(backup, &world.keys(), &[item.unwrap().file_name().to_str().unwrap()]);
        }
    };
    whole(late.path(), &world);
    let world = cut_short(&world);
    whole(early.path(), &world);
    assert_eq!(Restore::new(&world.directory, world.identity()).run().unwrap().lost, 20);
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 40);
}

#[test]
fn a_vault_alone_that_is_taken_up_at_the_second_try_gives_no_number_twice() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.append(20..40);
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    // The seal state of that says nothing of those who were new.
    let world = cut_short(&world);
    // It counts them, whether or not it went past them at the first try.
    assert_eq!(Restore::new(&world.directory, world.identity()).run().unwrap().lost, 20);
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 40);
}

/// The backup was made in the middle of an erasure, and others were erased since then.
#[test]
fn going_on_with_an_erasure_leaves_none_out_that_came_after_it() {
    let world = World::new();
    world.append(0..60);
    let order = world.order(&["user_7"]);
    let number = world.vault(Access::Read).find("user_7").unwrap().unwrap().number;
    super::states::write_pending(&world, &order, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
    let backup = copy(&world.keys());
    erase(&world, "user_9");
    put_back(backup.path(), &world.keys(), &["vault", "roots", "erasure.pending"]);
    Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
    let vault = world.vault(Access::Read);
    assert!(vault.find("user_7").unwrap().is_none() && vault.find("user_9").unwrap().is_none());
    drop(vault);
    assert!(world.verified().ok);
}

/// A writer that is killed before anything is durable has given numbers, of which the seal state knows after the next checkpoint.
#[test]
fn numbers_that_no_entry_has_are_gone_past_and_are_no_lost_keys() {
    let made = World::new();
    made.append(0..20);
    let backup = copy(&made.keys());
    made.vault(Access::Write).resolve(&["nobody 1", "nobody 2", "nobody 3"]).unwrap();
    made.append(20..30);
    let next = made.vault(Access::Read).next_number().unwrap();
    assert_eq!(next, 33);
    let is_counted = |lost, world: &World, restore: &dyn Fn() -> Restore| {
        assert_eq!((restore().look().unwrap().lost, restore().run().unwrap().lost), (lost, lost));
        assert_eq!(world.vault(Access::Read).next_number().unwrap(), next);
    };
    let world = made.copied();
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    is_counted(10, &world, &|| Restore::new(&world.directory, world.identity()));
    let world = made.copied();
    replace(backup.path(), &world.keys());
    is_counted(10, &world, &|| Restore::new(&world.directory, world.identity()));
    let world = made.copied();
    for name in ["vault", "roots"] {
        std::fs::remove_dir_all(world.keys().join(name)).unwrap();
    }
    is_counted(30, &world, &|| Restore::new(&world.directory, world.identity()).new_vault());
}

/// Of whoever was new when what was logged of them was lost, and was erased or is held all the same.
#[test]
fn a_number_that_an_event_names_and_no_entry_has_is_given_to_nobody_else() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.vault(Access::Write).resolve(&["erased", "held"]).unwrap();
    erase(&world, "erased");
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert!(log.hold(&world.hold("held", "court", "a suit")).unwrap());
    log.close().unwrap();
    replace(backup.path(), &world.keys());
    assert_eq!(Restore::new(&world.directory, world.identity()).run().unwrap().lost, 0);
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 22);
    world.append(20..30);
    assert_eq!(world.entries(), ((0..30).collect(), Vec::new()));
    assert!(world.verified().ok);
}

/// A log of which a writer was killed before it signed anything of what it wrote, and the keys from before that writer.
fn killed() -> (World, tempfile::TempDir) {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    let log = Log::open(&world.directory, Options::default().durability(Durability::Os)).unwrap();
    let mut producer = log.producer().unwrap();
    (20..50).for_each(|number| World::put(&mut producer, number));
    producer.flush().unwrap().durable().unwrap();
    let (left, keys) = (copy(&world.directory), copy(&world.keys()));
    drop(producer);
    log.close().unwrap();
    replace(left.path(), &world.directory);
    replace(keys.path(), &world.keys());
    (world, backup)
}

pub(super) fn replace(from: &Path, to: &Path) {
    std::fs::remove_dir_all(to).unwrap();
    super::world::copy_into(from, to);
}

/// That the log does not open before it was taken up, and gives no number twice after that.
fn is_taken_up(world: &World) {
    let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Refused && error.to_string().contains("older than the log"),
        "{error}"
    );
    let restore = || Restore::new(&world.directory, world.identity());
    // Nobody opens what is not signed before it is.
    let outlook = restore().look().unwrap();
    assert_eq!((outlook.lost, outlook.unsigned_entries), (0, 30));
    assert_eq!(restore().run().unwrap().lost, 30);
    world.append(50..100);
    let report = world.verified();
    let harmless = |kind| kind == FindingKind::KeyLost || kind == FindingKind::Abandoned;
    assert!(report.findings.iter().all(|finding| harmless(finding.kind)), "{report:?}");
}

#[test]
fn keys_from_before_a_writer_that_was_killed_are_older_than_the_log() {
    let (world, backup) = killed();
    replace(backup.path(), &world.keys());
    is_taken_up(&world);
}

#[test]
fn a_vault_from_before_a_writer_that_was_killed_is_older_than_the_log() {
    let (world, backup) = killed();
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    is_taken_up(&world);
}

#[test]
fn a_vault_that_was_there_goes_on_after_a_writer_was_killed() {
    let (world, _) = killed();
    world.append(50..100);
    assert_eq!(world.entries(), ((0..100).collect(), Vec::new()));
}

#[test]
fn the_vault_from_before_a_restore_is_older_than_the_log() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    world.append(20..50);
    replace(backup.path(), &world.keys());
    assert_eq!(Restore::new(&world.directory, world.identity()).run().unwrap().lost, 30);
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

/// Both directories are of a backup, and the vault and its roots are newer, as a replica is.
#[test]
fn a_log_that_ends_before_what_its_vault_followed_is_gone_on_with_only_where_that_is_said() {
    let world = World::new();
    world.append(0..20);
    let (log, keys) = (copy(&world.directory), copy(&world.keys()));
    world.append(20..50);
    let newer = copy(&world.keys());
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    put_back(newer.path(), &world.keys(), &["vault", "roots"]);
    let restore = || Restore::new(&world.directory, world.identity());
    for error in [
        Log::open(&world.directory, Options::default()).map(drop),
        restore().look().map(drop),
        restore().run().map(drop),
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered);
        assert!(error.to_string().contains("an older copy of the log was put in its place"), "{error}");
    }
    assert!(!world.keys().join("restoring").exists());
    let outlook = restore().older_log().look().unwrap();
    assert!(outlook.needed && outlook.lost == 0, "{outlook:?}");
    assert_eq!(restore().older_log().run().unwrap().lost, 0);

    // From here on the vault is the log's: who is erased is erased, whatever vault comes back.
    let before = copy(&world.keys());
    world.append(20..30);
    erase(&world, "user_7");
    put_back(before.path(), &world.keys(), &["vault", "roots"]);
    let (given, withheld) = world.entries();
    assert!(!given.contains(&7) && withheld.contains(&7), "{given:?} {withheld:?}");
}

/// What was said when it was begun is not asked for a second time, and whoever opens the log is told how to go on.
#[test]
fn a_restore_of_an_older_log_that_was_cut_short_goes_on_with_that() {
    let made = World::new();
    made.append(0..20);
    let (log, keys) = (copy(&made.directory), copy(&made.keys()));
    made.append(20..50);
    let newer = copy(&made.keys());
    replace(log.path(), &made.directory);
    replace(keys.path(), &made.keys());
    put_back(newer.path(), &made.keys(), &["vault", "roots"]);
    let mut interrupted = 0;
    for operations in (0..).step_by(3) {
        let world = made.copied();
        let (log, keys) = stops::stores(&world, &Stop::after(operations));
        let restore = || Restore::new(&world.directory, world.identity());
        if restore().older_log().run_in(log, keys).is_ok() {
            break;
        }
        if world.keys().join("restoring").exists() {
            interrupted += 1;
            let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
            assert!(
                error.to_string().contains("with `bulla restore --older-log`, and `--seal-key` if"),
                "{operations}: {error}"
            );
            let again = if interrupted % 2 == 0 { restore() } else { restore().older_log() };
            assert_eq!(again.run().unwrap_or_else(|error| panic!("{operations}: {error}")).lost, 0);
            world.append(20..25);
        }
    }
    assert!(interrupted > 3, "{interrupted}");
}

/// The vault is of a time that both directories were taken back from, and that the log has gone on without.
#[test]
fn a_vault_of_a_time_that_was_not_gone_on_with_is_refused() {
    let world = World::new();
    world.append(0..20);
    let (log, keys) = (copy(&world.directory), copy(&world.keys()));
    world.append(20..50);
    let abandoned = copy(&world.keys());
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    (5..9).for_each(|part| world.append(10 * part..10 * part + 10));
    erase(&world, "user_7");
    put_back(abandoned.path(), &world.keys(), &["vault", "roots"]);
    let restore = || Restore::new(&world.directory, world.identity());
    for error in [
        Log::open(&world.directory, Options::default()).map(drop),
        world.reader().for_each(&Query::new().subject("user_7"), |_, _| Ok(())).map(drop),
        world.reader().for_each(&Query::new(), |_, _| Ok(())).map(drop),
        restore().look().map(drop),
        restore().older_log().run().map(drop),
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("followed other frames than this log has"), "{error}");
    }
    // Whoever verifies is told of the log, and nothing that this vault says of itself is believed.
    assert!(world.verified().findings.iter().all(|finding| finding.kind != FindingKind::RootMismatch));
}

/// All files with what they hold, but for those that readers of a vault keep beside it: a log of changes without any is one.
pub(super) fn kept(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = content(directory);
    let of_readers = |path: &Path, bytes: &[u8]| {
        path.ends_with("vault.db-shm") || path.ends_with("vault.db-wal") && bytes.is_empty()
    };
    found.retain(|path, bytes| !of_readers(path, bytes));
    found
}

/// The replica is the only good copy of the vault then.
#[test]
fn a_vault_that_is_refused_leaves_the_replica_and_the_key_directory_as_they_were() {
    let world = World::new();
    let replica = world.with_replica();
    world.append(0..20);
    let (log, keys, good) = (copy(&world.directory), copy(&world.keys()), copy(&replica));
    world.append(20..50);
    let abandoned = copy(&world.keys());
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    replace(good.path(), &replica);
    // More frames, and nobody new: the vault of the time that was given up has more of everything than the replica.
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    for number in 50..60 {
        World::put(&mut producer, number);
        producer.flush().unwrap().durable().unwrap();
    }
    drop(producer);
    log.close().unwrap();
    put_back(abandoned.path(), &world.keys(), &["vault", "roots"]);
    let before = (kept(&replica), kept(&world.keys()));
    let error = Log::open(&world.directory, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("followed other frames than this log has"), "{error}");
    assert!(before == (kept(&replica), kept(&world.keys())), "something was written");

    put_back(&replica, &world.keys(), &["vault", "roots"]);
    world.append(60..70);
    assert!(world.verified().ok);
}

/// The vault was put back without its roots being taken away first.
#[test]
fn newer_roots_stay_where_the_vault_beside_them_is_refused() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    erase(&world, "user_7");
    world.append(20..50);
    let newest = copy(&world.keys());
    put_back(backup.path(), &world.keys(), &["vault"]);
    copy_into(&backup.path().join("roots"), &world.keys().join("roots"));
    let before = kept(&world.keys());
    let error = Log::open(&world.directory, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("is older than the log"), "{error}");
    assert!(before == kept(&world.keys()), "something was written");

    put_back(newest.path(), &world.keys(), &["vault"]);
    world.append(50..60);
    assert!(world.verified().ok);
    assert_eq!(
        content(&world.keys().join("roots")).len(),
        2,
        "root and keys of the one generation that counts"
    );
}

/// What the key directory's writer says of its vault holds of the log that it writes, and not of another copy that is read with its keys.
#[test]
fn beside_a_writer_a_copy_of_another_history_gives_out_nobody_whom_it_erased() {
    let world = World::new();
    world.append(0..20);
    let (log, keys) = (copy(&world.directory), copy(&world.keys()));
    erase(&world, "user_7");
    (2..5).for_each(|part| world.append(10 * part..10 * part + 10));
    let (fork, abandoned) = (copy(&world.directory), copy(&world.keys()));
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    let writer = Log::open(&world.directory, Options::default()).unwrap();
    let given = |directory: &Path, keys: &Path| {
        let (reader, mut given) = (Reader::open_with_keys(directory, keys)?, 0);
        reader.for_each(&Query::new().subject("user_7"), |_, _| {
            given += 1;
            Ok(())
        })?;
        Ok::<_, bulla::Error>(given)
    };
    assert_eq!(given(&world.directory, &world.keys()).unwrap(), 1, "the writer's own log");
    let error = given(fork.path(), &world.keys()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("holds another history of the log"), "{error}");
    // The writer signs more than the copy has.
    let size = bulla::info(fork.path()).unwrap().tree_size;
    while bulla::info(&world.directory).unwrap().tree_size <= size {
        let mut producer = writer.producer().unwrap();
        World::put(&mut producer, 3);
        drop(producer);
        writer.flush().unwrap();
    }
    let error = given(fork.path(), &world.keys()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("is an older copy of the log"), "{error}");
    writer.close().unwrap();

    // A vault that followed more than the log has is believed nothing because somebody holds the log's lock.
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    erase(&world, "user_8");
    let vault = || Vault::open(abandoned.path(), world.id, Access::Read, &Settings::default()).unwrap();
    assert!(vault().find("user_8").unwrap().is_some());
    assert!(vault().follows().unwrap().size > bulla::info(&world.directory).unwrap().tree_size);
    let _lock = FileSystem::new(&world.directory).lock("LOCK").unwrap();
    let reader = Reader::open(&world.directory).unwrap().identity(world.identity());
    let read = reader.group_keys(Arc::new(vault())).for_each(&Query::new().subject("user_8"), |_, _| Ok(()));
    assert_eq!(read.unwrap().entries, 0);
}

/// Whose key is lost may be anybody: nobody is told that they were never logged.
#[test]
fn who_is_not_known_where_keys_are_lost_is_not_said_to_be_nobody() {
    let world = World::new();
    world.append(0..20);
    let backup = copy(&world.keys());
    let unknown = |world: &World, expected: &str| {
        let log = Log::open(&world.directory, Options::default()).unwrap();
        let errors = [
            log.hold(&world.hold("user_30", "legal", "why")).unwrap_err(),
            log.erase(&world.order(&["user_30"])).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        log.close().unwrap();
    };
    unknown(&world, "nobody was logged by it, or they were erased before");
    world.append(20..50);
    replace(backup.path(), &world.keys());
    assert_eq!(Restore::new(&world.directory, world.identity()).run().unwrap().lost, 30);
    unknown(&world, "cannot be told: keys are lost");

    let log = Log::open(&world.directory, Options::default()).unwrap();
    let order = world.order(&["user_8", "user_30"]);
    for before in [false, true] {
        let erasure = log.erase(&order).unwrap();
        assert_eq!((erasure.keys_lost, erasure.before), (true, before));
        assert_eq!(erasure.unknown, ["user_30"]);
    }
    assert!(!log.erase(&world.order(&["user_9"])).unwrap().keys_lost, "all of these were known");
    log.close().unwrap();
}
