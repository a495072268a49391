//! A log that is gone on with although frames were lost with a path, and nothing tells how far it had come.

use super::world::World;
use crate::helpers::in_full;
use bulla::{Entry, ErrorKind, Restore};
use bulla_testkit::fault::Fault;
use std::collections::BTreeMap;
use tempfile::TempDir;

const STATE: &str = "audit.keys/seal.state";

/// A log with a backup path that took four entries on its own directory, and is closed.
fn with_four(erasure: bool) -> World {
    let world = World::with_erasure(&["/backup"], erasure);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    log.close().unwrap();
    world
}

/// A log whose frames behind the fourth entry are lost, and the seal state with them; and its vault from before these frames.
fn without_seal_state() -> (World, TempDir) {
    let world = World::with_erasure(&["/backup"], true);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    // A vault without anybody's key brings nobody back.
    log.producer().unwrap().append(&Entry::new("read", "4711").subject("ada")).unwrap();
    log.close().unwrap();
    let older = world.vault_copy();
    lose_end_and_seal_state(&world);
    (world, older)
}

/// Loses four entries with a path, and the seal state.
fn lose_end_and_seal_state(world: &World) {
    lose_end(world);
    assert!(world.machine.remove_file(STATE));
}

/// Loses four entries with a path. Gives the seal state from before the last of them.
fn lose_end(world: &World) -> Vec<u8> {
    let log = world.open_stepped().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..7);
    let earlier = world.machine.read(STATE).unwrap();
    world.append_stepped(&log, 7..8);
    log.close().unwrap();
    world.machine.heal();
    world.destroy("backup");
    world.configure(&[]).unwrap();
    earlier
}

/// Five more entries, of which the first is about somebody where there is erasure.
fn append_five(world: &World, erasure: bool, number: u64) {
    let log = world.open();
    let entry = Entry::new("read", "4711");
    let entry = if erasure { entry.subject("ada") } else { entry };
    log.producer().unwrap().append(&entry).unwrap();
    world.append(&log, number..number + 4);
    log.close().unwrap();
}

/// Goes on with a log, loses what that added, and gives it up by the seal state that was written meanwhile.
fn give_up_another(world: &World) {
    let left = world.files_below("audit");
    let log = world.open();
    world.append(&log, 30..31);
    log.close().unwrap();
    world.destroy("audit");
    world.put_back("audit", &left);
    world.give_up().unwrap();
}

#[test]
fn nothing_is_read_under_a_vault_that_may_not_have_followed_what_is_given_up() {
    let (mut world, older) = without_seal_state();
    world.put_vault_back(older);
    let error = world.give_up().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("say `--older-vault`"), "{error}");
    let restored = world.give_up_with(Restore::older_vault).unwrap();
    let outlook = restored.outlook;
    assert!(outlook.makes_seal_state && outlook.lost_frames == 0 && outlook.may_lose_more, "{outlook:?}");
    for _ in 0..2 {
        let error = world.read_with_keys().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        assert!(error.to_string().contains("nothing is read under them"), "{error}");
        let log = world.open();
        world.append(&log, 10..12);
        log.close().unwrap();
    }
    assert_eq!(world.truncated(), [0]);
}

/// It is the newest that there is; an older one that is put in its place later is known by the event.
#[test]
fn the_vault_that_has_followed_more_than_is_left_is_read_under_and_none_from_before() {
    let (mut world, older) = without_seal_state();
    let restored = world.give_up().unwrap();
    assert!(restored.outlook.lost_frames > 0, "{restored:?}");
    world.read_with_keys().unwrap();
    let log = world.open();
    world.append(&log, 10..12);
    log.close().unwrap();
    world.read_with_keys().unwrap();
    assert_eq!(world.truncated().len(), 1);
    world.put_vault_back(older);
    let error = world.read_with_keys().unwrap_err();
    assert!(error.to_string().contains("a part of the log was given up"), "{error}");
}

/// An attempt that was cut short may have told of it; another part, of which nothing tells either, has an event of its own.
#[test]
fn each_part_is_told_of_once_wherever_giving_it_up_stops() {
    for erasure in [false, true] {
        let mut made = with_four(erasure);
        let older = erasure.then(|| made.vault_copy());
        lose_end_and_seal_state(&made);
        older.into_iter().for_each(|older| made.put_vault_back(older));
        for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
            let world = made.killed();
            world.machine.stop_at(world.machine.operations() + operation);
            let done = world.give_up();
            let what = format!("{erasure}, {operation}: {done:?}");
            let world = world.killed();
            world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(world.truncated(), [0], "{what}");
            if done.is_ok() {
                assert!(operation > 10);
                assert!(world.machine.remove_file(STATE));
                world.give_up().unwrap();
                assert_eq!(world.truncated(), [0, 0]);
                break;
            }
        }
    }
}

/// A seal state from before frames that were lost with a path does not go on behind them; any other says which numbers were given there.
#[test]
fn numbers_that_were_given_in_lost_entries_are_known_however_old_the_vault() {
    let mut made = World::with_erasure(&["/backup", "/third"], true);
    let older = made.vault_copy();
    let append = |made: &World, subject: &str| {
        let log = made.open_stepped().unwrap();
        log.producer().unwrap().append(&Entry::new("read", "4711").subject(subject)).unwrap();
        log.close().unwrap();
    };
    append(&made, "ada");
    let before = made.machine.read(STATE).unwrap();
    made.hand_on(&["/backup", "/third"]);
    append(&made, "eve");
    made.destroy("backup");
    made.configure(&["/third"]).unwrap();
    made.put_vault_back(older);
    let given = made.next_number() + 2;
    for state in [None, Some(&before)] {
        let world = made.killed();
        assert!(world.machine.remove_file(STATE));
        state.into_iter().for_each(|state| world.machine.overwrite(STATE, state));
        assert_eq!(world.give_up_with(Restore::older_vault).unwrap_err().kind(), ErrorKind::Tampered);
    }
    made.take_up().unwrap();
    assert_eq!(made.next_number(), given);
}

