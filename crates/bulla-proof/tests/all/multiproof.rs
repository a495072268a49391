use crate::tree::recursive_root;
use crate::vectors::{hash, hash_id, items, number, read, text};
use bulla_proof::multiproof::{self, TreeProofError};
use bulla_proof::tree::{LogNodes, MAX_SIZE, Nodes, leaf_hash};
use bulla_proof::unit::{BlockNodes, LeafCounts, root_of_top};
use bulla_proof::{Hash, HashId};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

/// The trees whose proofs are known answers: the log's, and blocks'.
const TREES: [&str; 2] = ["log", "block"];
/// A block's.
const BLOCK: BlockNodes = BlockNodes(HashId::Sha256);

#[test]
fn multi_proofs_are_as_the_vectors_say() {
    let vectors = &read("multiproofs.json")["proofs"];
    for vector in items(&vectors["log"]) {
        is_proven(vector, &LogNodes);
    }
    for vector in items(&vectors["block"]) {
        is_proven(vector, &BlockNodes(hash_id(vector)));
    }
}

fn is_proven<N: Nodes>(vector: &Value, tree: &N) {
    let (size, positions) = (number(vector, "size"), positions(vector, "positions"));
    let (leaves, nodes) = (told_leaves(vector), hashes(&vector["nodes"]));
    assert_eq!(multiproof::prove(&leaves, &positions, tree).unwrap(), nodes, "{vector}");
    assert_eq!(multiproof::count::<N>(size, &positions), Ok(nodes.len()));
    let top = multiproof::root(size, &at(&leaves, &positions), &nodes, tree).unwrap();
    assert_eq!(top.to_string(), text(vector, "top"));
}

#[test]
fn the_refused_vectors_are_refused() {
    let vectors = &read("multiproofs.json")["refused"];
    for tree in TREES {
        for vector in items(&vectors[tree]) {
            let known: Vec<(u64, Hash)> =
                positions(vector, "positions").into_iter().map(|at| (at, Hash([1; 32]))).collect();
            let (size, nodes) = (number(vector, "size"), hashes(&vector["nodes"]));
            let read = match tree {
                "log" => multiproof::root(size, &known, &nodes, &LogNodes),
                _ => multiproof::root(size, &known, &nodes, &BLOCK),
            };
            assert_eq!(format!("{:?}", read.unwrap_err()), text(vector, "error"), "{vector}");
        }
    }
}

/// Nodes of sound proofs that are missing, there twice, or not in their places.
#[test]
fn the_misplaced_vectors_do_not_lead_to_the_root() {
    let vectors = &read("multiproofs.json")["misplaced"];
    for vector in items(&vectors["log"]) {
        is_refused(vector, &LogNodes);
    }
    for vector in items(&vectors["block"]) {
        is_refused(vector, &BlockNodes(hash_id(vector)));
    }
}

fn is_refused<N: Nodes>(vector: &Value, tree: &N) {
    let (leaves, nodes) = (told_leaves(vector), hashes(&vector["nodes"]));
    assert_eq!(recursive_top(&leaves, tree).to_string(), text(vector, "top"));
    let known = at(&leaves, &positions(vector, "of")).into_iter().map(|(_, leaf)| leaf);
    let known = positions(vector, "positions").into_iter().zip(known).collect::<Vec<_>>();
    let read = multiproof::root(number(vector, "size"), &known, &nodes, tree).and_then(|top| {
        if top.to_string() == text(vector, "top") { Ok(()) } else { Err(TreeProofError::Root) }
    });
    assert_eq!(format!("{:?}", read.expect_err(text(vector, "what"))), text(vector, "error"), "{vector}");
}

/// Against RFC 6962, section 2.1.1, written down as it stands there.
#[test]
fn one_leaf_of_the_log_has_the_audit_path_of_the_rfc() {
    for size in (1..70).chain([127, 128, 129, 255, 256, 257, 300]) {
        let leaves = leaves(size);
        for leaf in 0..size {
            let nodes = multiproof::prove(&leaves, &[leaf as u64], &LogNodes).unwrap();
            assert_eq!(nodes, audit_path(leaf, &leaves), "{leaf} of {size}");
        }
    }
}

