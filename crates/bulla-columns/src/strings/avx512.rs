//! Words of a text and their numbers, in AVX-512: the separators of 64 bytes are found together, and the words
//! between them looked up eight at a time.
#![allow(unsafe_code)]

use super::vocabulary::{HOME_SHIFT, KEY, SPREAD, Vocabulary};
use super::words::{CHUNK, LONGEST, SEPARATOR, make_room};
use std::arch::x86_64::*;

/// How many words are looked up together: as many as a register has lanes of eight bytes.
const LANES: usize = 8;
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

/// A processor that can.
#[derive(Clone, Copy)]
pub(super) struct Parallel(());

impl Parallel {
    /// `None` where it cannot.
    pub(super) fn detect() -> Option<Parallel> {
        let can = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("popcnt");
        can.then_some(Parallel(()))
    }

    /// As `words::number_words`, and the same numbers.
    pub(super) fn number_words(
        self,
        string: &[u8],
        vocabulary: &mut Vocabulary,
        indexes: &mut Vec<u8>,
    ) -> Option<usize> {
        // SAFETY: `detect`, which alone makes a `Parallel`, has found what the function is compiled for.
        unsafe { number_words(string, vocabulary, indexes) }
    }
}

/// The words that end in a chunk of a string: a bit, or a byte, for each.
struct Words {
    count: usize,
    /// Which are not found where they would be at home.
    missed: u64,
    /// Where in the chunk each ends.
    ends: [u8; CHUNK],
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,popcnt")]
fn number_words(string: &[u8], vocabulary: &mut Vocabulary, indexes: &mut Vec<u8>) -> Option<usize> {
    let (mut start, mut filled) = (0, indexes.len());
    for at in (0..string.len()).step_by(CHUNK) {
        make_room(indexes, filled);
        let numbers = &mut indexes[filled..];
        let words = look_up(string, at, start, vocabulary, numbers);
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
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,popcnt")]
fn look_up(string: &[u8], at: usize, start: usize, vocabulary: &Vocabulary, numbers: &mut [u8]) -> Words {
    let text = load(&string[at..]);
    let before = load(&string[at.saturating_sub(CHUNK)..at]);
    let separators = _mm512_cmpeq_epi8_mask(text, all(SEPARATOR));
    let count = separators.count_ones() as usize;
    // Of each word a byte, the words in their order: where it ends, where it begins, how long it is, and by how many
    // bits eight bytes are more. Of the first word at most so much is in front as leaves its length a byte.
    let places = load(&PLACES);
    let ends = _mm512_maskz_compress_epi8(separators, _mm512_add_epi8(places, all(1)));
    let first = _mm512_set1_epi8(-byte((at - start).min(CHUNK)));
    let above = _mm512_sub_epi8(places, all(1));
    let starts = _mm512_mask_permutexvar_epi8(first, !1, above, ends);
    let lengths = _mm512_sub_epi8(ends, starts);
    let most = all(8);
    let excess = _mm512_slli_epi16::<3>(_mm512_subs_epu8(most, lengths));
    let mut missed = _mm512_cmpgt_epu8_mask(lengths, most);
    for (at, numbers) in (0..count).step_by(LANES).zip(numbers.as_chunks_mut().0) {
        // Which word each lane is for, in each of its bytes.
        let lanes = _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), all(0x01));
        let lanes = _mm512_add_epi8(lanes, _mm512_set1_epi8(byte(at)));
        // The eight bytes up to its end: those below zero are in the chunk before.
        let back = _mm512_set1_epi64(0xfffe_fdfc_fbfa_f9f8_u64.cast_signed());
        let from = _mm512_add_epi8(_mm512_permutexvar_epi8(lanes, ends), back);
        let last = _mm512_permutex2var_epi8(text, from, before);
        let excess = _mm512_maskz_permutexvar_epi8(0x0101_0101_0101_0101, lanes, excess);
        let own = _mm512_sllv_epi64(all(0xff), excess);
        let keys = _mm512_and_si512(_mm512_xor_si512(last, all(SEPARATOR)), own);
        let products = _mm512_mullo_epi64(keys, _mm512_set1_epi64(SPREAD.cast_signed()));
        let homes = _mm512_srli_epi64::<HOME_SHIFT>(products);
        // SAFETY: a home is the place of a slot, because what is left of a product has as many bits as places have.
        let slots = unsafe { _mm512_i64gather_epi64::<8>(homes, vocabulary.slots.as_ptr().cast()) };
        let other =
            _mm512_test_epi64_mask(_mm512_xor_si512(slots, keys), _mm512_set1_epi64(KEY.cast_signed()));
        missed |= u64::from(other) << at;
        *numbers = _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(_mm512_srli_epi64::<56>(slots))).to_le_bytes();
    }
    // What is past the last word is none.
    missed &= u64::MAX.checked_shr(u64::BITS - separators.count_ones()).unwrap_or(0);
    Words { count, missed, ends: store(ends) }
}

/// The same in every byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn all(byte: u8) -> __m512i {
    _mm512_set1_epi8(byte.cast_signed())
}

/// The lowest byte.
#[inline]
fn byte(number: usize) -> i8 {
    number.to_le_bytes()[0].cast_signed()
}

/// The first 64 bytes; zeros where there are fewer.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8]) -> __m512i {
    let there = match bytes.len() {
        0 => 0,
        length => u64::MAX >> CHUNK.saturating_sub(length),
    };
    // SAFETY: only bytes that are there are loaded, which need no alignment.
    unsafe { _mm512_maskz_loadu_epi8(there, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store(register: __m512i) -> [u8; CHUNK] {
    let mut bytes = [0; CHUNK];
    // SAFETY: the array has the 64 bytes that are stored, which need no alignment.
    unsafe { _mm512_storeu_epi8(bytes.as_mut_ptr().cast(), register) };
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not found at home is numbered all the same: were no word cut out right, only time would tell. Only where the
    /// processor can; `make test` says where it cannot.
    #[test]
    fn short_words_are_found_at_home_wherever_a_chunk_ends() {
        if Parallel::detect().is_none() {
            return;
        }
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
                // SAFETY: `detect` has found what the function is compiled for.
                let words = unsafe { look_up(text, at, start, &vocabulary, &mut numbers) };
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
}
