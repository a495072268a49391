//! What the files tell: nothing about a person without the keys, and nothing about who was erased at all.

use super::pseudonym::Pseudonym;
use super::*;
use bulla_crypto::subject::Secret;
use index::{Bucket, Entry, IndexCipher};
use keys::Keys;
use rows::{RowCipher, first_of, row_of};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// Every byte of every file below a directory.
fn bytes(directory: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for item in std::fs::read_dir(directory).unwrap() {
        let item = item.unwrap();
        match item.file_type().unwrap().is_dir() {
            true => all.extend(bytes(&item.path())),
            false => all.extend(std::fs::read(item.path()).unwrap()),
        }
    }
    all
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// The rows in files of SQLite, of whatever table, wherever they lie: in pages that are in use or free, or in the log of changes.
/// Each is id, length of the head, no type for the id, the type of the bytes, the bytes; before the id is its length.
fn all_rows(files: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    (1..files.len().saturating_sub(4)).filter_map(|at| {
        let (kind, head) = match files[at..at + 4] {
            [3, 0, kind, _] => (u64::from(kind), 3),
            [4, 0, high, low] => (u64::from(high & 0x7f) << 7 | u64::from(low), 4),
            _ => return None,
        };
        let row = files[at + head..].get(..usize::try_from(kind.checked_sub(12)? / 2).ok()?)?;
        // SQLite's numbers: seven bits a byte, and the eighth in all but the last.
        let digits = files[..at - 1].iter().rev().take(8).take_while(|byte| **byte >= 0x80).count();
        let digits = &files[at - 1 - digits..at];
        Some((digits.iter().fold(0, |id, byte| id << 7 | u64::from(byte & 0x7f)), row))
    })
}

/// How often the row of `number` is in the files under one of `keys`.
fn rows(files: &[u8], number: u64, keys: &[Secret]) -> usize {
    let ciphers = keys.iter().map(|key| RowCipher::new(key, LOG).unwrap()).collect::<Vec<_>>();
    let id = row_of(number);
    let place = (number - first_of(id)) as usize;
    let opens = |bytes: &[u8]| {
        let row = ciphers.iter().find_map(|cipher| cipher.open(id, bytes));
        row.is_some_and(|row| row.person(place).is_some())
    };
    all_rows(files).filter(|(of, bytes)| *of == id && opens(bytes)).count()
}

/// How often an entry is in the files under one of `keys`.
fn entries(files: &[u8], entry: Entry, keys: &[(u32, Secret)]) -> usize {
    let ciphers = keys.iter().map(|(id, key)| {
        let cipher = IndexCipher::new(*id, key, LOG).unwrap();
        let place = cipher.place(entry.half);
        (u64::from(*id) << 8 | u64::from(place), (place, cipher))
    });
    let ciphers = ciphers.collect::<HashMap<_, _>>();
    let has = |(id, bytes): &(u64, &[u8])| {
        let opened = ciphers.get(id).and_then(|(place, cipher)| cipher.open(*place, bytes));
        opened.is_some_and(|entries| entries.contains(&entry))
    };
    all_rows(files).filter(has).count()
}

fn all_keys(vault: &Vault) -> Arc<Keys> {
    vault.shared.keys()
}

#[test]
fn no_file_has_a_name_or_a_plain_hash_of_one() {
    let world = World::new();
    let vault = world.open();
    let names = (0..300).map(|index| format!("alice-{index}@example.org")).collect::<Vec<_>>();
    vault.resolve(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    erase(&vault, &["alice-3@example.org"]).unwrap().unwrap();
    drop(vault);
    let files = bytes(world.path());
    assert!(
        has(&files, b"bullaVM5") && has(&files, b"bulla-vault-root-v1"),
        "the search finds what is there"
    );
    assert!(!has(&files, b"alice"));
    for name in names.iter().take(20) {
        let hash: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        assert!(!has(&files, &hash[..16]));
    }
}

/// Keeps every key that was ever made. The files have none of them in clear, before or after.
#[test]
fn no_key_and_no_pseudonym_lies_in_clear() {
    let random = Arc::new(Recorder::default());
    let world = World::with(Settings { random: random.clone(), ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 500);
    let pseudonyms =
        (0..500).map(|index| Pseudonym::of(&format!("s{index}"), LOG, &all_keys(&vault).pseudonym).0);
    let pseudonyms = pseudonyms.collect::<Vec<_>>();
    let of_fields = vault.field_pseudonym_key().unwrap();
    erase(&vault, &["s7"]).unwrap().unwrap();
    assert!(*vault.field_pseudonym_key().unwrap() == *of_fields, "the same in every generation");
    drop(vault);
    let made = random.secrets();
    assert!(made.len() > 700);
    let files = bytes(world.path());
    let windows = files.windows(32).collect::<std::collections::HashSet<_>>();
    // The salts of the files of keys are random, too, and lie in clear.
    let salts = std::fs::read(world.file("roots/1.keys")).unwrap()[40..72].to_vec();
    assert!(windows.contains(&salts[..]));
    let clear = made.iter().filter(|key| windows.contains(&key[..]) && key[..] != salts[..]);
    assert_eq!(clear.count(), 0);
    assert!(!windows.contains(&of_fields[..]));
    let windows = files.windows(16).collect::<std::collections::HashSet<_>>();
    assert!(pseudonyms.iter().all(|pseudonym| !windows.contains(&pseudonym[..])));
}

/// The point of it all. Before the erasure the files have the person's row and entry under keys that are there; after it
/// nothing that they ever had opens under a key that is left, and they have it no more.
#[test]
fn what_is_left_of_who_was_erased_opens_under_no_key() {
    let world = World::new();
    let replica = tempfile::tempdir().unwrap();
    let settings =
        Settings { replicas: vec![ReplicaLocation::new(replica.path())], ..world.settings.clone() };
    let world = World { settings, ..world };
    let places = [world.path(), replica.path()];
    let vault = world.open();
    // So that there is more than one bucket of each, and pages that were freed.
    fill(&vault, "s", 12_000);
    fill(&vault, "t", 500);
    let alice = vault.find("s4321").unwrap().unwrap();
    let pseudonym = Pseudonym::of("s4321", LOG, &all_keys(&vault).pseudonym);
    let entry = Entry { half: pseudonym.half(), number: alice.number as u32 };
    let old = all_keys(&vault);
    let bucket =
        |vault: &Vault| vault.shared.snapshot(|it| Bucket::of(it.txn, it.keys, entry.prefix())).unwrap();
    let old_row = std::slice::from_ref(old.row(alice.number).unwrap()).to_vec();
    // What somebody may keep who reads the medium at these moments, or whatever the medium itself keeps.
    let mut seen = places.map(bytes);
    for files in &seen {
        assert!(rows(files, alice.number, &old_row) > 0 && entries(files, entry, &old.index) > 0);
    }
    let before = bucket(&vault);

    let committed = vault.begin_erasure_of(&[alice.number]).unwrap().unwrap().commit().unwrap();
    for (seen, place) in seen.iter_mut().zip(places) {
        seen.extend(bytes(place));
    }
    let erased = committed.destroy().unwrap();
    // Neither the database nor its log of changes has it any more, under whatever key.
    for files in places.map(|place| bytes(&place.join("vault"))) {
        assert_eq!(rows(&files, alice.number, &old_row), 0);
        assert_eq!(entries(&files, entry, &old.index), 0);
    }
    assert_eq!(vault.shared.database.log_length(), 0);
    vault.confirm(erased.numbers()).unwrap();
    let new = all_keys(&vault);
    assert_ne!(bucket(&vault).id, before.id);
    drop(vault);

    for (mut files, place) in seen.into_iter().zip(places) {
        // The search would find it: what was read before has it, under the old keys.
        assert!(rows(&files, alice.number, &old_row) > 0 && entries(&files, entry, &old.index) > 0);
        // And under no key that is left: neither hers, nor those of her old buckets, nor spare ones.
        files.extend(bytes(place));
        assert_eq!(rows(&files, alice.number, &new.rows), 0);
        assert_eq!(entries(&files, entry, &new.index), 0);
        let neighbour = alice.number + 1;
        assert!(rows(&files, neighbour, &new.rows) > 0, "the search finds who is there");
    }
    let kept =
        |key: &Secret| new.rows.iter().chain(new.index.iter().map(|(_, key)| key)).any(|now| now.0 == key.0);
    assert!(!kept(old.row(alice.number).unwrap()) && !kept(old.index(before.id).unwrap()));
    assert!(old.root.0.0 != new.root.0.0);
    let used = 12_500_u64.div_ceil(1 << keys::ROWS_LOG2) as usize;
    assert!(old.rows[used..].iter().all(|spare| !kept(spare)), "spare keys are made anew");
    assert!(old.rows[..used].iter().filter(|key| kept(key)).count() == used - 1, "the others stay");
    let files = places.map(bytes).concat();
    for gone in [alice.key.bytes(), &old.root.0.0, &old_row[0].0, &old.index(before.id).unwrap().0] {
        assert!(!has(&files, gone));
    }
    assert!(!has(&files, &pseudonym.0) && !has(&files, &entry.half));
}

/// A bucket that was halved before leaves its old pages under the old key: that goes with the next generation as well.
#[test]
fn a_split_leaves_no_key_behind() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 100);
    let half = Pseudonym::of("s42", LOG, &all_keys(&vault).pseudonym).half();
    let entry = Entry { half, number: 42 };
    let seen = bytes(world.path());
    fill(&vault, "t", 12_000);
    let old = all_keys(&vault);
    assert!(entries(&seen, entry, &old.index) > 0);
    let halved = old.index(0).expect("the keys of a generation stay until the next").clone();
    erase(&vault, &["s42"]).unwrap().unwrap();
    let new = all_keys(&vault);
    assert!(new.index(0).is_none() && new.index.iter().all(|(_, key)| key.0 != halved.0));
    assert_eq!(entries(&seen, entry, &new.index), 0);
}

/// Spare keys are not those of before a crash: what it left in a free page lies under none that will be used.
#[test]
fn opening_makes_spare_keys_anew() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    let old = all_keys(&vault);
    drop(vault);
    let vault = world.open();
    let new = all_keys(&vault);
    assert_eq!((old.generation, old.rows.len()), (new.generation, new.rows.len()));
    assert!(old.rows[0].0 == new.rows[0].0 && old.index(0).unwrap().0 == new.index(0).unwrap().0);
    assert!((1..old.rows.len()).all(|bucket| old.rows[bucket].0 != new.rows[bucket].0));
    assert!(new.index.iter().skip(1).all(|(id, _)| old.index(*id).is_none()));
}

