//! Replies, as the specification writes them.

use crate::fuzzing::{self, ALL, LITTLE, Tree, first_reply, replies};
use crate::resp::{DEEPEST, Kind, Limits, Part, Replies, Violation};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use redis_protocol::resp2::{self, types::OwnedFrame as Frame2, types::Resp2Frame};
use redis_protocol::resp3::{self, types::OwnedFrame, types::Resp3Frame};

fn text(kind: Kind, text: &str) -> Tree {
    Tree::Text(kind, text.as_bytes().to_vec())
}

fn integer(value: i64) -> Tree {
    text(Kind::Integer, &value.to_string())
}

fn bulk(content: &str) -> Tree {
    text(Kind::Bulk, content)
}

fn array(members: &[Tree]) -> Tree {
    Tree::Aggregate(Kind::Array, members.to_vec())
}

#[test]
fn every_type_is_read_as_the_specification_has_it() {
    let null = text(Kind::Null, "");
    let simple = |content| text(Kind::Simple, content);
    let first = Tree::Aggregate(Kind::Map, vec![simple("first"), integer(1), simple("second"), integer(2)]);
    let known: Vec<(&str, Tree)> = vec![
        ("+OK\r\n", simple("OK")),
        ("+\r\n", simple("")),
        ("+a\rb\nc\r\r\n", simple("a\rb\nc\r")),
        ("-ERR unknown command 'asdf'\r\n", text(Kind::Error, "ERR unknown command 'asdf'")),
        ("!21\r\nSYNTAX invalid syntax\r\n", text(Kind::Error, "SYNTAX invalid syntax")),
        (":0\r\n", integer(0)),
        (":+1000\r\n", integer(1000)),
        (":-9223372036854775808\r\n", integer(i64::MIN)),
        ("$5\r\nhello\r\n", bulk("hello")),
        ("$0\r\n\r\n", bulk("")),
        ("$4\r\n\r\n\r\n\r\n", bulk("\r\n\r\n")),
        ("=15\r\ntxt:Some string\r\n", bulk("Some string")),
        ("=4\r\nmkd:\r\n", bulk("")),
        ("$-1\r\n", null.clone()),
        ("*-1\r\n", null.clone()),
        ("_\r\n", null.clone()),
        ("#t\r\n", text(Kind::Boolean, "t")),
        ("#f\r\n", text(Kind::Boolean, "f")),
        (",1.23\r\n", text(Kind::Double, "1.23")),
        (",10\r\n", text(Kind::Double, "10")),
        (",-inf\r\n", text(Kind::Double, "-inf")),
        (",1e-7\r\n", text(Kind::Double, "0.0000001")),
        (",nan\r\n", text(Kind::Double, "NaN")),
        (
            "(-3492890328409238509324850943850943825024385\r\n",
            text(Kind::BigNumber, "-3492890328409238509324850943850943825024385"),
        ),
        ("*0\r\n", array(&[])),
        ("%0\r\n", Tree::Aggregate(Kind::Map, vec![])),
        ("*2\r\n$5\r\nhello\r\n$-1\r\n", array(&[bulk("hello"), null.clone()])),
        (
            "*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n",
            array(&[
                array(&[integer(1), integer(2), integer(3)]),
                array(&[simple("Hello"), text(Kind::Error, "World")]),
            ]),
        ),
        ("%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n", first.clone()),
        ("~2\r\n:1\r\n:2\r\n", Tree::Aggregate(Kind::Set, vec![integer(1), integer(2)])),
        (
            ">3\r\n+message\r\n+somechannel\r\n+this is the message\r\n",
            Tree::Aggregate(
                Kind::Push,
                vec![simple("message"), simple("somechannel"), simple("this is the message")],
            ),
        ),
        // Attributes, in every place.
        (
            "|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n*2\r\n:2039123\r\n:9543892\r\n",
            array(&[integer(2_039_123), integer(9_543_892)]),
        ),
        (
            "*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n|0\r\n:3600\r\n:3\r\n",
            array(&[integer(1), integer(2), integer(3)]),
        ),
        ("|1\r\n*?\r\n.\r\n$?\r\n;0\r\n|0\r\n+OK\r\n", simple("OK")),
        // Streams.
        ("$?\r\n;4\r\nHell\r\n;5\r\no wor\r\n;2\r\nld\r\n;0\r\n", bulk("Hello world")),
        ("$?\r\n;0\r\n", bulk("")),
        ("*?\r\n:1\r\n:2\r\n:3\r\n.\r\n", array(&[integer(1), integer(2), integer(3)])),
        ("*?\r\n.\r\n", array(&[])),
        ("%?\r\n+first\r\n:1\r\n+second\r\n:2\r\n.\r\n", first),
        (
            "~?\r\n*?\r\n$?\r\n;1\r\na\r\n;0\r\n.\r\n.\r\n",
            Tree::Aggregate(Kind::Set, vec![array(&[bulk("a")])]),
        ),
    ];
    for (bytes, expected) in known {
        assert_eq!(first_reply(bytes.as_bytes()), Some((expected, bytes.len())), "{bytes:?}");
        let whole = replies(bytes.as_bytes(), ALL, usize::MAX);
        for piece in 1..bytes.len() {
            assert_eq!(replies(bytes.as_bytes(), ALL, piece), whole, "{bytes:?}");
        }
    }
}

