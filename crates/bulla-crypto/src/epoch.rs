//! The key of an epoch, and what is derived from it.
//!
//! PRK = HKDF-Extract(salt = the epoch frame's 32 random bytes, key = the epoch key), then HKDF-Expand with the
//! label, the log's id and the epoch's number (RFC 5869, SHA-256). The epoch frame holds the third output, a
//! commitment to the key: AES-GCM alone does not bind a ciphertext to one key.

use crate::random::Random;
use crate::scrub::{scrubbed, scrubbed_cipher};
use aws_lc_rs::cipher::{AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_store::{Error, Result};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The index of the salt of a frame's first common item.
const FIRST_ITEM: u64 = 1 << 32;

/// The keys of one epoch.
pub struct EpochKeys {
    secret: Box<Secret>,
    number: u64,
    random: [u8; 32],
    commitment: Hash,
}

/// The secret keys. They are never moved, since a move would leave a copy behind.
#[derive(Default, Zeroize, ZeroizeOnDrop)]
struct Secret {
    body: [u8; 32],
    salt: [u8; 32],
    index: [u8; 32],
    token: [u8; 16],
}

/// The fresh random key of an epoch: what the recipients are given.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct EpochSecret(Box<[u8; 32]>);

impl From<[u8; 32]> for EpochSecret {
    fn from(secret: [u8; 32]) -> Self {
        EpochSecret::of(&secret)
    }
}

impl EpochSecret {
    /// The key with these bytes.
    pub fn of(bytes: &[u8; 32]) -> Self {
        let mut secret = EpochSecret(Box::new([0; 32]));
        secret.0.copy_from_slice(bytes);
        secret
    }

    /// A copy of the key. There is no `Clone`, so that no copy is made unnoticed.
    pub fn copy(&self) -> Self {
        EpochSecret::of(&self.0)
    }

    /// The secret.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A fresh random key.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub fn generate(random: &dyn Random) -> Result<Self> {
        let mut secret = EpochSecret(Box::new([0; 32]));
        random.fill(&mut *secret.0)?;
        Ok(secret)
    }
}

impl EpochKeys {
    /// Derives the keys of epoch `number` of `log`.
    ///
    /// # Errors
    /// None in practice: the lengths are fixed.
    pub fn derive(secret: &EpochSecret, random: [u8; 32], log: LogId, number: u64) -> Result<Self> {
        let mut keys = EpochKeys { secret: Box::default(), number, random, commitment: Hash([0; 32]) };
        scrubbed(|| keys.expand(secret, log))?;
        Ok(keys)
    }

    fn expand(&mut self, secret: &EpochSecret, log: LogId) -> Result<()> {
        let hkdf = Hkdf::<Sha256>::new(Some(&self.random), secret.bytes());
        let number = self.number.to_le_bytes();
        let expand = |label: &str, output: &mut [u8; 32]| {
            hkdf.expand_multi_info(&[label.as_bytes(), &log.0, &number], output)
                .map_err(|_| Error::unavailable("HKDF refused its length"))
        };
        let mut token = Zeroizing::new([0; 32]);
        expand("bulla index token key v1", &mut token)?;
        self.secret.token.copy_from_slice(&token[..16]);
        expand("bulla index key v1", &mut self.secret.index)?;
        expand("bulla body key v1", &mut self.secret.body)?;
        expand("bulla salt key v1", &mut self.secret.salt)?;
        expand("bulla key commitment v1", &mut self.commitment.0)
    }

    /// The epoch's number: its frame's.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The random bytes that the epoch frame shows.
    pub fn random(&self) -> &[u8; 32] {
        &self.random
    }

    /// The commitment to the key.
    pub fn commitment(&self) -> Hash {
        self.commitment
    }

    /// The key of bodies.
    pub fn body(&self) -> &[u8; 32] {
        &self.secret.body
    }

    /// The key of index tokens.
    pub fn token(&self) -> &[u8; 16] {
        &self.secret.token
    }

    /// The key of the part of the index that shows these random bytes.
    ///
    /// # Errors
    /// None in practice: the lengths are fixed.
    pub fn index_part(&self, random: &[u8; 32]) -> Result<Zeroizing<[u8; 32]>> {
        let mut key = Zeroizing::new([0; 32]);
        let hkdf = Hkdf::<Sha256>::new(Some(random), &self.secret.index);
        hkdf.expand(b"bulla index part key v1", &mut *key)
            .map_err(|_| Error::unavailable("HKDF refused its length"))?;
        Ok(key)
    }

    /// Fills `salts` with the salts of a frame's units and, behind those, of its common items, 16 bytes each: salt i is AES-256 under
    /// the salt key of the frame number (64-bit little-endian) and i (64-bit big-endian), that is, a stretch of CTR keystream. Units
    /// count from 0, items from 2^32, which no unit comes to.
    ///
    /// # Errors
    /// Where the cipher refuses.
    pub fn salts(&self, frame: u64, units: usize, items: usize, salts: &mut Vec<u8>) -> Result<()> {
        salts.clear();
        salts.resize((units + items) * 16, 0);
        let (of_units, of_items) = salts.split_at_mut(units * 16);
        self.salts_from(frame, 0, of_units)?;
        if items > 0 { self.salts_from(frame, FIRST_ITEM, of_items) } else { Ok(()) }
    }

    fn salts_from(&self, frame: u64, first: u64, salts: &mut [u8]) -> Result<()> {
        let mut counter = [0; 16];
        counter[..8].copy_from_slice(&frame.to_le_bytes());
        counter[8..].copy_from_slice(&first.to_be_bytes());
        // The library leaves copies of the key on the stack, which this overwrites.
        scrubbed_cipher(|| {
            let key = UnboundCipherKey::new(&AES_256, &self.secret.salt).and_then(EncryptingKey::ctr)?;
            key.less_safe_encrypt(salts, EncryptionContext::Iv128(FixedLength::from(counter)))
        })
        .map_err(|_| Error::unavailable("AES-256 refused the salt key"))?;
        Ok(())
    }
}
