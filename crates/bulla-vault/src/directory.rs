//! The directory that the database of a vault or of a replica lies in, and its files. LMDB opens them itself, by their paths,
//! so that no store can stand between; what else is done to them is done here.
#![expect(clippy::disallowed_methods, reason = "the one module of the vault that goes around its store")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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

/// The path without links, by which a process tells whether it has an environment open already.
///
/// # Errors
/// Where there is no such directory.
pub(super) fn canonical(directory: &Path) -> Result<PathBuf> {
    fs::canonicalize(directory).map_err(|error| Error::io(directory.display().to_string(), error))
}

/// Whether there is anything at `path`, if only a link that leads nowhere.
///
/// # Errors
/// Where that cannot be told.
pub(super) fn has(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path.display().to_string(), error)),
    }
}

/// The length of a file in bytes.
///
/// # Errors
/// Where there is no such file.
pub(super) fn length_of(file: &Path) -> Result<u64> {
    match fs::metadata(file) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) => Err(Error::io(file.display().to_string(), error)),
    }
}

/// An empty file at `path`, in place of what may be left there of an attempt that was cut short.
pub(super) fn begin_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Gives a file the name of another one, in whose place it is from then on.
///
/// # Errors
/// Where the file system fails.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|error| Error::io(to.display().to_string(), error))
}
