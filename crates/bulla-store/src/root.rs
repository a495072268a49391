//! The path of a store's directory, and what is done by it: the directory is made, and opened once.
#![expect(clippy::disallowed_methods, reason = "here is where the others go")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::beneath::SEARCH;

/// A directory's path as the user wrote it, and the directory that a relative one starts from: another one may become the
/// process's current directory later.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    base: Option<OwnedFd>,
    /// The same from the root of the file system on.
    place: PathBuf,
    /// The directories that were made, each after the one that it is in.
    made: Mutex<Vec<PathBuf>>,
}

/// The mode of a directory that is created.
pub(crate) const DIRECTORY_MODE: Mode = Mode::RWXU;

impl Root {
    pub(crate) fn new(path: PathBuf) -> Self {
        // Where the current directory is gone there is nothing below it either.
        let base = if path.is_absolute() { None } else { open(CWD, Path::new("."), SEARCH).ok() };
        let place = absolute(&path);
        Root { path, base, place, made: Mutex::default() }
    }

    /// The path from the root of the file system on.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// What paths below it are relative to, where they are.
    pub(crate) fn base(&self) -> BorrowedFd<'_> {
        self.base.as_ref().map_or(CWD, OwnedFd::as_fd)
    }

    /// The path of something below it; of the empty path its own.
    pub(crate) fn join(&self, path: &str) -> PathBuf {
        // Joining an empty path would add a trailing slash.
        if path.is_empty() { self.path.clone() } else { self.path.join(path) }
    }

    /// Opens the directory that is there now, links followed.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        open(self.base(), &self.path, SEARCH)
    }

    /// Makes it where it is missing, with what is missing above it, and makes its name durable.
    pub(crate) fn create(&self) -> io::Result<()> {
        let is_missing = |path: &Path| {
            !path.as_os_str().is_empty()
                && rustix::fs::statat(self.base(), path, AtFlags::empty()).err() == Some(Errno::NOENT)
        };
        let missing = self.path.ancestors().take_while(|path| is_missing(path)).collect::<Vec<_>>();
        for path in missing.iter().rev() {
            match rustix::fs::mkdirat(self.base(), *path, DIRECTORY_MODE) {
                Ok(()) => self.made.lock().unwrap_or_else(PoisonError::into_inner).push((*path).to_owned()),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            self.sync_parent(path)?;
        }
        match missing.is_empty() {
            // It was there already, but whoever made it may not have synced the directory above. We may not be allowed to
            // open that one; then it was made by somebody who is, and it is for them to sync it.
            true => self.sync_parent(&self.path).or_else(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => Ok(()),
                _ => Err(error),
            }),
            false => Ok(()),
        }
    }

    /// Removes the directories that were made here, as far as they are empty.
    pub(crate) fn remove_made(&self) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(path) = made.pop() {
            if rustix::fs::unlinkat(self.base(), &path, AtFlags::REMOVEDIR).is_err() {
                made.clear();
            }
        }
    }

    fn sync_parent(&self, path: &Path) -> io::Result<()> {
        let parent = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Ok(()),
        };
        let directory = open(self.base(), parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(retry_on_intr(|| rustix::fs::fsync(&directory))?)
    }
}

/// The path from the root of the file system on, and without `..`, as the current directory is now; links in it stay, unless there is `..` behind
/// one.
fn absolute(path: &Path) -> PathBuf {
    let Ok(place) = std::path::absolute(path) else { return path.to_owned() };
    match place.components().any(|component| component == Component::ParentDir) {
        true => resolve(&place).unwrap_or(place),
        false => place,
    }
}

/// A path from the root of the file system on, without links and `..`, as far as it exists yet; of a link to what does not, where that would
/// come to lie.
///
/// # Errors
/// Where the path is empty, or relative to a current directory that is gone.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    // As many links that lead nowhere yet are followed as the operating system follows.
    resolve_through(path, &mut 40)
}

fn resolve_through(path: &Path, links: &mut u32) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in std::path::absolute(path)?.components() {
        match component {
            Component::ParentDir => drop(resolved.pop()),
            component => resolved.push(component),
        }
        resolved = match (resolved.canonicalize(), resolved.read_link()) {
            (Ok(canonical), _) => canonical,
            (Err(_), Ok(target)) if *links > 0 => {
                *links -= 1;
                let beside = resolved.parent().unwrap_or(Path::new("/")).join(target);
                resolve_through(&beside, links)?
            }
            (Err(_), _) => resolved,
        };
    }
    Ok(resolved)
}

/// Whether a path leads to a directory or into it, by whatever detour. Of one that cannot be resolved it does not.
pub fn inside(path: &Path, directory: &Path) -> bool {
    match (resolve(path), resolve(directory)) {
        (Ok(path), Ok(directory)) => path.starts_with(directory),
        _ => false,
    }
}

fn open(base: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(retry_on_intr(|| rustix::fs::openat(base, path, flags | OFlags::CLOEXEC, Mode::empty()))?)
}