/// A root is overwritten where it lies before its name goes.
#[test]
fn an_old_root_is_overwritten_in_place() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    let root = std::fs::read(world.file("roots/0.root")).unwrap();
    // Another name of the same bytes on the disk.
    std::fs::hard_link(world.file("roots/0.root"), world.file("witness")).unwrap();
    std::fs::hard_link(world.file("roots/0.keys"), world.file("other")).unwrap();
    let keys = std::fs::read(world.file("other")).unwrap();
    erase(&vault, &["s1"]).unwrap().unwrap();
    for (name, was) in [("witness", &root), ("other", &keys)] {
        let now = std::fs::read(world.file(name)).unwrap();
        assert_eq!(now.len(), was.len());
        assert!(!was.chunks(16).any(|part| part.len() == 16 && has(&now, part)));
    }
}

/// A root that was made for an erasure that failed is not merely written over by name.
#[test]
fn the_root_of_a_failed_attempt_is_overwritten_in_place() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    // In the way of the file of keys, which comes after the root.
    let obstacle = world.file("roots/1.keys.tmp");
    std::fs::create_dir(&obstacle).unwrap();
    let erasure = vault.begin_erasure(&["s1"]).unwrap().unwrap();
    assert_eq!(erasure.commit().err().unwrap().kind(), ErrorKind::Unavailable);
    std::fs::remove_dir(&obstacle).unwrap();
    let root = std::fs::read(world.file("roots/1.root")).unwrap();
    std::fs::hard_link(world.file("roots/1.root"), world.file("witness")).unwrap();
    vault.resume_erasure().unwrap().unwrap().commit().unwrap().destroy().unwrap();
    let now = std::fs::read(world.file("witness")).unwrap();
    assert!(!has(&now, &root[..32]) && std::fs::read(world.file("roots/1.root")).unwrap() != root);
}
