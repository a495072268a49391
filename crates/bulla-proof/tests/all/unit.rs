use crate::multiproof::recursive_top;
use crate::vectors::{bytes, hash_id, items, number, read, small, text, unhex};
use bulla_proof::unit::{BlockNodes, GroupContent, KIND_GROUP, KIND_ROW, full_node, group_unit, item_leaf};
use bulla_proof::{Hash, HashId, block_root, row_unit};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashSet;

fn salt(vector: &Value) -> [u8; 16] {
    bytes(vector, "salt").try_into().unwrap()
}

#[test]
fn rows_are_hashed_as_the_vectors_say() {
    for vector in items(&read("units.json")["rows"]) {
        let unit = row_unit(hash_id(vector), &salt(vector), number(vector, "place"), &bytes(vector, "row"));
        assert_eq!(unit.to_string(), text(vector, "unit"));
    }
}

#[test]
fn groups_are_hashed_as_the_vectors_say() {
    for vector in items(&read("units.json")["groups"]) {
        let entries = items(&vector["entries"]).iter();
        let entries = entries.map(|entry| (entry[0].as_u64().unwrap(), unhex(entry[1].as_str().unwrap())));
        let entries = entries.collect::<Vec<_>>();
        let subjects = items(&vector["subjects"]).iter().map(|subject| subject.as_u64().unwrap());
        let content = GroupContent {
            personal: number(vector, "personal").try_into().unwrap(),
            subjects: &subjects.collect::<Vec<_>>(),
            ciphertext: &bytes(vector, "ciphertext"),
            commitment: &Hash(bytes(vector, "commitment").try_into().unwrap()),
        };
        let entries = entries.iter().map(|(place, row)| (*place, &row[..]));
        let unit = group_unit(hash_id(vector), &salt(vector), entries, &content, &mut Vec::new());
        assert_eq!(unit.to_string(), text(vector, "unit"));
    }
}

#[test]
fn common_items_are_hashed_as_the_vectors_say() {
    for vector in items(&read("units.json")["items"]) {
        let (position, item) = (number(vector, "position"), bytes(vector, "item"));
        let leaf = item_leaf(hash_id(vector), &salt(vector), position, &item);
        assert_eq!(leaf.to_string(), text(vector, "leaf"));
    }
}

#[test]
fn block_roots_are_as_the_vectors_say() {
    for vector in items(&read("units.json")["roots"]) {
        let id = hash_id(vector);
        let mut leaves: Vec<Hash> =
            (0..small::<u8>(vector, "leaves")).map(|leaf| id.hash(&[&[leaf]])).collect();
        let items = small(vector, "items");
        assert_eq!(block_root(id, &mut leaves, items).to_string(), text(vector, "root"));
        assert!(leaves.is_empty());
    }
}

#[test]
fn level_by_level_is_the_recursive_tree_at_every_width() {
    let units: Vec<Hash> = (0..600_u32).map(|index| HashId::Sha256.hash(&[&index.to_le_bytes()])).collect();
    for count in 1..=units.len() {
        let units = &units[..count];
        for id in HashId::ALL.into_iter().take(if count < 40 { 2 } else { 1 }) {
            let top = recursive_top(units, &BlockNodes(id));
            let root = id.hash(&[&[2], &(count as u64).to_le_bytes(), &[0; 8], top.as_bytes()]);
            assert_eq!(block_root(id, &mut units.to_vec(), 0), root, "{count}");
        }
    }
}

/// Those of the log's tree are 0 and 1, and of a block's root and common items 2 and 3.
#[test]
fn whatever_is_hashed_of_a_block_begins_with_a_byte_of_its_own() {
    let kinds = HashSet::from([0, 1, 2, 3, KIND_ROW, KIND_GROUP, full_node(&[])[0]]);
    assert_eq!(kinds.len(), 7);
}

proptest! {
    #[test]
    fn every_input_counts(
        salt in any::<[u8; 16]>(), place in any::<u64>(), row in any::<[u8; 9]>(), at in 0..33_usize, bit in 0..8_u32,
    ) {
        let unit = |bytes: &[u8; 33]| {
            let salt = bytes[..16].try_into().unwrap();
            let place = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
            row_unit(HashId::Sha256, &salt, place, &bytes[24..])
        };
        let bytes: [u8; 33] = [&salt[..], &place.to_le_bytes(), &row].concat().try_into().unwrap();
        let mut other = bytes;
        other[at] ^= 1_u8 << bit;
        prop_assert_ne!(unit(&bytes), unit(&other));
    }
}
