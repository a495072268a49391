//! Signed notes and the keys that verify them, as [C2SP signed-note](https://c2sp.org/signed-note) says, with
//! Ed25519 (RFC 8032) as the one kind of signature that is verified here.

use crate::hash::sha256;
use base64::Engine as _;
use base64::alphabet::STANDARD as STANDARD_ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use ed25519_dalek::{Signature, VerifyingKey};
use std::fmt;
use std::str::FromStr;

/// The longest note, in bytes.
pub const MAX_NOTE: usize = 1 << 20;
/// The most signature lines of a note.
pub const MAX_SIGNATURES: usize = 100;
/// The length of an Ed25519 signature, in bytes.
pub const SIGNATURE_LENGTH: usize = 64;

/// The signature type of C2SP signed-note that is plain Ed25519.
pub(crate) const TYPE_ED25519: u8 = 0x01;
/// The longest public key that is read, in bytes: one of ML-DSA-44 (FIPS 204).
const MAX_PUBLIC_KEY: usize = 1312;
/// What a signature line begins with: an em dash and a space.
const SIGNATURE_PREFIX: &str = "\u{2014} ";
/// The base64 of a signature line, with bits after its end that may be set: the specification does not ask for zeros there, and other
/// readers of it take such a line.
const SIGNATURE_BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD_ALPHABET,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// A name and the Ed25519 public key that goes by it. Shown and read as C2SP's
/// `<name>+<key id, 8 hex digits>+<base64 of 0x01 and the 32 bytes of the key>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    key_id: u32,
    key: VerifyingKey,
}

impl VerifierKey {
    /// The key `public_key` under `name`.
    ///
    /// # Errors
    /// [`NoteError::Name`] for a name that is empty, or has a Unicode space, a control character or a plus;
    /// [`NoteError::PublicKey`] for bytes that are not a point of the curve, or one that accepts forgeries.
    pub fn new(name: impl Into<String>, public_key: [u8; 32]) -> Result<Self, NoteError> {
        let name = name.into();
        if !is_name(&name) {
            return Err(NoteError::Name);
        }
        let key = VerifyingKey::from_bytes(&public_key).map_err(|_| NoteError::PublicKey)?;
        if key.is_weak() {
            return Err(NoteError::PublicKey);
        }
        let key_id = key_id(&name, TYPE_ED25519, &public_key);
        Ok(VerifierKey { name, key_id, key })
    }

    /// The name of the key: for a log's key, the log's origin.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key's id: the first four bytes, big-endian, of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key).
    pub fn key_id(&self) -> u32 {
        self.key_id
    }

    /// The bytes of the public key.
    pub fn public_key(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// Whether the other is this key, under whatever name.
    pub fn is_same_key(&self, other: &VerifierKey) -> bool {
        self.public_key() == other.public_key()
    }

    /// Checks a signature of this key over those bytes.
    pub(crate) fn verify_bytes(
        &self,
        message: &[u8],
        signature: &[u8; SIGNATURE_LENGTH],
    ) -> Result<(), NoteError> {
        let signature = Signature::from_bytes(signature);
        self.key.verify_strict(message, &signature).map_err(|_| NoteError::BadSignature)
    }

    /// The line, with its newline, that carries `signature` of this key in a note.
    pub(crate) fn signature_line(&self, signature: &[u8; SIGNATURE_LENGTH]) -> String {
        signature_line(&self.name, self.key_id, signature)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_key(f, (&self.name, self.key_id), TYPE_ED25519, self.public_key())
    }
}

impl FromStr for VerifierKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let (name, kind, public_key) = split_key(text)?;
        let public_key = public_key.try_into().map_err(|_| NoteError::VerifierKey)?;
        if kind != TYPE_ED25519 {
            return Err(NoteError::VerifierKey);
        }
        let key = VerifierKey::new(name, public_key)?;
        if key.to_string() == text { Ok(key) } else { Err(NoteError::VerifierKey) }
    }
}

/// A note whose form is right. Its text means nothing before [`SignedNote::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote<'a> {
    /// What is signed: all up to the blank line before the signatures, with its last newline.
    pub text: &'a str,
    /// The signatures, in their order.
    pub signatures: Vec<NoteSignature<'a>>,
}

/// One signature line of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature<'a> {
    /// The name of the key.
    pub name: &'a str,
    /// The id of the key.
    pub key_id: u32,
    /// The signature, without the id before it.
    pub signature: Vec<u8>,
}

