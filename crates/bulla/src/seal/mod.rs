//! Sealing: rows, keys and numbers in, a frame's commitment and body out. No I/O, no clock, no randomness.

pub mod block;
pub(crate) mod epoch;
pub(crate) mod groups;

use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_proof::hash::{Hash, HashId, sha256};

/// What every frame of a log has in common.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The log's id.
    pub log: LogId,
    /// The hash of units and block roots.
    pub hash: HashId,
}

/// The numbers that a frame was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The frame's.
    pub frame: u64,
    /// Its first entry's, or the next entry's where it has none.
    pub first_entry: u64,
    /// The epoch's.
    pub epoch: u64,
}

/// A frame that waits for its turn to be committed.
pub(crate) struct Sealed {
    pub(crate) commitment: Commitment,
    pub(crate) encoded: [u8; Commitment::LENGTH],
    pub(crate) body: Vec<u8>,
    /// What the entries of a block can be found by.
    pub(crate) tokens: Vec<u64>,
    /// How many personal groups a block has.
    pub(crate) groups: u64,
}

impl Sealed {
    pub(crate) fn new(commitment: Commitment, body: Vec<u8>) -> Self {
        let encoded = commitment.encode();
        Sealed { commitment, encoded, body, tokens: Vec::new(), groups: 0 }
    }

    /// A frame without entries, or with lost ones, whose body is public.
    fn public(
        identity: Identity,
        numbers: Numbers,
        kind: FrameKind,
        entries: u64,
        seconds: i64,
        body: Vec<u8>,
    ) -> Self {
        let commitment = Commitment {
            kind,
            codec: 0,
            hash: identity.hash,
            content_log2: 0,
            log_id: identity.log,
            frame: numbers.frame,
            first_entry: numbers.first_entry,
            entries,
            earliest: seconds,
            latest: seconds,
            epoch: numbers.epoch,
            units: 0,
            root: Hash::ZERO,
            body_length: body.len() as u64,
            body_digest: sha256(&[&body]),
        };
        Sealed::new(commitment, body)
    }

    /// An event.
    pub(crate) fn event(
        identity: Identity,
        numbers: Numbers,
        seconds: i64,
        event: &crate::event::Event,
    ) -> Self {
        Self::public(identity, numbers, FrameKind::Event, 0, seconds, event.encode())
    }

    /// A gap: `entries` numbers whose entries were lost before they could be sealed.
    pub(crate) fn gap(identity: Identity, numbers: Numbers, seconds: i64, entries: u64) -> Self {
        Self::public(identity, numbers, FrameKind::Gap, entries, seconds, Vec::new())
    }
}
