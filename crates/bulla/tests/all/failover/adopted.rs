//! What opening a log adopts, wherever it is cut short: how much of it is left, and what becomes of that where paths fail, are lost and are found.

use super::world::World;
use crate::helpers::one_in;
use bulla_testkit::fault::Fault;

/// The segments of a path, with what is in them.
fn segments(world: &World, path: &str) -> Vec<(String, Vec<u8>)> {
    world.files_below(path).into_iter().filter(|(name, _)| name.contains(".seg")).collect()
}

/// A log of which nothing is signed: 9 entries from the first on, in a frame each, on its own directory.
fn unsigned(paths: &[&str]) -> World {
    let world = World::new(paths);
    let log = world.open_stepped().unwrap();
    (0..9).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.killed()
}

/// Writes to a log that was opened, and closes it.
fn go_on(world: &World, number: u64) {
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, number..number + 1);
    log.close().unwrap();
}

#[test]
fn a_recovery_that_is_cut_short_again_and_again_leaves_one_copy_of_what_it_adopts() {
    let length = |world: &World| -> usize {
        let files = ["audit", "backup"].into_iter().flat_map(|path| world.files_below(path));
        files.filter(|(name, _)| name.contains(".seg")).map(|(_, bytes)| bytes.len()).sum()
    };
    for (paths, first_signed) in [(&[][..], false), (&[], true), (&["/backup"], false), (&["/backup"], true)]
    {
        let written = || {
            let world = World::new(paths);
            let log = world.open_stepped().unwrap();
            if first_signed {
                world.append_stepped(&log, 0..1);
            }
            (1..40).for_each(|number| world.commit_stepped(&log, number).unwrap());
            let after = world.killed();
            drop(log);
            after
        };
        let world = written();
        let first = world.machine.operations();
        world.open_stepped().unwrap();
        let last = world.machine.operations();
        for point in one_in(3, first..last) {
            let mut world = written();
            let before = length(&world);
            for round in 0..6 {
                world.machine.stop_at(world.machine.operations() + point - first);
                // Whatever comes of it: opening may have been done by then, since there are fewer operations once there is a copy.
                let opened = world.open_stepped().map(drop);
                let after = if round % 2 == 0 { world.killed() } else { world.after_power_cut(point) };
                drop(opened);
                world = after;
                let now = length(&world);
                let what = format!("{paths:?}, at {point} of {first}..{last}, cut {round}");
                assert!(now < 5 * before / 2, "{what}: {before} bytes have become {now}");
            }
            let log = world.open_stepped().unwrap();
            world.append_stepped(&log, 100..101);
            log.close().unwrap();
            world.check_contains((u64::from(!first_signed)..40).chain(100..101));
        }
    }
}

/// The backup path took what is adopted, and more or less of what comes then, and is lost; the log goes on without it, and it is found.
#[test]
fn what_an_opening_left_on_a_path_that_is_lost_and_found_is_no_hindrance() {
    for fault in [Fault::SyncFails, Fault::NoSpace, Fault::NameFails] {
        let open = |world: &World| {
            world.machine.fail_below("audit", fault);
            world.open_stepped().map(drop)
        };
        let world = unsigned(&["/backup"]);
        let first = world.machine.operations();
        open(&world).unwrap();
        let mut without = 0;
        for point in one_in(4, first..world.machine.operations()) {
            let world = unsigned(&["/backup"]);
            world.machine.stop_at(point);
            let _ = open(&world);
            let world = world.killed();
            let found = world.files_below("backup");
            world.destroy("backup");
            world.configure(&[]).unwrap();
            let Ok(log) = world.open_stepped() else {
                // It is not gone on without what was signed there.
                continue;
            };
            world.append_stepped(&log, 100..101);
            log.close().unwrap();
            world.check_contains((0..9).chain(100..101));
            without += 1;
            world.put_back("backup", &found);
            world.configure(&["/backup"]).unwrap();
            let report = world.verify();
            assert!(report.ok, "{fault:?} at {point}: {:#?}", report.findings);
            go_on(&world, 101);
            world.check_contains((0..9).chain(100..102));
        }
        assert!(without > 10, "{fault:?}: {without}");
    }
}

/// The backup path took what is adopted, and failed; the other one has the event that what was copied counts for nothing; the copy is lost.
#[test]
fn of_what_an_event_says_that_it_counts_for_nothing_a_copy_has_another_name() {
    let paths = ["/backup", "/other"];
    let open = |world: &World| {
        world.machine.fail_below("audit", Fault::SyncFails);
        world.open_stepped().map(drop)
    };
    let world = unsigned(&paths);
    let first = world.machine.operations();
    open(&world).unwrap();
    let mut told = 0;
    for failing in first + 30..world.machine.operations() {
        for point in one_in(7, failing + 1..failing + 60) {
            let world = unsigned(&paths);
            world.machine.fail_at(failing, Fault::SyncFails);
            world.machine.stop_at(point);
            let _ = open(&world);
            let world = world.killed();
            if segments(&world, "backup").is_empty() || segments(&world, "other").is_empty() {
                continue;
            }
            world.destroy("backup");
            world.configure(&["/other"]).unwrap();
            go_on(&world, 100);
            let report = world.verify();
            assert!(report.ok, "{failing}, {point}: {:#?}", report.findings);
            world.check_contains((0..9).chain(100..101));
            told += 1;
        }
    }
    assert!(told > 10, "{told}");
}

/// The segment was read on the backup path, and the path in use has its beginning.
#[test]
fn the_beginning_of_what_is_adopted_stays_as_it_is_where_another_path_has_more() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    (4..9).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    let (name, content) = segments(&world, "backup").pop().unwrap();
    let beginning = &content[..content.len() / 2];
    world.machine.overwrite(&format!("audit/{name}"), beginning);
    go_on(&world, 100);
    assert_eq!(world.machine.read(&format!("audit/{name}")).as_deref(), Some(beginning));
    world.check_contains((0..9).chain(100..101));
}
