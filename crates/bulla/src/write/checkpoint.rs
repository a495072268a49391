//! The checkpointer: makes what is durable provable, and publishes it signed.
//!
//! Order, each step durable before the next: tiles and bundles, their directories, the seal state, the pin where the log has one,
//! `checkpoint`, and the same head as COSE. Where a crash left `checkpoint.cose` behind, or it is missing, it is made again once the log is
//! open, of what is published: its signature is the same each time. What the log's key has signed there of another tree opening has refused.
//! Steps that failed are repeated by the next call; none of them is ever undone. Each file is written under another name,
//! synced, renamed, and its directory synced: without the last step the new name may be lost though the file is not (Pillai
//! et al., *All File Systems Are Not Created Equal*, OSDI 2014).
//!
//! See C2SP tlog-tiles and tlog-checkpoint.

use crate::format::config::{LogConfig, allowed::AllowedConfig};
use crate::format::files::COSE_CHECKPOINT;
use crate::keys::seal_state::{Attempt, SealState};
use crate::write::commit::Durable;
use crate::write::kept_pin::KeptPin;
use crate::write::tree_files::TreeFiles;
use bulla_crypto::group::{PartId, Subjects};
use bulla_crypto::seal_chain::SealChain;
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::cose::CoseCheckpoint;
use bulla_proof::hash::Hash;
use bulla_proof::tile::TileBuilder;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, Result, Store};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// The name of the checkpoint's file.
pub(crate) const FILE: &str = "checkpoint";

/// Why a checkpoint was not published.
enum Unpublished {
    /// A file of the log could not be written.
    Log(Error),
    /// Another path has taken over meanwhile, on which not all is that the checkpoint needs.
    Moved,
    /// Something else failed: a file of the key directory, the vault, the pin.
    Other(Error),
}

impl Unpublished {
    fn into_error(self) -> Error {
        match self {
            Unpublished::Log(error) | Unpublished::Other(error) => error,
            Unpublished::Moved => Error::unavailable("another path has taken over"),
        }
    }
}

impl From<Error> for Unpublished {
    fn from(error: Error) -> Self {
        Unpublished::Other(error)
    }
}

/// See the module.
pub(crate) struct Checkpointer {
    log: Arc<dyn Store>,
    keys: Arc<dyn Store>,
    config: Arc<LogConfig>,
    signing: SigningKey,
    pin: Option<KeptPin>,
    /// Of a log with erasure.
    subjects: Option<Arc<dyn Subjects>>,
    /// Whether `subjects` has carried out all erasures that the log tells of: not before opening the log has seen to it.
    follows: bool,
    /// The number of frames that `subjects` was told of as signed, last.
    followed: u64,
    /// The parts of the log that were given up before it was opened.
    given_up: BTreeSet<PartId>,
    /// The attempt to give one of them up that has opened the log.
    attempt: Option<Attempt>,
    tree: TreeFiles,
    /// The seal chain after the last frame of the tree, which `[log]` may follow, and the number of frames up to the last event
    /// of a hold, where the tree has grown.
    ahead: Option<(SealChain, AllowedConfig, u64)>,
    published: TreeHead,
    /// The head that `checkpoint.cose` is known to be of, on the path of this turn.
    published_as_cose: Option<(u64, TreeHead)>,
    /// Which `[log]` may follow what is published.
    terms: AllowedConfig,
}

impl Checkpointer {
    /// A checkpointer of a tree that was published up to what `edge` holds: partial tiles, and the bundle.
    pub(crate) fn new(
        log: Arc<dyn Store>,
        keys: Arc<dyn Store>,
        config: Arc<LogConfig>,
        (signing, pin): (SigningKey, Option<KeptPin>),
        subjects: Option<Arc<dyn Subjects>>,
        (followed, given_up, attempt): (u64, BTreeSet<PartId>, Option<Attempt>),
        edge: (TileBuilder, Vec<u8>),
    ) -> Self {
        let tree = TreeFiles::new(log.clone(), edge);
        let published = tree.head();
        let terms = AllowedConfig::of(config.digest);
        if let Some(paths) = log.paths() {
            paths.keep_edge(edge_of(&tree, &config.origin, &signing));
        }
        Checkpointer {
            log,
            keys,
            config,
            signing,
            pin,
            subjects,
            follows: false,
            followed,
            given_up,
            attempt,
            tree,
            ahead: None,
            published,
            published_as_cose: None,
            terms,
        }
    }

