//! A `bulla.toml.next`, as a mirror leaves one, on a path of a log.

use super::world::World;
use bulla::ErrorKind;
use bulla::store::replace;
use bulla_testkit::fault::Fault;

/// A log that has left its own directory for `backup`, and has never used `other`.
fn world() -> World {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open();
    world.append(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 4..8);
    log.close().unwrap();
    world.machine.heal();
    world
}

/// The configuration of the path in use with something else in it, and as it is named for the checkpoint there.
fn others(world: &World) -> Vec<Vec<u8>> {
    let frames = bulla::info_of(world.log()).unwrap().tree_size;
    let text = String::from_utf8(world.machine.read("backup/bulla.toml").unwrap()).unwrap();
    let settings = if text.contains("[settings]") { "" } else { "\n[settings]\n" };
    let texts =
        [text.replacen("[log]", "[log]\nx-other = \"1\"", 1), format!("{text}{settings}writers = 2\n")];
    let named = texts.map(|text| format!("bulla-next-v1 {frames}\n{text}").into_bytes());
    named.into_iter().chain([b"no such file\n".to_vec()]).collect()
}

#[test]
fn it_counts_on_no_path_but_the_one_in_use() {
    for path in ["audit", "other"] {
        for (which, next) in others(&world()).into_iter().enumerate() {
            let world = world();
            let config = world.machine.read("backup/bulla.toml");
            replace(&world.machine.store(path), "bulla.toml.next", &next).unwrap();
            world.check(8);
            world.exported().unwrap_or_else(|error| panic!("{which} in {path}: {error}"));
            let log = world.try_open().unwrap_or_else(|error| panic!("{which} in {path}: {error}"));
            world.append(&log, 8..12);
            log.close().unwrap();
            assert_eq!(world.machine.read("backup/bulla.toml"), config, "{which} in {path}");
            world.check(12);
        }
    }
}

/// There it counts, and is named.
#[test]
fn on_the_path_in_use_it_is_what_is_edited() {
    let world = world();
    replace(&world.machine.store("backup"), "bulla.toml.next", &others(&world)[0]).unwrap();
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("backup/bulla.toml.next, which counts in the place of"), "{error}");
}

/// Else it would count once the checkpoint there has its size.
#[test]
fn a_path_that_takes_over_has_none() {
    let world = world();
    let config = world.machine.read("backup/bulla.toml");
    let log = world.open();
    let frames = bulla::info_of(world.log()).unwrap().tree_size;
    let next = others(&world).swap_remove(1);
    let text = &next[next.iter().position(|byte| *byte == b'\n').unwrap()..];
    let next = [format!("bulla-next-v1 {}", frames + 4).as_bytes(), text].concat();
    replace(&world.machine.store("other"), "bulla.toml.next", &next).unwrap();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append(&log, 8..12);
    log.close().unwrap();
    world.machine.heal();
    assert_eq!(world.machine.read("other/bulla.toml.next"), None);
    assert_eq!(world.machine.read("other/bulla.toml"), config);
    world.check(12);
}
