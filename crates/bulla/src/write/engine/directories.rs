//! The directories of a log, the locks on them, and whether they are still where they were.
//!
//! A directory can be moved, and another one put in its place, while a writer has it open. What the writer goes on to write
//! lands in the one that it holds, which nobody looks at any more; and whoever opens the new one finds a lock that is
//! free. So before each group, each sync and each checkpoint the locks are looked at: where the path that the user
//! wrote leads to another lock than the one that is held, or to none, the log fails.
//!
//! Invariant: once the log has failed for that, nothing more is written to either directory, even if the old one is put back. A log that
//! lies on several paths goes on on another one instead. Where none takes it, that is tried again as anything else that fails: nothing is
//! written meanwhile. One on a single path with `on_failure = "block"` waits until that is back.

use super::Engine;
use crate::format::files;
use crate::keys;
use crate::scan::paths::refuse_to_write;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{Lock, Paths, Store};
use std::fmt;
use std::io;
use std::iter;
use std::sync::{Arc, OnceLock};

/// The place of the log's directory among the two.
const LOG: usize = 0;

/// The locks on both directories. They are released once nobody keeps this.
#[derive(Debug)]
pub(crate) struct Directories {
    /// With the names of the directories.
    locks: [(String, Box<dyn Lock>); 2],
    /// The one that the log has failed for, since it was not in its place.
    replaced: OnceLock<usize>,
}

impl Directories {
    /// Takes the locks of both directories.
    ///
    /// # Errors
    /// `Locked` where another writer holds one, `Refused` to root where one is somebody else's; `Tampered` where they are of two histories of the log.
    pub(crate) fn lock(log: &dyn Store, key_directory: &dyn Store) -> Result<Arc<Self>> {
        let locked = Self::lock_of_any_history(log, key_directory);
        if locked.as_ref().is_err_and(|error| error.kind() != ErrorKind::Tampered) {
            return locked;
        }
        // It says more than that a path contradicts the others.
        match log.paths().and_then(Paths::another_history) {
            Some(why) => Err(refuse_to_write(&why)),
            None => locked,
        }
    }

