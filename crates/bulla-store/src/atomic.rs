//! Small files, read whole, and written so that they are there whole, in their old or their new form, whatever happens.
//!
//! The content goes to a file beside it, is synced, takes the name, and the directory is synced. Who calls sees to it
//! that nobody else writes the same path meanwhile; the lock on the log does.

use std::io::{self, IoSlice};

use crate::path::parent;
use crate::{Error, Result, Store};

/// Gives `path` this content. After an error, or a crash, it has the old one or the new one; after `Ok` the new one,
/// durably.
pub fn replace(store: &dyn Store, path: &str, content: &[u8]) -> io::Result<()> {
    let temporary = format!("{path}.tmp");
    let result = write_synced(store, &temporary, content).and_then(|()| store.rename(&temporary, path));
    if let Err(error) = result {
        // Only to give back the space: what is left over is removed by the next attempt, too.
        let _ = store.remove(&temporary);
        return Err(error);
    }
    store.sync_directory(parent(path))
}

/// The same for a name that is free; `AlreadyExists` where it is taken, also where the taken name is not durable yet.
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
    let name = store.describe(path);
    let failed = |error| Error::io(format!("reading {name}"), error);
    let file = store.open(path).map_err(failed)?;
    let length = file.length().map_err(failed)?;
    if length > limit {
        return Err(Error::invalid(format!("{name} has {length} bytes; such a file has at most {limit}")));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}
