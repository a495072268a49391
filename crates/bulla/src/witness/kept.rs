//! Writing the files in which cosignatures are kept.

use bulla_store::{Error, Result, Store};
use std::io;

/// Replaces the file at `path`, in a directory that may not be there yet.
pub(super) fn write(store: &dyn Store, path: &str, note: &str) -> Result<()> {
    let failed = |error| Error::io(format!("writing {}", store.describe(path)), error);
    let directory = bulla_store::path::parent(path);
    let replace = || bulla_store::replace(store, path, note.as_bytes());
    match replace() {
        // That another path of the log has the directory says nothing of the one that takes what is written.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.is_empty() => {
            store.create_directory(directory).map_err(failed)?;
            store.sync_directory("").map_err(failed)?;
            replace().map_err(failed)
        }
        replaced => replaced.map_err(failed),
    }
}
