//! Text of independent words by Zipf's law, gigabytes a second of it.
//!
//! Words are drawn a phrase of several at a time, by Walker's alias method in Vose's form (IEEE Transactions on
//! Software Engineering 17(9), 1991): one comparison and one copy of constant length a phrase. All in integers, so
//! that no rounding of a platform shows in the bytes.

use crate::random::{Random, lower, upper};

/// The longest phrase, in bytes: it and its length are half a cache line.
const LONGEST: usize = 31;
/// How far [`Phrases::fill`] may write beyond its end.
pub(crate) const ROOM: usize = 2 * LONGEST;
/// The most phrases.
const PHRASES: usize = 4096;
/// Probabilities are in units of 2⁻³².
const ONE: u64 = 1 << 32;

/// The phrases of a vocabulary, every word followed by a space.
#[derive(Debug)]
pub(crate) struct Phrases {
    /// As many as a power of two. The lower `bits` are the alias; where the upper bits of a random number are below
    /// those of a slot, the slot stands for the phrase of its own index, else for the alias.
    slots: Box<[u32]>,
    bits: u32,
    phrases: Box<[Phrase]>,
}

#[derive(Clone, Copy, Debug)]
struct Phrase {
    text: [u8; LONGEST],
    length: u8,
}

/// The weights of `words` words: 1, 1/2, 1/3 and so on.
pub(crate) fn zipf(words: usize) -> impl Iterator<Item = f64> + Clone {
    (1..=words).map(|rank| 1.0 / rank as f64)
}

impl Phrases {
    pub(crate) fn new(words: &[&str]) -> Self {
        // Shares are in units of 2⁻³¹, so that a product fits 64 bits.
        let half = ONE / 2;
        let total = (1..=words.len() as u64).map(|rank| half / rank).sum::<u64>();
        let shares = (1..=words.len() as u64).map(|rank| half / rank * half / total).collect::<Vec<_>>();
        let longest = words.iter().map(|word| word.len() + 1).max().unwrap_or(1);

        let mut phrases = vec![Phrase { text: [0; LONGEST], length: 0 }];
        let mut weights = vec![ONE];
        while phrases.len() * words.len() <= PHRASES
            && phrases.iter().all(|phrase| usize::from(phrase.length) + longest <= LONGEST)
        {
            weights = product(&weights, &shares);
            phrases =
                phrases.iter().flat_map(|phrase| words.iter().map(|word| phrase.followed_by(word))).collect();
        }
        // What rounding down has lost goes to the most frequent phrase.
        weights[0] += ONE - weights.iter().sum::<u64>();
        let slots = slots(weights);
        Phrases { bits: slots.len().ilog2(), slots, phrases: phrases.into() }
    }

    /// Fills `text` with words, but for its last [`ROOM`] bytes, in which the last phrases may end.
    #[inline]
    pub(crate) fn fill(&self, text: &mut [u8], random: &mut Random) {
        let end = text.len() - ROOM;
        let mut written = 0;
        while written < end {
            let bits = random.next();
            for bits in [lower(bits), upper(bits)] {
                let phrase = self.draw(bits);
                text[written..written + LONGEST].copy_from_slice(&phrase.text);
                written += usize::from(phrase.length);
            }
        }
    }

    #[inline]
    fn draw(&self, bits: u32) -> &Phrase {
        let mask = (1 << self.bits) - 1;
        let own = bits & mask;
        let slot = self.slots[own as usize];
        let alias = slot & mask;
        // Not a branch: which of the two it is, no processor can predict.
        let is_own = u32::from(bits >> self.bits < slot >> self.bits).wrapping_neg();
        &self.phrases[(alias ^ (alias ^ own) & is_own) as usize]
    }
}

impl Phrase {
    fn followed_by(&self, word: &str) -> Phrase {
        let mut phrase = *self;
        for byte in word.bytes().chain([b' ']) {
            phrase.text[usize::from(phrase.length)] = byte;
            phrase.length += 1;
        }
        phrase
    }
}

fn product(weights: &[u64], shares: &[u64]) -> Vec<u64> {
    weights.iter().flat_map(|weight| shares.iter().map(move |share| (weight * share) >> 31)).collect()
}

/// Vose's table for weights whose sum is [`ONE`]; slots beyond the weights are all alias.
fn slots(mut weights: Vec<u64>) -> Box<[u32]> {
    weights.resize(weights.len().next_power_of_two(), 0);
    let room = ONE / weights.len() as u64;
    // A slot that is all its own has itself for an alias.
    let mut slots = (0..weights.len()).map(|index| (0, index)).collect::<Vec<_>>();
    let (mut poor, mut rich): (Vec<_>, Vec<_>) = (0..weights.len()).partition(|&index| weights[index] < room);
    while let (Some(needy), Some(&giver)) = (poor.pop(), rich.last()) {
        slots[needy] = (weights[needy], giver);
        weights[giver] -= room - weights[needy];
        if weights[giver] < room {
            rich.pop();
            poor.push(giver);
        }
    }
    let bits = weights.len().ilog2();
    slots.into_iter().map(|(cut, alias)| lower(cut << bits | alias as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// How likely each phrase is, in units of 2⁻³², added up over the slots.
    fn likelihoods(phrases: &Phrases) -> HashMap<String, u64> {
        let room = ONE / phrases.slots.len() as u64;
        let mut likelihoods = HashMap::new();
        for (own, &slot) in phrases.slots.iter().enumerate() {
            let (cut, alias) = (u64::from(slot >> phrases.bits), slot as usize % phrases.slots.len());
            for (index, units) in [(own, cut), (alias, room - cut)] {
                if units > 0 {
                    let Phrase { text, length } = &phrases.phrases[index];
                    let text = String::from_utf8(text[..usize::from(*length)].to_vec()).unwrap();
                    *likelihoods.entry(text).or_default() += units;
                }
            }
        }
        likelihoods
    }

    #[test]
    fn phrases_are_as_likely_as_their_words() {
        for words in [&["the", "data"][..], &["a", "bc", "def", "g", "h"], &["one"]] {
            let phrases = Phrases::new(words);
            let likelihoods = likelihoods(&phrases);
            assert_eq!(likelihoods.values().sum::<u64>(), ONE);
            let total = zipf(words.len()).sum::<f64>();
            for (phrase, units) in likelihoods {
                let rank = |word| words.iter().position(|&known| known == word).unwrap() + 1;
                let expected =
                    phrase.split_whitespace().map(|word| 1.0 / (rank(word) as f64 * total)).product::<f64>();
                let found = units as f64 / ONE as f64;
                assert!((found - expected).abs() < 1e-5, "{phrase}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn text_is_filled_to_its_end_with_whole_words() {
        let phrases = Phrases::new(&["the", "data"]);
        let mut text = vec![0; 1000 + ROOM];
        phrases.fill(&mut text, &mut Random::for_producer(1, 0));
        let words = std::str::from_utf8(&text[..1000]).unwrap().split(' ').collect::<Vec<_>>();
        let (last, words) = words.split_last().unwrap();
        assert!(words.iter().all(|word| ["the", "data"].contains(word)), "{words:?}");
        assert!("the".starts_with(last) || "data".starts_with(last), "{last}");
    }
}
