//! Scheme C's tree: every node is a row, and each insert writes the path from its leaf to the root anew.
//!
//! A node is the hash of the two below it, or where there is no right one, the left one itself.

use crate::outcome::Failure;
use rusqlite::{OptionalExtension, Statement};
use sha3::{Digest, Sha3_256};

pub(super) type Hash = [u8; 32];

/// What lies left of the path to the newest leaf, by level, so that an insert need not read.
#[derive(Default)]
pub(super) struct Edge {
    left: Vec<Hash>,
}

impl Edge {
    /// Adds leaf number `index`; `store` gets every node that changes.
    pub(super) fn add(
        &mut self,
        index: u64,
        leaf: Hash,
        mut store: impl FnMut(u32, u64, &Hash) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut hash = leaf;
        for level in 0..=height(index) {
            let place = index >> level;
            store(level, place, &hash)?;
            if self.left.len() <= level as usize {
                self.left.push(hash);
            }
            let left = &mut self.left[level as usize];
            if place % 2 == 1 {
                hash = node(left, &hash);
            } else {
                *left = hash;
            }
        }
        Ok(())
    }
}

/// Climbs from a leaf to the root of a tree with `leaves` leaves by the nodes that are stored.
pub(super) fn climb(
    index: u64,
    leaf: Hash,
    leaves: u64,
    stored: &mut Statement<'_>,
) -> Result<Hash, Failure> {
    let mut hash = leaf;
    for level in 0..height(leaves - 1) {
        let place = index >> level;
        let sibling = stored.query_row((level, place ^ 1), |row| row.get::<_, Hash>(0)).optional()?;
        hash = match sibling {
            Some(left) if place % 2 == 1 => node(&left, &hash),
            Some(right) => node(&hash, &right),
            None => hash,
        };
    }
    Ok(hash)
}

/// The level of the root when the newest leaf is number `last`.
pub(super) fn height(last: u64) -> u32 {
    u64::BITS - last.leading_zeros()
}

pub(super) fn leaf(line: &[u8]) -> Hash {
    sha3([&[0][..], line])
}

fn node(left: &Hash, right: &Hash) -> Hash {
    sha3([&[1][..], left, right])
}

pub(super) fn sha3<const PARTS: usize>(parts: [&[u8]; PARTS]) -> Hash {
    let mut hasher = Sha3_256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The root by the definition.
    fn root(leaves: &[Hash]) -> Hash {
        match leaves {
            [only] => *only,
            _ => root(
                &leaves
                    .chunks(2)
                    .map(|pair| pair.get(1).map_or(pair[0], |right| node(&pair[0], right)))
                    .collect::<Vec<_>>(),
            ),
        }
    }

    #[test]
    fn the_nodes_that_are_stored_are_those_of_the_tree() {
        let (mut edge, mut stored, mut leaves) = (Edge::default(), HashMap::new(), Vec::new());
        for index in 0..70 {
            leaves.push(leaf(&[u8::try_from(index).unwrap()]));
            let last = leaves[leaves.len() - 1];
            edge.add(index, last, |level, place, hash| {
                stored.insert((level, place), *hash);
                Ok(())
            })
            .unwrap();
            assert_eq!(stored[&(height(index), 0)], root(&leaves), "{index}");
        }
    }
}
