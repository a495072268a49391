use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::io::{self, Read, Write};

#[global_allocator]
static ALLOCATOR: bulla_testkit::allocator::Counting = bulla_testkit::allocator::Counting;

const CSV: FramingKind = FramingKind::Csv { delimiter: b',' };

fn joined(rule: fn(Regex) -> MultilineRule, pattern: &str, lines: usize, bytes: usize) -> FramingKind {
    FramingKind::Multiline(Multiline { rule: rule(Regex::new(pattern).unwrap()), lines, bytes })
}

/// What becomes of bytes of which `step` more are shown at a time: each record, or the reason.
fn cut(kind: &FramingKind, limits: Limits, bytes: &[u8], step: usize) -> Vec<Result<String, String>> {
    let mut framing = Framing::new(kind.clone(), limits);
    let (mut used, mut shown, mut all) = (0, 0, Vec::new());
    loop {
        let ends = shown == bytes.len();
        let unread = &bytes[used..shown];
        let consumed = match framing.next(unread, ends) {
            Next::More if ends => break,
            Next::More => {
                shown = (shown + step).min(bytes.len());
                0
            }
            Next::Passed { consumed } => {
                assert!(consumed > 0, "it goes on");
                consumed
            }
            Next::Record { consumed, content } => {
                assert!(content.end <= consumed && consumed > 0);
                all.push(Ok(String::from_utf8_lossy(&unread[content]).into_owned()));
                consumed
            }
            Next::Refused { consumed, reason } => {
                all.push(Err(reason.to_string()));
                consumed
            }
        };
        used += consumed;
        assert!(used <= shown);
    }
    assert_eq!(used, bytes.len(), "what is consumed is all there was");
    assert_eq!(framing.next(b"", true), Next::More, "nothing is left");
    all
}

/// The same, however the bytes arrive.
#[track_caller]
fn becomes(kind: &FramingKind, bytes: &[u8], expected: &[Result<&str, &str>]) {
    let limits = Limits { bytes: 20, lines: 3 };
    let expected = expected.iter().map(|record| record.map(str::to_owned).map_err(str::to_owned));
    let expected = expected.collect::<Vec<_>>();
    for step in [1, 2, 3, 7, bytes.len().max(1)] {
        assert_eq!(cut(kind, limits, bytes, step), expected, "{step} at a time");
    }
}

const LONG_LINE: &str = "the line is longer than 20 bytes";
const LONG_RECORD: &str = "the record is longer than 20 bytes";

#[test]
fn lines_end_with_their_line_end_or_the_input() {
    let kind = FramingKind::Lines;
    becomes(&kind, b"", &[]);
    becomes(&kind, b"a\r\n\nb", &[Ok("a\r"), Ok(""), Ok("b")]);
    becomes(
        &kind,
        b"12345678901234567890\n123456789012345678901\na\n",
        &[Ok("12345678901234567890"), Err(LONG_LINE), Ok("a")],
    );
    becomes(&kind, &[b'a'; 50], &[Err(LONG_LINE)]);
}

#[test]
fn a_message_may_have_its_length_before_it() {
    let kind = FramingKind::OctetCounted;
    becomes(
        &kind,
        b"7 <13>a\nb6 <13>c\n8 <1>de\nf\n<13>x\r\n3 4\n",
        &[Ok("<13>a\nb"), Ok("<13>c"), Ok("<1>de\nf"), Ok("<13>x\r"), Ok("3 4")],
    );
    // A count that is too long to be one, a line that only looks like one, and one of too much.
    becomes(
        &kind,
        b"12345678 <x\n2026-1\n21 <34567890123456789012<13>y",
        &[Ok("12345678 <x"), Ok("2026-1"), Err(LONG_RECORD), Ok("<13>y")],
    );
    let short = "the input ends before the bytes that the message's length counts";
    becomes(&kind, b"9 <13>x", &[Err(short)]);
    becomes(&kind, b"9", &[Ok("9")]);
    becomes(&kind, b"25 <13>x", &[Err(LONG_RECORD)]);
}

#[test]
fn a_column_between_quotes_may_hold_line_ends() {
    becomes(&CSV, b"a,\"b\n\"\"c\",d\r\ne\n\n", &[Ok("a,\"b\n\"\"c\",d\r"), Ok("e"), Ok("")]);
    // A quote inside of a column is one that stands there.
    becomes(&CSV, b"a\"b\nc,\"d\"e\"\n", &[Ok("a\"b"), Ok("c,\"d\"e\"")]);
    becomes(&CSV, b"a\n\"b", &[Ok("a"), Err("the input ends inside of a column between quotes")]);
    // One stray quote costs one record, whatever follows.
    becomes(&CSV, b"\"a\nb\nc\nd\n", &[Err("a column between quotes goes on over 3 lines"), Ok("d")]);
    becomes(&CSV, b"\"a\n34567890123456789012345\nd\n", &[Err(LONG_RECORD), Ok("d")]);
    becomes(&FramingKind::Csv { delimiter: b';' }, b"a;\"b\n\";c\n", &[Ok("a;\"b\n\";c")]);
}