impl<'a> SignedNote<'a> {
    /// Takes a note apart.
    ///
    /// # Errors
    /// [`NoteError::TooLong`] and [`NoteError::TooManySignatures`] past the limits, [`NoteError::NotText`],
    /// [`NoteError::NoSignatures`] and [`NoteError::SignatureLine`] for another form than the specification's.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_NOTE {
            return Err(NoteError::TooLong);
        }
        let note = std::str::from_utf8(bytes).map_err(|_| NoteError::NotText)?;
        if note.bytes().any(|byte| byte < b' ' && byte != b'\n') {
            return Err(NoteError::NotText);
        }
        let blank = note.rfind("\n\n").ok_or(NoteError::NoSignatures)?;
        let (text, lines) = (&note[..=blank], &note[blank + 2..]);
        Ok(SignedNote { text, signatures: NoteSignature::parse_lines(lines)? })
    }

    /// Puts `signature` at the end, in the place of those that have its name and key id.
    ///
    /// # Errors
    /// [`NoteError::TooManySignatures`] or [`NoteError::TooLong`] where the note would be past the limits; it is then as
    /// it was.
    pub fn keep(&mut self, signature: NoteSignature<'a>) -> Result<(), NoteError> {
        let mut kept = self.clone();
        kept.signatures.retain(|other| (other.name, other.key_id) != (signature.name, signature.key_id));
        kept.signatures.push(signature);
        if kept.signatures.len() > MAX_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        if kept.to_string().len() > MAX_NOTE {
            return Err(NoteError::TooLong);
        }
        *self = kept;
        Ok(())
    }

    /// Checks that `key` signed the text. Signatures of other keys are ignored.
    ///
    /// # Errors
    /// [`NoteError::NotSigned`] where the key signed nothing, [`NoteError::SignedTwice`] where more than one
    /// signature names it, [`NoteError::BadSignature`] where its signature is not of this text.
    pub fn verify(&self, key: &VerifierKey) -> Result<(), NoteError> {
        let mut of_key = self
            .signatures
            .iter()
            .filter(|signature| signature.name == key.name && signature.key_id == key.key_id);
        let signature = of_key.next().ok_or(NoteError::NotSigned)?;
        if of_key.next().is_some() {
            return Err(NoteError::SignedTwice);
        }
        let signature = signature.signature.as_slice().try_into().map_err(|_| NoteError::BadSignature)?;
        key.verify_bytes(self.text.as_bytes(), signature)
    }
}

/// The note, as [`SignedNote::parse`] reads it.
impl fmt::Display for SignedNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| signature.fmt(f))
    }
}

impl<'a> NoteSignature<'a> {
    /// Reads signature lines alone, each with its newline, of which there has to be at least one: what follows a note's
    /// blank line, and what a witness answers with (C2SP tlog-witness).
    ///
    /// A line with set bits after the end of its base64 is left out, whoever it names: it counts for nobody, so that no bit of a
    /// signature that counts can be changed, and keeps nobody from reading the others.
    ///
    /// # Errors
    /// [`NoteError::NoSignatures`] where none is left, [`NoteError::TooManySignatures`] or [`NoteError::SignatureLine`].
    pub fn parse_lines(lines: &'a str) -> Result<Vec<Self>, NoteError> {
        let lines = lines.strip_suffix('\n').ok_or(NoteError::NoSignatures)?;
        let mut signatures = Vec::new();
        for (index, line) in lines.split('\n').enumerate() {
            if index == MAX_SIGNATURES {
                return Err(NoteError::TooManySignatures);
            }
            let signature = parse_signature(line).ok_or(NoteError::SignatureLine)?;
            if signature.to_string().strip_suffix('\n') == Some(line) {
                signatures.push(signature);
            }
        }
        if signatures.is_empty() { Err(NoteError::NoSignatures) } else { Ok(signatures) }
    }
}

/// The line, with its newline.
impl fmt::Display for NoteSignature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&signature_line(self.name, self.key_id, &self.signature))
    }
}

/// The key id that C2SP signed-note recommends.
pub(crate) fn key_id(name: &str, kind: u8, public_key: &[u8]) -> u32 {
    let [a, b, c, d, ..] = sha256(&[name.as_bytes(), b"\n", &[kind], public_key]).0;
    u32::from_be_bytes([a, b, c, d])
}

/// The line, with its newline, that carries a signature.
pub(crate) fn signature_line(name: &str, key_id: u32, signature: &[u8]) -> String {
    let bytes = [&key_id.to_be_bytes()[..], signature].concat();
    format!("{SIGNATURE_PREFIX}{name} {}\n", STANDARD.encode(bytes))
}