/// Of a log without erasure, too, and wherever that stops.
#[test]
fn the_seal_state_tells_how_far_a_lost_path_went() {
    for erasure in [false, true] {
        let made = with_four(erasure);
        let earlier = lose_end(&made);
        let error = made.take_up().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        let known = made.killed().give_up().unwrap().outlook;
        assert!(known.makes_seal_state && !known.vault_behind && known.lost_frames > 0, "{known:?}");
        assert!(known.known.frames > known.log.frames, "{known:?}");
        for operation in (0..).step_by(if in_full() { 1 } else { 7 }) {
            let world = made.killed();
            world.machine.stop_at(world.machine.operations() + operation);
            let done = world.give_up();
            let what = format!("{erasure}, {operation}: {done:?}");
            let spoken_of = made.machine.read(STATE).unwrap();
            // Other places each time.
            let again = (operation % 60..1000).step_by(60);
            for (put_back, world) in [
                (None, world.killed()),
                (Some(&spoken_of), world.killed()),
                (Some(&earlier), world.killed()),
                (None, world.after_power_cut(operation)),
            ] {
                // It was kept as evidence, and says no more than was known already.
                let begun = world.machine.read("audit.keys/restoring").is_some();
                let put_back = put_back.filter(|_| begun);
                // As that was begun.
                let go_on = |world: &World| if begun { world.go_on_giving_up() } else { world.give_up() };
                let mut world = world;
                // Each time that it is put back the attempt is cut short once more.
                let put_back_and_stopped =
                    put_back.into_iter().flat_map(|state| again.clone().map(move |stops| (state, stops)));
                let mut is_done = false;
                for (state, stops) in put_back_and_stopped {
                    world.machine.overwrite(STATE, state);
                    world.machine.stop_at(world.machine.operations() + stops);
                    let went_on = go_on(&world).is_ok();
                    world = world.killed();
                    // It may have been stopped behind its last step.
                    is_done = went_on || world.machine.read("audit.keys/restoring").is_none();
                    if is_done {
                        break;
                    }
                }
                if !is_done {
                    go_on(&world).unwrap_or_else(|error| panic!("{what}, {put_back:?}: {error}"));
                }
                assert_eq!(world.truncated(), [known.known.frames], "{what}, {put_back:?}");
                let own = world.machine.read(STATE).unwrap();
                for state in [&spoken_of, &earlier] {
                    world.machine.overwrite(STATE, state);
                    let files = world.files_below("audit");
                    let error = world.give_up().unwrap_err().to_string();
                    assert!(error.contains("it is from before that"), "{what}: {error}");
                    let error = world.try_open().unwrap_err().to_string();
                    let said = ["it is from before that", "is from before a part was given up"];
                    assert!(said.iter().any(|said| error.contains(said)), "{what}: {error}");
                    assert!(world.files_below("audit") == files, "{what}");
                }
                world.machine.overwrite(STATE, &own);
                if erasure {
                    world.read_with_keys().unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                let log = world.open();
                world.append(&log, 10..12);
                log.close().unwrap();
                assert!(world.verify().ok, "{what}");
            }
            if done.is_ok() {
                assert!(operation > 10);
                break;
            }
        }
    }
}

/// Of which nothing had told when that was said.
#[test]
fn a_seal_state_that_is_put_back_has_nothing_more_given_up_than_was_said() {
    let made = with_four(false);
    lose_end(&made);
    let known = made.killed().give_up().unwrap().outlook.known.frames;
    let spoken_of = made.machine.read(STATE).unwrap();
    assert!(made.machine.remove_file(STATE));
    let left = made.files_below("audit");
    let mut begun = 0;
    for operation in 0.. {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + operation);
        let done = world.give_up();
        let world = world.killed();
        if world.files_below("audit") != left {
            // What is told of it is told.
            let own = world.machine.read(STATE).unwrap();
            world.machine.overwrite(STATE, &spoken_of);
            match world.machine.read("audit.keys/restoring") {
                None => {
                    assert_eq!(world.give_up().unwrap_err().kind(), ErrorKind::Refused, "{operation}");
                    world.machine.overwrite(STATE, &own);
                }
                Some(_) => drop(world.give_up().unwrap_or_else(|error| panic!("{operation}: {error}"))),
            }
            let told = world.truncated();
            assert!(told == [known] || told == [0], "{operation}: {told:?}");
            if done.is_ok() {
                break;
            }
            continue;
        }
        if world.machine.read("audit.keys/restoring").is_none() {
            continue;
        }
        begun += 1;
        world.machine.overwrite(STATE, &spoken_of);
        let error = world.go_on_giving_up().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{operation}: {error}");
        assert!(
            error.to_string().contains(&format!("its seal state covers {known}")),
            "{operation}: {error}"
        );
        assert!(world.files_below("audit") == left, "{operation}");
        world.give_up().unwrap_or_else(|error| panic!("{operation}: {error}"));
        assert_eq!(world.truncated(), [known], "{operation}");
    }
    assert!(begun > 1, "{begun}");
}

/// It has as many frames as the first one had, and is known by its own seal state all the same; that of the first one says nothing of it.
#[test]
fn another_part_that_is_lost_is_told_of_by_the_seal_state_since() {
    for erasure in [false, true] {
        let mut made = with_four(erasure);
        lose_end(&made);
        let first = made.machine.read(STATE).unwrap();
        let known = made.give_up().unwrap().outlook.known.frames;
        let (left, vault) = (made.files_below("audit"), erasure.then(|| made.vault_copy()));
        let log = made.open_stepped().unwrap();
        let frames = |world: &World| bulla::info_of(world.log()).unwrap().tree_size;
        // Closing adds the last one.
        for number in (20..).take_while(|_| frames(&made) + 1 < known) {
            made.append_stepped(&log, number..number + 1);
        }
        drop(log);
        let second = made.machine.read(STATE).unwrap();
        made = made.killed();
        made.destroy("audit");
        made.put_back("audit", &left);

        made.machine.overwrite(STATE, &first);
        let error = made.give_up().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("it is from before that"), "{error}");
        made.machine.overwrite(STATE, &second);
        if let Some(older) = vault {
            let newest = made.vault_copy();
            made.put_vault_back(older);
            assert_eq!(made.give_up().unwrap_err().kind(), ErrorKind::Refused);
            made.put_vault_back(newest);
        }
        assert!(made.files_below("audit") == left);
        made.give_up().unwrap();
        assert_eq!(made.truncated(), [known, known], "{erasure}");
        if erasure {
            made.read_with_keys().unwrap();
        }
    }
}

