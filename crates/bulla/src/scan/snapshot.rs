//! A log as it is at one moment, which all passes of one reading share.
//!
//! Invariants:
//! - configuration and checkpoint are of one time: who changes `[log]` changes both;
//! - whether a writer lives is looked at before the checkpoint is read, and again once everything was read, before the
//!   checkpoint is compared. So what follows the checkpoint counts as left by nobody only where no writer can have been at
//!   work in between: one that had come and gone would have signed another checkpoint;
//! - what is read later of the same log is read under this checkpoint, however far the log has grown since.

use crate::format::config::{self, LogConfig};
use crate::scan::checkpoint::{Signed, believed, is_live, read_checkpoint, read_note};
use crate::scan::finding::Findings;
use bulla_proof::checkpoint::{Checkpoint, VerifierKey};
use bulla_store::{Result, Store};
use std::sync::Arc;

/// How often the configuration may change while it is read.
const ATTEMPTS: usize = 16;

/// See the module.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: LogConfig,
    pub(crate) checkpoint: Checkpoint,
    /// The checkpoint as a signed note, verbatim.
    pub(crate) note: Vec<u8>,
    /// Whether it is signed by the key that was asked for.
    pub(crate) anchored: bool,
    /// Whether a writer had the log open before anything was read.
    pub(crate) live: bool,
}

impl Snapshot {
    /// A log as verification looks at it: `config` is what was read of it before, what is wrong with the checkpoint becomes
    /// findings, and one that is not signed by the log's key still guides the scan, as far as it can be read.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(crate) fn examine(
        store: Arc<dyn Store>,
        mut config: LogConfig,
        key: Option<&VerifierKey>,
        findings: &mut Findings,
    ) -> Result<Option<Self>> {
        look_again(&*store);
        let live = is_live(&*store)?;
        let mut read = read_checkpoint(&*store, &config, key, findings)?;
        for _ in 0..ATTEMPTS {
            let now = config::load(&*store).ok().map(|(now, _)| now);
            // The file of another log is no change of this one's.
            let changed = now.filter(|now| now.digest != config.digest && now.id == config.id);
            let Some(now) = changed else { break };
            (config, *findings) = (now, Findings::default());
            read = read_checkpoint(&*store, &config, key, findings)?;
        }
        let snapshot = |Signed { checkpoint, anchored, note }| Snapshot {
            store,
            config,
            checkpoint,
            note,
            anchored,
            live,
        };
        Ok(read.map(snapshot))
    }

    /// A log whose checkpoint is believed: it has to be signed by the log's key, and by `key` where there is one.
    ///
    /// # Errors
    /// `Tampered` where it is not, `Unavailable` where a file cannot be read.
    pub(crate) fn trusted(
        store: Arc<dyn Store>,
        config: LogConfig,
        key: Option<&VerifierKey>,
    ) -> Result<Self> {
        let mut findings = Findings::default();
        let snapshot = Self::examine(store, config, key, &mut findings)?;
        believed(snapshot, findings)
    }

    /// The log in a store, whose own key is believed.
    ///
    /// # Errors
    /// As [`Snapshot::trusted`]; `Tampered` where its configuration is not one.
    pub(crate) fn of(store: Arc<dyn Store>) -> Result<Self> {
        let (config, _) = config::load_of_log(&*store)?;
        Self::trusted(store, config, None)
    }

    /// The same log as it is now.
    ///
    /// # Errors
    /// As [`Snapshot::trusted`].
    pub(crate) fn renewed(&self, key: Option<&VerifierKey>) -> Result<Self> {
        Self::trusted(self.store.clone(), self.config.clone(), key)
    }

    /// Whether no writer can have been at work since before this was taken. To be asked once everything was read.
    ///
    /// The lock is looked at first: a writer that let go of it since has signed another checkpoint by then.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(crate) fn is_quiet(&self) -> Result<bool> {
        if self.live || is_live(&*self.store)? {
            return Ok(false);
        }
        look_again(&*self.store);
        Ok(read_note(&*self.store)?.is_some_and(|note| note == self.note))
    }
}

/// Has the checkpoint be the one of the path on which the log has come furthest by now.
fn look_again(store: &dyn Store) {
    if let Some(paths) = store.paths() {
        paths.look_again();
    }
}
