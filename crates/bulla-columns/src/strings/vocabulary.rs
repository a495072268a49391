//! The words of a column, numbered in the order of first occurrence.
//!
//! A word ends with a separator, its only one.

use super::chunks::SEPARATOR;
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// The most words of a vocabulary.
pub(super) const MOST_WORDS: usize = 256;
/// Slots of the table: eight times the words, so that hardly any is away from home.
pub(super) const SLOTS: usize = 1 << SLOTS_LOG2;
const SLOTS_LOG2: u32 = MOST_WORDS.ilog2() + 3;
/// The most steps of a look-up: hostile words cost a vocabulary, not time.
const MAX_PROBES: usize = 64;
/// The bits of a slot that are a key; its word's number is above them.
pub(super) const KEY: u64 = u64::MAX >> 8;
/// In a slot without a word. No key of a short word has a lowest byte and a zero above it.
const EMPTY: u64 = 1;
const SEPARATORS: u64 = 0x0101_0101_0101_0101 * SEPARATOR as u64;
/// A key's home are the highest bits of its product with this.
pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
pub(super) const HOME_SHIFT: u32 = u64::BITS - SLOTS_LOG2;

/// Numbers words. Open addressing, from the home of a word's key on.
pub(super) struct Vocabulary {
    pub(super) slots: [u64; SLOTS],
    /// Which slots have words.
    places: Vec<usize>,
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
            slots: [EMPTY; SLOTS],
            places: Vec::new(),
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
        self.places.drain(..).for_each(|place| self.slots[place] = EMPTY);
        self.affordable = affordable;
        self.text.clear();
        self.lengths.clear();
        self.ends.clear();
    }

    /// The number of a word of `length` bytes, if it is at home. `last` are the eight bytes up to its end.
    #[inline]
    pub(super) fn at_home(&self, last: [u8; 8], length: usize) -> Option<u8> {
        let key = key(last, length)?;
        let slot = self.slots[home(key)];
        (slot & KEY == key).then(|| number_in(slot))
    }

    /// The number of the word of so many bytes up to the end of `text`, which is added if it is new; `None` where that
    /// takes too long, or there is no room.
    #[inline(never)]
    pub(super) fn number(&mut self, text: &[u8], length: usize) -> Option<u8> {
        let word = &text[text.len() - length..];
        let last = text.last_chunk().copied().unwrap_or_else(|| filled_up(word));
        let key = key(last, length).unwrap_or_else(|| long_key(word));
        for step in 0..MAX_PROBES {
            let place = (home(key) + step) % SLOTS;
            let slot = self.slots[place];
            if slot == EMPTY {
                return self.add(word, key, place);
            }
            if slot & KEY == key && (word.len() <= 8 || self.word(number_in(slot)) == word) {
                return Some(number_in(slot));
            }
        }
        None
    }

    fn add(&mut self, word: &[u8], key: u64, place: usize) -> Option<u8> {
        let index = u8::try_from(self.lengths.len()).ok()?;
        if self.text.len() + word.len() > self.affordable {
            return None;
        }
        self.slots[place] = key | u64::from(index) << KEY.count_ones();
        self.places.push(place);
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

/// A word of fewer than eight bytes, and zeros in front.
fn filled_up(word: &[u8]) -> [u8; 8] {
    let mut last = [0; 8];
    last[8 - word.len()..].copy_from_slice(word);
    last
}

/// The key of a longer word: its lowest bytes are no shorter one's, nor those of [`EMPTY`].
fn long_key(word: &[u8]) -> u64 {
    const HASH: FixedState = FixedState::with_seed(0x776f_7264);
    let mut hasher = HASH.build_hasher();
    hasher.write(word);
    hasher.finish() << 16 & KEY | 2
}

/// Where a key is looked for first.
#[inline]
fn home(key: u64) -> usize {
    usize::try_from(key.wrapping_mul(SPREAD) >> HOME_SHIFT).unwrap_or(0)
}

/// The number of a slot's word.
#[inline]
fn number_in(slot: u64) -> u8 {
    slot.to_le_bytes()[7]
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
                assert_eq!(vocabulary.number(word.as_bytes(), word.len()), Some(index), "{word:?}");
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
        assert_eq!(
            words.filter(|word| vocabulary.number(word.as_bytes(), word.len()).is_some()).count(),
            MOST_WORDS
        );
        vocabulary.begin(10);
        assert_eq!(vocabulary.number(b"seven_ ", 7), Some(0));
        assert_eq!(vocabulary.number(b"fou ", 4), None);
        assert_eq!(vocabulary.number(b"tw ", 3), Some(1));
    }
}
