//! What is disclosed of a block with groups is a proof that verifies, opens, and has what was chosen and nothing else.

use super::disclose;
use crate::read::opened_proof::{Opened, open_proof};
use crate::scan::open::BlockOpener;
use crate::scan::open::world::{self, World};
use crate::scan::redaction::Redaction;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bulla_columns::Compression;
use bulla_proof::commitment::Commitment;
use bulla_proof::proof::{DisclosedFrame, Proof, ProofError, UnitContent, UnitProblem};
use bulla_proof::tree::LogNodes;
use bulla_proof::{Checkpoint, Entry, VerifierKey, multiproof, sha256, sign_checkpoint, tile};
use bulla_text::jsonl;
use ed25519_dalek::{Signer as _, SigningKey};
use std::collections::BTreeSet;

/// The proof of frames that lie in a log of ten.
fn prove(frame: DisclosedFrame) -> Result<(Proof, VerifierKey), ProofError> {
    let secret = SigningKey::from_bytes(&[7; 32]);
    let key = VerifierKey::new("example.com/log", secret.verifying_key().to_bytes()).unwrap();
    let mut leaves = (0..10_u8).map(|leaf| sha256(&[&[leaf]])).collect::<Vec<_>>();
    leaves[9] = frame.commitment().leaf();
    let checkpoint = Checkpoint::new("example.com/log", 10, tile::tile_hash(&leaves));
    let note = sign_checkpoint(&checkpoint, &key, |text| secret.sign(text).to_bytes());
    let nodes = multiproof::prove(&leaves, &[9], &LogNodes).unwrap();
    Proof::new(note.as_bytes(), nodes, vec![frame]).map(|proof| (proof, key))
}

fn disclosed(opener: &BlockOpener, commitment: &Commitment, rows: &[u32]) -> Proof {
    let (proof, key) = prove(disclose(opener, commitment, rows).unwrap()).unwrap();
    assert!(proof.verify(Some(&key)).unwrap().anchored());
    proof
}

/// The entries of a proof: number, row, and whether it is withheld.
fn entries(proof: &Proof) -> (Vec<(u64, Vec<u8>, bool)>, Opened) {
    let mut entries = Vec::new();
    let opened = open_proof(&proof.verify(None).unwrap(), |disclosed| {
        let mut row = vec![0; disclosed.entry.measure().unwrap()];
        disclosed.entry.encode(0, &mut row);
        entries.push((disclosed.number, row, disclosed.withheld));
        Ok(())
    });
    (entries, opened.unwrap())
}

/// The set of data subjects that a row's group is of.
fn set(world: &World, row: u32) -> BTreeSet<String> {
    world.subjects(row as usize).into_iter().collect()
}

/// The rows that come along with these: those, and those of the same groups.
fn expected(world: &World, rows: &[u32]) -> Vec<u32> {
    let sets = rows.iter().map(|&row| set(world, row)).filter(|set| !set.is_empty());
    let sets = sets.collect::<BTreeSet<_>>();
    let all = 0..u32::try_from(world.rows.len()).unwrap();
    all.filter(|row| rows.contains(row) || sets.contains(&set(world, *row))).collect()
}

/// Some rows, others for each seed.
fn some_rows(seed: u32, count: u32) -> Vec<u32> {
    (0..count).filter(|row| sha256(&[&seed.to_le_bytes(), &row.to_le_bytes()]).0[0] < 16).collect()
}

