//! Receipts of RFC 9942: somebody else's COSE checks them, and whatever is altered or claimed in one is refused.

use super::world::{ORIGIN, World, entry, mixed};
use bulla_proof::tree::{leaf_hash, node_hash};
use bulla_proof::{
    Checkpoint, CoseCheckpoint, CoseError, CosignerKey, Hash, HashId, LogKey, NoteError, Policy,
    PolicyRefusal, ProofError, ProofFile, Receipt, TreeProofError, VerifierKey,
};
use bulla_testkit::allocator::most_held_here;
use coset::cbor::Value;
use coset::{CoseSign1, RegisteredLabelWithPrivate, TaggedCborSerializable, iana};
use ed25519_dalek::{Signature, SigningKey, Verifier, VerifyingKey};
use proptest::prelude::*;

/// What somebody checks of a COSE message who has a library for it, and the log's key.
fn verify_signature(message: &CoseSign1, root: &Hash, key: &VerifierKey) {
    let key = VerifyingKey::from_bytes(key.public_key()).unwrap();
    let verify = |signature: &[u8], signed: &[u8]| {
        key.verify(signed, &Signature::from_slice(signature).unwrap()).map_err(|_| ())
    };
    match &message.payload {
        Some(payload) => {
            assert_eq!(payload, root.as_bytes());
            message.verify_signature(b"", verify).unwrap();
        }
        None => message.verify_detached_signature(root.as_bytes(), b"", verify).unwrap(),
    }
}

fn parameter(parameters: &[(coset::Label, Value)], label: i64) -> Value {
    let found = parameters.iter().find(|(at, _)| *at == coset::Label::Int(label));
    found.unwrap_or_else(|| panic!("no parameter {label}")).1.clone()
}

/// RFC 9162, section 2.1.3.2, by somebody who knows nothing of Bulla.
fn root_of(statement: &[u8], proof: &[u8]) -> (u64, u64, Hash) {
    let proof: Value = coset::cbor::from_reader(proof).unwrap();
    let [size, index, path] = &proof.as_array().unwrap()[..] else { panic!("{proof:?}") };
    let number = |value: &Value| u64::try_from(value.as_integer().unwrap()).unwrap();
    let (size, index) = (number(size), number(index));
    assert!(index < size);
    let (mut at, mut last) = (index, size - 1);
    let mut root = leaf_hash(statement);
    for sibling in path.as_array().unwrap() {
        let sibling = Hash(sibling.as_bytes().unwrap()[..].try_into().unwrap());
        assert_ne!(last, 0);
        if at % 2 == 1 || at == last {
            root = node_hash(&sibling, &root);
            while at.is_multiple_of(2) && at > 0 {
                (at, last) = (at / 2, last / 2);
            }
        } else {
            root = node_hash(&root, &sibling);
        }
        (at, last) = (at / 2, last / 2);
    }
    assert_eq!(last, 0);
    (size, index, root)
}

#[test]
fn somebody_elses_cose_verifies_a_tree_head() {
    let world = World::new(HashId::Sha256, &[3, 4, 5]);
    for size in [0, 1, 4] {
        let file = world.cose(size).render();
        let message = CoseSign1::from_tagged_slice(&file).unwrap();
        verify_signature(&message, &world.checkpoint(size).root, &world.key);
        let header = &message.protected.header;
        assert_eq!(header.alg, Some(RegisteredLabelWithPrivate::Assigned(iana::Algorithm::EdDSA)));
        assert_eq!(header.key_id, world.key.key_id().to_be_bytes());
        assert_eq!(parameter(&header.rest, 395), Value::from(1));
        assert_eq!(parameter(&header.rest, -70_001), Value::from(size as u64));
        assert_eq!(
            parameter(&header.rest, 15),
            Value::Map(vec![(Value::from(1), Value::Text(ORIGIN.to_owned()))])
        );
        // Its encoding of the same is the same.
        assert_eq!(message.to_tagged_vec().unwrap(), file);
    }
}

