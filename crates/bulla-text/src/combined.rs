//! The *combined* access-log format of Apache and nginx.
//!
//! ```text
//! client identity user [17/May/2015:10:05:03 +0000] "METHOD target PROTOCOL" status size "referer" "agent"
//! ```
//!
//! | Part | Becomes |
//! |---|---|
//! | client | `client` |
//! | identity | `identity` in the payload, when it is not `-` |
//! | user | `actor`, when it is not `-` |
//! | time | `time` |
//! | method, target | `operation`, `location` |
//! | status, size | `status`, and `size` when it is not `-` |
//! | protocol, referer, agent | a JSON object with these names, in this order: the payload |
//!
//! Parts in quotes are kept as they are written, escapes included: evidence is not rewritten. A backslash only
//! keeps the byte after it from being the closing quote. The target may hold spaces, and any bytes; all else is
//! UTF-8. A request that is not `METHOD TARGET PROTOCOL`, as a broken client leaves it, names no operation, and
//! its line is refused.

use super::time::{Moment, Scan, TimeError};
use super::{LineError, ParsedEntry, content, write};

/// Parses a line; one `\r` at its end does not matter.
///
/// ```
/// let line = br#"192.0.2.7 - ada [17/May/2015:12:05:03 +0200] "GET /a HTTP/1.1" 200 - "-" "curl/8""#;
/// let entry = bulla_text::combined::parse_line(line).unwrap();
/// assert_eq!((entry.operation.as_str(), entry.actor.as_deref(), entry.size), ("GET", Some("ada"), None));
/// assert_eq!(entry.payload.unwrap(), br#"{"protocol":"HTTP/1.1","referer":"-","agent":"curl/8"}"#);
/// ```
///
/// # Errors
/// The first part that is not what the format has there, or a field over its limit.
pub fn parse_line(line: &[u8]) -> Result<ParsedEntry, LineError> {
    let mut rest = Rest(content(line)?);
    let client = rest.word(&CLIENT)?;
    let identity = rest.word(&IDENTITY)?;
    let user = rest.word(&USER)?;
    let time = rest.time()?;
    let request = Request::split(rest.quoted_word(&REQUEST)?)?;
    let status = decimal(rest.word(&STATUS)?.as_bytes())
        .and_then(|status| u32::try_from(status).ok())
        .ok_or(part("the status is not a whole number from 0 to 4294967295"))?;
    let size = match rest.word(&SIZE)?.as_bytes() {
        b"-" => None,
        digits => {
            Some(decimal(digits).ok_or(part("the size is neither - nor a whole number of at most 64 bits"))?)
        }
    };
    let referer = text(rest.quoted_word(&REFERER)?, &REFERER)?;
    let agent = text(rest.quoted(&AGENT)?, &AGENT)?;
    if !rest.0.is_empty() {
        return Err(part("there are bytes after the user agent"));
    }
    let entry = ParsedEntry {
        time: Some(time),
        operation: request.method.to_owned(),
        location: Some(request.target.to_vec()),
        client: Some(client.to_owned()),
        actor: (user != "-").then(|| user.to_owned()),
        status: Some(status),
        size,
        payload: Some(payload(request.protocol, referer, agent, identity)),
        ..ParsedEntry::default()
    };
    Ok(entry.within_limits()?)
}

/// What can be wrong with a part, in words.
struct Part {
    missing: &'static str,
    unclosed: &'static str,
    unseparated: &'static str,
    not_text: &'static str,
}

macro_rules! part {
    ($name:literal) => {
        Part {
            missing: concat!("the ", $name, " is missing"),
            unclosed: concat!("the ", $name, " has no closing quote"),
            unseparated: concat!("there is no space after the ", $name),
            not_text: concat!("the ", $name, " is not UTF-8"),
        }
    };
}

const CLIENT: Part = part!("client address");
const IDENTITY: Part = part!("identity");
const USER: Part = part!("user");
const REQUEST: Part = part!("request");
const METHOD: Part = part!("method");
const PROTOCOL: Part = part!("protocol");
const STATUS: Part = part!("status");
const SIZE: Part = part!("size");
const REFERER: Part = part!("referer");
const AGENT: Part = part!("user agent");

const BAD_TIME: &str = "the time is not DD/Mon/YYYY:HH:MM:SS ±HHMM";
const LEAP_SECOND: &str =
    "the time is a leap second (`:60`), which a time that counts the seconds since 1970 cannot say";
const BAD_REQUEST: &str = "the request is not METHOD TARGET PROTOCOL";

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

