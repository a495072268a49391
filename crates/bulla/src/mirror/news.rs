//! What a source has signed beyond a destination: the commitments, hashed up to the signed root before any of them is believed.
//!
//! They are read twice, and hashed each time: once to compare them with the root, and once as frames are shipped by them. So a list of
//! any length takes 32 bytes of memory for 256 frames.

use super::{Behind, damaged, other_history};
use crate::format::frame;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::stored_tree::{self, Chunk, Encoded};
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::{Hash, Sha256};
use bulla_proof::tile::{self, FULL_WIDTH, TileBuilder};
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, Result, Store};

const BUNDLE: u64 = FULL_WIDTH as u64;

/// See the module.
pub(super) struct News {
    head: TreeHead,
    /// The next frame.
    next: u64,
    /// The first bundle, and the digest of each from there on.
    first: u64,
    digests: Vec<Hash>,
    /// The bundle that was read last.
    bundle: Option<(u64, Vec<Encoded>)>,
    /// All of it.
    pub(super) behind: Behind,
}

impl News {
    /// What the tree `head` of the log in `source` has beyond the tree of `tiles`.
    ///
    /// # Errors
    /// `Tampered` where it does not begin with that, or its files do not have the root; `Unavailable` where one cannot be read.
    pub(super) fn read(source: &dyn Store, mut tiles: TileBuilder, head: TreeHead) -> Result<Self> {
        let before = TreeHead { size: tiles.size(), root: tiles.root() };
        let mut news = News {
            head,
            next: before.size,
            first: before.size / BUNDLE,
            digests: Vec::new(),
            bundle: None,
            behind: Behind::default(),
        };
        let mut at = before.size;
        while at < head.size {
            let index = at / BUNDLE;
            let Some(entries) = stored_tree::read_bundle(source, index, width(head, index))? else {
                return Err(missing(head, index));
            };
            for encoded in entries.iter().skip((at % BUNDLE) as usize) {
                tiles.push(tree::leaf_hash(encoded), &mut |_, _| {});
                let Ok(commitment) = Commitment::decode(encoded) else { continue };
                news.behind.entries = news.behind.entries.saturating_add(commitment.entries);
                news.behind.bytes = news.behind.bytes.saturating_add(frame::frame_length(&commitment));
            }
            at = (index + 1) * BUNDLE;
            news.digests.push(digest(&entries));
            news.bundle = Some((index, entries));
        }
        news.behind.frames = head.size - before.size;
        match tiles.root() == head.root {
            true => Ok(news),
            false => Err(differing(source, before, head)?),
        }
    }

    /// The next commitment; nothing behind the last one.
    ///
    /// # Errors
    /// `Tampered` where the source's bundle is another one by now; `Unavailable` where it cannot be read.
    pub(super) fn next(&mut self, source: &dyn Store) -> Result<Option<Encoded>> {
        if self.next == self.head.size {
            return Ok(None);
        }
        let index = self.next / BUNDLE;
        let entries = match self.bundle.take() {
            Some((at, entries)) if at == index => entries,
            _ => {
                let entries = stored_tree::read_bundle(source, index, width(self.head, index))?;
                let known = usize::try_from(index - self.first).ok().and_then(|at| self.digests.get(at));
                let entries = entries.filter(|entries| known == Some(&digest(entries)));
                entries.ok_or_else(|| missing(self.head, index))?
            }
        };
        let encoded = entries[(self.next % BUNDLE) as usize];
        self.bundle = Some((index, entries));
        self.next += 1;
        Ok(Some(encoded))
    }
}

/// How many commitments of a tree are in a bundle.
fn width(head: TreeHead, index: u64) -> u16 {
    u16::try_from((head.size - index * BUNDLE).min(BUNDLE)).unwrap_or(FULL_WIDTH)
}

fn digest(entries: &[Encoded]) -> Hash {
    let mut hasher = Sha256::new();
    entries.iter().for_each(|entry| hasher.update(entry));
    hasher.finish()
}

fn missing(head: TreeHead, index: u64) -> Error {
    let width = width(head, index);
    let detail =
        format!("{} is missing or malformed, or changed while it was read", tile::entries_path(index, width));
    damaged(&over(FindingKind::BundleDamaged, detail, index * BUNDLE, index * BUNDLE + u64::from(width) - 1))
}

fn over(kind: FindingKind, detail: String, first: u64, last: u64) -> Finding {
    let mut finding = Finding::new(kind, detail).frame(first);
    finding.last_frame = Some(last);
    finding
}

/// Why the commitments of a source do not come to the root that it signs, behind those that the destination has: by the source's
/// tiles, as far as these come to that root.
fn differing(source: &dyn Store, before: TreeHead, head: TreeHead) -> Result<Error> {
    match stored_tree::root_at(source, head, before.size)? {
        Some(root) if root != before.root => {
            let detail = other_history(before.size);
            return Ok(damaged(&Finding::new(FindingKind::PinMismatch, detail)));
        }
        Some(_) => {}
        None => {
            let detail = "neither tiles nor bundles have the root that the checkpoint signs";
            return Ok(damaged(&Finding::new(FindingKind::RootMismatch, detail)));
        }
    }
    let mut chunk = Chunk::default();
    for frame in before.size..head.size {
        if !chunk.covers(frame) {
            chunk = Chunk::load(source, frame, head.size)?;
        }
        if chunk.agreed(frame).is_none() {
            let index = frame / BUNDLE;
            let detail = format!(
                "{} is not what the log's tiles come to",
                tile::entries_path(index, width(head, index))
            );
            return Ok(damaged(&over(FindingKind::BundleDamaged, detail, frame, frame)));
        }
    }
    let detail = "the frames do not have the root that the checkpoint signs";
    Ok(damaged(&Finding::new(FindingKind::RootMismatch, detail)))
}
