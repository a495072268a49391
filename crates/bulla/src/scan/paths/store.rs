//! The paths of a log as one store.

use super::twins::{is_not_there, name_of};
use super::{LogPaths, OnePath, State};
use crate::format::{config, files};
use bulla_store::{FileSystem, Item, Lock, Paths, Store, StoreFile};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

impl LogPaths {
    /// What the first path gives that has it. What one that has failed does not give back is looked for elsewhere; what another does
    /// not give back is an error, since what lies elsewhere may be older. So it is of any path until the log is recovered.
    fn first<T>(&self, path: &str, open: impl Fn(&dyn Store) -> io::Result<T>) -> io::Result<T> {
        let (mut missing, recovers) = (None, self.recovers());
        for (store, failed) in self.readable_for(path) {
            match open(&*store) {
                Err(error) if failed && !recovers || is_not_there(&error) => {
                    // That one failed tells more than that the others have it not.
                    if missing.is_none() || error.kind() != io::ErrorKind::NotFound {
                        missing = Some(error);
                    }
                }
                opened => return opened,
            }
        }
        Err(missing.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// Whether a writer has the log and has not found yet where it ends.
    fn recovers(&self) -> bool {
        let state = self.state();
        state.writing && !state.recovered
    }

    /// Has a path that is not in use count as failed, of a log that is written, where it does not list what it has. False of any other, and
    /// until the log is recovered.
    fn is_left_out(&self, store: &Arc<dyn Store>, directory: &str, error: &io::Error) -> bool {
        let mut state = self.change();
        let State { paths, current, writing, recovered, .. } = &mut *state;
        let found = paths.iter().position(|path| Arc::ptr_eq(&path.store, store));
        let Some(index) = found.filter(|index| *writing && *recovered && index != current) else {
            return false;
        };
        paths[index].failed = true;
        drop(state);
        self.tell(index, format!("{} is left out: listing it: {error}", store.describe(directory)));
        true
    }

    /// Does something on every path. That it fails on another than the one in use is no error, also where this one has nothing to do it to: a
    /// path that failed, or can only be read, may not even give back what it has.
    fn everywhere(&self, work: impl Fn(&dyn Store) -> io::Result<()>) -> io::Result<()> {
        let mut stores = self.readable().into_iter().map(|(store, _)| store);
        let mut done =
            stores.next().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |store| work(&*store));
        for store in stores {
            let is_missing = done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            let is_elsewhere = match work(&*store) {
                Ok(()) => true,
                Err(error) => error.kind() != io::ErrorKind::NotFound,
            };
            if is_missing && is_elsewhere {
                done = Ok(());
            }
        }
        done
    }
}

/// The lock of whoever changes the configuration, on every path.
#[derive(Debug)]
struct Locks(Vec<Arc<dyn Lock>>);

impl Lock for Locks {
    fn is_in_place(&self) -> io::Result<bool> {
        self.0.iter().try_fold(true, |all, lock| Ok(all && lock.is_in_place()?))
    }
}

/// The writer's lock. It is held on every path that could be locked; in its place is what is written to.
struct WritersLock(Arc<RwLock<State>>);

impl Lock for WritersLock {
    fn is_in_place(&self) -> io::Result<bool> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let lock = state.paths[state.current].lock.clone();
        drop(state);
        lock.map_or(Ok(false), |lock| lock.is_in_place())
    }
}

impl Drop for WritersLock {
    fn drop(&mut self) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.paths.iter_mut().for_each(|path| path.lock = None);
        state.writing = false;
    }
}

impl fmt::Debug for WritersLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WritersLock")
    }
}

