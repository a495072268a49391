//! What lies beside the checkpoint, and who reads a log beside its writer: they go where the log goes.

use super::world::World;
use bulla::mirror::Mirror;
use bulla::{FindingKind, Verify};
use bulla_proof::SignedNote;
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::cose::CoseCheckpoint;
use bulla_testkit::fault::Fault;
use std::sync::Arc;

/// How many frames the checkpoint on a path covers, and how many the same head as COSE.
fn signed(world: &World, path: &str) -> (u64, u64) {
    let read = |name: &str| world.machine.read(&format!("{path}/{name}")).unwrap();
    let note = read("checkpoint");
    let note = SignedNote::parse(&note).unwrap();
    let cose = CoseCheckpoint::parse(&read("checkpoint.cose")).unwrap();
    (Checkpoint::parse(note.text).unwrap().size, cose.size())
}

#[test]
fn the_head_as_cose_lies_where_the_checkpoint_does() {
    for fault in Fault::ALL {
        let world = World::new(&["/backup"]);
        let log = world.open();
        world.append(&log, 0..20);
        log.flush().unwrap();
        world.machine.fail_below("audit", fault);
        world.append(&log, 20..40);
        log.close().unwrap();
        world.machine.heal();
        let (size, cose) = signed(&world, "backup");
        assert_eq!(size, cose, "{fault:?}");
        assert!(size > signed(&world, "audit").0, "{fault:?}");
        world.check(40);
    }
}

#[test]
fn a_path_that_takes_the_checkpoint_and_not_its_head_as_cose_is_replaced() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append(&log, 0..10);
    log.flush().unwrap();
    world.append(&log, 10..20);
    world.machine.fail_below("audit/checkpoint.cose", Fault::WriteFails);
    world.machine.fail_below("audit/checkpoint.cose.tmp", Fault::WriteFails);
    log.flush().unwrap();
    log.close().unwrap();
    world.machine.heal();
    let (size, cose) = signed(&world, "backup");
    assert_eq!(size, cose);
    world.check(20);
    assert_eq!(world.replaced().len(), 1);
}

#[test]
fn a_mirror_goes_on_where_the_log_does() {
    let world = World::new(&["/backup"]);
    let log = world.open();
    let copy = Arc::new(world.machine.store("copy"));
    let mut mirror = Mirror::open_stores(world.log(), copy.clone(), None).unwrap();
    // So many frames that tiles are full before and after.
    world.append_each(&log, 0..300);
    log.flush().unwrap();
    let before = mirror.poll(|_| {}).unwrap();
    assert!(before.entries <= 300);
    world.machine.fail_below("audit", Fault::SyncFails);
    world.append_each(&log, 300..600);
    log.close().unwrap();
    assert_eq!(mirror.poll(|_| {}).unwrap().entries, 600);
    let report = Verify::open_store(copy).unwrap().run().unwrap();
    assert!(report.ok, "{:#?}", report.findings);
    assert!(!report.findings.iter().any(|finding| finding.kind == FindingKind::UnknownFile));
    assert!(world.machine.read("copy/path").is_none(), "a copy is one directory");
}
