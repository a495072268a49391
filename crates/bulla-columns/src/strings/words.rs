//! Texts of few different words: each string is a number of words of a vocabulary, one after the other, and then a tail.
//!
//! The writer cuts words so that each ends with a space and has no other. A reader does not rely on that: to the format a word is
//! any string of at least one byte.

use super::super::bitpack::{packed_length, width_of};
use super::super::numbers::log2_sixteenths;
use super::chunks::BEFORE;
use super::chunks::{CHUNK, LONGEST, SEPARATOR, make_room};
use super::parallel::Parallel;
use super::vocabulary::{MOST_WORDS, Vocabulary};

/// Texts together shorter than this are not worth a vocabulary.
const SHORTEST: usize = 256;
/// The most bytes of a vocabulary. So many bytes of words and tails are allowed in any case; beyond that they may be a quarter of
/// the text met so far.
const FREE: usize = 4 * 1024;
/// Below so many numbers of words a compressor is not considered.
const COMPRESSIBLE: usize = 64;
/// A compressor's gain is estimated on one of so many numbers, and on this many at most.
const SAMPLED: usize = 8;
const SAMPLE: usize = 512;

/// Splits texts into words. Holds only memory to be used again.
pub(super) struct Words {
    /// Looks words up side by side; `None` where the processor cannot, or a test has them looked up one by one.
    parallel: Option<Parallel>,
    pub(super) vocabulary: Vocabulary,
    /// The numbers of all strings' words.
    pub(super) indexes: Vec<u8>,
    /// By string, how many words it has.
    pub(super) counts: Vec<u64>,
    pub(super) tails: Vec<u8>,
    pub(super) tail_lengths: Vec<u64>,
}

impl Default for Words {
    fn default() -> Self {
        Self::with(Parallel::detect())
    }
}

impl Words {
    fn with(parallel: Option<Parallel>) -> Self {
        Words {
            parallel,
            vocabulary: Vocabulary::default(),
            indexes: Vec::new(),
            counts: Vec::new(),
            tails: Vec::new(),
            tail_lengths: Vec::new(),
        }
    }

    /// Whether `strings` are texts of few words. Then they have been split, and take less than a quarter of their length that
    /// way.
    pub(super) fn split_all(&mut self, strings: &[&[u8]]) -> bool {
        let total: usize = strings.iter().map(|string| string.len()).sum();
        total >= SHORTEST && self.split(strings, total) && self.length() < total / 4
    }

    /// Bytes that the strings take, about.
    fn length(&self) -> usize {
        self.packed_length() + self.vocabulary.text.len() + self.tails.len()
    }

    /// How many bits a packed number takes.
    pub(super) fn width(&self) -> u32 {
        width_of(self.vocabulary.lengths.len().saturating_sub(1) as u64)
    }

    /// How many bytes all packed numbers take.
    pub(super) fn packed_length(&self) -> usize {
        packed_length(self.indexes.len(), self.width())
    }

    /// Whether a general compressor is likely to do better than packing. It has to save a third to be worth its time, or a
    /// sixteenth where time does not count.
    pub(super) fn are_compressible(&self, patient: bool) -> bool {
        if self.width() <= 2 || self.indexes.len() < COMPRESSIBLE {
            return false;
        }
        let length = (self.indexes.len() / SAMPLED).clamp(COMPRESSIBLE, SAMPLE);
        let from = (self.indexes.len() - length) / 2;
        let sample = &self.indexes[from..from + length];
        let (entropy, packed) = (entropy(sample), length as u64 * 16 * u64::from(self.width()));
        let uneven = if patient { entropy * 16 < packed * 15 } else { entropy * 3 < packed * 2 };
        uneven || foretold(sample) > sample.len() / 2
    }

    /// Splits strings of `total` bytes; false where there are too many different words, or too much text outside of words.
    fn split(&mut self, strings: &[&[u8]], total: usize) -> bool {
        let free = FREE.min(total / 4);
        self.vocabulary.begin(free);
        [&mut self.indexes, &mut self.tails].into_iter().for_each(Vec::clear);
        [&mut self.counts, &mut self.tail_lengths].into_iter().for_each(Vec::clear);
        let mut met = 0;
        strings.iter().all(|string| {
            met += string.len();
            self.split_one(string).is_some()
                && self.vocabulary.text.len() + self.tails.len() <= free.max(met / 4)
        })
    }

