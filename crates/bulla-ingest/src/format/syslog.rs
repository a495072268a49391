//! Syslog: RFC 5424, and RFC 3164 as it is sent and as daemons write it to files, with or without a priority before it.

use super::scan::{cut, decimal};
use crate::framing::find;
use crate::value::Members;
use crate::{Refusal, Value};
use bulla_text::time::parse_time;
use std::borrow::Cow;

/// The members of a record.
pub(super) const MEMBERS: [&str; 11] = [
    "priority",
    "facility",
    "severity",
    "version",
    "time",
    "host",
    "app",
    "pid",
    "msgid",
    "structured",
    "message",
];

/// RFC 5424, table 1; the names are those of `syslog.conf`.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];

/// RFC 5424, table 2.
const SEVERITIES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

pub(super) fn parse(record: &[u8]) -> Result<Value<'_>, Refusal> {
    let mut members = Members::with_capacity(12);
    let (priority, rest) = priority(record)?;
    if let Some(priority) = priority {
        members.add("priority", Value::Unsigned(priority));
        members.add("facility", Value::text(FACILITIES[usize::try_from(priority / 8).unwrap_or_default()]));
        members.add("severity", Value::text(SEVERITIES[usize::try_from(priority % 8).unwrap_or_default()]));
    }
    match (priority, rest.strip_prefix(b"1 ")) {
        (Some(_), Some(rest)) => {
            members.add("version", Value::Unsigned(1));
            structured_message(record, rest, &mut members)?;
        }
        _ => old_message(rest, priority.is_some(), &mut members)?,
    }
    Ok(members.into_object())
}

/// `<PRI>`, if there is one, and what follows.
fn priority(record: &[u8]) -> Result<(Option<u64>, &[u8]), Refusal> {
    let Some(open) = record.strip_prefix(b"<") else { return Ok((None, record)) };
    let known = 8 * FACILITIES.len() as u64;
    let number =
        cut(&open[..open.len().min(4)], b'>').and_then(|(digits, _)| Some((decimal(digits)?, digits.len())));
    let (priority, digits) = number
        .filter(|&(priority, _)| priority < known)
        .ok_or(Refusal::new("the priority is not a whole number from 0 to 191 in `<` and `>`"))?;
    Ok((Some(priority), &open[digits + 1..]))
}

/// What follows `<PRI>1 ` (RFC 5424).
fn structured_message<'a>(
    record: &'a [u8],
    mut rest: &'a [u8],
    members: &mut Members<'a>,
) -> Result<(), Refusal> {
    let parts = [
        ("time", "time"),
        ("host", "host name"),
        ("app", "application"),
        ("pid", "process"),
        ("msgid", "kind of message"),
    ];
    for (name, part) in parts {
        let (word, behind) = cut(rest, b' ').unwrap_or((rest, b""));
        if word.is_empty() {
            return Err(Refusal::new(format!("the {part} is missing")));
        }
        if name == "time" && word != b"-" && !is_timestamp(word) {
            return Err(Refusal::new("the time is neither - nor as RFC 3339 has it"));
        }
        if word != b"-" {
            members.add(name, Value::from_bytes(word));
        }
        rest = behind;
    }
    let place = record.len() - rest.len();
    let behind = match rest.strip_prefix(b"-") {
        Some(behind) => behind,
        None => {
            let (elements, behind) = elements(record, rest)?;
            members.add("structured", elements);
            behind
        }
    };
    let message = match behind {
        [] => return Ok(()),
        [b' ', message @ ..] => message,
        _ => return Err(Refusal::at("the structured data is neither - nor elements in brackets", place)),
    };
    let message = message.strip_prefix("\u{feff}".as_bytes()).unwrap_or(message);
    members.add("message", Value::from_bytes(message));
    Ok(())
}

/// `[id name="value" …]…`: an object of objects.
fn elements<'a>(record: &'a [u8], mut rest: &'a [u8]) -> Result<(Value<'a>, &'a [u8]), Refusal> {
    let mut elements = Members::default();
    let at = |reason: &'static str, rest: &[u8]| Refusal::at(reason, record.len() - rest.len());
    if !rest.starts_with(b"[") {
        return Err(at("the structured data is neither - nor elements in brackets", rest));
    }
    while let Some(open) = rest.strip_prefix(b"[") {
        let begins = rest;
        let (id, mut inside) =
            word(open, b" ]").ok_or_else(|| at("an element of structured data has no name", open))?;
        let mut parameters = Members::default();
        loop {
            match inside {
                [b']', behind @ ..] => {
                    rest = behind;
                    break;
                }
                [b' ', name @ ..] => {
                    let (name, value) = word(name, b"=")
                        .ok_or_else(|| at("a parameter of structured data has no name", name))?;
                    let value = value
                        .strip_prefix(b"=\"")
                        .ok_or_else(|| at("a parameter of structured data has no quoted value", value))?;
                    let end = super::scan::quoted_length(value)
                        .ok_or_else(|| at("a value of structured data has no closing quote", value))?;
                    parameters.add_repeated(Cow::Borrowed(name), unescape(&value[..end]));
                    inside = &value[end + 1..];
                }
                _ => return Err(at("an element of structured data does not end", inside)),
            }
        }
        if !elements.add_new(Cow::Borrowed(id), parameters.into_object()) {
            return Err(at("an element of structured data is there twice", begins));
        }
    }
    Ok((elements.into_object(), rest))
}

