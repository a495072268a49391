//! The secret that opens one group, as a proof may disclose it.
//!
//! `docs/format.md`, "Groups", says how it follows from the keys of the data subjects, which nothing here knows. What
//! follows from it is the key of the group's ciphertext, and the commitment that the group's unit hashes beside that:
//! key ‖ commitment = HKDF-Expand(secret, "bulla group keys v2", 64) (RFC 5869, SHA-256). So whether a disclosed
//! secret is the group's can be told without a cipher.

use crate::hash::Hash;
use hkdf::Hkdf;
use sha2::Sha256;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The secret of one group. Not printed, though a proof may disclose it, and cleared from memory.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct GroupSecret([u8; GroupSecret::LENGTH]);

/// What follows from a group's secret.
pub struct GroupKey {
    /// The key of the group's ciphertext.
    pub key: Zeroizing<[u8; 32]>,
    /// The commitment to it.
    pub commitment: Hash,
}

impl GroupSecret {
    /// The length of a secret, in bytes.
    pub const LENGTH: usize = 32;

    /// For what it is expanded, to the key and the commitment.
    pub const KEYS: &'static [u8] = b"bulla group keys v2";

    /// The secret of these bytes.
    pub fn new(bytes: [u8; Self::LENGTH]) -> Self {
        GroupSecret(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }

    /// The group's key and the commitment to it.
    pub fn key(&self) -> GroupKey {
        let hkdf = Hkdf::<Sha256>::from_prk(&self.0).expect("a secret is as long as a hash");
        let mut output = Zeroizing::new([0; 64]);
        hkdf.expand(Self::KEYS, &mut *output).expect("two hashes are not too long");
        let (mut key, mut commitment) = (Zeroizing::new([0; 32]), Hash::ZERO);
        key.copy_from_slice(&output[..32]);
        commitment.0.copy_from_slice(&output[32..]);
        GroupKey { key, commitment }
    }
}

impl fmt::Debug for GroupSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupSecret")
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupKey").field("commitment", &self.commitment).finish_non_exhaustive()
    }
}
