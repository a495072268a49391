//! Segments: append-only files of frames, named by their first frame.
//!
//! `segments/<first frame, 20 digits>.seg`, or `segments/<first frame>-<generation>.seg` where a file of that
//! name was abandoned before. A file's frames count up to where the next file begins; the bytes after that are
//! surplus, which an event of the log has to explain.

use bulla_store::Store;
use bulla_store::{Error, Result};
use std::fmt;

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

/// The log's segments in order, and the names in their directory that are none. Without the directory there are none.
///
/// # Errors
/// `Unavailable` where the directory cannot be read.
pub(crate) fn list(store: &dyn Store) -> Result<(Vec<SegmentName>, Vec<String>)> {
    let items = match store.list(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        items => items,
    };
    let items = items.map_err(|error| Error::io(format!("listing {}", store.describe(DIRECTORY)), error))?;
    let mut segments = Vec::new();
    let mut others = Vec::new();
    for item in items {
        match SegmentName::parse(&item.name).filter(|_| !item.directory) {
            Some(segment) => segments.push(segment),
            None => others.push(item.name),
        }
    }
    segments.sort_unstable();
    Ok((segments, others))
}
