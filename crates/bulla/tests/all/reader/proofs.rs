//! Proofs that a reader makes: they hold, and tell what was asked for and nothing else.

use super::world::{World, answer, blocks, reader, some_log, some_query, varied};
use crate::damage::image::Image;
use crate::helpers::{Rng, in_full};
use bulla::text::jsonl;
use bulla::{ErrorKind, Query, Reader, open_proof};
use bulla_proof::proof::{ConsistencyProof, Proof};
use std::collections::{BTreeMap, BTreeSet};

/// A log with subjects over many blocks and epochs.
fn log(seed: u64) -> World {
    fill(World::new(seed), seed)
}

/// The same with erasure.
fn grouped_log(seed: u64) -> World {
    fill(World::grouped(seed), seed)
}

fn fill(mut world: World, seed: u64) -> World {
    let mut rng = Rng(seed);
    for _ in 0..3 {
        let log = world.open();
        for _ in 0..20 {
            let rows = (0..1 + rng.below(6)).map(|_| {
                let row = varied(&mut rng);
                row.noise(&mut rng, 40)
            });
            let rows = rows.collect::<Vec<_>>();
            world.block(&log, rows, 1);
        }
        log.close().unwrap();
    }
    world
}

/// Proves, and checks that it discloses what the query answers; of a log with erasure also the other entries of the
/// same data subjects in the same blocks.
fn prove(world: &World, reader: &Reader, query: &Query) -> String {
    let proven = reader.prove(query).unwrap();
    let proof = Proof::parse(&proven.file).unwrap();
    let checked = proof.verify(Some(&world.key)).unwrap();
    assert!(checked.anchored());
    let mut told = Vec::new();
    let opened = open_proof(&checked, |disclosed| {
        let mut line = Vec::new();
        jsonl::write_entry(&disclosed.entry, disclosed.number, &mut line);
        told.push((disclosed.number, line));
        Ok(())
    })
    .unwrap();
    assert_eq!((opened.entries, opened.withheld), (proven.entries, 0));
    let met = world.expected(query);
    let numbers = with_groups(world, &met);
    assert!(told.iter().map(|(number, _)| number).eq(&numbers), "{query:?}");
    let asked = told.iter().filter(|(number, _)| met.contains(number));
    assert!(asked.eq(&answer(reader, query).unwrap().0), "{query:?}");
    assert!(
        told.iter().all(|one| answer(reader, &Query::new().entries(one.0..=one.0)).unwrap().0[0] == *one)
    );
    assert_eq!(proven.units, checked.units() as u64);
    assert_eq!((proven.read.entries, proven.entries), (met.len() as u64, numbers.len() as u64));
    String::from_utf8(proven.file).unwrap()
}

/// These entries, and in a log with erasure those in their blocks of the same data subjects.
fn with_groups(world: &World, numbers: &[u64]) -> Vec<u64> {
    if world.register.is_none() {
        return numbers.to_vec();
    }
    let rows: BTreeMap<u64, usize> = world.numbers().into_iter().collect();
    let set = |number: &u64| world.rows[rows[number]].subjects.iter().flatten().collect::<BTreeSet<_>>();
    let mut all = BTreeSet::from_iter(numbers.iter().copied());
    for block in blocks(&world.image()) {
        let entries = block.first_entry..block.first_entry + block.entries;
        let met = numbers.iter().filter(|number| entries.contains(number));
        let sets = met.map(set).filter(|set| !set.is_empty()).collect::<Vec<_>>();
        all.extend(entries.filter(|number| sets.contains(&set(number))));
    }
    all.into_iter().collect()
}

/// What the file says, what is base 64 in it included.
fn contents(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    let mut contents = text.as_bytes().to_vec();
    for word in text.split_ascii_whitespace() {
        contents.extend(base64::engine::general_purpose::STANDARD.decode(word).unwrap_or_default());
    }
    contents
}

