//! What a log's bytes are for, by the signed list of its frames.

use crate::measure;
use crate::outcome::Failure;
use bulla::default_keys;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::tile;
use std::path::Path;

/// Bytes of a frame besides its body: header, commitment, seal.
const FRAME: u64 = 24 + Commitment::LENGTH as u64 + 32;

pub(crate) struct Layout {
    /// The entries of each block.
    pub(crate) blocks: Vec<u64>,
    pub(crate) units: u64,
    pub(crate) segments: u64,
    /// Of blocks.
    pub(crate) bodies: u64,
    frames: u64,
    /// Of tiles, bundles and the checkpoint.
    tree: u64,
    log: u64,
    keys: u64,
}

impl Layout {
    /// Of a log that is closed.
    pub(crate) fn of(directory: &Path) -> Result<Self, Failure> {
        let info = bulla::info(directory)?;
        let (tiles, _) = measure::files(&directory.join("tile"))?;
        let checkpoint = std::fs::metadata(directory.join("checkpoint"))?.len();
        let mut layout = Layout {
            blocks: Vec::new(),
            units: 0,
            segments: info.segments,
            bodies: 0,
            frames: info.tree_size,
            tree: tiles + checkpoint,
            log: info.bytes,
            keys: measure::files(&default_keys(directory))?.0,
        };
        let bundle = u64::from(tile::FULL_WIDTH);
        for index in 0..info.tree_size.div_ceil(bundle) {
            let width = u16::try_from((info.tree_size - index * bundle).min(bundle))?;
            let bytes = std::fs::read(directory.join(tile::entries_path(index, width)))?;
            for entry in tile::parse_bundle(&bytes, width)? {
                layout.add(&Commitment::decode(entry)?);
            }
        }
        Ok(layout)
    }

    fn add(&mut self, commitment: &Commitment) {
        if commitment.kind == FrameKind::Block {
            self.blocks.push(commitment.entries);
            self.units += commitment.units;
            self.bodies += commitment.body_length;
        }
    }

    /// Of the log and of its keys, those of data subjects among them.
    pub(crate) fn bytes(&self) -> u64 {
        self.log + self.keys
    }

    /// Commitments, seals and tree, as a share of all bytes of the log.
    pub(crate) fn integrity_share(&self) -> f64 {
        (self.tree + self.frames * FRAME) as f64 / self.log as f64
    }
}
