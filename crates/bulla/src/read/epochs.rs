//! The epochs of a log: when each began, and what can be known of who opens it.

use crate::format::config;
use crate::format::epoch::{EpochBody, MAX_EPOCH};
use crate::format::frame;
use crate::scan::manifest::{Frames, Manifest, Placed};
use crate::write::recover;
use bulla_crypto::recipients::Identity;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::sha256;
use bulla_store::{Error, Result};
use bulla_store::{FileSystem, Store};
use std::path::Path;

/// An epoch of a log, under its checkpoint.
#[derive(Clone, Debug)]
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
    /// Whether `identity` opens it.
    ///
    /// # Errors
    /// `Tampered` where its key is damaged; whatever the identity fails with.
    pub fn is_open_to(&self, identity: &dyn Identity) -> Result<bool> {
        self.body.unlock(&self.commitment, identity).map(|keys| keys.is_some())
    }
}

/// The epochs of the log in `directory` that its checkpoint covers.
///
/// # Errors
/// `Unavailable` where there is no log or a file cannot be read, `Tampered` where what is read is damaged.
pub fn epochs(directory: impl AsRef<Path>) -> Result<Vec<Epoch>> {
    let store: &dyn Store = &FileSystem::new(directory.as_ref());
    let (config, _) = config::load(store)?;
    let manifest = Manifest::load(store, recover::read_checkpoint(store, &config)?)?;
    let mut frames = Frames::new(&manifest, store, &config)?;
    let mut epochs = Vec::new();
    while let Some(placed) = frames.next()? {
        if placed.commitment.kind == FrameKind::Epoch {
            epochs.push(read(store, placed)?);
        }
    }
    Ok(epochs)
}

fn read(store: &dyn Store, placed: Placed) -> Result<Epoch> {
    let Placed { commitment, segment, offset } = placed;
    let number = commitment.frame;
    let missing = || Error::tampered(format!("no segment holds epoch {number}; run `bulla verify`"));
    let path = segment.ok_or_else(missing)?.path();
    let name = store.describe(&path);
    let damaged = || Error::tampered(format!("{name}: epoch {number} is damaged; run `bulla verify`"));
    if commitment.body_length > MAX_EPOCH {
        return Err(damaged());
    }
    let file = store.open(&path).map_err(|error| Error::io(format!("reading {name}"), error))?;
    let body = frame::read_body(&*file, offset, &commitment);
    let body = body.map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => damaged(),
        _ => Error::io(format!("reading {name}"), error),
    })?;
    if sha256(&[&body]) != commitment.body_digest {
        return Err(damaged());
    }
    let body = EpochBody::decode(&body)?;
    Ok(Epoch {
        number,
        first_entry: commitment.first_entry,
        began: commitment.earliest,
        stanzas: stanzas(&body.wrapped),
        commitment,
        body,
    })
}

/// The stanzas of an age file, without those that are there for practice only ("grease").
fn stanzas(wrapped: &[u8]) -> usize {
    let lines = wrapped.split(|byte| *byte == b'\n').take_while(|line| !line.starts_with(b"---"));
    let tags = lines.filter_map(|line| line.strip_prefix(b"-> ")?.split(|byte| *byte == b' ').next());
    tags.filter(|tag| !tag.ends_with(b"-grease")).count()
}
