//! What a log has of its sources, beside whoever writes it.

use crate::format::sources::table::SourceState;
use crate::scan::manifest::Manifest;
use crate::scan::paths::open_log;
use crate::scan::snapshot::{Snapshot, unless_gone};
use bulla_store::{FileSystem, Result, Store};
use std::path::Path;
use std::sync::Arc;

/// What the log in `directory` has of its sources, by id, as far as its checkpoint covers it; none where it never had one. `keys` is its
/// key directory, which has the key of that. Whoever writes the log is not kept from anything.
///
/// # Errors
/// `NoKey` where blocks say something of sources and `sources.key` is missing, `Refused` where it is another log's; `Tampered` where what
/// is read is damaged; `Unavailable` where there is no log, or blocks say something of sources and there is no key directory, or a file cannot be read.
pub fn sources(directory: impl AsRef<Path>, keys: impl AsRef<Path>) -> Result<Vec<SourceState>> {
    let log = open_log(directory, Some(keys.as_ref()), &[])?;
    sources_of(log, &FileSystem::new(keys.as_ref()))
}

/// The same of a log in any stores.
///
/// # Errors
/// As [`sources`].
pub fn sources_of(log: Arc<dyn Store>, keys: &dyn Store) -> Result<Vec<SourceState>> {
    unless_gone(&*log, sources_there(log.clone(), keys))
}

fn sources_there(log: Arc<dyn Store>, keys: &dyn Store) -> Result<Vec<SourceState>> {
    let manifest = Manifest::load_end(Snapshot::of(log)?)?;
    let read = crate::scan::sources::read(&manifest, keys)?;
    Ok(read.passed.states(&read.so_far.table))
}
