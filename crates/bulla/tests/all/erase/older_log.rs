//! A log whose newest part is lost for good, and what that told of whom it erased.

use super::lost_seal_state::{counts, seal_key};
use super::restore_stops::{STEPS, begin};
use super::restored::{erase, kept, put_back, replace};
use super::states::write_pending;
use super::stops::{self, Stop};
use super::world::{World, copy, copy_into};
use crate::helpers::in_full;
use bulla::control::SubjectKeys;
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::{
    Entry, ErrorKind, Export, FindingKind, Log, Options, Query, Reader, Restore, ResumedErasure, Severity,
    open_log,
};
use bulla_store::{FileSystem, Store};
use bulla_vault::Access;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use tempfile::TempDir;

/// A log whose newest part is lost for good, and with it what told that `user_7`, whose entry is left, and `user_30` were erased. Vault and
/// roots are of that time.
pub(super) fn without_its_newest_part(world: World) -> World {
    without_its_newest_part_and_before(world).0
}

/// The same, with the key directory from before that part.
pub(super) fn without_its_newest_part_and_before(world: World) -> (World, TempDir) {
    world.append(0..20);
    let (log, keys) = (copy(&world.directory), copy(&world.keys()));
    world.append(20..50);
    erase(&world, "user_7");
    erase(&world, "user_30");
    let newer = copy(&world.keys());
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    put_back(newer.path(), &world.keys(), &["vault", "roots"]);
    (world, keys)
}

/// How many frames the keys knew of, as the events tell of parts of the log that were given up.
pub(super) fn truncated(world: &World) -> Vec<u64> {
    let events = world.events().into_iter().filter_map(|(_, event)| match event {
        Event::Truncated { known, .. } => Some(known),
        _ => None,
    });
    events.collect()
}

