//! Rows to columns. One pass cuts every row into its fields; then each column is written in its best form.

use super::blob::BlobEncoder;
use super::numbers::NumberEncoder;
use super::strings::StringEncoder;
use super::{ABSENT, BITMAP, Compression, FIELDS, Kind, PRESENT, VERSION};
use crate::index::Searched;
use bulla_proof::EntryError;
use bulla_proof::entry::{Field, RawRow};
use bulla_proof::varint;

/// Encodes blocks. Keeps its memory between them.
pub struct Encoder {
    columns: Columns<'static>,
    bitmap: Vec<u8>,
    numbers: NumberEncoder,
    strings: StringEncoder,
    blobs: BlobEncoder,
}

/// The fields of the rows, each field's values together.
#[derive(Default)]
struct Columns<'a> {
    presence: Vec<u16>,
    times: Vec<u64>,
    operations: Vec<&'a [u8]>,
    /// By field: the integers, or the counts of a list.
    numbers: [Vec<u64>; FIELDS.len()],
    /// By field: the strings.
    strings: [Vec<&'a [u8]>; FIELDS.len()],
}

impl Encoder {
    /// An encoder that compresses that hard.
    pub fn new(compression: Compression) -> Self {
        Encoder {
            columns: Columns::default(),
            bitmap: Vec::new(),
            numbers: NumberEncoder::default(),
            strings: StringEncoder::default(),
            blobs: BlobEncoder::new(compression),
        }
    }

    /// Appends the encoded block of `rows`, without padding. Depends on the rows and the compression only.
    ///
    /// # Errors
    /// Where bytes cannot be cut into fields, and so are no row; `out` is then as it was. That text is text and
    /// fields are within their limits is not checked again: it is for the caller to have checked.
    pub fn encode(&mut self, rows: &[&[u8]], out: &mut Vec<u8>) -> Result<(), EntryError> {
        self.encode_and_tell(rows, out, |_, _| {})
    }

    /// The same, and tells what the entries can be found by.
    pub(crate) fn encode_and_tell(
        &mut self,
        rows: &[&[u8]],
        out: &mut Vec<u8>,
        tell: impl FnMut(Searched, Option<&[u8]>),
    ) -> Result<(), EntryError> {
        let mut columns = std::mem::take(&mut self.columns).recycle();
        let result = columns.transpose(rows);
        if result.is_ok() {
            self.write(&columns, out, tell);
        }
        self.columns = columns.recycle();
        result
    }

    /// Tells values of what entries can be found by, as many as they are or fewer; `None` where some row has none.
    fn write(
        &mut self,
        columns: &Columns<'_>,
        out: &mut Vec<u8>,
        mut tell: impl FnMut(Searched, Option<&[u8]>),
    ) {
        let Encoder { bitmap, numbers, strings, blobs, .. } = self;
        out.push(VERSION);
        varint::push(columns.times.len() as u64, out);
        numbers.encode(&columns.times, blobs, out);
        strings.encode(&columns.operations, numbers, blobs, out);
        strings.tell(&columns.operations, |operation| tell(Searched::Operation, Some(operation)));
        let any = columns.presence.iter().fold(0, |any, presence| any | presence);
        let all = columns.presence.iter().fold(u16::MAX, |all, presence| all & presence);
        for (index, &(field, _, kind)) in FIELDS.iter().enumerate() {
            let searched = Searched::of(field);
            if let Some(searched) = searched.filter(|_| all & field.bit() == 0) {
                tell(searched, None);
            }
            if any & field.bit() == 0 {
                out.push(ABSENT);
                continue;
            }
            if all & field.bit() != 0 {
                out.push(PRESENT);
            } else {
                out.push(BITMAP);
                fill_bitmap(bitmap, &columns.presence, field);
                blobs.encode(bitmap, out);
            }
            match kind {
                Kind::Number { .. } => numbers.encode(&columns.numbers[index], blobs, out),
                Kind::String(_) => strings.encode(&columns.strings[index], numbers, blobs, out),
                Kind::List(_) => {
                    numbers.encode(&columns.numbers[index], blobs, out);
                    strings.encode(&columns.strings[index], numbers, blobs, out);
                }
            }
            if let Some(searched) = searched {
                strings.tell(&columns.strings[index], |value| tell(searched, Some(value)));
            }
        }
        // Personal groups.
        out.push(0);
    }
}

impl<'a> Columns<'a> {
    fn transpose(&mut self, rows: &[&'a [u8]]) -> Result<(), EntryError> {
        for row in rows {
            let row = RawRow::parse(row)?;
            self.presence.push(row.presence);
            self.times.push(row.time.cast_unsigned());
            self.operations.push(row.operation);
            for (field, value) in [
                (Field::Controller, row.controller),
                (Field::Processor, row.processor),
                (Field::Purpose, row.purpose),
                (Field::Location, row.location),
                (Field::Client, row.client),
                (Field::Actor, row.actor),
                (Field::Stream, row.stream),
                (Field::Payload, row.payload),
            ] {
                if let Some(value) = value {
                    self.strings[field as usize].push(value);
                }
            }
            for (field, value) in [
                (Field::Status, row.status),
                (Field::Duration, row.duration),
                (Field::Size, row.size),
                (Field::Flags, row.flags),
            ] {
                if let Some(value) = value {
                    self.numbers[field as usize].push(value);
                }
            }
            if let Some(subjects) = row.subjects {
                self.numbers[Field::Subject as usize].push(subjects.len() as u64);
                self.strings[Field::Subject as usize].extend(subjects);
            }
        }
        Ok(())
    }

    /// The same memory, empty, for rows that live elsewhere.
    fn recycle<'b>(mut self) -> Columns<'b> {
        self.presence.clear();
        self.times.clear();
        self.numbers.iter_mut().for_each(Vec::clear);
        Columns {
            presence: self.presence,
            times: self.times,
            operations: recycle(self.operations),
            numbers: self.numbers,
            strings: self.strings.map(recycle),
        }
    }
}

/// An empty vector in the same memory: collecting a vector's own iterator does not allocate.
fn recycle<'b>(mut strings: Vec<&[u8]>) -> Vec<&'b [u8]> {
    strings.clear();
    strings.into_iter().map(|_| -> &'b [u8] { &[] }).collect()
}

fn fill_bitmap(bitmap: &mut Vec<u8>, presence: &[u16], field: Field) {
    bitmap.clear();
    bitmap.extend(presence.chunks(8).map(|rows| {
        rows.iter().rev().fold(0, |bits, presence| bits << 1 | u8::from(presence & field.bit() != 0))
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        let strings: Vec<&[u8]> = vec![b"a"; 1000];
        let (pointer, capacity) = (strings.as_ptr().addr(), strings.capacity());
        let recycled = recycle(strings);
        assert_eq!((recycled.as_ptr().addr(), recycled.capacity(), recycled.len()), (pointer, capacity, 0));
    }
}
