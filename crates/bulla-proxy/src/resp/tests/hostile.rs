//! Whatever comes, memory is bounded, and nothing panics.

use crate::fuzzing;
use crate::resp::{Digest, Limits, Replies, Requests};
use bulla_testkit::allocator::most_held_here;
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits { bytes: 4096, items: 64, text: 1024 };
const KIB: usize = 1 << 10;

/// Gives a parser a beginning and then the same piece again and again; the most memory that it held, and whether it read all of it.
fn held(beginning: &[u8], piece: &[u8], times: usize, server: bool) -> (usize, bool) {
    let (mut requests, mut replies) = (Requests::new(LIMITS, [0; 32]), Replies::new(LIMITS));
    let pieces = std::iter::once(beginning).chain(std::iter::repeat_n(piece, times));
    let (read, most) = most_held_here(|| {
        pieces.into_iter().all(|mut bytes| {
            while !bytes.is_empty() {
                let next = match server {
                    true => replies.next(bytes),
                    false => requests.next(bytes, |_, _, _| (usize::MAX, Digest::OfCut)),
                };
                let Ok(progress) = next else { return false };
                bytes = &bytes[progress.consumed..];
            }
            true
        })
    });
    (most, read)
}

#[test]
fn a_client_cannot_make_the_parser_hold_more_than_its_limits() {
    let noise = [b'a'; 64 * KIB];
    // The line of an inline command is kept until its end comes.
    let inline = 256 * KIB;
    let read: [(&[u8], &[u8], usize, usize); 7] = [
        (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9223372036854775807\r\n", &noise, 100, 32 * KIB),
        (b"*2147483647\r\n", b"$1\r\na\r\n", 1_000_000, 32 * KIB),
        (b"*2147483647\r\n", b"$0\r\n\r\n", 1_000_000, 32 * KIB),
        (b"", b"*0\r\n", 100_000, KIB),
        (b"", b"\r\n", 100_000, KIB),
        (&noise[..60 * KIB], b"a b c d\r\n", 10_000, inline),
        (b"a", &[b' '; 1000], 64, inline),
    ];
    for (beginning, piece, times, bound) in read {
        let (most, all) = held(beginning, piece, times, false);
        assert!(all && most <= bound, "{most} after {}", beginning[..beginning.len().min(40)].escape_ascii());
    }
    let refused: [(&[u8], &[u8]); 6] = [
        (b"", &noise),
        (b"\"", b"\\"),
        (b"*", b"1"),
        (b"*1\r\n$", b"1"),
        (b"*1\r\n$-", b"9"),
        (b"*1\r\n", b"\r\n"),
    ];
    for (beginning, piece) in refused {
        let (most, all) = held(beginning, piece, 100_000, false);
        assert!(!all && most <= inline, "{most} after {}", beginning.escape_ascii());
    }
}

#[test]
fn a_server_cannot_make_the_parser_hold_more_than_its_limits() {
    let noise = [b'a'; 64 * KIB];
    let deep = 512 * KIB;
    let read: [(&[u8], &[u8], usize, usize); 11] = [
        (b"$9223372036854775807\r\n", &noise, 100, 32 * KIB),
        (b"=9223372036854775807\r\ntxt:", &noise, 100, 32 * KIB),
        (b"+", &noise, 100, 32 * KIB),
        (b"-", b"\r", 100_000, 32 * KIB),
        (b"(", b"9999999999", 100_000, 32 * KIB),
        (b"$?\r\n", b";3\r\nabc\r\n", 100_000, 32 * KIB),
        (b"*9223372036854775807\r\n", b"$1\r\na\r\n", 1_000_000, 32 * KIB),
        (b"%9223372036854775807\r\n", b"*0\r\n", 100_000, 32 * KIB),
        (b"|9223372036854775807\r\n", b"*1\r\n:1\r\n", 100_000, 32 * KIB),
        (b"*?\r\n", b":1\r\n", 100_000, 32 * KIB),
        (b"", b"|0\r\n", 100_000, KIB),
    ];
    for (beginning, piece, times, bound) in read {
        let (most, all) = held(beginning, piece, times, true);
        assert!(all && most <= bound, "{most} after {}", beginning.escape_ascii());
    }
    let refused: [(&[u8], &[u8]); 5] =
        [(b"", b"*1\r\n"), (b"", b"*9223372036854775807\r\n"), (b"", b"|1\r\n"), (b"*", b"1"), (b":", b"1")];
    for (beginning, piece) in refused {
        let (most, all) = held(beginning, piece, 100_000, true);
        assert!(!all && most <= deep, "{most} after {} {}", beginning.escape_ascii(), piece.escape_ascii());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_make_either_parser_panic_or_read_pieces_otherwise(bytes in vec(any::<u8>(), 0..200)) {
        fuzzing::resp(&bytes);
    }

    #[test]
    fn no_bytes_that_look_like_the_protocol_do(parts in vec("[-+:$*~%>|!=_#,(;.]|[0-9?-]|\r\n|[a-z:\"' ]", 0..80)) {
        fuzzing::resp(parts.concat().as_bytes());
    }
}
