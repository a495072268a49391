//! What the blocks of a log come to, source by source.

use super::{MAX_SOURCES_OF_LOG, Malformed, Ranges, SourceEntry, SourceId, decode_entries, number};
use bulla_proof::varint;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What a log has of a source: by [`Log::sources`](crate::Log::sources) and [`sources`](crate::sources()).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceState {
    /// Which source it is.
    pub id: SourceId,
    /// What whoever follows it said of it last, as far as blocks tell.
    pub label: Vec<u8>,
    /// The ranges that blocks hold, in the unit of whoever follows it: ascending, none touching the next. There is none only where
    /// something was [passed](SourceState::passed).
    pub ranges: Vec<Range<u64>>,
    /// Of each range the check of the record that ends where it ends.
    pub checks: Vec<u64>,
    /// The last frame that holds something of it; 0 where none does.
    pub last_frame: u64,
    /// What was read and became no entry, and the check of its end, as [`Source::pass`](crate::Source::pass) was told: a range that begins
    /// where one that blocks hold ends, or where blocks hold nothing of the source. It is no part of the signed log.
    pub passed: Option<(Range<u64>, u64)>,
}

impl SourceState {
    /// Where whoever began to read at `begin` goes on: the end of the range that has `begin`, and the check of the record that ends
    /// there; `begin` itself where no range has it, because what came first was lost.
    pub fn resume(&self, begin: u64) -> (u64, Option<u64>) {
        let found = self.ranges.iter().zip(&self.checks).find(|(range, _)| range.contains(&begin));
        found.map_or((begin, None), |(range, check)| (range.end, Some(*check)))
    }

    /// What was read of it without becoming an entry from `place` on: where that ends, and the check of its end.
    pub fn passed_from(&self, place: u64) -> Option<(u64, u64)> {
        let passed = self.passed.as_ref().filter(|(range, _)| range.start == place);
        passed.map(|(range, check)| (range.end, *check))
    }

    /// The first range that ends behind `place`: what is in it the log has already.
    pub fn next_held(&self, place: u64) -> Option<Range<u64>> {
        self.ranges.iter().find(|range| range.end > place).cloned()
    }
}

/// What is known of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) label: Arc<[u8]>,
    pub(crate) ranges: Ranges,
    pub(crate) last_frame: u64,
}

/// The sources of which blocks hold something and that have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    known: BTreeMap<SourceId, Known>,
    /// How many ranges they have together.
    ranges: usize,
}

impl Table {
    /// Takes in what the block of `frame`, which follows those before, says of a source.
    pub(crate) fn take(&mut self, frame: u64, entry: SourceEntry) {
        let SourceEntry { id, label, ranges } = entry;
        if ranges.is_empty() {
            self.ranges -= self.known.remove(&id).map_or(0, |known| known.ranges.len());
            return;
        }
        let known = self.known.entry(id).or_default();
        self.ranges -= known.ranges.len();
        known.ranges.add(&ranges);
        self.ranges += known.ranges.len();
        known.last_frame = frame;
        if let Some(label) = label {
            known.label = label;
        }
    }

    /// Gives those sources a label that have none, where `other` has it.
    pub(crate) fn take_labels(&mut self, other: &Table) {
        for (id, known) in self.known.iter_mut().filter(|(_, known)| known.label.is_empty()) {
            if let Some(other) = other.get(*id) {
                known.label.clone_from(&other.label);
            }
        }
    }

    pub(crate) fn get(&self, id: SourceId) -> Option<&Known> {
        self.known.get(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// How many ranges all sources have together.
    pub(crate) fn ranges(&self) -> usize {
        self.ranges
    }

    /// Whether it has more sources than a log does.
    pub(crate) fn is_overfull(&self) -> bool {
        self.known.len() > MAX_SOURCES_OF_LOG
    }

    /// What it says of each, by id.
    pub(crate) fn states(&self) -> Vec<SourceState> {
        let state = |(id, known): (&SourceId, &Known)| {
            let (ranges, checks) = known.ranges.parts();
            let (label, last_frame) = (known.label.to_vec(), known.last_frame);
            SourceState { id: *id, label, ranges, checks, last_frame, passed: None }
        };
        self.known.iter().map(state).collect()
    }

    /// Its encoding: as a section, without padding, each source with its label and behind it, as a varint, the last frame.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        varint::push(self.known.len() as u64, out);
        for (id, known) in &self.known {
            let Known { label, ranges, last_frame } = known.clone();
            SourceEntry { id: *id, label: Some(label), ranges }.encode(out);
            varint::push(last_frame, out);
        }
    }

    /// Reads what [`Table::encode`] wrote, and nothing behind it.
    ///
    /// # Errors
    /// Where it is none.
    pub(crate) fn decode(mut rest: &[u8]) -> Result<Self, Malformed> {
        let more = |entry: SourceEntry, rest: &mut &[u8]| {
            let SourceEntry { id, label, ranges } = entry;
            let label = label.filter(|_| !ranges.is_empty()).ok_or(Malformed("a source lacks something"))?;
            Ok((id, Known { label, ranges, last_frame: number(rest)? }))
        };
        let known = decode_entries(&mut rest, more, |(id, _)| *id)?;
        let ranges = known.iter().map(|(_, known)| known.ranges.len()).sum();
        let table = Table { known: known.into_iter().collect(), ranges };
        match rest.is_empty() && !table.is_overfull() {
            true => Ok(table),
            false => Err(Malformed("it is longer than its sources")),
        }
    }
}
