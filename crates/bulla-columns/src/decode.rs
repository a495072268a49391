//! Columns to rows. Columns are read and checked one by one; when all are there, the rows' length is known, and only
//! then are the rows written.

use super::error::{DecodeError, Fault};
use super::groups::Groups;
use super::input::{Budget, Input};
use super::records::{COLUMNS, Items, RecordReader};
use super::rows::Rows;
use super::strings::{Span, StringDecoder};
use super::writer::{STRIDE, Writer};
use super::{ABSENT, BITMAP, FIELDS, Kind, OPERATION, PRESENT, ROW_OVERHEAD, VERSION, bounds};
use bulla_proof::entry::MAX_SUBJECTS;
use bulla_proof::varint;

/// What a row's presence bits, time and length of the operation count towards the content limit, at least.
const LEAST_ROW: usize = PRESENCE_LENGTH + 8 + 1 + ROW_OVERHEAD;
/// The length of a row's presence bits.
const PRESENCE_LENGTH: usize = 2;

/// Decodes blocks. Keeps its memory between them.
#[derive(Default)]
pub struct Decoder {
    columns: Columns,
    bitmap: Vec<u8>,
    strings: StringDecoder,
    groups: Groups,
    /// What the block's groups, or those of a proof, refer to.
    items: Items,
    records: RecordReader,
    /// What is left of the content limit after the rows of the block that was decoded last: what its groups may take.
    left: usize,
}

#[derive(Default)]
struct Columns {
    presence: Vec<u16>,
    /// The presence bits of the rows that are in no group, as far as they are of personal fields.
    ungrouped: Vec<u16>,
    times: Vec<u64>,
    operations: Vec<u64>,
    /// By field: the integers, or the counts of a list.
    numbers: [Vec<u64>; FIELDS.len()],
    /// By field: the strings, each as its [packed](Span::pack) place in the pool. So are the operations.
    strings: [Vec<u64>; FIELDS.len()],
    pool: Vec<u8>,
}

impl Decoder {
    /// A decoder that holds no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes a padded plaintext into `rows`, replacing what was there. The row of an entry that is in a group comes without
    /// its personal fields.
    ///
    /// `entries` is how many rows there have to be, `content_limit` the most that their lengths, with
    /// [`ROW_OVERHEAD`] for each, may add up to: both as the frame's commitment says. Returns the earliest and the latest time of
    /// the rows.
    ///
    /// # Errors
    /// Where the plaintext is not exactly an encoded and padded block of that many rows. `rows` is then empty.
    pub fn decode(
        &mut self,
        plaintext: &[u8],
        entries: usize,
        content_limit: usize,
        rows: &mut Rows,
    ) -> Result<(i64, i64), DecodeError> {
        rows.ends.clear();
        self.read(plaintext, entries, content_limit)?;
        let length = self.columns.length();
        let content = length.saturating_add((entries * ROW_OVERHEAD) as u64);
        self.left = pay(content, content_limit).map_err(|fault| fault.within("block"))?;
        self.columns.write(length, rows).map_err(|fault| fault.within("block"))?;
        Ok(bounds(&self.columns.times))
    }

    /// What is left of the content limit after the rows of the block that was decoded last: what its groups may take.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Decodes the plaintext of a group of `entries` rows whose `personal` fields are in the group: their personal
    /// rows, which are u16 presence bits and the fields, into `rows`, replacing what was there.
    ///
    /// What they add to the rows of their block is taken from `left`, before room is made for it. Of the block that was decoded
    /// before nothing matters but its common items, or those that [`Decoder::set_items`] has put in their place.
    ///
    /// # Errors
    /// Where the plaintext is not exactly that many personal rows, or there is not as much left. `rows` is then empty.
    pub fn decode_group(
        &mut self,
        plaintext: &[u8],
        entries: usize,
        personal: u16,
        left: &mut usize,
        rows: &mut Rows,
    ) -> Result<(), DecodeError> {
        rows.clear();
        let read = match plaintext.split_first() {
            Some((&COLUMNS, columns)) => self.group_of_columns(columns, entries, personal, left, rows),
            _ => self.records.read(plaintext, (entries, personal), &self.items, left, rows),
        };
        read.inspect_err(|_| rows.clear())
    }

    fn group_of_columns(
        &mut self,
        columns: &[u8],
        entries: usize,
        personal: u16,
        left: &mut usize,
        rows: &mut Rows,
    ) -> Result<(), DecodeError> {
        let mut input = Input { rest: columns };
        let mut budget = Budget::new(*left);
        self.columns.clear(entries);
        for (index, &(field, name, _)) in FIELDS.iter().enumerate() {
            if personal & field.bit() != 0 {
                self.column(index, 0, &mut input, &mut budget).map_err(|fault| fault.within(name))?;
            }
        }
        if !input.rest.is_empty() {
            return Err(Fault::Padding.within("group"));
        }
        let length = self.columns.length();
        // The presence bits are in the row of the block.
        let content = length - (entries * PRESENCE_LENGTH) as u64;
        let rest = pay(content, *left).map_err(|fault| fault.within("group"))?;
        self.columns.write(length, rows).map_err(|fault| fault.within("group"))?;
        *left = rest;
        Ok(())
    }

