use crate::vectors::{hash, items, number, read, text, unhex};
use bulla_proof::tree::{MAX_SIZE, empty_root, leaf_hash, node_hash};
use bulla_proof::{Frontier, Hash};

/// The leaves of Certificate Transparency's test vectors, and the root after each.
const RFC6962: [(&str, &str); 8] = [
    ("", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
    ("00", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
    ("10", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
    ("2021", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
    ("3031", "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
    ("40414243", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
    ("5051525354555657", "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
    ("606162636465666768696a6b6c6d6e6f", "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
];
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn roots_are_those_of_certificate_transparency() {
    let mut frontier = Frontier::new();
    assert_eq!(frontier.root(), hash(EMPTY));
    for (leaf, root) in RFC6962 {
        frontier.push(leaf_hash(&unhex(leaf)));
        assert_eq!(frontier.root(), hash(root), "at {}", frontier.size());
    }
}

#[test]
fn roots_are_as_the_vectors_say() {
    let mut frontier = Frontier::new();
    for vector in items(&read("tree.json")) {
        for leaf in frontier.size()..number(vector, "size") {
            frontier.push(leaf_hash(leaf.to_string().as_bytes()));
        }
        assert_eq!(frontier.root().to_string(), text(vector, "root"), "at {}", frontier.size());
    }
}

#[test]
fn pushing_is_the_recursive_tree_at_every_size() {
    let leaves: Vec<Hash> = (0..300_u32).map(|leaf| leaf_hash(&leaf.to_le_bytes())).collect();
    let mut frontier = Frontier::new();
    for size in 0..=leaves.len() {
        assert_eq!(frontier.root(), recursive_root(&leaves[..size]), "at {size}");
        let resumed = Frontier::from_nodes(size as u64, frontier.nodes().to_vec());
        assert_eq!(resumed.as_ref(), Some(&frontier));
        leaves.get(size).into_iter().for_each(|leaf| frontier.push(*leaf));
    }
}

#[test]
fn a_frontier_has_a_node_for_each_bit() {
    let nodes = |count| vec![Hash::ZERO; count];
    assert!(Frontier::from_nodes(0, nodes(0)).is_some_and(|frontier| frontier == Frontier::new()));
    assert!(Frontier::from_nodes(0b1011, nodes(3)).is_some());
    assert!(Frontier::from_nodes(MAX_SIZE, nodes(1)).is_some());
    for (size, count) in [(0, 1), (1, 0), (0b1011, 2), (0b1011, 4), (MAX_SIZE + 1, 2), (u64::MAX, 64)] {
        assert!(Frontier::from_nodes(size, nodes(count)).is_none(), "{size}");
    }
}

/// The root by the definition of RFC 6962, section 2.1.
pub(crate) fn recursive_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => empty_root(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
            node_hash(&recursive_root(left), &recursive_root(right))
        }
    }
}
