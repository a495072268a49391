//! The log's ML-DSA-44 signing key (FIPS 204), which signs checkpoints beside the Ed25519 one: C2SP tlog-checkpoint and
//! tlog-cosignature. Kept as [`key_text`].

use crate::key_text::{self, KeyText};
use bulla_proof::CosignerKey;
use bulla_store::{Error, Result};
use pair::Pair;
use zeroize::Zeroizing;

/// The signature type of C2SP signed-note.
const TYPE: u8 = 0x06;

/// Signs checkpoints with ML-DSA-44.
pub struct MlDsaSigningKey {
    pair: Pair,
    seed: Zeroizing<[u8; 32]>,
    verifier: CosignerKey,
}

impl MlDsaSigningKey {
    /// A key from its 32-byte seed (FIPS 204, ξ).
    ///
    /// # Errors
    /// `Invalid` where `name` cannot name such a key, which may have 255 bytes, and where this was built without the feature `ml-dsa`.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Self> {
        let none = |why: &str| Error::invalid(format!("a key of ML-DSA-44 named `{name}`: {why}"));
        let pair = Pair::from_seed(seed).map_err(none)?;
        let verifier = CosignerKey::ml_dsa_44(name, &pair.public().map_err(none)?)
            .map_err(|error| none(&error.to_string()))?;
        Ok(MlDsaSigningKey { pair, seed: Zeroizing::new(*seed), verifier })
    }

    /// The public half.
    pub fn verifier(&self) -> &CosignerKey {
        &self.verifier
    }

    /// The signature line, with its newline, under the checkpoint whose text is `text`, without a time: a log says of its own
    /// tree only that it goes on from all that it signed.
    ///
    /// # Errors
    /// `Invalid` where it is none that can be signed, `Unavailable` where the system has no randomness.
    pub fn sign(&self, text: &str) -> Result<String> {
        let message =
            self.verifier.message(text, 0).map_err(|error| Error::invalid(format!("signing: {error}")))?;
        let signature = self
            .pair
            .sign(&message)
            .map_err(|why| Error::unavailable(format!("signing a checkpoint: {why}")))?;
        Ok(self.verifier.signature_line(0, &signature))
    }

    /// The text of a key file.
    pub fn render(&self) -> Zeroizing<String> {
        key_text::render(self.verifier.name(), self.verifier.key_id(), TYPE, &self.seed)
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// `Invalid` where it is not one.
    pub fn parse(text: &str) -> Result<Self> {
        let read = KeyText::parse("a signing key of ML-DSA-44", &[TYPE], text)?;
        let key = MlDsaSigningKey::from_seed(read.name, &read.seed)?;
        read.require_id(key.verifier.key_id())?;
        Ok(key)
    }
}

/// The pair of keys itself, from AWS-LC.
#[cfg(feature = "ml-dsa")]
mod pair {
    use aws_lc_rs::signature::{KeyPair as _, ML_DSA_44_SIGNING, PqdsaKeyPair};
    use bulla_proof::cosignature::{ML_DSA_44_PUBLIC_KEY, ML_DSA_44_SIGNATURE};

    pub(super) struct Pair(PqdsaKeyPair);

    impl Pair {
        pub(super) fn from_seed(seed: &[u8; 32]) -> Result<Self, &'static str> {
            PqdsaKeyPair::from_seed(&ML_DSA_44_SIGNING, seed).map(Pair).map_err(|_| "the seed makes none")
        }

        pub(super) fn public(&self) -> Result<[u8; ML_DSA_44_PUBLIC_KEY], &'static str> {
            self.0.public_key().as_ref().try_into().map_err(|_| "its public half has another length")
        }

        pub(super) fn sign(&self, message: &[u8]) -> Result<[u8; ML_DSA_44_SIGNATURE], &'static str> {
            let mut signature = [0; ML_DSA_44_SIGNATURE];
            self.0.sign(message, &mut signature).map_err(|_| "ML-DSA-44 failed")?;
            Ok(signature)
        }
    }
}

/// There is none: AWS-LC's signatures bring every kind of key that it knows, a sixth of a library that only appends.
#[cfg(not(feature = "ml-dsa"))]
mod pair {
    use bulla_proof::cosignature::{ML_DSA_44_PUBLIC_KEY, ML_DSA_44_SIGNATURE};

    const MISSING: &str = "this program was built without ML-DSA: build Bulla with its feature `ml-dsa`";

    pub(super) struct Pair(());

    impl Pair {
        pub(super) fn from_seed(_: &[u8; 32]) -> Result<Self, &'static str> {
            Err(MISSING)
        }

        pub(super) fn public(&self) -> Result<[u8; ML_DSA_44_PUBLIC_KEY], &'static str> {
            Err(MISSING)
        }

        pub(super) fn sign(&self, _: &[u8]) -> Result<[u8; ML_DSA_44_SIGNATURE], &'static str> {
            Err(MISSING)
        }
    }
}

#[cfg(all(test, feature = "ml-dsa"))]
mod tests {
    use super::*;
    use bulla_proof::{LogKey, SignedNote};

    const TEXT: &str = "example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n";

    /// One implementation signs, another one verifies.
    #[test]
    fn what_it_signs_verifies() {
        let key = MlDsaSigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
        let note = format!("{TEXT}\n{}", key.sign(TEXT).unwrap());
        let verifier: LogKey = key.verifier().to_string().parse().unwrap();
        assert_eq!(verifier.verify(&SignedNote::parse(note.as_bytes()).unwrap()), Ok(()));
        assert!(key.sign("no checkpoint\n").is_err());
    }

    /// The public key is the one that OpenSSL has of the same seed: `vectors/witness/cosignatures.json`.
    #[test]
    fn its_public_key_is_that_of_the_vectors() {
        let key = MlDsaSigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/witness/cosignatures.json");
        let vectors = std::fs::read_to_string(path).unwrap();
        assert!(vectors.contains(&key.verifier().to_string()));
    }

    #[test]
    fn a_key_file_is_read_as_it_was_written() {
        let key = MlDsaSigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
        let text = key.render();
        assert_eq!(MlDsaSigningKey::parse(&text).unwrap().verifier(), key.verifier());
        for wrong in [
            text.replace("PRIVATE", "PUBLIC"),
            text.replace("example.com/log", "example.com/lag"),
            text.replace("+Bg", "+AQ"),
            text[..text.len() - 6].to_owned(),
        ] {
            assert!(MlDsaSigningKey::parse(&wrong).is_err(), "{}", wrong.len());
        }
        assert!(MlDsaSigningKey::from_seed(&"a".repeat(256), &[3; 32]).is_err());
        assert!(MlDsaSigningKey::from_seed("a b", &[3; 32]).is_err());
    }
}

#[cfg(all(test, not(feature = "ml-dsa")))]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_such_key_and_that_is_said() {
        let error = MlDsaSigningKey::from_seed("example.com/log", &[3; 32]).err().unwrap();
        assert!(error.to_string().contains("feature `ml-dsa`"), "{error}");
    }
}
