//! A store in a directory of the operating system.
//!
//! The directory is opened once, by the path that the user wrote, links followed, and held: whatever is put in its place
//! later is another one, which nothing here touches. Below it no symbolic link is followed, to read or to write, but for
//! [`Store::open_secret`].
//!
//! Files are created with mode 0600 and directories with mode 0700. Nothing here is written but on request, so a log
//! on a read-only mount can be read. Errors of the system are passed on as they are; who calls names the path.
#![expect(clippy::disallowed_methods, reason = "here is where the others go")]

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, retry_on_intr};

use crate::beneath::{Beneath, Resolution, SEARCH};
use crate::lock::{FileId, InPlace, Locked};
use crate::path::{ancestors, check, check_below_root, join};
use crate::root::{DIRECTORY_MODE, Root};
use crate::{Item, Lock, Store, StoreFile};

/// Files below a directory of the file system. Clones hold the same directory.
#[derive(Clone, Debug)]
pub struct FileSystem {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: Arc<Root>,
    /// The directory, once there is one.
    held: OnceLock<Beneath>,
    /// How paths below it are resolved, where that is not to be found out.
    resolution: Option<Resolution>,
}

impl FileSystem {
    /// A store in `root`, which need not exist yet: `create_directory("")` makes it. The directory is held from now on,
    /// or, where it does not exist, from the first use that finds it.
    pub fn new(root: impl Into<PathBuf>) -> FileSystem {
        Self::with(root.into(), None)
    }

    /// The same as on a kernel that has no `openat2`: for tests.
    #[doc(hidden)]
    pub fn without_openat2(root: impl Into<PathBuf>) -> FileSystem {
        Self::with(root.into(), Some(Resolution::Components))
    }

    fn with(path: PathBuf, resolution: Option<Resolution>) -> Self {
        let shared = Shared { root: Arc::new(Root::new(path)), held: OnceLock::new(), resolution };
        // Where it fails, each use tries again and tells why.
        let _ = shared.held();
        FileSystem { shared: Arc::new(shared) }
    }

    /// The same path, and the directory that it leads to now: for whoever comes back to one that was unmounted or replaced.
    #[must_use]
    pub fn afresh(&self) -> FileSystem {
        let shared = Shared {
            root: self.shared.root.clone(),
            held: OnceLock::new(),
            resolution: self.shared.resolution,
        };
        let _ = shared.held();
        FileSystem { shared: Arc::new(shared) }
    }

    /// Where its directory lies, or would: the path that the user wrote, from the root of the file system on and without `..`, as the
    /// current directory was when the store was made. Links in it are not followed: see [`resolve`](crate::resolve).
    pub fn place(&self) -> &Path {
        self.shared.root.place()
    }

    /// A path that leads to the directory that is held, whatever became of its name, for as long as this store or a clone
    /// of it lives: for libraries that take a path. It is no name to show to anybody. Where `/proc` is not mounted it is
    /// the path that the user wrote, which leads there now.
    ///
    /// # Errors
    /// Where there is no directory, or no path leads to it.
    pub fn held_path(&self) -> io::Result<PathBuf> {
        let directory = self.shared.held()?.directory();
        let held = FileId::of(&rustix::fs::fstat(directory)?);
        let found =
            |path: &Path| rustix::fs::statat(CWD, path, AtFlags::empty()).map(|found| FileId::of(&found));
        let paths = [format!("/proc/self/fd/{}", directory.as_raw_fd()).into(), self.shared.root.join("")];
        paths.into_iter().find(|path| found(path) == Ok(held)).ok_or_else(|| {
            let message = "no path leads to the directory that is held: mount /proc";
            io::Error::new(io::ErrorKind::NotFound, message)
        })
    }

    /// Whether both hold the same directory, by device and inode.
    ///
    /// # Errors
    /// Where one of them is not there, or cannot be asked.
    pub fn is_same_directory(&self, other: &FileSystem) -> io::Result<bool> {
        let id = |store: &FileSystem| {
            Ok::<_, io::Error>(FileId::of(&rustix::fs::fstat(store.shared.held()?.directory())?))
        };
        Ok(id(self)? == id(other)?)
    }

