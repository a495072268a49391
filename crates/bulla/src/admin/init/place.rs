//! A directory that a log, or its keys, are made in.
//!
//! Invariants:
//! - it is taken only where it is missing or empty, so that whatever is in it from then on was made there;
//! - whoever takes it holds its lock, so nobody else makes a log in it meanwhile;
//! - unless it is kept, what was made in it goes again, and so do the directories that were made for it.

use super::{config, prepare};
use crate::format::files::{CHECKPOINT, COSE_CHECKPOINT, DIRECTORIES, LOCK};
use crate::format::segment;
use crate::keys::files;
use bulla_store::{Error, ErrorKind, Lock, Result, Store, inside};
use std::io;

/// What is made in a directory, and how it is found there.
pub(super) struct Contents {
    files: &'static [&'static str],
    directories: &'static [&'static str],
    lock: &'static str,
    /// What there is to say of these names, which were found there.
    explain: fn(&dyn Store, &[String]) -> String,
}

/// Of a log. Its configuration goes first: without it the directory is none.
pub(super) const LOG: Contents = Contents {
    files: &[config::FILE, CHECKPOINT, COSE_CHECKPOINT],
    directories: &DIRECTORIES,
    lock: LOCK,
    explain: explain_log,
};

/// Of a key directory.
pub(super) const KEYS: Contents = Contents {
    files: &[
        files::SEAL_STATE,
        files::SIGNING,
        files::SIGNING_ML_DSA,
        files::SEAL_KEY,
        files::PSEUDONYM,
        files::ERASURE_KEY,
        files::IDENTITY,
    ],
    directories: &[files::VAULT, files::ROOTS],
    lock: files::LOCK,
    explain: explain_keys,
};

/// See the module.
pub(super) struct Place<'s> {
    store: &'s dyn Store,
    contents: &'static Contents,
    /// From when on what is there was made here.
    lock: Option<Box<dyn Lock>>,
    kept: bool,
}

impl<'s> Place<'s> {
    /// Makes the directory where it is missing, and takes it.
    ///
    /// # Errors
    /// `Refused` where there is anything in it, or to root where it is somebody else's, `Locked` where somebody else takes it, else where it cannot be made.
    pub(super) fn take(store: &'s dyn Store, contents: &'static Contents) -> Result<Self> {
        let mut place = Place { store, contents, lock: None, kept: false };
        prepare(store, &[])?;
        bulla_store::require_own(store)?;
        let taken = || {
            Error::new(ErrorKind::Locked, format!("somebody else is making a log in {}", store.describe("")))
        };
        let failed = |error| Error::io(format!("locking {}", store.describe(contents.lock)), error);
        let lock = store.lock(contents.lock).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => taken(),
            _ => {
                // Its file may have been made all the same.
                if store.is_locked(contents.lock).is_ok_and(|locked| !locked) {
                    let _ = store.remove(contents.lock);
                }
                failed(error)
            }
        })?;
        if !lock.is_in_place().map_err(failed)? {
            return Err(taken());
        }
        contents.require_unused(store, &[contents.lock])?;
        place.lock = Some(lock);
        Ok(place)
    }

    /// Leaves what was made.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    fn remove_all_in(&self, directory: &str) {
        for item in self.store.list(directory).unwrap_or_default() {
            let _ = self.store.remove(&format!("{directory}/{}", item.name));
        }
        let _ = self.store.remove_directory(directory);
    }
}

/// What cannot be removed is left: the next attempt tells of it.
impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if self.lock.is_some() {
            self.contents.files.iter().for_each(|file| drop(self.store.remove(file)));
            self.contents.directories.iter().for_each(|directory| self.remove_all_in(directory));
            let _ = self.store.remove(self.contents.lock);
        }
        if let Some(directory) = self.store.directory() {
            directory.remove_made();
        }
    }
}

/// That a log and its keys do not lie in one another, by whatever detour, where they are directories of the file system.
///
/// # Errors
/// `Invalid`, naming them.
pub(super) fn require_apart(log: &dyn Store, keys: &dyn Store) -> Result<()> {
    let Some((log_at, keys_at)) = log.directory().zip(keys.directory()) else { return Ok(()) };
    let of_keys = inside(keys_at.place(), log_at.place());
    let of_log = inside(log_at.place(), keys_at.place());
    let (log, keys) = (log.describe(""), keys.describe(""));
    let what = match (of_keys, of_log) {
        (false, false) => return Ok(()),
        (true, false) => format!("{keys} is inside {log}"),
        (false, true) => format!("{log} is inside {keys}, the directory of its keys"),
        (true, true) => format!("{keys} is named for the keys, and is the log's directory"),
    };
    Err(Error::invalid(format!("{what}: who can reach the log must not reach its keys")))
}