#[test]
fn what_is_chosen_comes_out_with_its_groups_and_nothing_else() {
    let world = World::new(300);
    let (opener, commitment) = (world.open_groups(None), &world.sealed.commitment);
    let each = (0..300).map(|row| vec![row]);
    let mut grouped = 0;
    for rows in each.chain((0..40).map(|seed| some_rows(seed, 300))).chain([(0..300).collect()]) {
        let proof = disclosed(&opener, commitment, &rows);
        let (found, opened) = entries(&proof);
        let expected = expected(&world, &rows);
        grouped += usize::from(expected.len() > rows.len());
        let of_row = |&row: &u32| (100 + u64::from(row), world.rows[row as usize].clone(), false);
        assert!(found.into_iter().eq(expected.iter().map(of_row)), "{rows:?}");
        assert_eq!(opened, Opened { entries: expected.len() as u64, withheld: 0 });
        assert_eq!(proof.verify(None).unwrap().entry_count(), expected.len());
    }
    assert!(grouped > 100);
}

#[test]
fn without_a_key_a_group_is_proven_and_what_is_personal_withheld() {
    let mut world = World::new(300);
    world.register.erased.insert("user_2".to_owned());
    let (opener, commitment) = (world.open_groups(None), &world.sealed.commitment);
    let rows = (0..300).collect::<Vec<_>>();
    let (found, opened) = entries(&disclosed(&opener, commitment, &rows));
    let mut without = 0;
    for ((number, row, withheld), whole) in found.iter().zip(&world.rows) {
        let concerned = world.subjects(usize::try_from(number - 100).unwrap()).contains(&"user_2".to_owned());
        assert_eq!((*withheld, row == whole), (concerned, !concerned));
        without += u64::from(concerned);
    }
    assert_eq!(opened, Opened { entries: 300, withheld: without });
    // A block whose groups nobody tried to open.
    let (closed, _) = world.open();
    let (found, _) = entries(&disclosed(&closed, commitment, &rows));
    assert!((0..300).all(|row| found[row].2 != world.subjects(row).is_empty()));
}

fn has(contents: &[u8], string: &[u8]) -> bool {
    contents.windows(string.len()).any(|window| window == string)
}

/// What the file says, what is base 64 in it included.
fn contents(proof: &Proof) -> Vec<u8> {
    let text = proof.render();
    let mut contents = text.as_bytes().to_vec();
    for word in text.split_ascii_whitespace() {
        contents.extend(STANDARD.decode(word).unwrap_or_default());
    }
    contents
}

#[test]
fn nothing_of_other_units_is_in_the_file_nor_any_key_but_the_secrets_of_what_is_disclosed() {
    let row = |number: u32| {
        let (location, payload) = (format!("location-{number:03}-of"), format!("payload-{number:03}-of"));
        let (purpose, name) = (format!("purpose-{number:03}-of"), format!("subject-{:03}", number % 13));
        let entry = Entry::new("read", &location).time(i64::from(number)).purpose(&purpose).payload(&payload);
        let entry = if number.is_multiple_of(4) { entry } else { entry.subject(&name) };
        let mut row = vec![0; entry.measure().unwrap()];
        entry.encode(0, &mut row);
        row
    };
    // Not compressed, so that what is there can be found.
    let world = World::compressed((0..90).map(row).collect(), Compression::NONE);
    let (opener, commitment) = (world.open_groups(None), &world.sealed.commitment);
    let secrets = (0..opener.groups().len()).map(|group| *opener.secret(group).unwrap().as_bytes());
    let secrets = secrets.collect::<Vec<_>>();
    for rows in (0..90).map(|row| vec![row]).chain((0..10).map(|seed| some_rows(seed, 90))) {
        let contents = contents(&disclosed(&opener, commitment, &rows));
        let expected = expected(&world, &rows);
        for row in 0..90 {
            let (told, grouped) = (expected.contains(&row), !row.is_multiple_of(4));
            assert_eq!(has(&contents, format!("purpose-{row:03}-of").as_bytes()), told);
            for personal in ["location", "payload"] {
                // Of a group's entries only the ciphertext has them.
                let plain = has(&contents, format!("{personal}-{row:03}-of").as_bytes());
                assert_eq!(plain, told && !grouped, "{personal} {row} of {rows:?}");
            }
            if grouped {
                let group = opener.groups().of_row(row as usize).unwrap();
                assert_eq!(has(&contents, &secrets[group]), told);
            }
        }
        assert!((0..13).all(|name| !has(&contents, &sha256(&[format!("subject-{name:03}").as_bytes()]).0)));
        assert!(!has(&contents, world.keys.body()) && !has(&contents, world.keys.random()));
    }
}

