use bulla_proof::note::{MAX_NOTE, MAX_SIGNATURES};
use bulla_proof::{NoteError, SignedNote, VerifierKey};
use proptest::prelude::*;

/// The example of golang.org/x/mod/sumdb/note.
const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const TEXT: &str =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const SIGNATURE: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
/// A line of a key that nobody knows.
const STRANGER: &str = "\u{2014} stranger AAAAAAE=\n";

#[test]
fn the_example_of_go_verifies() {
    let note = peters_note();
    let note = SignedNote::parse(note.as_bytes()).unwrap();
    assert_eq!(note.text, TEXT);
    assert_eq!(note.signatures.len(), 1);
    assert_eq!((note.signatures[0].name, note.signatures[0].key_id), ("PeterNeumann", 0xc74f_20a3));
    assert_eq!(note.signatures[0].signature.len(), 64);
    assert_eq!(note.verify(&peter()), Ok(()));
}

#[test]
fn a_key_is_read_as_it_is_shown() {
    let key = peter();
    assert_eq!((key.name(), key.key_id()), ("PeterNeumann", 0xc74f_20a3));
    assert_eq!(key.to_string(), PETER);
    assert_eq!(VerifierKey::new("PeterNeumann", *key.public_key()), Ok(key));
}

#[test]
fn a_key_has_one_spelling() {
    for (text, error) in [
        ("", NoteError::VerifierKey),
        ("PeterNeumann", NoteError::VerifierKey),
        ("PeterNeumann+c74f20a3", NoteError::VerifierKey),
        ("PeterNeumann+c74f20a3+", NoteError::VerifierKey),
        ("PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", NoteError::VerifierKey),
        ("PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", NoteError::VerifierKey),
        ("PeterNeumann+74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", NoteError::VerifierKey),
        ("PeterNeumanm+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", NoteError::VerifierKey),
        ("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n", NoteError::VerifierKey),
        ("PeterNeumann+c74f20a3+AhpcZQcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", NoteError::VerifierKey),
        ("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWAA==", NoteError::VerifierKey),
        ("+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", NoteError::Name),
        ("Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", NoteError::Name),
    ] {
        assert_eq!(text.parse::<VerifierKey>(), Err(error), "{text}");
    }
}

#[test]
fn names_and_keys_are_checked() {
    let key = *peter().public_key();
    for name in ["", "a b", "a+b", "a\nb", "a\u{a0}b", "a\u{2003}b", "a\u{85}b", "a\0b", "a\x7fb"] {
        assert_eq!(VerifierKey::new(name, key), Err(NoteError::Name), "{name:?}");
    }
    assert!(VerifierKey::new("log.example/\u{fc}ber", key).is_ok());
    let (identity, off_curve) = ([&[1][..], &[0; 31]].concat(), [&[2][..], &[0; 31]].concat());
    for key in [[0; 32], identity.try_into().unwrap(), off_curve.try_into().unwrap()] {
        assert_eq!(VerifierKey::new("name", key), Err(NoteError::PublicKey), "{key:?}");
    }
}

#[test]
fn other_forms_are_refused() {
    let good = peters_note();
    let line = SIGNATURE.trim_end();
    let refused = [
        (String::new(), NoteError::NoSignatures),
        (TEXT.to_owned(), NoteError::NoSignatures),
        (format!("{TEXT}\n"), NoteError::NoSignatures),
        (format!("{TEXT}{SIGNATURE}"), NoteError::NoSignatures),
        (good.trim_end().to_owned(), NoteError::NoSignatures),
        (format!("\n{SIGNATURE}"), NoteError::NoSignatures),
        (format!("{good}\n"), NoteError::NoSignatures),
        (format!("{good}\nmore\n"), NoteError::SignatureLine),
        (good.replace('\u{2014}', "-"), NoteError::SignatureLine),
        (good.replace('\u{2014}', " \u{2014}"), NoteError::SignatureLine),
        (good.replace("\u{2014} ", "\u{2014}"), NoteError::SignatureLine),
        (good.replace("\u{2014} PeterNeumann", "\u{2014} "), NoteError::SignatureLine),
        (good.replace("\u{2014} PeterNeumann", "\u{2014} Peter+Neumann"), NoteError::SignatureLine),
        (good.replace("\u{2014} PeterNeumann", "\u{2014} Peter Neumann"), NoteError::SignatureLine),
        (good.replace("\u{2014} PeterNeumann", "\u{2014} Peter\u{a0}Neumann"), NoteError::SignatureLine),
        (good.replace("AM=\n", "AM\n"), NoteError::SignatureLine),
        (good.replace("AM=\n", "AN=\n"), NoteError::NoSignatures),
        (good.replace("AM=\n", "AM= \n"), NoteError::SignatureLine),
        (format!("{TEXT}\n\u{2014} short AAAAAA==\n"), NoteError::SignatureLine),
        (format!("{TEXT}\n{line}\u{2028}\n"), NoteError::SignatureLine),
        (good.replace('\n', "\r\n"), NoteError::NotText),
        (good.replacen("If", "I\0f", 1), NoteError::NotText),
        (format!("{TEXT}\n{SIGNATURE}{}", STRANGER.repeat(MAX_SIGNATURES)), NoteError::TooManySignatures),
        (format!("{}{good}", "\n".repeat(MAX_NOTE)), NoteError::TooLong),
    ];
    for (note, error) in refused {
        assert_eq!(SignedNote::parse(note.as_bytes()), Err(error), "{:?}", &note[..note.len().min(300)]);
        assert!(!error.to_string().is_empty());
    }
    assert_eq!(SignedNote::parse(b"\xff\n\n"), Err(NoteError::NotText));
}

