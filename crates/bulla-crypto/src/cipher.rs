//! The ciphers of bodies and of groups.

use aes::Aes256;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use bulla_store::{Error, ErrorKind, Result};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};

/// What encrypts bodies and groups: AES-256-GCM with the frame number as nonce, and AES-256-CTR.
pub trait Cipher: Send + Sync {
    /// Encrypts `text` in place and appends the 16-byte tag.
    ///
    /// # Errors
    /// Where the cipher refuses; the frame is then abandoned.
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()>;
    /// Decrypts in place and cuts the tag off.
    ///
    /// # Errors
    /// `Tampered` where the tag does not match.
    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()>;
    /// Encrypts a group in place: [`apply_key_stream`]. The key must be of this group alone.
    ///
    /// # Errors
    /// Where the cipher refuses; the frame is then abandoned.
    #[expect(clippy::disallowed_methods, reason = "it encrypts")]
    fn seal_group(&self, key: &[u8; 32], text: &mut [u8]) -> Result<()> {
        apply_key_stream(key, text);
        Ok(())
    }
}

/// Encrypts or decrypts a group in place: AES-256-CTR (NIST SP 800-38A), from a counter of zeros. Nothing tells whether the key is the
/// right one, nor whether the bytes are what they were: a commitment tells the one, the hash of the group's unit the other.
/// It allocates nothing, and clears its round keys.
pub fn apply_key_stream(key: &[u8; 32], text: &mut [u8]) {
    Ctr128BE::<Aes256>::new(key.into(), &[0; 16].into()).apply_keystream(text);
}

/// AES-256-GCM of AWS-LC.
#[derive(Debug)]
pub struct AesGcm;

impl AesGcm {
    fn key(key: &[u8; 32]) -> Result<LessSafeKey> {
        let key = UnboundKey::new(&AES_256_GCM, key);
        Ok(LessSafeKey::new(key.map_err(|_| Error::unavailable("AES-256-GCM refused the key"))?))
    }

    fn nonce(frame: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&frame.to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Cipher for AesGcm {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        Self::key(key)?
            .seal_in_place_append_tag(Self::nonce(frame), Aad::from(additional), text)
            .map_err(|_| Error::unavailable(format!("AES-256-GCM refused frame {frame}")))
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        let length = Self::key(key)?
            .open_in_place(Self::nonce(frame), Aad::from(additional), text)
            .map_err(|_| {
                Error::new(ErrorKind::Tampered, format!("frame {frame}: the body does not decrypt"))
            })?
            .len();
        text.truncate(length);
        Ok(())
    }
}
