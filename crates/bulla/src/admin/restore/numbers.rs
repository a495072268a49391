//! The numbers of data subjects that blocks have, however many: a bit for each, where they lie close; and the greatest that events have.

use crate::read::reading::Reading;
use crate::scan::events::each_event;
use crate::scan::manifest::Manifest;
use bulla_store::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// See the module.
#[derive(Default)]
pub(super) struct Numbers {
    of_blocks: BTreeMap<u64, u64>,
    /// The number behind the greatest that an event names: of somebody who may be in no block, since what was written of them is lost.
    behind_events: u64,
}

impl Numbers {
    /// Adds those in the blocks from frame `from` on.
    ///
    /// # Errors
    /// As [`Reading::each_group`].
    pub(super) fn add_blocks(&mut self, reading: &Reading<'_>, from: u64) -> Result<()> {
        reading.each_group(from, |numbers| {
            for number in numbers {
                *self.of_blocks.entry(number / 64).or_default() |= 1 << (number % 64);
            }
        })
    }

    /// Adds those that events from frame `from` on name.
    ///
    /// # Errors
    /// As [`each_event`].
    pub(super) fn add_events(&mut self, manifest: &Manifest, from: u64) -> Result<()> {
        each_event(manifest, from, |_, event| {
            event.subjects().iter().for_each(|number| self.add_named(*number))
        })
    }

    /// Adds one that an event names. No vault gives any from 2^32 - 1 on.
    pub(super) fn add_named(&mut self, number: u64) {
        if number < u64::from(u32::MAX) {
            self.behind_events = self.behind_events.max(number + 1);
        }
    }

    /// The number behind the greatest.
    pub(super) fn end(&self) -> u64 {
        self.behind_blocks().max(self.behind_events)
    }

    /// The same of those of blocks.
    pub(super) fn behind_blocks(&self) -> u64 {
        let last = self.of_blocks.last_key_value();
        last.map_or(0, |(word, bits)| (word * 64 + 63 - u64::from(bits.leading_zeros())).saturating_add(1))
    }

    /// How many of those of blocks are among those that the vault left out, ascending, and not erased: their keys are lost.
    pub(super) fn lost(&self, left_out: &[Range<u64>], erased: &BTreeSet<u64>) -> u64 {
        let is_left_out = |number| {
            let at = left_out.partition_point(|range| range.end <= number);
            left_out.get(at).is_some_and(|range| range.start <= number)
        };
        self.iter().filter(|number| is_left_out(*number) && !erased.contains(number)).count() as u64
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        let each = |(word, bits): (&u64, &u64)| {
            let (first, bits) = (word * 64, *bits);
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit)
        };
        self.of_blocks.iter().flat_map(each)
    }
}
