use super::Parsed;
use super::json::MAX_VALUES;
use super::scan::{address_and_port, cut, decimal, hexadecimal, quoted_length};
use crate::framing::find;
use crate::value::Members;
use crate::{Refusal, Value};

/// The members of a record.
pub(super) const MEMBERS: [&str; 6] = ["time", "database", "client", "port", "command", "arguments"];

/// `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`.
pub(super) fn parse(record: &[u8]) -> Result<Parsed<'_>, Refusal> {
    // The reply itself begins so, and so do its lines in the protocol.
    let record = record.strip_prefix(b"+").unwrap_or(record);
    if record == b"OK" {
        return Ok(Parsed::Header);
    }
    let time = cut(record, b' ').filter(|(time, _)| is_time(time));
    let (time, rest) = time.ok_or(Refusal::new("the time is not in seconds with a fraction"))?;
    let source = rest.strip_prefix(b"[").and_then(|rest| {
        // The path of a socket may hold anything, and an address of IPv6 stands in brackets: the arguments begin with a quote.
        let end = (0..rest.len()).find(|&place| rest[place..].starts_with(b"] \""))?;
        let (database, client) = cut(&rest[..end], b' ')?;
        Some((decimal(database)?, client, &rest[end + 2..]))
    });
    let (database, client, mut rest) =
        source.ok_or(Refusal::new("there is no [database client] behind the time"))?;
    let mut members = Members::with_capacity(6);
    members.add("time", Value::from_bytes(time));
    members.add("database", Value::Unsigned(database));
    let is_path = client.starts_with(b"unix:") || client == b"lua";
    let address = if is_path { None } else { address_and_port(client) };
    members.add("client", Value::from_bytes(address.map_or(client, |(address, _)| address)));
    members.add_some("port", address.map(|(_, port)| Value::Unsigned(port)));
    let mut words = Vec::new();
    while !rest.is_empty() {
        let place = record.len() - rest.len();
        let open = rest.strip_prefix(b"\"").ok_or_else(|| Refusal::at("there is no quote", place))?;
        let end =
            quoted_length(open).ok_or_else(|| Refusal::at("there is no closing quote for the one", place))?;
        let word = unquote(&open[..end]);
        words.push(word.ok_or_else(|| Refusal::at("there is an unknown escape in the argument", place))?);
        if words.len() > MAX_VALUES {
            return Err(Refusal::new(format!("there are more than {MAX_VALUES} arguments")));
        }
        rest = &open[end + 1..];
        if !rest.is_empty() {
            let place = record.len() - rest.len();
            rest = rest.strip_prefix(b" ").ok_or_else(|| Refusal::at("there is no space", place))?;
        }
    }
    let mut words = words.into_iter();
    members.add_some("command", words.next());
    members.add("arguments", Value::List(words.collect()));
    Ok(Parsed::Fields(members.into_object()))
}

fn is_time(time: &[u8]) -> bool {
    cut(time, b'.')
        .is_some_and(|(seconds, fraction)| decimal(seconds).is_some() && decimal(fraction).is_some())
}

/// What Redis quoted (`sdscatrepr`).
fn unquote(inside: &[u8]) -> Option<Value<'_>> {
    if find(b'\\', inside).is_none() {
        return Some(Value::from_bytes(inside));
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(place) = find(b'\\', rest) {
        out.extend_from_slice(&rest[..place]);
        let (&escape, behind) = rest[place + 1..].split_first()?;
        rest = behind;
        out.push(match escape {
            b'"' | b'\\' => escape,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'x' => {
                let (&[high, low], behind) = rest.split_first_chunk()?;
                rest = behind;
                16 * hexadecimal(high)? + hexadecimal(low)?
            }
            _ => return None,
        });
    }
    out.extend_from_slice(rest);
    Some(Value::from_vec(out))
}
