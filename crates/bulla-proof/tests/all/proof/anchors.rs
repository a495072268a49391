//! Anchors: a real answer of Rekor v2.2.1 verifies, and nothing that is altered does.

use bulla_proof::proof::{Anchor, Envelope};
use bulla_proof::{
    Checkpoint, Hash, NoteError, ProofError, TreeProofError, VerifierKey, sha256, sign_checkpoint, tree,
};
use ed25519_dalek::{Signer as _, SigningKey};

struct World {
    log: VerifierKey,
    rekor: VerifierKey,
    envelope: Envelope,
    note: String,
}

fn key(name: &str, seed: u8) -> (SigningKey, VerifierKey) {
    let secret = SigningKey::from_bytes(&[seed; 32]);
    let verifier = VerifierKey::new(name, secret.verifying_key().to_bytes()).unwrap();
    (secret, verifier)
}

/// The entry as RFC 8785 has it, told apart from the code's own way to it.
fn entry(note: &str, signature: &str, der: &str) -> serde_json::Value {
    serde_json::json!({ "apiVersion": "0.0.2", "kind": "dsse", "spec": { "dsseV002": {
        "payloadHash": { "algorithm": "SHA2_256", "digest": sha256(&[note.as_bytes()]).to_base64() },
        "signatures": [{ "content": signature, "verifier": { "keyDetails": "PKIX_ED25519", "publicKey": { "rawBytes": der } } }],
    } } })
}

impl World {
    /// A log's checkpoint, in an envelope, and a Rekor that holds its entry at the index 3 of 5.
    fn new() -> (World, Anchor) {
        let (secret, log) = key("example.com/log", 7);
        let checkpoint = Checkpoint::new("example.com/log", 0, tree::empty_root());
        let note = sign_checkpoint(&checkpoint, &log, |text| secret.sign(text).to_bytes());
        let envelope = Envelope::sign(note.as_bytes(), |bytes| secret.sign(bytes).to_bytes()).unwrap();
        let request: serde_json::Value = serde_json::from_str(&envelope.request(&log)).unwrap();
        let request = &request["dsseRequestV002"];
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let signature = text(&request["envelope"]["signatures"][0]["sig"]);
        let der = text(&request["verifiers"][0]["publicKey"]["rawBytes"]);
        // The members of these objects are in alphabetical order, which is that of RFC 8785 for them.
        let leaf = tree::leaf_hash(entry(&note, &signature, &der).to_string().as_bytes());
        let others = [1, 2, 3, 4].map(|other: u8| tree::leaf_hash(&[other]));
        let leaves = [others[0], others[1], others[2], leaf, others[3]];
        let (secret, rekor) = key("rekor.example", 8);
        let head = Checkpoint::new("rekor.example", 5, crate::tree::recursive_root(&leaves));
        let rekor_note = sign_checkpoint(&head, &rekor, |text| secret.sign(text).to_bytes());
        let nodes = bulla_proof::multiproof::prove(&leaves, &[3], &tree::LogNodes).unwrap();
        let anchor = Anchor::new(envelope.clone(), 3, nodes, rekor_note.as_bytes()).unwrap();
        (World { log, rekor, envelope, note }, anchor)
    }
}

#[test]
fn an_anchor_verifies_and_says_what_stands_where() {
    let (world, anchor) = World::new();
    let file = anchor.render();
    assert_eq!(Anchor::parse(file.as_bytes()), Ok(anchor.clone()));
    let held = anchor.verify(&world.log, &world.rekor).unwrap();
    assert_eq!((held.note, held.index, held.rekor.size), (world.note.as_bytes(), 3, 5));
    assert_eq!(held.checkpoint.origin, "example.com/log");
}

#[test]
fn no_altered_bit_and_no_other_key_is_believed() {
    let (world, anchor) = World::new();
    let file = anchor.render().into_bytes();
    for bit in 0..file.len() * 8 {
        let mut altered = file.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let holds = Anchor::parse(&altered).is_ok_and(|it| it.verify(&world.log, &world.rekor).is_ok());
        assert!(!holds, "byte {}, bit {}", bit / 8, bit % 8);
    }
    let verdict = |log: &VerifierKey, rekor: &VerifierKey| anchor.verify(log, rekor).map(|_| ());
    let (_, other_log) = key("example.com/log", 9);
    let (_, other_rekor) = key("rekor.example", 9);
    assert_eq!(verdict(&other_log, &world.rekor), Err(ProofError::OldCheckpoint(NoteError::NotSigned)));
    assert_eq!(verdict(&world.log, &other_rekor), Err(ProofError::Checkpoint(NoteError::NotSigned)));
}

#[test]
fn an_answer_about_another_entry_is_refused() {
    let (world, anchor) = World::new();
    let (_, rekor_note) =
        anchor.render().split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let of_another = Anchor::new(world.envelope, 3, vec![Hash::ZERO; 3], rekor_note.as_bytes()).unwrap();
    let refused = of_another.verify(&world.log, &world.rekor).map(|_| ());
    assert_eq!(refused, Err(ProofError::Tree(TreeProofError::Root)));
    assert!(Envelope::sign(b"no note", |_| [0; 64]).is_err());
}
