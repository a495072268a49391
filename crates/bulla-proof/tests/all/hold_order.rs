use crate::vectors::{items, number, read, text};
use bulla_proof::hold_order::{HoldAct, HoldNote, HoldNoteError, held_subject, hold_reason};
use bulla_proof::note::NoteError;
use bulla_proof::order::{is_line, order_digest};
use bulla_proof::{Hash, LogId, VerifierKey};
use serde_json::Value;

fn salt(of: &Value, name: &str) -> [u8; 32] {
    Hash::from_base64(text(&of["salts"], name)).unwrap().0
}

/// The vectors, and the key that signed them.
fn vectors() -> (Value, VerifierKey) {
    let vectors = read("events.json");
    let key = text(&vectors, "erasure_vkey").parse().unwrap();
    (vectors, key)
}

#[test]
fn orders_to_hold_and_to_release_say_what_the_vectors_say() {
    let (vectors, key) = vectors();
    for vector in items(&vectors["hold_orders"]) {
        let release = &vector["release"];
        let [held, released] =
            [vector, release].map(|of| HoldNote::open(text(of, "note").as_bytes(), &key).unwrap());
        assert_eq!(
            (held.log.to_string(), held.seconds),
            (text(vector, "log").into(), number(vector, "seconds"))
        );
        let subject = held_subject(&salt(vector, "subject"), text(vector, "subject"));
        assert_eq!((held.act, held.check_hold(held.log)), (HoldAct::Hold(subject), Ok(subject)));
        let digest = order_digest(text(vector, "note"));
        assert_eq!((released.act, released.check_release(held.log)), (HoldAct::Release(digest), Ok(digest)));
        for (of, order) in [(vector, held), (release, released)] {
            let because = hold_reason(&salt(of, "because"), text(of, "by"), text(of, "reason"));
            assert_eq!(order.because, because);
            let other = LogId([9; 16]);
            assert_eq!(order.check_hold(other), Err(HoldNoteError::Log(order.log)));
            assert_eq!(order.check_release(other), Err(HoldNoteError::Log(order.log)));
        }
        assert_eq!(held.check_release(held.log), Err(HoldNoteError::Act));
        assert_eq!(released.check_hold(held.log), Err(HoldNoteError::Act));
        // Another signature makes no other order of it; what is no note is known by all of it.
        assert_eq!(order_digest(&(text(vector, "note").to_owned() + "\u{2014} somebody AAAAAAAA\n")), digest);
        assert_ne!(order_digest("a"), order_digest("b"));
    }
}

#[test]
fn what_is_no_order_to_hold_is_refused_whoever_signed_it() {
    let (vectors, key) = vectors();
    let refused = items(&vectors["hold_orders_refused"]);
    assert!(refused.len() > 9);
    for vector in refused {
        let read = HoldNote::open(text(vector, "note").as_bytes(), &key);
        assert_eq!(read, Err(HoldNoteError::Form), "{}", text(vector, "name"));
    }
    let other = text(&vectors, "vkey").parse::<VerifierKey>().unwrap();
    let other = VerifierKey::new(key.name(), *other.public_key()).unwrap();
    let note = text(&items(&vectors["hold_orders"])[0], "note");
    assert_eq!(HoldNote::open(note.as_bytes(), &other), Err(HoldNoteError::Note(NoteError::NotSigned)));
}

#[test]
fn every_altered_bit_is_seen() {
    let (vectors, key) = vectors();
    let note = text(&items(&vectors["hold_orders"])[0], "note").as_bytes();
    for bit in 0..note.len() * 8 {
        let mut altered = note.to_vec();
        altered[bit / 8] ^= 1 << (bit % 8);
        assert!(HoldNote::open(&altered, &key).is_err(), "bit {bit}");
    }
}

#[test]
fn who_and_why_are_a_line_of_text_each_and_cannot_be_shifted() {
    assert!(is_line("case 4711") && is_line(&"r".repeat(1024)));
    for no_line in ["", "a\nb", "a\0b", &"r".repeat(1025)] {
        assert!(!is_line(no_line), "{no_line}");
    }
    assert_ne!(hold_reason(&[7; 32], "ab", "c"), hold_reason(&[7; 32], "a", "bc"));
}
