//! Cuts a string into words, numbers and what is between them.
//!
//! Letters, digits and bytes above 127 make runs. A run is, by the first of these that fits:
//!
//! - a number, where it consists of decimal digits;
//! - hexadecimal, where it has both digits and letters up to F, of one case, and has [`LEAST_HEXADECIMAL`] digits or more, or
//!   belongs to a UUID;
//! - up to [`PARTS`] parts, which are each all digits or have none, where it is short enough;
//! - one word.

use super::SLOT;
use super::kind::{Kind, MOST_HEXADECIMAL, decimal, hexadecimal};
use std::ops::Range;

/// The most words and numbers that a string is cut into, and the most bytes of its shape. A string with more is one word.
pub(super) const MOST_TOKENS: usize = 128;
const MOST_SHAPE: usize = 512;
const LEAST_HEXADECIMAL: usize = 8;
const PARTS: usize = 3;
/// The groups of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

const DIGIT: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 4;
const LETTER: u8 = 8;
const HEXADECIMAL: u8 = DIGIT | LOWER | UPPER;

/// What a byte may be part of, as a set of bits; 0 for what stands between runs.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = u8::MAX;
    while byte > 0 {
        classes[byte as usize] = match byte {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'f' => LOWER,
            b'A'..=b'F' => UPPER,
            b'g'..=b'z' | b'G'..=b'Z' | 0x80.. => LETTER,
            _ => 0,
        };
        byte -= 1;
    }
    classes
};

/// What fills a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, by its place in the string.
    Word(Range<usize>),
    Number(u64),
}

/// A run: where it ends, and what it is made of.
struct Run {
    end: usize,
    /// The classes of all its bytes together.
    classes: u8,
}

impl Run {
    /// The run that starts there.
    #[inline]
    fn of(string: &[u8], start: usize) -> Self {
        let mut run = Run { end: string.len(), classes: 0 };
        for (place, &byte) in string[start..].iter().enumerate() {
            let class = CLASSES[usize::from(byte)];
            if class == 0 {
                run.end = start + place;
                break;
            }
            run.classes |= class;
        }
        run
    }
}

/// Whether a run of these classes has both decimal digits and letters of one case that are hexadecimal digits.
fn is_hexadecimal(classes: u8) -> bool {
    classes == DIGIT | LOWER || classes == DIGIT | UPPER
}

/// The places where a run changes between decimal digits and other bytes.
fn changes(run: &[u8]) -> impl Iterator<Item = usize> {
    let pairs = run.windows(2).zip(1..);
    pairs.filter(|(pair, _)| pair[0].is_ascii_digit() != pair[1].is_ascii_digit()).map(|(_, at)| at)
}

/// A string that was cut. Holds only memory to be used again.
#[derive(Default)]
pub(super) struct Scan {
    /// Its shape, in which each slot has the kind of its column where it will have the column's number.
    pub(super) shape: Vec<u8>,
    pub(super) tokens: Vec<Token>,
}

impl Scan {
    /// Cuts a string. Where it cannot be cut, or it is not worth it, the string is one word.
    pub(super) fn cut(&mut self, string: &[u8]) {
        if self.try_cut(string).is_none() {
            self.whole(string);
        }
    }

    /// Takes a string that is not empty for one word.
    pub(super) fn whole(&mut self, string: &[u8]) {
        self.shape.clear();
        self.tokens.clear();
        self.push(Kind::Word, Token::Word(0..string.len()));
    }

    /// Whether the string is one word.
    pub(super) fn is_whole(&self) -> bool {
        self.shape == [SLOT, Kind::Word.byte()]
    }

    fn try_cut(&mut self, string: &[u8]) -> Option<()> {
        self.shape.clear();
        self.tokens.clear();
        let mut at = 0;
        while let Some(&byte) = string.get(at) {
            if CLASSES[usize::from(byte)] == 0 {
                if byte == SLOT {
                    return None;
                }
                self.shape.push(byte);
                at += 1;
            } else {
                at = self.cut_run(string, at)?;
            }
            if self.tokens.len() > MOST_TOKENS || self.shape.len() > MOST_SHAPE {
                return None;
            }
        }
        Some(())
    }

    /// Cuts the run that starts there, and returns where it ends; `None` where the string has too many words and numbers.
    fn cut_run(&mut self, string: &[u8], start: usize) -> Option<usize> {
        let Run { end, classes } = Run::of(string, start);
        let run = &string[start..end];
        if run.len() == UUID[0] && classes & !HEXADECIMAL == 0 && self.cut_uuid(string, start) {
            return Some(start + UUID.iter().sum::<usize>() + UUID.len() - 1);
        }
        if classes & DIGIT == 0 || classes == DIGIT {
            self.cut_part(string, start..end);
        } else if run.len() >= LEAST_HEXADECIMAL && is_hexadecimal(classes) {
            let upper = classes & UPPER != 0;
            if run.len() > MOST_TOKENS * MOST_HEXADECIMAL {
                return None;
            }
            run.chunks(MOST_HEXADECIMAL).for_each(|digits| self.hexadecimal(digits, upper));
        } else if changes(run).nth(PARTS - 1).is_none() {
            let mut from = start;
            for change in changes(run) {
                self.cut_part(string, from..start + change);
                from = start + change;
            }
            self.cut_part(string, from..end);
        } else {
            self.push(Kind::Word, Token::Word(start..end));
        }
        Some(end)
    }

    /// Cuts the UUID that starts there, if there is one.
    fn cut_uuid(&mut self, string: &[u8], start: usize) -> bool {
        let mut at = start;
        let mut all = 0;
        for (index, length) in UUID.into_iter().enumerate() {
            let Some(group) = string.get(at..at + length) else { return false };
            all = group.iter().fold(all, |all, &byte| {
                let class = CLASSES[usize::from(byte)];
                all | if class == 0 { LETTER } else { class }
            });
            at += length;
            let ends_well = match string.get(at) {
                Some(&byte) if index < UUID.len() - 1 => byte == b'-',
                Some(&byte) => CLASSES[usize::from(byte)] == 0,
                None => index == UUID.len() - 1,
            };
            if !ends_well {
                return false;
            }
            at += 1;
        }
        if !is_hexadecimal(all) {
            return false;
        }
        at = start;
        for (index, length) in UUID.into_iter().enumerate() {
            if index > 0 {
                self.shape.push(b'-');
            }
            self.hexadecimal(&string[at..at + length], all & UPPER != 0);
            at += length + 1;
        }
        true
    }

    /// Adds a part of a run, which is all decimal digits or has none.
    fn cut_part(&mut self, string: &[u8], part: Range<usize>) {
        let number = if string[part.start].is_ascii_digit() { decimal(&string[part.clone()]) } else { None };
        match number {
            Some(number) => self.push(Kind::Decimal, Token::Number(number)),
            None => self.push(Kind::Word, Token::Word(part)),
        }
    }

    fn hexadecimal(&mut self, digits: &[u8], upper: bool) {
        let kind = Kind::Hexadecimal { digits: digits.len().to_le_bytes()[0], upper };
        self.push(kind, Token::Number(hexadecimal(digits)));
    }

    fn push(&mut self, kind: Kind, token: Token) {
        self.shape.extend([SLOT, kind.byte()]);
        self.tokens.push(token);
    }
}
