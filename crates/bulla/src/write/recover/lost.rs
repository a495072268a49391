//! A log of which a path is lost for good: what lay there alone is gone, and it is gone on from what is signed.

use crate::keys::seal_state::SealState;
use crate::scan::lost::are_lost;
use crate::write::tree_files;
use bulla_proof::checkpoint::Checkpoint;
use bulla_store::{ErrorKind, Result, Store};

/// The checkpoint that the seal state speaks of, of a log that has lost a path: its tree was written, and signing it was cut short. What
/// lies between is gone with the path, and the tree tells of it. The next checkpoint signs it.
///
/// # Errors
/// `Unavailable` where a file of the tree is there and cannot be read.
pub(super) fn furthest_signed(
    log: &dyn Store,
    checkpoint: Checkpoint,
    state: &SealState,
) -> Result<Checkpoint> {
    if are_lost(log) { furthest_tree(log, checkpoint, state) } else { Ok(checkpoint) }
}

/// The same of a log of which a path is lost, or may be.
///
/// # Errors
/// As [`furthest_signed`].
pub(crate) fn furthest_tree(
    log: &dyn Store,
    checkpoint: Checkpoint,
    state: &SealState,
) -> Result<Checkpoint> {
    let size = state.chain.next_frame();
    if size <= checkpoint.size {
        return Ok(checkpoint);
    }
    let later = Checkpoint { size, root: state.root, ..checkpoint.clone() };
    match tree_files::load_edge(log, &later) {
        Err(error) if error.kind() == ErrorKind::Tampered => Ok(checkpoint),
        edge => edge.map(|_| later),
    }
}
