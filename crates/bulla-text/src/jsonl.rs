//! One entry as one line of JSON: what `bulla append` reads by default, and `bulla export` writes.
//!
//! The fields are those of [`Entry`], by the same names, but that `subject` is a string or a list of strings, and
//! that bytes which are not UTF-8 stand in base64 (RFC 4648, section 4, with padding) in `location_base64` or
//! `payload_base64`. Absent, zero and empty are three things; `null` is how many producers spell absent, and means
//! just that. What is written is read back the same.

use super::field::{FIELDS, Field, STRING, presentable};
use super::time::{self, LEAP_SECOND, TimeError};
use super::{LineError, ParsedEntry, content, write};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bulla_proof::Entry;
use bulla_proof::entry::MAX_SUBJECTS;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use std::fmt;

/// Parses a line; one `\r` at its end does not matter.
///
/// # Errors
/// Where the line is not one JSON object of the known fields, each at most once and of the right type, with an
/// operation and within the limits.
pub fn parse_line(line: &[u8]) -> Result<ParsedEntry, LineError> {
    let line = content(line)?;
    let mut fields = Fields::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    let read = json.deserialize_map(&mut fields).and_then(|()| json.end());
    match read {
        Ok(()) => fields.finish(),
        Err(error) => Err(fields.explain(&error)),
    }
}

/// Writes an entry as a line, `\n` included: `entry`, its `number` in the log, first; absent fields left out.
pub fn write_entry(entry: &Entry<'_>, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"entry\":");
    write::number(number, 1, out);
    write_fields(entry, out);
}

/// Writes an entry as [`write_entry`] does; one whose personal fields are withheld says so at the end, and why, so that
/// nobody takes it for an entry without them. `bulla append` refuses such a line.
pub fn write_read(entry: &Entry<'_>, number: u64, withheld: Option<&str>, out: &mut Vec<u8>) {
    write_entry(entry, number, out);
    if let Some(why) = withheld {
        out.truncate(out.len() - "}\n".len());
        write_text("withheld", Some(why), out);
        out.extend_from_slice(b"}\n");
    }
}

/// Writes an entry as a line that `bulla append` reads: as [`write_entry`] does, without a number.
pub fn write_unnumbered(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    write_fields(entry, out);
    // There is always an operation, and its comma where the brace belongs.
    out[start] = b'{';
}

/// Writes what follows a first field: each with a comma before it, and the end of the line.
fn write_fields(entry: &Entry<'_>, out: &mut Vec<u8>) {
    if let Some(nanoseconds) = entry.time {
        write_name("time", out);
        out.push(b'"');
        time::format_time(nanoseconds, out);
        out.push(b'"');
    }
    write_text("operation", Some(entry.operation), out);
    write_bytes("location", entry.location, out);
    match entry.subjects.as_deref() {
        None => {}
        Some([subject]) => write_text("subject", Some(subject), out),
        Some(subjects) => {
            out.extend_from_slice(b",\"subject\":[");
            for (position, subject) in subjects.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write::string(subject, out);
            }
            out.push(b']');
        }
    }
    write_text("controller", entry.controller, out);
    write_text("processor", entry.processor, out);
    write_text("purpose", entry.purpose, out);
    write_text("actor", entry.actor, out);
    write_text("client", entry.client, out);
    write_text("stream", entry.stream, out);
    write_number("status", entry.status.map(u64::from), out);
    write_number("duration", entry.duration, out);
    write_number("size", entry.size, out);
    write_number("flags", entry.flags.map(u64::from), out);
    write_bytes("payload", entry.payload, out);
    out.extend_from_slice(b"}\n");
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn write_text(name: &str, value: Option<&str>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        write_name(name, out);
        write::string(value, out);
    }
}

fn write_bytes(name: &str, value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value.map(|value| (value, std::str::from_utf8(value))) {
        None => {}
        Some((_, Ok(text))) => write_text(name, Some(text), out),
        Some((bytes, Err(_))) => {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"_base64\":\"");
            out.extend_from_slice(BASE64.encode(bytes).as_bytes());
            out.push(b'"');
        }
    }
}

fn write_number(name: &str, value: Option<u64>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        write_name(name, out);
        write::number(value, 1, out);
    }
}

/// What has been read of a line, and where.
#[derive(Default)]
struct Fields {
    entry: ParsedEntry,
    operation: Option<String>,
    location_base64: Option<Vec<u8>>,
    payload_base64: Option<Vec<u8>>,
    /// A bit for each of [`FIELDS`].
    seen: u32,
    /// The place in [`FIELDS`] of what is being read.
    reading: Option<usize>,
    /// What is wrong, where serde has no word for it.
    refused: Option<LineError>,
}

impl Fields {
    fn finish(self) -> Result<ParsedEntry, LineError> {
        let mut entry = self.entry;
        entry.operation = self.operation.unwrap_or_default();
        entry.location = one_form("location", entry.location, self.location_base64)?;
        entry.payload = one_form("payload", entry.payload, self.payload_base64)?;
        Ok(entry.within_limits()?)
    }

