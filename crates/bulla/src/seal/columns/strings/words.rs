//! Texts of few different words: each string is so many words of a vocabulary, one after the other, then a tail.
//!
//! A word ends with a space, its only one. The format asks for less: words are strings of at least one byte.

use super::super::bitpack::width_of;
use super::super::numbers::log2_sixteenths;
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// The most words of a vocabulary.
pub(super) const MOST_WORDS: usize = 256;
/// Texts together shorter than this are not worth a vocabulary.
const SHORTEST: usize = 256;
/// Words longer than this, on average, are for compressors.
const LONGEST: usize = 64;
/// How much of the texts is tried first.
const SAMPLE: usize = 8 * 1024;
/// Slots of the table: twice the words.
const SLOTS: usize = 2 * MOST_WORDS;
/// The most steps of a look-up: hostile words cost a vocabulary, not time.
const MAX_PROBES: usize = 64;
/// With fewer numbers of words no compressor is asked.
const COMPRESSIBLE: usize = 64;
const SEPARATOR: u8 = b' ';

/// Splits texts into words. Holds only memory to be used again.
#[derive(Default)]
pub(super) struct Words {
    slots: Vec<Slot>,
    /// The vocabulary, in the order of first occurrence: its text, and each word's length.
    pub(super) text: Vec<u8>,
    pub(super) lengths: Vec<u64>,
    /// Where each word ends in the text.
    ends: Vec<usize>,
    /// The numbers of all strings' words.
    pub(super) indexes: Vec<u8>,
    /// By string, how many words it has.
    pub(super) counts: Vec<u64>,
    pub(super) tails: Vec<u8>,
    pub(super) tail_lengths: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// A word of up to eight bytes itself, filled up with zeros; else its hash.
    key: u64,
    /// The word's length; 0 in an empty slot.
    length: u32,
    index: u8,
}

/// How the numbers of words are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// That many bits each.
    Bits(u32),
    /// A byte each, for a general compressor.
    Bytes,
}

impl Words {
    /// Whether `strings` are texts of few words, so that they were split. `compressed` is how long a general compressor
    /// leaves a sample, where it is not clear without.
    pub(super) fn split_all(&mut self, strings: &[&[u8]], compressed: impl FnOnce(&[u8]) -> usize) -> bool {
        let total: usize = strings.iter().map(|string| string.len()).sum();
        if total < SHORTEST {
            return false;
        }
        let middle = strings[strings.len() / 2];
        // Of little a small part: what is tried is split twice.
        let middle = &middle[..middle.len().min(SAMPLE).min(SHORTEST.max(total / 8))];
        if !self.split([middle]) || self.indexes.len() * LONGEST <= middle.len() {
            return false;
        }
        // The vocabulary is all the strings'.
        let length = self.length_without_words() + self.text.len() * middle.len() / total;
        if length > middle.len() / 8 && length >= compressed(middle) {
            return false;
        }
        self.split(strings.iter().copied()) && self.length_without_words() + self.text.len() < total / 4
    }

    /// Bytes that the strings take, about.
    fn length_without_words(&self) -> usize {
        let Width::Bits(width) = self.packed() else { return usize::MAX };
        self.indexes.len() * width as usize / 8 + self.tails.len()
    }

    pub(super) fn packed(&self) -> Width {
        Width::Bits(width_of(self.lengths.len().saturating_sub(1) as u64))
    }

    /// The best width; a compressor has to save a quarter to be worth its time, or a sixteenth where time is no matter.
    pub(super) fn width(&self, patient: bool) -> Width {
        let packed = self.packed();
        let Width::Bits(width) = packed else { return packed };
        let mut counts = [0_u32; MOST_WORDS];
        self.indexes.iter().for_each(|&index| counts[usize::from(index)] += 1);
        let total = u32::try_from(self.indexes.len()).unwrap_or(u32::MAX);
        let own = counts.iter().map(|&count| u64::from(count) * log2_sixteenths(count)).sum::<u64>();
        let entropy = (u64::from(total) * log2_sixteenths(total)).saturating_sub(own);
        let bits = u64::from(total) * 16 * u64::from(width);
        let worth = if patient { entropy * 16 < bits * 15 } else { entropy * 4 < bits * 3 };
        if width > 2 && worth && self.indexes.len() >= COMPRESSIBLE { Width::Bytes } else { packed }
    }

