//! Sealing a block: columns, units and their root, padding, encryption.

use super::columns::{Compression, Encoder, padme};
use super::{Identity, Numbers, Sealed};
use crate::environment::Cipher;
use crate::error::{Error, Result};
use crate::index::Tokens;
use crate::keys::epoch::EpochKeys;
use crate::stage::buffer::ROW_PREFIX;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::unit;

/// The codec id of bodies made here: columns, version 1.
pub(crate) const COLUMNS: u8 = 1;

/// Seals blocks one after the other, reusing its working memory.
pub struct BlockSealer {
    encoder: Encoder,
    units: Vec<Hash>,
    salts: Vec<u8>,
}

impl BlockSealer {
    /// A sealer that compresses as told.
    pub fn new(compression: Compression) -> Self {
        BlockSealer { encoder: Encoder::new(compression), units: Vec::new(), salts: Vec::new() }
    }

    /// Seals `rows`, canonical rows of which there is at least one. The frame depends on the arguments alone.
    ///
    /// # Errors
    /// Where bytes are no row, or the cipher refuses.
    pub(crate) fn seal(
        &mut self,
        identity: Identity,
        numbers: Numbers,
        keys: &EpochKeys,
        cipher: &dyn Cipher,
        rows: &[&[u8]],
    ) -> Result<Sealed> {
        keys.salts(numbers.frame, rows.len(), &mut self.salts)?;
        let root =
            block_root(identity, numbers.first_entry, &self.salts, rows.iter().copied(), &mut self.units);
        let mut body = Vec::new();
        let mut tokens = Tokens::new(keys);
        let encoded =
            self.encoder.encode_and_tell(rows, &mut body, |searched, value| tokens.tell(searched, value));
        encoded.map_err(|error| Error::invalid(format!("frame {}: {error}", numbers.frame)))?;
        body.reserve_exact(padme(body.len()) - body.len() + 16);
        body.resize(padme(body.len()), 0);

        let content: usize = rows.iter().map(|row| row.len() + ROW_PREFIX).sum();
        let seconds = rows.iter().map(|row| row_seconds(row));
        let (earliest, latest) =
            seconds.fold((i64::MAX, i64::MIN), |(low, high), s| (low.min(s), high.max(s)));
        let mut commitment = Commitment {
            kind: FrameKind::Block,
            codec: COLUMNS,
            hash: identity.hash,
            content_log2: content_log2(content),
            log_id: identity.log,
            frame: numbers.frame,
            first_entry: numbers.first_entry,
            entries: rows.len() as u64,
            earliest,
            latest,
            epoch: numbers.epoch,
            units: rows.len() as u64,
            root,
            body_length: (body.len() + 16) as u64,
            body_digest: Hash::ZERO,
        };
        cipher.seal(keys.body(), numbers.frame, &commitment.additional_data(), &mut body)?;
        commitment.body_digest = sha256(&[&body]);
        Ok(Sealed { tokens: tokens.finish(), ..Sealed::new(commitment, body) })
    }
}

/// The root of the units of `rows`, a row each.
pub(crate) fn block_root<'a>(
    identity: Identity,
    first_entry: u64,
    salts: &[u8],
    rows: impl IntoIterator<Item = &'a [u8]>,
    units: &mut Vec<Hash>,
) -> Hash {
    row_units(identity, first_entry, salts, rows, units);
    unit::block_root(identity.hash, units)
}

/// The units of `rows`, a row each, in place of what `units` held.
pub(crate) fn row_units<'a>(
    identity: Identity,
    first_entry: u64,
    salts: &[u8],
    rows: impl IntoIterator<Item = &'a [u8]>,
    units: &mut Vec<Hash>,
) {
    units.clear();
    let (salts, _) = salts.as_chunks::<16>();
    units.extend(
        rows.into_iter()
            .zip(salts)
            .zip(first_entry..)
            .map(|((row, salt), entry)| unit::row_unit(identity.hash, salt, COLUMNS, entry, row)),
    );
}

/// The least k such that `content` bytes fit 2^k.
fn content_log2(content: usize) -> u8 {
    u8::try_from(content.next_power_of_two().trailing_zeros()).expect("there are 64 bits")
}

/// The whole second that a row's time lies in.
fn row_seconds(row: &[u8]) -> i64 {
    let time = row.get(2..10).and_then(|time| time.try_into().ok()).unwrap_or_default();
    i64::from_le_bytes(time).div_euclid(1_000_000_000)
}
