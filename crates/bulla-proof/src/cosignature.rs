//! Cosignatures: what a witness signs of another log's checkpoint, and at what time, as
//! [C2SP tlog-cosignature](https://c2sp.org/tlog-cosignature) says, with Ed25519 (`cosignature/v1`) and with ML-DSA-44
//! (FIPS 204, pure, with an empty context). A log, too, signs with ML-DSA-44 in this form: C2SP tlog-checkpoint.

use crate::checkpoint::Checkpoint;
use crate::note::{
    NoteError, NoteSignature, SignedNote, is_name, key_id, signature_line, split_key, write_key,
};
use crate::note::{SIGNATURE_LENGTH, VerifierKey};
use ml_dsa::signature::Verifier as _;
use ml_dsa::{EncodedVerifyingKey, MlDsa44};
use std::fmt;
use std::str::FromStr;

/// The length of a public key of ML-DSA-44, in bytes (FIPS 204, table 2).
pub const ML_DSA_44_PUBLIC_KEY: usize = 1312;
/// The length of a signature of ML-DSA-44, in bytes (FIPS 204, table 2).
pub const ML_DSA_44_SIGNATURE: usize = 2420;

/// The signature types of C2SP signed-note for cosignatures.
const TYPE_ED25519: u8 = 0x04;
pub(crate) const TYPE_ML_DSA_44: u8 = 0x06;
/// What a message for ML-DSA-44 begins with.
const LABEL: &[u8; 12] = b"subtree/v1\n\0";
/// The length of the time before the signature.
const TIMESTAMP: usize = 8;

/// A name and the public key of a witness that goes by it. Shown and read as C2SP's
/// `<name>+<key id, 8 hex digits>+<base64 of the signature type and the public key>`, with type 0x04 (Ed25519) or 0x06
/// (ML-DSA-44).
#[derive(Clone, PartialEq, Eq)]
pub struct CosignerKey {
    name: String,
    key_id: u32,
    key: PublicKey,
}

#[derive(Clone, PartialEq, Eq)]
enum PublicKey {
    /// By the name of the key, whose id of another type is not used.
    Ed25519(Box<VerifierKey>),
    MlDsa44(Box<[u8; ML_DSA_44_PUBLIC_KEY]>),
}

/// How a witness signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CosignatureAlgorithm {
    /// Ed25519 (RFC 8032), over the whole text of the checkpoint: `cosignature/v1`.
    Ed25519,
    /// ML-DSA-44 (FIPS 204), over origin, size and root: `subtree/v1`. Lines after the root are not signed.
    MlDsa44,
}

/// What a cosignature that verifies says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cosignature {
    /// When it was made, in seconds since 1970, by the clock of who made it: by then no larger tree of the log had been
    /// seen there. 0, with ML-DSA-44, says only that the tree goes on from all that were seen.
    pub timestamp: u64,
}

impl CosignerKey {
    /// The Ed25519 key `public_key` under `name`.
    ///
    /// # Errors
    /// As [`VerifierKey::new`].
    pub fn ed25519(name: impl Into<String>, public_key: [u8; 32]) -> Result<Self, NoteError> {
        let name = name.into();
        let key = VerifierKey::new(name.clone(), public_key)?;
        Ok(CosignerKey {
            key_id: key_id(&name, TYPE_ED25519, &public_key),
            name,
            key: PublicKey::Ed25519(Box::new(key)),
        })
    }

    /// The ML-DSA-44 key `public_key` under `name`. Any bytes of that length are one.
    ///
    /// # Errors
    /// [`NoteError::Name`] as [`VerifierKey::new`], [`NoteError::LongName`] for a name of more than 255 bytes.
    pub fn ml_dsa_44(
        name: impl Into<String>,
        public_key: &[u8; ML_DSA_44_PUBLIC_KEY],
    ) -> Result<Self, NoteError> {
        let name = name.into();
        if !is_name(&name) {
            return Err(NoteError::Name);
        }
        length(&name)?;
        Ok(CosignerKey {
            key_id: key_id(&name, TYPE_ML_DSA_44, public_key),
            name,
            key: PublicKey::MlDsa44(Box::new(*public_key)),
        })
    }

    /// The name of the key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key's id: the first four bytes, big-endian, of SHA-256(name ‖ 0x0A ‖ signature type ‖ public key).
    pub fn key_id(&self) -> u32 {
        self.key_id
    }

    /// How it signs.
    pub fn algorithm(&self) -> CosignatureAlgorithm {
        match &self.key {
            PublicKey::Ed25519(_) => CosignatureAlgorithm::Ed25519,
            PublicKey::MlDsa44(_) => CosignatureAlgorithm::MlDsa44,
        }
    }

    /// The bytes of the public key: 32 of Ed25519, [`ML_DSA_44_PUBLIC_KEY`] of ML-DSA-44.
    pub fn public_key(&self) -> &[u8] {
        match &self.key {
            PublicKey::Ed25519(key) => key.public_key(),
            PublicKey::MlDsa44(key) => &key[..],
        }
    }

    /// Whether the other is this key, under whatever name.
    pub fn is_same_key(&self, other: &CosignerKey) -> bool {
        self.algorithm() == other.algorithm() && self.public_key() == other.public_key()
    }

