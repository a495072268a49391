//! The directories of a log, the locks on them, and whether they are still where they were.
//!
//! A directory can be moved, and another one put in its place, while a writer has it open. What the writer goes on to write
//! lands in the one that it holds, which nobody looks at any more; and whoever opens the new one finds a lock that is
//! free. So before each group, each sync and each checkpoint the locks are looked at: where the path that the user
//! wrote leads to another lock than the one that is held, or to none, the log fails.
//!
//! Invariant: once that was found, nothing more is written to either directory, even if the old one is put back. A log that lies on
//! several paths goes on on another one instead.

use super::Engine;
use crate::format::files;
use crate::keys;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{Lock, Paths, Store};
use std::sync::{Arc, OnceLock};

/// The locks on both directories. They are released once nobody keeps this.
#[derive(Debug)]
pub(crate) struct Directories {
    /// With the names of the directories.
    locks: [(String, Box<dyn Lock>); 2],
    /// The first that was found not to be in its place.
    replaced: OnceLock<usize>,
}

impl Directories {
    /// Takes the locks of both directories.
    ///
    /// # Errors
    /// `Locked` where another writer holds one, `Refused` to root where one is somebody else's.
    pub(crate) fn lock(log: &dyn Store, key_directory: &dyn Store) -> Result<Arc<Self>> {
        // Of both, before a lock is made in either.
        bulla_store::require_own(log)?;
        bulla_store::require_own(key_directory)?;
        let lock = |store: &dyn Store, path| {
            let lock = store.lock(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => Error::new(
                    ErrorKind::Locked,
                    format!("another writer has {} open: stop it first", store.describe("")),
                ),
                std::io::ErrorKind::NotFound => Error::unavailable(format!(
                    "there is no directory {}, and a log is written with both, its own and that of its keys: bring it, \
                     mount it, or name the one that it has",
                    store.describe("")
                )),
                _ => Error::io(format!("locking {}", store.describe(path)), error),
            })?;
            Ok((store.describe(""), lock))
        };
        let locks = [lock(log, files::LOCK)?, lock(key_directory, keys::files::LOCK)?];
        if let Some(paths) = log.paths() {
            paths.require_all()?;
        }
        Ok(Arc::new(Directories { locks, replaced: OnceLock::new() }))
    }

    /// Looks whether both are where they were. Of a log on several paths another one takes over where the one that is written to is
    /// not.
    ///
    /// # Errors
    /// `Unavailable` where that cannot be told.
    fn look(&self, paths: Option<&dyn Paths>) -> Result<()> {
        if self.replaced.get().is_some() {
            return Ok(());
        }
        if let Some(paths) = paths {
            self.look_at_paths(paths);
        }
        for (index, (name, lock)) in self.locks.iter().enumerate() {
            let failed = |error| Error::io(format!("looking whether {name} is where it was"), error);
            if !lock.is_in_place().map_err(failed)? {
                self.replaced.get_or_init(|| index);
            }
        }
        Ok(())
    }

    /// Has another path take over where the one that is written to is not where it was, as long as one does.
    fn look_at_paths(&self, paths: &dyn Paths) {
        for _ in 0..paths.others() {
            let turn = paths.turn();
            let why = match self.locks[0].1.is_in_place() {
                Ok(true) => return,
                Ok(false) => "its directory was replaced or moved".to_owned(),
                Err(error) => format!("looking at its directory: {error}"),
            };
            if !paths.fail_over(turn, &why) {
                return;
            }
        }
    }

    /// Whether one was found to be replaced.
    fn are_replaced(&self) -> bool {
        self.replaced.get().is_some()
    }

    fn require_in_place(&self) -> Result<()> {
        let Some(index) = self.replaced.get() else { return Ok(()) };
        let (name, _) = &self.locks[*index];
        Err(Error::unavailable(format!(
            "{name} was replaced or moved while the log was open: its lock is not the one that {name} leads to now. \
             Nothing more is written to either; what was acknowledged is in the one that was moved. Open that one by its \
             new name, or put it back; either way whatever had it open is to be started anew"
        )))
    }
}

impl Engine {
    /// That both directories are where they were when they were locked.
    ///
    /// # Errors
    /// `Unavailable` where one is not, or where that cannot be told, after retries; the log then refuses everything.
    pub(crate) fn require_in_place(&self) -> Result<()> {
        let directories = self.directories.upgrade();
        let directories = directories.ok_or_else(|| Error::new(ErrorKind::Closed, "the log is closed"))?;
        let looked = self.back_off.retry(|_| true, || directories.look(self.log.paths()));
        looked.and_then(|()| directories.require_in_place()).inspect_err(|error| self.fail(error))
    }

    /// Whether a directory was found not to be where it was, when that was looked at last.
    pub(super) fn was_replaced(&self) -> bool {
        self.directories.upgrade().is_none_or(|directories| directories.are_replaced())
    }
}
