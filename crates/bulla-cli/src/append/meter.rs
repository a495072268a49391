//! How far `bulla append` has come: a bar on a terminal; with `--stats` a line a second, and a table at the end.

use super::input::Input;
use crate::exit::Failure;
use crate::output::{note_lines, print_json, progress_bar};
use bulla::text::spelling::counted;
use bulla::{Log, Telemetry, Waits};
use indicatif::{HumanBytes, ProgressBar};
use serde::Serialize;
use std::time::{Duration, Instant};

/// The time between two lines.
const SECOND: Duration = Duration::from_secs(1);

/// What is told each second with `--json`, by the names that the object at the end has.
#[derive(Serialize)]
struct Second {
    accepted: u64,
    refused: u64,
    stats: Telemetry,
}

pub(super) struct Meter {
    /// Hides itself where there is no terminal.
    bar: Option<ProgressBar>,
    stats: bool,
    json: bool,
    begun: Instant,
    told: Instant,
    told_entries: u64,
    ticks: u64,
    bytes: u64,
}

impl Meter {
    pub(super) fn new(stats: bool, json: bool, inputs: &[Input]) -> Self {
        let total = inputs.iter().map(Input::length).sum::<Option<u64>>().unwrap_or_default();
        let now = Instant::now();
        let bar = (!stats).then(|| progress_bar(total)).filter(|bar| !bar.is_hidden());
        Meter { bar, stats, json, begun: now, told: now, told_entries: 0, ticks: 0, bytes: 0 }
    }

    /// So many bytes of input were read.
    pub(super) fn read(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// One that shows no bar: of what has no end.
    pub(super) fn without_bar(stats: bool, json: bool) -> Self {
        Meter { bar: None, ..Meter::new(stats, json, &[]) }
    }

    /// Looked at once a line, with how many were accepted and refused.
    pub(super) fn tick(&mut self, counts: impl Fn() -> (u64, u64), log: &Log) -> Result<(), Failure> {
        self.ticks += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(self.bytes);
            if self.ticks.is_multiple_of(1024) {
                bar.set_message(counted(counts().0, "entry"));
            }
        }
        if !self.stats || self.told.elapsed() < SECOND {
            return Ok(());
        }
        let (accepted, refused) = counts();
        let (before, time) = (self.told_entries, self.told.elapsed());
        (self.told, self.told_entries) = (Instant::now(), accepted);
        let stats = log.telemetry();
        if self.json {
            return print_json(&Second { accepted, refused, stats });
        }
        let rate = rate(accepted - before, time);
        note!("{}, {refused} refused, {rate} entries/s; {}", counted(accepted, "entry"), line(&stats));
        Ok(())
    }

    /// Prints something without tearing the bar.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(super) fn end(&self, entries: u64, telemetry: &Telemetry) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        // The object has it.
        if self.stats && !self.json {
            let time = self.begun.elapsed();
            let (entry_rate, byte_rate) = (rate(entries, time), rate(self.bytes, time));
            let (bytes, seconds) = (self.bytes, time.as_secs_f64());
            note!(
                "{} of {} in {seconds:.3} s: {entry_rate} entries/s, {byte_rate} bytes/s",
                counted(entries, "entry"),
                counted(bytes, "byte")
            );
            note_lines(table(telemetry).trim_end());
        }
    }
}

/// So many a second.
fn rate(count: u64, time: Duration) -> u128 {
    u128::from(count) * 1_000_000_000 / time.as_nanos().max(1)
}

/// What one wants to know while it runs.
fn line(telemetry: &Telemetry) -> String {
    let Telemetry { blocks, row_bytes, written_bytes, backpressure, syncs, queues, .. } = telemetry;
    format!(
        "{}, {} in, {} out; waited {:.1} s, longest sync {:.1} ms; staged {}, in flight {}",
        counted(*blocks, "block"),
        HumanBytes(*row_bytes),
        HumanBytes(*written_bytes),
        backpressure.time.as_secs_f64(),
        milliseconds(syncs.longest),
        HumanBytes(queues.staged_bytes),
        HumanBytes(queues.in_flight_bytes),
    )
}

/// All of it.
fn table(telemetry: &Telemetry) -> String {
    let Telemetry { entries, blocks, groups, row_bytes, written_bytes, stages, .. } = telemetry;
    let waits = |waits: &Waits| {
        let (time, longest) = (milliseconds(waits.time), milliseconds(waits.longest));
        format!("{}, {time:.1} ms together, {longest:.1} ms at most", counted(waits.count, "time"))
    };
    let percent = |part: u64, whole: u64| per(part * 100, whole);
    let stage = |time: Duration| per(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), *entries);
    let mut lines = vec![
        ("entries committed", entries.to_string()),
        ("from the first on", telemetry.durable_prefix.to_string()),
        ("refused, no memory, lost", {
            format!("{}, {}, {}", telemetry.refused, telemetry.timeouts, telemetry.lost)
        }),
        ("blocks, personal groups", format!("{blocks}, {groups}")),
        (
            "rows, before encoding",
            format!("{} ({:.1} bytes an entry)", HumanBytes(*row_bytes), per(*row_bytes, *entries)),
        ),
        ("written", {
            let ratio = per(*row_bytes, *written_bytes);
            format!(
                "{} ({:.1} bytes an entry, {ratio:.2} times less)",
                HumanBytes(*written_bytes),
                per(*written_bytes, *entries)
            )
        }),
        ("segments, given up", format!("{}, {}", telemetry.segments, telemetry.abandoned)),
        ("dictionary hits", {
            let lookups = telemetry.dictionary_lookups;
            format!("{:.1} % of {lookups}", percent(telemetry.dictionary_hits, lookups))
        }),
        ("waits for memory", waits(&telemetry.backpressure)),
        ("syncs", waits(&telemetry.syncs)),
        ("checkpoints", waits(&telemetry.checkpoints)),
    ];
    for (name, time) in stages.each() {
        lines.push((name, format!("{:.0} ns an entry", stage(time))));
    }
    lines.iter().map(|(name, value)| format!("  {name:<26}{value}\n")).collect()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A quotient, for people.
#[allow(clippy::cast_precision_loss)]
fn per(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