#[test]
fn an_entry_of_the_export_format_ends_with_an_empty_line() {
    let kind = FramingKind::Export;
    becomes(&kind, b"A=1\nB=2\n\n\n\nC=3\n", &[Ok("A=1\nB=2\n"), Ok("C=3\n")]);
    becomes(
        &kind,
        b"A\n\x03\0\0\0\0\0\0\0x\n\n\nB=\n\nC=3",
        &[Ok("A\n\u{3}\0\0\0\0\0\0\0x\n\n\nB=\n"), Ok("C=3")],
    );
    becomes(&kind, b"A=1\nB", &[Err("the input ends inside of a field")]);
    becomes(&kind, b"A\n\x03\0\0\0\0\0\0\0x", &[Err("the input ends inside of a field")]);
    // Damage costs the entry that it is in.
    let wrong = "a field does not end where its length says";
    becomes(&kind, b"A\n\x01\0\0\0\0\0\0\0xy\n\nB=1\n\n", &[Err(wrong), Ok("B=1\n")]);
    let length =
        "a line has no `=`, and the eight bytes behind it are no length within the 20 bytes of a record";
    becomes(&kind, b"A\n\xff\xff\xff\xff\xff\xff\xff\xffx\n\nB=1\n\n", &[Err(length), Ok("B=1\n")]);
    // Lines of anything else are not told to be too long.
    becomes(&kind, b"hello\nworld wide web\n\nB=1\n", &[Err(length), Ok("B=1\n")]);
    let no_field = "a line is neither NAME=text nor the name of a field";
    becomes(&kind, b"hello you\nworld\n\nB=1\n", &[Err(no_field), Ok("B=1\n")]);
    becomes(&kind, b"A=1\nhello you", &[Err(no_field)]);
    becomes(&kind, b"A=12345678901234567890\nC=\n\nB=1\n\n", &[Err(LONG_RECORD), Ok("B=1\n")]);
    becomes(&kind, b"A=1\nB=12345678901234567890\n\nB=1", &[Err(LONG_RECORD), Ok("B=1")]);
}

#[test]
fn lines_are_joined_by_a_rule() {
    let begins = joined(MultilineRule::Begins, r"^\d", 3, 20);
    becomes(&begins, b"1 a\n at b\r\n at c\r\n2\n", &[Ok("1 a\n at b\r\n at c\r"), Ok("2")]);
    becomes(&begins, b" x\n1\n\n", &[Ok(" x"), Ok("1\n")]);
    let continues = joined(MultilineRule::Continues, r"^\s", 3, 20);
    becomes(&continues, b"a\n b\nc\nd", &[Ok("a\n b"), Ok("c"), Ok("d")]);
    // Limits cut, and lose nothing.
    becomes(&continues, b"a\n b\n c\n d\n e\n", &[Ok("a\n b\n c"), Ok(" d\n e")]);
    becomes(&continues, b"a\n 345678901234567890\n c\n", &[Ok("a"), Ok(" 345678901234567890"), Ok(" c")]);
    becomes(&continues, b"a\n 3456789012345678901234567\n c\n", &[Ok("a"), Err(LONG_LINE), Ok(" c")]);
}

fn kinds() -> Vec<FramingKind> {
    vec![
        FramingKind::Lines,
        FramingKind::OctetCounted,
        CSV,
        FramingKind::Export,
        joined(MultilineRule::Begins, "^a", 3, 9),
        joined(MultilineRule::Continues, "^a", 3, 30),
    ]
}

