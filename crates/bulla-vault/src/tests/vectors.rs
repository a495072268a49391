//! `vectors/vault/`: files and entries that a second implementation made.

use super::pseudonym::Pseudonym;
use super::*;
use bulla_crypto::subject::Secret;
use index::{Bucket, Entry, IndexCipher};
use keys::Keys;
use record::{Changes, Erasing, Meta};
use rows::{Row, RowCipher};
use serde_json::Value;
use transaction_error::TransactionError;

fn unhex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    unhex(value).try_into().unwrap()
}

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/vault/vault.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn keys(vectors: &Value) -> Keys {
    let (log, generation) = (LogId(bytes(&vectors["log_id"])), vectors["generation"].as_u64().unwrap());
    let file = vectors["root_file"].as_str().unwrap();
    let root = RootFile.unwrap(file.as_bytes(), log, generation).unwrap();
    assert!(root.0.0 == bytes(&vectors["root"]));
    assert_eq!(*RootFile.wrap(&root, log, generation).unwrap(), file.as_bytes());
    Keys::open(&unhex(&vectors["keys_file"]), log, generation, &root).unwrap()
}

#[test]
fn the_file_of_keys_is_the_other_implementation_s() {
    let vectors = vectors();
    let keys = keys(&vectors);
    assert_eq!((keys.rows.len(), keys.index.len()), (3, 2));
    // Sealed with the same random bytes it is the same file.
    struct Same(Vec<u8>);
    impl Random for Same {
        fn fill(&self, bytes: &mut [u8]) -> Result<()> {
            bytes.copy_from_slice(&self.0);
            Ok(())
        }
    }
    let file = unhex(&vectors["keys_file"]);
    assert!(keys.seal(&Same(file[40..72].to_vec())).unwrap() == file);
}

#[test]
fn rows_and_entries_are_the_other_implementation_s() {
    let vectors = vectors();
    let keys = keys(&vectors);
    for subject in vectors["subjects"].as_array().unwrap() {
        let (number, key) = (subject["number"].as_u64().unwrap(), bytes(&subject["key"]));
        let pseudonym = Pseudonym::of(subject["subject"].as_str().unwrap(), keys.log, &keys.pseudonym);
        assert!(pseudonym.0 == bytes(&subject["pseudonym"]));
        let cipher = RowCipher::new(keys.row(number).unwrap(), keys.log).unwrap();
        let row = Row { key: Secret(key), pseudonym };
        assert_eq!(cipher.seal(number, &row).unwrap(), bytes(&subject["row"]), "{number}");
        let id = u32::from_be_bytes(unhex(&subject["index_key"])[..4].try_into().unwrap());
        let cipher = IndexCipher::new(id, keys.index(id).unwrap()).unwrap();
        let (key, value) = cipher.seal(Entry { pseudonym, number }).unwrap();
        assert_eq!((key, value), (bytes(&subject["index_key"]), bytes(&subject["index_value"])));
        let entry = cipher.open(&key, &value).ok().unwrap();
        assert!(entry.number == number && entry.pseudonym == pseudonym);
    }
}

#[test]
fn the_key_of_fields_pseudonyms_is_the_other_implementation_s() {
    let vectors = vectors();
    assert_eq!(*keys(&vectors).field_pseudonyms(), bytes(&vectors["field_pseudonym_key"]));
}

#[test]
fn records_are_the_other_implementation_s() {
    let vectors = vectors();
    let world = World::new();
    let vault = world.open();
    let meta = Meta {
        log: LogId(bytes(&vectors["log_id"])),
        generation: vectors["generation"].as_u64().unwrap(),
        next_number: 8201,
        next_bucket: 10,
    };
    let written = vault.shared.lmdb.write(|tables, txn| {
        meta.write(txn)?;
        Erasing { numbers: vec![17, 1 << 40], erased: false }.write(txn)?;
        Changes { count: 77, tag: [0, 1, 2, 3, 4, 5, 6, 7] }.write(txn)?;
        assert_eq!(tables.meta.get(txn, b"changes")?, Some(&unhex(&vectors["changes"])[..]));
        assert_eq!(tables.meta.get(txn, b"vault")?, Some(&unhex(&vectors["meta"])[..]));
        assert_eq!(tables.meta.get(txn, b"erasing")?, Some(&unhex(&vectors["erasing"])[..]));
        for bucket in vectors["buckets"].as_array().unwrap() {
            let start = bucket["first"].as_u64().unwrap() as u16;
            Bucket { start, id: bucket["id"].as_u64().unwrap() as u32, entries: 2 }.write(txn)?;
            let value = tables.buckets.get(txn, &start.to_be_bytes())?;
            assert_eq!(value, Some(&unhex(&bucket["value"])[..]));
        }
        Err::<(), _>(TransactionError::Failed(Error::invalid("enough")))
    });
    assert_eq!(written.err().unwrap().into_error("test").to_string(), "enough");
}
