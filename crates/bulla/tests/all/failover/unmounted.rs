//! What is missing while a path that was left is not mounted is missing: it is no lost path, which alone explains that frames are gone.

use super::world::World;
use bulla::{Entry, ErrorKind, FindingKind, Step, Verify};
use bulla_testkit::fault::Fault;
use std::sync::{Arc, Mutex};

const STATE: &str = "audit.keys/seal.state";

/// Has the log go from one path to the next, and closes it: what it writes on each is signed.
fn through(world: &World, path: &str, numbers: std::ops::Range<u64>) {
    let log = world.open_stepped().unwrap();
    world.machine.fail_below(path, Fault::NoSpace);
    world.append_stepped(&log, numbers);
    log.close().unwrap();
    world.machine.heal();
}

/// A log with a vault that went from its own directory to the others and back; and its vault, as it was before.
fn around() -> World {
    let mut world = World::with_erasure(&["/backup", "/third"], true);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    log.close().unwrap();
    let older = world.vault_copy();
    through(&world, "audit", 4..8);
    through(&world, "backup", 8..12);
    through(&world, "third", 12..16);
    world.put_vault_back(older);
    world
}

/// That the log is refused for what it lacks.
fn is_refused(world: &World) -> String {
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    error.to_string()
}

fn last_segment(world: &World, path: &str) -> String {
    let mut names = world.files_below(path).into_keys().filter(|name| name.ends_with(".seg"));
    format!("{path}/{}", names.next_back().unwrap())
}

#[test]
fn an_older_vault_passes_over_no_event_that_lies_on_a_path_that_is_not_mounted() {
    let world = around();
    world.killed().open().close().unwrap();
    let before = world.machine.files();
    let backup = world.files_below("backup");
    world.destroy("backup");
    let said = is_refused(&world);
    assert!(said.contains("Mount it; where it is lost for good, leave it out"), "{said}");
    world.put_back("backup", &backup);
    assert_eq!(world.machine.files(), before);
    world.open().close().unwrap();
    world.read_with_keys().unwrap();
}

/// It has followed all, and more than is signed: whether the log is opened, or a key directory taken up of which the seal state is older.
#[test]
fn a_vault_that_a_crash_left_ahead_of_a_log_that_has_lost_events_passed_over_none() {
    for takes_up in [false, true] {
        let world = World::with_erasure(&["/backup"], true);
        let log = world.open_stepped().unwrap();
        // A vault without anybody's key brings nobody back.
        log.producer().unwrap().append(&Entry::new("read", "4711").subject("ada")).unwrap();
        world.append_stepped(&log, 0..4);
        log.close().unwrap();
        through(&world, "audit", 4..8);
        through(&world, "backup", 8..12);
        world.destroy("backup");
        world.configure(&[]).unwrap();
        let older = world.machine.read(STATE).unwrap();
        let log = world.open_stepped().unwrap();
        world.commit_stepped(&log, 12).unwrap();
        world.machine.fail_below("audit.keys/seal.state.tmp", Fault::WriteFails);
        log.step(Step::Checkpoint).unwrap_err();
        let mut world = world.killed();
        let (followed, signed) = world.followed_and_signed();
        assert!(followed > signed, "{followed}, {signed}");
        let told = Arc::new(Mutex::new(Vec::new()));
        let all = told.clone();
        world.tell_of_paths(move |what| all.lock().unwrap().push(what.to_owned()));
        if takes_up {
            world.machine.overwrite(STATE, &older);
            assert!(world.take_up().unwrap().outlook.needed);
        } else {
            world.open().close().unwrap();
        }
        let told = told.lock().unwrap().clone();
        assert!(!told.iter().any(|what| what.contains("nothing is read under its keys")), "{told:?}");
        // What lay on that path is gone, and it is that for which the log is refused.
        let error = world.read_with_keys().unwrap_err().to_string();
        assert!(error.contains("frames-missing"), "{error}");
    }
}

