//! The vectors in `vectors/columns/`: what our own encoder makes, byte for byte, of small inputs; plaintexts that it
//! would not make but every reader must read; plaintexts that every reader must refuse; and blocks with groups (in
//! `groups.rs`).
//!
//! `BULLA_WRITE_VECTORS=1 cargo test` writes them anew.

mod records;
mod templates;

use super::*;
use crate::PERSONAL;
use crate::blob::{BlobEncoder, TABLED};
use serde_json::{Value, json};
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../vectors/columns", name].iter().collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

pub(super) fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The cases of a file, which are what `made` is when vectors are written.
pub(super) fn cases(name: &str, made: impl FnOnce() -> Vec<Value>) -> Vec<Value> {
    if std::env::var_os("BULLA_WRITE_VECTORS").is_some() {
        let lines: Vec<String> = made().iter().map(Value::to_string).collect();
        std::fs::write(path(name), format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
    }
    let text = std::fs::read_to_string(path(name)).unwrap();
    serde_json::from_str::<Vec<Value>>(&text).unwrap()
}

#[test]
fn encoded() {
    let cases = cases("encoded.json", || {
        inputs()
            .into_iter()
            .map(|(name, rows)| {
                let hexes: Vec<String> = rows.iter().map(|row| hex(row)).collect();
                json!({ "name": name, "rows": hexes, "plaintext": hex(&pad(encode(&rows, 0))) })
            })
            .collect()
    });
    assert_eq!(cases.len(), inputs().len());
    for (case, (name, rows)) in cases.iter().zip(inputs()) {
        let pinned: Vec<Vec<u8>> = case["rows"].as_array().unwrap().iter().map(unhex).collect();
        assert!(case["name"] == name && pinned == rows, "{name}");
        let plaintext = unhex(&case["plaintext"]);
        assert_eq!(hex(&pad(encode(&rows, 0))), hex(&plaintext), "{name}");
        let back = decode(&plaintext, rows.len(), content(&rows)).unwrap();
        assert!(back.iter().eq(rows.iter().map(Vec::as_slice)), "{name}");
    }
}

#[test]
fn decoded() {
    for case in cases("decoded.json", made_by_hand) {
        let plaintext = unhex(&case["plaintext"]);
        let rows: Vec<Vec<u8>> = case["rows"].as_array().unwrap().iter().map(unhex).collect();
        let back =
            decode(&plaintext, rows.len(), content(&rows)).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(back.iter().eq(rows.iter().map(Vec::as_slice)), "{case}");
    }
}

#[test]
fn refused() {
    for case in cases("refused.json", malformed) {
        let plaintext = unhex(&case["plaintext"]);
        let error = decode(&plaintext, number(&case["entries"]), number(&case["content_limit"])).unwrap_err();
        let expected = (case["column"].as_str().unwrap(), case["fault"].as_str().unwrap());
        assert_eq!((error.column, format!("{:?}", error.fault).as_str()), expected, "{case}");
    }
}

/// The longest block there is would take half a megabyte of a file of vectors; what is a byte longer is among those refused.
#[test]
fn a_block_of_zstd_may_come_out_as_long_as_any_block() {
    let entry = Entry { operation: "x", time: Some(5), ..Entry::default() }.payload(&[b'a'; 131_072]);
    let rows = [row(&entry), row(&entry)];
    let plaintext = Parts::field(PAYLOAD, &one_block_of(131_072, 0x38));
    let back = decode(&plaintext, 2, content(&rows)).unwrap();
    assert!(back.iter().eq(rows.iter().map(Vec::as_slice)));
}

/// `interop/bulla_reader` refuses the payloads that are refused here for a zstd frame; for what a frame says of itself, before it
/// decompresses anything.
#[test]
fn another_implementation_refuses_the_same_frames() {
    const READ: &str = "
import sys
from bulla_reader.columns import Budget, optional_column
from bulla_reader.cursor import Cursor
from bulla_reader.refused import Refused
from bulla_reader.rows import Row
for payload in sys.argv[1:]:
    data = Cursor(bytes.fromhex(payload), 'columns')
    try:
        optional_column(data, 'payload', [Row(0, b'x'), Row(0, b'x')], Budget(1 << 25, data))
        print('read')
    except Refused as refused:
        print(refused.rule)
";
    let cases = cases("refused.json", malformed);
    let of_heads = |case: &&Value| {
        let name = case["name"].as_str().unwrap();
        name == "the codec that is reserved"
            || [
                "window",
                "states",
                "segment",
                "checksum",
                "number of",
                "their number",
                "skipped",
                "longer",
                "in its head",
                "block",
            ]
            .iter()
            .any(|told| name.contains("zstd") && name.contains(told))
    };
    let refused = cases.iter().filter(of_heads).collect::<Vec<_>>();
    assert_eq!(refused.len(), 21);
    // Before a payload there are the head, the time, the operation, and eleven columns of nothing.
    let payloads = refused.iter().map(|case| case["plaintext"].as_str().unwrap()[40..].to_owned());
    let output = bulla_testkit::second_readers_python().args(["-c", READ]).args(payloads).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(told.lines().count(), refused.len());
    for (case, told) in refused.iter().zip(told.lines()) {
        let name = case["name"].as_str().unwrap();
        let of_content = name.contains("comes out") || name.contains("copies");
        let expected = match of_content {
            true => &["a frame of zstd does not decompress", "what is before the zeros "][..],
            false => &["a blob ", "a frame of zstd must ", "the descriptor of a frame "],
        };
        assert!(expected.iter().any(|it| told.starts_with(it)), "{case}: {told}");
    }
}

/// Payloads of a hundred zeros: with the tables, a block of one copy of so many bytes from so far back.
fn copied_zeros(extra: u8) -> Vec<u8> {
    // Bits of the copy from the last byte's highest on: a mark, three of the offset (11 more than these, less 3), five of the length.
    let [low, high] = (1 << 8 | u16::from(extra) << 5 | 1).to_le_bytes();
    vec![1, 0, 100, 3, 13, 0, 0, 0x45, 0, 0, 0, 1, 0x54, 0, 3, 42, low, high]
}

/// Payloads of one byte, again and again, in a zstd frame of one block: the byte, and a copy of as many as there are besides.
fn one_block_of(length: u64, window: u8) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bulla_proof::varint::push(length, &mut bytes);
    let [a, b, ..] = (length - 1 - 65_539).to_le_bytes();
    bytes.extend([2, 19, 0x28, 0xb5, 0x2f, 0xfd, 0, window, 0x55, 0, 0, 8, b'a', 1, 0x54, 1, 0, 52, a, b, 1]);
    bytes
}