#[test]
fn somebody_elses_cose_verifies_a_receipt() {
    let world = World::new(HashId::Sha256, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let chosen = |frame| (frame, &[0, 2][..]);
    for frames in [vec![1], vec![10], vec![4, 5, 9], (1..=10).collect()] {
        let file = world.receipt(&frames.iter().map(|frame| chosen(*frame)).collect::<Vec<_>>()).render();
        let message = CoseSign1::from_tagged_slice(&file).unwrap();
        assert_eq!(message.payload, None, "the payload is detached");
        let proofs = parameter(&message.unprotected.rest, 396);
        let [(kind, proofs)] = &proofs.as_map().unwrap()[..] else { panic!("{proofs:?}") };
        assert_eq!(*kind, Value::from(-1));
        let proofs = proofs.as_array().unwrap();
        assert_eq!(proofs.len(), frames.len());
        for (proof, frame) in proofs.iter().zip(&frames) {
            let statement = world.frames[*frame].commitment.encode();
            let (size, index, root) = root_of(&statement, proof.as_bytes().unwrap());
            assert_eq!((size, index), (world.leaves.len() as u64, *frame as u64));
            verify_signature(&message, &root, &world.key);
        }
        assert!(parameter(&message.unprotected.rest, -70_002).is_bytes());
        assert_eq!(message.to_tagged_vec().unwrap(), file);
    }
}

/// What a policy says of the text of a proof it says of the receipt; where it asks for what no receipt has, that it cannot say it of one.
#[test]
fn a_receipt_is_believed_by_a_policy_as_the_text_is() {
    let world = World::new(HashId::Sha256, &[3, 4]);
    let (text, receipt) = (world.proof(&[(1, &[0])]), world.receipt(&[(1, &[0])]));
    let (text, receipt) = (ProofFile::Entries(text), ProofFile::Receipt(receipt));
    let (key, other) = (world.key.clone(), world.other());
    let third = SigningKey::from_bytes(&[8; 32]).verifying_key().to_bytes();
    let elsewhere = VerifierKey::new("example.com/elsewhere", third).unwrap();
    let ml_dsa = CosignerKey::ml_dsa_44(ORIGIN, &[1; 1312]).unwrap();
    let logs = |keys: &[&dyn std::fmt::Display]| -> Policy {
        let lines = keys.iter().map(|key| format!("log {key}\n")).collect::<String>();
        format!("{lines}quorum none\n").parse().unwrap()
    };
    let holds = |policy: &Policy| {
        let of_text = text.verify_entries_by(policy).map(|checked| checked.anchored());
        let of_receipt = receipt.verify_entries_by(policy).map(|checked| checked.anchored());
        assert_eq!(of_receipt.is_ok(), of_text.is_ok(), "{of_receipt:?}, {of_text:?}");
        of_receipt
    };
    let with_key = |policy: Policy, key: &VerifierKey| policy.with_log(key.clone().into());
    for policy in [
        logs(&[&key]),
        logs(&[&other, &key]),
        logs(&[&key, &elsewhere, &other]),
        logs(&[&ml_dsa, &key]),
        with_key(logs(&[]), &key),
        with_key(logs(&[&other, &key]), &key),
        Policy::of_log(key.clone().into()),
    ] {
        assert_eq!(holds(&policy), Ok(true));
    }
    let not_signed = |key: &VerifierKey, error| {
        ProofError::Policy(PolicyRefusal::Key(Box::new(key.clone().into()), error))
    };
    for (policy, refusal) in [
        (logs(&[&elsewhere]), ProofError::Policy(PolicyRefusal::Log(NoteError::Origin))),
        (logs(&[&other, &elsewhere]), ProofError::Policy(PolicyRefusal::Log(NoteError::NotSigned))),
        (with_key(logs(&[&key]), &other), not_signed(&other, NoteError::NotSigned)),
        (with_key(logs(&[&key]), &elsewhere), not_signed(&elsewhere, NoteError::Origin)),
        (with_key(logs(&[&other]), &key), ProofError::Policy(PolicyRefusal::Log(NoteError::NotSigned))),
    ] {
        assert_eq!(holds(&policy), Err(refusal));
    }
    let witness = CosignerKey::ed25519("w.example", *other.public_key()).unwrap();
    let asked: Policy = format!("log {key}\nwitness w {witness}\nquorum w\n").parse().unwrap();
    let both = with_key(logs(&[&ml_dsa]), &key);
    for policy in [asked, both, logs(&[&ml_dsa]), Policy::of_log(LogKey::MlDsa44(ml_dsa.clone()))] {
        assert_eq!(receipt.verify_entries_by(&policy).err(), Some(ProofError::ReceiptPolicy));
    }
    // What the key that is named as its signer did not sign.
    let mut altered = match &receipt {
        ProofFile::Receipt(receipt) => receipt.render(),
        _ => unreachable!(),
    };
    *altered.last_mut().unwrap() ^= 1;
    let altered = ProofFile::parse(&altered).unwrap();
    let bad = ProofError::Policy(PolicyRefusal::Log(NoteError::BadSignature));
    assert_eq!(altered.verify_entries_by(&logs(&[&other, &key])).err(), Some(bad));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A receipt discloses what the text of the same entries does.
    #[test]
    fn a_receipt_says_what_the_text_says(
        blocks in prop::collection::vec(1..9_u64, 1..40), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..9),
        grouped in any::<bool>(),
    ) {
        let group = if grouped { mixed } else { |_| None };
        let world = World::with_groups(HashId::Sha256, &blocks, super::world::row, group);
        let frames: std::collections::BTreeSet<usize> = picks.iter().map(|pick| 1 + pick.index(blocks.len())).collect();
        let chosen: Vec<(usize, &[usize])> = frames.iter().map(|frame| (*frame, &[0][..])).collect();
        let (receipt, proof) = (world.receipt(&chosen), world.proof(&chosen));
        let file = receipt.render();
        prop_assert_eq!(ProofFile::parse(&file), Ok(ProofFile::Receipt(receipt.clone())));
        let (shown, text) = (receipt.verify(Some(&world.key)).unwrap(), proof.verify(Some(&world.key)).unwrap());
        prop_assert!(shown.anchored() && !receipt.verify(None).unwrap().anchored());
        prop_assert_eq!(shown.disclosed(), text.disclosed());
        prop_assert_eq!((shown.origin(), shown.tree_size(), shown.root()), (text.origin(), text.tree_size(), text.root()));
        prop_assert_eq!(shown.file_length(), file.len());
    }
}

