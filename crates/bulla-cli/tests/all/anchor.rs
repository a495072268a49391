//! `bulla anchor --check`: an anchor holds of the log that it is of and of none that was rewritten since, with the keys of both alone.

use crate::support::{Place, exit, lines};
use bulla::keys::signing::SigningKey;
use bulla_proof::proof::{Anchor, Envelope};
use bulla_proof::{Checkpoint, sha256, sign_checkpoint, tree};
use std::fs;

/// An anchor of the log's checkpoint in a log of one entry, and that log's key. The entry is canonical JSON, as Rekor makes it.
pub(crate) fn anchored(place: &Place) -> (String, String) {
    anchored_note(place, &fs::read(place.audit().join("checkpoint")).unwrap())
}

/// The same of any checkpoint of the log.
pub(crate) fn anchored_note(place: &Place, note: &[u8]) -> (String, String) {
    let log = SigningKey::parse(&fs::read_to_string(place.keys("signing.key")).unwrap()).unwrap();
    let envelope = Envelope::sign(note, |bytes| log.sign(bytes)).unwrap();
    let request: serde_json::Value = serde_json::from_str(&envelope.request(log.verifier())).unwrap();
    let request = &request["dsseRequestV002"];
    let entry = serde_json::json!({ "apiVersion": "0.0.2", "kind": "dsse", "spec": { "dsseV002": {
        "payloadHash": { "algorithm": "SHA2_256", "digest": sha256(&[note]).to_base64() },
        "signatures": [{
            "content": request["envelope"]["signatures"][0]["sig"],
            "verifier": { "keyDetails": "PKIX_ED25519", "publicKey": request["verifiers"][0]["publicKey"] },
        }],
    } } });
    let rekor = SigningKey::from_seed("rekor.example", &[8; 32]).unwrap();
    let head = Checkpoint::new("rekor.example", 1, tree::leaf_hash(entry.to_string().as_bytes()));
    let signed = sign_checkpoint(&head, rekor.verifier(), |text| rekor.sign(text));
    let anchor = Anchor::new(envelope, 0, vec![], signed.as_bytes()).unwrap();
    (place.write("audit.anchor", anchor.render().as_bytes()), rekor.verifier().to_string())
}

#[test]
fn an_anchor_is_checked_offline() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let (file, rekor) = anchored(&place);
    let check = |rekor: &str| place.run("anchor", &["--check", &file, "--rekor-key", rekor]);
    // Of the log as it was, and of what it grew to.
    for _ in 0..2 {
        let ran = check(&rekor).exits(exit::DONE);
        assert!(ran.err.contains("stands at index 0 of rekor.example"), "{ran:?}");
        place.append(&[], &lines(10..20)).exits(exit::DONE);
    }
    // Another implementation, from the format's document alone.
    let second = |log: &Place, rekor: &str| {
        let mut reader = bulla_testkit::second_reader("anchor");
        reader.args(["--vkey", &place.verifier_key(), "--rekor-vkey", rekor, &file, "--log"]);
        reader.arg(log.audit()).output().unwrap()
    };
    let told: serde_json::Value = serde_json::from_slice(&second(&place, &rekor).stdout).unwrap();
    assert_eq!((&told["rekor"], &told["index"]), (&"rekor.example".into(), &0.into()));
    for refused in [second(&place, &place.verifier_key()), second(&Place::new(), &rekor)] {
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{refused:?}");
    }
    let another = check(&place.verifier_key());
    assert!(another.exits(exit::VIOLATION).err.contains("the key has not signed the note"));

    let other = Place::new();
    other.append(&[], &lines(0..10)).exits(exit::DONE);
    let ran = other.run("anchor", &["--check", &file, "--rekor-key", &rekor]);
    assert!(ran.exits(exit::VIOLATION).err.contains("the older checkpoint"));

    fs::write(&file, "bulla-event-v1\n").unwrap();
    assert!(check(&rekor).exits(exit::USAGE).err.contains("is no anchor"));
}

#[test]
fn nothing_is_sent_in_clear_to_another_machine_and_nothing_is_overwritten() {
    let place = Place::new();
    let rekor = SigningKey::from_seed("rekor.example", &[8; 32]).unwrap().verifier().to_string();
    let file = place.path("new.anchor").into_os_string().into_string().unwrap();
    let anchor = |url: &str| place.run("anchor", &["--rekor", url, "--rekor-key", &rekor, "-o", &file]);
    anchor("http://192.0.2.1").exits(exit::USAGE);
    assert!(!place.path("new.anchor").exists());
    place.write("new.anchor", b"kept");
    assert!(anchor("https://rekor.example").exits(exit::USAGE).err.contains("is there already"));
}