/// A name (`SD-NAME`), which ends before one of these.
fn word<'a>(bytes: &'a [u8], ends: &[u8]) -> Option<(&'a str, &'a [u8])> {
    let is_end = |byte: &u8| matches!(byte, 0..=b' ' | b'=' | b']' | b'"' | 127..);
    let length = bytes.iter().position(is_end)?;
    let name = std::str::from_utf8(&bytes[..length]).ok().filter(|name| !name.is_empty())?;
    ends.contains(&bytes[length]).then_some((name, &bytes[length..]))
}

/// A backslash escapes a quote, a backslash and a closing bracket, and is one before anything else.
fn unescape(inside: &[u8]) -> Value<'_> {
    if find(b'\\', inside).is_none() {
        return Value::from_bytes(inside);
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(place) = find(b'\\', rest) {
        out.extend_from_slice(&rest[..place]);
        rest = &rest[place + 1..];
        match rest {
            [escaped @ (b'"' | b'\\' | b']'), behind @ ..] => {
                out.push(*escaped);
                rest = behind;
            }
            _ => out.push(b'\\'),
        }
    }
    out.extend_from_slice(rest);
    Value::from_vec(out)
}

/// RFC 3164, and what files have: `time host tag[pid]: message`, of which a local socket leaves the host out.
fn old_message<'a>(rest: &'a [u8], has_priority: bool, members: &mut Members<'a>) -> Result<(), Refusal> {
    let Some(length) = time_length(rest) else {
        if !has_priority {
            return Err(Refusal::new(
                "there is neither a priority nor a time such as `Nov 26 10:00:00` or 2026-11-26T10:00:00Z at the beginning",
            ));
        }
        tag(rest, members);
        return Ok(());
    };
    members.add("time", Value::from_bytes(&rest[..length]));
    let rest = rest[length..].trim_ascii_start();
    // A host is one word. A tag says that it is one: it has a colon or a bracket behind it.
    let rest = match (is_tagged(rest), cut(rest, b' ')) {
        (false, Some((host, behind))) => {
            members.add("host", Value::from_bytes(host));
            behind
        }
        (false, None) if !rest.is_empty() => {
            members.add("host", Value::from_bytes(rest));
            b""
        }
        _ => rest,
    };
    tag(rest, members);
    Ok(())
}

/// The length of a time at the beginning, behind which a space follows or nothing.
fn time_length(bytes: &[u8]) -> Option<usize> {
    // rsyslog's and Cisco's stars and dots for a clock that is not set are no part of any RFC.
    let length = old_time(bytes).or_else(|| {
        let word = cut(bytes, b' ').map_or(bytes, |(word, _)| word);
        is_timestamp(word).then_some(word.len())
    })?;
    matches!(bytes.get(length), None | Some(b' ')).then_some(length)
}

/// `Mmm dd hh:mm:ss`, a year before the time of day or not, a fraction behind it or not.
fn old_time(bytes: &[u8]) -> Option<usize> {
    let (month, rest) = bytes.split_first_chunk::<4>()?;
    let (day, rest) = rest.split_first_chunk::<3>()?;
    let is_day = matches!(day, [b' ' | b'0'..=b'3', b'0'..=b'9', b' ']);
    if !MONTHS.contains(&&month[..3]) || month[3] != b' ' || !is_day {
        return None;
    }
    let year =
        rest.split_first_chunk::<5>().filter(|(year, _)| year[4] == b' ' && decimal(&year[..4]).is_some());
    let rest = year.map_or(rest, |(_, rest)| rest);
    let (clock, rest) = rest.split_first_chunk::<8>()?;
    let is_clock = clock.iter().enumerate().all(|(place, byte)| match place {
        2 | 5 => *byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let fraction = match rest {
        [b'.', digits @ ..] => 1 + digits.iter().take_while(|digit| digit.is_ascii_digit()).count(),
        _ => 0,
    };
    is_clock.then(|| bytes.len() - rest.len() + if fraction > 1 { fraction } else { 0 })
}

fn is_timestamp(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| parse_time(word).is_ok())
}

/// The length of a tag, and of the process behind it in brackets.
fn tag_length(rest: &[u8]) -> Option<(usize, usize)> {
    let name =
        rest.iter().position(|byte| matches!(byte, 0..=b' ' | b':' | b'[')).filter(|&name| name > 0)?;
    match rest[name] {
        b':' => Some((name, 0)),
        b'[' => {
            let process = rest[name + 1..].iter().position(|byte| matches!(byte, 0..=b' ' | b']'))?;
            let end = name + 1 + process;
            let is_closed = rest[end] == b']' && matches!(rest.get(end + 1), None | Some(b':' | b' '));
            is_closed.then_some((name, process + 2))
        }
        _ => None,
    }
}

/// Whether a tag is first, and not a host: an address of IPv6 has a colon in it, not behind it.
fn is_tagged(rest: &[u8]) -> bool {
    tag_length(rest)
        .is_some_and(|(name, process)| process > 0 || matches!(rest.get(name + 1), None | Some(b' ')))
}

/// `tag[pid]: message`, or a message alone.
fn tag<'a>(rest: &'a [u8], members: &mut Members<'a>) {
    let message = match tag_length(rest).filter(|_| is_tagged(rest)) {
        None => rest,
        Some((name, process)) => {
            members.add("app", Value::from_bytes(&rest[..name]));
            if process > 0 {
                members.add("pid", Value::from_bytes(&rest[name + 1..name + process - 1]));
            }
            let behind = &rest[name + process..];
            let behind = behind.strip_prefix(b":").unwrap_or(behind);
            behind.strip_prefix(b" ").unwrap_or(behind)
        }
    };
    members.add("message", Value::from_bytes(message));
}
