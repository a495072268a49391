//! An anchor: that a checkpoint of a log stands in somebody else's transparency log, a Rekor v2 (`sigstore/rekor-tiles`).
//!
//! Rekor takes the checkpoint as the payload of a [DSSE](https://github.com/secure-systems-lab/dsse) envelope, which the log's own key
//! signs. What it stores of that is an entry in JSON whose every byte follows from payload, signature and key, so that a file need not carry
//! it: whoever checks one makes the entry up, and an entry of another form would have another leaf.
//!
//! The log's key signs notes, too. What it signs of an envelope begins with `DSSEv1` and a space, which no checkpoint of the log does: a
//! key's name, which is the origin, has no space.

use super::error::ProofError;
use super::text::{self, Lines};
use super::{read_checkpoint, read_note};
use crate::checkpoint::{Checkpoint, open_checkpoint, parse_size};
use crate::hash::{Hash, sha256};
use crate::multiproof::{self, TreeProofError};
use crate::note::{NoteError, SIGNATURE_LENGTH, VerifierKey};
use crate::tree::{LogNodes, leaf_hash};

/// The first line of an anchor.
pub const ANCHOR_HEADER: &str = "bulla-rekor-anchor-v1";
/// What the envelope says of its payload: a signed note of C2SP tlog-checkpoint.
pub const PAYLOAD_TYPE: &str = "application/vnd.c2sp.tlog-checkpoint";

/// The DER of an Ed25519 public key (RFC 8410, section 4) up to its 32 bytes.
const ED25519_DER: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A checkpoint in an envelope that its log signed, as it is put into a Rekor v2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    note: Vec<u8>,
    signature: [u8; SIGNATURE_LENGTH],
}

impl Envelope {
    /// The envelope of the checkpoint `note`. `sign` gives the Ed25519 signature, by the log's secret key, of the bytes that it is given: the
    /// pre-authentication encoding of DSSE.
    ///
    /// # Errors
    /// [`NoteError`] where `note` is no checkpoint.
    pub fn sign(note: &[u8], sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE_LENGTH]) -> Result<Self, NoteError> {
        read_note(note)?;
        Ok(Envelope { note: note.to_vec(), signature: sign(&pre_authentication(note)) })
    }

    /// The JSON of a request to `/api/v2/log/entries` of a Rekor v2 that has it recorded, signed with `key`.
    pub fn request(&self, key: &VerifierKey) -> String {
        format!(
            r#"{{"dsseRequestV002":{{"envelope":{{"payload":"{}","payloadType":"{PAYLOAD_TYPE}","signatures":[{{"sig":"{}","keyid":""}}]}},"verifiers":[{{"publicKey":{{"rawBytes":"{}"}},"keyDetails":"PKIX_ED25519"}}]}}}}"#,
            text::encode(&self.note),
            text::encode(&self.signature),
            text::encode(&der(key)),
        )
    }

    /// The leaf of the entry that a Rekor v2 makes of it: canonical JSON (RFC 8785).
    fn leaf(&self, key: &VerifierKey) -> Hash {
        let entry = format!(
            r#"{{"apiVersion":"0.0.2","kind":"dsse","spec":{{"dsseV002":{{"payloadHash":{{"algorithm":"SHA2_256","digest":"{}"}},"signatures":[{{"content":"{}","verifier":{{"keyDetails":"PKIX_ED25519","publicKey":{{"rawBytes":"{}"}}}}}}]}}}}}}"#,
            sha256(&[&self.note]).to_base64(),
            text::encode(&self.signature),
            text::encode(&der(key)),
        );
        leaf_hash(entry.as_bytes())
    }
}

/// What DSSE has signed of a payload.
fn pre_authentication(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn der(key: &VerifierKey) -> Vec<u8> {
    [&ED25519_DER[..], key.public_key()].concat()
}

/// That a checkpoint stands in a Rekor v2, as it is read: nothing of it holds before [`Anchor::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    envelope: Envelope,
    anchored: Checkpoint,
    index: u64,
    nodes: Vec<Hash>,
    rekor: Checkpoint,
    rekor_note: Vec<u8>,
}