#[test]
fn every_leaf_needs_no_node() {
    for size in 1..130 {
        every_leaf_of(size, &LogNodes);
        every_leaf_of(size, &BLOCK);
    }
}

fn every_leaf_of<N: Nodes>(size: usize, tree: &N) {
    let leaves = leaves(size);
    let positions: Vec<u64> = (0..size as u64).collect();
    assert_eq!(multiproof::prove(&leaves, &positions, tree), Ok(vec![]));
    let root = multiproof::root(size as u64, &at(&leaves, &positions), &[], tree);
    assert_eq!(root, Ok(recursive_top(&leaves, tree)));
}

/// The widest trees there may be take no longer than their height.
#[test]
fn the_largest_trees_are_climbed_at_once() {
    for (size, position, count) in [
        (MAX_SIZE, 0, 62),
        (MAX_SIZE, MAX_SIZE - 1, 62),
        (MAX_SIZE - 1, 5, 62),
        ((1 << 61) + 1, 1 << 61, 1),
        ((1 << 61) + 1, 0, 62),
    ] {
        let places = multiproof::places::<LogNodes>(size, &[position]).unwrap();
        is_climbed(size, position, count, &LogNodes);
        assert_eq!(places.last().unwrap().index, u64::from(position < size.next_power_of_two() / 2));
    }
    for (size, position, count) in [
        (MAX_SIZE, 0, 93),
        (MAX_SIZE, MAX_SIZE - 1, 93),
        (MAX_SIZE - 1, 5, 93),
        (MAX_SIZE - 1, MAX_SIZE - 2, 92),
        ((1 << 60) + 1, 1 << 60, 1),
        ((1 << 60) + 1, 0, 91),
    ] {
        is_climbed(size, position, count, &BLOCK);
    }
    for size in [MAX_SIZE + 1, u64::MAX] {
        assert_eq!(multiproof::count::<LogNodes>(size, &[0]), Err(TreeProofError::Size(size)));
        assert_eq!(multiproof::count::<BlockNodes>(size, &[0]), Err(TreeProofError::Size(size)));
        let read = multiproof::root(size, &[(0, Hash::ZERO)], &[], &BLOCK);
        assert_eq!(read, Err(TreeProofError::Size(size)));
    }
}

fn is_climbed<N: Nodes>(size: u64, position: u64, count: usize, tree: &N) {
    assert_eq!(multiproof::count::<N>(size, &[position]), Ok(count), "{position} of {size}");
    let nodes = vec![Hash([2; 32]); count];
    assert!(multiproof::root(size, &[(position, Hash([1; 32]))], &nodes, tree).is_ok());
}

#[test]
fn what_is_no_set_of_leaves_is_refused() {
    let leaves = leaves(9);
    for (positions, error) in [
        (vec![], TreeProofError::NoPosition),
        (vec![9], TreeProofError::Position { position: 9, size: 9 }),
        (vec![0, u64::MAX], TreeProofError::Position { position: u64::MAX, size: 9 }),
        (vec![3, 3], TreeProofError::Order(3)),
        (vec![1, 4, 2], TreeProofError::Order(2)),
    ] {
        assert_eq!(multiproof::prove(&leaves, &positions, &LogNodes), Err(error));
        assert_eq!(multiproof::prove(&leaves, &positions, &BLOCK), Err(error));
        assert_eq!(multiproof::places::<LogNodes>(9, &positions), Err(error));
        let known: Vec<_> = positions.iter().map(|&position| (position, Hash::ZERO)).collect();
        assert_eq!(multiproof::root(9, &known, &[Hash::ZERO; 9], &LogNodes), Err(error));
        assert_eq!(multiproof::root(9, &known, &[Hash::ZERO; 9], &BLOCK), Err(error));
    }
    let error = TreeProofError::Position { position: 0, size: 0 };
    assert_eq!(multiproof::prove(&[], &[0], &LogNodes), Err(error));
}

