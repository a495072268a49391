//! Paths that come back: what lies there counts as far as it is a beginning of the log, and contradicts it otherwise.

use super::world::World;
use bulla::ErrorKind;
use bulla_testkit::fault::Fault;

#[test]
fn a_path_that_returns_as_it_was_is_a_path_again() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..20);
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::SyncFails);
    world.append(&log, 20..40);
    log.close().unwrap();
    world.machine.heal();
    let first = world.files_below("audit");
    world.destroy("audit");
    let log = world.open();
    world.append(&log, 40..60);
    log.close().unwrap();
    world.put_back("audit", &first);
    world.check(60);
    // It takes over where the other one fails.
    let log = world.open();
    world.append(&log, 60..80);
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append(&log, 80..100);
    log.close().unwrap();
    world.machine.heal();
    world.check(100);
    assert_eq!(world.replaced().len(), 2);
}

#[test]
fn one_that_comes_back_with_another_history_is_refused() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..20);
    log.close().unwrap();
    // Another history of the same log and keys, which goes on from here.
    let other = world.killed();
    let log = other.open();
    other.append(&log, 100..120);
    log.close().unwrap();
    let foreign = other.files_below("audit");

    let log = world.open();
    world.machine.fail_below("audit", Fault::SyncFails);
    world.append(&log, 20..40);
    world.append(&log, 40..60);
    world.append(&log, 60..80);
    log.close().unwrap();
    world.machine.heal();
    world.put_back("audit", &foreign);
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    assert!(error.to_string().contains("contradicts the others"), "{error}");
}

/// An empty mount point is none of the log's paths, and nothing is written there.
#[test]
fn a_path_that_is_not_mounted_takes_nothing() {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open();
    world.append(&log, 0..20);
    let mounted = world.files_below("backup");
    world.destroy("backup");
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 20..40);
    log.close().unwrap();
    assert!(world.files_below("backup").is_empty(), "{:?}", world.files_below("backup").keys());
    // Whoever reads asks for it, since it may hold more of the log.
    world.put_back("backup", &mounted);
    let replaced = world.replaced();
    assert_eq!(replaced.last().unwrap().1, world.id("other"), "{replaced:?}");
}

/// Somebody who holds the storage of one path cannot have another directory taken for it.
#[test]
fn a_directory_of_another_log_or_path_takes_nothing() {
    for change in [
        |text: String| text.replacen("v1\n", "v1\nff", 1),
        |text: String| {
            let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
            lines[2] = "ab".repeat(16);
            lines.join("\n") + "\n"
        },
    ] {
        let world = World::new(&["/backup"]);
        let log = world.open();
        world.append(&log, 0..20);
        let text = String::from_utf8(world.machine.read("backup/path").unwrap()).unwrap();
        world.machine.overwrite("backup/path", change(text).as_bytes());
        world.machine.fail_below("audit", Fault::NoSpace);
        world.try_append(&log, 20..40).unwrap_err();
        let _ = log.close();
        assert!(!world.files_below("backup").keys().any(|name| name.ends_with(".seg")));
    }
}
