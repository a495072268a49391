//! Chooses a string column's form and writes it. The choice depends on the strings alone.

use super::super::blob::BlobEncoder;
use super::super::numbers::NumberEncoder;
use super::super::table::{Table, is_hopeless};
use super::plain::Texts;
use super::templates::Templates;
use super::words::Words;
use super::{BYTES, CONSTANT, DICTIONARY, PLAIN, WORDS, packed};
use crate::account::Account;
use bulla_proof::varint;
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// Up to so many distinct strings are found by comparing, and not by their hashes.
const FEW: usize = 8;
/// When the first so many strings are all different, and longer than this, no dictionary is tried.
const HOPELESS: usize = 64;
const LONG: usize = 256;

/// Writes columns of strings. Holds only memory to be used again.
#[derive(Default)]
pub(crate) struct StringEncoder {
    table: Table,
    /// Where each distinct string is met first.
    firsts: Vec<usize>,
    indexes: Vec<u64>,
    texts: Texts,
    words: Words,
    templates: Templates,
    met: Met,
}

/// What is known of which strings a column has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Met {
    /// All are the first one.
    One,
    /// Those in `firsts`.
    Firsts,
    #[default]
    Unknown,
}

impl StringEncoder {
    /// Appends a column of `strings`.
    pub(crate) fn encode(
        &mut self,
        strings: &[&[u8]],
        numbers: &mut NumberEncoder,
        blobs: &mut BlobEncoder,
        out: &mut Vec<u8>,
    ) {
        self.met = Met::Unknown;
        let Some(&first) = strings.first() else { return };
        if strings.len() == 1 && self.words.split_all(strings) {
            self.met = Met::One;
            out.push(WORDS);
            self.write_words(numbers, blobs, out);
        } else if strings[1..].iter().all(|&string| string == first) {
            self.met = Met::One;
            out.push(CONSTANT);
            varint::push(first.len() as u64, out);
            blobs.encode(first, out);
        } else if self.number(strings, &mut blobs.account) && self.dictionary_is_smaller(strings) {
            out.push(DICTIONARY);
            let start = out.len();
            varint::push(self.firsts.len() as u64, out);
            let firsts = std::mem::take(&mut self.firsts);
            self.plain(firsts.iter().map(|&index| strings[index]), numbers, blobs, out);
            self.firsts = firsts;
            blobs.account.dictionaries += out.len() - start;
            numbers.encode_indexes(&self.indexes, blobs, out);
        } else if self.words.split_all(strings) {
            out.push(WORDS);
            self.write_words(numbers, blobs, out);
        } else if !self.templates.encode(strings, numbers, blobs, out) {
            out.push(PLAIN);
            self.plain(strings.iter().copied(), numbers, blobs, out);
        }
    }

    /// Calls `tell` with the strings of the column that was encoded last: with each distinct one once where they are known, and
    /// otherwise with all of them.
    pub(crate) fn tell(&self, strings: &[&[u8]], mut tell: impl FnMut(&[u8])) {
        match self.met {
            Met::One => strings.iter().take(1).for_each(|string| tell(string)),
            Met::Firsts => self.firsts.iter().for_each(|&first| tell(strings[first])),
            Met::Unknown => strings.iter().for_each(|string| tell(string)),
        }
    }

    fn plain<'a>(
        &mut self,
        strings: impl Iterator<Item = &'a [u8]>,
        numbers: &mut NumberEncoder,
        blobs: &mut BlobEncoder,
        out: &mut Vec<u8>,
    ) {
        self.texts.clear();
        strings.for_each(|string| self.texts.push(string));
        self.texts.write(numbers, blobs, out);
    }

    fn write_words(&self, numbers: &mut NumberEncoder, blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        let Words { vocabulary, indexes, counts, tails, tail_lengths, .. } = &self.words;
        let start = out.len();
        varint::push(vocabulary.lengths.len() as u64, out);
        numbers.encode(&vocabulary.lengths, blobs, out);
        blobs.store(&vocabulary.text, out);
        blobs.account.dictionaries += out.len() - start;
        numbers.encode(counts, blobs, out);
        numbers.encode(tail_lengths, blobs, out);
        blobs.encode(tails, out);
        let start = out.len();
        if blobs.compresses() && self.words.are_compressible(blobs.is_patient()) {
            out.push(BYTES);
            blobs.encode(indexes, out);
            if out.len() - start <= self.words.packed_length() {
                return;
            }
            out.truncate(start);
        }
        let width = self.words.width();
        out.push(u8::try_from(width).expect("a number of words has a byte"));
        packed::pack(indexes, width, out);
    }

    /// Numbers the distinct strings; false where there are too many.
    fn number(&mut self, strings: &[&[u8]], account: &mut Account) -> bool {
        let numbered = self.number_all(strings);
        account.looked_up += self.indexes.len() as u64;
        account.found += (self.indexes.len() - self.firsts.len()) as u64;
        numbered
    }

    fn number_all(&mut self, strings: &[&[u8]]) -> bool {
        let long = strings.iter().take(HOPELESS).map(|string| string.len()).sum::<usize>() > HOPELESS * LONG;
        if strings.len() > FEW {
            self.table.clear();
        }
        self.firsts.clear();
        self.indexes.clear();
        for (place, &string) in strings.iter().enumerate() {
            let Some(index) = self.index(strings, string) else { return false };
            if index == self.firsts.len() {
                self.firsts.push(place);
            }
            self.indexes.push(index as u64);
            let met = place + 1;
            // Long strings take long to hash: where the first ones are all new, the others are not looked at.
            let all_new = met == HOPELESS && self.firsts.len() == met && long;
            if all_new || is_hopeless(met, self.firsts.len()) {
                return false;
            }
        }
        self.met = Met::Firsts;
        true
    }

    /// The number of a string, that of the next new one if it is new.
    fn index(&mut self, strings: &[&[u8]], string: &[u8]) -> Option<usize> {
        const HASH: FixedState = FixedState::with_seed(0x6275_6c6c_6121);
        let firsts = &self.firsts;
        if strings.len() <= FEW {
            let known = firsts.iter().position(|&first| strings[first] == string);
            return Some(known.unwrap_or(firsts.len()));
        }
        let mut hasher = HASH.build_hasher();
        hasher.write(string);
        // The table takes a slot from the high bits and compares the low half, so all of them have to be well mixed.
        let hash = hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.table.number(hash, |index| strings[firsts[index]] == string)
    }

    /// Whether the distinct strings and their indexes take much less than all strings do, before compression. A little less is
    /// not enough, since a compressor gains from strings that repeat, too.
    fn dictionary_is_smaller(&self, strings: &[&[u8]]) -> bool {
        let all: usize = strings.iter().map(|string| string.len() + 1).sum();
        let distinct: usize = self.firsts.iter().map(|&index| strings[index].len() + 1).sum();
        let width = (self.firsts.len() - 1).ilog2() as usize + 1;
        distinct + strings.len() * width / 8 < all - all / 8
    }
}
