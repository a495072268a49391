use crate::vectors::{items, number, read, text, unhex};
use bulla_proof::order::{Order, ordered_subject};
use bulla_proof::{EventProof, Proof, ProofError, ProofFile, VerifierKey};

fn verdict(file: &[u8], key: Option<&VerifierKey>) -> Result<(), ProofError> {
    match ProofFile::parse(file)? {
        ProofFile::Entries(proof) => proof.verify(key).map(|_| ()),
        ProofFile::Consistency(proof) => proof.verify(key).map(|_| ()),
        ProofFile::Event(proof) => proof.verify(key).map(|_| ()),
        ProofFile::Receipt(receipt) => receipt.verify(key).map(|_| ()),
    }
}

#[test]
fn proofs_disclose_what_the_vectors_say() {
    let vectors = read("proofs.json");
    let key: VerifierKey = text(&vectors, "vkey").parse().unwrap();
    for vector in items(&vectors["proofs"]) {
        let (name, file) = (text(vector, "name"), text(vector, "file"));
        let proof = Proof::parse(file.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(proof.render(), file, "{name}");
        assert_eq!(ProofFile::parse(file.as_bytes()), Ok(ProofFile::Entries(proof.clone())), "{name}");
        for key in [None, Some(&key)] {
            let checked = proof.verify(key).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(checked.anchored(), key.is_some());
            assert_eq!(checked.origin(), "example.com/log");
            assert_eq!(checked.tree_size(), number(vector, "tree_size"));
            assert_eq!(checked.root().to_string(), text(vector, "root"));
            assert_eq!(checked.frames() as u64, number(vector, "frames"));
            assert_eq!(checked.commitments().count(), checked.frames());
            let expected = items(&vector["entries"]);
            assert_eq!(checked.units(), expected.len(), "{name}");
            let entries: Vec<(u64, Vec<u8>)> =
                checked.entries().map(|(number, entry)| (number, super::world::encode(&entry))).collect();
            let expected: Vec<(u64, Vec<u8>)> = expected
                .iter()
                .map(|entry| (entry[0].as_u64().unwrap(), unhex(entry[1].as_str().unwrap())))
                .collect();
            assert_eq!(entries, expected, "{name}");
        }
    }
}

#[test]
fn consistency_files_hold_as_the_vectors_say() {
    let vectors = read("proofs.json");
    let key: VerifierKey = text(&vectors, "vkey").parse().unwrap();
    for vector in items(&vectors["consistency"]) {
        let file = text(vector, "file");
        let ProofFile::Consistency(proof) = ProofFile::parse(file.as_bytes()).unwrap() else {
            panic!("{file}");
        };
        assert_eq!(proof.render(), file);
        let held = proof.verify(Some(&key)).unwrap();
        assert!(held.anchored && !proof.verify(None).unwrap().anchored);
        assert_eq!((held.old.size, held.new.size), (number(vector, "old_size"), number(vector, "new_size")));
    }
}

#[test]
fn the_refused_vectors_are_refused() {
    let vectors = read("proofs.json");
    let key: VerifierKey = text(&vectors, "vkey").parse().unwrap();
    for list in ["refused", "consistency_refused"] {
        for vector in items(&vectors[list]) {
            let (name, file) = (text(vector, "name"), text(vector, "file").as_bytes());
            let error = verdict(file, Some(&key)).expect_err(name);
            assert_eq!(format!("{error:?}"), text(vector, "error"), "{name}: {error}");
            // Without the key, all of it that is not about the key is refused the same.
            let about_key = ["NotSigned", "BadSignature", "(Origin)"];
            if !about_key.iter().any(|about| text(vector, "error").contains(about)) {
                assert_eq!(verdict(file, None), Err(error), "{name}");
            }
        }
    }
}

#[test]
fn events_are_proven_as_the_vectors_say() {
    let vectors = read("events.json");
    let key: VerifierKey = text(&vectors, "vkey").parse().unwrap();
    for vector in items(&vectors["events"]) {
        let file = text(vector, "file");
        let proof = EventProof::parse(file.as_bytes()).unwrap();
        assert_eq!(proof.render(), file);
        let checked = proof.verify(Some(&key)).unwrap();
        assert_eq!(std::str::from_utf8(checked.event()), Ok(text(vector, "event")));
        assert_eq!(checked.commitment().frame, number(vector, "frame"));
        assert_eq!((checked.checkpoint().size, checked.anchored()), (number(vector, "tree_size"), true));
    }
    for vector in items(&vectors["refused"]) {
        let error = verdict(text(vector, "file").as_bytes(), Some(&key)).unwrap_err();
        assert_eq!(format!("{error:?}"), text(vector, "error"), "{}", text(vector, "name"));
    }
}

#[test]
fn orders_say_what_the_vectors_say() {
    let vectors = read("events.json");
    let key: VerifierKey = text(&vectors, "erasure_vkey").parse().unwrap();
    for vector in items(&vectors["orders"]) {
        let order = Order::open(text(vector, "note").as_bytes(), &key).unwrap();
        assert_eq!(
            (order.log.to_string(), order.seconds),
            (text(vector, "log").into(), number(vector, "seconds"))
        );
        assert_eq!(order.reason.as_deref(), vector["reason"].as_str());
        let subjects = items(&vector["subjects"]).iter().map(|subject| {
            let salt = bulla_proof::Hash::from_base64(text(subject, "salt")).unwrap();
            ordered_subject(&salt.0, text(subject, "subject"))
        });
        assert_eq!(subjects.collect::<Vec<_>>(), order.subjects);
    }
}
