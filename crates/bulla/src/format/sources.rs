//! Which ranges of which sources there are, and the section of a block's body that has them.
//!
//! A source is what entries are read from, a file for instance. Of each entry that came from one the writer knows which range of
//! it the entry is; of a block those ranges, merged, are the *sources section*, behind the block's ciphertext:
//!
//! ```text
//! varint  how many sources, at least one
//! of each source, ascending by id:
//!   16      id
//!   varint  0: its label is as it was; else the length of the label and one
//!   …       label
//!   varint  how many ranges; 0: the source has ended, and what was known of it is forgotten
//!   of each range, ascending:
//!     varint  how far it begins behind the end of the one before it, or, the first one, behind 0
//!     varint  its length, at least 1
//!     u64     the check of the record that ends where it ends
//! zeros up to the Padmé length
//! ```
//!
//! **Invariants:** ranges are in order, none is empty, and none touches the next: so a section has one encoding.

pub(crate) mod passed;
pub(crate) mod table;

use bulla_columns::padme;
use bulla_proof::commitment::MAX_SOURCES;
use bulla_proof::varint;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

/// The longest label of a source, in bytes.
pub(crate) const MAX_LABEL: usize = 4096;
/// The most sources of a log.
pub(crate) const MAX_SOURCES_OF_LOG: usize = 1 << 16;
/// The bytes of ids, ranges and labels from which on a section has no further label: a later block has it then.
const ENOUGH: usize = 13 << 20;
/// What encryption adds to a section, in bytes.
pub(crate) const TAG: usize = 16;

// Every block's section fits: of 17 MiB of staged rows (a full block and one more buffer at most, or one large row) each placed one
// takes 44 bytes at least, and of the section a range of its own takes 28 and a source of its own 20 at most.
const _: () = assert!((17 << 20) / 44 * 28 + MAX_SOURCES_OF_LOG * 20 + 10 < ENOUGH);
// Padmé adds less than an eighth.
const _: () = assert!((ENOUGH + MAX_LABEL + 10) / 8 * 9 + TAG <= MAX_SOURCES as usize);

/// What tells a source from every other of the log: 16 bytes that whoever follows it chooses. Shown as lowercase hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub [u8; 16]);

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Debug for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A range of a source, and the check of the record that ends where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) check: u64,
}

/// Ranges of one source; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<CheckedRange>);

impl Ranges {
    /// Ranges in any order, none of which is empty.
    pub(crate) fn of(mut ranges: Vec<CheckedRange>) -> Self {
        if !ranges.is_sorted_by_key(|range| range.start) {
            ranges.sort_by_key(|range| range.start);
        }
        ranges.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches && next.end >= last.end {
                (last.end, last.check) = (next.end, next.check);
            }
            touches
        });
        Ranges(ranges)
    }

    /// Adds others.
    pub(crate) fn add(&mut self, other: &Ranges) {
        // What is mostly so: one range, which goes on where the last one ended.
        if let ([one], Some(last)) = (&other.0[..], self.0.last_mut())
            && one.start == last.end
        {
            (last.end, last.check) = (one.end, one.check);
            return;
        }
        let end = self.0.last().map_or(0, |last| last.end);
        self.0.extend_from_slice(&other.0);
        if other.0.first().is_some_and(|first| first.start <= end) {
            *self = Ranges::of(std::mem::take(&mut self.0));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges alone, and their checks.
    pub(crate) fn parts(&self) -> (Vec<Range<u64>>, Vec<u64>) {
        self.0.iter().map(|range| (range.start..range.end, range.check)).unzip()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        varint::push(self.0.len() as u64, out);
        let mut end = 0;
        for range in &self.0 {
            varint::push(range.start - end, out);
            varint::push(range.end - range.start, out);
            out.extend_from_slice(&range.check.to_le_bytes());
            end = range.end;
        }
    }

    fn decode(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let count = number(rest)?;
        let mut ranges = Vec::with_capacity(room(count, rest, 10));
        let mut end = 0_u64;
        for index in 0..count {
            let (gap, length) = (number(rest)?, number(rest)?);
            let start = end.checked_add(gap).ok_or(Malformed("a range overflows"))?;
            if length == 0 || gap == 0 && index > 0 {
                return Err(Malformed("ranges are empty or touch"));
            }
            end = start.checked_add(length).ok_or(Malformed("a range overflows"))?;
            let check = u64::from_le_bytes(bytes(rest)?);
            ranges.push(CheckedRange { start, end, check });
        }
        Ok(Ranges(ranges))
    }
}

/// What a block says of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceEntry {
    pub(crate) id: SourceId,
    /// Its label from here on; `None` where that is as it was.
    pub(crate) label: Option<Arc<[u8]>>,
    /// What the block holds of it; none where it has ended.
    pub(crate) ranges: Ranges,
}