/// Bytes that framing is about, and a few others.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()), 3 => Just(b"\"".to_vec()), 2 => Just(b",".to_vec()), 4 => Just(b"a".to_vec()),
        2 => Just(b"=".to_vec()), 1 => Just(b"\r".to_vec()), 2 => Just(b" ".to_vec()), 2 => Just(b"12 <".to_vec()),
        1 => Just(b"3 <".to_vec()), 1 => Just(b"A\n\x02\0\0\0\0\0\0\0".to_vec()), 1 => Just(b"\x00".to_vec()),
        1 => vec(any::<u8>(), 0..3), 1 => Just(b"b".repeat(9)),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn records_do_not_depend_on_how_the_bytes_arrive(bytes in bytes(), step in 1_usize..20, limit in 1_usize..40) {
        for kind in kinds() {
            let limits = Limits { bytes: limit, lines: 3 };
            let whole = cut(&kind, limits, &bytes, bytes.len().max(1));
            prop_assert_eq!(&cut(&kind, limits, &bytes, 1), &whole, "{:?}", kind);
            prop_assert_eq!(&cut(&kind, limits, &bytes, step), &whole, "{:?}", kind);
            prop_assert!(whole.iter().flatten().all(|record| kinds_limit(&kind, record, limit)), "{:?}", kind);
        }
    }

    #[test]
    fn a_reader_may_begin_behind_any_record(bytes in bytes(), limit in 1_usize..40) {
        let limits = Limits { bytes: limit, lines: 3 };
        for kind in kinds() {
            let whole = cut(&kind, limits, &bytes, bytes.len().max(1));
            let mut framing = Framing::new(kind.clone(), limits);
            let (mut used, mut seen) = (0, 0);
            while seen < whole.len() {
                match framing.next(&bytes[used..], true) {
                    Next::Record { consumed, .. } | Next::Refused { consumed, .. } => {
                        used += consumed;
                        seen += 1;
                        let rest = cut(&kind, limits, &bytes[used..], bytes.len().max(1));
                        prop_assert_eq!(&rest, &whole[seen..], "{:?}", kind);
                    }
                    Next::Passed { consumed } => used += consumed,
                    Next::More => prop_assert!(false, "there are records left"),
                }
            }
        }
    }

    #[test]
    fn a_reader_of_records_is_the_same_as_framing(bytes in bytes(), pieces in vec((0_usize..9, any::<bool>()), 0..20)) {
        for kind in kinds() {
            let limits = Limits { bytes: 30, lines: 3 };
            let whole = cut(&kind, limits, &bytes, bytes.len().max(1));
            let mut records = Records::with_limits(Pieces::new(&bytes, &pieces), kind.clone(), limits);
            let (mut all, mut lines) = (Vec::new(), 1);
            loop {
                match records.next_record() {
                    Ok(None) => break,
                    Ok(Some(record)) => {
                        prop_assert!(record.number >= lines);
                        lines = record.number + record.lines;
                        all.push(record.content.map(|content| String::from_utf8_lossy(content).into_owned()).map_err(|e| e.to_string()));
                    }
                    Err(error) => prop_assert_eq!(error.kind(), io::ErrorKind::Interrupted),
                }
            }
            // A mark of UTF-8 and the magic of a compressor are not among the pieces but by one chance in millions.
            prop_assert_eq!(all, whole, "{:?}", kind);
        }
    }
}

/// What the limit is of: a line of several is within it together, too.
fn kinds_limit(kind: &FramingKind, record: &str, limit: usize) -> bool {
    // Bytes that are not UTF-8 were replaced by three.
    let length = record.chars().filter(|c| *c != '\u{fffd}').map(char::len_utf8).sum::<usize>();
    match kind {
        FramingKind::OctetCounted => length <= limit.max(12),
        _ => length <= limit,
    }
}

/// A source that gives a few bytes at a time, and is interrupted between.
struct Pieces(VecDeque<Option<Vec<u8>>>);

