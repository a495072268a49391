//! Strings of few shapes: paths, addresses, keys and records that hardly ever come twice as a whole, but are made of numbers,
//! hexadecimal and words, which can be stored shorter without a compressor.
//!
//! A shape is the text that strings have in common, with slots in it. A slot is a byte 0 and a column's number; other bytes stand
//! for themselves. A string is its shape, with each slot filled by the next value of the slot's column. What a column's
//! values are, its [`Kind`](kind::Kind) says. Shapes share columns, so that columns stay few and long where there are many
//! shapes.

mod decode;
mod distinct;
mod kind;
mod scan;
mod shapes;
mod split;
#[cfg(test)]
mod tests;
mod write;

pub(super) use decode::{Source, TemplateDecoder};
pub(crate) use distinct::{Distinct, Strings};
pub(crate) use kind::{decimal, decimal_length, hexadecimal, shorter, write_decimal, write_hexadecimal};
pub(super) use write::Templates;

/// The most shapes, and the most columns.
const MOST: usize = 256;
/// The most bytes of all shapes together.
const MOST_TEXT: usize = 1 << 16;
/// The byte that begins a slot in a shape; a column's number follows it.
const SLOT: u8 = 0;
