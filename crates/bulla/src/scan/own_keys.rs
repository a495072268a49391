//! Keys at hand, as far as what they say of a log is said of this one.
//!
//! A vault says up to which frames it followed the log: whom those say was erased has no key in it, and no number in them is one that it
//! never gave. That holds of the log that the vault followed, which the root over those frames tells. It need not hold of an older copy
//! that was put in the place of that log, or of one that was gone on with from there.

use crate::scan::given_up::{self, Line};
use crate::scan::manifest::Manifest;
use crate::scan::paths::{LOOKS, PAUSE};
use crate::scan::snapshot::Snapshot;
use crate::scan::trust::Trust;
use crate::scan::unread_events::UnreadEvents;
use bulla_crypto::environment::{Environment, Interrupt};
use bulla_crypto::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing, Whose};
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Paths, Result, Store};
use std::sync::Arc;

/// The keys, of which nothing is believed that they say of a log that they followed further than it goes.
///
/// # Errors
/// `Refused` where they followed other frames than the log has, or are of a part of it that was given up: their numbers may be other people's.
/// Else where that cannot be read.
pub(crate) fn of(keys: Arc<dyn GroupKeys>, manifest: &Manifest) -> Result<Arc<dyn GroupKeys>> {
    let own = of_log(keys.clone(), manifest, || manifest.snapshot.renewed(&Trust::default()))?;
    let followed = keys.erased_up_to()?;
    // Any other is an older copy at most.
    if followed.frames > own.erased_up_to()?.frames || !followed.given_up.is_empty() {
        Line::of(("the vault", &followed), manifest.size(), |from| {
            Ok(given_up::told(manifest, from)?.into_iter().map(|(_, id)| id).collect())
        })?;
    }
    Ok(own)
}

/// The same, where `renewed` is the log as it is now.
fn of_log(
    keys: Arc<dyn GroupKeys>,
    manifest: &Manifest,
    renewed: impl FnOnce() -> Result<Snapshot>,
) -> Result<Arc<dyn GroupKeys>> {
    let Followed { frames, root, .. } = keys.erased_up_to()?;
    let Some(root) = root else { return Ok(keys) };
    let own = match frames <= manifest.size() {
        true => Some(manifest.root_at(frames)?),
        false => signed_since(manifest, frames, renewed()?)?,
    };
    match own {
        Some(own) if own == root => Ok(keys),
        Some(_) => Err(other_history("the vault")),
        None => Ok(Arc::new(Unfollowed(keys))),
    }
}

/// How many of the log's first `size` frames keys followed that are its own: all events up to there. `None` where they passed over events that
/// the log has not, or may not have: nobody can tell whom these erased.
///
/// # Errors
/// Where the keys cannot be read.
pub(crate) fn followed(keys: &dyn GroupKeys, size: u64) -> Result<Option<u64>> {
    let Followed { frames, unfollowed, .. } = keys.erased_up_to()?;
    Ok(match unfollowed {
        None => Some(frames),
        Some(first) => (first < size).then(|| first.min(frames)),
    })
}

/// The same, where behind these frames no event was lost for good, and none tells that a part of the log was given up which the keys do not take into
/// account: one of those may have told that somebody was erased whose key is there.
///
/// # Errors
/// `Tampered` where that is so, naming the frame; else as [`followed`], [`Manifest::lost`] and [`given_up::told`].
pub(crate) fn require_followed(manifest: &Manifest, keys: &dyn GroupKeys) -> Result<u64> {
    let why = match followed(keys, manifest.size())? {
        None => "an event that the vault was let pass over, since it was lost with a path or given up, was in a part that the log does not have".to_owned(),
        Some(followed) => {
            let known = keys.erased_up_to()?.given_up;
            let told = given_up::told(manifest, followed)?;
            let truncated = told.into_iter().rfind(|(_, id)| !known.contains(id)).map(|(frame, _)| frame);
            match (manifest.lost()?.events_from(followed), truncated) {
                (None, None) => return Ok(followed),
                (Some(UnreadEvents { first, .. }), _) => format!("the event of frame {first} was lost with a path"),
                (None, Some(frame)) => {
                    format!("before frame {frame} a part of the log was given up (`bulla restore --older-log`)")
                }
            }
        }
    };
    Err(Error::tampered(format!(
        "{why}, and the keys at hand do not follow it: nobody can tell whether it says of somebody \
         whose key is there that they were erased, so nothing is read under them. Bring the path that has it, or the newest vault; what \
         is open to all is given out by `bulla export --salvage`"
    )))
}

