//! The directory that the database of a vault or of a replica lies in, and its files. SQLite opens them itself, by their paths,
//! so that no store can stand between; what else is done to them is done here.
#![expect(clippy::disallowed_methods, reason = "the one module of the vault that goes around its store")]

use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bulla_store::{Error, FileSystem, Result, Store};

/// Its name, in the key directory or in the directory of a replica.
pub(super) const NAME: &str = "vault";

/// Makes it, unless it is there; nobody but its owner gets in.
///
/// # Errors
/// Where the file system fails.
pub(super) fn make(directory: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io(format!("making {}", directory.display()), error))
        }
        _ => Ok(()),
    }
}

/// Makes the names in `directory` durable.
///
/// # Errors
/// Where the file system fails.
pub(super) fn sync(directory: &Path) -> Result<()> {
    let synced = FileSystem::new(directory).sync_directory("");
    synced.map_err(|error| Error::io(format!("syncing {}", directory.display()), error))
}

/// The path without links, by which a process tells whether it has a vault open already, and which messages name.
///
/// # Errors
/// Where there is no such directory.
pub(super) fn canonical(directory: &Path) -> Result<PathBuf> {
    fs::canonicalize(directory).map_err(|error| Error::io(directory.display().to_string(), error))
}

/// Whether there is anything at `path`, if only a link that leads nowhere.
///
/// # Errors
/// Where that cannot be told.
pub(super) fn has(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path.display().to_string(), error)),
    }
}

/// The length of a file in bytes.
///
/// # Errors
/// Where there is no such file.
pub(super) fn length_of(file: &Path) -> Result<u64> {
    match fs::metadata(file) {
        Ok(metadata) => {
            refuse_directory(file).map_err(|error| Error::io("opening the database", error))?;
            Ok(metadata.len())
        }
        Err(error) => Err(Error::io(file.display().to_string(), error)),
    }
}

/// Which file it is, and when it was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp([i64; 5]);

impl Stamp {
    /// That of `file`.
    ///
    /// # Errors
    /// Where there is no such file.
    pub(super) fn of(file: &Path) -> Result<Self> {
        let metadata = fs::metadata(file).map_err(|error| Error::io(file.display().to_string(), error))?;
        let [device, inode] = [metadata.dev(), metadata.ino()].map(u64::cast_signed);
        Ok(Stamp([device, inode, metadata.size().cast_signed(), metadata.mtime(), metadata.mtime_nsec()]))
    }
}

/// Which file it is, whatever is in it. It is of no other file for as long as somebody has this one open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId([u64; 2]);

impl FileId {
    /// That of what is at `path`; a link is another file than the one that it leads to.
    ///
    /// # Errors
    /// Where there is nothing.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let found = fs::symlink_metadata(path);
        let found = found.map_err(|error| Error::io(path.display().to_string(), error))?;
        Ok(FileId([found.dev(), found.ino()]))
    }
}

/// Whether a directory takes no files of this process: it may not write there, or nobody may.
pub(super) fn takes_nothing(directory: &Path) -> bool {
    let may = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    matches!(may, Err(Errno::ACCESS | Errno::PERM | Errno::ROFS))
}

/// That there is room for `shared`, the memory that processes share, a file of 32 KiB, unless it is there already. SQLite sets a
/// byte in each 4 KiB of it; where a file system has smaller blocks and no more of them, whoever touches the rest is killed by
/// SIGBUS. How much is free does not tell, since file systems keep some back: so as much is asked for, and given back.
///
/// # Errors
/// Where there is none.
pub(super) fn require_room(directory: &Path, shared: &str) -> Result<()> {
    const ROOM: u64 = 40 << 10;
    if directory.join(shared).exists() {
        return Ok(());
    }
    let unnamed = rustix::fs::open(directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR);
    // Where no file can be made, SQLite finds that out; where it cannot be so, there is no telling.
    let Ok(file) = unnamed else { return Ok(()) };
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, ROOM) {
        Err(Errno::NOSPC | Errno::DQUOT) => Err(Error::unavailable(format!(
            "{}: the disk is full, and whoever opens the database, to read too, makes {shared} there, the memory that processes \
                 share ({} KiB): make room, or copy the key directory to where there is some, and name it with `--keys`",
            directory.display(),
            ROOM >> 10
        ))),
        _ => Ok(()),
    }
}