/// With the copy of the log that it was given up with, what came after that is lost as well: the vault knows of it, and of nothing that the first seal state
/// speaks of.
#[test]
fn a_seal_state_from_before_what_the_vault_knows_to_be_given_up_does_not_say_what_is_lost() {
    let made = with_four(true);
    lose_end(&made);
    let (left, first) = (made.files_below("audit"), made.machine.read(STATE).unwrap());
    made.give_up().unwrap();
    let log = made.open();
    made.append(&log, 20..21);
    log.close().unwrap();
    let known = bulla::info_of(made.log()).unwrap().tree_size;
    let second = made.machine.read(STATE).unwrap();
    made.destroy("audit");
    made.put_back("audit", &left);

    made.machine.overwrite(STATE, &first);
    let error = made.give_up().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("of which the key directory tells"), "{error}");
    assert!(made.files_below("audit") == left);
    for operation in (0..).step_by(if in_full() { 1 } else { 7 }) {
        let world = made.killed();
        world.machine.overwrite(STATE, &second);
        world.machine.stop_at(world.machine.operations() + operation);
        let done = world.give_up();
        let world = world.killed();
        if world.machine.read("audit.keys/restoring").is_some() && world.files_below("audit") == left {
            world.machine.overwrite(STATE, &first);
            assert_eq!(world.give_up().unwrap_err().kind(), ErrorKind::Refused, "{operation}");
            world.machine.remove_file(STATE);
        }
        world.give_up().unwrap_or_else(|error| panic!("{operation}: {error}"));
        assert_eq!(world.truncated(), [known], "{operation}");
        world.read_with_keys().unwrap_or_else(|error| panic!("{operation}: {error}"));
        if done.is_ok() {
            assert!(operation > 10);
            break;
        }
    }
}

/// The vault stays marked with what an attempt was to give up, and the seal state has to know of it as well.
#[test]
fn what_is_lost_is_given_up_after_an_attempt_that_came_to_nothing() {
    let made = with_four(true);
    let left = made.files_below("audit");
    let log = made.open();
    made.append(&log, 4..8);
    log.close().unwrap();
    let whole = made.files_below("audit");
    let lost = bulla::info_of(made.log()).unwrap().tree_size;
    let state = made.machine.read(STATE).unwrap();
    made.put_back("audit", &left);
    let mut marked = 0;
    for operation in 0.. {
        let mut world = made.killed();
        world.machine.stop_at(world.machine.operations() + operation);
        world.give_up().unwrap_err();
        world = world.killed();
        if world.files_below("audit") != left {
            break;
        }
        let is_marked = world.followed_and_signed().0 == 0;
        marked += u64::from(is_marked);
        if is_marked {
            // Nothing else is left of the attempt. The seal state, which tells what is lost, is not taken for one from before.
            let world = world.killed();
            world.machine.overwrite(STATE, &state);
            world.machine.remove_file("audit.keys/restoring");
            let error = world.give_up().unwrap_err().to_string();
            assert!(error.contains("say `--older-vault`"), "{operation}: {error}");
            world.give_up_with(Restore::older_vault).unwrap();
            assert_eq!(world.truncated(), [lost], "{operation}");
        }
        for removes_record in [false, true] {
            let world = world.killed();
            world.put_back("audit", &whole);
            world.machine.overwrite(STATE, &state);
            match removes_record {
                true => drop(world.machine.remove_file("audit.keys/restoring")),
                false => drop(world.take_up().unwrap_or_else(|error| panic!("{operation}: {error}"))),
            }
            let log = world.open();
            world.append(&log, 8..9);
            log.close().unwrap();
            assert_eq!(world.truncated(), [] as [u64; 0], "{operation}");
            let known = bulla::info_of(world.log()).unwrap().tree_size;
            world.put_back("audit", &left);
            world.give_up().unwrap_or_else(|error| panic!("{operation}, {removes_record}: {error}"));
            assert_eq!(world.truncated(), [known], "{operation}, {removes_record}");
            world.read_with_keys().unwrap_or_else(|error| panic!("{operation}: {error}"));
        }
    }
    assert!(marked > 0, "{marked}");
}

/// Each attempt of a log without erasure that begins anew draws an id of its own.
#[test]
fn a_key_directory_from_an_attempt_gives_nothing_up_of_a_log_that_another_one_has_gone_on_with() {
    for is_untold in [false, true] {
        gives_nothing_up_that_another_one_has(is_untold);
    }
}

fn gives_nothing_up_that_another_one_has(is_untold: bool) {
    let made = with_four(false);
    let left = made.files_below("audit");
    match is_untold {
        true => lose_end_and_seal_state(&made),
        false => {
            let log = made.open();
            made.append(&log, 4..8);
            log.close().unwrap();
            made.put_back("audit", &left);
        }
    }
    let mut begun = 0;
    for operation in (0..).step_by(if in_full() { 1 } else { 5 }) {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + operation);
        let done = world.give_up();
        let world = world.killed();
        let is_begun = world.machine.read("audit.keys/restoring").is_some();
        let keys = world.files_below("audit.keys");
        if done.is_err() {
            world.give_up().unwrap_or_else(|error| panic!("{operation}: {error}"));
        }
        let log = world.open();
        world.append(&log, 10..12);
        log.close().unwrap();
        let told = world.truncated();
        assert_eq!(told.len(), 1, "{operation}");
        if done.is_ok() {
            break;
        }
        if !is_begun {
            continue;
        }
        begun += 1;
        let newest = world.machine.read(STATE).unwrap();
        world.put_back("audit.keys", &keys);
        for brings_newest in [false, true] {
            let world = world.killed();
            // Of a log that has lost a path it has to be there.
            if is_untold && world.machine.read(STATE).is_none() {
                world.machine.overwrite(STATE, &newest);
            }
            if let Err(error) = world.go_on_giving_up() {
                // It has the seal state still that speaks of what is lost.
                assert_eq!(error.kind(), ErrorKind::Refused, "{operation}: {error}");
                match brings_newest {
                    true => world.machine.overwrite(STATE, &newest),
                    false => drop(world.machine.remove_file(STATE)),
                }
                world.go_on_giving_up().unwrap_or_else(|error| panic!("{operation}: {error}"));
            }
            assert_eq!(world.truncated(), told, "{operation}, {brings_newest}");
            let log = world.open();
            world.append(&log, 12..13);
            log.close().unwrap();
            assert!(world.verify().ok, "{operation}");
        }
    }
    assert!(begun > 1, "{begun}");
}

