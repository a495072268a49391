//! Every form is reached, by what it is there for, and is as small as it should be.

use super::super::blob::{self, BlobDecoder, BlobEncoder};
use super::super::input::{Budget, Input};
use super::super::numbers::{self, NumberDecoder, NumberEncoder};
use super::super::strings::{self, StringDecoder, StringEncoder};
use super::super::{Compression, TEXT};
use super::Random;

/// The encoded column, after it has been read back.
fn integers(values: &[u64], level: i32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut blobs = BlobEncoder::new(Compression::new(level).unwrap());
    NumberEncoder::default().encode(values, &mut blobs, &mut out);
    let mut back = Vec::new();
    let mut input = Input { rest: &out };
    NumberDecoder::default()
        .decode(&mut input, values.len(), &mut BlobDecoder::default(), &mut back)
        .unwrap();
    assert_eq!(back, values);
    assert!(input.rest.is_empty());
    out
}

#[test]
fn integers_take_the_form_that_suits_them() {
    let mut random = Random(5);
    let mut column = |count: u64, value: &mut dyn FnMut(u64, &mut Random) -> u64| -> Vec<u64> {
        (0..count).map(|index| value(index, &mut random)).collect()
    };
    let codes = [200, 404, 1 << 60, 3];
    for (name, form, at_most, values) in [
        ("one", numbers::CONSTANT, 2, vec![5]),
        ("all alike", numbers::CONSTANT, 10, vec![1 << 60; 5000]),
        ("uniform", numbers::PACKED, 10_500, column(5000, &mut |_, random| random.below(1 << 16))),
        ("wide", numbers::PACKED, 8200, column(1000, &mut |_, random| random.below(u64::MAX))),
        (
            "multiples",
            numbers::PACKED,
            6500,
            column(5000, &mut |_, random| 7 + random.below(1000) * 1_000_000),
        ),
        ("two", numbers::PACKED, 30, vec![9, 7]),
        ("counting", numbers::DELTA, 12, column(5000, &mut |index, _| (1 << 50) + index)),
        ("counting down", numbers::DELTA, 14, column(5000, &mut |index, _| (1 << 50) - index * 1000)),
        (
            "steps",
            numbers::DELTA,
            1260,
            column(5000, &mut |index, random| (1 << 60) + index * 2000 + random.below(2) * 1000),
        ),
        ("wrapping", numbers::DELTA, 20, column(99, &mut |index, _| (index * 3).wrapping_sub(120))),
        (
            "runs",
            numbers::RUNS,
            250,
            column(5000, &mut |index, _| (index / 50).wrapping_mul(0x9e37_79b9) % 4096),
        ),
        ("few", numbers::DICTIONARY, 1320, column(5000, &mut |_, random| codes[random.below(4) as usize])),
        (
            "skewed",
            numbers::BYTES,
            6200,
            column(5000, &mut |_, random| {
                let bits = random.below(12);
                random.below(2 << bits)
            }),
        ),
        (
            "patterns",
            numbers::DICTIONARY,
            400,
            column(5000, &mut |index, _| index % 97 * 2_654_435_761 % 251),
        ),
    ] {
        let encoded = integers(&values, 1);
        assert_eq!(encoded[0], form, "{name}");
        assert!(encoded.len() <= at_most, "{name}: {} bytes", encoded.len());
        assert_ne!(integers(&values, 0)[0], numbers::BYTES, "{name}");
    }
    assert!(integers(&[], 1).is_empty());
}

#[test]
fn a_jump_widens_its_own_chunk_only() {
    // Two producers' buffers in one block.
    let values: Vec<u64> =
        (0..8192).map(|index| (1 << 60) + index % 4096 * 1000 + (index * 7919 % 8)).collect();
    assert!(integers(&values, 0).len() < 8192 * 5 / 8);
}

