use crate::vectors::hash;
use bulla_proof::{Checkpoint, Hash, NoteError, SignedNote, VerifierKey, open_checkpoint, sign_checkpoint};
use ed25519_dalek::{Signer as _, SigningKey};
use proptest::prelude::*;

/// The example of C2SP tlog-checkpoint.
const SOFA: &str = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
const ROOT: &str = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";

#[test]
fn the_example_of_c2sp_parses() {
    let checkpoint = Checkpoint::parse(SOFA).unwrap();
    let root = hash("0ac5186a91863e8e1d90c808014aa89bf5da8e3ee1d9f07630f0378f68f1ab62");
    assert_eq!(checkpoint, Checkpoint::new("example.com/behind-the-sofa", 20_852_163, root));
    assert_eq!(checkpoint.body(), SOFA);
    let note = format!(
        "{SOFA}\n\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    );
    let note = SignedNote::parse(note.as_bytes()).unwrap();
    assert_eq!((note.text, note.signatures[0].key_id), (SOFA, 0x033d_e0ae));
}

#[test]
fn other_texts_are_refused() {
    for (text, error) in [
        (String::new(), NoteError::CheckpointLines),
        ("\n".to_owned(), NoteError::CheckpointLines),
        ("log\n1\n".to_owned(), NoteError::CheckpointLines),
        (format!("log\n1\n{ROOT}"), NoteError::CheckpointLines),
        (format!("\n1\n{ROOT}\n"), NoteError::CheckpointLines),
        (format!("log\n\n{ROOT}\n"), NoteError::CheckpointLines),
        (format!("log\n1\n{ROOT}\n\n"), NoteError::CheckpointLines),
        (format!("log\n1\n{ROOT}\n\nextension\n"), NoteError::CheckpointLines),
        (format!("log\n01\n{ROOT}\n"), NoteError::CheckpointSize),
        (format!("log\n00\n{ROOT}\n"), NoteError::CheckpointSize),
        (format!("log\n+1\n{ROOT}\n"), NoteError::CheckpointSize),
        (format!("log\n-1\n{ROOT}\n"), NoteError::CheckpointSize),
        (format!("log\n 1\n{ROOT}\n"), NoteError::CheckpointSize),
        (format!("log\n\u{661}\n{ROOT}\n"), NoteError::CheckpointSize),
        (format!("log\n18446744073709551616\n{ROOT}\n"), NoteError::CheckpointSize),
        (format!("log\n1\n{}\n", &ROOT[..43]), NoteError::CheckpointRoot),
        (format!("log\n1\n{ROOT} \n"), NoteError::CheckpointRoot),
        (format!("log\n1\n{}\n", ROOT.replace("2I=", "2J=")), NoteError::CheckpointRoot),
        (format!("log\r\n1\n{ROOT}\n"), NoteError::NotText),
        (format!("log\n1\n{ROOT}\next\0\n"), NoteError::NotText),
    ] {
        assert_eq!(Checkpoint::parse(&text), Err(error), "{text:?}");
    }
    let largest = format!("log\n{}\n{ROOT}\n", u64::MAX);
    assert_eq!(Checkpoint::parse(&largest).map(|checkpoint| checkpoint.size), Ok(u64::MAX));
}

#[test]
fn opens_what_it_signs() {
    let (secret, key) = keys("example.com/log", 7);
    let mut checkpoint = Checkpoint::new("example.com/log", 42, Hash([9; 32]));
    for extensions in [vec![], vec!["one".to_owned(), "two three".to_owned()]] {
        checkpoint.extensions = extensions;
        let note = sign_checkpoint(&checkpoint, &key, |text| secret.sign(text).to_bytes());
        assert_eq!(open_checkpoint(note.as_bytes(), &key).as_ref(), Ok(&checkpoint));
        assert!(note.starts_with(&format!("{}\n\u{2014} example.com/log ", checkpoint.body())));
    }
}

#[test]
fn opens_nothing_else() {
    let (secret, key) = keys("example.com/log", 7);
    let checkpoint = Checkpoint::new("example.com/log", 42, Hash([9; 32]));
    let note = sign_checkpoint(&checkpoint, &key, |text| secret.sign(text).to_bytes());

    let (_, same_name) = keys("example.com/log", 8);
    assert_eq!(open_checkpoint(note.as_bytes(), &same_name), Err(NoteError::NotSigned));
    let (_, same_key) = keys("example.com/log2", 7);
    assert_eq!(open_checkpoint(note.as_bytes(), &same_key), Err(NoteError::NotSigned));
    let bad = sign_checkpoint(&checkpoint, &key, |_| [0; 64]);
    assert_eq!(open_checkpoint(bad.as_bytes(), &key), Err(NoteError::BadSignature));

    let signed = |body: &str| {
        let (body, other) = (body.to_owned(), Checkpoint::new(key.name(), 0, Hash::ZERO));
        let template = sign_checkpoint(&other, &key, |_| secret.sign(body.as_bytes()).to_bytes());
        template.replace(&other.body(), &body)
    };
    let other_log = signed(&Checkpoint::new("example.com/other", 42, Hash([9; 32])).body());
    assert_eq!(open_checkpoint(other_log.as_bytes(), &key), Err(NoteError::Origin));
    assert_eq!(open_checkpoint(signed("just a text\n").as_bytes(), &key), Err(NoteError::CheckpointLines));
    let again = signed(&checkpoint.body());
    assert_eq!(open_checkpoint(again.as_bytes(), &key), Ok(checkpoint));
}

#[test]
fn every_flipped_bit_is_seen() {
    let (secret, key) = keys("log", 1);
    let checkpoint = Checkpoint::new("log", 1, Hash([1; 32]));
    let note = sign_checkpoint(&checkpoint, &key, |text| secret.sign(text).to_bytes()).into_bytes();
    for bit in 0..note.len() * 8 {
        let mut damaged = note.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(open_checkpoint(&damaged, &key).is_err(), "bit {bit}");
    }
}

#[test]
#[should_panic(expected = "its own checkpoints")]
fn a_log_signs_no_others() {
    let (_, key) = keys("log", 1);
    sign_checkpoint(&Checkpoint::new("other", 1, Hash::ZERO), &key, |_| [0; 64]);
}

#[test]
#[should_panic(expected = "read as it was written")]
fn nothing_ambiguous_is_signed() {
    let (_, key) = keys("log", 1);
    let extensions = vec!["a\n\nb".to_owned()];
    sign_checkpoint(&Checkpoint { extensions, ..Checkpoint::new("log", 1, Hash::ZERO) }, &key, |_| [0; 64]);
}

proptest! {
    #[test]
    fn a_checkpoint_has_one_text(
        origin in "\\PC{1,20}", size in any::<u64>(), root in any::<[u8; 32]>(),
        extensions in prop::collection::vec("\\PC{1,9}", 0..3),
    ) {
        let checkpoint = Checkpoint { origin, size, root: Hash(root), extensions };
        prop_assert_eq!(Checkpoint::parse(&checkpoint.body()), Ok(checkpoint));
    }

    #[test]
    fn no_text_panics(text in "(\\PC|\n){0,60}|[a-z]{0,3}\n[0-9]{0,21}\n[A-Za-z0-9+/]{42,43}={0,2}\n(x\n){0,2}") {
        if let Ok(checkpoint) = Checkpoint::parse(&text) {
            prop_assert_eq!(checkpoint.body(), text);
        }
    }
}

fn keys(name: &str, seed: u8) -> (SigningKey, VerifierKey) {
    let secret = SigningKey::from_bytes(&[seed; 32]);
    let key = VerifierKey::new(name, secret.verifying_key().to_bytes()).unwrap();
    (secret, key)
}
