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

use super::content;
use super::scan::{decimal, quoted_length};
use crate::framing::find;
use crate::value::{Members, write_escaped};
use crate::{Refusal, Value};
use bulla_text::ParsedEntry;
use bulla_text::time::{TimeError, parse_time};

/// The operation of a request that is none.
pub const INVALID: &str = "invalid";

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
        let extra = self.extra().map(Value::from_bytes).collect::<Vec<_>>();
        members.add_some("extra", (!extra.is_empty()).then_some(Value::List(extra)));
        members.into_object()
    }

    /// What follows the parts of the layout, without quotes.
    fn extra(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
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
                self.write_string(part, &EXTRA, &mut json)?;
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
    fn head(&mut self) -> Result<Head<'a>, Refusal> {
        let line = self.0;
        let client = self.client()?;
        let (identity, user) = (self.word(&IDENTITY)?, self.word(&USER)?);
        let head = Head { vhost: None, client, identity, user };
        if self.0.starts_with(b"[") {
            return Ok(head);
        }
        let Some(open) = time_behind_space(self.0) else { return Ok(head) };
        let more = &self.0[..open - 1];
        let start = line.len() - self.0.len();
        self.0 = &self.0[open..];
        Ok(match identity {
            b"-" => Head { user: &line[start - 1 - user.len()..start + more.len()], ..head },
            _ => Head { vhost: Some(client), client: identity, identity: user, user: more },
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
        let moment = moment(time)?;
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
    fn extra(&mut self) -> Result<&'a [u8], Refusal> {
        if self.0.starts_with(b"\"") { self.quoted_last(&EXTRA) } else { self.word(&EXTRA) }
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

/// Nanoseconds since the epoch of what stands between the brackets.
fn moment(time: &[u8]) -> Result<i64, Refusal> {
    match Clock::read(time) {
        Some(clock) => clock.nanoseconds(),
        None => parse_time(std::str::from_utf8(time).unwrap_or_default()).map_err(refused),
    }
}

fn refused(error: TimeError) -> Refusal {
    problem(match error {
        TimeError::Malformed => BAD_TIME,
        TimeError::OutOfRange => OUT_OF_RANGE,
        TimeError::LeapSecond => LEAP_SECOND,
    })
}

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// `DD/Mon/YYYY:HH:MM:SS ±HHMM`, the second with a fraction or without, as written.
struct Clock<'a> {
    day: i64,
    month: i64,
    year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    fraction: &'a [u8],
    offset: (u8, i64, i64),
}

impl<'a> Clock<'a> {
    fn read(time: &'a [u8]) -> Option<Self> {
        let (clock, rest) = time.split_first_chunk::<20>()?;
        let (rest, offset) = rest.split_last_chunk::<6>()?;
        let fraction = match rest {
            [] => rest,
            [b'.', digits @ ..] => Some(digits).filter(|digits| (1..=9).contains(&digits.len()))?,
            _ => return None,
        };
        let marks = [clock[2], clock[6], clock[11], clock[14], clock[17], offset[0]];
        if marks != *b"//::: "
            || !matches!(offset[1], b'+' | b'-')
            || !fraction.iter().all(u8::is_ascii_digit)
        {
            return None;
        }
        let number = |digits: &[u8]| decimal(digits).and_then(|number| i64::try_from(number).ok());
        Some(Clock {
            day: number(&clock[..2])?,
            month: (1..).zip(MONTHS).find_map(|(number, month)| (month == &clock[3..6]).then_some(number))?,
            year: number(&clock[7..11])?,
            hour: number(&clock[12..14])?,
            minute: number(&clock[15..17])?,
            second: number(&clock[18..])?,
            fraction,
            offset: (offset[1], number(&offset[2..4])?, number(&offset[4..])?),
        })
    }

    fn nanoseconds(&self) -> Result<i64, Refusal> {
        let (sign, hours, minutes) = self.offset;
        let is_usual = (1678..2262).contains(&self.year)
            && (1..=days_of(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && hours < 24
            && minutes < 60;
        if !is_usual {
            // What is wrong with it, or right after all at the ends of what can be said, is decided in one place.
            let Clock { day, month, year, hour, minute, second, .. } = self;
            let fraction = match self.fraction {
                [] => String::new(),
                digits => format!(".{}", String::from_utf8_lossy(digits)),
            };
            let sign = char::from(sign);
            let text = format!(
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{sign}{hours:02}:{minutes:02}"
            );
            return parse_time(&text).map_err(refused);
        }
        let offset = 60 * (60 * hours + minutes) * if sign == b'-' { -1 } else { 1 };
        let seconds = 86_400 * days(self.year, self.month, self.day)
            + 3600 * self.hour
            + 60 * self.minute
            + self.second
            - offset;
        let fraction = (0..9).fold(0, |sum, place| {
            10 * sum + self.fraction.get(place).map_or(0, |digit| i64::from(digit - b'0'))
        });
        Ok(1_000_000_000 * seconds + fraction)
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        _ => 31,
    }
}

/// Days from 1970-01-01, in the Gregorian calendar: years begin with March here, so that the leap day is their last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}