    /// The bytes of a block of the file system that the directory is on; 0 where that does not say.
    ///
    /// # Errors
    /// Where there is no such directory, or it cannot be asked.
    pub fn block_size(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstatvfs(self.shared.held()?.directory())?.f_bsize)
    }

    /// The number of the user whom the directory belongs to.
    ///
    /// # Errors
    /// Where there is no such directory, or it cannot be asked.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(self.shared.held()?.directory())?.st_uid)
    }

    /// Whether both directories are on one file system, by its device.
    ///
    /// # Errors
    /// Where one of them is not there, or cannot be asked.
    pub fn is_on_same_file_system(&self, other: &FileSystem) -> io::Result<bool> {
        let device = |store: &FileSystem| {
            Ok::<_, io::Error>(rustix::fs::fstat(store.shared.held()?.directory())?.st_dev)
        };
        Ok(device(self)? == device(other)?)
    }

    /// Refuses a directory that is a link, or that has anything in it but files and directories: for what libraries open by
    /// themselves, by path, following links and waiting for pipes. No error where there is no such directory.
    ///
    /// # Errors
    /// `InvalidInput`, naming it; else where the directory cannot be listed.
    pub fn require_plain(&self, directory: &str) -> io::Result<()> {
        let items = match self.list(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            items => items?,
        };
        let held = self.shared.held()?;
        for item in items {
            match held.require_plain(&join(directory, &item.name)) {
                // Whoever has it open may remove it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                checked => checked?,
            }
        }
        Ok(())
    }

    /// The directory above this one, as it was named, where there is none: whoever makes this one then makes what is above it, too, and on a
    /// disk that is not mounted that lies on another one.
    pub fn missing_parent(&self) -> Option<PathBuf> {
        let path = self.shared.root.join("");
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
        let found = rustix::fs::statat(self.shared.root.base(), parent, AtFlags::empty());
        (found.err() == Some(Errno::NOENT)).then(|| parent.to_owned())
    }

    /// Removes the directory, and those above it, as far as this store made them and they are empty: for whoever takes back what they
    /// began. The store is of no use after that.
    pub fn remove_made(&self) {
        self.shared.root.remove_made();
    }

    /// Opens a regular file, and refuses anything else: opening a pipe that somebody put there would wait for a writer, and a
    /// device would be read.
    fn open_regular(&self, path: &str, flags: OFlags) -> io::Result<File> {
        check_below_root(path)?;
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.shared.held()?.open(path, flags);
        let opened = opened.map_err(|error| match error.kind() {
            io::ErrorKind::IsADirectory => a_directory(),
            _ => error,
        });
        regular(opened?, || self.describe(path))
    }

    /// A file that was opened or created at `path`.
    fn named(&self, path: &str, file: File) -> Box<dyn StoreFile> {
        Box::new(SystemFile { file, path: path.to_owned(), id: OnceLock::new(), shared: self.shared.clone() })
    }
}

impl Shared {
    fn held(&self) -> io::Result<&Beneath> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        let directory = self.root.open()?;
        // Another thread may have opened it first: then that one is held.
        Ok(self.held.get_or_init(|| Beneath::new(directory, self.resolution)))
    }
}

impl Store for FileSystem {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        check_below_root(path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = self.shared.held()?.open(path, flags)?;
        Ok(self.named(path, file.into()))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        Ok(self.named(path, self.open_regular(path, OFlags::RDONLY)?))
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        Ok(self.named(path, self.open_regular(path, OFlags::RDWR)?))
    }

