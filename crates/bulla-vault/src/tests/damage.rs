//! Damage inside the database: found, named, and nobody gets somebody else's key.

use super::pseudonym::Pseudonym;
use super::*;
use bulla_crypto::subject::Secret;
use bulla_proof::hash::Hash;
use index::{Bucket, Entry, IndexRows};
use record::{Changes, Erasing, Meta, Skipped};
use rows::{Person, ROW, Row, RowCipher};
use table::Table;
use transaction_error::TransactionError;

/// Changes a row of the database behind the vault's back.
fn alter(vault: &Vault, change: impl Fn(&mut snapshot::Change<'_, '_>) -> Result<(), TransactionError>) {
    vault.shared.change(change).unwrap();
}

fn damage(vault: &Vault) -> Vec<Damage> {
    vault.check(&|_| true, &|_| ()).unwrap().damage
}

fn half(vault: &Vault, subject: &str) -> index::Half {
    Pseudonym::of(subject, LOG, &vault.shared.keys().pseudonym).half()
}

/// An error that names the file and says what to do.
fn assert_names_the_file(world: &World, error: &Error, what: &str) {
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{text}");
    let file = std::fs::canonicalize(world.file("vault/vault.db")).unwrap();
    assert!(text.starts_with(&format!("{} is damaged (", file.display())), "{text}");
    assert!(text.contains(what) && text.contains("restore `vault` and `roots`"), "{text}");
}

#[test]
fn every_byte_of_a_row_counts() {
    let (key, other) = (Secret([1; 32]), Secret([2; 32]));
    let cipher = RowCipher::new(&key, LOG).unwrap();
    let mut row = Row::empty();
    row.set(3, Some(&Person { key: Secret([3; 32]), pseudonym: Pseudonym([4; 16]) }));
    let bytes = cipher.seal(9, &row).unwrap();
    let opened = cipher.open(9, &bytes).unwrap();
    let person = opened.person(3).unwrap();
    assert!(person.key.0 == [3; 32] && person.pseudonym.0 == [4; 16]);
    assert_eq!(opened.people().count(), 1);
    assert!((0..64).all(|place| place == 3 || opened.person(place).is_none()));
    for place in 0..bytes.len() {
        let mut altered = bytes;
        altered[place] ^= 1;
        assert!(cipher.open(9, &altered).is_none(), "byte {place}");
    }
    assert!(cipher.open(9, &bytes[1..]).is_none());
    assert!(cipher.open(10, &bytes).is_none(), "at another place");
    assert!(RowCipher::new(&other, LOG).unwrap().open(9, &bytes).is_none(), "under another key");
    assert!(RowCipher::new(&key, LogId([0; 16])).unwrap().open(9, &bytes).is_none(), "in another log");
    row.set(3, None);
    assert!(cipher.open(9, &cipher.seal(9, &row).unwrap()).unwrap().people().next().is_none());
}

#[test]
fn every_byte_of_a_row_of_the_index_counts() {
    let cipher = |id, log| index::IndexCipher::new(id, &Secret([1; 32]), log).unwrap();
    let entries = [Entry { half: [1; 8], number: 7 }, Entry { half: [1; 8], number: 8 }];
    let bytes = cipher(5, LOG).seal(9, &entries).unwrap();
    assert_eq!(cipher(5, LOG).open(9, &bytes).unwrap(), entries);
    for place in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[place] ^= 1;
        assert!(cipher(5, LOG).open(9, &altered).is_none(), "byte {place}");
        assert!(cipher(5, LOG).open(9, &bytes[..place]).is_none(), "{place} bytes");
    }
    assert!(cipher(5, LOG).open(10, &bytes).is_none(), "in another row");
    assert!(cipher(6, LOG).open(9, &bytes).is_none(), "in another bucket");
    assert!(cipher(5, LogId([0; 16])).open(9, &bytes).is_none(), "in another log");
    let backwards = [entries[1], entries[0]];
    assert!(cipher(5, LOG).open(9, &cipher(5, LOG).seal(9, &backwards).unwrap()).is_none(), "out of order");
}

