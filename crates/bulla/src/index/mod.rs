//! The index: which blocks can hold a subject, a stream, an operation or a processor.
//!
//! For every epoch a file `index/<epoch frame>.idx` of *parts*, each of which covers some frames of 64 neighbours. What
//! a block's entries can be found by is turned into *tokens*, 40 bits of SipHash-2-4 under a key of the epoch, and a
//! part says of each token which of its blocks have it. Parts are encrypted, and bound to the commitments of the
//! frames that they cover. `docs/format.md`, "The index", is the byte map.
//!
//! **Nothing rests on it.** A part that is missing, damaged, or of frames that the log does not have tells nothing,
//! and the blocks that it should have covered are read instead. What a part does tell is never that a block has
//! something, only that it has not: a reader looks at the rows themselves, and verification compares the two.

mod check;
pub(crate) mod file;
mod gather;
mod lookup;
pub(crate) mod part;
mod rebuild;
#[cfg(test)]
mod tests;

pub(crate) use check::{Check, digest};

pub(crate) use gather::{Gathered, Indexer};
pub(crate) use lookup::{Indexed, Lookup, Named};

pub(crate) use rebuild::Rebuild;

use bulla_columns::{Groups, Searched};
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::entry::{Field, RawRow};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// How many neighbouring frames a part can cover.
pub(crate) const GROUP: u64 = 64;
/// The most tokens of a part. A block that has more is not indexed.
pub(crate) const MAX_TOKENS: usize = 1 << 20;

/// What an entry without a stream is found by.
const DEFAULT_STREAM: &[u8] = b"default";

/// The value that tells of groups.
const GROUPED: &[u8] = b"grouped";

/// The token of a value: the upper 40 bits of SipHash-2-4 of the field's number and the value.
pub(crate) fn token(keys: &EpochKeys, searched: Searched, value: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(keys.token());
    hasher.write(&[searched as u8]);
    hasher.write(value);
    hasher.finish() >> 24
}

/// The tokens of a block's rows, in order, each once: of those that are in a group, without their personal fields.
pub(crate) fn tokens<'a>(
    keys: &EpochKeys,
    rows: impl Iterator<Item = &'a [u8]>,
    groups: &Groups,
) -> Vec<u64> {
    let mut tokens = Tokens::new(keys);
    for (index, row) in rows.enumerate() {
        // They were rows when they were decoded.
        let Ok(row) = RawRow::parse(row) else { continue };
        let told = if groups.of_row(index).is_some() { !groups.personal() } else { u16::MAX };
        let tells = |field: Field| told & field.bit() != 0;
        tokens.add(Searched::Operation, row.operation);
        if let Some(processor) = row.processor.filter(|_| tells(Field::Processor)) {
            tokens.add(Searched::Processor, processor);
        }
        if tells(Field::Stream) {
            tokens.add(Searched::Stream, row.stream.unwrap_or(DEFAULT_STREAM));
        }
        let subjects = row.subjects.filter(|_| tells(Field::Subject));
        subjects.into_iter().flatten().for_each(|subject| tokens.add(Searched::Subject, subject));
    }
    tokens.tell_groups(groups);
    tokens.finish()
}

/// Collects the tokens of a block.
pub(crate) struct Tokens<'a> {
    keys: &'a EpochKeys,
    tokens: Vec<u64>,
    /// The last value of each field: mostly the next is the same.
    last: [Vec<u8>; 6],
    /// Whether they are more than a part takes: then they are of no use, and no more are collected.
    too_many: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(keys: &'a EpochKeys) -> Self {
        Tokens { keys, tokens: Vec::new(), last: Default::default(), too_many: false }
    }

    /// A value that some row has.
    pub(crate) fn add(&mut self, searched: Searched, value: &[u8]) {
        let last = &mut self.last[searched as usize];
        if self.too_many || !value.is_empty() && last == value {
            return;
        }
        last.clear();
        last.extend_from_slice(value);
        self.tokens.push(token(self.keys, searched, value));
        if self.tokens.len() == self.tokens.capacity() {
            // Before more memory is taken.
            self.tokens.sort_unstable();
            self.tokens.dedup();
            self.too_many = self.tokens.len() > MAX_TOKENS;
            if !self.too_many {
                // Room for as many again: they are sorted once for that many, however often values come again.
                self.tokens.reserve(self.tokens.len());
            }
        }
    }

    /// A value that some row has, or that some row has none.
    pub(crate) fn tell(&mut self, searched: Searched, value: Option<&[u8]>) {
        match (value, searched) {
            (Some(value), _) => self.add(searched, value),
            (None, Searched::Stream) => self.add(searched, DEFAULT_STREAM),
            (None, _) => {}
        }
    }

    /// The groups of a block: their subjects by number, and that there are any.
    pub(crate) fn tell_groups(&mut self, groups: &Groups) {
        if !groups.is_empty() {
            self.add(Searched::Grouped, GROUPED);
        }
        for group in 0..groups.len() {
            for subject in groups.content(group).subjects {
                self.add(Searched::Number, &subject.to_le_bytes());
            }
        }
    }

    /// All of them, in order, each once; more than [`MAX_TOKENS`] where there are too many.
    pub(crate) fn finish(mut self) -> Vec<u64> {
        self.tokens.sort_unstable();
        self.tokens.dedup();
        self.tokens.shrink_to_fit();
        self.tokens
    }
}