/// Neither while another path is missing, nor where one is lost.
#[test]
fn an_event_that_is_there_and_damaged_is_not_lost() {
    let damaged = || {
        let world = around();
        let event = b"path-replaced";
        let position = |bytes: &[u8]| bytes.windows(event.len()).position(|bytes| bytes == event);
        let files = world.files_below("backup").into_iter();
        let mut segments = files.filter(|(name, _)| name.ends_with(".seg"));
        let (name, mut bytes) = segments.find(|(_, bytes)| position(bytes).is_some()).unwrap();
        let at = position(&bytes).unwrap();
        bytes[at] ^= 1;
        world.machine.overwrite(&format!("backup/{name}"), &bytes);
        world
    };
    is_refused(&damaged());
    let world = damaged();
    world.destroy("third");
    is_refused(&world);
    world.configure(&["/backup"]).unwrap();
    is_refused(&world);
}

#[test]
fn signed_frames_that_are_gone_did_not_lie_on_a_path_that_was_left_and_is_not_mounted() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    log.close().unwrap();
    through(&world, "audit", 4..8);
    through(&world, "backup", 8..12);
    // Without that nothing is needed of it.
    let well = world.killed();
    well.destroy("backup");
    well.open().close().unwrap();

    assert!(world.machine.remove_file(&last_segment(&world, "audit")));
    is_refused(&world);
    world.destroy("backup");
    is_refused(&world);
}

#[test]
fn neither_did_unsigned_ones() {
    let world = World::new(&["/backup", "/third"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    world.commit_stepped(&log, 8).unwrap();
    world.machine.fail_below("backup", Fault::SyncFails);
    (9..12).for_each(|number| world.commit_stepped(&log, number).unwrap());
    let world = world.killed();
    let well = world.killed();
    well.destroy("audit");
    well.open().close().unwrap();

    assert!(world.machine.remove_file(&last_segment(&world, "backup")));
    is_refused(&world);
    world.destroy("audit");
    is_refused(&world);
}

/// A file `path` in the log's directory is the storage's word alone.
#[test]
fn a_log_is_opened_by_no_name_of_a_backup_path_where_the_key_directory_knows_none() {
    let world = World::new(&[]);
    for first in [0, 4, 8] {
        let log = world.open();
        world.append(&log, first..first + 4);
        log.close().unwrap();
    }
    assert!(world.machine.remove_file(&last_segment(&world, "audit")));
    is_refused(&world);
    world.machine.overwrite("audit/path", b"x");
    is_refused(&world);
}

/// Its notes are of a time before that path was used again.
#[test]
fn a_key_directory_that_is_older_than_the_log_knows_of_no_path_that_was_left() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    log.close().unwrap();
    through(&world, "audit", 4..8);
    through(&world, "backup", 8..12);
    let older = world.files_below("audit.keys");
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 12..16);
    log.close().unwrap();
    through(&world, "audit", 16..20);
    world.put_back("audit.keys", &older);
    world.killed().open().close().unwrap();
    world.destroy("backup");
    let error = world.try_open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("backup is a path of the log, and is missing"), "{error}");
    assert_eq!(world.exported().unwrap_err().kind(), ErrorKind::Unavailable);
}

/// It may allow what the last one does not.
#[test]
fn an_older_epoch_does_not_stand_for_the_last_one_where_that_is_lost() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_stepped(&log, 8..12);
    world.machine.heal();
    // The other one is given a checkpoint, and no frames.
    world.commit_stepped(&log, 12).unwrap();
    world.machine.fail_below("audit", Fault::WriteFails);
    log.step(Step::Checkpoint).unwrap();
    let world = world.killed().named("backup");
    world.destroy("audit");
    world.configure(&[]).unwrap();
    let error = world.events().unwrap_err();
    assert!(error.to_string().contains("nobody can tell whether [log] is what it was"), "{error}");
}

/// A path that takes over has none of what lies on the one before until it is given it: that is no damage of the log.
#[test]
fn a_checkpoint_that_lies_on_a_path_which_is_missing_is_not_told_as_damage_alone() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    log.close().unwrap();
    let config = world.machine.read("audit/bulla.toml").unwrap();
    world.destroy("audit");
    world.machine.overwrite("backup/bulla.toml", &config);
    let error = world.events().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("audit is a path of the log, and is missing"), "{error}");
    let report = Verify::open_store(world.log()).unwrap().run().unwrap();
    let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
    for kind in [FindingKind::CheckpointDamaged, FindingKind::PathMissing] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}
