//! Reads groups that were written as records, whatever their bytes.

use super::bits::BitReader;
use super::items::{Item, Items};
use super::shape::{MOST_DECIMAL, Piece, Slot, above_decimal, decimal_bits, pieces};
use super::{
    ALPHABET_BITS, ALPHABETS, COUNT_BITS, DIGITS_BITS, INTEGER_BITS, KEPT_DIGITS, LENGTH_BITS,
    MOST_LENGTH_BITS, MOST_WORDS_BITS, RECORDS, bits_in, code, width_among,
};
use crate::error::{DecodeError, Fault};
use crate::strings::{StringLimits, Strings, decimal_length, shorter, write_decimal, write_hexadecimal};
use crate::{FIELDS, Kind, Rows};
use bulla_proof::entry::{Field, MAX_SUBJECTS};
use bulla_proof::varint;
use std::ops::Range;

/// What a group has spelled so far, and may refer to.
#[derive(Default)]
struct Spelled {
    strings: Strings,
    numbers: Vec<u64>,
}

/// Reads groups one after the other. Used again, it keeps its memory.
#[derive(Default)]
pub(crate) struct RecordReader {
    spelled: Spelled,
    /// The list of data subjects that was met last, as a row has it, and where its first name is in there.
    subjects: Vec<u8>,
    name: Option<Range<usize>>,
    /// The string that is being made.
    string: Vec<u8>,
    /// By position, whether an item was referred to.
    used: Vec<bool>,
}

impl RecordReader {
    /// Forgets which items were referred to; of a block that has so many.
    pub(crate) fn forget_used(&mut self, items: usize) {
        self.used.clear();
        self.used.resize(items, false);
    }

    /// The positions of the items that were referred to, ascending.
    pub(crate) fn used(&self) -> impl Iterator<Item = usize> {
        self.used.iter().enumerate().filter_map(|(position, used)| used.then_some(position))
    }

    /// Reads the personal rows of a group, and appends them; takes their lengths, without presence bits, from `left`.
    pub(crate) fn read(
        &mut self,
        text: &[u8],
        (entries, personal): (usize, u16),
        items: &Items,
        left: &mut usize,
        rows: &mut Rows,
    ) -> Result<(), DecodeError> {
        self.spelled.strings.clear();
        self.spelled.numbers.clear();
        self.subjects.clear();
        self.name = None;
        let mut reading =
            Reading { reader: self, bits: BitReader::new(text), items, width: items.width(), left: *left };
        reading.rows(entries, personal, rows)?;
        let Reading { bits, left: rest, .. } = reading;
        bits.finish().map_err(|fault| fault.within("group"))?;
        *left = rest;
        Ok(())
    }
}

/// A group that is being read.
struct Reading<'a> {
    reader: &'a mut RecordReader,
    bits: BitReader<'a>,
    items: &'a Items,
    /// The bits of a code.
    width: u32,
    /// What may still be taken.
    left: usize,
}

impl<'a> Reading<'a> {
    fn rows(&mut self, entries: usize, personal: u16, rows: &mut Rows) -> Result<(), DecodeError> {
        let mut last = [const { None }; FIELDS.len()];
        let mut presence = None;
        let within = |fault: Fault| fault.within("group");
        if self.bits.get(1).map_err(within)? != RECORDS {
            return Err(within(Fault::Form));
        }
        for _ in 0..entries {
            let present = self.presence(personal, presence).map_err(within)?;
            presence = Some(present);
            rows.bytes.extend_from_slice(&present.to_le_bytes());
            let has_subjects = present & Field::Subject.bit() != 0;
            if has_subjects {
                self.subjects().map_err(|fault| fault.within("subject"))?;
            }
            for (&(field, name, kind), last) in FIELDS.iter().zip(&mut last) {
                if present & field.bit() == 0 {
                    continue;
                }
                let read = match kind {
                    Kind::Number { most } => self.number(most, &mut rows.bytes),
                    Kind::String(limits) => self.value(limits, has_subjects, last, &mut rows.bytes),
                    Kind::List(_) => self.pay(self.reader.subjects.len()).map(|()| {
                        rows.bytes.extend_from_slice(&self.reader.subjects);
                    }),
                };
                read.map_err(|fault| fault.within(name))?;
            }
            rows.ends.push(rows.bytes.len());
        }
        Ok(())
    }

    fn pay(&mut self, bytes: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(bytes).ok_or(Fault::TooLarge)?;
        Ok(())
    }

