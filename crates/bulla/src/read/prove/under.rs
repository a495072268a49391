//! Under which checkpoint a proof is made: the newest one; where witnesses are asked for, the newest one that enough of them have cosigned.
//!
//! The newest checkpoint of a log that is written to has no cosignatures yet. Those of earlier ones are kept, in `checkpoint.witnessed` and
//! `cosigned/`, and a proof may as well be made under one of these, if it covers what is proven.
//!
//! Invariant: what is kept is read before `checkpoint` is, and was published as that before: so none of it covers more.

use crate::format::config::LogConfig;
use crate::format::files;
use crate::read::reader::Reader;
use crate::scan::cosignatures::{self, Cosigned};
use crate::scan::manifest::Manifest;
use crate::scan::trust::{self, Trust};
use bulla_proof::hash::Hash;
use bulla_proof::note::SignedNote;
use bulla_proof::policy::Policy;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};
use bulla_text::spelling::counted;
use std::sync::Arc;

/// What a proof is made under.
pub(super) struct Under {
    /// The checkpoint, as a signed note.
    pub(super) note: Vec<u8>,
    pub(super) head: TreeHead,
}

impl Under {
    /// Of the leaves of the newest tree, those of this one.
    pub(super) fn leaves<'a>(&self, leaves: &'a [Hash]) -> &'a [Hash] {
        &leaves[..usize::try_from(self.head.size).unwrap_or(leaves.len()).min(leaves.len())]
    }
}

/// The witnesses of which a proof is to have the cosignatures.
pub(super) struct Witnesses {
    policy: Arc<Policy>,
    /// Whether somebody asks for them; otherwise it is the log's own policy, and a proof without them is better than none.
    required: bool,
    kept: Vec<Cosigned>,
}

impl Reader {
    /// The same log for whoever proves, with the witnesses that are asked for apart, of whom an earlier checkpoint may do.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(super) fn proving(&self) -> Result<(Reader, Option<Witnesses>)> {
        let mut given = self.given.clone();
        let Trust { key, policy } = given.trust.clone();
        let logs = policy.as_deref().map(Policy::without_witnesses).filter(|logs| !logs.logs().is_empty());
        given.trust = Trust { key, policy: logs.map(Arc::new) };
        let witnesses = Witnesses::of(policy, &self.config)
            .map(|(policy, required)| {
                let key_ids = policy.witnesses().iter().map(|witness| witness.key.key_id());
                let kept = cosignatures::kept(&*given.store, &self.config, key_ids)?;
                Ok::<_, Error>(Witnesses { policy: policy.clone(), required, kept })
            })
            .transpose()?;
        Ok((self.with_given(given), witnesses))
    }

    /// What the witnesses that the log itself asks have not cosigned of `note`, a checkpoint of it; nothing where it asks none, or they are
    /// enough.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub fn unwitnessed(&self, note: &[u8]) -> Result<Option<String>> {
        let Some((policy, _)) = Witnesses::of(None, &self.config) else { return Ok(None) };
        let Err(missing) = judge(&policy, note) else { return Ok(None) };
        let kept = cosignatures::kept(&*self.given.store, &self.config, std::iter::empty())?;
        let newest = kept.iter().filter(|(note, _)| judge(&policy, note.as_bytes()).is_ok());
        let seen = match newest.map(|(_, head)| head.size).max() {
            Some(frames) => format!("the newest one that is covers {}", counted(frames, "frame")),
            None => "none is so far".to_owned(),
        };
        Ok(Some(format!("its checkpoint is not witnessed yet: {missing}; {seen}")))
    }
}

impl Witnesses {
    /// The policy that is given, else the log's own; and whether it is the former.
    fn of(given: Option<Arc<Policy>>, config: &LogConfig) -> Option<(Arc<Policy>, bool)> {
        let own = || config.witness_policy.as_ref().map(|own| (Arc::new(own.policy().clone()), false));
        given.map(|given| (given, true)).or_else(own).filter(|(policy, _)| policy.asks_for_witnesses())
    }
}

/// Under what something is proven that takes the first `needed` frames.
///
/// # Errors
/// `Refused` where witnesses are required and have not cosigned so many; `Tampered` where what they have cosigned is another log.
pub(super) fn choose(witnesses: Option<&Witnesses>, manifest: &Manifest, needed: u64) -> Result<Under> {
    let snapshot = &manifest.snapshot;
    let signed = TreeHead { size: snapshot.checkpoint.size, root: snapshot.checkpoint.root };
    let newest = Under { note: snapshot.note.clone(), head: signed };
    let Some(Witnesses { policy, required, kept }) = witnesses else { return Ok(newest) };
    let mut all = kept.clone();
    if let Ok(note) = String::from_utf8(snapshot.note.clone()) {
        cosignatures::gather(&mut all, (note, signed));
    }
    // Whoever has cosigned it: the log's keys have signed it.
    for (_, head) in all.iter().filter(|(_, head)| (1..=signed.size).contains(&head.size)) {
        if manifest.root_at(head.size)? != head.root {
            return Err(trust::is_other("a checkpoint that is kept for its cosignatures", head.size));
        }
    }
    let met = all.iter().filter(|(note, _)| judge(policy, note.as_bytes()).is_ok());
    let seen = met.max_by_key(|(_, head)| head.size);
    match seen {
        Some((_, head)) if head.size > signed.size => Err(Error::tampered(format!(
            "witnesses have cosigned {}, and {} covers {} only: the log was put back to an earlier time; run `bulla verify`",
            counted(head.size, "frame"),
            snapshot.store.describe(files::CHECKPOINT),
            signed.size
        ))),
        Some((note, head)) if head.size >= needed => {
            Ok(Under { note: note.clone().into_bytes(), head: *head })
        }
        _ if !required => Ok(newest),
        Some((_, head)) => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "what is to be proven takes {}, and the policy's witnesses have cosigned {} of the {} that are signed: try again once they \
                 have more, or prove without the policy what they have not seen",
                counted(needed, "frame"),
                head.size,
                signed.size
            ),
        )),
        None => {
            let missing = judge(policy, &snapshot.note).err().unwrap_or_default();
            Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "the policy's quorum is not met of any checkpoint that {} has ({missing}): try again once it is, or prove without the \
                     policy what the witnesses have not seen",
                    snapshot.store.describe("")
                ),
            ))
        }
    }
}

/// Whether a checkpoint is witnessed as the policy asks for, and of a log that this names, where it names any; why not.
fn judge(policy: &Policy, note: &[u8]) -> std::result::Result<(), String> {
    let note = SignedNote::parse(note).map_err(|error| error.to_string())?;
    if !policy.logs().is_empty() {
        policy.log_of(&note).map_err(|error| error.to_string())?;
    }
    let judgement = policy.judge(&note).map_err(|error| error.to_string())?;
    if judgement.is_met() { Ok(()) } else { Err(judgement.missing()) }
}
