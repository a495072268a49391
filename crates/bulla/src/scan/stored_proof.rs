//! Proofs that a tree begins with an earlier one, from the tiles that they need and no others.

use crate::scan::stored_tree::read_tile;
use bulla_proof::consistency::places;
use bulla_proof::hash::Hash;
use bulla_proof::multiproof::NodePosition;
use bulla_proof::tile::{self, FULL_WIDTH, TileId};
use bulla_proof::tree::node_hash;
use bulla_store::{Error, Result, Store};

/// The nodes that prove that the tree of the log's first `size` frames begins with that of the first `old_size`: RFC 6962, section
/// 2.1.2. Tiles are taken as they are: whoever checks the proof finds out whether they are right.
///
/// # Errors
/// `Invalid` where the old tree is the larger one, `Tampered` where a tile is missing or malformed, `Unavailable` where one cannot be read.
pub(crate) fn prove_consistency(store: &dyn Store, old_size: u64, size: u64) -> Result<Vec<Hash>> {
    let places = places(old_size, size).map_err(|error| Error::invalid(error.to_string()))?;
    places.into_iter().map(|place| node(store, size, place)).collect()
}

/// A node of the tree of `size` leaves. It recurs along the right edge alone, which is as deep as the tree is high.
fn node(store: &dyn Store, size: u64, place: NodePosition) -> Result<Hash> {
    let NodePosition { level, index } = place;
    if (index + 1).checked_shl(level).is_some_and(|end| end >> level == index + 1 && end <= size) {
        return perfect(store, size, place);
    }
    let below = |index| NodePosition { level: level - 1, index };
    let left = node(store, size, below(2 * index))?;
    match (2 * index + 1) << (level - 1) < size {
        true => Ok(node_hash(&left, &node(store, size, below(2 * index + 1))?)),
        // A lone node goes up as it is.
        false => Ok(left),
    }
}

/// A node over a perfect subtree, which tiles have, or the hashes that it is made of.
fn perfect(store: &dyn Store, size: u64, NodePosition { level, index }: NodePosition) -> Result<Hash> {
    const WIDTH: u64 = FULL_WIDTH as u64;
    let (tile_level, rest) = (level / 8, level % 8);
    let first = index << rest;
    let at_level = size >> (8 * tile_level);
    let in_tile = first / WIDTH;
    let width = u16::try_from((at_level - in_tile * WIDTH).min(WIDTH)).unwrap_or(FULL_WIDTH);
    let id = TileId { level: u8::try_from(tile_level).unwrap_or(u8::MAX), index: in_tile, width };
    let from = (first % WIDTH) as usize;
    let hashes = read_tile(store, id)?;
    let hashes = hashes.as_deref().and_then(|hashes| hashes.get(from..from + (1 << rest)));
    hashes.map(tile::tile_hash).ok_or_else(|| {
        Error::tampered(format!(
            "{} is missing, or no tile of the tree; run `bulla verify`",
            store.describe(&id.path())
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::stored_tree::tests::stored;
    use bulla_proof::consistency::verify_consistency;

    #[test]
    fn every_proof_of_small_trees_and_those_at_the_edges_of_tiles_hold() {
        for new in (1..40).chain([255, 256, 257, 300, 511, 512, 513, 700]) {
            let (store, roots) = stored(new);
            let root = |size: u64| roots[usize::try_from(size).unwrap()];
            for old in
                (0..=new).filter(|old| new < 40 || old % 7 == 0 || *old > new - 5 || (250..260).contains(old))
            {
                let proof = prove_consistency(&store, old, new).unwrap();
                let held = verify_consistency(old, &root(old), new, &root(new), &proof);
                assert!(held.is_ok(), "{old} to {new}: {held:?}");
            }
        }
    }

    #[test]
    fn a_tile_that_is_missing_is_named() {
        let (store, _) = stored(300);
        store.remove("tile/0/000").unwrap();
        let error = prove_consistency(&store, 7, 300).unwrap_err().to_string();
        assert!(error.contains("tile/0/000"), "{error}");
    }
}
