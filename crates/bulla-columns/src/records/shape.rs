//! A shape: bytes that stand for themselves, and slots.

use crate::bitpack::width_of;
use crate::error::Fault;

/// Begins a slot.
pub(super) const SLOT: u8 = 0;
/// The most slots of a shape, and the most bytes.
pub(super) const MOST_SLOTS: usize = 128;
pub(super) const MOST_SHAPE: usize = 512;
/// The most decimal digits of a slot, and the most hexadecimal ones.
pub(super) const MOST_DECIMAL: u8 = 19;
pub(super) const MOST_HEXADECIMAL: u8 = 16;

/// What fills a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Word,
    /// Any number of decimal digits, from 1 to [`MOST_DECIMAL`].
    Decimal,
    /// So many decimal digits.
    Digits(u8),
    Hexadecimal {
        digits: u8,
        upper: bool,
    },
    /// The first of the entry's data subjects.
    Subject,
}

/// The byte that stands for a kind of slot; to the last three the number of digits is added.
const WORD: u8 = 0;
const DECIMAL: u8 = 1;
const SUBJECT: u8 = 64;
const DIGITS: u8 = 1;
const LOWER: u8 = 31;
const UPPER: u8 = 47;

/// The shape of a string that is one word, or some with a space between each two.
pub(super) const LONE_WORD: [u8; 2] = [SLOT, WORD];

impl Slot {
    pub(super) fn byte(self) -> u8 {
        match self {
            Slot::Word => WORD,
            Slot::Decimal => DECIMAL,
            Slot::Digits(digits) => DIGITS + digits,
            Slot::Hexadecimal { digits, upper: false } => LOWER + digits,
            Slot::Hexadecimal { digits, upper: true } => UPPER + digits,
            Slot::Subject => SUBJECT,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            WORD => Some(Slot::Word),
            DECIMAL => Some(Slot::Decimal),
            2..=20 => Some(Slot::Digits(byte - DIGITS)),
            32..=47 => Some(Slot::Hexadecimal { digits: byte - LOWER, upper: false }),
            48..=63 => Some(Slot::Hexadecimal { digits: byte - UPPER, upper: true }),
            SUBJECT => Some(Slot::Subject),
            _ => None,
        }
    }
}

/// A part of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Literal(&'a [u8]),
    Slot(Slot),
}

/// The parts of a shape from left to right; the last one is an error where the bytes are no shape.
pub(super) fn pieces(shape: &[u8]) -> impl Iterator<Item = Result<Piece<'_>, Fault>> {
    let mut rest = shape;
    std::iter::from_fn(move || {
        let (&first, behind) = rest.split_first()?;
        if first == SLOT {
            let slot = behind.first().and_then(|kind| Slot::from_byte(*kind));
            rest = behind.get(1..).unwrap_or_default();
            return Some(slot.map(Piece::Slot).ok_or(Fault::Form));
        }
        let literal;
        (literal, rest) = rest.split_at(rest.iter().position(|&byte| byte == SLOT).unwrap_or(rest.len()));
        Some(Ok(Piece::Literal(literal)))
    })
}

/// Whether these bytes are a shape.
pub(super) fn check(shape: &[u8]) -> Result<(), Fault> {
    let mut slots = 0;
    for piece in pieces(shape) {
        slots += usize::from(matches!(piece?, Piece::Slot(_)));
    }
    if slots > MOST_SLOTS { Err(Fault::Range) } else { Ok(()) }
}

/// How many bits a number of so many decimal digits takes.
pub(super) fn decimal_bits(digits: u8) -> u32 {
    width_of(above_decimal(digits) - 1)
}

/// The least number that has more than so many decimal digits, of which there are at most [`MOST_DECIMAL`].
pub(super) fn above_decimal(digits: u8) -> u64 {
    10_u64.pow(digits.into())
}