#[test]
fn a_damaged_row_is_named_and_the_others_are_not_lost() {
    for cache in [0, 100] {
        let world = World::with(Settings { cache, ..Settings::default() });
        let vault = world.open();
        fill(&vault, "s", 40);
        drop(vault);
        let vault = world.open();
        alter(&vault, |it| {
            let mut bytes = it.txn.get(Table::Rows, 1)?.unwrap();
            bytes[5] ^= 1;
            it.txn.put(Table::Rows, 1, &bytes)
        });
        for error in [vault.find("s20").err(), vault.key(20).err(), vault.resolve(&["s1", "s20"]).err()] {
            assert_names_the_file(&world, &error.unwrap(), "row 1, numbers 16 to 31, does not open");
        }
        assert_eq!(number(&vault, "s5"), 5);
        assert_eq!(number(&vault, "s32"), 32);
        assert_eq!(damage(&vault), [Damage::Row(1)]);
        // Under a new key it would be lost for good, in a backup too.
        let erasure = vault.begin_erasure(&["s5"]).unwrap().unwrap();
        assert_names_the_file(&world, &erasure.commit().err().unwrap(), "row 1");
        assert_eq!(vault.generation().unwrap(), 0);
        vault.resume_erasure().unwrap().unwrap().withdraw().unwrap();
        assert_eq!(number(&vault, "s5"), 5);
    }
}

/// Whatever is taken away is missed: nobody becomes somebody new, or is taken for erased, because a row is gone.
#[test]
fn a_row_that_is_taken_away_is_missed() {
    for table in [Table::Rows, Table::Index, Table::Buckets, Table::Records] {
        let world = World::with(Settings { cache: 0, ..Settings::default() });
        let vault = world.open();
        fill(&vault, "s", 40);
        let taken = vault.shared.database.write(|txn| txn.delete_range(table, 0..=transaction::MAX_ID));
        taken.map_err(|error| vault.shared.database.explain(error)).unwrap();
        let errors = [vault.find("s20").err(), vault.resolve(&["s20"]).err(), vault.resolve(&["new"]).err()];
        let key = (table == Table::Rows).then(|| vault.key(20).err());
        for error in errors.into_iter().chain(key) {
            let Some(error) = error else { panic!("{table:?}: nothing is missed") };
            if table != Table::Records {
                assert_names_the_file(&world, &error, "missing");
            }
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        }
        match vault.check(&|_| true, &|_| ()) {
            Ok(checked) if table == Table::Rows => {
                assert_eq!(checked.damage[..3], [0, 1, 2].map(Damage::Missing));
            }
            Ok(checked) => assert_eq!(checked.damage, [Damage::Bucket(0); 256]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        }
    }
}

/// Rows in each other's places, and older ones in the place of what they became.
#[test]
fn rows_that_are_exchanged_are_noticed() {
    for table in [Table::Rows, Table::Index, Table::Buckets] {
        let world = World::with(Settings { cache: 0, ..Settings::default() });
        let vault = world.open();
        fill(&vault, "s", if table == Table::Buckets { 20_000 } else { 40 });
        alter(&vault, |it| {
            let mut rows = Vec::new();
            it.txn.all(table, |id, row| {
                rows.push((id, row.to_vec()));
                Ok(())
            })?;
            let next = rows.iter().cycle().skip(1).map(|(_, row)| row);
            rows.iter().zip(next).try_for_each(|((id, _), row)| it.txn.put(table, *id, row))
        });
        for index in 0..40 {
            assert_eq!(vault.find(&format!("s{index}")).err().unwrap().kind(), ErrorKind::Unavailable);
        }
    }
}

#[test]
fn an_index_that_leads_astray_is_found_out() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    drop(vault);
    let vault = world.open();
    let (two, three) = (half(&vault, "s2"), half(&vault, "s3"));
    alter(&vault, |it| {
        let bucket = Bucket::of(it.txn, &it.keys, 0)?;
        let cipher = index::cipher(&it.keys, bucket.id)?;
        for (half, number) in [(two, 3), (three, 77)] {
            let place = cipher.place(half);
            let mut entries = cipher.read(it.txn, place)?;
            entries.iter_mut().filter(|entry| entry.half == half).for_each(|entry| entry.number = number);
            it.txn.put(Table::Index, u64::from(place), &cipher.seal(place, &entries)?)?;
        }
        Ok(())
    });
    for subject in ["s2", "s3"] {
        assert_names_the_file(&world, &vault.find(subject).err().unwrap(), "is not that person's");
        assert_eq!(vault.resolve(&[subject]).err().unwrap().kind(), ErrorKind::Unavailable);
    }
    let mut found = damage(&vault);
    found.sort_by_key(|damage| format!("{damage:?}"));
    let expected = [Damage::Misled(3), Damage::Misled(77), Damage::Unindexed(2), Damage::Unindexed(3)];
    assert_eq!(found, expected);
    let texts = found.iter().map(Damage::to_string).collect::<Vec<_>>();
    assert!(texts[0].contains("leads to number 3, which is not that person's"), "{texts:?}");
}