/// It tells of a part that was given up before, which is none of what is lost now.
#[test]
fn a_longer_copy_that_is_found_while_a_part_is_given_up_is_not_all() {
    // The vault alone tells of the first part where the seal state is lost before that begins.
    for (erasure, is_state_lost) in [(false, false), (true, false), (true, true)] {
        let made = World::with_erasure(&["/backup"], erasure);
        append_five(&made, erasure, 0);
        let left = made.files_below("audit");
        append_five(&made, erasure, 4);
        made.put_back("audit", &left);
        made.give_up().unwrap();
        let first = made.truncated();
        append_five(&made, erasure, 20);
        let longer = made.files_below("audit");
        let older = made.killed();
        append_five(&made, erasure, 30);
        let known = bulla::info_of(made.log()).unwrap().tree_size;
        made.put_back("audit", &left);
        if is_state_lost {
            made.machine.remove_file(STATE);
        }
        let mut begun = 0;
        for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
            let world = made.killed();
            world.machine.stop_at(world.machine.operations() + operation);
            world.give_up().unwrap_err();
            let world = world.killed();
            if world.files_below("audit") != left {
                break;
            }
            let is_begun = world.machine.read("audit.keys/restoring").is_some();
            begun += u64::from(is_begun);
            world.put_back("audit", &longer);
            for loses_state in [false, is_begun] {
                let mut world = world.killed();
                let what = format!("{erasure}, {is_state_lost}, {operation}, {loses_state}");
                if loses_state {
                    world.machine.remove_file(STATE);
                }
                if erasure && is_begun {
                    let right = world.vault_copy();
                    world.put_vault_back(older.vault_copy());
                    assert_eq!(world.give_up().unwrap_err().kind(), ErrorKind::Refused, "{what}");
                    world.put_vault_back(right);
                }
                world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(world.truncated(), [first[0], known], "{what}");
                if erasure {
                    world.read_with_keys().unwrap_or_else(|error| panic!("{what}: {error}"));
                }
            }
        }
        assert!(begun > 0, "{erasure}");
    }
}

/// Nothing told which parts were known when that began: what the copy tells of another one says nothing of the frames that lay on the path.
#[test]
fn a_longer_copy_that_is_found_while_a_part_is_given_up_that_nothing_tells_of_is_not_all() {
    let made = with_four(false);
    let left = made.files_below("audit");
    let append = |numbers| {
        let log = made.open();
        made.append(&log, numbers);
        log.close().unwrap();
    };
    append(4..8);
    made.put_back("audit", &left);
    made.give_up().unwrap();
    let first = made.truncated();
    append(20..22);
    let longer = made.files_below("audit");
    lose_end_and_seal_state(&made);
    made.put_back("audit", &left);
    let (mut begun, mut is_first) = (0, true);
    for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + operation);
        let done = world.give_up();
        let world = world.killed();
        let is_opened = world.files_below("audit") != left;
        let has_state = world.machine.read(STATE).is_some();
        begun += u64::from(has_state && !is_opened);
        world.put_back("audit", &longer);
        // Done again it may be cut short as well, with a state that knows of the first part by then.
        for again in (0..).step_by(if in_full() { 1 } else { 5 }) {
            let world = world.killed();
            let what = format!("{operation}, {again}");
            world.machine.stop_at(world.machine.operations() + again);
            let is_done = world.give_up().is_ok();
            let world = world.killed();
            world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(world.truncated(), [first[0], 0], "{what}");
            if is_done {
                break;
            }
        }
        if is_opened || done.is_ok() {
            break;
        }
        is_first = false;
    }
    assert!(begun > 0 && !is_first, "{begun}");
}

/// An attempt may have opened the log, or told what it gave up, and that be lost again, with the seal state, so many times, or without, and the vault be
/// what it was before.
#[test]
fn what_is_known_of_what_is_lost_stays_known_however_often_giving_it_up_is_cut_short() {
    for (erasure, losses, at_once) in [
        (false, 0, true),
        (false, 1, true),
        (false, 2, true),
        (true, 0, true),
        (false, 0, false),
        (true, 0, false),
    ] {
        let made = with_four(erasure);
        let left = made.files_below("audit");
        let lose = |number| {
            let log = made.open();
            let entry = Entry::new("read", "4711");
            let entry = if erasure { entry.subject("ada") } else { entry };
            log.producer().unwrap().append(&entry).unwrap();
            made.append(&log, number..number + 1);
            log.close().unwrap();
            let known = bulla::info_of(made.log()).unwrap().tree_size;
            made.put_back("audit", &left);
            known
        };
        // The event of the first part is lost as well.
        lose(4);
        made.give_up().unwrap();
        let known = lose(10);
        let whole = made.killed();
        let begun = whole.machine.operations();
        whole.give_up().unwrap();
        let most = whole.machine.operations() - begun;
        let (mut rounds, steps) = (0, if in_full() { 3 } else { 17 });
        // Once it is told the record is all that is left to remove.
        let from = if at_once { 0 } else { most - 12 };
        'attempts: for first in (from..).step_by(if at_once { steps } else { 2 }) {
            for second in (0..).step_by(steps) {
                let what = format!("{erasure}, {losses}, {at_once}, {first}, {second}");
                let (mut world, mut done) = (made.killed(), Vec::new());
                for operation in [first, second] {
                    world.machine.stop_at(world.machine.operations() + operation);
                    done.push(world.give_up().is_ok());
                    world = world.killed();
                    if done.ends_with(&[true]) {
                        break;
                    }
                    if !at_once && done.len() == 1 {
                        continue;
                    }
                    world.put_back("audit", &left);
                    if done.len() <= losses && world.machine.read("audit.keys/restoring").is_some() {
                        world.machine.remove_file(STATE);
                    }
                    if erasure && (at_once || done.len() == 2) {
                        world.put_vault_back(made.vault_copy());
                    }
                }
                if done == [true] {
                    break 'attempts;
                }
                if done == [false, false] {
                    world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                assert_eq!(world.truncated(), [known], "{what}");
                rounds += 1;
                if done == [false, true] {
                    break;
                }
            }
        }
        assert!(rounds > 4, "{erasure}, {losses}, {at_once}: {rounds}");
    }
}

