//! Making the index: tokens of blocks, gathered until a group is full, become parts of an epoch's file.
//!
//! A file is written as blocks are sealed and synced only when its epoch is over: what a crash takes of it is read
//! from the blocks again. That it cannot be written keeps no entry from being committed.

use super::part::Part;
use super::{GROUP, MAX_TOKENS};
use crate::format::files::{INDEX, index_path, parse_index_name};
use bulla_crypto::environment::{Cipher, Environment, Random};
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::scrub::scrubbed;
use bulla_proof::commitment::Commitment;
use bulla_store::Result;
use bulla_store::{Store, StoreFile};
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, PoisonError};

/// A frame whose tokens are known.
pub(crate) struct Gathered {
    pub(crate) commitment: [u8; Commitment::LENGTH],
    pub(crate) frame: u64,
    pub(crate) keys: Arc<EpochKeys>,
    pub(crate) tokens: Vec<u64>,
}

/// Frames of one epoch and group, until there are enough.
#[derive(Default)]
struct Group {
    frames: Vec<Gathered>,
    tokens: usize,
}

/// Gathers frames in any order.
#[derive(Default)]
pub(crate) struct Gatherer {
    /// By epoch and group.
    groups: BTreeMap<(u64, u64), Group>,
    /// The latest epoch. Of those before it nothing is kept, for that keeps their keys.
    epoch: u64,
}

/// Frames that make a part.
pub(crate) struct Ready(Vec<Gathered>);

impl Gatherer {
    /// Adds a frame; what has become ready by that.
    pub(crate) fn add(&mut self, frame: Gathered) -> Vec<Ready> {
        let (epoch, number) = (frame.keys.number(), frame.frame / GROUP);
        if frame.tokens.len() > MAX_TOKENS {
            return Vec::new();
        }
        let mut ready = Vec::new();
        let group = self.groups.entry((epoch, number)).or_default();
        if group.tokens + frame.tokens.len() > MAX_TOKENS {
            ready.push(Ready(std::mem::take(group).frames));
        }
        group.tokens += frame.tokens.len();
        group.frames.push(frame);
        if group.frames.len() as u64 == GROUP {
            ready.extend(self.groups.remove(&(epoch, number)).map(|group| Ready(group.frames)));
        }
        // Frames come in nearly their order: of a group before the last one nothing more will come.
        self.epoch = self.epoch.max(epoch);
        ready.extend(self.take_until((self.epoch, number.saturating_sub(1))));
        ready
    }

    /// Begins an epoch: what has become ready by that. What still comes of those before it is ready at once.
    pub(crate) fn begin_epoch(&mut self, epoch: u64) -> Vec<Ready> {
        self.epoch = self.epoch.max(epoch);
        self.take_until((self.epoch, 0))
    }

    /// Takes the groups before an epoch and group.
    fn take_until(&mut self, end: (u64, u64)) -> Vec<Ready> {
        let later = self.groups.split_off(&end);
        let earlier = std::mem::replace(&mut self.groups, later);
        earlier.into_values().map(|group| Ready(group.frames)).collect()
    }

    /// Everything that is left.
    pub(crate) fn finish(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.groups).into_values().map(|group| Ready(group.frames)).collect()
    }
}

impl Ready {
    #[cfg(test)]
    pub(super) fn tokens(&self) -> usize {
        self.0.iter().map(|frame| frame.tokens.len()).sum()
    }

    #[cfg(test)]
    pub(super) fn frames(&self) -> usize {
        self.0.len()
    }

    /// The keys of their epoch.
    pub(crate) fn keys(&self) -> Option<&Arc<EpochKeys>> {
        self.0.first().map(|frame| &frame.keys)
    }

    /// The bytes of the part.
    ///
    /// # Errors
    /// As [`Part::seal`].
    pub(crate) fn seal(mut self, sources: (&dyn Random, &dyn Cipher)) -> Result<Vec<u8>> {
        self.0.sort_unstable_by_key(|frame| frame.frame);
        let Some(first) = self.0.first() else { return Ok(Vec::new()) };
        let (keys, group) = (first.keys.clone(), first.frame / GROUP);
        let part = Part::of(self.0.iter().map(|frame| (frame.frame % GROUP, &frame.tokens[..])));
        let commitments = self.0.iter().map(|frame| (frame.frame % GROUP, frame.commitment));
        part.seal(&keys, group, &commitments.collect::<Vec<_>>(), sources)
    }
}

