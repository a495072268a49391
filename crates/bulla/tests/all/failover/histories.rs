//! A part of the log that was given up by `restore --older-log`, and is found after all: it is another history, of which nobody is answered as if
//! it were the log, and which is not made a path of it again.

use super::world::World;
use bulla::{ErrorKind, FindingKind, Severity};
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

const STATE: &str = "audit.keys/seal.state";
/// What the key directory knows of paths.
const NAMES: [&str; 2] = ["audit.keys/settings.toml", "audit.keys/paths"];

/// Appends each of these in a frame of its own.
fn grow(world: &World, numbers: std::ops::Range<u64>) {
    let log = world.open();
    world.append_each(&log, numbers);
    log.close().unwrap();
}

/// A log that has given up what lay on its backup path, `lost` frames and a few more, and was gone on with by `more` frames; also what lay there, what lay in
/// the log's own directory then, and what the key directory knew of both.
fn given_up(lost: u64, more: u64) -> (World, Files, Files, Vec<Vec<u8>>) {
    let world = World::handed_on(&["/backup"]);
    grow(&world, 8..8 + lost);
    let found = world.files_below("backup");
    let names = NAMES.map(|name| world.machine.read(name).unwrap()).to_vec();
    world.destroy("backup");
    world.configure(&[]).unwrap();
    assert!(world.machine.remove_file(STATE));
    world.give_up().unwrap();
    let older = world.files_below("audit");
    grow(&world, 100..100 + more);
    (world, found, older, names)
}

fn name_again(world: &World, names: &[Vec<u8>]) {
    NAMES.iter().zip(names).for_each(|(name, text)| world.machine.overwrite(name, text));
}

fn violations(world: &World) -> Vec<(FindingKind, String)> {
    let findings = world.verify().findings.into_iter();
    let violations = findings.filter(|finding| finding.severity == Severity::Violation);
    violations.map(|finding| (finding.kind, finding.detail)).collect()
}

/// Where it covers more frames than the log, it would be the path on which the log has come furthest; where it covers fewer, its segments would be those of
/// frames that lie elsewhere.
#[test]
fn the_log_is_read_and_not_the_part_that_was_given_up() {
    [(20, 4), (1, 20)].into_iter().for_each(is_read);
}

