//! A log that is closed for a while by whoever goes on with it, and what is told of one that has failed.

use bulla::environment::Environment;
use bulla::{Entry, ErrorKind, Init, Log, Options, Recovery};
use bulla_testkit::fault::{Fault, Faults};
use std::sync::Arc;
use std::time::Duration;

fn open(machine: &Faults) -> bulla::Result<Log> {
    let options = Options::default().retries(0).retry_delay(Duration::ZERO);
    let stores = (Arc::new(machine.store("audit")), Arc::new(machine.store("keys")));
    Log::open_stores(stores.0, stores.1, options, Environment::default())
}

fn created(machine: &Faults) -> Log {
    let (log, keys) = (machine.store("audit"), machine.store("keys"));
    Init::default().erasure(false).create_in(&log, &keys, &Environment::default()).unwrap();
    open(machine).unwrap()
}

fn append(log: &Log, location: &str) -> bulla::Result<()> {
    let mut producer = log.producers().producer()?;
    producer.append(&Entry::new("read", location).subject("ada"))?;
    producer.flush()?.durable()
}

#[test]
fn nobody_else_opens_a_log_that_is_closed_only_for_a_while() {
    let machine = Faults::new();
    let log = created(&machine);
    append(&log, "first").unwrap();
    let producers = log.producers();
    let (telemetry, closed, held) = log.close_holding();
    closed.unwrap();
    assert_eq!(telemetry.entries, 1);
    assert_eq!(producers.producer().map(drop).unwrap_err().kind(), ErrorKind::Closed);
    for _ in 0..2 {
        assert_eq!(open(&machine).map(drop).unwrap_err().kind(), ErrorKind::Locked);
        let log = held.as_ref().unwrap().open(Options::default(), Environment::default()).unwrap();
        assert_eq!(log.recovery(), Recovery::default());
        append(&log, "next").unwrap();
        log.close().unwrap();
    }
    drop(held);
    open(&machine).unwrap().close().unwrap();
}

#[test]
fn a_log_that_has_failed_says_why_and_is_opened_by_whoever_holds_it() {
    let machine = Faults::new();
    let log = created(&machine);
    append(&log, "first").unwrap();
    let watch = log.watch();
    assert!(watch.failure().is_none());
    machine.fail_below("audit", Fault::NameFails);
    machine.fail_below("audit", Fault::WriteFails);
    append(&log, "lost").unwrap_err();
    assert!(watch.failure().is_some());
    let (telemetry, closed, held) = log.close_holding();
    closed.unwrap_err();
    assert_eq!(telemetry.entries, 1);
    let held = held.unwrap();
    assert!(held.open(Options::default().retries(0), Environment::default()).is_err());
    assert_eq!(open(&machine).map(drop).unwrap_err().kind(), ErrorKind::Locked);
    machine.heal();
    let log = held.open(Options::default(), Environment::default()).unwrap();
    append(&log, "second").unwrap();
    log.close().unwrap();
    // What is closed already is not told of any more.
    assert!(watch.failure().is_none() && watch.telemetry().is_none());
}
