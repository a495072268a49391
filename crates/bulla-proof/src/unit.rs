//! Units and common items, the leaves of a block's own tree, and the tree's root.
//!
//! `docs/format.md`, "Units", is the specification. H is the log's [`HashId`]:
//!
//! - a unit is H(0x00 ‖ salt, 16 bytes ‖ kind, 1 byte ‖ codec, 1 byte ‖ entry numbers ‖ content);
//! - a common item is H(0x03 ‖ salt, 16 bytes ‖ position, 8 bytes little-endian ‖ the item);
//! - a node is H(0x01 ‖ left ‖ right), in the shape of RFC 6962;
//! - the root is H(0x02 ‖ number of units ‖ number of common items, 8 bytes little-endian each ‖ the node at the top).
//!
//! The leaves are the units, and behind them the common items. The salt hides the content from whoever sees one as a sibling in
//! somebody else's proof.

use crate::hash::{Hash, HashId};
use crate::tree;

/// The length of a unit's salt, in bytes.
pub const SALT_LENGTH: usize = 16;
/// The kind of a unit that is one entry's row.
pub const KIND_ROW: u8 = 0;
/// The kind of a unit that is the group of one set of data subjects: their entries of one block.
pub const KIND_GROUP: u8 = 1;
/// How a row's unit spells its content: the canonical row.
pub const CODEC_ROW: u8 = 1;
/// How a group's unit spells its content: see [`group_unit`].
pub const CODEC_GROUP: u8 = 1;

/// The unit of one entry: H(0x00 ‖ salt ‖ [`KIND_ROW`] ‖ codec ‖ entry number, 8 bytes little-endian ‖ content),
/// where the content is the entry's canonical row.
#[inline]
pub fn row_unit(hash: HashId, salt: &[u8; SALT_LENGTH], codec: u8, entry: u64, content: &[u8]) -> Hash {
    hash.hash(&[&row_head(salt, codec, entry), content])
}

/// What stands before the content in what [`row_unit`] hashes.
#[inline]
pub fn row_head(salt: &[u8; SALT_LENGTH], codec: u8, entry: u64) -> [u8; 1 + SALT_LENGTH + 1 + 1 + 8] {
    let mut head = [0; _];
    head[1..17].copy_from_slice(salt);
    head[17] = KIND_ROW;
    head[18] = codec;
    head[19..].copy_from_slice(&entry.to_le_bytes());
    head
}

/// What the unit of a group hashes: nothing that needs a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupContent<'a> {
    /// Presence bits of the fields that are personal: those that the ciphertext holds.
    pub personal: u16,
    /// The numbers of the data subjects, ascending, each once.
    pub subjects: &'a [u64],
    /// Their personal fields, encrypted, as the block holds them.
    pub ciphertext: &'a [u8],
    /// The commitment to the key of that ciphertext.
    pub commitment: &'a Hash,
}

/// The unit of a group: H(0x00 ‖ salt ‖ [`KIND_GROUP`] ‖ [`CODEC_GROUP`] ‖ entry numbers ‖ content).
///
/// Entry numbers are their count and each of them; the content is the presence bits of personal fields, each entry's
/// length of the shared row (without its personal fields) and that row, the count of subjects and their numbers, the length of the ciphertext, the
/// ciphertext, and the commitment to its key. All integers have 8 bytes, little-endian. `entries` are the entries'
/// numbers and shared rows, ascending; `scratch` is memory to be used again.
pub fn group_unit<'a>(
    hash: HashId,
    salt: &[u8; SALT_LENGTH],
    entries: impl ExactSizeIterator<Item = (u64, &'a [u8])> + Clone,
    content: &GroupContent<'_>,
    scratch: &mut Vec<u8>,
) -> Hash {
    scratch.clear();
    group_head(salt, entries, content, scratch);
    hash.hash(&[scratch, content.ciphertext, content.commitment.as_bytes()])
}

/// Appends what stands before the ciphertext in what [`group_unit`] hashes.
pub fn group_head<'a>(
    salt: &[u8; SALT_LENGTH],
    entries: impl ExactSizeIterator<Item = (u64, &'a [u8])> + Clone,
    content: &GroupContent<'_>,
    head: &mut Vec<u8>,
) {
    let integer = |head: &mut Vec<u8>, value: u64| head.extend_from_slice(&value.to_le_bytes());
    head.push(0x00);
    head.extend_from_slice(salt);
    head.extend_from_slice(&[KIND_GROUP, CODEC_GROUP]);
    integer(head, entries.len() as u64);
    entries.clone().for_each(|(number, _)| integer(head, number));
    integer(head, u64::from(content.personal));
    for (_, row) in entries {
        integer(head, row.len() as u64);
        head.extend_from_slice(row);
    }
    integer(head, content.subjects.len() as u64);
    content.subjects.iter().for_each(|&subject| integer(head, subject));
    integer(head, content.ciphertext.len() as u64);
}

/// The leaf of a common item: H(0x03 ‖ salt ‖ its position among the items, 8 bytes little-endian ‖ the item, with what kind it is).
#[inline]
pub fn item_leaf(hash: HashId, salt: &[u8; SALT_LENGTH], position: u64, item: &[u8]) -> Hash {
    hash.hash(&[&item_head(salt, position), item])
}

/// What stands before the item in what [`item_leaf`] hashes.
#[inline]
pub fn item_head(salt: &[u8; SALT_LENGTH], position: u64) -> [u8; 1 + SALT_LENGTH + 8] {
    let mut head = [0x03; _];
    head[1..17].copy_from_slice(salt);
    head[17..].copy_from_slice(&position.to_le_bytes());
    head
}

/// A node of a block's own tree: H(0x01 ‖ left ‖ right).
#[inline]
pub fn block_node(hash: HashId, left: &Hash, right: &Hash) -> Hash {
    hash.hash(&[&node_message(left, right)])
}

/// What [`block_node`] hashes.
#[inline]
pub fn node_message(left: &Hash, right: &Hash) -> [u8; 65] {
    tree::node_input(left, right)
}

/// The most common items that a block may have.
pub const MAX_ITEMS: usize = 4_092;

/// How many leaves a block's tree has of which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafCounts {
    /// Units, which come first.
    pub units: u64,
    /// Common items.
    pub items: u64,
}

/// The root of a block with so many leaves, from the node at the top of its tree: H(0x02 ‖ number of units ‖ number of items ‖ T).
pub fn root_of_top(hash: HashId, LeafCounts { units, items }: LeafCounts, top: &Hash) -> Hash {
    let mut head = [0x02; 17];
    head[1..9].copy_from_slice(&units.to_le_bytes());
    head[9..].copy_from_slice(&items.to_le_bytes());
    hash.hash(&[&head, top.as_bytes()])
}

/// The root of a block's own tree over `leaves`, the last `items` of which are common items: see [`root_of_top`], T the RFC 6962 tree
/// with the leaves as they are (H of nothing where there is none, which no block has).
///
/// Hashes in place, without allocating: `leaves` is empty afterwards and keeps its capacity.
///
/// # Panics
/// When there are fewer leaves than items.
pub fn block_root(hash: HashId, leaves: &mut Vec<Hash>, items: usize) -> Hash {
    let counts = LeafCounts { units: (leaves.len() - items) as u64, items: items as u64 };
    let top =
        tree::reduce(leaves, |left, right| block_node(hash, left, right)).unwrap_or_else(|| hash.hash(&[]));
    leaves.clear();
    root_of_top(hash, counts, &top)
}