    /// serde's error in our words: serde's own repeat the value.
    fn explain(self, error: &serde_json::Error) -> LineError {
        let reading = self.reading.map(|place| FIELDS[place]);
        match (self.refused, error.classify(), reading) {
            (Some(LineError::UnknownField { name, .. }), ..) => {
                LineError::UnknownField { name, column: error.column() }
            }
            (Some(refused), ..) => refused,
            (None, Category::Data, Some((field, _, expected))) => LineError::Value { field, expected },
            (None, Category::Data, None) => LineError::NotAnObject,
            (None, _, reading) => {
                let message = error.to_string();
                let problem = message.split(" at line ").next().unwrap_or_default().to_owned();
                LineError::Syntax { column: error.column(), field: reading.map(|(name, ..)| name), problem }
            }
        }
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, field: Field, map: &mut A) -> Result<(), A::Error> {
        let entry = &mut self.entry;
        match field {
            Field::Time => {
                let time = map.next_value_seed(Text(read_time))?;
                entry.time = time.transpose().map_err(|expected| {
                    self.refused = Some(LineError::Value { field: "time", expected });
                    A::Error::custom("leap second")
                })?;
            }
            Field::Operation => self.operation = map.next_value()?,
            Field::Location => entry.location = map.next_value::<Option<String>>()?.map(String::into_bytes),
            Field::LocationBase64 => self.location_base64 = map.next_value_seed(Text(decode_base64))?,
            Field::Subject => entry.subjects = map.next_value_seed(Subjects)?,
            Field::Controller => entry.controller = map.next_value()?,
            Field::Processor => entry.processor = map.next_value()?,
            Field::Purpose => entry.purpose = map.next_value()?,
            Field::Actor => entry.actor = map.next_value()?,
            Field::Client => entry.client = map.next_value()?,
            Field::Stream => entry.stream = map.next_value()?,
            Field::Status => entry.status = map.next_value()?,
            Field::Duration => entry.duration = map.next_value()?,
            Field::Size => entry.size = map.next_value()?,
            Field::Flags => entry.flags = map.next_value()?,
            Field::Payload => entry.payload = map.next_value::<Option<String>>()?.map(String::into_bytes),
            Field::PayloadBase64 => self.payload_base64 = map.next_value_seed(Text(decode_base64))?,
        }
        Ok(())
    }
}

/// A time, or what is said of one that is a leap second.
fn read_time(text: &str) -> Option<Result<i64, &'static str>> {
    match time::parse_time(text) {
        Ok(time) => Some(Ok(time)),
        Err(TimeError::LeapSecond) => Some(Err(LEAP_SECOND)),
        Err(TimeError::Malformed | TimeError::OutOfRange) => None,
    }
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

fn one_form(
    field: &'static str,
    text: Option<Vec<u8>>,
    base64: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, LineError> {
    match (text, base64) {
        (Some(_), Some(_)) => Err(LineError::BothForms { field }),
        (text, base64) => Ok(text.or(base64)),
    }
}

impl<'de> Visitor<'de> for &mut Fields {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name)? {
            let place = match name {
                Ok(place) => place,
                Err(name) => {
                    self.refused = Some(LineError::UnknownField { name, column: 0 });
                    return Err(A::Error::custom("unknown field"));
                }
            };
            let (name, field, _) = FIELDS[place];
            if self.seen & (1 << place) != 0 {
                self.refused = Some(LineError::Duplicate { field: name });
                return Err(A::Error::custom("duplicate field"));
            }
            self.seen |= 1 << place;
            self.reading = Some(place);
            self.read(field, &mut map)?;
            self.reading = None;
        }
        Ok(())
    }
}

/// Reads a name: its place in [`FIELDS`], or else the name, if it looks like one.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Result<usize, Option<String>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Result<usize, Option<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let place = FIELDS.iter().position(|&(known, ..)| known == name);
        Ok(place.ok_or_else(|| presentable(name)))
    }
}

/// Reads a string through a function that may refuse it; `null` is absent.
struct Text<T>(fn(&str) -> Option<T>);

impl<'de, T> DeserializeSeed<'de> for Text<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<T>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<T> Visitor<'_> for Text<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STRING)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<T>, E> {
        self.0(text).map(Some).ok_or_else(|| E::custom("refused"))
    }
}

/// Reads a string or a list of strings, no further than the limit; `null` is absent.
struct Subjects;

impl<'de> DeserializeSeed<'de> for Subjects {
    type Value = Option<Vec<String>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Subjects {
    type Value = Option<Vec<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, subject: &str) -> Result<Self::Value, E> {
        Ok(Some(vec![subject.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut subjects = Vec::new();
        while let Some(subject) = list.next_element()? {
            if subjects.len() == MAX_SUBJECTS {
                return Err(A::Error::custom("too many"));
            }
            subjects.push(subject);
        }
        Ok(Some(subjects))
    }
}
