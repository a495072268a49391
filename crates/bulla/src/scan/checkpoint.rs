//! The published checkpoint, and whether a writer has the log open.

use super::finding::{Finding, FindingKind, Findings};
use crate::format::config::LogConfig;
use crate::format::files;
use bulla_proof::checkpoint::{Checkpoint, SignedNote, VerifierKey};
use bulla_store::{Error, ErrorKind, Result, Store};
use std::io;

/// The most bytes of a checkpoint, with all its witnesses.
const MOST: u64 = 1 << 20;

/// Whether a writer has the log open.
pub(crate) fn is_live(store: &dyn Store) -> Result<bool> {
    let locked = store.is_locked(files::LOCK);
    locked.map_err(|error| Error::io(format!("looking at {}", store.describe(files::LOCK)), error))
}

/// A checkpoint as it was read.
pub(crate) struct Signed {
    pub(crate) checkpoint: Checkpoint,
    /// Whether it is signed by the key that was given.
    pub(crate) anchored: bool,
    /// The signed note, verbatim.
    pub(crate) note: Vec<u8>,
}

/// The checkpoint, and whether it is signed by `key`. One that is not signed by the log's own key still guides
/// the scan, as far as it can be read.
pub(crate) fn read_checkpoint(
    store: &dyn Store,
    config: &LogConfig,
    key: Option<&VerifierKey>,
    findings: &mut Findings,
) -> Result<Option<Signed>> {
    let name = files::CHECKPOINT;
    let bytes = match read_note(store) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            findings.add(Finding::new(FindingKind::CheckpointDamaged, format!("{name} is missing")));
            return Ok(None);
        }
        Err(error) if error.kind() == ErrorKind::Invalid => {
            findings.add(Finding::new(FindingKind::CheckpointDamaged, error.to_string()));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut damaged = |detail: String| findings.add(Finding::new(FindingKind::CheckpointDamaged, detail));
    let note = match SignedNote::parse(&bytes) {
        Ok(note) => note,
        Err(error) => {
            damaged(format!("{name}: {error}"));
            return Ok(None);
        }
    };
    let parsed = match Checkpoint::parse(note.text) {
        Ok(parsed) => parsed,
        Err(error) => {
            damaged(format!("{name}: {error}"));
            return Ok(None);
        }
    };
    if parsed.origin != config.origin {
        damaged(format!("{name} is of `{}`, not of `{}`", parsed.origin, config.origin));
    } else if let Err(error) = note.verify(&config.verifier_key) {
        damaged(format!("{name} is not signed by the log's key: {error}"));
    }
    let anchored = key.is_some_and(|key| key.name() == parsed.origin && note.verify(key).is_ok());
    if let Some(key) = key.filter(|_| !anchored) {
        let detail = format!("{name} is not signed by the key that was given, {key}");
        findings.add(Finding::new(FindingKind::KeyMismatch, detail));
    }
    Ok(Some(Signed { checkpoint: parsed, anchored, note: bytes }))
}

/// The checkpoint, which has to be signed by the log's key, and by `key` where there is one.
pub(crate) fn trusted_checkpoint(
    store: &dyn Store,
    config: &LogConfig,
    key: Option<&VerifierKey>,
) -> Result<Signed> {
    let mut findings = Findings::default();
    let read = read_checkpoint(store, config, key, &mut findings)?;
    believed(read, findings)
}

/// What was read of a checkpoint, if nothing at all is wrong with it.
pub(crate) fn believed<T>(read: Option<T>, findings: Findings) -> Result<T> {
    match (read, findings.finish().first()) {
        (Some(read), None) => Ok(read),
        (_, Some(finding)) => Err(Error::tampered(finding.to_string())),
        (None, None) => Err(Error::tampered("there is no checkpoint")),
    }
}

/// The bytes of the checkpoint, where there is one. `Invalid` where it is too long to be one.
pub(crate) fn read_note(store: &dyn Store) -> Result<Option<Vec<u8>>> {
    match bulla_store::read_small(store, files::CHECKPOINT, MOST) {
        Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
            Ok(None)
        }
        read => read.map(Some),
    }
}