#[test]
fn what_is_no_reply_is_a_violation_that_names_what_was_expected() {
    let mark = "the mark of a type was expected at the beginning of a value";
    let length = "a length was expected after the mark of a value";
    let end = "the end of the line was expected after a value";
    let value = "a value of the type that the mark says was expected in its line";
    let refused = [
        ("OK\r\n", mark),
        ("\r\n", mark),
        (".\r\n", mark),
        (";1\r\na\r\n", mark),
        ("*1\r\n.\r\n", mark),
        ("*?\r\n|1\r\n.\r\n", mark),
        ("$\r\n", length),
        ("$-2\r\n", length),
        ("$+1\r\n", length),
        ("$01\r\n", length),
        ("$1\rx", length),
        ("$9223372036854775808\r\n", length),
        ("*-2\r\n", length),
        ("%-1\r\n", length),
        ("~-1\r\n", length),
        ("!-1\r\n", length),
        ("!?\r\n", length),
        ("=?\r\n", length),
        (">?\r\n", length),
        ("|?\r\n", length),
        ("$-?", length),
        ("$?\r\n;-1\r\n", length),
        ("$?\r\n;?\r\n", length),
        ("$1\r\nab", end),
        ("$1\r\na\n", end),
        ("$1\r\na\rx", end),
        ("$0\r\na", end),
        ("$?x", end),
        ("_x", end),
        (":\r\n", value),
        (":-\r\n", value),
        (":1a\r\n", value),
        (":1\rx", value),
        (":1-\r\n", value),
        (":123456789012345678901\r\n", value),
        ("#\r\n", value),
        ("#x\r\n", value),
        ("#tt\r\n", value),
        (",\r\n", value),
        (",-\r\n", value),
        (",1e\r\n", value),
        (",one\r\n", value),
        ("$?\r\n+a\r\n", "`;` was expected before a chunk of a string"),
        ("=3\r\ntxt\r\n", "a verbatim string that is long enough for its format was expected"),
        ("=5\r\ntxt,a\r\n", "`:` was expected after the format of a verbatim string"),
        ("%?\r\n+a\r\n.\r\n", "a value was expected after the last key of a map"),
    ];
    for (bytes, what) in refused {
        for piece in [1, 2, 3, usize::MAX] {
            let (_, violation) = replies(bytes.as_bytes(), ALL, piece);
            assert_eq!(violation, Some(Violation { what }), "{bytes:?}");
        }
        let after = ["+OK\r\n", bytes].concat();
        assert_eq!(
            replies(after.as_bytes(), ALL, usize::MAX).0.len(),
            1,
            "what was complete before it is told"
        );
    }
}