/// That somebody beside those can be erased, with a certificate, and that `user_7` is the only one whose key is lost.
pub(super) fn is_gone_on_with(world: &World, what: &str) {
    let log =
        Log::open(&world.directory, Options::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let order = world.order(&["user_8", "user_31", "user_7"]);
    let erasure = log.erase(&order).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((erasure.numbers, erasure.unknown), (vec![8, 31], vec!["user_7".to_owned()]), "{what}");
    assert!(erasure.keys_lost, "{what}");
    log.close().unwrap();
    let certificate = world.reader().prove_event(erasure.frame).unwrap();
    certificate.verify(Some(&world.key)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = world.verified();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let kinds = violations.map(|finding| finding.kind).collect::<Vec<_>>();
    assert_eq!(kinds, [FindingKind::KeyLost], "{what}: {report:?}");
    assert_eq!(world.entries().1, [7, 8], "{what}");
    let told = world.events().into_iter().flat_map(|(_, event)| match event {
        Event::Erased { numbers, .. } => numbers,
        _ => Vec::new(),
    });
    let told = told.collect::<BTreeSet<_>>();
    let checked = world.vault(Access::Read).check(&|number| told.contains(&number), &|_| ()).unwrap();
    assert_eq!((checked.damage, checked.more), (Vec::new(), 0), "{what}");
}

#[test]
fn whose_erasure_was_told_in_a_part_that_is_lost_is_a_lost_key_and_others_can_be_erased() {
    let world = without_its_newest_part(World::new());
    let restore = || Restore::new(&world.directory, world.identity()).older_log();
    let before = kept(&world.keys());
    // Of `user_30` no entry is left.
    let outlook = restore().look().unwrap();
    assert_eq!(outlook.lost, 1);
    let followed = world.vault(Access::Read).follows().unwrap().size;
    assert_eq!(outlook.lost_frames, followed - bulla::info(&world.directory).unwrap().tree_size);
    assert!(outlook.lost_frames > 0 && before == kept(&world.keys()), "something was written");
    assert_eq!(restore().run().unwrap().lost, 1);
    assert!(!Restore::new(&world.directory, world.identity()).look().unwrap().needed);
    is_gone_on_with(&world, "restored");
}

/// Given again where all was done: the key is lost, and was so before.
#[test]
fn nothing_is_taken_up_twice_where_a_part_of_the_log_is_lost() {
    let world = without_its_newest_part(World::new());
    let restore = || Restore::new(&world.directory, world.identity()).older_log();
    assert!(restore().run().unwrap().outlook.needed);
    let (keys, size) = (kept(&world.keys()), bulla::info(&world.directory).unwrap().tree_size);
    let again = restore().run().unwrap();
    assert_eq!((again.outlook.needed, again.outlook.lost, again.lost), (false, 0, 0));
    assert!(keys == kept(&world.keys()), "the key directory was written");
    assert_eq!(bulla::info(&world.directory).unwrap().tree_size, size);
    is_gone_on_with(&world, "again");
}

/// The last erasure of the lost part, of `user_7` and `user_30`, was done but for the file, which outlived it.
fn with_what_was_written_down(names: &[&str], numbers: &[u64]) -> World {
    let world = without_its_newest_part(World::new());
    let carried_out = (0..names.len()).collect::<Vec<_>>();
    let order = world.order(names).note().to_owned();
    let pending = json!({ "numbers": numbers, "carried_out": carried_out, "order": order }).to_string();
    std::fs::write(world.keys().join("erasure.pending"), pending).unwrap();
    world
}

fn told(world: &World) -> Vec<Vec<u64>> {
    let events = world.events().into_iter().filter_map(|(_, event)| match event {
        Event::Erased { numbers, .. } => Some(numbers),
        _ => None,
    });
    events.collect()
}

#[test]
fn an_erasure_that_only_a_lost_part_told_of_is_told_once_more_where_its_order_is_left() {
    let made = with_what_was_written_down(&["user_7", "user_30"], &[7, 30]);
    let finished = Some(ResumedErasure::Finished { numbers: vec![7, 30] });
    for operations in (0..).step_by(if in_full() { 1 } else { 5 }) {
        let world = made.copied();
        let what = operations.to_string();
        let restore = || Restore::new(&world.directory, world.identity()).older_log();
        let outlook = restore().look().unwrap();
        assert_eq!((outlook.lost, outlook.finishes.map(|cut| cut.numbers)), (0, Some(vec![7, 30])));
        let (log, keys) = stops::stores(&world, &Stop::after(operations));
        let done = restore().environment(Environment::default()).run_in(log, keys);
        let stopped = done.is_err();
        match done {
            Ok(done) => assert_eq!((done.lost, done.resumed), (0, finished.clone()), "{what}"),
            Err(_) => assert_eq!(restore().run().unwrap_or_else(|error| panic!("{what}: {error}")).lost, 0),
        }
        assert!(!world.keys().join("erasure.pending").exists(), "{what}");
        assert_eq!(told(&world), [[7, 30]], "{what}");
        // Nobody's key is lost, and whoever is left is erased as ever.
        assert!(world.verified().ok, "{what}: {:?}", world.verified());
        erase(&world, "user_8");
        assert!(world.verified().ok, "{what}");
        if !stopped {
            assert!(operations > 10);
            break;
        }
    }
}

/// By an order that the log's key did not sign, or that it has carried out on others, nothing is told; and it is not said that nobody is erased.
#[test]
fn an_erasure_that_no_order_is_left_for_is_told_to_whoever_opens_the_log() {
    // With fewer names than numbers it is no order for them.
    let world = with_what_was_written_down(&["user_7"], &[7, 30]);
    let restored = Restore::new(&world.directory, world.identity()).older_log().run().unwrap();
    let Some(ResumedErasure::Untold { numbers, reason }) = &restored.resumed else {
        panic!("{:?}", restored.resumed)
    };
    assert_eq!((numbers, restored.lost), (&vec![7, 30], 1), "{reason}");
    let message = restored.resumed.as_ref().unwrap().to_string();
    assert!(message.contains("whose keys are gone") && !message.contains("nobody"), "{message}");
    assert_eq!(told(&world), Vec::<Vec<u64>>::new());
    is_gone_on_with(&world, "untold");
}

/// Whose keys are there still: nobody is erased by a file alone.
#[test]
fn what_is_written_down_of_somebody_who_has_a_key_erases_nobody() {
    let world = with_what_was_written_down(&["user_7", "user_9"], &[7, 9]);
    let restored = Restore::new(&world.directory, world.identity()).older_log().run().unwrap();
    assert_eq!(restored.resumed, Some(ResumedErasure::Forgotten { written: Ok(vec![7, 9]) }));
    assert_eq!((restored.lost, told(&world)), (1, Vec::new()));
    is_gone_on_with(&world, "forgotten");
}

/// Where nobody has said that a part of the log is lost, no file has the log tell of anything.
#[test]
fn what_is_written_down_of_keys_that_are_lost_is_told_by_no_opening() {
    let world = without_its_newest_part(World::new());
    Restore::new(&world.directory, world.identity()).older_log().run().unwrap();
    write_pending(&world, &world.order(&["user_7"]), 7);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let resumed = log.resumed_erasure().cloned();
    assert!(
        matches!(&resumed, Some(ResumedErasure::Untold { numbers, .. }) if *numbers == [7]),
        "{resumed:?}"
    );
    log.close().unwrap();
    assert_eq!(told(&world), Vec::<Vec<u64>>::new());
    is_gone_on_with(&world, "opened");
}

#[test]
fn a_replica_is_told_whose_erasure_a_lost_part_of_the_log_told_of() {
    let world = World::new();
    let replica = world.with_replica();
    let world = without_its_newest_part(world);
    let restore = || Restore::new(&world.directory, world.identity());
    assert_eq!(restore().older_log().run().unwrap().lost, 1);
    for name in ["vault", "roots"] {
        std::fs::remove_dir_all(world.keys().join(name)).unwrap();
        copy_into(&replica.join(name), &world.keys().join(name));
    }
    is_gone_on_with(&world, "replica");
}

/// The last erasure of the lost part was cut short, and taking the log up finishes it: the log tells of it, and that key is not lost.
#[test]
fn an_erasure_that_is_finished_is_no_lost_key_where_a_part_of_the_log_is_lost() {
    for step in STEPS {
        let world = without_its_newest_part(World::new());
        write_pending(&world, &world.order(&["user_9"]), 9);
        begin(&world, &[9], step);
        let restore = || Restore::new(&world.directory, world.identity()).older_log();
        assert_eq!(restore().look().unwrap().lost, 1, "{step}");
        let restored = restore().run().unwrap();
        assert_eq!(restored.resumed, Some(ResumedErasure::Finished { numbers: vec![9] }), "{step}");
        assert_eq!(restored.lost, 1, "{step}");
        let log = Log::open(&world.directory, Options::default()).unwrap();
        assert_eq!(log.erase(&world.order(&["user_10"])).unwrap().numbers, [10], "{step}");
        log.close().unwrap();
    }
}

/// That nobody is answered under the vault that is there, and a salvage names no data subject.
pub(super) fn nothing_is_read(world: &World, what: &str) {
    let error = world.reader().for_each(&Query::new(), |_, _| Ok(())).unwrap_err();
    let told = error.to_string();
    match error.kind() {
        ErrorKind::Tampered => assert!(told.contains("nothing is read under them"), "{what}: {told}"),
        ErrorKind::Refused => {
            assert!(told.contains("of a part of the log that was given up"), "{what}: {told}");
        }
        kind => panic!("{what}: {kind:?}: {told}"),
    }
    let mut out = Vec::new();
    let vault = Arc::new(world.vault(Access::Read));
    let export = Export::open(&world.directory).unwrap().key(world.key.clone()).identity(world.identity());
    export.group_keys(vault).salvage(true).run(&mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(!out.is_empty() && !out.contains("\"subject\""), "{what}: {out}");
}

/// An older vault may have keys of people of whom only the part that was given up told that they were erased. The log knows such a vault by its
/// event, however often one is put in place.
#[test]
fn nothing_is_read_under_a_vault_from_before_a_part_was_given_up() {
    let (world, older) = without_its_newest_part_and_before(World::new());
    let followed = world.vault(Access::Read).follows().unwrap().size;
    Restore::new(&world.directory, world.identity()).older_log().run().unwrap();
    assert_eq!(truncated(&world), [followed]);
    // The vault that it was done with is read under.
    assert!(!world.entries().0.is_empty());

    for _ in 0..2 {
        put_back(older.path(), &world.keys(), &["vault", "roots"]);
        nothing_is_read(&world, "put back");
        let restore = || Restore::new(&world.directory, world.identity());
        assert!(restore().look().unwrap().vault_behind);
        let error = restore().run().unwrap_err();
        assert!(error.to_string().contains("say `--older-vault`"), "{error}");
        nothing_is_read(&world, "refused");
        restore().older_vault().run().unwrap();
        nothing_is_read(&world, "restored");
        Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
        nothing_is_read(&world, "opened");
    }
}

/// It has all numbers that were given, and everybody's keys: there is nothing else to take up.
#[test]
fn an_older_vault_that_lacks_nobody_is_gone_on_with_only_where_that_is_said() {
    for has_people in [false, true] {
        let world = World::new();
        let append = || {
            let log = Log::open(&world.directory, Options::default()).unwrap();
            let entry = Entry::new("read", "4711");
            let entry = if has_people { entry.subject("ada") } else { entry };
            log.producer().unwrap().append(&entry).unwrap();
            log.close().unwrap();
        };
        append();
        let (log, older) = (copy(&world.directory), copy(&world.keys()));
        append();
        replace(log.path(), &world.directory);
        let restore = || Restore::new(&world.directory, world.identity());
        restore().older_log().seal_key(seal_key(&world)).run().unwrap();
        assert_eq!(truncated(&world).len(), 1, "{has_people}");

        put_back(older.path(), &world.keys(), &["vault", "roots"]);
        let before = counts(&world);
        assert_eq!(restore().look().unwrap().vault_behind, has_people);
        match restore().run() {
            Ok(restored) => assert!(!has_people && !restored.outlook.needed, "{restored:?}"),
            Err(error) => assert!(has_people && error.kind() == ErrorKind::Refused, "{error}"),
        }
        assert_eq!(restore().older_vault().run().unwrap().outlook.needed, has_people);
        assert!(has_people || counts(&world) == before);
        // One without anybody is not told from others before the log is opened with it.
        world.reader().for_each(&Query::new(), |_, _| Ok(())).unwrap_err();
        append();
        let read = world.reader().for_each(&Query::new(), |_, _| Ok(()));
        assert_eq!(read.is_err(), has_people, "{read:?}");
    }
}

/// Has an older copy of the log and its keys in place, and the vault that there was.
fn take_back(world: &World, (log, keys): &(TempDir, TempDir)) {
    let newer = copy(&world.keys());
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    put_back(newer.path(), &world.keys(), &["vault", "roots"]);
}

/// Many frames, of the same few people.
fn go_on(world: &World) {
    (0..6).for_each(|_| world.append(40..43));
}

/// That the vault that is there, which is of a part of the log that was given up, opens nothing, takes nothing up, and has nothing read.
fn is_refused_as_given_up(world: &World, what: &str) {
    let restore = || Restore::new(&world.directory, world.identity());
    let keys = kept(&world.keys());
    for error in [
        restore().look().map(drop),
        restore().older_log().look().map(drop),
        restore().older_log().older_vault().run().map(drop),
        Log::open(&world.directory, Options::default()).map(drop),
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
    }
    let error = restore().older_log().run().unwrap_err().to_string();
    assert!(error.contains("is of a part of the log that was given up"), "{what}: {error}");
    assert!(keys == kept(&world.keys()), "{what}: the key directory was written");
    nothing_is_read(world, what);
    // Its numbers may be other people's.
    let error = world.reader().preview_erasure(&world.order(&["user_8"]), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
}

/// It has followed more than is left, as the one has with which a part was given up, and less than the log knew of then. A part that is lost later
/// is given up with the vault that saw both; the one that saw the first alone, and followed more than is left of the log then, lacks the second.
#[test]
fn a_vault_from_before_a_part_was_given_up_does_not_give_up_another() {
    for new_vault in [false, true] {
        let world = World::new();
        let what = format!("new vault: {new_vault}");
        let restore = || Restore::new(&world.directory, world.identity());
        world.append(0..20);
        let first = (copy(&world.directory), copy(&world.keys()));
        go_on(&world);
        let before_first = copy(&world.keys());
        erase(&world, "user_7");
        (0..3).for_each(|_| go_on(&world));
        take_back(&world, &first);
        restore().older_log().run().unwrap();
        if new_vault {
            for name in ["vault", "roots"] {
                std::fs::remove_dir_all(world.keys().join(name)).unwrap();
            }
            restore().new_vault().run().unwrap();
        }
        let seen = copy(&world.keys());
        put_back(before_first.path(), &world.keys(), &["vault", "roots"]);
        is_refused_as_given_up(&world, &what);

        put_back(seen.path(), &world.keys(), &["vault", "roots"]);
        world.append(50..55);
        let second = (copy(&world.directory), copy(&world.keys()));
        go_on(&world);
        let before_second = copy(&world.keys());
        erase(&world, "user_1");
        take_back(&world, &second);
        assert!(!restore().older_log().look().unwrap().vault_behind, "{what}");
        restore().older_log().run().unwrap();
        // It followed fewer frames than were known when the first part was given up.
        assert!(matches!(truncated(&world)[..], [first, second] if first > second), "{what}");
        let read = world.reader().for_each(&Query::new().subject("user_2"), |_, _| Ok(())).unwrap();
        assert!(read.entries > 0, "{what}: {read:?}");
        put_back(before_second.path(), &world.keys(), &["vault", "roots"]);
        is_refused_as_given_up(&world, &what);
    }
}

/// It followed more frames than the log that was gone on with ever had, and none of those. Nor does it keep the vault from being read under with which
/// the part was given up, whatever was tried with it in between.
#[test]
fn a_vault_of_an_earlier_history_gives_up_no_part_of_a_later_one() {
    let world = World::new();
    let restore_of = |world: &World| Restore::new(&world.directory, world.identity()).older_log();
    world.append(0..20);
    let start = (copy(&world.directory), copy(&world.keys()));
    (0..6).for_each(|_| go_on(&world));
    let earlier = copy(&world.keys());
    let put_earlier = |world: &World| put_back(earlier.path(), &world.keys(), &["vault", "roots"]);
    take_back(&world, &start);
    restore_of(&world).run().unwrap();
    world.append(50..55);
    let second = (copy(&world.directory), copy(&world.keys()));
    go_on(&world);
    erase(&world, "user_1");

    // The log tells of the second part alone, of which that vault has followed more than was known.
    let other = world.copied();
    take_back(&other, &start);
    restore_of(&other).run().unwrap();
    put_earlier(&other);
    is_refused_as_given_up(&other, "from the beginning");

    take_back(&world, &second);
    let mut cut_short = 0;
    for operations in (1..).step_by(if in_full() { 1 } else { 5 }) {
        let cut = world.copied();
        let (log, keys) = stops::stores(&cut, &Stop::after(operations));
        if restore_of(&cut).run_in(log, keys).is_ok() {
            break;
        }
        if !cut.keys().join("restoring").exists() {
            continue;
        }
        cut_short += 1;
        let what = format!("cut short after {operations}");
        let begun = copy(&cut.keys());
        put_earlier(&cut);
        is_refused_as_given_up(&cut, &what);

        put_back(begun.path(), &cut.keys(), &["vault", "roots"]);
        assert!(!restore_of(&cut).run().unwrap().outlook.vault_behind, "{what}");
        let read = cut.reader().for_each(&Query::new().subject("user_2"), |_, _| Ok(())).unwrap();
        assert!(read.entries > 0, "{what}: {read:?}");
    }
    assert!(cut_short > 3, "{cut_short}");
}

/// The log tells of no part: the event of the first one lay in what is lost by then.
#[test]
fn a_vault_of_an_earlier_history_gives_up_no_part_where_it_has_followed_as_many_frames() {
    let world = World::new();
    world.append(0..20);
    let start = (copy(&world.directory), copy(&world.keys()));
    let elsewhere = world.copied();
    go_on(&world);
    erase(&world, "user_7");
    take_back(&world, &start);
    let mut compared = 0;
    for (number, cut) in cut_short(&world).iter().enumerate() {
        let begun = std::fs::read_to_string(cut.keys().join("restoring")).unwrap();
        let known = begun.split_whitespace().nth(3).unwrap().parse::<u64>().unwrap();
        let earlier = elsewhere.copied();
        while earlier.vault(Access::Read).follows().unwrap().size < known {
            Log::open(&earlier.directory, Options::default()).unwrap().close().unwrap();
        }
        if earlier.vault(Access::Read).follows().unwrap().size != known {
            continue;
        }
        put_back(&earlier.keys(), &cut.keys(), &["vault", "roots"]);
        let restore = || Restore::new(&cut.directory, cut.identity()).older_log();
        match restore().look() {
            Ok(outlook) => assert!(outlook.vault_behind, "{number}"),
            // The log has told of the part.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Refused, "{number}: {error}");
                continue;
            }
        }
        assert_eq!(restore().run().unwrap_err().kind(), ErrorKind::Refused, "{number}");
        restore().older_vault().run().unwrap();
        nothing_is_read(cut, &number.to_string());
        compared += 1;
    }
    assert!(compared > 0);
}

/// Such as one from just after the log was made: it brings nobody back, and the keys of everybody are lost with it.
#[test]
fn a_vault_without_anybody_gives_up_a_part_only_where_that_is_said() {
    let world = World::new();
    let empty = copy(&world.keys());
    world.append(0..20);
    let start = (copy(&world.directory), copy(&world.keys()));
    go_on(&world);
    take_back(&world, &start);
    for cut in cut_short(&world) {
        let right = copy(&cut.keys());
        put_back(empty.path(), &cut.keys(), &["vault", "roots"]);
        let restore = || Restore::new(&cut.directory, cut.identity()).older_log();
        let what = std::fs::read_to_string(cut.keys().join("restoring")).unwrap();
        assert!(restore().look().unwrap().vault_behind, "{what}");
        assert_eq!(restore().run().unwrap_err().kind(), ErrorKind::Refused, "{what}");
        // Nor where nothing tells how much was known.
        let words = what.split_whitespace().collect::<Vec<_>>();
        let untold =
            format!("{} {} older-log 0 {} {} {} -\n", words[0], words[1], words[4], words[5], words[6]);
        std::fs::write(cut.keys().join("restoring"), untold).unwrap();
        assert_eq!(restore().run().unwrap_err().kind(), ErrorKind::Refused, "{what}");
        std::fs::write(cut.keys().join("restoring"), &what).unwrap();
        put_back(right.path(), &cut.keys(), &["vault", "roots"]);
        restore().run().unwrap();
        assert!(!cut.entries().0.is_empty(), "{what}");
    }
}

/// The record of an attempt that has come to its end says nothing of a part that is lost later.
#[test]
fn the_record_of_a_part_that_was_given_up_gives_up_no_other() {
    let world = World::new();
    let restore = || Restore::new(&world.directory, world.identity()).older_log();
    world.append(0..20);
    let first = (copy(&world.directory), copy(&world.keys()));
    go_on(&world);
    take_back(&world, &first);
    let record = std::fs::read(cut_short(&world)[0].keys().join("restoring")).unwrap();
    // The one with the id by which the part is given up.
    std::fs::write(world.keys().join("restoring"), &record).unwrap();
    restore().run().unwrap();
    world.append(50..55);
    let second = (copy(&world.directory), copy(&world.keys()));
    go_on(&world);
    let between = copy(&world.keys());
    erase(&world, "user_7");
    let newest = copy(&world.keys());
    for (vault, is_behind) in [(&between, true), (&newest, false)] {
        let lost = world.copied();
        take_back(&lost, &second);
        put_back(newest.path(), &lost.keys(), &["seal.state"]);
        put_back(vault.path(), &lost.keys(), &["vault", "roots"]);
        let told = world.events().into_iter().find_map(|(_, event)| match event {
            Event::Truncated { id, .. } => Some(id),
            _ => None,
        });
        let record = String::from_utf8(record.clone()).unwrap();
        let words = record.split_whitespace().collect::<Vec<_>>();
        let record = record.replace(words[6], &told.unwrap());
        std::fs::write(lost.keys().join("restoring"), record).unwrap();
        let restore = || Restore::new(&lost.directory, lost.identity()).seal_key(seal_key(&lost));
        // Nor is it said by that record that a part may be given up.
        assert_eq!(restore().run().unwrap_err().kind(), ErrorKind::Tampered, "{is_behind}");
        let outlook = restore().older_log().look().unwrap();
        assert!(outlook.lost_frames > 0, "{outlook:?}");
        assert_eq!(outlook.vault_behind, is_behind, "{outlook:?}");
        if !is_behind {
            restore().older_log().run().unwrap();
            assert_eq!(truncated(&lost).len(), 2);
        }
    }
}

/// An attempt was cut short once its vault was marked; that vault was lost, and one was made anew. It has given numbers to other people since.
#[test]
fn no_two_vaults_give_up_a_part_by_one_id() {
    let (made, _) = without_its_newest_part_and_before(World::new());
    let mut marked = 0;
    for (number, world) in cut_short(&made).into_iter().enumerate() {
        let vault = world.vault(Access::Read);
        let is_marked = !vault.given_up().unwrap().is_empty();
        drop(vault);
        let left = copy(&world.keys());
        for name in ["vault", "roots"] {
            std::fs::remove_dir_all(world.keys().join(name)).unwrap();
        }
        Restore::new(&world.directory, world.identity()).older_log().new_vault().run().unwrap();
        world.append(60..62);
        put_back(left.path(), &world.keys(), &["vault", "roots"]);
        let told = truncated(&world).len();
        assert_eq!(told, 1, "{number}");
        let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{number}: {error}");
        marked += usize::from(is_marked);
    }
    assert!(marked > 0);
}

/// Whoever is held by what is lost has a number that nobody gets who is new.
#[test]
fn nobody_gets_the_number_of_somebody_who_was_held_in_a_part_that_was_given_up() {
    for new_vault in [false, true] {
        let world = World::new();
        world.append(0..20);
        let start = (copy(&world.directory), copy(&world.keys()));
        world.append(40..43);
        let log = Log::open(&world.directory, Options::default()).unwrap();
        log.hold(&world.hold("user_42", "court", "a case")).unwrap();
        log.close().unwrap();
        let holds = copy(&world.keys());
        take_back(&world, &start);
        put_back(holds.path(), &world.keys(), &["holds"]);
        if new_vault {
            for name in ["vault", "roots"] {
                std::fs::remove_dir_all(world.keys().join(name)).unwrap();
            }
        } else {
            put_back(start.1.path(), &world.keys(), &["vault", "roots"]);
        }
        // Without the seal state nothing tells how many numbers were given.
        std::fs::remove_file(world.keys().join("seal.state")).unwrap();
        let seal_key = std::fs::read_to_string(world.keys().join("seal.key")).unwrap();
        let restore = Restore::new(&world.directory, world.identity()).seal_key(seal_key.into()).older_log();
        let restore = if new_vault { restore.new_vault() } else { restore.older_vault() };
        restore.run().unwrap();
        let held = bulla::holds(&world.directory, world.keys()).unwrap();
        let held = held.holds.iter().map(|hold| hold.number).collect::<Vec<_>>();
        world.append(60..70);
        let given = world.vault(Access::Read).next_number().unwrap();
        assert!(given > held[0], "{new_vault}: {held:?}, {given}");
    }
}

/// The seal state knows that the vault had followed more.
#[test]
fn a_vault_from_before_what_the_seal_state_knows_gives_up_no_part() {
    let world = World::new();
    world.append(0..20);
    let log = copy(&world.directory);
    go_on(&world);
    let before = copy(&world.keys());
    erase(&world, "user_1");
    replace(log.path(), &world.directory);
    put_back(before.path(), &world.keys(), &["vault", "roots"]);
    let restore = || Restore::new(&world.directory, world.identity()).older_log().seal_key(seal_key(&world));
    let refused = restore().run().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    assert!(restore().older_vault().run().unwrap().outlook.vault_behind);
    nothing_is_read(&world, "older than the seal state");
}

/// As where the key directory comes from a backup that was made just then, and the vault is the newest.
#[test]
fn a_vault_that_follows_the_event_is_read_under_where_the_record_of_the_restore_is_put_back() {
    let world = without_its_newest_part(World::new());
    let restore = || Restore::new(&world.directory, world.identity());
    let record = world.keys().join("restoring");
    let mut operations = (1..).map(|operations| stops::stores(&world, &Stop::after(operations)));
    let restoring = loop {
        let (log, keys) = operations.next().unwrap();
        restore().older_log().run_in(log, keys).unwrap_err();
        if let Ok(restoring) = std::fs::read(&record) {
            break restoring;
        }
    };
    restore().older_log().run().unwrap();
    // Also where more was known than the log has by now.
    let restoring = String::from_utf8(restoring).unwrap();
    let words = restoring.split_whitespace().collect::<Vec<_>>();
    let [.., known, left, _, id, root] = words[..] else { panic!("{restoring}") };
    let other = "0f".repeat(16);
    for (known, id) in [(known, id), ("1000000", id), ("1000000", &other)] {
        std::fs::write(&record, format!("0 2 older-log {known} {left} {id} {id} {root}\n")).unwrap();
        assert!(!restore().look().unwrap().vault_behind, "{known} {id}");
        restore().run().unwrap();
        assert_eq!(truncated(&world).len(), 1, "{known} {id}");
    }
    is_gone_on_with(&world, "put back");
}

/// The log and its key directory as a restore leaves them that gives up the newest part of the log and stops: at each of its operations, or some, from
/// where `restoring` is there, which comes before all else.
fn cut_short(made: &World) -> Vec<World> {
    let (mut cut, mut operations) = (Vec::new(), 1);
    loop {
        let world = made.copied();
        let (log, keys) = stops::stores(&world, &Stop::after(operations));
        if Restore::new(&world.directory, world.identity()).older_log().run_in(log, keys).is_ok() {
            assert!(cut.len() > 3, "{}", cut.len());
            return cut;
        }
        if world.keys().join("restoring").exists() {
            cut.push(world);
        }
        operations += if in_full() || cut.is_empty() { 1 } else { 7 };
    }
}

/// Nothing is read under it for good, and no newer one can be brought later, so that somebody has to say so.
#[test]
fn an_older_vault_gives_up_a_part_only_where_that_is_said() {
    let (made, older) = without_its_newest_part_and_before(World::new());
    let mut refused = 0;
    for world in cut_short(&made) {
        let restore = || Restore::new(&world.directory, world.identity()).older_log();
        let right = copy(&world.keys());
        let vault = world.vault(Access::Read);
        let has_followed_what_is_left =
            vault.follows().unwrap().size > 0 && !vault.given_up().unwrap().is_empty();
        drop(vault);
        put_back(older.path(), &world.keys(), &["vault", "roots"]);
        let what = std::fs::read_to_string(world.keys().join("restoring")).unwrap();
        assert!(restore().look().unwrap().vault_behind, "{what}");
        let keys = kept(&world.keys());
        let error = restore().run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
        assert!(error.to_string().contains("say `--older-vault`"), "{what}: {error}");
        assert!(keys == kept(&world.keys()), "{what}: the key directory was written");
        let other = world.copied();
        let done = Restore::new(&other.directory, other.identity()).older_log().older_vault().run().unwrap();
        assert!(done.outlook.vault_behind, "{what}");
        nothing_is_read(&other, &what);
        // Once the older one has given the part up, the log goes on without the newest, marked or not, that had not followed what is left.
        if !has_followed_what_is_left {
            refused += 1;
            put_back(right.path(), &other.keys(), &["vault", "roots"]);
            is_refused_as_given_up(&other, &what);
        }

        // The very one is as good as it was.
        put_back(right.path(), &world.keys(), &["vault", "roots"]);
        assert_eq!(restore().run().unwrap_or_else(|error| panic!("{what}: {error}")).lost, 1);
        is_gone_on_with(&world, &what);
    }
    assert!(refused > 0, "{refused}");
}

/// An older vault with which a part was given up has given their numbers to other people since than the newest vault of that part had.
#[test]
fn no_vault_of_a_part_that_was_given_up_comes_back_once_the_log_goes_on_with_an_older_one() {
    let world = World::new();
    world.append(0..20);
    let start = (copy(&world.directory), copy(&world.keys()));
    go_on(&world);
    let older = copy(&world.keys());
    erase(&world, "user_7");
    (0..3).for_each(|_| go_on(&world));
    take_back(&world, &start);
    let newest = copy(&world.keys());
    // It has followed more than is left, and as much as is known.
    put_back(older.path(), &world.keys(), &["vault", "roots"]);
    let restore = || Restore::new(&world.directory, world.identity()).older_log();
    assert!(!restore().run().unwrap().outlook.vault_behind);
    for grown in [false, true] {
        if grown {
            (0..5).for_each(|_| go_on(&world));
        }
        let own = copy(&world.keys());
        put_back(newest.path(), &world.keys(), &["vault", "roots"]);
        match grown {
            // By now there are other frames in the place of those that it followed.
            true => assert_eq!(restore().look().unwrap_err().kind(), ErrorKind::Refused),
            false => is_refused_as_given_up(&world, "as long"),
        }
        assert_eq!(
            Log::open(&world.directory, Options::default()).map(drop).unwrap_err().kind(),
            ErrorKind::Refused
        );
        put_back(own.path(), &world.keys(), &["vault", "roots"]);
        world.append(60..61);
    }
}

/// That nobody reads what was logged of `user_7`, with the vault that is there, as it is, taken up and opened.
fn is_not_read(world: &World, what: &str) {
    let is_read = || {
        let mut found = 0;
        let read = world.reader().for_each(&Query::new().subject("user_7"), |_, _| {
            found += 1;
            Ok(())
        });
        assert!(read.is_err() || found == 0, "{what}");
    };
    is_read();
    for older_vault in [false, true] {
        let restore = Restore::new(&world.directory, world.identity());
        let restore = if older_vault { restore.older_vault() } else { restore };
        assert!(restore.run().is_err() || older_vault, "{what}");
        is_read();
        let _ = Log::open(&world.directory, Options::default()).and_then(Log::close);
        is_read();
    }
}

/// Whatever `restoring` says, who was erased in the second part stays erased: the vault is of a time between the two, or marked for the first alone.
#[test]
fn a_key_directory_from_before_a_second_part_was_given_up_brings_nobody_back() {
    let world = World::new();
    world.append(0..20);
    let start = (copy(&world.directory), copy(&world.keys()));
    (0..3).for_each(|_| go_on(&world));
    take_back(&world, &start);
    let cut = cut_short(&world);
    // It goes on from one of them.
    let world = cut[cut.len() / 2].copied();
    let restore = || Restore::new(&world.directory, world.identity()).older_log();
    restore().run().unwrap();
    world.append(20..21);
    let second = (copy(&world.directory), copy(&world.keys()));
    erase(&world, "user_7");
    go_on(&world);
    take_back(&world, &second);
    restore().run().unwrap();
    world.append(20..21);
    let parts = world.events().into_iter().filter_map(|(frame, event)| match event {
        Event::Truncated { known, id } => Some((frame, known, id)),
        _ => None,
    });
    let parts = parts.collect::<Vec<_>>();
    assert_eq!(parts.len(), 2);

    for (number, cut) in cut.iter().enumerate() {
        let other = world.copied();
        replace(&cut.keys(), &other.keys());
        is_not_read(&other, &format!("cut short, {number}"));
    }
    let other_id = "0f".repeat(16);
    let ids = parts.iter().map(|(_, _, id)| id).chain([&other_id]);
    for id in ids {
        for (known, left) in [
            (0, 0),
            (1, 0),
            (1, parts[1].0 + 1),
            (parts[0].1, 0),
            (parts[1].1, parts[0].0),
            (parts[1].1, parts[1].0 + 1),
        ] {
            let other = world.copied();
            put_back(second.1.path(), &other.keys(), &["vault", "roots"]);
            let line = format!("0 2 older-log {known} {left} {id} {id} -\n");
            std::fs::write(other.keys().join("restoring"), &line).unwrap();
            is_not_read(&other, &line);
        }
    }
}

/// A log, and the same without its newest part, which is to be given up.
fn whole_and_without_its_newest_part() -> (World, World) {
    let world = World::new();
    world.append(0..20);
    let start = (copy(&world.directory), copy(&world.keys()));
    (2..5).for_each(|part| world.append(10 * part..10 * part + 10));
    erase(&world, "user_7");
    let whole = world.copied();
    take_back(&world, &start);
    (whole, world)
}

/// That restoring such a log, found whole again, finds nothing to give up.
fn gives_nothing_up(world: &World, number: usize) {
    let restore = || Restore::new(&world.directory, world.identity());
    assert!(!restore().look().unwrap().vault_behind, "{number}");
    restore().run().unwrap_or_else(|error| panic!("{number}: {error}"));
    assert_eq!(truncated(world), [] as [u64; 0], "{number}");
    assert!(!world.keys().join("restoring").exists());
    world.append(50..51);
    assert_eq!(world.entries().1, [7], "{number}");
    assert!(world.verified().ok, "{number}");
}

/// Nothing was given up yet but in words, and the newest copy of all was found.
#[test]
fn a_log_that_is_whole_again_gives_nothing_up() {
    let (whole, world) = whole_and_without_its_newest_part();
    for (number, cut) in cut_short(&world).iter().enumerate() {
        replace(&whole.directory, &cut.directory);
        put_back(&whole.keys(), &cut.keys(), &["vault", "roots", "seal.state"]);
        gives_nothing_up(cut, number);
    }
}

/// The vault has been marked, maybe, and is the newest that there is.
#[test]
fn a_log_that_is_whole_again_gives_nothing_up_with_a_vault_that_was_marked_for_that() {
    let (whole, world) = whole_and_without_its_newest_part();
    let mut marked = 0;
    for (number, cut) in cut_short(&world).iter().enumerate() {
        if truncated(cut) != [] as [u64; 0] {
            continue;
        }
        let vault = cut.vault(Access::Read);
        // Until the log was opened: what it wrote then is of another history.
        if vault.given_up().unwrap().is_empty() || vault.follows().unwrap().size > 0 {
            continue;
        }
        drop(vault);
        marked += 1;
        replace(&whole.directory, &cut.directory);
        put_back(&whole.keys(), &cut.keys(), &["seal.state"]);
        gives_nothing_up(cut, number);
    }
    assert!(marked > 0);
}

/// A copy of log and keys was gone on with elsewhere, further than was known here of the part that is lost: of whom that told as erased it knows nothing.
#[test]
fn a_vault_that_has_followed_more_than_was_known_does_not_give_up_a_part_that_is_being_given_up() {
    let world = World::new();
    world.append(0..20);
    let start = (copy(&world.directory), copy(&world.keys()));
    let elsewhere = world.copied();
    (0..6).for_each(|_| go_on(&elsewhere));
    go_on(&world);
    erase(&world, "user_7");
    take_back(&world, &start);
    for (number, cut) in cut_short(&world).iter().enumerate() {
        put_back(&elsewhere.keys(), &cut.keys(), &["vault", "roots"]);
        match Restore::new(&cut.directory, cut.identity()).look() {
            Ok(outlook) => assert!(outlook.vault_behind, "{number}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{number}: {error}"),
        }
    }
}

/// Readers that have the key directory at hand are told of the restore that is under way.
#[test]
fn nothing_is_read_under_an_older_vault_while_a_part_is_being_given_up() {
    let (made, older) = without_its_newest_part_and_before(World::new());
    for (number, world) in cut_short(&made).iter().enumerate() {
        put_back(older.path(), &world.keys(), &["vault", "roots"]);
        let id = bulla::info(&world.directory).unwrap().id;
        let keys = Arc::new(SubjectKeys::in_directory(world.keys(), id).unwrap());
        let reader = Reader::open(&world.directory).unwrap().key(world.key.clone());
        let reader = reader.identity(world.identity()).group_keys(keys.clone());
        let export = Export::open(&world.directory).unwrap().key(world.key.clone());
        let export = export.identity(world.identity()).group_keys(keys);
        let mut out = Vec::new();
        for error in [
            reader.for_each(&Query::new(), |_, _| Ok(())).map(drop),
            export.salvage(true).run(&mut out).map(drop),
        ] {
            let error = error.unwrap_err();
            assert!(
                error.to_string().contains("was begun and not finished: do it again"),
                "{number}: {error}"
            );
        }
        assert!(!String::from_utf8(out).unwrap().contains("user_"), "{number}");
    }
}

/// A log that told in its newest part that `user_7` was erased, and copies of its directory and its key directory from before that.
pub(super) fn before_an_erasure() -> (World, TempDir, TempDir) {
    let newest = World::new();
    newest.append(0..20);
    let (log, keys) = (copy(&newest.directory), copy(&newest.keys()));
    newest.append(20..30);
    erase(&newest, "user_7");
    (newest, log, keys)
}

/// What the seal state says was signed is in the tree that is there, and the checkpoint covers less of it: an older copy has the newest tiles
/// with it, or the checkpoint alone is older.
#[test]
fn beside_a_newer_seal_state_no_older_checkpoint_is_answered_from() {
    let (newest, log, keys) = before_an_erasure();
    for older_copy in [true, false] {
        for older_vault in [false, true] {
            let world = newest.copied();
            match older_copy {
                true => {
                    replace(log.path(), &world.directory);
                    copy_into(&newest.directory.join("tile"), &world.directory.join("tile"));
                }
                false => put_back(log.path(), &world.directory, &["checkpoint"]),
            }
            if older_vault {
                put_back(keys.path(), &world.keys(), &["vault", "roots"]);
            }
            let what = format!("older copy {older_copy}, older vault {older_vault}");
            let opened = || open_log(&world.directory, Some(&world.keys()), &[]).unwrap();
            let vault = Arc::new(world.vault(Access::Read));
            let read = || {
                let reader = Reader::open_store(opened()).unwrap().key(world.key.clone());
                let reader = reader.identity(world.identity()).group_keys(vault.clone());
                (reader.for_each(&Query::new(), |_, _| Ok(())).map(drop), reader.events(|_| Ok(())).map(drop))
            };
            let (entries, events) = read();
            for error in [entries.unwrap_err(), events.unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
                assert!(error.to_string().contains("Nothing is told of a part"), "{what}: {error}");
            }
            let mut out = Vec::new();
            let export = Export::open_store(opened()).unwrap().key(world.key.clone());
            let export = export.identity(world.identity()).group_keys(vault.clone()).salvage(true);
            let exported = export.run(&mut out).unwrap();
            assert!(exported.left_out_unknown, "{what}");
            let out = String::from_utf8(out).unwrap();
            assert!(!out.contains("user_7\""), "{what}: {out}");
            assert_eq!(out.contains("user_8\""), !older_vault, "{what}: {out}");

            // Whoever has the storage can hold the lock, as a writer does that is about to publish a checkpoint.
            if !older_copy && older_vault {
                let _held = FileSystem::new(&world.directory).lock("LOCK").unwrap();
                let error = read().0.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
                assert!(error.to_string().contains("does not publish what it has signed"), "{what}: {error}");
            }
        }
    }
}

/// The tree of a part that was given up tells that it is one, by its bundles where a tile is missing. Without both nobody can tell, and nobody is
/// answered.
#[test]
fn a_part_that_was_given_up_is_not_answered_from_without_one_of_its_tiles_either() {
    let world = World::new();
    world.append(0..20);
    let (log, keys) = (copy(&world.directory), copy(&world.keys()));
    (2..6).for_each(|part| world.append(10 * part..10 * part + 10));
    let (given_up, newer) = (copy(&world.directory), copy(&world.keys()));
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    put_back(newer.path(), &world.keys(), &["vault", "roots"]);
    Restore::new(&world.directory, world.identity()).older_log().run().unwrap();
    replace(given_up.path(), &world.directory);
    let events = || {
        let opened = open_log(&world.directory, Some(&world.keys()), &[]).unwrap();
        Reader::open_store(opened).unwrap().events(|_| Ok(())).map(drop).unwrap_err().to_string()
    };
    assert!(events().contains("holds another history of the log"), "{}", events());
    let size = bulla::info(&world.directory).unwrap().tree_size;
    std::fs::remove_file(world.directory.join(format!("tile/0/000.p/{size}"))).unwrap();
    assert!(events().contains("holds another history of the log"), "{}", events());
    std::fs::remove_file(world.directory.join(format!("tile/entries/000.p/{size}"))).unwrap();
    assert!(events().contains("do not tell whether this is the log"), "{}", events());
}
