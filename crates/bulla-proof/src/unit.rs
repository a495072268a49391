//! Units, the leaves of a block's own tree, and the tree's root.
//!
//! `docs/format.md`, "Units", is the specification. H is the log's [`HashId`]:
//!
//! - a unit is H(0x00 ‖ salt, 16 bytes ‖ kind, 1 byte ‖ codec, 1 byte ‖ entry numbers ‖ content);
//! - a node is H(0x01 ‖ left ‖ right), in the shape of RFC 6962;
//! - the root is H(0x02 ‖ number of units, 8 bytes little-endian ‖ the node at the top).
//!
//! The salt hides the content from whoever sees a unit as a sibling in somebody else's proof.

use crate::hash::{Hash, HashId};
use crate::tree;

/// The length of a unit's salt, in bytes.
pub const SALT_LENGTH: usize = 16;
/// The kind of a unit that is one entry's row.
pub const KIND_ROW: u8 = 0;
/// The kind that is reserved for the group of one set of data subjects.
pub const KIND_GROUP: u8 = 1;
/// How a row's unit spells its content: the canonical row.
pub const CODEC_ROW: u8 = 1;

/// The unit of one entry: H(0x00 ‖ salt ‖ [`KIND_ROW`] ‖ codec ‖ entry number, 8 bytes little-endian ‖ content),
/// where the content is the entry's canonical row.
#[inline]
pub fn row_unit(hash: HashId, salt: &[u8; SALT_LENGTH], codec: u8, entry: u64, content: &[u8]) -> Hash {
    let mut head = [0; 1 + SALT_LENGTH + 1 + 1 + 8];
    head[1..17].copy_from_slice(salt);
    head[17] = KIND_ROW;
    head[18] = codec;
    head[19..].copy_from_slice(&entry.to_le_bytes());
    hash.hash(&[&head, content])
}

/// A node of a block's own tree: H(0x01 ‖ left ‖ right).
#[inline]
pub fn block_node(hash: HashId, left: &Hash, right: &Hash) -> Hash {
    hash.hash(&[&tree::node_input(left, right)])
}

/// The root of a block of `count` units, from the node at the top of its tree: H(0x02 ‖ number of units ‖ T).
pub fn root_of_top(hash: HashId, count: u64, top: &Hash) -> Hash {
    let mut head = [0x02; 9];
    head[1..].copy_from_slice(&count.to_le_bytes());
    hash.hash(&[&head, top.as_bytes()])
}

/// The root of a block's own tree over `units`, in their order: H(0x02 ‖ number of units ‖ T), T the RFC 6962 tree
/// with the units as its leaves as they are (H of nothing where there is none, which no block has).
///
/// Hashes in place, without allocating: `units` is empty afterwards and keeps its capacity.
pub fn block_root(hash: HashId, units: &mut Vec<Hash>) -> Hash {
    let count = units.len() as u64;
    let top =
        tree::reduce(units, |left, right| block_node(hash, left, right)).unwrap_or_else(|| hash.hash(&[]));
    units.clear();
    root_of_top(hash, count, &top)
}