/// The first payload, of zeros, in a zstd frame with this byte for its window and one block, a run of so many.
fn run_of_zeros(length: u64, window: u8, run: u32) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bulla_proof::varint::push(length, &mut bytes);
    let [a, b, c, _] = (run << 3 | 3).to_le_bytes();
    bytes.extend([2, 10, 0x28, 0xb5, 0x2f, 0xfd, 0, window, a, b, c, 0]);
    bytes
}

/// Small inputs, one for each form that does not depend on a compressor.
fn inputs() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let rows = |count: u64, entry: &dyn Fn(u64) -> Vec<u8>| (0..count).map(entry).collect::<Vec<_>>();
    let timed =
        |index: u64| Entry { operation: "op", time: Some(1000 + index.cast_signed()), ..Entry::default() };
    let scattered = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    vec![
        ("no rows", rows(0, &|_| unreachable!())),
        ("one row, nothing optional", rows(1, &|index| row(&timed(index)))),
        ("one row, everything", {
            let entry = Entry::new("read", "user_42/email").time(-1).subject("user_42").subject("user_43");
            let entry =
                entry.controller("c").processor("p").purpose("support").actor("a").client("::1").stream("s");
            vec![row(&entry.status(200).duration(1_000_000).size(0).flags(u32::MAX).payload(&[0, 255]))]
        }),
        ("absent, zero and empty", {
            let empty = Entry { subjects: Some(Default::default()), ..timed(1) };
            vec![row(&timed(0)), row(&empty.status(0).controller("").payload("")), row(&timed(2).subject(""))]
        }),
        ("constant", rows(9, &|_| row(&timed(0).status(7).controller("same")))),
        (
            "packed",
            rows(20, &|index| {
                row(&timed(0).duration(5 + scattered(index) % 64).size(scattered(index) % 1000 * 1000))
            }),
        ),
        ("packed, 64 bits", rows(3, &|index| row(&timed(0).size([u64::MAX, 0, 1][index as usize])))),
        (
            "packed, two chunks",
            rows(514, &|index| row(&timed(0).size(1000 + scattered(index) % 2 + index / 512 * 100))),
        ),
        (
            "delta",
            rows(20, &|index| row(&timed(index).size(9_000_000 + index * 1000 + scattered(index) % 8))),
        ),
        ("runs", rows(200, &|index| row(&timed(0).size(scattered(index / 50) % 5000)))),
        (
            "dictionary of integers",
            rows(200, &|index| row(&timed(0).size([3, 1 << 40, 999][(scattered(index) % 3) as usize]))),
        ),
        (
            "dictionary of strings",
            rows(20, &|index| {
                row(&timed(0).client(["alpha", "beta", "gamma"][(scattered(index) % 3) as usize]))
            }),
        ),
        ("plain strings", rows(4, &|index| row(&timed(0).actor(["", "ä", "actor 2", "3"][index as usize])))),
        (
            "words",
            rows(8, &|index| {
                let words =
                    (0..12).map(|word| ["the", "data", "a"][(scattered(index * 12 + word) % 3) as usize]);
                let text = words.collect::<Vec<_>>().join(" ");
                row(&Entry::new("op", "").time(1000).payload(&text))
            }),
        ),
        (
            "templates",
            rows(64, &|index| {
                let number = scattered(index);
                let location = format!(
                    "order/{}/{:03}/{number:010x}.{}",
                    2020 + index / 8,
                    index,
                    ["pdf", "xml"][index as usize % 2]
                );
                row(&Entry::new("op", &location).time(1000))
            }),
        ),
        (
            "bitmap",
            rows(11, &|index| row(&if index % 3 == 0 { timed(index).flags(1) } else { timed(index) })),
        ),
        ("subjects", {
            let names: &[&[&str]] = &[&["a", "b"], &[], &["a"], &["ccc", "a", "b"]];
            names
                .iter()
                .map(|names| row(&names.iter().fold(timed(0), |entry, name| entry.subject(name))))
                .collect()
        }),
    ]
}

