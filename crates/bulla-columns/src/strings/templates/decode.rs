//! Reads strings in templates. Their bytes are paid for from the content budget once their length is known. Until then, shapes and
//! words may be no longer than the budget allows strings to be, and there may be no more values than half as many bytes.

use super::super::super::blob::BlobDecoder;
use super::super::super::error::Fault;
use super::super::super::input::{Budget, Input};
use super::super::super::numbers::NumberDecoder;
use super::super::super::table::MAX_DISTINCT;
use super::super::pool::{Span, StringLimits, check_text, grow, place, sum};
use super::kind::{Kind, decimal_length, write_decimal, write_hexadecimal};
use super::{MOST, MOST_TEXT, SLOT};
use std::ops::Range;

/// What a column is read from, and with.
pub(crate) struct Source<'a, 'b> {
    pub(crate) input: &'a mut Input<'b>,
    pub(crate) numbers: &'a mut NumberDecoder,
    pub(crate) blobs: &'a mut BlobDecoder,
}

/// Reads strings in templates. Holds what the last column took, and memory to be used again.
#[derive(Default)]
pub(crate) struct TemplateDecoder {
    shapes: Vec<Shape>,
    parts: Vec<Part>,
    columns: Vec<Column>,
    shape_text: Vec<u8>,
    /// The words of the dictionary, then those that are spelled.
    text: Vec<u8>,
    /// Where each shape is in the shapes' text, and later where each word of the dictionary is in the words'; packed.
    places: Vec<u64>,
    /// Where each spelled word is in the text, packed.
    spelled: Vec<u64>,
}

#[derive(Default)]
struct Shape {
    /// How many parts there are up to its last.
    parts_end: usize,
    /// How many bytes of it stand for themselves.
    literal: u64,
    strings: u64,
}

/// A stretch of a shape that stands for itself, and the column of the slot behind it, if there is one.
struct Part {
    literal: Range<u32>,
    column: Option<u8>,
}

struct Column {
    kind: Kind,
    /// How many values the strings take.
    count: u64,
    /// The values; those of words are replaced by the words' places in the text once that was read.
    values: Vec<u64>,
}

impl TemplateDecoder {
    /// Reads a column of `count` strings, as [`super::super::StringDecoder::decode`] does.
    pub(crate) fn decode(
        &mut self,
        source: &mut Source<'_, '_>,
        count: usize,
        limits: StringLimits,
        budget: &mut Budget,
        pool: &mut Vec<u8>,
        spans: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        self.read_kinds(source)?;
        self.read_shapes(source, budget)?;
        source.numbers.decode_narrow(source.input, count, source.blobs, spans)?;
        self.count(spans)?;
        budget.hold(self.columns.iter().map(|column| column.count).sum())?;
        self.read_columns(source, budget)?;
        let length = usize::try_from(self.length()).map_err(|_| Fault::TooLarge)?;
        let begin = grow(pool, length, budget)?;
        self.write(spans, limits, &mut pool[begin as usize..])?;
        let text = check_text(&pool[begin as usize..], limits)?;
        place(spans, begin, text)
    }