/// What a file proves to whoever has the key.
fn proven(file: &[u8], key: &VerifierKey) -> Option<String> {
    let receipt = Receipt::parse(file).ok()?;
    assert_eq!(receipt.render(), file, "a file has one spelling");
    let checked = receipt.verify(Some(key)).ok()?;
    Some(format!("{} {} {} {:?}", checked.origin(), checked.tree_size(), checked.root(), checked.disclosed()))
}

#[test]
fn every_altered_bit_and_every_end_is_refused() {
    let world = World::new(HashId::Sha256, &[5, 2, 3]);
    let files = [world.receipt(&[(1, &[1, 3])]).render(), world.receipt(&[(1, &[0]), (3, &[2])]).render()];
    for file in files {
        assert!(proven(&file, &world.key).is_some());
        for end in 0..file.len() {
            assert_eq!(proven(&file[..end], &world.key), None, "cut at {end}");
        }
        for bit in 0..file.len() * 8 {
            let mut altered = file.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(proven(&altered, &world.key), None, "byte {}, bit {}", bit / 8, bit % 8);
        }
        assert_eq!(proven(&[&file[..], &[0]].concat(), &world.key), None);
    }
    let file = world.cose(4).render();
    for bit in 0..file.len() * 8 {
        let mut altered = file.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let holds = CoseCheckpoint::parse(&altered).is_ok_and(|read| read.verify(&world.key).is_ok());
        assert!(!holds, "byte {}, bit {}", bit / 8, bit % 8);
    }
    for end in 0..file.len() {
        assert!(CoseCheckpoint::parse(&file[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn only_the_logs_own_key_is_believed() {
    let world = World::new(HashId::Sha256, &[5]);
    let other = World::other(&world);
    let renamed = VerifierKey::new("example.com/other", *world.key.public_key()).unwrap();
    for (key, error) in [(&other, CoseError::OtherKey), (&renamed, CoseError::Origin)] {
        assert_eq!(world.cose(2).verify(key), Err(error));
        let receipt = world.receipt(&[(1, &[0])]);
        assert_eq!(receipt.verify(Some(key)).err(), Some(ProofError::Receipt(error)));
    }
}

#[test]
fn no_receipt_is_made_that_does_not_verify() {
    let world = World::new(HashId::Sha256, &[5, 6, 7]);
    let one = || vec![world.disclosed(1, &[1, 3])];
    assert!(Receipt::new(&world.cose(4), &world.leaves, one()).is_ok());
    // Of a smaller tree than the one that is signed, and of another one.
    let smaller = Receipt::new(&world.cose(4), &world.leaves[..3], one());
    assert_eq!(smaller, Err(ProofError::Tree(TreeProofError::Size(4))));
    let mut others = world.leaves.clone();
    others.swap(2, 3);
    let other = Receipt::new(&world.cose(4), &others, one());
    assert_eq!(other, Err(ProofError::Tree(TreeProofError::Root)));
    let twice = [one(), one()].concat();
    let repeated = Receipt::new(&world.cose(4), &world.leaves, twice);
    assert_eq!(repeated, Err(ProofError::Tree(TreeProofError::Order(1))));
    let none = Receipt::new(&world.cose(4), &world.leaves, vec![]);
    assert_eq!(none, Err(ProofError::Tree(TreeProofError::NoPosition)));
}

/// A root is that of trees of several sizes, to whoever does not know what a leaf is: which one the log signed is signed with it.
#[test]
fn a_head_says_of_how_many_leaves_it_is() {
    let world = World::new(HashId::Sha256, &[5, 6, 7]);
    let of_two = Checkpoint::new(ORIGIN, 2, world.checkpoint(4).root);
    let signed = world.cose(4);
    let claimed = CoseCheckpoint::sign(&of_two, &world.key, |_| {
        let file = signed.render();
        file[file.len() - 64..].try_into().unwrap()
    });
    assert_eq!(claimed.verify(&world.key), Err(CoseError::BadSignature));
}

/// Whatever lengths and numbers a file claims, reading it takes memory in proportion to its length.
#[test]
fn no_claim_of_a_length_is_believed() {
    let world = World::new(HashId::Sha256, &[5, 6]);
    let file = world.receipt(&[(1, &[0]), (2, &[0])]).render();
    let claims: [&[u8]; 6] = [
        &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x9a, 0x7f, 0xff, 0xff, 0xff],
        &[0x5b, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00],
        &[0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x1b, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x9f],
    ];
    for at in 0..file.len() {
        for claim in claims {
            let altered = [&file[..at], claim, &file[at + 1..]].concat();
            if altered == file {
                continue;
            }
            let (shown, most) = most_held_here(|| proven(&altered, &world.key));
            assert_eq!(shown, None, "{claim:?} at {at}");
            assert!(most <= 7 * altered.len() + 4096, "{most} bytes for {claim:?} at {at}");
        }
    }
    let many = vec![0x41; 100_000];
    for head in [&file[..file.len() / 2], &file[..1], &[]] {
        let altered = [head, &many].concat();
        let (_, most) = most_held_here(|| proven(&altered, &world.key));
        assert!(most <= 7 * altered.len() + 4096);
    }
    let large = world.receipt(&[(1, &[0, 1, 2, 3, 4]), (2, &[0, 1, 2])]);
    assert_eq!(entry(&world.frames[1].units[0]).number, 0);
    let file = large.render();
    let (shown, most) = most_held_here(|| Receipt::parse(&file).map(|receipt| receipt.verify(None).is_ok()));
    assert_eq!(shown, Ok(true));
    assert!(most <= 7 * file.len() + 4096, "{most} for {}", file.len());
}
