//! What a check says.

pub(super) use crate::crash::world::{Outcome, must};

/// A result of the engine's where nothing may fail.
pub(super) fn sound<T>(what: &str, result: bulla::Result<T>) -> Outcome<T> {
    result.map_err(|error| format!("{what}: {:?}: {error}", error.kind()))
}
