//! Writes groups as records.

use super::bits::BitWriter;
use super::choose::Chosen;
use super::follow::{Filling, Found, Path, Word};
use super::items::Items;
use super::shape::decimal_bits;
use super::survey::{MOST_PARTS, Survey, is_small, stride};
use super::values::{Before, Value, values};
use super::{
    ALPHABET_BITS, ALPHABETS, COUNT_BITS, DIGITS_BITS, INTEGER_BITS, KEPT_DIGITS, LENGTH_BITS, RECORDS,
    bits_in, code, width_among,
};
use crate::bitpack::width_of;
use crate::strings::{Strings, shorter};
use bulla_proof::EntryError;
use bulla_proof::entry::RawRow;

/// What was spelled is looked for among so many of the last.
const LOOKED_AT: usize = 64;
/// The bits of a byte in the smallest alphabet.
const LEAST_BITS: u32 = 4;

/// Writes the groups of a block, once it has found what they have in common. Used again, it keeps its memory.
#[derive(Default)]
pub(crate) struct RecordWriter {
    survey: Survey,
    chosen: Chosen,
    path: Path,
    spelled: Spelled,
}

impl RecordWriter {
    /// Finds what is common to `least` of these groups or more, nothing where that is 0. Of each come its rows, which are of the same data
    /// subjects, and whether it counts: one that does has no data subject in common with another one that does. All of them have so many
    /// entries.
    pub(crate) fn survey<'a, R: Iterator<Item = &'a [u8]> + Clone>(
        &mut self,
        groups: impl Iterator<Item = (R, bool)> + Clone,
        entries: usize,
        personal: u16,
        least: u32,
    ) -> Result<(), EntryError> {
        self.chosen.clear();
        self.survey.begin();
        if least == 0 {
            return Ok(());
        }
        let stride = stride(entries);
        for (mut rows, _) in groups.clone() {
            if let Some(row) = rows.next() {
                self.survey.name(row)?;
            }
        }
        for (rows, counts) in groups.step_by(stride) {
            self.survey.add(rows, personal, counts)?;
        }
        self.chosen.choose(&mut self.survey, least);
        Ok(())
    }

    /// What was found to be common.
    pub(crate) fn items(&self) -> &Items {
        &self.chosen.items
    }

    /// Appends a group of these rows; false where it has to be written in columns, and nothing was appended.
    pub(crate) fn write<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]> + Clone,
        personal: u16,
        out: &mut Vec<u8>,
    ) -> Result<bool, EntryError> {
        if !is_small(rows.clone(), personal)? {
            return Ok(false);
        }
        self.spelled.clear();
        let mut writing = Writing {
            chosen: &self.chosen,
            width: self.chosen.items.width(),
            bits: BitWriter::new(out),
            spelled: &mut self.spelled,
        };
        writing.rows(rows, personal, &mut self.path)?;
        writing.bits.finish();
        Ok(true)
    }
}

/// What a group has spelled so far, and may refer to.
#[derive(Default)]
struct Spelled {
    strings: Strings,
    /// Of each string what tells it from most others.
    tags: Vec<u64>,
    numbers: Vec<u64>,
}

impl Spelled {
    fn clear(&mut self) {
        self.strings.clear();
        self.tags.clear();
        self.numbers.clear();
    }

    /// The number of a string among the last ones that were spelled, if it is there; it is spelled now if it is not.
    fn string(&mut self, string: &[u8]) -> Option<usize> {
        let tag = tag(string);
        let first = self.tags.len().saturating_sub(LOOKED_AT);
        let mut same = (first..).zip(&self.tags[first..]).filter(|(_, other)| **other == tag);
        if let Some((number, _)) = same.find(|(number, _)| self.strings.get(*number) == string) {
            return Some(number);
        }
        self.strings.add(string);
        self.tags.push(tag);
        None
    }

