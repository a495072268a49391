//! Against a running `redis-server`: what it takes for a command is what it executes.

use crate::fuzzing::{self, ALL, commands, replies};
use crate::resp::{Kind, write_command};
use crate::world::Server;
use bulla_testkit::Rng;
use std::io::{Read, Write};
use std::net::Shutdown;

/// Up to eight of the parts, one after the other.
fn some_of(parts: &[&str], rng: &mut Rng) -> String {
    let part = |at: u64| parts[usize::try_from(at).unwrap()];
    (0..rng.below(9)).map(|_| part(rng.below(parts.len() as u64))).collect()
}

#[test]
fn a_server_splits_a_line_into_the_same_words() {
    const PARTS: [&str; 16] =
        ["\"", "\"", "'", "'", "\\", "\\x", "\\\"", "\\'", " ", "\" ", "' ", "\t", "\r", "4f", "n", "é"];
    let server = Server::start();
    let mut connection = server.connect();
    let mut rng = Rng(7);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..600 {
        let noise = some_of(&PARTS, &mut rng);
        let line = format!("RPUSH words {noise}\r\n").into_bytes();
        let reply = connection.ask(&line);
        let told = String::from_utf8_lossy(reply.text(&reply.nodes()[0])).into_owned();
        let (ours, violation) = commands(&line, ALL, usize::MAX);
        if violation.is_some() {
            assert_eq!(told, "ERR Protocol error: unbalanced quotes in request", "{noise:?}");
            connection = server.connect();
            refused += 1;
            continue;
        }
        let words = ours[0].3[2..].iter().map(|(word, ..)| word.as_slice()).collect::<Vec<_>>();
        if words.is_empty() {
            assert_eq!(reply.kind(), Some(Kind::Error), "{noise:?}: {told}");
            continue;
        }
        assert_eq!(told, words.len().to_string(), "{noise:?}");
        let stored = connection.ask(b"LRANGE words 0 -1\r\n");
        let theirs = stored.children(0).map(|(_, node)| stored.text(node)).collect::<Vec<_>>();
        assert_eq!(words, theirs, "{noise:?}");
        let mut delete = Vec::new();
        write_command(&[b"DEL", b"words"], &mut delete);
        connection.ask(&delete);
        read += 1;
    }
    assert!(read > 100 && refused > 100, "{read} lines were read, {refused} refused");
}

#[test]
fn a_server_answers_as_many_commands_as_are_read() {
    const PARTS: [&str; 20] = [
        "*1\r\n",
        "*1\r\n",
        "*2\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*01\r\n",
        "*",
        "$4\r\nPING\r\n",
        "$4\r\nPING\r\n",
        "$4\rXPINGab",
        "$0\r\n\r\n",
        "$-1\r\n",
        "$",
        "1",
        "PING\r\n",
        "a 'b\"' \n",
        "\"",
        "\r\n",
        "\r",
        "\n",
    ];
    let server = Server::start();
    let mut rng = Rng(8);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..600 {
        // With the end of a line at its end: a server looks at nothing of a line before that.
        let bytes = some_of(&PARTS, &mut rng) + "\r\n";
        let mut connection = server.connect();
        connection.stream.write_all(bytes.as_bytes()).unwrap();
        connection.stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        connection.stream.read_to_end(&mut answer).unwrap();
        let (mut told, _) = replies(&answer, ALL, usize::MAX);
        // What has come of the next one, or once more the last one.
        told.pop();
        let is_refusal = |reply: &fuzzing::ToldReply| reply.3[0].1.starts_with(b"ERR Protocol error");
        let refusal = told.last().is_some_and(is_refusal);
        let (ours, violation) = commands(bytes.as_bytes(), ALL, usize::MAX);
        if violation.as_ref().is_some_and(|violation| violation.what == "a line with a word was expected") {
            // What servers do not read alike: only what is before it has the same answers.
            assert!(ours.len() <= told.len(), "{bytes:?}");
            continue;
        }
        assert_eq!(violation.is_some(), refusal, "{bytes:?}: {violation:?}");
        let complete = ours.len() - usize::from(violation.is_none());
        assert_eq!(complete, told.len() - usize::from(refusal), "{bytes:?}");
        answered += complete;
        refused += usize::from(refusal);
    }
    assert!(answered > 300 && refused > 100, "{answered} commands were answered, {refused} refused");
}
