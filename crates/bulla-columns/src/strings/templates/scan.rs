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
use crate::strings::runs::{LEAST_HEXADECIMAL, PARTS, Run, changes, is_in_run};
use std::ops::Range;

/// The most words and numbers that a string is cut into, and the most bytes of its shape. A string with more is one word.
pub(super) const MOST_TOKENS: usize = 128;
const MOST_SHAPE: usize = 512;

/// What fills a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, by its place in the string.
    Word(Range<usize>),
    Number(u64),
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
            if !is_in_run(byte) {
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
        let run = Run::of(string, start);
        let end = run.end;
        let bytes = &string[start..end];
        if let Some((groups, upper)) = run.uuid(string, start) {
            return Some(self.uuid(string, groups, upper));
        }
        if !run.has_digits() || run.is_decimal() {
            self.cut_part(string, start..end);
        } else if bytes.len() >= LEAST_HEXADECIMAL && run.is_hexadecimal() {
            if bytes.len() > MOST_TOKENS * MOST_HEXADECIMAL {
                return None;
            }
            bytes.chunks(MOST_HEXADECIMAL).for_each(|digits| self.hexadecimal(digits, run.is_upper()));
        } else {
            let changes = changes(bytes);
            if changes.len() == PARTS {
                self.push(Kind::Word, Token::Word(start..end));
                return Some(end);
            }
            let mut from = start;
            for end in changes.into_iter().map(|place| start + place).chain([end]) {
                self.cut_part(string, from..end);
                from = end;
            }
        }
        Some(end)
    }

    /// Takes a UUID, whose groups of digits are there; returns where it ends.
    fn uuid(&mut self, string: &[u8], groups: impl Iterator<Item = Range<usize>>, upper: bool) -> usize {
        let mut end = 0;
        for group in groups {
            if end > 0 {
                self.shape.push(b'-');
            }
            end = group.end;
            self.hexadecimal(&string[group], upper);
        }
        end
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