#[test]
fn the_text_goes_up_to_the_last_blank_line() {
    let note = format!("first\n\nsecond\n\n{STRANGER}");
    assert_eq!(SignedNote::parse(note.as_bytes()).map(|note| note.text), Ok("first\n\nsecond\n"));
}

#[test]
fn signatures_of_others_change_nothing() {
    let key = peter();
    let verify = |lines: &str| SignedNote::parse(format!("{TEXT}\n{lines}").as_bytes()).unwrap().verify(&key);
    assert_eq!(verify(&format!("{STRANGER}{SIGNATURE}{STRANGER}")), Ok(()));
    assert_eq!(verify(&format!("{}{SIGNATURE}", STRANGER.repeat(MAX_SIGNATURES - 1))), Ok(()));
    let same_name = STRANGER.replace("stranger", "PeterNeumann");
    assert_eq!(verify(&format!("{same_name}{SIGNATURE}")), Ok(()));
    let same_id = SIGNATURE.replace("PeterNeumann", "stranger");
    assert_eq!(verify(&format!("{same_id}{SIGNATURE}")), Ok(()));

    // Base64 that ends in set bits, which Go's reader takes too, is nobody's signature and in nobody's way.
    let loose = "\u{2014} stranger AAAAAAB=\n";
    assert_eq!(verify(&format!("{loose}{SIGNATURE}{loose}")), Ok(()));
    let loose = SIGNATURE.replace("AM=\n", "AN=\n");
    assert_eq!(verify(&format!("{STRANGER}{loose}")), Err(NoteError::NotSigned));
    assert_eq!(verify(&format!("{loose}{SIGNATURE}")), Ok(()));

    assert_eq!(verify(STRANGER), Err(NoteError::NotSigned));
    assert_eq!(verify(&same_id), Err(NoteError::NotSigned));
    assert_eq!(verify(&same_name), Err(NoteError::NotSigned));
    assert_eq!(verify(&format!("{SIGNATURE}{SIGNATURE}")), Err(NoteError::SignedTwice));
    let short = "\u{2014} PeterNeumann x08gowAA\n";
    assert_eq!(verify(short), Err(NoteError::BadSignature));
    assert_eq!(verify(&format!("{SIGNATURE}{short}")), Err(NoteError::SignedTwice));
}

/// No bit of a signed note can be flipped: each flip is refused by its form or by the signature.
#[test]
fn every_flipped_bit_is_seen() {
    let note = peters_note().into_bytes();
    let key = peter();
    for bit in 0..note.len() * 8 {
        let mut damaged = note.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(SignedNote::parse(&damaged).and_then(|note| note.verify(&key)).is_err(), "bit {bit}");
    }
}

proptest! {
    #[test]
    fn no_note_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "(\\PC|\n|\u{2014} a AAAAAAE=\n){0,40}") {
        for note in [&bytes[..], text.as_bytes()] {
            if let Ok(note) = SignedNote::parse(note) {
                prop_assert!(note.text.ends_with('\n') && !note.signatures.is_empty());
                prop_assert!(note.verify(&peter()).is_err());
            }
        }
    }

    #[test]
    fn no_key_panics(text in "\\PC{0,60}|[a-z.]{1,9}\\+[0-9a-f]{8}\\+A[A-Za-z0-9+/]{43}") {
        if let Ok(key) = text.parse::<VerifierKey>() {
            prop_assert_eq!(key.to_string(), text);
        }
    }
}

fn peter() -> VerifierKey {
    PETER.parse().unwrap()
}

fn peters_note() -> String {
    format!("{TEXT}\n{SIGNATURE}")
}
