//! The file that proves that a log holds an event: a frame about the log itself, whose body is public.

use super::error::{FrameProblem, ProofError};
use super::text::{self, Lines};
use super::{EVENT_HEADER, read_checkpoint};
use crate::checkpoint::{Checkpoint, open_checkpoint};
use crate::commitment::{Commitment, FrameKind};
use crate::hash::{Hash, sha256};
use crate::multiproof;
use crate::multiproof::NodePosition;
use crate::note::VerifierKey;
use crate::policy::Policy;
use crate::tree::LogNodes;
use std::ops::Range;

/// The longest event of a file, in bytes.
const MAX_EVENT: usize = 1 << 20;

/// A proof that a log holds an event, as it is read: nothing of it holds before [`EventProof::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventProof {
    commitment: Commitment,
    event: Vec<u8>,
    tree_nodes: Vec<Hash>,
    checkpoint: Checkpoint,
    note: Vec<u8>,
}

impl EventProof {
    /// The proof that the tree signed by `note` holds the frame with `commitment`, whose body is `event`. `tree_nodes`
    /// prove its leaf: [`multiproof::prove`] gives them.
    ///
    /// # Errors
    /// Where the parts do not make a proof that verifies: no file is made that a reader refuses. Only the signature
    /// is not looked at.
    pub fn new(
        note: &[u8],
        tree_nodes: Vec<Hash>,
        commitment: Commitment,
        event: Vec<u8>,
    ) -> Result<Self, ProofError> {
        let checkpoint = read_checkpoint(note)?;
        let proof = EventProof { commitment, event, tree_nodes, checkpoint, note: note.to_vec() };
        let read = EventProof::parse(proof.render().as_bytes())?;
        read.verify(None)?;
        debug_assert_eq!(read, proof, "a file tells what it was made of");
        Ok(read)
    }

    /// Reads a file: its form alone.
    ///
    /// # Errors
    /// Where it is not one of [`EventProof::render`]'s, and where.
    pub fn parse(file: &[u8]) -> Result<Self, ProofError> {
        if Lines::first(file) != Some(EVENT_HEADER) {
            return Err(ProofError::Kind);
        }
        let (mut lines, note) = Lines::split(file)?;
        let checkpoint = read_checkpoint(note)?;
        let commitment =
            |line: &str| Commitment::decode(&text::decode(line.strip_prefix("commitment ")?)?).ok();
        let commitment = lines.expect("`commitment` and that of a frame in base64", commitment)?;
        let event =
            |line: &str| text::decode(line.strip_prefix("event ")?).filter(|it| it.len() <= MAX_EVENT);
        let event = lines.expect("`event` and up to 1 MiB in base64", event)?;
        let tree_nodes = lines.hashes()?;
        Ok(EventProof { commitment, event, tree_nodes, checkpoint, note: note.to_vec() })
    }

    /// The file.
    pub fn render(&self) -> String {
        let commitment = text::encode(&self.commitment.encode());
        let mut file =
            format!("{EVENT_HEADER}\ncommitment {commitment}\nevent {}\n", text::encode(&self.event));
        text::finish(&mut file, &self.tree_nodes, &self.note);
        file
    }

    /// Checks that the event is the body of an event frame, the frame in the tree, and the tree the one whose head the
    /// checkpoint states; and, given the log's `key`, that the log signed it. Without a key, anybody can have made all of
    /// it.
    ///
    /// # Errors
    /// The first of these that does not hold.
    pub fn verify(&self, key: Option<&VerifierKey>) -> Result<CheckedEvent<'_>, ProofError> {
        if let Some(key) = key {
            open_checkpoint(&self.note, key).map_err(ProofError::Checkpoint)?;
        }
        self.check(key.is_some())
    }

    /// The same, by a policy: a log that it names has to have signed the tree, and witnesses to have cosigned that, as it asks for.
    ///
    /// # Errors
    /// As [`EventProof::verify`], and [`ProofError::Policy`].
    pub fn verify_by(&self, policy: &Policy) -> Result<CheckedEvent<'_>, ProofError> {
        policy.open(&self.note).map_err(ProofError::Policy)?;
        self.check(true)
    }

    fn check(&self, anchored: bool) -> Result<CheckedEvent<'_>, ProofError> {
        let Commitment { frame, kind, body_digest, .. } = self.commitment;
        let of_frame = |problem| ProofError::Frame { frame, problem };
        if kind != FrameKind::Event {
            return Err(of_frame(FrameProblem::NoEvent(kind)));
        }
        if sha256(&[&self.event]) != body_digest {
            return Err(of_frame(FrameProblem::Body));
        }
        let leaf = [(frame, self.commitment.leaf())];
        let size = self.checkpoint.size;
        if frame >= size {
            return Err(of_frame(FrameProblem::NotInTree { size }));
        }
        let root = multiproof::root(size, &leaf, &self.tree_nodes, &LogNodes);
        if root.map_err(ProofError::Tree)? != self.checkpoint.root {
            return Err(ProofError::Tree(multiproof::TreeProofError::Root));
        }
        Ok(CheckedEvent { proof: self, anchored })
    }
}

/// A proof of an event that holds.
#[derive(Clone, Copy, Debug)]
pub struct CheckedEvent<'a> {
    proof: &'a EventProof,
    anchored: bool,
}

impl<'a> CheckedEvent<'a> {
    /// The frame's commitment: its number, and the second in which it was written.
    pub fn commitment(&self) -> &'a Commitment {
        &self.proof.commitment
    }

    /// The event, in JSON.
    pub fn event(&self) -> &'a [u8] {
        &self.proof.event
    }

    /// The nodes of that tree which cover the frames before its own, from the first on: what was in the log by then.
    pub fn before(&self) -> impl Iterator<Item = (Range<u64>, Hash)> + use<'a> {
        let EventProof { commitment, tree_nodes, checkpoint, .. } = self.proof;
        // It was verified, so that there is a node for each place.
        let places = multiproof::places::<LogNodes>(checkpoint.size, &[commitment.frame]).unwrap_or_default();
        let covered = |place: NodePosition| place.index << place.level..(place.index + 1) << place.level;
        let nodes = places.into_iter().map(covered).zip(tree_nodes.iter().copied());
        // Bottom-up: the larger ones, which come first in the tree, last.
        let before = nodes.filter(|(frames, _)| frames.end <= commitment.frame).collect::<Vec<_>>();
        before.into_iter().rev()
    }

    /// The head of the tree that it is in.
    pub fn checkpoint(&self) -> &'a Checkpoint {
        &self.proof.checkpoint
    }

    /// Whether a key was given, and the log's signature verified by it. Otherwise the proof only agrees with itself.
    pub fn anchored(&self) -> bool {
        self.anchored
    }
}
