//! The directory that the database of a vault or of a replica lies in.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use bulla_store::{Error, FileSystem, Result, Store};

/// Its name, in the key directory or in the directory of a replica.
pub(super) const NAME: &str = "vault";

/// Makes it, unless it is there; nobody but its owner gets in.
///
/// # Errors
/// Where the file system fails.
pub(super) fn make(directory: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io(format!("making {}", directory.display()), error))
        }
        _ => Ok(()),
    }
}

/// Makes the names in `directory` durable.
///
/// # Errors
/// Where the file system fails.
pub(super) fn sync(directory: &Path) -> Result<()> {
    let synced = FileSystem::new(directory).sync_directory("");
    synced.map_err(|error| Error::io(format!("syncing {}", directory.display()), error))
}
