//! The files in which cosignatures are kept, beside `checkpoint`: `checkpoint.witnessed`, the newest one that is cosigned as the log's
//! policy asks for, and a file for each witness with the newest one that it has cosigned.

use crate::format::config::{AskedWitness, LogConfig};
use crate::format::files;
use bulla_proof::checkpoint::{Checkpoint, MAX_NOTE, SignedNote};
use bulla_proof::tree::TreeHead;
use bulla_store::{Result, Store};
use std::io;

/// Replaces a file beside `checkpoint`, in a directory that may not be there yet.
///
/// # Errors
/// Where it cannot be written; then the old one is there, or the new one.
pub(crate) fn replace(store: &dyn Store, path: &str, note: &[u8]) -> io::Result<()> {
    let directory = bulla_store::path::parent(path);
    match bulla_store::replace(store, path, note) {
        // That another path of the log has the directory says nothing of the one that takes what is written.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.is_empty() => {
            store.create_directory(directory)?;
            store.sync_directory("")?;
            bulla_store::replace(store, path, note)
        }
        replaced => replaced,
    }
}

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

/// A checkpoint of this log, with the signature lines of all files that have it.
pub(crate) type Cosigned = (String, TreeHead);

/// The checkpoints that are kept for their cosignatures, which are not verified: of `checkpoint.witnessed`, and of the files of the witnesses
/// with these key ids. To be read before `checkpoint` is.
///
/// # Errors
/// `Unavailable` where a file cannot be read.
pub(crate) fn kept(
    store: &dyn Store,
    config: &LogConfig,
    key_ids: impl Iterator<Item = u32>,
) -> Result<Vec<Cosigned>> {
    let mut kept = Vec::new();
    for path in key_ids.map(files::cosigned_path).chain([files::WITNESSED.to_owned()]) {
        if let Some(found) = read_file(store, config, &path)? {
            gather(&mut kept, found);
        }
    }
    Ok(kept)
}

/// Adds a checkpoint, or its signature lines to those of the same one. What would be too long for a note is left out.
pub(crate) fn gather(all: &mut Vec<Cosigned>, (note, head): Cosigned) {
    let Ok(found) = SignedNote::parse(note.as_bytes()) else { return };
    let same = all.iter_mut().find(|(other, _)| text_of(other) == Some(found.text));
    let Some((other, _)) = same else { return all.push((note, head)) };
    let joined = SignedNote::parse(other.as_bytes()).ok().map(|mut joined| {
        for line in found
            .signatures
            .iter()
            .filter(|line| !joined.signatures.contains(line))
            .cloned()
            .collect::<Vec<_>>()
        {
            let _ = joined.keep(line);
        }
        joined.to_string()
    });
    if let Some(joined) = joined {
        *other = joined;
    }
}

fn text_of(note: &str) -> Option<&str> {
    SignedNote::parse(note.as_bytes()).ok().map(|note| note.text)
}

/// A tree that the log's keys have signed, as a file beside `checkpoint` has it.
pub(crate) struct SignedHead {
    pub(crate) path: String,
    pub(crate) head: TreeHead,
}

/// What `checkpoint.witnessed` and the files of the witnesses that the log asks say that its keys have signed, whoever has cosigned it.
/// What is there and not signed by each of those keys says nothing. To be read before `checkpoint` is: then the log has no fewer frames.
///
/// # Errors
/// `Unavailable` where a file cannot be read.
pub(crate) fn signed_heads(store: &dyn Store, config: &LogConfig) -> Result<Vec<SignedHead>> {
    let asked = config.witness_policy.iter().flat_map(|policy| policy.asked());
    let paths = asked.map(|witness| files::cosigned_path(witness.key.key_id()));
    let mut heads = Vec::<SignedHead>::new();
    for path in [files::WITNESSED.to_owned()].into_iter().chain(paths) {
        if let Some((_, head)) = read_file(store, config, &path)?
            && heads.iter().all(|other| other.head != head)
        {
            heads.push(SignedHead { path, head });
        }
    }
    Ok(heads)
}

/// As [`read`], where something other than a file is none.
fn read_file(store: &dyn Store, config: &LogConfig, path: &str) -> Result<Option<(String, TreeHead)>> {
    match read(store, config, path) {
        Err(error) if error.io_error().is_some_and(is_no_file) => Ok(None),
        read => read,
    }
}

/// Whether there is something other than a file that is read.
pub(crate) fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory)
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
