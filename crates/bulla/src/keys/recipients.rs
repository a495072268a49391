//! age recipients and identities: who can unwrap epoch keys. See <https://age-encryption.org/v1>.

use crate::environment::KeyWrap;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::epoch::EpochSecret;
use age::secrecy::ExposeSecret as _;
use std::io::{Read as _, Write as _};
use zeroize::Zeroizing;

/// The longest wrapped key that is read, in bytes.
pub(crate) const MAX_WRAPPED: usize = 64 * 1024;

/// Wraps to age's X25519 recipients (`age1…`).
#[derive(Debug)]
pub struct Age;

impl KeyWrap for Age {
    fn wrap(&self, recipients: &[String], key: &[u8; 32]) -> Result<Vec<u8>> {
        let recipients = recipients.iter().map(|text| parse_recipient(text)).collect::<Result<Vec<_>>>()?;
        let encryptor = age::Encryptor::with_recipients(recipients.iter().map(|recipient| recipient as _));
        let encryptor = encryptor.map_err(|error| Error::invalid(format!("recipients: {error}")))?;
        let mut wrapped = Vec::new();
        let write = |error| Error::io("wrapping an epoch key", error);
        let mut writer = encryptor.wrap_output(&mut wrapped).map_err(write)?;
        writer.write_all(key).map_err(write)?;
        writer.finish().map_err(write)?;
        // A longer one nobody would read again.
        if wrapped.len() > MAX_WRAPPED {
            let (count, length) = (recipients.len(), wrapped.len());
            return Err(Error::invalid(format!(
                "{count} recipients are too many: an epoch key wrapped to them takes {length} bytes, and may take {MAX_WRAPPED}"
            )));
        }
        Ok(wrapped)
    }
}

/// Checks that `text` is a recipient.
///
/// # Errors
/// `Invalid`, naming it.
pub fn check_recipient(text: &str) -> Result<()> {
    parse_recipient(text).map(|_| ())
}

fn parse_recipient(text: &str) -> Result<age::x25519::Recipient> {
    text.parse().map_err(|error| Error::invalid(format!("`{text}` is not an age X25519 recipient: {error}")))
}

/// Unwraps epoch keys.
pub trait Identity: Send + Sync {
    /// The epoch key inside `wrapped`, or `None` where it is wrapped to others.
    ///
    /// # Errors
    /// `Tampered` where `wrapped` is damaged.
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>>;
}

/// The identities of an age identity file.
pub struct IdentityFile(Vec<age::x25519::Identity>);

impl IdentityFile {
    /// Reads an age identity file: a line an identity, `#` begins a comment.
    ///
    /// # Errors
    /// `Invalid` where a line is none, or there is none at all. The message never has the line.
    pub fn parse(text: &str) -> Result<Self> {
        let mut identities = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let identity = line.parse::<age::x25519::Identity>();
            identities.push(identity.map_err(|_| {
                Error::invalid(format!("line {} is not an age identity (AGE-SECRET-KEY-1…)", index + 1))
            })?);
        }
        if identities.is_empty() {
            return Err(Error::invalid("it holds no age identity (AGE-SECRET-KEY-1…)"));
        }
        Ok(IdentityFile(identities))
    }

    /// A new identity: the text of its file, and its recipient.
    pub(crate) fn generate() -> (Zeroizing<String>, String) {
        let identity = age::x25519::Identity::generate();
        let recipient = identity.to_public().to_string();
        let secret = identity.to_string();
        let text = format!("# public key: {recipient}\n{}\n", secret.expose_secret());
        (Zeroizing::new(text), recipient)
    }
}

impl Identity for IdentityFile {
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        let damaged = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Tampered, format!("the wrapped epoch key is not a sound age file: {error}"))
        };
        let decryptor = age::Decryptor::new(wrapped).map_err(|error| damaged(&error))?;
        let mut reader = match decryptor.decrypt(self.0.iter().map(|identity| identity as _)) {
            Ok(reader) => reader.take(64),
            Err(age::DecryptError::NoMatchingKeys) => return Ok(None),
            Err(error) => return Err(damaged(&error)),
        };
        let mut key = Zeroizing::new(Vec::with_capacity(64));
        reader.read_to_end(&mut key).map_err(|error| damaged(&error))?;
        let key = <[u8; 32]>::try_from(key.as_slice()).map_err(|_| damaged(&"it does not hold 32 bytes"))?;
        Ok(Some(EpochSecret(key)))
    }
}
