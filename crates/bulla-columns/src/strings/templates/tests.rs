//! What is split is what was there, whatever it is; and what is worth it becomes shapes.

use super::super::super::blob::{BlobDecoder, BlobEncoder};
use super::super::super::input::{Budget, Input};
use super::super::super::numbers::{NumberDecoder, NumberEncoder};
use super::super::super::table::MAX_DISTINCT;
use super::super::super::{Compression, TEXT};
use super::super::pool::{Span, StringLimits};
use super::scan::{MOST_TOKENS, Scan};
use super::split::Split;
use super::write::Templates;
use super::{MOST, SLOT, Source, TemplateDecoder};
use proptest::collection::vec;
use proptest::prelude::*;

/// The column in templates, whether that is smaller or not, after it has been read back; `None` where it cannot be.
fn templates<T: AsRef<[u8]>>(strings: &[T], level: i32) -> Option<Vec<u8>> {
    let strings: Vec<&[u8]> = strings.iter().map(AsRef::as_ref).collect();
    let mut blobs = BlobEncoder::new(Compression::new(level).unwrap());
    let mut out = Vec::new();
    let whole =
        Templates::default().encode_all(&strings, &mut NumberEncoder::default(), &mut blobs, &mut out);
    whole?;
    assert_eq!(out[0], super::super::TEMPLATES);
    assert_eq!(read(&out[1..], strings.len()), strings);
    Some(out)
}

fn read(column: &[u8], count: usize) -> Vec<Vec<u8>> {
    let limits = StringLimits { text: false, ..TEXT };
    let (mut pool, mut spans) = (b"before".to_vec(), Vec::new());
    let mut input = Input { rest: column };
    let mut source = Source {
        input: &mut input,
        numbers: &mut NumberDecoder::default(),
        blobs: &mut BlobDecoder::default(),
    };
    let mut budget = Budget::new(1 << 24);
    TemplateDecoder::default()
        .decode(&mut source, count, limits, &mut budget, &mut pool, &mut spans)
        .unwrap();
    assert!(input.rest.is_empty());
    assert_eq!((1 << 24) - budget.left, pool.len() - 6, "the strings' bytes are paid for");
    let spans = spans.into_iter().map(Span::unpack);
    spans.map(|span| pool[span.start as usize..][..span.length as usize].to_vec()).collect()
}

/// How a string is cut: its shape, with `w` for a word, `d` for decimal, `x` and the digits for hexadecimal.
fn shape(string: &str) -> String {
    let mut scan = Scan::default();
    scan.cut(string.as_bytes());
    let mut told = String::new();
    let mut bytes = scan.shape.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            SLOT => match *bytes.next().unwrap() {
                0 => told.push_str("{w}"),
                1 => told.push_str("{d}"),
                kind if kind < 18 => told.push_str(&format!("{{x{}}}", kind - 1)),
                kind => told.push_str(&format!("{{X{}}}", kind - 17)),
            },
            byte => told.push(char::from(byte)),
        }
    }
    told
}

#[test]
fn strings_are_cut_where_people_would() {
    for (string, expected) in [
        ("", ""),
        ("/", "/"),
        ("order/2024/000123", "{w}/{d}/{d}"),
        ("user:81723:session:9f3c0a", "{w}:{d}:{w}:{w}"),
        ("user:81723:session:9f3c0a11", "{w}:{d}:{w}:{x8}"),
        ("user:81723:session:9F3C0A11", "{w}:{d}:{w}:{X8}"),
        ("9f3C0a11", "{w}"),
        ("img0012.png", "{w}{d}.{w}"),
        ("2025-11-03T08:15:00Z", "{d}-{d}-{d}{w}{d}:{d}:{d}{w}"),
        ("/3f2504e0-4f89-11d3-9a0c-0305e82c3301/", "/{x8}-{x4}-{x4}-{x4}-{x12}/"),
        ("3F2504E0-4F89-11D3-9A0C-0305E82C3301", "{X8}-{X4}-{X4}-{X4}-{X12}"),
        ("00000000-0000-0000-0000-00000000000a", "{x8}-{x4}-{x4}-{x4}-{x12}"),
        ("00000000-0000-0000-0000-000000000000", "{d}-{d}-{d}-{d}-{d}"),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301a", "{x8}-{d}{w}{d}-{d}{w}{d}-{w}-{x13}"),
        ("3f2504e0-4f89-11d3-9a0c_0305e82c3301", "{x8}-{d}{w}{d}-{d}{w}{d}-{w}_{x12}"),
        ("0123456789abcdef0123456789abcdef01234567", "{x16}{x16}{x8}"),
        ("9999999999999999999", "{d}"),
        ("10000000000000000000", "{w}"),
        ("a1b2", "{w}"),
        ("a1b", "{w}{d}{w}"),
        ("löschen", "{w}"),
        ("deadbeef", "{w}"),
        ("a\0b", "{w}"),
    ] {
        assert_eq!(shape(string), expected, "{string}");
    }
    let many = "1/".repeat(MOST_TOKENS);
    assert_eq!(shape(&many), "{d}/".repeat(MOST_TOKENS));
    assert_eq!(shape(&format!("{many}1")), "{w}", "too many slots");
    assert_eq!(shape(&"/".repeat(512)).len(), 512);
    assert_eq!(shape(&"/".repeat(513)), "{w}", "too long a shape");
}

