//! Whether a checkpoint and the seal state in the key directory are of one history of the log.
//!
//! A part of a log can be given up (`restore --older-log`), and other frames be written in its place: then one key has signed two histories. What
//! lies in a directory does not tell which of them is the log; the seal state does, which moves on with it.
//!
//! Invariant: two histories are told only where tiles or bundles that come to the root of the longer tree say that the shorter one is no beginning of it. So
//! nobody who reads beside a writer is told so: the seal state is written before a checkpoint over as many frames is, and files of the tree that are
//! replaced meanwhile say nothing.

use crate::format::config::signed::OwnKeys;
use crate::scan::checkpoint::read_note;
use crate::scan::stored_tree;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, Store};
use bulla_text::spelling::counted;

/// What two trees are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Histories {
    /// The shorter one is a beginning of the other.
    One,
    Two,
    /// Neither tiles nor bundles tell.
    Untold,
}

/// Compares two trees by the tiles of the longer one, or by its bundles where one of those is missing.
pub(crate) fn compare(log: &dyn Store, one: TreeHead, other: TreeHead) -> Histories {
    let (shorter, longer) = if one.size <= other.size { (one, other) } else { (other, one) };
    let root = match shorter.size {
        0 => return Histories::One,
        size if size == longer.size => Some(longer.root),
        size => stored_tree::root_at_without_tiles(log, longer, size).ok().flatten(),
    };
    match root {
        Some(root) if root == shorter.root => Histories::One,
        Some(_) => Histories::Two,
        None => Histories::Untold,
    }
}

/// What is said of a log, or a path, in `place`, of which not all of the first so many frames are those that the seal state, which is called `state`, was
/// written for.
pub(crate) fn another_history(place: &str, state: &str, frames: u64) -> String {
    let frames = counted(frames, "frame");
    format!(
        "{place} holds another history of the log than {state} goes with: not all of its first {frames} are those that this was written for. It is one \
         that was given up (`bulla restore --older-log`), or was put in the place of the log; or {state} is from before a part was given up"
    )
}

/// Why a log is not written that holds another history.
pub(crate) fn refuse_to_write(another_history: &str) -> Error {
    Error::tampered(format!(
        "{another_history}; bring the directory that the key directory goes with, and keep this one aside: docs/operating.md, \"Two histories\", says \
         more; run `bulla verify`"
    ))
}

/// What the checkpoint of a directory says, where it is signed by the log's key. What lies beside it does not say which key that is.
pub(crate) fn head_of(store: &dyn Store, own_keys: &OwnKeys<'_>) -> Option<TreeHead> {
    let checkpoint = own_keys.open(&read_note(store).ok()??).ok()?;
    Some(TreeHead { size: checkpoint.size, root: checkpoint.root })
}
