//! Hashes: the 32-byte digest, SHA-256 (FIPS 180-4) and the choice that a log makes for the units of its blocks.
//!
//! The log's tree, commitments and keys always use SHA-256; only the trees inside blocks use [`HashId`].

use crate::hex;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest as _;
use std::fmt;

/// A 32-byte digest. Shown as lowercase hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The length of a digest, in bytes.
    pub const LENGTH: usize = 32;
    /// Thirty-two zero bytes: the place of a digest where there is none.
    pub const ZERO: Hash = Hash([0; 32]);

    /// Reads 64 lowercase hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        hex::parse(text).map(Hash)
    }

    /// The bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Standard base64 with padding (RFC 4648, section 4), 44 characters.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Reads what [`Hash::to_base64`] writes, and no other spelling of it.
    pub fn from_base64(text: &str) -> Option<Hash> {
        if text.len() != 44 {
            return None;
        }
        STANDARD.decode(text).ok()?.try_into().map(Hash).ok()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl AsRef<[u8]> for Hash {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// SHA-256 of the concatenation of `parts`.
///
/// ```
/// let hash = bulla_proof::sha256(&[b"a", b"bc"]);
/// assert_eq!(hash.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
/// ```
#[inline]
pub fn sha256(parts: &[&[u8]]) -> Hash {
    digest::<sha2::Sha256>(parts)
}

/// SHA-256 of bytes that come piece by piece.
#[derive(Clone, Default)]
pub struct Sha256(sha2::Sha256);

impl Sha256 {
    /// The hash of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of everything taken in.
    pub fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sha256").finish_non_exhaustive()
    }
}

/// The hash function of a log's blocks, by its number in a commitment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HashId {
    /// SHA-256 (FIPS 180-4), the default.
    #[default]
    Sha256 = 1,
    /// SHA3-256 (FIPS 202).
    Sha3_256 = 2,
}

impl HashId {
    /// Every hash function there is.
    pub const ALL: [HashId; 2] = [HashId::Sha256, HashId::Sha3_256];

    /// The function numbered `id`.
    pub const fn from_u8(id: u8) -> Option<HashId> {
        match id {
            1 => Some(HashId::Sha256),
            2 => Some(HashId::Sha3_256),
            _ => None,
        }
    }

    /// The name in configuration: `sha256` or `sha3-256`.
    pub const fn name(self) -> &'static str {
        match self {
            HashId::Sha256 => "sha256",
            HashId::Sha3_256 => "sha3-256",
        }
    }

    /// The function named `name`.
    pub fn from_name(name: &str) -> Option<HashId> {
        HashId::ALL.into_iter().find(|id| id.name() == name)
    }

    /// The hash of the concatenation of `parts`.
    #[inline]
    pub fn hash(self, parts: &[&[u8]]) -> Hash {
        match self {
            HashId::Sha256 => digest::<sha2::Sha256>(parts),
            HashId::Sha3_256 => digest::<sha3::Sha3_256>(parts),
        }
    }
}

#[inline]
fn digest<D: sha2::Digest>(parts: &[&[u8]]) -> Hash
where
    [u8; 32]: From<sha2::digest::Output<D>>,
{
    let mut digest = D::new();
    for part in parts {
        digest.update(part);
    }
    Hash(digest.finalize().into())
}