impl Store for LogPaths {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.in_use().create(path)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        match name_of(path) {
            None => self.first(path, |store| store.open(path)),
            Some(_) if self.state().writing => self.longest_segment(path).map(|(_, file)| file),
            Some(_) => self.open_segment(path),
        }
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        match name_of(path) {
            None => self.first(path, |store| store.open_write(path)),
            // The one that was read.
            Some(_) => self.longest_segment(path)?.0.open_write(path),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let current = self.in_use();
        // Once it is renamed the path may give nothing back any more.
        let read = || bulla_store::read_small(&*current, from, config::LIMIT);
        let text = (to == config::FILE).then(read).transpose();
        let text = text.map_err(|error| io::Error::other(error.to_string()))?;
        current.rename(from, to)?;
        if let Some(text) = text {
            self.change().config = text;
        }
        self.keep_cosigned(&*current, to);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.everywhere(|store| store.remove(path))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        let (mut items, mut found, mut missing) = (BTreeSet::new(), false, None);
        let recovers = self.recovers();
        for (store, failed) in self.readable() {
            match store.list(directory) {
                Ok(listed) => (found, _) = (true, items.extend(listed)),
                Err(error)
                    if failed && !recovers
                        || error.kind() == io::ErrorKind::NotFound
                        || self.is_left_out(&store, directory, &error) =>
                {
                    missing = missing.or(Some(error))
                }
                // Which of the paths it is nobody else can say.
                Err(error) => {
                    let why = format!("{} cannot be listed: {error}", store.describe(directory));
                    return Err(io::Error::new(error.kind(), why));
                }
            }
        }
        match missing {
            Some(error) if !found => Err(error),
            _ => Ok(items.into_iter().collect()),
        }
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.in_use().create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.everywhere(|store| store.remove_directory(path))
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.in_use().sync_directory(path)
    }

    /// Takes the lock on every path that is there, so that whoever knows of one of them alone is kept out, too. One that cannot be
    /// locked, but because somebody has it, is one that cannot be written; so is one that the writer has left.
    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        let paths = {
            let state = self.state();
            let of = |(index, path): (usize, &OnePath)| {
                let left = index != state.current && state.is_left(path);
                (index, path.store.clone(), path.absent.is_some(), left)
            };
            state.paths.iter().enumerate().map(of).collect::<Vec<_>>()
        };
        let mut locks = Vec::new();
        let mut failed = None;
        for (index, store, absent, left) in paths {
            let own =
                || bulla_store::require_own(&*store).map_err(|error| io::Error::other(error.to_string()));
            let locked = if absent { None } else { Some(own().and_then(|()| store.lock(path))) };
            locks.push(match locked {
                // Whoever writes by the same keys is kept out by their lock: nothing is lost with a path that was left.
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock && left => {
                    let lock = store.describe(path);
                    self.tell(index, format!("{lock} is locked by somebody: the log, which has left that path, goes on without it"));
                    None
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(error.kind(), format!("{} is locked", store.describe(path))));
                }
                Some(Err(error)) => {
                    failed.get_or_insert(error);
                    None
                }
                Some(Ok(lock)) => Some(Arc::<dyn Lock>::from(lock)),
                None => None,
            });
        }
        if let Some(error) = failed.filter(|_| locks.iter().all(Option::is_none)) {
            return Err(error);
        }
        if path != files::LOCK {
            return Ok(Box::new(Locks(locks.into_iter().flatten().collect())));
        }
        let mut state = self.change();
        for (path, lock) in state.paths.iter_mut().zip(locks) {
            path.lock = lock;
        }
        (state.writing, state.recovered) = (true, false);
        drop(state);
        Ok(Box::new(WritersLock(self.state.clone())))
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        let mut locked = Ok(false);
        for (store, failed) in self.readable_for(path) {
            match store.is_locked(path) {
                Ok(true) => return Ok(true),
                Err(error) if !failed && locked.is_ok() => locked = Err(error),
                _ => {}
            }
        }
        locked
    }

    fn directory(&self) -> Option<&FileSystem> {
        self.first.directory()
    }

    fn paths(&self) -> Option<&dyn Paths> {
        Some(self)
    }

    fn describe(&self, path: &str) -> String {
        if path.is_empty() {
            return self.first.describe(path);
        }
        // One on which something else is in the way is what an error is about.
        let is_none = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        let is_blocked = |(store, _): &&(Arc<dyn Store>, bool)| {
            store.open(path).is_err_and(|error| !is_none(error))
                && store.list(path).is_err_and(|error| !is_none(error))
        };
        let has = |(store, _): &&(Arc<dyn Store>, bool)| store.open(path).is_ok() || store.list(path).is_ok();
        let readable = self.readable();
        if name_of(path).is_some()
            && !readable.iter().any(|on_path| is_blocked(&on_path))
            && let Some(store) = self.holding(path)
        {
            return store.describe(path);
        }
        let found = readable.iter().find(is_blocked).or_else(|| readable.iter().find(has));
        found.map_or_else(|| self.in_use().describe(path), |(store, _)| store.describe(path))
    }
}