    /// The bytes that this key signs where it cosigns the checkpoint whose text is `text`, at `timestamp`, in seconds
    /// since 1970.
    ///
    /// # Errors
    /// [`NoteError::Timestamp`] past 2^63 - 1; what [`Checkpoint::parse`] refuses; [`NoteError::LongName`] for an origin
    /// of more than 255 bytes, with ML-DSA-44.
    pub fn message(&self, text: &str, timestamp: u64) -> Result<Vec<u8>, NoteError> {
        if i64::try_from(timestamp).is_err() {
            return Err(NoteError::Timestamp);
        }
        let checkpoint = Checkpoint::parse(text)?;
        Ok(match &self.key {
            PublicKey::Ed25519(_) => format!("cosignature/v1\ntime {timestamp}\n{text}").into_bytes(),
            PublicKey::MlDsa44(_) => [
                &LABEL[..],
                &[length(&self.name)?],
                self.name.as_bytes(),
                &timestamp.to_be_bytes(),
                &[length(&checkpoint.origin)?],
                checkpoint.origin.as_bytes(),
                &0_u64.to_be_bytes(),
                &checkpoint.size.to_be_bytes(),
                &checkpoint.root.0,
            ]
            .concat(),
        })
    }

    /// The signature line, with its newline, of what this key signed at `timestamp`: `signature` is of
    /// [`CosignerKey::message`].
    pub fn signature_line(&self, timestamp: u64, signature: &[u8]) -> String {
        signature_line(&self.name, self.key_id, &[&timestamp.to_be_bytes()[..], signature].concat())
    }

    /// Whether that signature says that it is of this key: it has its name and its id.
    pub fn is_of(&self, signature: &NoteSignature<'_>) -> bool {
        (signature.name, signature.key_id) == (&self.name, self.key_id)
    }

    /// Checks one signature, which says that it is of this key, of the checkpoint whose text is `text`.
    ///
    /// # Errors
    /// [`NoteError::NotSigned`] where it is of another key, what [`CosignerKey::message`] refuses, and
    /// [`NoteError::BadSignature`].
    pub fn verify_signature(
        &self,
        text: &str,
        signature: &NoteSignature<'_>,
    ) -> Result<Cosignature, NoteError> {
        if !self.is_of(signature) {
            return Err(NoteError::NotSigned);
        }
        let (timestamp, signature) =
            signature.signature.split_first_chunk::<TIMESTAMP>().ok_or(NoteError::BadSignature)?;
        let timestamp = u64::from_be_bytes(*timestamp);
        let message = self.message(text, timestamp)?;
        match &self.key {
            PublicKey::Ed25519(key) => {
                let signature: &[u8; SIGNATURE_LENGTH] =
                    signature.try_into().map_err(|_| NoteError::BadSignature)?;
                key.verify_bytes(&message, signature)?;
            }
            PublicKey::MlDsa44(key) => {
                let encoded = EncodedVerifyingKey::<MlDsa44>::from(**key);
                let signature = ml_dsa::Signature::<MlDsa44>::try_from(signature);
                let signature = signature.map_err(|_| NoteError::BadSignature)?;
                ml_dsa::VerifyingKey::<MlDsa44>::decode(&encoded)
                    .verify(&message, &signature)
                    .map_err(|_| NoteError::BadSignature)?;
            }
        }
        Ok(Cosignature { timestamp })
    }

    /// Checks that this key cosigned the checkpoint of a note. Where it did several times, which happens where notes were
    /// put together from several, each has to hold, and the newest is what is told.
    ///
    /// # Errors
    /// [`NoteError::NotSigned`] where the note has no signature of this key; otherwise as
    /// [`CosignerKey::verify_signature`].
    pub fn verify(&self, note: &SignedNote<'_>) -> Result<Cosignature, NoteError> {
        let mut newest = None;
        for signature in note.signatures.iter().filter(|signature| self.is_of(signature)) {
            newest = newest.max(Some(self.verify_signature(note.text, signature)?));
        }
        newest.ok_or(NoteError::NotSigned)
    }
}

/// As it is shown, since a key of ML-DSA-44 as numbers is of no use to anybody.
impl fmt::Debug for CosignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CosignerKey({self})")
    }
}

impl fmt::Display for CosignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.algorithm() {
            CosignatureAlgorithm::Ed25519 => TYPE_ED25519,
            CosignatureAlgorithm::MlDsa44 => TYPE_ML_DSA_44,
        };
        write_key(f, (&self.name, self.key_id), kind, self.public_key())
    }
}

impl FromStr for CosignerKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let (name, kind, public_key) = split_key(text)?;
        let malformed = |_| NoteError::VerifierKey;
        let key = match kind {
            TYPE_ED25519 => CosignerKey::ed25519(name, public_key.try_into().map_err(malformed)?)?,
            TYPE_ML_DSA_44 => {
                let public_key: Box<[u8; ML_DSA_44_PUBLIC_KEY]> = public_key.try_into().map_err(malformed)?;
                CosignerKey::ml_dsa_44(name, &public_key)?
            }
            _ => return Err(NoteError::VerifierKey),
        };
        if key.to_string() == text { Ok(key) } else { Err(NoteError::VerifierKey) }
    }
}

/// The byte before a name of 1 to 255 bytes.
fn length(name: &str) -> Result<u8, NoteError> {
    u8::try_from(name.len()).map_err(|_| NoteError::LongName)
}
