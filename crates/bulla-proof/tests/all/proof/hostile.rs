//! Whatever a file claims, reading it takes no more memory than a small multiple of its length.

use super::world::{World, encode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bulla_proof::commitment::{Commitment, MAX_CONTENT_LOG2};
use bulla_proof::unit::{KIND_GROUP, KIND_ROW};
use bulla_proof::{DisclosedUnit, Entry, HashId, ProofFile, varint};
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
        Ok(ProofFile::Receipt(receipt)) => receipt.verify(Some(&world.key)).is_ok(),
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

/// A part of what a frame discloses.
enum Part {
    Integer(u64),
    Bytes(Vec<u8>),
}

/// What a frame discloses of one unit, up to the hashes of its tree.
fn parts(unit: &DisclosedUnit, first_entry: u64) -> Vec<Part> {
    let kind = if unit.group().is_some() { KIND_GROUP } else { KIND_ROW };
    let head = [&[kind], &unit.salt[..]].concat();
    let mut parts = vec![Part::Integer(1), Part::Integer(unit.position), Part::Bytes(head)];
    if let Some(group) = unit.group() {
        parts.push(Part::Bytes(group.personal.to_le_bytes().to_vec()));
        parts.push(Part::Integer(group.entries.len() as u64));
    }
    let mut least = first_entry;
    for entry in unit.entries() {
        parts.push(Part::Integer(entry.number - least));
        parts.push(Part::Integer(entry.row.len() as u64));
        parts.push(Part::Bytes(entry.row.clone()));
        least = entry.number + 1;
    }
    if let Some(group) = unit.group() {
        parts.push(Part::Integer(group.subjects.len() as u64));
        let mut least = 0;
        for subject in &group.subjects {
            parts.push(Part::Integer(subject - least));
            least = subject + 1;
        }
        parts.push(Part::Integer(group.ciphertext.len() as u64));
        let secret = group.secret.as_ref().unwrap().as_bytes();
        parts.push(Part::Bytes([&group.ciphertext, &group.commitment.as_bytes()[..], &[1], secret].concat()));
    }
    // No common items, and none of them disclosed.
    parts.extend([Part::Integer(0), Part::Integer(0)]);
    parts
}

/// These parts, with other integers in some places.
fn written(parts: &[Part], others: &[(usize, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let other = others.iter().find(|(at, _)| *at == place).map(|(_, other)| *other);
        match part {
            Part::Integer(integer) => varint::push(other.unwrap_or(*integer), &mut out),
            Part::Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }
    out
}

/// Every integer of what is disclosed of a unit at its largest, and just past what follows it, by itself and beside the next one: only what
/// is so is proven.
fn no_claim_of_a_unit_is_believed(world: &World, position: usize) {
    let honest = world.proof(&[(1, &[position])]).render();
    let (_, honest) = honest.split_once("\nextra ").unwrap();
    let (disclosure, lines) = honest.split_once('\n').unwrap();
    let disclosure = STANDARD.decode(disclosure).unwrap();
    let sound = &world.frames[1].commitment;
    // The most units that a commitment may have.
    let large =
        Commitment { content_log2: MAX_CONTENT_LOG2, entries: 1 << 21, units: 1 << 21, ..sound.clone() };
    large.check().unwrap();
    let parts = parts(&world.frames[1].units[position], sound.first_entry);
    let told = [&[1][..], &sound.encode(), &written(&parts, &[])].concat();
    let nodes = disclosure.strip_prefix(&told[..]).expect("that is what is disclosed");
    let integers = parts.iter().enumerate().filter_map(|(place, part)| match part {
        Part::Integer(integer) => Some((place, *integer)),
        Part::Bytes(_) => None,
    });
    let integers = integers.collect::<Vec<_>>();
    const CLAIMS: [u64; 15] =
        [0, 1, 2, 5, 6, 15, 16, 64, 65, (1 << 21) - 1, 1 << 21, (1 << 21) + 1, 1 << 32, 1 << 63, u64::MAX];
    for commitment in [sound, &large] {
        let is_proven = |claims: &[(usize, u64)]| {
            let claimed = [&[1][..], &commitment.encode(), &written(&parts, claims), nodes].concat();
            [SINGLE, MULTI].map(|header| {
                let file = format!("{header}\nextra {}\n{lines}", STANDARD.encode(&claimed));
                read_within_bounds(file.as_bytes(), world)
            })
        };
        let is_so =
            |claims: &[(usize, u64)]| commitment == sound && claims.iter().all(|it| integers.contains(it));
        assert_eq!(is_proven(&[]), [is_so(&[]), false]);
        for (at, &(place, _)) in integers.iter().enumerate() {
            for claim in CLAIMS {
                let one = (place, claim);
                assert_eq!(is_proven(&[one]), [is_so(&[one]), false], "{one:?}");
                let Some(&(next, _)) = integers.get(at + 1) else { continue };
                for both in CLAIMS.map(|other| [one, (next, other)]) {
                    assert_eq!(is_proven(&both), [is_so(&both), false], "{both:?}");
                }
            }
        }
    }
}

#[test]
fn no_claim_of_a_row_is_believed() {
    no_claim_of_a_unit_is_believed(&World::new(HashId::Sha256, &[5]), 0);
}

#[test]
fn no_claim_of_a_group_is_believed() {
    let world = World::with_groups(HashId::Sha256, &[9], super::world::row, super::world::mixed);
    no_claim_of_a_unit_is_believed(&world, 1);
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