#[test]
fn a_secret_of_another_group_or_of_none_is_told() {
    let world = World::new(40);
    let (opener, commitment) = (world.open_groups(None), &world.sealed.commitment);
    let rows = (0..40).collect::<Vec<_>>();
    let secret = |group: usize| opener.secret(group).cloned();
    let mut wrong = 0;
    for (at, unit) in disclose(&opener, commitment, &rows).unwrap().units().iter().enumerate() {
        for other in [secret(0), secret(1), Some(bulla_crypto::group::GroupSecret::new([7; 32]))] {
            let frame = disclose(&opener, commitment, &rows).unwrap();
            let (mut units, items) = (frame.units().to_vec(), frame.items().to_vec());
            let UnitContent::Group(group) = &mut units[at].content else { continue };
            group.secret = other;
            let same = units[at] == *unit;
            let frame = DisclosedFrame::new(commitment.clone(), &opener.leaves(commitment).0, units, items);
            let proven = prove(frame.unwrap()).map(|_| ());
            let problem = ProofError::Unit { frame: 9, unit: at, problem: UnitProblem::Secret };
            assert_eq!(proven, if same { Ok(()) } else { Err(problem) });
            wrong += usize::from(!same);
        }
    }
    assert!(wrong > 20, "{wrong}");
}

#[test]
fn no_secret_is_printed() {
    let world = World::new(40);
    let opener = world.open_groups(None);
    let proof = disclosed(&opener, &world.sealed.commitment, &(0..40).collect::<Vec<_>>());
    let shown = format!("{proof:?} {:#?} {:?}", proof.verify(None).unwrap(), opener.secret(0));
    assert!(shown.contains("GroupSecret"));
    for group in 0..opener.groups().len() {
        let secret = opener.secret(group).unwrap();
        let list = format!("{:?}", secret.as_bytes());
        assert!(!shown.contains(list.trim_matches(['[', ']'])) && !shown.contains(&list));
    }
}

/// `interop/bulla_reader` opens the groups that this implementation has sealed, and prints the same lines.
#[test]
fn another_implementation_opens_the_same() {
    // Somebody's locations are enough for templates.
    let location = |number: u32| format!("order/{}/{:08x}.pdf", number * 7, number.wrapping_mul(0x9e37_79b9));
    let mut rows = world::rows(120);
    rows.extend((0..80).map(|number| {
        let location = location(number);
        let entry = Entry::new("read", &location).time(number.into()).subject("user_9");
        let mut row = vec![0; entry.measure().unwrap()];
        entry.encode(0, &mut row);
        row
    }));
    let mut world = World::compressed(rows, Compression::NONE);
    world.register.erased.insert("user_3".to_owned());
    let (opener, commitment) = (world.open_groups(None), &world.sealed.commitment);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.proof");
    for rows in [vec![3], (0..200).collect(), some_rows(1, 120)] {
        let (proof, key) = prove(disclose(&opener, commitment, &rows).unwrap()).unwrap();
        let mut lines = Vec::new();
        open_proof(&proof.verify(Some(&key)).unwrap(), |disclosed| {
            let withheld = disclosed.withheld.then_some(Redaction::NotGiven);
            jsonl::write_read(&disclosed.entry, disclosed.number, withheld.map(Redaction::name), &mut lines);
            Ok(())
        })
        .unwrap();
        std::fs::write(&file, proof.render()).unwrap();
        let mut command = bulla_testkit::second_reader("check");
        let output = command.arg(&file).args(["--vkey", &key.to_string()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&lines));
    }
}
