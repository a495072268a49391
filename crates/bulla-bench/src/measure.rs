//! Figures that every run of appends has.

use crate::feed::Source;
use crate::outcome::{Failure, Outcome};
use crate::process;
use std::path::Path;
use std::time::{Duration, Instant};

/// Names of figures.
pub(crate) mod figure {
    pub(crate) const ENTRIES: &str = "entries";
    /// From the first append until everything is written, synced and closed.
    pub(crate) const SECONDS: &str = "seconds";
    pub(crate) const RATE: &str = "entries_per_second";
    pub(crate) const LOGICAL_RATE: &str = "logical_gib_per_second";
    /// Of the log's directory.
    pub(crate) const DISK: &str = "disk_bytes_per_entry";
    /// Data subjects that the vault knows, and what it takes for each of them.
    pub(crate) const PEOPLE: &str = "people";
    pub(crate) const VAULT: &str = "vault_bytes_per_person";
    /// Of an entry's row.
    pub(crate) const LOGICAL: &str = "logical_bytes_per_entry";
    /// Of an entry's line of text.
    pub(crate) const TEXT: &str = "text_bytes_per_entry";
    /// Of an entry's line of JSON, compressed by `gzip -1` with all others.
    pub(crate) const GZIP: &str = "gzip_1_bytes_per_entry";
    /// What no encoding goes below: entropy, what was drawn of the pools included.
    pub(crate) const BOUND: &str = "bound_bytes_per_entry";
    /// Most resident memory, less the entries that are held.
    pub(crate) const MEMORY: &str = "memory_mib";
    pub(crate) const INPUT: &str = "input_mib";
    pub(crate) const CPU: &str = "cpu_ns_per_entry";
    /// Taking an entry from where it is held or made: in `CPU`, and in no stage.
    pub(crate) const FEED: &str = "feed_ns_per_entry";
    pub(crate) const FILES: &str = "files";
    pub(crate) const BLOCKS: &str = "blocks";
    pub(crate) const UNITS: &str = "units";
    /// What the log holds besides bodies, as a share of it.
    pub(crate) const INTEGRITY: &str = "integrity_share";
    pub(crate) const VERIFIED: &str = "verified_entries_per_second";
    pub(crate) const EXPORTED: &str = "exported_entries_per_second";

    /// Processor time of a stage, in nanoseconds an entry.
    pub(crate) const STAGE_PREFIX: &str = "stage_ns.";
}

/// Time that passes, by the clock and on the processors.
pub(crate) struct Watch {
    start: Instant,
    cpu: Duration,
}

/// What has passed.
pub(crate) struct Passed {
    pub(crate) time: Duration,
    pub(crate) cpu: Duration,
    memory: u64,
}

impl Watch {
    /// Forgets how much memory the process had until now, too.
    pub(crate) fn start() -> Self {
        process::forget_peak();
        Watch { start: Instant::now(), cpu: process::cpu() }
    }

    pub(crate) fn stop(&self) -> Passed {
        Passed { time: self.start.elapsed(), cpu: process::cpu() - self.cpu, memory: process::peak_memory() }
    }
}

/// The figures of a run that appended so many entries.
pub(crate) fn appended(source: &Source, entries: u64, passed: &Passed, disk: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let (count, seconds) = (entries as f64, passed.time.as_secs_f64());
    let (workload, lengths) = (source.workload(), source.lengths());
    outcome.set(figure::ENTRIES, count);
    outcome.set(figure::SECONDS, seconds);
    outcome.set(figure::RATE, count / seconds);
    outcome.set(figure::LOGICAL_RATE, count * lengths.row / seconds / f64::from(1 << 30));
    outcome.set(figure::DISK, disk as f64 / count);
    outcome.set(figure::LOGICAL, lengths.row);
    outcome.set(figure::TEXT, lengths.text_of(entries));
    outcome.set(
        figure::BOUND,
        workload.entropy_per_entry() + workload.pool_bytes_in(source.draws(entries)) / count,
    );
    outcome.set(figure::MEMORY, passed.memory.saturating_sub(source.size()) as f64 / f64::from(1 << 20));
    outcome.set(figure::INPUT, source.size() as f64 / f64::from(1 << 20));
    outcome.set(figure::CPU, passed.cpu.as_nanos() as f64 / count);
    outcome
}

impl Outcome {
    /// Sets a stage's processor time.
    pub(crate) fn stage(&mut self, name: &str, time: Duration, entries: u64) {
        self.set(format!("{}{name}", figure::STAGE_PREFIX), time.as_nanos() as f64 / entries.max(1) as f64);
    }

    /// Sets the stage that the threads which append are: what they took, less taking the entries.
    pub(crate) fn producers(&mut self, name: &str, time: Duration, entries: u64, feed: f64) {
        let each = time.as_nanos() as f64 / entries.max(1) as f64;
        self.set(figure::FEED, feed);
        self.set(format!("{}{name}", figure::STAGE_PREFIX), (each - feed).max(0.0));
    }
}

/// Bytes and number of the files in a directory and below.
pub(crate) fn files(directory: &Path) -> Result<(u64, u64), Failure> {
    let (mut bytes, mut count) = (0, 0);
    for item in std::fs::read_dir(directory)? {
        let item = item?;
        let metadata = item.metadata()?;
        if metadata.is_dir() {
            let (below, files) = files(&item.path())?;
            bytes += below;
            count += files;
        } else {
            bytes += metadata.len();
            count += 1;
        }
    }
    Ok((bytes, count))
}
