//! Cuts a string into a shape and what fills its slots.
//!
//! Letters, digits and bytes above 127 make runs. From left to right, and by the first of these that fits:
//!
//! - the name of the entry's data subject, where it stands between ends of runs, is a slot of its own;
//! - the name of a member of a JSON object stands for itself;
//! - digits alone are a decimal slot; 8 digits or more that are hexadecimal, in one case and not all decimal, and a UUID's groups are
//!   hexadecimal slots;
//! - runs without digits, with one space between each two, are one slot: a phrase;
//! - a run of up to three parts, which are all digits or have none, is cut into those; another is one word;
//! - all else stands for itself.

use super::shape::{MOST_HEXADECIMAL, MOST_SHAPE, MOST_SLOTS, SLOT, Slot};
pub(super) use crate::strings::LONGEST_MARKED as LONGEST;
use crate::strings::{Marks, Run, decimal, hexadecimal};
use std::ops::Range;

const LEAST_HEXADECIMAL: usize = 8;
/// A run is cut into at most one part more.
const MOST_CHANGES: usize = 2;
/// The longest name of a member that stands for itself.
const LONGEST_MEMBER: usize = 40;
/// The groups of a UUID, and its length.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];
const UUID_LENGTH: usize = 36;

/// What fills a slot. A data subject's slot is filled by the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// So many words with a space between each two, by their place in the string.
    Words { start: usize, end: usize, count: usize },
    /// Hexadecimal digits, or decimal ones: their place among all runs of digits, the shorter ones first.
    Number(u64),
}

/// A string that was cut. Used again, it keeps its memory.
#[derive(Default)]
pub(super) struct Cut {
    pub(super) shape: Vec<u8>,
    pub(super) fillings: Vec<Filling>,
    marks: Marks,
    slots: usize,
}

impl Cut {
    /// Cuts a string of an entry, the first of whose data subjects has this name. False where the string is too long, or too
    /// complicated.
    pub(super) fn of(&mut self, string: &[u8], name: Option<&[u8]>) -> bool {
        self.shape.clear();
        self.fillings.clear();
        self.slots = 0;
        string.len() <= LONGEST && self.all(string, name.filter(|name| !name.is_empty())).is_some()
    }

    /// The words of the string that stand there, with a space between each two.
    #[inline]
    pub(super) fn words(&self, start: usize, end: usize) -> impl Iterator<Item = Range<usize>> + Clone {
        let next = move |word: &Range<usize>| {
            Some(word.end + 1).filter(|at| *at < end).map(|at| at..self.marks.run(at).end)
        };
        std::iter::successors(Some(start..self.marks.run(start).end), next)
    }

    fn all(&mut self, string: &[u8], name: Option<&[u8]>) -> Option<()> {
        self.marks.mark(string);
        let (mut at, mut literal) = (0, 0);
        while let Some(next) = self.marks.next(at) {
            at = next;
            if !self.marks.is_run(at) {
                match string[at] {
                    SLOT => return None,
                    b'"' => at = self.member(string, at + 1).unwrap_or(at + 1),
                    _ => at += 1,
                }
                continue;
            }
            self.shape.extend_from_slice(&string[literal..at]);
            match name {
                Some(name) if self.is_name(string, at, name) => {
                    self.slot(Slot::Subject);
                    at += name.len();
                }
                _ => at = self.run(string, at, name),
            }
            literal = at;
            if self.slots > MOST_SLOTS || self.shape.len() > MOST_SHAPE {
                return None;
            }
        }
        self.shape.extend_from_slice(&string[literal..]);
        (self.shape.len() <= MOST_SHAPE).then_some(())
    }

