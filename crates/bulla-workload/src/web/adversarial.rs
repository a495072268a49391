//! 1,300,000 locations, each made from its number whenever it is chosen: a pool of them would be 100 MB of the
//! generator's, beside what is measured.
//!
//! An even number is `http://<10 letters>.com/<8 letters>`, an odd one a path of Windows's component store of 60 to
//! 180 characters, `file:///C:/Windows/WinSxS/<architecture>_<words>_<key>_<version>_<culture>_<hash>/<word>.<kind>`,
//! every fourth of these without key and version; the words are of 4096, the hash has 16 hexadecimal digits. That all
//! are different is as good as certain: the letters have 85 bits, the hash 64.

use crate::digits::{decimal, hexadecimal};
use crate::entropy::{order, uniform, weighted};
use crate::random::{Random, SplitMix, field, scale, upper};
use crate::word::Word;
use std::collections::HashSet;

pub(super) const COUNT: u32 = 1_300_000;

const PREFIX: &str = "file:///C:/Windows/WinSxS/";
const ARCHITECTURES: [&str; 4] = ["amd64_", "x86_", "wow64_", "msil_"];
const KEYS: [&str; 4] = ["_31bf3856ad364e35", "_6595b64144ccf1df", "_b03f5f7f11d50a3a", "_b77a5c561934e089"];
const VERSIONS: [&str; 4] = ["_10.0.19041.", "_10.0.22621.", "_6.1.7601.", "_4.0.15805."];
const REVISIONS: u32 = 5000;
const CULTURES: [&str; 8] =
    ["_none_", "_en-us_", "_de-de_", "_fr-fr_", "_es-es_", "_it-it_", "_ja-jp_", "_zh-cn_"];
const KINDS: [&str; 8] = [".dll", ".exe", ".mui", ".sys", ".inf", ".cat", ".man", ".xml"];

const WORDS: usize = 4096;
const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
const VOWELS: &[u8; 4] = b"aeio";

/// The entropy of the locations as a set, and of the words, in bits; that they are different is neglected.
pub(super) fn pool_entropy() -> f64 {
    let host = 18.0 * uniform(26);
    let word = uniform(4096);
    let version = uniform(4) + uniform(4) + uniform(REVISIONS);
    let name = uniform(8) + 4.5 * word;
    let path = uniform(4)
        + name
        + weighted([1.0, 3.0].into_iter())
        + 0.75 * version
        + uniform(8)
        + 64.0
        + word
        + uniform(8);
    let vocabulary = 4096.0 * (uniform(3) + 3.0 * uniform(64)) - order(4096);
    f64::from(COUNT / 2) * (host + path) - order(COUNT) + vocabulary
}

/// What the locations of a seed are made from.
#[derive(Debug)]
pub(super) struct Locations {
    seed: u64,
    words: Vec<Word>,
    made: Vec<u8>,
}

impl Locations {
    pub(super) fn new(random: &mut Random) -> Self {
        let seed = random.next();
        let mut known = HashSet::new();
        let mut words = Vec::with_capacity(WORDS);
        while words.len() < WORDS {
            let word = draw_word(random);
            if known.insert(word) {
                words.push(word);
            }
        }
        Locations { seed, words, made: Vec::new() }
    }

    /// Location number `number`.
    #[inline]
    pub(super) fn make(&mut self, number: u32) -> &[u8] {
        // Mixed twice, since numbers in a row would give random numbers in a row.
        let mut random = SplitMix(SplitMix(self.seed ^ u64::from(number)).next());
        self.made.clear();
        if number.is_multiple_of(2) {
            self.make_address(&mut random)
        } else {
            self.make_path(&mut random)
        }
        &self.made
    }

    fn make_address(&mut self, random: &mut SplitMix) {
        self.made.extend_from_slice(b"http://");
        self.made.extend_from_slice(&letters::<10>(random.next()));
        self.made.extend_from_slice(b".com/");
        self.made.extend_from_slice(&letters::<8>(random.next()));
    }

    fn make_path(&mut self, random: &mut SplitMix) {
        let (choices, hash) = (random.next(), random.next());
        // Twelve bits a word.
        let words = u128::from(random.next()) << 64 | u128::from(random.next());
        let index = |place: u64| (words >> (12 * place) & 0xfff) as usize;
        let choose = |lowest, count| field(choices, lowest, count);

        self.text(PREFIX);
        self.text(ARCHITECTURES[choose(0, 4)]);
        self.word(index(0));
        for place in 1..=choices >> 2 & 7 {
            self.made.push(b'-');
            self.word(index(place));
        }
        if choose(5, 4) != 0 {
            self.text(KEYS[choose(7, 4)]);
            self.text(VERSIONS[choose(9, 4)]);
            decimal(scale(upper(choices), REVISIONS).into(), &mut self.made);
        }
        self.text(CULTURES[choose(11, 8)]);
        hexadecimal(hash, &mut self.made);
        self.made.push(b'/');
        self.word(index(8));
        self.text(KINDS[choose(14, 8)]);
    }

    fn text(&mut self, text: &str) {
        self.made.extend_from_slice(text.as_bytes());
    }

    fn word(&mut self, index: usize) {
        self.words[index].write(&mut self.made);
    }
}

/// Two to four syllables.
fn draw_word(random: &mut Random) -> Word {
    let mut letters = Vec::new();
    for _ in 0..2 + random.below(3) {
        let bits = random.next();
        letters.extend([CONSONANTS[field(bits, 0, 16)], VOWELS[field(bits, 4, 4)]]);
    }
    Word::new(&letters)
}

/// So many letters, at most thirteen, from 64 random bits.
fn letters<const COUNT: usize>(mut random: u64) -> [u8; COUNT] {
    std::array::from_fn(|_| {
        let letter = b'a' + (random % 26) as u8;
        random /= 26;
        letter
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_unique_and_of_their_lengths() {
        let mut locations = Locations::new(&mut Random::for_pools(1));
        let mut known = HashSet::with_capacity(COUNT as usize);
        for number in 0..COUNT {
            let location = locations.make(number);
            let range = if number % 2 == 0 { 30..=30 } else { 60..=180 };
            assert!(range.contains(&location.len()), "{}", String::from_utf8_lossy(location));
            // Their hashes in place of 100 MB of text.
            known.insert(bulla_proof::sha256(&[location]).0);
        }
        assert_eq!(known.len(), COUNT as usize);
    }
}
