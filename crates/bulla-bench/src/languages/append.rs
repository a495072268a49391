//! What other languages are held against: the same entries appended by a process in Rust.

use super::program::{BETWEEN_LOOKS, Limits, Told};
use super::records;
use crate::measure::Watch;
use crate::outcome::Failure;
use bulla::{Log, Options, Producer};
use bulla_proof::Entry;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// The entries of a batch, as the thesis has them.
pub(super) const BATCH: usize = 4096;
/// Batches that are made for a producer.
pub(super) const BATCHES: u64 = 4;
/// The streams that batches go to in turn, and then one to none; producers begin so many apart.
const STREAMS: usize = 1024;
const APART: usize = 64;

/// With a medium that stalls a run is slow, not void. Programs in other languages are told the same.
fn options() -> Options {
    Options::default().append_timeout(Duration::from_secs(120))
}

impl Told {
    fn of(entries: u64, watch: &Watch, latencies_ns: Vec<u64>) -> Self {
        let passed = watch.stop();
        let (seconds, processor_seconds) = (passed.time.as_secs_f64(), Some(passed.cpu.as_secs_f64()));
        Told { entries, seconds, processor_seconds, closed_seconds: None, latencies_ns }
    }
}

/// What `append.c` does.
pub(super) fn append(directory: &Path, limits: Limits) -> Result<Told, Failure> {
    let bytes = records::receive(&mut std::io::stdin())?;
    let entries = records::parse(&bytes)?;
    let (watch, start) = (Watch::start(), Instant::now());
    let log = Log::open(directory, options())?;
    let mut producer = log.producer()?;
    let mut appended = 0;
    for entry in entries.iter().cycle() {
        if appended == limits.entries
            || (appended % BETWEEN_LOOKS == 0 && limits.are_reached(start, appended))
        {
            break;
        }
        producer.append(entry)?;
        appended += 1;
    }
    drop(producer);
    log.flush()?;
    log.close()?;
    Ok(Told::of(appended, &watch, Vec::new()))
}

/// What `thesis.cpp` does, with the settings that its configuration comes to.
pub(super) fn batches(
    directory: &Path,
    producers: usize,
    writers: usize,
    limits: Limits,
) -> Result<Told, Failure> {
    let streams = (0..STREAMS).map(|number| format!("stream_{number}")).collect::<Vec<_>>();
    let streams =
        [None].into_iter().chain(streams.iter().map(|stream| Some(stream.as_str()))).collect::<Vec<_>>();
    let bytes = records::receive(&mut std::io::stdin())?;
    let mut entries = records::parse(&bytes)?;
    for entry in &mut entries {
        // There an entry has the time at which it was made.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        entry.time = Some(i64::try_from(now.as_nanos())?);
    }
    let each = entries.len() / producers;
    let limits = Limits { entries: limits.entries.div_ceil(producers as u64), ..limits };
    let options = options().segment_size(100 << 20).writers(writers).compression(1);
    let options = options.retries(10).retry_delay(Duration::from_millis(1));
    let options = options.memory(writers.saturating_mul(14).max(192) << 20);

    let (watch, start) = (Watch::start(), Instant::now());
    let log = Log::open(directory, options)?;
    let parts = std::thread::scope(|scope| {
        let threads = entries.chunks_mut(each).enumerate().map(|(number, entries)| {
            let (log, streams) = (&log, &streams);
            scope
                .spawn(move || produce(log.producer()?, entries, &streams[..], number * APART, limits, start))
        });
        let threads = threads.collect::<Vec<_>>();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a producer panicked")?);
        joined.collect::<Result<Vec<_>, Failure>>()
    })?;
    log.close()?;
    let appended = parts.iter().map(|(appended, _)| appended).sum();
    let latencies = parts.into_iter().flat_map(|(_, latencies)| latencies).collect();
    Ok(Told::of(appended, &watch, latencies))
}

/// Appends a producer's batches again and again, the first to stream number `stream`; how many entries, and how long each batch took.
fn produce<'a>(
    mut producer: Producer,
    entries: &mut [Entry<'a>],
    streams: &[Option<&'a str>],
    stream: usize,
    limits: Limits,
    start: Instant,
) -> Result<(u64, Vec<u64>), Failure> {
    let (mut appended, mut latencies) = (0, Vec::new());
    let count = entries.len().div_ceil(BATCH);
    while !limits.are_reached(start, appended) {
        let turn = latencies.len();
        let first = turn % count * BATCH;
        let end = entries.len().min(first + BATCH);
        let batch = &mut entries[first..end];
        let name = streams[(stream + turn) % streams.len()];
        batch.iter_mut().for_each(|entry| entry.stream = name);
        let begun = Instant::now();
        producer.append_batch(batch).map_err(|error| error.error)?;
        latencies.push(u64::try_from(begun.elapsed().as_nanos())?);
        appended += batch.len() as u64;
    }
    Ok((appended, latencies))
}
