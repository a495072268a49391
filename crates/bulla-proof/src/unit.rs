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
/// The kind of a unit that is one entry's row. Kind 1 is reserved for the group of one set of data subjects.
pub const KIND_ROW: u8 = 0;

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

/// The root of a block's own tree over `units`, in their order: H(0x02 ‖ number of units ‖ T), T the RFC 6962 tree
/// with the units as its leaves as they are (H of nothing where there is none, which no block has).
///
/// Hashes in place, without allocating: `units` is empty afterwards and keeps its capacity.
pub fn block_root(hash: HashId, units: &mut Vec<Hash>) -> Hash {
    let count = units.len() as u64;
    let top = tree::reduce(units, |left, right| hash.hash(&[&tree::node_input(left, right)]))
        .unwrap_or_else(|| hash.hash(&[]));
    units.clear();
    let mut head = [0x02; 9];
    head[1..].copy_from_slice(&count.to_le_bytes());
    hash.hash(&[&head, top.as_bytes()])
}