    /// The groups of the block that was decoded last.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The common items of the block that was decoded last.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Makes these the common items, of a block that is not here.
    pub fn set_items(&mut self, items: Items) {
        self.records.forget_used(items.len());
        self.items = items;
    }

    /// The positions of the common items that groups have referred to since the items were read or set, ascending.
    pub fn used_items(&self) -> impl Iterator<Item = usize> {
        self.records.used()
    }

    /// How much memory is held, in bytes.
    #[cfg(test)]
    pub(super) fn footprint(&self) -> usize {
        let columns = &self.columns;
        let integers: usize = columns.numbers.iter().chain([&columns.times]).map(Vec::capacity).sum();
        let spans: usize = columns.strings.iter().chain([&columns.operations]).map(Vec::capacity).sum();
        let bytes = columns.pool.capacity() + columns.presence.capacity() * 2 + self.bitmap.capacity();
        (integers + spans) * 8 + bytes + self.strings.footprint()
    }

    fn read(&mut self, plaintext: &[u8], entries: usize, content_limit: usize) -> Result<(), DecodeError> {
        let mut input = Input { rest: plaintext };
        let mut budget = Budget::new(content_limit);
        read_head(&mut input, entries, &mut budget).map_err(|fault| fault.within("block"))?;
        self.columns.clear(entries);
        let Decoder { groups, strings: StringDecoder { numbers, blobs, .. }, .. } = self;
        groups.read(&mut input, entries, numbers, blobs).map_err(|fault| fault.within("group"))?;
        let grouped = (0..entries).filter(|&row| self.groups.of_row(row).is_some()).count();
        self.columns.ungrouped.resize(entries - grouped, 0);
        let Decoder { columns, strings, .. } = self;
        strings
            .numbers
            .decode(&mut input, entries, &mut strings.blobs, &mut columns.times)
            .map_err(|fault| fault.within("time"))?;
        strings
            .decode(&mut input, entries, OPERATION, &mut budget, &mut columns.pool, &mut columns.operations)
            .map_err(|fault| fault.within("operation"))?;
        let ungrouped = self.groups.personal();
        for (index, (_, name, _)) in FIELDS.iter().enumerate() {
            self.column(index, ungrouped, &mut input, &mut budget).map_err(|fault| fault.within(name))?;
        }
        self.columns.scatter(&self.groups);
        let Decoder { groups, items, records, strings: StringDecoder { numbers, blobs, .. }, .. } = self;
        items.clear();
        if !groups.is_empty() {
            items.read(&mut input, numbers, blobs).map_err(|fault| fault.within("group"))?;
        }
        records.forget_used(items.len());
        groups.read_contents(&mut input, &budget, numbers, blobs).map_err(|fault| fault.within("group"))?;
        input.padding(plaintext.len()).map_err(|fault| fault.within("block"))
    }

    /// Reads the column of a field. Where the field is among those in `ungrouped`, it is a column of the rows in no group,
    /// otherwise of all rows.
    fn column(
        &mut self,
        index: usize,
        ungrouped: u16,
        input: &mut Input<'_>,
        budget: &mut Budget,
    ) -> Result<(), Fault> {
        let present = self.presence(index, ungrouped, input)?;
        // A number, a string's length and a list's count each take at least one byte of the row.
        budget.take_values(present)?;
        let Decoder { columns, strings, .. } = self;
        let Columns { numbers, strings: spans, pool, .. } = columns;
        let (numbers, spans) = (&mut numbers[index], &mut spans[index]);
        match FIELDS[index].2 {
            Kind::Number { most } => {
                strings.numbers.decode(input, present, &mut strings.blobs, numbers)?;
                if numbers.iter().any(|&value| value > most) {
                    return Err(Fault::Range);
                }
            }
            Kind::String(limits) => strings.decode(input, present, limits, budget, pool, spans)?,
            Kind::List(limits) => {
                strings.numbers.decode(input, present, &mut strings.blobs, numbers)?;
                if numbers.iter().any(|&count| count > MAX_SUBJECTS as u64) {
                    return Err(Fault::Range);
                }
                let total = usize::try_from(numbers.iter().sum::<u64>()).map_err(|_| Fault::TooLarge)?;
                budget.take_values(total)?;
                strings.decode(input, total, limits, budget, pool, spans)?;
            }
        }
        Ok(())
    }

