//! Tree heads that a log signs as COSE, too: a `COSE_Sign1` ([RFC 9052](https://www.rfc-editor.org/rfc/rfc9052)) over the root of the tree, in
//! the form that [RFC 9942](https://www.rfc-editor.org/rfc/rfc9942), "COSE Receipts", has a receipt signed in. Whoever has one makes receipts of it
//! without the key: the proofs of a receipt are in its unprotected header, which nobody signs. [`crate::proof::Receipt`] is such a receipt.
//!
//! What is signed binds, beside the root, the origin and the number of leaves: an RFC 9942 receipt alone does not, and its root alone is
//! that of a tree of another size as well, for whoever does not know what a leaf is.
//!
//! `docs/format.md`, "The tree head as COSE", has the byte map. A file has one spelling: the deterministic encoding of RFC 8949, section 4.2.1.

use crate::cbor::{
    Items, Unexpected, push_array, push_bytes, push_integer, push_map, push_null, push_tag, push_text,
    push_unsigned,
};
use crate::checkpoint::Checkpoint;
use crate::hash::Hash;
use crate::note::{SIGNATURE_LENGTH, VerifierKey, is_name};
use std::fmt;

/// The longest file of a tree head, in bytes: its origin is all that has no fixed length.
pub const MAX_COSE_CHECKPOINT: usize = 1 << 20;

/// The tag of a `COSE_Sign1`.
const TAG_SIGN1: u64 = 18;
/// The header parameter `alg`.
const ALG: i64 = 1;
/// The one value of it: EdDSA, by a key of Ed25519.
const ALG_EDDSA: i64 = -8;
/// The header parameter `kid`.
const KID: i64 = 4;
/// The header parameter `CWT Claims` (RFC 9597).
const CWT_CLAIMS: i64 = 15;
/// The claim `iss`.
const ISS: i64 = 1;
/// The header parameter `vds`, verifiable data structure.
const VDS: i64 = 395;
/// The one value of it: the tree of RFC 9162 with SHA-256.
const VDS_RFC9162_SHA256: i64 = 1;
/// The header parameter, from the range for private use, that tells the number of leaves.
const TREE_SIZE: i64 = -70_001;

/// What a log signs of its tree, but for the root, and the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedHead {
    pub(crate) origin: String,
    pub(crate) key_id: u32,
    pub(crate) size: u64,
    pub(crate) signature: [u8; SIGNATURE_LENGTH],
}

impl SignedHead {
    /// The protected header.
    fn protected(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_map(5, &mut out);
        push_integer(ALG, &mut out);
        push_integer(ALG_EDDSA, &mut out);
        push_integer(KID, &mut out);
        push_bytes(&self.key_id.to_be_bytes(), &mut out);
        push_integer(CWT_CLAIMS, &mut out);
        push_map(1, &mut out);
        push_integer(ISS, &mut out);
        push_text(&self.origin, &mut out);
        push_integer(VDS, &mut out);
        push_integer(VDS_RFC9162_SHA256, &mut out);
        push_integer(TREE_SIZE, &mut out);
        push_unsigned(self.size, &mut out);
        out
    }

    /// What the signature is of: the `Sig_structure` of RFC 9052, section 4.4, with the root as the payload.
    fn signed(&self, root: &Hash) -> Vec<u8> {
        let mut out = Vec::new();
        push_array(4, &mut out);
        push_text("Signature1", &mut out);
        push_bytes(&self.protected(), &mut out);
        push_bytes(&[], &mut out);
        push_bytes(root.as_bytes(), &mut out);
        out
    }

    /// Appends the message, with this content of the unprotected header and this payload; one that is detached is `null`.
    pub(crate) fn push(&self, unprotected: &[u8], payload: Option<&Hash>, out: &mut Vec<u8>) {
        push_tag(TAG_SIGN1, out);
        push_array(4, out);
        push_bytes(&self.protected(), out);
        out.extend_from_slice(unprotected);
        match payload {
            Some(root) => push_bytes(root.as_bytes(), out),
            None => push_null(out),
        }
        push_bytes(&self.signature, out);
    }

    /// Takes the message up to its unprotected header. The signature comes last, and is zeroes until then.
    pub(crate) fn begin(items: &mut Items<'_>) -> Result<Self, CoseError> {
        items.tag(TAG_SIGN1, "the tag 18, of a COSE_Sign1")?;
        items.array_with(4, "an array of 4: a COSE_Sign1")?;
        let mut protected = items.items("the protected header, a byte string")?;
        let head = &mut protected;
        head.map_with(5, "a map of 5: the protected header")?;
        head.integer(ALG, "the parameter 1, alg")?;
        head.integer(ALG_EDDSA, "-8, EdDSA, the only algorithm that is known here")?;
        head.integer(KID, "the parameter 4, kid")?;
        let key_id = u32::from_be_bytes(head.array_of("the key's id, 4 bytes")?);
        head.integer(CWT_CLAIMS, "the parameter 15, CWT Claims")?;
        head.map_with(1, "a map of 1: the claims")?;
        head.integer(ISS, "the claim 1, iss")?;
        let before = *head;
        let origin = head.text("the origin, text")?;
        if !is_name(origin) {
            let name = "an origin: not empty, without white space, control characters and `+`";
            return Err(before.unexpected(name).into());
        }
        head.integer(VDS, "the parameter 395, vds")?;
        head.integer(VDS_RFC9162_SHA256, "1, RFC9162_SHA256, the only tree that is known here")?;
        head.integer(TREE_SIZE, "the parameter -70001, the size of the tree")?;
        let size = head.unsigned("the size of the tree")?;
        head.end("the end of the protected header")?;
        Ok(SignedHead { origin: origin.to_owned(), key_id, size, signature: [0; SIGNATURE_LENGTH] })
    }