fn is_read((lost, more): (u64, u64)) {
    let (world, found, _, names) = given_up(lost, more);
    let numbers = world.numbers();
    assert_eq!(numbers, (0..4).chain(100..100 + more).collect());
    world.put_back("backup", &found);
    name_again(&world, &names);
    assert_eq!(world.numbers(), numbers);
    world.events().unwrap();
    // Who has all of it verified is told what lies there.
    let error = world.exported().unwrap_err();
    assert!(error.to_string().contains("path-mismatch: backup, a path of the log"), "{error}");
    let found = violations(&world);
    assert!(
        matches!(&found[..], [(FindingKind::PathMismatch, detail)] if detail.contains("backup, a path")),
        "{found:?}"
    );
    // What is written next is not mixed with it, and it is the path that is to go.
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    for told in
        ["backup, a path of the log, contradicts", "holds another history", "keep that directory aside"]
    {
        assert!(error.to_string().contains(told), "{error}");
    }
    let error = world.configure(&[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    for told in ["/backup holds another history", "Copy nothing of it into another path", "leave it out then"]
    {
        assert!(error.to_string().contains(told), "{error}");
    }
    world.destroy("backup");
    world.configure(&[]).unwrap();
    grow(&world, 200..202);
    assert_eq!(world.numbers(), (0..4).chain(100..100 + more).chain(200..202).collect());
}

/// The log's own directory is an older copy, so that nothing at hand goes with the seal state.
#[test]
fn nobody_is_answered_where_no_path_is_the_log() {
    let (world, found, older, names) = given_up(20, 4);
    world.put_back("audit", &older);
    world.put_back("backup", &found);
    name_again(&world, &names);
    for read in [world.exported(), world.events()] {
        let error = read.expect_err("another history was read");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("backup holds another history of the log"), "{error}");
    }
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    assert!(error.to_string().contains("backup holds another history of the log"), "{error}");
    assert!(!violations(&world).is_empty());
}

#[test]
fn a_part_that_was_given_up_is_not_named_again() {
    for (lost, more) in [(20, 4), (1, 20)] {
        let (world, found, _, _) = given_up(lost, more);
        let known = || NAMES.map(|name| world.machine.read(name));
        let before = known();
        world.put_back("backup", &found);
        let error = world.configure(&["/backup"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        for told in ["/backup holds another history", "do not name it", "Nothing was changed"] {
            assert!(error.to_string().contains(told), "{lost}: {error}");
        }
        // By its own name neither, for one reason or another.
        let world = world.named("backup");
        let error = world.configure(&[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(lost < more || error.to_string().contains("backup holds another history"), "{lost}: {error}");
        let world = world.named("audit");
        assert_eq!(NAMES.map(|name| world.machine.read(name)), before);
        let there = world.files_below("backup");
        assert!(
            found
                .iter()
                .filter(|(name, _)| !name.ends_with("lock"))
                .all(|(name, file)| there.get(name) == Some(file))
        );
        grow(&world, 200..202);
        world.configure(&["/other"]).unwrap();
    }
}

/// The log's own directory, as it was before its end was given up, made a path by its file.
fn without_end(lost: u64, more: u64) -> (World, Files) {
    let world = World::new(&[]);
    grow(&world, 0..4);
    let older = world.files_below("audit");
    grow(&world, 4..4 + lost);
    let mut found = world.files_below("audit");
    world.put_back("audit", &older);
    assert!(world.machine.remove_file(STATE));
    world.give_up().unwrap();
    grow(&world, 100..100 + more);
    world.configure(&["/backup"]).unwrap();
    found.insert("path".to_owned(), world.machine.read("backup/path").unwrap());
    world.configure(&[]).unwrap();
    (world, found)
}

/// Whatever of its tree is taken away, it is not named again: without one file the others tell what it is, and where none is left it is refused since
/// nothing tells.
#[test]
fn a_part_that_was_given_up_is_not_named_again_without_files_of_its_tree() {
    for (lost, more) in [(20, 4), (1, 20), (300, 4)] {
        let (world, found) = match lost {
            300 => without_end(lost, more),
            _ => {
                let (world, found, _, _) = given_up(lost, more);
                (world, found)
            }
        };
        let tree = found.keys().filter(|name| name.starts_with("tile/")).cloned().collect::<Vec<_>>();
        let refused = |files: &Files| {
            world.put_back("backup", files);
            let error = world.configure(&["/backup"]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains("keep that directory aside"), "{error}");
            error.to_string()
        };
        assert!(tree.len() > 3, "{tree:?}");
        for name in &tree {
            let mut files = found.clone();
            files.remove(name);
            let told = refused(&files);
            assert!(told.contains("/backup holds another history of the log than"), "{lost}, {name}: {told}");
        }
        let mut files = found.clone();
        files.retain(|name, _| !name.starts_with("tile/"));
        let told = refused(&files);
        let is_told =
            if lost > more { "nothing that is there tells whether /backup" } else { "holds another history" };
        assert!(told.contains(is_told), "{lost}: {told}");
        world.destroy("backup");
        world.configure(&["/backup"]).unwrap();
    }
}

/// It is the log's own key that tells what its checkpoint says, whichever configuration lies beside that; and without a checkpoint of that key nobody is
/// answered once it is a path, so it is not made one.
#[test]
fn a_part_that_was_given_up_is_not_named_again_without_its_configuration_or_checkpoint() {
    let other = World::handed_on(&["/backup"]).files_below("backup");
    for (lost, more) in [(20, 4), (1, 20)] {
        let (world, found, _, _) = given_up(lost, more);
        for (name, told) in [
            ("bulla.toml", "/backup holds another history of the log than"),
            ("checkpoint", "nothing that is there tells whether /backup holds another history"),
        ] {
            for with in [None, Some(other[name].clone()), Some(b"none".to_vec())] {
                let mut files = found.clone();
                files.remove(name).unwrap();
                files.extend(with.clone().map(|with| (name.to_owned(), with)));
                world.put_back("backup", &files);
                let error = world.configure(&["/backup"]).expect_err(name);
                assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
                for told in [told, "keep that directory aside"] {
                    assert!(error.to_string().contains(told), "{lost}, {name}, {with:?}: {error}");
                }
            }
        }
        // The log is as it was.
        world.destroy("backup");
        grow(&world, 200..202);
        world.configure(&["/backup"]).unwrap();
    }
}

/// Neither a path that lags behind nor one on which nothing was written is refused for want of a tree of its own.
#[test]
fn a_path_that_lags_behind_is_named_again_without_its_tree() {
    let world = World::handed_on(&["/one", "/two"]);
    let lagging = world.files_below("one");
    let mut without_tree = lagging.clone();
    without_tree.retain(|name, _| !name.starts_with("tile/"));
    assert!(without_tree.contains_key("checkpoint") && without_tree.len() < lagging.len());
    for files in [lagging, without_tree] {
        world.destroy("one");
        world.configure(&["/two"]).unwrap();
        grow(&world, 20..24);
        world.put_back("one", &files);
        world.configure(&["/one", "/two", "/new"]).unwrap();
    }
}

/// Without the seal state it is the paths that the key directory knows which tell.
#[test]
fn a_part_that_was_given_up_is_not_named_again_where_the_seal_state_is_gone() {
    for (lost, more) in [(20, 4), (1, 20)] {
        let (world, found, _, _) = given_up(lost, more);
        assert!(world.machine.remove_file(STATE));
        world.put_back("backup", &found);
        let error = world.configure(&["/backup"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(
            error.to_string().contains("/backup holds another history of the log than its other paths"),
            "{error}"
        );
    }
}

/// A log in one directory, into whose place the part that was given up comes.
#[test]
fn nobody_is_answered_from_a_directory_of_the_history_that_was_given_up() {
    for (lost, more) in [(20, 4), (4, 20)] {
        let world = World::new(&[]);
        grow(&world, 0..4);
        let older = world.files_below("audit");
        grow(&world, 4..4 + lost);
        let newest = world.files_below("audit");
        world.put_back("audit", &older);
        assert!(world.machine.remove_file(STATE));
        world.give_up().unwrap();
        grow(&world, 100..100 + more);
        let log = world.files_below("audit");

        world.put_back("audit", &newest);
        for read in [world.exported(), world.events()] {
            let error = read.expect_err("another history was read");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{lost}: {error}");
            if lost > more {
                assert!(error.to_string().contains("audit holds another history of the log"), "{error}");
                assert!(error.to_string().contains("Two histories"), "{error}");
            }
        }
        assert!(!violations(&world).is_empty(), "{lost}");
        let error = world.try_open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        if lost > more {
            let untold = bulla::info_of(world.log()).unwrap().untold.unwrap();
            assert!(untold.contains("audit holds another history of the log"), "{untold}");
            assert!(error.to_string().contains("audit holds another history of the log"), "{error}");
            assert!(!error.to_string().contains("an older copy"), "{error}");
            let error = world.configure(&["/backup"]).unwrap_err();
            assert!(error.to_string().contains("audit holds another history of the log"), "{error}");
        }
        assert!((0..4 + lost).all(|number| world.salvaged().contains(&number)), "{lost}");

        world.put_back("audit", &log);
        world.check_contains((0..4).chain(100..100 + more));
        grow(&world, 200..202);
    }
}

/// A seal state of an earlier time of the same history is no other history, nor is one that is ahead of the checkpoint.
#[test]
fn a_seal_state_of_another_time_of_the_log_is_no_other_history() {
    for paths in [&[][..], &["/backup"]] {
        let world = World::with_erasure(paths, false);
        let log = world.open_stepped().unwrap();
        let mut states = Vec::new();
        for number in 0..300 {
            world.append_stepped(&log, number..number + 1);
            states.push(world.machine.read(STATE).unwrap());
            if number % 60 == 59 {
                // As whoever reads beside the writer may meet it.
                let newest = states.last().unwrap().clone();
                for state in states.iter().step_by(7) {
                    world.machine.overwrite(STATE, state);
                    world.exported().unwrap();
                }
                world.machine.overwrite(STATE, &newest);
            }
        }
        log.close().unwrap();
        world.check(300);
    }
}