#[test]
fn pushes_and_replies_are_told_apart() {
    let bytes = b">2\r\n+invalidate\r\n_\r\n|1\r\n+a\r\n:1\r\n+OK\r\n>1\r\n:1\r\n$-1\r\n";
    let (told, _) = replies(bytes, ALL, usize::MAX);
    let kinds = told.iter().map(|(.., nodes)| nodes[0].0.kind).collect::<Vec<_>>();
    assert_eq!(kinds[..4], [Kind::Push, Kind::Simple, Kind::Push, Kind::Null]);
    assert_eq!(told.iter().map(|(_, wire, ..)| *wire).take(4).collect::<Vec<_>>(), [20, 17, 8, 5]);
}

#[test]
fn what_is_not_kept_of_a_reply_is_counted() {
    let bytes = b"*5\r\n$10\r\n0123456789\r\n+0123456789\r\n*1\r\n:1\r\n+x\r\n-0123456789\r\n";
    let (told, _) = replies(bytes, LITTLE, usize::MAX);
    let (_, wire, count, nodes) = &told[0];
    assert_eq!((*wire, *count), (bytes.len() as u64, 7));
    let kept =
        nodes.iter().map(|(node, text)| (node.depth, node.length, text.as_slice())).collect::<Vec<_>>();
    assert_eq!(kept, [(0, 5, &b""[..]), (1, 10, b"012345"), (1, 10, b"012345"), (1, 1, b"")]);
    // The reply itself is kept always.
    let mut reader = Replies::new(Limits { bytes: 0, items: 0, text: 0 });
    assert!(reader.next(bytes).unwrap().complete);
    let reply = reader.reply();
    assert_eq!(
        (reply.kind(), reply.nodes().len(), reply.count(), reply.is_whole()),
        (Some(Kind::Array), 1, 7, false)
    );
}

#[test]
fn what_has_come_of_a_reply_is_shown_before_it_is_complete() {
    let mut reader = Replies::new(ALL);
    let mut give = |bytes: &[u8]| {
        assert!(!reader.next(bytes).unwrap().complete);
        reader.reply().clone()
    };
    assert_eq!(give(b"|1\r\n+a\r\n:1\r\n*").kind(), None);
    assert_eq!(give(b"?\r\n").kind(), Some(Kind::Array));
    let reply = give(b":1\r\n$1000000\r\nabc");
    assert_eq!((reply.nodes()[0].length, reply.nodes()[2].length, reply.is_whole()), (1, 1_000_000, false));
    assert_eq!(reply.text(&reply.nodes()[2]), b"abc");
}

/// What Redis 7.0.15 answers `MULTI`, `PUBLISH ch m`, `GET a` and `EXEC` with, in RESP3, where the client has subscribed to `ch`.
#[test]
fn a_push_inside_a_reply_is_taken_by_itself() {
    let bytes = b"*2\r\n>3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n:1\r\n>0\r\n$3\r\nAAA\r\n+OK\r\n";
    let (mut reader, mut at, mut taken) = (Replies::new(ALL), 0, Vec::new());
    while at < bytes.len() {
        reader.limit(ALL, true);
        let progress = reader.next(&bytes[at..]).unwrap();
        taken.push((
            bytes[at..][..progress.consumed].escape_ascii().to_string(),
            reader.took_push(),
            reader.part(),
        ));
        at += progress.consumed;
    }
    let expected = [
        ("*2\\r\\n", false, Some(Part::Beginning)),
        (">3\\r\\n$7\\r\\nmessage\\r\\n$2\\r\\nch\\r\\n$1\\r\\nm\\r\\n", true, None),
        (":1\\r\\n", false, Some(Part::Value)),
        (">0\\r\\n", true, None),
        ("$3\\r\\nAAA\\r\\n", false, Some(Part::Value)),
        ("+OK\\r\\n", false, None),
    ];
    assert_eq!(taken, expected.map(|(taken, push, part)| (taken.to_owned(), push, part)));
}

