//! journald's two formats that machines read: both have its fields by their own names, of which one may be there several times.

use super::json::{self, MAX_VALUES};
use crate::framing::{find, is_name};
use crate::value::Members;
use crate::{Refusal, Value};
use std::borrow::Cow;

/// `journalctl -o json`: a field that is not text is a list of numbers, one that is there several times a list of values, and one that was
/// too long for the output `null`.
pub(super) fn json(record: &[u8]) -> Result<Value<'_>, Refusal> {
    json::read(record, true)
}

/// `journalctl -o export`.
pub(super) fn export(record: &[u8]) -> Result<Value<'_>, Refusal> {
    let mut members = Members::default();
    let mut rest = record;
    for _ in 0..MAX_VALUES {
        if rest.is_empty() {
            return match members.len() {
                0 => Err(Refusal::new("the record is empty")),
                _ => Ok(members.into_object()),
            };
        }
        let place = record.len() - rest.len();
        let line = &rest[..find(b'\n', rest).unwrap_or(rest.len())];
        rest = rest.get(line.len() + 1..).unwrap_or_default();
        let (name, value) = match find(b'=', line) {
            Some(equals) => (&line[..equals], &line[equals + 1..]),
            None => {
                let value;
                (value, rest) = binary(rest).ok_or_else(|| {
                    Refusal::at("the field does not end where its length says, which begins", place)
                })?;
                (line, value)
            }
        };
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name.as_bytes()));
        let name = name.ok_or_else(|| Refusal::at("there is no name of a field", place))?;
        members.add_repeated(Cow::Borrowed(name), Value::from_bytes(value));
    }
    Err(Refusal::new(format!("there are more than {MAX_VALUES} fields")))
}

/// A length, so many bytes and a line end; and what follows.
fn binary(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((value, rest.strip_prefix(b"\n")?))
}
