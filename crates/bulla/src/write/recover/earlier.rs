//! A seal state from before a part of its log was given up: it is told from one that speaks of frames which are missing by the ids of these parts, as
//! a vault is ([`given_up`]).

use crate::keys::files;
use crate::keys::seal_state::{Attempt, SealState};
use crate::scan::given_up;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use bulla_crypto::group::PartId;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use bulla_text::spelling::counted;
use bulla_vault::Vault;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A part of the log that was given up, and that a seal state which does not go with the log knows nothing of.
pub(crate) struct UnknownPart {
    /// The frame of the event that tells of it.
    frame: u64,
    pub(crate) id: PartId,
}

impl UnknownPart {
    /// Looks for the first one that the signed frames tell of. A seal state that ends before it is only an older one, unless its frames are not the
    /// log's.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub(crate) fn find(log: &Arc<dyn Store>, state: &SealState) -> Result<Option<Self>> {
        let manifest = Manifest::load(Snapshot::of(log.clone())?)?;
        let mut unknown = given_up::told(&manifest, 0)?;
        unknown.retain(|(_, id)| !state.given_up.contains(id));
        let TreeHead { size, root } = state.head();
        let Some((frame, id)) = unknown.into_iter().next() else { return Ok(None) };
        let is_other = frame < size || manifest.root_at(size)? != root;
        Ok(is_other.then_some(UnknownPart { frame, id }))
    }

    /// Why the log is not gone on with under that seal state. One that speaks of the event's frame, and not of the part, is of what was given up; of one
    /// that ends before it the log may also have been changed.
    pub(crate) fn refuse(&self, keys: &dyn Store, state: &SealState) -> Error {
        let UnknownPart { frame, .. } = self;
        let size = state.head().size;
        let message = format!(
            "{} speaks of {} of another history of the log, which tells of a part that was given up before frame {frame} (`bulla restore --older-log`): \
             it is from before that, and says nothing of this log. Bring one that the log has been written with since, however old; \
             docs/operating.md, \"`seal.state` is lost\", says what to do where there is none",
            keys.describe(files::SEAL_STATE),
            counted(size, "frame")
        );
        match *frame < size {
            true => Error::new(ErrorKind::Refused, message),
            false => Error::tampered(format!("{message}; run `bulla verify`")),
        }
    }
}

/// Whether a seal state, which knows of the parts `known`, is of an `attempt` to give a part up that is not done: neither the log nor `unsigned` events
/// tell of that, nor of another part than was known then. Where events are lost with a path, one of them may have told it, unless the vault knows
/// nothing of the part.
///
/// # Errors
/// Where the log or the vault cannot be read.
pub(crate) fn is_undone(
    (attempt, known): (Option<Attempt>, &BTreeSet<PartId>),
    (manifest, unsigned): (&Manifest, &[(u64, PartId)]),
    vault: Option<&Vault>,
) -> Result<bool> {
    let Some(Attempt { part, .. }) = attempt else { return Ok(false) };
    let is_since = |id: &PartId| *id == part || !known.contains(id);
    if given_up::told(manifest, 0)?.iter().chain(unsigned).any(|(_, id)| is_since(id)) {
        return Ok(false);
    }
    let knows = vault.map_or(Ok(true), |vault| Ok(vault.given_up()?.contains(&part)))?;
    Ok(!knows || manifest.lost()?.events_from(0).is_none())
}

/// Why a log is not gone on with whose seal state is of an attempt to give a part of it up that is not done, and of which nothing else is there.
pub(crate) fn not_done(keys: &dyn Store) -> Error {
    let message = format!(
        "{} is of a `bulla restore --older-log` that is not done, and {}, which says what it gives up, is not there: bring the key directory as this \
         host wrote it last. Where nothing was given up in the end, and only {} was brought, from a backup of that time, beside the newest log and \
         vault, move it away, and have it made anew (`bulla restore --seal-key`). Else, where nothing newer is left, `bulla restore --older-log` goes on \
         with what is there, without knowing what is lost",
        keys.describe(files::SEAL_STATE),
        keys.describe(files::RESTORING),
        files::SEAL_STATE
    );
    Error::new(ErrorKind::Refused, message)
}

/// Why opening a log for writing was refused: where the seal state is from before a part was given up, that is why.
pub(crate) fn explain(error: Error, log: &Arc<dyn Store>, keys: &dyn Store) -> Error {
    if error.kind() != ErrorKind::Tampered {
        return error;
    }
    let refused = SealState::load(keys)
        .and_then(|state| Ok(UnknownPart::find(log, &state)?.map(|part| part.refuse(keys, &state))));
    refused.ok().flatten().unwrap_or(error)
}
