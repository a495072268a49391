//! The log's tree: RFC 6962, section 2.1, over the commitments, always SHA-256. It is also the tree of
//! [C2SP tlog-tiles](https://c2sp.org/tlog-tiles).

use crate::hash::{Hash, sha256};

/// The most leaves of a tree that this crate grows. No log gets there; sizes past it come only from bad input.
pub const MAX_SIZE: u64 = 1 << 62;

/// The hash of a leaf: SHA-256(0x00 ‖ data).
pub fn leaf_hash(data: &[u8]) -> Hash {
    sha256(&[&[0x00], data])
}

/// The hash of an inner node: SHA-256(0x01 ‖ left ‖ right).
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[0x01], left.as_bytes(), right.as_bytes()])
}

/// How the nodes of a tree come from those below them. A level has its nodes by [`Nodes::ARITY`] from the left, and what is left of it
/// at its right end is one node more, or where that is a lone one, goes up as it is.
pub trait Nodes {
    /// The most children that a node has.
    const ARITY: usize;

    /// The node above so many: at least two, at most [`Nodes::ARITY`].
    fn node(&self, children: &[Hash]) -> Hash;
}

/// The nodes of the log's tree.
#[derive(Clone, Copy, Debug)]
pub struct LogNodes;

impl Nodes for LogNodes {
    const ARITY: usize = 2;

    fn node(&self, children: &[Hash]) -> Hash {
        node_hash(&children[0], &children[1])
    }
}

/// The root of the tree without leaves: SHA-256 of nothing.
pub fn empty_root() -> Hash {
    sha256(&[])
}

/// A tree of some size, by its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// How many leaves it has.
    pub size: u64,
    /// What they come to.
    pub root: Hash,
}

impl TreeHead {
    /// That of the tree without leaves.
    pub fn empty() -> Self {
        TreeHead { size: 0, root: empty_root() }
    }
}

/// The right edge of a growing tree: the roots of the perfect subtrees it falls into, left to right, largest first.
/// It is all that is needed to append leaves and to name the root.
///
/// **Invariant:** there is one node for each bit set in the size.
///
/// ```
/// use bulla_proof::tree::{Frontier, leaf_hash, node_hash};
///
/// let mut frontier = Frontier::new();
/// frontier.push(leaf_hash(b"first"));
/// frontier.push(leaf_hash(b"second"));
/// assert_eq!(frontier.root(), node_hash(&leaf_hash(b"first"), &leaf_hash(b"second")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    nodes: Vec<Hash>,
}

impl Frontier {
    /// The tree without leaves.
    pub fn new() -> Self {
        Self::default()
    }

    /// The right edge of a tree of `size` leaves, from its nodes. `None` where `nodes` does not hold one for each bit
    /// set in `size`, or `size` is past [`MAX_SIZE`].
    pub fn from_nodes(size: u64, nodes: Vec<Hash>) -> Option<Self> {
        let count = usize::try_from(size.count_ones()).ok()?;
        (size <= MAX_SIZE && nodes.len() == count).then_some(Frontier { size, nodes })
    }

    /// As [`Frontier::from_nodes`], for nodes that are known to be as many as they must.
    pub(crate) fn from_edge(size: u64, nodes: Vec<Hash>) -> Self {
        debug_assert_eq!(size.count_ones() as usize, nodes.len());
        Frontier { size, nodes }
    }

    /// Appends a leaf, given its hash ([`leaf_hash`]).
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.nodes.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.nodes.push(node);
        self.size += 1;
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the perfect subtrees, left to right.
    pub fn nodes(&self) -> &[Hash] {
        &self.nodes
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        let fold = |right: Hash, left: &Hash| node_hash(left, &right);
        let mut nodes = self.nodes.iter().rev();
        nodes.next().map_or_else(empty_root, |&last| nodes.fold(last, fold))
    }
}

/// The node at the top of the tree over `hashes`, which are taken from there; `None` of none.
pub(crate) fn reduce<N: Nodes>(hashes: &mut Vec<Hash>, nodes: &N) -> Option<Hash> {
    while hashes.len() > 1 {
        rise(hashes, nodes);
    }
    hashes.pop()
}

/// Replaces a level of a tree by the one above it.
///
/// Of the log's tree that gives the tree of RFC 6962: every node stands for a perfect subtree of the level's width but the last, which
/// stands for the rest, so that the last pairing of all is at the largest power of two below the number of leaves, and likewise inside
/// the rest.
pub(crate) fn rise<N: Nodes>(level: &mut Vec<Hash>, nodes: &N) {
    let above = level.len().div_ceil(N::ARITY);
    for at in 0..above {
        let first = at * N::ARITY;
        level[at] = match &level[first..level.len().min(first + N::ARITY)] {
            [only] => *only,
            children => nodes.node(children),
        };
    }
    level.truncate(above);
}
