//! What stands for a person's name in the vault.

use bulla_crypto::subject::Secret;
use bulla_proof::commitment::LogId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Stands for a subject's text; nobody can go from one to the other without the vault's pseudonym key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Pseudonym(pub(super) [u8; 16]);

/// Makes the pseudonyms of one log.
pub(super) struct Pseudonyms(Hmac<Sha256>);

impl Pseudonyms {
    pub(super) fn new(log: LogId, key: &Secret) -> Self {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key.0).expect("HMAC takes any key");
        Pseudonyms(mac.chain_update(b"bulla vault pseudonym v1").chain_update(log.0))
    }

    /// The pseudonym of `subject`: the first half of HMAC-SHA-256.
    pub(super) fn of(&self, subject: &str) -> Pseudonym {
        let output: [u8; 32] = self.0.clone().chain_update(subject).finalize().into_bytes().into();
        let (half, _) = output.split_at(16);
        Pseudonym(half.try_into().unwrap_or_default())
    }
}

impl Pseudonym {
    /// The pseudonym of one `subject`.
    pub(super) fn of(subject: &str, log: LogId, key: &Secret) -> Self {
        Pseudonyms::new(log, key).of(subject)
    }

    /// The first half, which the index has of it.
    pub(super) fn half(self) -> [u8; 8] {
        let [half @ .., _, _, _, _, _, _, _, _] = self.0;
        half
    }

    /// Where the pseudonym lies in the space that the index divides among its buckets.
    pub(super) fn prefix(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }
}
