//! Files as the log reaches them, behind one small trait, and the [`Error`] that every room above passes on.
//!
//! [`FileSystem`] is the real store; what tests put in its place is in `bulla-testkit`. What the log assumes of a medium
//! is in `docs/format.md`, "The medium".
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]

mod atomic;
mod beneath;
mod error;
mod filesystem;
mod lock;
mod owner;
pub mod path;
mod paths;
pub mod process;
mod root;

pub use atomic::{read_secret, read_small, replace, write_new};
pub use error::{Effect, Error, ErrorKind, Result};
pub use filesystem::FileSystem;
pub use owner::require_own;
pub use paths::{MissingPath, PathStanding, PathState, Paths, Switch};
pub use root::{inside, resolve};

use std::fmt::Debug;
use std::io::{self, IoSlice};

/// A directory tree of files. Paths are relative, of normal components separated by `/`; the empty path is the root.
/// Where a medium has symbolic links, none is followed below the root but by [`Store::open_secret`]: a path with one in it
/// is refused with `InvalidInput`.
pub trait Store: Debug + Send + Sync {
    /// Creates a file for reading and writing; `AlreadyExists` where the name is taken.
    /// The name is durable once its directory is synced.
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>>;
    /// Opens a file for reading.
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>>;
    /// Opens, for reading, a file that an operator may have put there as a link to where secrets lie. It is nothing that the
    /// log writes.
    fn open_secret(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.open(path)
    }
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>>;
    /// Renames a file, replacing what has the new name. Durable once both directories are synced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, directory: &str) -> io::Result<Vec<Item>>;
    /// Creates a directory, with those above it; no error where it exists.
    fn create_directory(&self, path: &str) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &str) -> io::Result<()>;
    /// Makes the names in a directory durable: those of files that were created, renamed or removed in it. To sync a file does
    /// not make its name durable (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014).
    fn sync_directory(&self, path: &str) -> io::Result<()>;
    /// Takes an exclusive lock on a file, creating it; `WouldBlock` where somebody holds it.
    /// Dropping the guard releases it, and so does the end of the process.
    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>>;
    /// Whether somebody holds the lock on a file.
    fn is_locked(&self, path: &str) -> io::Result<bool>;
    /// The directory of the file system that this store is, for what is no file: a socket, the files of a library that
    /// takes a path. Most stores are none.
    fn directory(&self) -> Option<&FileSystem> {
        None
    }
    /// What a store can do besides that is put together of several paths. Most stores are none.
    fn paths(&self) -> Option<&dyn Paths> {
        None
    }
    /// The path as a person would name it, for messages.
    fn describe(&self, path: &str) -> String;
}

/// A lock that is held. Dropping it releases it, and so does the end of the process.
pub trait Lock: Debug + Send + Sync {
    /// Whether the locked file is still the one that the store's own path leads to. Where another one is there now, or none,
    /// the store's directory was replaced or moved: what is written to the store is out of everybody's sight, and a
    /// second writer may have the lock of the other one.
    fn is_in_place(&self) -> io::Result<bool>;
}

/// An open file. Positions are absolute; nothing has a cursor.
pub trait StoreFile: Debug + Send + Sync {
    /// The length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Reads up to `buffer.len()` bytes at `offset`; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `buffers`, one after the other, at `offset`. After an error any part may have been written.
    fn write_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> io::Result<()>;
    /// Makes the content and the length durable.
    ///
    /// After an error nothing is known of what was written since the last sync that succeeded: Linux marks the pages that it could
    /// not write as clean, so that reading gives them back although no medium has them, and the next sync succeeds without
    /// writing them (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020). The caller must write
    /// them again, elsewhere.
    fn sync(&self) -> io::Result<()>;
    /// Cuts or extends the file.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Whether the path by which it was opened or created still leads to this very file, and that has at least this length. Where
    /// another file is there now, or none, nobody finds what is written here. A medium on which nobody else can do that says
    /// that it is so.
    fn is_in_place(&self, _length: u64) -> io::Result<bool> {
        Ok(true)
    }

    /// The first place from `offset` on that may hold anything but zeros, or the end of the file: what nobody ever wrote to
    /// need not be read. A medium that keeps no account of that says `offset`.
    fn next_data(&self, offset: u64) -> io::Result<u64> {
        Ok(offset)
    }

    /// The first place from `offset` on that nobody ever wrote to, or the end of the file. A medium that keeps no account of
    /// that says the end.
    fn next_hole(&self, offset: u64) -> io::Result<u64> {
        Ok(self.length()?.max(offset))
    }

    /// Fills `buffer` from `offset`; `UnexpectedEof` where the file ends before.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The last component of the path.
    pub name: String,
    /// Whether it is a directory.
    pub directory: bool,
}