    fn open_secret(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        check_below_root(path)?;
        let directory = self.shared.held()?.directory();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = retry_on_intr(|| rustix::fs::openat(directory, path, flags, Mode::empty()))?;
        Ok(self.named(path, regular(file, || self.describe(path))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_below_root(from)?;
        check_below_root(to)?;
        let held = self.shared.held()?;
        let (from, to) = (held.parent(from)?, held.parent(to)?);
        Ok(rustix::fs::renameat(&from.0, from.1, &to.0, to.1)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        check_below_root(path)?;
        let (parent, name) = self.shared.held()?.parent(path)?;
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        check(directory)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = self.shared.held()?.open(directory, flags)?;
        let mut items = Vec::new();
        let mut entries = Dir::new(directory)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => {
                    let found = rustix::fs::statat(entries.fd()?, name, AtFlags::SYMLINK_NOFOLLOW);
                    found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
                }
                kind => kind,
            };
            // No file of a log has a name that is not UTF-8. It is listed with replacement characters, by which it is
            // recognised as foreign, and the other files can still be listed.
            let name = name.to_string_lossy().into_owned();
            items.push(Item { name, directory: kind == FileType::Directory });
        }
        items.sort();
        Ok(items)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        check(path)?;
        if path.is_empty() || self.shared.held().is_err() {
            self.shared.root.create()?;
        }
        let held = self.shared.held()?;
        for path in ancestors(path) {
            let (parent, name) = held.parent(path)?;
            match rustix::fs::mkdirat(&parent, name, DIRECTORY_MODE) {
                Ok(()) => {}
                // It may be something else than a directory.
                Err(Errno::EXIST) => drop(held.open(path, SEARCH)?),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        check_below_root(path)?;
        let (parent, name) = self.shared.held()?.parent(path)?;
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        check(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = self.shared.held()?.open(path, flags)?;
        Ok(retry_on_intr(|| rustix::fs::fsync(&directory))?)
    }

    /// The guard unlocks when dropped, in this process alone: see `Locked`.
    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        let mut file = self.open_regular(path, OFlags::RDWR | OFlags::CREATE)?;
        for _ in 0..LOCK_ATTEMPTS {
            match Locked::try_lock(file, FlockOperation::NonBlockingLockExclusive)? {
                Ok(locked) => return Ok(Box::new(InPlace::new(self.shared.root.clone(), path, locked)?)),
                Err(taken) => file = taken,
            }
            thread::sleep(LOCK_PAUSE);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        match self.open_regular(path, OFlags::RDONLY) {
            Ok(file) => Ok(Locked::try_lock(file, FlockOperation::NonBlockingLockShared)?.is_err()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn directory(&self) -> Option<&FileSystem> {
        Some(self)
    }

    fn describe(&self, path: &str) -> String {
        let path = self.shared.root.join(path);
        // Of an empty path the message would have nothing.
        if path.as_os_str().is_empty() { "\"\"".to_owned() } else { path.display().to_string() }
    }
}

/// `is_locked` takes the lock for an instant. `lock` tries again for so long, so as not to mistake that for a holder.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// What one vectored write takes at most: `IOV_MAX` of Linux and macOS.
const MAX_VECTORS: usize = 1024;

#[derive(Debug)]
struct SystemFile {
    file: File,
    /// Where it was opened, below the directory that is held.
    path: String,
    /// Which file it is, once somebody asked.
    id: OnceLock<FileId>,
    shared: Arc<Shared>,
}

impl SystemFile {
    fn id(&self) -> io::Result<FileId> {
        if let Some(id) = self.id.get() {
            return Ok(*id);
        }
        let id = FileId::of(&rustix::fs::fstat(&self.file)?);
        Ok(*self.id.get_or_init(|| id))
    }
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

    fn is_in_place(&self, length: u64) -> io::Result<bool> {
        let (id, directory) = (self.id()?, self.shared.held()?.directory());
        match retry_on_intr(|| rustix::fs::statat(directory, &*self.path, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(found) => Ok(FileId::of(&found) == id && u64::try_from(found.st_size).unwrap_or(0) >= length),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        // Nothing is read or written where the descriptor stands, so it may be moved.
        match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(found) => Ok(found),
            // There is nothing but zeros from there on.
            Err(Errno::NXIO) => Ok(self.length()?.max(offset)),
            // The file system keeps no account.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(offset),
            Err(error) => Err(error.into()),
        }
    }

    fn next_hole(&self, offset: u64) -> io::Result<u64> {
        match rustix::fs::seek(&self.file, SeekFrom::Hole(offset)) {
            Ok(found) => Ok(found),
            // The file ends before, or the file system keeps no account.
            Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => Ok(self.length()?.max(offset)),
            Err(error) => Err(error.into()),
        }
    }
}

fn a_directory() -> io::Error {
    let message =
        "it is a directory where a file has to be: move it away, and restore the file from a backup";
    io::Error::new(io::ErrorKind::IsADirectory, message)
}

/// The file, where it is a regular one.
fn regular(file: OwnedFd, name: impl Fn() -> String) -> io::Result<File> {
    let file = File::from(file);
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(a_directory());
    }
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a regular file", name())));
    }
    Ok(file)
}