    /// Cuts the run that starts there, and what belongs to it; returns where that ends.
    fn run(&mut self, string: &[u8], start: usize, name: Option<&[u8]>) -> usize {
        let run = self.marks.run(start);
        let length = run.end - start;
        if length == UUID[0] && !run.has_others && self.uuid(string, start) {
            return start + UUID_LENGTH;
        }
        if !run.has_digits {
            return self.phrase(string, start..run.end, name);
        }
        if run.is_decimal() {
            self.part(string, start..run.end);
        } else if length >= LEAST_HEXADECIMAL && run.is_hexadecimal() {
            let digits = string[start..run.end].chunks(MOST_HEXADECIMAL.into());
            digits.for_each(|digits| self.hexadecimal(digits, run.has_upper));
        } else if let Some((changes, count)) = self.marks.changes::<MOST_CHANGES>(start, run.end) {
            let mut from = start;
            for &change in changes[..count].iter().chain([&run.end]) {
                self.part(string, from..change);
                from = change;
            }
        } else {
            self.word(start..run.end, 1);
        }
        run.end
    }

    /// Cuts the words from this one on, each behind a space, of which none has a digit; returns where the last one ends.
    fn phrase(&mut self, string: &[u8], first: Range<usize>, name: Option<&[u8]>) -> usize {
        let (mut end, mut count) = (first.end, 1);
        while string.get(end) == Some(&b' ') {
            let next = self.marks.run(end + 1);
            let is_word = next.end > end + 1 && !next.has_digits;
            if !is_word || name.is_some_and(|name| self.is_name(string, end + 1, name)) {
                break;
            }
            (end, count) = (next.end, count + 1);
        }
        self.word(first.start..end, count);
        end
    }

    /// Adds a part of a run, which is all decimal digits or has none.
    fn part(&mut self, string: &[u8], part: Range<usize>) {
        let number = if string[part.start].is_ascii_digit() { decimal(&string[part.clone()]) } else { None };
        match number {
            Some(number) => {
                self.slot(Slot::Decimal);
                self.fillings.push(Filling::Number(number));
            }
            None => self.word(part, 1),
        }
    }

    /// Cuts the UUID that starts there, if there is one.
    fn uuid(&mut self, string: &[u8], start: usize) -> bool {
        let (mut at, mut all) = (start, Run::default());
        for (index, length) in UUID.into_iter().enumerate() {
            let run = self.marks.run(at);
            let is_last = index == UUID.len() - 1;
            if run.end != at + length || run.has_others || !is_last && string.get(run.end) != Some(&b'-') {
                return false;
            }
            all.has_digits |= run.has_digits;
            all.has_lower |= run.has_lower;
            all.has_upper |= run.has_upper;
            at = run.end + 1;
        }
        if !all.is_hexadecimal() {
            return false;
        }
        at = start;
        for (index, length) in UUID.into_iter().enumerate() {
            if index > 0 {
                self.shape.push(b'-');
            }
            self.hexadecimal(&string[at..at + length], all.has_upper);
            at += length + 1;
        }
        true
    }

    fn word(&mut self, Range { start, end }: Range<usize>, count: usize) {
        self.slot(Slot::Word);
        self.fillings.push(Filling::Words { start, end, count });
    }

    fn hexadecimal(&mut self, digits: &[u8], upper: bool) {
        self.slot(Slot::Hexadecimal { digits: digits.len().to_le_bytes()[0], upper });
        self.fillings.push(Filling::Number(hexadecimal(digits)));
    }

    fn slot(&mut self, slot: Slot) {
        self.slots += 1;
        self.shape.extend_from_slice(&[SLOT, slot.byte()]);
    }

    /// Whether the name stands there, where a run starts, and ends where a run may end.
    #[inline]
    fn is_name(&self, string: &[u8], at: usize, name: &[u8]) -> bool {
        let end = at + name.len();
        string[at] == name[0]
            && string[at..].starts_with(name)
            && !(self.marks.is_run(end - 1) && self.marks.is_run(end))
    }

    /// Where the name of a member of a JSON object ends, if it is one that starts there, behind a quotation mark.
    fn member(&self, string: &[u8], start: usize) -> Option<usize> {
        let opens = string[..start - 1].iter().rev().find(|byte| **byte != b' ')?;
        if !matches!(opens, b'{' | b',') {
            return None;
        }
        let end = self.marks.next_special(start).filter(|end| end - start < LONGEST_MEMBER)?;
        string[end..].starts_with(b"\":").then_some(end)
    }
}
