//! A client of a store that speaks RESP2, as small as measurements need it.

use crate::outcome::Failure;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// What is read at once, in bytes.
const CHUNK: usize = 64 << 10;
/// The greatest length that is believed, of bytes and of items: that of a server's values.
const LONGEST: usize = 512 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A status, or a number, as text.
    Line(String),
    Error(String),
    Nothing,
    Bytes(Vec<u8>),
    Items(Vec<Reply>),
}

/// The reply at the beginning of these bytes and how long it is, once all of it is there.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Failure> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (kind, text) = (bytes.first(), String::from_utf8_lossy(bytes.get(1..end).unwrap_or_default()));
    let begun = end + 2;
    let length = || match text.parse::<i64>()? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= LONGEST => Ok(Some(length)),
            _ => Err(Failure::from(format!("a reply has a length of {length}"))),
        },
    };
    Ok(match kind {
        Some(b'+' | b':') => Some((Reply::Line(text.into_owned()), begun)),
        Some(b'-') => Some((Reply::Error(text.into_owned()), begun)),
        Some(b'$') => match length()? {
            None => Some((Reply::Nothing, begun)),
            Some(length) if bytes.len() < begun + length + 2 => None,
            Some(length) => Some((Reply::Bytes(bytes[begun..begun + length].to_vec()), begun + length + 2)),
        },
        Some(b'*') => match length()? {
            None => Some((Reply::Nothing, begun)),
            Some(count) => {
                let (mut items, mut at) = (Vec::new(), begun);
                for _ in 0..count {
                    let Some((item, length)) = parse(&bytes[at..])? else { return Ok(None) };
                    items.push(item);
                    at += length;
                }
                Some((Reply::Items(items), at))
            }
        },
        _ => return Err("what came is no reply".into()),
    })
}

/// Appends a command.
pub(super) fn encode<A: AsRef<[u8]>>(command: &[A], out: &mut Vec<u8>) {
    let _ = write!(out, "*{}\r\n", command.len());
    for argument in command {
        let argument = argument.as_ref();
        let _ = write!(out, "${}\r\n", argument.len());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}

pub(super) struct Client {
    stream: TcpStream,
    sending: Vec<u8>,
    received: Vec<u8>,
    taken: usize,
}

impl Client {
    pub(super) fn connect(port: u16) -> Result<Self, Failure> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, sending: Vec::new(), received: Vec::new(), taken: 0 })
    }

    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Has a command sent before the next reply is waited for.
    pub(super) fn push<A: AsRef<[u8]>>(&mut self, command: &[A]) {
        encode(command, &mut self.sending);
    }

    /// The next reply; one that is an error is a failure.
    pub(super) fn receive(&mut self) -> Result<Reply, Failure> {
        if !self.sending.is_empty() {
            self.stream.write_all(&self.sending)?;
            self.sending.clear();
        }
        loop {
            match parse(&self.received[self.taken..])? {
                Some((Reply::Error(error), _)) => return Err(format!("the server answered {error}").into()),
                Some((reply, length)) => {
                    self.taken += length;
                    return Ok(reply);
                }
                None => self.read()?,
            }
        }
    }

    /// Sends a command and waits for its reply.
    pub(super) fn ask<A: AsRef<[u8]>>(&mut self, command: &[A]) -> Result<Reply, Failure> {
        self.push(command);
        self.receive()
    }

    fn read(&mut self) -> Result<(), Failure> {
        self.received.drain(..self.taken);
        self.taken = 0;
        let filled = self.received.len();
        self.received.resize(filled + CHUNK, 0);
        let count = self.stream.read(&mut self.received[filled..])?;
        self.received.truncate(filled + count);
        if count == 0 { Err("the connection was closed".into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_once_its_last_byte_is_there() {
        let bytes = |text: &str| Reply::Bytes(text.into());
        for (text, reply) in [
            ("+OK\r\n", Reply::Line("OK".into())),
            (":12\r\n", Reply::Line("12".into())),
            ("-ERR no\r\n", Reply::Error("ERR no".into())),
            ("$-1\r\n", Reply::Nothing),
            ("*-1\r\n", Reply::Nothing),
            ("$4\r\na\r\nb\r\n", bytes("a\r\nb")),
            ("*0\r\n", Reply::Items(vec![])),
            (
                "*2\r\n$1\r\na\r\n*1\r\n$-1\r\n",
                Reply::Items(vec![bytes("a"), Reply::Items(vec![Reply::Nothing])]),
            ),
        ] {
            for end in 0..text.len() {
                assert_eq!(parse(&text.as_bytes()[..end]).unwrap(), None, "{text:?} up to {end}");
            }
            assert_eq!(parse(format!("{text}+").as_bytes()).unwrap(), Some((reply, text.len())));
        }
        for text in ["hello\r\n", "$-2\r\n", "$999999999999\r\n", "$x\r\n", "*-2\r\n"] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_command_is_an_array_of_its_arguments() {
        let mut out = Vec::new();
        encode(&["GET", "a\r\n"], &mut out);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n");
    }
}
