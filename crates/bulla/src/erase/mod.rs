//! Erasing data subjects: who orders it, who is held, what the log tells of it.
//!
//! The keys are destroyed by the [vault](bulla_vault), step by step; `engine::erasing` sees to it that nothing is sealed
//! under them meanwhile, and that the log tells of it. What remains is in [`crate::format::event::Remains`].

pub(crate) mod hold_order;
pub(crate) mod holds;
pub(crate) mod key;
mod order;
pub(crate) mod pending;
pub(crate) mod salt;
pub(crate) mod told_holds;

use serde::{Deserialize, Serialize};
use std::fmt;

pub use hold_order::{HoldOrder, ReleaseOrder};
pub use holds::{Hold, HoldDifference, HoldUnderWay};
pub use order::ErasureOrder;

/// An erasure that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Erasure {
    /// The numbers of the data subjects, ascending.
    pub numbers: Vec<u64>,
    /// Those of the order whom the vault did not know: nobody of that name was logged, or they were erased before. Of them
    /// nothing was erased, and the log tells of the others only. Where keys are lost they may be known all the same.
    pub unknown: Vec<String>,
    /// The frame of the event that tells of it, which a checkpoint covers.
    pub frame: u64,
    /// Whether keys are lost that the log does not say were erased. Then nobody can tell of those names whether they were logged.
    pub keys_lost: bool,
    /// Whether this order had been carried out before, so that nothing was done now.
    pub before: bool,
}

/// An erasure that was begun and withdrawn again, since somebody of it is held: nothing was destroyed, and the log tells of none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithdrawnErasure {
    /// The numbers of the data subjects, ascending.
    pub numbers: Vec<u64>,
    /// Who is held by whom, or why that cannot be told.
    pub reason: String,
}

impl fmt::Display for WithdrawnErasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { numbers, reason } = self;
        write!(
            f,
            "an erasure of data subjects {numbers:?}, which was cut short before anything was destroyed, is withdrawn: {reason}; \
             after that its order can be given again"
        )
    }
}
