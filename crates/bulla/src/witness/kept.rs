//! Writing the files in which cosignatures are kept.

use bulla_store::{Error, Result, Store};

/// Replaces the file at `path`, in a directory that may not be there yet.
pub(super) fn write(store: &dyn Store, path: &str, note: &str) -> Result<()> {
    let failed = |error| Error::io(format!("writing {}", store.describe(path)), error);
    let directory = bulla_store::path::parent(path);
    if !directory.is_empty() && store.list(directory).is_err() {
        store.create_directory(directory).map_err(failed)?;
        store.sync_directory("").map_err(failed)?;
    }
    bulla_store::replace(store, path, note.as_bytes()).map_err(failed)
}
