//! `--source`: an input whose sender numbers its lines, and may send some of them again.
//!
//! The log says in each block which lines of the source it has, so that a line that comes again is not appended again, and a sender that stopped,
//! or was stopped, goes on with any line up to the one behind the last of which it was told.

use super::lines::Place as LinePlace;
use crate::exit::{Exit, Failure};
use crate::interrupt::no_room;
use bulla::{Log, Place, Source, SourceId};
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
    /// Up to where lines were appended, refused or found in the log.
    claimed: u64,
}

impl Numbered {
    /// The source of this name, whose line of the number `first` comes next.
    pub(super) fn begin(log: &Log, name: &str, first: u64) -> Result<Self, Failure> {
        let states = log.sources()?;
        let of_name = |label: &[u8]| Label::parse(label).is_some_and(|label| label.input == name);
        let state = states.into_iter().find(|state| of_name(&state.label));
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
        Ok(Numbered { name: name.to_owned(), source, held, claimed: first - 1 })
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
        Ok(true)
    }

    /// Where the record stands, which is `raw` and ends with this line.
    pub(super) fn place(&self, LinePlace { line: last, .. }: LinePlace, raw: &[u8]) -> Place {
        Place { range: self.claimed..last, check: self.check(raw) }
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