proptest! {
    #[test]
    fn any_leaves_are_proven(size in 1..600_usize, picks in prop::collection::vec(any::<Index>(), 1..40)) {
        are_proven(size, &picks, &LogNodes)?;
        are_proven(size, &picks, &BLOCK)?;
    }

    #[test]
    fn no_other_proof_leads_to_the_root(
        size in 1..600_usize, picks in prop::collection::vec(any::<Index>(), 1..12), pick in any::<Index>(),
        bit in 0..256_usize,
    ) {
        no_other_leads(size, &picks, pick, bit, &LogNodes)?;
        no_other_leads(size, &picks, pick, bit, &BLOCK)?;
    }

    /// Another size is refused wherever it changes a leaf's path. That it does not always is why the size is signed.
    #[test]
    fn another_size_with_another_path_is_refused(size in 1..600_usize, other in 1..600_usize, pick in any::<Index>()) {
        another_size(size, other, pick, &LogNodes)?;
        another_size(size, other, pick, &BLOCK)?;
    }

    #[test]
    fn nothing_panics(
        size in any::<u64>(), mut positions in prop::collection::vec(any::<u64>(), 0..9), sorted in any::<bool>(),
        nodes in 0..200_usize,
    ) {
        if sorted {
            positions.sort_unstable();
        }
        is_judged(size, &positions, nodes, &LogNodes)?;
        is_judged(size, &positions, nodes, &BLOCK)?;
    }
}

fn are_proven<N: Nodes>(size: usize, picks: &[Index], tree: &N) -> Result<(), TestCaseError> {
    let (leaves, positions) = (leaves(size), picked(size, picks));
    let nodes = multiproof::prove(&leaves, &positions, tree).unwrap();
    let root = multiproof::root(size as u64, &at(&leaves, &positions), &nodes, tree);
    prop_assert_eq!(root, Ok(recursive_top(&leaves, tree)));
    // Telling where the nodes are is the same as telling them.
    let places = multiproof::places::<N>(size as u64, &positions).unwrap();
    prop_assert_eq!(multiproof::count::<N>(size as u64, &positions), Ok(places.len()));
    let told = places.iter().map(|place| {
        let width = N::ARITY.pow(place.level);
        let first = usize::try_from(place.index).unwrap() * width;
        recursive_top(&leaves[first..size.min(first + width)], tree)
    });
    prop_assert_eq!(told.collect::<Vec<_>>(), nodes);
    Ok(())
}

fn no_other_leads<N: Nodes>(
    size: usize,
    picks: &[Index],
    pick: Index,
    bit: usize,
    tree: &N,
) -> Result<(), TestCaseError> {
    let (leaves, positions) = (leaves(size), picked(size, picks));
    let (nodes, known) = (multiproof::prove(&leaves, &positions, tree).unwrap(), at(&leaves, &positions));
    let root = recursive_top(&leaves, tree);
    let read = |known: &[(u64, Hash)], nodes: &[Hash]| multiproof::root(size as u64, known, nodes, tree);
    let leads = |known: &[(u64, Hash)], nodes: &[Hash]| read(known, nodes) == Ok(root);
    prop_assert!(leads(&known, &nodes));

    let mut other = known.clone();
    other[pick.index(known.len())].1.0[bit / 8] ^= 1 << (bit % 8);
    prop_assert!(!leads(&other, &nodes), "an altered leaf");
    for at in 0..nodes.len() {
        let mut other = nodes.clone();
        other[at].0[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!leads(&known, &other), "an altered node");
        other = nodes.clone();
        other.remove(at);
        prop_assert_eq!(read(&known, &other), Err(TreeProofError::TooFewNodes));
        if at > 0 {
            other = nodes.clone();
            other.swap(at - 1, at);
            prop_assert!(!leads(&known, &other), "nodes in another order");
        }
    }
    let more = [&nodes[..], &[nodes.first().copied().unwrap_or(Hash::ZERO)]].concat();
    prop_assert_eq!(read(&known, &more), Err(TreeProofError::TooManyNodes));
    // A leaf at another position, which is not known otherwise.
    let from = pick.index(known.len());
    for to in (0..size as u64).filter(|to| !positions.contains(to)).take(40) {
        let mut other = known.clone();
        other[from].0 = to;
        other.sort_unstable();
        prop_assert!(!leads(&other, &nodes), "a leaf from {} at {}", known[from].0, to);
    }
    Ok(())
}

