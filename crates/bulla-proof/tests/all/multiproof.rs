use crate::tree::recursive_root;
use crate::vectors::{hash, hash_id, items, number, read, text};
use bulla_proof::multiproof::{self, TreeProofError};
use bulla_proof::tree::{MAX_SIZE, leaf_hash, node_hash};
use bulla_proof::unit::{LeafCounts, block_node, root_of_top};
use bulla_proof::{Hash, HashId};
use proptest::prelude::*;
use proptest::sample::Index;

fn only_units(units: u64) -> LeafCounts {
    LeafCounts { units, items: 0 }
}

#[test]
fn multi_proofs_are_as_the_vectors_say() {
    for vector in items(&read("multiproofs.json")["proofs"]) {
        let (size, positions) = (number(vector, "size"), positions(vector));
        let id = hash_id(vector);
        let node = |left: &Hash, right: &Hash| block_node(id, left, right);
        let leaves: Vec<Hash> = (0..size).map(|leaf| id.hash(&[leaf.to_string().as_bytes()])).collect();
        let nodes = hashes(&vector["nodes"]);
        assert_eq!(multiproof::prove(&leaves, &positions, node).unwrap(), nodes, "{vector}");
        assert_eq!(multiproof::count(size, &positions), Ok(nodes.len()));
        let known = at(&leaves, &positions);
        let top = multiproof::root(size, &known, &nodes, node).unwrap();
        assert_eq!(top.to_string(), text(vector, "top"));
        assert_eq!(root_of_top(id, only_units(size), &top).to_string(), text(vector, "block_root"));
    }
}

#[test]
fn the_refused_vectors_are_refused() {
    for vector in items(&read("multiproofs.json")["refused"]) {
        let known: Vec<(u64, Hash)> = positions(vector).into_iter().map(|at| (at, Hash([1; 32]))).collect();
        let nodes = hashes(&vector["nodes"]);
        let error = multiproof::root(number(vector, "size"), &known, &nodes, node_hash).unwrap_err();
        assert_eq!(format!("{error:?}"), text(vector, "error"), "{vector}");
    }
}

/// Against RFC 6962, section 2.1.1, written down as it stands there.
#[test]
fn one_leaf_has_the_audit_path_of_the_rfc() {
    for size in (1..70).chain([127, 128, 129, 255, 256, 257, 300]) {
        let leaves = leaves(size);
        for leaf in 0..size {
            let nodes = multiproof::prove(&leaves, &[leaf as u64], node_hash).unwrap();
            assert_eq!(nodes, audit_path(leaf, &leaves), "{leaf} of {size}");
        }
    }
}

#[test]
fn every_leaf_needs_no_node() {
    for size in 1..130 {
        let leaves = leaves(size);
        let positions: Vec<u64> = (0..size as u64).collect();
        assert_eq!(multiproof::prove(&leaves, &positions, node_hash), Ok(vec![]));
        let root = multiproof::root(size as u64, &at(&leaves, &positions), &[], node_hash);
        assert_eq!(root, Ok(recursive_root(&leaves)));
    }
}

/// The widest trees there may be take no longer than their height.
#[test]
fn the_largest_trees_are_climbed_at_once() {
    let leaf = Hash([1; 32]);
    for (size, position, height) in [
        (MAX_SIZE, 0, 62),
        (MAX_SIZE, MAX_SIZE - 1, 62),
        (MAX_SIZE - 1, 5, 62),
        ((1 << 61) + 1, 1 << 61, 1),
        ((1 << 61) + 1, 0, 62),
    ] {
        assert_eq!(multiproof::count(size, &[position]), Ok(height), "{position} of {size}");
        let nodes = vec![Hash([2; 32]); height];
        assert!(multiproof::root(size, &[(position, leaf)], &nodes, node_hash).is_ok());
        let last = multiproof::places(size, &[position]).unwrap().pop().unwrap();
        assert_eq!(last.index, u64::from(position < size.next_power_of_two() / 2));
    }
    for size in [MAX_SIZE + 1, u64::MAX] {
        assert_eq!(multiproof::count(size, &[0]), Err(TreeProofError::Size(size)));
        assert_eq!(multiproof::root(size, &[(0, leaf)], &[], node_hash), Err(TreeProofError::Size(size)));
    }
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
        assert_eq!(multiproof::prove(&leaves, &positions, node_hash), Err(error));
        assert_eq!(multiproof::places(9, &positions), Err(error));
        let known: Vec<_> = positions.iter().map(|&position| (position, Hash::ZERO)).collect();
        assert_eq!(multiproof::root(9, &known, &[Hash::ZERO; 9], node_hash), Err(error));
    }
    let error = TreeProofError::Position { position: 0, size: 0 };
    assert_eq!(multiproof::prove(&[], &[0], node_hash), Err(error));
}

