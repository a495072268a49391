//! Entries as text: what `bulla append` reads and `bulla export` writes.
//!
//! | Module | What it is |
//! |---|---|
//! | [`lines`] | cuts a reader into numbered lines, in bounded memory |
//! | [`jsonl`] | one entry as one line of JSON, both ways |
//! | [`msgpack`] | one entry as one MessagePack map, both ways |
//! | [`schema`] | the same lines as a JSON Schema |
//! | [`time`] | RFC 3339 to nanoseconds since the epoch, and back |
//! | [`zone`] | times as a person gives them, in a time zone |
//! | [`spelling`] | which name was meant where there is none of a spelling |
//!
//! A line becomes a [`ParsedEntry`] or a [`LineError`], never both, and never a panic. What is parsed is within
//! the limits of [`Entry`](bulla_proof::Entry). Nothing is rewritten on the way in: what a format cannot carry
//! as it stands is refused, with a reason that names the field and never its value, because a reason is shown and
//! kept where personal data must not be.
//!
//! ```
//! use bulla_text::{jsonl, LineReader};
//!
//! let input = br#"{"operation":"read","location":"user_42/email","subject":"user_42"}
//! {"operation":"read","status":"fine"}"#;
//! let mut lines = LineReader::new(&input[..]);
//!
//! let entry = jsonl::parse_line(lines.next_line()?.unwrap().text?)?;
//! let mut exported = Vec::new();
//! jsonl::write_entry(&entry.entry(), 0, &mut exported);
//! assert_eq!(
//!     exported,
//!     b"{\"entry\":0,\"operation\":\"read\",\"location\":\"user_42/email\",\"subject\":\"user_42\"}\n"
//! );
//!
//! let line = lines.next_line()?.unwrap();
//! let refused = jsonl::parse_line(line.text?).unwrap_err();
//! assert_eq!(line.number, 2);
//! assert_eq!(refused.to_string(), "`status` must be a whole number from 0 to 4294967295");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]

mod entry;
mod error;
mod field;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod jsonl;
pub mod lines;
pub mod msgpack;
pub mod schema;
pub mod spelling;
#[cfg(test)]
mod tests;
pub mod time;
mod write;
pub mod zone;

pub use entry::ParsedEntry;
pub use error::LineError;
pub use lines::{Line, LineReader};
pub use write::is_obeyed;

/// A line without the `\r` of a line end of Windows.
fn content(line: &[u8]) -> Result<&[u8], LineError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) { Err(LineError::Empty) } else { Ok(line) }
}

/// A location or payload as text, or else as the bytes that it is.
pub fn text_or_bytes(value: Option<&[u8]>) -> (Option<&str>, Option<&[u8]>) {
    match value.map(|bytes| std::str::from_utf8(bytes).map_err(|_| bytes)) {
        None => (None, None),
        Some(Ok(text)) => (Some(text), None),
        Some(Err(bytes)) => (None, Some(bytes)),
    }
}