    /// How much memory is held, in bytes.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> usize {
        let TemplateDecoder { shapes, parts, columns, shape_text, text, places, spelled } = self;
        let values: usize = columns.iter().map(|column| column.values.capacity()).sum();
        let shapes = shapes.capacity() * size_of::<Shape>() + parts.capacity() * size_of::<Part>();
        (values + places.capacity() + spelled.capacity()) * 8
            + text.capacity()
            + shape_text.capacity()
            + shapes
    }

    fn read_kinds(&mut self, source: &mut Source<'_, '_>) -> Result<(), Fault> {
        self.columns.clear();
        let count = source.input.count(0, MOST)?;
        for &kind in source.input.bytes(count)? {
            let kind = Kind::from_byte(kind).ok_or(Fault::Form)?;
            self.columns.push(Column { kind, count: 0, values: Vec::new() });
        }
        Ok(())
    }

    fn read_shapes(&mut self, source: &mut Source<'_, '_>, budget: &Budget) -> Result<(), Fault> {
        let count = source.input.count(1, MOST)?;
        let TemplateDecoder { shapes, parts, columns, shape_text, places, .. } = self;
        shape_text.clear();
        shapes.clear();
        parts.clear();
        // A slot takes two bytes of its shape, and makes at least one byte of a string.
        let most = budget.left.saturating_mul(2).min(MOST_TEXT);
        read_texts(source, count, most, places, shape_text)?;
        for &place in places.iter() {
            let Span { start, length } = Span::unpack(place);
            let end = (start + length) as usize;
            let mut start = start as usize;
            let mut shape = Shape::default();
            while start < end {
                let slot = shape_text[start..end].iter().position(|&byte| byte == SLOT);
                let literal = start..slot.map_or(end, |slot| start + slot);
                let column = match slot {
                    Some(_) => Some(*shape_text[..end].get(literal.end + 1).ok_or(Fault::Range)?),
                    None => None,
                };
                if column.is_some_and(|column| usize::from(column) >= columns.len()) {
                    return Err(Fault::Range);
                }
                start = literal.end + if slot.is_some() { 2 } else { 0 };
                shape.literal += literal.len() as u64;
                // Every shape occurs, so each slot is filled at least once. That makes one byte, half of what the slot takes here.
                if parts.len() > budget.left / 2 + MOST {
                    return Err(Fault::TooLarge);
                }
                let place = |at: usize| u32::try_from(at).map_err(|_| Fault::TooLarge);
                parts.push(Part { literal: place(literal.start)?..place(literal.end)?, column });
            }
            shape.parts_end = parts.len();
            shapes.push(shape);
        }
        Ok(())
    }

    /// Counts the strings of each shape and the values of each column, of which there must be some.
    fn count(&mut self, indexes: &[u64]) -> Result<(), Fault> {
        for &index in indexes {
            let shape = usize::try_from(index).ok().and_then(|index| self.shapes.get_mut(index));
            shape.ok_or(Fault::Range)?.strings += 1;
        }
        let mut parts = self.parts.iter();
        let mut start = 0;
        for shape in &self.shapes {
            if shape.strings == 0 {
                return Err(Fault::Range);
            }
            for part in parts.by_ref().take(shape.parts_end - start) {
                if let Some(column) = part.column {
                    self.columns[usize::from(column)].count += shape.strings;
                }
            }
            start = shape.parts_end;
        }
        if self.columns.iter().any(|column| column.count == 0) { Err(Fault::Range) } else { Ok(()) }
    }

    /// Reads the dictionary, the columns' values and the words that are spelled.
    fn read_columns(&mut self, source: &mut Source<'_, '_>, budget: &Budget) -> Result<(), Fault> {
        let TemplateDecoder { columns, text, places: words, spelled, .. } = self;
        let of_words = |column: &&mut Column| column.kind == Kind::Word;
        let most: u64 = columns.iter_mut().filter(of_words).map(|column| column.count).sum();
        let most = usize::try_from(most).map_err(|_| Fault::TooLarge)?;
        let known = source.input.count(0, most.min(MAX_DISTINCT))?;
        text.clear();
        read_words(source, known, budget, words, text)?;
        let mut occurs = vec![false; known + 1];
        let mut others = 0;
        for column in columns.iter_mut() {
            read_values(source, column)?;
            if column.kind == Kind::Word {
                for &value in &column.values {
                    let word = usize::try_from(value).ok().filter(|&word| word <= known);
                    occurs[word.ok_or(Fault::Range)?] = true;
                    others += usize::from(value == 0);
                }
            } else if column.values.iter().any(|&value| value > column.kind.most()) {
                return Err(Fault::Range);
            }
        }
        if occurs[1..].contains(&false) {
            return Err(Fault::Range);
        }
        read_words(source, others, budget, spelled, text)?;
        let mut others = spelled.iter();
        for value in columns.iter_mut().filter(of_words).flat_map(|column| &mut column.values) {
            let word = usize::try_from(*value).ok().and_then(|value| words.get(value.checked_sub(1)?));
            *value = *word.or_else(|| others.next()).ok_or(Fault::Range)?;
        }
        Ok(())
    }

    /// The length of all strings together.
    fn length(&self) -> u64 {
        let literals: u64 = self.shapes.iter().map(|shape| shape.literal * shape.strings).sum();
        let slots = self.columns.iter().map(|Column { kind, count, values }| match kind {
            Kind::Word => values.iter().map(|&word| u64::from(Span::unpack(word).length)).sum(),
            Kind::Decimal => values.iter().map(|&value| u64::from(decimal_length(value))).sum(),
            Kind::Hexadecimal { digits, .. } => count * u64::from(*digits),
        });
        literals + slots.sum::<u64>()
    }

    /// Writes the strings of these shapes to memory that is exactly as long as they are. The strings' lengths replace the
    /// numbers of their shapes.
    fn write(&self, shapes: &mut [u64], limits: StringLimits, room: &mut [u8]) -> Result<(), Fault> {
        let mut next = [0; MOST];
        let mut end = 0;
        for slot in shapes {
            let start = end;
            let index = usize::try_from(*slot).map_err(|_| Fault::Range)?;
            let parts_start = if index == 0 { 0 } else { self.shapes[index - 1].parts_end };
            for Part { literal, column } in &self.parts[parts_start..self.shapes[index].parts_end] {
                let literal = &self.shape_text[literal.start as usize..literal.end as usize];
                room[end..end + literal.len()].copy_from_slice(literal);
                end += literal.len();
                if let Some(column) = column {
                    let column = usize::from(*column);
                    let Column { kind, values, .. } = &self.columns[column];
                    end += self.fill(*kind, values[next[column]], &mut room[end..]);
                    next[column] += 1;
                }
            }
            if !(limits.shortest..=limits.longest).contains(&(end - start)) {
                return Err(Fault::Range);
            }
            *slot = (end - start) as u64;
        }
        Ok(())
    }

    /// Writes what fills a slot, and returns how long that is.
    #[inline]
    fn fill(&self, kind: Kind, value: u64, room: &mut [u8]) -> usize {
        match kind {
            Kind::Word => {
                let Span { start, length } = Span::unpack(value);
                let length = length as usize;
                room[..length].copy_from_slice(&self.text[start as usize..][..length]);
                length
            }
            Kind::Decimal => {
                let length = usize::from(decimal_length(value));
                write_decimal(value, &mut room[..length]);
                length
            }
            Kind::Hexadecimal { digits, upper } => {
                let length = usize::from(digits);
                write_hexadecimal(value, upper, &mut room[..length]);
                length
            }
        }
    }
}

