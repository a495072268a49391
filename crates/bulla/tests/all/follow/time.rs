//! Following up to a time: it ends, and not before everything that it could have shown was shown and is covered.

use super::{Switch, poll, reader};
use crate::damage::world::World;
use bulla::environment::{Clock, Interrupt};
use bulla::{Entry, Follow, Log, Polled, Query, Reader, Step};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const SECOND: i64 = 1_000_000_000;
/// The time up to which is followed.
const TO: i64 = 1_800_000_000 * SECOND;

/// A clock that is set.
#[derive(Default)]
struct Set(AtomicI64);

impl Set {
    fn to(&self, time: i64) {
        self.0.store(time, Ordering::Relaxed);
    }
}

impl Clock for Set {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

/// Commits a block of entries with these times.
fn block(world: &World, log: &Log, times: &[i64]) {
    let mut producer = log.producer().unwrap();
    for time in times {
        producer.append(&Entry::new("read", "key").time(*time)).unwrap();
    }
    let _ = producer.flush().unwrap();
    while log.step(Step::Seal).unwrap() {}
    log.step(Step::Commit).unwrap();
    world.drain(log);
}

fn follow<'a>(reader: &'a Reader, clock: &Arc<Set>) -> Follow<'a> {
    reader.follow(&Query::new().to(TO)).unwrap().clock(clock.clone())
}

/// A log, a reader of it, and the clock of whoever follows.
fn scene(seed: u64) -> (World, Log, Reader, Arc<Set>) {
    let world = World::new(seed);
    let log = world.open();
    let reader = reader(&Switch::to(&world));
    (world, log, reader, Arc::new(Set::default()))
}

/// What a look gives out, pending or not, and whether that is the end.
fn look(follow: &mut Follow<'_>) -> (Vec<u64>, bool) {
    let (signed, pending, polled) = poll(follow);
    (signed.into_iter().chain(pending).collect(), polled.ended)
}

#[test]
fn a_time_that_is_past_gives_what_is_there_and_ends() {
    let (world, log, reader, clock) = scene(31);
    block(&world, &log, &[TO - 1, TO, TO - 2]);
    log.close().unwrap();
    clock.to(TO + 60 * SECOND);
    assert_eq!(look(&mut follow(&reader, &clock)), (vec![0, 2], true));
    assert_eq!(look(&mut follow(&reader, &clock).signed_only(true)), (vec![0, 2], true));
}

#[test]
fn an_idle_log_ends_once_the_time_was_over_for_two_seconds() {
    let (world, log, reader, clock) = scene(32);
    block(&world, &log, &[TO - 5]);
    log.flush().unwrap();
    let mut follow = follow(&reader, &clock);
    clock.to(TO - 1);
    assert_eq!(look(&mut follow), (vec![0], false));
    clock.to(TO + 2 * SECOND - 1);
    assert_eq!(look(&mut follow), (vec![], false));
    clock.to(TO + 2 * SECOND);
    assert_eq!(look(&mut follow), (vec![], true));
}

#[test]
fn a_log_without_a_checkpoint_of_any_frame_ends_too() {
    let (_world, _log, reader, clock) = scene(33);
    clock.to(TO + 2 * SECOND);
    assert_eq!(look(&mut follow(&reader, &clock)), (vec![], true));
}

#[test]
fn what_is_committed_is_waited_for_until_a_checkpoint_covers_it() {
    for signed in [false, true] {
        let (world, log, reader, clock) = scene(34);
        log.flush().unwrap();
        let mut follow = follow(&reader, &clock).signed_only(signed);
        // Late, and out of order, but there.
        block(&world, &log, &[TO + 3 * SECOND]);
        block(&world, &log, &[TO + SECOND, TO - 1]);
        clock.to(TO + 5 * SECOND);
        let shown = |pending: bool| if pending == signed { vec![] } else { vec![2] };
        assert_eq!(look(&mut follow), (shown(true), false));
        assert_eq!(look(&mut follow), (vec![], false));
        log.step(Step::Checkpoint).unwrap();
        assert_eq!(look(&mut follow), (shown(false), true));
    }
}

#[test]
fn what_is_too_late_anyway_is_not_waited_for() {
    for signed in [false, true] {
        let (world, log, reader, clock) = scene(35);
        block(&world, &log, &[TO - 1]);
        log.flush().unwrap();
        // A busy log has always something that no checkpoint covers yet.
        block(&world, &log, &[TO, TO + SECOND]);
        clock.to(TO + 2 * SECOND);
        assert_eq!(look(&mut follow(&reader, &clock).signed_only(signed)), (vec![0], true));
    }
}

#[test]
fn a_frame_that_is_not_whole_is_not_waited_for() {
    let segment = "audit/segments/00000000000000000000.seg";
    for (signed, cut) in [(false, false), (false, true), (true, false), (true, true)] {
        let (world, log, reader, clock) = scene(36);
        log.flush().unwrap();
        block(&world, &log, &[TO - 1]);
        let mut content = world.machine.read(segment).unwrap();
        let written = content.len() - 40;
        match cut {
            true => content.truncate(written),
            // Its length is there before its end is.
            false => content[written..].fill(0),
        }
        world.machine.overwrite(segment, &content);
        clock.to(TO + 2 * SECOND);
        assert_eq!(look(&mut follow(&reader, &clock).signed_only(signed)), (vec![], true));
    }
}

#[test]
fn what_a_crash_took_is_not_waited_for_and_what_came_in_its_place_is() {
    let (mut world, log, _, clock) = scene(37);
    log.flush().unwrap();
    let segment = "audit/segments/00000000000000000000.seg";
    let kept = world.machine.read(segment).unwrap().len();
    block(&world, &log, &[TO - 1, TO - 1]);
    let store = Switch::to(&world);
    let reader = reader(&store);
    let mut follow = follow(&reader, &clock);
    clock.to(TO + 2 * SECOND);
    assert_eq!(look(&mut follow), (vec![0, 1], false));
    world.machine = world.machine.kill();
    drop(log);
    let mut content = world.machine.read(segment).unwrap();
    content.truncate(kept);
    world.machine.overwrite(segment, &content);
    let log = world.open();
    store.set(world.machine.store("audit"));
    block(&world, &log, &[TO - 1]);
    assert_eq!(look(&mut follow), (vec![], false), "only a checkpoint tells what the log has instead");
    log.flush().unwrap();
    let (signed, _, polled) = poll(&mut follow);
    assert_eq!(
        (signed, polled),
        (vec![0], Polled { covered: 1, lost_from: Some(0), ended: true, ..Polled::default() })
    );
}

#[test]
fn the_last_entry_ends_it_once_it_is_covered() {
    let (world, log, reader, clock) = scene(38);
    let mut follow = reader.follow(&Query::new().entries(1..=2)).unwrap().clock(clock);
    block(&world, &log, &[TO; 2]);
    log.flush().unwrap();
    assert_eq!(look(&mut follow), (vec![1], false));
    block(&world, &log, &[TO; 2]);
    assert_eq!(look(&mut follow), (vec![2], false));
    log.flush().unwrap();
    assert_eq!(look(&mut follow), (vec![], true));
}
