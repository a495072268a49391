//! A store in a directory of the operating system.
//!
//! Files are created with mode 0600 and directories with mode 0700. Nothing here is written but on request, so a log
//! on a read-only mount can be read. Errors of the system are passed on as they are; who calls names the path.
#![expect(clippy::disallowed_methods, reason = "here is where the others go")]

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::path::{check, check_below_root};
use crate::{Item, Store, StoreFile, process};

/// Files below a directory of the file system.
#[derive(Clone, Debug)]
pub struct FileSystem {
    root: PathBuf,
}

impl FileSystem {
    /// A store in `root`, which need not exist yet: `create_directory("")` makes it.
    pub fn new(root: impl Into<PathBuf>) -> FileSystem {
        FileSystem { root: root.into() }
    }

    fn file(&self, path: &str) -> io::Result<PathBuf> {
        check_below_root(path)?;
        Ok(self.root.join(path))
    }

    fn directory(&self, path: &str) -> io::Result<PathBuf> {
        check(path)?;
        // Joining an empty path would add a trailing slash.
        Ok(if path.is_empty() { self.root.clone() } else { self.root.join(path) })
    }

    /// Creates the root and makes its name durable: what is above the root cannot be reached through the store.
    fn create_root(&self) -> io::Result<()> {
        let missing = self.root.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let missing: Vec<&Path> = missing.collect();
        create_directories(&self.root)?;
        for path in missing.iter().rev() {
            sync_parent(path)?;
        }
        match missing.is_empty() {
            // It was there already, but whoever made it may not have synced the directory above. We may not be allowed to
            // open that one; then it was made by somebody who is, and it is for them to sync it.
            true => sync_parent(&self.root).or_else(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => Ok(()),
                _ => Err(error),
            }),
            false => Ok(()),
        }
    }
}

impl Store for FileSystem {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let path = self.file(path)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
        Ok(Box::new(SystemFile { file }))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let file = open_regular(&self.file(path)?, OpenOptions::new().read(true))?;
        Ok(Box::new(SystemFile { file }))
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let file = open_regular(&self.file(path)?, OpenOptions::new().read(true).write(true))?;
        Ok(Box::new(SystemFile { file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.file(from)?, self.file(to)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.file(path)?)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        let path = self.directory(directory)?;
        let mut items = Vec::new();
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            // No file of a log has a name that is not UTF-8. It is listed with replacement characters, by which it is
            // recognised as foreign, and the other files can still be listed.
            let name = entry.file_name().to_string_lossy().into_owned();
            items.push(Item { name, directory: entry.file_type()?.is_dir() });
        }
        items.sort();
        Ok(items)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        let directory = self.directory(path)?;
        if path.is_empty() || !self.root.exists() {
            self.create_root()?;
        }
        create_directories(&directory)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.file(path)?)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        sync_directory(&self.directory(path)?)
    }

    /// The guard unlocks when dropped, in this process alone: see `Locked`.
    fn lock(&self, path: &str) -> io::Result<Box<dyn Debug + Send + Sync>> {
        let path = self.file(path)?;
        let mut options = OpenOptions::new();
        // Through a link a file would be created wherever the link points to.
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)?;
        for _ in 0..LOCK_ATTEMPTS {
            match Locked::try_lock(file, FlockOperation::NonBlockingLockExclusive)? {
                Ok(locked) => return Ok(Box::new(locked)),
                Err(taken) => file = taken,
            }
            thread::sleep(LOCK_PAUSE);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        match open_regular(&self.file(path)?, OpenOptions::new().read(true)) {
            Ok(file) => Ok(Locked::try_lock(file, FlockOperation::NonBlockingLockShared)?.is_err()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_link(&self, path: &str) -> io::Result<bool> {
        Ok(fs::symlink_metadata(self.file(path)?)?.is_symlink())
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn describe(&self, path: &str) -> String {
        if path.is_empty() {
            return self.root.display().to_string();
        }
        self.root.join(path).display().to_string()
    }
}

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// `is_locked` takes the lock for an instant. `lock` tries again for so long, so as not to mistake that for a holder.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// What one vectored write takes at most: `IOV_MAX` of Linux and macOS.
const MAX_VECTORS: usize = 1024;

#[derive(Debug)]
struct SystemFile {
    file: File,
}

impl StoreFile for SystemFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn write_at(&self, mut buffers: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        // Drops leading empty buffers, so that a write of 0 bytes means that the medium takes no more.
        IoSlice::advance_slices(&mut buffers, 0);
        while !buffers.is_empty() {
            let vectors = &buffers[..buffers.len().min(MAX_VECTORS)];
            let written = retry_on_intr(|| rustix::io::pwritev(&self.file, vectors, offset))?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut buffers, written);
            offset = offset.checked_add(written as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}

/// Opens a regular file, and refuses anything else: opening a pipe that somebody put there would wait for a writer, and a device
/// would be read.
fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        let message = format!("{} is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(file)
}

/// A file with a lock of this process on it.
///
/// The lock is the open file's, which a forked child shares. So it is released by unlocking: closing would leave it to
/// a child that has not come to its `exec` yet. And only where it was taken: unlocking in a child would free its
/// parent's.
#[derive(Debug)]
struct Locked {
    file: File,
    owner: u32,
}

impl Locked {
    /// The file again where somebody else has the lock.
    fn try_lock(file: File, operation: FlockOperation) -> io::Result<Result<Locked, File>> {
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

fn create_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_directory(Path::new(".")),
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
    Ok(retry_on_intr(|| rustix::fs::fsync(&directory))?)
}
