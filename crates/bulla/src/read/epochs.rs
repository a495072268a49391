//! The epochs of a log: when each began, and what can be known of who opens it.

use crate::format::epoch::EpochBody;
use crate::scan::events::epoch_body;
use crate::scan::manifest::{Frames, Manifest};
use crate::scan::snapshot::{Snapshot, unless_gone};
use bulla_crypto::recipients::Identity;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::{FileSystem, Result, Store};
use std::path::Path;
use std::sync::Arc;

/// An epoch of a log, under its checkpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Epoch {
    /// Its number: its frame's.
    pub number: u64,
    /// The number of the first entry that comes after it began.
    pub first_entry: u64,
    /// When it began, in seconds since the Unix epoch.
    pub began: i64,
    /// How many stanzas its wrapped key has: one a recipient, where each makes one. age does not say whose they are.
    pub stanzas: usize,
    commitment: Commitment,
    body: EpochBody,
}

impl Epoch {
    fn of(commitment: Commitment, body: EpochBody) -> Self {
        Epoch {
            number: commitment.frame,
            first_entry: commitment.first_entry,
            began: commitment.earliest,
            stanzas: stanzas(&body.wrapped),
            commitment,
            body,
        }
    }

    /// Whether `identity` opens it.
    ///
    /// # Errors
    /// `Tampered` where its key is damaged; whatever the identity fails with.
    pub fn is_open_to(&self, identity: &dyn Identity) -> Result<bool> {
        self.body.unlock(&self.commitment, identity).map(|keys| keys.is_some())
    }
}

/// The epochs of the log in `directory` that its checkpoint covers, without those that were lost with a path.
///
/// # Errors
/// `Unavailable` where there is no log or a file cannot be read, `Tampered` where what is read is damaged, or missing without being lost.
pub fn epochs(directory: impl AsRef<Path>) -> Result<Vec<Epoch>> {
    epochs_of(Arc::new(FileSystem::new(directory.as_ref())))
}

/// The same of a log in any store.
///
/// # Errors
/// As [`epochs`].
pub fn epochs_of(store: Arc<dyn Store>) -> Result<Vec<Epoch>> {
    unless_gone(&*store, epochs_there(store.clone()))
}

fn epochs_there(store: Arc<dyn Store>) -> Result<Vec<Epoch>> {
    let manifest = Manifest::load(Snapshot::of(store)?)?;
    let (mut frames, lost) = (Frames::new(&manifest)?, manifest.lost()?);
    let mut epochs = Vec::new();
    while let Some(placed) = frames.next()? {
        if placed.commitment.kind == FrameKind::Epoch && !lost.contains(placed.commitment.frame) {
            epochs.push(Epoch::of(placed.commitment.clone(), epoch_body(&mut frames, placed)?));
        }
    }
    Ok(epochs)
}

/// The stanzas of an age file, without those that are there for practice only ("grease").
fn stanzas(wrapped: &[u8]) -> usize {
    let lines = wrapped.split(|byte| *byte == b'\n').take_while(|line| !line.starts_with(b"---"));
    let tags = lines.filter_map(|line| line.strip_prefix(b"-> ")?.split(|byte| *byte == b' ').next());
    tags.filter(|tag| !tag.ends_with(b"-grease")).count()
}
