//! An outage of a log without threads that drops entries, wait by wait.

use super::world::World;
use bulla::environment::{Clock, Interrupt};
use bulla::{Closing, Entry, ErrorKind, Log, Producer, Receipt, Step};
use bulla_testkit::fault::{Fault, Faults};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two of them are more than the log has room for.
pub(super) const LARGE: usize = 12 << 20;

pub(super) fn entry<'a>(location: &'a str, payload: &'a [u8]) -> Entry<'a> {
    Entry::new("read", location).payload(payload)
}

pub(super) fn append(producer: &mut Producer, number: u64) {
    producer.append(&entry(&number.to_string(), &[7; 100])).unwrap();
}

/// What is done when the log waits for the so manyth time.
pub(super) type OnWait = Box<dyn FnMut(u64) + Send>;

/// A clock on which each wait takes a second, and something happens meanwhile.
pub(super) struct Waits {
    nanoseconds: AtomicI64,
    pub(super) count: AtomicU64,
    pub(super) during: Mutex<Option<OnWait>>,
    /// A machine that stops, and the log that would wait for it for ever then.
    pub(super) ends: Mutex<Option<(Faults, Closing)>>,
}

impl Waits {
    pub(super) fn new() -> Arc<Waits> {
        let nanoseconds = AtomicI64::new(1_700_000_000_000_000_000);
        Arc::new(Waits {
            nanoseconds,
            count: AtomicU64::new(0),
            during: Mutex::new(None),
            ends: Mutex::new(None),
        })
    }
}

impl Clock for Waits {
    fn now(&self) -> i64 {
        self.nanoseconds.load(Ordering::Relaxed)
    }

    fn wait(&self, _: Duration, _: &Interrupt) {
        self.nanoseconds.fetch_add(1_000_000_000, Ordering::Relaxed);
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(during) = &mut *self.during.lock().unwrap() {
            during(count);
        }
        if let Some((_, log)) = self.ends.lock().unwrap().as_ref().filter(|(machine, _)| machine.stopped()) {
            log.give_up();
        }
    }
}

/// An outage of a log without threads: it is full after the first of the entries from `first` on, which is kept, and drops the others.
pub(super) fn outage(
    world: &World,
    clock: &Waits,
    log: &Arc<Log>,
    first: u64,
    dropped: u64,
    fault: Fault,
) -> bulla::Result<()> {
    let act = drop_entries(world, log, (first, dropped), |_| {});
    outage_of(world, clock, log, (first, fault), act, Log::flush)
}

/// Appends one entry that there is room for, and so many for which there is none.
fn append_beyond_room(log: &Log, first: u64, beyond: u64) -> bulla::Result<Receipt> {
    let mut producer = log.producer()?;
    producer.append(&entry(&first.to_string(), &vec![7; LARGE]))?;
    producer.append(&entry(&(first + 1).to_string(), &vec![7; LARGE]))?;
    for number in first + 2..=first + beyond {
        producer.append(&entry(&number.to_string(), &[7; 100]))?;
    }
    producer.flush()
}

/// What is done in the waits of an outage: entries are appended, of which all but the first are dropped, and then something else, until the
/// disks work again.
pub(super) fn drop_entries(
    world: &World,
    log: &Arc<Log>,
    (first, dropped): (u64, u64),
    then: impl Fn(&Log) + Send + 'static,
) -> OnWait {
    let machine = world.machine.clone();
    let log = Arc::downgrade(log);
    Box::new(move |count| match count {
        // As often as `retries` says. It drops nothing yet.
        1 => {}
        2 => {
            let appended = append_beyond_room(&log.upgrade().unwrap(), first, dropped);
            // A log drops nothing before it has noted that it does, and nobody notes anything on a machine that has stopped.
            if machine.stopped() {
                return;
            }
            let receipt = appended.unwrap();
            assert_eq!(receipt.dropped(), dropped);
            assert_eq!(receipt.durable().unwrap_err().kind(), ErrorKind::Unavailable);
        }
        // What was counted by now is noted before the wait.
        3 => then(&log.upgrade().unwrap()),
        _ => machine.heal(),
    })
}

/// An outage that begins with an entry which the log cannot write, while `work` has it write what it has.
pub(super) fn outage_of(
    world: &World,
    clock: &Waits,
    log: &Log,
    (first, fault): (u64, Fault),
    act: OnWait,
    work: impl FnOnce(&Log) -> bulla::Result<()>,
) -> bulla::Result<()> {
    clock.count.store(0, Ordering::Relaxed);
    *clock.during.lock().unwrap() = Some(act);
    ["audit", "backup", "other"].into_iter().for_each(|path| world.machine.fail_below(path, fault));
    let mut other = log.producer()?;
    append(&mut other, first + 1000);
    let worked = other.flush().and_then(|_| work(log));
    *clock.during.lock().unwrap() = None;
    worked
}

pub(super) fn close(log: Arc<Log>) -> bulla::Result<()> {
    Arc::into_inner(log).unwrap().close()
}

/// Writes what waits for that to the error path.
pub(super) fn set_aside(log: &Log) {
    log.step(Step::Linger).unwrap();
}

/// No other path took anything, and yet what is written has another turn than before.
#[test]
fn after_an_outage_that_ends_where_it_began_what_is_durable_is_acknowledged_at_once() {
    let mut world = World::new(&["/backup"]);
    world.set("on_failure", "block");
    let clock = Waits::new();
    world.set_clock(clock.clone());
    let log = world.open_stepped().unwrap();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let told = acknowledged.clone();
    log.when_durable(move |entries| told.store(entries, Ordering::Relaxed));
    world.append_stepped(&log, 0..4);
    // Both have been used.
    for (path, numbers) in [("audit", 4..6), ("backup", 6..8)] {
        world.machine.fail_below(path, Fault::NoSpace);
        world.append_stepped(&log, numbers);
        world.machine.heal();
    }
    assert_eq!(acknowledged.load(Ordering::Relaxed), 8);
    // The second one takes the checkpoint, and no frame.
    ["audit/segments", "backup/segments"]
        .into_iter()
        .for_each(|path| world.machine.fail_below(path, Fault::NoSpace));
    let machine = world.machine.clone();
    *clock.during.lock().unwrap() = Some(Box::new(move |_| {
        machine.heal();
        machine.fail_below("backup/segments", Fault::NoSpace);
    }));
    world.commit_stepped(&log, 8).unwrap();
    *clock.during.lock().unwrap() = None;
    (9..12).for_each(|number| world.commit_stepped(&log, number).unwrap());
    assert_eq!(acknowledged.load(Ordering::Relaxed), 8);
    log.step(Step::Checkpoint).unwrap();
    assert_eq!(acknowledged.load(Ordering::Relaxed), 12);
    for number in 12..16 {
        world.commit_stepped(&log, number).unwrap();
        assert_eq!(acknowledged.load(Ordering::Relaxed), number + 1);
    }
    log.close().unwrap();
    world.machine.heal();
    world.check(16);
    assert_eq!(world.replaced().len(), 2);
}
