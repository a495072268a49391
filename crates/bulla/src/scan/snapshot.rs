//! A log as it is at one moment, which all passes of one reading share.
//!
//! Invariants:
//! - configuration and checkpoint are of one time: who changes `[log]` changes both, and the checkpoint is the same before the file is read and after;
//! - whether a writer lives is looked at before the checkpoint is read, and again once everything was read, before the
//!   checkpoint is compared. So what follows the checkpoint counts as left by nobody only where no writer can have been at
//!   work in between: one that had come and gone would have signed another checkpoint;
//! - what is read later of the same log is read under this checkpoint, however far the log has grown since.

use crate::format::config::{self, LogConfig};
use crate::format::files;
use crate::scan::checkpoint::{Signed, believed, is_live, read_checkpoint, read_note};
use crate::scan::cosignatures::{self, SignedHead};
use crate::scan::finding::{FindingKind, Findings};
use crate::scan::stored_tree;
use crate::scan::trust::{self, Trust, Witnessed};
use crate::scan::unvouched;
use bulla_crypto::environment::{Environment, Interrupt};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::hash::Hash;
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, ErrorKind, Paths, Result, Store};
use std::sync::Arc;
use std::time::Duration;

/// How often the configuration may change while it is read.
const ATTEMPTS: usize = 16;
/// How often the checkpoint is looked at again of a log that is written to and that no witness has signed.
const WITNESS_ATTEMPTS: u32 = 50;
/// The wait between two looks.
const PAUSE: Duration = Duration::from_millis(100);

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
    /// What is witnessed, where a policy asks for it and it is.
    pub(crate) witnessed: Option<Witnessed>,
    /// Whether a writer had the log open before anything was read.
    pub(crate) live: bool,
    /// Whether there is a checkpoint that says how far the log goes, signed by its key or not; otherwise `checkpoint` has no root.
    pub(crate) is_told: bool,
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
        trust: &Trust,
        findings: &mut Findings,
    ) -> Result<Option<Self>> {
        look_again(&*store);
        store.paths().map_or(Ok(()), Paths::require_clear)?;
        let live = is_live(&*store)?;
        let clock = Environment::default().clock;
        let (mut changes, mut looks) = (0, 0);
        let (read, found) = loop {
            let mut found = Findings::default();
            let read = read_checkpoint(&*store, &config, trust, &mut found)?;
            let now = config::load(&*store).ok().map(|(now, _)| now);
            // The file of another log is no change of this one's.
            let changed = now.filter(|now| now.digest != config.digest && now.id == config.id);
            // An earlier `[log]` can be in force again, which does not go with the checkpoint of the time between.
            let is_same = |Signed { note, .. }: &Signed| Ok::<_, Error>(read_any_note(&*store)? == *note);
            let is_of_one_time = read.as_ref().map_or(Ok(true), is_same)?;
            if let Some(now) = changed.filter(|_| changes < ATTEMPTS) {
                (config, changes) = (now, changes + 1);
            } else if !is_of_one_time && changes < ATTEMPTS {
                changes += 1;
            } else if live && looks < WITNESS_ATTEMPTS && found.has(FindingKind::Unwitnessed) {
                // Beside a writer, witnesses may be about to sign the first checkpoint that they see.
                clock.wait(PAUSE, &Interrupt::default());
                looks += 1;
            } else {
                break (read, found);
            }
        };
        findings.extend(found);
        let snapshot = |Signed { checkpoint, anchored, witnessed, note }| Snapshot {
            store,
            config,
            checkpoint,
            note,
            anchored,
            witnessed,
            live,
            is_told: true,
        };
        Ok(read.map(snapshot))
    }

    /// A log whose checkpoint is not signed by its key, or is none: as far as segments and tree tell of frames.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(crate) fn untold(store: Arc<dyn Store>, config: LogConfig) -> Result<Self> {
        let (live, note) = (is_live(&*store)?, read_any_note(&*store)?);
        let checkpoint = Checkpoint::new(&config.origin, unvouched::frames(&*store, &config)?, Hash::ZERO);
        let (anchored, witnessed) = (false, None);
        Ok(Snapshot { store, config, checkpoint, note, anchored, witnessed, live, is_told: false })
    }

    /// A log whose checkpoint is believed: it has to be signed by the log's key, and signed and witnessed as `trust` asks for.
    ///
    /// # Errors
    /// `Tampered` where it is not, or what is witnessed is another log; `Unavailable` where a file cannot be read, or a path of the log
    /// is missing that may hold more of it.
    pub(crate) fn trusted(store: Arc<dyn Store>, config: LogConfig, trust: &Trust) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let snapshot = unless_gone(&*store, Self::in_part(store.clone(), config.clone(), trust))?;
            let Some(judged) = require_readable(&*store)? else { return Ok(snapshot) };
            if snapshot.note == judged {
                return Ok(snapshot);
            }
            // A writer has signed more meanwhile, or somebody has put another one there for a moment.
            let snapshot = Self::in_part(store.clone(), config.clone(), trust)?;
            let signed = TreeHead { size: snapshot.checkpoint.size, root: snapshot.checkpoint.root };
            let goes_on =
                snapshot.require_goes_on(&judged, |judged| root_over(&*snapshot.store, signed, judged.size));
            if unless_gone(&*store, goes_on)? {
                return Ok(snapshot);
            }
        }
        Err(Error::unavailable(format!(
            "the tiles in {} do not tell how its checkpoints go on from each other: try again, and run `bulla verify` where that goes on",
            store.describe("tile")
        )))
    }

    /// That the checkpoint is `judged`, which was there before, or goes on from it: `root_at` gives the root of its tree over as many frames. False
    /// where that is `None`, which tells nothing.
    ///
    /// # Errors
    /// `Unavailable` where it does not go on from it: what was found of `judged` is not so of this one. Else as `root_at`.
    pub(crate) fn require_goes_on(
        &self,
        judged: &[u8],
        root_at: impl FnOnce(TreeHead) -> Result<Option<Hash>>,
    ) -> Result<bool> {
        if self.note == judged {
            return Ok(true);
        }
        let replaced = |by: &str| replaced(&*self.store, by);
        let judged = self.config.own_keys().open(judged).map_err(|_| replaced("one of another log"))?;
        let judged = TreeHead { size: judged.size, root: judged.root };
        if self.checkpoint.size < judged.size {
            return Err(replaced("one that covers less"));
        }
        match root_at(judged)? {
            Some(root) if root != judged.root => Err(replaced("one of another history")),
            root => Ok(root.is_some()),
        }
    }

    /// The same of the paths that are there.
    fn in_part(store: Arc<dyn Store>, config: LogConfig, trust: &Trust) -> Result<Self> {
        let signed = match trust.policy {
            None => Vec::new(),
            Some(_) => cosignatures::signed_heads(&*store, &config)?,
        };
        let mut findings = Findings::default();
        let snapshot = Self::examine(store, config, trust, &mut findings)?;
        let snapshot = believed(snapshot, findings)?;
        // What is witnessed may have been replaced by a newer one since.
        let kept = snapshot.witnessed.iter().filter(|witnessed| witnessed.note.is_some());
        let kept = kept.map(|kept| SignedHead { path: files::WITNESSED.to_owned(), head: kept.head });
        signed.into_iter().chain(kept).try_for_each(|signed| snapshot.compare(&signed))?;
        Ok(snapshot)
    }

    /// How many frames are believed: those that are witnessed, where a policy asks for that, else those that are signed.
    pub(crate) fn believed_frames(&self) -> u64 {
        let signed = self.checkpoint.size;
        self.witnessed.as_ref().map_or(signed, |witnessed| witnessed.head.size.min(signed))
    }

    /// The newest checkpoint of that, with its note.
    pub(crate) fn believed_checkpoint(&self) -> (TreeHead, &[u8]) {
        let signed = TreeHead { size: self.checkpoint.size, root: self.checkpoint.root };
        match &self.witnessed {
            Some(Witnessed { head, note: Some(note), .. }) if head.size < signed.size => (*head, note),
            _ => (signed, &self.note),
        }
    }

    /// Whether the checkpoint's tree begins with one that the log's keys have signed besides, as the tiles tell; or this with that of the
    /// checkpoint, where it is the larger.
    fn compare(&self, SignedHead { path, head }: &SignedHead) -> Result<()> {
        let signed = TreeHead { size: self.checkpoint.size, root: self.checkpoint.root };
        if head.size > signed.size && path != files::WITNESSED {
            return Ok(());
        }
        if head.size > signed.size {
            return trust::require_beginning(&*self.store, path, signed, *head);
        }
        match root_over(&*self.store, signed, head.size)? {
            Some(root) if root == head.root => Ok(()),
            Some(_) => Err(trust::is_other(path, head.size)),
            None => Err(Error::tampered(format!(
                "the tiles in {} do not have the root that the checkpoint signs; run `bulla verify`",
                self.store.describe("tile")
            ))),
        }
    }

    /// The log in a store, whose own key is believed.
    ///
    /// # Errors
    /// As [`Snapshot::trusted`]; `Tampered` where its configuration is not one.
    pub(crate) fn of(store: Arc<dyn Store>) -> Result<Self> {
        let (config, _) = config::load_of_log(&*store)?;
        Self::trusted(store, config, &Trust::default())
    }

    /// The same of the paths that are there, for whoever says which are missing.
    ///
    /// # Errors
    /// As [`Snapshot::of`], but for the paths.
    pub(crate) fn part_of(store: Arc<dyn Store>) -> Result<Self> {
        let (config, _) = config::load_of_log(&*store)?;
        Self::in_part(store, config, &Trust::default())
    }

    /// The same log as it is now.
    ///
    /// # Errors
    /// As [`Snapshot::trusted`].
    pub(crate) fn renewed(&self, trust: &Trust) -> Result<Self> {
        Self::trusted(self.store.clone(), self.config.clone(), trust)
    }

    /// The same of the paths that are there, for whoever says which are missing.
    ///
    /// # Errors
    /// As [`Snapshot::renewed`], but for the paths.
    pub(crate) fn renewed_in_part(&self, trust: &Trust) -> Result<Self> {
        Self::in_part(self.store.clone(), self.config.clone(), trust)
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
        Ok(read_any_note(&*self.store)? == self.note)
    }
}

