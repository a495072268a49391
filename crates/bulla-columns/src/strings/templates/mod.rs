//! Strings of few shapes: paths, addresses, keys and records that hardly ever come twice, and whose numbers, long
//! hexadecimal and words do not take a compressor to be short.
//!
//! A shape is what strings have in common, with slots between: 0 and a column's number, other bytes stand for themselves. A
//! string is its shape with each slot filled by the next value of the slot's column; what a column's values are, its
//! [`Kind`](kind::Kind) says. Columns belong to all shapes, so that they are few, and long, where shapes are many.

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
pub(super) use write::Templates;

/// The most shapes, and the most columns.
const MOST: usize = 256;
/// The most bytes of all shapes together.
const MOST_TEXT: usize = 1 << 16;
/// In a shape, what is followed by a column's number.
const SLOT: u8 = 0;
