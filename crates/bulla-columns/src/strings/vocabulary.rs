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
/// The most steps of a look-up. Words that were chosen to collide cost the column its vocabulary, and no time.
const MAX_PROBES: usize = 64;
/// The bits of a slot that hold a word's key; the word's number is in the highest byte.
pub(super) const KEY: u64 = u64::MAX >> 8;
/// What a slot without a word holds. No short word's key has a lowest byte that is not zero and a zero above it, since a separator
/// stands at a word's end alone.
const EMPTY: u64 = 1;
const SEPARATORS: u64 = 0x0101_0101_0101_0101 * SEPARATOR as u64;
/// The highest bits of a key's product with this say in which slot the key is looked for first: its home.
pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
pub(super) const HOME_SHIFT: u32 = u64::BITS - SLOTS_LOG2;

/// Numbers words, by open addressing from the home of a word's key on.
pub(super) struct Vocabulary {
    pub(super) slots: [u64; SLOTS],
    /// Which slots have words, so that these alone need be emptied.
    places: Vec<usize>,
    /// The most bytes that the text of all words may take.
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
    /// Forgets all words. From now on so many bytes of them are taken.
    pub(super) fn begin(&mut self, affordable: usize) {
        self.places.drain(..).for_each(|place| self.slots[place] = EMPTY);
        self.affordable = affordable;
        self.text.clear();
        self.lengths.clear();
        self.ends.clear();
    }

    /// The number of a word of `length` bytes whose last eight bytes, or those up to its end, are `last`; `None` where it is not in
    /// its home slot, be it elsewhere or new.
    #[inline]
    pub(super) fn at_home(&self, last: [u8; 8], length: usize) -> Option<u8> {
        let key = key(last, length)?;
        let slot = self.slots[home(key)];
        (slot & KEY == key).then(|| number_in(slot))
    }

    /// The number of the word that is the last `length` bytes of `text`, which is added if it is new. `None` where the look-up
    /// takes too many steps, or there is no room for another word.
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

/// The key of a word of up to eight bytes, of which `last` are the last ones: the word itself, with separators in front of it, and
/// all of it XORed with separators. The word's own separator at its end makes the highest byte zero, which leaves that for the
/// number.
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

/// A word of fewer than eight bytes with zeros in front.
fn filled_up(word: &[u8]) -> [u8; 8] {
    let mut last = [0; 8];
    last[8 - word.len()..].copy_from_slice(word);
    last
}

/// The key of a longer word, from its hash. Its lowest bytes are 2 and 0, which neither a short word's key nor [`EMPTY`] begins
/// with.
fn long_key(word: &[u8]) -> u64 {
    const HASH: FixedState = FixedState::with_seed(0x776f_7264);
    let mut hasher = HASH.build_hasher();
    hasher.write(word);
    hasher.finish() << 16 & KEY | 2
}

/// The slot in which a key is looked for first.
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
