//! What a command leaves behind: the file that tables and plots are made of.

use crate::claims::Claim;
use crate::contest::Case;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// Everything that a command measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// What was run, and of which commit.
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) started: String,
    pub(crate) rounds: usize,
    pub(crate) cases: Vec<Case>,
    pub(crate) claims: Vec<Claim>,
    /// What was to be measured and could not be, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_measured: Vec<String>,
}
