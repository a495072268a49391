//! By what a checkpoint is believed beyond the log's own word: the log's key as somebody else knows it, and a policy.
//!
//! The newest checkpoint of a log that is written to has not been cosigned yet for as long as its witnesses take. So what a
//! policy asks for is asked of `checkpoint` first, and then of `checkpoint.witnessed`, the newest one that they have
//! cosigned: a checkpoint of the same log, whose tree the newest one's has to begin with. What follows that is signed and not
//! witnessed.
//!
//! Invariant: `checkpoint.witnessed` is read before `checkpoint` is, and was published as `checkpoint` before: so it covers
//! no more, beside a writer too.

use crate::format::config::LogConfig;
use crate::format::files;
use crate::scan::finding::{Finding, FindingKind, Findings};
use bulla_proof::LogKey;
use bulla_proof::checkpoint::{Checkpoint, NoteError, SignedNote, VerifierKey};
use bulla_proof::policy::{Judgement, Policy, PolicyRefusal, WitnessState};
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::io;
use std::sync::Arc;

/// The most bytes of a checkpoint, with all its witnesses.
const MOST: u64 = bulla_proof::checkpoint::MAX_NOTE as u64;

/// See the module. Nothing at all is the log's own word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// The key that the log has to be of.
    pub(crate) key: Option<LogKey>,
    pub(crate) policy: Option<Arc<Policy>>,
}

/// What of a log is witnessed as a policy asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Witnessed {
    /// The tree of the newest checkpoint of which that is known. It is not compared with the log's yet, where it is older than
    /// the log's checkpoint.
    pub(crate) head: TreeHead,
    pub(crate) witnesses: Vec<WitnessState>,
}

impl Trust {
    /// Whether it says whose the log is, and not only who has seen it.
    pub(crate) fn names_log(&self) -> bool {
        self.key.is_some() || self.policy.as_ref().is_some_and(|policy| !policy.logs().is_empty())
    }

    /// Whether the checkpoint `note`, of the log that `config` is of, is signed as it asks for; what speaks against that
    /// becomes a finding.
    pub(super) fn is_signed(
        &self,
        note: &SignedNote<'_>,
        checkpoint: &Checkpoint,
        findings: &mut Findings,
    ) -> bool {
        let mut refused = |detail: String| findings.add(Finding::new(FindingKind::KeyMismatch, detail));
        let mut anchored = self.names_log();
        let name = files::CHECKPOINT;
        if let Some(key) = &self.key
            && !(key.name() == checkpoint.origin && key.verify(note).is_ok())
        {
            refused(format!("{name} is not signed by the key that was given, {key}"));
            anchored = false;
        }
        if let Some(policy) = self.policy.as_ref().filter(|policy| !policy.logs().is_empty())
            && let Err(error) = policy.log_of(note)
        {
            refused(format!("{name}: {}", PolicyRefusal::Log(error)));
            anchored = false;
        }
        anchored
    }

    /// The kept checkpoint that witnesses have cosigned, where it is asked for and there is one. To be read before
    /// `checkpoint` is.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be read.
    pub(super) fn read_witnessed(&self, store: &dyn Store) -> Result<Option<Vec<u8>>> {
        if self.policy.is_none() {
            return Ok(None);
        }
        match bulla_store::read_small(store, files::WITNESSED, MOST) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::Invalid => Ok(None),
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What of the log is witnessed: `note` is its newest checkpoint, `kept` the one that was read before.
    pub(super) fn witnessed(
        &self,
        config: &LogConfig,
        (note, checkpoint): (&SignedNote<'_>, &Checkpoint),
        kept: Option<&[u8]>,
        findings: &mut Findings,
    ) -> Option<Witnessed> {
        let policy = self.policy.as_ref()?;
        let name = files::WITNESSED;
        let kept = kept.map(|kept| open_kept(policy, config, kept));
        // Also where `checkpoint` is witnessed itself: then it was put back with its cosignatures.
        if policy.asks_for_witnesses()
            && let Some(Ok((newer, _))) = &kept
            && newer.size > checkpoint.size
        {
            let detail = format!(
                "{name} covers {} frames, and {} only {}: the log was put back to an earlier time",
                newer.size,
                files::CHECKPOINT,
                checkpoint.size
            );
            findings.add(Finding::new(FindingKind::WitnessMismatch, detail));
            return None;
        }
        let missing = match policy.judge(note) {
            Ok(Judgement { witnesses, unmet }) if unmet.is_empty() => {
                return Some(Witnessed { head: head_of(checkpoint), witnesses });
            }
            Ok(judgement) => judgement.missing(),
            Err(refusal) => {
                let detail = format!("{}: {refusal}", files::CHECKPOINT);
                findings.add(Finding::new(FindingKind::CosignatureInvalid, detail));
                return None;
            }
        };
        let why = match kept {
            Some(Ok((older, witnesses))) => {
                return Some(Witnessed { head: head_of(&older), witnesses });
            }
            Some(Err(refusal)) => format!("{missing}; nor of {name}: {refusal}"),
            None => missing,
        };
        let detail = format!("the policy's quorum is not met of {}: {why}", files::CHECKPOINT);
        findings.add(Finding::new(FindingKind::Unwitnessed, detail));
        None
    }
}

impl From<Option<&VerifierKey>> for Trust {
    fn from(key: Option<&VerifierKey>) -> Self {
        Trust { key: key.cloned().map(LogKey::from), policy: None }
    }
}

/// Reads a kept checkpoint, which has to be of the log, signed and witnessed.
fn open_kept(
    policy: &Policy,
    config: &LogConfig,
    kept: &[u8],
) -> std::result::Result<(Checkpoint, Vec<WitnessState>), PolicyRefusal> {
    let note = SignedNote::parse(kept).map_err(PolicyRefusal::Log)?;
    let checkpoint = Checkpoint::parse(note.text).map_err(PolicyRefusal::Log)?;
    if checkpoint.origin != config.origin {
        return Err(PolicyRefusal::Log(NoteError::Origin));
    }
    note.verify(&config.verifier_key).map_err(PolicyRefusal::Log)?;
    if !policy.logs().is_empty() {
        policy.log_of(&note).map_err(PolicyRefusal::Log)?;
    }
    let judgement = policy.judge(&note)?;
    match judgement.is_met() {
        true => Ok((checkpoint, judgement.witnesses)),
        false => Err(PolicyRefusal::Quorum(judgement)),
    }
}

fn head_of(checkpoint: &Checkpoint) -> TreeHead {
    TreeHead { size: checkpoint.size, root: checkpoint.root }
}

/// What is told where what was witnessed is not the log.
pub(crate) fn other_tree(frames: u64) -> String {
    format!(
        "the first {frames} frames are not those that the witnesses have seen: the log's key has signed two histories, or \
         the log was rewritten"
    )
}

/// What is told of the frames from `from` to `size` that are signed and not witnessed.
pub(crate) fn unwitnessed_tail(from: u64, size: u64) -> String {
    format!("of {size} frames that the log's key signed the last {} are not witnessed yet", size - from)
}

/// The same as an error.
pub(crate) fn is_other(frames: u64) -> Error {
    Error::tampered(format!("{}; run `bulla verify`", other_tree(frames)))
}
