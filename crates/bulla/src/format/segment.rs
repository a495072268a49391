//! Segments: append-only files of frames, named by their first frame.
//!
//! `segments/<first frame, 20 digits>.seg`, or `segments/<first frame>-<generation>.seg` where a file of that
//! name was abandoned before. A file's frames count up to where the next file begins; the bytes after that are
//! surplus, which an event of the log has to explain.
//!
//! A file without a byte is no segment, wherever its name stands: a crash leaves such a file where it comes between
//! creating it and writing to it, and anybody with the directory can put one there. `list` leaves them out, and
//! whoever reads a log or goes on with one gets its segments from there.

use bulla_store::Store;
use bulla_store::{Error, Item, Result};
use std::{fmt, io};

/// The directory of segments.
pub(crate) const DIRECTORY: &str = "segments";

/// The name of a segment. Its order is the order in which segments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// The number of the first frame that is not a copy of an epoch frame.
    pub first: u64,
    /// 0, or how many files of this first frame were abandoned before.
    pub generation: u32,
}

impl SegmentName {
    /// Parses a file name; `None` where it is not a segment's.
    pub fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".seg")?;
        let (first, generation) = match stem.split_once('-') {
            Some((first, generation)) => {
                (first, generation.parse().ok().filter(|&generation| generation > 0)?)
            }
            None => (stem, 0),
        };
        let segment = SegmentName { first: first.parse().ok()?, generation };
        (segment.to_string() == name).then_some(segment)
    }

    /// Its path in the log's directory.
    pub(crate) fn path(self) -> String {
        format!("{DIRECTORY}/{self}")
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            0 => write!(f, "{:020}.seg", self.first),
            generation => write!(f, "{:020}-{generation}.seg", self.first),
        }
    }
}

/// The name of a segment that an opening of the log has set aside, since frames before its own were lost with a path and nothing leads to it any more:
/// `<segment>.at-<next>`, or `<segment>.at-<next>.<number>` where that was taken. It is no segment's name, so whoever reads a log passes it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AsideName {
    /// The name that it had.
    pub(crate) segment: SegmentName,
    /// The number of the frame with which that opening went on.
    pub(crate) next: u64,
    /// 0, or how many files of the same two names were there before.
    pub(crate) number: u64,
}

impl AsideName {
    /// Parses a file name; `None` where it is none of these.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (segment, rest) = name.split_once(".at-")?;
        let (next, number) = rest.split_once('.').unwrap_or((rest, "0"));
        let segment = SegmentName::parse(segment)?;
        let aside = AsideName { segment, next: next.parse().ok()?, number: number.parse().ok()? };
        (aside.to_string() == name).then_some(aside)
    }

    /// Its path in the log's directory.
    pub(crate) fn path(self) -> String {
        format!("{DIRECTORY}/{self}")
    }
}

impl fmt::Display for AsideName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AsideName { segment, next, number } = self;
        match number {
            0 => write!(f, "{segment}.at-{next}"),
            _ => write!(f, "{segment}.at-{next}.{number}"),
        }
    }
}

/// The segments that openings of the log have set aside, in order.
///
/// # Errors
/// As [`list`].
pub(crate) fn list_aside(store: &dyn Store) -> Result<Vec<AsideName>> {
    let files = list_items(store)?.into_iter().filter(|item| !item.directory);
    let mut aside = files.filter_map(|file| AsideName::parse(&file.name)).collect::<Vec<_>>();
    aside.sort_unstable();
    Ok(aside)
}

/// What is in the directory of segments; nothing without it.
fn list_items(store: &dyn Store) -> Result<Vec<Item>> {
    match store.list(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        items => items.map_err(|error| Error::io(format!("listing {}", store.describe(DIRECTORY)), error)),
    }
}

/// The log's segments in order, and the names in their directory that are none. Without the directory there are none.
///
/// # Errors
/// `Unavailable` where the directory cannot be read, or one of the files.
pub(crate) fn list(store: &dyn Store) -> Result<(Vec<SegmentName>, Vec<String>)> {
    list_behind(store, None)
}

/// The same without the segments up to `name`, which are not looked at.
///
/// # Errors
/// As [`list`].
pub(crate) fn list_behind(
    store: &dyn Store,
    name: Option<SegmentName>,
) -> Result<(Vec<SegmentName>, Vec<String>)> {
    let mut segments = Vec::new();
    let mut others = Vec::new();
    for item in list_items(store)? {
        match SegmentName::parse(&item.name).filter(|_| !item.directory) {
            Some(segment) if Some(segment) <= name || is_empty(store, segment)? => {}
            Some(segment) => segments.push(segment),
            None => others.push(item.name),
        }
    }
    segments.sort_unstable();
    Ok((segments, others))
}

/// Whether a file of this name has no byte, or is gone since it was listed: opening a log may give it another name.
fn is_empty(store: &dyn Store, name: SegmentName) -> Result<bool> {
    let path = name.path();
    match store.open(&path).and_then(|file| file.length()) {
        Ok(length) => Ok(length == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io(format!("opening {}", store.describe(&path)), error)),
    }
}