impl Anchor {
    /// What a Rekor answered of an envelope: at which `index` its entry stands, the audit path of that, and the checkpoint of Rekor's own tree.
    ///
    /// # Errors
    /// Where `rekor_note` is no checkpoint. What holds of it [`Anchor::verify`] tells.
    pub fn new(
        envelope: Envelope,
        index: u64,
        nodes: Vec<Hash>,
        rekor_note: &[u8],
    ) -> Result<Self, ProofError> {
        let anchored = read_note(&envelope.note).map_err(ProofError::OldCheckpoint)?;
        let (rekor, rekor_note) = (read_checkpoint(rekor_note)?, rekor_note.to_vec());
        Ok(Anchor { envelope, anchored, index, nodes, rekor, rekor_note })
    }

    /// Reads a file: its form alone.
    ///
    /// # Errors
    /// Where it is not one of [`Anchor::render`]'s, and where.
    pub fn parse(file: &[u8]) -> Result<Self, ProofError> {
        if Lines::first(file) != Some(ANCHOR_HEADER) {
            return Err(ProofError::Kind);
        }
        let (mut lines, rekor_note) = Lines::split(file)?;
        let note = |line: &str| text::decode(line.strip_prefix("checkpoint ")?);
        let note = lines.expect("`checkpoint` and base64", note)?;
        let signature = |line: &str| text::decode(line.strip_prefix("signature ")?)?.try_into().ok();
        let signature = lines.expect("`signature` and 64 bytes in base64", signature)?;
        let index = |line: &str| parse_size(line.strip_prefix("index ")?);
        let index = lines.expect("`index` and the number of an entry", index)?;
        Anchor::new(Envelope { note, signature }, index, lines.hashes()?, rekor_note)
    }

    /// The file.
    pub fn render(&self) -> String {
        let mut file = format!(
            "{ANCHOR_HEADER}\ncheckpoint {}\nsignature {}\nindex {}\n",
            text::encode(&self.envelope.note),
            text::encode(&self.envelope.signature),
            self.index
        );
        text::finish(&mut file, &self.nodes, &self.rekor_note);
        file
    }

    /// Checks that the log whose key is `log` signed the checkpoint and the envelope, that Rekor's tree holds the entry of it, and that Rekor,
    /// whose key is `rekor`, signed that tree.
    ///
    /// # Errors
    /// The first of these that does not hold; [`ProofError::OldCheckpoint`] is of what the log signed.
    pub fn verify(&self, log: &VerifierKey, rekor: &VerifierKey) -> Result<Anchored<'_>, ProofError> {
        let Envelope { note, signature } = &self.envelope;
        open_checkpoint(note, log).map_err(ProofError::OldCheckpoint)?;
        log.verify_bytes(&pre_authentication(note), signature).map_err(ProofError::OldCheckpoint)?;
        open_checkpoint(&self.rekor_note, rekor).map_err(ProofError::Checkpoint)?;
        let leaf = [(self.index, self.envelope.leaf(log))];
        let root = multiproof::root(self.rekor.size, &leaf, &self.nodes, &LogNodes);
        match root.map_err(ProofError::Tree)? == self.rekor.root {
            true => Ok(Anchored { checkpoint: &self.anchored, note, index: self.index, rekor: &self.rekor }),
            false => Err(ProofError::Tree(TreeProofError::Root)),
        }
    }
}

/// An anchor that holds.
#[derive(Clone, Copy, Debug)]
pub struct Anchored<'a> {
    /// The log's checkpoint.
    pub checkpoint: &'a Checkpoint,
    /// The same as the signed note that it is.
    pub note: &'a [u8],
    /// At which index of Rekor's log it stands.
    pub index: u64,
    /// The head of Rekor's tree by which that is known.
    pub rekor: &'a Checkpoint,
}
