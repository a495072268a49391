//! Compact proofs that leaves are in a tree: any number of them at once, every shared node told once.
//!
//! The tree is the log's, which is that of RFC 6962, section 2.1, or a block's, whose nodes have up to four children: the [`Nodes`] say
//! which. It has at most [`MAX_SIZE`] leaves. A proof's nodes stand bottom-up, level by level, and left to right within a level: the
//! siblings that a reader who climbs from the leaves does not know by then. The last node of a level may have no sibling; it goes up as
//! it is. For one leaf of the log's tree this is the audit path of RFC 6962, section 2.1.1.
//!
//! Which nodes those are follows from the size and the positions alone, and the work of a reader from what it was
//! given, whatever size it was told: it climbs at most 62 levels with at most as many nodes as leaves, and of each it takes at most as
//! many children as a node has.
//!
//! ```
//! use bulla_proof::tree::{LogNodes, leaf_hash};
//! use bulla_proof::{Frontier, multiproof};
//!
//! let leaves = [b"a", b"b", b"c", b"d", b"e"].map(|leaf| leaf_hash(leaf));
//! let nodes = multiproof::prove(&leaves, &[1, 4], &LogNodes).unwrap();
//! let known = [(1, leaves[1]), (4, leaves[4])];
//! let root = multiproof::root(5, &known, &nodes, &LogNodes).unwrap();
//!
//! let mut frontier = Frontier::new();
//! leaves.iter().for_each(|leaf| frontier.push(*leaf));
//! assert_eq!(root, frontier.root());
//! ```

use crate::hash::Hash;
use crate::tree::{self, LogNodes, MAX_SIZE, Nodes};
use std::fmt;

/// The most children that a node of any tree here has.
const MOST_CHILDREN: usize = 4;

/// Where a node stands in a tree: with an arity of *a*, over the leaves from `index` · *a*^`level` on, *a*^`level` of them or as many as
/// are left. Level 0 is the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct NodePosition {
    pub level: u32,
    pub index: u64,
}

/// Which nodes prove the leaves at `positions` of a tree of `size` leaves, in the order of the proof: for a caller
/// that has a tree's nodes at hand (in tiles, say) and need not hash all its leaves.
///
/// # Errors
/// [`TreeProofError::Size`] past [`MAX_SIZE`]; [`TreeProofError::NoPosition`], [`TreeProofError::Position`] and
/// [`TreeProofError::Order`] where `positions` are not some of the tree's, strictly ascending.
pub fn places<N: Nodes>(size: u64, positions: &[u64]) -> Result<Vec<NodePosition>, TreeProofError> {
    let mut places = Vec::new();
    visit::<N>(size, positions, |place| places.push(place))?;
    Ok(places)
}

/// How many nodes prove the leaves at `positions` of a tree of `size` leaves.
///
/// # Errors
/// As [`places`].
pub fn count<N: Nodes>(size: u64, positions: &[u64]) -> Result<usize, TreeProofError> {
    let mut count = 0;
    visit::<N>(size, positions, |_| count += 1)?;
    Ok(count)
}

/// The nodes that prove the leaves at `positions` of the tree over `leaves`.
///
/// # Errors
/// As [`places`].
pub fn prove<N: Nodes>(leaves: &[Hash], positions: &[u64], nodes: &N) -> Result<Vec<Hash>, TreeProofError> {
    check(leaves.len() as u64, positions.iter().copied())?;
    let mut known: Vec<(u64, ())> = positions.iter().map(|&position| (position, ())).collect();
    let mut level = leaves.to_vec();
    let mut proof = Vec::new();
    while level.len() > 1 {
        let sibling = |index: u64| {
            // An index below the length of a vector fits.
            proof.push(level[usize::try_from(index).unwrap_or(usize::MAX)]);
            Ok(())
        };
        rise::<N, ()>(level.len() as u64, &mut known, sibling, |_| ())?;
        tree::rise(&mut level, nodes);
    }
    Ok(proof)
}

/// The audit paths of RFC 6962, section 2.1.1, of the leaves at `positions` of the log's tree over `leaves`: one proof for each of them by
/// itself, from the leaf up.
///
/// # Errors
/// As [`places`].
pub fn audit_paths(leaves: &[Hash], positions: &[u64]) -> Result<Vec<Vec<Hash>>, TreeProofError> {
    check(leaves.len() as u64, positions.iter().copied())?;
    let mut places = positions.to_vec();
    let mut paths = vec![Vec::new(); positions.len()];
    let mut level = leaves.to_vec();
    while level.len() > 1 {
        for (place, path) in places.iter_mut().zip(&mut paths) {
            // The last node of a level may have no sibling.
            let sibling = usize::try_from(*place ^ 1).ok().and_then(|sibling| level.get(sibling));
            path.extend(sibling);
            *place /= 2;
        }
        tree::rise(&mut level, &LogNodes);
    }
    Ok(paths)
}

