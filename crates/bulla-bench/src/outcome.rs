//! What comes out of a run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What came out of a run: figures by name, and where there is one, a distribution of latencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) figures: BTreeMap<String, f64>,
    /// Percentile and nanoseconds, for each kind of what was timed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) latencies: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Outcome {
    pub(crate) fn set(&mut self, name: impl Into<String>, figure: f64) {
        self.figures.insert(name.into(), figure);
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }
}
