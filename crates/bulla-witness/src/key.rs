//! The key of a witness: Ed25519 or ML-DSA-44. Kept as [`key_text`], with the signature types of C2SP
//! tlog-cosignature.

use bulla_crypto::key_text::{self, KeyText};
use bulla_proof::{CosignatureAlgorithm, CosignerKey};
use bulla_store::{Error, Result};
use ed25519_dalek::Signer as _;
use ml_dsa::{KeyExport as _, Keypair as _, MlDsa44};
use zeroize::Zeroizing;

/// The types of its signatures.
const ED25519: u8 = 0x04;
const ML_DSA_44: u8 = 0x06;

/// Cosigns.
pub struct WitnessKey {
    seed: Zeroizing<[u8; 32]>,
    key: CosignerKey,
}

impl WitnessKey {
    /// A key from its 32-byte seed: RFC 8032, or FIPS 204 (ξ).
    ///
    /// # Errors
    /// `Invalid` where `name` cannot name a key.
    pub fn from_seed(name: &str, algorithm: CosignatureAlgorithm, seed: &[u8; 32]) -> Result<Self> {
        let key = match algorithm {
            CosignatureAlgorithm::Ed25519 => CosignerKey::ed25519(
                name,
                ed25519_dalek::SigningKey::from_bytes(seed).verifying_key().to_bytes(),
            ),
            CosignatureAlgorithm::MlDsa44 => {
                let public = ml_dsa_key(seed).verifying_key().to_bytes();
                CosignerKey::ml_dsa_44(name, &public.into())
            }
        };
        let key = key.map_err(|error| Error::invalid(format!("the witness's name `{name}`: {error}")))?;
        Ok(WitnessKey { seed: Zeroizing::new(*seed), key })
    }

    /// The public half.
    pub fn public(&self) -> &CosignerKey {
        &self.key
    }

    /// The line, with its newline, by which this key cosigns the checkpoint with this text at `timestamp`, in seconds since
    /// 1970.
    ///
    /// # Errors
    /// `Invalid` for a text that is no checkpoint, an origin that is too long for ML-DSA-44, or a time that is past 2^63 - 1.
    pub fn cosign(&self, text: &str, timestamp: u64) -> Result<String> {
        let message = self.key.message(text, timestamp);
        let message = message.map_err(|error| Error::invalid(format!("it cannot be cosigned: {error}")))?;
        let signature = match self.key.algorithm() {
            CosignatureAlgorithm::Ed25519 => {
                ed25519_dalek::SigningKey::from_bytes(&self.seed).sign(&message).to_bytes().to_vec()
            }
            CosignatureAlgorithm::MlDsa44 => {
                let signature: ml_dsa::Signature<MlDsa44> = ml_dsa_key(&self.seed).sign(&message);
                signature.encode().to_vec()
            }
        };
        Ok(self.key.signature_line(timestamp, &signature))
    }

    /// The text of a key file.
    pub fn render(&self) -> Zeroizing<String> {
        let signature_type = match self.key.algorithm() {
            CosignatureAlgorithm::Ed25519 => ED25519,
            CosignatureAlgorithm::MlDsa44 => ML_DSA_44,
        };
        key_text::render(self.key.name(), self.key.key_id(), signature_type, &self.seed)
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// `Invalid` where it is not one.
    pub fn parse(text: &str) -> Result<Self> {
        let read = KeyText::parse("a witness's key", &[ED25519, ML_DSA_44], text)?;
        let algorithm = match read.signature_type {
            ED25519 => CosignatureAlgorithm::Ed25519,
            _ => CosignatureAlgorithm::MlDsa44,
        };
        let key = WitnessKey::from_seed(read.name, algorithm, &read.seed)?;
        read.require_id(key.key.key_id())?;
        Ok(key)
    }
}

fn ml_dsa_key(seed: &[u8; 32]) -> ml_dsa::SigningKey<MlDsa44> {
    ml_dsa::SigningKey::from_seed(&(*seed).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [CosignatureAlgorithm; 2] = [CosignatureAlgorithm::Ed25519, CosignatureAlgorithm::MlDsa44];

    #[test]
    fn a_key_is_read_as_it_is_written_and_no_other_text_is_one() {
        for algorithm in BOTH {
            let key = WitnessKey::from_seed("w.example/1", algorithm, &[7; 32]).unwrap();
            let text = key.render();
            let again = WitnessKey::parse(&text).unwrap();
            assert_eq!(again.public(), key.public());
            assert_eq!(again.render().as_str(), text.as_str());
            for wrong in [
                text.replace("w.example", "v.example"),
                text.replace("PRIVATE", "PUBLIC"),
                text[..text.len() - 9].to_owned(),
                String::new(),
                key.public().to_string(),
            ] {
                assert!(WitnessKey::parse(&wrong).is_err(), "{wrong}");
            }
        }
        // The log's own key, of signature type 1, is no witness's.
        let log = bulla_crypto::signing::SigningKey::from_seed("w.example/1", &[7; 32]).unwrap();
        assert!(WitnessKey::parse(&log.render()).is_err());
    }

    #[test]
    fn what_it_cosigns_is_verified_with_its_public_half_and_with_no_other() {
        let text = "example.com/log\n3\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
        for algorithm in BOTH {
            let key = WitnessKey::from_seed("w.example/1", algorithm, &[7; 32]).unwrap();
            let other = WitnessKey::from_seed("w.example/1", algorithm, &[8; 32]).unwrap();
            let line = key.cosign(text, 1_679_315_147).unwrap();
            let note = format!("{text}\n{line}");
            let note = bulla_proof::SignedNote::parse(note.as_bytes()).unwrap();
            assert_eq!(key.public().verify(&note).unwrap().timestamp, 1_679_315_147);
            assert!(other.public().verify(&note).is_err());
            assert!(key.cosign("no checkpoint\n", 1).is_err());
            assert!(key.cosign(text, 1 << 63).is_err());
        }
    }
}
