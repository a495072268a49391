//! Groups as records: their entries one after the other, as a stream of bits, with what many groups of the block have in common
//! spelled once in its shared part.
//!
//! `docs/format-columns.md`, "Common items" and "Groups", is the specification. A group has few entries, and learns little from
//! itself: columns pay some bytes each before they hold anything. Here an entry costs what its values cost, and a word or a
//! shape that many groups use costs a reference of a few bits, of one width in the whole block.
//!
//! - [`cut`] cuts a string into a shape and what fills its slots.
//! - [`survey`] counts shapes and words of a block's groups but for people's [`names`], and [`choose`] chooses the common ones.
//! - [`write`] writes a group, whose strings [`follow`] the common shapes; [`read`] reads one, whatever the bytes.

mod bits;
mod choose;
mod cut;
mod dictionary;
mod follow;
mod items;
mod names;
mod read;
mod shape;
mod survey;
mod values;
mod window;
mod write;

pub use items::Items;
pub(crate) use read::RecordReader;
pub(crate) use write::RecordWriter;

/// The first byte of a group's plaintext that is written in columns.
pub(crate) const COLUMNS: u8 = 0;
/// The first bit of one that is written as records.
const RECORDS: u64 = 1;

/// What a string's code may be besides the position of an item, to which [`FIRST_ITEM`] is added.
mod code {
    /// The string is spelled.
    pub(super) const SPELLED: u64 = 0;
    /// It was spelled in this group before.
    pub(super) const EARLIER: u64 = 1;
    /// It is that of the same field before.
    pub(super) const SAME: u64 = 2;
    /// It is some words, with a space between each two.
    pub(super) const PHRASE: u64 = 3;
    /// It is the first item.
    pub(super) const FIRST_ITEM: u64 = 4;
}

/// How a spelled string is spelled: each of its bytes as its place in one of these, in the least bits, or as it is. The first that
/// has all of them is taken.
const ALPHABETS: [&[u8]; 3] = [
    b"0123456789abcdef",
    b"abcdefghijklmnopqrstuvwxyz ./_-@",
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_",
];
/// The bits that say which alphabet, or that there is none.
const ALPHABET_BITS: u32 = 2;

/// The bits of the number of bits of a length, and of an integer field; those of a list's count, and of a number of digits.
const LENGTH_BITS: u32 = 5;
const INTEGER_BITS: u32 = 7;
const COUNT_BITS: u32 = 7;
const DIGITS_BITS: u32 = 5;
/// The most bits of a length.
const MOST_LENGTH_BITS: u64 = 25;
/// The most bits of the number of a phrase's words.
const MOST_WORDS_BITS: u64 = 16;
/// Numbers of so many digits, where their slot does not say how many, are kept for later.
const KEPT_DIGITS: u8 = 5;

/// The bits that each byte takes in the alphabet of this number, or as it is.
fn bits_in(alphabet: usize) -> u32 {
    ALPHABETS.get(alphabet).map_or(u8::BITS, |alphabet| width_among(alphabet.len()))
}

/// The least bits that tell so many apart.
fn width_among(count: usize) -> u32 {
    crate::bitpack::width_of((count as u64).saturating_sub(1))
}
