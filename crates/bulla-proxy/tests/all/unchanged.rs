//! What comes back through the proxy is, byte for byte, what comes back without it.

use super::world::{MODES, World};
use bulla_testkit::{RedisServer, Rng};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// Commands that two servers answer alike.
const COMMANDS: [&str; 40] = [
    "SET a 1",
    "SET a 2 GET",
    "SET b \"\\x00\\r\\n\"",
    "GET a",
    "GET b",
    "GETDEL a",
    "MGET a b none",
    "MSET a 1 b 2",
    "INCR n",
    "INCR b",
    "DEL a none",
    "RPUSH l 1 2 3",
    "LRANGE l 0 -1",
    "LPOP l 2",
    "BLPOP l m 0.001",
    "HSET h f v g w",
    "HGETALL h",
    "HGET a f",
    "ZADD z 1 a 2.5 b",
    "ZRANGE z 0 -1 WITHSCORES",
    "SADD s a",
    "SMEMBERS s",
    "XADD x 1-1 f v",
    "XRANGE x - +",
    "RENAME a b",
    "COPY l m",
    "SELECT 1",
    "SELECT 0",
    "SELECT 99",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH a",
    "NOSUCH a",
    "GET",
    "PING",
    "PING text",
    "ECHO text",
    "OBJECT ENCODING a",
    "*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$4\r\n\r\n\r\n",
];

fn some_commands(rng: &mut Rng) -> Vec<u8> {
    let any = |rng: &mut Rng| COMMANDS[usize::try_from(rng.below(COMMANDS.len() as u64)).unwrap()];
    let version = ["", "HELLO 3\r\n"][usize::try_from(rng.below(2)).unwrap()];
    let mut bytes = version.as_bytes().to_vec();
    for _ in 0..300 {
        bytes.extend(any(rng).bytes());
        bytes.extend(b"\r\n");
    }
    bytes
}

/// All that is answered to these bytes, which are sent in pieces.
fn answered(stream: &mut (impl Read + Write), bytes: &[u8], piece: usize, end: impl Fn()) -> Vec<u8> {
    for bytes in bytes.chunks(piece) {
        stream.write_all(bytes).unwrap();
    }
    // A transaction would queue it.
    stream.write_all(b"DISCARD\r\nECHO \"that is all\"\r\n").unwrap();
    let mut answer = Vec::new();
    let mut room = [0; 4096];
    while !answer.ends_with(b"that is all\r\n") {
        let length = stream.read(&mut room).unwrap();
        assert!(length > 0, "it ended");
        answer.extend_from_slice(&room[..length]);
    }
    end();
    answer
}

/// Without what a server says of itself in its reply to `HELLO`.
fn without_greeting(answer: &[u8]) -> &[u8] {
    let greeting: &[u8] = b"$7\r\nmodules\r\n*0\r\n";
    let at = answer.windows(greeting.len()).position(|window| window == greeting);
    at.map_or(answer, |at| &answer[at + greeting.len()..])
}

#[test]
fn replies_are_the_servers_byte_for_byte() {
    for (mode, seed) in MODES.into_iter().zip(1..) {
        let folder = tempfile::tempdir().unwrap();
        let server = RedisServer::start(folder.path(), &[]);
        let world = World::new(&format!("mode = \"{mode}\""), "", &[]);
        let mut rng = Rng(seed);
        for round in 0..12 {
            let bytes = some_commands(&mut rng);
            let piece = usize::try_from(rng.below(5000) + 1).unwrap();
            let mut direct = UnixStream::connect(server.socket()).unwrap();
            let expected = answered(&mut direct, &bytes, piece, || ());
            let mut client = world.connect().stream;
            let through = client.try_clone().unwrap();
            let end = || through.shutdown(Shutdown::Both).unwrap();
            let answer = answered(&mut client, &bytes, piece, end);
            assert!(without_greeting(&answer) == without_greeting(&expected), "{mode}: {round}: {piece}");
        }
        assert!(world.proxy().counters().recorded.get() > 1000, "{mode}");
    }
}