    fn split_one(&mut self, string: &[u8]) -> Option<()> {
        let Words { vocabulary, indexes, .. } = self;
        let before = indexes.len();
        let end = match self.parallel {
            Some(parallel) => parallel.number_words(string, vocabulary, indexes),
            None => number_words(string, vocabulary, indexes),
        }?;
        self.counts.push((self.indexes.len() - before) as u64);
        self.tails.extend_from_slice(&string[end..]);
        self.tail_lengths.push((string.len() - end) as u64);
        Some(())
    }
}

/// Appends the numbers of a string's words, and returns where the last one ends. `None` where the vocabulary takes a word no
/// more, or there is no separator for long.
fn number_words(string: &[u8], vocabulary: &mut Vocabulary, indexes: &mut Vec<u8>) -> Option<usize> {
    let (mut start, mut filled) = (0, indexes.len());
    let mut edge = [0; BEFORE + CHUNK];
    for at in (0..string.len()).step_by(CHUNK) {
        let window = window(string, at, &mut edge);
        let mut mask = separators(window);
        let words = mask.count_ones() as usize;
        make_room(indexes, filled);
        for index in &mut indexes[filled..filled + words] {
            let place = mask.trailing_zeros() as usize % CHUNK;
            mask &= mask - 1;
            let end = at + place + 1;
            let last = *window[place + 1..].first_chunk::<BEFORE>()?;
            *index = match vocabulary.at_home(last, end - start) {
                Some(index) => index,
                None => vocabulary.number(&string[..end], end - start)?,
            };
            start = end;
        }
        filled += words;
        if at > start + LONGEST {
            return None;
        }
    }
    indexes.truncate(filled);
    Some(start)
}

/// The chunk of a string that begins at `at`, with the bytes before it. Beyond the string's edges there are zeros.
#[inline]
fn window<'a>(string: &'a [u8], at: usize, edge: &'a mut [u8; BEFORE + CHUNK]) -> &'a [u8; BEFORE + CHUNK] {
    if let Some(window) = at.checked_sub(BEFORE).and_then(|from| string[from..].first_chunk()) {
        return window;
    }
    let (from, to) = (at.saturating_sub(BEFORE), string.len().min(at + CHUNK));
    *edge = [0; BEFORE + CHUNK];
    edge[from + BEFORE - at..to + BEFORE - at].copy_from_slice(&string[from..to]);
    edge
}

/// The order-0 entropy of all numbers together, in sixteenths of a bit.
fn entropy(indexes: &[u8]) -> u64 {
    let mut counts = [0_u32; MOST_WORDS];
    indexes.iter().for_each(|&index| counts[usize::from(index)] += 1);
    let own = counts.iter().map(|&count| u64::from(count) * log2_sixteenths(count)).sum::<u64>();
    let total = u32::try_from(indexes.len()).unwrap_or(u32::MAX);
    (u64::from(total) * log2_sixteenths(total)).saturating_sub(own)
}

/// How many numbers follow their predecessor as they did when it was met last: what an LZ compressor would predict.
fn foretold(indexes: &[u8]) -> usize {
    let mut follows = [0; MOST_WORDS];
    let pairs = indexes.windows(2);
    pairs.filter(|pair| std::mem::replace(&mut follows[usize::from(pair[0])], pair[1]) == pair[1]).count()
}

