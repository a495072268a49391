//! The files in which cosignatures are kept, beside `checkpoint`: `checkpoint.witnessed`, the newest one that is cosigned as the log's
//! policy asks for, and a file for each witness with the newest one that it has cosigned.

use crate::format::config::{AskedWitness, LogConfig};
use crate::format::files;
use bulla_proof::checkpoint::{Checkpoint, MAX_NOTE, SignedNote};
use bulla_proof::tree::TreeHead;
use bulla_store::{Result, Store};
use std::io;

/// A checkpoint as it was published: the whole note, and the tree that it is of.
pub(crate) fn read_published(store: &dyn Store, config: &LogConfig) -> Result<Option<(String, TreeHead)>> {
    read(store, config, files::CHECKPOINT)
}

/// A note of this log; `None` where there is none at `path`, or what is there is not signed by the log: then it is as good as
/// none to the writer, and for `verify` to tell.
pub(crate) fn read(store: &dyn Store, config: &LogConfig, path: &str) -> Result<Option<(String, TreeHead)>> {
    let bytes = match bulla_store::read_small(store, path, MAX_NOTE as u64) {
        Ok(bytes) => bytes,
        Err(error) if error.io_error().is_none_or(|error| error.kind() == io::ErrorKind::NotFound) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let checkpoint = config.own_keys().open(&bytes).ok();
    let head = checkpoint.map(|Checkpoint { size, root, .. }| TreeHead { size, root });
    Ok(head.zip(String::from_utf8(bytes).ok()).map(|(head, note)| (note, head)))
}

/// The newest cosignature of each witness that the log asks, as the log's files have it, in the order of the policy: the number of frames, and
/// the time in it. Each is verified, and the checkpoint is one that the log signed.
///
/// # Errors
/// `Unavailable` where a file cannot be read.
pub(crate) fn newest_cosignatures(store: &dyn Store, config: &LogConfig) -> Result<Vec<Option<(u64, u64)>>> {
    let asked = config.witness_policy.iter().flat_map(|policy| policy.asked());
    let of = |witness: &AskedWitness| {
        let mut newest = None;
        let own = files::cosigned_path(witness.key.key_id());
        for path in [files::CHECKPOINT, files::WITNESSED, &own] {
            let Some((note, head)) = read(store, config, path)? else { continue };
            let cosigned = SignedNote::parse(note.as_bytes()).and_then(|note| witness.key.verify(&note));
            newest = newest.max(cosigned.ok().map(|cosigned| (head.size, cosigned.timestamp)));
        }
        Ok(newest)
    };
    asked.map(of).collect()
}
