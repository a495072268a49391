//! The destination of a mirror, as it is found: what it holds under its checkpoint, and what an earlier mirror left beyond that.
//!
//! Invariants:
//! - it is a mirror, or nothing but a lock: in a directory with anything else in it nothing is written;
//! - what is taken for the destination's tree is what its checkpoint signs.

use super::Shipped;
use super::beside::Beside;
use super::passed::Passed;
use crate::format::config::{self, LogConfig, arriving};
use crate::format::files;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::write::tree_files::{TreeFiles, load_edge, remove_beyond};
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::tile::TileBuilder;
use bulla_store::{Error, ErrorKind, FileSystem, Item, Lock, Result, Store};
use std::io;
use std::sync::Arc;

/// What a mirror goes on with.
pub(super) struct State {
    /// Nothing where no checkpoint has arrived yet.
    pub(super) known: Option<Known>,
    pub(super) tree: TreeFiles,
    pub(super) passed: Passed,
    pub(super) beside: Beside,
}

/// What is published of a log that is mirrored.
pub(super) struct Known {
    pub(super) config: LogConfig,
    /// The bytes of `bulla.toml`.
    pub(super) text: Vec<u8>,
    /// The bytes of `checkpoint`.
    pub(super) note: Vec<u8>,
}

/// Makes the directory where it is missing, and takes its lock.
///
/// # Errors
/// `Locked` where somebody else has it, `Refused` where there is something else in the directory, where the one above it is missing, or to
/// root where it is somebody else's; else where it cannot be made.
pub(super) fn lock(store: &dyn Store) -> Result<Box<dyn Lock>> {
    bulla_store::require_own(store)?;
    let name = store.describe("");
    if let Some(parent) = store.directory().and_then(FileSystem::missing_parent) {
        return Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{name} is not made with what is above it: there is no directory {}: is its disk mounted?",
                parent.display()
            ),
        ));
    }
    store.create_directory("").map_err(|error| Error::io(format!("making {name}"), error))?;
    require_mirror(store)?;
    store.lock(files::LOCK).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::new(
            ErrorKind::Locked,
            format!(
                "another mirror, or a writer, has {name} open: stop it, or mirror to a directory of its own"
            ),
        ),
        _ => Error::io(format!("locking {}", store.describe(files::LOCK)), error),
    })
}

/// That there is a mirror in the directory, one that was begun, or nothing.
fn require_mirror(store: &dyn Store) -> Result<()> {
    let items = list(store)?;
    let is_begun = items.iter().any(|item| item.name == config::FILE || item.name == arriving::NEXT);
    match items.into_iter().find(is_content).filter(|_| !is_begun) {
        None => Ok(()),
        // What its checkpoint says a mirror that began anew would not know.
        Some(_) if store.open(files::CHECKPOINT).is_ok() && config::has_segments(store) => {
            Err(Error::tampered(format!(
                "{} has the checkpoint and the segments of a log, and no {}: put that file back, from the source, too",
                store.describe(""),
                config::FILE
            )))
        }
        Some(other) => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{} is no mirror, and not empty: it has `{}`; name a directory of its own",
                store.describe(""),
                other.name
            ),
        )),
    }
}

/// Whether nothing is there yet that a mirror goes on with.
fn is_new(store: &dyn Store) -> Result<bool> {
    Ok(!list(store)?.iter().any(is_content))
}

fn list(store: &dyn Store) -> Result<Vec<Item>> {
    store.list("").map_err(|error| Error::io(format!("listing {}", store.describe("")), error))
}

/// Whether this is more than a lock, what a mirror leaves that is killed at its first file, or a file system's own.
fn is_content(item: &Item) -> bool {
    let unfinished = item.name.strip_suffix(".tmp") == Some(arriving::NEXT);
    item.name != files::LOCK && !unfinished && !(item.name == "lost+found" && item.directory)
}

impl State {
    /// What is in `store`, whose lock is held. Takes up a configuration that has arrived, and removes tiles that no checkpoint
    /// covers: they may be of a history that the source does not go on with.
    ///
    /// # Errors
    /// `Tampered` where it is not what its checkpoint signs, or is not signed by `key`; `Unavailable` where a file cannot be read.
    pub(super) fn resume(store: &Arc<dyn Store>, key: Option<&VerifierKey>) -> Result<Self> {
        arriving::take_up(&**store)?;
        if arriving::has_begun(&**store) || is_new(&**store)? {
            remove_beyond(&**store, 0)?;
            let tree = TreeFiles::new(store.clone(), (TileBuilder::new(), Vec::new()));
            return Ok(State { known: None, tree, passed: Passed::default(), beside: Beside::default() });
        }
        let (config, _) = config::load_of_log(&**store)?;
        let text = config::read(&**store)?;
        let snapshot = Snapshot::trusted(store.clone(), config.clone(), &key.into())?;
        remove_beyond(&**store, snapshot.checkpoint.size)?;
        let edge = load_edge(&**store, &snapshot.checkpoint)?;
        let note = snapshot.note.clone();
        let passed = Passed::under(&Manifest::load_end(snapshot)?)?;
        let tree = TreeFiles::new(store.clone(), edge);
        Ok(State { known: Some(Known { config, text, note }), tree, passed, beside: Beside::default() })
    }

    /// What it holds, where nothing more is known of the source.
    pub(super) fn shipped(&self) -> Shipped {
        Shipped {
            frames: self.tree.head().size,
            entries: self.passed.next_entry,
            signed_time: self.passed.signed_time,
            ..Shipped::default()
        }
    }
}
