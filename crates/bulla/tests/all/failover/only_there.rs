//! Frames of the tree that lie, where they count, on a path alone that was lost and is found.

use super::world::World;
use bulla::event::Event;
use bulla::{Entry, ErrorKind, Step};
use bulla_testkit::fault::Fault;
use bulla_testkit::sweep::one_in;

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
fn taken_over_again(fault: Fault) -> World {
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
}

#[test]
fn what_lies_behind_an_end_that_an_event_tells_of_is_no_copy() {
    let lives = [Fault::SyncFails, Fault::WritePersistsButFails].map(taken_over_again);
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

/// What a sync that failed has left on the first path lies on the second one, too, and the event that says so on a third.
fn told_on_a_third_path() -> [World; 2] {
    [Fault::SyncFails, Fault::WritePersistsButFails].map(|fault| {
        let world = World::new(&["/backup", "/other"]);
        let log = world.open_stepped().unwrap();
        world.append_stepped(&log, 0..4);
        world.machine.fail_below("audit/segments", fault);
        world.commit_stepped(&log, 4).unwrap();
        world.machine.heal();
        world.machine.fail_below("backup", Fault::WriteFails);
        world.commit_stepped(&log, 5).unwrap();
        log.flush().unwrap();
        world.append_stepped(&log, 6..8);
        world.machine.heal();
        world.machine.fail_below("other", Fault::NoSpace);
        world.append_stepped(&log, 8..12);
        log.close().unwrap();
        world.killed()
    })
}

/// Takes away what events say to count for nothing at the ends of the segments of `audit`.
fn without_what_does_not_count(world: &World) -> usize {
    let ends = world.told(|event| match event {
        Event::Abandoned { segment, offset, .. } => Some((segment, offset)),
        _ => None,
    });
    let mut cut = 0;
    for (segment, end) in ends {
        let (path, end) = (format!("audit/segments/{segment}"), usize::try_from(end).unwrap());
        if let Some(whole) = world.machine.read(&path).filter(|whole| whole.len() > end) {
            world.machine.overwrite(&path, &whole[..end]);
            cut += 1;
        }
    }
    cut
}

/// While the event is lost nothing tells which of two equal frames counts, and neither is set aside.
#[test]
fn where_the_event_of_an_end_is_lost_no_copy_is_set_aside() {
    for world in told_on_a_third_path() {
        let (backup, other) = (world.files_below("backup"), world.files_below("other"));
        world.destroy("other");
        world.configure(&["/backup"]).unwrap();
        world.destroy("backup");
        world.configure(&[]).unwrap();
        world.put_back("backup", &backup);
        let error = world.configure(&["/backup"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("Name the one that has it in the same change"), "{error}");
        assert_eq!(world.files_below("backup"), backup);
        world.put_back("other", &other);
        world.configure(&["/backup", "/other"]).unwrap();
        goes_on_whole(&world, 12);
        assert_eq!(without_what_does_not_count(&world), 1);
        world.check_contains(0..13);
    }
}

/// Any byte on the path that stayed is damaged while the other one is named again, and mended after that.
#[test]
fn where_the_event_of_an_end_is_damaged_no_copy_is_set_aside() {
    let life = taken_over_again(Fault::SyncFails);
    let files = life.files_below("backup");
    life.destroy("backup");
    life.configure(&[]).unwrap();
    let (mut refused, mut named) = (0, 0);
    for (name, whole) in life.files_below("audit").into_iter().filter(|(name, _)| name.ends_with(".seg")) {
        for at in one_in(23, 0..whole.len()) {
            let (world, path) = (life.killed(), format!("audit/{name}"));
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            world.machine.overwrite(&path, &damaged);
            world.put_back("backup", &files);
            let found = world.configure(&["/backup"]);
            world.machine.overwrite(&path, &whole);
            match found {
                Ok(()) => named += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
                    world.configure(&["/backup"]).unwrap();
                    refused += 1;
                }
            }
            goes_on_whole(&world, 6);
            assert_eq!(without_what_does_not_count(&world), 1);
            world.check_contains(0..7);
        }
    }
    assert!(refused > 0 && named > 0, "{refused} {named}");
}