#[test]
fn strings_take_the_form_that_suits_them() {
    let mut random = Random(6);
    let few: Vec<Vec<u8>> =
        (0..3000).map(|_| format!("/section/{}", random.below(40)).into_bytes()).collect();
    let unique: Vec<Vec<u8>> =
        (0..3000).map(|_| format!("{:016x}", random.below(u64::MAX)).into_bytes()).collect();
    let pool: Vec<Vec<u8>> =
        (0..20_000).map(|_| format!("address {}", random.below(5000)).into_bytes()).collect();
    let mut path =
        |_: u32| format!("/{}/{:016x}.dll", random.below(1 << 20), random.below(u64::MAX)).into_bytes();
    let paths: Vec<Vec<u8>> = (0..3000).map(&mut path).collect();
    let few_paths = paths[..63].to_vec();
    let long_paths: Vec<Vec<u8>> = paths.chunks(50).map(|paths| paths.concat()).collect();
    // Around them each is a shape by itself.
    let title = |number: u32| (0..24).flat_map(|bit| [b'q', b"-_/."[(number >> bit & 3) as usize]]).collect();
    let middle = (0..6000_u32)
        .map(|at| if (2700..3300).contains(&at) { path(at) } else { title(at.wrapping_mul(2_654_435_769)) });
    let middle: Vec<Vec<u8>> = middle.collect();
    let mut texts = |words: &[&str], length| -> Vec<Vec<u8>> {
        let mut text = || {
            let mut text = std::iter::repeat_with(|| words[random.below(words.len() as u64) as usize]);
            let mut text = text.by_ref().take(length / 2).collect::<Vec<_>>().join(" ").into_bytes();
            text.truncate(length);
            text
        };
        (0..50).map(|_| text()).collect()
    };
    let many = (0..300).map(|index| format!("word{index}")).collect::<Vec<_>>();
    let two_words = texts(&["the", "data"], 4096);
    let long_words = texts(&["pseudonymisation", "accountability", "of"], 3000);
    let some_words = texts(&many.iter().take(60).map(String::as_str).collect::<Vec<_>>(), 2000);
    let too_many_words = texts(&many.iter().map(String::as_str).collect::<Vec<_>>(), 2000);
    for (name, form, values) in [
        ("two words", strings::WORDS, two_words),
        ("long words", strings::WORDS, long_words),
        ("some words", strings::WORDS, some_words),
        ("too many words", strings::PLAIN, too_many_words),
        ("all alike", strings::CONSTANT, vec![b"same".to_vec(); 3000]),
        ("all empty", strings::CONSTANT, vec![Vec::new(); 3000]),
        ("one", strings::CONSTANT, vec![vec![b'x'; 60_000]]),
        ("few", strings::DICTIONARY, few),
        ("pool", strings::DICTIONARY, pool),
        ("unique", strings::PLAIN, unique),
        ("paths", strings::TEMPLATES, paths),
        ("too few paths", strings::PLAIN, few_paths),
        ("long strings of numbers", strings::PLAIN, long_paths),
        ("paths in the middle only", strings::PLAIN, middle),
        ("empty or not", strings::PLAIN, vec![Vec::new(), b"a".to_vec(), b"b".to_vec()]),
    ] {
        let views: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        let mut blobs = BlobEncoder::new(Compression::new(1).unwrap());
        StringEncoder::default().encode(&views, &mut NumberEncoder::default(), &mut blobs, &mut out);
        assert_eq!(out[0], form, "{name}");
        let length = values.iter().map(Vec::len).sum::<usize>();
        let decode = |limit| {
            let (mut pool, mut spans) = (Vec::new(), Vec::new());
            let (mut input, mut budget) = (Input { rest: &out }, Budget::new(limit));
            StringDecoder::default()
                .decode(&mut input, views.len(), TEXT, &mut budget, &mut pool, &mut spans)
                .map(|()| (pool, spans, budget.left))
        };
        let (pool, spans, left) = decode(length).unwrap();
        let back = spans.iter().map(|&packed| strings::Span::unpack(packed));
        let back = back.map(|span| &pool[span.start as usize..][..span.length as usize]);
        assert!(back.eq(views.iter().copied()), "{name}");
        if form == strings::WORDS || form == strings::PLAIN {
            assert_eq!(left, 0, "{name}");
            assert!(length == 0 || decode(length - 1).is_err(), "{name}");
        }
        if form == strings::WORDS {
            assert!(out.len() < length / 4, "{name}: {} of {length}", out.len());
        }
    }
}

