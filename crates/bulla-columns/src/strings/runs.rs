//! Runs: the letters, digits and bytes above 127 of a string that stand without anything else between them.
//!
//! What makes shapes of strings, of a column ([templates](super::templates)) and of groups ([records](crate::records)), cuts at their ends.

use smallvec::SmallVec;
use std::ops::Range;

/// The fewest digits of a run that is hexadecimal, but for those of a UUID.
pub(crate) const LEAST_HEXADECIMAL: usize = 8;
/// In so many parts, which are all decimal digits or have none, a run is cut at most.
pub(crate) const PARTS: usize = 3;
/// The digits of a UUID's groups, between which there are hyphens.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

const DIGIT: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 4;
const LETTER: u8 = 8;

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

/// Whether a byte belongs to a run.
#[inline]
pub(crate) fn is_in_run(byte: u8) -> bool {
    CLASSES[usize::from(byte)] != 0
}

/// A run, or part of one: where it ends, and of what bytes it is.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) end: usize,
    /// The classes of all its bytes together; 0 where it has none.
    classes: u8,
}

impl Run {
    /// The run that starts there.
    #[inline]
    pub(crate) fn of(string: &[u8], start: usize) -> Self {
        let mut classes = 0;
        for (place, &byte) in string[start..].iter().enumerate() {
            match CLASSES[usize::from(byte)] {
                0 => return Run { end: start + place, classes },
                class => classes |= class,
            }
        }
        Run { end: string.len(), classes }
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.classes == 0
    }

    /// Whether any of it is a decimal digit.
    #[inline]
    pub(crate) fn has_digits(self) -> bool {
        self.classes & DIGIT != 0
    }

    /// Whether all of it are decimal digits.
    #[inline]
    pub(crate) fn is_decimal(self) -> bool {
        self.classes == DIGIT
    }

    /// Whether it has both decimal digits and letters of one case that are hexadecimal digits, and nothing else.
    #[inline]
    pub(crate) fn is_hexadecimal(self) -> bool {
        self.classes == DIGIT | LOWER || self.classes == DIGIT | UPPER
    }

    /// Whether any of it is a capital letter that is a hexadecimal digit.
    #[inline]
    pub(crate) fn is_upper(self) -> bool {
        self.classes & UPPER != 0
    }

    /// The UUID that starts where this run does: where its groups of digits are, and whether its letters are capital ones.
    pub(crate) fn uuid(
        self,
        string: &[u8],
        start: usize,
    ) -> Option<(impl Iterator<Item = Range<usize>>, bool)> {
        let groups = || {
            UUID.into_iter().scan(start, |at, length| {
                let group = *at..*at + length;
                *at = group.end + 1;
                Some(group)
            })
        };
        let (mut run, mut classes) = (self, 0);
        for (index, group) in groups().enumerate() {
            if index > 0 {
                if string.get(group.start - 1) != Some(&b'-') {
                    return None;
                }
                run = Run::of(string, group.start);
            }
            if run.end != group.end {
                return None;
            }
            classes |= run.classes;
        }
        let all = Run { classes, ..run };
        all.is_hexadecimal().then(|| (groups(), all.is_upper()))
    }
}

/// Where the parts of a run begin that are all decimal digits or have none, but for the first: as many as there are, or [`PARTS`].
pub(crate) fn changes(run: &[u8]) -> SmallVec<[usize; PARTS]> {
    let pairs = run.windows(2).zip(1..);
    let changes = pairs.filter(|(pair, _)| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    changes.map(|(_, place)| place).take(PARTS).collect()
}
