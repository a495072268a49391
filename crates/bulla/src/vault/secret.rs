//! What the vault holds of a person: a key, and a pseudonym.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::sync::Arc;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::environment::Random;
use bulla_proof::commitment::LogId;
use bulla_store::Result;

/// Thirty-two secret bytes.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct Secret(pub(super) [u8; 32]);

impl Secret {
    /// Fresh random ones.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn generate(random: &dyn Random) -> Result<Self> {
        let mut secret = Secret([0; 32]);
        random.fill(&mut secret.0)?;
        Ok(secret)
    }
}

/// The key of one data subject. Clones share one copy, which is overwritten when the last of them is dropped.
#[derive(Clone)]
pub struct SubjectKey(Arc<Secret>);

impl SubjectKey {
    pub(super) fn new(secret: Secret) -> Self {
        SubjectKey(Arc::new(secret))
    }

    /// The key.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }

    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl From<[u8; 32]> for SubjectKey {
    fn from(key: [u8; 32]) -> Self {
        SubjectKey::new(Secret(key))
    }
}

/// A data subject: the number that the log knows, and the key.
#[derive(Clone)]
pub struct Subject {
    /// The number, given once and to nobody else, not even after an erasure.
    pub number: u64,
    /// The key.
    pub key: SubjectKey,
}

/// Stands for a subject's text; nobody can go from one to the other without the vault's pseudonym key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Pseudonym(pub(super) [u8; 16]);

impl Pseudonym {
    /// The pseudonym of `subject`: the first half of HMAC-SHA-256.
    pub(super) fn of(subject: &str, log: LogId, key: &Secret) -> Self {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key.0).expect("HMAC takes any key");
        mac.update(b"bulla vault pseudonym v1");
        mac.update(&log.0);
        mac.update(subject.as_bytes());
        let output: [u8; 32] = mac.finalize().into_bytes().into();
        let (half, _) = output.split_at(16);
        Pseudonym(half.try_into().unwrap_or_default())
    }

    /// Where the pseudonym lies in the space that the index divides among its buckets.
    pub(super) fn prefix(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }
}
