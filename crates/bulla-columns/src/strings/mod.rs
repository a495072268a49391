//! Columns of byte strings: `form | body`, the number of strings being known from elsewhere.
//!
//! | form | | body |
//! |---|---|---|
//! | 0 | constant | varint length; blob of the string |
//! | 1 | dictionary | varint number of distinct strings; those, as in form 2; integer column of indexes |
//! | 2 | plain | integer column of lengths; blob of all strings, one after the other |
//! | 3 | words | varint number of words; those, as in form 2; integer column of how many words each string has; the strings' tails, as in form 2; u8 width; the words' numbers |
//! | 4 | templates | varint number of columns, and their kinds; varint number of shapes; those, as in form 2; integer column of each string's shape; varint number of words; those, as in form 2; the columns, each an integer column; the words that are spelled, as in form 2 |
//!
//! A column of no strings takes no bytes.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod chunks;
mod decode;
mod encode;
#[cfg(any(test, target_arch = "x86_64"))]
mod lanes;
#[cfg(any(test, target_arch = "x86_64"))]
mod look_up;
mod packed;
mod parallel;
mod plain;
mod pool;
pub(crate) mod runs;
mod templates;
mod vocabulary;
mod words;

pub(super) use decode::StringDecoder;
pub(super) use encode::StringEncoder;
pub(super) use pool::{Span, StringLimits};
pub(crate) use templates::{
    Distinct, Strings, decimal, decimal_length, hexadecimal, shorter, write_decimal, write_hexadecimal,
};

pub(super) const CONSTANT: u8 = 0;
pub(super) const DICTIONARY: u8 = 1;
pub(super) const PLAIN: u8 = 2;
pub(super) const WORDS: u8 = 3;
pub(super) const TEMPLATES: u8 = 4;

/// Stands where a width would, and says that the numbers of words are a blob with a byte for each.
const BYTES: u8 = 9;
