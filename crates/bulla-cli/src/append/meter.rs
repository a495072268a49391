//! How far `bulla append` has come: a bar on a terminal; with `--stats` a line a second there, and one at the end.

use super::input::Input;
use crate::output::progress_bar;
use indicatif::ProgressBar;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// The time between two lines.
const SECOND: Duration = Duration::from_secs(1);

pub(super) struct Meter {
    /// Hides itself where there is no terminal.
    bar: Option<ProgressBar>,
    stats: bool,
    lines: bool,
    begun: Instant,
    told: Instant,
    told_entries: u64,
    bytes: u64,
}

impl Meter {
    pub(super) fn new(stats: bool, inputs: &[Input]) -> Self {
        let total = inputs.iter().map(Input::length).sum::<Option<u64>>().unwrap_or_default();
        let lines = stats && io::stderr().is_terminal();
        let now = Instant::now();
        let bar = (!stats).then(|| progress_bar(total)).filter(|bar| !bar.is_hidden());
        Meter { bar, stats, lines, begun: now, told: now, told_entries: 0, bytes: 0 }
    }

    /// So many bytes of input were read.
    pub(super) fn read(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub(super) fn tick(&mut self, entries: u64, refused: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.bytes);
            if entries.is_multiple_of(1024) {
                bar.set_message(format!("{entries} entries"));
            }
        }
        if self.lines && self.told.elapsed() >= SECOND {
            let rate = rate(entries - self.told_entries, self.told.elapsed());
            note!("{entries} entries, {refused} refused, {rate} entries/s");
            (self.told, self.told_entries) = (Instant::now(), entries);
        }
    }

    /// Prints something without tearing the bar.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(super) fn end(&self, entries: u64) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.stats {
            let time = self.begun.elapsed();
            let (entry_rate, byte_rate) = (rate(entries, time), rate(self.bytes, time));
            let (bytes, seconds) = (self.bytes, time.as_secs_f64());
            note!(
                "{entries} entries of {bytes} bytes in {seconds:.3} s: {entry_rate} entries/s, {byte_rate} bytes/s"
            );
        }
    }
}

/// So many a second.
fn rate(count: u64, time: Duration) -> u128 {
    u128::from(count) * 1_000_000_000 / time.as_nanos().max(1)
}
