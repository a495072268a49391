//! Entries as CSV (RFC 4180): a header, then a record an entry, everything as it was logged.
//!
//! An absent field is an empty cell and an empty string is `""`, so that who looks at the quotes (PostgreSQL's COPY,
//! DuckDB) can tell them apart. No CSV library writes that, and quoting is all that there is to it.
//! `docs/operating.md`, "Exports", has the conventions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bulla::Entry;
use bulla::text::text_or_bytes;
use bulla::text::time::format_time;
use std::io::Write as _;

/// The first line: all columns, always these, in this order.
pub(super) const HEADER: &[u8] =
    b"entry,time,operation,location,subject,controller,processor,purpose,actor,client,\
stream,status,duration,size,flags,payload,location_base64,payload_base64,withheld\r\n";

/// Writes the record of an entry, its line end included.
pub(super) fn write_entry(entry: &Entry<'_>, number: u64, withheld: Option<&str>, out: &mut Vec<u8>) {
    let (location, location_base64) = text_or_bytes(entry.location);
    let (payload, payload_base64) = text_or_bytes(entry.payload);
    write_number(number, out);
    out.push(b',');
    if let Some(time) = entry.time {
        format_time(time, out);
    }
    write_text(Some(entry.operation), out);
    write_text(location, out);
    write_subjects(entry.subjects.as_deref(), out);
    let texts = [entry.controller, entry.processor, entry.purpose, entry.actor, entry.client, entry.stream];
    texts.into_iter().for_each(|text| write_text(text, out));
    for number in [entry.status.map(u64::from), entry.duration, entry.size, entry.flags.map(u64::from)] {
        out.push(b',');
        number.into_iter().for_each(|number| write_number(number, out));
    }
    write_text(payload, out);
    for bytes in [location_base64, payload_base64] {
        out.push(b',');
        bytes.into_iter().for_each(|bytes| out.extend_from_slice(BASE64.encode(bytes).as_bytes()));
    }
    write_text(withheld, out);
    out.extend_from_slice(b"\r\n");
}

/// A comma and a text, in quotes where it has to be.
fn write_text(text: Option<&str>, out: &mut Vec<u8>) {
    out.push(b',');
    let Some(text) = text else { return };
    let plain = |byte| !matches!(byte, b',' | b'"' | b'\r' | b'\n');
    if !text.is_empty() && text.bytes().all(plain) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for (place, part) in text.split('"').enumerate() {
        if place > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}

/// One subject as it is, any other number of them as a JSON list: a cell is a list where it begins with `[`.
fn write_subjects(subjects: Option<&[&str]>, out: &mut Vec<u8>) {
    match subjects {
        None => write_text(None, out),
        Some([subject]) if !subject.is_empty() && !subject.starts_with('[') => write_text(Some(subject), out),
        // Strings are always JSON.
        Some(subjects) => write_text(Some(&serde_json::to_string(subjects).unwrap_or_default()), out),
    }
}

fn write_number(number: u64, out: &mut Vec<u8>) {
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{number}");
}
