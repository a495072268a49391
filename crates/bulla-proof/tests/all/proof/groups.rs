//! Disclosed groups: known answers, what is built, and what is told of them without a cipher.

use super::second_reader::check;
use super::world::{World, encode, group_mut, mixed, row};
use crate::vectors::{items, number, read, text, unhex};
use bulla_proof::proof::{FrameProblem, UnitProblem};
use bulla_proof::{DisclosedFrame, GroupSecret, HashId, Proof, ProofError, ProofFile, VerifierKey};
use serde_json::{Value, json};

fn vectors() -> (Value, VerifierKey) {
    let vectors = read("groups.json");
    let key = text(&vectors, "vkey").parse().unwrap();
    (vectors, key)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn groups_are_disclosed_as_the_vectors_say() {
    let (vectors, key) = vectors();
    for vector in items(&vectors["proofs"]) {
        let (name, file) = (text(vector, "name"), text(vector, "file"));
        let proof = Proof::parse(file.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(proof.render(), file, "{name}");
        let checked = proof.verify(Some(&key)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let told = |(number, entry)| json!([number, hex(&encode(&entry))]);
        let rows: Vec<Value> = checked.entries().map(told).collect();
        assert_eq!(json!(rows), vector["entries"], "{name}");
        let groups = checked
            .groups()
            .zip(checked.disclosed().iter().flat_map(DisclosedFrame::units).filter_map(|unit| unit.group()));
        let groups = groups.map(|(checked, group)| {
            assert_eq!(checked.has_secret(), group.secret.is_some());
            json!({
                "entries": checked.shared_entries().map(told).collect::<Vec<_>>(),
                "subjects": checked.subjects(),
                "personal": checked.personal(),
                "secret": group.secret.as_ref().map(|secret| hex(secret.as_bytes())),
            })
        });
        assert_eq!(json!(groups.collect::<Vec<_>>()), vector["groups"], "{name}");
        let entries = items(&vector["opened"]).len();
        assert_eq!(
            (checked.units() as u64, checked.entry_count()),
            (number(vector, "units"), entries),
            "{name}"
        );
    }
}

#[test]
fn the_refused_groups_are_refused() {
    let (vectors, key) = vectors();
    for vector in items(&vectors["refused"]) {
        let (name, file) = (text(vector, "name"), text(vector, "file").as_bytes());
        for key in [None, Some(&key)] {
            let error = Proof::parse(file).and_then(|proof| proof.verify(key).map(|_| ())).expect_err(name);
            assert_eq!(format!("{error:?}"), text(vector, "error"), "{name}: {error}");
            assert!(!error.to_string().is_empty());
        }
    }
    // That a group does not open takes a cipher to be seen.
    for vector in items(&vectors["unopened"]) {
        let proof = Proof::parse(text(vector, "file").as_bytes()).unwrap();
        assert!(proof.verify(Some(&key)).unwrap().groups().all(|group| group.has_secret()));
    }
}

/// `interop/bulla_reader` opens what the vectors open, and refuses what they refuse.
#[test]
fn another_implementation_judges_groups_the_same() {
    let (vectors, key) = vectors();
    let files = |list: &str| -> Vec<Vec<u8>> {
        items(&vectors[list]).iter().map(|vector| text(vector, "file").into()).collect()
    };
    let (output, verdicts) = check("groups", &files("proofs"), Some(&key));
    assert!(verdicts.iter().all(|&proven| proven), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = std::str::from_utf8(&output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: Vec<&Value> =
        items(&vectors["proofs"]).iter().flat_map(|vector| items(&vector["opened"])).collect();
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(expected) {
        let row = unhex(expected[1].as_str().unwrap());
        let entry = bulla_proof::Entry::decode(&row).unwrap();
        let location = entry.location.map(|location| String::from_utf8(location.to_vec()).unwrap());
        assert_eq!((&line["entry"], &line["location"]), (&expected[0], &json!(location)));
        assert_eq!(line["withheld"] == "not-given", expected[2] == json!(true));
    }
    for list in ["refused", "unopened"] {
        let (output, verdicts) = check(&format!("groups-{list}"), &files(list), Some(&key));
        assert!(verdicts.iter().all(|proven| !proven), "{list}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn any_groups_and_rows_are_proven() {
    for hash in HashId::ALL {
        let world = World::with_groups(hash, &[17, 1, 40], row, mixed);
        for (frame, positions) in [(1, &[0, 1, 2][..]), (1, &[2]), (1, &[0]), (3, &[0, 1, 2, 3, 5, 15])] {
            let proof = world.proof(&[(frame, positions)]);
            assert_eq!(ProofFile::parse(proof.render().as_bytes()), Ok(ProofFile::Entries(proof.clone())));
            let checked = proof.verify(Some(&world.key)).unwrap();
            let units = positions.iter().map(|&position| &world.frames[frame].units[position]);
            let (groups, rows): (Vec<_>, Vec<_>) = units.partition(|unit| unit.group().is_some());
            assert_eq!((checked.groups().count(), checked.entries().count()), (groups.len(), rows.len()));
            let told = checked.groups().flat_map(|group| group.shared_entries());
            let expected = groups.iter().flat_map(|unit| unit.entries());
            assert!(
                told.map(|(number, entry)| (number, encode(&entry)))
                    .eq(expected.map(|entry| (entry.number, entry.row.clone())))
            );
        }
    }
}

/// What a caller could get wrong is refused before there is a file.
#[test]
fn no_group_is_built_that_does_not_verify() {
    let world = World::with_groups(HashId::Sha256, &[9], row, mixed);
    let build = |change: &dyn Fn(&mut bulla_proof::DisclosedGroup, &mut bulla_proof::DisclosedGroup)| {
        let mut units = world.frames[1].units[1..3].to_vec();
        let [one, other] = &mut units[..] else { panic!("two groups") };
        change(group_mut(one), group_mut(other));
        let frame =
            DisclosedFrame::new(world.frames[1].commitment.clone(), &world.frames[1].hashes, units, vec![]);
        Proof::new(world.note(2).as_bytes(), world.tree_nodes(&[1]), vec![frame.unwrap()]).map(|_| ())
    };
    let of_unit = |unit, problem| Err(ProofError::Unit { frame: 1, unit, problem });
    let root = Err(ProofError::Frame { frame: 1, problem: FrameProblem::Root });
    assert_eq!(build(&|_, _| ()), Ok(()));
    assert_eq!(build(&|one, other| (one.secret, other.secret) = (None, None)), Ok(()));
    assert_eq!(build(&|one, other| one.secret = other.secret.clone()), of_unit(0, UnitProblem::Secret));
    assert_eq!(
        build(&|_, other| other.secret = Some(GroupSecret::new([9; 32]))),
        of_unit(1, UnitProblem::Secret)
    );
    assert_eq!(build(&|one, _| one.entries.clear()), of_unit(0, UnitProblem::Entries(0)));
    assert_eq!(build(&|one, _| one.entries.reverse()), of_unit(0, UnitProblem::Entry));
    assert_eq!(build(&|one, _| one.subjects.reverse()), of_unit(0, UnitProblem::Subject));
    assert_eq!(build(&|one, _| one.subjects = (0..65).collect()), of_unit(0, UnitProblem::Subjects(65)));
    assert_eq!(build(&|one, _| one.ciphertext.clear()), of_unit(0, UnitProblem::Ciphertext(0)));
    assert_eq!(build(&|one, _| one.personal = 0), of_unit(0, UnitProblem::Personal(0)));
    assert_eq!(
        build(&|one, other| other.entries.insert(1, one.entries[1].clone())),
        of_unit(1, UnitProblem::Repeated)
    );
    assert_eq!(build(&|one, _| one.ciphertext.push(0)), root);
    assert_eq!(build(&|one, other| one.commitment = other.commitment), root);
}

#[test]
fn a_secret_is_not_printed() {
    let world = World::with_groups(HashId::Sha256, &[9], row, mixed);
    let proof = world.proof(&[(1, &[0, 1, 2])]);
    let shown = format!("{proof:?} {:?}", proof.verify(None).unwrap());
    let secrets = world.frames[1].units.iter().filter_map(|unit| unit.group()?.secret.as_ref());
    for secret in secrets {
        assert!(shown.contains("GroupSecret"));
        let list = format!("{:?}", secret.as_bytes());
        assert!(!shown.contains(&list) && !shown.contains(&hex(secret.as_bytes())));
        assert!(!format!("{:?}", secret.key()).contains(&format!("{:?}", secret.key().key)));
    }
}

/// Bytes all over files with groups: another implementation objects where this one does.
#[test]
fn another_implementation_objects_to_the_same_damage_of_groups() {
    let (vectors, key) = vectors();
    let files = items(&vectors["proofs"]).iter().take(2).map(|vector| text(vector, "file").as_bytes());
    let (mut damaged, mut expected) = (Vec::new(), Vec::new());
    for file in files {
        for at in (0..file.len()).step_by(5) {
            let mut bytes = file.to_vec();
            bytes[at] ^= 2;
            expected.push(Proof::parse(&bytes).is_ok_and(|proof| proof.verify(None).is_ok()));
            assert!(!Proof::parse(&bytes).is_ok_and(|proof| proof.verify(Some(&key)).is_ok()), "{at}");
            damaged.push(bytes);
        }
    }
    assert!(expected.iter().any(|&holds| holds), "a signature counts with a key only");
    let (output, verdicts) = check("groups-damage", &damaged, None);
    assert_eq!(verdicts, expected, "{}", String::from_utf8_lossy(&output.stderr));
}