/// Writes a verifier key.
pub(crate) fn write_key(
    f: &mut fmt::Formatter<'_>,
    (name, key_id): (&str, u32),
    kind: u8,
    public_key: &[u8],
) -> fmt::Result {
    write!(f, "{name}+{key_id:08x}+{}", STANDARD.encode([&[kind], public_key].concat()))
}

/// The name, the signature type and the public key of a verifier key, whose key id is yet to be compared.
pub(crate) fn split_key(text: &str) -> Result<(&str, u8, Vec<u8>), NoteError> {
    let (name, rest) = text.split_once('+').ok_or(NoteError::VerifierKey)?;
    let (_, encoded) = rest.split_once('+').ok_or(NoteError::VerifierKey)?;
    let bytes = decode_base64(encoded, 1 + MAX_PUBLIC_KEY).ok_or(NoteError::VerifierKey)?;
    let (kind, public_key) = bytes.split_first().ok_or(NoteError::VerifierKey)?;
    Ok((name, *kind, public_key.to_vec()))
}

fn parse_signature(line: &str) -> Option<NoteSignature<'_>> {
    let (name, encoded) = line.strip_prefix(SIGNATURE_PREFIX)?.split_once(' ')?;
    let bytes = SIGNATURE_BASE64.decode(encoded).ok()?;
    let (key_id, signature) = bytes.split_first_chunk()?;
    (is_name(name) && !signature.is_empty()).then(|| NoteSignature {
        name,
        key_id: u32::from_be_bytes(*key_id),
        signature: signature.to_vec(),
    })
}

pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c == '+' || c.is_whitespace() || c.is_ascii_control())
}

/// Reads standard base64 of at most `limit` bytes.
fn decode_base64(text: &str, limit: usize) -> Option<Vec<u8>> {
    if text.len() > limit.div_ceil(3) * 4 {
        return None;
    }
    STANDARD.decode(text).ok()
}

/// Why a note, a key or a checkpoint is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteError {
    /// The note is longer than [`MAX_NOTE`].
    TooLong,
    /// The note is not UTF-8, or has a control character other than newline.
    NotText,
    /// The note has no blank line, or no whole signature line after it.
    NoSignatures,
    /// The note has more than [`MAX_SIGNATURES`] signature lines.
    TooManySignatures,
    /// A signature line is malformed.
    SignatureLine,
    /// A key's name is empty, or has a space, a control character or a plus.
    Name,
    /// A public key is not one of Ed25519, or a weak one.
    PublicKey,
    /// A verifier key is malformed, of a type that does not belong there, or its id is not that of its name and key.
    VerifierKey,
    /// A name or an origin is longer than the 255 bytes that a signature with ML-DSA-44 has room for.
    LongName,
    /// The key has not signed the note.
    NotSigned,
    /// Several signatures of the note name the key.
    SignedTwice,
    /// The key's signature does not verify.
    BadSignature,
    /// The time in a cosignature is past 2^63 - 1 seconds.
    Timestamp,
    /// The checkpoint has fewer than three lines, an empty one, or no newline at its end.
    CheckpointLines,
    /// The checkpoint's size is not a decimal number in its shortest form.
    CheckpointSize,
    /// The checkpoint's root is not the base64 of 32 bytes.
    CheckpointRoot,
    /// The checkpoint is of another log than the key's.
    Origin,
}

impl fmt::Display for NoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the note is longer than 1 MiB",
            Self::NotText => "the note is not UTF-8 text, or has a control character",
            Self::NoSignatures => "the note has no signature after a blank line",
            Self::TooManySignatures => "the note has more than 100 signatures",
            Self::SignatureLine => "the note has a malformed signature line",
            Self::Name => "the key's name is empty, or has a space, a control character or a plus",
            Self::PublicKey => "the public key is not a sound Ed25519 key",
            Self::VerifierKey => {
                "the verifier key is malformed, of another type, or its id is not that of its name and key"
            }
            Self::LongName => {
                "the key's name or the log's origin is longer than 255 bytes, too long for ML-DSA-44"
            }
            Self::NotSigned => "the key has not signed the note",
            Self::SignedTwice => "the note has several signatures of the key",
            Self::BadSignature => "the key's signature of the note does not verify",
            Self::Timestamp => "the time in the cosignature is past 2^63 - 1 seconds",
            Self::CheckpointLines => "the checkpoint has fewer than three lines, or an empty one",
            Self::CheckpointSize => "the checkpoint's size is not a decimal number in its shortest form",
            Self::CheckpointRoot => "the checkpoint's root is not the base64 of 32 bytes",
            Self::Origin => "the checkpoint is of another log than the key's",
        })
    }
}

impl std::error::Error for NoteError {}
