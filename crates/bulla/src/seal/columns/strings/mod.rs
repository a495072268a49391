//! Columns of byte strings: `form | body`, the number of strings being known from elsewhere.
//!
//! | form | | body |
//! |---|---|---|
//! | 0 | constant | varint length; blob of the string |
//! | 1 | dictionary | varint number of distinct strings; those, as in form 2; integer column of indexes |
//! | 2 | plain | integer column of lengths; blob of all strings, one after the other |
//!
//! A column of no strings takes no bytes.

mod decode;
mod encode;

pub(super) use decode::{Span, StringDecoder, StringLimits};
pub(super) use encode::StringEncoder;

pub(super) const CONSTANT: u8 = 0;
pub(super) const DICTIONARY: u8 = 1;
pub(super) const PLAIN: u8 = 2;
