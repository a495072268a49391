//! The tree head that the log signs as COSE, beside its checkpoint.
//!
//! A writer replaces it after `checkpoint`. It may be of an earlier tree, or missing: a crash came between both, or the log is older than this
//! file; or of a later one, in a copy that was made beside a writer. None of that is a finding. One that the log's key has signed of another
//! tree than the log's is evidence of two histories: who opens the log to write it refuses, so that no publication wipes it out.

use super::cosignatures::is_no_file;
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
    match read.map(|read| read.and_then(|head| by_log(head, config))) {
        None => Ok(None),
        Some(Err(why)) => Ok(Some(mismatch(why))),
        Some(Ok(signed)) => {
            compare(&signed, store, TreeHead { size: checkpoint.size, root: checkpoint.root })
        }
    }
}

/// The head in a file, signed by the log's key; else why it is none.
pub(crate) fn signed(file: &[u8], config: &LogConfig) -> std::result::Result<CoseCheckpoint, String> {
    let parsed = CoseCheckpoint::parse(file).map_err(|error| error.to_string());
    parsed.and_then(|head| by_log(head, config))
}

/// A head that the log's key has signed; else why it is none.
pub(crate) fn by_log(
    head: CoseCheckpoint,
    config: &LogConfig,
) -> std::result::Result<CoseCheckpoint, String> {
    match head.verify(&config.verifier_key) {
        Ok(()) => Ok(head),
        Err(error) => Err(format!("it is not signed by the log's key: {error}")),
    }
}

/// The finding that says this of the file.
pub(crate) fn mismatch(detail: String) -> Finding {
    Finding::new(FindingKind::CoseMismatch, format!("{COSE_CHECKPOINT}: {detail}"))
}

/// What is wrong with a head that the log's key has signed, beside the log's tree `of`, whose tiles are in `store`.
///
/// # Errors
/// `Unavailable` where a tile cannot be read.
pub(crate) fn compare(signed: &CoseCheckpoint, store: &dyn Store, of: TreeHead) -> Result<Option<Finding>> {
    let size = signed.size();
    let root = match size {
        _ if size > of.size => return Ok(None),
        0 => Some(tree::empty_root()),
        _ if size == of.size => Some(of.root),
        // Tiles that do not come to the checkpoint's root are told of by who looks at them.
        _ => stored_tree::root_at(store, of, size)?,
    };
    match root.is_none_or(|root| root == signed.root()) {
        true => Ok(None),
        false => Ok(Some(mismatch(format!(
            "the first {} of the log have another root than it signs: the log has two histories under one key",
            counted(size, "frame")
        )))),
    }
}
