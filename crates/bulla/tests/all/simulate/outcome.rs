//! What a check says.

use bulla::SignedNote;
use bulla_proof::Checkpoint;

pub(super) use crate::crash::world::{Outcome, must};

/// What a note signs.
pub(super) fn checkpoint_of(note: &[u8]) -> Outcome<Checkpoint> {
    let parsed = SignedNote::parse(note).and_then(|note| Checkpoint::parse(note.text));
    parsed.map_err(|error| format!("the checkpoint: {error}"))
}

/// A result of the engine's where nothing may fail.
pub(super) fn sound<T>(what: &str, result: bulla::Result<T>) -> Outcome<T> {
    result.map_err(|error| format!("{what}: {:?}: {error}", error.kind()))
}
