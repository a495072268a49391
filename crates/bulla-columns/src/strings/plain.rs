//! Writes plain strings: the body of form 2, which other forms have inside.

use super::super::blob::BlobEncoder;
use super::super::numbers::NumberEncoder;

/// Strings, one after the other. Holds only memory to be used again.
#[derive(Default)]
pub(super) struct Texts {
    text: Vec<u8>,
    pub(super) lengths: Vec<u64>,
}

impl Texts {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.lengths.clear();
    }

    pub(super) fn push(&mut self, string: &[u8]) {
        self.text.extend_from_slice(string);
        self.lengths.push(string.len() as u64);
    }

    /// Appends them to `out`.
    pub(super) fn write(&self, numbers: &mut NumberEncoder, blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        numbers.encode(&self.lengths, blobs, out);
        blobs.encode(&self.text, out);
    }
}
