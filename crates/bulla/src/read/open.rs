//! From a located frame to its rows: digest, decryption, decoding, units.

use crate::environment::{AesGcm, Cipher};
use crate::error::{Error, Result};
use crate::finding::{Finding, FindingKind};
use crate::frame;
use crate::keys::epoch::EpochKeys;
use crate::seal::Identity;
use crate::seal::block;
use crate::seal::columns::{Decoder, Rows};
use crate::segment::SegmentName;
use crate::store::StoreFile;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::unit::SALT_LENGTH;
use std::sync::Arc;

/// A frame that was found where it should be. Its commitment is the tree's; its body is not trusted yet.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) commitment: Commitment,
    pub(crate) segment: SegmentName,
    pub(crate) file: Arc<dyn StoreFile>,
    pub(crate) offset: u64,
    /// The keys of its epoch, where they are at hand.
    pub(crate) keys: Option<Arc<EpochKeys>>,
    /// Whether they are not because the identity is no recipient of the epoch: not because that is damaged.
    pub(crate) foreign: bool,
}

/// A frame whose body is what its commitment says.
pub(crate) struct Verified<'a> {
    frame: &'a Located,
    body: Vec<u8>,
}

impl Verified<'_> {
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }
}

/// Why a frame cannot be read: the finding that it makes.
pub(crate) struct Unreadable {
    pub(crate) kind: FindingKind,
    pub(crate) detail: String,
}

impl Unreadable {
    /// What it is in `frame`.
    pub(crate) fn finding(self, frame: &Located) -> Finding {
        let commitment = &frame.commitment;
        let finding = Finding::new(self.kind, self.detail).at(frame.segment, frame.offset);
        finding.frame(commitment.frame).entries(commitment.first_entry, commitment.entries)
    }

    /// The same for somebody who cannot go on without the frame.
    pub(crate) fn error(self, frame: &Located) -> Error {
        Error::tampered(format!("{}; `bulla verify` tells all", self.finding(frame)))
    }
}

impl Located {
    /// Reads the body and checks its digest.
    ///
    /// # Errors
    /// The outer one where the file cannot be read, the inner one where the body is damaged.
    pub(crate) fn verify(&self) -> Result<Result<Verified<'_>, Unreadable>> {
        let damaged = |detail: &str| Unreadable { kind: FindingKind::BodyDamaged, detail: detail.to_owned() };
        match frame::read_body(&*self.file, self.offset, &self.commitment) {
            Ok(body) if sha256(&[&body]) == self.commitment.body_digest => {
                Ok(Ok(Verified { frame: self, body }))
            }
            Ok(_) => Ok(Err(damaged("the body does not have the digest in its commitment"))),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Ok(Err(damaged("the segment ends inside the body")))
            }
            Err(error) => Err(Error::io(format!("reading {}", self.segment), error)),
        }
    }
}

/// Opens blocks one after the other, reusing its working memory.
#[derive(Default)]
pub(crate) struct BlockOpener {
    decoder: Decoder,
    rows: Rows,
    salts: Vec<u8>,
    units: Vec<Hash>,
}

impl BlockOpener {
    /// Decrypts and decodes a block.
    pub(crate) fn open(&mut self, verified: Verified<'_>, keys: &EpochKeys) -> Result<(), Unreadable> {
        let commitment = &verified.frame.commitment;
        let invalid = |detail: String| Unreadable { kind: FindingKind::BlockInvalid, detail };
        assert_eq!(commitment.kind, FrameKind::Block, "only blocks are opened");
        let mut body = verified.body;
        let additional = commitment.additional_data();
        AesGcm
            .open(keys.body(), commitment.frame, &additional, &mut body)
            .map_err(|_| invalid("the body does not decrypt under its epoch's key".to_owned()))?;
        // Both are bounded by the commitment's own rules.
        let entries = usize::try_from(commitment.entries).unwrap_or(usize::MAX);
        self.decoder
            .decode(&body, entries, 1 << commitment.content_log2, &mut self.rows)
            .map_err(|error| invalid(format!("the block does not decode: {error}")))
    }

    /// The rows of the block opened last.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The units of the block opened last, and their salts, which [`BlockOpener::check_units`] has derived.
    pub(crate) fn units(&self, commitment: &Commitment) -> (Vec<Hash>, &[[u8; SALT_LENGTH]]) {
        let identity = Identity { log: commitment.log_id, hash: commitment.hash };
        let mut units = Vec::with_capacity(self.rows.len());
        block::row_units(identity, commitment.first_entry, &self.salts, self.rows.iter(), &mut units);
        (units, self.salts.as_chunks().0)
    }

    /// Whether the units of the block opened last have the root in its commitment.
    pub(crate) fn check_units(
        &mut self,
        commitment: &Commitment,
        keys: &EpochKeys,
    ) -> Result<(), Unreadable> {
        let mismatch =
            |detail: &str| Unreadable { kind: FindingKind::UnitsMismatch, detail: detail.to_owned() };
        if keys.salts(commitment.frame, self.rows.len(), &mut self.salts).is_err() {
            return Err(mismatch("the salts could not be derived"));
        }
        let identity = Identity { log: commitment.log_id, hash: commitment.hash };
        let rows = self.rows.iter();
        let root = block::block_root(identity, commitment.first_entry, &self.salts, rows, &mut self.units);
        match root == commitment.root && commitment.units == commitment.entries {
            true => Ok(()),
            false => Err(mismatch("the block's entries do not have the root in its commitment")),
        }
    }
}
