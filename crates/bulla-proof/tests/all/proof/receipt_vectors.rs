//! Tree heads in COSE, receipts and anchors, as `vectors/proof/receipts.py` makes them.

use crate::vectors::{bytes, items, number, read, text, unhex};
use bulla_proof::proof::Anchor;
use bulla_proof::{CoseCheckpoint, ProofFile, VerifierKey};
use serde_json::Value;

fn key(vectors: &Value, name: &str) -> VerifierKey {
    text(vectors, name).parse().unwrap()
}

#[test]
fn tree_heads_are_what_the_vectors_say() {
    let vectors = read("receipts.json");
    let key = key(&vectors, "vkey");
    for vector in items(&vectors["heads"]) {
        let (name, file) = (text(vector, "name"), bytes(vector, "file"));
        let head = CoseCheckpoint::parse(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        head.verify(&key).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(head.render(), file, "{name}");
        assert_eq!(head.size().to_string(), text(vector, "size"), "{name}");
        assert_eq!(head.root().as_bytes()[..], bytes(vector, "root"), "{name}");
    }
    for vector in items(&vectors["heads_refused"]) {
        let holds = CoseCheckpoint::parse(&bytes(vector, "file")).and_then(|head| head.verify(&key));
        assert!(holds.is_err(), "{}", text(vector, "name"));
    }
}

#[test]
fn receipts_disclose_what_the_vectors_say() {
    let vectors = read("receipts.json");
    let key = key(&vectors, "vkey");
    for vector in items(&vectors["receipts"]) {
        let (name, file) = (text(vector, "name"), bytes(vector, "file"));
        let Ok(ProofFile::Receipt(receipt)) = ProofFile::parse(&file) else { panic!("{name}") };
        assert_eq!(receipt.render(), file, "{name}");
        for key in [None, Some(&key)] {
            let checked = receipt.verify(key).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((checked.anchored(), checked.origin()), (key.is_some(), "example.com/log"));
            assert_eq!(checked.tree_size(), number(vector, "tree_size"));
            assert_eq!(checked.root().to_string(), text(vector, "root"));
            assert_eq!(checked.frames() as u64, number(vector, "frames"));
            let entries = checked
                .entries()
                .map(|(number, entry)| (number, super::world::encode(&entry)))
                .collect::<Vec<_>>();
            let expected = items(&vector["entries"]).iter();
            let expected =
                expected.map(|entry| (entry[0].as_u64().unwrap(), unhex(entry[1].as_str().unwrap())));
            assert_eq!(entries, expected.collect::<Vec<_>>(), "{name}");
        }
    }
    for vector in items(&vectors["refused"]) {
        let (name, file, expected) = (text(vector, "name"), bytes(vector, "file"), text(vector, "error"));
        let verdict = |key| match ProofFile::parse(&file)? {
            ProofFile::Receipt(receipt) => receipt.verify(key).map(|_| ()),
            _ => panic!("{name} is another file"),
        };
        let error = verdict(Some(&key)).expect_err(name);
        assert!(format!("{error:?}").starts_with(expected), "{name}: {error:?}, and not {expected}");
        // Without the key, all of it that is not about the key, or a root that is signed, is refused the same.
        let about_key = ["BadSignature", "OtherKey", "(Origin)"];
        if !about_key.iter().any(|about| expected.contains(about)) {
            assert_eq!(verdict(None), Err(error), "{name}");
        }
    }
}

#[test]
fn anchors_hold_as_the_vectors_say() {
    let vectors = read("receipts.json");
    let (log, rekor) = (key(&vectors, "vkey"), key(&vectors, "rekor_vkey"));
    for vector in items(&vectors["anchors"]) {
        let (name, file) = (text(vector, "name"), text(vector, "file"));
        let anchor = Anchor::parse(file.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(anchor.render(), file, "{name}");
        let held = anchor.verify(&log, &rekor).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            (held.checkpoint.size, held.index),
            (number(vector, "tree_size"), number(vector, "index")),
            "{name}"
        );
        assert_eq!(held.checkpoint.root.to_string(), text(vector, "root"), "{name}");
        assert_eq!(held.rekor.size, number(vector, "rekor_size"), "{name}");
    }
    for vector in items(&vectors["anchors_refused"]) {
        let (name, file, expected) = (text(vector, "name"), text(vector, "file"), text(vector, "error"));
        let holds = Anchor::parse(file.as_bytes()).and_then(|it| it.verify(&log, &rekor).map(|_| ()));
        let error = holds.expect_err(name);
        assert!(format!("{error:?}").starts_with(expected), "{name}: {error:?}, and not {expected}");
    }
}
