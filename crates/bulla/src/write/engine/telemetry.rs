//! What an engine tells of itself.

use super::Engine;
use crate::write::stage::queue::Depth;
use crate::write::telemetry::{Queues, Telemetry, Waits};
use bulla_store::Paths;
use std::time::Duration;

impl Engine {
    /// What was done so far. Waits for no medium.
    pub(crate) fn telemetry(&self) -> Telemetry {
        // In the order in which entries go, so that none is between two looks.
        let Depth { staged, buffers, waits, taken, since } = self.staging.depth();
        let (in_flight, numbered) =
            self.staging.look_at_sequencer(|sequencer| (sequencer.in_flight(), sequencer.oldest()));
        let (entries, unsynced) = self.progress.entries_and_unsynced();
        let pending = taken.saturating_sub(entries.settled);
        let oldest = [since, numbered, unsynced].into_iter().flatten().min().filter(|_| pending > 0);
        let lag = oldest.map_or(0, |since| self.environment.clock.steady().saturating_sub(since));
        let queues = Queues {
            staged_bytes: staged as u64,
            buffers: buffers as u64,
            in_flight_bytes: in_flight as u64,
            sealed_frames: self.commits.length() as u64,
            pending_entries: pending,
            lag: Duration::from_nanos(lag),
        };
        Telemetry {
            entries: entries.kept,
            durable_prefix: entries.prefix,
            backpressure: Waits { count: waits.count, time: waits.time, longest: waits.longest },
            queues,
            witnesses: self.witnesses.lock().clone(),
            failing_paths: self.log.paths().map_or(0, Paths::failing) as u64,
            ..self.meter.read()
        }
    }
}