/// Whether keys are of a vault from before what the key directory's seal state speaks of, in a log whose newest checkpoint, over `size` frames,
/// does not cover what that vault lacks: see [`Paths::vault_follows`]. Only whoever takes what is left of a log reads under such a checkpoint.
///
/// # Errors
/// Where the keys cannot be read.
pub(crate) fn is_older(store: &dyn Store, size: u64, keys: &dyn GroupKeys) -> Result<bool> {
    let least = store.paths().map_or(0, Paths::vault_follows);
    let clock = Environment::default().clock;
    for look in 0..LOOKS {
        if size >= least || keys.erased_up_to()?.frames >= least {
            return Ok(false);
        }
        // A writer tells of its vault as far as the checkpoint goes that it is about to replace.
        if look + 1 < LOOKS {
            clock.wait(PAUSE, &Interrupt::default());
        }
    }
    Ok(true)
}

/// The root over the log's first `frames` frames, more than `manifest` has; `None` where no checkpoint covers so many by now, `newer` being
/// the log as it is. A writer signs more while somebody reads. That one is at work is nothing to go by: who has the storage can hold its lock,
/// and read may be another copy of the log than it has open.
fn signed_since(manifest: &Manifest, frames: u64, newer: Snapshot) -> Result<Option<Hash>> {
    if newer.checkpoint.size < frames {
        return Ok(None);
    }
    let newer = Manifest::load_end(newer)?;
    match newer.root_at(manifest.size())? == manifest.snapshot.checkpoint.root {
        true => newer.root_at(frames).map(Some),
        false => Err(Error::tampered(format!(
            "{} was replaced by another copy of the log while it was read; run `bulla verify`",
            manifest.snapshot.store.describe("checkpoint")
        ))),
    }
}

/// The same for whoever tells all that can be told of a log, however damaged, and whichever of its paths are missing: nothing is believed of
/// keys that may be another's.
///
/// # Errors
/// Where the log or the keys cannot be read.
pub(crate) fn in_ruins(keys: Arc<dyn GroupKeys>, log: &Snapshot) -> Result<Arc<dyn GroupKeys>> {
    let own = |manifest| of_log(keys.clone(), &manifest, || log.renewed_in_part(&Trust::default()));
    match Manifest::load_end(log.clone()).and_then(own) {
        Err(error) if matches!(error.kind(), ErrorKind::Tampered | ErrorKind::Refused) => {
            Ok(Arc::new(Unfollowed(keys)))
        }
        own => own,
    }
}

/// That a vault which is called `name` followed other frames than the log has.
pub(crate) fn other_history(name: &str) -> Error {
    let message = format!(
        "{name} followed other frames than this log has: it is of a time of the log that was not gone on with, and its numbers may be \
         other people's here, or somebody who has the log's keys wrote the log anew; bring `vault` and `roots` that belong to the log"
    );
    Error::new(ErrorKind::Refused, message)
}

/// Keys of which it is not known which frames of the log they followed.
struct Unfollowed(Arc<dyn GroupKeys>);

impl GroupKeys for Unfollowed {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        self.0.number(subject)
    }

    fn numbers(&self, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        self.0.numbers(subjects)
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        self.0.secrets(place, groups)
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn erased_up_to(&self) -> Result<Followed> {
        let Followed { unfollowed, given_up, .. } = self.0.erased_up_to()?;
        // What they passed over may lie behind what the log has.
        Ok(Followed { unfollowed: unfollowed.map(|_| Followed::NOWHERE), given_up, ..Followed::NOTHING })
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        Ok(Missing { frames: 0, ..self.0.missing(from)? })
    }

    fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Option<Vec<Whose>>> {
        self.0.whose(asked)
    }
}
