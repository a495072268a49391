//! Erasing data subjects: who orders it, who is held, what the log tells of it.
//!
//! The keys are destroyed by the [vault](bulla_vault), step by step; `engine::erasing` sees to it that nothing is sealed
//! under them meanwhile, and that the log tells of it. What remains is in [`crate::format::event::Remains`].

pub(crate) mod hold_order;
pub(crate) mod holds;
mod key_change;
mod order;
pub(crate) mod pending;
pub(crate) mod refusals;
pub(crate) mod salt;
pub(crate) mod signed_with;
pub(crate) mod told_holds;

use serde::{Deserialize, Serialize};
use std::fmt;

pub use hold_order::{HoldOrder, ReleaseOrder};
pub use holds::{Hold, HoldDifference, HoldUnderWay};
pub use key_change::ErasureKeyChange;
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
    /// Where it had been: who of the order is known again by the same name, or was not known then. They are new persons, whom
    /// this order does not erase.
    #[serde(default)]
    pub known_again: Vec<KnownAgain>,
}

/// Somebody who has a name of an order that was carried out, and was not erased by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KnownAgain {
    /// The name.
    pub subject: String,
    /// The number that it has now.
    pub number: u64,
}

impl KnownAgain {
    /// Those of `names` who have a number now.
    pub(crate) fn of<'a>(names: impl Iterator<Item = &'a str>, numbers: &[Option<u64>]) -> Vec<Self> {
        let known = names.zip(numbers);
        let known = known.filter_map(|(name, number)| Some((name.to_owned(), (*number)?)));
        known.map(|(subject, number)| KnownAgain { subject, number }).collect()
    }
}

/// What came of an erasure that was cut short: whoever opens the log goes on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumedErasure {
    /// It is finished, and a checkpoint covers the event that tells of it.
    Finished {
        /// The numbers of the data subjects, ascending.
        numbers: Vec<u64>,
    },
    /// Somebody of it is held by now: nothing was destroyed, and the log tells of none.
    Withdrawn {
        /// The numbers of the data subjects, ascending.
        numbers: Vec<u64>,
        /// Who is held by whom, or why that cannot be told.
        reason: String,
    },
    /// It was written down, and neither the vault nor the log knows of it: nobody is erased by it.
    Forgotten {
        /// What was written down, or how that is damaged.
        written: std::result::Result<Vec<u64>, String>,
    },
    /// It was written down, the keys of its data subjects are gone, and the log does not tell of it, and is not made to.
    Untold {
        /// The numbers of the data subjects, ascending.
        numbers: Vec<u64>,
        /// Why the log is not made to tell of it.
        reason: String,
    },
}

impl fmt::Display for ResumedErasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { numbers } => write!(
                f,
                "an erasure of data subjects {numbers:?}, which was cut short, is finished: `bulla events DIR --kind erased` \
                 tells in which frame"
            ),
            Self::Withdrawn { numbers, reason } => write!(
                f,
                "an erasure of data subjects {numbers:?}, which was cut short before anything was destroyed, is withdrawn: \
                 {reason}; the order can be given again then"
            ),
            Self::Forgotten { written } => {
                match written {
                    Ok(numbers) => write!(
                        f,
                        "`erasure.pending` told of an erasure of data subjects {numbers:?}, of which neither the vault nor the log \
                         knows; it was cut short before it began, or an older vault was put back since then. The file is removed, \
                         and nobody is erased by it"
                    )?,
                    Err(damage) => write!(
                        f,
                        "`erasure.pending` told of an erasure, of which the vault does not know, and cannot be read: {damage}; the \
                         erasure was cut short before it began, or is finished, or an older vault was put back since then. The file \
                         is removed"
                    )?,
                }
                f.write_str(": give the order again, unless `bulla events DIR --kind erased` tells of it")
            }
            Self::Untold { numbers, reason } => write!(
                f,
                "`erasure.pending` told of an erasure of data subjects {numbers:?}, whose keys are gone, and of which the log does not \
                 tell; it is not told of now: {reason}. The file is removed: `bulla verify` tells of their entries as `key-lost`"
            ),
        }
    }
}
