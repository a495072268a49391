//! Access logs: the *common* and the *combined* format of Apache and nginx, as real servers write them.
//!
//! ```text
//! [vhost[:port] ]client identity user [17/May/2015:10:05:03 +0000] "METHOD target PROTOCOL" status size ["referer" "agent"] [more]...
//! ```
//!
//! | Part | Becomes, by [`parse_entry`] |
//! |---|---|
//! | client | `client` |
//! | user | `actor`, when it is not `-` |
//! | time | `time` |
//! | method, target | `operation`, `location` |
//! | status, size | `status` and `size`, when they are not `-` |
//! | protocol, referer, agent, identity, vhost, what follows | a JSON object with these names, in this order, `extra` last: the payload |
//!
//! Parts in quotes are kept as they are written, escapes included: evidence is not rewritten. A backslash only keeps the byte after it
//! from being the closing quote. The target may hold spaces, and any bytes; all else is UTF-8 in an entry. A request that is none, as
//! a broken client or a probe leaves it, is kept whole: the operation is then `invalid`, there is no location, and the payload has
//! `request` in the place of `protocol`.

use super::scan::{cut, decimal, quoted_length};
use super::{clock, content};
use crate::framing::find;
use crate::value::{Members, write_escaped};
use crate::{Refusal, Value};
use bulla_text::ParsedEntry;
use bulla_text::time::TimeError;

/// The operation of a request that is none.
pub const INVALID: &str = "invalid";

/// The members of either layout.
pub(super) const MEMBERS: [&str; 13] = [
    "vhost", "client", "identity", "user", "time", "request", "method", "target", "protocol", "status",
    "size", "extra", "unquoted",
];

/// Those of the combined one besides.
pub(super) const COMBINED_MEMBERS: [&str; 2] = ["referer", "agent"];

/// How an access log is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Ends with the size.
    Common,
    /// Ends with the referer and the user agent.
    Combined,
}

/// Parses a line into an entry; one `\r` at its end does not matter.
///
/// ```
/// use bulla_ingest::format::access::{Layout, parse_entry};
/// let line = br#"192.0.2.7 - ada [17/May/2015:12:05:03 +0200] "GET /a HTTP/1.1" 200 - "-" "curl/8""#;
/// let entry = parse_entry(line, Layout::Combined).unwrap();
/// assert_eq!((entry.operation.as_str(), entry.actor.as_deref(), entry.size), ("GET", Some("ada"), None));
/// assert_eq!(entry.payload.unwrap(), br#"{"protocol":"HTTP/1.1","referer":"-","agent":"curl/8"}"#);
/// ```
///
/// # Errors
/// The first part that is not what the format has there, or a field over its limit.
pub fn parse_entry(line: &[u8], layout: Layout) -> Result<ParsedEntry, Refusal> {
    parse(content(line)?, layout)?.entry()
}

/// A line, taken apart.
#[derive(Debug)]
pub(super) struct Line<'a> {
    vhost: Option<&'a [u8]>,
    client: &'a [u8],
    identity: &'a [u8],
    user: &'a [u8],
    time: &'a [u8],
    moment: i64,
    request: &'a [u8],
    status: Option<u32>,
    size: Option<u64>,
    /// Referer and agent.
    combined: Option<(&'a [u8], &'a [u8])>,
    extra: &'a [u8],
    /// Whether the whole line is UTF-8.
    is_text: bool,
}

pub(super) fn parse(line: &[u8], layout: Layout) -> Result<Line<'_>, Refusal> {
    let mut rest = Rest(line);
    let Head { vhost, client, identity, user } = rest.head()?;
    let (time, moment) = rest.time()?;
    let request = rest.quoted_word(&REQUEST)?;
    let status =
        match rest.word(&STATUS)? {
            b"-" => None,
            digits => {
                let status = decimal(digits).and_then(|status| u32::try_from(status).ok());
                Some(status.ok_or_else(|| {
                    problem("the status is neither - nor a whole number from 0 to 4294967295")
                })?)
            }
        };
    let size = match rest.word(&SIZE)? {
        b"-" => None,
        digits => Some(
            decimal(digits)
                .ok_or_else(|| problem("the size is neither - nor a whole number of at most 64 bits"))?,
        ),
    };
    let combined = match layout {
        Layout::Common => None,
        Layout::Combined => {
            let referer = rest.quoted_word(&REFERER)?;
            Some((referer, rest.quoted_last(&AGENT)?))
        }
    };
    let extra = rest.0;
    while !rest.0.is_empty() {
        rest.extra()?;
    }
    Ok(Line {
        vhost,
        client,
        identity,
        user,
        time,
        moment,
        request,
        status,
        size,
        combined,
        extra,
        is_text: std::str::from_utf8(line).is_ok(),
    })
}

