//! Writes age files, above all those that hold an epoch key: <https://age-encryption.org/v1>.
//!
//! The age library and plugins make the stanzas. The rest of a file around an epoch key is written here, because the library leaves
//! copies in memory of what it encrypts, and a host must not be able to read an epoch that it has closed.

use crate::random::{Random, SystemRandom};
use crate::{plugin, stanza};
use age_core::format::{FileKey, Stanza, is_arbitrary_string};
use age_core::secrecy::ExposeSecret as _;
use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bulla_store::{Error, Result};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::Write as _;
use zeroize::Zeroizing;

const VERSION: &[u8] = b"age-encryption.org/v1\n";
/// The nonce of a payload's chunk that is both its first and its last.
const ONLY_CHUNK: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// `key` as a binary age file.
///
/// # Errors
/// `Invalid` for recipients that do not go together, `Unavailable` where a plugin fails.
pub(crate) fn encrypt(recipients: &[Box<dyn age::Recipient + '_>], key: &[u8; 32]) -> Result<Vec<u8>> {
    let mut random = Zeroizing::new([0; 16]);
    SystemRandom.fill(&mut *random)?;
    let file_key = FileKey::init_with_mut(|file_key| *file_key = *random);
    let mut file = Zeroizing::new(VERSION.to_vec());
    for Stanza { tag, args, body } in stanzas(recipients, &file_key)? {
        stanza::write(&mut file, &tag, &args.iter().map(String::as_str).collect::<Vec<_>>(), &body);
    }
    file.extend_from_slice(b"---");
    let mac_key = derive(&[], b"header", &file_key)?;
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&*mac_key).expect("HMAC takes any key");
    mac.update(&file);
    let mac = BASE64_STANDARD_NO_PAD.encode(mac.finalize().into_bytes());
    file.extend_from_slice(format!(" {mac}\n").as_bytes());

    let mut nonce = [0; 16];
    SystemRandom.fill(&mut nonce)?;
    file.extend_from_slice(&nonce);
    let refused = |_| Error::unavailable("ChaCha20-Poly1305 refused an epoch key");
    let payload_key = derive(&nonce, b"payload", &file_key)?;
    let cipher = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &*payload_key).map_err(refused)?);
    let mut chunk = Zeroizing::new(*key);
    let nonce = Nonce::assume_unique_for_key(ONLY_CHUNK);
    let tag = cipher.seal_in_place_separate_tag(nonce, Aad::empty(), &mut *chunk).map_err(refused)?;
    file.extend_from_slice(&*chunk);
    file.extend_from_slice(tag.as_ref());
    Ok(std::mem::take(&mut *file))
}

/// Any `content` as a binary age file. The age library writes it, and may leave copies of the content in memory.
///
/// # Errors
/// As [`encrypt`].
pub(crate) fn encrypt_content(
    recipients: &[Box<dyn age::Recipient + '_>],
    content: &[u8],
) -> Result<Vec<u8>> {
    let encryptor = age::Encryptor::with_recipients(recipients.iter().map(|recipient| &**recipient as _));
    let encryptor = encryptor.map_err(not_wrapped)?;
    let mut file = Vec::new();
    let mut writer = encryptor.wrap_output(&mut file).map_err(|error| Error::io("encrypting", error))?;
    writer.write_all(content).map_err(|error| Error::io("encrypting", error))?;
    writer.finish().map_err(|error| Error::io("encrypting", error))?;
    Ok(file)
}

fn not_wrapped(error: age::EncryptError) -> Error {
    match error {
        age::EncryptError::Io(error) if plugin::is_failure(&error) => plugin::failure(error),
        error => Error::invalid(format!("recipients: {error}")),
    }
}

/// The file key, wrapped to every recipient. A recipient may have labels; age refuses a file whose recipients' labels differ, by
/// which post-quantum recipients, for instance, accept only each other.
fn stanzas(recipients: &[Box<dyn age::Recipient + '_>], key: &FileKey) -> Result<Vec<Stanza>> {
    let (mut stanzas, mut common) = (Vec::new(), None);
    for recipient in recipients {
        let (wrapped, labels) = recipient.wrap_file_key(key).map_err(not_wrapped)?;
        if common.get_or_insert_with(|| labels.clone()) != &labels || !labels.iter().all(is_arbitrary_string)
        {
            return Err(Error::invalid(
                "these recipients do not go together: one of them insists on others of its kind alone \
                 (post-quantum ones, for instance)",
            ));
        }
        stanzas.extend(wrapped);
    }
    match stanzas.is_empty() {
        true => Err(Error::invalid("there is no recipient: nobody could read the log")),
        false => Ok(stanzas),
    }
}

fn derive(salt: &[u8], label: &[u8], key: &FileKey) -> Result<Zeroizing<[u8; 32]>> {
    let mut derived = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(salt), key.expose_secret())
        .expand(label, &mut *derived)
        .map_err(|_| Error::unavailable("HKDF refused its length"))?;
    Ok(derived)
}
