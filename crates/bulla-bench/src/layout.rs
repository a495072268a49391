//! What a log's bytes are for, by the signed list of its frames.

use crate::measure::{self, figure};
use crate::outcome::{Failure, Outcome};
use bulla::default_keys;
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_proof::tile;
use bulla_vault::{Access, Settings, Vault};
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
    /// All that is in the log's directory.
    log: u64,
    vault: Option<People>,
}

/// What a vault holds.
struct People {
    count: u64,
    /// Of the database and of the files of keys.
    bytes: u64,
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
            vault: info.erasure.then(|| People::of(&default_keys(directory), info.id)).transpose()?,
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

    /// Of the log's directory. Its keys are elsewhere, and the vault is told by person.
    pub(crate) fn bytes(&self) -> u64 {
        self.log
    }

    /// What a log of so many entries takes, and its vault, if it has one.
    pub(crate) fn tell(&self, entries: u64, outcome: &mut Outcome) {
        outcome.set(figure::DISK, self.log as f64 / entries as f64);
        outcome.set(figure::BLOCKS, self.blocks.len() as f64);
        outcome.set(figure::INTEGRITY, self.integrity_share());
        if let Some(vault) = self.vault.as_ref().filter(|vault| vault.count > 0) {
            outcome.set(figure::PEOPLE, vault.count as f64);
            outcome.set(figure::VAULT, vault.bytes as f64 / vault.count as f64);
        }
    }

    /// Commitments, seals and tree, as a share of all bytes of the log.
    pub(crate) fn integrity_share(&self) -> f64 {
        (self.tree + self.frames * FRAME) as f64 / self.log as f64
    }
}

impl People {
    fn of(keys: &Path, log: LogId) -> Result<Self, Failure> {
        let files = ["vault", "roots"].map(|name| measure::files(&keys.join(name)));
        let bytes = files.into_iter().try_fold(0, |sum, files| files.map(|(bytes, _)| sum + bytes))?;
        let count = Vault::open(keys, log, Access::Read, &Settings::default())?.next_number()?;
        Ok(People { count, bytes })
    }
}