    /// The same of a number.
    fn number(&mut self, number: u64) -> Option<usize> {
        let first = self.numbers.len().saturating_sub(LOOKED_AT);
        let place = self.numbers[first..].iter().position(|known| *known == number);
        if place.is_none() {
            self.numbers.push(number);
        }
        place.map(|place| first + place)
    }
}

/// A string's length, and its ends.
fn tag(string: &[u8]) -> u64 {
    let ends = match (string.first_chunk(), string.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(32),
        _ => string.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    };
    ends ^ (string.len() as u64) << 56
}

/// A group that is being written.
struct Writing<'s, 'o> {
    chosen: &'s Chosen,
    /// The bits of a code.
    width: u32,
    bits: BitWriter<'o>,
    spelled: &'s mut Spelled,
}

impl Writing<'_, '_> {
    fn rows<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]>,
        personal: u16,
        path: &mut Path,
    ) -> Result<(), EntryError> {
        self.bits.put(RECORDS, 1);
        let mut before = Before::default();
        let mut presence = None;
        for row in rows {
            let row = &RawRow::parse(row)?;
            self.presence(presence.replace(row.presence & personal), row.presence & personal, personal);
            let subjects = before.of_subjects(row, personal);
            if let Some(list) = subjects.list {
                if subjects.are_others {
                    self.bits.put(subjects.is_same.into(), 1);
                }
                if !subjects.is_same {
                    let is_one = list.len() == 1;
                    self.bits.put(is_one.into(), 1);
                    if !is_one {
                        self.bits.put(list.len() as u64, COUNT_BITS);
                    }
                    list.for_each(|name| self.string(path, name, None));
                }
            }
            for (field, value) in values(row, personal) {
                match value {
                    Value::String(string) if before.had(field, string) => self.code(code::SAME),
                    Value::String(string) => self.string(path, string, subjects.first()),
                    Value::Number(number) => self.bits.put_sized(number, INTEGER_BITS),
                }
            }
        }
        Ok(())
    }

    /// Writes which of the `personal` fields an entry has.
    fn presence(&mut self, before: Option<u16>, present: u16, personal: u16) {
        if let Some(before) = before {
            self.bits.put((before == present).into(), 1);
            if before == present {
                return;
            }
        }
        for bit in (0..u16::BITS).map(|field| 1 << field).filter(|bit| personal & bit != 0) {
            self.bits.put((present & bit != 0).into(), 1);
        }
    }

    /// Writes a string of an entry, the first of whose data subjects has this name.
    fn string(&mut self, path: &mut Path, string: &[u8], name: Option<&[u8]>) {
        let Chosen { items, shapes, words, .. } = self.chosen;
        if items.is_empty() {
            return self.spell(string);
        }
        match shapes.follow(string, name, words, path) {
            None => return self.spell(string),
            Some(Found::Words) => {}
            Some(Found::Shape(position)) => self.item(position),
        }
        for filling in &path.fillings {
            match *filling {
                Filling::Words(first, end) => self.words(string, &path.words[first as usize..end as usize]),
                Filling::Decimal(digits, number) => self.decimal(digits, number),
                Filling::Bits(number, bits) => self.bits.put(number, bits),
            }
        }
    }

    fn code(&mut self, code: u64) {
        self.bits.put(code, self.width);
    }

    fn item(&mut self, position: usize) {
        self.code(code::FIRST_ITEM + position as u64);
    }

    fn decimal(&mut self, digits: u8, number: u64) {
        if digits >= KEPT_DIGITS {
            let known = self.spelled.numbers.len();
            if let Some(place) = self.spelled.number(number) {
                self.bits.put(0, DIGITS_BITS);
                return self.bits.put(place as u64, width_among(known));
            }
        }
        self.bits.put(digits.into(), DIGITS_BITS);
        self.bits.put(number - shorter(digits), decimal_bits(digits));
    }

    fn word_item(&mut self, word: u16) {
        self.item(self.chosen.shape_items + usize::from(word));
    }

    /// Writes some words of a string: all together, one by one, or spelled.
    fn words(&mut self, string: &[u8], words: &[Word]) {
        let text = |words: &[Word]| &string[words[0].start()..words[words.len() - 1].end()];
        let whole = match words {
            [word] => word.item,
            _ if words.len() <= MOST_PARTS => self.chosen.words.phrase(text(words)),
            _ => None,
        };
        if let Some(word) = whole {
            return self.word_item(word);
        }
        if words.len() == 1 || !self.is_shorter_by_words(string, text(words), words) {
            return self.spell(text(words));
        }
        self.code(code::PHRASE);
        self.bits.put_sized(words.len() as u64, LENGTH_BITS);
        for word in words {
            match word.item {
                Some(item) => self.word_item(item),
                None => self.spell(&string[word.start()..word.end()]),
            }
        }
    }

    /// Whether some words of a string take fewer bits one by one than this text that they are.
    fn is_shorter_by_words(&self, string: &[u8], text: &[u8], words: &[Word]) -> bool {
        let bits_of = |word: &Word| match word.item {
            Some(_) => self.width,
            None => self.width + bits_spelled(&string[word.start()..word.end()]),
        };
        let each = words.iter().map(bits_of).sum::<u32>() + LENGTH_BITS + width_of(words.len() as u64);
        // Most often the least that a text takes says it already.
        each < bits_spelled_in(LEAST_BITS, text.len()) || each < bits_spelled(text)
    }

    /// Spells a string, unless it was spelled before.
    fn spell(&mut self, string: &[u8]) {
        let known = self.spelled.tags.len();
        if let Some(place) = self.spelled.string(string) {
            self.code(code::EARLIER);
            return self.bits.put(place as u64, width_among(known));
        }
        self.code(code::SPELLED);
        let alphabet = alphabet_of(string);
        self.bits.put(alphabet as u64, ALPHABET_BITS);
        self.bits.put_sized(string.len() as u64, LENGTH_BITS);
        let Some(places) = PLACES.get(alphabet) else { return self.bits.put_bytes(string) };
        let width = bits_in(alphabet);
        for bytes in string.chunks(10) {
            // Ten bytes of at most six bits are put at once.
            let (bits, filled) = bytes.iter().fold((0, 0), |(bits, filled), byte| {
                (bits | u64::from(places[usize::from(*byte)]) << filled, filled + width)
            });
            self.bits.put(bits, filled);
        }
    }
}
/// By alphabet, where each byte stands in it.
const PLACES: [[u8; 256]; ALPHABETS.len()] = {
    let mut places = [[0; 256]; ALPHABETS.len()];
    let mut alphabet = 0;
    while alphabet < ALPHABETS.len() {
        let mut place: u8 = 0;
        while (place as usize) < ALPHABETS[alphabet].len() {
            places[alphabet][ALPHABETS[alphabet][place as usize] as usize] = place;
            place += 1;
        }
        alphabet += 1;
    }
    places
};

/// By byte, which alphabets have it, a bit each; the last is that of all bytes.
const MEMBERS: [u8; 256] = {
    let mut members = [1 << ALPHABETS.len(); 256];
    let mut alphabet = 0;
    while alphabet < ALPHABETS.len() {
        let mut place = 0;
        while place < ALPHABETS[alphabet].len() {
            members[ALPHABETS[alphabet][place] as usize] |= 1 << alphabet;
            place += 1;
        }
        alphabet += 1;
    }
    members
};

/// The number of the first alphabet that has all bytes of a string.
fn alphabet_of(string: &[u8]) -> usize {
    string.iter().fold(u8::MAX, |all, byte| all & MEMBERS[usize::from(*byte)]).trailing_zeros() as usize
}

/// About how many bits it takes to spell a string.
fn bits_spelled(string: &[u8]) -> u32 {
    bits_spelled_in(bits_in(alphabet_of(string)), string.len())
}

/// About how many bits it takes to spell so many bytes, in so many bits each.
fn bits_spelled_in(bits: u32, length: usize) -> u32 {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    length.saturating_mul(bits).saturating_add(ALPHABET_BITS + LENGTH_BITS + width_of(length.into()))
}
