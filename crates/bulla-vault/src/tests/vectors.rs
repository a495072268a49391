//! `vectors/vault/`: files and entries that a second implementation made.

use super::pseudonym::Pseudonym;
use super::*;
use bulla_crypto::subject::Secret;
use index::{Bucket, Entry, IndexCipher};
use keys::Keys;
use record::{Changes, Erasing, Meta, Skipped};
use rows::{Person, Row, RowCipher, first_of};
use serde_json::Value;
use table::Table;

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
    let person = |subject: &Value| {
        let pseudonym = Pseudonym::of(subject["subject"].as_str().unwrap(), keys.log, &keys.pseudonym);
        assert!(pseudonym.0 == bytes(&subject["pseudonym"]));
        Person { key: Secret(bytes(&subject["key"])), pseudonym }
    };
    for vector in vectors["rows"].as_array().unwrap() {
        let id = vector["id"].as_u64().unwrap();
        let mut row = Row::empty();
        for subject in vector["subjects"].as_array().unwrap() {
            row.set(subject["place"].as_u64().unwrap() as usize, Some(&person(subject)));
        }
        let cipher = RowCipher::new(keys.row(first_of(id)).unwrap(), keys.log).unwrap();
        assert_eq!(cipher.seal(id, &row).unwrap(), bytes(&vector["row"]), "{id}");
        assert!(cipher.open(id, &unhex(&vector["row"])).is_some());
    }
    for vector in vectors["index"].as_array().unwrap() {
        let id = vector["id"].as_u64().unwrap();
        let (bucket, place) = ((id >> 8) as u32, (id & 0xff) as u8);
        let cipher = IndexCipher::new(bucket, keys.index(bucket).unwrap(), keys.log).unwrap();
        let entry = |entry: &Value| Entry {
            half: bytes(&entry["half"]),
            number: entry["number"].as_u64().unwrap() as u32,
        };
        let entries = vector["entries"].as_array().unwrap().iter().map(entry).collect::<Vec<_>>();
        assert!(entries.iter().all(|entry| cipher.place(entry.half) == place));
        assert_eq!(cipher.seal(place, &entries).unwrap(), unhex(&vector["row"]), "{id}");
        assert_eq!(cipher.open(place, &unhex(&vector["row"])).unwrap(), entries);
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
    let keys = keys(&vectors);
    let Keys { log, generation, .. } = keys;
    let follows = TreeHead { size: 300, root: Hash(std::array::from_fn(|at| 0xff - at as u8)) };
    let meta = Meta {
        log,
        generation,
        next_number: 8201,
        indexed: record::Indexed(std::array::from_fn(|at| 4096 + 8 * at as u64)),
        follows,
        unfollowed: None,
        given_up: BTreeSet::new(),
        next_bucket: 10,
    };
    let passed_over = Meta { unfollowed: Some(299), ..meta.clone() };
    let given_up = Meta { given_up: parts(2), ..meta.clone() };
    let both = Meta { unfollowed: Some(299), ..given_up.clone() };
    let erasing = Erasing {
        numbers: vec![17, 1 << 40],
        erased: false,
        written: Hash(std::array::from_fn(|at| at as u8)),
    };
    let changes = Changes { count: 77, tag: [0, 1, 2, 3, 4, 5, 6, 7] };
    let records = [
        (1, "meta", meta.encode()),
        (1, "meta_unfollowed", passed_over.encode()),
        (1, "meta_given_up", given_up.encode()),
        (1, "meta_unfollowed_and_given_up", both.encode()),
        (2, "erasing", Erasing::encode(Some(&erasing))),
        (2, "not_erasing", Erasing::encode(None)),
        (4, "changes", changes.encode()),
        (5, "skipped", Skipped(vec![(9, 4096), (4097, 8200)]).encode()),
    ];
    for (id, name, content) in records {
        assert_eq!(keys.vouch(Table::Records, id, content), unhex(&vectors[name]), "{name}");
    }
    for vector in vectors["buckets"].as_array().unwrap() {
        let number = |name: &str| vector[name].as_u64().unwrap() as u32;
        let start = number("first") as u16;
        let bucket = Bucket { id: number("id"), start, end: number("end") };
        let row = keys.vouch(Table::Buckets, u64::from(start), bucket.encode());
        assert_eq!(row, unhex(&vector["row"]));
    }
}
