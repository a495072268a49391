//! By what a checkpoint is believed beyond the log's own word: the log's key as somebody else knows it, and a policy.
//!
//! The newest checkpoint of a log that is written to has not been cosigned yet for as long as its witnesses take. So what a
//! policy asks for is asked of `checkpoint` first, and then of the newest one that they have cosigned, by `checkpoint.witnessed` and
//! the files of the witnesses together: a checkpoint of the same log, whose tree the newest one's has to begin with. What follows that is
//! signed and not witnessed. A proof goes by the same files.
//!
//! `checkpoint.witnessed` is read before `checkpoint` is, and was published as `checkpoint` before: so it covers no more, beside a writer
//! too. It does in a copy that was made beside one, file by file: then the newest checkpoint counts, if the log's frames reach as far as
//! what was witnessed, and are those.

use crate::format::config::LogConfig;
use crate::format::files;
use crate::scan::cosignatures::{self, Cosigned};
use crate::scan::finding::{Finding, FindingKind, Findings};
use crate::scan::stored_tree;
use bulla_proof::LogKey;
use bulla_proof::checkpoint::{Checkpoint, SignedNote, VerifierKey};
use bulla_proof::policy::{Judgement, Policy, PolicyRefusal, WitnessState};
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use bulla_text::time::format_seconds;
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
    /// The tree of the newest checkpoint of which that is known. It is not compared with the log's yet, where it is not that of the
    /// log's checkpoint.
    pub(crate) head: TreeHead,
    pub(crate) witnesses: Vec<WitnessState>,
    /// How old the quorum is: see [`Judgement::time`].
    pub(crate) time: Option<u64>,
    /// That checkpoint as a signed note, where the log's newest one is not witnessed by itself.
    pub(crate) note: Option<Vec<u8>>,
}

