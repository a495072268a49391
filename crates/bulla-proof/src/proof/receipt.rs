//! A proof of entries as a receipt of [RFC 9942](https://www.rfc-editor.org/rfc/rfc9942): the same as a [`Proof`](super::Proof), in a form that
//! whoever checks receipts knows. The statements of which it proves the inclusion are the commitments of frames; what leads from there to
//! entries stands beside it in a header parameter of our own.

use super::disclosure::{self, Disclosure};
use super::error::ProofError;
use super::{Checked, DisclosedFrame};
use crate::cbor::{Items, push_array, push_bytes, push_integer, push_map, push_unsigned};
use crate::checkpoint::Checkpoint;
use crate::cose::{CoseCheckpoint, CoseError, SignedHead};
use crate::hash::Hash;
use crate::log_key::LogKey;
use crate::multiproof::{self, TreeProofError};
use crate::note::{NoteError, VerifierKey};
use crate::policy::Policy;
use crate::tree::LogNodes;

/// The header parameter `vdp`, verifiable data structure proofs.
const VDP: i64 = 396;
/// Among them, the proofs of inclusion.
const INCLUSION: i64 = -1;
/// The header parameter, from the range for private use, that has the disclosure.
const DISCLOSURE: i64 = -70_002;

/// With what a receipt begins: the tag of a `COSE_Sign1`, and its array of four.
const BEGINNING: [u8; 2] = [0xd2, 0x84];

/// A proof that a log holds some entries, as a receipt, as it is read: nothing of it holds before [`Receipt::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    frames: Vec<DisclosedFrame>,
    /// The audit path of each frame.
    paths: Vec<Vec<Hash>>,
    head: SignedHead,
    /// What the first path comes to, as the root.
    checkpoint: Checkpoint,
    /// Of the file.
    length: usize,
}

impl Receipt {
    /// Whether a file begins as a receipt, and as no other file that is known here.
    pub fn is_one(file: &[u8]) -> bool {
        file.starts_with(&BEGINNING)
    }

    /// The receipt that the tree over `leaves`, which `signed` is the head of, holds the units of `frames`, which ascend.
    ///
    /// # Errors
    /// Where the parts do not make a receipt that verifies, but for the signature, which is not looked at: no file is made that a reader
    /// refuses.
    pub fn new(
        signed: &CoseCheckpoint,
        leaves: &[Hash],
        frames: Vec<DisclosedFrame>,
    ) -> Result<Self, ProofError> {
        let positions = frames.iter().map(|frame| frame.commitment().frame).collect::<Vec<_>>();
        if leaves.len() as u64 != signed.size() {
            return Err(ProofError::Tree(TreeProofError::Size(signed.size())));
        }
        let paths = multiproof::audit_paths(leaves, &positions).map_err(ProofError::Tree)?;
        let file = render(&signed.head, &frames, &paths);
        let read = Receipt::parse(&file)?;
        if read.checkpoint.root != signed.root() {
            return Err(ProofError::Tree(TreeProofError::Root));
        }
        read.verify(None)?;
        debug_assert_eq!((&read.frames, &read.paths), (&frames, &paths), "a file tells what it was made of");
        Ok(read)
    }

    /// Reads a file: its form, and which root its first path comes to.
    ///
    /// # Errors
    /// Where it is not one of [`Receipt::render`]'s, and where.
    pub fn parse(file: &[u8]) -> Result<Self, ProofError> {
        let mut items = Items::new(file);
        let mut head = SignedHead::begin(&mut items).map_err(ProofError::Receipt)?;
        let (proofs, extra) = unprotected(&mut items, head.size).map_err(ProofError::Receipt)?;
        items.null("null: the payload is detached").map_err(|error| ProofError::Receipt(error.into()))?;
        head.end(&mut items).map_err(ProofError::Receipt)?;
        let mut disclosure = Disclosure::open(extra)?;
        let (mut frames, mut paths) = (disclosure.room(proofs.len() > 1), Vec::with_capacity(proofs.len()));
        for Inclusion { index, path } in proofs {
            let frame = disclosure.frame(index, frames.last(), head.size);
            frames.push(frame.map_err(|error| error.of_frame(index))?);
            paths.push(path);
        }
        disclosure.close()?;
        let root = match (frames.first(), paths.first()) {
            (Some(frame), Some(path)) => root(head.size, frame, path)?,
            _ => return Err(ProofError::Tree(TreeProofError::NoPosition)),
        };
        let checkpoint = Checkpoint::new(head.origin.clone(), head.size, root);
        Ok(Receipt { frames, paths, head, checkpoint, length: file.len() })
    }

    /// The file.
    pub fn render(&self) -> Vec<u8> {
        render(&self.head, &self.frames, &self.paths)
    }