    /// Reads which fields an entry has.
    fn presence(&mut self, personal: u16, before: Option<u16>) -> Result<u16, Fault> {
        if let Some(before) = before
            && self.bits.get(1)? == 1
        {
            return Ok(before);
        }
        let mut present = 0;
        for field in 0..u16::BITS {
            if personal >> field & 1 == 1 && self.bits.get(1)? == 1 {
                present |= 1 << field;
            }
        }
        Ok(present)
    }

    fn number(&mut self, most: u64, out: &mut Vec<u8>) -> Result<(), Fault> {
        let number = self.bits.get_sized(INTEGER_BITS, u64::BITS.into())?;
        if number > most {
            return Err(Fault::Range);
        }
        self.pay(varint::length(number))?;
        varint::push(number, out);
        Ok(())
    }

    /// Reads the list of data subjects, unless it is the one before. It is not paid for here, as it is not in a row yet.
    fn subjects(&mut self) -> Result<(), Fault> {
        let is_first = self.reader.subjects.is_empty();
        if !is_first && self.bits.get(1)? == 1 {
            return Ok(());
        }
        let count = if self.bits.get(1)? == 1 { 1 } else { self.bits.get(COUNT_BITS)? };
        if count > MAX_SUBJECTS as u64 {
            return Err(Fault::Range);
        }
        let mut list = std::mem::take(&mut self.reader.subjects);
        list.clear();
        self.reader.name = None;
        varint::push(count, &mut list);
        let paid = self.left;
        for _ in 0..count {
            self.string(crate::TEXT, None)?;
            let length = self.reader.string.len() as u64;
            self.pay(varint::length(length))?;
            varint::push(length, &mut list);
            let start = list.len();
            list.extend_from_slice(&self.reader.string);
            self.reader.name.get_or_insert(start..list.len());
        }
        self.left = paid;
        self.reader.subjects = list;
        Ok(())
    }

    /// Reads the string of a field, whose string before stands at `last` in the rows.
    fn value(
        &mut self,
        limits: StringLimits,
        has_subjects: bool,
        last: &mut Option<Range<usize>>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let name = self.reader.name.clone().filter(|_| has_subjects);
        let before = last.clone();
        let code = self.bits.get(self.width)?;
        if code == code::SAME {
            let before = before.ok_or(Fault::Range)?;
            self.pay(before.len() + varint::length(before.len() as u64))?;
            varint::push(before.len() as u64, out);
            let start = out.len();
            out.extend_from_within(before);
            *last = Some(start..out.len());
            return Ok(());
        }
        self.string_of(code, limits, name)?;
        let string = &self.reader.string;
        let length = string.len() as u64;
        varint::push(length, out);
        let start = out.len();
        out.extend_from_slice(string);
        *last = Some(start..out.len());
        self.pay(varint::length(length))
    }

    /// Reads a string into `reader.string`, and pays for its bytes.
    fn string(&mut self, limits: StringLimits, name: Option<Range<usize>>) -> Result<(), Fault> {
        let code = self.bits.get(self.width)?;
        self.string_of(code, limits, name)
    }

    fn string_of(
        &mut self,
        code: u64,
        limits: StringLimits,
        name: Option<Range<usize>>,
    ) -> Result<(), Fault> {
        self.reader.string.clear();
        match self.item(code)? {
            Some(Item::Shape(shape)) => self.fill(shape, name)?,
            item => self.wording(code, item)?,
        }
        let string = &self.reader.string;
        if string.len() > limits.longest {
            return Err(Fault::Range);
        }
        if limits.text && str::from_utf8(string).is_err() {
            return Err(Fault::NotText);
        }
        Ok(())
    }

