//! Strings numbered in the order in which they are met, each kept once.

use super::super::super::table::Table;
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// Strings, one after the other. Holds only memory to be used again.
#[derive(Default)]
pub(crate) struct Strings {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[start..self.ends[number]]
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds a string, and returns its number.
    #[inline]
    pub(crate) fn add(&mut self, string: &[u8]) -> usize {
        self.text.extend_from_slice(string);
        self.ends.push(self.text.len());
        self.ends.len() - 1
    }
}

/// Strings that are looked up by their hash. Holds only memory to be used again.
#[derive(Default)]
pub(crate) struct Distinct {
    table: Table,
    strings: Strings,
}

impl Distinct {
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.strings.clear();
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        self.strings.get(number)
    }

    /// Whether a string has that number.
    #[inline]
    pub(crate) fn is(&self, number: usize, string: &[u8]) -> bool {
        is_same(self.get(number), string)
    }

    /// The number of a string, where it has one.
    #[inline]
    pub(crate) fn find(&self, string: &[u8]) -> Option<usize> {
        self.table.find(hash(string), |number| is_same(self.strings.get(number), string))
    }

    /// The number of a string, which is the next one where it is new; `None` where the table does not take it.
    #[inline]
    pub(crate) fn number(&mut self, string: &[u8]) -> Option<usize> {
        let Distinct { table, strings } = self;
        let number = table.number(hash(string), |number| is_same(strings.get(number), string))?;
        if number == strings.len() {
            strings.add(string);
        }
        Some(number)
    }
}

#[inline]
fn hash(string: &[u8]) -> u64 {
    const HASH: FixedState = FixedState::with_seed(0x7368_6170_6573);
    let mut hasher = HASH.build_hasher();
    hasher.write(string);
    // The table takes a slot from the high bits and compares the low half, so all of them have to be well mixed.
    hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Whether two strings are the same. Most are short, and for those it is done inline, without a call to `memcmp`.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        0..4 => one.iter().eq(other),
        4..8 => one.first_chunk::<4>() == other.first_chunk() && one.last_chunk::<4>() == other.last_chunk(),
        8..=16 => {
            one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk()
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_that_differ_in_a_byte_are_not_the_same() {
        let mut distinct = Distinct::default();
        distinct.clear();
        for length in 0..40 {
            let string = vec![b'x'; length];
            assert_eq!(distinct.number(&string), Some(length));
            for place in 0..length {
                let mut other = string.clone();
                other[place] = b'y';
                assert!(!is_same(&string, &other), "{place} of {length}");
            }
        }
        assert!((0..40).all(|length| distinct.number(&vec![b'x'; length]) == Some(length)));
        assert!((0..40).all(|length| distinct.find(&vec![b'x'; length]) == Some(length)));
        assert!((0..40).all(|length| distinct.find(&vec![b'y'; length]).is_none_or(|_| length == 0)));
        assert!((0..40).all(|length| distinct.is(length, &vec![b'x'; length])));
    }
}
