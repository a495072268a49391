//! `make bench`: appends, verifies and exports a log on this machine, and prints a table of what that took.
//!
//! The workload: entries of 100 bytes and of 4 KiB, from two producers, their payloads words of a small
//! vocabulary (as the `gdpr` workload has them), durability mode `group`. Absolute figures say as much of the
//! machine as of the program; memory is the most that the process had until then, all rows before included; the row `copy` is the same bytes through `memcpy`, for scale.
#![allow(clippy::cast_possible_truncation)]

use bulla::keys::recipients::IdentityFile;
use bulla::{Entry, Export, Init, Log, Options, Verify, default_keys};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PRODUCERS: usize = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    println!(
        "{:<10} {:>9} {:>12} {:>10} {:>12} {:>10} {:>10} {:>10} {:>10}",
        "entry",
        "entries",
        "append/s",
        "MB/s",
        "disk B/entry",
        "append MiB",
        "verify s",
        "export s",
        "peak MiB"
    );
    for (name, payload, entries) in [("100 B", 40, 2_000_000), ("4 KiB", 4040, 200_000)] {
        let directory = place.path().join(name.replace(' ', ""));
        measure(name, &directory, payload, entries)?;
    }
    Ok(())
}

fn measure(
    name: &str,
    directory: &Path,
    payload: usize,
    entries: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    Init::default().erasure(false).create(directory)?;
    let text = words();
    let logical = AtomicBytes::default();
    let log = Log::open(directory, Options::default())?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (log, text, logical) = (&log, &text, &logical);
            scope.spawn(move || append(log, producer, entries / PRODUCERS, (text, payload), logical));
        }
    });
    log.flush()?;
    let appended = start.elapsed();
    log.close()?;
    let memory = peak_memory();
    let copied = copy(logical.get());

    let identity = std::fs::read_to_string(default_keys(directory).join("identity.age"))?;
    let identity = Arc::new(IdentityFile::parse(&identity)?);
    let (report, verified) = timed(|| Verify::open(directory)?.identity(identity.clone()).run())?;
    assert!(report.ok && report.entries == entries as u64, "{:?}", report.findings);
    let (exported, written) =
        timed(|| Export::open(directory)?.identity(identity.clone()).run(&mut std::io::sink()))?;
    assert_eq!(exported.entries, entries as u64);

    let rate = |time: Duration, amount: f64| amount / time.as_secs_f64();
    let bytes = bulla::info(directory)?.bytes;
    println!(
        "{name:<10} {entries:>9} {:>12.0} {:>10.0} {:>12.1} {:>10.0} {:>10.2} {:>10.2} {:>10.0}",
        rate(appended, entries as f64),
        rate(appended, logical.get() as f64 / 1e6),
        bytes as f64 / entries as f64,
        memory,
        verified.as_secs_f64(),
        written.as_secs_f64(),
        peak_memory(),
    );
    println!("{:<10} {:>9} {:>12} {:>10.0}", "  copy", "", "", rate(copied, logical.get() as f64 / 1e6));
    Ok(())
}

fn append(log: &Log, producer: usize, entries: usize, (text, payload): (&str, usize), logical: &AtomicBytes) {
    let mut handle = log.producer().expect("a producer");
    let locations = (0..1000).map(|user| format!("user/user_{user}/profile")).collect::<Vec<_>>();
    let subjects = (0..1000).map(|user| format!("user_{user}")).collect::<Vec<_>>();
    let mut bytes = 0;
    let mut random = producer as u64;
    for index in 0..entries {
        let user = (index * 7919 + producer * 31) % 1000;
        let start = next(&mut random) as usize % (text.len() - payload);
        let entry = Entry::new(["create", "read", "update", "delete"][index % 4], &locations[user])
            .subject(&subjects[user])
            .controller("controller_1")
            .payload(&text[start..start + payload]);
        bytes += entry.measure().expect("an entry within its limits");
        handle.append(&entry).expect("appended");
    }
    handle.flush().expect("flushed").durable().expect("durable");
    logical.add(bytes);
}

/// A long text of the words "the" and "data", two to one, of which every entry takes a stretch.
fn words() -> String {
    let mut random = 1;
    let mut text = String::new();
    while text.len() < 8 << 20 {
        text.push_str(if next(&mut random) % 3 < 2 { "the " } else { "data " });
    }
    text
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// How long it takes to copy so many bytes, a buffer at a time.
fn copy(bytes: usize) -> Duration {
    let source = vec![1_u8; 64 << 10];
    let mut target = vec![0_u8; 64 << 10];
    let start = Instant::now();
    for _ in 0..bytes / source.len() {
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&mut target);
    }
    start.elapsed()
}

fn timed<T>(run: impl FnOnce() -> bulla::Result<T>) -> bulla::Result<(T, Duration)> {
    let start = Instant::now();
    Ok((run()?, start.elapsed()))
}

/// The most memory that this process ever had, in MiB.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

#[derive(Default)]
struct AtomicBytes(std::sync::atomic::AtomicUsize);

impl AtomicBytes {
    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}
