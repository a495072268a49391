//! How long an erasure takes while producers append: from the order until a checkpoint covers the event.

use crate::feed::Source;
use crate::knobs::{Amount, Knobs};
use crate::outcome::{Failure, Outcome};
use bulla::environment::Environment;
use bulla::keys::files;
use bulla::keys::signing::SigningKey;
use bulla::{Created, ErasureOrder, ErrorKind, Log, default_keys};
use bulla_workload::Workload;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WORKLOAD: Workload = Workload::WebSubjects;
/// How many are erased, and how many entries are in the log before.
const ERASURES: usize = 25;
const BEFORE: u64 = 200_000;
/// How many are erased where somebody says how many entries are to be there before: they try it.
const FEW: usize = 5;

pub(crate) fn run(knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    let created = knobs.init().erasure(true).create(&directory)?;
    let (before, erasures) = match knobs.amount() {
        Amount::Entries(entries) => (entries, FEW),
        Amount::Time(_) => (BEFORE, ERASURES),
    };
    let source = Source::new(WORKLOAD, knobs);
    let log = Log::open(&directory, knobs.options())?;
    let stop = AtomicBool::new(false);
    let mut times = std::thread::scope(|scope| {
        let appending = (0..knobs.producers).map(|producer| {
            let (log, source, stop) = (&log, &source, &stop);
            scope.spawn(move || {
                let appended = append(log, source, producer, stop);
                // Who waits for entries learns that none come.
                stop.store(true, Ordering::Relaxed);
                appended
            })
        });
        let appending = appending.collect::<Vec<_>>();
        let is_over = || stop.load(Ordering::Relaxed);
        while log.acknowledged() < before && !is_over() {
            std::thread::yield_now();
        }
        let times = erase(&log, &directory, &created, knobs.seed, erasures, is_over);
        stop.store(true, Ordering::Relaxed);
        for thread in appending {
            thread.join().map_err(|_| "a producer panicked")??;
        }
        times
    })?;
    log.close()?;
    times.sort_unstable();
    let milliseconds = |index: usize| times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let mut outcome = Outcome::default();
    outcome.set("erasures", times.len() as f64);
    outcome.set("erasure_ms_least", milliseconds(0));
    outcome.set("erasure_ms_median", milliseconds(times.len() / 2));
    outcome.set("erasure_ms_most", milliseconds(times.len().saturating_sub(1)));
    Ok(outcome)
}

fn append(log: &Log, source: &Source, producer: u32, stop: &AtomicBool) -> Result<(), Failure> {
    let (mut handle, mut feed) = (log.producer()?, source.feed(producer));
    while !stop.load(Ordering::Relaxed) {
        handle.append(&feed.next_entry())?;
    }
    Ok(())
}

/// Erases so many data subjects, one after the other, unless it is over before; how long each took.
fn erase(
    log: &Log,
    directory: &Path,
    created: &Created,
    seed: u64,
    erasures: usize,
    is_over: impl Fn() -> bool,
) -> Result<Vec<Duration>, Failure> {
    let key = std::fs::read_to_string(default_keys(directory).join(files::ERASURE_KEY))?;
    let key = SigningKey::parse(&key)?;
    let (environment, mut subjects) = (Environment::default(), WORKLOAD.generator(seed, 0));
    let mut times = Vec::new();
    while times.len() < erasures && !is_over() {
        let entry = subjects.next_entry();
        let subject =
            entry.subjects.as_deref().and_then(<[_]>::first).ok_or("an entry without data subject")?;
        let order = ErasureOrder::give(&key, created.id, &[subject], None, &environment)?;
        let start = Instant::now();
        match log.erase(&order) {
            // Somebody who was met twice, and is not back yet, or whose first entry is not there yet.
            Err(error) if error.kind() == ErrorKind::Refused => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
            Ok(_) => times.push(start.elapsed()),
        }
    }
    Ok(times)
}
