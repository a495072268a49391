//! `--source`: an input whose sender numbers its lines, and may send some of them again.
//!
//! The log says in each block which lines of the source it has, so that a line that comes again is not appended again, and a sender that stopped,
//! or was stopped, goes on with any line up to the one behind the last of which it was told. No line may be missing between what the log has and
//! what comes, so that all lines up to one of which it is told that it is durable are.

use super::lines::Place as LinePlace;
use crate::exit::{Exit, Failure};
use crate::interrupt::no_room;
use bulla::text::spelling::counted;
use bulla::{Log, Place, Source, SourceId, SourceState};
use bulla_ingest::follow::check;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What the log keeps of such a source.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Label {
    /// The name that the sender gave it.
    pub(crate) input: String,
}

impl Label {
    /// `None` of the label of any other source.
    pub(crate) fn parse(label: &[u8]) -> Option<Self> {
        serde_json::from_slice(label).ok()
    }
}

/// See the module.
pub(super) struct Numbered {
    name: String,
    source: Source,
    /// The lines that the log has, counted from 0, and of each range the check of its last line.
    held: Vec<(Range<u64>, u64)>,
    /// Up to where lines were appended or found in the log. What became no entry after that is in the range of the next entry.
    claimed: u64,
    /// How many lines were passed over since the log has them, and the last range that they are of.
    over: (u64, Range<u64>),
}

impl Numbered {
    /// The source of this name, whose line of the number `first` comes next.
    pub(super) fn begin(log: &Log, name: &str, first: u64) -> Result<Self, Failure> {
        let states = log.sources()?;
        let of_name = |label: &[u8]| Label::parse(label).is_some_and(|label| label.input == name);
        let state = states.into_iter().find(|state| of_name(&state.label));
        let claimed = state.as_ref().map_or(Ok(first - 1), |state| claimed(state, name, first))?;
        let (id, held) = match state {
            Some(state) => (state.id, state.ranges.into_iter().zip(state.checks).collect()),
            None => {
                let mut id = [0; 16];
                getrandom::fill(&mut id)
                    .map_err(|error| no_room("asking the system for random bytes", &error.into()))?;
                (SourceId(id), Vec::new())
            }
        };
        let label = serde_json::to_vec(&Label { input: name.to_owned() });
        let label = label.map_err(|error| Failure::usage(format!("--source {name}: {error}")))?;
        let source = log.source(id, &label)?;
        Ok(Numbered { name: name.to_owned(), source, held, claimed, over: (0, 0..0) })
    }

    /// Whether the log has the record, which is `raw`, and has these lines.
    ///
    /// # Errors
    /// That the log has another line of this number: what comes is not what came before.
    pub(super) fn has(
        &mut self,
        LinePlace { line: last, .. }: LinePlace,
        lines: u64,
        raw: &[u8],
    ) -> Result<bool, Failure> {
        let range = last - lines..last;
        let held = self.held.iter().find(|(held, _)| held.start <= range.start && range.end <= held.end);
        let Some((held, expected)) = held else { return Ok(false) };
        if held.end == range.end && self.check(raw) != *expected {
            let message = format!(
                "line {last} of the source {} is not the one that the log has: either number the lines as they were numbered before, or give the source another name",
                self.name
            );
            return Err(Failure::new(Exit::Refused, message));
        }
        self.claimed = range.end;
        self.over = (self.over.0 + lines, held.clone());
        Ok(true)
    }

    /// Where the record stands, which is `raw` and ends with this line.
    pub(super) fn place(&self, LinePlace { line: last, .. }: LinePlace, raw: &[u8]) -> Place {
        Place { range: self.claimed..last, check: self.check(raw) }
    }

    /// The record became no entry that ends with this line.
    pub(super) fn pass(&self, last: LinePlace, raw: &[u8]) -> Result<(), Failure> {
        Ok(self.source.pass(&self.place(last, raw))?)
    }

    /// How many lines were passed over since the log has them.
    pub(super) fn passed_over(&self) -> u64 {
        self.over.0
    }

    /// The same in words, if there are some. `is_all`: nothing else came.
    pub(super) fn to_text(&self, is_all: bool) -> Option<String> {
        let (count, Range { start, end }) = &self.over;
        let lines = match end - start {
            1 => format!("line {end}"),
            _ => format!("lines {} to {end}", start + 1),
        };
        let next = if is_all { format!("; go on with --from {}", end + 1) } else { String::new() };
        let passed = counted(*count, "line");
        (*count > 0).then(|| format!("{passed} passed over: the log has {lines} of {}{next}\n", self.name))
    }

    /// The record was appended that ends with this line.
    pub(super) fn appended(&mut self, LinePlace { line: last, .. }: LinePlace) {
        self.claimed = last;
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    fn check(&self, raw: &[u8]) -> u64 {
        check(&self.source.id().0, raw)
    }
}

/// Where the range of the next entry begins, where the line `first` comes next.
///
/// # Errors
/// That lines are missing between those that the log has, or that were refused, and this one.
fn claimed(state: &SourceState, name: &str, first: u64) -> Result<u64, Failure> {
    let begin = state.ranges.first().or(state.passed.as_ref().map(|(range, _)| range));
    let (end, _) = state.resume(begin.map_or(0, |range| range.start));
    let reached = state.passed_from(end).map_or(end, |(passed, _)| passed);
    match first - 1 {
        before if before > reached => {
            let next = reached + 1;
            let missing = match before - reached {
                1 => format!("line {next} is"),
                _ => format!("lines {next} to {before} are"),
            };
            Err(Failure::usage(format!(
                "the log has lines up to {reached} of the source {name}, so {missing} missing before line {first}: begin with --from {next}, or give what comes another name; nothing was appended"
            )))
        }
        before if before >= end => Ok(end),
        before => Ok(before),
    }
}