/// What stands before the time.
struct Head<'a> {
    vhost: Option<&'a [u8]>,
    client: &'a [u8],
    identity: &'a [u8],
    user: &'a [u8],
}

/// A part that follows those of the layout, without its quotes.
struct Extra<'a> {
    text: &'a [u8],
    is_quoted: bool,
}

impl<'a> Line<'a> {
    /// The members, for a map.
    pub(super) fn value(&self) -> Value<'a> {
        let mut members = Members::with_capacity(16);
        let given = |bytes: &'a [u8]| (bytes != b"-").then(|| Value::from_bytes(bytes));
        members.add_some("vhost", self.vhost.and_then(given));
        members.add("client", Value::from_bytes(self.client));
        members.add_some("identity", given(self.identity));
        members.add_some("user", given(self.user));
        members.add("time", Value::from_bytes(self.time));
        members.add("request", Value::from_bytes(self.request));
        if let Some(request) = Request::split(self.request) {
            members.add("method", Value::text(request.method));
            members.add("target", Value::from_bytes(request.target));
            members.add_some("protocol", request.protocol.map(Value::text));
        }
        members.add_some("status", self.status.map(|status| Value::Unsigned(status.into())));
        members.add_some("size", self.size.map(Value::Unsigned));
        if let Some((referer, agent)) = self.combined {
            members.add_some("referer", given(referer));
            members.add_some("agent", given(agent));
        }
        let list = |parts: Vec<_>| (!parts.is_empty()).then_some(Value::List(parts));
        let unquoted = self.extra().filter(|part| !part.is_quoted);
        let unquoted = list(unquoted.map(|part| Value::from_bytes(part.text)).collect());
        members.add_some("extra", list(self.extra().map(|part| Value::from_bytes(part.text)).collect()));
        members.add_some("unquoted", unquoted);
        members.into_object()
    }

    /// What follows the parts of the layout.
    fn extra(&self) -> impl Iterator<Item = Extra<'a>> + use<'a> {
        let mut rest = Rest(self.extra);
        // They were found before.
        std::iter::from_fn(move || if rest.0.is_empty() { None } else { rest.extra().ok() })
    }

    fn entry(&self) -> Result<ParsedEntry, Refusal> {
        let request = Request::split(self.request);
        let entry = ParsedEntry {
            time: Some(self.moment),
            operation: request.as_ref().map_or(INVALID, |request| request.method).to_owned(),
            location: request.as_ref().map(|request| request.target.to_vec()),
            client: Some(text(self.client, &CLIENT)?.to_owned()),
            actor: match text(self.user, &USER)? {
                "-" => None,
                user => Some(user.to_owned()),
            },
            status: self.status,
            size: self.size,
            payload: Some(self.payload(request.map(|request| request.protocol))?),
            ..ParsedEntry::default()
        };
        entry.entry().measure()?;
        Ok(entry)
    }

    /// The object that has what no field takes; `protocol` is absent where the request is none.
    fn payload(&self, protocol: Option<Option<&str>>) -> Result<Vec<u8>, Refusal> {
        let (referer, agent) = self.combined.unwrap_or_default();
        let mut json = Vec::with_capacity(referer.len() + agent.len() + self.extra.len() + 96);
        json.push(b'{');
        match protocol {
            None => self.write("request", self.request, &REQUEST, &mut json)?,
            Some(None) => {}
            Some(Some(protocol)) => self.write("protocol", protocol.as_bytes(), &REQUEST, &mut json)?,
        }
        if self.combined.is_some() {
            self.write("referer", referer, &REFERER, &mut json)?;
            self.write("agent", agent, &AGENT, &mut json)?;
        }
        if self.identity != b"-" {
            self.write("identity", self.identity, &IDENTITY, &mut json)?;
        }
        if let Some(vhost) = self.vhost {
            self.write("vhost", vhost, &VHOST, &mut json)?;
        }
        if !self.extra.is_empty() {
            name("extra", &mut json);
            json.push(b'[');
            for (position, part) in self.extra().enumerate() {
                if position > 0 {
                    json.push(b',');
                }
                self.write_string(part.text, &EXTRA, &mut json)?;
            }
            json.push(b']');
        }
        json.push(b'}');
        Ok(json)
    }

    fn write(&self, named: &str, value: &[u8], part: &Part, json: &mut Vec<u8>) -> Result<(), Refusal> {
        name(named, json);
        self.write_string(value, part, json)
    }

    fn write_string(&self, value: &[u8], part: &Part, json: &mut Vec<u8>) -> Result<(), Refusal> {
        if !self.is_text {
            text(value, part)?;
        }
        json.push(b'"');
        write_escaped(value, json);
        json.push(b'"');
        Ok(())
    }
}