fn another_size<N: Nodes>(size: usize, other: usize, pick: Index, tree: &N) -> Result<(), TestCaseError> {
    let leaf = pick.index(size.min(other)) as u64;
    let leaves = leaves(size);
    let nodes = multiproof::prove(&leaves, &[leaf], tree).unwrap();
    let read = multiproof::root(other as u64, &at(&leaves, &[leaf]), &nodes, tree);
    // On which sides the siblings stand, level by level: a path's shape.
    let shape = |size| {
        let places = multiproof::places::<N>(size as u64, &[leaf]).unwrap();
        let levels = places.chunk_by(|one, other| one.level == other.level);
        let sides = |level: &[multiproof::NodePosition]| {
            level.iter().map(|place| place.index % N::ARITY as u64).collect::<Vec<_>>()
        };
        levels.map(sides).collect::<Vec<_>>()
    };
    prop_assert_eq!(read == Ok(recursive_top(&leaves, tree)), shape(size) == shape(other));
    Ok(())
}

fn is_judged<N: Nodes>(size: u64, positions: &[u64], nodes: usize, tree: &N) -> Result<(), TestCaseError> {
    let known: Vec<_> = positions.iter().map(|&position| (position, Hash::ZERO)).collect();
    let read = multiproof::root(size, &known, &vec![Hash::ZERO; nodes], tree);
    match multiproof::count::<N>(size, positions) {
        Ok(count) => prop_assert_eq!(read.is_ok(), count == nodes),
        Err(error) => prop_assert_eq!(read, Err(error)),
    }
    Ok(())
}

/// The node at the top by the recursive definition: over the tops of as many leaves each as the largest power of the arity below all,
/// and of the rest.
pub(crate) fn recursive_top<N: Nodes>(leaves: &[Hash], tree: &N) -> Hash {
    if let [leaf] = leaves {
        return *leaf;
    }
    let mut width = 1;
    while width * N::ARITY < leaves.len() {
        width *= N::ARITY;
    }
    let children = leaves.chunks(width).map(|leaves| recursive_top(leaves, tree)).collect::<Vec<_>>();
    tree.node(&children)
}

/// The path of RFC 6962, section 2.1.1, by its definition.
fn audit_path(leaf: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
    let (mut path, sibling) = match leaf.checked_sub(left.len()) {
        None => (audit_path(leaf, left), recursive_root(right)),
        Some(leaf) => (audit_path(leaf, right), recursive_root(left)),
    };
    path.push(sibling);
    path
}

pub(crate) fn leaves(size: usize) -> Vec<Hash> {
    (0..size).map(|leaf| leaf_hash(leaf.to_string().as_bytes())).collect()
}

/// The leaves of a vector's tree.
fn told_leaves(vector: &Value) -> Vec<Hash> {
    (0..number(vector, "size")).map(|leaf| hash_id(vector).hash(&[leaf.to_string().as_bytes()])).collect()
}

fn picked(size: usize, picks: &[Index]) -> Vec<u64> {
    let mut positions: Vec<u64> = picks.iter().map(|pick| pick.index(size) as u64).collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}

fn at(leaves: &[Hash], positions: &[u64]) -> Vec<(u64, Hash)> {
    positions.iter().map(|&position| (position, leaves[usize::try_from(position).unwrap()])).collect()
}

fn positions(vector: &Value, name: &str) -> Vec<u64> {
    vector[name].as_array().unwrap().iter().map(|position| position.as_u64().unwrap()).collect()
}

pub(crate) fn hashes(list: &Value) -> Vec<Hash> {
    list.as_array().unwrap().iter().map(|node| hash(node.as_str().unwrap())).collect()
}

#[test]
fn both_hashes_of_blocks_are_provable() {
    for tree in HashId::ALL.map(BlockNodes) {
        let id = tree.0;
        let units: Vec<Hash> = (0..77_u8).map(|unit| id.hash(&[&[unit]])).collect();
        let nodes = multiproof::prove(&units, &[5, 6, 76], &tree).unwrap();
        let top = multiproof::root(77, &at(&units, &[5, 6, 76]), &nodes, &tree).unwrap();
        let root = bulla_proof::block_root(id, &mut units.clone(), 3);
        assert_eq!(root_of_top(id, LeafCounts { units: 74, items: 3 }, &top), root);
        for (units, items) in [(75, 2), (75, 3), (74, 4), (77, 0)] {
            assert_ne!(root_of_top(id, LeafCounts { units, items }, &top), root);
        }
    }
}
