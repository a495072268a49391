//! Columns of integers outside of blocks: the index stores its numbers as compactly as a block does.

use super::Compression;
use super::blob::{BlobDecoder, BlobEncoder};
use super::error::Fault;
use super::input::Input;
use super::numbers::{NumberDecoder, NumberEncoder};
use bulla_proof::varint;

/// Writes counts and columns one after the other.
pub struct IntegerWriter {
    numbers: NumberEncoder,
    blobs: BlobEncoder,
    out: Vec<u8>,
}

impl IntegerWriter {
    /// A writer that compresses columns so.
    pub fn new(compression: Compression) -> Self {
        IntegerWriter {
            numbers: NumberEncoder::default(),
            blobs: BlobEncoder::new(compression),
            out: Vec::new(),
        }
    }

    /// Writes how many values there are.
    pub fn count(&mut self, count: usize) {
        varint::push(count as u64, &mut self.out);
    }

    /// Writes a column of values.
    pub fn column(&mut self, values: &[u64]) {
        self.numbers.encode(values, &mut self.blobs, &mut self.out);
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// Reads what an [`IntegerWriter`] wrote.
pub struct IntegerReader<'a> {
    input: Input<'a>,
    length: usize,
    numbers: NumberDecoder,
    blobs: BlobDecoder,
}

impl<'a> IntegerReader<'a> {
    /// A reader of what an [`IntegerWriter`] wrote.
    pub fn new(bytes: &'a [u8]) -> Self {
        let (numbers, blobs) = (NumberDecoder::default(), BlobDecoder::default());
        IntegerReader { input: Input { rest: bytes }, length: bytes.len(), numbers, blobs }
    }

    /// A count of at most `most`.
    pub fn count(&mut self, most: usize) -> Result<usize, Fault> {
        self.input.count(0, most)
    }

    /// A column of `count` values, for which memory is taken.
    pub fn column(&mut self, count: usize) -> Result<Vec<u64>, Fault> {
        let mut values = Vec::new();
        self.numbers.decode(&mut self.input, count, &mut self.blobs, &mut values)?;
        Ok(values)
    }

    /// Checks that nothing is left but the padding.
    pub fn finish(self) -> Result<(), Fault> {
        self.input.padding(self.length)
    }
}
