//! The inside of a block: rows turned into compact columns and back.
//!
//! ```text
//! u8 layout version = 1 | varint entries | groups' entries | column ... | groups | zeros up to the Padmé length
//! ```
//!
//! `docs/format-columns.md` is the byte map. Both directions are pure: no clock, no randomness, no state but memory
//! that is used again. What holds:
//!
//! - The rows that come out are, byte for byte, the rows that went in.
//! - Whatever the bytes, decoding ends in rows that are canonical or in an error, and takes memory of at most a
//!   small multiple of the content limit: every value is paid for from it before there is room made.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]

pub mod account;
mod bitpack;
mod blob;
mod decode;
mod encode;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod groups;
mod input;
mod integers;
mod numbers;
mod padding;
mod records;
mod rows;
mod searched;
mod strings;
mod table;
#[cfg(test)]
mod tests;
mod writer;

pub use decode::Decoder;
pub use encode::Encoder;
pub use error::{DecodeError, Fault};
pub use groups::{Groups, PERSONAL, Partition};
pub use integers::{IntegerReader, IntegerWriter};
pub use padding::padme;
pub use records::Items;
pub use rows::Rows;
pub use searched::Searched;

use bulla_proof::entry::{Field, MAX_PAYLOAD, MAX_STRING};
use strings::StringLimits;

/// The layout version, the first byte of a plaintext.
pub const VERSION: u8 = 1;

/// What each row counts towards the content limit above its own length.
pub const ROW_OVERHEAD: usize = 4;

/// How hard to compress: 0 not at all, 1 to 19 as zstd's levels. Integers and dictionaries are packed at every level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression(i32);

impl Compression {
    /// No general compression.
    pub const NONE: Compression = Compression(0);
    /// The quickest.
    pub const FAST: Compression = Compression(1);

    /// The compression of that level, if it is one.
    pub const fn new(level: i32) -> Option<Self> {
        if level >= 0 && level <= 19 { Some(Compression(level)) } else { None }
    }

    /// The level.
    pub const fn level(self) -> i32 {
        self.0
    }

    /// What zstd takes of memory at that level, in bytes: `ZSTD_estimateCCtxSize` of version 1.5, rounded up.
    pub const fn memory(self) -> usize {
        const MEBIBYTES: [usize; 20] =
            [0, 1, 1, 2, 3, 4, 4, 7, 7, 13, 25, 25, 49, 49, 49, 65, 65, 65, 65, 82];
        MEBIBYTES[self.0.unsigned_abs() as usize] << 20
    }
}

/// What kind of column a field's values make.
#[derive(Clone, Copy)]
enum Kind {
    Number {
        most: u64,
    },
    String(StringLimits),
    /// A column of counts, and one of all the strings.
    List(StringLimits),
}

const TEXT: StringLimits = StringLimits { shortest: 0, longest: MAX_STRING, text: true };
const SMALL: Kind = Kind::Number { most: u32::MAX as u64 };
const LARGE: Kind = Kind::Number { most: u64::MAX };

/// The optional fields in the order of their columns, which is that of the presence bits and of a row's bytes.
const FIELDS: [(Field, &str, Kind); 13] = [
    (Field::Controller, "controller", Kind::String(TEXT)),
    (Field::Processor, "processor", Kind::String(TEXT)),
    (Field::Purpose, "purpose", Kind::String(TEXT)),
    (Field::Status, "status", SMALL),
    (Field::Duration, "duration", LARGE),
    (Field::Size, "size", LARGE),
    (Field::Flags, "flags", SMALL),
    (Field::Location, "location", Kind::String(StringLimits { text: false, ..TEXT })),
    (Field::Client, "client", Kind::String(TEXT)),
    (Field::Actor, "actor", Kind::String(TEXT)),
    (Field::Stream, "stream", Kind::String(TEXT)),
    (Field::Payload, "payload", Kind::String(StringLimits { longest: MAX_PAYLOAD, text: false, ..TEXT })),
    (Field::Subject, "subject", Kind::List(TEXT)),
];

/// The operation's column comes second, after the time's; both are always there.
const OPERATION: StringLimits = StringLimits { shortest: 1, ..TEXT };

/// The earliest and the latest of times as their column has them.
fn bounds(times: &[u64]) -> (i64, i64) {
    let times = times.iter().map(|time| time.cast_signed());
    times.fold((i64::MAX, i64::MIN), |(low, high), time| (low.min(time), high.max(time)))
}

/// How a column says which rows have a value.
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
const BITMAP: u8 = 2;
