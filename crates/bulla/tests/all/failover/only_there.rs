//! Frames of the tree that lie, where they count, on a path alone that was lost and is found.

use super::world::World;
use bulla::event::Event;
use bulla::{Entry, Step};
use bulla_testkit::fault::Fault;

/// Appends, closes, and looks whether that is all sound.
fn goes_on_whole(world: &World, number: u64) {
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, number..number + 1);
    log.close().unwrap();
    let report = world.verify();
    assert!(report.ok, "{:#?}", report.findings);
}

/// A sync fails on the first path, and its bytes are there all the same; the second path takes the frame, and fails before a checkpoint lies there, so that
/// the first one takes over again. What a failed sync has left in memory may be gone later, so the frame counts on the second path alone.
#[test]
fn what_lies_behind_an_end_that_an_event_tells_of_is_no_copy() {
    let lives = [Fault::SyncFails, Fault::WritePersistsButFails].map(|fault| {
        let world = World::new(&["/backup"]);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.machine.fail_below("audit/segments", fault);
        world.commit_stepped(&log, 4).unwrap();
        world.machine.heal();
        world.machine.fail_below("backup", Fault::NoSpace);
        world.commit_stepped(&log, 5).unwrap();
        log.close().unwrap();
        world.killed()
    });
    for (life, lost) in lives.iter().flat_map(|life| [(life, "audit"), (life, "backup")]) {
        let world = life.killed();
        let files = world.files_below(lost);
        world.destroy(lost);
        let world = if lost == "audit" { world.named("backup") } else { world };
        world.configure(&[]).unwrap();
        world.put_back(lost, &files);
        let world = world.named("audit");
        world.configure(&["/backup"]).unwrap();
        goes_on_whole(&world, 6);
        let ends = world.told(|event| match event {
            Event::Abandoned { segment, offset, .. } => Some((segment, offset)),
            _ => None,
        });
        let of_audit = |(segment, _): &&(String, u64)| {
            world.files_below("audit").contains_key(&format!("segments/{segment}"))
        };
        let (segment, end) = ends.iter().find(of_audit).unwrap();
        let path = format!("audit/segments/{segment}");
        let whole = world.machine.read(&path).unwrap();
        let end = usize::try_from(*end).unwrap();
        assert!(whole.len() > end, "it has the frame, too");
        world.machine.overwrite(&path, &whole[..end]);
        world.check_contains(0..7);
    }
}

/// A frame is sealed, and committed to a path while another thread finds that no checkpoint is taken there: the segment has it behind one that is signed, and
/// the log goes on elsewhere with another one of its number. The one that is signed stays.
#[test]
fn a_segment_whose_first_frames_lie_nowhere_else_is_cut_behind_them() {
    let world = World::new(&["/backup"]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    (10..13).for_each(|number| world.commit_stepped(&log, number).unwrap());
    world.machine.heal();
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", "13").payload(&[7; 100])).unwrap();
    let _ = producer.flush().unwrap();
    while log.step(Step::Seal).unwrap() {}
    for name in ["audit/checkpoint", "audit/checkpoint.tmp"] {
        world.machine.fail_below(name, Fault::NoSpace);
    }
    log.step(Step::Checkpoint).unwrap();
    let killed = world.killed();
    log.step(Step::Commit).unwrap();
    let newest = |world: &World, path: &str| {
        world.files_below(path).into_iter().rfind(|(name, _)| name.ends_with(".seg")).unwrap()
    };
    let (_, on_backup) = newest(&world, "backup");
    let starts = |at: &usize| on_backup[*at..].starts_with(&on_backup[..4]);
    let second = (1..on_backup.len()).find(starts).unwrap();
    let (name, mut on_audit) = newest(&killed, "audit");
    on_audit.extend(&on_backup[second..]);
    let world = killed;
    world.machine.overwrite(&format!("audit/{name}"), &on_audit);
    let files = world.files_below("audit");
    world.destroy("audit");
    let world = world.named("backup");
    world.configure(&[]).unwrap();
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 200..203);
    log.close().unwrap();
    world.put_back("audit", &files);
    let world = world.named("audit");
    world.configure(&["/backup"]).unwrap();
    goes_on_whole(&world, 203);
    world.check_contains((0..8).chain(10..13).chain(200..204));
}
