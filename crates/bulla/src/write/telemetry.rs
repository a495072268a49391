//! What a log has done since it was opened, and how deep it is in work.
//!
//! Everything is counted once a block, a group of frames or a wait, never once an entry.

use bulla_columns::account::{Account, Task};
use bulla_crypto::environment::Clock;
use serde::{Serialize, Serializer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A snapshot, by [`crate::Log::telemetry`]. Times serialise as whole nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Telemetry {
    /// Entries that are durable: [`Log::acknowledged`](crate::Log::acknowledged).
    pub entries: u64,
    /// How many entries, from the first on, are durable without one missing:
    /// [`Log::durable_prefix`](crate::Log::durable_prefix).
    pub durable_prefix: u64,
    /// Blocks that were sealed, and the personal groups in them.
    pub blocks: u64,
    /// See `blocks`.
    pub groups: u64,
    /// Bytes of the rows that were sealed: what the entries come to before they are encoded.
    pub row_bytes: u64,
    /// Bytes that were written to segments.
    pub written_bytes: u64,
    /// Entries that were refused because a field breaks a limit.
    pub refused: u64,
    /// Entries that found no memory in time.
    pub timeouts: u64,
    /// Entries that were accepted and then lost inside; a gap in the log says so, too.
    pub lost: u64,
    /// Entries that were dropped since nothing took what the log writes ([`OnFailure::Drop`](crate::OnFailure::Drop)); an event in the log
    /// says so, too, once something does.
    pub dropped: u64,
    /// How many of them are in files of the setting `error_path`.
    pub set_aside: u64,
    /// How often appending waited for memory.
    pub backpressure: Waits,
    /// Segments that were begun.
    pub segments: u64,
    /// Segments that were given up because a write or a sync failed.
    pub abandoned: u64,
    /// How often another path took over, and how long each time it took from the beginning of the group that the one before did not
    /// take any more until that was durable: in the meantime nothing was acknowledged.
    pub failovers: Waits,
    /// Paths of the log that do not work at present: those that are missing or could not be locked when it was opened, those that failed when
    /// something was written to them last, and all, as long as none takes what is written. 0 of a log that has one path.
    pub failing_paths: u64,
    /// Syncs of segments.
    pub syncs: Waits,
    /// Checkpoints that were published.
    pub checkpoints: Waits,
    /// Strings that were looked up in a block's dictionaries, and those that were there already.
    pub dictionary_lookups: u64,
    /// See `dictionary_lookups`.
    pub dictionary_hits: u64,
    /// Processor time.
    pub stages: Stages,
    /// How much is under way now.
    pub queues: Queues,
    /// The witnesses that the log asks, in the order of its policy.
    pub witnesses: Vec<WitnessTelemetry>,
}

/// How a witness stands that the log asks for cosignatures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WitnessTelemetry {
    /// What the log's policy calls it.
    pub name: String,
    /// The prefix of its address.
    pub address: String,
    /// How many frames the newest checkpoint covers that it has cosigned, since the log was opened or before; nothing where that is not known.
    pub frames: Option<u64>,
    /// The time in that cosignature, by the witness's clock, in seconds since the Unix epoch.
    pub time: Option<u64>,
    /// How often asking it has failed since the log was opened.
    pub failures: u64,
    /// Why it has not cosigned what it was asked for last; nothing where it has, or was not asked yet.
    pub failure: Option<String>,
    /// Whether that is because it has cosigned another history of the log, or a longer one: what no later attempt mends.
    pub refuses: bool,
}

/// Things that take time: how often, how long together, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Waits {
    /// How often.
    pub count: u64,
    /// All of them together.
    #[serde(serialize_with = "nanoseconds")]
    pub time: Duration,
    /// The longest.
    #[serde(serialize_with = "nanoseconds")]
    pub longest: Duration,
}

/// Processor time by what it was spent on, over all threads of the log. That of `append` is the caller's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stages {
    /// Finding a block's rows, who is in which personal group, and their keys.
    #[serde(serialize_with = "nanoseconds")]
    pub group: Duration,
    /// Rows to columns.
    #[serde(serialize_with = "nanoseconds")]
    pub encode: Duration,
    /// General compressors.
    #[serde(serialize_with = "nanoseconds")]
    pub compress: Duration,
    /// Units, their roots, digests.
    #[serde(serialize_with = "nanoseconds")]
    pub hash: Duration,
    /// Encryption.
    #[serde(serialize_with = "nanoseconds")]
    pub encrypt: Duration,
    /// The seal chain, writes and syncs.
    #[serde(serialize_with = "nanoseconds")]
    pub commit: Duration,
    /// Checkpoints.
    #[serde(serialize_with = "nanoseconds")]
    pub checkpoint: Duration,
}