    /// The item that a code refers to, if it does.
    fn item(&mut self, code: u64) -> Result<Option<Item<'a>>, Fault> {
        let Some(position) = code.checked_sub(code::FIRST_ITEM) else { return Ok(None) };
        let position = usize::try_from(position).map_err(|_| Fault::Range)?;
        *self.reader.used.get_mut(position).ok_or(Fault::Range)? = true;
        self.items.get(position).map(Some).ok_or(Fault::Items)
    }

    /// Appends the string that a shape makes with what is read for its slots.
    fn fill(&mut self, shape: &[u8], name: Option<Range<usize>>) -> Result<(), Fault> {
        for piece in pieces(shape) {
            match piece? {
                Piece::Literal(bytes) => self.append(bytes)?,
                Piece::Slot(Slot::Word) => {
                    let code = self.bits.get(self.width)?;
                    let item = self.item(code)?;
                    self.wording(code, item)?;
                }
                Piece::Slot(Slot::Decimal) => self.decimal()?,
                Piece::Slot(Slot::Digits(digits)) => {
                    let number = self.digits(digits)?;
                    self.write_decimal(number)?;
                }
                Piece::Slot(Slot::Hexadecimal { digits, upper }) => {
                    let value = self.bits.get(4 * u32::from(digits))?;
                    let run = self.make_room(digits.into())?;
                    write_hexadecimal(value, upper, run);
                }
                Piece::Slot(Slot::Subject) => {
                    let name = name.clone().ok_or(Fault::Range)?;
                    self.pay(name.len())?;
                    let RecordReader { string, subjects, .. } = &mut *self.reader;
                    string.extend_from_slice(&subjects[name]);
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.pay(bytes.len())?;
        self.reader.string.extend_from_slice(bytes);
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) -> Result<&mut [u8], Fault> {
        self.pay(bytes)?;
        let string = &mut self.reader.string;
        let end = string.len();
        string.resize(end + bytes, 0);
        Ok(&mut string[end..])
    }

    fn decimal(&mut self) -> Result<(), Fault> {
        let digits = self.bits.get(DIGITS_BITS)?;
        if digits > MOST_DECIMAL.into() {
            return Err(Fault::Range);
        }
        if digits == 0 {
            let known = self.reader.spelled.numbers.len();
            let place = self.bits.get(width_among(known))?;
            let place = usize::try_from(place).map_err(|_| Fault::Range)?;
            let number = *self.reader.spelled.numbers.get(place).ok_or(Fault::Range)?;
            return self.write_decimal(number);
        }
        let digits = u8::try_from(digits).map_err(|_| Fault::Range)?;
        let number = self.digits(digits)?;
        if digits >= KEPT_DIGITS {
            self.reader.spelled.numbers.push(number);
        }
        self.write_decimal(number)
    }

    /// Reads so many decimal digits: their place among all runs of digits.
    fn digits(&mut self, digits: u8) -> Result<u64, Fault> {
        let value = self.bits.get(decimal_bits(digits))?;
        if value < above_decimal(digits) { Ok(shorter(digits) + value) } else { Err(Fault::Range) }
    }

    fn write_decimal(&mut self, number: u64) -> Result<(), Fault> {
        let run = self.make_room(decimal_length(number).into())?;
        write_decimal(number, run);
        Ok(())
    }

    /// Appends what a code that is no shape's stands for.
    fn wording(&mut self, code: u64, item: Option<Item<'a>>) -> Result<(), Fault> {
        if code != code::PHRASE {
            return self.word(code, item);
        }
        let words = self.bits.get_sized(LENGTH_BITS, MOST_WORDS_BITS)?;
        for word in 0..words {
            if word > 0 {
                self.append(b" ")?;
            }
            let code = self.bits.get(self.width)?;
            let item = self.item(code)?;
            self.word(code, item)?;
        }
        Ok(())
    }

    fn word(&mut self, code: u64, item: Option<Item<'a>>) -> Result<(), Fault> {
        match (code, item) {
            (_, Some(Item::Word(word))) => self.append(word),
            (code::SPELLED, None) => self.spelled(),
            (code::EARLIER, None) => {
                let known = self.reader.spelled.strings.len();
                let place = self.bits.get(width_among(known))?;
                let place = usize::try_from(place).ok().filter(|place| *place < known).ok_or(Fault::Range)?;
                let length = self.reader.spelled.strings.get(place).len();
                self.pay(length)?;
                let RecordReader { string, spelled, .. } = &mut *self.reader;
                string.extend_from_slice(spelled.strings.get(place));
                Ok(())
            }
            _ => Err(Fault::Range),
        }
    }

    fn spelled(&mut self) -> Result<(), Fault> {
        let alphabet = self.bits.get(ALPHABET_BITS)?;
        let alphabet = usize::try_from(alphabet).map_err(|_| Fault::Range)?;
        let (width, alphabet) = (bits_in(alphabet), ALPHABETS.get(alphabet));
        let length = self.bits.get_sized(LENGTH_BITS, MOST_LENGTH_BITS)?;
        let length = usize::try_from(length).map_err(|_| Fault::Range)?;
        self.bits.has(length.saturating_mul(width as usize))?;
        self.pay(length)?;
        let RecordReader { string, spelled, .. } = &mut *self.reader;
        let start = string.len();
        for _ in 0..length {
            let byte = self.bits.get(width)?.to_le_bytes()[0];
            string.push(alphabet.map_or(byte, |alphabet| alphabet[usize::from(byte)]));
        }
        spelled.strings.add(&string[start..]);
        Ok(())
    }
}
