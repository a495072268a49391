//! Writes groups as records.

use super::bits::BitWriter;
use super::items::Items;
use super::shape::{SLOT, Slot, decimal_bits};
use super::survey::{Fixed, NOWHERE, SAME, Survey, Wording, admitted, take};
use super::values::{Before, Value, values};
use super::{
    ALPHABET_BITS, ALPHABETS, COUNT_BITS, DIGITS_BITS, INTEGER_BITS, KEPT_DIGITS, LENGTH_BITS, RECORDS,
    Spelled, bits_in, code, width_among,
};
use crate::bitpack::width_of;
use crate::strings::{decimal_length, shorter};
use bulla_proof::EntryError;
use bulla_proof::entry::{Field, RawRow};

/// What was spelled is looked for among so many of the last.
const LOOKED_AT: usize = 64;

/// Writes the groups of a block, which its survey has seen, in their order. Used again, it keeps its memory.
#[derive(Default)]
pub(crate) struct RecordWriter {
    pub(super) survey: Survey,
    /// The next group, and where its strings and their fillings begin.
    group: usize,
    string: usize,
    filling: usize,
    spelled: Spelled,
}

impl RecordWriter {
    /// Forgets the last block, and begins one: [`Survey::begin`].
    pub(crate) fn begin(&mut self, least: u32) {
        self.survey.begin(least);
        (self.group, self.string, self.filling) = (0, 0, 0);
    }

    /// Counts the next group: [`Survey::add`].
    pub(crate) fn add<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]> + Clone,
        personal: u16,
        counts: bool,
    ) -> Result<(), EntryError> {
        self.survey.add(rows, personal, counts)
    }

    /// Chooses what is common, of all that was counted.
    pub(crate) fn choose(&mut self) {
        self.survey.choose();
    }

    /// What was chosen.
    pub(crate) fn items(&self) -> &Items {
        self.survey.items()
    }

    /// Appends the next group, of these rows; false where it has to be written in columns, and nothing was appended.
    pub(crate) fn write<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]>,
        personal: u16,
        out: &mut Vec<u8>,
    ) -> Result<bool, EntryError> {
        let group = self.survey.groups.get(self.group).copied().flatten();
        self.group += 1;
        let Some((end, _)) = group else { return Ok(false) };
        self.spelled.clear();
        let survey = &self.survey;
        let mut writing = Writing {
            survey,
            width: survey.items().width(),
            bits: BitWriter::new(out),
            strings: &survey.strings[self.string..end],
            fillings: &survey.fillings[self.filling..],
            spelled: &mut self.spelled,
        };
        writing.bits.put(RECORDS, 1);
        writing.rows(rows, personal)?;
        writing.bits.finish();
        self.string = end;
        self.filling = survey.fillings.len() - writing.fillings.len();
        Ok(true)
    }
}

/// A group that is being written.
struct Writing<'s, 'o> {
    survey: &'s Survey,
    /// The bits of a code.
    width: u32,
    bits: BitWriter<'o>,
    /// What the survey noted of the strings, and of the fillings, that come.
    strings: &'s [u32],
    fillings: &'s [u64],
    spelled: &'o mut Spelled,
}

