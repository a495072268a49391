//! Rows to columns. One pass cuts every row into its fields; then each column is written in its best form.

use super::blob::BlobEncoder;
use super::groups::{Groups, Partition};
use super::numbers::NumberEncoder;
use super::records::{self, Items, RecordWriter};
use super::strings::StringEncoder;
use super::{ABSENT, BITMAP, Compression, FIELDS, Kind, PRESENT, VERSION, bounds};
use crate::Searched;
use crate::account::Account;
use crate::rows::Rows;
use bulla_proof::EntryError;
use bulla_proof::entry::{Field, RawRow};
use bulla_proof::varint;

/// So many rows are taken apart at a time.
const ROWS: usize = 64;

/// Encodes blocks. Keeps its memory between them.
pub struct Encoder {
    columns: Columns<'static>,
    bitmap: Vec<u8>,
    numbers: NumberEncoder,
    strings: StringEncoder,
    blobs: BlobEncoder,
    records: RecordWriter,
    shared: Rows,
}

/// The fields of the rows, each field's values together.
#[derive(Default)]
struct Columns<'a> {
    /// Of every row, which of its fields are in these columns, as presence bits.
    presence: Vec<u16>,
    /// The presence bits of the rows that are in no group, where there are groups: columns of personal fields have these rows
    /// alone.
    ungrouped: Vec<u16>,
    times: Vec<u64>,
    operations: Vec<&'a [u8]>,
    /// By field: the integers, or the counts of a list.
    numbers: [Vec<u64>; FIELDS.len()],
    /// By field: the strings.
    strings: [Vec<&'a [u8]>; FIELDS.len()],
}

impl Encoder {
    /// An encoder with this compression.
    pub fn new(compression: Compression) -> Self {
        Encoder {
            columns: Columns::default(),
            bitmap: Vec::new(),
            numbers: NumberEncoder::default(),
            strings: StringEncoder::default(),
            blobs: BlobEncoder::new(compression),
            records: RecordWriter::default(),
            shared: Rows::default(),
        }
    }

    /// What encoding took so far.
    pub fn account(&mut self) -> &mut Account {
        &mut self.blobs.account
    }

    /// Appends the encoded block of `rows`, without groups and padding. Depends on the rows and the compression only.
    ///
    /// # Errors
    /// Where bytes cannot be cut into fields, and so are no row; `out` is then as it was. Whether text is UTF-8 and fields are
    /// within their limits is not checked again; the caller has checked it.
    pub fn encode(&mut self, rows: &[&[u8]], out: &mut Vec<u8>) -> Result<(), EntryError> {
        self.encode_and_tell(rows, &Partition::NONE, out, |_, _| {}).map(|_| ())
    }

    /// Appends the encoded block of rows of which some are in groups, up to where the groups follow, which
    /// [`Encoder::end_groups`] appends. Calls `tell` with the values by which the block's entries can be found; those of personal
    /// fields only of entries in no group. Returns the earliest and the latest time of the rows.
    pub fn encode_and_tell(
        &mut self,
        rows: &[&[u8]],
        partition: &Partition<'_>,
        out: &mut Vec<u8>,
        tell: impl FnMut(Searched, Option<&[u8]>),
    ) -> Result<(i64, i64), EntryError> {
        let mut columns = std::mem::take(&mut self.columns).recycle();
        self.shared.clear();
        let result = columns.transpose(rows, partition, (&mut self.shared, &self.blobs.account));
        if result.is_ok() {
            self.write_block(&columns, partition, out, tell);
        }
        let bounds = bounds(&columns.times);
        self.columns = columns.recycle();
        result.map(|()| bounds)
    }