/// Writes the index beside the writers of a log.
pub(crate) struct Indexer {
    store: Arc<dyn Store>,
    gatherer: Mutex<Gatherer>,
    output: Mutex<Output>,
}

#[derive(Default)]
struct Output {
    /// The latest epoch of which something was written. What is left of those before it comes too late.
    epoch: Option<u64>,
    /// Its file, and where that ends; `None` after a failure.
    file: Option<(Box<dyn StoreFile>, u64)>,
}

impl Indexer {
    /// The index of a log whose next frame has this number.
    pub(crate) fn new(store: Arc<dyn Store>, next_frame: u64) -> Self {
        remove_lost(&*store, next_frame);
        Indexer { store, gatherer: Mutex::default(), output: Mutex::default() }
    }

    /// Takes a frame that was sealed, and writes what has become ready.
    pub(crate) fn add(&self, frame: Gathered, environment: &Environment) {
        let ready = self.gatherer.lock().unwrap_or_else(PoisonError::into_inner).add(frame);
        self.write(ready, environment);
    }

    /// Begins an epoch, and writes what is left of those before it.
    pub(crate) fn begin_epoch(&self, epoch: u64, environment: &Environment) {
        let ready = self.gatherer.lock().unwrap_or_else(PoisonError::into_inner).begin_epoch(epoch);
        self.write(ready, environment);
    }

    /// Writes what is left.
    pub(crate) fn finish(&self, environment: &Environment) {
        let ready = self.gatherer.lock().unwrap_or_else(PoisonError::into_inner).finish();
        self.write(ready, environment);
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.close();
    }

    fn write(&self, ready: Vec<Ready>, environment: &Environment) {
        for ready in ready {
            let Some(epoch) = ready.keys().map(|keys| keys.number()) else { continue };
            let sealed = scrubbed(|| ready.seal((&*environment.random, &*environment.cipher)));
            let Ok(bytes) = sealed else { continue };
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            if output.append(&*self.store, epoch, &bytes).is_err() {
                output.give_up();
            }
        }
    }
}

impl Output {
    fn append(&mut self, store: &dyn Store, epoch: u64, bytes: &[u8]) -> io::Result<()> {
        if self.epoch < Some(epoch) {
            self.close();
            self.epoch = Some(epoch);
            self.file = Some((begin(store, epoch)?, 0));
        }
        let Some((file, end)) = self.file.as_mut().filter(|_| self.epoch == Some(epoch)) else {
            return Ok(());
        };
        file.write_at(&mut [IoSlice::new(bytes)], *end)?;
        *end += bytes.len() as u64;
        Ok(())
    }

    /// Nothing more is written of this epoch.
    fn give_up(&mut self) {
        if let Some((file, end)) = self.file.take() {
            // What was written by half only looks like damage.
            let _ = file.set_length(end);
        }
    }

    fn close(&mut self) {
        if let Some((file, _)) = self.file.take() {
            // What is not on the medium is made again.
            let _ = file.sync();
        }
    }
}

/// Removes what a crash left of epochs that it took: other frames will have their numbers.
fn remove_lost(store: &dyn Store, next_frame: u64) {
    for item in store.list(INDEX).unwrap_or_default() {
        if parse_index_name(&item.name).is_some_and(|epoch| epoch >= next_frame) {
            // A file that stays tells nothing of frames that it is not of.
            let _ = store.remove(&format!("{INDEX}/{}", item.name));
        }
    }
}

/// An empty file for an epoch. One that is there already could not be removed before.
fn begin(store: &dyn Store, epoch: u64) -> io::Result<Box<dyn StoreFile>> {
    let path = index_path(epoch);
    match store.create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            store.remove(&path)?;
            store.create(&path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            store.create_directory(INDEX)?;
            store.create(&path)
        }
        created => created,
    }
}
