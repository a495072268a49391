//! One connection: requests one after the other, each within its limits.

use super::{HEAD, IDLE, TIME, Tls};
use crate::request::{MOST, PATH};
use crate::{Answer, Witness};
use bulla_crypto::clock::Deadline;
use rustls::{ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The most fields in the head of a request.
const FIELDS: usize = 64;
/// How much of what comes behind a request that is refused is read, so that the answer is not lost with it.
const REST: usize = 256 << 10;

/// A connection with a limit in time for what is under way on it.
struct Timed<'a> {
    stream: &'a TcpStream,
    until: Deadline,
}

impl Timed<'_> {
    /// Sets the limit for the next read or write.
    fn limit(&self) -> io::Result<Option<Duration>> {
        let left = self.until.left();
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.limit()?)?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.limit()?)?;
        let mut stream = self.stream;
        stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// With TLS or without.
enum Connection<'a> {
    Plain(Timed<'a>),
    Tls(Box<StreamOwned<ServerConnection, Timed<'a>>>),
}

impl Connection<'_> {
    fn set_limit(&mut self, time: Duration) {
        let until = Deadline::after(time);
        match self {
            Connection::Plain(timed) => timed.until = until,
            Connection::Tls(tls) => tls.sock.until = until,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Plain(timed) => timed.read(buffer),
            Connection::Tls(tls) => tls.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Connection::Plain(timed) => timed.write_all(bytes),
            Connection::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        }
    }
}

/// Serves requests until the client goes away, sends none for [`IDLE`], or what it sends is none. `crowded` says whether there are so many
/// connections that none is kept for another request.
pub(super) fn serve(
    stream: &TcpStream,
    tls: Option<&Tls>,
    witness: &Witness,
    crowded: &dyn Fn() -> bool,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    // Answers are one write each.
    stream.set_nodelay(true)?;
    let timed = Timed { stream, until: Deadline::after(TIME) };
    let mut connection = match tls {
        None => Connection::Plain(timed),
        Some(tls) => {
            let server = ServerConnection::new(tls.config.clone()).map_err(io::Error::other)?;
            Connection::Tls(Box::new(StreamOwned::new(server, timed)))
        }
    };
    let mut bytes = Vec::new();
    let mut first = true;
    loop {
        // TLS is agreed on with the first bytes, which are awaited no longer than a request may take.
        if bytes.is_empty() {
            connection.set_limit(if first { TIME } else { IDLE });
            if fill(&mut connection, &mut bytes)? == 0 {
                return Ok(());
            }
        }
        first = false;
        connection.set_limit(TIME);
        let request = read_request(&mut connection, &mut bytes)?;
        let (answer, with_body, keep) = match request {
            Received::Post { body, keep } => (witness.add_checkpoint(&body), true, keep && !crowded()),
            Received::Refused(answer, with_body) => (answer, with_body, false),
            Received::Gone => return Ok(()),
        };
        connection.write_all(&render(&answer, with_body, keep))?;
        if !keep {
            break;
        }
    }
    if let Connection::Tls(tls) = &mut connection {
        tls.conn.send_close_notify();
        tls.flush()?;
    }
    stream.shutdown(Shutdown::Write)?;
    // A connection that is closed with something unread in it is reset, and the answer with it.
    let mut rest = 0;
    while rest < REST {
        bytes.clear();
        match fill(&mut connection, &mut bytes)? {
            0 => break,
            read => rest += read,
        }
    }
    Ok(())
}

/// A request as far as it came.
enum Received {
    Post {
        body: Vec<u8>,
        keep: bool,
    },
    /// With the body of the answer, or without.
    Refused(Answer, bool),
    Gone,
}

fn fill(connection: &mut Connection<'_>, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; 4096];
    let read = connection.read(&mut buffer)?;
    bytes.extend_from_slice(&buffer[..read]);
    Ok(read)
}