/// Two people whose pseudonyms begin alike: each gets what is theirs.
#[test]
fn people_whose_entries_begin_alike_are_told_apart() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    let (five, six) = (half(&vault, "s5"), half(&vault, "s6"));
    // Number 6 is made somebody whose pseudonym begins as that of number 5.
    let pseudonym = |vault: &Vault, subject| Pseudonym::of(subject, LOG, &vault.shared.keys().pseudonym);
    let mut alike = pseudonym(&vault, "s5");
    alike.0[15] ^= 1;
    alter(&vault, |it| {
        let cipher = rows::cipher(&it.keys, 0)?;
        let mut row = cipher.open(0, &it.txn.get(Table::Rows, 0)?.unwrap()).unwrap();
        let key = row.person(6).unwrap().key;
        row.set(6, Some(&Person { key, pseudonym: alike }));
        it.txn.put(Table::Rows, 0, &cipher.seal(0, &row)?)?;
        let cipher = index::cipher(&it.keys, 0)?;
        let place = cipher.place(six);
        let mut entries = cipher.read(it.txn, place)?;
        entries.retain(|entry| entry.half != six);
        it.txn.put(Table::Index, u64::from(place), &cipher.seal(place, &entries)?)?;
        let mut index = IndexRows::default();
        index.insert(it.txn, &it.keys, Entry { half: five, number: 6 })?;
        index.write(it.txn).map(drop)
    });
    assert_sound(&vault);
    assert_eq!(number(&vault, "s5"), 5);
    let found = vault.shared.snapshot(|it| index::find(it.txn, it.keys, alike)).unwrap();
    assert_eq!(found, [5, 6]);
    vault.confirm(erase(&vault, &["s5"]).unwrap().unwrap().numbers()).unwrap();
    assert!(vault.find("s5").unwrap().is_none() && vault.key(6).unwrap().is_some());
    assert_sound(&vault);
    assert_eq!(number(&vault, "s5"), 10);
}

#[test]
fn an_entry_that_is_gone_or_foreign_is_found() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    let two = half(&vault, "s2");
    let foreign = 0x909 << 8;
    alter(&vault, |it| {
        let cipher = index::cipher(&it.keys, 0)?;
        let place = cipher.place(two);
        let mut entries = cipher.read(it.txn, place)?;
        entries.retain(|entry| entry.half != two);
        it.txn.put(Table::Index, u64::from(place), &cipher.seal(place, &entries)?)?;
        it.txn.put(Table::Index, foreign, &[])
    });
    alter(&vault, |it| {
        let cipher = index::cipher(&it.keys, 0)?;
        let place = cipher.place(two).wrapping_add(1);
        let mut entries = cipher.read(it.txn, place)?;
        entries.push(Entry { half: two, number: 77 });
        entries.sort_unstable();
        it.txn.put(Table::Index, u64::from(place), &cipher.seal(place, &entries)?)
    });
    let found = damage(&vault);
    assert_eq!(
        found,
        [Damage::Unindexed(2), Damage::Entry(0), Damage::Misled(77), Damage::Foreign(foreign)],
        "{found:?}"
    );
}

