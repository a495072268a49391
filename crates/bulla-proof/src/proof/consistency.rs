//! The file that proves that one signed tree of a log begins with another.

use super::error::ProofError;
use super::text::{self, Lines};
use super::{CONSISTENCY_HEADER, read_checkpoint, read_note};
use crate::checkpoint::{Checkpoint, SignedNote, open_checkpoint};
use crate::consistency::verify_consistency;
use crate::hash::Hash;
use crate::note::VerifierKey;
use crate::policy::Policy;

/// A proof that one signed tree of a log begins with another, as it is read: nothing of it holds before
/// [`ConsistencyProof::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencyProof {
    old: Checkpoint,
    old_note: Vec<u8>,
    nodes: Vec<Hash>,
    new: Checkpoint,
    new_note: Vec<u8>,
}

impl ConsistencyProof {
    /// The proof that the tree signed by `new_note` begins with the one signed by `old_note`, by `nodes`:
    /// [`prove_consistency`](crate::consistency::prove_consistency) gives them, or
    /// [`places`](crate::consistency::places) tells which they are.
    ///
    /// # Errors
    /// Where the parts do not make a proof that verifies: no file is made that a reader refuses. Only the signatures
    /// are not looked at.
    pub fn new(old_note: &[u8], new_note: &[u8], nodes: Vec<Hash>) -> Result<Self, ProofError> {
        let proof = ConsistencyProof {
            old: read_note(old_note).map_err(ProofError::OldCheckpoint)?,
            old_note: old_note.to_vec(),
            nodes,
            new: read_checkpoint(new_note)?,
            new_note: new_note.to_vec(),
        };
        let read = ConsistencyProof::parse(proof.render().as_bytes())?;
        read.verify(None)?;
        debug_assert_eq!(read, proof, "a file tells what it was made of");
        Ok(read)
    }

    /// Reads a file: its form, and that both checkpoints are of one origin.
    ///
    /// # Errors
    /// Where it is not one of [`ConsistencyProof::render`]'s, and where.
    pub fn parse(file: &[u8]) -> Result<Self, ProofError> {
        if Lines::first(file) != Some(CONSISTENCY_HEADER) {
            return Err(ProofError::Kind);
        }
        let (mut lines, new_note) = Lines::split(file)?;
        let old = |line: &str| text::decode(line.strip_prefix("old ")?);
        let old_note = lines.expect("`old` and base64", old)?;
        let old = read_note(&old_note).map_err(ProofError::OldCheckpoint)?;
        let new = read_checkpoint(new_note)?;
        if old.origin != new.origin {
            return Err(ProofError::Origins);
        }
        Ok(ConsistencyProof { old, old_note, nodes: lines.hashes()?, new, new_note: new_note.to_vec() })
    }

    /// The file.
    pub fn render(&self) -> String {
        let mut file = format!("{CONSISTENCY_HEADER}\nold {}\n", text::encode(&self.old_note));
        text::finish(&mut file, &self.nodes, &self.new_note);
        file
    }

    /// Checks that the new tree begins with the old one; and, given the log's `key`, that the log signed both.
    /// Without a key, anybody can have made all of it.
    ///
    /// # Errors
    /// The first of these that does not hold.
    pub fn verify(&self, key: Option<&VerifierKey>) -> Result<Consistent<'_>, ProofError> {
        if let Some(key) = key {
            open_checkpoint(&self.old_note, key).map_err(ProofError::OldCheckpoint)?;
            open_checkpoint(&self.new_note, key).map_err(ProofError::Checkpoint)?;
        }
        self.check(key.is_some())
    }

    /// The same, by a policy: a log that it names has to have signed both, and witnesses to have cosigned the new tree's
    /// checkpoint, as it asks for. What they have seen of the new tree they have seen of the old one.
    ///
    /// # Errors
    /// As [`ConsistencyProof::verify`], and [`ProofError::Policy`].
    pub fn verify_by(&self, policy: &Policy) -> Result<Consistent<'_>, ProofError> {
        let old = SignedNote::parse(&self.old_note).map_err(ProofError::OldCheckpoint)?;
        policy.log_of(&old).map_err(ProofError::OldPolicy)?;
        policy.open(&self.new_note).map_err(ProofError::Policy)?;
        self.check(true)
    }

    fn check(&self, anchored: bool) -> Result<Consistent<'_>, ProofError> {
        let (old, new) = (&self.old, &self.new);
        verify_consistency(old.size, &old.root, new.size, &new.root, &self.nodes)
            .map_err(ProofError::Tree)?;
        Ok(Consistent { old, new, anchored })
    }
}

/// A proof of consistency that holds.
#[derive(Clone, Copy, Debug)]
pub struct Consistent<'a> {
    /// The head of the tree that the new one begins with.
    pub old: &'a Checkpoint,
    /// The head of the new tree.
    pub new: &'a Checkpoint,
    /// Whether a key or a policy was given, and the log's signatures verified by it. Otherwise the proof only agrees with itself.
    pub anchored: bool,
}
