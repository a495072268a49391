//! Writing the files in which cosignatures are kept.

use crate::scan::cosignatures;
use bulla_store::{Error, Result, Store};

/// Replaces the file at `path`, in a directory that may not be there yet.
pub(super) fn write(store: &dyn Store, path: &str, note: &str) -> Result<()> {
    let replaced = cosignatures::replace(store, path, note.as_bytes());
    replaced.map_err(|error| Error::io(format!("writing {}", store.describe(path)), error))
}
