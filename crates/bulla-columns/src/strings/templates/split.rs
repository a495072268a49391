//! Splits strings into the values of columns.

use super::super::super::table::{MAX_DISTINCT, is_hopeless};
use super::distinct::{Distinct, Strings};
use super::scan::{Scan, Token};
use super::shapes::Shapes;

/// So many bytes of strings may be taken whole in any case; beyond that, a quarter of what was met.
const FREE: usize = 4 * 1024;
/// On average a slot has to stand for at least so many bytes; with more slots than that, splitting takes too much memory.
const MOST_SLOTS: usize = 4;
/// Memory for so many values is kept for the next column; what is beyond is given back.
const KEPT: usize = 1 << 19;
/// Added to the place of a word that was not looked up: values from here on are of such words.
const UNKNOWN: u64 = 1 << 63;

/// Strings as shapes and the values of columns. Holds only memory to be used again.
#[derive(Default)]
pub(super) struct Split {
    scan: Scan,
    pub(super) shapes: Shapes,
    /// By string, the number of its shape.
    pub(super) indexes: Vec<u64>,
    pub(super) columns: Vec<Column>,
    pub(super) words: Words,
}

/// Holds only memory to be used again.
#[derive(Default)]
pub(super) struct Column {
    /// The values; for words, what [`Words::get`] finds them by.
    pub(super) values: Vec<u64>,
    /// How many of the words that were looked up were new.
    new: usize,
    /// Whether words are not looked up any more, because nearly all were new.
    hopeless: bool,
}

impl Column {
    fn clear(&mut self) {
        self.values.clear();
        (self.new, self.hopeless) = (0, false);
    }
}

impl Split {
    /// Splits `strings` of `total` bytes; false where hardly any have a shape in common, or there are too many slots for so little
    /// text.
    pub(super) fn split(&mut self, strings: &[&[u8]], total: usize) -> bool {
        self.shapes.clear();
        self.indexes.clear();
        self.words.clear();
        self.columns.iter_mut().for_each(Column::clear);
        let (mut met, mut whole, mut values) = (0, 0, 0);
        strings.iter().all(|string| {
            let Some(cut) = self.add(string) else { return false };
            met += string.len();
            whole += if cut { 0 } else { string.len() };
            values += self.scan.tokens.len();
            whole <= FREE.max(met / 4) && values <= total / MOST_SLOTS
        })
    }

    /// Whether it holds more than is to be kept.
    pub(super) fn is_large(&self) -> bool {
        self.columns.iter().map(|column| column.values.capacity()).sum::<usize>() > KEPT
    }

    /// Splits one more string, and says whether it was cut rather than taken whole.
    fn add(&mut self, string: &[u8]) -> Option<bool> {
        self.scan.cut(string);
        let shape = match self.shapes.number(&self.scan)? {
            Some(shape) => shape,
            None => {
                self.scan.whole(string);
                self.shapes.number(&self.scan)??
            }
        };
        self.indexes.push(u64::from(shape));
        let slots = self.shapes.slots(shape);
        for (&column, token) in slots.iter().zip(&self.scan.tokens) {
            let column = usize::from(column);
            if column >= self.columns.len() {
                self.columns.resize_with(column + 1, Column::default);
            }
            let column = &mut self.columns[column];
            match token {
                Token::Number(value) => column.values.push(*value),
                Token::Word(place) => self.words.add(&string[place.clone()], column)?,
            }
        }
        Some(!self.scan.is_whole())
    }
}

/// The words that were met.
#[derive(Default)]
pub(super) struct Words {
    known: Distinct,
    /// By number, how often each occurs.
    pub(super) occurrences: Vec<u32>,
    /// The words that were not looked up, and those that the table did not take.
    unknown: Strings,
}

impl Words {
    fn clear(&mut self) {
        self.known.clear();
        self.occurrences.clear();
        self.unknown.clear();
    }

    /// The word of a column's value, and its number if it has one.
    #[inline]
    pub(super) fn get(&self, value: u64) -> (&[u8], Option<usize>) {
        let place = usize::try_from(value & !UNKNOWN).unwrap_or(usize::MAX);
        match value & UNKNOWN {
            0 => (self.known.get(place), Some(place)),
            _ => (self.unknown.get(place), None),
        }
    }

    /// The word of a number.
    pub(super) fn known(&self, number: usize) -> &[u8] {
        self.known.get(number)
    }

    /// Counts one more occurrence of a known word, and returns how many there are.
    #[inline]
    fn occurs(&mut self, number: usize) -> u32 {
        if number == self.occurrences.len() {
            self.occurrences.push(0);
        }
        self.occurrences[number] += 1;
        self.occurrences[number]
    }

    /// Adds a word to a column. Often it is the word before it, which is tried first. `None` where a look-up takes too many
    /// steps.
    #[inline]
    fn add(&mut self, word: &[u8], column: &mut Column) -> Option<()> {
        let before = column.values.last().filter(|&&value| value & UNKNOWN == 0);
        let before = before.and_then(|&number| usize::try_from(number).ok());
        let number = match before.filter(|&number| self.known.is(number, word)) {
            None if column.hopeless => None,
            None => match self.known.number(word) {
                None if self.occurrences.len() < MAX_DISTINCT => return None,
                number => number,
            },
            same => same,
        };
        let (value, new) = match number {
            Some(number) => (number as u64, self.occurs(number) == 1),
            None => (UNKNOWN | self.unknown.add(word) as u64, true),
        };
        column.values.push(value);
        column.new += usize::from(new);
        column.hopeless |= is_hopeless(column.values.len(), column.new);
        Some(())
    }
}
