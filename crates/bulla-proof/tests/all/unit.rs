use crate::vectors::{bytes, hash, hash_id, items, number, read, small, text};
use bulla_proof::{Hash, HashId, block_root, row_unit};
use proptest::prelude::*;

#[test]
fn units_are_as_the_vectors_say() {
    for vector in items(&read("units.json")["units"]) {
        let salt = bytes(vector, "salt").try_into().unwrap();
        let (codec, entry) = (small(vector, "codec"), number(vector, "entry"));
        let unit = row_unit(hash_id(vector), &salt, codec, entry, &bytes(vector, "content"));
        assert_eq!(unit.to_string(), text(vector, "unit"));
    }
}

#[test]
fn block_roots_are_as_the_vectors_say() {
    for vector in items(&read("units.json")["roots"]) {
        let mut units: Vec<Hash> =
            items(&vector["units"]).iter().map(|unit| hash(unit.as_str().unwrap())).collect();
        assert_eq!(block_root(hash_id(vector), &mut units, 0).to_string(), text(vector, "root"));
        assert!(units.is_empty());
    }
}

#[test]
fn level_by_level_is_the_recursive_tree_at_every_width() {
    let units: Vec<Hash> = (0..600_u32).map(|index| HashId::Sha256.hash(&[&index.to_le_bytes()])).collect();
    for count in 0..=units.len() {
        let units = &units[..count];
        for id in HashId::ALL.into_iter().take(if count < 40 { 2 } else { 1 }) {
            assert_eq!(block_root(id, &mut units.to_vec(), 0), recursive_root(id, units), "{count}");
        }
    }
}

proptest! {
    #[test]
    fn every_input_counts(
        salt in any::<[u8; 16]>(), codec in any::<u8>(), entry in any::<u64>(), content in any::<[u8; 9]>(),
        at in 0..34_usize, bit in 0..8_u32,
    ) {
        let unit = |bytes: &[u8; 34]| {
            let salt = bytes[..16].try_into().unwrap();
            let entry = u64::from_le_bytes(bytes[17..25].try_into().unwrap());
            row_unit(HashId::Sha256, &salt, bytes[16], entry, &bytes[25..])
        };
        let bytes = [&salt[..], &[codec], &entry.to_le_bytes(), &content].concat();
        let bytes: [u8; 34] = bytes.try_into().unwrap();
        let mut other = bytes;
        other[at] ^= 1_u8 << bit;
        prop_assert_ne!(unit(&bytes), unit(&other));
    }
}

/// The root by the definition of RFC 6962, section 2.1.
fn recursive_root(id: HashId, units: &[Hash]) -> Hash {
    fn top(id: HashId, units: &[Hash]) -> Hash {
        match units {
            [] => id.hash(&[]),
            [unit] => *unit,
            _ => {
                let (left, right) = units.split_at(units.len().next_power_of_two() / 2);
                id.hash(&[&[1], top(id, left).as_bytes(), top(id, right).as_bytes()])
            }
        }
    }
    id.hash(&[&[2], &(units.len() as u64).to_le_bytes(), &[0; 8], top(id, units).as_bytes()])
}
