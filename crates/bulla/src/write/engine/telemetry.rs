//! What an engine tells of itself.

use super::Engine;
use super::sequencer::Sequencer;
use crate::write::stage::queue::Depth;
use crate::write::telemetry::{Queues, Telemetry, Waits};

impl Engine {
    /// What was done so far. Waits for no medium.
    pub(crate) fn telemetry(&self) -> Telemetry {
        let Depth { staged, buffers, waits } = self.staging.depth();
        let queues = Queues {
            staged_bytes: staged as u64,
            buffers: buffers as u64,
            in_flight_bytes: self.staging.look_at_sequencer(Sequencer::in_flight) as u64,
            sealed_frames: self.commits.length() as u64,
        };
        let entries = self.progress.entries();
        Telemetry {
            entries: entries.kept,
            durable_prefix: entries.prefix,
            backpressure: Waits { count: waits.count, time: waits.time, longest: waits.longest },
            queues,
            ..self.meter.read()
        }
    }
}