/// Where nothing is marked with an id, each attempt draws another one for what is lost; the seal state may be that of the attempt before, and speak of
/// frames that it wrote, and that are lost as well.
#[test]
fn a_part_is_one_loss_however_many_ids_are_drawn_for_it() {
    let made = with_four(false);
    let left = made.files_below("audit");
    let log = made.open();
    made.append(&log, 4..8);
    log.close().unwrap();
    let known = bulla::info_of(made.log()).unwrap().tree_size;
    made.put_back("audit", &left);
    let cut = |made: &World, operation: u64| {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + operation);
        world.give_up().is_err().then(|| world.killed())
    };
    let read = |world: &World, name: &str| world.machine.read(name);
    let record = |world: &World| read(world, "audit.keys/restoring");
    let done = made.killed();
    let first = done.machine.operations();
    done.give_up().unwrap();
    let mut cuts = (0..done.machine.operations() - first).rev().filter_map(|operation| cut(&made, operation));
    let begun = cuts.find(|world| record(world).is_some()).unwrap();
    begun.put_back("audit", &left);
    let again =
        (1..).map_while(|operation| cut(&begun, operation)).find(|world| record(world) != record(&begun));
    let again = again.unwrap();
    assert_eq!(read(&again, STATE), read(&begun, STATE));
    assert_eq!(again.files_below("audit"), left);
    again.give_up().unwrap();
    assert_eq!(again.truncated(), [known]);
}

/// Nothing but the record tells what was lost where the seal state is that of the attempt.
#[test]
fn a_log_that_is_found_whole_beside_the_seal_state_of_an_attempt_can_be_lost_again() {
    let made = with_four(false);
    let left = made.files_below("audit");
    let log = made.open();
    made.append(&log, 4..8);
    log.close().unwrap();
    let (whole, known) = (made.files_below("audit"), bulla::info_of(made.log()).unwrap().tree_size);
    made.put_back("audit", &left);
    let mut found = 0;
    for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
        let cut = made.killed();
        cut.machine.stop_at(cut.machine.operations() + operation);
        cut.give_up().unwrap_err();
        let cut = cut.killed();
        if cut.files_below("audit") != left {
            break;
        }
        cut.put_back("audit", &whole);
        for stop in (0..).step_by(if in_full() { 1 } else { 7 }) {
            let world = cut.killed();
            world.machine.stop_at(world.machine.operations() + stop);
            let done = world.take_up().is_ok();
            let world = world.killed();
            world.put_back("audit", &left);
            let what = format!("{operation}, {stop}");
            world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
            let told = world.truncated();
            assert!(told.len() == 1 && told[0] >= known, "{what}: {told:?}");
            found += 1;
            if done {
                break;
            }
        }
    }
    assert!(found > 4, "{found}");
}

/// Nothing says what it gives up, or whether anything that is left is that.
#[test]
fn a_log_does_not_open_under_the_seal_state_of_an_attempt_that_is_not_done() {
    for erasure in [false, true] {
        let made = with_four(erasure);
        let left = made.files_below("audit");
        let log = made.open();
        made.append(&log, 4..8);
        log.close().unwrap();
        let newest = made.machine.read(STATE);
        made.put_back("audit", &left);
        let mut own = 0;
        for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
            let world = made.killed();
            world.machine.stop_at(world.machine.operations() + operation);
            let done = world.give_up();
            let world = world.killed();
            world.machine.remove_file("audit.keys/restoring");
            let what = format!("{erasure}, {operation}: {done:?}");
            if world.machine.read(STATE) == newest {
                continue;
            }
            own += 1;
            if let Err(error) = world.try_open().map(drop) {
                assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
                if let Err(error) = world.take_up() {
                    assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
                    world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                drop(world.open());
            }
            assert_eq!(world.truncated().len(), 1, "{what}");
            if done.is_ok() {
                break;
            }
        }
        assert!(own > 4, "{erasure}: {own}");
    }
}

/// It tells of none of them what is not so, whether it is from before what was given up or from before all that was lost.
#[test]
fn a_seal_state_of_any_age_since_then_or_from_before_what_was_lost_is_gone_on_with() {
    for erasure in [false, true] {
        let made = World::with_erasure(&["/backup"], erasure);
        let log = made.open_stepped().unwrap();
        made.append_stepped(&log, 0..2);
        let before = made.machine.read(STATE).unwrap();
        made.append_stepped(&log, 2..4);
        log.close().unwrap();
        lose_end(&made);
        let known = made.give_up().unwrap().outlook.known.frames;
        let since = made.machine.read(STATE).unwrap();
        for round in 0..2 {
            let log = made.open();
            made.append(&log, 20 + round..21 + round);
            log.close().unwrap();
        }
        for state in [before, since] {
            let world = made.killed();
            world.machine.overwrite(STATE, &state);
            world.give_up().unwrap();
            assert_eq!(world.truncated(), [known], "{erasure}");
            // The one that was written since knows of the part, whatever the one before knew.
            give_up_another(&world);
            assert_eq!(world.truncated().len(), 2, "{erasure}");
            assert!(world.verify().ok, "{erasure}");
        }
    }
}

