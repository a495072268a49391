//! The cipher of bodies and groups.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use bulla_store::{Error, ErrorKind, Result};

/// AES-256-GCM with the frame number as nonce.
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
