//! The names of a block's data subjects, and where they stand in a text.
//!
//! - A name is found as it is written, where it neither begins nor ends between two letters or digits of ASCII. A byte above 127 hides no
//!   name: where scripts have no spaces, and between typographic marks, names stand beside such bytes.
//! - Whatever the names and the text are, a search takes time in proportion to the text. Where it would take more it finds too much, never
//!   too little: that costs something common.

use foldhash::fast::{FixedState, RandomState};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::ops::Range;

const NAMES: FixedState = FixedState::with_seed(0x006e_616d_6573);

/// By so many of its first bytes a name is looked for, or by all that it has.
const BEGINNING: usize = 4;
/// Of names with so many bytes or more the first so many are compared, and the text is theirs from there to its end.
const LONG: usize = 63;
/// So often a search compares: what is behind that counts as somebody's name.
const MOST_COMPARED: u32 = 1024;
/// The bits of the filter before the table of beginnings.
const FILTER_BITS: u32 = 14;

/// Where names stand, ascending; they neither touch nor overlap each other.
pub(super) type Places = SmallVec<[Range<usize>; 4]>;

/// See the module. Names are known by their hashes: two that have the same one cost something common, no more.
pub(super) struct Names {
    hashes: HashSet<u64, RandomState>,
    /// By the first bytes of names which lengths they have, as a set of bits: from 1 to [`LONG`], which is that of all longer ones.
    beginnings: HashMap<u64, u64, RandomState>,
    /// What is not in here begins no name.
    filter: Vec<u64>,
    /// How many bytes beginnings have, as a set of bits.
    depths: u8,
}

impl Default for Names {
    fn default() -> Self {
        Names {
            hashes: HashSet::default(),
            beginnings: HashMap::default(),
            filter: vec![0; 1 << (FILTER_BITS - u64::BITS.trailing_zeros())],
            depths: 0,
        }
    }
}

impl Names {
    pub(super) fn clear(&mut self) {
        let Names { hashes, beginnings, filter, depths } = self;
        hashes.clear();
        beginnings.clear();
        filter.fill(0);
        *depths = 0;
    }

    /// Adds a name; an empty one stands nowhere.
    pub(super) fn add(&mut self, name: &[u8]) {
        let compared = &name[..name.len().min(LONG)];
        if name.is_empty() || !self.hashes.insert(NAMES.hash_one(compared)) {
            return;
        }
        let depth = name.len().min(BEGINNING);
        let beginning = beginning(&name[..depth]);
        *self.beginnings.entry(beginning).or_default() |= 1 << compared.len();
        let (word, bit) = filtered(beginning);
        self.filter[word] |= bit;
        self.depths |= 1 << depth;
    }

    /// Whether one stands in the text.
    pub(super) fn are_in(&self, text: &[u8]) -> bool {
        !self.places(text).is_empty()
    }

    /// Where they stand in the text.
    pub(super) fn places(&self, text: &[u8]) -> Places {
        let (mut places, mut compared) = (Places::new(), 0);
        let mut was_joined = false;
        for at in 0..text.len() {
            let is_joined = text[at].is_ascii_alphanumeric();
            if !(std::mem::replace(&mut was_joined, is_joined) && is_joined)
                && let Some(end) = self.end(text, at, &mut compared)
            {
                match places.last_mut().filter(|last| at <= last.end) {
                    Some(last) => last.end = last.end.max(end),
                    None => places.push(at..end),
                }
                if end == text.len() {
                    break;
                }
            }
        }
        places
    }

    /// Where the longest name ends that begins there.
    #[inline]
    fn end(&self, text: &[u8], at: usize, compared: &mut u32) -> Option<usize> {
        let depths = (1..=BEGINNING.min(text.len() - at)).filter(|depth| self.depths >> depth & 1 != 0);
        depths.filter_map(|depth| self.end_by(text, at, depth, compared)).max()
    }