/// The vault alone tells of what is lost, and the seal state that is there goes with what is left: it is gone on with, and knows of the part.
#[test]
fn a_seal_state_that_goes_with_what_is_left_knows_of_what_is_given_up() {
    let made = World::with_erasure(&["/backup"], true);
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 0..2);
    let before = made.machine.read(STATE).unwrap();
    made.append_stepped(&log, 2..4);
    log.close().unwrap();
    lose_end(&made);
    made.machine.overwrite(STATE, &before);
    let restored = made.give_up().unwrap();
    assert!(!restored.outlook.makes_seal_state && restored.outlook.lost_frames > 0, "{restored:?}");
    give_up_another(&made);
    assert_eq!(made.truncated().len(), 2);
    made.read_with_keys().unwrap();
}

/// Nothing told how much was lost when that was begun: with an older vault, with one that has nobody's keys, and of a log without a vault.
#[test]
fn a_log_that_is_found_whole_gives_nothing_up_that_was_not_known() {
    for (erasure, has_people) in [(false, false), (true, false), (true, true)] {
        let mut made = World::with_erasure(&["/backup"], erasure);
        let log = made.open_stepped().unwrap();
        made.append_stepped(&log, 0..4);
        if has_people {
            log.producer().unwrap().append(&Entry::new("read", "4711").subject("ada")).unwrap();
        }
        log.close().unwrap();
        let older = erasure.then(|| made.vault_copy());
        let log = made.open_stepped().unwrap();
        made.machine.fail_below("audit", Fault::NoSpace);
        made.append_stepped(&log, 4..8);
        log.close().unwrap();
        made.machine.heal();
        let whole = made.killed();
        made.destroy("backup");
        made.configure(&[]).unwrap();
        assert!(made.machine.remove_file(STATE));
        older.into_iter().for_each(|older| made.put_vault_back(older));
        let left = made.files_below("audit");
        let mut begun = 0;
        for operation in 0.. {
            let world = made.killed();
            world.machine.stop_at(world.machine.operations() + operation);
            world.give_up_with(Restore::older_vault).unwrap_err();
            let mut world = world.killed();
            if world.files_below("audit") != left {
                break;
            }
            let is_begun = world.machine.read("audit.keys/restoring").is_some();
            world.put_back("backup", &whole.files_below("backup"));
            for name in ["seal.state", "paths", "settings.toml"] {
                let name = format!("audit.keys/{name}");
                world.machine.overwrite(&name, &whole.machine.read(&name).unwrap());
            }
            if has_people {
                world.put_vault_back(whole.vault_copy());
            }
            // Until it is marked, one without anybody is not told from a copy from before.
            if erasure && !has_people && world.followed_and_signed().0 > 0 {
                continue;
            }
            let what = format!("{erasure}, {has_people}, {operation}");
            begun += u64::from(is_begun);
            // What says so may be cut short as well.
            for stop in (0..).step_by(if in_full() { 1 } else { 23 }) {
                let world = world.killed();
                world.machine.stop_at(world.machine.operations() + stop);
                let done = world.take_up().is_ok();
                let world = world.killed();
                world.take_up().unwrap_or_else(|error| panic!("{what}, {stop}: {error}"));
                assert_eq!(world.truncated(), [] as [u64; 0], "{what}, {stop}");
                if done {
                    break;
                }
            }
            let restored = world.take_up().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(!restored.outlook.vault_behind, "{what}");
            assert_eq!(world.truncated(), [] as [u64; 0], "{what}");
            let log = world.open();
            world.append(&log, 10..12);
            log.close().unwrap();
            assert!(world.verify().ok, "{what}");
            match erasure {
                true => world.read_with_keys().unwrap_or_else(|error| panic!("{what}: {error}")),
                false => assert_eq!(world.numbers(), (0..8).chain(10..12).collect(), "{what}"),
            }
        }
        assert!(begun > 0, "{erasure}, {has_people}: {begun}");
    }
}

/// What was known when that was begun is told, and once, although the vault that knew it is put away before it is done again, and the seal state is lost
/// once more.
#[test]
fn what_is_told_of_a_part_is_what_the_first_attempt_knew() {
    let (made, older) = without_seal_state();
    let mut with_older = made.killed();
    with_older.put_vault_back(older);
    let known = {
        let world = made.killed();
        world.give_up().unwrap();
        world.truncated()
    };
    assert!(known.len() == 1 && known[0] > 0, "{known:?}");
    let mut interrupted = 0;
    for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + operation);
        let done = world.give_up().is_ok();
        let mut world = world.killed();
        if world.machine.read("audit.keys/restoring").is_some() {
            interrupted += 1;
            world.machine.remove_file(STATE);
            world.put_vault_back(with_older.vault_copy());
            let restored = world.give_up_with(Restore::older_vault);
            let restored = restored.unwrap_or_else(|error| panic!("{operation}: {error}"));
            assert!(restored.outlook.vault_behind, "{operation}");
            // Once that is signed, the part is given up, and what is lost then is another one.
            let told = world.truncated();
            assert!(told == known || told == [known[0], 0], "{operation}: {told:?}");
            assert_eq!(world.read_with_keys().unwrap_err().kind(), ErrorKind::Tampered, "{operation}");
        }
        if done {
            break;
        }
    }
    assert!(interrupted > 3, "{interrupted}");
}

/// A log that took four entries on its own directory, and then so many frames on its backup path that it has `frames` at least; that path is lost, and the
/// seal state. The own directory fails in this way meanwhile, or works again where there is none.
fn without_end(frames: u64, erasure: bool, fault: Option<Fault>) -> World {
    let world = World::with_erasure(&["/backup"], erasure);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", fault.unwrap_or(Fault::NoSpace));
    world.append_stepped(&log, 4..5);
    if fault.is_none() {
        world.machine.heal();
    }
    for number in (5..).take_while(|_| bulla::info_of(world.log()).unwrap().tree_size < frames) {
        world.append_stepped(&log, number..number + 1);
    }
    log.close().unwrap();
    world.machine.heal();
    world.destroy("backup");
    world.configure(&[]).unwrap();
    assert!(world.machine.remove_file(STATE));
    world
}

