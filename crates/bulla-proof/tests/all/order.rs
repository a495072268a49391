use bulla_proof::note::NoteError;
use bulla_proof::order::{
    ErasureError, MAX_ORDERED, MAX_REASON, Order, OrderError, is_ascending, ordered_subject,
};
use bulla_proof::{Hash, LogId, VerifierKey, sha256};
use ed25519_dalek::{Signer as _, SigningKey};
use proptest::prelude::*;

fn keys() -> (SigningKey, VerifierKey) {
    let secret = SigningKey::from_bytes(&[5; 32]);
    let key = VerifierKey::new("example.com/log/erasure", secret.verifying_key().to_bytes()).unwrap();
    (secret, key)
}

fn order(reason: Option<&str>, subjects: usize) -> Order {
    let subjects = (0..subjects).map(|number| sha256(&[&number.to_le_bytes()])).collect();
    Order { log: LogId([9; 16]), seconds: 1_700_000_000, reason: reason.map(str::to_owned), subjects }
}

fn sign(order: &Order) -> Result<String, OrderError> {
    let (secret, key) = keys();
    order.sign(&key, |text| secret.sign(text).to_bytes())
}

fn resign(text: &str) -> Vec<u8> {
    let (secret, key) = keys();
    let signature = secret.sign(text.as_bytes()).to_bytes();
    let note = sign(&order(None, 1)).unwrap();
    let (_, line) = note.split_once("\n\n").unwrap();
    let name = line.rsplit_once(' ').unwrap().0;
    let bytes = [&key.key_id().to_be_bytes()[..], &signature].concat();
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    format!("{text}\n{name} {encoded}\n").into_bytes()
}

/// By Python's hashlib.
#[test]
fn a_commitment_to_a_subject_is_as_specified() {
    let salt = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let expected = "vWuoYuZotZlLHYrvqEPsCf4sIWxqxdvaFJfdvuQqOtw=";
    assert_eq!(ordered_subject(&salt, "user_42").to_base64(), expected);
    assert_ne!(ordered_subject(&[0; 32], "user_42"), ordered_subject(&salt, "user_42"));
}

#[test]
fn an_order_is_read_as_it_was_signed() {
    for order in
        [order(None, 1), order(Some("request of 2026-03-01"), 3), order(Some("Zo\u{eb}"), MAX_ORDERED)]
    {
        let note = sign(&order).unwrap();
        assert_eq!(Order::open(note.as_bytes(), &keys().1), Ok(order));
    }
}

#[test]
fn the_text_is_as_specified() {
    let note = sign(&order(Some("asked"), 1)).unwrap();
    let subject = sha256(&[&0_usize.to_le_bytes()]).to_base64();
    let text = format!(
        "bulla-erasure-order-v1\nlog 09090909090909090909090909090909\ntime 1700000000\nreason asked\nsubject {subject}\n"
    );
    assert!(note.starts_with(&format!("{text}\n\u{2014} example.com/log/erasure ")), "{note}");
    assert_eq!(Order::open(&resign(&text), &keys().1), Ok(order(Some("asked"), 1)));
}

#[test]
fn every_altered_bit_is_seen() {
    let note = sign(&order(Some("asked"), 2)).unwrap().into_bytes();
    for bit in 0..note.len() * 8 {
        let mut altered = note.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        assert!(Order::open(&altered, &keys().1).is_err(), "bit {bit}");
    }
}

#[test]
fn another_key_orders_nothing() {
    let other = SigningKey::from_bytes(&[6; 32]).verifying_key().to_bytes();
    let other = VerifierKey::new("example.com/log/erasure", other).unwrap();
    let note = sign(&order(None, 1)).unwrap();
    assert_eq!(Order::open(note.as_bytes(), &other), Err(OrderError::Note(NoteError::NotSigned)));
}

#[test]
fn limits_hold_for_who_signs_and_who_reads() {
    let long = "r".repeat(MAX_REASON + 1);
    for (order, error) in [
        (order(None, 0), OrderError::Subjects),
        (order(None, MAX_ORDERED + 1), OrderError::Subjects),
        (Order { subjects: vec![Hash([1; 32]); 2], ..order(None, 1) }, OrderError::Subjects),
        (order(Some(""), 1), OrderError::Reason),
        (order(Some(&long), 1), OrderError::Reason),
        (order(Some("a\tb"), 1), OrderError::Reason),
    ] {
        assert_eq!(sign(&order), Err(error));
    }
    let subject = format!("subject {}\n", Hash([1; 32]).to_base64());
    let head = "bulla-erasure-order-v1\nlog 09090909090909090909090909090909\ntime 1\n";
    for (text, error) in [
        (head.to_owned(), OrderError::Subjects),
        (format!("{head}{subject}{subject}"), OrderError::Subjects),
        (format!("{head}reason \n{subject}"), OrderError::Reason),
        (format!("{head}reason {long}\n{subject}"), OrderError::Reason),
        (format!("{head}{subject}reason late\n"), OrderError::Form),
        (head.replace("time 1", "time 01") + &subject, OrderError::Form),
        (head.replace("log 09", "log AB") + &subject, OrderError::Form),
        (head.replace("v1", "v2") + &subject, OrderError::Form),
        (format!("{head}{subject}subject AAAA\n"), OrderError::Form),
    ] {
        assert_eq!(Order::open(&resign(&text), &keys().1), Err(error), "{text}");
    }
}

#[test]
fn an_erasure_is_what_its_order_ordered_or_it_is_refused() {
    let log = LogId([9; 16]);
    let ordered = order(None, 3);
    // All of them, some of them, and one person by two names.
    for (numbers, carried_out) in [(&[3, 5, 8][..], &[0, 1, 2][..]), (&[7], &[1]), (&[7], &[0, 2])] {
        assert_eq!(ordered.check_erasure(log, numbers, carried_out), Ok(()));
    }
    let outside = ErasureError::CarriedOut { ordered: 3 };
    for (numbers, carried_out, error) in [
        (&[][..], &[0][..], ErasureError::Numbers),
        (&[7, 7], &[0, 1], ErasureError::Numbers),
        (&[8, 7], &[0, 1], ErasureError::Numbers),
        (&[7], &[], outside),
        (&[7], &[1, 1], outside),
        (&[7], &[1, 0], outside),
        (&[7], &[3], outside),
        (&[7], &[0, u32::MAX], outside),
        (&[7, 8], &[1], ErasureError::More { erased: 2, carried_out: 1 }),
    ] {
        assert_eq!(
            ordered.check_erasure(log, numbers, carried_out),
            Err(error),
            "{numbers:?} {carried_out:?}"
        );
    }
    let other = LogId([8; 16]);
    assert_eq!(ordered.check_erasure(other, &[7], &[0]), Err(ErasureError::Log(log)));
    assert!(is_ascending(&[1, 2, 3]) && !is_ascending(&[2, 1]) && !is_ascending::<u64>(&[]));
}

proptest! {
    #[test]
    fn no_text_is_two_orders(text in "(bulla-erasure-order-v1\n)?(log [0-9a-f]{32}\n)?(time [0-9]{1,4}\n)?(reason .{0,8}\n)?(subject [A-Za-z0-9+/]{43}=\n){0,2}") {
        if let Ok(order) = Order::parse(&text) {
            let note = sign(&order).unwrap();
            let signed = [&text, "\n"].concat();
            prop_assert!(note.starts_with(&signed));
        }
    }
}