    /// The tree that the published checkpoint covers.
    pub(crate) fn published(&self) -> TreeHead {
        self.published
    }

    /// Which `[log]` may follow what the published checkpoint covers.
    pub(crate) fn terms(&self) -> AllowedConfig {
        self.terms
    }

    /// Says that all erasures that the log tells of were carried out, as later ones will be.
    pub(crate) fn follow(&mut self) {
        self.follows = true;
    }

    /// Adds durable frames to the tree.
    pub(crate) fn add(&mut self, durable: Durable) {
        let Durable { commitments, chain, terms, holds } = durable;
        commitments.iter().for_each(|commitment| self.tree.push(commitment));
        let size = self.tree.head().size;
        assert_eq!(chain.next_frame(), size, "the seal chain and the tree cover the same frames");
        self.ahead = Some((chain, terms, holds));
    }

    /// Publishes a checkpoint over all that was added. Returns whether there was anything new. Where the path that the log is written
    /// to fails, and another one takes over, it is published there.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be written. Calling again goes on where it stopped.
    pub(crate) fn publish(&mut self) -> Result<bool> {
        let log = self.log.clone();
        let Some(paths) = log.paths() else { return self.try_publish().map_err(Unpublished::into_error) };
        let mut untried = paths.others();
        loop {
            match self.try_publish() {
                Err(Unpublished::Moved) => {}
                Err(Unpublished::Log(error)) if untried > 0 => {
                    // An event tells it: names of directories are the host's affair.
                    let why = error.io_error().map_or_else(String::new, |error| format!(": {error}"));
                    if !paths.fail_over(self.tree.path().0, &format!("checkpointing{why}")) {
                        return Err(error);
                    }
                    untried -= 1;
                }
                published => return published.map_err(Unpublished::into_error),
            }
        }
    }

    fn try_publish(&mut self) -> Result<bool, Unpublished> {
        self.tree.keep_up();
        let Some((chain, terms, holds)) = self.ahead.clone() else {
            self.publish_as_cose(self.published)?;
            return Ok(false);
        };
        self.tree.write_all().map_err(Unpublished::Log)?;
        let head = self.tree.head();
        let TreeHead { size, root } = head;
        let (turn, path) = self.tree.path();
        // A path that takes over once the seal state speaks of the tree has it as well: should this one be lost, it is gone on from.
        if self.log.paths().is_some_and(|paths| !paths.keep_next(turn, size, self.edge())) {
            return Err(Unpublished::Moved);
        }
        let subjects = self.subjects.as_ref().map_or(Ok(0), |subjects| subjects.next_number())?;
        if let Some(subjects) = self.subjects.as_ref().filter(|_| self.follows) {
            subjects.signs(head)?;
            self.followed = size;
        }
        // Behind that: the seal state says how many frames the vault has followed, which has to be so however this is cut short.
        let (log, followed) = (self.config.id, self.followed);
        let (given_up, attempt) = (self.given_up.clone(), self.attempt);
        SealState { log, terms, chain, root, subjects, followed, holds, given_up, attempt }
            .save(&*self.keys)?;
        let note = signed_note(&self.config.origin, size, root, &self.signing)?;
        if let Some(pin) = &mut self.pin {
            pin.advance((&*self.log, self.config.own_keys()), head, &note)?;
        }
        if self.log.paths().is_some_and(|paths| paths.turn() != turn) {
            return Err(Unpublished::Moved);
        }
        bulla_store::replace(&*path, FILE, note.as_bytes()).map_err(|error| failed(&*path, FILE, error))?;
        self.publish_as_cose(head)?;
        // Full tiles that the other paths lack are given to them below: a path that takes over before that has them from memory.
        if self.log.paths().is_some_and(|paths| !paths.published(turn, note.as_bytes())) {
            return Err(Unpublished::Moved);
        }
        (self.published, self.terms) = (head, terms);
        self.ahead = None;
        self.tree.published();
        Ok(true)
    }