#[test]
fn a_number_beyond_the_last_is_found() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    alter(&vault, |it| {
        (it.meta.next_number, it.meta.indexed) = (9, record::Indexed::up_to(9));
        Ok(())
    });
    let found = damage(&vault);
    assert_eq!(found, [Damage::Beyond(9), Damage::Misled(9)]);
    let error = vault.resolve(&["new"]).err().unwrap();
    assert_names_the_file(&world, &error, "number 9 already");
    drop(vault);
    let (kind, message) = world.refusal();
    assert_eq!((kind, message.contains("beyond the last number")), (ErrorKind::Unavailable, true));
}

#[test]
fn much_damage_does_not_take_much_memory() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 1500);
    alter(&vault, |it| {
        (it.meta.next_number, it.meta.indexed) = (0, record::Indexed::up_to(0));
        Ok(())
    });
    let checked = vault.check(&|_| true, &|_| ()).unwrap();
    assert_eq!((checked.people, checked.damage.len(), checked.more), (1500, 1000, 2000));
}

/// Every byte of every record and of a bucket's row, and every length.
#[test]
fn every_byte_of_a_record_counts() {
    let world = World::with(Settings { cache: 0, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 10);
    vault.skip_to(1000).unwrap();
    drop(vault.begin_erasure(&["s3"]).unwrap());
    let records = [(1, "Vault"), (2, "Erasing"), (4, "Changes"), (5, "Skipped")];
    let records = records.map(|(id, name)| (Table::Records, id, name));
    for (table, id, name) in records.into_iter().chain([(Table::Buckets, 0, "bucket")]) {
        let sound = vault.shared.snapshot(|it| Ok(it.txn.get(table, id)?.unwrap())).unwrap();
        let mut altered = Vec::new();
        for place in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[place] ^= 0x10;
            altered.push(bytes);
            altered.push(sound[..place].to_vec());
        }
        altered.push([&sound[..], &[0]].concat());
        for bytes in &altered {
            let put = |bytes: &[u8]| {
                let put = vault.shared.database.write(|txn| txn.put(table, id, bytes));
                put.map_err(|error| error.into_error("test")).unwrap();
            };
            put(bytes);
            let error = match name {
                // Looking up needs no counter of changes.
                "Changes" => vault.resolve(&["new"]).err(),
                // Row 30 is not there, and has to have been skipped.
                "Skipped" => vault.key(500).err(),
                _ => vault.find("s1").err().and(vault.resolve(&["new"]).err()),
            };
            put(&sound);
            let Some(error) = error else { panic!("{name}: {bytes:?}") };
            assert_names_the_file(&world, &error, if name == "bucket" { "index bucket" } else { name });
        }
    }
    assert_eq!(vault.next_number().unwrap(), 1000);
}

