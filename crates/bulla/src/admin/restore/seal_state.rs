//! Which seal state a log is gone on with: the one that is there, or, where somebody has the seal key, one made anew.

use crate::format::config::{LogConfig, allowed::AllowedConfig};
use crate::keys::files;
use crate::keys::restoring::{GivenUp, Unknown};
use crate::keys::seal_state::SealState;
use crate::scan::paths::{Histories, compare};
use crate::scan::snapshot::Snapshot;
use crate::write::recover::{self, earlier::UnknownPart};
use bulla_crypto::group::PartId;
use bulla_crypto::seal_chain::parse_seal_key;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use bulla_text::spelling::counted;
use bulla_vault::Vault;
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the module.
pub(super) struct GoneOnWith {
    pub(super) state: SealState,
    /// Whether it is made anew from the seal key.
    pub(super) is_made: bool,
    /// The tree of which the one speaks that it replaces: the log has not all of that any more. None where that is one from before a part was given up
    /// of which the log tells by now, which is taken for none.
    pub(super) replaces: Option<TreeHead>,
}

impl GoneOnWith {
    /// That the seal state which is replaced is none from before a part was given up of which the key directory knows, by the attempt `begun` or, where
    /// there is none, by the vault: how far the log has come since then it does not say.
    ///
    /// # Errors
    /// `Refused` where it is; else where the vault cannot be read.
    pub(super) fn require_newest(
        &self,
        keys: &dyn Store,
        vault: Option<&Vault>,
        begun: Option<&Unknown>,
    ) -> Result<()> {
        let Some(TreeHead { size, .. }) = self.replaces else { return Ok(()) };
        let known = match begun.filter(|begun| begun.given_up.is_some()) {
            Some(begun) => begun.parts.clone(),
            None => vault.map_or(Ok(BTreeSet::new()), known_parts)?,
        };
        match known.is_subset(&self.state.given_up) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{} speaks of {}, and not of a part of the log that was given up (`bulla restore --older-log`), of which the key directory \
                     tells besides: it is from before that, and does not say how far the log had come since. Bring the one that this host \
                     wrote last; where there is none, move this one away",
                    keys.describe(files::SEAL_STATE),
                    counted(size, "frame")
                ),
            )),
        }
    }

    /// Whether the seal state is of an attempt to give up what this one does.
    pub(super) fn is_of(&self, part: GivenUp) -> bool {
        self.state.attempt.is_some_and(|attempt| attempt.loss == part.loss)
    }

    /// Whether the seal state, which is the log's, speaks of so many frames of it as of what an attempt to give this part up has made of it.
    pub(super) fn has_written(&self, part: GivenUp, frames: u64) -> bool {
        self.is_of(part) && self.replaces.is_none() && self.known_frames() >= frames
    }

    /// Whether the seal state which is replaced tells nothing that was not known when the attempt began that `begun` is of: it is that attempt's own, or
    /// from before it.
    pub(super) fn adds_nothing_to(&self, begun: &Unknown) -> bool {
        let (Some(TreeHead { size, .. }), Some(part)) = (self.replaces, begun.given_up) else { return true };
        let given_up = &self.state.given_up;
        let is_earlier = !given_up.contains(&part.id) && given_up.is_subset(&begun.parts);
        self.is_of(part) || is_earlier && size <= part.known
    }

    /// Whether a part is known that was given up, by the seal state or when the attempt `begun` began, and the vault does not know it: it is from before
    /// that, however many frames it has followed. Of the attempt's own state those alone count that were known then.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub(super) fn is_newer_than(&self, vault: &Vault, begun: Option<&Unknown>) -> Result<bool> {
        let of_vault = vault.given_up()?;
        let is_own = begun.and_then(|begun| begun.given_up).is_some_and(|part| self.is_of(part));
        let knows_state = is_own || self.state.given_up.is_subset(&of_vault);
        Ok(!knows_state || begun.is_some_and(|begun| !begun.parts.is_subset(&of_vault)))
    }

    /// Whether a part was given up after the attempt had begun that `begun` is of. Where nothing told which parts were known then, only a state tells it
    /// that is none of the attempt's own, and an event, as one of the same loss has to be, of a part of unknown length, as `unknown` has them.
    pub(super) fn was_given_up_since(
        &self,
        begun: &Unknown,
        unknown: &BTreeSet<PartId>,
        id: &PartId,
    ) -> bool {
        let Some(part) = begun.given_up else { return false };
        let is_of_later = !self.is_made && !self.is_of(part) && self.state.given_up.contains(id);
        !begun.parts.contains(id) && (part.known > 0 || is_of_later || unknown.contains(id))
    }

    /// What is known by now of a part that an attempt wanted to give up, and that is there.
    pub(super) fn known_of(&self, part: GivenUp) -> GivenUp {
        match self.state.head() {
            TreeHead { size, root } if size > part.known => GivenUp { known: size, root: Some(root), ..part },
            _ => part,
        }
    }

    /// How many frames the seal state speaks of that is there.
    pub(super) fn known_frames(&self) -> u64 {
        self.replaces.map_or(self.state.head().size, |replaces| replaces.size)
    }

    /// Chooses one. That which is there is replaced where it speaks of what the attempt `recorded` gives up, or has given up, or, with `older_log`, of more
    /// than there is.
    ///
    /// # Errors
    /// `NoKey` where it is missing and there is no `seal_key`; `Tampered` where it speaks of more than the log has, and there is none either;
    /// `Refused` where it is another log's, or from before a part of the log was given up; as [`parse_seal_key`]; else where the log or the key
    /// directory cannot be read.
    pub(super) fn choose(
        (log, keys): (&Arc<dyn Store>, &dyn Store),
        config: &LogConfig,
        (seal_key, older_log): (Option<&str>, bool),
        recorded: Option<GivenUp>,
    ) -> Result<Self> {
        let first = seal_key.map(|text| first(text, config)).transpose()?;
        let (kept, first) = match (recover::read_state(keys, config), first) {
            (Err(error), Some(state)) if error.kind() == ErrorKind::NoKey => {
                return Ok(GoneOnWith { state, is_made: true, replaces: None });
            }
            (kept, first) => (kept?, first),
        };
        let checkpoint = Snapshot::of(log.clone())?.checkpoint;
        let why = match recover::beyond(&**log, config, &kept, &checkpoint) {
            Err(error) if error.kind() == ErrorKind::Tampered => error,
            found => {
                found?;
                return Ok(GoneOnWith { state: kept, is_made: false, replaces: None });
            }
        };
        let head = kept.head();
        let attempt = recorded.filter(|part| part.left < head.size && !kept.given_up.contains(&part.id));
        let unknown = UnknownPart::find(log, &kept)?;
        let is_of_attempt = |part: &UnknownPart| attempt.is_some_and(|attempt| attempt.id == part.id);
        if let Some(part) = unknown.as_ref().filter(|part| !is_of_attempt(part)) {
            return Err(part.refuse(keys, &kept));
        }
        let signed = TreeHead { size: checkpoint.size, root: checkpoint.root };
        let is_longer = head.size > signed.size && compare(&**log, head, signed) != Histories::Two;
        if attempt.is_none() && !(is_longer && (older_log || recorded.is_some())) {
            return Err(why);
        }
        let Some(first) = first else {
            let message = format!(
                "{why}. Where the rest is lost for good, name the seal key, too (`--seal-key`): the seal state is made anew from it"
            );
            return Err(Error::tampered(message));
        };
        if attempt.is_none() && recover::beyond(&**log, config, &first, &checkpoint)?.next >= head.size {
            return Err(why);
        }
        // Numbers that were given in what is given up are given to nobody else.
        let state =
            SealState { subjects: kept.subjects, given_up: kept.given_up, attempt: kept.attempt, ..first };
        Ok(GoneOnWith { state, is_made: true, replaces: unknown.is_none().then_some(head) })
    }
}

/// The parts of the log that the vault knows to be given up. Where it follows nothing, it was marked by an attempt that may have come to nothing, and the log
/// was not opened with it since.
///
/// # Errors
/// Where the vault cannot be read.
pub(super) fn known_parts(vault: &Vault) -> Result<BTreeSet<PartId>> {
    match vault.follows()?.size {
        0 => Ok(BTreeSet::new()),
        _ => vault.given_up(),
    }
}

/// The state that a log began with, as its seal key has it.
fn first(seal_key: &str, config: &LogConfig) -> Result<SealState> {
    let chain = parse_seal_key(seal_key, config.id).map_err(|error| {
        let message = format!("the seal key that was given for the log {}: {error}", config.id);
        Error::new(error.kind(), message)
    })?;
    // The first epoch says which `[log]` that was.
    let terms = AllowedConfig::of(config.digest);
    Ok(SealState::first(config.id, terms, chain))
}
