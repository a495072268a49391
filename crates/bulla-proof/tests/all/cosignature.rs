use crate::vectors::{bytes, items, number, read, text};
use bulla_proof::note::NoteSignature;
use bulla_proof::{
    Checkpoint, CosignatureAlgorithm, CosignerKey, Hash, LogKey, NoteError, SignedNote, VerifierKey,
};
use ed25519_dalek::Signer as _;
use ml_dsa::MlDsa44;
use proptest::prelude::*;

const TIME: u64 = 1_679_315_147;
/// The text of the example of C2SP tlog-cosignature, and its line of the log, whose key nobody has.
const SOFA: &str = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
const LOG_LINE: &str = "\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";

/// A witness with its secret key.
pub(crate) struct Witness {
    pub(crate) key: CosignerKey,
    secret: Secret,
}

enum Secret {
    Ed25519(Box<ed25519_dalek::SigningKey>),
    MlDsa44(Box<ml_dsa::SigningKey<MlDsa44>>),
}

impl Witness {
    pub(crate) fn ed25519(name: &str, seed: u8) -> Self {
        let secret = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
        let key = CosignerKey::ed25519(name, secret.verifying_key().to_bytes()).unwrap();
        Witness { key, secret: Secret::Ed25519(Box::new(secret)) }
    }

    pub(crate) fn ml_dsa_44(name: &str, seed: u8) -> Self {
        let secret = ml_dsa::SigningKey::<MlDsa44>::from_seed(&[seed; 32].into());
        let public: [u8; 1312] = secret.expanded_key().verifying_key().encode().into();
        let key = CosignerKey::ml_dsa_44(name, &public).unwrap();
        Witness { key, secret: Secret::MlDsa44(Box::new(secret)) }
    }

    fn both(name: &str, seed: u8) -> [Self; 2] {
        [Witness::ed25519(name, seed), Witness::ml_dsa_44(name, seed)]
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.secret {
            Secret::Ed25519(secret) => secret.sign(message).to_bytes().to_vec(),
            Secret::MlDsa44(secret) => {
                secret.expanded_key().sign_deterministic(message, b"").unwrap().encode().to_vec()
            }
        }
    }

    /// The line with which the witness cosigns the text.
    pub(crate) fn cosign(&self, text: &str, time: u64) -> String {
        self.key.signature_line(time, &self.sign(&self.key.message(text, time).unwrap()))
    }
}

#[test]
fn the_messages_are_those_of_the_specification() {
    let [ed25519, ml_dsa] = Witness::both("witness.example.com/w1", 1);
    let message = ed25519.key.message(SOFA, TIME).unwrap();
    assert_eq!(String::from_utf8(message).unwrap(), format!("cosignature/v1\ntime 1679315147\n{SOFA}"));
    let with_extension = format!("{SOFA}more\n");
    assert!(ed25519.key.message(&with_extension, TIME).unwrap().ends_with(b"=\nmore\n"));

    let mut message = b"subtree/v1\n\0\x16witness.example.com/w1\0\0\0\0\x64\x18\x50\xcb".to_vec();
    message.extend(b"\x1bexample.com/behind-the-sofa\0\0\0\0\0\0\0\0\0\0\0\0\x01\x3e\x2d\xc3");
    message.extend(Checkpoint::parse(SOFA).unwrap().root.0);
    assert_eq!(ml_dsa.key.message(SOFA, TIME).unwrap(), message);
    assert_eq!(ml_dsa.key.message(&with_extension, TIME).unwrap(), message);
}

#[test]
fn what_a_witness_signs_verifies() {
    for witness in Witness::both("witness.example.com/w1", 1) {
        for (text, time) in [(SOFA, TIME), (SOFA, 0), (SOFA, i64::MAX as u64), (&format!("{SOFA}more\n"), 1)]
        {
            let note = format!("{text}\n{LOG_LINE}{}", witness.cosign(text, time));
            let note = SignedNote::parse(note.as_bytes()).unwrap();
            assert_eq!(witness.key.verify(&note).unwrap().timestamp, time);
        }
    }
}