fn has(contents: &[u8], string: &[u8]) -> bool {
    contents.windows(string.len()).any(|window| window == string)
}

#[test]
fn a_proof_discloses_what_meets_the_query_and_nothing_else() {
    let world = log(61);
    let image = world.image();
    let reader = world.reader(image.clone());
    let last = world.rows.len() as u64 - 1;
    let q = Query::new;
    let mut several = 0;
    for query in [
        q().entries(0..=0),
        q().entries(last..=last),
        q().entries(7..=7),
        q().entries(3..=last / 2),
        q().subject("usér_3"),
        q().subject("user_1").operation("write"),
        q().subject("user_4 ").entries(0..=last / 3),
        q(),
    ] {
        let text = prove(&world, &reader, &query);
        several += usize::from(text.starts_with("bulla-multi-proof-v1\n"));
        let contents = contents(&text);
        for (number, row) in world.numbers() {
            let row = &world.rows[row];
            assert!(row.payload.len() >= 40, "distinctive");
            assert_eq!(has(&contents, &row.payload), row.meets(number, &query), "entry {number}");
        }
    }
    assert!(several >= 4);
}

#[test]
fn a_proof_of_entries_in_groups_discloses_the_groups_and_opens_them() {
    let world = grouped_log(64);
    let reader = world.reader(world.image());
    let last = world.rows.len() as u64 - 1;
    let q = Query::new;
    let mut besides = 0;
    for query in [
        q().entries(7..=7),
        q().entries(3..=last / 2),
        q().subject("usér_3"),
        q().subject("user_1").operation("write"),
        q().stream("s"),
        q(),
    ] {
        let contents = contents(&prove(&world, &reader, &query));
        let met = world.expected(&query);
        besides += with_groups(&world, &met).len() - met.len();
        for (number, row) in world.numbers() {
            let row = &world.rows[row];
            // What is in a group is there as a ciphertext alone.
            let alone = row.subjects.iter().flatten().next().is_none();
            assert_eq!(has(&contents, &row.payload), alone && row.meets(number, &query), "entry {number}");
        }
    }
    assert!(besides > 0);
}

#[test]
fn what_nobody_has_the_key_of_is_proven_as_far_as_it_is_shared() {
    let world = grouped_log(65);
    let gone = world.expected(&Query::new().subject("user_1"));
    world.register.as_ref().unwrap().lose("user_1");
    let proven = world.reader(world.image()).prove(&Query::new()).unwrap();
    let proof = Proof::parse(&proven.file).unwrap();
    let mut withheld = Vec::new();
    let opened = open_proof(&proof.verify(Some(&world.key)).unwrap(), |disclosed| {
        withheld.extend(disclosed.withheld.then_some(disclosed.number));
        assert_eq!(disclosed.entry.location.is_none(), disclosed.withheld);
        Ok(())
    });
    assert_eq!(opened.unwrap().entries, world.rows.len() as u64);
    assert_eq!((proven.withheld, withheld), (gone.len() as u64, gone));
}

#[test]
fn any_query_can_be_proved_or_has_nothing_to_prove() {
    let worlds =
        (0..12).map(|seed| (seed, some_log(seed))).chain((12..15).map(|seed| (seed, grouped_log(seed))));
    for (seed, world) in worlds.step_by(if in_full() { 1 } else { 2 }) {
        let reader = world.reader(world.image());
        let mut rng = Rng(seed);
        for _ in 0..6 {
            let query = some_query(&mut rng, world.rows.len() as u64);
            match world.expected(&query).is_empty() {
                false => drop(prove(&world, &reader, &query)),
                true => assert_eq!(reader.prove(&query).unwrap_err().kind(), ErrorKind::Refused),
            }
        }
    }
}

#[test]
fn one_proof_of_many_entries_is_smaller_than_many() {
    let world = log(62);
    let reader = world.reader(world.image());
    let query = Query::new().subject("user_1");
    let numbers = world.expected(&query);
    let together = prove(&world, &reader, &query).len();
    let single = |&number: &u64| prove(&world, &reader, &Query::new().entries(number..=number)).len();
    let apart = numbers.iter().map(single).sum::<usize>();
    assert!(numbers.len() > 20 && 2 * together < apart, "{together} {apart}");
}

