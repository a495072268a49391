//! Damage inside the database: found, named, and nobody gets somebody else's key.

use super::pseudonym::Pseudonym;
use super::*;
use bulla_crypto::subject::Secret;
use check::Damage;
use index::{Bucket, Entry};
use record::{Changes, Erasing, Meta};
use rows::{Row, RowCipher};
use tables::TableName;
use transaction_error::TransactionError;

/// Changes a value of the database behind the vault's back.
fn alter(vault: &Vault, change: impl Fn(&mut snapshot::Change<'_, '_>) -> Result<(), TransactionError>) {
    vault.shared.change(change).unwrap();
}

fn damage(vault: &Vault) -> Vec<Damage> {
    vault.check(&|_| ()).unwrap().damage
}

fn pseudonym(vault: &Vault, subject: &str) -> Pseudonym {
    Pseudonym::of(subject, LOG, &vault.shared.keys().pseudonym)
}

#[test]
fn every_byte_of_a_row_counts() {
    let (key, other) = (Secret([1; 32]), Secret([2; 32]));
    let cipher = RowCipher::new(&key, LOG).unwrap();
    let row = Row { key: Secret([3; 32]), pseudonym: Pseudonym([4; 16]) };
    let bytes = cipher.seal(9, &row).unwrap();
    let opened = cipher.open(9, &bytes).unwrap();
    assert!(opened.key.0 == [3; 32] && opened.pseudonym.0 == [4; 16]);
    for place in 0..bytes.len() {
        let mut altered = bytes;
        altered[place] ^= 1;
        assert!(cipher.open(9, &altered).is_none(), "byte {place}");
    }
    assert!(cipher.open(9, &bytes[1..]).is_none());
    assert!(cipher.open(10, &bytes).is_none(), "at another number");
    assert!(RowCipher::new(&other, LOG).unwrap().open(9, &bytes).is_none(), "under another key");
    assert!(RowCipher::new(&key, LogId([0; 16])).unwrap().open(9, &bytes).is_none(), "in another log");
}

#[test]
fn a_damaged_row_is_named_and_the_others_are_not_lost() {
    for cache in [0, 100] {
        let world = World::with(Settings { cache, map_size: 1 << 20, ..Settings::default() });
        let vault = world.open();
        fill(&vault, "s", 10);
        drop(vault);
        let vault = world.open();
        alter(&vault, |it| {
            let mut bytes = it.tables.rows.get(it.txn, &4_u64.to_be_bytes())?.unwrap().to_vec();
            bytes[5] ^= 1;
            it.txn.put(TableName::Rows, &4_u64.to_be_bytes(), &bytes)
        });
        for error in [vault.find("s4").err(), vault.key(4).err(), vault.resolve(&["s1", "s4"]).err()] {
            let error = error.unwrap();
            assert_eq!(error.kind(), ErrorKind::Tampered);
            assert!(error.to_string().contains("row 4 is damaged: restore"), "{error}");
        }
        assert_eq!(number(&vault, "s5"), 5);
        assert_eq!(damage(&vault), [Damage::Row(4)]);
        // Under a new key it would be lost for good, in a backup too.
        let erasure = vault.begin_erasure(&["s5"]).unwrap().unwrap();
        assert_eq!(erasure.commit().err().unwrap().kind(), ErrorKind::Tampered);
        assert_eq!(vault.generation().unwrap(), 0);
        vault.resume_erasure().unwrap().unwrap().withdraw().unwrap();
        assert_eq!(number(&vault, "s5"), 5);
    }
}

#[test]
fn an_index_that_leads_astray_is_found_out() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    drop(vault);
    let vault = world.open();
    let (two, three) = (pseudonym(&vault, "s2"), pseudonym(&vault, "s3"));
    alter(&vault, |it| {
        index::insert(it.tables, it.txn, &it.keys, Entry { pseudonym: two, number: 3 })?;
        index::insert(it.tables, it.txn, &it.keys, Entry { pseudonym: three, number: 77 }).map(drop)
    });
    for subject in ["s2", "s3"] {
        let error = vault.find(subject).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tampered);
        assert_eq!(vault.resolve(&[subject]).err().unwrap().kind(), ErrorKind::Tampered);
    }
    let mut found = damage(&vault);
    found.sort_by_key(|damage| format!("{damage:?}"));
    let expected =
        [Damage::Count(0), Damage::Misled(3), Damage::Misled(77), Damage::Unindexed(2), Damage::Unindexed(3)];
    assert_eq!(found, expected);
    let texts = found.iter().map(Damage::to_string).collect::<Vec<_>>();
    assert!(texts[1].contains("leads to row 3, which is not that person's"), "{texts:?}");
}

