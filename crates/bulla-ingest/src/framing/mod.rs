//! Cuts bytes into records, in bounded memory and in time that grows with the bytes.
//!
//! [`Framing`] does no I/O, so that pipes and followed files share it and places in a file are exact: it is shown bytes that
//! begin where the last record ended, and says where the next one ends. [`Records`] is a reader over it.
//!
//! | Kind | A record |
//! |---|---|
//! | [`Lines`](FramingKind::Lines) | ends with its line |
//! | [`OctetCounted`](FramingKind::OctetCounted) | has its length before it (RFC 6587), or else ends with its line |
//! | [`Csv`](FramingKind::Csv) | ends with a line that does not end between quotes |
//! | [`Export`](FramingKind::Export) | ends with an empty line outside of a field that has its length before it |
//! | [`Multiline`](FramingKind::Multiline) | is lines that a rule joins |
//!
//! Which records there are does not depend on how the bytes arrive. A record over a limit is refused and passed over; what
//! follows it is read again from the next line on, whatever the quotes in it said, so that one stray quote costs one record.

mod csv;
mod export;
mod lines;
mod multiline;
mod octets;
mod records;
#[cfg(test)]
mod tests;
mod unpack;

pub use multiline::{Multiline, MultilineRule};
pub(crate) use records::MARK;
pub use records::{Record, Records};
pub use unpack::{Unpacked, is_packed, unpack};

pub(crate) use csv::Quotes;
pub(crate) use export::is_name;

use crate::Refusal;
use std::io::BufRead;
use std::ops::Range;

/// How records are told apart.
#[derive(Clone, Debug)]
pub enum FramingKind {
    /// Each line is one.
    Lines,
    /// A count of bytes, a space and so many bytes that begin with `<`; or else a line.
    OctetCounted,
    /// Lines of columns; a column between double quotes may hold line ends.
    Csv {
        /// What stands between two columns.
        delimiter: u8,
    },
    /// journald's export format: fields, and an empty line behind the last one.
    Export,
    /// Lines that a rule joins.
    Multiline(Multiline),
}

/// What a record may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Its bytes.
    pub bytes: usize,
    /// Its lines, where the format lets it have several.
    pub lines: usize,
}

impl Default for Limits {
    /// 128 MiB, which is what a line of JSON may have, and 10,000 lines.
    fn default() -> Self {
        Limits { bytes: bulla_text::lines::MAX_LINE, lines: 10_000 }
    }
}

/// What the bytes begin with. `consumed` is how many of them to let go of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes are needed to say; where nothing will follow, nothing is left.
    More,
    /// A record.
    Record {
        /// The record and its end.
        consumed: usize,
        /// What of that the format is about.
        content: Range<usize>,
    },
    /// What is in no record: empty lines before one, or the beginning of one that is going to be refused. It is no place to go on
    /// from: that is where a record ended, or one that was refused.
    Passed {
        /// How much.
        consumed: usize,
    },
    /// The end of a record that is none, for this reason.
    Refused {
        /// What is left of it.
        consumed: usize,
        /// Why.
        reason: Refusal,
    },
}

/// Where one source is in its records.
///
/// Invariant: what it remembers is of bytes that it was shown and that were not consumed yet.
#[derive(Debug)]
pub struct Framing {
    limits: Limits,
    state: State,
}

#[derive(Debug)]
enum State {
    Lines(lines::Lines),
    Octets(octets::Octets),
    Csv(csv::Csv),
    Export(export::Export),
    Multiline(multiline::Joined),
}

impl Framing {
    /// A source at its beginning, or at the end of any of its records.
    pub fn new(kind: FramingKind, limits: Limits) -> Self {
        let state = match kind {
            FramingKind::Lines => State::Lines(lines::Lines::default()),
            FramingKind::OctetCounted => State::Octets(octets::Octets::default()),
            FramingKind::Csv { delimiter } => State::Csv(csv::Csv::new(delimiter)),
            FramingKind::Export => State::Export(export::Export::default()),
            FramingKind::Multiline(rule) => State::Multiline(multiline::Joined::new(rule)),
        };
        Framing { limits, state }
    }

    /// What `bytes`, which begin where the last call's `consumed` ended, begin with. `ends`: nothing will follow them.
    ///
    /// Bytes that were shown without a record in them are to be shown again, with more behind them; they are not looked at twice.
    pub fn next(&mut self, bytes: &[u8], ends: bool) -> Next {
        match &mut self.state {
            State::Lines(lines) => lines.next(bytes, ends, self.limits),
            State::Octets(octets) => octets.next(bytes, ends, self.limits),
            State::Csv(csv) => csv.next(bytes, ends, self.limits),
            State::Export(export) => export.next(bytes, ends, self.limits),
            State::Multiline(joined) => joined.next(bytes, ends, self.limits),
        }
    }

    /// Whether what was passed is the beginning of a record that is going to be refused.
    pub fn is_skipping(&self) -> bool {
        match &self.state {
            State::Lines(lines) => lines.is_skipping(),
            State::Octets(octets) => octets.is_skipping(),
            State::Csv(csv) => csv.is_skipping(),
            State::Export(export) => export.is_skipping(),
            State::Multiline(joined) => joined.is_skipping(),
        }
    }

    /// Whether a record that is all there may wait for the next one to show that, so that silence has to do for it.
    pub fn ends_by_silence(&self) -> bool {
        matches!(self.state, State::Multiline(_))
    }

    /// Whether each record counts as one line, whatever is in it.
    fn counts_records(&self) -> bool {
        matches!(self.state, State::Lines(_) | State::Octets(_))
    }
}

/// The place of the first such byte, found as the standard library does it, many at once.
pub(crate) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    // Reading memory does not fail.
    let passed = rest.skip_until(byte).unwrap_or_default();
    (passed > 0 && bytes[passed - 1] == byte).then(|| passed - 1)
}

fn line_too_long(limits: Limits) -> Refusal {
    Refusal::new(format!("the line is longer than {} bytes", limits.bytes))
}

fn record_too_long(limits: Limits) -> Refusal {
    Refusal::new(format!("the record is longer than {} bytes", limits.bytes))
}

/// What is left of a record that is refused, up to the end of a line; and whether that was all of it.
fn rest_of_line(bytes: &[u8], ends: bool, reason: impl FnOnce() -> Refusal) -> (Next, bool) {
    match find(b'\n', bytes) {
        Some(end) => (Next::Refused { consumed: end + 1, reason: reason() }, true),
        None if ends => (Next::Refused { consumed: bytes.len(), reason: reason() }, true),
        None if bytes.is_empty() => (Next::More, false),
        None => (Next::Passed { consumed: bytes.len() }, false),
    }
}
