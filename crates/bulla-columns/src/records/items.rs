//! Common items: the words and shapes that groups of a block refer to.

use super::code::FIRST_ITEM;
use super::shape::{self, MOST_SHAPE};
use crate::bitpack::width_of;
use crate::blob::{BlobDecoder, BlobEncoder};
use crate::error::{DecodeError, Fault};
use crate::input::Input;
use crate::numbers::{NumberDecoder, NumberEncoder};
use bulla_proof::varint;

/// The most items of a block, and the most shapes among them.
pub(super) const MOST_ITEMS: usize = bulla_proof::unit::MAX_ITEMS;
pub(super) const MOST_SHAPES: usize = 1_024;
/// The most bytes of a word, and of all words and of all shapes together.
pub(super) const MOST_WORD: usize = 255;
const MOST_WORDS_TEXT: usize = 1 << 18;
const MOST_SHAPES_TEXT: usize = 1 << 16;

/// The first byte of an item.
const SHAPE: u8 = 0;
const WORD: u8 = 1;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Word(&'a [u8]),
    Shape(&'a [u8]),
}

/// The common items of a block by their position, or of some of them. Used again, it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// The items one after the other, each behind the byte that says what it is.
    bytes: Vec<u8>,
    /// Where each begins and ends; nowhere where it is not here.
    places: Vec<(u32, u32)>,
}

impl Items {
    /// No items.
    pub const NONE: Items = Items { bytes: Vec::new(), places: Vec::new() };

    /// Some of `count` items, by their positions: those of which a proof shows what they are. An item's bytes are as
    /// [`Items::bytes`] gives them.
    ///
    /// # Errors
    /// Where there are more than a block may have, one is no item, or stands at a position that there is not, or twice.
    pub fn some<'i>(count: u64, items: impl Iterator<Item = (u64, &'i [u8])>) -> Result<Self, DecodeError> {
        let within = |fault: Fault| fault.within("group");
        let count = usize::try_from(count).ok().filter(|&count| count <= MOST_ITEMS);
        let mut made = Items { bytes: Vec::new(), places: vec![(0, 0); count.ok_or(within(Fault::Range))?] };
        for (position, bytes) in items {
            let place = usize::try_from(position).ok().and_then(|position| made.places.get_mut(position));
            let place = place.filter(|place| **place == (0, 0)).ok_or(within(Fault::Range))?;
            check(bytes).map_err(within)?;
            *place = append(&mut made.bytes, bytes[0], &bytes[1..]).map_err(within)?;
        }
        Ok(made)
    }

    /// How many the block has.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The bytes of the item at a position, which the block's root covers; `None` where it is not here.
    pub fn bytes(&self, position: usize) -> Option<&[u8]> {
        let &(start, end) = self.places.get(position)?;
        (start < end).then(|| &self.bytes[start as usize..end as usize])
    }

    /// The bytes of those that are here.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|position| self.bytes(position))
    }

    /// The item at a position.
    pub(super) fn get(&self, position: usize) -> Option<Item<'_>> {
        match self.bytes(position)?.split_first()? {
            (&SHAPE, shape) => Some(Item::Shape(shape)),
            (_, word) => Some(Item::Word(word)),
        }
    }

    /// How many bits a code takes.
    pub(super) fn width(&self) -> u32 {
        width_of(self.len() as u64 + FIRST_ITEM - 1)
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// Replaces the items by these shapes and words, each in the order of their bytes.
    pub(super) fn fill(&mut self, shapes: &[&[u8]], words: &[&[u8]]) {
        self.clear();
        let all = shapes.iter().map(|shape| (SHAPE, shape)).chain(words.iter().map(|word| (WORD, word)));
        for (kind, item) in all {
            // It fits: a writer's items are few.
            self.places.extend(append(&mut self.bytes, kind, item));
        }
    }

    /// Appends what a block keeps of them.
    pub(crate) fn write(&self, numbers: &mut NumberEncoder, blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        let (mut lengths, mut text) = (Vec::new(), Vec::new());
        for kind in [SHAPE, WORD] {
            lengths.clear();
            text.clear();
            for item in self.iter().filter(|item| item[0] == kind) {
                lengths.push(item.len() as u64 - 1);
                text.extend_from_slice(&item[1..]);
            }
            varint::push(lengths.len() as u64, out);
            numbers.encode(&lengths, blobs, out);
            blobs.encode(&text, out);
        }
    }

    /// Reads what [`Items::write`] wrote, replacing what was here.
    pub(crate) fn read(
        &mut self,
        input: &mut Input<'_>,
        numbers: &mut NumberDecoder,
        blobs: &mut BlobDecoder,
    ) -> Result<(), Fault> {
        self.clear();
        let (mut lengths, mut text) = (Vec::new(), Vec::new());
        for (kind, most, longest, most_text) in [
            (SHAPE, MOST_SHAPES, MOST_SHAPE, MOST_SHAPES_TEXT),
            (WORD, MOST_ITEMS, MOST_WORD, MOST_WORDS_TEXT),
        ] {
            let count = input.count(0, most.min(MOST_ITEMS - self.len()))?;
            numbers.decode_narrow(input, count, blobs, &mut lengths)?;
            if !lengths.iter().all(|length| (1..=longest as u64).contains(length)) {
                return Err(Fault::Range);
            }
            let total = usize::try_from(lengths.iter().sum::<u64>()).map_err(|_| Fault::TooLarge)?;
            if total > most_text {
                return Err(Fault::TooLarge);
            }
            text.clear();
            text.resize(total, 0);
            blobs.decode(input, &mut text)?;
            let (mut rest, mut before) = (&text[..], &[][..]);
            for &length in &lengths {
                let item;
                (item, rest) = rest.split_at(usize::try_from(length).map_err(|_| Fault::TooLarge)?);
                if item <= before {
                    return Err(Fault::Items);
                }
                if kind == SHAPE {
                    shape::check(item)?;
                }
                before = item;
                self.places.push(append(&mut self.bytes, kind, item)?);
            }
        }
        Ok(())
    }
}

/// Whether these are the bytes of an item.
fn check(bytes: &[u8]) -> Result<(), Fault> {
    match bytes.split_first() {
        Some((&WORD, word)) if (1..=MOST_WORD).contains(&word.len()) => Ok(()),
        Some((&SHAPE, shape)) if (1..=MOST_SHAPE).contains(&shape.len()) => shape::check(shape),
        Some((&(WORD | SHAPE), _)) => Err(Fault::Range),
        _ => Err(Fault::Form),
    }
}

/// Appends an item, and returns its place.
fn append(bytes: &mut Vec<u8>, kind: u8, item: &[u8]) -> Result<(u32, u32), Fault> {
    let place = |bytes: &Vec<u8>| u32::try_from(bytes.len()).map_err(|_| Fault::TooLarge);
    let start = place(bytes)?;
    bytes.push(kind);
    bytes.extend_from_slice(item);
    Ok((start, place(bytes)?))
}
