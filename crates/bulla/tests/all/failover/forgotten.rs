//! Files of the key directory that are gone beside a path that is lost: what they alone knew is asked for, and nothing is done, or told, as if it
//! had never been.

use super::world::World;
use crate::crash::world::OpenWrap;
use bulla::environment::{Clock, Environment, Interrupt};
use bulla::keys::signing::SigningKey;
use bulla::{Entry, ErasureOrder, ErrorKind, Follow, HoldOrder, Log, LogId, Query, Reader, Step};
use bulla_testkit::fault::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

const HOLDS: &str = "audit.keys/holds";

#[test]
fn a_list_of_paths_that_is_gone_does_not_make_a_part_the_log() {
    for list in [None, Some("bulla paths v1\n")] {
        let world = World::handed_on(&["/backup"]);
        world.destroy("backup");
        world.configure(&[]).unwrap();
        match list {
            None => assert!(world.machine.remove_file("audit.keys/paths")),
            Some(list) => world.machine.overwrite("audit.keys/paths", list.as_bytes()),
        }
        for read in [world.exported(), world.events()] {
            let error = read.expect_err("a part of the log was read");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{list:?}: {error}");
            assert!(error.to_string().contains("an older copy of the log"), "{list:?}: {error}");
        }
        assert!((0..4).all(|number| world.salvaged().contains(&number)), "{list:?}");
        assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered, "{list:?}");
    }
}

/// The seal state is written before the checkpoint that it speaks of: who reads in between reads on once that is published, and after a crash there
/// once the log was opened. An older checkpoint that was put back looks the same.
#[test]
fn a_log_whose_checkpoint_is_about_to_be_published_is_read_once_it_is() {
    let world = World::new(&[]);
    let log = world.open_stepped().unwrap();
    world.append_stepped(&log, 0..4);
    world.commit_stepped(&log, 4).unwrap();
    let files_of =
        |world: &World| ["audit.keys/seal.state", "audit/checkpoint"].map(|name| world.machine.read(name));
    let [sealed, signed] = files_of(&world);
    world.machine.fail_below("audit/checkpoint.tmp", Fault::WriteFails);
    let _ = log.step(Step::Checkpoint);
    let [sealed_now, signed_now] = files_of(&world);
    assert!(sealed_now != sealed && signed_now == signed);
    let stuck = world.exported().unwrap_err();
    assert_eq!(stuck.kind(), ErrorKind::Unavailable, "{stuck}");
    assert!(stuck.to_string().contains("does not publish what it has signed"), "{stuck}");
    let world = world.killed();
    world.open().close().unwrap();
    let [_, published] = files_of(&world);
    let put = |checkpoint: &Option<Vec<u8>>| {
        world.machine.overwrite("audit/checkpoint", checkpoint.as_ref().unwrap())
    };
    put(&signed);
    let writer = world.log().lock("LOCK").unwrap();
    thread::scope(|scope| {
        let read = scope.spawn(|| world.exported());
        // That the reader meets the older one is likely, and no more.
        thread::sleep(Duration::from_millis(200));
        put(&published);
        read.join().unwrap().unwrap();
    });
    drop(writer);
    put(&signed);
    for read in [world.exported().map(drop), world.events().map(drop)] {
        let error = read.expect_err("a part of the log was read");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("open it once"), "{error}");
    }
    assert_eq!(world.salvaged(), BTreeSet::from([0, 1, 2, 3]));
    world.open().close().unwrap();
    world.check(5);
}

/// Later than any time that is asked for.
struct Later;

impl Clock for Later {
    fn now(&self) -> i64 {
        i64::MAX
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

/// Whoever began to follow a log before sees nothing of it: the older one has all that they saw.
#[test]
fn a_log_that_is_followed_does_not_end_where_an_older_one_was_put_back() {
    let world = World::new(&[]);
    let log = world.open();
    world.append(&log, 0..4);
    log.close().unwrap();
    let older = world.files_below("audit");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let to = i64::try_from((now + Duration::from_secs(3600)).as_nanos()).unwrap();
    let reader = Reader::open_store(world.log()).unwrap().identity(Arc::new(OpenWrap));
    let look = |follow: &mut Follow<'_>| {
        let mut seen = Vec::new();
        let polled = follow.poll(|followed| {
            seen.push(followed.number);
            Ok(())
        });
        polled.map(|polled| (seen, polled.ended))
    };
    let follow = || {
        let query = Query { to: Some(to), ..Query::new() };
        let mut follow = reader.follow(&query).unwrap().clock(Arc::new(Later));
        assert_eq!(look(&mut follow).unwrap(), (vec![0, 1, 2, 3], true));
        follow
    };
    let (mut beside_nobody, mut beside_a_writer, mut beside_a_lock) = (follow(), follow(), follow());
    // Files of their own, not those that the followers have open.
    world.put_back("audit", &older);
    let log = world.open();
    world.append(&log, 4..7);
    log.close().unwrap();
    let newer = world.files_below("audit");
    world.put_back("audit", &older);
    let error = look(&mut beside_nobody).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("an older copy of the log"), "{error}");
    // The seal state is written first.
    world.put_back("audit", &newer);
    let put = |of: &BTreeMap<String, Vec<u8>>| world.machine.overwrite("audit/checkpoint", &of["checkpoint"]);
    put(&older);
    let writer = world.log().lock("LOCK").unwrap();
    let seen = thread::scope(|scope| {
        let seen = scope.spawn(|| look(&mut beside_a_writer));
        // That the follower meets the older one is likely, and no more.
        thread::sleep(Duration::from_millis(200));
        put(&newer);
        seen.join().unwrap()
    });
    assert_eq!(seen.unwrap(), (vec![4, 5, 6], true));
    put(&older);
    let error = look(&mut beside_a_lock).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("does not publish what it has signed"), "{error}");
    drop(writer);
}

