//! A block as it is sealed is the block as it is opened, with the keys of all of its groups, of some, of none.

use super::*;
use crate::engine::grouping::group;
use crate::keys::epoch::EpochSecret;
use crate::keys::group::Subjects;
use crate::seal::block::BlockSealer;
use crate::seal::columns::Compression;
use crate::seal::{Numbers, Sealed};
use crate::store::{Memory, Store};
use crate::vault::{Subject, SubjectKey};
use bulla_proof::Entry;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::HashId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Numbers in the order in which subjects are met, and keys that follow from the names.
#[derive(Default)]
struct Register {
    names: Mutex<Vec<String>>,
    erased: BTreeSet<String>,
}

impl Register {
    fn key(name: &str) -> SubjectKey {
        SubjectKey::from(sha256(&[name.as_bytes()]).0)
    }
}

impl Subjects for Register {
    fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        let mut names = self.names.lock().unwrap();
        let mut number = |name: &str| {
            names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            })
        };
        // The later ones first, so that the numbers are not in the order of the entries.
        let numbers =
            subjects.iter().rev().map(|name| (*name, number(name))).collect::<BTreeMap<&str, usize>>();
        Ok(subjects
            .iter()
            .map(|name| Subject { number: numbers[name] as u64, key: Self::key(name) })
            .collect())
    }

    fn next_number(&self) -> Result<u64> {
        Ok(0)
    }

    fn require_at_least(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl GroupKeys for Register {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(self.names.lock().unwrap().iter().position(|name| name == subject).map(|number| number as u64))
    }

    fn secret(&self, place: Place<'_>, subjects: &[u64]) -> Result<Option<GroupSecret>> {
        let names = self.names.lock().unwrap();
        let names = subjects.iter().map(|&number| names[number as usize].clone()).collect::<Vec<_>>();
        if names.iter().any(|name| self.erased.contains(name)) {
            return Ok(None);
        }
        let keys = names.iter().map(|name| Self::key(name)).collect::<Vec<_>>();
        GroupSecret::derive(place, subjects.iter().copied().zip(&keys)).map(Some)
    }
}

fn rows(count: u64) -> Vec<Vec<u8>> {
    let row = |number: u64| {
        let location = format!("user_{}/{number}", number % 7);
        let names = [format!("user_{}", number * number % 7), format!("user_{}", number % 5)];
        let mut entry = Entry::new("read", &location).time(number.cast_signed()).payload("what was read");
        entry.subjects = match number % 4 {
            0 => None,
            1 => Some(Default::default()),
            2 => Some([&names[0][..]].into_iter().collect()),
            // Twice the same, or in either order.
            _ => Some(names.iter().map(|name| &name[..]).collect()),
        };
        let entry = if number.is_multiple_of(3) { entry.status(200).stream("s") } else { entry };
        let mut row = vec![0; entry.measure().unwrap()];
        entry.encode(0, &mut row);
        row
    };
    (0..count).map(row).collect()
}

struct World {
    rows: Vec<Vec<u8>>,
    register: Register,
    keys: EpochKeys,
    sealed: Sealed,
}

const LOG: LogId = LogId([7; 16]);

impl World {
    fn new(count: u64) -> Self {
        let keys = EpochKeys::derive(&EpochSecret::from([1; 32]), [2; 32], LOG, 5).unwrap();
        let (rows, register) = (rows(count), Register::default());
        let sealed = Self::seal(&rows, &register, &keys);
        World { rows, register, keys, sealed }
    }

    fn seal(rows: &[Vec<u8>], register: &Register, keys: &EpochKeys) -> Sealed {
        let views = rows.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let place = Place { log: LOG, epoch_random: keys.random(), frame: 9 };
        let grouping = group(&views, place, register).unwrap();
        let identity = Identity { log: LOG, hash: HashId::Sha256 };
        let numbers = Numbers { frame: 9, first_entry: 100, epoch: 5 };
        let mut sealer = BlockSealer::new(Compression::FAST);
        sealer.seal(identity, numbers, keys, &AesGcm, &views, &grouping).unwrap()
    }

    fn open(&self) -> (BlockOpener, Commitment) {
        let mut opener = BlockOpener::default();
        let commitment = self.sealed.commitment.clone();
        let segment = SegmentName { first: 0, generation: 0 };
        let file: Arc<dyn StoreFile> = Arc::from(Memory::new().create("segment").unwrap());
        let frame =
            Located { commitment: commitment.clone(), segment, file, offset: 0, keys: None, foreign: false };
        let verified = Verified { frame: &frame, body: self.sealed.body.clone() };
        opener.open(verified, &self.keys).map_err(|error| error.detail).unwrap();
        opener.check_units(&commitment, &self.keys).map_err(|error| error.detail).unwrap();
        (opener, commitment)
    }

