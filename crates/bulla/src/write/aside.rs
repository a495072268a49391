//! Segments that count for nothing and stand in nobody's way: in `set-aside/` on the path on which they lay.

use crate::format::files;
use crate::format::segment::{self, SegmentName};
use bulla_store::{Error, Item, Result, Store};
use std::io;

/// A segment that an opening of the log has set aside, since nothing led to it any more.
pub(crate) struct Aside {
    /// Where it lies now, in the directory of its path.
    pub(crate) path: String,
    /// The name that it had.
    pub(crate) segment: SegmentName,
    /// The number of the frame with which that opening went on.
    pub(crate) next: u64,
}

/// The segments that openings of the log have set aside in `store`.
///
/// # Errors
/// `Unavailable` where the directory cannot be read.
pub(crate) fn by_openings(store: &dyn Store) -> Result<Vec<Aside>> {
    let aside = |item: Item| {
        let path = format!("{}/{}", files::SET_ASIDE, item.name);
        files::parse_aside(&path).map(|(segment, next)| Aside { path, segment, next })
    };
    match store.list(files::SET_ASIDE) {
        Ok(items) => Ok(items.into_iter().filter_map(aside).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(format!("listing {}", store.describe(files::SET_ASIDE)), error)),
    }
}

/// Sets a segment aside, durably, for an opening that goes on with frame `next`.
///
/// # Errors
/// As the store.
pub(crate) fn set_at_opening(path: &dyn Store, name: SegmentName, next: u64) -> io::Result<String> {
    move_to(path, name, &format!("{name}.at-{next}"))
}

/// Sets a segment aside, durably.
///
/// # Errors
/// As the store.
pub(crate) fn set(path: &dyn Store, name: SegmentName) -> io::Result<String> {
    move_to(path, name, &name.to_string())
}

fn move_to(path: &dyn Store, name: SegmentName, aside: &str) -> io::Result<String> {
    let aside = free_name(path, aside)?;
    path.rename(&name.path(), &aside)?;
    path.sync_directory(files::SET_ASIDE)?;
    path.sync_directory(segment::DIRECTORY)?;
    Ok(aside)
}

/// A name in `set-aside/`, which is made where it is not there: this one, or with a number behind it where that is taken.
///
/// # Errors
/// As the store.
pub(crate) fn free_name(path: &dyn Store, name: &str) -> io::Result<String> {
    path.create_directory(files::SET_ASIDE)?;
    path.sync_directory("")?;
    let mut aside = format!("{}/{name}", files::SET_ASIDE);
    let mut number = 1;
    loop {
        match path.open(&aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(aside),
            Err(error) => return Err(error),
            Ok(_) => aside = format!("{}/{name}.{number}", files::SET_ASIDE),
        }
        number += 1;
    }
}