#[test]
fn what_a_witness_did_not_sign_is_refused() {
    let other_size = SOFA.replace("20852163", "20852164");
    let other_root = SOFA.replace("CsUY", "CsUZ");
    let other_log = SOFA.replace("sofa", "sofas");
    for witness in Witness::both("witness.example.com/w1", 1) {
        let verify = |text: &str, lines: &str| {
            let note = format!("{text}\n{LOG_LINE}{lines}");
            witness.key.verify(&SignedNote::parse(note.as_bytes()).unwrap())
        };
        let line = witness.cosign(SOFA, TIME);
        assert_eq!(verify(SOFA, ""), Err(NoteError::NotSigned));
        for text in [&other_size, &other_root, &other_log] {
            assert_eq!(verify(text, &line), Err(NoteError::BadSignature), "{text}");
        }
        assert_eq!(verify("no checkpoint\n", &line), Err(NoteError::CheckpointLines));
        let message = witness.key.message(SOFA, TIME).unwrap();
        let signature = witness.sign(&message);
        let line_of = |time: u64, signature: &[u8]| witness.key.signature_line(time, signature);
        assert_eq!(verify(SOFA, &line_of(TIME, &signature)).map(|it| it.timestamp), Ok(TIME));
        for line in [
            line_of(TIME + 1, &signature),
            line_of(TIME, &signature[1..]),
            line_of(TIME, &[&signature[..], &[0]].concat()),
            line_of(TIME, &vec![0; signature.len()]),
            line_of(TIME, &[]),
        ] {
            assert_eq!(verify(SOFA, &line), Err(NoteError::BadSignature), "{line}");
        }
        assert_eq!(verify(SOFA, &line_of(1 << 63, &signature)), Err(NoteError::Timestamp));
        // The same name and key of the other type is another key.
        for other in Witness::both("witness.example.com/w1", 2) {
            assert_eq!(verify(SOFA, &other.cosign(SOFA, TIME)), Err(NoteError::NotSigned));
        }
    }
}

/// Ed25519 does not sign the name of the key, ML-DSA-44 does.
#[test]
fn a_key_of_ml_dsa_is_bound_to_its_name() {
    for (witness, renamed, expected) in [
        (Witness::ed25519("one", 1), Witness::ed25519("other", 1), Ok(TIME)),
        (Witness::ml_dsa_44("one", 1), Witness::ml_dsa_44("other", 1), Err(NoteError::BadSignature)),
    ] {
        let signature = witness.sign(&witness.key.message(SOFA, TIME).unwrap());
        let note = format!("{SOFA}\n{}", renamed.key.signature_line(TIME, &signature));
        let verified = renamed.key.verify(&SignedNote::parse(note.as_bytes()).unwrap());
        assert_eq!(verified.map(|it| it.timestamp), expected);
        assert!(witness.key.is_same_key(&renamed.key) && witness.key != renamed.key);
    }
}

#[test]
fn of_several_cosignatures_each_has_to_hold_and_the_newest_is_told() {
    for witness in Witness::both("w", 1) {
        let [old, new] = [TIME - 9, TIME].map(|time| witness.cosign(SOFA, time));
        let bad = witness.key.signature_line(TIME + 9, b"no signature");
        for (lines, expected) in [
            (format!("{old}{new}"), Ok(TIME)),
            (format!("{new}{old}"), Ok(TIME)),
            (format!("{new}{bad}"), Err(NoteError::BadSignature)),
            (format!("{bad}{new}"), Err(NoteError::BadSignature)),
        ] {
            let note = format!("{SOFA}\n{lines}");
            let verified = witness.key.verify(&SignedNote::parse(note.as_bytes()).unwrap());
            assert_eq!(verified.map(|it| it.timestamp), expected);
        }
    }
}

#[test]
fn keys_are_read_as_they_are_shown_and_have_one_spelling() {
    for (witness, kind) in Witness::both("witness.example.com/w1", 1)
        .into_iter()
        .zip([CosignatureAlgorithm::Ed25519, CosignatureAlgorithm::MlDsa44])
    {
        let shown = witness.key.to_string();
        assert_eq!(shown.parse::<CosignerKey>().as_ref(), Ok(&witness.key));
        assert_eq!(witness.key.algorithm(), kind);
        for wrong in [
            shown.replace("w1", "w2"),
            format!("{shown}AAAA"),
            shown[..shown.len() - 4].to_owned(),
            shown.replacen('+', "+0", 1),
            shown.replacen('+', "", 1),
        ] {
            assert!(wrong.parse::<CosignerKey>().is_err(), "{wrong}");
        }
    }
    assert_eq!("w+00000000+AA==".parse::<CosignerKey>(), Err(NoteError::VerifierKey));
    let public = [7; 1312];
    assert!(CosignerKey::ml_dsa_44("a".repeat(255), &public).is_ok());
    assert_eq!(CosignerKey::ml_dsa_44("a".repeat(256), &public), Err(NoteError::LongName));
    assert_eq!(CosignerKey::ml_dsa_44("a b", &public), Err(NoteError::Name));
    assert_eq!(CosignerKey::ed25519("a b", [7; 32]), Err(NoteError::Name));
    assert_eq!(CosignerKey::ed25519("a", [0; 32]), Err(NoteError::PublicKey));
    let long = format!("{}\n1\n{}\n", "o".repeat(256), Hash([1; 32]).to_base64());
    assert_eq!(CosignerKey::ml_dsa_44("a", &public).unwrap().message(&long, 1), Err(NoteError::LongName));
}

