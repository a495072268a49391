//! Making up what is missing of the index, by a reader that had to read the blocks anyway.

use super::file::Parts;
use super::gather::{Gathered, Gatherer, Ready};
use super::path;
use crate::environment::{AesGcm, SystemRandom};
use crate::store::{self, Store};
use crate::verify::is_live;
use std::collections::BTreeMap;

/// Gathers blocks that no part covers, and adds parts for them to the epochs' files.
///
/// It does so where it may write and no writer is at work. Where it cannot, the next query reads those blocks again.
pub(crate) struct Rebuild<'a> {
    store: &'a dyn Store,
    gatherer: Option<Gatherer>,
    /// New parts, by epoch.
    parts: BTreeMap<u64, Vec<u8>>,
}

impl<'a> Rebuild<'a> {
    pub(crate) fn new(store: &'a dyn Store, wanted: bool) -> Self {
        let wanted = wanted && is_live(store).is_ok_and(|live| !live);
        Rebuild { store, gatherer: wanted.then(Gatherer::default), parts: BTreeMap::new() }
    }

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
        for (epoch, parts) in std::mem::take(&mut self.parts) {
            // Nothing rests on it: what cannot be written is made again by the next query.
            let _ = self.write(epoch, &parts);
        }
    }

    fn seal(&mut self, ready: Vec<Ready>) {
        for ready in ready {
            let epoch = ready.epoch();
            if let Ok(part) = ready.seal((&SystemRandom, &AesGcm)) {
                self.parts.entry(epoch).or_default().extend(part);
            }
        }
    }

    /// Adds parts to the sound ones of an epoch's file.
    fn write(&self, epoch: u64, parts: &[u8]) -> std::io::Result<()> {
        let mut content = Parts::load(self.store, epoch)?.content()?;
        content.extend_from_slice(parts);
        if is_live(self.store).unwrap_or(true) {
            return Ok(());
        }
        self.store.create_directory(super::DIRECTORY)?;
        store::replace(self.store, &path(epoch), &content)
    }
}