impl Stages {
    /// Each with its name, in the order in which a block meets them.
    pub fn each(&self) -> [(&'static str, Duration); 7] {
        let Stages { group, encode, compress, hash, encrypt, commit, checkpoint } = *self;
        [
            ("group", group),
            ("encode", encode),
            ("compress", compress),
            ("hash", hash),
            ("encrypt", encrypt),
            ("commit", commit),
            ("checkpoint", checkpoint),
        ]
    }
}

/// How much is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Queues {
    /// Bytes of rows that wait for a block.
    pub staged_bytes: u64,
    /// Buffers of producers and of blocks that are being sealed.
    pub buffers: u64,
    /// Bytes of rows that have their numbers and are not committed yet.
    pub in_flight_bytes: u64,
    /// Sealed frames that wait to be committed.
    pub sealed_frames: u64,
    /// Entries that were accepted and that no sync has covered yet: at most so many are lost where the process is killed now, in
    /// mode `os` where the machine is.
    pub pending_entries: u64,
    /// The age of the oldest of them, zero where there is none. It is never less than that: no clock is asked for an entry, so it is
    /// more by what passed since its producer's buffer was looked at before, which is when that was new, at a flush, or after
    /// `linger`, which is up to 40 times as long where little happens. Zero always on a clock that has no steady time.
    #[serde(serialize_with = "nanoseconds")]
    pub lag: Duration,
}

fn nanoseconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// What threads count as they go.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) blocks: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) row_bytes: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) set_aside: AtomicU64,
    looked_up: AtomicU64,
    found: AtomicU64,
    spent: [AtomicU64; Task::COUNT],
    /// Processor time of what `spent` is the time of.
    pub(crate) sealing: AtomicU64,
    pub(crate) grouping: AtomicU64,
    pub(crate) committing: AtomicU64,
    pub(crate) publishing: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) segments: AtomicU64,
    pub(crate) abandoned: AtomicU64,
    pub(crate) failovers: WaitsMeter,
    pub(crate) syncs: WaitsMeter,
    pub(crate) checkpoints: WaitsMeter,
}

/// [`Waits`] that are counted by one thread and read by others, which may see one of the three figures before the others.
#[derive(Default)]
pub(crate) struct WaitsMeter {
    count: AtomicU64,
    nanoseconds: AtomicU64,
    longest: AtomicU64,
}

impl WaitsMeter {
    /// Adds one that took so many nanoseconds.
    pub(crate) fn add(&self, nanoseconds: u64) {
        count(&self.count, 1);
        count(&self.nanoseconds, nanoseconds);
        self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    fn read(&self) -> Waits {
        Waits {
            count: self.count.load(Ordering::Relaxed),
            time: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)),
            longest: Duration::from_nanos(self.longest.load(Ordering::Relaxed)),
        }
    }
}

/// Counts, which nothing is decided by.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Meter {
    /// What sealing a block took.
    pub(crate) fn sealed(&self, account: &Account) {
        for (sum, spent) in self.spent.iter().zip(account.spent) {
            count(sum, spent);
        }
        count(&self.looked_up, account.looked_up);
        count(&self.found, account.found);
    }

    /// Entries that were lost inside.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Entries that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// What was counted here; the rest is for others to fill in.
    pub(crate) fn read(&self) -> Telemetry {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let spent = self.spent.each_ref().map(read);
        let (elapsed, processor) = (spent.iter().sum::<u64>(), read(&self.sealing));
        // Threads are timed by a clock that is quick to read and goes on while they wait for a processor.
        let share = |work: Task| {
            let nanos = u128::from(spent[work as usize]) * u128::from(processor) / u128::from(elapsed.max(1));
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        Telemetry {
            blocks: read(&self.blocks),
            groups: read(&self.groups),
            row_bytes: read(&self.row_bytes),
            refused: read(&self.refused),
            timeouts: read(&self.timeouts),
            lost: read(&self.lost),
            dropped: read(&self.dropped),
            set_aside: read(&self.set_aside),
            written_bytes: read(&self.written_bytes),
            segments: read(&self.segments),
            abandoned: read(&self.abandoned),
            failovers: self.failovers.read(),
            syncs: self.syncs.read(),
            checkpoints: self.checkpoints.read(),
            dictionary_lookups: read(&self.looked_up),
            dictionary_hits: read(&self.found),
            stages: Stages {
                group: Duration::from_nanos(read(&self.grouping)),
                encode: share(Task::Encode),
                compress: share(Task::Compress),
                hash: share(Task::Hash),
                encrypt: share(Task::Encrypt),
                commit: Duration::from_nanos(read(&self.committing)),
                checkpoint: Duration::from_nanos(read(&self.publishing)),
            },
            ..Telemetry::default()
        }
    }
}

/// Works, and adds the processor time that it took.
pub(crate) fn timed<T>(clock: &dyn Clock, sum: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let start = clock.processor();
    let done = work();
    count(sum, clock.processor().saturating_sub(start));
    done
}