#[test]
fn a_log_has_keys_of_two_types() {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let ed25519 = VerifierKey::new("example.com/log", secret.verifying_key().to_bytes()).unwrap();
    let [witness, ml_dsa] = Witness::both("example.com/log", 1);
    let checkpoint = Checkpoint::new("example.com/log", 9, Hash([9; 32]));
    let note = bulla_proof::sign_checkpoint(&checkpoint, &ed25519, |text| secret.sign(text).to_bytes());
    let note = note + &ml_dsa.cosign(&checkpoint.body(), 0);
    for text in [ed25519.to_string(), ml_dsa.key.to_string()] {
        let key: LogKey = text.parse().unwrap();
        assert_eq!((key.to_string(), key.name()), (text, "example.com/log"));
        assert_eq!(key.verify(&SignedNote::parse(note.as_bytes()).unwrap()), Ok(()));
        let renamed = note.replace("\u{2014} example.com/log", "\u{2014} example.com/other");
        assert_eq!(key.verify(&SignedNote::parse(renamed.as_bytes()).unwrap()), Err(NoteError::NotSigned));
    }
    // A witness's key of Ed25519 is no log's, since it may be the same key.
    assert_eq!(witness.key.to_string().parse::<LogKey>(), Err(NoteError::VerifierKey));
    assert_eq!(ed25519.to_string().parse::<CosignerKey>(), Err(NoteError::VerifierKey));
}

#[test]
fn a_newer_signature_takes_the_place_of_the_older() {
    let [one, other] = Witness::both("w", 1);
    let text = format!("{SOFA}\n{LOG_LINE}{}{}", one.cosign(SOFA, 1), other.cosign(SOFA, 1));
    let mut note = SignedNote::parse(text.as_bytes()).unwrap();
    assert_eq!(note.to_string(), text);
    let newer = one.cosign(SOFA, 2);
    for signature in NoteSignature::parse_lines(&newer).unwrap() {
        note.keep(signature).unwrap();
    }
    assert_eq!(note.to_string(), format!("{SOFA}\n{LOG_LINE}{}{newer}", other.cosign(SOFA, 1)));
    assert_eq!(one.key.verify(&note).map(|it| it.timestamp), Ok(2));
}

#[test]
fn no_note_is_kept_past_the_limits() {
    let text = format!("{SOFA}\n{LOG_LINE}");
    let mut note = SignedNote::parse(text.as_bytes()).unwrap();
    let line = |key_id| NoteSignature { name: "stranger", key_id, signature: vec![1] };
    for key_id in 1..100 {
        note.keep(line(key_id)).unwrap();
    }
    let whole = note.clone();
    assert_eq!(note.keep(line(100)), Err(NoteError::TooManySignatures));
    assert_eq!(note, whole);
    let long = NoteSignature { signature: vec![1; 1 << 20], ..line(1) };
    assert_eq!(note.keep(long), Err(NoteError::TooLong));
    assert_eq!(note, whole);
    assert_eq!(SignedNote::parse(note.to_string().as_bytes()), Ok(whole));
}

#[test]
fn signature_lines_are_read_alone() {
    for (lines, error) in [
        ("", NoteError::NoSignatures),
        ("\n", NoteError::SignatureLine),
        (LOG_LINE.trim_end(), NoteError::NoSignatures),
        (&format!("\n{LOG_LINE}"), NoteError::SignatureLine),
        (&format!("{LOG_LINE}\n"), NoteError::SignatureLine),
        (&LOG_LINE.repeat(101), NoteError::TooManySignatures),
    ] {
        assert_eq!(NoteSignature::parse_lines(lines), Err(error), "{lines}");
    }
    assert_eq!(NoteSignature::parse_lines(LOG_LINE).unwrap()[0].to_string(), LOG_LINE);
}

proptest! {
    /// No bit of a cosignature can be flipped, but those of the name and the id, which make it another key's.
    #[test]
    fn flipped_bits_are_seen(bit in 0..(8 + 2420) * 8_usize, ml_dsa: bool) {
        let witness = if ml_dsa { Witness::ml_dsa_44("w", 1) } else { Witness::ed25519("w", 1) };
        let line = witness.cosign(SOFA, TIME);
        let mut signature = NoteSignature::parse_lines(&line).unwrap().remove(0);
        let bit = bit % (signature.signature.len() * 8);
        signature.signature[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(witness.key.verify_signature(SOFA, &signature).is_err());
    }
}

/// Made by another implementation, in `vectors/witness/make.py`.
#[test]
fn cosignatures_of_the_vectors_verify() {
    for vector in items(&read("../witness/cosignatures.json")) {
        let (name, body) = (text(vector, "name"), text(vector, "text"));
        let key: CosignerKey = text(vector, "vkey").parse().unwrap();
        assert_eq!(key.to_string(), text(vector, "vkey"), "{name}");
        let time = number(vector, "time");
        assert_eq!(key.message(body, time).unwrap(), bytes(vector, "message"), "{name}");
        let note = format!("{body}\n{}", text(vector, "line"));
        let verified = key.verify(&SignedNote::parse(note.as_bytes()).unwrap());
        assert_eq!(verified.map(|cosignature| cosignature.timestamp), Ok(time), "{name}");
    }
}