impl Pieces {
    fn new(bytes: &[u8], pieces: &[(usize, bool)]) -> Self {
        let (mut rest, mut all) = (bytes, VecDeque::new());
        for &(length, interrupted) in pieces {
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            if interrupted {
                all.push_back(None);
            }
            if !piece.is_empty() {
                all.push_back(Some(piece.to_vec()));
            }
        }
        all.push_back(Some(rest.to_vec()));
        Pieces(all)
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(next) = self.0.front_mut() else { return Ok(0) };
        let Some(piece) = next else {
            self.0.pop_front();
            return Err(io::ErrorKind::Interrupted.into());
        };
        let length = piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&piece[..length]);
        piece.drain(..length);
        if piece.is_empty() {
            self.0.pop_front();
        }
        Ok(length)
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lines_of(source: &[u8]) -> io::Result<Vec<String>> {
    let pieces = vec![(1, true), (1, true), (1, true), (5, true)];
    let mut records = Records::new(Pieces::new(source, &pieces), FramingKind::Lines);
    let mut lines = Vec::new();
    loop {
        match records.next_record() {
            Ok(None) => return Ok(lines),
            Ok(Some(record)) => lines.push(String::from_utf8_lossy(record.content.unwrap()).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn a_source_is_read_as_it_is_or_decompressed_and_without_its_mark() {
    let text = b"\xef\xbb\xbfa\nb\xef\xbb\xbf\n";
    let expected = ["a", "b\u{feff}"];
    assert_eq!(lines_of(text).unwrap(), expected);
    let members = [gzip(&text[..5]), gzip(b""), gzip(&text[5..])].concat();
    assert_eq!(lines_of(&members).unwrap(), expected);
    let frames =
        [zstd::bulk::compress(&text[..2], 3).unwrap(), zstd::bulk::compress(&text[2..], 19).unwrap()];
    assert_eq!(lines_of(&frames.concat()).unwrap(), expected);
    for plain in ["", "(", "(\u{b5}", "\u{1f}", "\u{1f}a", "é", "(a"] {
        let lines = if plain.is_empty() { vec![] } else { vec![plain.to_owned()] };
        assert_eq!(lines_of(plain.as_bytes()).unwrap(), lines);
    }
    assert_eq!(lines_of(b"\xef\xbb").unwrap(), ["\u{fffd}"]);
}

#[test]
fn what_is_compressed_otherwise_is_said_to_be_and_is_no_lines() {
    for (beginning, by) in [
        (&b"\xfd7zXZ\0\0\x04\xe6\xd6"[..], "xz"),
        (b"BZh91AY&SY\x8c\xd0", "bzip2"),
        (b"\x04\x22\x4d\x18\x64\x40", "lz4"),
        (b"PK\x03\x04\x14\0", "zip"),
    ] {
        let error = lines_of(beginning).unwrap_err();
        assert!(error.to_string().contains(&format!("compressed by {by}")), "{error}");
    }
    for text in ["BZh91AY", "PK", "PKB", "BZh9 a"] {
        assert_eq!(lines_of(text.as_bytes()).unwrap(), [text]);
    }
}

#[test]
fn damaged_compression_is_an_error_and_never_an_end() {
    let text = (0..2000).map(|number| format!("{number} a line\n")).collect::<String>();
    for packed in [gzip(text.as_bytes()), zstd::bulk::compress(text.as_bytes(), 3).unwrap()] {
        assert_eq!(lines_of(&packed).unwrap().len(), 2000);
        for end in [5, packed.len() / 2, packed.len() - 1] {
            assert!(lines_of(&packed[..end]).is_err(), "cut at {end}");
        }
        let mut damaged = packed.clone();
        damaged[packed.len() / 2] ^= 0x55;
        // zstd has no checksum unless it is asked for one: then there may be other lines, or an error.
        let read = lines_of(&damaged);
        assert!(read.is_err() || packed.starts_with(&[0x28]), "{}", read.unwrap().len());
    }
}

#[test]
fn what_a_reader_holds_is_bounded_whatever_comes() {
    /// Bytes without an end of a record.
    struct Endless(usize, u8);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.0);
            buffer[..length].fill(self.1);
            self.0 -= length;
            Ok(length)
        }
    }
    let limits = Limits { bytes: 1 << 20, lines: 10_000 };
    for kind in kinds() {
        for byte in [b'a', b'"', b'=', b'\n', b'1'] {
            let source = Endless(8 << 20, byte);
            let ((), held) = bulla_testkit::allocator::most_held_here(|| {
                let mut records = Records::with_limits(source, kind.clone(), limits);
                while records.next_record().unwrap().is_some() {}
            });
            assert!(held < 4 << 20, "{kind:?} of {byte}: {held}");
        }
    }
}

#[test]
fn records_are_numbered_by_their_first_line() {
    let numbers = |kind, bytes: &[u8]| {
        let mut records = Records::with_limits(bytes, kind, Limits { bytes: 20, lines: 3 });
        let mut numbers = Vec::new();
        while let Some(record) = records.next_record().unwrap() {
            numbers.push((record.number, record.lines, record.raw.len()));
        }
        numbers
    };
    assert_eq!(numbers(FramingKind::Lines, b"a\n\nb"), [(1, 1, 2), (2, 1, 1), (3, 1, 1)]);
    assert_eq!(numbers(CSV, b"a\n\"b\nc\"\nd"), [(1, 1, 2), (2, 2, 6), (4, 1, 1)]);
    assert_eq!(numbers(CSV, b"\"a\nb34567890123456789\nc\nd\n"), [(1, 2, 1), (3, 1, 2), (4, 1, 2)]);
    assert_eq!(numbers(FramingKind::Export, b"\n\nA=1\n\nB=2\n"), [(3, 2, 5), (5, 1, 4)]);
    assert_eq!(numbers(FramingKind::OctetCounted, b"4 <1>a3 <1>\n<1>\n"), [(1, 1, 6), (2, 1, 5), (3, 1, 4)]);
}
