//! A log that drops entries while no path takes it: nobody waits, each that was dropped is counted by a signed event, and none of them is
//! ever said to be durable.

use super::outage::{Waits, append, close, drop_entries, entry, outage, outage_of};
use super::world::World;
use crate::helpers::one_in;
use bulla::{ErrorKind, Log, Step};
use bulla_testkit::fault::Fault;
use std::sync::{Arc, Mutex};

#[test]
fn nobody_waits_and_what_was_dropped_is_counted_in_the_log() {
    for paths in [&[][..], &["/backup"]] {
        let world = World::new(paths);
        world.set("on_failure", "drop");
        let log = world.open();
        world.append(&log, 0..20);
        world.machine.fail_below("audit", Fault::NoSpace);
        world.machine.fail_below("backup", Fault::NoSpace);
        let mut producer = log.producer().unwrap();
        let mut appended = 20;
        // Whatever is appended while nothing takes it: nobody waits for `append_timeout`, and no append fails.
        while log.dropped() < 50 {
            producer.append(&entry(&appended.to_string(), &[7; 3000])).unwrap();
            appended += 1;
        }
        let (dropped, prefix) = (log.dropped(), log.durable_prefix());
        assert_eq!(prefix, 20);
        let receipt = producer.flush().unwrap();
        assert_eq!(receipt.dropped(), dropped);
        let error = receipt.durable().unwrap_err();
        assert!(error.to_string().contains("dropped"), "{error}");
        let (tell, told) = std::sync::mpsc::channel();
        receipt.when_durable(move |outcome| tell.send(outcome.is_err()).unwrap()).unwrap();
        assert!(told.recv().unwrap());
        world.machine.heal();
        // Later entries, whose receipts say nothing of those before.
        let last = appended;
        loop {
            producer.append(&entry(&appended.to_string(), &[7; 100])).unwrap();
            appended += 1;
            if producer.flush().unwrap().durable().is_ok() {
                break;
            }
        }
        assert!(log.flush().is_err(), "entries were dropped since the log was flushed last");
        log.flush().unwrap();
        let dropped = log.dropped();
        assert_eq!(log.telemetry().dropped, dropped);
        assert!(log.durable_prefix() <= last - 50, "what comes after a dropped entry is in no prefix");
        drop(producer);
        log.close().unwrap();
        let found = world.numbers();
        assert_eq!(found.len() as u64 + dropped, appended, "each is there or counted");
        world.check_contains((0..20).chain(appended - 1..appended));
        let events = world.dropped();
        assert_eq!(events.iter().map(|(_, event)| event.entries).sum::<u64>(), dropped);
        assert!(
            events.iter().all(|(_, event)| event.exact && event.producers == 1 && event.from <= event.to)
        );
        assert!(world.machine.read("audit.keys/dropping").is_none());
        // The log goes on, and tells nothing twice.
        let log = world.open();
        world.append(&log, appended..appended + 10);
        log.close().unwrap();
        assert_eq!(world.dropped(), events);
    }
}

#[test]
fn the_event_comes_before_any_later_entry() {
    let mut world = World::new(&["/backup"]);
    world.set("on_failure", "drop");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let log = Arc::new(world.open_stepped().unwrap());
    world.append_stepped(&log, 0..4);
    assert!(
        outage(&world, &clock, &log, 100, 5, Fault::NoSpace).is_err(),
        "the flush covers what was dropped"
    );
    assert_eq!(log.dropped(), 5);
    world.append_stepped(&log, 4..8);
    close(log).unwrap();
    let (frame, event) = &world.dropped()[0];
    assert_eq!((event.entries, event.exact, event.producers), (5, true, 1));
    assert!(event.reason.contains("NoSpace"), "{event:?}");
    let (places, before) = (world.places(), world.entries_before(*frame));
    assert!((0..4).chain([1100]).all(|number| places[&number] < before), "{places:?}, {before}");
    assert!((4..8).all(|number| places[&number] >= before), "{places:?}, {before}");
    assert!(!places.contains_key(&101) && !places.contains_key(&105));
    world.check_contains((0..8).chain([100, 1100]));
}

#[test]
fn a_log_of_a_source_waits_instead() {
    let world = World::new(&[]);
    world.set("on_failure", "drop");
    world.set("append_timeout", "1 ms");
    let log = world.open();
    let source = log.source(bulla::SourceId([3; 16]), b"a file").unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    let mut producer = log.producer().unwrap();
    let mut number = 0;
    while log.dropped() < 10 {
        match producer.append(&entry(&number.to_string(), &[7; 3000])) {
            Ok(()) => number += 1,
            // As often as `retries` says is not tried yet.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Timeout),
        }
    }
    let place = bulla::Place { range: 0..10, check: 7 };
    let error = producer.append_from(&entry("x", b""), &source, &place).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    world.machine.heal();
    let _ = log.close();
}

/// Producers that come and go, one after the other, are several.
#[test]
fn each_producer_counts_however_short_it_lives() {
    let mut world = World::new(&[]);
    world.set("on_failure", "drop");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let log = Arc::new(world.open_stepped().unwrap());
    for (first, producers) in [(100, 7), (200, 3)] {
        let others = move |log: &Log| {
            for number in 1..producers {
                let mut producer = log.producer().unwrap();
                (0..3).for_each(|_| append(&mut producer, first + 10 + number));
            }
        };
        let act = drop_entries(&world, &log, (first, 5), others);
        let _ = outage_of(&world, &clock, &log, (first, Fault::NoSpace), act, Log::flush);
    }
    close(log).unwrap();
    let counts = world.dropped().into_iter().map(|(_, event)| (event.exact, event.entries, event.producers));
    assert_eq!(counts.collect::<Vec<_>>(), [(true, 5 + 6 * 3, 7), (true, 5 + 2 * 3, 3)]);
}

