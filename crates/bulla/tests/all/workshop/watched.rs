//! A store that tells somebody of what it is about to do, and does it unless it is told not to.

use bulla::store::{FileSystem, Item, Lock, Store, StoreFile};
use std::fmt::Debug;
use std::io::{IoSlice, Result};
use std::sync::Arc;

/// What is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Write,
    Sync,
    /// Told of with the new name.
    Rename,
    Remove,
}

/// Is told, in the thread that does it, before it is done.
pub(crate) trait Watch: Debug + Send + Sync {
    fn before(&self, operation: Operation, path: &str) -> Result<()>;

    /// Before a directory is synced.
    fn before_sync_directory(&self, _path: &str) -> Result<()> {
        Ok(())
    }

    /// Before a part of a file is read.
    fn before_read(&self, _path: &str) -> Result<()> {
        Ok(())
    }

    /// Before it is looked whether a file is where it was.
    fn before_look(&self, _path: &str) {}
}

#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) watch: Arc<dyn Watch>,
}

impl Watched {
    fn file(&self, path: &str, file: Box<dyn StoreFile>) -> Box<dyn StoreFile> {
        Box::new(File { file, path: path.to_owned(), watch: self.watch.clone() })
    }
}

impl Store for Watched {
    fn create(&self, path: &str) -> Result<Box<dyn StoreFile>> {
        self.watch.before(Operation::Create, path)?;
        Ok(self.file(path, self.store.create(path)?))
    }

    fn open(&self, path: &str) -> Result<Box<dyn StoreFile>> {
        Ok(self.file(path, self.store.open(path)?))
    }

    fn open_write(&self, path: &str) -> Result<Box<dyn StoreFile>> {
        Ok(self.file(path, self.store.open_write(path)?))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.watch.before(Operation::Rename, to)?;
        self.store.rename(from, to)
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.watch.before(Operation::Remove, path)?;
        self.store.remove(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<Item>> {
        self.store.list(directory)
    }

    fn create_directory(&self, path: &str) -> Result<()> {
        self.store.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> Result<()> {
        self.store.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> Result<()> {
        self.watch.before_sync_directory(path)?;
        self.store.sync_directory(path)
    }

    fn lock(&self, path: &str) -> Result<Box<dyn Lock>> {
        self.store.lock(path)
    }

    fn is_locked(&self, path: &str) -> Result<bool> {
        self.store.is_locked(path)
    }

    fn directory(&self) -> Option<&FileSystem> {
        self.store.directory()
    }

    fn describe(&self, path: &str) -> String {
        self.store.describe(path)
    }
}

#[derive(Debug)]
struct File {
    file: Box<dyn StoreFile>,
    path: String,
    watch: Arc<dyn Watch>,
}

impl StoreFile for File {
    fn length(&self) -> Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.watch.before_read(&self.path)?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        self.watch.before(Operation::Write, &self.path)?;
        self.file.write_at(buffers, offset)
    }

    fn sync(&self) -> Result<()> {
        self.watch.before(Operation::Sync, &self.path)?;
        self.file.sync()
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.file.set_length(length)
    }

    fn is_in_place(&self, length: u64) -> Result<bool> {
        self.watch.before_look(&self.path);
        self.file.is_in_place(length)
    }
}