fn part(problem: &'static str) -> LineError {
    LineError::Part { problem }
}

fn text<'a>(bytes: &'a [u8], part: &Part) -> Result<&'a str, LineError> {
    std::str::from_utf8(bytes).map_err(|_| LineError::Part { problem: part.not_text })
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    digits.iter().try_fold(0_u64, |sum, byte| sum.checked_mul(10)?.checked_add(digit(byte)?))
}

fn payload(protocol: &str, referer: &str, agent: &str, identity: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(protocol.len() + referer.len() + agent.len() + identity.len() + 64);
    json.extend_from_slice(b"{\"protocol\":");
    write::logged_string(protocol, &mut json);
    json.extend_from_slice(b",\"referer\":");
    write::logged_string(referer, &mut json);
    json.extend_from_slice(b",\"agent\":");
    write::logged_string(agent, &mut json);
    if identity != "-" {
        json.extend_from_slice(b",\"identity\":");
        write::logged_string(identity, &mut json);
    }
    json.push(b'}');
    json
}

/// A request, cut at its first and its last space.
struct Request<'a> {
    method: &'a str,
    target: &'a [u8],
    protocol: &'a str,
}

impl<'a> Request<'a> {
    fn split(request: &'a [u8]) -> Result<Self, LineError> {
        let is_space = |byte: &u8| *byte == b' ';
        let first = request.iter().position(is_space).ok_or(part(BAD_REQUEST))?;
        let last = request.iter().rposition(is_space).ok_or(part(BAD_REQUEST))?;
        let protocol = &request[last + 1..];
        if first == 0 || last <= first + 1 || !protocol.starts_with(b"HTTP/") {
            return Err(part(BAD_REQUEST));
        }
        Ok(Request {
            method: text(&request[..first], &METHOD)?,
            target: &request[first + 1..last],
            protocol: text(protocol, &PROTOCOL)?,
        })
    }
}

/// What is left of a line.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// The bytes up to the next space, at least one; and lets go of the space.
    fn word(&mut self, part: &Part) -> Result<&'a str, LineError> {
        let end = self.0.iter().position(|&byte| byte == b' ').unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        if word.is_empty() {
            return Err(LineError::Part { problem: part.missing });
        }
        self.0 = rest.strip_prefix(b" ").unwrap_or(rest);
        text(word, part)
    }

    /// `[DD/Mon/YYYY:HH:MM:SS ±HHMM] `.
    fn time(&mut self) -> Result<i64, LineError> {
        let mut scan = Scan(self.0);
        let moment = scan.access_log().ok_or(part(BAD_TIME))?;
        self.0 = scan.0;
        moment.nanoseconds().map_err(|error| match error {
            TimeError::Malformed => part(BAD_TIME),
            TimeError::OutOfRange => part("the time is not between the years 1677 and 2262"),
            TimeError::LeapSecond => part(LEAP_SECOND),
        })
    }

    /// What stands between quotes; and lets go of the space after them.
    fn quoted_word(&mut self, part: &Part) -> Result<&'a [u8], LineError> {
        let inside = self.quoted(part)?;
        self.0 = self.0.strip_prefix(b" ").ok_or(LineError::Part { problem: part.unseparated })?;
        Ok(inside)
    }

    /// What stands between quotes, as written.
    fn quoted(&mut self, part: &Part) -> Result<&'a [u8], LineError> {
        let open = self.0.strip_prefix(b"\"").ok_or(LineError::Part { problem: part.missing })?;
        let mut escaped = false;
        let end = open.iter().position(|&byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        });
        let (inside, rest) = open.split_at(end.ok_or(LineError::Part { problem: part.unclosed })?);
        self.0 = &rest[1..];
        Ok(inside)
    }
}

impl Scan<'_> {
    fn access_log(&mut self) -> Option<Moment> {
        self.one_of(b"[")?;
        let day = self.small()?;
        self.one_of(b"/")?;
        let (name, rest) = self.0.split_at_checked(3)?;
        let month = (1..).zip(MONTHS).find_map(|(number, month)| (month == name).then_some(number))?;
        self.0 = rest;
        self.one_of(b"/")?;
        let year = self.number(4)?;
        self.one_of(b":")?;
        let (hour, minute, second) = self.clock()?;
        self.one_of(b" ")?;
        let offset_seconds = self.offset(b"")?;
        self.one_of(b"]")?;
        self.one_of(b" ")?;
        Some(Moment { year, month, day, hour, minute, second, nanosecond: 0, offset_seconds })
    }
}