proptest! {
    #[test]
    fn any_leaves_are_proven(size in 1..600_usize, picks in prop::collection::vec(any::<Index>(), 1..40)) {
        let (leaves, positions) = (leaves(size), picked(size, &picks));
        let nodes = multiproof::prove(&leaves, &positions, node_hash).unwrap();
        let root = multiproof::root(size as u64, &at(&leaves, &positions), &nodes, node_hash);
        prop_assert_eq!(root, Ok(recursive_root(&leaves)));
        // Telling where the nodes are is the same as telling them.
        let places = multiproof::places(size as u64, &positions).unwrap();
        prop_assert_eq!(multiproof::count(size as u64, &positions), Ok(places.len()));
        let told = places.iter().map(|place| {
            let first = usize::try_from(place.index << place.level).unwrap();
            recursive_root(&leaves[first..size.min(first + (1 << place.level))])
        });
        prop_assert_eq!(told.collect::<Vec<_>>(), nodes);
    }

    #[test]
    fn no_other_proof_leads_to_the_root(
        size in 1..600_usize, picks in prop::collection::vec(any::<Index>(), 1..12), pick in any::<Index>(),
        bit in 0..256_usize,
    ) {
        let (leaves, positions) = (leaves(size), picked(size, &picks));
        let (nodes, known) = (multiproof::prove(&leaves, &positions, node_hash).unwrap(), at(&leaves, &positions));
        let root = recursive_root(&leaves);
        let leads = |size: usize, known: &[(u64, Hash)], nodes: &[Hash]| {
            multiproof::root(size as u64, known, nodes, node_hash) == Ok(root)
        };
        prop_assert!(leads(size, &known, &nodes));

        let mut other = known.clone();
        other[pick.index(known.len())].1.0[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!leads(size, &other, &nodes), "an altered leaf");
        for at in 0..nodes.len() {
            let mut other = nodes.clone();
            other[at].0[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!leads(size, &known, &other), "an altered node");
            other = nodes.clone();
            other.remove(at);
            prop_assert_eq!(
                multiproof::root(size as u64, &known, &other, node_hash), Err(TreeProofError::TooFewNodes)
            );
            if at > 0 {
                other = nodes.clone();
                other.swap(at - 1, at);
                prop_assert!(!leads(size, &known, &other), "nodes in another order");
            }
        }
        let more = [&nodes[..], &[nodes.first().copied().unwrap_or(Hash::ZERO)]].concat();
        prop_assert_eq!(
            multiproof::root(size as u64, &known, &more, node_hash), Err(TreeProofError::TooManyNodes)
        );
        // A leaf at another position, which is not known otherwise.
        let from = pick.index(known.len());
        for to in (0..size as u64).filter(|to| !positions.contains(to)).take(40) {
            let mut other = known.clone();
            other[from].0 = to;
            other.sort_unstable();
            prop_assert!(!leads(size, &other, &nodes), "a leaf from {} at {}", known[from].0, to);
        }
    }

    /// Another size is refused wherever it changes a leaf's path. That it does not always is why the size is signed.
    #[test]
    fn another_size_with_another_path_is_refused(size in 1..600_usize, other in 1..600_usize, pick in any::<Index>()) {
        let leaf = pick.index(size.min(other)) as u64;
        let leaves = leaves(size);
        let nodes = multiproof::prove(&leaves, &[leaf], node_hash).unwrap();
        let read = multiproof::root(other as u64, &at(&leaves, &[leaf]), &nodes, node_hash);
        // The sides on which siblings stand, a path's shape.
        let shape = |size| {
            let places = multiproof::places(size as u64, &[leaf]).unwrap();
            places.iter().map(|place| place.index % 2).collect::<Vec<_>>()
        };
        prop_assert_eq!(read == Ok(recursive_root(&leaves)), shape(size) == shape(other));
    }

    #[test]
    fn nothing_panics(
        size in any::<u64>(), mut positions in prop::collection::vec(any::<u64>(), 0..9), sorted in any::<bool>(),
        nodes in 0..80_usize,
    ) {
        if sorted {
            positions.sort_unstable();
        }
        let known: Vec<_> = positions.iter().map(|&position| (position, Hash::ZERO)).collect();
        let read = multiproof::root(size, &known, &vec![Hash::ZERO; nodes], node_hash);
        match multiproof::count(size, &positions) {
            Ok(count) => prop_assert_eq!(read.is_ok(), count == nodes),
            Err(error) => prop_assert_eq!(read, Err(error)),
        }
    }
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

fn picked(size: usize, picks: &[Index]) -> Vec<u64> {
    let mut positions: Vec<u64> = picks.iter().map(|pick| pick.index(size) as u64).collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}

fn at(leaves: &[Hash], positions: &[u64]) -> Vec<(u64, Hash)> {
    positions.iter().map(|&position| (position, leaves[usize::try_from(position).unwrap()])).collect()
}

fn positions(vector: &serde_json::Value) -> Vec<u64> {
    vector["positions"].as_array().unwrap().iter().map(|position| position.as_u64().unwrap()).collect()
}

pub(crate) fn hashes(list: &serde_json::Value) -> Vec<Hash> {
    list.as_array().unwrap().iter().map(|node| hash(node.as_str().unwrap())).collect()
}

#[test]
fn both_hashes_of_blocks_are_provable() {
    for id in HashId::ALL {
        let node = |left: &Hash, right: &Hash| block_node(id, left, right);
        let units: Vec<Hash> = (0..77_u8).map(|unit| id.hash(&[&[unit]])).collect();
        let nodes = multiproof::prove(&units, &[5, 6, 76], node).unwrap();
        let top = multiproof::root(77, &at(&units, &[5, 6, 76]), &nodes, node).unwrap();
        let root = bulla_proof::block_root(id, &mut units.clone(), 0);
        assert_eq!(root_of_top(id, only_units(77), &top), root);
        assert_ne!(root_of_top(id, only_units(78), &top), root);
    }
}