    /// The same for whoever looks which history the log is of.
    ///
    /// # Errors
    /// As [`Directories::lock`].
    pub(crate) fn lock_of_any_history(log: &dyn Store, key_directory: &dyn Store) -> Result<Arc<Self>> {
        // Of both, before a lock is made in either.
        bulla_store::require_own(log)?;
        bulla_store::require_own(key_directory)?;
        let lock = |store: &dyn Store, path| {
            let lock = store.lock(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    // Of a log on several paths, which of their locks it is.
                    let which = error.get_ref().map_or_else(String::new, |which| format!(" ({which})"));
                    let why = format!("another writer has {} open{which}: stop it first", store.describe(""));
                    Error::new(ErrorKind::Locked, why)
                }
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

    /// Looks whether both are where they were, of the log's as [`Self::is_log_in_place`].
    fn look(&self, paths: Option<&dyn Paths>) -> Result<(), NotInPlace> {
        if let Some(index) = self.replaced.get() {
            return Err(NotInPlace::Moved(*index));
        }
        let mut moved = Vec::new();
        for (index, (name, lock)) in self.locks.iter().enumerate() {
            let failed = |error| Error::io(format!("looking whether {name} is where it was"), error);
            let looked = if index == LOG { self.is_log_in_place(paths) } else { lock.is_in_place() };
            if !looked.map_err(failed).map_err(NotInPlace::Unknown)? {
                moved.push(index);
            }
        }
        match moved[..] {
            [] => Ok(()),
            [LOG] => Err(NotInPlace::Log(self.log_at(paths))),
            [first, ..] => Err(NotInPlace::Moved(first)),
        }
    }

    /// Whether the log's directory is where it was. Of a log on several paths another one takes over where that is not so, as long as one
    /// does. The path that was found in its place is not looked at again: it may be moved at any time, and the next look has another one
    /// take over then.
    fn is_log_in_place(&self, paths: Option<&dyn Paths>) -> io::Result<bool> {
        let (_, lock) = &self.locks[LOG];
        for paths in paths.into_iter().flat_map(|paths| iter::repeat_n(paths, paths.others())) {
            let turn = paths.turn();
            let why = match lock.is_in_place() {
                Ok(true) => return Ok(true),
                Ok(false) => "its directory was replaced or moved".to_owned(),
                Err(error) => format!("looking at its directory: {error}"),
            };
            if !paths.fail_over(turn, &why) {
                break;
            }
        }
        lock.is_in_place()
    }

    /// Whether the log has failed for one that was replaced.
    fn are_replaced(&self) -> bool {
        self.replaced.get().is_some()
    }

    /// Where the log is written: of several paths on the one in use.
    fn log_at(&self, paths: Option<&dyn Paths>) -> String {
        paths.map_or_else(|| self.locks[LOG].0.clone(), |paths| paths.current().1.describe(""))
    }

    /// Has nothing more be written to either, since this one is not where it was.
    fn give_up(&self, index: usize, paths: Option<&dyn Paths>) -> Error {
        let index = *self.replaced.get_or_init(|| index);
        if let Some(paths) = paths.filter(|_| index == LOG) {
            return Error::unavailable(format!(
                "{}, in use last, was replaced or moved while the log was open, and no other path takes it. Nothing more is written to any of \
                 them; what was acknowledged is in all of them together, by whatever names. Put them back, and start whatever had the log \
                 open anew",
                self.log_at(Some(paths))
            ));
        }
        let (name, _) = &self.locks[index];
        Error::unavailable(format!(
            "{name} was replaced or moved while the log was open: its lock is not the one that {name} leads to now. \
             Nothing more is written to either; what was acknowledged is in the one that was moved. Open that one by its \
             new name, or put it back; either way whatever had it open is to be started anew"
        ))
    }
}

/// Why it is not so that both are where they were.
enum NotInPlace {
    /// That cannot be told.
    Unknown(Error),
    /// The log's directory, of this name, is not. It may come back.
    Log(String),
    /// The one with this index is not, and that is the end of it.
    Moved(usize),
}

impl fmt::Display for NotInPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) => error.fmt(f),
            Self::Log(name) => {
                write!(
                    f,
                    "{name} was replaced or moved: nothing is written until it is back, or a path takes the log"
                )
            }
            Self::Moved(_) => f.write_str("a directory was replaced or moved"),
        }
    }
}

impl Engine {
    /// That both directories are where they were when they were locked. One that goes on for ever waits until the log's is, and one on several
    /// paths for as long as its retries last.
    ///
    /// # Errors
    /// `Unavailable` where one is not, or where that cannot be told, after retries; the log then refuses everything.
    pub(crate) fn require_in_place(&self) -> Result<()> {
        let directories = self.directories.upgrade();
        let directories = directories.ok_or_else(|| Error::new(ErrorKind::Closed, "the log is closed"))?;
        let paths = self.log.paths();
        let passes = |why: &NotInPlace| match why {
            NotInPlace::Unknown(_) => true,
            NotInPlace::Log(_) if paths.is_some() || self.back_off.goes_on_for_ever() => {
                paths.iter().for_each(|paths| paths.waits());
                true
            }
            NotInPlace::Log(_) | NotInPlace::Moved(_) => false,
        };
        let looked = self.back_off.retry(passes, || directories.look(paths));
        let looked = looked.map_err(|why| match why {
            NotInPlace::Unknown(error) => error,
            NotInPlace::Log(_) => directories.give_up(LOG, paths),
            NotInPlace::Moved(index) => directories.give_up(index, paths),
        });
        looked.inspect_err(|error| self.fail(error))
    }

    /// Whether the log has failed for a directory that was not where it was.
    pub(super) fn was_replaced(&self) -> bool {
        self.directories.upgrade().is_none_or(|directories| directories.are_replaced())
    }
}
