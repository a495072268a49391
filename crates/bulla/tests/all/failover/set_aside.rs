//! What a log drops is set aside, as far as its error path takes it, and nobody waits for that.

use super::outage::{Waits, close, drop_entries, entry, outage, outage_of, set_aside};
use super::world::World;
use crate::workshop::{Operation, Watch, Watched};
use bulla::keys::identities::{IdentityFile, generate};
use bulla::{Log, Step};
use bulla_testkit::fault::Fault;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

#[test]
fn what_is_dropped_can_be_read_again_from_the_error_path() {
    let (identity, recipient) = generate();
    let mut world = World::with_recipient(&[], &recipient);
    world.set("on_failure", "drop");
    world.set("error_path", "/errors");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let log = Arc::new(world.open_stepped().unwrap());
    world.append_stepped(&log, 0..4);
    let act = drop_entries(&world, &log, (100, 5), set_aside);
    let _ = outage_of(&world, &clock, &log, (100, Fault::WriteFails), act, Log::flush);
    let telemetry = log.telemetry();
    // The first is larger than what may wait to be written.
    assert_eq!((telemetry.dropped, telemetry.set_aside), (5, 4));
    close(log).unwrap();
    assert_eq!(world.dropped()[0].1.set_aside, 4);
    let files = world.files_below("errors");
    let identity = IdentityFile::parse(&identity).unwrap();
    let mut lines = Vec::new();
    for (name, file) in &files {
        assert!(name.ends_with(".jsonl.age"), "{name}");
        assert!(!file.windows(9).any(|bytes| bytes == b"operation"));
        lines.extend_from_slice(&identity.decrypt(file).unwrap().unwrap());
    }
    let lines = String::from_utf8(lines).unwrap();
    let locations = lines.lines().map(|line| {
        let parsed = bulla::text::jsonl::parse_line(line.as_bytes()).unwrap();
        let entry = parsed.entry();
        assert!(entry.time.is_some() && entry.payload == Some(&[7; 100]));
        String::from_utf8(entry.location.unwrap().to_vec()).unwrap()
    });
    assert_eq!(locations.collect::<Vec<_>>(), ["102", "103", "104", "105"]);
}

#[test]
fn the_error_path_has_an_end_and_takes_more_once_there_is_room() {
    let mut world = World::new(&[]);
    world.set("on_failure", "drop");
    world.set("error_path", "/errors");
    world.set("error_path_size", "1 MiB");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let filler = format!("{}-1.jsonl.age", bulla::info_of(world.log()).unwrap().id);
    world.machine.overwrite(&format!("errors/{filler}"), &vec![0; (1 << 20) - 10]);
    let log = Arc::new(world.open_stepped().unwrap());
    let outage = |first| {
        let act = drop_entries(&world, &log, (first, 5), set_aside);
        let _ = outage_of(&world, &clock, &log, (first, Fault::NoSpace), act, Log::flush);
        log.telemetry()
    };
    let telemetry = outage(100);
    assert_eq!((telemetry.dropped, telemetry.set_aside), (5, 0));
    assert_eq!(world.files_below("errors").into_keys().collect::<Vec<_>>(), [&*filler]);
    // Somebody appends them, and deletes them.
    world.machine.remove_file(&format!("errors/{filler}"));
    let telemetry = outage(200);
    assert_eq!((telemetry.dropped, telemetry.set_aside), (10, 4));
    // And as soon as they are as many as there may be, there is an end again.
    world.machine.overwrite(&format!("errors/{filler}"), &vec![0; 1 << 20]);
    let telemetry = outage(300);
    assert_eq!((telemetry.dropped, telemetry.set_aside), (15, 4));
    close(log).unwrap();
    let events = world.dropped();
    assert_eq!(events.iter().map(|(_, event)| event.set_aside).collect::<Vec<_>>(), [0, 4, 0]);
}