/// A block of one row: what follows the head, with parts that can be replaced.
struct Parts {
    head: Vec<u8>,
    groups: Vec<u8>,
    time: Vec<u8>,
    operation: Vec<u8>,
    fields: [Vec<u8>; 13],
    items: Vec<u8>,
    tail: Vec<u8>,
}

impl Parts {
    fn new(entries: u8) -> Self {
        Parts {
            head: vec![1, entries],
            groups: vec![0],
            time: vec![0, 5],
            operation: vec![0, 1, 0, b'x'],
            fields: std::array::from_fn(|_| vec![0]),
            items: Vec::new(),
            tail: Vec::new(),
        }
    }

    fn with(change: impl FnOnce(&mut Parts)) -> Vec<u8> {
        Self::of(2, change)
    }

    fn of(entries: u8, change: impl FnOnce(&mut Parts)) -> Vec<u8> {
        let mut parts = Parts::new(entries);
        change(&mut parts);
        let Parts { head, groups, time, operation, fields, items, tail } = parts;
        pad([head, groups, time, operation, fields.concat(), items, tail].concat())
    }

    /// A block of two rows that are one group, of the subject with number 9, with nothing in its ciphertext.
    fn grouped(change: impl FnOnce(&mut Parts)) -> Vec<u8> {
        Self::of(2, |parts| {
            parts.groups = [&[1][..], &PERSONAL.to_le_bytes(), &[0, 1]].concat();
            parts.items = vec![0, 0];
            parts.tail = [&[0, 1, 0, 9, 0, 16][..], &[7; 32], &[8; 16]].concat();
            change(parts);
        })
    }

    /// A block of so many rows with that column for the time.
    fn time(entries: u8, time: &[u8]) -> Vec<u8> {
        Self::of(entries, |parts| parts.time = time.to_vec())
    }

    /// A block of two rows with that column for a field.
    fn field(index: usize, column: &[u8]) -> Vec<u8> {
        Self::with(|parts| parts.fields[index] = column.to_vec())
    }
}

const STATUS: usize = 3;
const LOCATION: usize = 7;
const CLIENT: usize = 8;
const PAYLOAD: usize = 11;
const SUBJECT: usize = 12;

