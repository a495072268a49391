//! The published checkpoint, and whether a writer has the log open.

use super::finding::{Finding, FindingKind, Findings};
use crate::format::config::LogConfig;
use crate::format::files;
use crate::scan::trust::{self, Trust, Witnessed};
use bulla_proof::checkpoint::{Checkpoint, SignedNote};
use bulla_proof::tree::TreeHead;
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
    /// What is witnessed, where a policy asks for it and it is.
    pub(crate) witnessed: Option<Witnessed>,
    /// The signed note, verbatim.
    pub(crate) note: Vec<u8>,
}

/// The checkpoint, and whether it is signed and witnessed as `trust` asks for. One that is not signed by the log's own key still guides
/// the scan, as far as it can be read.
pub(crate) fn read_checkpoint(
    store: &dyn Store,
    config: &LogConfig,
    trust: &Trust,
    findings: &mut Findings,
) -> Result<Option<Signed>> {
    let name = files::CHECKPOINT;
    let kept = trust.read_kept(store, config)?;
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
    } else if let Err(why) = config.own_keys().require_signed(&note) {
        damaged(format!("{name}: {why}"));
    }
    let anchored = trust.is_signed(&note, &parsed, findings);
    let witnessed = trust.witnessed(config, (&note, &parsed), kept, findings);
    Ok(Some(Signed { checkpoint: parsed, anchored, witnessed, note: bytes }))
}

/// The tree that is believed: the checkpoint's, which has to be signed by the log's key, and signed and witnessed as `trust` asks
/// for; where an older one is all that is witnessed, that one's. With how many frames the checkpoint covers.
pub(crate) fn believed_head(store: &dyn Store, config: &LogConfig, trust: &Trust) -> Result<(TreeHead, u64)> {
    let Signed { checkpoint, witnessed, .. } = trusted_checkpoint(store, config, trust)?;
    let signed = TreeHead { size: checkpoint.size, root: checkpoint.root };
    let believed = match witnessed {
        None => signed,
        Some(Witnessed { head, .. }) if head.size <= signed.size => head,
        Some(Witnessed { head, .. }) => {
            trust::require_beginning(store, files::WITNESSED, signed, head).map(|()| signed)?
        }
    };
    Ok((believed, signed.size))
}

/// The checkpoint, which has to be signed by the log's key, and signed and witnessed as `trust` asks for. That its tree begins
/// with what is witnessed is not looked at.
pub(crate) fn trusted_checkpoint(store: &dyn Store, config: &LogConfig, trust: &Trust) -> Result<Signed> {
    let mut findings = Findings::default();
    let read = read_checkpoint(store, config, trust, &mut findings)?;
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
