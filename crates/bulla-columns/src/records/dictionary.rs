//! The words and phrases that a block has in common, by their bytes.

use super::items::MOST_ITEMS;
use super::window::Window;
use crate::strings::Distinct;

/// A look-up takes at most so many steps, and a word for which there is no place within them is not found: whoever chooses words
/// shall not choose how long that takes.
const MOST_STEPS: usize = 8;
/// There are so many places for each word.
const ROOM: usize = 4;

const _: () = assert!(MOST_ITEMS < u16::MAX as usize);

/// Numbers words from 0, as many as a block may have. Used again, it keeps its memory.
#[derive(Default)]
pub(super) struct Dictionary {
    /// Of words that fit a window one more than the number; a power of two of them.
    places: Vec<u16>,
    /// By number, such a word's bytes.
    keys: Vec<u128>,
    /// The longer ones, and their numbers.
    long: Distinct,
    numbers: Vec<u16>,
    /// Whether there is a phrase.
    has_phrases: bool,
}

impl Dictionary {
    pub(super) fn clear(&mut self) {
        let Dictionary { places, keys, long, numbers, has_phrases } = self;
        places.clear();
        keys.clear();
        long.clear();
        numbers.clear();
        *has_phrases = false;
    }

    /// Replaces what is here by these words.
    pub(super) fn fill(&mut self, words: &[&[u8]]) {
        self.clear();
        self.places.resize((words.len() * ROOM).next_power_of_two().max(2), 0);
        for (&word, number) in words.iter().zip(0..) {
            self.has_phrases |= word.contains(&b' ');
            let key = Window::at(word, 0).first(word.len());
            self.keys.push(key);
            if word.len() > Window::BYTES {
                self.long.number(word);
                self.numbers.push(number);
            } else if let Some(place) = self.steps(key).find(|place| self.places[*place] == 0) {
                self.places[place] = number + 1;
            }
        }
    }

    /// The number of the word that has these bytes, and zeros behind them.
    #[inline]
    pub(super) fn short(&self, key: u128) -> Option<u16> {
        for place in self.steps(key) {
            let number = self.places[place].checked_sub(1)?;
            if self.keys[usize::from(number)] == key {
                return Some(number);
            }
        }
        None
    }

    /// The number of the word that has these bytes.
    #[inline]
    pub(super) fn word(&self, word: &[u8]) -> Option<u16> {
        match word.len() {
            0..=Window::BYTES => self.short(Window::at(word, 0).first(word.len())),
            _ if self.numbers.is_empty() => None,
            _ => Some(self.numbers[self.long.find(word)?]),
        }
    }

    /// The number of the phrase that has these bytes.
    #[inline]
    pub(super) fn phrase(&self, phrase: &[u8]) -> Option<u16> {
        if self.has_phrases { self.word(phrase) } else { None }
    }

    /// Where a word may be.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a hash is of parts, and of it some bits are taken")]
    fn steps(&self, key: u128) -> impl Iterator<Item = usize> + use<> {
        let (low, high) = (key as u64, (key >> 64) as u64);
        let hash = (low ^ high.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let steps = if self.places.is_empty() { 0 } else { MOST_STEPS };
        let last = self.places.len().wrapping_sub(1);
        // All bytes of the key have their part in the highest bits.
        let first = hash >> (u64::BITS - self.places.len().trailing_zeros().min(u64::BITS - 1));
        (0..steps).map(move |step| (first as usize + step) & last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_their_bytes() {
        let mut dictionary = Dictionary::default();
        assert_eq!(dictionary.word(b"a"), None);
        let words = (0..700).map(|number| match number % 3 {
            0 => format!("{number:x}"),
            1 => format!("a word of more bytes {number}"),
            _ => "w".repeat(number / 40 + 1) + &number.to_string(),
        });
        let words = words.collect::<Vec<_>>();
        dictionary.fill(&words.iter().map(String::as_bytes).collect::<Vec<_>>());
        let of = |found: fn(&Dictionary, &[u8]) -> Option<u16>| {
            words
                .iter()
                .zip(0..)
                .filter(|(word, number)| found(&dictionary, word.as_bytes()) == Some(*number))
                .count()
        };
        // With four places for a word, next to none is left out.
        assert!(of(Dictionary::word) > 695, "{}", of(Dictionary::word));
        assert_eq!(of(Dictionary::phrase), of(Dictionary::word));
        for word in &words {
            assert_eq!(dictionary.word(format!("{word}~").as_bytes()), None);
        }
        dictionary.fill(&[b"word"]);
        assert_eq!((dictionary.word(b"word"), dictionary.phrase(b"word")), (Some(0), None));
    }
}
