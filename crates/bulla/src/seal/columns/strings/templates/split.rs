//! Splits strings into the values of columns.

use super::super::super::table::MAX_DISTINCT;
use super::distinct::Distinct;
use super::scan::{Scan, Token};
use super::shapes::Shapes;

/// Strings taken whole may come to this, before they are more than a quarter of those met.
const FREE: usize = 4 * 1024;
/// For so many values room is kept.
const KEPT: usize = 1 << 19;

/// Strings as shapes and the values of columns. Holds only memory to be used again.
#[derive(Default)]
pub(super) struct Split {
    scan: Scan,
    pub(super) shapes: Shapes,
    /// By string, the number of its shape.
    pub(super) indexes: Vec<u64>,
    /// By column, its values: of words, their numbers among those met.
    pub(super) columns: Vec<Vec<u64>>,
    pub(super) words: Words,
}

impl Split {
    /// Splits `strings` of `total` bytes; false where hardly any have a shape in common, or they are more slots than text.
    pub(super) fn split(&mut self, strings: &[&[u8]], total: usize) -> bool {
        self.shapes.clear();
        self.indexes.clear();
        self.words.clear();
        self.columns.iter_mut().for_each(Vec::clear);
        let (mut met, mut whole, mut values) = (0, 0, 0);
        strings.iter().all(|string| {
            let Some(cut) = self.add(string) else { return false };
            met += string.len();
            whole += if cut { 0 } else { string.len() };
            values += self.scan.tokens.len();
            whole <= FREE.max(met / 4) && values <= total / 2
        })
    }

    /// Gives back the room of a large column.
    pub(super) fn release(&mut self) {
        if self.columns.iter().map(Vec::capacity).sum::<usize>() > KEPT {
            self.columns = Vec::new();
        }
    }

    /// Splits one more; whether it was cut, and not taken whole.
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
                self.columns.resize_with(column + 1, Vec::new);
            }
            let column = &mut self.columns[column];
            column.push(match token {
                Token::Number(value) => *value,
                Token::Word(place) => self.words.number(&string[place.clone()], column.last())?,
            });
        }
        Some(!self.scan.is_whole())
    }
}

/// The words that were met.
#[derive(Default)]
pub(super) struct Words {
    pub(super) met: Distinct,
    /// By number, how often each occurs.
    pub(super) occurrences: Vec<u32>,
}

impl Words {
    fn clear(&mut self) {
        self.met.clear();
        self.occurrences.clear();
    }

    /// The number of a word, which has occurred once more: often it is that of the one before in its column. When the table is
    /// full a new word is by itself, however often it comes.
    #[inline]
    fn number(&mut self, word: &[u8], before: Option<&u64>) -> Option<u64> {
        if let Some(&number) = before {
            let place = usize::try_from(number).ok()?;
            if self.met.is(place, word) {
                self.occurrences[place] += 1;
                return Some(number);
            }
        }
        let number = match self.met.number(word) {
            Some(number) => number,
            None if self.met.len() < MAX_DISTINCT => return None,
            None => self.met.add(word),
        };
        match self.occurrences.get_mut(number) {
            Some(count) => *count += 1,
            None => self.occurrences.push(1),
        }
        Some(number as u64)
    }
}