/// Two payloads of the words "a " and "b ": lengths, text, counts, lengths of tails, tails, width, numbers.
const WORDS: [u8; 19] = [1, 3, 2, 0, 2, 0, b'a', b' ', b'b', b' ', 0, 2, 0, 1, 0, b'x', b'y', 1, 0b0110];

/// These, altered.
fn words(alter: impl FnOnce(&mut [u8; 19])) -> Vec<u8> {
    let mut words = WORDS;
    alter(&mut words);
    Parts::field(PAYLOAD, &words)
}

fn made_by_hand() -> Vec<Value> {
    let base = |time: i64| Entry { operation: "x", time: Some(time), ..Entry::default() };
    let times = |times: &[i64]| times.iter().map(|&time| row(&base(time))).collect::<Vec<_>>();
    let all = |entry: Entry<'_>| vec![row(&entry), row(&entry)];
    // A zstd frame of 100 zeros: magic, no flags, 1 KiB window, last block, run-length, 100 times 0.
    let zstd = [2, 10, 0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0x23, 3, 0, 0];
    let mut zstd_payload = vec![1, 0, 100];
    zstd_payload.extend(zstd);
    let object = br#"{"order":"A-1009","placed":"2025-11-03T08:15:00Z","state":"paid","total":129.9}"#;
    let mut tabled_payload = vec![1, 0, u8::try_from(object.len()).unwrap()];
    BlobEncoder::new(Compression::FAST).encode(object, &mut tabled_payload);
    assert_eq!(tabled_payload[3], TABLED);
    [
        (
            "packed with a base, a scale, an offset",
            Parts::time(3, &[1, 10, 3, 2, 2, 0b11_01_00]),
            times(&[16, 19, 25]),
        ),
        ("packed in no bits", Parts::time(3, &[1, 10, 0, 0, 0]), times(&[10, 10, 10])),
        (
            "packed wrapping",
            Parts::time(2, &[1, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1, 0b10]),
            times(&[-1, 0]),
        ),
        ("delta of one value", Parts::time(1, &[2, 9]), times(&[9])),
        ("runs", Parts::time(4, &[3, 2, 1, 4, 1, 0, 1, 0b10, 0, 1]), times(&[4, 4, 5, 5])),
        (
            "a dictionary with a value that does not occur",
            Parts::time(4, &[4, 2, 0, 8, 0, 1]),
            times(&[8, 8, 8, 8]),
        ),
        ("bytes", Parts::time(2, &[5, 1, 2, 2, 0, 1, 2, 0, 1]), times(&[3, 517])),
        ("three deep", Parts::time(4, &[2, 0, 2, 0, 2, 0, 0, 0]), times(&[0, 0, 0, 0])),
        ("a bitmap of all", Parts::field(STATUS, &[2, 0, 0b11, 0, 9]), all(base(5).status(9))),
        ("a bitmap of none", Parts::field(STATUS, &[2, 0, 0]), all(base(5))),
        ("a group", Parts::grouped(|_| ()), all(base(5))),
        (
            "a group that every entry is in, and a personal field of all others",
            Parts::grouped(|parts| parts.fields[CLIENT] = vec![1]),
            all(base(5)),
        ),
        (
            "a group that every entry is in, and a personal field of some others",
            Parts::grouped(|parts| parts.fields[SUBJECT] = vec![2]),
            all(base(5)),
        ),
        ("words", words(|_| ()), vec![row(&base(5).payload("a b x")), row(&base(5).payload("b a y"))]),
        (
            "words in bytes",
            Parts::field(PAYLOAD, &[&WORDS[..17], &[9, 0, 0, 1, 1, 0]].concat()),
            vec![row(&base(5).payload("a b x")), row(&base(5).payload("b a y"))],
        ),
        ("zstd", Parts::field(PAYLOAD, &zstd_payload), all(base(5).payload(&[0; 100]))),
        (
            "zstd with a window of 4 KiB",
            Parts::field(PAYLOAD, &run_of_zeros(3000, 0x10, 3000)),
            all(base(5).payload(&[0; 3000])),
        ),
        ("zstd with tables", Parts::field(PAYLOAD, &tabled_payload), all(base(5).payload(object))),
        (
            "zstd with tables that are not used",
            Parts::field(PAYLOAD, &[1, 0, 100, 3, 6, 0, 0, 0x23, 3, 0, 0]),
            all(base(5).payload(&[0; 100])),
        ),
        (
            "zstd with tables, whose block copies zeros that the dictionary has",
            Parts::field(PAYLOAD, &copied_zeros(3)),
            all(base(5).payload(&[0; 100])),
        ),
        (
            "bytes that are not text",
            Parts::field(LOCATION, &[1, 0, 1, 0, 0xff]),
            all(Entry::new("x", &[0xff]).time(5)),
        ),
    ]
    .into_iter()
    .chain(templates::made_by_hand())
    .chain(records::made_by_hand().map(|(name, plaintext)| (name, plaintext, all(base(5)))))
    .map(|(name, plaintext, rows)| {
        let rows: Vec<String> = rows.iter().map(|row| hex(row)).collect();
        json!({ "name": name, "plaintext": hex(&plaintext), "rows": rows })
    })
    .collect()
}

