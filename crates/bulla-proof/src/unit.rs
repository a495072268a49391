//! Units and common items, the leaves of a block's own tree, and the tree's root.
//!
//! `docs/format.md`, "Units", is the specification. H is the log's [`HashId`]:
//!
//! - a unit is H(kind, 1 byte ‖ salt, 16 bytes ‖ content), the kind being 0x04 of a row and 0x05 of a group: what a proof discloses of it;
//! - a common item is H(0x03 ‖ salt, 16 bytes ‖ position, 8 bytes little-endian ‖ the item);
//! - a node is H(0x06 ‖ its children, two to four), and a lone node at the end of a level goes up as it is;
//! - the root is H(0x02 ‖ number of units ‖ number of common items, 8 bytes little-endian each ‖ the node at the top).
//!
//! The leaves are the units, and behind them the common items. The salt hides the content from whoever sees one as a sibling in
//! somebody else's proof. The first bytes differ from each other and from those of the log's tree, 0x00 and 0x01.

use crate::hash::{Hash, HashId};
use crate::tree::{self, Nodes};
use crate::varint;

/// The length of a unit's salt, in bytes.
pub const SALT_LENGTH: usize = 16;
/// The kind of a unit that is one entry's row.
pub const KIND_ROW: u8 = 0x04;
/// The kind of a unit that is the group of one set of data subjects: their entries of one block.
pub const KIND_GROUP: u8 = 0x05;
/// What the message of a block's root begins with.
const ROOT: u8 = 0x02;
/// What the message of a common item begins with.
const ITEM: u8 = 0x03;
/// What the message of a node begins with.
const NODE: u8 = 0x06;

/// The unit of one entry: H([`KIND_ROW`] ‖ salt ‖ content), the content being the entry's place in its block, from 0, the length of its
/// canonical row, both varints, and that row.
#[inline]
pub fn row_unit(hash: HashId, salt: &[u8; SALT_LENGTH], place: u64, row: &[u8]) -> Hash {
    let mut head = Vec::with_capacity(1 + SALT_LENGTH + 2 * varint::MAX_LENGTH);
    row_head(salt, place, row.len(), &mut head);
    hash.hash(&[&head, row])
}

/// Appends what stands before the row in what [`row_unit`] hashes.
#[inline]
pub fn row_head(salt: &[u8; SALT_LENGTH], place: u64, length: usize, head: &mut Vec<u8>) {
    head.push(KIND_ROW);
    head.extend_from_slice(salt);
    varint::push(place, head);
    varint::push(length as u64, head);
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

/// The unit of a group: H([`KIND_GROUP`] ‖ salt ‖ content).
///
/// The content is the presence bits of personal fields, 2 bytes little-endian; the number of entries, and of each its place in the block, the
/// length of the shared row (without its personal fields) and that row; the number of subjects and their numbers; the length of the
/// ciphertext, the ciphertext, and the commitment to its key. Integers are varints; places and subjects are told by their distance from
/// the least that they may be. `entries` are the entries' places and shared rows, ascending; `scratch` is memory to be used again.
pub fn group_unit<'a>(
    hash: HashId,
    salt: &[u8; SALT_LENGTH],
    entries: impl ExactSizeIterator<Item = (u64, &'a [u8])>,
    content: &GroupContent<'_>,
    scratch: &mut Vec<u8>,
) -> Hash {
    scratch.clear();
    group_message(salt, entries, content, scratch);
    hash.hash(&[scratch])
}

/// Appends what [`group_unit`] hashes.
pub fn group_message<'a>(
    salt: &[u8; SALT_LENGTH],
    entries: impl ExactSizeIterator<Item = (u64, &'a [u8])>,
    content: &GroupContent<'_>,
    message: &mut Vec<u8>,
) {
    message.push(KIND_GROUP);
    message.extend_from_slice(salt);
    message.extend_from_slice(&content.personal.to_le_bytes());
    varint::push(entries.len() as u64, message);
    let mut next = 0;
    for (place, row) in entries {
        varint::push_ascending(place, &mut next, message);
        varint::push_bytes(row, message);
    }
    varint::push(content.subjects.len() as u64, message);
    let mut next = 0;
    content.subjects.iter().for_each(|&subject| varint::push_ascending(subject, &mut next, message));
    varint::push(content.ciphertext.len() as u64, message);
    message.reserve_exact(content.ciphertext.len() + Hash::LENGTH);
    message.extend_from_slice(content.ciphertext);
    message.extend_from_slice(content.commitment.as_bytes());
}

/// The leaf of a common item: H(0x03 ‖ salt ‖ its position among the items, 8 bytes little-endian ‖ the item, with what kind it is).
#[inline]
pub fn item_leaf(hash: HashId, salt: &[u8; SALT_LENGTH], position: u64, item: &[u8]) -> Hash {
    hash.hash(&[&item_head(salt, position), item])
}

/// What stands before the item in what [`item_leaf`] hashes.
#[inline]
pub fn item_head(salt: &[u8; SALT_LENGTH], position: u64) -> [u8; 1 + SALT_LENGTH + 8] {
    let mut head = [ITEM; _];
    head[1..17].copy_from_slice(salt);
    head[17..].copy_from_slice(&position.to_le_bytes());
    head
}

/// The nodes of a block's own tree: H(0x06 ‖ children).
#[derive(Clone, Copy, Debug)]
pub struct BlockNodes(pub HashId);

impl Nodes for BlockNodes {
    const ARITY: usize = 4;

    #[inline]
    fn node(&self, children: &[Hash]) -> Hash {
        self.0.hash(&[&full_node(children)[..1 + Hash::LENGTH * children.len()]])
    }
}

/// The length of what a node of as many children as there may be hashes.
pub const FULL_NODE: usize = 1 + BlockNodes::ARITY * Hash::LENGTH;

/// What a node hashes that has as many children as there may be; of one with fewer it is the beginning.
#[inline]
pub fn full_node(children: &[Hash]) -> [u8; FULL_NODE] {
    let mut message = [NODE; FULL_NODE];
    let (places, _) = message[1..].as_chunks_mut();
    places.iter_mut().zip(children).for_each(|(place, child)| *place = child.0);
    message
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
    let mut head = [ROOT; 17];
    head[1..9].copy_from_slice(&units.to_le_bytes());
    head[9..].copy_from_slice(&items.to_le_bytes());
    hash.hash(&[&head, top.as_bytes()])
}

/// The root of a block's own tree over `leaves`, the last `items` of which are common items: see [`root_of_top`], T the node at the top
/// of the tree with the leaves as they are (H of nothing where there is none, which no block has).
///
/// Hashes in place, without allocating: `leaves` is empty afterwards and keeps its capacity.
///
/// # Panics
/// When there are fewer leaves than items.
pub fn block_root(hash: HashId, leaves: &mut Vec<Hash>, items: usize) -> Hash {
    let counts = LeafCounts { units: (leaves.len() - items) as u64, items: items as u64 };
    let top = tree::reduce(leaves, &BlockNodes(hash)).unwrap_or_else(|| hash.hash(&[]));
    root_of_top(hash, counts, &top)
}