impl<'s> Writing<'s, '_> {
    fn rows<'a>(&mut self, rows: impl Iterator<Item = &'a [u8]>, personal: u16) -> Result<(), EntryError> {
        let mut before = Before::default();
        let mut presence = None;
        for row in rows {
            let row = RawRow::parse(row)?;
            let present = row.presence & personal;
            let is_same = presence == Some(present);
            if presence.replace(present).is_some() {
                self.bits.put(is_same.into(), 1);
            }
            if !is_same {
                for field in 0..u16::BITS {
                    if personal >> field & 1 == 1 {
                        self.bits.put((present >> field & 1).into(), 1);
                    }
                }
            }
            if let Some(list) = row.subjects.filter(|_| personal & Field::Subject.bit() != 0) {
                let others = before.has_subjects();
                let is_same = before.had_subjects(list);
                if others {
                    self.bits.put(is_same.into(), 1);
                }
                if !is_same {
                    let is_one = list.len() == 1;
                    self.bits.put(is_one.into(), 1);
                    if !is_one {
                        self.bits.put(list.len() as u64, COUNT_BITS);
                    }
                    list.for_each(|name| self.string(name));
                }
            }
            for (_, value) in values(&row, personal) {
                match value {
                    Value::String(string) => self.string(string),
                    Value::Number(number) => self.bits.put_sized(number, INTEGER_BITS),
                }
            }
        }
        Ok(())
    }

    fn string(&mut self, string: &[u8]) {
        let survey = self.survey;
        let Some((&number, rest)) = self.strings.split_first() else { return };
        self.strings = rest;
        let Some(shape) = survey.counts.get(number as usize) else {
            return if number == SAME { self.code(code::SAME) } else { self.spell(string) };
        };
        let votes = &survey.votes[shape.votes.0..][..shape.votes.1];
        let is_fixed = shape.fixed_position != NOWHERE && admitted(votes, self.fillings);
        let position = if is_fixed { shape.fixed_position } else { shape.position };
        if position != NOWHERE {
            self.item(position);
        } else if survey.shapes.get(number as usize) != [SLOT, Slot::Word.byte()] {
            for vote in votes {
                take(vote, &mut self.fillings);
            }
            return self.spell(string);
        }
        for vote in votes {
            let fillings = take(vote, &mut self.fillings);
            let Some(&filling) = fillings.first() else { return };
            match (if is_fixed { vote.fixed } else { Fixed::Free }, vote.kind) {
                (Fixed::Constant, _) => {}
                (Fixed::Digits(digits), _) => {
                    self.bits.put(filling - shorter(digits), decimal_bits(digits));
                }
                (Fixed::Free, Slot::Decimal) => self.decimal(filling),
                (Fixed::Free, Slot::Hexadecimal { digits, .. }) => {
                    self.bits.put(filling, 4 * u32::from(digits))
                }
                (Fixed::Free, Slot::Word | Slot::Digits(_) | Slot::Subject) => self.wording(string, fillings),
            }
        }
    }

    fn code(&mut self, code: u64) {
        self.bits.put(code, self.width);
    }

    fn item(&mut self, position: u32) {
        self.code(code::FIRST_ITEM + u64::from(position));
    }

    fn decimal(&mut self, number: u64) {
        let digits = decimal_length(number);
        let kept = digits >= KEPT_DIGITS;
        let numbers = &mut self.spelled.numbers;
        let looked_at = numbers.len().saturating_sub(LOOKED_AT);
        if kept && let Some(place) = numbers[looked_at..].iter().position(|known| *known == number) {
            self.bits.put(0, DIGITS_BITS);
            return self.bits.put((looked_at + place) as u64, width_among(numbers.len()));
        }
        self.bits.put(digits as u64, DIGITS_BITS);
        self.bits.put(number - shorter(digits), decimal_bits(digits));
        if kept {
            numbers.push(number);
        }
    }

    /// Writes what fills a slot for a word of this string.
    fn wording(&mut self, string: &[u8], fillings: &[u64]) {
        let Some((first, words)) = fillings.split_first() else { return };
        let survey = self.survey;
        match Wording::unpack(*first) {
            Wording::Spelled(start, end) => self.spell(&string[start..end]),
            Wording::Phrase(_, start, end) => {
                let words = words.iter().map(|word| match Wording::unpack(*word) {
                    Wording::Counted(number) => {
                        (survey.words[number].position, survey.vocabulary.get(number))
                    }
                    Wording::Spelled(start, end) | Wording::Phrase(_, start, end) => {
                        (NOWHERE, &string[start..end])
                    }
                });
                self.phrase(&string[start..end], words);
            }
            Wording::Counted(number) => {
                let (word, text) = (&survey.words[number], survey.vocabulary.get(number));
                if word.position != NOWHERE {
                    return self.item(word.position);
                }
                let words = survey.parts[word.parts.0 as usize..word.parts.1 as usize].iter();
                let words = words.map(|&word| word as usize);
                self.phrase(
                    text,
                    words.map(|word| (survey.words[word].position, survey.vocabulary.get(word))),
                );
            }
        }
    }

    /// Writes some words, of which each may be common, one by one or all together.
    fn phrase<'w>(&mut self, whole: &[u8], words: impl ExactSizeIterator<Item = (u32, &'w [u8])> + Clone) {
        let bits_of = |(position, word)| if position == NOWHERE { bits_spelled(word) } else { 0 };
        let each = words.clone().map(|word| bits_of(word) + self.width).sum::<u32>();
        if words.len() < 2 || bits_spelled(whole) <= LENGTH_BITS + width_of(words.len() as u64) + each {
            return self.spell(whole);
        }
        self.code(code::PHRASE);
        self.bits.put_sized(words.len() as u64, LENGTH_BITS);
        for (position, word) in words {
            if position == NOWHERE { self.spell(word) } else { self.item(position) }
        }
    }

    /// Spells a string, unless it was spelled before.
    fn spell(&mut self, string: &[u8]) {
        let strings = &mut self.spelled.strings;
        let known = strings.len();
        if let Some(place) =
            (known.saturating_sub(LOOKED_AT)..known).find(|&place| strings.get(place) == string)
        {
            self.code(code::EARLIER);
            return self.bits.put(place as u64, width_among(known));
        }
        strings.add(string);
        self.code(code::SPELLED);
        let alphabet = alphabet_of(string);
        self.bits.put(alphabet as u64, ALPHABET_BITS);
        self.bits.put_sized(string.len() as u64, LENGTH_BITS);
        let Some(places) = PLACES.get(alphabet) else { return self.bits.put_bytes(string) };
        let width = bits_in(alphabet);
        for byte in string {
            self.bits.put(places[usize::from(*byte)].into(), width);
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
