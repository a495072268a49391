//! The words of a column, numbered in the order of first occurrence.
//!
//! A word ends with a separator, its only one.

use super::words::SEPARATOR;
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// The most words of a vocabulary.
pub(super) const MOST_WORDS: usize = 256;
/// Slots of the table: twice the words.
const SLOTS: usize = 1 << SLOTS_LOG2;
const SLOTS_LOG2: u32 = MOST_WORDS.ilog2() + 1;
/// The most steps of a look-up: hostile words cost a vocabulary, not time.
const MAX_PROBES: usize = 64;
/// In a slot without a word: no key.
const EMPTY: u64 = u64::MAX;
const SEPARATORS: u64 = 0x0101_0101_0101_0101 * SEPARATOR as u64;

/// Numbers words. Open addressing, from the home of a word's key on.
pub(super) struct Vocabulary {
    keys: [u64; SLOTS],
    indexes: [u8; SLOTS],
    /// The most that the text may take.
    affordable: usize,
    /// The words one after the other, and the length of each.
    pub(super) text: Vec<u8>,
    pub(super) lengths: Vec<u64>,
    /// Where each word ends in the text.
    ends: Vec<usize>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Vocabulary {
            keys: [EMPTY; SLOTS],
            indexes: [0; SLOTS],
            affordable: 0,
            text: Vec::new(),
            lengths: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl Vocabulary {
    /// No words, and room for so many bytes of them.
    pub(super) fn begin(&mut self, affordable: usize) {
        self.keys.fill(EMPTY);
        self.affordable = affordable;
        self.text.clear();
        self.lengths.clear();
        self.ends.clear();
    }

    /// The number of a word of `length` bytes, if it is at home. `last` are the eight bytes up to its end.
    #[inline]
    pub(super) fn at_home(&self, last: [u8; 8], length: usize) -> Option<u8> {
        let key = key(last, length)?;
        let home = home(key);
        (self.keys[home] == key).then(|| self.indexes[home])
    }

    /// The number of a word, which is added if it is new; `None` where that takes too long, or there is no room.
    #[inline(never)]
    pub(super) fn number(&mut self, word: &[u8]) -> Option<u8> {
        let key = short_key(word).unwrap_or_else(|| long_key(word));
        for step in 0..MAX_PROBES {
            let slot = (home(key) + step) % SLOTS;
            let index = self.indexes[slot];
            if self.keys[slot] == EMPTY {
                return self.add(word, key, slot);
            }
            if self.keys[slot] == key && (word.len() <= 8 || self.word(index) == word) {
                return Some(index);
            }
        }
        None
    }

    fn add(&mut self, word: &[u8], key: u64, slot: usize) -> Option<u8> {
        let index = u8::try_from(self.lengths.len()).ok()?;
        if self.text.len() + word.len() > self.affordable {
            return None;
        }
        (self.keys[slot], self.indexes[slot]) = (key, index);
        self.text.extend_from_slice(word);
        self.lengths.push(word.len() as u64);
        self.ends.push(self.text.len());
        Some(index)
    }

    /// The word of a number.
    pub(super) fn word(&self, index: u8) -> &[u8] {
        let index = usize::from(index);
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

/// The key of a word of up to eight bytes: itself, filled up with separators in front. Their bits are turned, so that its
/// highest byte is zero.
#[inline]
fn key(last: [u8; 8], length: usize) -> Option<u64> {
    const OWN: [u64; 9] = {
        let mut own = [0; 9];
        let mut length = 1;
        while length < own.len() {
            own[length] = u64::MAX << (64 - 8 * length);
            length += 1;
        }
        own
    };
    Some((u64::from_le_bytes(last) ^ SEPARATORS) & OWN.get(length)?)
}

fn short_key(word: &[u8]) -> Option<u64> {
    let mut last = [0; 8];
    last[8_usize.checked_sub(word.len())?..].copy_from_slice(word);
    key(last, word.len())
}

/// The key of a longer word: its highest bits are no shorter one's, nor those of [`EMPTY`].
fn long_key(word: &[u8]) -> u64 {
    const HASH: FixedState = FixedState::with_seed(0x776f_7264);
    let mut hasher = HASH.build_hasher();
    hasher.write(word);
    hasher.finish() >> 2 | 1 << 63
}

/// Where a key is looked for first.
#[inline]
fn home(key: u64) -> usize {
    usize::try_from(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS_LOG2)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_alike_stay_apart() {
        let mut words = [" ", "a ", "\0a ", "\0\0a ", "a\0 ", "abcdefg ", "abcdefgh ", "abcdefgi "]
            .map(String::from)
            .to_vec();
        words.extend((0..100).map(|number| format!("{number} ")));
        words.extend((0..100).map(|number| format!("longer than eight {number} ").replacen(' ', "_", 3)));
        let mut vocabulary = Vocabulary::default();
        vocabulary.begin(usize::MAX);
        for _ in 0..2 {
            for (word, index) in words.iter().zip(0..) {
                assert_eq!(vocabulary.number(word.as_bytes()), Some(index), "{word:?}");
                assert_eq!(vocabulary.word(index), word.as_bytes());
                let mut last = [b'x'; 8];
                let own = word.len().min(8);
                last[8 - own..].copy_from_slice(&word.as_bytes()[word.len() - own..]);
                assert!([Some(index), None].contains(&vocabulary.at_home(last, word.len())), "{word:?}");
                assert!(word.len() <= 8 || vocabulary.at_home(last, word.len()).is_none());
            }
        }
        assert_eq!(vocabulary.lengths.len(), words.len());
    }

    #[test]
    fn is_limited_in_words_and_bytes() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.begin(usize::MAX);
        let words = (0..1000).map(|number| format!("{number} "));
        assert_eq!(words.filter(|word| vocabulary.number(word.as_bytes()).is_some()).count(), MOST_WORDS);
        vocabulary.begin(10);
        assert_eq!(vocabulary.number(b"seven_ "), Some(0));
        assert_eq!(vocabulary.number(b"fou "), None);
        assert_eq!(vocabulary.number(b"tw "), Some(1));
    }
}
