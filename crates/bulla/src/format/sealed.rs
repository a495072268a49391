//! What sealing makes of a frame: its commitment and its body.

use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_proof::hash::{Hash, HashId, sha256};

/// What every frame of a log has in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogIdentity {
    /// The log's id.
    pub(crate) log: LogId,
    /// The hash of units and block roots.
    pub(crate) hash: HashId,
}

/// The numbers that a frame was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameNumbers {
    /// The frame's.
    pub(crate) frame: u64,
    /// Its first entry's, or the next entry's where it has none.
    pub(crate) first_entry: u64,
    /// The epoch's.
    pub(crate) epoch: u64,
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
    pub(crate) fn public(
        identity: LogIdentity,
        numbers: FrameNumbers,
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
            sources_length: 0,
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
        identity: LogIdentity,
        numbers: FrameNumbers,
        seconds: i64,
        event: &crate::format::event::Event,
    ) -> Self {
        Self::public(identity, numbers, FrameKind::Event, 0, seconds, event.encode())
    }

    /// A gap: `entries` numbers whose entries were lost before they could be sealed.
    pub(crate) fn gap(identity: LogIdentity, numbers: FrameNumbers, seconds: i64, entries: u64) -> Self {
        Self::public(identity, numbers, FrameKind::Gap, entries, seconds, Vec::new())
    }
}