/// That the directories of a log and of its keys are missing, or empty. Where an `init` was cut short, it is said of both what it left.
///
/// # Errors
/// As [`Contents::require_unused`].
pub(super) fn require_unused(log: &dyn Store, keys: &dyn Store) -> Result<()> {
    let of_keys = KEYS.require_unused(keys, &[]);
    let Err(of_log) = LOG.require_unused(log, &[]) else { return of_keys };
    let items = log.list("").unwrap_or_default();
    let names = items.into_iter().map(|item| item.name).collect::<Vec<_>>();
    match of_keys {
        Err(of_keys) if of_keys.kind() == ErrorKind::Refused && was_cut_short(log, &names) => {
            Err(Error::new(ErrorKind::Refused, format!("{of_log}; and {of_keys}")))
        }
        _ => Err(of_log),
    }
}

impl Contents {
    /// That a directory is missing, or has nothing in it but these.
    ///
    /// # Errors
    /// `Refused`, with what it has and what to do, where it has more; else where it cannot be listed.
    pub(super) fn require_unused(&self, store: &dyn Store, but: &[&str]) -> Result<()> {
        let items = match store.list("") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            items => items.map_err(|error| Error::io(format!("listing {}", store.describe("")), error))?,
        };
        let names = items.into_iter().map(|item| item.name).collect::<Vec<_>>();
        match names.iter().all(|name| but.contains(&name.as_str())) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Refused,
                format!("{} exists and is not empty: {}", store.describe(""), (self.explain)(store, &names)),
            )),
        }
    }

    /// Those of these names that are of what is made here, or of its temporary files.
    fn known(&self, names: &[String]) -> Vec<String> {
        let known = |name: &&String| {
            let name = name.strip_suffix(".tmp").unwrap_or(name);
            name == self.lock || self.files.contains(&name) || self.directories.contains(&name)
        };
        names.iter().filter(known).cloned().collect()
    }
}

const ANOTHER: &str = "name a directory that does not exist yet";

fn explain_log(store: &dyn Store, names: &[String]) -> String {
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(config::FILE) {
        return format!("it has a log; {ANOTHER}");
    }
    let without = |found: &[String]| format!("it has {} and no `{}`", listed(found), config::FILE);
    let known = LOG.known(names);
    if was_cut_short(store, names) {
        return format!(
            "{}, as an `init` leaves it that was cut short, and nothing was logged in it: remove it, or {ANOTHER}",
            without(names)
        );
    }
    match has(segment::DIRECTORY) {
        true => format!(
            "{}, without which nobody reads the log that these are of: restore that file from a copy of the log, or {ANOTHER}",
            without(&known)
        ),
        false => ANOTHER.to_owned(),
    }
}

fn explain_keys(_: &dyn Store, names: &[String]) -> String {
    let known = KEYS.known(names);
    match known.is_empty() {
        true => ANOTHER.to_owned(),
        false => format!(
            "it has {}, which are of a log's keys, or were left by an `init` that was cut short; where no log was made with \
             them, remove it, or else {ANOTHER}",
            listed(&known)
        ),
    }
}

/// Whether a directory with these names is one of a log that an `init` has begun and not finished.
fn was_cut_short(store: &dyn Store, names: &[String]) -> bool {
    let is_whole = names.iter().any(|name| name == config::FILE);
    !is_whole && !names.is_empty() && LOG.known(names).len() == names.len() && is_empty_log(store)
}

/// Whether nothing says that an entry was ever logged: no file of a segment, a tile or an index, and a checkpoint of no frames or none.
fn is_empty_log(store: &dyn Store) -> bool {
    let is_empty = |directory: &&str| match store.list(directory) {
        Ok(items) => items.is_empty(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let checkpoint = bulla_store::read_small(store, CHECKPOINT, 1 << 16);
    let of_nothing = match (&checkpoint, store.open(CHECKPOINT)) {
        (Ok(text), _) => text.split(|byte| *byte == b'\n').nth(1) == Some(b"0"),
        (Err(_), Err(error)) => error.kind() == io::ErrorKind::NotFound,
        (Err(_), Ok(_)) => false,
    };
    of_nothing && DIRECTORIES.iter().all(is_empty)
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