/// Reads as many values of a column as its slots take.
fn read_values(source: &mut Source<'_, '_>, column: &mut Column) -> Result<(), Fault> {
    let Source { input, numbers, blobs } = source;
    let count = usize::try_from(column.count).map_err(|_| Fault::TooLarge)?;
    match column.kind {
        Kind::Word => numbers.decode_narrow(input, count, blobs, &mut column.values),
        _ => numbers.decode(input, count, blobs, &mut column.values),
    }
}

/// Reads words. None may be empty, and together they may be no longer than what is left of the budget.
fn read_words(
    source: &mut Source<'_, '_>,
    count: usize,
    budget: &Budget,
    words: &mut Vec<u64>,
    text: &mut Vec<u8>,
) -> Result<(), Fault> {
    read_texts(source, count, budget.left, words, text)?;
    if words.iter().any(|&word| Span::unpack(word).length == 0) { Err(Fault::Range) } else { Ok(()) }
}

/// Appends plain strings of at most so many bytes together to `text`; their packed places replace `places`.
fn read_texts(
    source: &mut Source<'_, '_>,
    count: usize,
    most: usize,
    places: &mut Vec<u64>,
    text: &mut Vec<u8>,
) -> Result<(), Fault> {
    let Source { input, numbers, blobs } = source;
    numbers.decode_narrow(input, count, blobs, places)?;
    let length = sum(places).filter(|&length| length <= most).ok_or(Fault::TooLarge)?;
    let begin = text.len();
    text.resize(begin + length, 0);
    blobs.decode(input, &mut text[begin..])?;
    place(places, u32::try_from(begin).map_err(|_| Fault::TooLarge)?, None)
}
