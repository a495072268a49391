//! A store that counts the bytes read from it.

use bulla_store::{Item, Lock, Paths, Store, StoreFile};
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Metered {
    store: Arc<dyn Store>,
    read: Arc<AtomicU64>,
}

impl Metered {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Metered { store, read: Arc::default() }
    }

    /// Bytes read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn file(&self, file: Box<dyn StoreFile>) -> Box<dyn StoreFile> {
        Box::new(MeteredFile { file, read: self.read.clone() })
    }
}

impl Store for Metered {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.open(path).map(|file| self.file(file))
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.open_write(path).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.store.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.store.remove(path)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.store.list(directory)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.store.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.store.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.store.sync_directory(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        self.store.lock(path)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.store.is_locked(path)
    }

    fn paths(&self) -> Option<&dyn Paths> {
        self.store.paths()
    }

    fn describe(&self, path: &str) -> String {
        self.store.describe(path)
    }
}

#[derive(Debug)]
struct MeteredFile {
    file: Box<dyn StoreFile>,
    read: Arc<AtomicU64>,
}

impl StoreFile for MeteredFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, offset)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.file.write_at(buffers, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        self.file.next_data(offset)
    }

    fn next_hole(&self, offset: u64) -> io::Result<u64> {
        self.file.next_hole(offset)
    }
}