/// The same keys vouch for it, and yet nobody can be erased whom the vault never gave a number.
#[test]
fn an_erasure_of_a_number_that_nobody_was_given_is_damage() {
    let world = World::with(Settings { cache: 0, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 10);
    for (last, is_sound) in [(9, true), (10, false), (u64::MAX, false)] {
        for erased in [false, true] {
            let erasing = Erasing { numbers: vec![3, last], erased, written: Hash([7; 32]) };
            let keys = vault.shared.keys();
            let written = vault.shared.database.write(|txn| erasing.write(txn, &keys));
            written.map_err(|error| error.into_error("test")).unwrap();
            match vault.find("s1") {
                Ok(_) => assert!(is_sound, "{last}"),
                Err(error) => {
                    assert!(!is_sound, "{last}: {error}");
                    assert_names_the_file(&world, &error, "Erasing");
                }
            }
        }
    }
}

/// Also one that nothing asks for: a vault without replicas and without numbers that were left out.
#[test]
fn a_record_that_is_taken_away_is_named_by_whoever_opens_the_vault() {
    let records = [(2, "Erasing"), (4, "Changes"), (5, "Skipped")];
    for (id, name) in records {
        let world = World::new();
        let vault = world.open();
        fill(&vault, "s", 10);
        let removed = vault.shared.database.write(|txn| txn.delete_range(Table::Records, id..=id));
        removed.map_err(|error| error.into_error("test")).unwrap();
        drop(vault);
        for access in [Access::Read, Access::Write] {
            let error = Vault::open(world.path(), LOG, access, &world.settings).err();
            assert_names_the_file(&world, &error.unwrap(), &format!("record {name}"));
        }
    }
}

#[test]
fn records_are_read_back() {
    let world = World::new();
    let vault = world.open();
    let keys = vault.shared.keys();
    let meta = Meta {
        log: LOG,
        generation: 0,
        next_number: 1 << 30,
        indexed: record::Indexed(std::array::from_fn(|at| (1 << 29) + at as u64)),
        follows: head(1 << 50),
        unfollowed: Some(1 << 49),
        given_up: parts(64),
        next_bucket: 77,
    };
    let erasing = Erasing { numbers: (0..4096).collect(), erased: true, written: Hash([7; 32]) };
    let bucket = Bucket { id: 9, start: 0x1234, end: index::END };
    let changes = Changes { count: 1 << 40, tag: *b"tagtagta" };
    let most = record::MAX_SKIPPED as u64;
    let skipped = Skipped((0..most).map(|range| (3 * range, 3 * range + 2)).collect());
    let written = vault.shared.database.write(|txn| {
        meta.write(txn, &keys)?;
        changes.write(txn, &keys)?;
        erasing.write(txn, &keys)?;
        skipped.write(txn, &keys)?;
        Bucket { id: 0, start: 0, end: 0x1234 }.write(txn, &keys)?;
        bucket.write(txn, &keys)
    });
    written.map_err(|error| error.into_error("test")).unwrap();
    vault
        .shared
        .snapshot(|it| {
            assert_eq!((&it.meta, it.erasing.clone()), (&meta, Some(erasing.clone())));
            assert_eq!(Changes::read(it.txn, it.keys)?, changes);
            assert_eq!(Skipped::read(it.txn, it.keys)?, skipped);
            assert_eq!(Bucket::of(it.txn, it.keys, 0x1234)?, bucket);
            assert_eq!(Bucket::of(it.txn, it.keys, 0xffff)?, bucket);
            assert_eq!(Bucket::of(it.txn, it.keys, 0x1233)?.id, 0);
            Ok(())
        })
        .unwrap();
    let mut full = skipped.clone();
    full.add(300_000, 400_000).unwrap_err();
    let (mut full, last) = (skipped.clone(), 3 * (most - 1));
    full.add(last + 2, 300_000).unwrap();
    assert!(full.covers(last, 300_000) && !full.covers(last - 1, 300_000));
    skipped.clone().insert(&Skipped(vec![(300_000, 300_001)])).unwrap_err();
    skipped.clone().insert(&Skipped(vec![(2, 3), (300_000, 300_001)])).unwrap();
    Skipped(vec![(1, 9 * most)]).insert(&skipped).unwrap();
    assert!(Skipped(vec![(3, 5), (5, 9)]).covers(4, 8) && !Skipped(vec![(3, 5), (6, 9)]).covers(4, 8));
}

#[test]
fn records_of_more_than_there_can_be_are_refused() {
    let erasing = |numbers: Vec<u64>| Erasing { numbers, erased: false, written: Hash([7; 32]) };
    let is_read = |numbers| Erasing::decode(&Erasing::encode(Some(&erasing(numbers)))).is_some();
    assert!(is_read((0..4096).collect()) && is_read(vec![7, 9]));
    assert!(
        !is_read((0..4097).collect()) && !is_read(vec![9, 7]) && !is_read(vec![7, 7]) && !is_read(vec![])
    );
    let meta = Meta {
        log: LOG,
        generation: 0,
        next_number: 3,
        indexed: record::Indexed::up_to(3),
        follows: head(7),
        unfollowed: None,
        given_up: BTreeSet::new(),
        next_bucket: 1,
    };
    let is_read = |unfollowed| Meta::decode(&Meta { unfollowed, ..meta.clone() }.encode()).is_some();
    assert!(is_read(None) && is_read(Some(6)) && is_read(Some(u64::MAX)));
    assert!(!is_read(Some(7)) && !is_read(Some(u64::MAX - 1)));
    for at in 0..16 {
        let mut beyond = meta.clone();
        beyond.indexed.0[at] = 4;
        assert!(Meta::decode(&beyond.encode()).is_none());
    }
    for unfollowed in [None, Some(6)] {
        let with = |given_up| Meta { unfollowed, given_up, ..meta.clone() };
        for count in [0, 1, 64] {
            assert_eq!(Meta::decode(&with(parts(count)).encode()), Some(with(parts(count))));
        }
        assert_eq!(Meta::decode(&with(parts(65)).encode()), None);
        // The ids ascend, each once.
        let bytes = with(parts(2)).encode();
        let (content, _) = bytes.split_last_chunk::<4>().unwrap();
        let (content, last) = content.split_last_chunk::<16>().unwrap();
        for last in [[0; 16], [9; 16], *last] {
            let bytes = record::with_check([content, &last].concat());
            assert_eq!(Meta::decode(&bytes).is_some(), last != [0; 16], "{last:?}");
        }
    }
    let ranges = |count| Skipped((0..count).map(|range| (3 * range, 3 * range + 2)).collect());
    let is_read = |count| Skipped::decode(&ranges(count).encode()).is_some();
    assert!(is_read(1 << 16) && !is_read((1 << 16) + 1));
}

#[test]
fn a_database_that_was_cut_off_is_refused() {
    let world = World::new();
    fill(&world.open(), "s", 5000);
    let data = world.file("vault/vault.db");
    let whole = std::fs::read(&data).unwrap();
    assert_eq!(whole.len() % 4096, 0);
    for length in [0, 1, 99, 4096, 8192, 65_536, whole.len() - 4096, whole.len() - 1] {
        std::fs::write(&data, &whole[..length]).unwrap();
        let (kind, message) = world.refusal();
        assert_eq!(kind, ErrorKind::Unavailable, "{length}: {message}");
        assert!(message.contains("is damaged (") && message.contains("vault.db"), "{length}: {message}");
    }
    std::fs::write(&data, b"something that is no database at all, but long enough to be one".repeat(200))
        .unwrap();
    assert!(world.refusal().1.contains("vault.db is damaged ("));
    std::fs::write(&data, &whole).unwrap();
    assert_sound(&world.open());
}

/// The medium has damaged the log of changes, of which the end is cut when it is opened again: nobody goes on from there.
#[test]
fn a_log_of_changes_that_is_damaged_is_not_taken_for_a_shorter_one() {
    for reading in [false, true] {
        let world = World::with(Settings { cache: 0, ..Settings::default() });
        let vault = world.open();
        (0..5).for_each(|index| drop(vault.resolve(&[&format!("s{index}")]).unwrap()));
        vault.shared.database.fail();
        let log = world.file("vault/vault.db-wal");
        let mut bytes = std::fs::read(&log).unwrap();
        let place = bytes.len() - 100;
        bytes[place] ^= 1;
        std::fs::write(&log, bytes).unwrap();
        for _ in 0..3 {
            let error = match reading {
                true => vault.find("s1").err(),
                false => vault.resolve(&["new"]).err(),
            };
            let text = error.expect("it went back").to_string();
            assert!(text.contains("went back to an earlier state"), "{text}");
        }
    }
}

/// The sizes of the parts are what `docs/format.md` says.
#[test]
fn a_row_has_sixteen_people_and_five_rows_a_page() {
    assert_eq!(ROW, 2 + 16 * 48 + 16);
    const { assert!(5 * (ROW + 4 + 2 + 4 + 2) <= 4096 - 8) };
}