/// Writes the name of a member of an object that is being written.
fn name(name: &str, json: &mut Vec<u8>) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    json.push(b'"');
    json.extend_from_slice(name.as_bytes());
    json.extend_from_slice(b"\":");
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

const VHOST: Part = part!("virtual host");
const CLIENT: Part = part!("client address");
const IDENTITY: Part = part!("identity");
const USER: Part = part!("user");
const REQUEST: Part = part!("request");
const STATUS: Part = part!("status");
const SIZE: Part = part!("size");
const REFERER: Part = part!("referer");
const AGENT: Part = part!("user agent");
const EXTRA: Part = part!("part behind those of the format");

const BAD_TIME: &str = "the time is not DD/Mon/YYYY:HH:MM:SS ±HHMM";
const LEAP_SECOND: &str =
    "the time is a leap second (`:60`), which a time that counts the seconds since 1970 cannot say";
const OUT_OF_RANGE: &str = "the time is not between the years 1677 and 2262";

fn problem(problem: &'static str) -> Refusal {
    Refusal::new(problem)
}

fn text<'a>(bytes: &'a [u8], part: &Part) -> Result<&'a str, Refusal> {
    std::str::from_utf8(bytes).map_err(|_| problem(part.not_text))
}

/// A request, cut at its first and its last space.
struct Request<'a> {
    method: &'a str,
    target: &'a [u8],
    /// Absent in HTTP/0.9.
    protocol: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// `METHOD TARGET PROTOCOL`, or of HTTP/0.9 `METHOD /TARGET`.
    fn split(request: &'a [u8]) -> Option<Self> {
        let first = find(b' ', request)?;
        let method = std::str::from_utf8(&request[..first]).ok().filter(|method| is_token(method))?;
        let rest = &request[first + 1..];
        if let Some(last) = rest.iter().rposition(|&byte| byte == b' ') {
            let protocol =
                std::str::from_utf8(&rest[last + 1..]).ok().filter(|protocol| is_protocol(protocol));
            if protocol.is_some() && last > 0 {
                return Some(Request { method, target: &rest[..last], protocol });
            }
        }
        let is_simple = method.bytes().all(|byte| byte.is_ascii_uppercase()) && rest.starts_with(b"/");
        is_simple.then_some(Request { method, target: rest, protocol: None })
    }
}

/// A token of RFC 9110, 5.6.2.
fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// `HTTP/1.1` and the like.
fn is_protocol(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_version = |version: &str| version.starts_with(|c: char| c.is_ascii_digit());
    text.split_once('/').is_some_and(|(name, version)| is_name(name) && is_version(version))
}