/// Seals and commits what there is, and signs nothing.
fn commit_all(log: &Log) -> bulla::Result<()> {
    while log.step(Step::Seal)? {
        log.step(Step::Commit)?;
    }
    Ok(())
}

/// The event lies behind frames that nobody has signed, and is lost with their path.
#[test]
fn the_note_stays_until_the_event_cannot_be_lost_with_the_path_before() {
    let mut world = World::new(&["/backup"]);
    world.set("on_failure", "drop");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let log = Arc::new(world.open_stepped().unwrap());
    world.append_stepped(&log, 0..4);
    world.commit_stepped(&log, 4).unwrap();
    let machine = world.machine.clone();
    let mut act = drop_entries(&world, &log, (100, 5), |_| {});
    let act = Box::new(move |count| {
        act(count);
        if count == 4 {
            machine.fail_below("audit", Fault::WriteFails);
        }
    });
    outage_of(&world, &clock, &log, (100, Fault::WriteFails), act, commit_all).unwrap();
    assert_eq!(log.dropped(), 5);
    // All of it is synced on the second path.
    let killed = world.killed();
    killed.destroy("audit");
    let mut lost = killed.named("backup");
    lost.configure(&[]).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    lost.tell_of_paths(move |what| tell.lock().unwrap().push(what.to_owned()));
    let after = lost.try_open().unwrap();
    lost.append(&after, 200..202);
    after.close().unwrap();
    let told = told.lock().unwrap();
    assert!(told.iter().any(|told| told.contains("5 at least: the log says so now")), "{told:?}");
    // And where nothing is lost, once a checkpoint covers it.
    assert!(world.machine.read("audit.keys/dropping").is_some());
    log.step(Step::Checkpoint).unwrap();
    assert!(world.machine.read("audit.keys/dropping").is_none());
    close(log).unwrap();
    world.machine.heal();
    let told = world.dropped().iter().map(|(_, event)| (event.entries, event.exact)).collect::<Vec<_>>();
    assert_eq!(told, [(5, true)]);
}

/// Storage alone cannot have a log drop anything.
#[test]
fn only_the_key_directory_says_that_a_log_may_drop() {
    let world = World::new(&[]);
    let config = world.machine.read("audit/bulla.toml").unwrap();
    for line in ["on_failure = \"drop\"", "error_path = \"/errors\"", "error_path_size = \"5 MiB\""] {
        world.machine.overwrite("audit/bulla.toml", &[&config[..], line.as_bytes(), b"\n"].concat());
        assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Refused, "{line}");
    }
}

#[test]
fn a_crash_at_any_operation_of_an_outage_loses_nothing_acknowledged_and_tells_what_was_noted() {
    for fault in [Fault::NoSpace, Fault::SyncFails] {
        let live = |world: &mut World, acknowledged: &mut u64| -> bulla::Result<()> {
            let clock = Waits::new();
            world.set_clock(clock.clone());
            let log = Arc::new(world.open_stepped()?);
            *clock.ends.lock().unwrap() = Some((world.machine.clone(), log.closing()));
            world.try_append_stepped(&log, 0..2)?;
            *acknowledged = 2;
            let _ = outage(world, &clock, &log, 100, 5, fault);
            world.try_append_stepped(&log, 2..4)?;
            *acknowledged = 4;
            close(log)
        };
        let ready = || {
            let world = World::new(&["/backup"]);
            world.set("on_failure", "drop");
            world.set("error_path", "/errors");
            world
        };
        let mut world = ready();
        let first = world.machine.operations();
        live(&mut world, &mut 0).unwrap();
        let last = world.machine.operations();
        let mut told = 0;
        for point in one_in(9, first..last) {
            let mut world = ready();
            world.machine.stop_at(point);
            let mut acknowledged = 0;
            if live(&mut world, &mut acknowledged).is_ok() {
                assert!(point + 32 > last, "{fault:?} at {point} of {last}");
                continue;
            }
            for after in [world.after_power_cut(point), world.killed()] {
                let what = format!("{fault:?} at {point}, {acknowledged} acknowledged");
                let log = after.try_open().unwrap_or_else(|error| panic!("{what}: {error}"));
                after.append(&log, 200..204);
                assert_eq!(log.durable_prefix(), 4, "{what}: of this process nothing was dropped");
                log.close().unwrap();
                after.check_contains((0..acknowledged).chain(200..204));
                let events = after.dropped();
                // What is there of the outage is told once; and where entries came after it, it is told, exactly or at least.
                let exact = events.iter().filter(|(_, event)| event.exact).map(|(_, event)| event.entries);
                let exact = exact.collect::<Vec<_>>();
                assert!(exact.is_empty() || exact == [5], "{what}: {events:?}");
                let all = events.iter().map(|(_, event)| event.entries).sum::<u64>();
                assert!(all <= 5, "{what}: {events:?}");
                assert!(acknowledged < 4 || exact == [5], "{what}: {events:?}");
                assert!(after.machine.read("audit.keys/dropping").is_none(), "{what}");
                told += u64::from(!events.is_empty());
                // And no second time.
                let log = after.open();
                log.close().unwrap();
                assert_eq!(after.dropped(), events, "{what}");
            }
        }
        assert!(told > 5, "{fault:?}: {told} of the crashes were in an outage");
        println!("swept: an outage, {fault:?}, {} crash points", last - first);
    }
}