    /// Looks at groups of a block before [`Encoder::encode_group`] writes them, and finds what is common to `least` of them or more;
    /// with 0 nothing is. Of each come its rows, which are of the same data subjects, and whether it counts: a group that does must have no
    /// data subject in common with another one that does. All of them have so many entries.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn survey_groups<'a, R: Iterator<Item = &'a [u8]> + Clone>(
        &mut self,
        groups: impl Iterator<Item = (R, bool)> + Clone,
        entries: usize,
        personal: u16,
        least: u32,
    ) -> Result<(), EntryError> {
        self.records.survey(groups, entries, personal, least)
    }

    /// The rows of the last block, where it has groups: of those in a group what is not personal, the others empty.
    pub fn shared_rows(&self) -> &Rows {
        &self.shared
    }

    /// What is common to the groups that were surveyed last.
    pub fn items(&self) -> &Items {
        self.records.items()
    }

    /// Appends what a block keeps of its groups.
    pub fn end_groups(&mut self, groups: &Groups, out: &mut Vec<u8>) {
        self.records.items().write(&mut self.numbers, &mut self.blobs, out);
        groups.write(&mut self.numbers, &mut self.blobs, out);
    }

    /// Appends the personal fields, those in `personal`, of the rows of a group: as records, or in columns where it has much to learn
    /// from itself.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode_group<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]> + Clone,
        personal: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), EntryError> {
        match self.records.write(rows.clone(), personal, out)? {
            true => Ok(()),
            false => self.encode_group_in_columns(rows, personal, out),
        }
    }

    pub(crate) fn encode_group_in_columns<'a>(
        &mut self,
        mut rows: impl Iterator<Item = &'a [u8]>,
        personal: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), EntryError> {
        out.push(records::COLUMNS);
        let mut columns = std::mem::take(&mut self.columns).recycle();
        let result = rows.try_for_each(|row| {
            columns.push(&RawRow::parse(row)?, personal);
            Ok(())
        });
        if result.is_ok() {
            for (index, (field, ..)) in FIELDS.iter().enumerate() {
                if personal & field.bit() != 0 {
                    self.write_field(&columns, &columns.presence, index, out, |_, _| {});
                }
            }
        }
        self.columns = columns.recycle();
        result
    }

    /// Calls `tell` with each value by which entries can be found, at least once, and with `None` where some row has no such
    /// value.
    fn write_block(
        &mut self,
        columns: &Columns<'_>,
        partition: &Partition<'_>,
        out: &mut Vec<u8>,
        mut tell: impl FnMut(Searched, Option<&[u8]>),
    ) {
        out.push(VERSION);
        varint::push(columns.presence.len() as u64, out);
        partition.write(&mut self.numbers, &mut self.blobs, out);
        self.numbers.encode(&columns.times, &mut self.blobs, out);
        self.strings.encode(&columns.operations, &mut self.numbers, &mut self.blobs, out);
        self.strings.tell(&columns.operations, |operation| tell(Searched::Operation, Some(operation)));
        for (index, (field, ..)) in FIELDS.iter().enumerate() {
            let ungrouped = partition.personal() & field.bit() != 0;
            let presence = if ungrouped { &columns.ungrouped } else { &columns.presence };
            self.write_field(columns, presence, index, out, &mut tell);
        }
    }

    /// Appends one column, of the rows that `presence` describes.
    fn write_field(
        &mut self,
        columns: &Columns<'_>,
        presence: &[u16],
        index: usize,
        out: &mut Vec<u8>,
        mut tell: impl FnMut(Searched, Option<&[u8]>),
    ) {
        self.blobs.account.point();
        let (field, _, kind) = FIELDS[index];
        let count = presence.iter().filter(|&presence| presence & field.bit() != 0).count();
        let Encoder { bitmap, numbers, strings, blobs, .. } = self;
        let searched = Searched::of(field);
        if let Some(searched) = searched.filter(|_| count < presence.len()) {
            tell(searched, None);
        }
        if count == 0 {
            out.push(ABSENT);
            return;
        }
        if count == presence.len() {
            out.push(PRESENT);
        } else {
            out.push(BITMAP);
            fill_bitmap(bitmap, presence, field);
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
}

impl<'a> Columns<'a> {
    /// Adds these rows, and to `shared` those of them that are in a group, without what is personal.
    fn transpose(
        &mut self,
        rows: &[&'a [u8]],
        partition: &Partition<'_>,
        (shared, account): (&mut Rows, &Account),
    ) -> Result<(), EntryError> {
        for (index, row) in rows.iter().enumerate() {
            if index.is_multiple_of(ROWS) {
                account.point();
            }
            let row = RawRow::parse(row)?;
            let grouped = partition.is_grouped(index);
            self.times.push(row.time.cast_unsigned());
            self.operations.push(row.operation);
            self.push(&row, if grouped { !partition.personal() } else { u16::MAX });
            if !partition.is_empty() {
                shared.push(|out| {
                    if grouped {
                        row.write(!partition.personal(), out)
                    }
                });
                if !grouped {
                    self.ungrouped.push(row.presence);
                }
            }
        }
        Ok(())
    }

    /// Adds the fields of a row that are in `wanted`.
    fn push(&mut self, row: &RawRow<'a>, wanted: u16) {
        self.presence.push(row.presence & wanted);
        let wants = |field: Field| wanted & field.bit() != 0;
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
            if let Some(value) = value.filter(|_| wants(field)) {
                self.strings[field as usize].push(value);
            }
        }
        for (field, value) in [
            (Field::Status, row.status),
            (Field::Duration, row.duration),
            (Field::Size, row.size),
            (Field::Flags, row.flags),
        ] {
            if let Some(value) = value.filter(|_| wants(field)) {
                self.numbers[field as usize].push(value);
            }
        }
        if let Some(subjects) = row.subjects.filter(|_| wants(Field::Subject)) {
            self.numbers[Field::Subject as usize].push(subjects.len() as u64);
            self.strings[Field::Subject as usize].extend(subjects);
        }
    }

    /// The same memory, empty, for rows that live elsewhere.
    fn recycle<'b>(mut self) -> Columns<'b> {
        self.presence.clear();
        self.ungrouped.clear();
        self.times.clear();
        self.numbers.iter_mut().for_each(Vec::clear);
        Columns {
            presence: self.presence,
            ungrouped: self.ungrouped,
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