/// What is left of a line.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// What stands before the time: three words; or four of which the first is a virtual host; or more, of a user's name with spaces.
    ///
    /// The user's name is the client's to choose, and servers write all of it but quotes as it is: `"` is `\x22` in nginx and `\"` in
    /// Apache. So the first `] "` ends the time, which no name can feign; a later one may stand in the request.
    fn head(&mut self) -> Result<Head<'a>, Refusal> {
        let client = self.client()?;
        let identity = self.word(&IDENTITY)?;
        let time = match self.0.windows(3).position(|window| window == b"] \"") {
            Some(end) => self.0[..end].windows(2).rposition(|window| window == b" [").map(|space| space + 1),
            // The request is missing, whatever stands before it.
            None => time_behind_space(self.0),
        };
        let Some(time) = time.filter(|&time| time > 1 && Rest(&self.0[time..]).time().is_ok()) else {
            return Ok(Head { vhost: None, client, identity, user: self.word(&USER)? });
        };
        let user = &self.0[..time - 1];
        self.0 = &self.0[time..];
        Ok(match cut(user, b' ') {
            Some((second, user)) if identity != b"-" && !second.is_empty() && !user.is_empty() => {
                Head { vhost: Some(client), client: identity, identity: second, user }
            }
            _ => Head { vhost: None, client, identity, user },
        })
    }

    /// One address, or several with commas between them, as a proxy hands them on.
    fn client(&mut self) -> Result<&'a [u8], Refusal> {
        let line = self.0;
        let mut word = self.word(&CLIENT)?;
        while word.ends_with(b",") && !self.0.is_empty() {
            word = self.word(&CLIENT)?;
        }
        let taken = &line[..line.len() - self.0.len()];
        Ok(taken.strip_suffix(b" ").unwrap_or(taken))
    }

    /// The bytes up to the next space, at least one; and lets go of the space.
    fn word(&mut self, part: &Part) -> Result<&'a [u8], Refusal> {
        let end = find(b' ', self.0).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        if word.is_empty() {
            return Err(problem(part.missing));
        }
        self.0 = rest.strip_prefix(b" ").unwrap_or(rest);
        Ok(word)
    }

    /// `[DD/Mon/YYYY:HH:MM:SS ±HHMM] `, or RFC 3339 in brackets: as written, and in nanoseconds since the epoch.
    fn time(&mut self) -> Result<(&'a [u8], i64), Refusal> {
        let inside = self.0.strip_prefix(b"[").ok_or_else(|| problem(BAD_TIME))?;
        // No spelling of a time is longer.
        let end = find(b']', &inside[..inside.len().min(64)]).ok_or_else(|| problem(BAD_TIME))?;
        let time = &inside[..end];
        let rest = inside[end + 1..].strip_prefix(b" ").ok_or_else(|| problem(BAD_TIME))?;
        let moment = clock::moment(time).map_err(refused)?;
        self.0 = rest;
        Ok((time, moment))
    }

    /// What stands between quotes; and lets go of the space after them.
    fn quoted_word(&mut self, part: &Part) -> Result<&'a [u8], Refusal> {
        let inside = self.quoted(part)?;
        self.0 = self.0.strip_prefix(b" ").ok_or_else(|| problem(part.unseparated))?;
        Ok(inside)
    }

    /// What stands between quotes; and lets go of the space after them, unless the line ends there.
    fn quoted_last(&mut self, part: &Part) -> Result<&'a [u8], Refusal> {
        let inside = self.quoted(part)?;
        if !self.0.is_empty() {
            self.0 = self.0.strip_prefix(b" ").ok_or_else(|| problem(part.unseparated))?;
        }
        Ok(inside)
    }

    /// What stands between quotes, as written.
    fn quoted(&mut self, part: &Part) -> Result<&'a [u8], Refusal> {
        let open = self.0.strip_prefix(b"\"").ok_or_else(|| problem(part.missing))?;
        let end = quoted_length(open).ok_or_else(|| problem(part.unclosed))?;
        self.0 = &open[end + 1..];
        Ok(&open[..end])
    }

    /// A part behind those of the layout: between quotes, or a word.
    fn extra(&mut self) -> Result<Extra<'a>, Refusal> {
        let is_quoted = self.0.starts_with(b"\"");
        let text = if is_quoted { self.quoted_last(&EXTRA) } else { self.word(&EXTRA) }?;
        Ok(Extra { text, is_quoted })
    }
}

/// Where a time begins that follows a space.
fn time_behind_space(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let open = from + find(b'[', &bytes[from..])?;
        if open > 0 && bytes[open - 1] == b' ' && Rest(&bytes[open..]).time().is_ok() {
            return Some(open);
        }
        from = open + 1;
    }
}

fn refused(error: TimeError) -> Refusal {
    problem(match error {
        TimeError::Malformed => BAD_TIME,
        TimeError::OutOfRange => OUT_OF_RANGE,
        TimeError::LeapSecond => LEAP_SECOND,
    })
}
