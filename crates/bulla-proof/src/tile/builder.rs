//! Growing the tree tile by tile.
//!
//! **Invariant:** level L holds the hashes of its tile that is not yet full: as many as byte L of the size.

use super::{FULL_WIDTH, MAX_LEVEL, TileId, rest, tile_count, tile_hash};
use crate::hash::Hash;
use crate::tree::{Frontier, MAX_SIZE};

/// The right edge of a growing tree, by tiles: gives out each tile as it fills, and the partial ones at any size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileBuilder {
    size: u64,
    levels: [Vec<Hash>; MAX_LEVEL as usize + 1],
}

impl TileBuilder {
    /// The tree without leaves.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tree of `size` leaves, from the partial tiles of its levels, lowest first; absent levels are empty.
    /// `None` where a level does not hold as many hashes as a tree of `size` leaves has there, or `size` is past
    /// [`MAX_SIZE`].
    pub fn resume(size: u64, levels: Vec<Vec<Hash>>) -> Option<Self> {
        let mut builder = TileBuilder { size, ..Self::default() };
        if size > MAX_SIZE || levels.len() > builder.levels.len() {
            return None;
        }
        for (level, hashes) in builder.levels.iter_mut().zip(levels) {
            *level = hashes;
        }
        let fits = (0..=MAX_LEVEL)
            .zip(&builder.levels)
            .all(|(l, hashes)| hashes.len() == usize::from(rest(size, l)));
        fits.then_some(builder)
    }

    /// Appends a leaf, given its hash ([`crate::tree::leaf_hash`]), and hands each tile that it fills to `on_full`,
    /// lowest level first.
    pub fn push(&mut self, leaf: Hash, on_full: &mut dyn FnMut(TileId, &[Hash])) {
        self.size += 1;
        let mut hash = leaf;
        for (level, hashes) in (0..=MAX_LEVEL).zip(&mut self.levels) {
            hashes.push(hash);
            if hashes.len() < usize::from(FULL_WIDTH) {
                return;
            }
            let index = tile_count(self.size, level) - 1;
            on_full(TileId { level, index, width: FULL_WIDTH }, hashes);
            hash = tile_hash(hashes);
            hashes.clear();
        }
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The partial tiles of the tree as it is, lowest level first: those that [`super::tiles_for`] names.
    pub fn partials(&self) -> Vec<(TileId, Vec<Hash>)> {
        super::tiles_for(self.size).into_iter().map(|tile| (tile, self.level(tile.level).to_vec())).collect()
    }

    /// The hashes of the tile at `level` that is not yet full.
    pub fn level(&self, level: u8) -> &[Hash] {
        self.levels.get(usize::from(level)).map_or(&[], Vec::as_slice)
    }

    /// The right edge of the tree, by perfect subtrees.
    pub fn frontier(&self) -> Frontier {
        let mut nodes = Vec::new();
        for level in self.levels.iter().rev() {
            let mut rest = level.as_slice();
            while !rest.is_empty() {
                let (subtree, tail) = rest.split_at(1 << rest.len().ilog2());
                nodes.push(tile_hash(subtree));
                rest = tail;
            }
        }
        Frontier::from_edge(self.size, nodes)
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        self.frontier().root()
    }
}
