//! A data subject as the log knows one: a number, and a key.

use std::sync::Arc;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::random::Random;
use bulla_store::Result;

/// Thirty-two secret bytes.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// Fresh random ones.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub fn generate(random: &dyn Random) -> Result<Self> {
        let mut secret = Secret([0; 32]);
        random.fill(&mut secret.0)?;
        Ok(secret)
    }
}

/// The key of one data subject. Clones share one copy, which is overwritten when the last of them is dropped.
#[derive(Clone)]
pub struct SubjectKey(Arc<Secret>);

impl SubjectKey {
    /// The key that these bytes are.
    pub fn new(secret: Secret) -> Self {
        SubjectKey(Arc::new(secret))
    }

    /// The key.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }

    /// How many clones share the key.
    pub fn holders(&self) -> usize {
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