fn malformed() -> Vec<Value> {
    let valid = Parts::with(|_| ());
    // What two rows of nothing but a time and an operation count.
    let tight = 2 * 16;
    let long = |length: u64| {
        let mut bytes = vec![1, 0];
        bulla_proof::varint::push(length, &mut bytes);
        bytes
    };
    let zstd = |length: u8, frame: &[u8]| [&[1, 0, length, 2, frame.len() as u8], frame].concat();
    let hundred_zeros = [0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0x23, 3, 0, 0];
    // The same with another head, and with other blocks.
    let head = |head: &[u8]| [&hundred_zeros[..4], head, &hundred_zeros[6..]].concat();
    let blocks = |blocks: &[u8]| [&hundred_zeros[..6], blocks].concat();
    let two_frames = [[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0x93, 1, 0, 0]; 2].concat();
    let mut cases = vec![
        ("nothing", vec![], 2, 1000, "block", "Truncated"),
        ("layout version 0", Parts::with(|parts| parts.head[0] = 0), 2, 1000, "block", "Version"),
        ("layout version 2", Parts::with(|parts| parts.head[0] = 2), 2, 1000, "block", "Version"),
        ("fewer entries than declared", valid.clone(), 3, 1000, "block", "Entries"),
        ("more entries than declared", valid.clone(), 1, 1000, "block", "Entries"),
        (
            "entries not in shortest form",
            Parts::with(|parts| parts.head = vec![1, 0x82, 0]),
            2,
            1000,
            "block",
            "NotMinimal",
        ),
        ("more entries than the limit allows", valid.clone(), 2, tight - 1, "block", "TooLarge"),
        ("unknown integer form", Parts::time(2, &[6, 5]), 2, 1000, "time", "Form"),
        ("four deep", Parts::time(9, &[2, 0, 2, 0, 2, 0, 2, 0, 0, 0]), 9, 1000, "time", "Form"),
        ("width above 64", Parts::time(2, &[1, 0, 1, 0, 65, 0]), 2, 1000, "time", "Form"),
        ("unused bits of the last byte", Parts::time(2, &[1, 0, 1, 0, 1, 0b100]), 2, 1000, "time", "Unused"),
        ("bits missing", Parts::time(100, &[1, 0, 1, 0, 64, 0]), 100, 10_000, "time", "Truncated"),
        ("runs too short", Parts::time(4, &[3, 2, 0, 1, 0, 0]), 4, 1000, "time", "Range"),
        ("runs too long", Parts::time(4, &[3, 2, 0, 1, 0, 2]), 4, 1000, "time", "Range"),
        (
            "a run of 2^64",
            Parts::time(3, &[3, 1, 0, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            3,
            1000,
            "time",
            "Range",
        ),
        ("no runs", Parts::time(3, &[3, 0]), 3, 1000, "time", "Range"),
        ("more runs than half the values", Parts::time(5, &[3, 3, 0, 1, 0, 0]), 5, 1000, "time", "Range"),
        ("an empty dictionary", Parts::time(3, &[4, 0]), 3, 1000, "time", "Range"),
        (
            "a dictionary larger than half its column",
            Parts::time(5, &[4, 3, 0, 1, 0, 0]),
            5,
            1000,
            "time",
            "Range",
        ),
        ("an index above the dictionary", Parts::time(4, &[4, 2, 0, 1, 0, 2]), 4, 1000, "time", "Range"),
        ("bytes of no width", Parts::time(2, &[5, 0, 1, 0]), 2, 1000, "time", "Form"),
        ("bytes too wide", Parts::time(2, &[5, 0, 1, 9]), 2, 1000, "time", "Form"),
        (
            "lengths wider than lengths are",
            Parts::field(PAYLOAD, &[1, 2, 5, 0, 1, 5]),
            2,
            1000,
            "payload",
            "Form",
        ),
        (
            "more entries than their values may take",
            vec![1, 0x80, 0x9f, 0x49],
            1_200_000,
            1 << 25,
            "block",
            "TooLarge",
        ),
        (
            "an empty operation",
            Parts::with(|parts| parts.operation = vec![0, 0]),
            2,
            1000,
            "operation",
            "Range",
        ),
        (
            "an operation that is not text",
            Parts::with(|parts| parts.operation[3] = 0xff),
            2,
            1000,
            "operation",
            "NotText",
        ),
        (
            "an empty operation among others",
            Parts::with(|parts| parts.operation = vec![2, 1, 0, 1, 0, 1, 0b10, 0, b'x']),
            2,
            1000,
            "operation",
            "Range",
        ),
        ("unknown string form", Parts::with(|parts| parts.operation[0] = 5), 2, 1000, "operation", "Form"),
        ("no vocabulary", Parts::field(PAYLOAD, &[1, 3, 0]), 2, 1000, "payload", "Range"),
        ("a vocabulary of 257", Parts::field(PAYLOAD, &[1, 3, 0x81, 2]), 2, 1000, "payload", "Range"),
        ("an empty word", words(|at| at[3..6].copy_from_slice(&[0, 0, 0])), 2, 1000, "payload", "Range"),
        ("more words than the limit", words(|at| at[11] = 0x7f), 2, 200, "payload", "TooLarge"),
        (
            "a word past the vocabulary",
            words(|at| at[17..19].copy_from_slice(&[2, 0xff])),
            2,
            1000,
            "payload",
            "Range",
        ),
        ("a word that does not occur", words(|at| at[18] = 0b1111), 2, 1000, "payload", "Range"),
        ("a bit of no word", words(|at| at[18] |= 0x10), 2, 1000, "payload", "Unused"),
        ("an unknown width of words", words(|at| at[17] = 10), 2, 1000, "payload", "Form"),
        ("an unknown presence", Parts::field(STATUS, &[3]), 2, 1000, "status", "Form"),
        (
            "a bitmap with a bit too many",
            Parts::field(STATUS, &[2, 0, 0b101, 0, 1]),
            2,
            1000,
            "status",
            "Unused",
        ),
        (
            "a status above 32 bits",
            Parts::field(STATUS, &[1, 0, 0x80, 0x80, 0x80, 0x80, 0x10]),
            2,
            1000,
            "status",
            "Range",
        ),
        ("a string of 64 KiB and one", Parts::field(CLIENT, &long(65_537)), 2, 1 << 20, "client", "Range"),
        (
            "a payload of 16 MiB and one",
            Parts::field(PAYLOAD, &long((1 << 24) + 1)),
            2,
            1 << 30,
            "payload",
            "Range",
        ),
        ("a payload above the limit", Parts::field(PAYLOAD, &long(969)), 2, 1000, "payload", "TooLarge"),
        (
            "a character cut in two",
            Parts::field(CLIENT, &[1, 2, 0, 1, 0, 0xc3, 0xa4]),
            2,
            1000,
            "client",
            "NotText",
        ),
        (
            "a string index above the dictionary",
            Parts::field(CLIENT, &[1, 1, 1, 0, 1, 0, b'a', 0, 1]),
            2,
            1000,
            "client",
            "Range",
        ),
        (
            "a string of a dictionary that does not occur",
            Parts::field(CLIENT, &[1, 1, 2, 0, 1, 0, b'a', b'b', 0, 0]),
            2,
            1000,
            "client",
            "Range",
        ),
        ("65 subjects", Parts::field(SUBJECT, &[1, 0, 65]), 2, 1000, "subject", "Range"),
        (
            "subjects above the limit",
            Parts::field(SUBJECT, &[1, 0, 64, 0, 0]),
            2,
            tight + 2 + 125,
            "subject",
            "TooLarge",
        ),
        ("a value above the limit", Parts::field(STATUS, &[1, 0, 0]), 2, tight, "status", "TooLarge"),
        (
            "rows above the limit",
            Parts::field(PAYLOAD, &[1, 0, 2, 0, 7, 7]),
            2,
            tight + 5,
            "block",
            "TooLarge",
        ),
        ("an unknown codec", Parts::field(PAYLOAD, &[1, 0, 1, 4, 1, 7]), 2, 1000, "payload", "Form"),
        (
            "the codec that is reserved",
            Parts::field(PAYLOAD, &[1, 0, 1, 1, 2, 0x10, 7]),
            2,
            1000,
            "payload",
            "Form",
        ),
        ("compressed to nothing", Parts::field(PAYLOAD, &[1, 0, 1, 2, 0]), 2, 1000, "payload", "Range"),
        (
            "compressed bytes missing",
            Parts::field(PAYLOAD, &[1, 0, 100, 2, 99]),
            2,
            1000,
            "payload",
            "Truncated",
        ),
        (
            "zstd longer than what it holds",
            Parts::field(PAYLOAD, &zstd(9, &hundred_zeros)),
            2,
            1000,
            "payload",
            "Range",
        ),
        (
            "zstd without its magic",
            Parts::field(PAYLOAD, &zstd(100, &hundred_zeros[4..])),
            2,
            1000,
            "payload",
            "Codec",
        ),
        ("zstd too short", Parts::field(PAYLOAD, &zstd(101, &hundred_zeros)), 2, 1000, "payload", "Codec"),
        ("zstd too long", Parts::field(PAYLOAD, &zstd(99, &hundred_zeros)), 2, 1000, "payload", "Codec"),
        ("two zstd frames", Parts::field(PAYLOAD, &zstd(100, &two_frames)), 2, 1000, "payload", "Codec"),
        (
            "zstd with a window of 9/8 KiB for what has room in 1 KiB",
            Parts::field(PAYLOAD, &zstd(100, &head(&[0, 1]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with a window of 2 KiB for what has room in 1 KiB",
            Parts::field(PAYLOAD, &zstd(100, &head(&[0, 8]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with a window that is less than what it holds",
            Parts::field(PAYLOAD, &run_of_zeros(3000, 8, 3000)),
            2,
            10_000,
            "payload",
            "Codec",
        ),
        (
            "zstd with a block that is a longer run than any block",
            Parts::field(PAYLOAD, &run_of_zeros(200_000, 0x40, 200_000)),
            2,
            1 << 20,
            "payload",
            "Codec",
        ),
        (
            "zstd with a block that is compressed to nothing",
            Parts::field(PAYLOAD, &zstd(100, &blocks(&[4, 0, 0, 0x23, 3, 0, 0]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with a block of the kind that is reserved",
            Parts::field(PAYLOAD, &zstd(100, &blocks(&[6, 0, 0, 0x23, 3, 0, 0]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd without a last block",
            Parts::field(PAYLOAD, &zstd(100, &blocks(&[0x22, 3, 0, 0]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with the largest window that there is",
            Parts::field(PAYLOAD, &zstd(100, &head(&[0, 0xff]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd that states the length of its content",
            Parts::field(PAYLOAD, &zstd(100, &head(&[0x80, 0, 100, 0, 0, 0]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd of a single segment, whose window is its content",
            Parts::field(PAYLOAD, &zstd(100, &head(&[0x20, 100]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with a checksum",
            Parts::field(PAYLOAD, &zstd(100, &[&head(&[4, 0])[..], &[0x2f, 0x50, 0x2c, 0xc9]].concat())),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with the number of a dictionary",
            Parts::field(PAYLOAD, &zstd(100, &head(&[1, 0, 0]))),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "a zstd frame that is to be skipped",
            Parts::field(PAYLOAD, &zstd(100, &[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7])),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd that ends in its head",
            Parts::field(PAYLOAD, &zstd(100, &hundred_zeros[..5])),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with tables and a window that is not the least",
            Parts::field(PAYLOAD, &[1, 0, 100, 3, 6, 0, 8, 0x23, 3, 0, 0]),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with tables and their number",
            Parts::field(PAYLOAD, &[1, 0, 100, 3, 7, 1, 0, 1, 0x23, 3, 0, 0]),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with bytes after its frame",
            Parts::field(PAYLOAD, &zstd(100, &[&hundred_zeros[..], &[0]].concat())),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with tables and its magic",
            Parts::field(PAYLOAD, &[&[1, 0, 100, 3, 10], &hundred_zeros[..]].concat()),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with tables longer than what it holds",
            Parts::field(PAYLOAD, &[1, 0, 5, 3, 6, 0, 0, 0x2b, 0, 0, 0]),
            2,
            1000,
            "payload",
            "Range",
        ),
        (
            "zstd with tables too short",
            Parts::field(PAYLOAD, &[1, 0, 101, 3, 6, 0, 0, 0x23, 3, 0, 0]),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with tables, whose block copies what the dictionary has before its zeros",
            Parts::field(PAYLOAD, &copied_zeros(4)),
            2,
            1000,
            "payload",
            "Codec",
        ),
        (
            "zstd with a block that comes out longer than any block",
            Parts::field(PAYLOAD, &one_block_of(131_073, 0x40)),
            2,
            1 << 20,
            "payload",
            "Codec",
        ),
        ("no number of groups", valid[..2].to_vec(), 2, 1000, "group", "Truncated"),
        ("more groups than entries", Parts::grouped(|parts| parts.groups[0] = 3), 2, 1000, "group", "Range"),
        (
            "groups of an unknown field",
            Parts::grouped(|parts| parts.groups[2] |= 0x80),
            2,
            1000,
            "group",
            "Form",
        ),
        (
            "groups of a field of the lowest bit that has none",
            Parts::grouped(|parts| parts.groups[2] |= 0x20),
            2,
            1000,
            "group",
            "Form",
        ),
        ("groups without the subject", Parts::grouped(|parts| parts.groups[2] = 0), 2, 1000, "group", "Form"),
        ("a group without entries", Parts::grouped(|parts| parts.groups[0] = 2), 2, 1000, "group", "Groups"),
        ("an unknown group", Parts::grouped(|parts| parts.groups[4] = 2), 2, 1000, "group", "Groups"),
        (
            "groups out of order",
            Parts::grouped(|parts| {
                parts.groups[0] = 2;
                parts.groups.splice(3.., [1, 1, 1, 0, 1, 0b01]).for_each(drop);
            }),
            2,
            1000,
            "group",
            "Groups",
        ),
        ("a group of nobody", Parts::grouped(|parts| parts.tail[1] = 0), 2, 1000, "group", "Range"),
        ("a group of too many", Parts::grouped(|parts| parts.tail[1] = 65), 2, 1000, "group", "Range"),
        ("a group of no bytes", Parts::grouped(|parts| parts.tail[5] = 0), 2, 1000, "group", "Range"),
        (
            "a group that is longer than the block",
            Parts::grouped(|parts| parts.tail[5] = 127),
            2,
            1000,
            "group",
            "Range",
        ),
        (
            "a commitment cut short",
            Parts::grouped(|parts| parts.tail.truncate(30)),
            2,
            1000,
            "group",
            "Truncated",
        ),
        (
            "subjects out of order",
            Parts::grouped(|parts| parts.tail.splice(..4, [0, 2, 2, 9, 0, 1]).for_each(drop)),
            2,
            1000,
            "group",
            "Groups",
        ),
        (
            "a subject twice",
            Parts::grouped(|parts| parts.tail.splice(..4, [0, 2, 0, 9]).for_each(drop)),
            2,
            1000,
            "group",
            "Groups",
        ),
        ("not padded", Parts::field(STATUS, &[1, 0, 200, 1])[..25].to_vec(), 2, 1000, "block", "Padding"),
        ("padded too much", [&valid[..], &[0, 0]].concat(), 2, 1000, "block", "Padding"),
    ];
    let mut dirty = Parts::field(STATUS, &[1, 0, 200, 1]);
    *dirty.last_mut().unwrap() = 1;
    cases.extend(templates::malformed(tight));
    cases.extend(records::malformed());
    cases.push(("padding that is not zero", dirty, 2, 1000, "block", "Padding"));
    cases
        .into_iter()
        .map(|(name, plaintext, entries, limit, column, fault)| {
            json!({
                "name": name, "plaintext": hex(&plaintext), "entries": entries, "content_limit": limit,
                "column": column, "fault": fault,
            })
        })
        .collect()
}