    /// Reads which rows have the field, and returns how many do.
    fn presence(&mut self, index: usize, ungrouped: u16, input: &mut Input<'_>) -> Result<usize, Fault> {
        let bit = FIELDS[index].0.bit();
        let Columns { presence, ungrouped: others, .. } = &mut self.columns;
        let presence = if ungrouped & bit == 0 { presence } else { others };
        match input.byte()? {
            ABSENT => Ok(0),
            PRESENT => {
                presence.iter_mut().for_each(|presence| *presence |= bit);
                Ok(presence.len())
            }
            BITMAP => {
                self.bitmap.clear();
                self.bitmap.resize(presence.len().div_ceil(8), 0);
                self.strings.blobs.decode(input, &mut self.bitmap)?;
                for (rows, &bits) in presence.chunks_mut(8).zip(&self.bitmap) {
                    if u32::from(bits) >> rows.len() != 0 {
                        return Err(Fault::Unused);
                    }
                    for (row, presence) in rows.iter_mut().enumerate() {
                        *presence |= bit * u16::from(bits >> row & 1);
                    }
                }
                Ok(self.bitmap.iter().map(|bits| bits.count_ones() as usize).sum())
            }
            _ => Err(Fault::Form),
        }
    }
}

/// What is left of a limit after rows of exactly this length. While columns were read, a string in a dictionary was paid for only
/// once, however many rows have it.
fn pay(content: u64, limit: usize) -> Result<usize, Fault> {
    let content = usize::try_from(content).map_err(|_| Fault::TooLarge)?;
    limit.checked_sub(content).ok_or(Fault::TooLarge)
}

fn read_head(input: &mut Input<'_>, entries: usize, budget: &mut Budget) -> Result<(), Fault> {
    if input.byte()? != VERSION {
        return Err(Fault::Version);
    }
    if input.varint()? != entries as u64 {
        return Err(Fault::Entries);
    }
    budget.take_values(entries.checked_mul(LEAST_ROW).ok_or(Fault::TooLarge)?)
}

impl Columns {
    /// Makes ready for the columns of `entries` rows.
    fn clear(&mut self, entries: usize) {
        self.pool.clear();
        self.presence.clear();
        self.presence.resize(entries, 0);
        self.ungrouped.clear();
        self.times.clear();
        self.operations.clear();
        self.numbers.iter_mut().for_each(Vec::clear);
        self.strings.iter_mut().for_each(Vec::clear);
    }

    /// Adds the presence bits of personal fields, which were read for the rows in no group, to those rows among all.
    fn scatter(&mut self, groups: &Groups) {
        let mut ungrouped = self.ungrouped.iter();
        if !groups.is_empty() {
            for (row, presence) in self.presence.iter_mut().enumerate() {
                if groups.of_row(row).is_none() {
                    *presence |= ungrouped.next().copied().unwrap_or_default();
                }
            }
        }
    }

    /// The length of all rows.
    fn length(&self) -> u64 {
        let string = |&packed: &u64| {
            let length = u64::from(Span::unpack(packed).length);
            length + varint::length(length) as u64
        };
        let number = |&value: &u64| varint::length(value) as u64;
        let mut length = (self.presence.len() * PRESENCE_LENGTH) as u64 + self.times.len() as u64 * 8;
        length += self.operations.iter().map(string).sum::<u64>();
        length += self.numbers.iter().flatten().map(number).sum::<u64>();
        length += self.strings.iter().flatten().map(string).sum::<u64>();
        length
    }

    /// Writes the rows, which come to `length`. They begin with time and operation in a block, but not in a group, which has no
    /// such columns.
    fn write(&mut self, length: u64, rows: &mut Rows) -> Result<(), Fault> {
        let length = usize::try_from(length).map_err(|_| Fault::TooLarge)?;
        self.pool.resize(self.pool.len() + STRIDE, 0);
        rows.bytes.resize(length + STRIDE, 0);
        let mut heads = self.times.iter().zip(&self.operations);
        let mut numbers = self.numbers.each_ref().map(|numbers| numbers.iter());
        let mut strings = self.strings.each_ref().map(|strings| strings.iter());
        let mut writer = Writer::new(&mut rows.bytes, &self.pool);
        rows.ends.reserve(self.presence.len());
        for &presence in &self.presence {
            writer.fixed(presence.to_le_bytes());
            if let Some((&time, &operation)) = heads.next() {
                writer.fixed(time.to_le_bytes());
                writer.string(Span::unpack(operation));
            }
            for (index, (field, _, kind)) in FIELDS.iter().enumerate() {
                if presence & field.bit() == 0 {
                    continue;
                }
                match kind {
                    Kind::Number { .. } => {
                        numbers[index].next().into_iter().for_each(|&value| writer.varint(value))
                    }
                    Kind::String(_) => strings[index]
                        .next()
                        .into_iter()
                        .for_each(|&packed| writer.string(Span::unpack(packed))),
                    Kind::List(_) => {
                        let count = numbers[index].next().map_or(0, |&count| count);
                        writer.varint(count);
                        (0..count)
                            .zip(strings[index].by_ref())
                            .for_each(|(_, &packed)| writer.string(Span::unpack(packed)));
                    }
                }
            }
            rows.ends.push(writer.end());
        }
        let end = writer.end();
        rows.bytes.truncate(end);
        Ok(())
    }
}
