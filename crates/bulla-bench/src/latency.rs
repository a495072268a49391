//! How long an append takes, at a pace that is set beforehand: from the time at which an entry was due until it was
//! appended, so that an entry that waits behind a slow one counts as slow too (an open loop).
//!
//! One producer waits for each time by looking at the clock. Beside it stands the same loop with a copy of the entry's row
//! in place of the append; both have two looks at the clock in them, whose cost is told. The copying loop runs twice: alone, and
//! beside as many threads as the log kept busy while it was appended to, since what shares the processors takes them away at times.

use crate::arena::Arena;
use crate::knobs::{Amount, Knobs};
use crate::outcome::{Failure, Outcome};
use crate::process;
use crate::statistics::whole;
use bulla::{Log, Producer};
use bulla_proof::sha256;
use bulla_workload::Workload;
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The kind of what was timed beside busy threads.
pub(crate) const COPY_BESIDE: &str = "copy_beside";
/// What is copied to, as a producer's buffer.
const BUFFER: usize = 64 << 10;
/// The longest latency that is told apart: a minute.
pub(crate) const LONGEST: u64 = 60_000_000_000;
/// Entries that show how many a second there can be, at least, and the time for them.
const TRIED: u64 = 50_000;
const TRYING: Duration = Duration::from_secs(1);
const PERCENTILES: [f64; 12] = [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0];

pub(crate) fn run(workload: Workload, knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    let arena = Arena::of(workload, knobs.seed, 1, knobs.entries);
    knobs.init().create(&directory)?;
    let log = Log::open(&directory, knobs.options())?;
    let mut producer = log.producer()?;
    let possible = possible(&log, &mut producer, &arena, knobs.entries)?;
    let pace = Pace { amount: knobs.amount(), rate: knobs.rate.unwrap_or(possible / 2.0) };

    let (mut cursor, others) = (arena.cursor(0), Others::watch());
    let appends = pace.keep(|due| {
        let entry = cursor.next_entry();
        due.wait();
        Ok(producer.append(&entry)?)
    })?;
    let processors = others.processors();
    drop(producer);
    log.close()?;
    let rows = Rows::of(&arena, appends.len());
    let copies = pace.keep(rows.copying())?;
    let busy = whole(processors.ceil()).max(1);
    let buffer = vec![0_u8; BUFFER];
    let hash = || {
        black_box(sha256(&[black_box(&buffer)]));
    };
    let beside = beside(busy, hash, || pace.keep(rows.copying()))?;

    let mut outcome = Outcome::default();
    outcome.set("possible_per_second", possible);
    outcome.set("rate_per_second", pace.rate);
    outcome.set("row_bytes", arena.lengths().row);
    outcome.set("timer_ns", timer());
    tell("append", &appends, &mut outcome);
    tell("copy", &copies, &mut outcome);
    outcome.set("log_processors", processors);
    outcome.set("busy_threads", busy as f64);
    tell(COPY_BESIDE, &beside, &mut outcome);
    Ok(outcome)
}

/// How many processors the other threads of this process took on average since a moment.
struct Others {
    start: Instant,
    /// What all of them took until then, less what this one did.
    taken: Duration,
}

impl Others {
    fn watch() -> Self {
        Others { start: Instant::now(), taken: Self::taken() }
    }

    fn taken() -> Duration {
        process::cpu().saturating_sub(process::thread_cpu())
    }

    fn processors(&self) -> f64 {
        Self::taken().saturating_sub(self.taken).as_secs_f64() / self.start.elapsed().as_secs_f64()
    }
}

/// Does `work` while so many threads do something else again and again.
fn beside<T>(threads: u64, other: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    other();
                }
            });
        }
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

/// How many entries a second one producer can append, once memory is no buffer any more.
fn possible(log: &Log, producer: &mut Producer, arena: &Arena, most: Option<u64>) -> Result<f64, Failure> {
    let mut cursor = arena.cursor(0);
    let (start, mut entries) = (Instant::now(), 0);
    while entries < most.unwrap_or(TRIED) || (most.is_none() && start.elapsed() < TRYING) {
        producer.append(&cursor.next_entry())?;
        entries += 1;
    }
    log.flush()?;
    Ok(entries as f64 / start.elapsed().as_secs_f64())
}

struct Pace {
    amount: Amount,
    rate: f64,
}

