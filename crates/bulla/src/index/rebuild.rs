//! Making up what is missing of the index, by a reader that had to read the blocks anyway.

use super::file::{MOST_KEPT, Parts};
use super::gather::{Gathered, Gatherer, Ready};
use crate::format::files::{INDEX, index_path};
use crate::scan::checkpoint::is_live;
use bulla_crypto::environment::{AesGcm, SystemRandom};
use bulla_crypto::epoch::EpochKeys;
use bulla_store::Store;
use std::sync::Arc;

/// Gathers blocks that no part covers, and adds parts for them to the epochs' files.
///
/// It does so where it may write and no writer is at work. Where it cannot, the next query reads those blocks again.
pub(crate) struct Rebuild<'a> {
    store: &'a dyn Store,
    gatherer: Option<Gatherer>,
    /// New parts of one epoch.
    made: Option<(Arc<EpochKeys>, Vec<u8>)>,
}

impl<'a> Rebuild<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        let wanted = is_live(store).is_ok_and(|live| !live);
        Rebuild { store, gatherer: wanted.then(Gatherer::default), made: None }
    }

    /// The next block, in the order of frames.
    pub(crate) fn add(&mut self, frame: Option<Gathered>) {
        if let Some((gatherer, frame)) = self.gatherer.as_mut().zip(frame) {
            let ready = gatherer.add(frame);
            self.seal(ready);
        }
    }

    /// Everything was read.
    pub(crate) fn finish(mut self) {
        let ready = self.gatherer.as_mut().map_or_else(Vec::new, Gatherer::finish);
        self.seal(ready);
        self.write();
    }

    fn seal(&mut self, ready: Vec<Ready>) {
        for ready in ready {
            let Some(keys) = ready.keys().cloned() else { continue };
            let Ok(part) = ready.seal((&SystemRandom, &AesGcm)) else { continue };
            let fits = |(known, parts): &(Arc<EpochKeys>, Vec<u8>)| {
                known.number() == keys.number() && parts.len() < MOST_KEPT
            };
            if !self.made.as_ref().is_some_and(fits) {
                self.write();
            }
            self.made.get_or_insert_with(|| (keys, Vec::new())).1.extend(part);
        }
    }

    /// Writes what was made.
    fn write(&mut self) {
        if let Some((keys, parts)) = self.made.take() {
            // Nothing rests on it: what cannot be written is made again by the next query.
            let _ = self.extend(&keys, &parts);
        }
    }

    /// Adds parts to the sound ones of an epoch's file.
    fn extend(&self, keys: &EpochKeys, parts: &[u8]) -> std::io::Result<()> {
        let epoch = keys.number();
        let Some(mut content) = Parts::load(self.store, epoch)?.sound(keys)? else { return Ok(()) };
        content.extend_from_slice(parts);
        if is_live(self.store).unwrap_or(true) {
            return Ok(());
        }
        self.store.create_directory(INDEX)?;
        bulla_store::replace(self.store, &index_path(epoch), &content)
    }
}