#[test]
fn an_entry_that_is_gone_or_foreign_is_found() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    let two = pseudonym(&vault, "s2");
    alter(&vault, |it| {
        let cipher = index::cipher(&it.keys, 0)?;
        it.txn.delete(TableName::Index, &cipher.key(two)?)?;
        it.txn.put(TableName::Index, &[0, 0, 9, 9, 1], &[])?;
        let mut foreign = [0; 20];
        foreign[5] = 1;
        it.txn.put(TableName::Index, &foreign, &[0; 8])
    });
    let found = damage(&vault);
    assert!(found.contains(&Damage::Unindexed(2)), "{found:?}");
    assert!(found.contains(&Damage::Entry(0x909)), "{found:?}");
    assert!(found.iter().any(|damage| matches!(damage, Damage::Misled(_))), "{found:?}");
    assert_eq!(found.len(), 3);
}

#[test]
fn a_row_beyond_the_last_number_is_found() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 10);
    alter(&vault, |it| {
        it.meta.next_number = 9;
        Ok(())
    });
    let found = damage(&vault);
    assert_eq!(found, [Damage::Beyond(9)]);
    let error = vault.resolve(&["new"]).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Tampered, "a number is not given twice");
    drop(vault);
    let (kind, message) = world.refusal();
    assert_eq!((kind, message.contains("beyond its last number")), (ErrorKind::Tampered, true));
}

#[test]
fn much_damage_does_not_take_much_memory() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 1500);
    alter(&vault, |it| {
        it.meta.next_number = 0;
        Ok(())
    });
    let checked = vault.check(&|_| ()).unwrap();
    assert_eq!((checked.rows, checked.damage.len(), checked.more), (1500, 1000, 500));
}

/// Every byte of every record in `meta` and `buckets`, and every length.
#[test]
fn every_byte_of_a_record_counts() {
    let world = World::with(Settings { cache: 0, map_size: 1 << 20, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 10);
    drop(vault.begin_erasure(&["s3"]).unwrap());
    let records: [(TableName, &[u8]); 4] = [
        (TableName::Meta, b"vault"),
        (TableName::Meta, b"erasing"),
        (TableName::Buckets, &[0, 0]),
        (TableName::Meta, b"changes"),
    ];
    for (part, key) in records {
        let sound = vault.shared.snapshot(|it| Ok(it.tables.named(part).get(it.txn, key)?.unwrap().to_vec()));
        let sound = sound.unwrap();
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
                let put = vault.shared.lmdb.write(|_, txn| txn.put(part, key, bytes));
                put.map_err(|error| error.into_error("test")).unwrap();
            };
            put(bytes);
            // Looking up needs no counter of changes.
            let find = (key != b"changes").then(|| vault.find("s1").err());
            let errors = find.into_iter().chain([vault.resolve(&["new"]).err()]).collect::<Vec<_>>();
            put(&sound);
            assert!(
                errors.into_iter().all(|error| error.unwrap().kind() == ErrorKind::Tampered),
                "{bytes:?}"
            );
        }
    }
    assert_eq!(vault.next_number().unwrap(), 10);
}

#[test]
fn records_are_read_back() {
    let world = World::new();
    let vault = world.open();
    let meta = Meta { log: LOG, generation: 0, next_number: 1 << 30, next_bucket: 77 };
    let erasing = Erasing { numbers: (0..4096).collect(), erased: true };
    let bucket = Bucket { start: 0x1234, id: 9, entries: 1 << 31 };
    let changes = Changes { count: 1 << 40, tag: *b"tagtagta" };
    let written = vault.shared.lmdb.write(|_, txn| {
        meta.write(txn)?;
        changes.write(txn)?;
        erasing.write(txn)?;
        bucket.write(txn)
    });
    written.map_err(|error| error.into_error("test")).unwrap();
    vault
        .shared
        .snapshot(|it| {
            assert_eq!((it.meta, it.erasing.clone()), (meta, Some(erasing.clone())));
            assert_eq!(Changes::read(it.tables, it.txn)?, changes);
            assert_eq!(Bucket::of(it.tables, it.txn, 0x1234)?, bucket);
            assert_eq!(Bucket::of(it.tables, it.txn, 0xffff)?, bucket);
            assert_eq!(Bucket::of(it.tables, it.txn, 0x1233)?.id, 0);
            Ok(())
        })
        .unwrap();
}

/// A file that was cut off would end the process where LMDB reads behind its end.
#[test]
fn a_database_that_was_cut_off_is_refused() {
    let world = World::new();
    fill(&world.open(), "s", 5000);
    let data = world.file("vault/data.mdb");
    let whole = std::fs::read(&data).unwrap();
    for length in [0, 1, 4096, 8192, 65_536, whole.len() - 4096, whole.len() - 1] {
        std::fs::write(&data, &whole[..length]).unwrap();
        let (kind, message) = world.refusal();
        assert_eq!(kind, ErrorKind::Tampered, "{length}: {message}");
        assert!(message.contains("restore it from a backup"), "{length}: {message}");
    }
    std::fs::write(&data, b"something that is no database at all, but long enough to be one".repeat(200))
        .unwrap();
    assert_eq!(world.refusal().0, ErrorKind::Tampered);
    std::fs::write(&data, &whole).unwrap();
    assert_sound(&world.open());
}
