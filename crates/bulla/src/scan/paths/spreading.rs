//! The tree on every path: full tiles and bundles, which never change, are given to the paths that are not in use as well, so that
//! what is lost with one of them is known to the frame.

use super::LogPaths;
use bulla_proof::tile::{self, FULL_WIDTH, TileId};
use bulla_store::{Store, path};
use std::io;
use std::sync::Arc;

/// The longest tile or bundle that is read, in bytes.
const LIMIT: u64 = 1 << 20;

impl LogPaths {
    /// The paths that are there and are not in use.
    fn idle(&self) -> Vec<(usize, Arc<dyn Store>)> {
        let state = self.state();
        let idle = state.paths.iter().enumerate().filter(|(index, path)| {
            *index != state.current
                && path.absent.is_none()
                && path.lock.is_some()
                && !path.failed
                && !path.lacking
        });
        idle.map(|(index, path)| (index, path.store.clone())).collect()
    }

    /// Gives a file to the paths that are not in use.
    pub(super) fn spread_file(&self, name: &str, content: &[u8]) {
        for (index, store) in self.idle() {
            if let Err(error) = write(&*store, name, content) {
                self.lacks(index, &*store, &error);
            }
        }
    }

    /// Gives the paths that are not in use what they lack of what the log has signed.
    pub(super) fn spread_what_is_missing(&self) {
        let Some(size) = ({ self.state().paths[self.state().current].head }).map(|head| head.size) else {
            return;
        };
        for (index, store) in self.idle() {
            if let Err(error) = self.fill_up(&*store, size) {
                self.lacks(index, &*store, &error);
            }
        }
    }

    fn fill_up(&self, store: &dyn Store, size: u64) -> io::Result<()> {
        for level in 0..8 {
            let full = (size >> (8 * u32::from(level))) / u64::from(FULL_WIDTH);
            let of = |index| {
                let hashes = TileId { level, index, width: FULL_WIDTH }.path();
                let entries = (level == 0).then(|| tile::entries_path(index, FULL_WIDTH));
                std::iter::once(hashes).chain(entries)
            };
            // They are given in this order, so that before one that is there none is missing.
            let lacks = |index: &u64| of(*index).any(|name| store.open(&name).is_err());
            let first = (0..full).rev().take_while(lacks).last().unwrap_or(full);
            for name in (first..full).flat_map(of) {
                let content = bulla_store::read_small(self, &name, LIMIT);
                let content = content.map_err(|error| io::Error::other(error.to_string()))?;
                write(store, &name, &content)?;
            }
        }
        Ok(())
    }

    /// Says that a path lacks something, and gives it no more: what is given to it stays without gaps.
    fn lacks(&self, index: usize, store: &dyn Store, error: &io::Error) {
        self.change().paths[index].lacking = true;
        let place = store.describe("");
        self.tell(
            index,
            format!("{place} is not given the log's tree any more, until the log is opened again: {error}"),
        );
    }
}

/// Writes a file durably, with the directories above it.
pub(super) fn write(store: &dyn Store, name: &str, content: &[u8]) -> io::Result<()> {
    let directory = path::parent(name);
    if store.list(directory).is_err() {
        store.create_directory(directory)?;
        let mut above = directory;
        while !above.is_empty() {
            above = path::parent(above);
            store.sync_directory(above)?;
        }
    }
    bulla_store::replace(store, name, content)
}