#[test]
fn an_errors_code_is_its_first_word_where_that_is_one() {
    let codes = [
        ("-WRONGTYPE Operation against a key\r\n", "WRONGTYPE"),
        ("-EXECABORT\r\n", "EXECABORT"),
        ("!9\r\nMOVED_2 x\r\n", "MOVED_2"),
        ("-something happened\r\n", "ERR"),
        ("-Err x\r\n", "ERR"),
        ("- x\r\n", "ERR"),
        ("-\r\n", "ERR"),
    ];
    for (bytes, code) in codes {
        let mut reader = Replies::new(ALL);
        assert!(reader.next(bytes.as_bytes()).unwrap().complete);
        let reply = reader.reply();
        assert_eq!(reply.error_code(&reply.nodes()[0]), Some(code), "{bytes:?}");
    }
    // A word that is not kept to its end may be the beginning of another.
    let mut reader = Replies::new(Limits { text: 5, ..ALL });
    reader.next(b"-WRONGTYPE x\r\n").unwrap();
    assert_eq!(reader.reply().error_code(&reader.reply().nodes()[0]), Some("ERR"));
    reader.next(b"+OK\r\n").unwrap();
    assert_eq!(reader.reply().error_code(&reader.reply().nodes()[0]), None);
}

#[test]
fn an_integer_is_told_where_all_of_it_is_kept() {
    let told = |bytes: &[u8], text| {
        let mut reader = Replies::new(Limits { text, ..ALL });
        assert!(reader.next(bytes).unwrap().complete);
        reader.reply().integer(&reader.reply().nodes()[0])
    };
    assert_eq!([told(b":-123\r\n", 20), told(b":+7\r\n", 20)], [Some(-123), Some(7)]);
    assert_eq!(
        [told(b":123\r\n", 2), told(b":99999999999999999999\r\n", 30), told(b"+1\r\n", 20)],
        [None; 3]
    );
}

#[test]
fn values_lie_so_deep_in_one_another_and_no_deeper() {
    let nested = |depth| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    let mut reader = Replies::new(ALL);
    assert!(reader.next(&nested(DEEPEST)).unwrap().complete);
    let deepest = reader.reply().nodes().last().unwrap();
    assert_eq!((usize::from(deepest.depth), deepest.kind), (DEEPEST, Kind::Integer));
    for bytes in [nested(DEEPEST + 1), b"|1\r\n".repeat(DEEPEST + 1), b"*?\r\n".repeat(DEEPEST + 1)] {
        let what = "values that lie less deep in one another were expected";
        assert_eq!(reader.next(&bytes), Err(Violation { what }));
        reader = Replies::new(ALL);
    }
}

/// A script can return `{big_number = 'any text'}`.
#[test]
fn a_big_number_may_be_anything_on_its_line() {
    for text in ["", "1.5", "123  123", "-", "no number"] {
        let mut reader = Replies::new(ALL);
        assert!(reader.next(format!("({text}\r\n").as_bytes()).unwrap().complete, "{text}");
        assert_eq!(reader.reply().text(&reader.reply().nodes()[0]), text.as_bytes());
    }
}

fn scalar() -> impl Strategy<Value = OwnedFrame> {
    prop_oneof![
        "[a-zA-Z ]{0,20}"
            .prop_map(|text| OwnedFrame::SimpleString { data: text.into_bytes(), attributes: None }),
        "[A-Z]{1,8} [a-z ]{0,20}".prop_map(|data| OwnedFrame::SimpleError { data, attributes: None }),
        vec(any::<u8>(), 0..40).prop_map(|data| OwnedFrame::BlobString { data, attributes: None }),
        vec(any::<u8>(), 0..40).prop_map(|data| OwnedFrame::BlobError { data, attributes: None }),
        "[a-z\r\n]{0,20}".prop_map(|text| OwnedFrame::VerbatimString {
            data: text.into_bytes(),
            format: resp3::types::VerbatimStringFormat::Text,
            attributes: None
        }),
        any::<i64>().prop_map(|data| OwnedFrame::Number { data, attributes: None }),
        any::<f64>()
            .prop_filter("a number", |value| !value.is_nan())
            .prop_map(|data| OwnedFrame::Double { data, attributes: None }),
        any::<bool>().prop_map(|data| OwnedFrame::Boolean { data, attributes: None }),
        "-?[0-9]{1,60}".prop_map(|text| OwnedFrame::BigNumber { data: text.into_bytes(), attributes: None }),
        Just(OwnedFrame::Null),
    ]
}