    fn open_groups(&self, subject: Option<u64>) -> BlockOpener {
        let (mut opener, commitment) = self.open();
        let opening = Opening { keys: &self.register, subject };
        let opened = opener.open_groups(&commitment, &self.keys, &opening).unwrap();
        opened.map_err(|error| error.detail).unwrap();
        opener
    }

    fn subjects(&self, row: usize) -> Vec<String> {
        let subjects = Entry::decode(&self.rows[row]).unwrap().subjects.unwrap_or_default();
        subjects.iter().map(|subject| (*subject).to_owned()).collect()
    }
}

#[test]
fn with_all_keys_the_rows_come_out() {
    for count in [1, 3, 4, 50, 700] {
        let world = World::new(count);
        let opener = world.open_groups(None);
        assert!(opener.rows().iter().eq(world.rows.iter().map(Vec::as_slice)), "{count}");
        assert!((0..world.rows.len()).all(|row| !opener.is_withheld(row)));
    }
}

#[test]
fn a_set_of_subjects_is_one_group_and_one_unit() {
    let world = World::new(700);
    let (opener, commitment) = world.open();
    let sets = (0..700).map(|row| world.subjects(row).into_iter().collect::<BTreeSet<_>>());
    let (alone, grouped): (Vec<_>, Vec<_>) = sets.partition(BTreeSet::is_empty);
    let distinct = grouped.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(opener.groups().len(), distinct.len());
    assert_eq!(commitment.units, (alone.len() + distinct.len()) as u64);
    assert_eq!(opener.units(&commitment).0.len() as u64, commitment.units);
}

#[test]
fn without_a_key_what_is_shared_comes_out_and_the_rest_stands() {
    let mut world = World::new(300);
    world.register.erased.insert("user_2".to_owned());
    let opener = world.open_groups(None);
    for row in 0..300 {
        let concerned = world.subjects(row).contains(&"user_2".to_owned());
        assert_eq!(opener.is_withheld(row), concerned, "{row}");
        if !concerned {
            assert_eq!(opener.rows()[row], world.rows[row]);
            continue;
        }
        let (left, whole) = (opener.rows().entry(row).unwrap(), Entry::decode(&world.rows[row]).unwrap());
        let shared = Entry { location: None, payload: None, stream: None, subjects: None, ..whole };
        assert_eq!(left, shared);
    }
}

#[test]
fn one_subject_s_groups_alone_are_opened() {
    let world = World::new(300);
    let number = world.register.number("user_2").unwrap();
    let opener = world.open_groups(number);
    for row in 0..300 {
        let subjects = world.subjects(row);
        let left_out = !subjects.is_empty() && !subjects.contains(&"user_2".to_owned());
        assert_eq!(opener.is_withheld(row), left_out, "{row}");
    }
}

#[test]
fn another_key_or_another_place_opens_nothing() {
    let world = World::new(40);
    let (mut opener, mut commitment) = world.open();
    commitment.frame += 1;
    let opening = Opening { keys: &world.register, subject: None };
    let opened = opener.open_groups(&commitment, &world.keys, &opening).unwrap();
    let error = opened.unwrap_err();
    assert_eq!(error.kind, FindingKind::BlockInvalid);
    assert!(error.detail.contains("commits to"), "{}", error.detail);
}

#[test]
fn the_frame_depends_on_rows_keys_and_numbers_alone() {
    let world = World::new(90);
    let again = World::seal(&world.rows, &world.register, &world.keys);
    assert_eq!((again.body, again.encoded), (world.sealed.body, world.sealed.encoded));
}

#[test]
fn a_unit_of_a_group_binds_its_entries_subjects_and_bytes() {
    let world = World::new(60);
    let (opener, _) = world.open();
    let content = opener.groups().content(0);
    let rows = [(7, &b"one"[..]), (9, b"other")];
    let unit = |rows: &[(u64, &[u8])], content: GroupContent<'_>| {
        unit::group_unit(HashId::Sha256, &[1; 16], rows.iter().copied(), &content, &mut Vec::new())
    };
    let base = unit(&rows, content);
    let (subjects, commitment) = ([content.subjects, &[77]].concat(), Hash([1; 32]));
    for other in [
        unit(&[(8, b"one"), (9, b"other")], content),
        unit(&[(7, b"on"), (9, b"eother")], content),
        unit(&[(7, b"one")], content),
        unit(&rows, GroupContent { personal: 0, ..content }),
        unit(&rows, GroupContent { subjects: &subjects, ..content }),
        unit(&rows, GroupContent { ciphertext: &content.ciphertext[1..], ..content }),
        unit(&rows, GroupContent { commitment: &commitment, ..content }),
    ] {
        assert_ne!(base, other);
    }
}
