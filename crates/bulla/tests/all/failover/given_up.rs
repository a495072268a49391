//! A log that is gone on with although frames were lost with a path, and nothing tells how far it had come.

use super::world::World;
use bulla::ErrorKind;
use bulla::event::Event;
use bulla_testkit::fault::Fault;
use tempfile::TempDir;

/// A log whose frames behind the fourth entry are lost, and the seal state with them; and its vault from before these frames.
fn without_seal_state() -> (World, TempDir) {
    let world = World::with_erasure(&["/backup"], true);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    log.close().unwrap();
    let older = world.vault_copy();
    let log = world.open_stepped().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    log.close().unwrap();
    world.machine.heal();
    world.destroy("backup");
    world.configure(&[]).unwrap();
    assert!(world.machine.remove_file("audit.keys/seal.state"));
    (world, older)
}

#[test]
fn nothing_is_read_under_a_vault_that_may_not_have_followed_what_is_given_up() {
    let (mut world, older) = without_seal_state();
    world.put_vault_back(older);
    let restored = world.give_up().unwrap();
    assert!(restored.outlook.makes_seal_state && restored.outlook.lost_frames == 0, "{restored:?}");
    for _ in 0..2 {
        let error = world.read_with_keys().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        assert!(error.to_string().contains("nothing is read under them"), "{error}");
        let log = world.open();
        world.append(&log, 10..12);
        log.close().unwrap();
    }
    assert_eq!(world.truncated(), [Event::Truncated { known: 0 }]);
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