    /// Checks that the disclosed entries are units of their blocks, and the blocks frames of one tree; that disclosed secrets are those of
    /// their groups; and, given the log's `key`, that the log signed that tree. Without a key, anybody can have made all of it.
    ///
    /// # Errors
    /// The first of these that does not hold, and in which frame.
    pub fn verify(&self, key: Option<&VerifierKey>) -> Result<Checked<'_>, ProofError> {
        if let Some(key) = key {
            self.head.verify(&self.checkpoint.root, key).map_err(ProofError::Receipt)?;
        }
        self.check(key.is_some())
    }

    /// The same, by a policy: a log that it names has to have signed the tree with the Ed25519 key that it has of that log. No receipt is
    /// signed with another one, or cosigned.
    ///
    /// # Errors
    /// [`ProofError::ReceiptPolicy`] for a policy that asks for witnesses, or of the log for a signature of ML-DSA-44, [`ProofError::Policy`]
    /// where no log of the policy signed; else as [`Receipt::verify`].
    pub fn verify_by(&self, policy: &Policy) -> Result<Checked<'_>, ProofError> {
        let SignedHead { origin, .. } = &self.head;
        if policy.asks_for_witnesses() || policy.asks_for_ml_dsa(origin) {
            return Err(ProofError::ReceiptPolicy);
        }
        let signed = policy.log_that_signed(origin, |key| match key {
            LogKey::Ed25519(key) => {
                self.head.verify(&self.checkpoint.root, key).map_err(|error| match error {
                    CoseError::Origin => NoteError::Origin,
                    CoseError::OtherKey => NoteError::NotSigned,
                    _ => NoteError::BadSignature,
                })
            }
            LogKey::MlDsa44(_) => Err(NoteError::NotSigned),
        });
        signed.map_err(ProofError::Policy)?;
        self.check(true)
    }

    fn check(&self, anchored: bool) -> Result<Checked<'_>, ProofError> {
        for (frame, path) in self.frames.iter().zip(&self.paths) {
            frame.verify().map_err(|at| at.of_frame(frame.commitment().frame))?;
            if root(self.checkpoint.size, frame, path)? != self.checkpoint.root {
                return Err(ProofError::Tree(TreeProofError::Root));
            }
        }
        let Receipt { frames, checkpoint, length, .. } = self;
        Ok(Checked { frames, checkpoint, length: *length, anchored })
    }
}

/// A proof of inclusion, as the file has it.
struct Inclusion {
    index: u64,
    path: Vec<Hash>,
}

fn root(size: u64, frame: &DisclosedFrame, path: &[Hash]) -> Result<Hash, ProofError> {
    let leaf = [(frame.commitment().frame, frame.commitment().leaf())];
    multiproof::root(size, &leaf, path, &LogNodes).map_err(ProofError::Tree)
}

fn render(head: &SignedHead, frames: &[DisclosedFrame], paths: &[Vec<Hash>]) -> Vec<u8> {
    let mut unprotected = Vec::new();
    let out = &mut unprotected;
    push_map(2, out);
    push_integer(VDP, out);
    push_map(1, out);
    push_integer(INCLUSION, out);
    push_array(frames.len() as u64, out);
    for (frame, path) in frames.iter().zip(paths) {
        let mut proof = Vec::new();
        push_array(3, &mut proof);
        push_unsigned(head.size, &mut proof);
        push_unsigned(frame.commitment().frame, &mut proof);
        push_array(path.len() as u64, &mut proof);
        path.iter().for_each(|node| push_bytes(node.as_bytes(), &mut proof));
        push_bytes(&proof, out);
    }
    push_integer(DISCLOSURE, out);
    push_bytes(&disclosure::encode(frames), out);
    let mut file = Vec::new();
    head.push(&unprotected, None, &mut file);
    file
}

/// Takes the unprotected header: the proofs of inclusion in a tree of this size, and the disclosure.
fn unprotected<'a>(items: &mut Items<'a>, size: u64) -> Result<(Vec<Inclusion>, &'a [u8]), CoseError> {
    items.map_with(2, "a map of 2: the unprotected header")?;
    items.integer(VDP, "the parameter 396, vdp")?;
    items.map_with(1, "a map of 1: the proofs")?;
    items.integer(INCLUSION, "the proofs -1, of inclusion")?;
    let before = *items;
    let count = items.array("an array: the proofs of inclusion")?;
    if count == 0 {
        return Err(before.unexpected("one proof of inclusion at least").into());
    }
    // As many as there are, whatever is claimed.
    let mut proofs = Vec::new();
    for _ in 0..count {
        let mut proof = items.items("a proof of inclusion, a byte string")?;
        proof.array_with(3, "an array of 3: a proof of inclusion")?;
        let before = proof;
        if proof.unsigned("the size of the tree")? != size {
            return Err(before.unexpected("the size of the tree, as in the protected header").into());
        }
        let before = proof;
        let index = proof.unsigned("the number of a frame")?;
        // Also in order: the frames are, which have to have these numbers.
        let Ok(length) = multiproof::count::<LogNodes>(size, &[index]) else {
            return Err(before.unexpected("the number of a frame of the tree").into());
        };
        proof.array_with(length as u64, "an array: the hashes that lead from that frame to the root")?;
        let mut path = Vec::new();
        for _ in 0..length {
            path.push(Hash(proof.array_of("a hash, 32 bytes")?));
        }
        proof.end("the end of the proof of inclusion")?;
        proofs.push(Inclusion { index, path });
    }
    items.integer(DISCLOSURE, "the parameter -70002, the disclosure")?;
    Ok((proofs, items.bytes("the disclosure, a byte string")?))
}
