//! Commands, as a server reads them.

use crate::fuzzing::{ALL, LITTLE, commands};
use crate::resp::{Digest, Limits, Progress, Requests, Violation, write_command};
use bulla_testkit::allocator::allocations;
use proptest::collection::vec;
use proptest::prelude::*;

/// The arguments of all commands in `bytes`, which end with the last of them; or why they are none.
fn arguments(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, &'static str> {
    let (mut told, violation) = commands(bytes, ALL, usize::MAX);
    if let Some(violation) = violation {
        return Err(violation.what);
    }
    let end = told.len() - 1;
    // What came of the next command, or once more the last one.
    told.truncate(end);
    Ok(told.into_iter().map(|(.., kept)| kept.into_iter().map(|(bytes, ..)| bytes).collect()).collect())
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn arrays_of_bulk_strings_are_commands() {
    let pipeline = b"*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n*1\r\n";
    let expected = [words(&["LLEN", "mylist"]), words(&["PING"]), words(&["SET", "", "\r\n*1"])];
    assert_eq!(arguments(pipeline).unwrap(), expected);
}

/// Each as Redis 7.0 answers it, by `ECHO`.
#[test]
fn a_line_of_words_is_a_command() {
    let lines: [(&[u8], &[&[u8]]); 19] = [
        (b"PING\r\n", &[b"PING"]),
        (b"PING\n", &[b"PING"]),
        (b" EXISTS  somekey\t\r\n", &[b"EXISTS", b"somekey"]),
        (b"ECHO \"a b\" 'c d'\n", &[b"ECHO", b"a b", b"c d"]),
        (b"ECHO a\"b c\"\n", &[b"ECHO", b"ab c"]),
        (b"ECHO \"\" ''\n", &[b"ECHO", b"", b""]),
        (b"\"\"\n", &[b""]),
        (b"ECHO \"\\x41\\xfF\\x4g\\n\\r\\t\\a\\b\\q\\\\\\\"\"\n", &[b"ECHO", b"A\xffx4g\n\r\t\x07\x08q\\\""]),
        (b"ECHO 'a\\'b\\n\\x41\"'\n", &[b"ECHO", b"a'b\\n\\x41\""]),
        (b"ECHO a\\nb\\\n", &[b"ECHO", b"a\\nb\\"]),
        (b"ECHO a\rb\r\n", &[b"ECHO", b"a", b"b"]),
        (b"ECHO \"a\rb\"\r\r\n", &[b"ECHO", b"a\rb"]),
        (b"ECHO a\x0bb\x0cc \x0bd\n", &[b"ECHO", b"a\x0bb\x0cc", b"d"]),
        (b"\x0bECHO \x0ca\n", &[b"ECHO", b"a"]),
        (b"ECHO \"a\x0bb\"\n", &[b"ECHO", b"a\x0bb"]),
        (b"ECHO \xff\xa0\x85\n", &[b"ECHO", b"\xff\xa0\x85"]),
        (b"$4\r\n", &[b"$4"]),
        (b" *1\r\n", &[b"*1"]),
        (b"+OK\n", &[b"+OK"]),
    ];
    for (line, expected) in lines {
        assert_eq!(arguments(line).unwrap(), [expected.to_vec()], "{}", line.escape_ascii());
    }
    // With everything that may lie before its end and after it.
    let longest = [b"ECHO ", &[b'a'; 65_531][..], b"\n"].concat();
    assert_eq!(arguments(&longest).unwrap()[0][1].len(), 65_531);
}

#[test]
fn what_no_reply_comes_to_is_no_command() {
    let nothing = b"*0\r\n*-1\r\n*-99\r\n\r\n\n";
    assert_eq!(commands(nothing, ALL, 1), (vec![(nothing.len(), 0, 0, vec![])], None));
    let bytes = [nothing, &b"*1\r\n$4\r\nPING\r\n"[..], nothing, b"PING\n", nothing].concat();
    assert_eq!(arguments(&bytes).unwrap(), [words(&["PING"]), words(&["PING"])]);
    for piece in [1, 5, usize::MAX] {
        let (told, _) = commands(&bytes, ALL, piece);
        assert_eq!([told[0].2, told[1].2], [14, 5], "its own bytes are counted, and no others");
    }
}

/// It does not look at what stands where a line feed should: Redis 7.0 answers both.
#[test]
fn what_a_server_does_not_look_at_is_not_looked_at() {
    let bytes = b"*1\rX$4\rYPINGab*1\r\n$4\r\nPING\r\n";
    assert_eq!(arguments(bytes).unwrap(), [words(&["PING"]), words(&["PING"])]);
}

#[test]
fn what_a_server_refuses_is_a_violation_in_its_own_words() {
    let count = "invalid multibulk length";
    let length = "invalid bulk length";
    let dollar = "expected '$' before an argument";
    let quote = "a closing quote was expected before the end of the line";
    let blank = "a blank after a closing quote was expected";
    let word = "a line with a word was expected";
    let long = [&[b'a'; 65_537][..], b"\n"].concat();
    let refused: [(&[u8], &str); 33] = [
        (b"*\r\n", count),
        (b"*-\r\n", count),
        (b"*-0\r\n", count),
        (b"*01\r\n", count),
        (b"*+1\r\n", count),
        (b"* 1\r\n", count),
        (b"*1 \r\n", count),
        (b"*1\n", count),
        (b"*1x", count),
        (b"*2147483648\r\n", count),
        (b"*9223372036854775808\r\n", count),
        (b"*99999999999999999999", count),
        (b"*1\r\n+PING\r\n", dollar),
        (b"*1\r\n*1\r\n", dollar),
        (b"*1\r\n\r\n", dollar),
        (b"*1\r\n$\r\n", length),
        (b"*1\r\n$-1\r\n", length),
        (b"*1\r\n$+4\r\n", length),
        (b"*1\r\n$04\r\n", length),
        (b"*1\r\n$4x", length),
        (b"*1\r\n$?\r\n", length),
        (b"*1\r\n$9223372036854775808\r\n", length),
        (b"ECHO \"a\n", quote),
        (b"ECHO 'a\r\n", quote),
        (b"ECHO \"a\\\n", quote),
        (b"ECHO \"a\"b\n", blank),
        (b"ECHO 'a''b'\n", blank),
        (b"ECHO \"a\"\x0bb\n", blank),
        (b"ECHO a\0b\n", "a line without a NUL was expected"),
        (b"\0", "a line without a NUL was expected"),
        (b"  \r\n", word),
        (b"\t\x0b\n", word),
        (&long, "too big inline request"),
    ];
    for (bytes, what) in refused {
        for piece in [1, 3, usize::MAX] {
            assert_eq!(commands(bytes, ALL, piece).1, Some(Violation { what }), "{}", bytes.escape_ascii());
        }
        // What was complete before it is told.
        let after = [b"PING\r\n", bytes].concat();
        assert_eq!(commands(&after, ALL, usize::MAX).0.len(), 1);
    }
}

#[test]
fn what_has_come_of_a_command_is_shown_before_it_is_complete() {
    let mut requests = Requests::new(ALL, [0; 32]);
    let mut give = |bytes: &[u8]| {
        let progress = requests.next(bytes, |_, _, _| (usize::MAX, Digest::None)).unwrap();
        assert_eq!(progress, Progress { consumed: bytes.len(), complete: false });
        let arguments = requests.arguments().clone();
        (arguments.count(), arguments.arrived(), arguments.is(0, "set"), arguments)
    };
    assert_eq!(give(b"*").0, 0);
    let (count, arrived, is_set, arguments) = give(b"3\r\n$3\r\nSE");
    assert_eq!((count, arrived, is_set, arguments.get(0)), (3, 0, false, Some(&b"SE"[..])));
    let (_, arrived, is_set, arguments) = give(b"T\r\n$3\r\n");
    assert_eq!((arrived, is_set, arguments.get(1), arguments.is_whole(1)), (1, true, Some(&b""[..]), false));
    let (_, arrived, _, arguments) = give(b"key\r\n$1000000\r\nv");
    assert_eq!(
        (arrived, arguments.get(1), arguments.argument(2).unwrap().length),
        (2, Some(&b"key"[..]), 1_000_000)
    );
    assert_eq!((arguments.get(3), arguments.wire()), (None, 33));
}

#[test]
fn who_says_what_is_kept_knows_the_arguments_before() {
    let seen = std::cell::RefCell::new(Vec::new());
    for (line, counted) in [(&b"GET a bcd\r\n"[..], 3), (b"*3\r\n$3\r\nGET\r\n$1\r\na\r\n$3\r\nbcd\r\n", 3)] {
        let mut requests = Requests::new(ALL, [0; 32]);
        let keep = |before: &crate::resp::Arguments, index, length| {
            assert_eq!((before.count(), before.arrived()), (counted, index));
            assert!((0..index).all(|index| before.is_whole(index)));
            seen.borrow_mut().push(length);
            (usize::MAX, Digest::None)
        };
        assert!(requests.next(line, keep).unwrap().complete);
    }
    assert_eq!(seen.into_inner(), [3, 1, 3, 3, 1, 3]);
}

#[test]
fn of_what_is_longer_than_what_is_kept_there_is_a_digest() {
    // Python: hmac.new(bytes([7] * 32), b"x" * 1000, hashlib.sha256)
    let expected = "185c72abdfb88066474d46788ba6e9823bf867f2fbd95d325afc5563be6c042f";
    let mut bytes = Vec::new();
    write_command(&[b"SET", b"key", &[b'x'; 1000]], &mut bytes);
    for (wanted, limit, digest, kept) in [
        (10, 100, Digest::OfCut, 10),
        (10, 9, Digest::OfCut, 3),
        (0, 100, Digest::OfCut, 0),
        (10, 100, Digest::None, 10),
        (1000, 2000, Digest::OfCut, 1000),
    ] {
        for piece in [1, 64, bytes.len()] {
            let mut requests = Requests::new(Limits { bytes: limit, ..ALL }, [7; 32]);
            for piece in bytes.chunks(piece) {
                requests.next(piece, |_, index, _| (if index < 2 { 3 } else { wanted }, digest)).unwrap();
            }
            let arguments = requests.arguments();
            let value = arguments.argument(2).unwrap();
            assert_eq!((arguments.get(2).unwrap(), value.length), (&[b'x'; 1000][..kept], 1000));
            let hex = value.digest.map(|digest| digest.map(|byte| format!("{byte:02x}")).concat());
            assert_eq!(hex.as_deref(), (digest == Digest::OfCut && kept < 1000).then_some(expected));
            assert_eq!(arguments.is_whole(2), kept == 1000);
            assert_eq!(arguments.argument(1).unwrap().digest, None, "all of it is kept");
        }
    }
}

#[test]
fn arguments_beyond_the_limit_are_counted() {
    let mut bytes = Vec::new();
    write_command(&[&b"MGET"[..]; 10], &mut bytes);
    let (told, _) = commands(&bytes, LITTLE, usize::MAX);
    let (end, count, wire, kept) = &told[0];
    assert_eq!((*end, *count, *wire), (bytes.len(), 10, bytes.len() as u64));
    assert_eq!(kept.iter().map(|(bytes, ..)| bytes.len()).collect::<Vec<_>>(), [4, 4, 4, 4]);
}

#[test]
fn nothing_is_allocated_for_a_command_once_buffers_have_grown() {
    let mut pipeline = Vec::new();
    for key in 0..100 {
        write_command(&[b"SET", format!("key:{key:03}").as_bytes(), &[b'v'; 64]], &mut pipeline);
        write_command(&[b"GET", format!("key:{key:03}").as_bytes()], &mut pipeline);
        pipeline.extend_from_slice(b"EXISTS \"key\"\r\n");
    }
    let limits = Limits { bytes: 256, items: 8, text: 64 };
    let mut requests = Requests::new(limits, [0; 32]);
    let mut round = |piece| {
        for mut piece in pipeline.chunks(piece) {
            while !piece.is_empty() {
                let progress = requests.next(piece, |_, _, _| (32, Digest::OfCut)).unwrap();
                piece = &piece[progress.consumed..];
            }
        }
    };
    round(1);
    let before = allocations();
    round(1);
    round(1000);
    round(pipeline.len());
    assert_eq!(allocations(), before);
}

/// Commands of both forms, and what is none.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let array = vec(vec(any::<u8>(), 0..40), 1..6).prop_map(|arguments| {
        let mut bytes = Vec::new();
        write_command(&arguments.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut bytes);
        bytes
    });
    let line = vec("[a-z]{1,5}|\"[a-z \\\\n']*\"|'[a-z \"]*'|\"\\\\x0d\"", 0..6);
    let line = line.prop_map(|words| (words.join(" ") + "\r\n").into_bytes());
    let nothing = prop_oneof![Just(b"*0\r\n".to_vec()), Just(b"*-1\r\n".to_vec()), Just(b"\n".to_vec())];
    vec(prop_oneof![4 => array, 2 => line, 1 => nothing], 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn in_whatever_pieces_bytes_come_they_are_the_same_commands(
        bytes in stream(), cuts in vec(0_usize..400, 0..6), end in 0_usize..400,
    ) {
        // Some streams end within a command.
        let bytes = &bytes[..end.min(bytes.len())];
        for limits in [ALL, LITTLE] {
            let whole = commands(bytes, limits, usize::MAX);
            for piece in cuts.iter().copied().chain([1, 2]) {
                prop_assert_eq!(&commands(bytes, limits, piece.max(1)), &whole);
            }
        }
    }

    #[test]
    fn another_parsers_commands_are_read_as_it_wrote_them(
        pipeline in vec(vec(vec(any::<u8>(), 0..40), 1..6), 1..5),
    ) {
        use redis_protocol::resp2::{encode::extend_encode, types::BytesFrame};
        let mut bytes = redis_protocol::bytes::BytesMut::new();
        for arguments in &pipeline {
            let texts = arguments.iter().map(|text| BytesFrame::BulkString(text.clone().into()));
            extend_encode(&mut bytes, &BytesFrame::Array(texts.collect()), false).unwrap();
        }
        prop_assert_eq!(arguments(&bytes).unwrap(), pipeline);
    }
}