/// Which bytes of a window's chunk are separators, as a mask with the first byte in the lowest bit. Looks at eight bytes at a
/// time.
#[inline]
fn separators(window: &[u8; BEFORE + CHUNK]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const SEPARATORS: u64 = 0x0101_0101_0101_0101 * SEPARATOR as u64;
    let (eights, _) = window[BEFORE..].as_chunks::<8>();
    eights.iter().rev().fold(0, |mask, eight| {
        let other = u64::from_le_bytes(*eight) ^ SEPARATORS;
        // Sets the highest bit of each byte that is zero, then gathers these bits into one byte by a multiplication.
        let equal = !(((other & LOW) + LOW) | other | LOW);
        mask << 8 | (equal >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
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
                .for_each(|&index| string.extend(words.vocabulary.word(index)));
            let (tail, rest) = tails.split_at(usize::try_from(tail).unwrap());
            string.extend(tail);
            tails = rest;
            strings.push(string);
        }
        strings
    }

    /// The lanes that every processor has, and those of this one if there are any.
    fn lanes() -> impl Iterator<Item = Parallel> {
        [Some(Parallel::Plain), Parallel::detect()].into_iter().flatten()
    }

    /// With all lanes, and one word after the other.
    fn all() -> impl Iterator<Item = Words> {
        lanes().map(Some).chain([None]).map(Words::with)
    }

    proptest! {
        #[test]
        fn words_join_to_what_was_split(strings in prop::collection::vec("[a-c ]{0,200}|[a-z]{6,12} [a-b]{9}( [ab]{9})*|([ab]{0,9} ){30}[^ ]{0,100} a", 1..20)) {
            let strings = strings.iter().map(|string| string.as_bytes()).collect::<Vec<_>>();
            let mut one_by_one = Words::with(None);
            let split = one_by_one.split(&strings, usize::MAX);
            if split {
                prop_assert_eq!(joined(&one_by_one), &strings[..]);
            } else {
                prop_assert_eq!(one_by_one.vocabulary.lengths.len(), MOST_WORDS);
            }
            for mut words in lanes().map(|lanes| Words::with(Some(lanes))) {
                prop_assert_eq!(words.split(&strings, usize::MAX), split);
                prop_assert_eq!(&words.vocabulary.text, &one_by_one.vocabulary.text);
                prop_assert_eq!(&words.vocabulary.lengths, &one_by_one.vocabulary.lengths);
                if split {
                    prop_assert_eq!(joined(&words), &strings[..]);
                    prop_assert_eq!(&words.indexes, &one_by_one.indexes);
                }
            }
        }

        #[test]
        fn separators_are_found(bytes in prop::collection::vec(prop_oneof![Just(b' '), any::<u8>()], BEFORE + CHUNK)) {
            let bytes: [u8; BEFORE + CHUNK] = bytes.try_into().unwrap();
            let expected = bytes[BEFORE..].iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(byte == SEPARATOR));
            prop_assert_eq!(separators(&bytes), expected);
        }
    }

    #[test]
    fn words_that_share_a_key_stay_apart() {
        // A word that ends in zeros, and one of a hash's length; each again.
        let strings: [&[u8]; 4] = [b"a \0\0\0 ", b"a ", b"\0 abcdefghijk abcdefghijl ", b"abcdefghijk \0\0 "];
        for mut words in all() {
            assert!(words.split(&strings, usize::MAX));
            assert_eq!(joined(&words), strings);
        }
    }

    #[test]
    fn words_that_differ_in_a_byte_stay_apart() {
        for place in 0..7 {
            let bytes = (0..=u8::MAX).filter(|&byte| byte != SEPARATOR);
            let text = bytes.flat_map(|byte| {
                let mut word = *b"abcdefg ";
                word[place] = byte;
                word
            });
            let text = text.collect::<Vec<_>>().repeat(5);
            for mut words in all() {
                assert!(words.split(&[&text], usize::MAX));
                assert!(words.indexes.iter().copied().eq((0..5).flat_map(|_| 0..u8::MAX)), "{place}");
            }
        }
    }

    #[test]
    fn long_words_that_end_as_a_short_one_stay_apart() {
        for length in 1..LONGEST + CHUNK {
            let text = ["a ", &"x".repeat(length), "a a "].concat();
            for mut words in all() {
                assert!(words.split(&[text.as_bytes()], usize::MAX));
                assert_eq!(words.indexes, [0, 1, 0], "{length}");
            }
        }
    }

    /// `make test` says where it cannot.
    #[cfg(target_os = "linux")]
    #[test]
    fn words_are_numbered_side_by_side_where_the_processor_can() {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        assert_eq!(Parallel::detect().is_some(), processors.contains(" avx512_vbmi2"));
    }

    #[test]
    fn words_of_every_length_wherever_a_chunk_ends() {
        for shift in 0..CHUNK {
            let lengths = (0..24).chain([100, 200]).chain(0..24);
            let text = lengths.fold("x".repeat(shift), |text, length| text + " " + &"a".repeat(length));
            for mut words in all() {
                assert!(words.split(&[text.as_bytes()], usize::MAX));
                assert_eq!(joined(&words), [text.as_bytes()]);
                assert_eq!(words.vocabulary.lengths.len(), 26 + usize::from(shift > 0));
            }
        }
    }

    #[test]
    fn what_is_not_of_few_words_is_given_up_early() {
        let text = "some words ".repeat(500);
        for mut words in all() {
            assert!(words.split_all(&[text.as_bytes()]));
            let with_a_gap = [&text, &"x".repeat(2 * LONGEST)[..], " ", &text].concat();
            assert!(!words.split_all(&[with_a_gap.as_bytes()]));
            let without_words = vec![&b"x".repeat(100)[..]; 1000].concat();
            let without_words = without_words.chunks(100).collect::<Vec<_>>();
            assert!(!words.split_all(&without_words));
            assert!(words.counts.len() <= FREE / 100 + 1, "{} were split", words.counts.len());
        }
    }
}
