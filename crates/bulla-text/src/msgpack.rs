//! One entry as one MessagePack map: what programs send over the local socket.
//!
//! The keys are the fields of [`Entry`], by the names that [`jsonl`](super::jsonl) has, each at most once. `time` is a whole number of
//! nanoseconds since the Unix epoch, or RFC 3339 text; `subject` a string or an array of strings; `location` and `payload`
//! are strings or binary; so nothing is in base64. `nil` is absent. What is read borrows from what came: nothing is copied.

use super::field::{FIELDS, Field};
use super::{LineError, time};
use bulla_proof::Entry;
use bulla_proof::entry::MAX_SUBJECTS;
use rmp::Marker;
use rmp::decode::{read_int, read_marker};
use rmp::encode;

#[cfg(test)]
mod tests;

/// What is said of bytes that are not what the format has there.
const CUT_OFF: LineError = LineError::Part { problem: "the entry is not MessagePack, or is cut off" };
const NOT_A_MAP: LineError = LineError::Part { problem: "the entry is not a MessagePack map" };

/// Reads the first entry of `bytes`, and goes on behind it, so that those behind one that is refused are read all the same.
///
/// # Errors
/// Where it is not one map of the known fields, each at most once and of the right type, with an operation and within the
/// limits. Where it is not MessagePack nobody knows where the next one begins: nothing is left of `bytes` then.
pub fn read_entry<'a>(bytes: &mut &'a [u8]) -> Result<Entry<'a>, LineError> {
    let start = *bytes;
    read_map(bytes).inspect_err(|_| {
        let mut rest = start;
        *bytes = skip(&mut rest).map_or(&[], |()| rest);
    })
}

/// Writes an entry of this `time` as [`read_entry`] reads it, absent fields left out.
pub fn write_entry(entry: &Entry<'_>, time: Option<i64>, out: &mut Vec<u8>) {
    let start = out.len();
    // A map of at most fifteen fields says so in one byte, which is known at the end.
    out.push(0);
    let mut map = Map { fields: 0, out };
    if let Some(time) = time {
        written(encode::write_sint(map.name("time"), time).map(drop));
    }
    map.text("operation", Some(entry.operation));
    map.bytes("location", entry.location);
    match entry.subjects.as_deref() {
        None => {}
        Some([subject]) => map.text("subject", Some(subject)),
        Some(subjects) => {
            let out = map.name("subject");
            let count = u32::try_from(subjects.len()).expect("an entry has few data subjects");
            written(encode::write_array_len(out, count).map(drop));
            subjects.iter().for_each(|subject| written(encode::write_str(out, subject)));
        }
    }
    map.text("controller", entry.controller);
    map.text("processor", entry.processor);
    map.text("purpose", entry.purpose);
    map.text("actor", entry.actor);
    map.text("client", entry.client);
    map.text("stream", entry.stream);
    map.number("status", entry.status.map(u64::from));
    map.number("duration", entry.duration);
    map.number("size", entry.size);
    map.number("flags", entry.flags.map(u64::from));
    map.bytes("payload", entry.payload);
    let fields = map.fields;
    out[start] = Marker::FixMap(fields).to_u8();
}

struct Map<'a> {
    fields: u8,
    out: &'a mut Vec<u8>,
}

impl Map<'_> {
    /// Writes a field's name, behind which its value is to be written.
    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        self.fields += 1;
        written(encode::write_str(self.out, name));
        self.out
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            written(encode::write_str(self.name(name), value));
        }
    }

    fn bytes(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            written(encode::write_bin(self.name(name), value));
        }
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            written(encode::write_uint(self.name(name), value).map(drop));
        }
    }
}

fn written<E: std::fmt::Debug>(result: Result<(), E>) {
    result.expect("writing to memory does not fail");
}

fn read_map<'a>(bytes: &mut &'a [u8]) -> Result<Entry<'a>, LineError> {
    let count = match read_marker(bytes).map_err(|_| CUT_OFF)? {
        Marker::FixMap(count) => u32::from(count),
        Marker::Map16 => u32::from(u16::from_be_bytes(array(bytes)?)),
        Marker::Map32 => u32::from_be_bytes(array(bytes)?),
        _ => return Err(NOT_A_MAP),
    };
    let mut entry = Entry::default();
    let mut seen = 0_u32;
    for _ in 0..count {
        let place = read_name(bytes)?;
        let (name, field, _) = FIELDS[place];
        if seen & (1 << place) != 0 {
            return Err(LineError::Duplicate { field: name });
        }
        seen |= 1 << place;
        let read = read_field(&mut entry, field, bytes);
        read.map_err(|Unfit| LineError::Value { field: name, expected: expected(place) })?;
    }
    entry.measure()?;
    Ok(entry)
}

/// A value of another type or range than the field takes, or that is cut off.
struct Unfit;