    /// Takes the signature, with which the file ends.
    pub(crate) fn end(&mut self, items: &mut Items<'_>) -> Result<(), CoseError> {
        self.signature = items.array_of("the signature, 64 bytes")?;
        Ok(items.end("the end of the file")?)
    }

    /// Checks that `key` is the log's by its name, and signed this head with this root.
    pub(crate) fn verify(&self, root: &Hash, key: &VerifierKey) -> Result<(), CoseError> {
        if self.origin != key.name() {
            return Err(CoseError::Origin);
        }
        if self.key_id != key.key_id() {
            return Err(CoseError::OtherKey);
        }
        key.verify_bytes(&self.signed(root), &self.signature).map_err(|_| CoseError::BadSignature)
    }
}

/// The head of a log's tree as the log signed it in COSE: what stands in its file `checkpoint.cose`. Nothing of it holds before
/// [`CoseCheckpoint::verify`].
///
/// ```
/// use bulla_proof::{CoseCheckpoint, Checkpoint, VerifierKey, tree};
/// use ed25519_dalek::{Signer, SigningKey};
///
/// let secret = SigningKey::from_bytes(&[7; 32]);
/// let key = VerifierKey::new("example.com/log", secret.verifying_key().to_bytes())?;
/// let checkpoint = Checkpoint::new("example.com/log", 0, tree::empty_root());
/// let signed = CoseCheckpoint::sign(&checkpoint, &key, |bytes| secret.sign(bytes).to_bytes());
/// let read = CoseCheckpoint::parse(&signed.render())?;
/// read.verify(&key)?;
/// assert_eq!((read.size(), read.root()), (0, tree::empty_root()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoseCheckpoint {
    pub(crate) head: SignedHead,
    pub(crate) root: Hash,
}

impl CoseCheckpoint {
    /// Signs origin, size and root of `checkpoint`. `sign` gives the Ed25519 signature, by the secret key of `key`, of the bytes that it is given.
    ///
    /// # Panics
    /// When the checkpoint is not of the log whose key is `key`.
    pub fn sign(
        checkpoint: &Checkpoint,
        key: &VerifierKey,
        sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE_LENGTH],
    ) -> Self {
        assert_eq!(checkpoint.origin, key.name(), "a log signs its own checkpoints");
        let mut head = SignedHead {
            origin: checkpoint.origin.clone(),
            key_id: key.key_id(),
            size: checkpoint.size,
            signature: [0; SIGNATURE_LENGTH],
        };
        head.signature = sign(&head.signed(&checkpoint.root));
        CoseCheckpoint { head, root: checkpoint.root }
    }

    /// Reads a file: its form alone.
    ///
    /// # Errors
    /// [`CoseError::TooLong`] past [`MAX_COSE_CHECKPOINT`], [`CoseError::Item`] where it is not one of [`CoseCheckpoint::render`]'s, and where.
    pub fn parse(file: &[u8]) -> Result<Self, CoseError> {
        if file.len() > MAX_COSE_CHECKPOINT {
            return Err(CoseError::TooLong);
        }
        let mut items = Items::new(file);
        let mut head = SignedHead::begin(&mut items)?;
        items.map_with(0, "an empty map: the unprotected header")?;
        let root = Hash(items.array_of("the payload: the root, 32 bytes")?);
        head.end(&mut items)?;
        Ok(CoseCheckpoint { head, root })
    }

    /// The file.
    pub fn render(&self) -> Vec<u8> {
        let mut unprotected = Vec::new();
        push_map(0, &mut unprotected);
        let mut file = Vec::new();
        self.head.push(&unprotected, Some(&self.root), &mut file);
        file
    }

    /// Checks that the log whose key is `key` signed it.
    ///
    /// # Errors
    /// [`CoseError::Origin`], [`CoseError::OtherKey`] or [`CoseError::BadSignature`].
    pub fn verify(&self, key: &VerifierKey) -> Result<(), CoseError> {
        self.head.verify(&self.root, key)
    }

    /// The origin that it states.
    pub fn origin(&self) -> &str {
        &self.head.origin
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.head.size
    }

    /// The root of the tree at that size.
    pub fn root(&self) -> Hash {
        self.root
    }
}

/// Why a tree head as COSE, or a receipt, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoseError {
    /// The file of a tree head is longer than [`MAX_COSE_CHECKPOINT`].
    TooLong,
    /// At this byte, counted from 0, does not stand what has to, in deterministic encoding.
    #[allow(missing_docs)]
    Item { offset: usize, expected: &'static str },
    /// It is of another log than the key's.
    Origin,
    /// It names another key as its signer.
    OtherKey,
    /// The key's signature does not verify.
    BadSignature,
}

impl From<Unexpected> for CoseError {
    fn from(Unexpected { offset, expected }: Unexpected) -> Self {
        CoseError::Item { offset, expected }
    }
}

impl fmt::Display for CoseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "it is longer than 1 MiB"),
            Self::Item { offset, expected } => write!(f, "at byte {offset} has to stand {expected}"),
            Self::Origin => write!(f, "it is of another log than the key's"),
            Self::OtherKey => write!(f, "another key is named as its signer"),
            Self::BadSignature => write!(f, "the key's signature does not verify"),
        }
    }
}

impl std::error::Error for CoseError {}