#[test]
fn a_proof_is_of_the_log_and_not_of_a_damaged_one() {
    let world = log(63);
    let image = world.image();
    let block = blocks(&image).into_iter().nth(5).unwrap();
    let (segment, at) = super::world::body_of(&image, &block);
    let damaged = world.reader(image.flipped(&segment, at, |byte| !byte));
    let query = |number: u64| Query::new().entries(number..=number);
    assert_eq!(damaged.prove(&query(block.first_entry)).unwrap_err().kind(), ErrorKind::Tampered);
    prove(&world, &damaged, &query(0));
}

/// A log that grows, and its checkpoints from the first.
fn growing(seed: u64) -> (World, Vec<Image>) {
    let (mut world, mut rng) = (World::new(seed), Rng(seed));
    let mut images = vec![world.image()];
    for blocks in [1, 2, 3, 60, 1, 130, 70] {
        let log = world.open();
        for _ in 0..blocks {
            let row = varied(&mut rng);
            world.block(&log, vec![row], 1);
        }
        log.close().unwrap();
        images.push(world.image());
    }
    (world, images)
}

#[test]
fn a_log_that_grew_is_proved_to_have_grown_from_every_checkpoint() {
    let (world, images) = growing(71);
    for (now, image) in images.iter().enumerate() {
        let reader = world.reader(image.clone());
        for (then, old) in images.iter().enumerate() {
            let proof = reader.prove_consistency(old.get("checkpoint"));
            if then > now {
                let error = proof.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
                assert!(error.to_string().contains("cut"), "{error}");
                continue;
            }
            let text = proof.unwrap();
            let parsed = ConsistencyProof::parse(text.as_bytes()).unwrap();
            let held = parsed.verify(Some(&world.key)).unwrap();
            let sizes = (super::world::frames(old).len() as u64, super::world::frames(image).len() as u64);
            assert_eq!((held.old.size, held.new.size), sizes);
        }
    }
}

#[test]
fn a_log_that_was_rewritten_is_found_out() {
    let (_, images) = growing(72);
    // The same keys, and other rows from the second session on.
    let (other, mut rng) = (World::new(72), Rng(720));
    let mut other = other;
    let mut rewritten = Vec::new();
    for blocks in [1, 2, 3, 60, 1] {
        let log = other.open();
        for _ in 0..blocks {
            let row = varied(&mut rng);
            other.block(&log, vec![row], 1);
        }
        log.close().unwrap();
        rewritten.push(other.image());
    }
    let checkpoints = images.iter().map(|image| image.get("checkpoint"));
    for (at, checkpoint) in checkpoints.enumerate().take(5) {
        let proof = other.reader(rewritten[4].clone()).prove_consistency(checkpoint);
        match at {
            // An empty log is the beginning of any.
            0 => drop(proof.unwrap()),
            _ => {
                let error = proof.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Tampered);
                assert!(error.to_string().contains("rewritten"), "{error}");
            }
        }
    }
    // Of one size, and not the same.
    let same = other.reader(rewritten[2].clone()).prove_consistency(images[3].get("checkpoint"));
    assert!(same.unwrap_err().to_string().contains("rewritten"));
}

#[test]
fn a_checkpoint_of_another_log_or_of_nobody_is_no_earlier_one() {
    let (world, images) = growing(73);
    let reader = reader(images[4].clone(), &world.key);
    let foreign = some_log(1).image();
    let mut forged = images[2].get("checkpoint").to_vec();
    let at = forged.len() - 5;
    forged[at] ^= 1;
    for old in [foreign.get("checkpoint"), &forged, b"", b"example.com/reader\n0\n"] {
        let error = reader.prove_consistency(old).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