/// Reads a request that begins with `bytes`, in which what came behind it is left.
fn read_request(connection: &mut Connection<'_>, bytes: &mut Vec<u8>) -> io::Result<Received> {
    let head = loop {
        match parse_head(bytes) {
            Ok(Some(head)) => break head,
            Ok(None) if fill(connection, bytes)? == 0 => return Ok(Received::Gone),
            Ok(None) => {}
            Err((answer, with_body)) => return Ok(Received::Refused(answer, with_body)),
        }
    };
    if head.expects {
        connection.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    bytes.drain(..head.length);
    while bytes.len() < head.body {
        if fill(connection, bytes)? == 0 {
            return Ok(Received::Gone);
        }
    }
    let behind = bytes.split_off(head.body);
    Ok(Received::Post { body: std::mem::replace(bytes, behind), keep: head.keep })
}

/// What the head of a request says that is served.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    /// How long it is, in bytes.
    length: usize,
    /// How long the body is.
    body: usize,
    /// Whether the client wants to be told that it may send the body.
    expects: bool,
    /// Whether the connection may be kept.
    keep: bool,
}

/// The head that `bytes` begin with; `None` while it is not there as a whole.
///
/// # Errors
/// The answer to a request that is none, or that is not served, with its body or without.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, (Answer, bool)> {
    let refused = |status, why| Err((Answer::refused(status, why), true));
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return refused(431, "the head of a request has at most 8 KiB and 64 fields");
        }
        Err(_) => return refused(400, "this is no request of HTTP/1.1"),
    };
    let all = |name: &str| {
        let name = name.to_owned();
        request
            .headers
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(&name))
            .map(|field| field.value)
    };
    let hosts = all("host").count();
    let is_1_1 = request.version == Some(1);
    // RFC 9112, section 3.2; HTTP/1.0 has no such field.
    if hosts > 1 || hosts == 0 && is_1_1 {
        return refused(400, "a request of HTTP/1.1 has one field `Host`");
    }
    let path = request.path.unwrap_or_default();
    if path.strip_prefix('/') != Some(PATH) {
        let answer = Answer::refused(404, "there is POST /add-checkpoint, and nothing else");
        return Err((answer, request.method != Some("HEAD")));
    }
    if request.method != Some("POST") {
        return Err((
            Answer::refused(405, "there is POST, and no other method"),
            request.method != Some("HEAD"),
        ));
    }
    // What frames a body in two ways could be read as two requests: RFC 9112, section 6.
    if all("transfer-encoding").next().is_some() {
        return refused(411, "the length of the body has to be said (Content-Length)");
    }
    let mut lengths = all("content-length");
    let digits = |value: &[u8]| -> Option<usize> {
        let text =
            std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        text.parse().ok()
    };
    let body = match (lengths.next().map(digits), lengths.next()) {
        (None, _) => return refused(411, "the length of the body has to be said (Content-Length)"),
        (Some(Some(body)), None) => body,
        (Some(_), _) => return refused(400, "the length of the body is no number, or there are several"),
    };
    if body > MOST {
        return refused(413, "a request has at most 64 KiB");
    }
    let has = |name: &str, word: &str| {
        all(name).any(|value| {
            value
                .split(|byte| *byte == b',')
                .any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
        })
    };
    let (keep, expects) = (is_1_1 && !has("connection", "close"), has("expect", "100-continue"));
    Ok(Some(Head { length, body, expects, keep }))
}

/// See [`check_head`](super::check_head).
#[cfg(any(test, fuzzing))]
pub(super) fn check_head(bytes: &[u8]) {
    match parse_head(bytes) {
        Ok(Some(head)) => {
            assert!(head.length <= bytes.len().min(HEAD) && head.body <= MOST, "{head:?}");
            assert_eq!(
                parse_head(&bytes[..head.length]).ok().flatten(),
                Some(head),
                "what follows changes nothing"
            );
        }
        Ok(None) => assert!(bytes.len() <= HEAD, "what is longer is refused"),
        Err((answer, _)) => assert!([400, 404, 405, 411, 413, 431].contains(&answer.status)),
    }
}

fn render(answer: &Answer, with_body: bool, keep: bool) -> Vec<u8> {
    let (status, kind, body) = (answer.status, answer.content_type, &answer.body);
    let reason = reason(status);
    let allow = if status == 405 { "Allow: POST\r\n" } else { "" };
    let close = if keep { "" } else { "Connection: close\r\n" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n{allow}{close}\r\n"
    );
    [head.as_str(), if with_body { body } else { "" }].concat().into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::server) fn rendered(answer: &Answer) -> String {
        String::from_utf8(render(answer, true, true)).unwrap()
    }
}
