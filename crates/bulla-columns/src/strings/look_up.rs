//! Words of a text and their numbers, whatever the lanes: the separators of 64 bytes are found together, and the words
//! between them looked up eight at a time.
//!
//! All of it but what is rare is inlined into the caller, which is compiled for what the lanes are made of.

use super::chunks::{CHUNK, LONGEST, SEPARATOR, make_room};
use super::lanes::{LANES, Lanes};
use super::vocabulary::{KEY, SPREAD, Vocabulary};

/// The numbers of a register's bytes.
const PLACES: [u8; CHUNK] = {
    let mut places = [0; CHUNK];
    let mut place = 0;
    while place < CHUNK {
        places[place] = place.to_le_bytes()[0];
        place += 1;
    }
    places
};

/// The words that end in a chunk of a string: a bit, or a byte, for each.
struct Words {
    count: usize,
    /// Which are not found where they would be at home.
    missed: u64,
    /// Where in the chunk each ends.
    ends: [u8; CHUNK],
}

/// As `words::number_words`, and the same numbers.
#[inline(always)]
pub(super) fn number_words<L: Lanes>(
    lanes: L,
    string: &[u8],
    vocabulary: &mut Vocabulary,
    indexes: &mut Vec<u8>,
) -> Option<usize> {
    let (mut start, mut filled) = (0, indexes.len());
    for at in (0..string.len()).step_by(CHUNK) {
        make_room(indexes, filled);
        let numbers = &mut indexes[filled..];
        let words = look_up(lanes, string, at, start, vocabulary, numbers);
        if words.missed != 0 {
            number_missed(&words, string, at, start, vocabulary, numbers)?;
        }
        filled += words.count;
        if let Some(last) = words.count.checked_sub(1) {
            start = at + usize::from(words.ends[last]);
        }
        if at > start + LONGEST {
            return None;
        }
    }
    indexes.truncate(filled);
    Some(start)
}

/// Numbers what was missed. Apart from the rest, so that nothing has to be saved for it.
#[cold]
#[inline(never)]
fn number_missed(
    words: &Words,
    string: &[u8],
    at: usize,
    start: usize,
    vocabulary: &mut Vocabulary,
    numbers: &mut [u8],
) -> Option<()> {
    let mut missed = words.missed;
    while missed != 0 {
        let word = missed.trailing_zeros() as usize;
        let start = word.checked_sub(1).map_or(start, |before| at + usize::from(words.ends[before]));
        let end = at + usize::from(words.ends[word]);
        numbers[word] = vocabulary.number(&string[..end], end - start)?;
        missed &= missed - 1;
    }
    Some(())
}

/// Writes the numbers of the words that end in the chunk of the string `at`, the first of which begins at `start`.
/// Has room for a few more.
#[inline(always)]
fn look_up<L: Lanes>(
    lanes: L,
    string: &[u8],
    at: usize,
    start: usize,
    vocabulary: &Vocabulary,
    numbers: &mut [u8],
) -> Words {
    let text = lanes.load(&string[at..]);
    let before = lanes.load(&string[at.saturating_sub(CHUNK)..at]);
    let separators = lanes.equal(text, lanes.all(SEPARATOR));
    let count = separators.count_ones() as usize;
    // Of each word a byte, the words in their order: where it ends, where it begins, how long it is, and by how many
    // bits eight bytes are more. Of the first word at most so much is in front as leaves its length a byte.
    let places = lanes.load(&PLACES);
    let ends = lanes.compress(separators, lanes.add(places, lanes.all(1)));
    let first = lanes.all(byte((at - start).min(CHUNK)).wrapping_neg());
    let above = lanes.subtract(places, lanes.all(1));
    let starts = lanes.at_or(!1, above, ends, first);
    let lengths = lanes.subtract(ends, starts);
    let most = lanes.all(8);
    let excess = lanes.eightfold(lanes.subtract_to_zero(most, lengths));
    let mut missed = lanes.above(lengths, most);
    for (at, numbers) in (0..count).step_by(LANES).zip(numbers.as_chunks_mut().0) {
        // Which word each lane is for, in each of its bytes.
        let word_of = lanes.add(lanes.numbers(), lanes.all(byte(at)));
        // The eight bytes up to its end: those below zero are in the chunk before.
        let back = lanes.all_numbers(0xfffe_fdfc_fbfa_f9f8);
        let from = lanes.add(lanes.at(word_of, ends), back);
        let last = lanes.at_of_two(from, text, before);
        let excess = lanes.at_or(0x0101_0101_0101_0101, word_of, excess, lanes.all(0));
        let own = lanes.shift_up(lanes.all(0xff), excess);
        let keys = lanes.and(lanes.xor(last, lanes.all(SEPARATOR)), own);
        let products = lanes.multiply(keys, lanes.all_numbers(SPREAD));
        let slots = lanes.slots(&vocabulary.slots, products);
        let other = lanes.common(lanes.xor(slots, keys), lanes.all_numbers(KEY));
        missed |= u64::from(other) << at;
        *numbers = lanes.highest(slots);
    }
    // What is past the last word is none.
    missed &= u64::MAX.checked_shr(u64::BITS - separators.count_ones()).unwrap_or(0);
    Words { count, missed, ends: lanes.store(ends) }
}

/// The lowest byte.
#[inline]
fn byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "x86_64")]
    use super::super::avx512::Avx512;
    use super::super::lanes::Plain;
    use super::*;

    /// What is not found at home is numbered all the same: were no word cut out right, only time would tell.
    fn short_words_are_found_at_home_wherever_a_chunk_ends(lanes: impl Lanes) {
        let mut vocabulary = Vocabulary::default();
        vocabulary.begin(usize::MAX);
        let words = ["a ", "to ", "the ", "data ", "notes ", "record ", "consent ", "\0 "];
        let known = words.map(|word| (word, vocabulary.number(word.as_bytes(), word.len()).unwrap()));
        let known = known.map(|(word, number)| {
            let last = format!("       {word}").as_bytes().last_chunk().copied().unwrap();
            assert_eq!(vocabulary.at_home(last, word.len()), Some(number), "{word:?} is away from home");
            (word, number)
        });
        for shift in 0..2 * CHUNK {
            let text = " ".repeat(shift) + &words.concat().repeat(4);
            let text = text.as_bytes();
            let (mut start, mut found) = (0, Vec::new());
            for at in (0..text.len()).step_by(CHUNK) {
                let mut numbers = [0; CHUNK + LANES];
                let words = look_up(lanes, text, at, start, &vocabulary, &mut numbers);
                for (word, &number) in numbers.iter().enumerate().take(words.count) {
                    let end = at + usize::from(words.ends[word]);
                    let cut = std::str::from_utf8(&text[start..end]).unwrap();
                    let expected = known.iter().find(|(word, _)| *word == cut);
                    let number = (words.missed >> word & 1 == 0).then_some(number);
                    assert_eq!(number, expected.map(|&(_, number)| number), "{cut:?} at {start}");
                    found.extend(number);
                    start = end;
                }
            }
            assert_eq!(found.len(), 4 * words.concat().matches(' ').count(), "{shift}");
        }
    }

    #[test]
    fn short_words_are_found_at_home() {
        short_words_are_found_at_home_wherever_a_chunk_ends(Plain);
    }

    /// `make test` says where the processor cannot.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn short_words_are_found_at_home_with_avx512() {
        if let Some(lanes) = Avx512::detect() {
            short_words_are_found_at_home_wherever_a_chunk_ends(lanes);
        }
    }
}