/// That a checkpoint is there of which what was found of another one is not so.
pub(crate) fn replaced(store: &dyn Store, by: &str) -> Error {
    let place = store.describe(files::CHECKPOINT);
    Error::unavailable(format!("{place} was replaced by {by} while the log was read: run `bulla verify`"))
}

/// The bytes of the checkpoint; none where there is none, or it is too long to be one.
fn read_any_note(store: &dyn Store) -> Result<Vec<u8>> {
    match read_note(store) {
        Err(error) if error.kind() == ErrorKind::Invalid => Ok(Vec::new()),
        read => Ok(read?.unwrap_or_default()),
    }
}

/// The root over the first `size` frames of the tree `signed`, which has so many at least, as its tiles tell it; `None` where they do not.
fn root_over(store: &dyn Store, signed: TreeHead, size: u64) -> Result<Option<Hash>> {
    match size {
        0 => Ok(Some(tree::empty_root())),
        size => stored_tree::root_at(store, signed, size),
    }
}

/// Has the checkpoint be the one of the path on which the log has come furthest by now.
fn look_again(store: &dyn Store) {
    if let Some(paths) = store.paths() {
        paths.look_again();
    }
}

/// What came of reading a log, unless something is wrong with it, or cannot be read, and a path of it that may hold what no other has is not there by now:
/// that may be why.
///
/// # Errors
/// `Unavailable`, naming the path; else as what was read.
pub(crate) fn unless_gone<T>(store: &dyn Store, read: Result<T>) -> Result<T> {
    if read.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::Tampered | ErrorKind::Unavailable))
    {
        look_again(store);
        if store.paths().is_some_and(|paths| paths.missing().iter().any(|path| !path.left)) {
            require_readable(store)?;
        }
    }
    read
}

/// Refuses to answer from a part of a log on several paths: see [`Paths::require_readable`].
///
/// # Errors
/// As that.
pub(crate) fn require_readable(store: &dyn Store) -> Result<Option<Vec<u8>>> {
    store.paths().map_or(Ok(None), Paths::require_readable)
}
