//! Files that other programs write to, read exactly once: through rotation by rename, copy and truncate, through compression, and
//! through the end of whoever reads.
//!
//! A *source* is the content of one file, whatever the file is called. It is known by an id that the log keeps, encrypted, with a
//! [`Label`] and with the ranges of the source that the log's blocks hold; so whatever the log holds is what was read, and no place is kept
//! anywhere else. A [`Follower`] finds the sources of the paths that it is given, reads on where the log has all that precedes, and leaves out
//! what the log has beyond.
//!
//! Invariants:
//! - a source is given to the sink in its order, each record with the range from the end of the last one that the sink took;
//! - content is read on only where it is what was read before: by its first bytes and by those before the place;
//! - a file that another one may be a copy of is not taken for a new source.
#![expect(clippy::disallowed_methods, reason = "what it follows are files of other programs")]
#![allow(clippy::disallowed_types, reason = "what it follows are files of other programs")]

mod content;
mod copies;
mod family;
mod followed;
mod follower;
mod label;
mod locate;
mod names;
mod siblings;
#[cfg(test)]
mod tests;
mod watch;

pub use follower::{Follower, State};
pub use label::{End, Label, SourceId, check};
pub use locate::{Located, locate};
pub use names::Following;

use bulla_text::ParsedEntry;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// What a log has of a source.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its id.
    pub id: SourceId,
    /// Its label, as it was given to [`Sink::source`].
    pub label: Vec<u8>,
    /// The ranges that the log has, ascending.
    pub ranges: Vec<Range<u64>>,
    /// What was given with the record that ends the first of them.
    pub check: u64,
    /// What was given to [`Sink::pass`] of the source, where that goes on from a range that the log has or from the beginning: the range, and
    /// the check of its end.
    pub passed: Option<(Range<u64>, u64)>,
    /// What is newer has more.
    pub order: u64,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The path by which its source is followed.
    pub path: &'a Path,
    /// Its first byte, counted from 0, of what the file unpacks to where it is compressed; or the number of a journal's entry.
    pub place: u64,
    /// What is counted.
    pub unit: Unit,
}

/// What places of a source count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of a file.
    Byte,
    /// Entries of a journal.
    Entry,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Byte => "byte",
            Unit::Entry => "entry",
        };
        write!(f, "{}, {unit} {}", self.path.display(), self.place)
    }
}

/// What takes what is read.
pub trait Sink {
    /// What a source is known by.
    type Source;
    /// Why nothing more can be taken.
    type Error;

    /// The time, in nanoseconds since the epoch.
    fn now(&self) -> i64;

    /// Whether nothing more is to be read than what is being read: records that became no entry are then told at once.
    fn is_ending(&self) -> bool;

    /// There is a source with this label.
    ///
    /// # Errors
    /// Where nothing more can be taken.
    fn source(&mut self, id: &SourceId, label: &[u8]) -> Result<Self::Source, Self::Error>;

    /// The source has this label from now on.
    ///
    /// # Errors
    /// Where nothing more can be taken.
    fn relabel(&mut self, source: &Self::Source, label: &[u8]) -> Result<(), Self::Error>;

    /// Takes an entry, with the range of its source that it stands for and the check of its end. `Ok(Err(reason))` refuses it.
    ///
    /// # Errors
    /// Where nothing more can be taken, this entry neither.
    fn append(
        &mut self,
        at: At<'_>,
        entry: &ParsedEntry,
        source: &Self::Source,
        place: (Range<u64>, u64),
    ) -> Result<Result<(), String>, Self::Error>;

    /// A record became no entry. `raw` is absent where it was too long to be held.
    ///
    /// # Errors
    /// Where nothing more can be taken.
    fn refuse(&mut self, at: At<'_>, reason: &str, raw: Option<&[u8]>) -> Result<(), Self::Error>;

    /// What stands in this range of its source became no entry, and the next entry has not come yet, whose range begins where this one does.
    /// With the check of its end.
    ///
    /// # Errors
    /// Where nothing more can be taken.
    fn pass(&mut self, source: &Self::Source, place: (Range<u64>, u64)) -> Result<(), Self::Error>;

    /// Nothing more will come of the source of this id, which need not be known any more.
    fn forget(&mut self, id: &SourceId);

    /// Something that whoever runs this should know.
    fn tell(&mut self, what: &str);
}
