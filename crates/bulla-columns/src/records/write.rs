//! Writes groups as records.

use super::bits::BitWriter;
use super::choose::{Chosen, Fixed};
use super::cut::{Cut, Filling};
use super::items::Items;
use super::shape::{LONE_WORD, Slot, decimal_bits};
use super::survey::{MOST_PARTS, Survey, is_small, stride};
use super::values::{Before, Value, values};
use super::{
    ALPHABET_BITS, ALPHABETS, COUNT_BITS, DIGITS_BITS, INTEGER_BITS, KEPT_DIGITS, LENGTH_BITS, RECORDS,
    bits_in, code, width_among,
};
use crate::bitpack::width_of;
use crate::strings::{Strings, decimal_length, shorter};
use bulla_proof::EntryError;
use bulla_proof::entry::RawRow;
use smallvec::SmallVec;

/// What was spelled is looked for among so many of the last.
const LOOKED_AT: usize = 64;

/// Writes the groups of a block, once it has found what they have in common. Used again, it keeps its memory.
#[derive(Default)]
pub(crate) struct RecordWriter {
    survey: Survey,
    chosen: Chosen,
    rows: Vec<RawRow<'static>>,
    cut: Cut,
    spelled: Spelled,
}

impl RecordWriter {
    /// Finds what is common to `least` of these groups or more, nothing where that is 0. Of each come its rows, which are of the same data
    /// subjects, and whether it counts: one that does has no data subject in common with another one that does. All of them have so many
    /// entries.
    pub(crate) fn survey<'a, R: Iterator<Item = &'a [u8]>>(
        &mut self,
        groups: impl Iterator<Item = (R, bool)>,
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
        let mut rows = recycle(std::mem::take(&mut self.rows));
        for (number, (of_group, counts)) in groups.enumerate() {
            let looked_at = if number % stride == 0 { usize::MAX } else { 1 };
            rows.clear();
            for row in of_group.take(looked_at) {
                rows.push(RawRow::parse(row)?);
            }
            rows.first().into_iter().for_each(|row| self.survey.name(row));
            if looked_at > 1 {
                self.survey.add(&rows, personal, counts);
            }
        }
        self.rows = recycle(rows);
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
        of_group: impl Iterator<Item = &'a [u8]>,
        personal: u16,
        out: &mut Vec<u8>,
    ) -> Result<bool, EntryError> {
        let mut rows = recycle(std::mem::take(&mut self.rows));
        for row in of_group {
            rows.push(RawRow::parse(row)?);
        }
        let is_small = is_small(&rows, personal);
        if is_small {
            self.spelled.clear();
            let mut writing = Writing {
                chosen: &self.chosen,
                width: self.chosen.items.width(),
                bits: BitWriter::new(out),
                spelled: &mut self.spelled,
            };
            writing.rows(&rows, personal, &mut self.cut);
            writing.bits.finish();
        }
        self.rows = recycle(rows);
        Ok(is_small)
    }
}

/// An empty vector in the same memory.
fn recycle<'b>(mut rows: Vec<RawRow<'_>>) -> Vec<RawRow<'b>> {
    rows.clear();
    // What is collected from a vector's own iterator is in its memory.
    rows.into_iter().map_while(|_| None).collect()
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
    fn rows(&mut self, rows: &[RawRow<'_>], personal: u16, cut: &mut Cut) {
        self.bits.put(RECORDS, 1);
        let mut before = Before::default();
        let mut presence = None;
        for row in rows {
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
                    list.for_each(|name| self.string(cut, name, None));
                }
            }
            for (field, value) in values(row, personal) {
                match value {
                    Value::String(string) if before.had(field, string) => self.code(code::SAME),
                    Value::String(string) => self.string(cut, string, subjects.first()),
                    Value::Number(number) => self.bits.put_sized(number, INTEGER_BITS),
                }
            }
        }
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
    fn string(&mut self, cut: &mut Cut, string: &[u8], name: Option<&[u8]>) {
        let chosen = self.chosen;
        if chosen.items.is_empty() || !cut.of(string, name) {
            return self.spell(string);
        }
        if let [Filling::Words { count, .. }] = cut.fillings[..]
            && cut.shape == LONE_WORD
        {
            return self.words(string, count);
        }
        let Some((position, slots, is_fixed)) = chosen.shape(&cut.shape, &cut.fillings, string) else {
            return self.spell(string);
        };
        self.item(position);
        for (slot, filling) in slots.iter().zip(&cut.fillings) {
            match (if is_fixed { slot.fixed } else { Fixed::Free }, *filling) {
                (Fixed::Number(_) | Fixed::Word(_), _) => {}
                (_, Filling::Words { start, end, count }) => self.words(&string[start..end], count),
                (Fixed::Digits(digits), Filling::Number(number)) => {
                    self.bits.put(number - shorter(digits), decimal_bits(digits));
                }
                (Fixed::Free, Filling::Number(number)) => match slot.kind {
                    Slot::Hexadecimal { digits, .. } => self.bits.put(number, 4 * u32::from(digits)),
                    _ => self.decimal(number),
                },
            }
        }
    }

    fn code(&mut self, code: u64) {
        self.bits.put(code, self.width);
    }

    fn item(&mut self, position: usize) {
        self.code(code::FIRST_ITEM + position as u64);
    }

    fn decimal(&mut self, number: u64) {
        let digits = decimal_length(number);
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

    /// Writes so many words with a space between each two: all together, one by one, or spelled.
    fn words(&mut self, text: &[u8], count: usize) {
        if count <= MOST_PARTS
            && let Some(position) = self.chosen.word(text)
        {
            return self.item(position);
        }
        if count == 1 {
            return self.spell(text);
        }
        let words = text.split(|byte| *byte == b' ').map(|word| (self.chosen.word(word), word));
        let words = words.collect::<SmallVec<[_; 16]>>();
        let bits_of = |(position, word): &(Option<usize>, &[u8])| {
            if position.is_none() { bits_spelled(word) } else { 0 }
        };
        let each = words.iter().map(|word| bits_of(word) + self.width).sum::<u32>();
        if bits_spelled(text) <= LENGTH_BITS + width_of(count as u64) + each {
            return self.spell(text);
        }
        self.code(code::PHRASE);
        self.bits.put_sized(count as u64, LENGTH_BITS);
        for (position, word) in words {
            match position {
                Some(position) => self.item(position),
                None => self.spell(word),
            }
        }
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
    let length = u32::try_from(string.len()).unwrap_or(u32::MAX);
    let bytes = length.saturating_mul(bits_in(alphabet_of(string)));
    bytes.saturating_add(ALPHABET_BITS + LENGTH_BITS + width_of(length.into()))
}