/// What orders are given with.
struct Office {
    key: SigningKey,
    log: LogId,
}

impl Office {
    fn of(world: &World) -> Office {
        let key = String::from_utf8(world.machine.read("audit.keys/erasure.key").unwrap()).unwrap();
        Office { key: SigningKey::parse(&key).unwrap(), log: bulla::info_of(world.log()).unwrap().id }
    }

    fn hold(&self, log: &Log, subject: &str) -> bulla::Result<()> {
        let because = ("legal", "case 4711");
        let order = HoldOrder::give(&self.key, self.log, subject, because, &Environment::default()).unwrap();
        log.hold(&order).map(drop)
    }

    fn erase(&self, log: &Log, subject: &str) -> bulla::Result<()> {
        let order = ErasureOrder::give(&self.key, self.log, &[subject], None, &Environment::default());
        log.erase(&order.unwrap()).map(drop)
    }
}

/// A log whose second path is lost, on which `ada` was held, if `held`.
fn lost_with_a_hold(held: bool) -> (World, Office) {
    let world = World::with_erasure(&["/backup"], true);
    let office = Office::of(&world);
    let log = world.open_stepped().unwrap();
    let mut producer = log.producer().unwrap();
    for subject in ["ada", "bob", "cleo"] {
        producer.append(&Entry::new("read", "1").subject(subject)).unwrap();
    }
    let _ = producer.flush().unwrap();
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_stepped(&log, 0..4);
    if held {
        office.hold(&log, "ada").unwrap();
    }
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_stepped(&log, 4..8);
    log.close().unwrap();
    world.machine.heal();
    world.destroy("backup");
    // An order of the second of the last lost event may have been carried out.
    let second = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let before = second();
    while second() == before {
        std::thread::yield_now();
    }
    world.configure(&[]).unwrap();
    assert!(!bulla::lost_frames_of(world.log()).unwrap().events.is_empty());
    (world, office)
}

#[test]
fn nobody_is_erased_or_held_where_the_file_is_gone_that_alone_knows_of_lost_holds() {
    let (world, office) = lost_with_a_hold(true);
    let kept = world.machine.read(HOLDS).unwrap();
    assert!(world.machine.remove_file(HOLDS));
    for _ in 0..2 {
        // The log goes on, and nothing makes the file of what is left.
        let log = world.open_stepped().unwrap();
        let differences = log.hold_differences();
        assert!(differences.iter().any(|found| found.to_string().contains("holds is missing")));
        for refused in [office.erase(&log, "ada"), office.erase(&log, "bob"), office.hold(&log, "cleo")] {
            let error = refused.expect_err("who is held is not known");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.to_string().contains("audit.keys/holds is missing"), "{error}");
        }
        log.close().unwrap();
        assert_eq!(world.machine.read(HOLDS), None);
    }
    world.machine.overwrite(HOLDS, &kept);
    let log = world.open_stepped().unwrap();
    let error = office.erase(&log, "ada").unwrap_err();
    assert!(error.to_string().contains("is held by legal"), "{error}");
    office.erase(&log, "bob").unwrap();
    // It may go while the log is open.
    assert!(world.machine.remove_file(HOLDS));
    assert_eq!(office.erase(&log, "ada").unwrap_err().kind(), ErrorKind::Unavailable);
    // Somebody says that nobody is held by what is lost.
    world.machine.overwrite(HOLDS, b"{\"holds\":[]}\n");
    office.erase(&log, "ada").unwrap();
    office.hold(&log, "cleo").unwrap();
    log.close().unwrap();
}

#[test]
fn a_log_in_which_nobody_was_ever_held_is_asked_for_no_file_that_it_never_had() {
    let (world, office) = lost_with_a_hold(false);
    assert!(world.machine.read(HOLDS).is_some());
    let log = world.open_stepped().unwrap();
    assert!(log.hold_differences().is_empty());
    office.erase(&log, "ada").unwrap();
    office.hold(&log, "bob").unwrap();
    log.close().unwrap();
}
