//! What personal groups take: `cargo bench -p bulla --bench erasure -- 1000000`, so many entries (that many).
//!
//! The workloads `web-subjects` (5,000 data subjects) and `gdpr` from two producers, into a log without erasure and into one
//! with it. A unit is a group there, or the row of an entry that is in none. Memory is the most that the process had while
//! it appended; generating the entries is in the time, on the same processors. Then data subjects are erased, one after
//! the other, while both producers append: until a checkpoint covers the event.
#![allow(clippy::cast_precision_loss)]

use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::{ErasureOrder, ErrorKind, Init, Log, Options};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_workload::Workload;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const PRODUCERS: u32 = 2;
const ERASURES: usize = 25;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let entries = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    println!(
        "{:<12} {:<8} {:>10} {:>10} {:>8} {:>13} {:>13} {:>9}",
        "workload", "erasure", "entries", "append/s", "blocks", "entries/unit", "disk B/entry", "peak MiB"
    );
    for workload in [Workload::WebSubjects, Workload::Gdpr] {
        for erasure in [false, true] {
            let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
            measure(&place.path().join("audit"), workload, erasure, entries)?;
        }
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    erase(&place.path().join("audit"), entries)
}

/// Erases data subjects while others append.
fn erase(directory: &Path, entries: u64) -> Result<(), Box<dyn std::error::Error>> {
    let created = Init::default().create(directory)?;
    let key = std::fs::read_to_string(bulla::default_keys(directory).join("erasure.key"))?;
    let key = SigningKey::parse(&key)?;
    let log = Log::open(directory, Options::default())?;
    let stop = AtomicBool::new(false);
    let mut times = Vec::new();
    std::thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        for producer in 0..PRODUCERS {
            let (log, stop) = (&log, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    append(log, Workload::WebSubjects, producer, entries / u64::from(PRODUCERS));
                }
            });
        }
        let mut subjects = Workload::WebSubjects.generator(1, 0);
        while log.acknowledged() < entries / 4 {
            std::thread::yield_now();
        }
        let environment = Environment::default();
        for _ in 0..ERASURES {
            let subject = subjects.next_entry().subjects.unwrap_or_default()[0].to_owned();
            let order = ErasureOrder::give(&key, created.id, &[&subject], None, &environment)?;
            let start = Instant::now();
            match log.erase(&order) {
                // Somebody who was met twice, and is not back yet.
                Err(error) if error.kind() == ErrorKind::Refused => {}
                erased => {
                    erased?;
                    times.push(start.elapsed());
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    times.sort_unstable();
    let [least, median, most] = [0, times.len() / 2, times.len() - 1].map(|at| times[at].as_millis());
    let erased = times.len();
    println!(
        "{erased} erasures beside two producers: {least} ms at least, median {median} ms, at most {most} ms"
    );
    Ok(log.close()?)
}

fn measure(
    directory: &Path,
    workload: Workload,
    erasure: bool,
    entries: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    Init::default().erasure(erasure).create(directory)?;
    let log = Log::open(directory, Options::default())?;
    // From here on, the most memory is that of this log.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let log = &log;
            scope.spawn(move || append(log, workload, producer, entries / u64::from(PRODUCERS)));
        }
    });
    log.flush()?;
    let appended = start.elapsed();
    let memory = peak_memory();
    log.close()?;
    let (blocks, units) = blocks(directory)?;
    println!(
        "{:<12} {:<8} {entries:>10} {:>10.0} {blocks:>8} {:>13.2} {:>13.1} {memory:>9.0}",
        format!("{workload:?}").to_lowercase(),
        if erasure { "on" } else { "off" },
        entries as f64 / appended.as_secs_f64(),
        entries as f64 / units as f64,
        bulla::info(directory)?.bytes as f64 / entries as f64,
    );
    Ok(())
}

fn append(log: &Log, workload: Workload, producer: u32, entries: u64) {
    let mut handle = log.producer().expect("a producer");
    let mut generator = workload.generator(1, producer);
    for _ in 0..entries {
        handle.append(&generator.next_entry()).expect("appended");
    }
    handle.flush().expect("flushed").durable().expect("durable");
}

/// How many blocks the log has, and how many units in them, by the signed list of its frames.
fn blocks(directory: &Path) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let size = bulla::info(directory)?.tree_size;
    let (mut blocks, mut units) = (0, 0);
    for index in 0..size.div_ceil(256) {
        let width = u16::try_from((size - index * 256).min(256))?;
        let bundle = std::fs::read(directory.join(bulla_proof::tile::entries_path(index, width)))?;
        for entry in bulla_proof::tile::parse_bundle(&bundle, width)? {
            let commitment = Commitment::decode(entry)?;
            blocks += u64::from(commitment.kind == FrameKind::Block);
            units += commitment.units;
        }
    }
    Ok((blocks, units))
}

/// The most memory that this process had since it was asked to forget, in MiB.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}
