//! The tree head that the log signs as COSE, beside its checkpoint.
//!
//! A writer replaces it after `checkpoint`. It may be of an earlier tree, or missing: a crash came between both, or the log is older than this
//! file; or of a later one, in a copy that was made beside a writer. None of that is a finding.

use super::finding::{Finding, FindingKind};
use super::stored_tree;
use crate::format::config::LogConfig;
use crate::format::files::COSE_CHECKPOINT;
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::cose::{CoseCheckpoint, MAX_COSE_CHECKPOINT};
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{ErrorKind, Result, Store};
use bulla_text::spelling::counted;
use std::io;

/// What is there: nothing, or the head, or why it is none.
pub(crate) type Read = Option<std::result::Result<CoseCheckpoint, String>>;

/// Reads the file.
///
/// # Errors
/// `Unavailable` where it cannot be read.
pub(crate) fn read(store: &dyn Store) -> Result<Read> {
    match bulla_store::read_small(store, COSE_CHECKPOINT, MAX_COSE_CHECKPOINT as u64) {
        Ok(bytes) => Ok(Some(CoseCheckpoint::parse(&bytes).map_err(|error| error.to_string()))),
        Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
            Ok(None)
        }
        // Too long, a link, a pipe, a directory.
        Err(error) if error.kind() == ErrorKind::Invalid || error.io_error().is_some_and(is_no_file) => {
            Ok(Some(Err(error.to_string())))
        }
        Err(error) => Err(error),
    }
}

/// Whether there is something other than a file that is read.
fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory)
}

/// What is wrong with what was read, beside a `checkpoint` that is signed by the log's key.
///
/// # Errors
/// `Unavailable` where a tile cannot be read.
pub(crate) fn judge(
    read: Read,
    store: &dyn Store,
    config: &LogConfig,
    checkpoint: &Checkpoint,
) -> Result<Option<Finding>> {
    let wrong = |detail: String| {
        Ok(Some(Finding::new(FindingKind::CoseMismatch, format!("{COSE_CHECKPOINT}: {detail}"))))
    };
    let signed = match read {
        None => return Ok(None),
        Some(Err(why)) => return wrong(why),
        Some(Ok(signed)) => signed,
    };
    if let Err(error) = signed.verify(&config.verifier_key) {
        return wrong(format!("it is not signed by the log's key: {error}"));
    }
    let (size, covered) = (signed.size(), checkpoint.size);
    if size > covered {
        return Ok(None);
    }
    let root = match size {
        0 => Some(tree::empty_root()),
        _ if size == covered => Some(checkpoint.root),
        // Tiles that do not come to the checkpoint's root are told of by who looks at them.
        _ => stored_tree::root_at(store, TreeHead { size: covered, root: checkpoint.root }, size)?,
    };
    match root.is_none_or(|root| root == signed.root()) {
        true => Ok(None),
        false => wrong(format!(
            "the first {} of the log have another root than it signs: the log has two histories under one key",
            counted(size, "frame")
        )),
    }
}
