//! What the kernel tells of changes in directories (inotify(7)): hints of where to look, no more. What is not told, as on file systems
//! that other machines write to, is found by looking from time to time.

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Watches directories.
pub(super) struct Watch {
    descriptor: OwnedFd,
    directories: HashMap<i32, PathBuf>,
    watched: HashSet<PathBuf>,
}

/// What was told.
#[derive(Default)]
pub(super) struct Hints {
    /// Files that grew or changed.
    pub(super) changed: HashSet<PathBuf>,
    /// Names came or went, or nobody knows what happened.
    pub(super) renamed: bool,
}

impl Watch {
    /// Something that watches nothing yet; `None` where the kernel gives none.
    pub(super) fn new() -> Option<Self> {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Watch { descriptor, directories: HashMap::new(), watched: HashSet::new() })
    }

    /// Watches a directory from now on. False where that cannot be.
    pub(super) fn add(&mut self, directory: &Path) -> bool {
        if self.watched.contains(directory) {
            return true;
        }
        let changes = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ONLYDIR;
        let Ok(number) = inotify::add_watch(&self.descriptor, directory, changes) else { return false };
        self.directories.insert(number, directory.to_owned());
        self.watched.insert(directory.to_owned())
    }

    /// Takes what was told meanwhile.
    pub(super) fn take(&mut self) -> Hints {
        let mut hints = Hints::default();
        let mut room = [MaybeUninit::uninit(); 8192];
        let mut reader = inotify::Reader::new(&self.descriptor, &mut room);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => return hints,
            };
            let flags = event.events();
            if flags.contains(ReadFlags::IGNORED) {
                // The directory is gone; one of its name is watched anew when it is met.
                if let Some(directory) = self.directories.remove(&event.wd()) {
                    self.watched.remove(&directory);
                }
            }
            match (self.directories.get(&event.wd()), event.file_name()) {
                (Some(directory), Some(name)) if flags.contains(ReadFlags::MODIFY) => {
                    hints.changed.insert(directory.join(OsStr::from_bytes(name.to_bytes())));
                }
                _ => hints.renamed = true,
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
