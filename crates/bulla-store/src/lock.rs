//! A lock on a file of the file system, and whether that file is still where it was.
#![expect(clippy::disallowed_methods, reason = "here is where the others go")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use rustix::fs::{AtFlags, FlockOperation, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::root::Root;
use crate::{Lock, process};

/// A file with a lock of this process on it.
///
/// The lock is the open file's, which a forked child shares. So it is released by unlocking: closing would leave it to
/// a child that has not come to its `exec` yet. And only where it was taken: unlocking in a child would free its
/// parent's.
#[derive(Debug)]
pub(crate) struct Locked {
    file: File,
    owner: u32,
}

impl Locked {
    /// The file again where somebody else has the lock.
    pub(crate) fn try_lock(file: File, operation: FlockOperation) -> io::Result<Result<Locked, File>> {
        match retry_on_intr(|| rustix::fs::flock(&file, operation)) {
            Ok(()) => Ok(Ok(Locked { file, owner: process::id() })),
            Err(Errno::WOULDBLOCK) => Ok(Err(file)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.owner == process::id() {
            // Where that fails, closing is what is left to do.
            let _ = retry_on_intr(|| rustix::fs::flock(&self.file, FlockOperation::Unlock));
        }
    }
}

/// A lock, and the path by which its file was reached.
#[derive(Debug)]
pub(crate) struct InPlace {
    root: Arc<Root>,
    /// Starts with what the user wrote.
    path: CString,
    file: FileId,
    _locked: Locked,
}

/// Which file it is. It is of no other file for as long as this one is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    #[allow(clippy::unnecessary_cast, reason = "not on every architecture are they of this type")]
    pub(crate) fn of(found: &Stat) -> Self {
        FileId { device: found.st_dev as u64, inode: found.st_ino as u64 }
    }
}

impl InPlace {
    /// Of the file `path` below `root`.
    pub(crate) fn new(root: Arc<Root>, path: &str, locked: Locked) -> io::Result<Self> {
        let path = CString::new(root.join(path).into_os_string().into_vec())?;
        let file = FileId::of(&rustix::fs::fstat(&locked.file)?);
        Ok(InPlace { root, path, file, _locked: locked })
    }
}

impl Lock for InPlace {
    fn is_in_place(&self) -> io::Result<bool> {
        match retry_on_intr(|| {
            rustix::fs::statat(self.root.base(), self.path.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
        }) {
            Ok(found) => Ok(FileId::of(&found) == self.file),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
