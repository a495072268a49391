//! A path that is lost for good, and a copy of a mirror in its place: nothing is missing any more, whatever the log did meanwhile, and it is
//! written on, on whichever path, as if the disk had never failed.

use super::world::World;
use bulla::ErrorKind;
use bulla::mirror::Mirror;
use bulla_testkit::Memory;
use bulla_testkit::fault::Fault;
use std::collections::BTreeMap;
use std::sync::Arc;

/// When the copy is put in the place of the lost path.
#[derive(Clone, Copy, Debug)]
enum Put {
    /// Before the log goes on.
    Before,
    /// Once it has gone on, in the segment of which the mirror has the beginning.
    After,
}

/// Has the mirror take up all that is signed.
fn mirrored(world: &World) -> BTreeMap<String, Vec<u8>> {
    let mut mirror = Mirror::open_stores(world.log(), Arc::new(world.machine.store("copy")), None).unwrap();
    mirror.poll(|_| {}).unwrap();
    drop(mirror);
    world.files_below("copy")
}

/// A log that has left `audit`, and is written on `backup`: 20 entries on each, each in a frame of its own.
fn moved() -> World {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append_each(&log, 0..20);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 20..40);
    log.close().unwrap();
    world.machine.heal();
    world
}

/// The names of the segments that two paths have.
fn twice(world: &World, paths: [&str; 2]) -> Vec<String> {
    let [one, other] = paths.map(|path| world.files_below(path));
    one.into_keys().filter(|name| name.ends_with(".seg") && other.contains_key(name)).collect()
}

/// Appends, and has the path in use fail, so that the log goes on in the other one, and the same back again: nothing is missing, ever.
fn goes_on(world: &World, first: u64, paths: [&str; 2], what: &str) {
    let mut count = first;
    let mut append = |failing: Option<&str>| {
        let log = world.open();
        world.append_each(&log, count..count + 3);
        if let Some(path) = failing {
            log.flush().unwrap();
            let switches = log.telemetry().failovers.count;
            world.machine.fail_below(path, Fault::SyncFails);
            world.append_each(&log, count + 3..count + 6);
            assert!(log.telemetry().failovers.count > switches, "{what}: {path} is not in use");
            count += 3;
        }
        log.close().unwrap();
        world.machine.heal();
        count += 3;
        world.check(count);
    };
    append(None);
    append(Some(paths[0]));
    append(None);
    append(Some(paths[1]));
    append(None);
}

#[test]
fn the_first_path_is_made_up_for_by_a_mirror_and_the_log_goes_on_on_either() {
    for put in [Put::Before, Put::After] {
        let world = moved();
        let copy = mirrored(&world);
        world.destroy("audit");
        if matches!(put, Put::After) {
            let log = world.open();
            world.append_each(&log, 40..44);
            log.close().unwrap();
        }
        world.put_back("audit", &copy);
        assert!(!twice(&world, ["audit", "backup"]).is_empty(), "{put:?}");
        let written = if matches!(put, Put::After) { 44 } else { 40 };
        world.check(written);
        goes_on(&world, written, ["backup", "audit"], &format!("{put:?}"));
    }
}

#[test]
fn a_backup_path_is_made_up_for_by_a_mirror_with_its_own_file_or_as_a_new_one() {
    for (put, anew) in [(Put::Before, false), (Put::After, false), (Put::Before, true), (Put::After, true)] {
        let what = format!("{put:?}, a new path: {anew}");
        let world = moved();
        // Back in the first one, so that the backup path holds frames that no other has, and is not in use.
        let log = world.open();
        world.machine.fail_below("backup", Fault::NoSpace);
        world.append_each(&log, 40..50);
        log.close().unwrap();
        world.machine.heal();
        let mut copy = mirrored(&world);
        let own_file = world.machine.read("backup/path").unwrap();
        world.destroy("backup");
        if matches!(put, Put::After) {
            let log = world.open();
            world.append_each(&log, 50..54);
            log.close().unwrap();
        }
        let path = if anew { "new" } else { "backup" };
        if anew {
            // The lost one is left out, and a new one made, whose file stays.
            world.configure(&[]).unwrap();
            world.configure(&["/new"]).unwrap();
            copy.insert("path".to_owned(), world.machine.read("new/path").unwrap());
        } else {
            copy.insert("path".to_owned(), own_file);
        }
        world.put_back(path, &copy);
        assert!(!twice(&world, ["audit", path]).is_empty(), "{what}");
        let written = if matches!(put, Put::After) { 54 } else { 50 };
        world.check(written);
        goes_on(&world, written, ["audit", path], &what);
    }
}

/// Whoever lost the key directory's list of paths goes by what they say of themselves: the first of those that have come as far takes what is
/// written, also where it has the beginning of the newest segment alone.
#[test]
fn a_path_that_has_the_beginning_alone_is_never_written_behind_it() {
    for (unsigned, cut) in [(false, 1), (false, 1000), (true, 0), (true, 1), (true, 1000)] {
        let what = format!("unsigned: {unsigned}, without {cut} bytes");
        let mut world = moved();
        if unsigned {
            let log = world.open_stepped().unwrap();
            world.append_stepped(&log, 40..41);
            world.commit_stepped(&log, 41).unwrap();
            world = world.killed();
        }
        let copy = mirrored(&world);
        world.destroy("audit");
        world.put_back("audit", &copy);
        for name in twice(&world, ["audit", "backup"]) {
            let content = world.machine.read(&format!("audit/{name}")).unwrap();
            world.machine.overwrite(&format!("audit/{name}"), &content[..content.len() - cut]);
        }
        world.machine.remove_file("audit.keys/paths");
        let before = twice(&world, ["audit", "backup"]);
        let before = before
            .into_iter()
            .map(|name| (world.machine.read(&format!("audit/{name}")), name))
            .collect::<Vec<_>>();
        let log = world.open();
        let written = if unsigned { 42 } else { 40 };
        world.append_each(&log, written..written + 4);
        log.close().unwrap();
        for (content, name) in before {
            assert!(world.machine.read(&format!("audit/{name}")) == content, "{what}: {name} is written on");
        }
        world.check(written + 4);
        goes_on(&world, written + 4, ["audit", "backup"], &what);
    }
}

/// Also where the segment that was written before has bytes behind its last frame, which were abandoned.
#[test]
fn a_copy_that_is_begun_without_a_path_that_was_left_names_it() {
    for fault in [Fault::NoSpace, Fault::SyncFails] {
        let world = World::new(&["/backup", "/third"]);
        let log = world.open_stepped().unwrap();
        for (failing, first) in [("none", 0), ("audit", 4), ("backup", 8)] {
            world.machine.fail_below(failing, fault);
            world.append_stepped(&log, first..first + 4);
        }
        log.close().unwrap();
        world.machine.heal();
        world.destroy("backup");
        let copied = Mirror::open_stores(world.log(), Arc::new(Memory::new()), None).unwrap().poll(|_| {});
        let error = copied.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{fault:?}: {error}");
        let missing = "backup, a path of the log that was left, is missing";
        assert!(error.to_string().contains(missing), "{fault:?}: {error}");
    }
}