fn key(number: u32) -> OwnedFrame {
    OwnedFrame::BlobString { data: number.to_string().into_bytes(), attributes: None }
}

/// Frames of all types, with attributes before some.
fn frame() -> impl Strategy<Value = OwnedFrame> {
    let push = |data| OwnedFrame::Push { data, attributes: None };
    prop_oneof![5 => value(), 1 => vec(value(), 0..6).prop_map(push)]
}

/// The same without pushes.
fn value() -> impl Strategy<Value = OwnedFrame> {
    scalar().prop_recursive(4, 40, 6, |inner| {
        let map = btree_map(any::<u32>(), inner.clone(), 0..5)
            .prop_map(|map| map.into_iter().map(|(number, value)| (key(number), value)).collect());
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(|data| OwnedFrame::Array { data, attributes: None }),
            btree_set(any::<u32>(), 0..6).prop_map(|members| OwnedFrame::Set {
                data: members.into_iter().map(key).collect(),
                attributes: None
            }),
            (map, any::<bool>(), vec(inner, 0..3)).prop_map(
                |(data, attribute, members): (resp3::types::FrameMap<_, _>, bool, Vec<_>)| match attribute {
                    true => OwnedFrame::Array { data: members, attributes: Some(data) },
                    false => OwnedFrame::Map { data, attributes: None },
                }
            ),
        ]
    })
}

fn frame_of_resp2() -> impl Strategy<Value = Frame2> {
    let scalar = prop_oneof![
        "[a-zA-Z ]{0,20}".prop_map(|text| Frame2::SimpleString(text.into_bytes())),
        "[A-Z]{1,8} [a-z ]{0,20}".prop_map(Frame2::Error),
        any::<i64>().prop_map(Frame2::Integer),
        vec(any::<u8>(), 0..40).prop_map(Frame2::BulkString),
        Just(Frame2::Null),
    ];
    scalar.prop_recursive(4, 40, 6, |inner| vec(inner, 0..6).prop_map(Frame2::Array))
}

