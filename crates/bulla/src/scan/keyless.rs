//! Data subjects whose keys are not at hand, though the log tells of no erasure of theirs.
//!
//! Invariant: a group that nobody here can open, and that the log does not say was erased, names one of them. So what a query
//! does not find in groups that name none of them is not there.

use crate::fields::filter::TextField;
use crate::scan::erasures::Erased;
use crate::scan::query::Query;
use bulla_crypto::group::{GroupKeys, require_told};
use bulla_store::{Error, Result};
use std::ops::Range;

/// The most numbers that the index is asked for one by one.
const MAX_LISTED: u64 = 4096;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Keyless {
    /// Below `given`, ascending.
    numbers: Vec<Range<u64>>,
    /// All from here on.
    given: u64,
    /// The frames before this one have no number from `given` on.
    frames: u64,
}

impl Keyless {
    /// No query has to look for any.
    pub(crate) const NOBODY: Keyless = Keyless { numbers: Vec::new(), given: u64::MAX, frames: u64::MAX };

    /// Those whom a query has to look for: where it names a data subject, and the keys are meant to be everybody's. One that asks
    /// for something else that is personal opens every group that it meets, and finds whose keys are missing there.
    /// `erased` says whose keys were destroyed, and is asked where somebody has none.
    ///
    /// # Errors
    /// Where the keys cannot be looked up; as `erased`.
    pub(crate) fn to_look_for(
        query: &Query,
        keys: Option<&dyn GroupKeys>,
        erased: impl FnOnce() -> Result<Erased>,
    ) -> Result<Self> {
        match keys.filter(|_| query.fields.values(TextField::Subject).is_some()) {
            Some(keys) => Self::of(keys, erased),
            None => Ok(Self::NOBODY),
        }
    }

    /// Whom the keys at hand lack; nobody where they are not meant to be everybody's.
    ///
    /// # Errors
    /// As [`Keyless::to_look_for`].
    pub(crate) fn of(keys: &dyn GroupKeys, erased: impl FnOnce() -> Result<Erased>) -> Result<Self> {
        if !keys.is_complete() {
            return Ok(Self::NOBODY);
        }
        let mut missing = keys.missing(0)?;
        let mut from = 0;
        while let Some(more) = missing.more {
            if more <= from {
                return Err(Error::unavailable("who has no key is told twice"));
            }
            from = more;
            let rest = keys.missing(from)?;
            // Of frames that were signed meanwhile, and of numbers given then, the first answer knew nothing.
            missing.numbers.extend(rest.numbers);
            missing.more = rest.more;
        }
        let numbers = match missing.numbers.is_empty() {
            true => Vec::new(),
            false => without(missing.numbers, &erased()?),
        };
        Ok(Keyless { numbers, given: missing.given, frames: missing.frames })
    }

    /// Whether groups of the log's first `frames` frames name none of them.
    pub(crate) fn is_nobody_below(&self, frames: u64) -> bool {
        self.numbers.is_empty() && self.frames >= frames
    }

    /// Whether one of these is a number of somebody without a key.
    pub(crate) fn are_among(&self, subjects: &[u64]) -> bool {
        subjects.iter().any(|number| {
            let after = self.numbers.partition_point(|range| range.start <= *number);
            *number >= self.given || after > 0 && *number < self.numbers[after - 1].end
        })
    }

    /// The numbers that groups of all frames may name, unless they are too many.
    pub(crate) fn listed(&self) -> Option<impl Iterator<Item = u64>> {
        let count = self.numbers.iter().fold(0u64, |sum, range| sum.saturating_add(range.end - range.start));
        (count <= MAX_LISTED).then(|| self.numbers.iter().cloned().flatten())
    }

    /// The frame from which on groups may name others than those.
    pub(crate) fn first_frame(&self) -> u64 {
        self.frames
    }
}

/// The numbers of data subjects by name, for a query. Where somebody is not found, that is sure: the key of nobody is destroyed in an
/// erasure of which the log does not tell. `erased` is as for [`Keyless::to_look_for`].
///
/// # Errors
/// `Erased` where it is not sure; else where the keys cannot be looked up; as `erased`.
pub(crate) fn numbers_of(
    names: &[&str],
    keys: &dyn GroupKeys,
    erased: impl FnOnce() -> Result<Erased>,
) -> Result<Vec<Option<u64>>> {
    let found = keys.numbers(names)?;
    if found.contains(&None) {
        // Asked after the names: who was erased meanwhile is among these, or the log tells of it. No number is that great.
        let erasing = keys.missing(u64::MAX)?.erasing;
        if !erasing.is_empty() {
            let told = erased()?.numbers;
            require_told(&found, &erasing, |number| told.contains(&number))?;
        }
    }
    Ok(found)
}

/// The numbers of these ranges that were not erased.
fn without(ranges: Vec<Range<u64>>, erased: &Erased) -> Vec<Range<u64>> {
    let mut erased = erased.numbers.iter().copied().collect::<Vec<_>>();
    erased.sort_unstable();
    let mut left = Vec::new();
    for Range { start, end } in ranges {
        let first = erased.partition_point(|number| *number < start);
        let within = erased[first..].iter().copied().take_while(|number| *number < end);
        let mut from = start;
        for number in within {
            left.push(from..number);
            from = number + 1;
        }
        left.push(from..end);
    }
    left.retain(|range| range.start < range.end);
    left
}
