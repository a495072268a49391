//! Every bit of small files altered, every end cut off: refused, or of no matter.

use super::world::{Frame, WITNESS, World};
use bulla_proof::{DisclosedFrame, HashId, Proof, ProofFile, VerifierKey};

/// What a file proves to whoever has the key, in full.
fn proven(file: &[u8], key: &VerifierKey) -> Option<String> {
    match ProofFile::parse(file).ok()? {
        ProofFile::Entries(proof) => {
            assert_eq!(proof.render().as_bytes(), file, "a file has one spelling");
            let checked = proof.verify(Some(key)).ok()?;
            let entries: Vec<_> = checked.entries().collect();
            let groups = checked.groups().map(|group| {
                let entries = group.shared_entries().collect::<Vec<_>>();
                format!("{entries:?} {:?} {} {}", group.subjects(), group.personal(), group.has_secret())
            });
            let groups = groups.collect::<Vec<_>>();
            Some(format!("{} {} {entries:?} {groups:?}", checked.tree_size(), checked.root()))
        }
        ProofFile::Consistency(proof) => {
            assert_eq!(proof.render().as_bytes(), file, "a file has one spelling");
            let held = proof.verify(Some(key)).ok()?;
            Some(format!("{:?} {:?}", held.old, held.new))
        }
        ProofFile::Event(proof) => {
            assert_eq!(proof.render().as_bytes(), file, "a file has one spelling");
            let held = proof.verify(Some(key)).ok()?;
            Some(format!("{:?} {:?} {:?}", held.commitment(), held.event(), held.checkpoint()))
        }
        ProofFile::Receipt(_) => panic!("no text is a receipt"),
    }
}

fn files(world: &World) -> Vec<String> {
    let single = world.proof(&[(1, &[1, 3])]).render();
    let several = world.proof(&[(1, &[0]), (3, &[2])]).render();
    vec![single, several, world.growth(3, 4).render(), world.event(2).render()]
}

/// Proofs of groups, with a secret and without.
fn group_files(world: &World) -> Vec<String> {
    let opened = world.proof(&[(1, &[1, 2])]).render();
    let mut units = world.frames[3].units[..2].to_vec();
    super::world::group_mut(&mut units[1]).secret = None;
    let Frame { commitment, hashes, .. } = &world.frames[3];
    let frame = DisclosedFrame::new(commitment.clone(), hashes, units, vec![]).unwrap();
    let closed = Proof::new(world.note(4).as_bytes(), world.tree_nodes(&[3]), vec![frame]).unwrap();
    vec![opened, closed.render()]
}

fn world() -> World {
    World::new(HashId::Sha256, &[5, 0, 3])
}

fn grouped() -> World {
    World::with_groups(HashId::Sha256, &[6, 0, 3], super::world::row, super::world::mixed)
}

/// All files, with their log.
fn all_files() -> Vec<(World, Vec<String>)> {
    let (world, grouped) = (world(), grouped());
    let (files, group_files) = (files(&world), group_files(&grouped));
    vec![(world, files), (grouped, group_files)]
}

#[test]
fn every_altered_bit_is_seen() {
    for (world, file) in
        all_files().iter().flat_map(|(world, files)| files.iter().map(move |file| (world, file)))
    {
        assert!(proven(file.as_bytes(), &world.key).is_some());
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone().into_bytes();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(proven(&damaged, &world.key), None, "bit {bit} of {file}");
        }
    }
}

/// The one spot that may change: what other keys have signed, which the log's key does not speak for.
#[test]
fn a_witness_line_is_the_witness_own() {
    let world = world();
    let note = world.note(4) + WITNESS;
    let frames = vec![world.disclosed(1, &[1])];
    let file = Proof::new(note.as_bytes(), world.tree_nodes(&[1]), frames).unwrap().render();
    let expected = proven(file.as_bytes(), &world.key);
    assert!(expected.is_some());
    let (mut same, witness) = (0, file.len() - WITNESS.len());
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone().into_bytes();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = proven(&damaged, &world.key);
        if bit / 8 < witness {
            assert_eq!(found, None, "bit {bit}");
        } else {
            assert!(found.is_none() || found == expected, "bit {bit}");
            same += u32::from(found.is_some());
        }
    }
    assert!(same > 20, "{same}");
}

#[test]
fn every_end_that_is_cut_off_is_missed() {
    for (world, file) in
        all_files().iter().flat_map(|(world, files)| files.iter().map(move |file| (world, file)))
    {
        for length in 0..file.len() {
            assert_eq!(proven(&file.as_bytes()[..length], &world.key), None, "{length} of {file}");
        }
        for more in ["\n", " ", "\0", "x", "\n\n", WITNESS.trim_end()] {
            assert_eq!(proven(format!("{file}{more}").as_bytes(), &world.key), None, "{more:?}");
        }
    }
}

#[test]
fn every_byte_left_out_or_doubled_is_seen() {
    for (world, file) in
        all_files().iter().flat_map(|(world, files)| files.iter().map(move |file| (world, file)))
    {
        for at in 0..file.len() {
            let (before, rest) = file.as_bytes().split_at(at);
            assert_eq!(proven(&[before, &rest[1..]].concat(), &world.key), None, "without {at} of {file}");
            assert_eq!(
                proven(&[before, &rest[..1], rest].concat(), &world.key),
                None,
                "{at} twice in {file}"
            );
        }
    }
}

/// Two logs of one shape: no line of the one does for the other's.
#[test]
fn no_line_of_another_file_fits() {
    let world = world();
    let other = World::with_rows(HashId::Sha256, &[5, 0, 3], |entry| {
        super::world::encode(
            &bulla_proof::Entry::new("delete", &entry.to_string()).time(1_700_000_000_000_000_000),
        )
    });
    for (file, other) in files(&world).iter().zip(files(&other)) {
        let lines: Vec<&str> = file.split('\n').collect();
        for (at, other) in other.split('\n').enumerate() {
            let mut mixed = lines.clone();
            if std::mem::replace(&mut mixed[at], other) == other {
                continue;
            }
            assert_eq!(proven(mixed.join("\n").as_bytes(), &world.key), None, "line {at} of {file}");
        }
    }
}
