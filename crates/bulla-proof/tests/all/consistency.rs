use crate::multiproof::{hashes, leaves};
use crate::tree::recursive_root;
use crate::vectors::{hash, items, number, read, text};
use bulla_proof::Hash;
use bulla_proof::consistency::{places, prove_consistency, verify_consistency};
use bulla_proof::multiproof::TreeProofError;
use bulla_proof::tree::{MAX_SIZE, empty_root};
use proptest::prelude::*;

#[test]
fn consistency_proofs_are_as_the_vectors_say() {
    for vector in items(&read("consistency.json")["proofs"]) {
        let (old, new) = (number(vector, "old_size"), number(vector, "new_size"));
        let nodes = hashes(&vector["nodes"]);
        let leaves = leaves(usize::try_from(new).unwrap());
        assert_eq!(prove_consistency(&leaves, old).unwrap(), nodes, "{old} to {new}");
        let (old_root, new_root) = (hash(text(vector, "old_root")), hash(text(vector, "new_root")));
        assert_eq!(verify_consistency(old, &old_root, new, &new_root, &nodes), Ok(()), "{old} to {new}");
    }
}

#[test]
fn the_refused_vectors_are_refused() {
    for vector in items(&read("consistency.json")["refused"]) {
        let (old, new) = (number(vector, "old_size"), number(vector, "new_size"));
        let (old_root, new_root) = (hash(text(vector, "old_root")), hash(text(vector, "new_root")));
        let error =
            verify_consistency(old, &old_root, new, &new_root, &hashes(&vector["nodes"])).unwrap_err();
        assert_eq!(format!("{error:?}"), text(vector, "error"), "{vector}");
    }
}

/// Against RFC 6962, section 2.1.2, written down as it stands there.
#[test]
fn every_pair_of_sizes_has_the_proof_of_the_rfc() {
    let all = leaves(130);
    for new in 0..=all.len() {
        let leaves = &all[..new];
        let new_root = recursive_root(leaves);
        for old in 0..=new {
            let old_root = recursive_root(&leaves[..old]);
            let nodes = prove_consistency(leaves, old as u64).unwrap();
            let expected = if old == 0 { vec![] } else { subproof(old, leaves, true) };
            assert_eq!(nodes, expected, "{old} to {new}");
            let told = places(old as u64, new as u64).unwrap().into_iter().map(|place| {
                let first = usize::try_from(place.index << place.level).unwrap();
                recursive_root(&leaves[first..new.min(first + (1 << place.level))])
            });
            assert_eq!(told.collect::<Vec<_>>(), nodes, "{old} to {new}");
            assert_eq!(verify_consistency(old as u64, &old_root, new as u64, &new_root, &nodes), Ok(()));
        }
    }
}

#[test]
fn hostile_sizes_are_refused_or_climbed_at_once() {
    let zero = Hash::ZERO;
    for (old, new, error) in [
        (1, MAX_SIZE + 1, TreeProofError::Size(MAX_SIZE + 1)),
        (u64::MAX, u64::MAX, TreeProofError::Size(u64::MAX)),
        (2, 1, TreeProofError::Shrunk { old: 2, new: 1 }),
        (u64::MAX, 1, TreeProofError::Shrunk { old: u64::MAX, new: 1 }),
    ] {
        assert_eq!(places(old, new), Err(error));
        assert_eq!(verify_consistency(old, &zero, new, &zero, &[]), Err(error));
    }
    assert_eq!(places(MAX_SIZE - 1, MAX_SIZE).map(|places| places.len()), Ok(63));
    assert_eq!(places(1, MAX_SIZE).map(|places| places.len()), Ok(62));
    for count in 0..70 {
        let read = verify_consistency(MAX_SIZE - 1, &zero, MAX_SIZE, &zero, &vec![zero; count]);
        let expected = match count {
            0..63 => TreeProofError::TooFewNodes,
            63 => TreeProofError::OldRoot,
            64.. => TreeProofError::TooManyNodes,
        };
        assert_eq!(read, Err(expected), "{count}");
    }
}

#[test]
fn the_empty_tree_and_the_same_tree_take_no_proof() {
    let (root, other) = (Hash([1; 32]), Hash([2; 32]));
    let verify = verify_consistency;
    assert_eq!(verify(0, &empty_root(), 0, &empty_root(), &[]), Ok(()));
    assert_eq!(verify(0, &empty_root(), 5, &root, &[]), Ok(()));
    assert_eq!(verify(0, &root, 5, &root, &[]), Err(TreeProofError::OldRoot));
    assert_eq!(verify(0, &empty_root(), 5, &root, &[other]), Err(TreeProofError::TooManyNodes));
    assert_eq!(verify(0, &empty_root(), 0, &root, &[]), Err(TreeProofError::Root));
    assert_eq!(verify(5, &root, 5, &root, &[]), Ok(()));
    assert_eq!(verify(5, &root, 5, &root, &[other]), Err(TreeProofError::TooManyNodes));
    assert_eq!(verify(5, &root, 5, &other, &[]), Err(TreeProofError::Root));
}

proptest! {
    #[test]
    fn no_other_proof_is_accepted(old in 1..600_usize, more in 1..300_usize, bit in 0..256_usize, size in 0..900_u64) {
        let leaves = leaves(old + more);
        let (old_root, new_root) = (recursive_root(&leaves[..old]), recursive_root(&leaves));
        let nodes = prove_consistency(&leaves, old as u64).unwrap();
        let (old, new) = (old as u64, leaves.len() as u64);
        let accepted = |nodes: &[Hash]| verify_consistency(old, &old_root, new, &new_root, nodes).is_ok();
        prop_assert!(accepted(&nodes));
        for at in 0..nodes.len() {
            let mut other = nodes.clone();
            other[at].0[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!accepted(&other), "an altered node");
            other = nodes.clone();
            other.remove(at);
            prop_assert!(!accepted(&other), "a missing node");
            other = nodes.clone();
            other.insert(at, nodes[at]);
            prop_assert!(!accepted(&other), "one more node");
        }
        prop_assert!(!accepted(&[&nodes[..], &[new_root]].concat()), "one more node");
        let flip = |mut root: Hash| {
            root.0[bit / 8] ^= 1 << (bit % 8);
            root
        };
        let verify = verify_consistency;
        prop_assert_eq!(verify(old, &flip(old_root), new, &new_root, &nodes).is_ok(), false);
        prop_assert_eq!(verify(old, &old_root, new, &flip(new_root), &nodes), Err(TreeProofError::Root));
        if size != old && old != new {
            prop_assert!(verify(size, &old_root, new, &new_root, &nodes).is_err(), "another old size");
        }
    }

    #[test]
    fn nothing_panics(old in any::<u64>(), new in any::<u64>(), count in 0..70_usize) {
        let zero = Hash::ZERO;
        let read = verify_consistency(old, &zero, new, &zero, &vec![zero; count]);
        prop_assert!(read.is_err() || (old == new && count == 0));
        let _ = places(old, new);
    }
}

/// `SUBPROOF` of RFC 6962, section 2.1.2, by its definition.
fn subproof(old: usize, leaves: &[Hash], whole: bool) -> Vec<Hash> {
    if old == leaves.len() {
        return if whole { vec![] } else { vec![recursive_root(leaves)] };
    }
    let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
    let (mut proof, sibling) = match old.checked_sub(left.len()) {
        None | Some(0) => (subproof(old, left, whole), recursive_root(right)),
        Some(old) => (subproof(old, right, false), recursive_root(left)),
    };
    proof.push(sibling);
    proof
}