    /// The same, of those whose beginnings have so many bytes.
    #[inline]
    fn end_by(&self, text: &[u8], at: usize, depth: usize, compared: &mut u32) -> Option<usize> {
        let beginning = beginning(&text[at..at + depth]);
        let (word, bit) = filtered(beginning);
        if self.filter[word] & bit == 0 {
            return None;
        }
        let mut lengths = *self.beginnings.get(&beginning)?;
        while lengths != 0 {
            // The longest one first.
            let length = lengths.ilog2() as usize;
            lengths ^= 1 << length;
            let end = at + length;
            if end > text.len() || length < LONG && !is_edge(text, end) {
                continue;
            }
            *compared += 1;
            if *compared > MOST_COMPARED {
                return Some(text.len());
            }
            if self.hashes.contains(&NAMES.hash_one(&text[at..end])) {
                return Some(if length < LONG { end } else { text.len() });
            }
        }
        None
    }
}

/// Whether a name may begin or end there.
fn is_edge(text: &[u8], at: usize) -> bool {
    let is_joined = |at: usize| text[at].is_ascii_alphanumeric();
    at == 0 || at == text.len() || !is_joined(at) || !is_joined(at - 1)
}

/// These bytes and their number, as one number.
#[inline]
fn beginning(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |number, byte| number << 8 | u64::from(*byte))
}

/// Where a beginning is in the filter: which word, and which bit of it.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the shift leaves as many bits as the filter's places have"
)]
fn filtered(beginning: u64) -> (usize, u64) {
    let place = beginning.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - FILTER_BITS);
    ((place / u64::from(u64::BITS)) as usize, 1 << (place % u64::from(u64::BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(all: &[&str]) -> Names {
        let mut names = Names::default();
        all.iter().for_each(|name| names.add(name.as_bytes()));
        names
    }

    fn places(all: &[&str], text: &str) -> Vec<(usize, usize)> {
        let places = names(all).places(text.as_bytes());
        places.into_iter().map(|place| (place.start, place.end)).collect()
    }

    #[test]
    fn a_name_is_found_where_it_stands_for_itself() {
        assert_eq!(places(&["ann"], "ann, annabel, joann and ann"), [(0, 3), (24, 27)]);
        assert_eq!(places(&["ada@corp.com", "ada"], "cc ada@corp.com."), [(3, 15)]);
        assert_eq!(places(&["Bo Li", "Li Wu"], "Bo Li Wu"), [(0, 8)], "they overlap");
        assert_eq!(places(&["\u{5c71}\u{7530}"], "\u{3068}\u{5c71}\u{7530}\u{3055}"), [(3, 9)]);
        assert_eq!(places(&["@d-7", "7"], "@d-7,7"), [(0, 4), (5, 6)]);
        assert_eq!(places(&["", "ann"], "a n n"), []);
    }

    #[test]
    fn of_a_long_name_the_beginning_is_enough() {
        let name = "x".repeat(LONG + 1);
        assert_eq!(places(&[&name], &format!("to {name}")), [(3, LONG + 4)]);
        assert_eq!(places(&[&name], &format!("to {name}y and all")), [(3, LONG + 13)]);
        assert_eq!(places(&[&name], &"x".repeat(LONG - 1)), []);
    }

    /// Names of all lengths that begin alike, and a text in which each could begin at every byte.
    #[test]
    fn a_search_ends_early_rather_than_late() {
        let all = (4..LONG).map(|length| "-".repeat(length - 1) + "!").collect::<Vec<_>>();
        let all = all.iter().map(String::as_str).collect::<Vec<_>>();
        let text = "-".repeat(1 << 20);
        let found = places(&all, &text);
        assert_eq!(found.last().map(|place| place.1), Some(text.len()));
        assert!(found[0].0 > 0, "up to there it looked");
    }

    proptest! {
        #[test]
        fn every_name_is_found_and_nothing_else(
            all in proptest::collection::vec("(a|b|\u{e9}|-| |1){1,6}", 0..6),
            text in "(a|b|\u{e9}|-| |1){0,40}",
        ) {
            let bytes = text.as_bytes();
            let mut expected = vec![false; bytes.len()];
            for name in &all {
                for at in 0..bytes.len() {
                    let end = at + name.len();
                    if bytes[at..].starts_with(name.as_bytes()) && is_edge(bytes, at) && is_edge(bytes, end) {
                        expected[at..end].fill(true);
                    }
                }
            }
            let all = all.iter().map(String::as_str).collect::<Vec<_>>();
            let mut found = vec![false; bytes.len()];
            places(&all, &text).into_iter().for_each(|(start, end)| found[start..end].fill(true));
            prop_assert_eq!(found, expected);
        }
    }
}
