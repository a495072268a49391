//! The body of an epoch frame, which is public.
//!
//! ```text
//! offset  size  field
//!      0     4  version: 1, then three zeros
//!      4    32  random: the salt of the epoch's key derivation
//!     36    32  commitment to the epoch key
//!     68    32  SHA-256 of [log]
//!    100    32  the seal of the frame before; zero for frame 0
//!    132     4  length of the rest
//!    136     …  the epoch key as an age file
//! ```

use super::sealed::{FrameNumbers, LogIdentity, Sealed};
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::recipients::{self, MAX_WRAPPED};
use bulla_crypto::seal_chain::Seal;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_store::{Error, Result};

const FIXED: usize = 136;
const CONFIG: std::ops::Range<usize> = 68..100;
const PREVIOUS_SEAL: std::ops::Range<usize> = 100..132;
const VERSION: [u8; 4] = [1, 0, 0, 0];
/// The longest body of an epoch frame, in bytes.
pub(crate) const MAX_EPOCH: u64 = (FIXED + MAX_WRAPPED) as u64;

/// What an epoch frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EpochBody {
    pub(crate) random: [u8; 32],
    pub(crate) key_commitment: Hash,
    pub(crate) config: Hash,
    pub(crate) previous_seal: Seal,
    pub(crate) wrapped: Vec<u8>,
}

impl EpochBody {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(FIXED + self.wrapped.len());
        body.extend_from_slice(&VERSION);
        body.extend_from_slice(&self.random);
        body.extend_from_slice(&self.key_commitment.0);
        body.extend_from_slice(&self.config.0);
        body.extend_from_slice(&self.previous_seal);
        body.extend_from_slice(
            &u32::try_from(self.wrapped.len()).expect("a wrapped key is short").to_le_bytes(),
        );
        body.extend_from_slice(&self.wrapped);
        body
    }

    /// # Errors
    /// `Tampered` where the body is not an epoch's.
    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let malformed = |what: &str| Error::tampered(format!("the epoch frame's {what}"));
        let (fixed, wrapped) = body.split_at_checked(FIXED).ok_or_else(|| malformed("body is too short"))?;
        if fixed[..4] != VERSION {
            return Err(malformed("version is unknown"));
        }
        let field = |at: usize| -> [u8; 32] { fixed[at..at + 32].try_into().unwrap_or_default() };
        let length = u32::from_le_bytes(fixed[132..136].try_into().unwrap_or_default()) as usize;
        if length != wrapped.len() || length > MAX_WRAPPED {
            return Err(malformed("wrapped key has the wrong length"));
        }
        recipients::check_stanzas(wrapped)?;
        Ok(EpochBody {
            random: field(4),
            key_commitment: Hash(field(36)),
            config: Hash(field(68)),
            previous_seal: field(100),
            wrapped: wrapped.to_vec(),
        })
    }
}

impl EpochBody {
    /// The keys of the epoch whose frame has this body and `commitment`; `None` where `identity` is no recipient.
    ///
    /// # Errors
    /// `Tampered` where the wrapped key is not the one that the body commits to; whatever the identity fails with.
    pub(crate) fn unlock(
        &self,
        commitment: &Commitment,
        identity: &dyn recipients::Identity,
    ) -> Result<Option<EpochKeys>> {
        let Some(secret) = identity.unwrap(&self.wrapped)? else { return Ok(None) };
        let keys = EpochKeys::derive(&secret, self.random, commitment.log_id, commitment.frame)?;
        match keys.commitment() == self.key_commitment {
            true => Ok(Some(keys)),
            false => Err(Error::tampered("the epoch's key is not the one that it commits to")),
        }
    }
}

/// An epoch frame for `keys`, whose wrapped form is `wrapped`.
///
/// Its body holds the seal of the frame before, which only the committer knows: it fills that in with
/// [`set_previous_seal`], before anything is written.
pub(crate) fn seal_epoch(
    identity: LogIdentity,
    numbers: FrameNumbers,
    seconds: i64,
    config: Hash,
    keys: &EpochKeys,
    wrapped: Vec<u8>,
) -> Sealed {
    let body = EpochBody {
        random: *keys.random(),
        key_commitment: keys.commitment(),
        config,
        previous_seal: [0; 32],
        wrapped,
    };
    Sealed::public(identity, numbers, FrameKind::Epoch, 0, seconds, body.encode())
}

/// The digest of `[log]` in an epoch frame of this process's own.
pub(crate) fn config(frame: &Sealed) -> Hash {
    Hash(frame.body[CONFIG].try_into().expect("it has the length of a digest"))
}

/// Puts the seal of the frame before into an epoch frame.
pub(crate) fn set_previous_seal(frame: &mut Sealed, seal: &Seal) {
    frame.body[PREVIOUS_SEAL].copy_from_slice(seal);
    frame.commitment.body_digest = bulla_proof::hash::sha256(&[&frame.body]);
    frame.encoded = frame.commitment.encode();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_stanzas(stanzas: usize) -> Vec<u8> {
        let wrapped =
            ["age-encryption.org/v1\n", &"-> a\n\n".repeat(stanzas), "--- \n-> no stanza\n"].concat();
        let (key_commitment, config) = (Hash::ZERO, Hash::ZERO);
        let wrapped = wrapped.into_bytes();
        EpochBody { random: [1; 32], key_commitment, config, previous_seal: [0; 32], wrapped }.encode()
    }

    /// Whether the key can be had from it is for who has an identity; that nobody is to try is for everybody to see.
    #[test]
    fn a_key_in_more_stanzas_than_readers_look_at_is_refused_without_an_identity() {
        assert!(EpochBody::decode(&of_stanzas(1024)).is_ok());
        let error = EpochBody::decode(&of_stanzas(1025)).unwrap_err();
        assert_eq!(error.kind(), bulla_store::ErrorKind::Tampered);
        assert!(error.to_string().contains("more than 1024 stanzas"), "{error}");
    }
}
