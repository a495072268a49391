//! Proofs that one tree of the log begins with another: RFC 6962, section 2.1.2.
//!
//! Such a proof is the largest perfect subtree at the old tree's right edge (left out where that is the whole old
//! tree, whose root the reader has), and then that subtree's audit path in the new tree. A tree begins with itself
//! and with the empty tree; neither takes any node to prove.

use crate::hash::Hash;
use crate::multiproof::{self, NodePosition, TreeProofError};
use crate::tree::{self, LogNodes, MAX_SIZE, node_hash};

/// Which nodes of the tree of `new_size` leaves prove that it begins with its first `old_size`, in the order of the
/// proof.
///
/// # Errors
/// [`TreeProofError::Size`] past [`MAX_SIZE`], [`TreeProofError::Shrunk`] where the old tree is the larger one.
pub fn places(old_size: u64, new_size: u64) -> Result<Vec<NodePosition>, TreeProofError> {
    let Some(edge) = edge(old_size, new_size)? else { return Ok(Vec::new()) };
    let width = new_size.div_ceil(1 << edge.level);
    let path = multiproof::places::<LogNodes>(width, &[edge.index])?;
    let above = |place: NodePosition| NodePosition { level: place.level + edge.level, ..place };
    Ok((edge.index > 0).then_some(edge).into_iter().chain(path.into_iter().map(above)).collect())
}

/// The nodes that prove that the tree over `leaves` begins with the tree over the first `old_size` of them.
///
/// # Errors
/// As [`places`].
pub fn prove_consistency(leaves: &[Hash], old_size: u64) -> Result<Vec<Hash>, TreeProofError> {
    let Some(edge) = edge(old_size, leaves.len() as u64)? else { return Ok(Vec::new()) };
    let mut level = leaves.to_vec();
    for _ in 0..edge.level {
        tree::rise(&mut level, &LogNodes);
    }
    let path = multiproof::prove(&level, &[edge.index], &LogNodes)?;
    let first = usize::try_from(edge.index).ok().filter(|&index| index > 0).map(|index| level[index]);
    Ok(first.into_iter().chain(path).collect())
}

/// Checks that the tree of `new_size` leaves and `new_root` begins with the tree of `old_size` leaves and `old_root`
/// (RFC 9162, section 2.1.4.2).
///
/// # Errors
/// As [`places`]; [`TreeProofError::TooFewNodes`] and [`TreeProofError::TooManyNodes`] for another number of nodes
/// than these sizes need; [`TreeProofError::OldRoot`] and [`TreeProofError::Root`] for another root.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    nodes: &[Hash],
) -> Result<(), TreeProofError> {
    check(old_size, new_size)?;
    if old_size == 0 && *old_root != tree::empty_root() {
        return Err(TreeProofError::OldRoot);
    }
    if old_size == 0 || old_size == new_size {
        return match nodes {
            [] if old_size == new_size && old_root != new_root => Err(TreeProofError::Root),
            [] => Ok(()),
            [..] => Err(TreeProofError::TooManyNodes),
        };
    }
    let mut nodes = nodes.iter();
    let start = if old_size.is_power_of_two() { Some(old_root) } else { nodes.next() };
    let start = start.ok_or(TreeProofError::TooFewNodes)?;

    // The last leaf's node in either tree, from the largest perfect subtree at the old tree's edge upwards.
    let level = old_size.trailing_zeros();
    let (mut old, mut new) = ((old_size - 1) >> level, (new_size - 1) >> level);
    let (mut old_top, mut new_top) = (*start, *start);
    for node in nodes {
        if new == 0 {
            return Err(TreeProofError::TooManyNodes);
        }
        if old % 2 == 1 || old == new {
            old_top = node_hash(node, &old_top);
            new_top = node_hash(node, &new_top);
            while old % 2 == 0 && old > 0 {
                (old, new) = (old / 2, new / 2);
            }
        } else {
            new_top = node_hash(&new_top, node);
        }
        (old, new) = (old / 2, new / 2);
    }
    if new != 0 {
        return Err(TreeProofError::TooFewNodes);
    }
    match (old_top == *old_root, new_top == *new_root) {
        (false, _) => Err(TreeProofError::OldRoot),
        (true, false) => Err(TreeProofError::Root),
        (true, true) => Ok(()),
    }
}

/// The largest perfect subtree at the right edge of the old tree; `None` where there is nothing to prove.
fn edge(old_size: u64, new_size: u64) -> Result<Option<NodePosition>, TreeProofError> {
    check(old_size, new_size)?;
    if old_size == 0 || old_size == new_size {
        return Ok(None);
    }
    let level = old_size.trailing_zeros();
    Ok(Some(NodePosition { level, index: (old_size - 1) >> level }))
}

fn check(old: u64, new: u64) -> Result<(), TreeProofError> {
    match () {
        () if new > MAX_SIZE => Err(TreeProofError::Size(new)),
        () if old > new => Err(TreeProofError::Shrunk { old, new }),
        () => Ok(()),
    }
}