/// What is written to the error path after an outage is over is of no later one.
#[test]
fn an_event_counts_what_was_dropped_in_its_own_outage() {
    let mut world = World::new(&[]);
    world.set("on_failure", "drop");
    world.set("error_path", "/errors");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let log = Arc::new(world.open_stepped().unwrap());
    let _ = outage(&world, &clock, &log, 100, 5, Fault::WriteFails);
    // The second begins before what the first one has dropped is written.
    let act = drop_entries(&world, &log, (200, 3), set_aside);
    let _ = outage_of(&world, &clock, &log, (200, Fault::WriteFails), act, Log::flush);
    assert_eq!(log.telemetry().set_aside, 4 + 2);
    let _ = outage(&world, &clock, &log, 300, 4, Fault::WriteFails);
    close(log).unwrap();
    let counts = world.dropped().into_iter().map(|(_, event)| (event.entries, event.set_aside));
    assert_eq!(counts.collect::<Vec<_>>(), [(5, 0), (3, 2), (4, 0)]);
}

/// An error path that does not answer.
#[derive(Debug, Default)]
struct Hanging {
    /// Whether somebody waits for it, and whether it answers again.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Watch for Hanging {
    fn before(&self, _: Operation, _: &str) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.0 = true;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| !state.1).unwrap());
        Ok(())
    }
}

#[test]
fn nobody_waits_for_an_error_path_that_does_not_answer() {
    let mut world = World::new(&[]);
    world.set("on_failure", "drop");
    world.set("error_path", "/errors");
    let hanging = Arc::new(Hanging::default());
    let (machine, watch) = (world.machine.clone(), hanging.clone());
    world.open_paths_by(move |_| {
        Arc::new(Watched { store: Arc::new(machine.store("errors")), watch: watch.clone() })
    });
    let log = world.open();
    world.append(&log, 0..20);
    world.machine.fail_below("audit", Fault::NoSpace);
    let mut producer = log.producer().unwrap();
    let mut number = 20;
    while log.dropped() < 50 {
        producer.append(&entry(&number.to_string(), &[7; 3000])).unwrap();
        number += 1;
    }
    drop(hanging.changed.wait_while(hanging.state.lock().unwrap(), |state| !state.0).unwrap());
    world.machine.heal();
    let waits = "the log waits for its error path";
    loop {
        producer.append(&entry(&number.to_string(), &[7; 100])).unwrap();
        number += 1;
        match producer.flush().unwrap().durable_within(Duration::from_secs(60)) {
            Ok(durable) => break assert!(durable, "{waits}"),
            Err(error) => assert!(error.to_string().contains("dropped"), "{error}"),
        }
    }
    // Also where nobody asks for anything.
    let before = log.telemetry().entries;
    producer.append(&entry(&number.to_string(), &[7; 100])).unwrap();
    let limit = std::time::Instant::now() + Duration::from_secs(60);
    while log.telemetry().entries == before {
        assert!(std::time::Instant::now() < limit, "{waits}");
        std::thread::yield_now();
    }
    drop(producer);
    log.close().unwrap();
    assert!(!hanging.state.lock().unwrap().1);
    hanging.state.lock().unwrap().1 = true;
    hanging.changed.notify_all();
    let events = world.dropped();
    assert!(events.iter().all(|(_, event)| event.exact && event.set_aside == 0), "{events:?}");
    assert!(!events.is_empty());
    assert!(world.machine.read("audit.keys/dropping").is_none());
}

/// So that no test waits for what never comes: a log without threads lingers by a step.
#[test]
fn a_step_sets_aside_what_waits() {
    let mut world = World::new(&[]);
    world.set("on_failure", "drop");
    world.set("error_path", "/errors");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let log = Arc::new(world.open_stepped().unwrap());
    let _ = outage(&world, &clock, &log, 100, 5, Fault::WriteFails);
    assert_eq!((log.telemetry().set_aside, world.files_below("errors").len()), (0, 0));
    log.step(Step::Linger).unwrap();
    assert_eq!((log.telemetry().set_aside, world.files_below("errors").len()), (4, 1));
    close(log).unwrap();
    assert_eq!(world.files_below("errors").len(), 1);
}