/// The partial tiles that the older checkpoint needs are gone from its path, or may go with what is of the tree that is given up.
#[test]
fn a_part_that_filled_tiles_is_given_up() {
    let ends = [(255, false), (256, false), (257, false), (300, true), (512, false), (520, false)];
    for (frames, erasure) in ends {
        for fault in [None, Some(Fault::NoSpace)] {
            let what = format!("{frames}, {fault:?}, {erasure}");
            let world = without_end(frames, erasure, fault);
            world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(world.truncated().len(), 1, "{what}");
            for number in [100, 101] {
                let log = world.open();
                world.append(&log, number..number + 1);
                log.close().unwrap();
            }
            match erasure {
                true => world.read_with_keys().unwrap(),
                false => assert_eq!(world.numbers(), [0, 1, 2, 3, 100, 101].into(), "{what}"),
            }
            let report = world.verify();
            assert!(report.ok, "{what}: {:#?}", report.findings);
        }
    }
}

#[test]
fn a_part_that_filled_tiles_is_given_up_wherever_that_stops() {
    let made = without_end(300, false, None);
    for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + operation);
        let done = world.give_up();
        for world in [world.killed(), world.after_power_cut(operation)] {
            world.give_up().unwrap_or_else(|error| panic!("{operation}, {done:?}: {error}"));
            assert_eq!(world.numbers(), (0..4).collect(), "{operation}");
        }
        if done.is_ok() {
            assert!(operation > 10);
            break;
        }
    }
}

/// Whichever copy of the log an attempt goes on with, and whichever there was when another one began: what it has is not lost.
#[test]
fn what_is_told_to_be_lost_is_what_the_copy_lacks_that_is_there() {
    for erasure in [false, true] {
        let made = with_four(erasure);
        let append = |numbers| {
            let log = made.open();
            made.append(&log, numbers);
            log.close().unwrap();
            (made.files_below("audit"), bulla::info_of(made.log()).unwrap().tree_size)
        };
        let (shorter, longer, (_, known)) = (append(4..6), append(6..8), append(8..10));
        let mut found = 0;
        for [before, copy] in [[&shorter, &longer], [&longer, &shorter]] {
            made.put_back("audit", &before.0);
            for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
                let cut = made.killed();
                cut.machine.stop_at(cut.machine.operations() + operation);
                if cut.give_up().is_ok() {
                    break;
                }
                let world = cut.killed();
                let keys = world.files_below("audit.keys");
                let has_begun = keys.contains_key("restoring");
                let was_given_up = !has_begun && world.files_below("audit") != before.0;
                world.put_back("audit", &copy.0);
                let what = format!("{erasure}, {}, {operation}", before.1);
                if was_given_up {
                    // The attempt was done: this is another loss.
                    break;
                }
                let restored = match world.give_up() {
                    Ok(restored) => restored,
                    // What the attempt had written was taken away, and the seal state or the vault speaks of that.
                    Err(error) => {
                        let is_other = matches!(error.kind(), ErrorKind::Tampered | ErrorKind::Refused);
                        assert!(has_begun && is_other, "{what}: {error}");
                        continue;
                    }
                };
                assert_eq!(restored.outlook.lost_frames, known - copy.1, "{what}");
                assert!(!restored.outlook.may_lose_more, "{what}");
                assert_eq!(world.truncated(), [known], "{what}");
                found += u64::from(has_begun);
                if has_begun {
                    // What was copied in the middle of it gives nothing up that it has given up.
                    let newest = world.machine.read(STATE).unwrap();
                    world.put_back("audit.keys", &keys);
                    world.machine.overwrite(STATE, &newest);
                    world.give_up().unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(world.truncated(), [known], "{what}");
                }
            }
        }
        assert!(found > 4, "{erasure}: {found}");
    }
}

/// A copy of what was given up, which is put back once the log has gone on without it, lacks more than the frames behind its end: what came in its place is
/// lost, too, and the keys know how far that went, and not where it began.
#[test]
fn what_came_in_the_place_of_a_part_that_is_put_back_may_be_lost_too() {
    for erasure in [false, true] {
        let made = with_four(erasure);
        let (shorter, longer) = (made.files_below("audit"), {
            append_five(&made, erasure, 4);
            made.files_below("audit")
        });
        let copied = bulla::info_of(made.log()).unwrap().tree_size;
        append_five(&made, erasure, 9);
        made.put_back("audit", &shorter);
        let outlook = made.give_up().unwrap().outlook;
        assert!(outlook.lost_frames > 0 && !outlook.may_lose_more, "{erasure}: {outlook:?}");
        (0..2).for_each(|more| append_five(&made, erasure, 20 + 5 * more));
        let known = bulla::info_of(made.log()).unwrap().tree_size;
        made.put_back("audit", &longer);
        let outlook = made.give_up().unwrap().outlook;
        assert_eq!((outlook.lost_frames, outlook.may_lose_more), (known - copied, true), "{erasure}");
        assert_eq!(made.truncated(), [known], "{erasure}");
    }
}

/// It speaks of an attempt in whose place another one was made, as the log tells.
#[test]
fn a_seal_state_of_an_attempt_that_was_made_again_is_only_an_older_one() {
    for erasure in [false, true] {
        let mut made = World::with_erasure(&["/backup"], erasure);
        append_five(&made, erasure, 0);
        let (left, older) = (made.files_below("audit"), made.killed());
        append_five(&made, erasure, 4);
        made.put_back("audit", &left);
        let (keys, newest) = (made.files_below("audit.keys"), made.killed());
        if erasure {
            made.put_vault_back(older.vault_copy());
        }
        let mut begun = 0;
        for operation in (0..).step_by(if in_full() { 1 } else { 3 }) {
            let world = made.killed();
            world.machine.stop_at(world.machine.operations() + operation);
            let done = world.give_up_with(Restore::older_vault);
            let mut world = world.killed();
            if done.is_ok() || world.files_below("audit") != left {
                break;
            }
            let state = world.machine.read(STATE).unwrap();
            if state == keys["seal.state"] {
                continue;
            }
            begun += 1;
            if erasure {
                world.put_back("audit.keys", &keys);
                world.put_vault_back(newest.vault_copy());
            }
            world.give_up().unwrap();
            append_five(&world, erasure, 20);
            world.machine.overwrite(STATE, &state);
            if erasure {
                world.take_up().unwrap();
            }
            append_five(&world, erasure, 24);
            assert_eq!(world.truncated().len(), 1, "{erasure}, {operation}");
            if erasure {
                world.read_with_keys().unwrap();
            }
        }
        assert!(begun > 0, "{erasure}");
    }
}

