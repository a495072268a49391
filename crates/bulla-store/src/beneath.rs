//! Opening what lies below a directory that is held open, without following a symbolic link on the way.
//!
//! `openat2` (Linux 5.6) does that in one call: `RESOLVE_BENEATH` lets no path lead out of the directory, and
//! `RESOLVE_NO_SYMLINKS` refuses a link in any component (`openat2(2)`). Where the kernel has no such call, or a sandbox
//! does not let it through, each component is opened by itself, relative to the one above and with `O_NOFOLLOW`.
#![expect(clippy::disallowed_methods, reason = "here is where the others go")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::path::{ancestors, split};

/// A directory that is held, whatever becomes of its name.
#[derive(Debug)]
pub(crate) struct Beneath {
    directory: OwnedFd,
    resolution: Resolution,
}

/// Who sees to it that no link is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// The kernel, in one call.
    Kernel,
    /// We, component by component.
    Components,
}

/// A directory in which a name is looked up: the one that is held, or one below it.
pub(crate) enum Parent<'a> {
    Held(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Parent<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Parent::Held(directory) => *directory,
            Parent::Below(directory) => directory.as_fd(),
        }
    }
}

/// The mode of a file that is created.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// What opens a directory so that names can be looked up in it, which takes no permission to list it.
pub(crate) const SEARCH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

impl Beneath {
    /// Holds a directory. `resolution` is found out where it is not given.
    pub(crate) fn new(directory: OwnedFd, resolution: Option<Resolution>) -> Self {
        let resolution = resolution
            .unwrap_or_else(|| Resolution::after(retry_on_intr(|| openat2(directory.as_fd(), ".", SEARCH))));
        Beneath { directory, resolution }
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Opens `path`, which was checked; the empty one is the directory itself. What `flags` create nobody but its owner can
    /// open.
    pub(crate) fn open(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        self.try_open(path, flags).map_err(|error| self.explain(path, error))
    }

    /// The directory that `path` is in, and its last component.
    pub(crate) fn parent<'p>(&self, path: &'p str) -> io::Result<(Parent<'_>, &'p str)> {
        let (above, name) = split(path);
        let parent = match above {
            "" => Parent::Held(self.directory.as_fd()),
            above => Parent::Below(self.open(above, SEARCH)?),
        };
        Ok((parent, name))
    }

    fn try_open(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let whole = if path.is_empty() { "." } else { path };
        match self.resolution {
            Resolution::Kernel => retry_on_intr(|| openat2(self.directory.as_fd(), whole, flags)),
            Resolution::Components => {
                let mut above = None::<OwnedFd>;
                let (directories, name) = split(whole);
                for component in directories.split('/').filter(|component| !component.is_empty()) {
                    let parent = above.as_ref().map_or(self.directory.as_fd(), OwnedFd::as_fd);
                    above = Some(open_component(parent, component, SEARCH)?);
                }
                let parent = above.as_ref().map_or(self.directory.as_fd(), OwnedFd::as_fd);
                open_component(parent, name, flags)
            }
        }
    }

    /// An error that says which component is a link, where that is why `path` was not opened.
    fn explain(&self, path: &str, error: Errno) -> io::Error {
        let refused = matches!(error, Errno::LOOP | Errno::NOTDIR);
        let link = if refused { ancestors(path).find(|path| self.is_link(path)) } else { None };
        link.map_or_else(|| error.into(), a_link)
    }

    /// Refuses what is neither a file nor a directory.
    ///
    /// # Errors
    /// `InvalidInput`, naming it.
    pub(crate) fn require_plain(&self, path: &str) -> io::Result<()> {
        let found = rustix::fs::statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile | FileType::Directory => Ok(()),
            FileType::Symlink => Err(a_link(path)),
            _ => {
                let message = format!("`{path}` is neither a file nor a directory: remove it");
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
        }
    }

    fn is_link(&self, path: &str) -> bool {
        let found = rustix::fs::statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
    }
}

fn a_link(path: &str) -> io::Error {
    let message = format!(
        "`{path}` is a symbolic link, and below a directory that was named none is followed: put there what it points to"
    );
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl Resolution {
    /// What a first attempt with `openat2` says: `ENOSYS` where the kernel does not have it, and most often `EPERM` where a
    /// sandbox does not let it through.
    fn after<T>(attempt: Result<T, Errno>) -> Self {
        match attempt {
            Ok(_) => Resolution::Kernel,
            Err(_) => Resolution::Components,
        }
    }
}

fn openat2(directory: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(directory, path, flags | OFlags::CLOEXEC, mode(flags), resolve)
}

fn open_component(parent: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| {
        rustix::fs::openat(parent, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode(flags))
    })
}

/// `openat2` takes a mode only for what it may create.
fn mode(flags: OFlags) -> Mode {
    if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_or_a_sandbox_without_openat2_has_components_opened_one_by_one() {
        assert_eq!(Resolution::after(Ok(())), Resolution::Kernel);
        for error in [Errno::NOSYS, Errno::PERM, Errno::ACCESS, Errno::INVAL] {
            assert_eq!(Resolution::after(Err::<(), _>(error)), Resolution::Components);
        }
    }
}
