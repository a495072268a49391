//! The tree on every path: what is lost with one of them is known to the frame, whichever way the log went.

use super::world::World;
use bulla_testkit::fault::Fault;
use std::collections::BTreeSet;

/// The full tiles and bundles that lie on a path.
fn full(world: &World, path: &str) -> BTreeSet<String> {
    let names = world.files_below(path).into_keys();
    let is_full =
        |name: &String| name.starts_with("tile/") && !name.contains(".p/") && !name.ends_with(".tmp");
    names.filter(is_full).collect()
}

/// That a log on this path and another one has the same full tiles on both, and so many frames.
fn same_on(world: &World, paths: [&str; 2], frames: usize) {
    let [one, other] = paths.map(|path| full(world, path));
    assert_eq!(one, other);
    assert!(one.len() >= 2 * (frames / 256), "{one:?}");
}

#[test]
fn a_path_that_takes_over_again_is_given_what_was_signed_meanwhile() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append_each(&log, 0..20);
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 20..300);
    log.flush().unwrap();
    world.append_each(&log, 300..600);
    log.flush().unwrap();
    assert!(full(&world, "audit").is_empty() && full(&world, "backup").len() >= 4);
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_each(&log, 600..610);
    log.flush().unwrap();
    same_on(&world, ["audit", "backup"], 600);
    log.close().unwrap();
    world.machine.heal();
    world.check(610);
}

#[test]
fn a_path_that_failed_and_works_again_is_given_what_it_lacks() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append_each(&log, 0..20);
    world.machine.fail_below("audit", Fault::WriteFails);
    world.append_each(&log, 20..600);
    log.flush().unwrap();
    assert!(full(&world, "audit").is_empty());
    world.machine.heal();
    // It is tried again, more and more seldom.
    world.append_each(&log, 600..1400);
    log.flush().unwrap();
    same_on(&world, ["audit", "backup"], 1024);
    log.close().unwrap();
    world.check(1400);
}

/// Wherever they are missing, on the path in use as on the others.
#[test]
fn opening_gives_each_path_the_tiles_that_it_lacks() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append_each(&log, 0..800);
    log.close().unwrap();
    same_on(&world, ["audit", "backup"], 768);
    let before = full(&world, "audit");
    for lacking in ["audit", "backup"] {
        for name in ["tile/0/000", "tile/entries/001", "tile/0/002"] {
            assert!(world.machine.remove_file(&format!("{lacking}/{name}")));
        }
        world.open().close().unwrap();
        assert!(full(&world, lacking).is_superset(&before), "{lacking}");
    }
    world.check(800);
}

/// What no path gives back is no reason for another one not to take the log.
#[test]
fn a_path_takes_over_though_tiles_are_gone_with_another_one() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append_each(&log, 0..20);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 20..600);
    log.flush().unwrap();
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    for name in full(&world, "backup") {
        world.machine.remove_file(&format!("backup/{name}"));
    }
    world.append_each(&log, 600..610);
    log.flush().unwrap();
    log.close().unwrap();
    assert_eq!(world.replaced().len(), 2);
}