/// Whether this process, or the system, may have no more files open than it has: fewer, at least, than a database takes.
pub(super) fn lacks_descriptors() -> bool {
    const FILES: usize = 4;
    let open = |_| rustix::fs::open(".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let opened = (0..FILES).map(open).collect::<Vec<_>>();
    opened.iter().any(|opened| matches!(opened, Err(Errno::MFILE | Errno::NFILE)))
}

/// The least bytes of a block of a file system that a vault is written on: what SQLite sets a byte in each of, in the memory
/// that processes share.
const LEAST_BLOCK: u64 = 4096;

/// That the file system has blocks for which room is made as SQLite makes it: with smaller ones, whoever writes is killed by SIGBUS when
/// the disk fills up.
///
/// # Errors
/// Where it has smaller ones, or cannot be asked.
pub(super) fn require_blocks(directory: &Path) -> Result<()> {
    let size = FileSystem::new(directory).block_size();
    let size = size.map_err(|error| Error::io(format!("looking at {}", directory.display()), error))?;
    require_block_size(directory, size)
}

/// The same of a directory on a file system with blocks of `size` bytes; 0 where it does not say.
///
/// # Errors
/// As [`require_blocks`].
pub(super) fn require_block_size(directory: &Path, size: u64) -> Result<()> {
    match size {
        0 | LEAST_BLOCK.. => Ok(()),
        _ => Err(Error::unavailable(format!(
            "{} is on a file system with blocks of {size} bytes, on which whoever writes to the vault would be ended (SIGBUS) \
             when the disk is full: put it on one with blocks of {LEAST_BLOCK} bytes or more (`mkfs.ext4 -b {LEAST_BLOCK}`)",
            directory.display()
        ))),
    }
}

/// A file at `path`, empty unless it was there. What SQLite makes beside it is for those that the file is for: its owner.
///
/// # Errors
/// Where the file system fails.
pub(super) fn touch(path: &Path) -> Result<()> {
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map(drop).map_err(|error| Error::io(format!("making {}", path.display()), error))
}

/// An empty file at `path`, in place of what may be left there of an attempt that was cut short.
///
/// # Errors
/// Where the file system fails.
pub(super) fn begin_file(path: &Path) -> io::Result<()> {
    // What is there may be another file's content under this name, or others may read it: so it is not written into.
    for name in beside(path).iter().map(PathBuf::as_path).chain([path]) {
        remove(name)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Makes a file's content durable.
///
/// # Errors
/// Where the file system fails.
pub(super) fn sync_file(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::io(format!("writing {}", path.display()), error))
}

/// Gives a database, which nobody has open, the name of another one, in whose place it is from then on. What lies beside that one is
/// taken away first, durably: it would be taken for the new one's.
///
/// # Errors
/// Where the file system fails.
pub(super) fn replace_database(from: &Path, to: &Path) -> Result<()> {
    let directory = to.parent().unwrap_or(to);
    let failed = |error| Error::io(format!("writing {}", to.display()), error);
    for name in beside(to) {
        remove(&name).map_err(failed)?;
    }
    sync(directory)?;
    fs::rename(from, to).map_err(failed)?;
    sync(directory)
}

/// What SQLite keeps beside a database.
fn beside(database: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|end| {
        let mut name = database.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

/// That neither a database nor what SQLite keeps beside it is a directory, of which SQLite says nothing but that it cannot open it.
///
/// # Errors
/// Where one is.
pub(super) fn require_files(database: &Path) -> Result<()> {
    for path in beside(database).iter().map(PathBuf::as_path).chain([database]) {
        refuse_directory(path).map_err(|error| Error::io("opening the database", error))?;
    }
    Ok(())
}

fn refuse_directory(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            let message = format!(
                "`{}` is a directory, and has to be a file: remove it, and bring what was there, `vault` and `roots`, both from a \
                 replica or both from one backup",
                path.display()
            );
            Err(io::Error::new(io::ErrorKind::IsADirectory, message))
        }
        _ => Ok(()),
    }
}

/// Removes a file; no error where there is none.
fn remove(path: &Path) -> io::Result<()> {
    refuse_directory(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