    /// What the checkpoint over the tree as it is needs beside full tiles, and those that no other path may have yet.
    fn edge(&self) -> Vec<(String, Vec<u8>)> {
        let mut edge = self.tree.unspread().to_vec();
        edge.extend(edge_of(&self.tree, &self.config.origin, &self.signing));
        edge
    }

    /// Has `checkpoint.cose` be of `head`, which `checkpoint` is of.
    fn publish_as_cose(&mut self, head: TreeHead) -> Result<(), Unpublished> {
        let (turn, path) = self.tree.path();
        if self.published_as_cose == Some((turn, head)) {
            return Ok(());
        }
        let file = signed_as_cose(&self.config.origin, head, &self.signing);
        let most = file.len() as u64;
        let is_there = bulla_store::read_small(&*path, COSE_CHECKPOINT, most).is_ok_and(|it| it == file);
        if !is_there {
            let written = bulla_store::replace(&*path, COSE_CHECKPOINT, &file);
            written.map_err(|error| failed(&*path, COSE_CHECKPOINT, error))?;
        }
        self.published_as_cose = Some((turn, head));
        Ok(())
    }

    /// Gives the published checkpoint of `head` more signature lines: `note` is the same text with those. Where a newer one is
    /// published, or the file cannot be written, or lies on a path that does not take what is written any more, it stays as it is:
    /// nothing rests on those lines.
    pub(crate) fn publish_cosigned(&mut self, head: TreeHead, note: &str) {
        if head != self.published {
            return;
        }
        // Either the old file is there after a failure, or the new one: both are right.
        let Some(paths) = self.log.paths() else {
            let _ = bulla_store::replace(&*self.log, FILE, note.as_bytes());
            return;
        };
        let (turn, path) = paths.current();
        if paths.has_published() && bulla_store::replace(&*path, FILE, note.as_bytes()).is_ok() {
            paths.published(turn, note.as_bytes());
        }
    }
}

/// The files that the checkpoint over a tree needs beside full tiles, and the same head as COSE.
fn edge_of(tree: &TreeFiles, origin: &str, signing: &SigningKey) -> Vec<(String, Vec<u8>)> {
    let mut edge = tree.edge();
    edge.push((COSE_CHECKPOINT.to_owned(), signed_as_cose(origin, tree.head(), signing)));
    edge
}

fn failed(path: &dyn Store, name: &str, error: io::Error) -> Unpublished {
    Unpublished::Log(Error::io(format!("writing {}", path.describe(name)), error))
}

/// A checkpoint as a note, signed with each key that the log has.
///
/// # Errors
/// `Unavailable` where the system has no randomness that ML-DSA-44 signs with.
pub(crate) fn signed_note(origin: &str, size: u64, root: Hash, key: &SigningKey) -> Result<String> {
    let checkpoint = Checkpoint { origin: origin.to_owned(), size, root, extensions: Vec::new() };
    let note = sign_checkpoint(&checkpoint, key.verifier(), |text| key.sign(text));
    Ok(match key.ml_dsa() {
        Some(beside) => note + &beside.sign(&checkpoint.body())?,
        None => note,
    })
}

/// The same as COSE: the file's content.
pub(crate) fn signed_as_cose(origin: &str, head: TreeHead, key: &SigningKey) -> Vec<u8> {
    let checkpoint = Checkpoint::new(origin, head.size, head.root);
    CoseCheckpoint::sign(&checkpoint, key.verifier(), |bytes| key.sign(bytes)).render()
}