/// A frame with everything in it that can be streamed as a stream.
fn write_streamed(frame: &OwnedFrame, bytes: &mut Vec<u8>) {
    let mark = match frame {
        OwnedFrame::BlobString { data, .. } => {
            bytes.extend_from_slice(b"$?\r\n");
            for chunk in data.chunks(7) {
                bytes.extend_from_slice(format!(";{}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b";0\r\n");
            return;
        }
        OwnedFrame::Array { .. } => b'*',
        OwnedFrame::Set { .. } => b'~',
        OwnedFrame::Map { .. } => b'%',
        other => return bytes.extend_from_slice(&encoded(other)),
    };
    bytes.extend_from_slice(&[mark, b'?', b'\r', b'\n']);
    match frame {
        OwnedFrame::Array { data, .. } => data.iter().for_each(|member| write_streamed(member, bytes)),
        OwnedFrame::Set { data, .. } => data.iter().for_each(|member| write_streamed(member, bytes)),
        OwnedFrame::Map { data, .. } => data.iter().for_each(|(key, value)| {
            write_streamed(key, bytes);
            write_streamed(value, bytes);
        }),
        _ => {}
    }
    bytes.extend_from_slice(b".\r\n");
}

/// A frame with these pushes, in turn, before every value that lies in another, and before the ends of streams; so are attributes.
fn write_with_pushes(frame: &OwnedFrame, pushes: &mut impl Iterator<Item = Vec<u8>>, bytes: &mut Vec<u8>) {
    let mut write = |mark: char, count: Option<usize>, members: &mut dyn Iterator<Item = &OwnedFrame>| {
        let count = count.map_or("?".to_owned(), |count| count.to_string());
        bytes.extend_from_slice(format!("{mark}{count}\r\n").as_bytes());
        for member in members {
            bytes.extend(pushes.next().unwrap());
            write_with_pushes(member, pushes, bytes);
        }
        if count == "?" {
            bytes.extend(pushes.next().unwrap());
            bytes.extend_from_slice(b".\r\n");
        }
    };
    if let Some(attributes) = frame.attributes().filter(|attributes| !attributes.is_empty()) {
        let pairs = &mut attributes.iter().flat_map(|(key, value)| [key, value]);
        write('|', Some(attributes.len()), pairs);
    }
    match frame {
        OwnedFrame::Array { data, .. } if data.len() % 2 == 0 => {
            write('*', Some(data.len()), &mut data.iter())
        }
        OwnedFrame::Array { data, .. } => write('*', None, &mut data.iter()),
        OwnedFrame::Push { data, .. } => write('>', Some(data.len()), &mut data.iter()),
        OwnedFrame::Set { data, .. } => write('~', Some(data.len()), &mut data.iter()),
        OwnedFrame::Map { data, .. } => {
            write('%', Some(data.len()), &mut data.iter().flat_map(|(key, value)| [key, value]));
        }
        other => bytes.extend_from_slice(&encoded(other)),
    }
}

fn encoded(frame: &OwnedFrame) -> Vec<u8> {
    let mut bytes = vec![0; frame.encode_len(false)];
    let length = resp3::encode::complete::encode(&mut bytes, frame, false).unwrap();
    bytes.truncate(length);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn another_parsers_replies_are_read_as_it_wrote_them(frame in frame()) {
        let expected = Tree::of_resp3(&frame).unwrap();
        let bytes = encoded(&frame);
        prop_assert_eq!(first_reply(&bytes), Some((expected.clone(), bytes.len())));
        let mut streamed = Vec::new();
        write_streamed(&frame, &mut streamed);
        prop_assert_eq!(first_reply(&streamed), Some((expected, streamed.len())));
    }

    /// Redis 7.0 writes messages wherever it is when a command has one sent to its own client.
    #[test]
    fn pushes_inside_a_reply_are_no_values_of_it(
        frame in frame(), pushes in vec(vec(value(), 0..3), 1..4), piece in 1_usize..60,
    ) {
        let pushes = pushes.into_iter().map(|data| encoded(&OwnedFrame::Push { data, attributes: None }));
        let (pushes, mut length) = (pushes.collect::<Vec<_>>(), 0);
        let mut bytes = Vec::new();
        let mut counted = pushes.iter().cycle().cloned().inspect(|push| length += push.len());
        write_with_pushes(&frame, &mut counted, &mut bytes);
        let expected = Tree::of_resp3(&frame).unwrap();
        prop_assert_eq!(first_reply(&bytes), Some((expected, bytes.len())));
        let whole = replies(&bytes, ALL, usize::MAX);
        prop_assert_eq!(whole.0[0].1, (bytes.len() - length) as u64);
        prop_assert_eq!(replies(&bytes, ALL, piece), whole);
        fuzzing::resp(&bytes);
    }

    #[test]
    fn another_parsers_replies_of_resp2_are_read_as_it_wrote_them(frame in frame_of_resp2()) {
        let mut bytes = vec![0; frame.encode_len(false)];
        let length = resp2::encode::encode(&mut bytes, &frame, false).unwrap();
        prop_assert_eq!(first_reply(&bytes), Some((Tree::of_resp2(&frame), length)));
    }

    #[test]
    fn in_whatever_pieces_bytes_come_they_are_the_same_replies(
        frames in vec((frame(), any::<bool>()), 0..4), cuts in vec(1_usize..400, 0..6), end in 0_usize..1000,
    ) {
        let mut bytes = Vec::new();
        for (frame, streamed) in &frames {
            match streamed {
                true => write_streamed(frame, &mut bytes),
                false => bytes.extend_from_slice(&encoded(frame)),
            }
        }
        // Some streams end within a reply.
        let bytes = &bytes[..end.min(bytes.len())];
        for limits in [ALL, LITTLE] {
            let whole = replies(bytes, limits, usize::MAX);
            prop_assert_eq!(&whole.1, &None);
            for piece in cuts.iter().copied().chain([1, 2]) {
                prop_assert_eq!(&replies(bytes, limits, piece), &whole);
            }
        }
    }
}
