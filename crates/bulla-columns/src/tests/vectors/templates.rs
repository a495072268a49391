//! Vectors of strings in templates.

use super::{CLIENT, PAYLOAD, Parts};
use crate::Compression;
use crate::blob::BlobEncoder;
use crate::tests::row;
use bulla_proof::Entry;
use std::ops::Range;

/// Two payloads, "a-007" and "zz 00ff": three columns, of words, decimal numbers and four hexadecimal digits; two shapes of five
/// bytes; the strings' shapes; a word; the values of each column; a word that is spelled.
const TEMPLATES: [u8; 45] = [
    1, 4, 3, 0, 1, 5, 2, 0, 5, 0, 0, 0, b'-', 0, 1, 0, 0, b' ', 0, 2, 1, 0, 1, 0, 1, 0b10, 1, 0, 1, 0, b'a',
    1, 0, 1, 0, 1, 0b01, 0, 117, 0, 0xff, 1, 0, 2, 0,
];

/// These, with other bytes in place of those at `place`, and what is spelled.
fn templates(place: Range<usize>, other: &[u8]) -> Vec<u8> {
    let mut templates = [&TEMPLATES[..], b"zz"].concat();
    templates.splice(place, other.iter().copied());
    Parts::field(PAYLOAD, &templates)
}

/// A field of two strings in templates without columns: those are the shapes, one of each, as long as each other.
fn shapes(length: u8, text: &[u8]) -> Vec<u8> {
    [&[1, 4, 0, 2, 0, length, 0], text, &[1, 0, 1, 0, 1, 0b10, 0]].concat()
}

/// A name, a plaintext, and its rows.
type Made = (&'static str, Vec<u8>, Vec<Vec<u8>>);
/// A name, a plaintext, how many entries it is to have and its content limit; a column, and its fault.
type Malformed = (&'static str, Vec<u8>, usize, usize, &'static str, &'static str);

/// What every reader must read.
pub(super) fn made_by_hand() -> Vec<Made> {
    let payloads = |payloads: [&str; 2]| {
        let base = Entry { operation: "x", time: Some(5), ..Entry::default() };
        payloads.map(|payload| row(&base.clone().payload(payload))).to_vec()
    };
    vec![
        ("templates", templates(0..0, &[]), payloads(["a-007", "zz 00ff"])),
        ("templates in upper case", templates(5..6, &[21]), payloads(["a-007", "zz 00FF"])),
        (
            "templates with the longest numbers",
            templates(
                37..42,
                &[0, 0xc5, 0xe3, 0xb1, 0xad, 0xfb, 0x95, 0xa6, 0x99, 0x9a, 0x1, 0, 0xff, 0xff, 3],
            ),
            payloads(["a-9999999999999999999", "zz ffff"]),
        ),
        ("templates of nothing", Parts::field(PAYLOAD, &[1, 4, 0, 1, 0, 0, 0, 0, 0]), payloads(["", ""])),
        ("templates without columns", Parts::field(PAYLOAD, &shapes(1, b"xy")), payloads(["x", "y"])),
    ]
}

/// What every reader must refuse. `tight` is what two rows of nothing but a time and an operation count.
pub(super) fn malformed(tight: usize) -> Vec<Malformed> {
    // Two strings of a word of 40,000 bytes, twice.
    let mut long_words = vec![1, 4, 1, 0, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xc0, 0xb8, 2];
    BlobEncoder::new(Compression::FAST).encode(&[b'x'; 40_000], &mut long_words);
    long_words.extend([0, 1]);
    vec![
        ("257 columns", templates(2..3, &[0x81, 2]), 2, 1000, "payload", "Range"),
        ("a column of an unknown kind", templates(5..6, &[34]), 2, 1000, "payload", "Form"),
        ("no shapes", templates(6..7, &[0]), 2, 1000, "payload", "Range"),
        ("257 shapes", templates(6..7, &[0x81, 2]), 2, 1000, "payload", "Range"),
        ("shapes of more than 64 KiB", templates(8..9, &[0x81, 0x80, 2]), 2, 1 << 20, "payload", "TooLarge"),
        (
            "shapes of more than twice the limit",
            templates(8..9, &[101]),
            2,
            tight + 100,
            "payload",
            "TooLarge",
        ),
        ("a shape that ends with half a slot", templates(18..20, &[b'x', 0]), 2, 1000, "payload", "Range"),
        ("a slot of an unknown column", templates(19..20, &[3]), 2, 1000, "payload", "Range"),
        (
            "a string of an unknown shape",
            templates(20..26, &[1, 0, 1, 0, 2, 0b1000]),
            2,
            1000,
            "payload",
            "Range",
        ),
        (
            "a shape that does not occur",
            Parts::field(PAYLOAD, &[1, 4, 0, 2, 0, 1, 0, b'x', b'y', 0, 0, 0]),
            2,
            1000,
            "payload",
            "Range",
        ),
        ("a column without a slot", templates(19..20, &[1]), 2, 1000, "payload", "Range"),
        (
            "more slots than half the strings' bytes",
            Parts::field(PAYLOAD, &[1, 4, 1, 1, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]),
            2,
            tight + 2 + 4,
            "payload",
            "TooLarge",
        ),
        ("more words than slots for them", templates(26..27, &[3]), 2, 1000, "payload", "Range"),
        ("an empty word of templates", templates(28..31, &[0]), 2, 1000, "payload", "Range"),
        ("words of more than the limit", templates(28..29, &[101]), 2, tight + 100, "payload", "TooLarge"),
        (
            "a word past the dictionary",
            templates(31..37, &[1, 0, 1, 0, 2, 0b0010]),
            2,
            1000,
            "payload",
            "Range",
        ),
        ("a word that only the dictionary has", templates(31..37, &[0, 0]), 2, 1000, "payload", "Range"),
        (
            "numbers of words wider than those are",
            templates(31..37, &[5, 0, 1, 5]),
            2,
            1000,
            "payload",
            "Form",
        ),
        (
            "twenty digits",
            templates(38..39, &[0xc6, 0xe3, 0xb1, 0xad, 0xfb, 0x95, 0xa6, 0x99, 0x9a, 0x1]),
            2,
            1000,
            "payload",
            "Range",
        ),
        ("five digits for four", templates(40..42, &[0x80, 0x80, 4]), 2, 1000, "payload", "Range"),
        ("an empty word that is spelled", templates(43..47, &[0]), 2, 1000, "payload", "Range"),
        (
            "spelled words of more than the limit",
            templates(43..44, &[101]),
            2,
            tight + 100,
            "payload",
            "TooLarge",
        ),
        ("strings of more than the limit", templates(0..0, &[]), 2, tight + 2 + 10, "payload", "TooLarge"),
        (
            "an operation of an empty shape",
            Parts::with(|parts| parts.operation = vec![4, 0, 1, 0, 0, 0, 0, 0]),
            2,
            1000,
            "operation",
            "Range",
        ),
        ("a word repeated beyond 64 KiB", Parts::field(CLIENT, &long_words), 2, 1 << 20, "client", "Range"),
        (
            "a character cut in two by shapes",
            Parts::field(CLIENT, &shapes(1, &[0xc3, 0xa4])),
            2,
            1000,
            "client",
            "NotText",
        ),
    ]
}
