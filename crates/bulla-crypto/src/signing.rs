//! The log's Ed25519 signing key, kept as the Go `note` package's text: `PRIVATE+KEY+<name>+<id>+<base64>`.

use crate::ml_dsa::MlDsaSigningKey;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulla_proof::checkpoint::VerifierKey;
use bulla_store::{Error, Result};
use ed25519_dalek::Signer as _;
use zeroize::Zeroizing;

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
        let mut data = Zeroizing::new(vec![1]);
        data.extend_from_slice(self.key.as_bytes());
        let data = Zeroizing::new(BASE64_STANDARD.encode(&*data));
        let id = self.verifier.key_id();
        Zeroizing::new(format!("PRIVATE+KEY+{}+{id:08x}+{}\n", self.verifier.name(), data.as_str()))
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// `Invalid` where it is not one.
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = || Error::invalid("it is not a signing key (PRIVATE+KEY+name+id+key)");
        let rest = text.trim_end().strip_prefix("PRIVATE+KEY+").ok_or_else(malformed)?;
        let mut parts = rest.splitn(3, '+');
        let (Some(name), Some(id), Some(data)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(malformed());
        };
        let data = Zeroizing::new(BASE64_STANDARD.decode(data).map_err(|_| malformed())?);
        let [1, seed @ ..] = data.as_slice() else { return Err(malformed()) };
        let seed = Zeroizing::new(<[u8; 32]>::try_from(seed).map_err(|_| malformed())?);
        let key = SigningKey::from_seed(name, &seed)?;
        if format!("{:08x}", key.verifier.key_id()) != id {
            return Err(Error::invalid("its key id does not belong to its key"));
        }
        Ok(key)
    }
}
