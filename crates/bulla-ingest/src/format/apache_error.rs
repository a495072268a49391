use super::scan::{address_and_port, cut, number};
use crate::framing::find;
use crate::value::Members;
use crate::{Refusal, Value};

/// The members of a record.
pub(super) const MEMBERS: [&str; 15] = [
    "time",
    "module",
    "level",
    "pid",
    "tid",
    "source",
    "error_number",
    "error",
    "client",
    "port",
    "remote",
    "remote_port",
    "code",
    "message",
    "referer",
];

/// `[time] [module:level] [pid 1:tid 2] (2)error: [client address:port] AH00001: message, referer: URL`, of which only the time and the
/// level are always there: Apache 2.4 by its default `ErrorLogFormat`, and 2.2.
pub(super) fn parse(record: &[u8]) -> Result<Value<'_>, Refusal> {
    let mut members = Members::with_capacity(16);
    let (time, rest) = bracketed(record)
        .filter(|(time, _)| is_time(time))
        .ok_or(Refusal::new("the time is not in brackets, such as [Fri Sep 09 10:42:29.902022 2011]"))?;
    members.add("time", Value::from_bytes(time));
    let (level, mut rest) =
        bracketed(rest).ok_or(Refusal::new("the level is not in brackets behind the time"))?;
    let mut seen = Seen::default();
    match cut(level, b':') {
        Some((module, level)) => {
            seen.module = true;
            members.add_some("module", (!module.is_empty()).then(|| Value::from_bytes(module)));
            members.add("level", Value::from_bytes(level));
        }
        None => members.add("level", Value::from_bytes(level)),
    }
    // What stands in other brackets is the message's own. The error of the system stands before the client, or after it.
    loop {
        rest = match bracketed(rest) {
            Some((inside, behind)) => match named(inside, &mut seen, &mut members) {
                true => behind,
                false => break,
            },
            None => match error(rest).filter(|_| !std::mem::replace(&mut seen.error, true)) {
                Some((number, text, behind)) => {
                    members.add("error_number", number);
                    members.add("error", Value::from_bytes(text));
                    behind
                }
                None => match source(rest).filter(|_| !std::mem::replace(&mut seen.source, true)) {
                    Some((source, behind)) => {
                        members.add("source", Value::from_bytes(source));
                        behind
                    }
                    None => break,
                },
            },
        };
    }
    if let Some((code, behind)) = code(rest) {
        members.add("code", Value::from_bytes(code));
        rest = behind;
    }
    const REFERER: &[u8] = b", referer: ";
    let referer = rest.windows(REFERER.len()).rposition(|window| window == REFERER);
    let message = &rest[..referer.unwrap_or(rest.len())];
    members.add("message", Value::from_bytes(message));
    members.add_some("referer", referer.map(|place| Value::from_bytes(&rest[place + REFERER.len()..])));
    Ok(members.into_object())
}

/// Which of the parts that are there once at most were there.
#[derive(Default)]
struct Seen {
    module: bool,
    process: bool,
    client: bool,
    remote: bool,
    error: bool,
    source: bool,
}

/// Adds what stands in brackets, where it is one of the parts that Apache puts there. Version 2.4, which names modules, puts a port
/// behind each address, after a colon; 2.2 puts none.
fn named<'a>(inside: &'a [u8], seen: &mut Seen, members: &mut Members<'a>) -> bool {
    let Some((name, value)) = cut(inside, b' ') else { return false };
    let has_port = seen.module || value.iter().filter(|&&byte| byte == b':').count() == 1;
    let (seen, names) = match name {
        b"pid" => (&mut seen.process, ("pid", "tid")),
        b"client" => (&mut seen.client, ("client", "port")),
        b"remote" => (&mut seen.remote, ("remote", "remote_port")),
        _ => return false,
    };
    if std::mem::replace(seen, true) {
        return false;
    }
    if name == b"pid" {
        let (process, thread) = match cut(value, b':') {
            Some((process, thread)) => (process, thread.strip_prefix(b"tid ")),
            None => (value, None),
        };
        members.add(names.0, number(process));
        members.add_some(names.1, thread.map(number));
        return true;
    }
    match address_and_port(value).filter(|_| has_port) {
        Some((address, port)) => {
            members.add(names.0, Value::from_bytes(address));
            members.add(names.1, Value::Unsigned(port));
        }
        None => members.add(names.0, Value::from_bytes(value)),
    }
    true
}

/// `[inside] `, and what follows.
fn bracketed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (inside, behind) = cut(bytes.strip_prefix(b"[")?, b']')?;
    Some((inside, behind.strip_prefix(b" ").unwrap_or(behind)))
}

/// `Fri Sep 09 10:42:29.902022 2011`, or a time of another `ErrorLogFormat`, such as 2026-11-26 10:00:00.
fn is_time(time: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b" :.+-".contains(byte);
    time.len() >= 8 && time.len() <= 40 && time.iter().all(is_part) && time.iter().any(u8::is_ascii_digit)
}

/// `(2)No such file or directory: `.
fn error(bytes: &[u8]) -> Option<(Value<'_>, &[u8], &[u8])> {
    let (digits, behind) = cut(bytes.strip_prefix(b"(")?, b')')?;
    let Value::Unsigned(number) = number(digits) else { return None };
    let colon = behind.windows(2).position(|window| window == b": ")?;
    Some((Value::Unsigned(number), &behind[..colon], &behind[colon + 2..]))
}

/// `core.c(4625): `.
fn source(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = bytes.windows(2).position(|window| window == b": ").filter(|&length| length < 64)?;
    let (name, line) = cut(&bytes[..length], b'(')?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(byte);
    let is_line = line.strip_suffix(b")").is_some_and(|line| matches!(number(line), Value::Unsigned(_)));
    (name.ends_with(b".c") && name.iter().all(is_name) && is_line)
        .then(|| (&bytes[..length], &bytes[length + 2..]))
}

/// `AH00128: `.
fn code(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = find(b':', &bytes[..bytes.len().min(16)])?;
    let digits = bytes[..colon].strip_prefix(b"AH")?;
    let behind = bytes[colon + 1..].strip_prefix(b" ")?;
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some((&bytes[..colon], behind))
}