/// What is kept beside `checkpoint` for its cosignatures, as it was read.
pub(super) struct Kept {
    /// `checkpoint.witnessed`.
    witnessed: Option<Vec<u8>>,
    /// That, and the files of the witnesses.
    cosigned: Vec<Cosigned>,
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
            refused(format!("{name}: {error}"));
            anchored = false;
        }
        anchored
    }

    /// What is kept beside `checkpoint` for its cosignatures, where they are asked for. To be read before `checkpoint` is.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be read.
    pub(super) fn read_kept(&self, store: &dyn Store, config: &LogConfig) -> Result<Kept> {
        let Some(policy) = &self.policy else { return Ok(Kept { witnessed: None, cosigned: Vec::new() }) };
        let witnessed = match bulla_store::read_small(store, files::WITNESSED, MOST) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == ErrorKind::Invalid => None,
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
                None
            }
            Err(error) => return Err(error),
        };
        let key_ids = policy.witnesses().iter().map(|witness| witness.key.key_id());
        let cosigned = match policy.asks_for_witnesses() {
            true => cosignatures::kept(store, config, key_ids)?,
            false => Vec::new(),
        };
        Ok(Kept { witnessed, cosigned })
    }

    /// What of the log is witnessed: `note` is its newest checkpoint, `kept` was read before.
    pub(super) fn witnessed(
        &self,
        config: &LogConfig,
        (note, checkpoint): (&SignedNote<'_>, &Checkpoint),
        kept: Kept,
        findings: &mut Findings,
    ) -> Option<Witnessed> {
        let policy = self.policy.as_ref()?;
        let name = files::WITNESSED;
        let Kept { witnessed: kept, mut cosigned } = kept;
        let kept = kept.map(|kept| open_kept(policy, config, &kept));
        // Also where `checkpoint` is witnessed itself: it may have been put back with its cosignatures.
        if policy.asks_for_witnesses()
            && let Some(Ok(newer)) = &kept
            && newer.head.size > checkpoint.size
        {
            return kept?.ok();
        }
        let missing = match policy.judge(note) {
            Ok(Judgement { witnesses, unmet, time }) if unmet.is_empty() => {
                return Some(Witnessed { head: head_of(checkpoint), witnesses, time, note: None });
            }
            Ok(judgement) => judgement.missing(),
            Err(refusal @ PolicyRefusal::OwnWitness(_)) => {
                findings.add(Finding::new(FindingKind::Unwitnessed, refusal.to_string()));
                return None;
            }
            Err(refusal) => {
                let detail = format!("{}: {refusal}", files::CHECKPOINT);
                findings.add(Finding::new(FindingKind::CosignatureInvalid, detail));
                return None;
            }
        };
        if policy.asks_for_witnesses() {
            cosignatures::gather(&mut cosigned, (note.to_string(), head_of(checkpoint)));
        }
        // A larger one, of a log that was put back, is told of by what its keys have signed.
        let newest = cosigned.iter().filter(|(_, head)| head.size <= checkpoint.size);
        let newest = newest.filter_map(|(note, _)| open_kept(policy, config, note.as_bytes()).ok());
        let newest = newest.chain(kept.iter().flatten().cloned()).max_by_key(|witnessed| witnessed.head.size);
        if newest.is_some() {
            return newest;
        }
        let why = match kept {
            Some(Err(why)) => format!("{missing}; nor of {name}: {why}"),
            _ => missing,
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

/// Reads a kept checkpoint, which has to be of the log, signed with each of its keys, and witnessed.
///
/// # Errors
/// Why it is none.
fn open_kept(policy: &Policy, config: &LogConfig, kept: &[u8]) -> std::result::Result<Witnessed, String> {
    let checkpoint = config.own_keys().open(kept)?;
    let note = SignedNote::parse(kept).map_err(|error| error.to_string())?;
    if !policy.logs().is_empty() {
        policy.log_of(&note).map_err(|refusal| refusal.to_string())?;
    }
    let judgement = policy.judge(&note).map_err(|refusal| refusal.to_string())?;
    match judgement.is_met() {
        true => Ok(Witnessed {
            head: head_of(&checkpoint),
            witnesses: judgement.witnesses,
            time: judgement.time,
            note: Some(kept.to_vec()),
        }),
        false => Err(PolicyRefusal::Quorum(judgement).to_string()),
    }
}

fn head_of(checkpoint: &Checkpoint) -> TreeHead {
    TreeHead { size: checkpoint.size, root: checkpoint.root }
}

/// That the tree `larger`, which the file at `path` is of, begins with the one that `checkpoint` signs: in a copy that was made beside a
/// writer.
///
/// # Errors
/// `Tampered` where it does not, or the tree's files do not show it; `Unavailable` where one cannot be read.
pub(crate) fn require_beginning(
    store: &dyn Store,
    path: &str,
    signed: TreeHead,
    larger: TreeHead,
) -> Result<()> {
    if signed.size == 0 {
        return Ok(());
    }
    match stored_tree::root_at(store, larger, signed.size)? {
        Some(root) if root == signed.root => Ok(()),
        Some(_) => Err(is_other(path, larger.size)),
        None => Err(Error::tampered(format!(
            "{} covers {} frames, {} only {}, and {} does not show that the one goes on from the other: the log was put back to an earlier \
             time, or copied beside a writer without the first of these two files held before; run `bulla verify`",
            store.describe(path),
            larger.size,
            files::CHECKPOINT,
            signed.size,
            store.describe("tile")
        ))),
    }
}

/// What is told of a log that ends before the tree that its keys have signed in the file at `path`.
pub(crate) fn ends_before(path: &str, signed: u64, frames: u64) -> String {
    format!(
        "{path} covers {signed} frames, and the log has only {frames}: some are missing or damaged, or the log was put back to an earlier time"
    )
}

/// What is told where the log's keys have signed another tree in the file at `path`, which was published to be cosigned.
pub(crate) fn other_tree(path: &str, frames: u64) -> String {
    format!(
        "the first {frames} frames are not those that {path} is of: the log's key has signed two histories, or the log was rewritten \
         since the witnesses have seen it"
    )
}

/// What is told of the frames from `from` to `size` that are signed and not witnessed, where the others were at that time.
pub(crate) fn unwitnessed_tail((from, time): (u64, Option<u64>), size: u64) -> String {
    let time = time.filter(|time| *time > 0).and_then(|time| format_seconds(i64::try_from(time).ok()?));
    let since = time.map_or_else(String::new, |time| format!("; what is before them was at {time}"));
    format!("of {size} frames that the log's key signed the last {} are not witnessed{since}", size - from)
}

/// The same as an error.
pub(crate) fn is_other(path: &str, frames: u64) -> Error {
    Error::tampered(format!("{}; run `bulla verify`", other_tree(path, frames)))
}