/// The root of the tree of `size` leaves in which the leaves `known`, by position, are proven by `proof`: it is the
/// caller's to compare it with the root that it trusts. Every node is used.
///
/// # Errors
/// As [`places`]; [`TreeProofError::TooFewNodes`] and [`TreeProofError::TooManyNodes`] where these are not as many
/// nodes as the positions need.
pub fn root<N: Nodes>(
    size: u64,
    known: &[(u64, Hash)],
    proof: &[Hash],
    nodes: &N,
) -> Result<Hash, TreeProofError> {
    check(size, known.iter().map(|&(position, _)| position))?;
    let mut proof = proof.iter();
    let mut known = known.to_vec();
    let mut width = size;
    while width > 1 {
        let sibling = |_| proof.next().copied().ok_or(TreeProofError::TooFewNodes);
        width = rise::<N, _>(width, &mut known, sibling, |children| nodes.node(children))?;
    }
    if proof.next().is_some() {
        return Err(TreeProofError::TooManyNodes);
    }
    known.first().map(|&(_, root)| root).ok_or(TreeProofError::NoPosition)
}

/// Calls `visit` with the place of each node of a proof, in order.
fn visit<N: Nodes>(
    size: u64,
    positions: &[u64],
    mut visit: impl FnMut(NodePosition),
) -> Result<(), TreeProofError> {
    check(size, positions.iter().copied())?;
    let mut known: Vec<(u64, ())> = positions.iter().map(|&position| (position, ())).collect();
    let (mut width, mut level) = (size, 0);
    while width > 1 {
        let sibling = |index| {
            visit(NodePosition { level, index });
            Ok(())
        };
        width = rise::<N, ()>(width, &mut known, sibling, |_| ())?;
        level += 1;
    }
    Ok(())
}

fn check(size: u64, positions: impl Iterator<Item = u64>) -> Result<(), TreeProofError> {
    if size > MAX_SIZE {
        return Err(TreeProofError::Size(size));
    }
    let mut last = None;
    for position in positions {
        if position >= size {
            return Err(TreeProofError::Position { position, size });
        }
        if last.is_some_and(|last| last >= position) {
            return Err(TreeProofError::Order(position));
        }
        last = Some(position);
    }
    if last.is_none() { Err(TreeProofError::NoPosition) } else { Ok(()) }
}

/// Replaces the nodes known of a level, `width` wide, by those known of the level above it, and returns how wide that is. `sibling`
/// tells a node that is not known, by its index in the level.
///
/// **Invariant:** indices ascend strictly, before and after.
fn rise<N: Nodes, T: Copy>(
    width: u64,
    known: &mut Vec<(u64, T)>,
    mut sibling: impl FnMut(u64) -> Result<T, TreeProofError>,
    node: impl Fn(&[T]) -> T,
) -> Result<u64, TreeProofError> {
    const { assert!(N::ARITY <= MOST_CHILDREN) };
    let arity = N::ARITY as u64;
    let (mut read, mut written) = (0, 0);
    while let Some(&(index, value)) = known.get(read) {
        let parent = index / arity;
        // A level is at most 2^62 wide.
        let places = parent * arity..width.min((parent + 1) * arity);
        let (mut children, mut count) = ([value; MOST_CHILDREN], 0);
        for place in places {
            children[count] = match known.get(read) {
                Some(&(at, value)) if at == place => {
                    read += 1;
                    value
                }
                _ => sibling(place)?,
            };
            count += 1;
        }
        known[written] = (parent, if count == 1 { value } else { node(&children[..count]) });
        written += 1;
    }
    known.truncate(written);
    Ok(width.div_ceil(arity))
}

/// Why a proof about a tree does not hold, or cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeProofError {
    /// The tree is larger than [`MAX_SIZE`].
    Size(u64),
    /// It is about no leaf.
    NoPosition,
    /// The tree has no such leaf.
    #[allow(missing_docs)]
    Position { position: u64, size: u64 },
    /// This position does not come after the one before it.
    Order(u64),
    /// The proof ends before the root is reached.
    TooFewNodes,
    /// The proof has nodes that lead nowhere.
    TooManyNodes,
    /// The older tree is the larger one.
    #[allow(missing_docs)]
    Shrunk { old: u64, new: u64 },
    /// The proof does not lead to the root of the older tree.
    OldRoot,
    /// The proof does not lead to the root.
    Root,
}

impl fmt::Display for TreeProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "no tree has {size} leaves"),
            Self::NoPosition => write!(f, "the proof is about no leaf"),
            Self::Position { position, size } => {
                write!(f, "the tree has {size} leaves, and so none at {position}")
            }
            Self::Order(position) => write!(f, "position {position} does not come after the one before it"),
            Self::TooFewNodes => write!(f, "the proof has too few hashes"),
            Self::TooManyNodes => write!(f, "the proof has too many hashes"),
            Self::Shrunk { old, new } => write!(f, "the older tree has {old} leaves, the newer one {new}"),
            Self::OldRoot => write!(f, "the hashes do not lead to the older tree's root"),
            Self::Root => write!(f, "the hashes do not lead to the tree's root"),
        }
    }
}

impl std::error::Error for TreeProofError {}