#[test]
fn slots_of_one_kind_and_place_share_a_column() {
    let mut split = Split::default();
    let strings: [&[u8]; 5] = [b"/a/b/1", b"/a/b/c/2", b"/a-b-c-d", b"/a-b-c", b"/a-b"];
    assert!(split.split(&strings, 1000));
    // Folders: first, second, third. Numbers at the end. Words of a title: first, second, third, last.
    let expected: [&[u8]; 5] = [&[0, 1, 2], &[0, 1, 3, 2], &[4, 5, 6, 7], &[4, 5, 7], &[4, 7]];
    let found = split.indexes.iter().map(|&shape| split.shapes.slots(u8::try_from(shape).unwrap()));
    assert!(found.eq(expected));
    assert_eq!(split.columns[2].values, [2, 3].map(|digit| digit - 1));
}

#[test]
fn when_there_are_too_many_shapes_the_others_are_taken_whole() {
    let strings = (0..600).map(|index: usize| {
        let title = (0..10).map(|bit| if index >> bit & 1 == 0 { '-' } else { '_' });
        let title = title.flat_map(|mark| ['w', 'o', 'r', mark]).collect::<String>();
        // Most of the bytes are of one shape.
        if index.is_multiple_of(2) {
            format!("a long folder of theirs/a longer file name {index}")
        } else {
            title
        }
    });
    let mut strings = strings.collect::<Vec<_>>();
    strings.push(String::new());
    let bytes: Vec<&[u8]> = strings.iter().map(String::as_bytes).collect();
    let mut split = Split::default();
    assert!(split.split(&bytes, 1 << 20));
    assert_eq!(split.shapes.lengths.len(), MOST);
    templates(&strings, 0).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn what_is_split_comes_back(
        strings in vec("([a-c]{1,3}[/:_-]){0,6}([0-9]{0,21}|[0-9a-f]{0,40}|[0-9A-F]{8,9}|\\PC{0,3})(\\.[a-z]{3})?", 1..80),
        level in 0..3,
    ) {
        templates(&strings, level);
    }

    #[test]
    fn bytes_come_back(strings in vec(vec(prop_oneof![Just(0), Just(1), Just(b'-'), any::<u8>()], 0..12), 1..80)) {
        templates(&strings, 0);
    }
}

#[test]
fn words_are_spelled_where_they_are_met_once() {
    let strings =
        (0..80).map(|index| format!("{}/{}", ["red", "green"][index / 2 % 2], "z".repeat(index + 1)));
    let mut split = Split::default();
    let strings = strings.collect::<Vec<_>>();
    let bytes: Vec<&[u8]> = strings.iter().map(String::as_bytes).collect();
    assert!(split.split(&bytes, 1 << 20));
    assert_eq!(split.words.occurrences[..4], [40, 1, 1, 40]);
    assert_eq!(split.words.occurrences.len(), 82);
}

#[test]
fn a_dictionary_is_no_larger_than_a_reader_takes() {
    // Each word in two strings, one behind the other, so that it is worth a place in the dictionary.
    for count in [MAX_DISTINCT, MAX_DISTINCT + 5000] {
        let word = |mut number: usize| {
            let letter = |_| {
                let letter = b'a' + (number % 26).to_le_bytes()[0];
                number /= 26;
                char::from(letter)
            };
            (0..6).map(letter).collect::<String>()
        };
        let strings = (0..2 * count).map(|index| format!("session/{}", word(index / 2))).collect::<Vec<_>>();
        templates(&strings, 0).unwrap();
    }
}

#[test]
fn words_that_are_nearly_all_new_are_not_looked_up() {
    let new = |index: usize| {
        let letter = |at: u32| b'a' + ((index + 1) * 7919 / 3_usize.pow(at) % 26).to_le_bytes()[0];
        (0..10).map(letter).map(char::from).collect::<String>()
    };
    let strings = (0..3000).map(|index| format!("http://{}.{}", new(index), ["com", "org"][index % 2]));
    let strings = strings.collect::<Vec<_>>();
    let bytes: Vec<&[u8]> = strings.iter().map(String::as_bytes).collect();
    let mut split = Split::default();
    assert!(split.split(&bytes, 1 << 20));
    assert!((1000..2000).contains(&split.words.occurrences.len()), "{}", split.words.occurrences.len());
    templates(&strings, 0).unwrap();
}
