//! Which seal state a log is gone on with: the one that is there, or, where somebody has the seal key, one made anew.

use crate::format::config::{LogConfig, allowed::AllowedConfig};
use crate::keys::seal_state::SealState;
use crate::scan::paths::{Histories, compare};
use crate::scan::snapshot::Snapshot;
use crate::write::recover;
use bulla_crypto::seal_chain::parse_seal_key;
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, ErrorKind, Result, Store};
use std::sync::Arc;

/// See the module.
pub(super) struct GoneOnWith {
    pub(super) state: SealState,
    /// Whether it is made anew from the seal key.
    pub(super) is_made: bool,
    /// The tree of which the one speaks that it replaces: the log has not all of that any more.
    pub(super) replaces: Option<TreeHead>,
}

impl GoneOnWith {
    /// How many frames the seal state speaks of that is there.
    pub(super) fn known_frames(&self) -> u64 {
        self.replaces.map_or(self.state.head().size, |replaces| replaces.size)
    }

    /// Chooses one. That which is there is replaced only where the log's newest part `is_given_up`, and it speaks of that part.
    ///
    /// # Errors
    /// `NoKey` where it is missing and there is no `seal_key`; `Tampered` where it speaks of more than the log has, and there is none either;
    /// `Refused` where it is another log's; as [`parse_seal_key`]; else where the log or the key directory cannot be read.
    pub(super) fn choose(
        (log, keys): (&Arc<dyn Store>, &dyn Store),
        config: &LogConfig,
        (seal_key, is_given_up): (Option<&str>, bool),
    ) -> Result<Self> {
        let first = seal_key.map(|text| first(text, config)).transpose()?;
        let (kept, first) = match (recover::read_state(keys, config), first) {
            (Err(error), Some(state)) if error.kind() == ErrorKind::NoKey => {
                return Ok(GoneOnWith { state, is_made: true, replaces: None });
            }
            (kept, first) => (kept?, first),
        };
        if is_given_up && let Some(shorter) = shorter(log, config, &kept)? {
            let Some(first) = first else {
                let message = format!(
                    "{shorter}. Where the rest is lost for good, name the seal key, too (`--seal-key`): the seal state is made anew from it"
                );
                return Err(Error::tampered(message));
            };
            let checkpoint = Snapshot::of(log.clone())?.checkpoint;
            if recover::beyond(&**log, config, &first, &checkpoint)?.next >= kept.head().size {
                return Err(shorter);
            }
            let replaces = Some(kept.head());
            // Numbers that were given in what is given up are given to nobody else.
            let state = SealState { subjects: kept.subjects, ..first };
            return Ok(GoneOnWith { state, is_made: true, replaces });
        }
        Ok(GoneOnWith { state: kept, is_made: false, replaces: None })
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
    let (root, log) = (tree::empty_root(), config.id);
    Ok(SealState { log, terms, chain, root, subjects: 0, followed: 0, holds: 0 })
}

/// Why a log is not gone on with under a seal state that speaks of more than it has, of the same history; `None` where it may be.
fn shorter(log: &Arc<dyn Store>, config: &LogConfig, kept: &SealState) -> Result<Option<Error>> {
    let checkpoint = Snapshot::of(log.clone())?.checkpoint;
    let signed = TreeHead { size: checkpoint.size, root: checkpoint.root };
    if kept.head().size <= signed.size || compare(&**log, kept.head(), signed) == Histories::Two {
        return Ok(None);
    }
    match recover::beyond(&**log, config, kept, &checkpoint) {
        Err(error) if error.kind() == ErrorKind::Tampered => Ok(Some(error)),
        found => found.map(|_| None),
    }
}
