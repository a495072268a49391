//! The directories of a log, and the locks on them.

use crate::format::files;
use crate::keys;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};

/// Takes the locks of both directories.
///
/// # Errors
/// `Locked` where another writer holds one.
pub(crate) fn take_locks(
    log: &dyn Store,
    key_directory: &dyn Store,
) -> Result<Vec<Box<dyn std::fmt::Debug + Send + Sync>>> {
    [(log, files::LOCK), (key_directory, keys::files::LOCK)]
        .into_iter()
        .map(|(store, path)| {
            store.lock(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => Error::new(
                    ErrorKind::Locked,
                    format!("another writer has {} open: stop it first", store.describe("")),
                ),
                _ => Error::io(format!("locking {}", store.describe(path)), error),
            })
        })
        .collect()
}
