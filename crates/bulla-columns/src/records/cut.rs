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
use crate::strings::runs::{LEAST_HEXADECIMAL, PARTS, Run, changes, is_in_run};
use crate::strings::{decimal, hexadecimal};
use std::ops::Range;

/// The longest string that is cut.
pub(super) const LONGEST: usize = 1024;
/// The longest name of a member that stands for itself.
const LONGEST_MEMBER: usize = 40;
/// What fills a slot. A data subject's slot is filled by the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// So many words with a space between each two, by their place in the string.
    Words { start: usize, end: usize, count: usize },
    /// Hexadecimal digits, or decimal ones, by where they begin in the string: their place among all runs of digits, the shorter ones first.
    Number { number: u64, at: usize },
}

/// A string that was cut. Used again, it keeps its memory.
#[derive(Default)]
pub(super) struct Cut {
    pub(super) shape: Vec<u8>,
    pub(super) fillings: Vec<Filling>,
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

    fn all(&mut self, string: &[u8], name: Option<&[u8]>) -> Option<()> {
        let (mut at, mut literal) = (0, 0);
        while let Some(&byte) = string.get(at) {
            if !is_in_run(byte) {
                at += 1;
                match byte {
                    SLOT => return None,
                    b'"' => at = member(string, at).unwrap_or(at),
                    _ => {}
                }
                continue;
            }
            self.shape.extend_from_slice(&string[literal..at]);
            match name {
                Some(name) if is_name(string, at, name) => {
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
        let run = Run::of(string, start);
        let end = run.end;
        if let Some((groups, upper)) = run.uuid(string, start) {
            return self.uuid(string, groups, upper);
        }
        if !run.has_digits() {
            return self.phrase(string, start..end, name);
        }
        if run.is_decimal() {
            self.part(string, start..end);
        } else if end - start >= LEAST_HEXADECIMAL && run.is_hexadecimal() {
            for at in (start..end).step_by(MOST_HEXADECIMAL.into()) {
                let part = at..end.min(at + usize::from(MOST_HEXADECIMAL));
                self.hexadecimal(string, part, run.is_upper());
            }
        } else {
            self.parts(string, start..end);
        }
        end
    }

    /// Cuts the words from this one on, each behind a space, of which none has a digit; returns where the last one ends.
    fn phrase(&mut self, string: &[u8], first: Range<usize>, name: Option<&[u8]>) -> usize {
        let (start, mut end, mut count) = (first.start, first.end, 1);
        while string.get(end) == Some(&b' ') {
            let next = Run::of(string, end + 1);
            let is_name = || name.is_some_and(|name| is_name(string, end + 1, name));
            if next.is_empty() || next.has_digits() || is_name() {
                break;
            }
            (end, count) = (next.end, count + 1);
        }
        self.slot(Slot::Word);
        self.fillings.push(Filling::Words { start, end, count });
        end
    }

    /// Cuts a run of digits and others into its parts, if it has few.
    fn parts(&mut self, string: &[u8], whole: Range<usize>) {
        let changes = changes(&string[whole.clone()]);
        if changes.len() == PARTS {
            return self.word(whole);
        }
        let mut from = whole.start;
        for end in changes.into_iter().map(|place| whole.start + place).chain([whole.end]) {
            self.part(string, from..end);
            from = end;
        }
    }

    /// Adds a part of a run, which is all decimal digits or has none.
    fn part(&mut self, string: &[u8], part: Range<usize>) {
        let number = if string[part.start].is_ascii_digit() { decimal(&string[part.clone()]) } else { None };
        match number {
            Some(number) => {
                self.slot(Slot::Decimal);
                self.fillings.push(Filling::Number { number, at: part.start });
            }
            None => self.word(part),
        }
    }

    /// Takes a UUID, whose groups of digits are there; returns where it ends.
    fn uuid(&mut self, string: &[u8], groups: impl Iterator<Item = Range<usize>>, upper: bool) -> usize {
        let mut end = 0;
        for group in groups {
            if end > 0 {
                self.shape.push(b'-');
            }
            end = group.end;
            self.hexadecimal(string, group, upper);
        }
        end
    }

    fn word(&mut self, place: Range<usize>) {
        self.slot(Slot::Word);
        self.fillings.push(Filling::Words { start: place.start, end: place.end, count: 1 });
    }

    fn hexadecimal(&mut self, string: &[u8], place: Range<usize>, upper: bool) {
        self.slot(Slot::Hexadecimal { digits: place.len().to_le_bytes()[0], upper });
        self.fillings.push(Filling::Number { at: place.start, number: hexadecimal(&string[place]) });
    }

    fn slot(&mut self, slot: Slot) {
        self.slots += 1;
        self.shape.extend_from_slice(&[SLOT, slot.byte()]);
    }
}

/// Whether the name stands there, where a run starts, and ends where a run may end.
#[inline]
pub(super) fn is_name(string: &[u8], at: usize, name: &[u8]) -> bool {
    string[at] == name[0]
        && string[at..].starts_with(name)
        && (!is_in_run(name[name.len() - 1])
            || string.get(at + name.len()).is_none_or(|&byte| !is_in_run(byte)))
}

/// Where the name of a member of a JSON object ends, if it is one that starts there, behind a quotation mark.
fn member(string: &[u8], start: usize) -> Option<usize> {
    let opens = string[..start - 1].iter().rev().find(|byte| **byte != b' ')?;
    if !matches!(opens, b'{' | b',') {
        return None;
    }
    let rest = &string[start..string.len().min(start + LONGEST_MEMBER)];
    let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | &SLOT))?;
    string[start + length..].starts_with(b"\":").then_some(start + length)
}
