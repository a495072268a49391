//! Writes the parts of rows into bytes that are there already.
//!
//! Whatever is short is copied as a fixed number of bytes, which is far quicker than exactly as many as there are;
//! what is written too much is overwritten by what follows. So there are [`STRIDE`] bytes to spare behind both the
//! rows and the pool.

use super::strings::Span;
use bulla_proof::varint;

/// How many bytes a short string is copied as.
pub(super) const STRIDE: usize = 32;

pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    pool: &'a [u8],
    end: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut [u8], pool: &'a [u8]) -> Self {
        Writer { bytes, pool, end: 0 }
    }

    /// Where the next part goes.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    #[inline]
    pub(super) fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.end..self.end + N].copy_from_slice(&bytes);
        self.end += N;
    }

    #[inline]
    pub(super) fn varint(&mut self, value: u64) {
        if value >> 56 != 0 {
            return self.long_varint(value);
        }
        self.bytes[self.end..self.end + 8].copy_from_slice(&spread(value).to_le_bytes());
        self.end += varint::length(value);
    }

    #[cold]
    fn long_varint(&mut self, value: u64) {
        varint::encode(value, |byte| {
            self.bytes[self.end] = byte;
            self.end += 1;
        });
    }

    #[inline]
    pub(super) fn string(&mut self, span: Span) {
        let (start, length) = (span.start as usize, span.length as usize);
        self.varint(u64::from(span.length));
        if length <= STRIDE {
            self.bytes[self.end..self.end + STRIDE].copy_from_slice(&self.pool[start..start + STRIDE]);
        } else {
            self.bytes[self.end..self.end + length].copy_from_slice(&self.pool[start..start + length]);
        }
        self.end += length;
    }
}

/// The varint of a value below 2^56, in one word: groups of seven bits pulled apart to bytes, without branches.
#[inline]
fn spread(value: u64) -> u64 {
    let pairs = value & 0x0fff_ffff | (value << 4 & 0x0fff_ffff << 32);
    let quads = pairs & 0x3fff_0000_3fff | (pairs << 2 & 0x3fff_0000_3fff << 16);
    let bytes = quads & 0x7f_007f_007f_007f | (quads << 1 & 0x7f_007f_007f_007f << 8);
    let continued = (1_u64 << (8 * (varint::length(value) - 1))) - 1;
    bytes | 0x8080_8080_8080_8080 & continued
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_the_row() {
        for shift in 0..64 {
            for value in [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + 1, 0x0123_4567_89ab_cdef >> shift]
            {
                let mut bytes = [0xff; 40];
                let mut writer = Writer::new(&mut bytes, &[]);
                writer.varint(value);
                let end = writer.end();
                let mut expected = Vec::new();
                varint::push(value, &mut expected);
                assert_eq!(bytes[..end], expected, "{value:x}");
            }
        }
    }
}