    /// Splits; false where there are too many words.
    fn split<'a>(&mut self, strings: impl IntoIterator<Item = &'a [u8]>) -> bool {
        self.slots.clear();
        self.slots.resize(SLOTS, Slot::default());
        [&mut self.text, &mut self.indexes, &mut self.tails].into_iter().for_each(Vec::clear);
        [&mut self.lengths, &mut self.counts, &mut self.tail_lengths].into_iter().for_each(Vec::clear);
        self.ends.clear();
        strings.into_iter().all(|string| self.split_one(string).is_some())
    }

    fn split_one(&mut self, string: &[u8]) -> Option<()> {
        let before = self.indexes.len();
        let mut start = 0;
        let (chunks, rest) = string.as_chunks::<64>();
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        self.indexes.reserve(string.len() / 2);
        for (chunk, at) in chunks.iter().chain([&last]).zip((0..).step_by(64)) {
            let mut mask = separators(chunk);
            while mask != 0 {
                let end = at + mask.trailing_zeros() as usize + 1;
                mask &= mask - 1;
                let index = self.index(string, start, end)?;
                self.indexes.push(index);
                start = end;
            }
        }
        self.counts.push((self.indexes.len() - before) as u64);
        self.tails.extend_from_slice(&string[start..]);
        self.tail_lengths.push((string.len() - start) as u64);
        Some(())
    }

    /// The number of the word from `start` to before `end`; `None` where there are too many.
    #[inline]
    fn index(&mut self, string: &[u8], start: usize, end: usize) -> Option<u8> {
        let length = end - start;
        let key = match string[start..].first_chunk::<8>() {
            Some(eight) if length <= 8 => u64::from_le_bytes(*eight) & u64::MAX >> (64 - 8 * length),
            _ => long_key(&string[start..end]),
        };
        let home = usize::try_from(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55).unwrap_or(0);
        let slot = self.slots[home];
        match slot.key == key && slot.length as usize == length && length <= 8 {
            true => Some(slot.index),
            false => self.find(home, key, &string[start..end]),
        }
    }

    /// Looks further than at home, and adds a word that is new; `None` where that takes too long, too.
    fn find(&mut self, home: usize, key: u64, word: &[u8]) -> Option<u8> {
        let length = u32::try_from(word.len()).ok()?;
        for step in 0..MAX_PROBES {
            let at = (home + step) % SLOTS;
            let slot = self.slots[at];
            if slot.length == 0 {
                let index = u8::try_from(self.lengths.len()).ok()?;
                self.slots[at] = Slot { key, length, index };
                self.text.extend_from_slice(word);
                self.lengths.push(word.len() as u64);
                self.ends.push(self.text.len());
                return Some(index);
            }
            if slot.key == key && slot.length == length && (length <= 8 || self.word(slot.index) == word) {
                return Some(slot.index);
            }
        }
        None
    }

    /// The word of a number.
    fn word(&self, index: u8) -> &[u8] {
        let index = usize::from(index);
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

/// The key of a word that is longer than eight bytes, or at the end of its string.
#[cold]
fn long_key(word: &[u8]) -> u64 {
    const HASH: FixedState = FixedState::with_seed(0x776f_7264);
    if word.len() <= 8 {
        let mut eight = [0; 8];
        eight[..word.len()].copy_from_slice(word);
        return u64::from_le_bytes(eight);
    }
    let mut hasher = HASH.build_hasher();
    hasher.write(word);
    hasher.finish()
}

/// Which of the bytes are separators, the first in the lowest bit: eight bytes at a time.
#[inline]
fn separators(bytes: &[u8; 64]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const SEPARATORS: u64 = 0x0101_0101_0101_0101 * SEPARATOR as u64;
    let (eights, _) = bytes.as_chunks::<8>();
    eights.iter().rev().fold(0, |mask, eight| {
        let other = u64::from_le_bytes(*eight) ^ SEPARATORS;
        // The highest bit of each byte that is zero, then those bits side by side.
        let equal = !(((other & LOW) + LOW) | other | LOW);
        mask << 8 | (equal >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// Appends numbers of `width` bits each, of which eight take `width` bytes.
pub(super) fn pack(indexes: &[u8], width: u32, out: &mut Vec<u8>) {
    match width {
        0 => {}
        1 => pack_in::<1>(indexes, out),
        2 => pack_in::<2>(indexes, out),
        3 => pack_in::<3>(indexes, out),
        4 => pack_in::<4>(indexes, out),
        5 => pack_in::<5>(indexes, out),
        6 => pack_in::<6>(indexes, out),
        7 => pack_in::<7>(indexes, out),
        _ => out.extend_from_slice(indexes),
    }
}

/// Halves the space between numbers three times: of eight in bytes, to pairs, to quads, to all side by side.
fn pack_in<const WIDTH: usize>(indexes: &[u8], out: &mut Vec<u8>) {
    let closer = |word: u64, lower: u64, gap: usize| word & lower | (word & !lower) >> gap;
    let side_by_side = |word: u64| {
        let pairs = closer(word, 0x00ff_00ff_00ff_00ff, 8 - WIDTH);
        let quads = closer(pairs, 0x0000_ffff_0000_ffff, 2 * (8 - WIDTH));
        closer(quads, 0x0000_0000_ffff_ffff, 4 * (8 - WIDTH))
    };
    let (eights, rest) = indexes.as_chunks::<8>();
    let start = out.len();
    let length = (indexes.len() * WIDTH).div_ceil(8);
    // Each word is written whole, and what is too much of it overwritten by the next.
    out.resize(start + length + 8, 0);
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for (eight, at) in eights.iter().chain([&last]).zip((start..).step_by(WIDTH)) {
        out[at..at + 8].copy_from_slice(&side_by_side(u64::from_le_bytes(*eight)).to_le_bytes());
    }
    out.truncate(start + length);
}

/// Reads what [`pack`] wrote. None where there are other bytes than it would write.
pub(super) fn unpack(packed: &[u8], width: u32, indexes: &mut [u8]) -> Option<()> {
    indexes.fill(0);
    let bytes = width as usize;
    let mask = u8::try_from((1_u32 << width) - 1).ok()?;
    let whole = indexes.len() / 8 * bytes;
    let word = |bytes: &[u8]| {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(eight)
    };
    let low = |word: u64| word.to_le_bytes()[0] & mask;
    let (head, tail) = packed.split_at_checked(whole)?;
    let (eights, rest) = indexes.as_chunks_mut::<8>();
    for (eight, packed) in eights.iter_mut().zip(head.chunks_exact(bytes.max(1))) {
        let word = word(packed);
        for (place, index) in eight.iter_mut().enumerate() {
            *index = low(word >> (place * bytes));
        }
    }
    if tail.len() != (rest.len() * bytes).div_ceil(8) {
        return None;
    }
    let mut word = word(tail);
    for index in rest {
        *index = low(word);
        word >>= width;
    }
    (word == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(words: &Words) -> Vec<Vec<u8>> {
        let mut indexes = words.indexes.iter();
        let (mut tails, mut strings) = (&words.tails[..], Vec::new());
        for (&count, &tail) in words.counts.iter().zip(&words.tail_lengths) {
            let mut string = Vec::new();
            indexes
                .by_ref()
                .take(usize::try_from(count).unwrap())
                .for_each(|&index| string.extend(words.word(index)));
            let (tail, rest) = tails.split_at(usize::try_from(tail).unwrap());
            string.extend(tail);
            tails = rest;
            strings.push(string);
        }
        strings
    }

    proptest! {
        #[test]
        fn words_join_to_what_was_split(strings in prop::collection::vec("[a-c ]{0,200}|[a-z]{6,12} [a-b]{9}( [ab]{9})*", 1..20)) {
            let strings = strings.iter().map(|string| string.as_bytes()).collect::<Vec<_>>();
            let mut words = Words::default();
            if words.split(strings.iter().copied()) {
                prop_assert_eq!(joined(&words), strings);
            } else {
                prop_assert_eq!(words.lengths.len(), MOST_WORDS);
            }
        }

        #[test]
        fn packing_is_undone(width in 0_u32..=8, indexes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mask = u8::try_from((1_u32 << width) - 1).unwrap();
            let indexes = indexes.iter().map(|index| index & mask).collect::<Vec<_>>();
            let (mut packed, mut again) = (Vec::new(), vec![0xff; indexes.len()]);
            pack(&indexes, width, &mut packed);
            prop_assert_eq!(packed.len(), (indexes.len() * width as usize).div_ceil(8));
            prop_assert_eq!(unpack(&packed, width, &mut again), Some(()));
            prop_assert_eq!(again, indexes);
        }

        #[test]
        fn separators_are_found(bytes in prop::collection::vec(prop_oneof![Just(b' '), any::<u8>()], 64)) {
            let bytes: [u8; 64] = bytes.try_into().unwrap();
            let expected = bytes.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(byte == SEPARATOR));
            prop_assert_eq!(separators(&bytes), expected);
        }
    }

    #[test]
    fn bits_that_are_not_used_are_zero() {
        assert_eq!(unpack(&[0b0000_0101], 1, &mut [0; 3]), Some(()));
        for wrong in [&[0b0000_1101][..], &[], &[1, 0]] {
            assert_eq!(unpack(wrong, 1, &mut [0; 3]), None, "{wrong:?}");
        }
    }

    #[test]
    fn words_that_share_a_key_stay_apart() {
        let mut words = Words::default();
        // A word that ends in zeros, and one of a hash's length; each again.
        let strings: [&[u8]; 4] = [b"a \0\0\0 ", b"a ", b"\0 abcdefghijk abcdefghijl ", b"abcdefghijk \0\0 "];
        assert!(words.split(strings));
        assert_eq!(joined(&words), strings);
    }
}
