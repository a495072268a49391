//! Columns of 64-bit integers: `form | body`, the number of values being known from elsewhere.
//!
//! | form | | body |
//! |---|---|---|
//! | 0 | constant | varint value |
//! | 1 | packed | varint base, varint scale; for every [`CHUNK`] values: varint offset, u8 width, bits |
//! | 2 | delta | varint first value; column of the zigzag differences, one fewer |
//! | 3 | runs | varint number of runs; column of their values; column of their lengths less one |
//! | 4 | dictionary | varint number of distinct values; column of them; column of indexes |
//! | 5 | bytes | varint base, varint scale, u8 width; blob of the low bytes of all, then the next, and so on |
//!
//! In forms 1 and 5 a value is base + scale × (offset + bits), wrapping. Columns nest: delta, runs and dictionary
//! hold columns, at most [`DEPTH`] deep; of runs and distinct values there are at most half as many as values, or
//! one. A column of no values takes no bytes.

mod decode;
mod encode;
mod survey;

pub(super) use decode::NumberDecoder;
pub(super) use encode::NumberEncoder;
pub(super) use survey::log2_sixteenths;

pub(super) const CONSTANT: u8 = 0;
pub(super) const PACKED: u8 = 1;
pub(super) const DELTA: u8 = 2;
pub(super) const RUNS: u8 = 3;
pub(super) const DICTIONARY: u8 = 4;
pub(super) const BYTES: u8 = 5;

/// How many values share an offset and a width.
pub(super) const CHUNK: usize = 512;
/// How many columns deep a column may be that holds others.
pub(super) const DEPTH: u32 = 3;

#[inline]
fn zigzag(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from).cast_signed();
    (difference << 1 ^ difference >> 63).cast_unsigned()
}

#[inline]
fn unzigzag(value: u64) -> u64 {
    value >> 1 ^ (value & 1).wrapping_neg()
}
