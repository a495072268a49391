//! The log's Ed25519 signing key, kept as [`key_text`].

use crate::key_text::{self, KeyText};
use crate::ml_dsa::MlDsaSigningKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_store::{Error, Result};
use ed25519_dalek::Signer as _;
use zeroize::Zeroizing;

/// The type of its signatures: C2SP signed-note.
const TYPE: u8 = 0x01;

/// Signs checkpoints.
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    verifier: VerifierKey,
    /// The log's other key, which signs its checkpoints too.
    beside: Option<Box<MlDsaSigningKey>>,
}

impl SigningKey {
    /// A key from its 32-byte seed (RFC 8032).
    ///
    /// # Errors
    /// `Invalid` where `name` cannot name a key.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Self> {
        let key = ed25519_dalek::SigningKey::from_bytes(seed);
        let verifier = VerifierKey::new(name, key.verifying_key().to_bytes());
        Ok(SigningKey {
            key,
            beside: None,
            verifier: verifier.map_err(|error| Error::invalid(format!("origin `{name}`: {error}")))?,
        })
    }

    /// The same with another key beside it.
    pub fn with_ml_dsa(self, beside: MlDsaSigningKey) -> Self {
        SigningKey { beside: Some(Box::new(beside)), ..self }
    }

    /// The key of ML-DSA-44 that signs beside it, where there is one.
    pub fn ml_dsa(&self) -> Option<&MlDsaSigningKey> {
        self.beside.as_deref()
    }

    /// The public half.
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Signs a note's text.
    pub fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.key.sign(text).to_bytes()
    }

    /// The text of a key file.
    pub fn render(&self) -> Zeroizing<String> {
        key_text::render(self.verifier.name(), self.verifier.key_id(), TYPE, self.key.as_bytes())
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// `Invalid` where it is not one.
    pub fn parse(text: &str) -> Result<Self> {
        let read = KeyText::parse("a signing key", &[TYPE], text)?;
        let key = SigningKey::from_seed(read.name, &read.seed)?;
        read.require_id(key.verifier.key_id())?;
        Ok(key)
    }
}
