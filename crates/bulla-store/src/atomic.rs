//! Small files, read whole, and replaced so that a crash at any moment leaves the old content or the new one, whole.
//!
//! The new content is written to a file beside the old one and synced; then the file is renamed, and the directory is synced. None
//! of these steps can be left out: without the first sync the name may be durable before the content is, and without the second
//! one the rename may be lost (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014). The caller sees to it that
//! nobody else writes the same path meanwhile, which the lock on the log does.

use std::io::{self, IoSlice};

use crate::path::parent;
use crate::{Error, Result, Store, StoreFile};

/// Gives `path` this content. After an error, or a crash, it has the old one or the new one; after `Ok` the new one,
/// durably.
pub fn replace(store: &dyn Store, path: &str, content: &[u8]) -> io::Result<()> {
    let temporary = format!("{path}.tmp");
    let result = write_synced(store, &temporary, content).and_then(|()| store.rename(&temporary, path));
    if let Err(error) = result {
        // This only gives back the space. A file that is left over is overwritten by the next attempt.
        let _ = store.remove(&temporary);
        return Err(error);
    }
    store.sync_directory(parent(path))
}

/// Gives this content to a `path` at which there is nothing yet. `AlreadyExists` where there is something, even if its name is not
/// durable yet.
pub fn write_new(store: &dyn Store, path: &str, content: &[u8]) -> io::Result<()> {
    match store.open(path) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(store, path, content),
        Err(error) => Err(error),
    }
}

fn write_synced(store: &dyn Store, path: &str, content: &[u8]) -> io::Result<()> {
    match store.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = store.create(path)?;
    file.write_at(&mut [IoSlice::new(content)], 0)?;
    file.sync()
}

/// Reads a small file of `store` whole.
///
/// # Errors
/// `Unavailable` where it is missing or cannot be read, `Invalid` where it is over `limit` bytes.
pub fn read_small(store: &dyn Store, path: &str, limit: u64) -> Result<Vec<u8>> {
    read_whole(&store.describe(path), store.open(path), limit)
}

/// The same of a file that is read only and may be a symbolic link: a secret that is mounted elsewhere.
///
/// # Errors
/// As [`read_small`].
pub fn read_secret(store: &dyn Store, path: &str, limit: u64) -> Result<Vec<u8>> {
    read_whole(&store.describe(path), store.open_secret(path), limit)
}

fn read_whole(name: &str, opened: io::Result<Box<dyn StoreFile>>, limit: u64) -> Result<Vec<u8>> {
    let failed = |error| Error::io(format!("reading {name}"), error);
    let file = opened.map_err(failed)?;
    let length = file.length().map_err(failed)?;
    if length > limit {
        return Err(Error::invalid(format!("{name} has {length} bytes; such a file has at most {limit}")));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}
