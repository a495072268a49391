//! What witnesses have cosigned, on whichever path the log goes on: `checkpoint.witnessed`, and the file of each witness.
//!
//! Invariants:
//! - they are written to the path in use alone, and kept in memory, so that a path that takes over can be given them whatever became of the
//!   one before;
//! - a path that takes over has them, durably, before it has the checkpoint: where it has that, the log can be gone on with there alone.

use super::LogPaths;
use super::spreading::write;
use crate::format::files;
use bulla_proof::checkpoint::MAX_NOTE;
use bulla_store::Store;
use std::io;

/// So many files of witnesses are kept at most.
const MOST: usize = crate::format::config::MOST_WITNESSES;

impl LogPaths {
    /// Reads them, of a log that is about to be written: each from the path in use, or where that has it not, as the one before may have been
    /// lost by an earlier version, from another. What cannot be read, or is not signed by the log's key, whoever opens the log or verifies it
    /// tells.
    pub(super) fn read_cosigned(&self) {
        let Some(size) = self.published_frames() else { return };
        for (store, _) in self.readable() {
            for name in names(&*store) {
                let Ok(note) = bulla_store::read_small(&*store, &name, MAX_NOTE as u64) else { continue };
                if self.head(&note).is_some_and(|head| head.size <= size) {
                    self.change().cosigned.entry(name).or_insert(note);
                }
            }
        }
    }

    /// Keeps one that was written to a path.
    pub(super) fn keep_cosigned(&self, store: &dyn Store, name: &str) {
        if files::is_cosigned_path(name)
            && let Ok(note) = bulla_store::read_small(store, name, MAX_NOTE as u64)
        {
            self.change().cosigned.insert(name.to_owned(), note);
        }
    }

    /// Gives them to a path, durably. One of more frames that is there stays.
    ///
    /// # Errors
    /// Where the path does not take them.
    pub(super) fn give_cosigned(&self, store: &dyn Store) -> io::Result<()> {
        let cosigned = self.state().cosigned.clone();
        for (name, note) in &cosigned {
            let there = bulla_store::read_small(store, name, MAX_NOTE as u64).ok();
            let size = |note: &[u8]| self.head(note).map(|head| head.size);
            if there.is_none_or(|there| there != *note && size(&there) <= size(note)) {
                write(store, name, note)?;
            }
        }
        Ok(())
    }
}

/// The names of those that a path has.
fn names(store: &dyn Store) -> impl Iterator<Item = String> {
    let of_witnesses = store.list(files::COSIGNED).unwrap_or_default().into_iter();
    let of_witnesses = of_witnesses.map(|item| format!("{}/{}", files::COSIGNED, item.name));
    let of_witnesses = of_witnesses.filter(|name| files::is_cosigned_path(name)).take(MOST);
    std::iter::once(files::WITNESSED.to_owned()).chain(of_witnesses)
}