impl Pace {
    /// Does `work` again and again, which waits once it has everything at hand; how long after it was due each was done,
    /// in nanoseconds.
    fn keep(&self, mut work: impl FnMut(Due) -> Result<(), Failure>) -> Result<Histogram<u64>, Failure> {
        let mut latencies = Histogram::new_with_bounds(1, LONGEST, 3)?;
        let count = match self.amount {
            Amount::Entries(entries) => entries,
            Amount::Time(time) => whole(time.as_secs_f64() * self.rate),
        };
        let start = Instant::now();
        for number in 0..count {
            let due = Due(start + Duration::from_secs_f64(number as f64 / self.rate));
            work(due)?;
            let late = due.0.elapsed().as_nanos();
            latencies.saturating_record(u64::try_from(late).unwrap_or(LONGEST).clamp(1, LONGEST));
        }
        Ok(latencies)
    }
}

/// When a piece of work is due.
#[derive(Clone, Copy)]
struct Due(Instant);

impl Due {
    fn wait(self) {
        while Instant::now() < self.0 {
            std::hint::spin_loop();
        }
    }
}

/// The rows of an arena's entries, one after the other.
struct Rows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows {
    fn of(arena: &Arena, most: u64) -> Self {
        const MOST: u64 = 1 << 15;
        let (mut rows, mut cursor) = (Rows { bytes: Vec::new(), ends: Vec::new() }, arena.cursor(0));
        for _ in 0..most.clamp(1, MOST) {
            let (entry, start) = (cursor.next_entry(), rows.bytes.len());
            rows.bytes.resize(start + entry.measure().unwrap_or_default(), 0);
            entry.encode(0, &mut rows.bytes[start..]);
            rows.ends.push(rows.bytes.len());
        }
        rows
    }

    /// What copies one row after the other into a buffer.
    fn copying(&self) -> impl FnMut(Due) -> Result<(), Failure> + '_ {
        let (mut buffer, mut filled, mut next, mut start) = (vec![0_u8; BUFFER], 0, 0, 0);
        move |due| {
            let row = &self.bytes[start..self.ends[next]];
            due.wait();
            if buffer.len() - filled < row.len() {
                filled = 0;
            }
            buffer[filled..filled + row.len()].copy_from_slice(row);
            filled += row.len();
            black_box(&mut buffer);
            (next, start) = match next + 1 == self.ends.len() {
                true => (0, 0),
                false => (next + 1, self.ends[next]),
            };
            Ok(())
        }
    }
}

/// What a look at the clock takes, in nanoseconds.
fn timer() -> f64 {
    const LOOKS: u32 = 100_000;
    let start = Instant::now();
    for _ in 0..LOOKS {
        black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(LOOKS)
}

/// Tells percentiles of what was timed, under a name.
pub(crate) fn tell(name: &str, latencies: &Histogram<u64>, outcome: &mut Outcome) {
    let at = |percentile: f64| latencies.value_at_percentile(percentile) as f64;
    for (figure, percentile) in [("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9)] {
        outcome.set(format!("{name}_{figure}_ns"), at(percentile));
    }
    outcome.set(format!("{name}_max_ns"), latencies.max() as f64);
    let curve = PERCENTILES.map(|percentile| (percentile, at(percentile)));
    outcome.latencies.insert(name.to_owned(), curve.to_vec());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_behind_a_slow_one_is_slow() {
        let pace = Pace { amount: Amount::Entries(100), rate: 1e6 };
        let mut number = 0;
        let latencies = pace
            .keep(|due| {
                due.wait();
                number += 1;
                if number == 1 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(latencies.len(), 100);
        // The last one was due 99 microseconds after the first, which took five milliseconds.
        assert!(latencies.min() >= 4_800_000, "{}", latencies.min());
    }

    #[test]
    fn as_many_threads_as_were_asked_for_are_busy_beside_the_work() {
        let seen = std::sync::Mutex::new(std::collections::HashSet::new());
        let other = || {
            seen.lock().unwrap().insert(std::thread::current().id());
        };
        let done = beside(3, other, || {
            while seen.lock().unwrap().len() < 3 {
                std::thread::yield_now();
            }
            7
        });
        assert_eq!((done, seen.into_inner().unwrap().len()), (7, 3));
    }

    #[test]
    fn rows_are_copied_in_turn() {
        let arena = Arena::of(Workload::Slow, 1, 1, Some(10));
        let rows = Rows::of(&arena, 10);
        assert_eq!(rows.ends.len(), 10);
        assert_eq!(rows.bytes.len() as f64, arena.lengths().row * 10.0);
        let mut copy = rows.copying();
        (0..2000).for_each(|_| copy(Due(Instant::now())).unwrap());
    }
}
