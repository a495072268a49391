//! Whatever a file claims, reading it takes no more memory than a small multiple of its length.

use super::world::{World, encode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bulla_proof::commitment::{Commitment, MAX_CONTENT_LOG2};
use bulla_proof::{Entry, HashId, ProofFile, varint};
use bulla_testkit::allocator::most_held_here;
use proptest::prelude::*;

/// Memory for a file's length, and what messages and small vectors take besides.
const TIMES: usize = 7;
const BESIDES: usize = 4096;

fn read_within_bounds(file: &[u8], world: &World) -> bool {
    let (proven, most) = most_held_here(|| match ProofFile::parse(file) {
        Ok(ProofFile::Entries(proof)) => proof.verify(Some(&world.key)).is_ok_and(|checked| {
            let grouped: usize = checked.groups().map(|group| group.shared_entries().len()).sum();
            checked.entries().count() + grouped == checked.entry_count()
        }),
        Ok(ProofFile::Consistency(proof)) => proof.verify(Some(&world.key)).is_ok(),
        Ok(ProofFile::Event(proof)) => proof.verify(Some(&world.key)).is_ok(),
        Err(_) => false,
    });
    let limit = TIMES * file.len() + BESIDES;
    assert!(most <= limit, "{most} bytes held for a file of {}: {} times", file.len(), most / file.len());
    proven
}

fn file(header: &str, disclosure: &[u8], lines: &str, world: &World) -> Vec<u8> {
    let note = world.note(world.leaves.len());
    format!("{header}\nextra {}\n{lines}\n{note}", STANDARD.encode(disclosure)).into_bytes()
}

const SINGLE: &str = "c2sp.org/tlog-proof@v1";
const MULTI: &str = "bulla-multi-proof-v1";

#[test]
fn honest_files_stay_within_the_bounds() {
    let shortest =
        |_| encode(&Entry { operation: "x", time: Some(1_700_000_000_000_000_000), ..Entry::default() });
    let world = World::with_rows(HashId::Sha256, &[5000, 1], shortest);
    let all: Vec<usize> = (0..5000).collect();
    assert!(read_within_bounds(world.proof(&[(1, &all)]).render().as_bytes(), &world));
    let sparse: Vec<usize> = (0..5000).step_by(2).collect();
    assert!(read_within_bounds(world.proof(&[(1, &sparse), (2, &[0])]).render().as_bytes(), &world));
    let frames = World::with_rows(HashId::Sha256, &[1; 3000], shortest);
    let chosen: Vec<(usize, &[usize])> = (1..=3000).map(|frame| (frame, &[0][..])).collect();
    assert!(read_within_bounds(frames.proof(&chosen).render().as_bytes(), &frames));
    assert!(read_within_bounds(frames.growth(1001, 3001).render().as_bytes(), &frames));
    let events = World::with_rows(HashId::Sha256, &[0; 3000], shortest);
    assert!(read_within_bounds(events.event(1500).render().as_bytes(), &events));
    let payload = vec![7; 1 << 20];
    let row = |_| {
        encode(&Entry { payload: Some(&payload), ..Entry::new("x", "y").time(1_700_000_000_000_000_000) })
    };
    let large = World::with_rows(HashId::Sha256, &[2], row);
    assert!(read_within_bounds(large.proof(&[(1, &[1])]).render().as_bytes(), &large));
}

/// Every integer of a disclosure at its largest, and just past what follows it.
#[test]
fn no_claim_is_believed() {
    let world = World::new(HashId::Sha256, &[5]);
    // The most units that a commitment may have.
    let sound = &world.frames[1].commitment;
    let large =
        Commitment { content_log2: MAX_CONTENT_LOG2, entries: 1 << 21, units: 1 << 21, ..sound.clone() };
    large.check().unwrap();
    let unit = |distance: u64, entry: u64, length: u64, row: &[u8]| {
        let mut out = Vec::new();
        varint::push(distance, &mut out);
        out.extend_from_slice(&[0, 1]);
        out.extend_from_slice(&[3; 16]);
        varint::push(entry, &mut out);
        varint::push(length, &mut out);
        out.extend_from_slice(row);
        out
    };
    let row = &super::world::entry(&world.frames[1].units[0]).row[..];
    let fits = row.len() as u64;
    for commitment in [sound, &large] {
        for count in [0, 1, 2, 5, 6, (1 << 21) - 1, 1 << 21, 1 << 32, u64::MAX] {
            for distance in [0, 4, 5, (1 << 21) - 1, 1 << 21, u64::MAX] {
                for (entry, length) in
                    [(0, fits), (u64::MAX, fits), (0, fits + 1), (0, 1 << 32), (0, 1 << 63), (0, u64::MAX)]
                {
                    let mut disclosure = [&[1][..], &commitment.encode()].concat();
                    varint::push(count, &mut disclosure);
                    disclosure.extend_from_slice(&unit(distance, entry, length, row));
                    for header in [SINGLE, MULTI] {
                        assert!(!read_within_bounds(&file(header, &disclosure, "index 1\n", &world), &world));
                    }
                }
            }
        }
    }
}

/// Every integer of a group at its largest, and just past what follows it.
#[test]
fn no_claim_of_a_group_is_believed() {
    let world = World::with_groups(HashId::Sha256, &[9], super::world::row, super::world::mixed);
    let sound = &world.frames[1].commitment;
    let large =
        Commitment { content_log2: MAX_CONTENT_LOG2, entries: 1 << 21, units: 1 << 21, ..sound.clone() };
    large.check().unwrap();
    let group = world.frames[1].units[1].group().unwrap();
    let entry = &group.entries[0];
    let claims = [0, 1, 2, 15, 16, 64, 65, 1 << 21, (1 << 21) + 1, 1 << 32, 1 << 63, u64::MAX];
    // Count, number and length of entries; count and number of subjects; length of the ciphertext.
    let honest = [1, 1, entry.row.len() as u64, 1, 0, group.ciphertext.len() as u64];
    for commitment in [sound, &large] {
        for (claim, at) in claims.into_iter().flat_map(|claim| (0..honest.len()).map(move |at| (claim, at))) {
            let mut told = honest;
            told[at] = claim;
            let mut disclosure = [&[1][..], &commitment.encode(), &[1, 1, 1, 1], &[3; 16]].concat();
            disclosure.extend_from_slice(&group.personal.to_le_bytes());
            let (shared, rest) = told.split_at(3);
            shared.iter().for_each(|&integer| varint::push(integer, &mut disclosure));
            disclosure.extend_from_slice(&entry.row);
            rest.iter().for_each(|&integer| varint::push(integer, &mut disclosure));
            disclosure.extend_from_slice(&group.ciphertext);
            disclosure.extend_from_slice(group.commitment.as_bytes());
            disclosure.push(0);
            for header in [SINGLE, MULTI] {
                assert!(!read_within_bounds(&file(header, &disclosure, "index 1\n", &world), &world));
            }
        }
    }
}

#[test]
fn honest_groups_stay_within_the_bounds() {
    let shortest =
        |_| encode(&Entry { operation: "x", time: Some(1_700_000_000_000_000_000), ..Entry::default() });
    // One group, many, and groups among rows.
    let groups: [fn(u64) -> Option<u64>; 3] = [|_| Some(1), |entry| Some(entry % 1000), super::world::mixed];
    for group in groups {
        let world = World::with_groups(HashId::Sha256, &[5000], shortest, group);
        let all: Vec<usize> = (0..world.frames[1].units.len()).collect();
        assert!(read_within_bounds(world.proof(&[(1, &all)]).render().as_bytes(), &world));
    }
}

#[test]
fn many_lines_of_one_kind_stay_within_the_bounds() {
    let world = World::new(HashId::Sha256, &[5]);
    let hash = format!("{}\n", bulla_proof::Hash::ZERO.to_base64());
    for (header, disclosure, lines) in [
        (SINGLE, vec![1], "index 1\n".repeat(100_000)),
        (MULTI, vec![1], "index 1\n".repeat(100_000)),
        (MULTI, vec![1; 1 << 20], "index 1\n".repeat(10_000)),
        (SINGLE, vec![1; 1 << 20], String::new()),
        (SINGLE, vec![], hash.repeat(50_000)),
        (SINGLE, vec![1], "\n".repeat(100_000)),
    ] {
        assert!(!read_within_bounds(&file(header, &disclosure, &lines, &world), &world));
    }
    // A sound proof with far too many hashes after it, of either kind.
    let sound = world
        .proof(&[(1, &[0])])
        .render()
        .replace("\n\nexample", &format!("\n{}\nexample", hash.repeat(99_999)));
    assert!(!read_within_bounds(sound.as_bytes(), &world));
    let grown =
        world.growth(1, 2).render().replace("\n\nexample", &format!("\n{}\nexample", hash.repeat(99_999)));
    assert!(!read_within_bounds(grown.as_bytes(), &world));
    // Checkpoints of all sizes that there are.
    for size in [0, 1, 1 << 62, (1 << 62) + 1, u64::MAX] {
        let note =
            world.sign(&bulla_proof::Checkpoint::new("example.com/log", size, bulla_proof::Hash::ZERO));
        let proof = world.proof(&[(1, &[0])]).render();
        let (head, _) = proof.split_once("\n\n").unwrap();
        assert!(!read_within_bounds(format!("{head}\n\n{note}").as_bytes(), &world));
        let old = STANDARD.encode(world.note(1));
        assert!(!read_within_bounds(format!("bulla-consistency-v1\nold {old}\n\n{note}").as_bytes(), &world));
    }
}

proptest! {
    /// Any disclosure that begins like one.
    #[test]
    fn no_disclosure_panics(
        rest in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(0xff), any::<u8>()], 0..200), multi in any::<bool>(),
        indices in prop::collection::vec(0..3_u64, 0..4),
    ) {
        let world = World::new(HashId::Sha256, &[5]);
        let disclosure = [&[1][..], &world.frames[1].commitment.encode(), &rest].concat();
        let lines: String = indices.iter().map(|index| format!("index {index}\n")).collect();
        let header = if multi { MULTI } else { SINGLE };
        prop_assert!(!read_within_bounds(&file(header, &disclosure, &lines, &world), &world));
    }

    #[test]
    fn no_text_panics(
        header in prop_oneof![Just(SINGLE), Just(MULTI), Just("bulla-consistency-v1"), Just("x")],
        text in "((extra|old|index) )?[A-Za-z0-9+/]{0,3}={0,2}\n{0,2}(\\PC|\n){0,60}",
    ) {
        let file = format!("{header}\n{text}");
        prop_assert!(ProofFile::parse(file.as_bytes()).is_err());
    }
}
