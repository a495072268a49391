//! Who is held is not erased, and it is told by whom and why.

use super::stops::{self, Stop};
use super::world::World;
use crate::helpers::{hold_order, in_full};
use crate::second_reader::second_reader;
use crate::workshop::{Operation, Watch};
use bulla::event::Event;
use bulla::{ErrorKind, FindingKind, HoldDifference, HoldOrder, HoldUnderWay, Log, Options};
use std::fs;
use std::io;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

#[test]
fn whoever_is_held_is_not_erased() {
    let world = World::new();
    world.append(0..60);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert!(log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap());
    assert!(!log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap(), "it is so already");
    assert!(log.hold(&world.hold("user_7", "finance", "until 2031")).unwrap());
    log.close().unwrap();

    let log = Log::open(&world.directory, Options::default()).unwrap();
    let refused = |expected: &str| {
        let error = log.erase(&world.order(&["user_8", "user_7"])).unwrap_err();
        assert!(error.kind() == ErrorKind::Refused && error.to_string().contains(expected), "{error}");
    };
    refused("held by legal: case 4711");
    log.release(&world.release("user_7", "legal")).unwrap();
    refused("held by finance: until 2031");
    assert!(world.entries().1.is_empty(), "nobody of that order was erased");
    let error = log.release(&world.release("user_7", "legal")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    log.release(&world.release("user_7", "finance")).unwrap();
    assert_eq!(log.erase(&world.order(&["user_8", "user_7"])).unwrap().numbers.len(), 2);
    log.close().unwrap();
    assert!(world.verified().ok);
}

#[test]
fn a_hold_says_whose_it_is_and_why() {
    let world = World::new();
    world.append(0..60);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    for (by, reason) in [("", "why"), ("who", ""), ("who", "two\nlines"), ("who", &"r".repeat(1025))] {
        let error = hold_order(&world.directory, "user_7", by, reason).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        // Whoever signs it all the same.
        let good = world.hold("user_7", "who", "why");
        let mut file = serde_json::from_str::<serde_json::Value>(&good.render()).unwrap();
        (file["by"], file["reason"]) = (by.into(), reason.into());
        let error = log.hold(&HoldOrder::parse(&file.to_string()).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert_eq!(log.hold(&world.hold("nobody", "who", "why")).unwrap_err().kind(), ErrorKind::Refused);
    log.close().unwrap();
}

/// Who is held is unknown then: better nobody is erased.
#[test]
fn nobody_is_erased_while_the_holds_are_damaged() {
    let world = World::new();
    world.append(0..60);
    std::fs::write(world.keys().join("holds"), "{").unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let error = log.erase(&world.order(&["user_7"])).unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("holds"), "{error}");
    log.close().unwrap();
    assert!(world.entries().1.is_empty());
}

/// What the log tells of holds.
fn told(world: &World) -> Vec<(u64, Event)> {
    let mut events = world.events();
    events.retain(|(_, event)| matches!(event, Event::Held { .. } | Event::Released { .. }));
    events
}

fn held(world: &World) -> bulla::HeldSubjects {
    bulla::holds(&world.directory, world.keys()).unwrap()
}

/// The same after a stop. Between the seal state and the checkpoint that it speaks of nobody is told of a part of the log.
fn held_after_a_stop(world: &World) -> Option<bulla::HeldSubjects> {
    let held = bulla::holds(&world.directory, world.keys());
    held.inspect_err(|error| assert!(error.to_string().contains("open it once"), "{error}")).ok()
}

fn reopen(world: &World) -> Log {
    Log::open(&world.directory, Options::default()).unwrap()
}

/// The number of operations that are let through: each of them, or some that differ from what a change before had.
fn operations() -> impl Iterator<Item = i64> {
    let step = if in_full() { 1 } else { 5 };
    (0..).step_by(step)
}

#[test]
fn the_log_tells_of_each_hold_and_of_its_release() {
    let world = World::new();
    world.append(0..60);
    let number = world.vault(bulla_vault::Access::Read).find("user_7").unwrap().unwrap().number;
    let log = reopen(&world);
    log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap();
    log.hold(&world.hold("user_7", "finance", "until 2031")).unwrap();
    // Why is signed: another reason is another hold, and one has one hold on somebody.
    let error = log.hold(&world.hold("user_7", "legal", "case 4712")).unwrap_err();
    assert!(error.kind() == ErrorKind::Refused && error.to_string().contains("another reason"), "{error}");
    log.release(&world.release("user_7", "legal")).unwrap();
    log.close().unwrap();
    let events = told(&world);
    let [
        (first, Event::Held { number: one, .. }),
        (_, Event::Held { number: two, .. }),
        (_, Event::Released { number: three, held: of, .. }),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*one, *two, *three, of), (number, number, number, first));
    let list = held(&world);
    assert_eq!(list.differences, []);
    assert_eq!(
        list.holds.iter().map(|hold| (&hold.by[..], hold.frame)).collect::<Vec<_>>(),
        [("finance", Some(events[1].0))]
    );
}

/// A disk that syncs the key directory so many times, and then no more.
#[derive(Debug)]
struct Unsynced(AtomicI64);

impl Watch for Unsynced {
    fn before(&self, _: Operation, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn before_sync_directory(&self, path: &str) -> io::Result<()> {
        match path.is_empty() && self.0.fetch_sub(1, Ordering::SeqCst) <= 0 {
            true => Err(io::Error::other("it is not synced")),
            false => Ok(()),
        }
    }
}

#[test]
fn whoever_orders_what_fails_and_is_carried_out_by_opening_the_log_is_told_so() {
    let free = World::new();
    free.append(0..60);
    let held_already = free.copied();
    let log = reopen(&held_already);
    log.hold(&held_already.hold("user_7", "legal", "case 4711")).unwrap();
    log.close().unwrap();
    for (made, releases, says) in [(&free, false, "may be held, "), (&held_already, true, "may be under way")]
    {
        let mut seen = 0;
        for syncs in 0..4 {
            let world = made.copied();
            let unsynced = Arc::new(Unsynced(AtomicI64::new(i64::MAX)));
            let log = stops::open(&world, &unsynced).unwrap();
            log.flush().unwrap();
            unsynced.0.store(syncs, Ordering::SeqCst);
            let done = match releases {
                false => log.hold(&world.hold("user_7", "legal", "case 4711")).map(drop),
                true => log.release(&world.release("user_7", "legal")),
            };
            drop(log);
            reopen(&world).close().unwrap();
            let is_carried_out = held(&world).holds.is_empty() == releases;
            let told = done.map_or_else(|error| error.to_string(), |()| "done".to_owned());
            let is_told = told == "done" || told.contains("opening the log, as any command that writes does");
            assert_eq!(is_told, is_carried_out, "{syncs}: {told}");
            seen += u32::from(told.contains(says));
        }
        assert!(seen > 0, "{says}");
    }
}

/// Whatever operation it stops at, and whatever operation the opening after that stops at, too.
#[test]
fn a_hold_that_stops_anywhere_is_told_by_the_log_or_never_was() {
    let made = World::new();
    made.append(0..60);
    let (mut finished, mut never) = (0, 0);
    for operations in operations() {
        let world = made.copied();
        let stop = Stop::after(i64::MAX);
        let log = stops::open(&world, &stop).unwrap();
        log.flush().unwrap();
        stop.0.store(operations, Ordering::SeqCst);
        let done = log.hold(&world.hold("user_7", "legal", "case 4711"));
        let left = stop.0.swap(0, Ordering::SeqCst);
        drop(log);
        if let Some(list) = held_after_a_stop(&world) {
            let is_told = !told(&world).is_empty();
            assert!(
                !is_told || !list.holds.is_empty(),
                "{operations}: the log tells of it, the list does not"
            );
            let begun = list.holds.iter().map(|hold| (hold.number, hold.by.clone(), hold.frame.is_some()));
            let begun = begun.filter(|(.., is_told)| !is_told);
            let begun = begun.map(|(number, by, _)| HoldUnderWay::Hold { number, by });
            assert_eq!((list.under_way, list.differences), (begun.collect(), Vec::new()), "{operations}");
            assert!(is_told || list.holds.iter().all(|hold| hold.frame.is_none()), "{operations}");
        }
        // The opening that makes it good may stop, too.
        drop(stops::open(&world, &Stop::after(operations * 7 % 23)));

        let log = reopen(&world);
        assert_eq!(log.hold_differences(), [], "{operations}");
        let list = held(&world);
        let is_held = !list.holds.is_empty();
        assert!(is_held || done.is_err(), "{operations}: {done:?}");
        *(if is_held { &mut finished } else { &mut never }) += u32::from(done.is_err());
        assert!(
            list.differences.is_empty() && list.holds.iter().all(|hold| hold.frame.is_some()),
            "{list:?}"
        );
        assert_eq!(told(&world).len(), usize::from(is_held), "{operations}");
        let erased = log.erase(&world.order(&["user_7"]));
        assert_eq!(erased.is_err(), is_held, "{operations}: {erased:?}");
        log.close().unwrap();
        assert!(world.verified().ok, "{operations}");
        if left > 0 {
            break;
        }
    }
    assert!(finished > 2 && never > 0, "{finished} {never}");
}

#[test]
fn a_release_that_stops_anywhere_is_told_by_the_log_or_never_was() {
    let made = World::new();
    made.append(0..60);
    let log = reopen(&made);
    log.hold(&made.hold("user_7", "legal", "case 4711")).unwrap();
    log.close().unwrap();
    let (mut finished, mut never) = (0, 0);
    // Asked for and not told of; told of, and still in the file.
    let mut seen = [0; 2];
    // Each, since few of them lie between the checkpoint over the event and the file that follows.
    for operations in 0.. {
        let world = made.copied();
        let stop = Stop::after(i64::MAX);
        let log = stops::open(&world, &stop).unwrap();
        log.flush().unwrap();
        stop.0.store(operations, Ordering::SeqCst);
        let done = log.release(&world.release("user_7", "legal"));
        let left = stop.0.swap(0, Ordering::SeqCst);
        drop(log);
        if let Some(list) = held_after_a_stop(&world) {
            let is_told = told(&world).len() == 2;
            assert_eq!(list.holds.is_empty(), is_told, "{operations}: {list:?}");
            assert_eq!(list.differences, [], "{operations}");
            let by = "legal".to_owned();
            match &list.holds[..] {
                [hold] if hold.is_releasing() => {
                    assert_eq!(list.under_way, [HoldUnderWay::Release { number: hold.number, by }]);
                    seen[0] += 1;
                }
                [] if !list.under_way.is_empty() => {
                    assert!(matches!(list.under_way[..], [HoldUnderWay::Released { .. }]), "{list:?}");
                    seen[1] += 1;
                }
                _ => assert_eq!(list.under_way, [], "{operations}"),
            }
        }
        drop(stops::open(&world, &Stop::after(operations * 7 % 23)));

        let log = reopen(&world);
        assert_eq!(log.hold_differences(), [], "{operations}");
        let list = held(&world);
        let is_held = !list.holds.is_empty();
        assert!(!is_held || done.is_err(), "{operations}: {done:?}");
        *(if is_held { &mut never } else { &mut finished }) += u32::from(done.is_err());
        assert!(
            list.differences.is_empty() && list.holds.iter().all(|hold| !hold.is_releasing()),
            "{list:?}"
        );
        assert_eq!(told(&world).len(), if is_held { 1 } else { 2 }, "{operations}");
        let erased = log.erase(&world.order(&["user_7"]));
        assert_eq!(erased.is_err(), is_held, "{operations}: {erased:?}");
        log.close().unwrap();
        assert!(world.verified().ok, "{operations}");
        if left > 0 {
            break;
        }
    }
    assert!(finished > 2 && never > 0, "{finished} {never}");
    assert!(seen.iter().all(|&times| times > 0), "{seen:?}");
}

/// The log remembers whom it was told of, whoever takes the file away.
#[test]
fn a_host_that_deletes_the_file_of_holds_erases_nobody() {
    let world = World::new();
    world.append(0..60);
    let log = reopen(&world);
    log.hold(&world.hold("user_8", "finance", "until 2031")).unwrap();
    let older = fs::read(world.keys().join("holds")).unwrap();
    log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap();
    log.release(&world.release("user_8", "finance")).unwrap();
    let frame = told(&world)[1].0;
    let number = world.vault(bulla_vault::Access::Read).find("user_7").unwrap().unwrap().number;
    let order = world.order(&["user_7"]);
    let refused = |log: &Log| {
        let error = log.erase(&order).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains(&format!("held by unknown (frame {frame})")), "{error}");
    };
    // Under a log at work.
    fs::remove_file(world.keys().join("holds")).unwrap();
    let missing = HoldDifference::Missing { number, frame };
    assert_eq!(held(&world).differences, from_ref(&missing));
    refused(&log);
    log.close().unwrap();
    // While nobody looks.
    fs::remove_file(world.keys().join("holds")).unwrap();
    let log = reopen(&world);
    assert_eq!(log.hold_differences(), from_ref(&missing));
    assert_eq!(held(&world).differences, []);
    refused(&log);
    // Not the file, but what is in it; so that it says to have all that the log tells.
    let empty = || {
        let path = world.keys().join("holds");
        let mut file = serde_json::from_slice::<serde_json::Value>(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(file["holds"].as_array_mut().map(std::mem::take).unwrap().len(), 1);
        fs::write(path, file.to_string()).unwrap();
    };
    empty();
    refused(&log);
    log.close().unwrap();
    empty();
    let log = reopen(&world);
    refused(&log);
    log.close().unwrap();
    // From a backup: whoever was released since then is released, whoever was held is held.
    fs::write(world.keys().join("holds"), older).unwrap();
    let log = reopen(&world);
    let differences = log.hold_differences();
    assert!(matches!(differences[0], HoldDifference::Released { .. }) && differences[1..] == [missing]);
    refused(&log);
    assert_eq!(log.erase(&world.order(&["user_8"])).unwrap().numbers.len(), 1);
    log.release(&world.release("user_7", &format!("unknown (frame {frame})"))).unwrap();
    log.erase(&order).unwrap();
    log.close().unwrap();
    assert!(world.verified().ok);
    assert!(reopen(&world).hold_differences().is_empty());
}

/// Who has the host can erase and say so, with an order that was given before the hold.
#[test]
fn an_erasure_of_somebody_who_was_held_is_found() {
    let world = World::new();
    world.append(0..60);
    let numbers = ["user_7", "user_8", "user_9"]
        .map(|name| world.vault(bulla_vault::Access::Read).find(name).unwrap().unwrap().number);
    let found = |world: &World| {
        let report = world.verified();
        let held = report.findings.iter().filter(|finding| finding.kind == FindingKind::ErasedWhileHeld);
        assert_eq!(report.ok, report.findings.is_empty(), "{report:?}");
        held.map(|finding| (finding.frame.unwrap(), finding.detail.clone())).collect::<Vec<_>>()
    };
    let erase = |world: &World, numbers: &[u64]| {
        let names = ["a", "b", "c"][..numbers.len()].to_vec();
        let (order, carried_out) =
            (world.order(&names).note().to_owned(), (0..).take(numbers.len()).collect());
        let log = reopen(world);
        log.record(Event::Erased { numbers: numbers.to_vec(), carried_out, order, remains: Vec::new() })
            .unwrap();
        log.close().unwrap();
    };
    let log = reopen(&world);
    log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap();
    log.hold(&world.hold("user_7", "finance", "until 2031")).unwrap();
    log.hold(&world.hold("user_9", "legal", "case 4711")).unwrap();
    log.release(&world.release("user_7", "legal")).unwrap();
    log.close().unwrap();
    let frames = told(&world).iter().map(|(frame, _)| *frame).collect::<Vec<_>>();
    erase(&world, &[numbers[1]]);
    assert_eq!(found(&world), [], "that one was not held");
    let reference = || {
        let output = second_reader(&world.key).arg(&world.directory).output().expect("python3 is there");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (sound, said) = reference();
    assert!(sound, "another implementation agrees: {said}");
    erase(&world, &numbers);
    let erasure =
        world.events().into_iter().rfind(|(_, event)| matches!(event, Event::Erased { .. })).unwrap().0;
    let told = found(&world);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, erasure);
    let whom = [(numbers[0], frames[1]), (numbers[2], frames[2])]
        .map(|(number, frame)| format!("{number} (frame {frame})"));
    assert!(told[0].1.ends_with(&whom.join(", ")), "{}", told[0].1);
    let (sound, said) = reference();
    assert!(!sound && said.contains("erased-while-held"), "{said}");
}