/// The path is found before the attempt's checkpoint was written, whose tree lies on the other path by then.
#[test]
fn an_attempt_that_comes_to_nothing_leaves_nothing_of_its_tree() {
    let made = World::new(&["/backup"]);
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 0..4);
    made.machine.fail_below("audit", Fault::WriteFails);
    made.append_stepped(&log, 4..8);
    log.close().unwrap();
    let made = made.killed();
    let files = made.files_below("backup");
    made.destroy("backup");
    made.configure(&[]).unwrap();
    let tiles = |world: &World| {
        world.files_below("audit").into_keys().filter(|name| name.starts_with("tile/")).count()
    };
    let before = tiles(&made);
    let mut had_more = 0;
    for stop in 0.. {
        let world = made.killed();
        world.machine.stop_at(world.machine.operations() + stop);
        let is_done = world.give_up().is_ok();
        let world = world.killed();
        if is_done {
            break;
        }
        had_more += usize::from(tiles(&world) > before);
        world.put_back("backup", &files);
        // Once the attempt has signed something, what lies there is another history.
        if let Err(error) = world.configure(&["/backup"]) {
            assert!(error.to_string().contains("another history"), "{stop}: {error}");
            continue;
        }
        // At another place each time.
        let first = if in_full() { 0 } else { stop % 11 };
        for again in (first..).step_by(if in_full() { 1 } else { 11 }) {
            let world = world.killed();
            world.machine.stop_at(world.machine.operations() + again);
            let is_done = world.take_up().is_ok();
            let world = world.killed();
            world.take_up().map(drop).unwrap_or_else(|error| panic!("{stop}, {again}: {error}"));
            let log = world.open_stepped().unwrap();
            world.append_stepped(&log, 8..9);
            log.close().unwrap();
            let report = world.verify();
            assert!(report.ok, "{stop}, {again}: {:#?}", report.findings);
            world.check_contains(0..9);
            if is_done {
                break;
            }
        }
    }
    assert!(had_more > 2, "{had_more}");
}

/// A log on three paths that has left the first one with 254 frames or so, has filled a tile since, and lost the path in use; and what lay there.
fn with_a_full_tile_lost() -> (World, BTreeMap<String, Vec<u8>>) {
    let made = World::new(&["/backup", "/other"]);
    let log = made.open_stepped().unwrap();
    made.append_stepped(&log, 0..1);
    (1..254).for_each(|number| made.commit_stepped(&log, number).unwrap());
    log.flush().unwrap();
    made.machine.fail_below("audit", Fault::WriteFails);
    made.append_stepped(&log, 254..266);
    log.close().unwrap();
    let made = made.killed();
    let files = made.files_below("backup");
    made.destroy("backup");
    made.configure(&["/other"]).unwrap();
    (made, files)
}

/// The attempt fills a tile on the first path, and on another one to which it goes on: neither makes the other's one of the log.
#[test]
fn a_full_tile_of_an_attempt_that_comes_to_nothing_is_removed_from_each_path() {
    let (made, files) = with_a_full_tile_lost();
    let is_of_attempt = |world: &World, path: &str| {
        let tile = world.machine.read(&format!("{path}/tile/0/000"));
        tile.is_some_and(|tile| tile != files["tile/0/000"])
    };
    let mut on_both = 0;
    for stop in (0..).step_by(if in_full() { 1 } else { 3 }) {
        let world = made.killed();
        world.machine.fail_below("audit/tile/entries", Fault::WriteFails);
        world.machine.stop_at(world.machine.operations() + stop);
        let is_done = world.give_up().is_ok();
        let world = world.killed();
        if is_done {
            break;
        }
        on_both += usize::from(is_of_attempt(&world, "audit") && is_of_attempt(&world, "other"));
        world.put_back("backup", &files);
        if let Err(error) = world.configure(&["/backup", "/other"]) {
            assert!(error.to_string().contains("another history"), "{stop}: {error}");
            break;
        }
        world.take_up().map(drop).unwrap_or_else(|error| panic!("{stop}: {error}"));
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 900..901);
        log.close().unwrap();
        world.check_contains((0..266).chain(900..901));
    }
    assert!(on_both > 2, "{on_both}");
}

/// A bundle may be all that is left to mend another one by.
#[test]
fn a_full_bundle_of_the_log_stays_where_an_attempt_comes_to_nothing() {
    const BUNDLE: &str = "tile/entries/000";
    let (made, files) = with_a_full_tile_lost();
    let whole = &files[BUNDLE];
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    let mut stayed = 0;
    for stop in 0.. {
        let world = made.killed();
        world.machine.overwrite(&format!("audit/{BUNDLE}"), whole);
        let state = world.machine.read(STATE);
        world.machine.stop_at(world.machine.operations() + stop);
        let is_done = world.give_up().is_ok();
        let world = world.killed();
        let is_left = || world.machine.read(&format!("audit/{BUNDLE}")).as_ref() == Some(whole);
        // Opening removes what the signed tree has not got.
        if is_done || !is_left() {
            break;
        }
        if world.machine.read(STATE) == state {
            continue;
        }
        world.machine.remove_file(&format!("other/{BUNDLE}"));
        world.put_back("backup", &files);
        world.configure(&["/backup", "/other"]).unwrap();
        world.machine.overwrite(&format!("backup/{BUNDLE}"), &damaged);
        assert_eq!(world.take_up().map(drop).unwrap_err().kind(), ErrorKind::Tampered, "{stop}");
        assert!(is_left(), "{stop}");
        world.machine.overwrite(&format!("backup/{BUNDLE}"), whole);
        world.take_up().map(drop).unwrap_or_else(|error| panic!("{stop}: {error}"));
        assert!(is_left(), "{stop}");
        world.check(266);
        stayed += 1;
    }
    assert!(stayed > 0);
}
