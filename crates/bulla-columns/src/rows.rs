//! Decoded rows, one after the other in one buffer.

use bulla_proof::{Entry, EntryError};
use std::ops::Index;

/// The canonical rows of a block. Used again, it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub(super) bytes: Vec<u8>,
    /// Where each row ends.
    pub(super) ends: Vec<usize>,
}

impl Rows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// No rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds the row that `write` appends, and returns what `write` does.
    pub fn push<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let value = write(&mut self.bytes);
        self.ends.push(self.bytes.len());
        value
    }

    /// How much memory is held, in bytes.
    #[cfg(test)]
    pub(super) fn footprint(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// All rows' canonical bytes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// The entry of a row.
    ///
    /// # Errors
    /// None, for rows that a decoder made: they are canonical.
    ///
    /// # Panics
    /// When there is no row of that index.
    pub fn entry(&self, index: usize) -> Result<Entry<'_>, EntryError> {
        Entry::decode(&self[index])
    }
}

impl Index<usize> for Rows {
    type Output = [u8];

    /// The canonical bytes of a row.
    fn index(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}
