//! What was read of sources behind what the log has of them, and became no entry: records that were refused, for instance.
//!
//! Blocks do not say so before an entry comes after it, whose range begins where the range of the entry before it ends. Until then it
//! is in `sources.passed`. That no range of it holds an entry is so whatever log it lies beside; it only counts where it goes on from
//! the end of what the log has, so that nothing that the log lacks is between them.

use super::table::{Known, SourceState, Table};
use super::{CheckedRange, MAX_SOURCES_OF_LOG, Malformed, Ranges, SourceEntry, SourceId, decode_entries};
use bulla_proof::varint;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was passed of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The source's label, where no durable block has one.
    pub(crate) label: Option<Arc<[u8]>>,
    pub(crate) range: CheckedRange,
}

impl Passed {
    /// Whether it goes on from what the log has of the source.
    fn counts(&self, known: Option<&Known>) -> bool {
        match known {
            Some(known) => known.ranges.0.iter().any(|range| range.end == self.range.start),
            None => self.label.is_some(),
        }
    }

    /// Whether the log has what comes behind its beginning.
    fn is_over(&self, known: Option<&Known>) -> bool {
        let from = self.range.start;
        known.is_some_and(|known| known.ranges.0.iter().any(|range| range.start <= from && from < range.end))
    }
}

/// What was passed of all sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllPassed(pub(crate) BTreeMap<SourceId, Passed>);

impl AllPassed {
    /// Leaves out what does not count beside what the log has.
    pub(crate) fn retain_counting(&mut self, table: &Table) {
        self.0.retain(|id, passed| passed.counts(table.get(*id)));
    }

    /// Leaves out what the log has come past.
    pub(crate) fn retain_current(&mut self, table: &Table) {
        self.0.retain(|id, passed| !passed.is_over(table.get(*id)));
    }

    /// What the log has of each source, and what was passed behind that, by id.
    pub(crate) fn states(&self, table: &Table) -> Vec<SourceState> {
        let mut states = table.states();
        let known = states.len();
        for (id, passed) in self.0.iter().filter(|(id, passed)| passed.counts(table.get(**id))) {
            let range = Some((passed.range.start..passed.range.end, passed.range.check));
            match states[..known].binary_search_by_key(&id, |state| &state.id) {
                Ok(at) => states[at].passed = range,
                Err(_) => states.push(SourceState {
                    id: *id,
                    label: passed.label.as_deref().unwrap_or_default().to_vec(),
                    ranges: Vec::new(),
                    checks: Vec::new(),
                    last_frame: 0,
                    passed: range,
                }),
            }
        }
        states.sort_unstable_by_key(|state| state.id);
        states
    }

    /// Its encoding: as a section, without padding, each source with one range.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::push(self.0.len() as u64, &mut out);
        for (id, Passed { label, range }) in &self.0 {
            SourceEntry { id: *id, label: label.clone(), ranges: Ranges::of(vec![*range]) }.encode(&mut out);
        }
        out
    }

    /// Reads what [`AllPassed::encode`] wrote, and nothing behind it.
    ///
    /// # Errors
    /// Where it is none.
    pub(crate) fn decode(mut rest: &[u8]) -> Result<Self, Malformed> {
        let one = |SourceEntry { id, label, ranges }: SourceEntry, _: &mut &[u8]| match ranges.0[..] {
            [range] => Ok((id, Passed { label, range })),
            _ => Err(Malformed("a source has not one range")),
        };
        let passed = decode_entries(&mut rest, one, |(id, _)| *id)?;
        match rest.is_empty() && passed.len() <= MAX_SOURCES_OF_LOG {
            true => Ok(AllPassed(passed.into_iter().collect())),
            false => Err(Malformed("it is longer than its sources")),
        }
    }
}
