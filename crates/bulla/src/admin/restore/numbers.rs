//! The numbers of data subjects that blocks have, however many: a bit for each, where they lie close.

use crate::read::reading::Reading;
use bulla_store::Result;
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Default)]
pub(super) struct Numbers(BTreeMap<u64, u64>);

impl Numbers {
    /// Adds those in the blocks from frame `from` on.
    ///
    /// # Errors
    /// As [`Reading::each_group`].
    pub(super) fn add_blocks(&mut self, reading: &Reading<'_>, from: u64) -> Result<()> {
        reading.each_group(from, |numbers| {
            for number in numbers {
                *self.0.entry(number / 64).or_default() |= 1 << (number % 64);
            }
        })
    }

    /// The number behind the greatest.
    pub(super) fn end(&self) -> u64 {
        let last = self.0.last_key_value();
        last.map_or(0, |(word, bits)| (word * 64 + 63 - u64::from(bits.leading_zeros())).saturating_add(1))
    }

    /// How many of them, from `before` on, have keys that are lost, and not erased.
    pub(super) fn lost_from(&self, before: u64, erased: &BTreeSet<u64>) -> u64 {
        let words = self.0.range(before / 64..).map(|(word, bits)| match *word == before / 64 {
            true => bits >> (before % 64),
            false => *bits,
        });
        let all = words.map(|bits| u64::from(bits.count_ones())).sum::<u64>();
        all - erased.range(before..).filter(|number| self.has(**number)).count() as u64
    }

    fn has(&self, number: u64) -> bool {
        self.0.get(&(number / 64)).is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }
}
