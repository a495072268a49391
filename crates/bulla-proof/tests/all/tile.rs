use crate::tree::recursive_root;
use crate::vectors::{items, number, read, small, text};
use bulla_proof::tile::*;
use bulla_proof::tree::{MAX_SIZE, leaf_hash};
use bulla_proof::{Frontier, Hash};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn paths_are_as_the_vectors_say() {
    for vector in items(&read("tiles.json")["paths"]) {
        let (index, width, path) = (number(vector, "index"), small(vector, "width"), text(vector, "path"));
        let place = if vector["level"] == "entries" {
            assert_eq!(entries_path(index, width), path);
            TilePath::Entries { index, width }
        } else {
            let tile = TileId { level: small(vector, "level"), index, width };
            assert_eq!(tile.path(), path);
            assert_eq!(tile.is_full(), width == 256);
            TilePath::Hashes(tile)
        };
        assert_eq!(parse_path(path), Some(place), "{path}");
    }
    for path in items(&read("tiles.json")["refused"]) {
        assert_eq!(parse_path(path.as_str().unwrap()), None, "{path}");
    }
}

#[test]
fn the_tiles_of_a_size_are_as_the_vectors_say() {
    let paths = |value: &serde_json::Value| -> Vec<String> {
        value["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
    };
    for vector in items(&read("tiles.json")["partial"]) {
        let tiles = tiles_for(number(vector, "size"));
        assert_eq!(tiles.iter().map(TileId::path).collect::<Vec<_>>(), paths(vector), "{vector}");
    }
    for vector in items(&read("tiles.json")["full"]) {
        let tiles = full_tiles_between(number(vector, "old"), number(vector, "new"));
        assert_eq!(tiles.map(|tile| tile.path()).collect::<Vec<_>>(), paths(vector), "{vector}");
    }
}

/// Level 2 begins at 65536 leaves: the cascade passes through every kind of step there is.
#[test]
fn building_gives_every_tile_once_and_the_right_root() {
    let leaves: Vec<Hash> = (0..66_000_u32).map(|leaf| leaf_hash(&leaf.to_le_bytes())).collect();
    let mut builder = TileBuilder::new();
    let mut frontier = Frontier::new();
    let mut files = BTreeMap::new();
    for (before, leaf) in (0_u64..).zip(&leaves) {
        let mut filled = Vec::new();
        builder.push(*leaf, &mut |tile, hashes| {
            filled.push(tile);
            assert!(files.insert(tile, hashes.to_vec()).is_none(), "{} twice", tile.path());
        });
        frontier.push(*leaf);
        assert_eq!(filled, full_tiles_between(before, before + 1).collect::<Vec<_>>());
        if before % 97 == 0 || before % 256 > 253 || before > 65_790 {
            assert_eq!(builder.frontier(), frontier, "at {}", builder.size());
            assert_eq!(builder.root(), frontier.root());
            let partials = builder.partials();
            assert_eq!(partials.iter().map(|(tile, _)| *tile).collect::<Vec<_>>(), tiles_for(before + 1));
            assert!(partials.iter().all(|(tile, hashes)| hashes.len() == usize::from(tile.width)));
            assert_eq!(resumed(&builder).as_ref(), Some(&builder));
        }
    }
    assert_eq!(files.len(), full_tiles_between(0, 66_000).count());
    files.extend(builder.partials());
    for (tile, hashes) in &files {
        let reach = 256_usize.pow(tile.level.into());
        for (at, hash) in (usize::try_from(tile.index).unwrap() * 256..).zip(hashes) {
            assert_eq!(*hash, recursive_root(&leaves[at * reach..(at + 1) * reach]), "{}", tile.path());
        }
    }
}

#[test]
fn resuming_goes_on_as_if_never_stopped() {
    let leaf = |index: u32| leaf_hash(&index.to_le_bytes());
    let mut whole = TileBuilder::new();
    let mut parts = TileBuilder::new();
    for index in 0..1000 {
        let (mut of_whole, mut of_parts) = (Vec::new(), Vec::new());
        whole.push(leaf(index), &mut |tile, hashes| of_whole.push((tile, hashes.to_vec())));
        parts = resumed(&parts).unwrap();
        parts.push(leaf(index), &mut |tile, hashes| of_parts.push((tile, hashes.to_vec())));
        assert_eq!(of_whole, of_parts);
    }
    assert_eq!(whole, parts);
}

#[test]
fn resuming_refuses_levels_of_another_size() {
    let levels = |widths: &[usize]| widths.iter().map(|&width| vec![Hash::ZERO; width]).collect::<Vec<_>>();
    assert!(TileBuilder::resume(0, vec![]).is_some_and(|builder| builder == TileBuilder::new()));
    assert!(TileBuilder::resume(0x0203, levels(&[3, 2])).is_some());
    assert!(TileBuilder::resume(0x0203, levels(&[3, 2, 0, 0, 0, 0, 0, 0])).is_some());
    for widths in
        [&[][..], &[3], &[3, 1], &[2, 2], &[3, 2, 1], &[2, 3], &[259, 1], &[3, 2, 0, 0, 0, 0, 0, 0, 0]]
    {
        assert!(TileBuilder::resume(0x0203, levels(widths)).is_none(), "{widths:?}");
    }
    let past = levels(&[1, 0, 0, 0, 0, 0, 0, 0x40]);
    assert!(TileBuilder::resume(MAX_SIZE + 1, past).is_none());
}

#[test]
fn a_tile_is_its_hashes_in_a_row() {
    let hashes: Vec<Hash> = (0..=255).map(|byte| Hash([byte; 32])).collect();
    for width in [1_u16, 2, 3, 255, 256] {
        let hashes = &hashes[..usize::from(width)];
        let bytes = encode_tile(hashes);
        assert_eq!(bytes, hashes.iter().map(|hash| hash.0).collect::<Vec<_>>().concat());
        assert_eq!(parse_tile(&bytes, width).as_deref(), Ok(hashes));
        assert_eq!(tile_hash(hashes), recursive_root(hashes));
        let (found, expected) = (bytes.len() - 1, bytes.len());
        assert_eq!(parse_tile(&bytes[1..], width), Err(TileError::Length { found, expected }));
    }
    for width in [0, 257, u16::MAX] {
        assert_eq!(parse_tile(&vec![0; 32 * usize::from(width)], width), Err(TileError::Width(width)));
        assert_eq!(parse_bundle(&vec![0; 2 * usize::from(width)], width), Err(TileError::Width(width)));
    }
}

#[test]
fn a_bundle_is_entries_after_their_lengths() {
    let long = vec![7; MAX_BUNDLE_ENTRY];
    let entries = [&b"first"[..], b"", &long];
    let mut bundle = Vec::new();
    entries.iter().for_each(|entry| push_bundle_entry(&mut bundle, entry));
    assert_eq!(bundle[..11], *b"\x00\x05first\x00\x00\xff\xff");
    assert_eq!(parse_bundle(&bundle, 3).as_deref(), Ok(&entries[..]));
    assert_eq!(parse_bundle(&bundle, 4), Err(TileError::BundleEnds));
    assert_eq!(parse_bundle(&bundle, 2), Err(TileError::BundleLeftOver));
    assert_eq!(parse_bundle(&bundle[..bundle.len() - 1], 3), Err(TileError::BundleEnds));
    assert_eq!(parse_bundle(&bundle[..8], 3), Err(TileError::BundleEnds));
    assert_eq!(parse_bundle(&[], 256), Err(TileError::BundleEnds));
}

#[test]
#[should_panic(expected = "65535")]
fn a_bundle_takes_no_longer_entry() {
    push_bundle_entry(&mut Vec::new(), &vec![0; MAX_BUNDLE_ENTRY + 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_tile_has_one_path(level in 0..=MAX_LEVEL, index in any::<u64>(), shift in 0..64, width in 1..=256_u16) {
        let index = index >> shift;
        let fits = u128::from(index) << (8 * (u32::from(level) + 1)) <= u128::from(u64::MAX);
        let tile = TileId { level, index, width };
        prop_assert_eq!(parse_path(&tile.path()), fits.then_some(TilePath::Hashes(tile)));
    }

    #[test]
    fn a_path_has_one_spelling(path in "tile/([0-9]|1?[0-9]|entries)/(x[0-9]{3}/){0,7}[0-9]{2,3}(\\.p/[0-9]{1,3})?") {
        assert_canonical(&path);
    }

    #[test]
    fn no_path_panics(path in "\\PC{0,40}|tile/[x0-9./p+]{0,40}") {
        assert_canonical(&path);
    }

    #[test]
    fn a_bundle_has_one_spelling(bytes in prop::collection::vec(0..4_u8, 0..60), width in 0..=300_u16) {
        if let Ok(entries) = parse_bundle(&bytes, width) {
            let mut bundle = Vec::new();
            entries.iter().for_each(|entry| push_bundle_entry(&mut bundle, entry));
            prop_assert_eq!(entries.len(), usize::from(width));
            prop_assert_eq!(bundle, bytes);
        }
    }
}

fn assert_canonical(path: &str) {
    match parse_path(path) {
        Some(TilePath::Hashes(tile)) => assert_eq!(tile.path(), path),
        Some(TilePath::Entries { index, width }) => assert_eq!(entries_path(index, width), path),
        None => {}
    }
}

fn resumed(builder: &TileBuilder) -> Option<TileBuilder> {
    let levels = (0..=MAX_LEVEL).map(|level| builder.level(level).to_vec()).collect();
    TileBuilder::resume(builder.size(), levels)
}
