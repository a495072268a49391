//! The form of keys that are no text.

use crate::subject::form::{cut, decode, digest, encode};
use bulla_proof::entry::MAX_STRING;
use proptest::prelude::*;
use std::borrow::Cow;

const KEY: [u8; 32] = [7; 32];

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn text_stands_as_it_is_and_every_other_byte_says_itself() {
    for (key, expected) in [
        (&b""[..], ""),
        (b"user:42", "user:42"),
        ("jürgen:\u{1f600}\n\0".as_bytes(), "jürgen:\u{1f600}\n\0"),
        (b"100%", "100%25"),
        (b"%FF", "%25FF"),
        (b"%~", "%25~"),
        (b"\xff", "%FF"),
        (b"user:\xc3\x28", "user:%C3("),
        (b"\xe2\x82", "%E2%82"),
        (b"a\x80b\xf0\x9f\x98", "a%80b%F0%9F%98"),
        (b"\xed\xa0\x80", "%ED%A0%80"),
        (b"\xc0\xaf", "%C0%AF"),
    ] {
        assert_eq!(encode(key, &KEY), expected);
        assert_eq!(decode(expected).as_deref(), Some(key), "{expected}");
    }
    assert!(matches!(encode(b"user:42", &KEY), Cow::Borrowed(_)), "most keys are not copied");
}

#[test]
fn a_text_that_no_key_has_as_its_form_is_the_form_of_none() {
    for text in ["%", "%2", "100%", "%41", "%ff", "%C3%A9", "%+F", "%zz", "a%~3~00", "%c3("] {
        assert_eq!(decode(text), None, "{text}");
    }
}

#[test]
fn what_is_too_long_is_cut_and_says_its_length_and_digest() {
    let longest = vec![b'a'; MAX_STRING];
    assert_eq!(encode(&longest, &KEY).len(), MAX_STRING, "the longest stands as it is");
    let long = vec![b'a'; MAX_STRING + 1];
    let form = encode(&long, &KEY);
    let end = format!("%~65537~{}", hexadecimal(&digest(&KEY, &long)));
    assert_eq!(form, format!("{}{end}", "a".repeat(MAX_STRING - end.len())));
    assert_eq!(decode(&form), None);
    let other = [&long[..MAX_STRING], b"b"].concat();
    assert_ne!(encode(&other, &KEY), form, "the digest tells what is not shown");
    assert_ne!(encode(&long, &[8; 32]), form, "and only to whoever has the key");
}

/// RFC 4231, test case 2, with its key filled up with zeros, which HMAC does as well.
#[test]
fn the_digest_is_hmac_sha_256() {
    let mut key = [0; 32];
    key[..4].copy_from_slice(b"Jefe");
    let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(hexadecimal(&digest(&key, b"what do ya want for nothing?")), expected);
}

#[test]
fn a_cut_splits_no_character_and_no_group() {
    for unit in ["ä", "\u{20ac}", "\u{1f600}", "%", "a%", "ab%"] {
        for shift in 0..4 {
            let key = format!("{}{}", "x".repeat(shift), unit.repeat(MAX_STRING));
            let form = encode(key.as_bytes(), &KEY);
            let (shown, end) = form.split_once("%~").unwrap();
            assert!(form.len() <= MAX_STRING && form.len() > MAX_STRING - 4, "{unit} {shift}");
            assert!(end.starts_with(&format!("{}~", key.len())));
            assert!(key.as_bytes().starts_with(&decode(shown).unwrap()), "{unit} {shift}");
        }
    }
}

#[test]
fn of_a_beginning_that_ends_within_a_character_the_character_is_not_shown() {
    for end in ["\u{20ac}", "\u{1f600}", "ä"] {
        for kept in 1..end.len() {
            let beginning = [b"user:", &end.as_bytes()[..kept]].concat();
            let form = cut(&beginning, 1 << 30, &[0xab; 32]);
            assert_eq!(form, format!("user:%~1073741824~{}", "ab".repeat(32)));
        }
    }
    let form = cut(b"user:\xff\x80", 9, &[0; 32]);
    assert_eq!(form, format!("user:%FF%80%~9~{}", "00".repeat(32)), "bytes of no character are");
}

proptest! {
    /// What comes out is text, and all of the key comes back.
    #[test]
    fn every_key_comes_back_from_its_form(
        key in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..64),
            proptest::collection::vec(
                prop_oneof![Just(b'%'), Just(b'F'), Just(0xc3), Just(0xa4), Just(b'~')],
                0..12,
            ),
        ],
    ) {
        let form = encode(&key, &KEY);
        prop_assert_eq!(decode(&form), Some(key.clone()));
        prop_assert!(!form.contains("%~"));
        prop_assert!(std::str::from_utf8(&key).is_err() || key.contains(&b'%') || form.as_bytes() == key);
    }

    /// So two keys never have one form: a text is the form of one key at most.
    #[test]
    fn a_text_is_the_form_of_what_it_says_or_of_nothing(text in "[%0-9A-Fa-fxé~]{0,12}") {
        if let Some(key) = decode(&text) {
            prop_assert_eq!(encode(&key, &KEY), text);
        }
    }
}