#[test]
fn blobs_take_the_codec_that_suits_them() {
    let mut random = Random(7);
    let text: Vec<u8> = (0..30_000)
        .flat_map(|_| *[b"the ", b"data", b" of ", b"one "].get(random.below(4) as usize).unwrap())
        .copied()
        .collect();
    let noise = random.bytes(30_000);
    let long_repeats = noise[..700].repeat(40);
    for (name, level, tag, blob) in [
        ("short", 19, blob::RAW, &[b'a'; 63][..]),
        ("noise", 9, blob::RAW, &noise),
        ("not at all", 0, blob::RAW, &text),
        ("little text", 1, blob::TABLED, &text[..64]),
        ("little text, harder", 19, blob::TABLED, &text[..1024]),
        ("little noise", 1, blob::RAW, &noise[..1024]),
        ("some text", 1, blob::ZSTD, &text[..1025]),
        ("text", 1, blob::ZSTD, &text),
        ("text, harder", 19, blob::ZSTD, &text),
        ("long repeats", 1, blob::ZSTD, &long_repeats),
    ] {
        let mut out = Vec::new();
        BlobEncoder::new(Compression::new(level).unwrap()).encode(blob, &mut out);
        assert_eq!(out[0], tag, "{name}");
        let mut back = vec![0; blob.len()];
        let mut input = Input { rest: &out };
        BlobDecoder::default().decode(&mut input, &mut back).unwrap();
        assert!(back == blob && input.rest.is_empty(), "{name}");
    }
}

/// Those that are read back, and the byte of each that says how large its window is.
fn windows(level: i32, blobs: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = BlobEncoder::new(Compression::new(level).unwrap());
    let mut decoder = BlobDecoder::default();
    let windows = blobs.map(|blob| {
        let mut out = Vec::new();
        encoder.encode(&blob, &mut out);
        let mut back = vec![0; blob.len()];
        decoder.decode(&mut Input { rest: &out }, &mut back).unwrap();
        assert!(back == blob, "level {level}, {} bytes", blob.len());
        let mut stored = Input { rest: &out[1..] };
        stored.varint().unwrap();
        // With the tables the magic number is left out.
        stored.rest[if out[0] == blob::TABLED { 1 } else { 5 }]
    });
    windows.collect()
}

#[test]
fn at_every_level_the_window_of_a_frame_is_the_least_that_has_room_for_its_content() {
    for level in [1, 2, 3, 4, 9, 13, 19] {
        let tabled = windows(level, (64..=1024).map(|length| vec![b'a'; length]));
        assert!(tabled.iter().all(|window| *window == 0), "level {level}");
        let lengths = [1025, 2048, 2049, 131_072, 131_073, (1 << 21) + 1];
        let longer = windows(level, lengths.into_iter().map(|length| vec![b'a'; length]));
        assert_eq!(longer, [8, 8, 16, 56, 64, 96], "level {level}");
    }
    for level in [1, 19] {
        let longest = windows(level, [(8 << 20) + 1, 1 << 25].into_iter().map(|length| vec![b'a'; length]));
        assert_eq!(longest, [112, 120], "level {level}");
    }
}

#[test]
fn runs_and_dictionaries_are_at_most_half_as_long() {
    let mut random = Random(8);
    let wide = |index: u64| (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (distinct, form) in [(100, numbers::DICTIONARY), (280, numbers::PACKED)] {
        // Two in three of 280 occur: a dictionary would be smaller, but is not allowed.
        let values: Vec<u64> = (0..300).map(|_| wide(random.below(distinct))).collect();
        assert_eq!(integers(&values, 0)[0], form);
    }
    for count in 1..70 {
        for distinct in 1..=count {
            integers(&(0..count).map(|index| wide(index % distinct)).collect::<Vec<_>>(), 0);
            integers(&(0..count).map(|index| wide(index * distinct / count)).collect::<Vec<_>>(), 0);
        }
    }
}