impl SourceEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0);
        varint::push(self.label.as_ref().map_or(0, |label| label.len() as u64 + 1), out);
        out.extend_from_slice(self.label.as_deref().unwrap_or_default());
        self.ranges.encode(out);
    }

    fn decode(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let id = SourceId(bytes(rest)?);
        let label = match number(rest)?.checked_sub(1) {
            None => None,
            Some(length) => {
                let length = usize::try_from(length).ok().filter(|length| *length <= MAX_LABEL);
                let length = length.ok_or(Malformed("a label is too long"))?;
                let (label, tail) =
                    rest.split_at_checked(length).ok_or(Malformed("it ends inside a label"))?;
                *rest = tail;
                Some(label.into())
            }
        };
        let ranges = Ranges::decode(rest)?;
        match ranges.is_empty() && label.is_some() {
            true => Err(Malformed("a source that has ended has a label")),
            false => Ok(SourceEntry { id, label, ranges }),
        }
    }
}

/// Why bytes are no sources section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Takes labels out that are too much for one section.
pub(crate) fn bound_labels(entries: &mut [&mut SourceEntry]) {
    let mut length: usize = entries.iter().map(|entry| 20 + 28 * entry.ranges.len()).sum();
    for entry in entries {
        let label = entry.label.as_ref().map_or(0, |label| label.len() + 1);
        if length + label > ENOUGH {
            entry.label = None;
        } else {
            length += label;
        }
    }
}

/// The plaintext of a section with these entries, of which there is at least one, in order.
pub(crate) fn encode<'e>(entries: impl ExactSizeIterator<Item = &'e SourceEntry>) -> Vec<u8> {
    let mut out = Vec::new();
    varint::push(entries.len() as u64, &mut out);
    entries.for_each(|entry| entry.encode(&mut out));
    out.resize(padme(out.len()), 0);
    out
}

/// Reads the plaintext of a section.
///
/// # Errors
/// Where it is none.
pub(crate) fn decode(text: &[u8]) -> Result<Vec<SourceEntry>, Malformed> {
    let mut rest = text;
    let entries = decode_entries(&mut rest, |entry, _| Ok(entry), |entry| entry.id)?;
    let padded = padme(text.len() - rest.len()) == text.len() && rest.iter().all(|byte| *byte == 0);
    match (entries.is_empty(), padded) {
        (true, _) => Err(Malformed("it names no source")),
        (_, false) => Err(Malformed("what follows the last source is no padding")),
        (false, true) => Ok(entries),
    }
}

/// Reads a count and so many sources, each with what `more` reads behind it.
fn decode_entries<T>(
    rest: &mut &[u8],
    more: impl Fn(SourceEntry, &mut &[u8]) -> Result<T, Malformed>,
    id: impl Fn(&T) -> SourceId,
) -> Result<Vec<T>, Malformed> {
    let count = number(rest)?;
    let mut entries = Vec::<T>::with_capacity(room(count, rest, 18));
    for _ in 0..count {
        let entry = SourceEntry::decode(rest)?;
        let entry = more(entry, rest)?;
        if entries.last().is_some_and(|last| id(last) >= id(&entry)) {
            return Err(Malformed("its sources are not in order"));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn number(rest: &mut &[u8]) -> Result<u64, Malformed> {
    varint::take(rest).map_err(|_| Malformed("a number is cut short or not in its shortest form"))
}

fn bytes<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (bytes, tail) = rest.split_first_chunk().ok_or(Malformed("it is cut short"))?;
    *rest = tail;
    Ok(*bytes)
}

/// Room for `count` things, each of which takes at least `each` of the bytes that are left.
fn room(count: u64, rest: &[u8], each: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).min(rest.len() / each)
}

#[cfg(test)]
mod tests;
