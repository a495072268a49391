//! A store whose segments do not come to a sync while its gate is shut.

use bulla::store::{Item, Memory, Store, StoreFile};
use std::fmt::Debug;
use std::io::{IoSlice, Result};
use std::sync::{Arc, Condvar, Mutex};

/// Open at first.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shut: bool,
    waiting: usize,
}

impl Gate {
    pub(crate) fn shut(&self) {
        self.state.lock().unwrap().shut = true;
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().shut = false;
        self.changed.notify_all();
    }

    /// Waits until a sync waits.
    pub(crate) fn wait_until_reached(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.waiting == 0).unwrap());
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| state.shut).unwrap();
        state.waiting -= 1;
    }
}

#[derive(Debug)]
pub(crate) struct Gated {
    pub(crate) store: Memory,
    pub(crate) gate: Arc<Gate>,
}

impl Gated {
    fn gated(&self, path: &str, file: Box<dyn StoreFile>) -> Box<dyn StoreFile> {
        match path.starts_with("segments/") {
            true => Box::new(File { file, gate: self.gate.clone() }),
            false => file,
        }
    }
}

impl Store for Gated {
    fn create(&self, path: &str) -> Result<Box<dyn StoreFile>> {
        Ok(self.gated(path, self.store.create(path)?))
    }

    fn open(&self, path: &str) -> Result<Box<dyn StoreFile>> {
        self.store.open(path)
    }

    fn open_write(&self, path: &str) -> Result<Box<dyn StoreFile>> {
        Ok(self.gated(path, self.store.open_write(path)?))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.store.rename(from, to)
    }

    fn remove(&self, path: &str) -> Result<()> {
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
        self.store.sync_directory(path)
    }

    fn lock(&self, path: &str) -> Result<Box<dyn Debug + Send + Sync>> {
        self.store.lock(path)
    }

    fn is_locked(&self, path: &str) -> Result<bool> {
        self.store.is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.store.describe(path)
    }
}

#[derive(Debug)]
struct File {
    file: Box<dyn StoreFile>,
    gate: Arc<Gate>,
}

impl StoreFile for File {
    fn length(&self) -> Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        self.file.write_at(buffers, offset)
    }

    fn sync(&self) -> Result<()> {
        self.gate.pass();
        self.file.sync()
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.file.set_length(length)
    }
}
