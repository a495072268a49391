//! An entry as a line of plain text, the base of every ratio to text:
//!
//! ```text
//! [<seq>][<time>Z][<location>][<client>][<status>][<verb>][<duration>ms][<size>b][<flags>]
//! ```
//!
//! Time is RFC 3339 with microseconds, duration whole milliseconds; an absent field leaves its brackets empty. A
//! payload follows in brackets of its own. The other fields have no place: where a workload has them, ratios to text
//! come out smaller than they are, never greater.

use crate::calendar;
use crate::digits::{decimal, decimal_length};
use bulla_proof::Entry;

const MILLISECOND: u64 = 1_000_000;

/// The length of the line of entry number `sequence`, in bytes, its end included.
pub fn length(entry: &Entry<'_>, sequence: u64) -> usize {
    let number = |value: Option<u64>, unit: usize| value.map_or(0, |value| decimal_length(value) + unit);
    let fields = decimal_length(sequence)
        + entry.time.map_or(0, |_| calendar::MICROSECONDS)
        + entry.location.map_or(0, <[u8]>::len)
        + entry.client.map_or(0, str::len)
        + number(entry.status.map(u64::from), 0)
        + entry.operation.len()
        + number(entry.duration.map(|duration| duration / MILLISECOND), 2)
        + number(entry.size, 1)
        + number(entry.flags.map(u64::from), 0);
    fields + 9 * 2 + entry.payload.map_or(0, |payload| payload.len() + 2) + 1
}

/// Writes the line of entry number `sequence`.
pub fn write(entry: &Entry<'_>, sequence: u64, out: &mut Vec<u8>) {
    let number = |value: Option<u64>, unit: &'static [u8]| {
        move |out: &mut Vec<u8>| {
            if let Some(value) = value {
                decimal(value, out);
                out.extend_from_slice(unit);
            }
        }
    };
    let bytes = |value: Option<&[u8]>, out: &mut Vec<u8>| out.extend_from_slice(value.unwrap_or_default());
    bracketed(out, number(Some(sequence), b""));
    bracketed(out, |out| entry.time.into_iter().for_each(|time| calendar::microseconds(time, out)));
    bracketed(out, |out| bytes(entry.location, out));
    bracketed(out, |out| bytes(entry.client.map(str::as_bytes), out));
    bracketed(out, number(entry.status.map(u64::from), b""));
    bracketed(out, |out| bytes(Some(entry.operation.as_bytes()), out));
    bracketed(out, number(entry.duration.map(|duration| duration / MILLISECOND), b"ms"));
    bracketed(out, number(entry.size, b"b"));
    bracketed(out, number(entry.flags.map(u64::from), b""));
    if let Some(payload) = entry.payload {
        bracketed(out, |out| out.extend_from_slice(payload));
    }
    out.push(b'\n');
}

fn bracketed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'[');
    write(out);
    out.push(b']');
}
