//! What a witness is asked for, and what came of it.

use bulla_proof::tree::TreeHead;
use std::sync::Arc;

/// A checkpoint that a witness is to be asked for.
#[derive(Clone)]
pub(crate) struct Job {
    /// The note as it was published.
    pub(crate) note: Arc<str>,
    /// What of it is signed.
    pub(crate) text: Arc<str>,
    pub(crate) head: TreeHead,
    /// How many frames the newest checkpoint covers by now.
    pub(crate) newest: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// What came of asking a witness.
pub(crate) struct Asked {
    /// The size of the tree that it has cosigned last, as far as that is known.
    pub(crate) known: Option<u64>,
    /// Its cosignature, as a signature line with its newline, and the time in it, in seconds since 1970.
    pub(crate) outcome: Result<(String, u64), Refusal>,
}

/// Why a witness did not cosign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) why: String,
    /// Whether the witness has seen another tree of this log, or a larger one: what no later attempt mends.
    pub(crate) other_tree: bool,
}

impl Refusal {
    pub(crate) fn passing(why: impl Into<String>) -> Self {
        Refusal { why: why.into(), other_tree: false }
    }

    pub(crate) fn other_tree(why: impl Into<String>) -> Self {
        Refusal { why: why.into(), other_tree: true }
    }
}