fn read_field<'a>(entry: &mut Entry<'a>, field: Field, bytes: &mut &'a [u8]) -> Result<(), Unfit> {
    if bytes.first() == Some(&Marker::Null.to_u8()) {
        *bytes = &bytes[1..];
        return Ok(());
    }
    match field {
        Field::Time => entry.time = Some(read_time(bytes)?),
        Field::Operation => entry.operation = text(bytes)?,
        Field::Location => entry.location = Some(string(bytes, true)?),
        Field::Subject => {
            let subjects = entry.subjects.get_or_insert_default();
            match Marker::from_u8(*bytes.first().ok_or(Unfit)?) {
                Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
                    let count = rmp::decode::read_array_len(bytes).map_err(|_| Unfit)?;
                    if count as usize > MAX_SUBJECTS {
                        return Err(Unfit);
                    }
                    for _ in 0..count {
                        subjects.push(text(bytes)?);
                    }
                }
                _ => subjects.push(text(bytes)?),
            }
        }
        Field::Controller => entry.controller = Some(text(bytes)?),
        Field::Processor => entry.processor = Some(text(bytes)?),
        Field::Purpose => entry.purpose = Some(text(bytes)?),
        Field::Actor => entry.actor = Some(text(bytes)?),
        Field::Client => entry.client = Some(text(bytes)?),
        Field::Stream => entry.stream = Some(text(bytes)?),
        Field::Status => entry.status = Some(read_int(bytes).map_err(|_| Unfit)?),
        Field::Duration => entry.duration = Some(read_int(bytes).map_err(|_| Unfit)?),
        Field::Size => entry.size = Some(read_int(bytes).map_err(|_| Unfit)?),
        Field::Flags => entry.flags = Some(read_int(bytes).map_err(|_| Unfit)?),
        Field::Payload => entry.payload = Some(string(bytes, true)?),
        Field::LocationBase64 | Field::PayloadBase64 => unreachable!("no such name is read"),
    }
    Ok(())
}

/// What a field takes here.
fn expected(place: usize) -> &'static str {
    let (_, field, in_text) = FIELDS[place];
    match field {
        Field::Time => "a whole number of nanoseconds since 1970, or RFC 3339 text",
        Field::Location | Field::Payload => "a string or binary",
        Field::Subject => "a string or an array of at most 64 strings",
        _ => in_text,
    }
}

fn read_time(bytes: &mut &[u8]) -> Result<i64, Unfit> {
    match Marker::from_u8(*bytes.first().ok_or(Unfit)?) {
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            time::parse_time(text(bytes)?).map_err(|_| Unfit)
        }
        _ => read_int(bytes).map_err(|_| Unfit),
    }
}

/// A name: its place in [`FIELDS`].
fn read_name(bytes: &mut &[u8]) -> Result<usize, LineError> {
    let name =
        text(bytes).map_err(|Unfit| LineError::Part { problem: "a name in the entry is not a string" })?;
    let place = FIELDS.iter().position(|&(known, field, _)| {
        known == name && !matches!(field, Field::LocationBase64 | Field::PayloadBase64)
    });
    place.ok_or_else(|| LineError::unknown_field(name))
}

fn text<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, Unfit> {
    std::str::from_utf8(string(bytes, false)?).map_err(|_| Unfit)
}

/// The bytes of a string, or of binary where that is as good.
fn string<'a>(bytes: &mut &'a [u8], binary: bool) -> Result<&'a [u8], Unfit> {
    let unfit = |_| Unfit;
    let length = match read_marker(bytes).map_err(|_| Unfit)? {
        Marker::FixStr(length) => u32::from(length),
        Marker::Str8 => u32::from(u8::from_be_bytes(array(bytes).map_err(unfit)?)),
        Marker::Str16 => u32::from(u16::from_be_bytes(array(bytes).map_err(unfit)?)),
        Marker::Str32 => u32::from_be_bytes(array(bytes).map_err(unfit)?),
        Marker::Bin8 if binary => u32::from(u8::from_be_bytes(array(bytes).map_err(unfit)?)),
        Marker::Bin16 if binary => u32::from(u16::from_be_bytes(array(bytes).map_err(unfit)?)),
        Marker::Bin32 if binary => u32::from_be_bytes(array(bytes).map_err(unfit)?),
        _ => return Err(Unfit),
    };
    take(bytes, length as usize).ok_or(Unfit)
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], LineError> {
    take(bytes, N).and_then(|taken| taken.try_into().ok()).ok_or(CUT_OFF)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Goes behind one value, whatever it is; `None` where it is cut off, or no MessagePack. In a loop, whatever is nested: each value
/// takes a byte at least, so that a count which promises more than there is ends it.
fn skip(bytes: &mut &[u8]) -> Option<()> {
    let mut left = 1_u64;
    while left > 0 {
        left -= 1;
        let marker = read_marker(bytes).ok()?;
        let (data, items) = match marker {
            Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => (0, 0),
            Marker::U8 | Marker::I8 => (1, 0),
            Marker::U16 | Marker::I16 => (2, 0),
            Marker::U32 | Marker::I32 | Marker::F32 => (4, 0),
            Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
            Marker::FixStr(length) => (usize::from(length), 0),
            Marker::Str8 | Marker::Bin8 => (length::<1>(bytes)?, 0),
            Marker::Str16 | Marker::Bin16 => (length::<2>(bytes)?, 0),
            Marker::Str32 | Marker::Bin32 => (length::<4>(bytes)?, 0),
            // The type of an extension is a byte of its own.
            Marker::FixExt1 => (2, 0),
            Marker::FixExt2 => (3, 0),
            Marker::FixExt4 => (5, 0),
            Marker::FixExt8 => (9, 0),
            Marker::FixExt16 => (17, 0),
            Marker::Ext8 => (length::<1>(bytes)? + 1, 0),
            Marker::Ext16 => (length::<2>(bytes)? + 1, 0),
            Marker::Ext32 => (length::<4>(bytes)? + 1, 0),
            Marker::FixArray(count) => (0, u64::from(count)),
            Marker::Array16 => (0, length::<2>(bytes)? as u64),
            Marker::Array32 => (0, length::<4>(bytes)? as u64),
            Marker::FixMap(count) => (0, 2 * u64::from(count)),
            Marker::Map16 => (0, 2 * length::<2>(bytes)? as u64),
            Marker::Map32 => (0, 2 * length::<4>(bytes)? as u64),
            Marker::Reserved => return None,
        };
        take(bytes, data)?;
        left += items;
    }
    Some(())
}

/// A length of so many bytes, the most significant first.
fn length<const N: usize>(bytes: &mut &[u8]) -> Option<usize> {
    Some(take(bytes, N)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
}
