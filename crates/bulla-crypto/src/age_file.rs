//! Writes age files, above all those that hold an epoch key, and looks at what is given as one: <https://age-encryption.org/v1>.
//!
//! Invariant: the age library reads no header that [`check_header`] has not seen. It parses a header anew from its beginning for every
//! line of it, so that what it takes grows with the square of the lines.
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
/// The longest header, in bytes: to the end of the line that begins with `---`. No epoch's recipients need more.
const MAX_HEADER: usize = 64 * 1024;
/// The most stanzas of a header: one or a few a recipient.
const MAX_STANZAS: usize = 1024;
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

/// Checks that the header of an age file ends, and is no longer than one may be.
///
/// # Errors
/// What it is instead, in words.
pub(crate) fn check_header(file: &[u8]) -> Result<(), String> {
    let start = &file[..file.len().min(MAX_HEADER)];
    let lines = start.strip_prefix(VERSION).ok_or("it does not begin with the line of version 1")?;
    match has_end(lines)? {
        true => Ok(()),
        false if file.len() < MAX_HEADER => Err("its header has no end".to_owned()),
        false => Err(format!("its header has more than {MAX_HEADER} bytes")),
    }
}

/// Checks that a file has no more stanzas than one may have, whatever else it is. Nothing but the file is needed for that.
///
/// # Errors
/// That it has more, in words.
pub(crate) fn check_stanzas(file: &[u8]) -> Result<(), String> {
    has_end(&file[..file.len().min(MAX_HEADER)]).map(|_| ())
}

/// Whether the lines of a header have one that ends it.
fn has_end(lines: &[u8]) -> Result<bool, String> {
    let mut stanzas = 0;
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        if line.starts_with(b"---") && line.ends_with(b"\n") {
            return Ok(true);
        }
        stanzas += usize::from(line.starts_with(b"->"));
        if stanzas > MAX_STANZAS {
            return Err(format!("its header has more than {MAX_STANZAS} stanzas"));
        }
    }
    Ok(false)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identities::{self, IdentityFile};
    use crate::recipients::Identity as _;
    use std::collections::HashSet;

    /// So many stanzas, of so many bytes each, that nobody opens.
    struct Others(usize, usize);

    impl age::Recipient for Others {
        fn wrap_file_key(&self, _: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), age::EncryptError> {
            let stanza = || Stanza { tag: "x".to_owned(), args: Vec::new(), body: vec![7; self.1] };
            Ok(((0..self.0).map(|_| stanza()).collect(), HashSet::new()))
        }
    }

    fn file(others: Others, recipient: &str) -> Vec<u8> {
        let recipient = recipient.parse::<age::x25519::Recipient>().unwrap();
        encrypt(&[Box::new(others), Box::new(recipient)], &[7; 32]).unwrap()
    }

    /// A header of many stanzas takes the age library as much time as a log of many blocks takes.
    #[test]
    fn a_header_of_more_stanzas_or_bytes_than_one_may_have_is_refused_before_it_is_read() {
        let (text, recipient) = identities::generate();
        let identity = IdentityFile::parse(&text).unwrap();
        for others in [Others(1023, 0), Others(400, 100), Others(1, 48_000)] {
            assert!(identity.unwrap(&file(others, &recipient)).unwrap().is_some());
        }
        for (others, said) in [
            (Others(1024, 0), "more than 1024 stanzas"),
            (Others(100_000, 0), "more than 1024 stanzas"),
            (Others(700, 80), "more than 65536 bytes"),
            (Others(1, 50_000), "more than 65536 bytes"),
        ] {
            let file = file(others, &recipient);
            for told in [
                identity.unwrap(&file).err().unwrap(),
                identity.decrypt(&file).err().unwrap(),
                identities::decrypt_with_passphrase(&file, "x").err().unwrap(),
            ] {
                assert!(told.to_string().contains(said), "{told}");
            }
        }
    }

    #[test]
    fn a_header_without_an_end_or_of_another_version_is_refused() {
        for (file, said) in [
            (&b""[..], "the line of version 1"),
            (b"age-encryption.org/v2\n-> x\n\n--- \n", "the line of version 1"),
            (b"age-encryption.org/v1\n", "no end"),
            (b"age-encryption.org/v1\n-> x\n\n---", "no end"),
        ] {
            assert!(check_header(file).unwrap_err().contains(said));
        }
        assert_eq!(check_header(b"age-encryption.org/v1\n-> x\n\n--- \n"), Ok(()));
    }
}
