//! A stream of bits: bit *k* is bit *k* mod 8, from the lowest, of byte ⌊*k*/8⌋; a number stands with its lowest bit first.

use crate::bitpack::width_of;
use crate::error::Fault;

/// Appends bits to bytes.
pub(super) struct BitWriter<'a> {
    /// Has room behind what was written, which ends at `at`.
    out: &'a mut Vec<u8>,
    at: usize,
    /// Fewer than 8 bits that are not written yet.
    word: u64,
    filled: u32,
}

/// A number of more bits is put in two parts.
const AT_ONCE: u32 = 56;
/// So much room is made at once.
const ROOM: usize = 256;

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let at = out.len();
        BitWriter { out, at, word: 0, filled: 0 }
    }

    /// Appends a number below 2^`width`, of at most 64 bits.
    #[inline]
    pub(super) fn put(&mut self, value: u64, width: u32) {
        debug_assert!(width_of(value) <= width && width <= 64);
        if width > AT_ONCE {
            self.put_part(value & ((1 << AT_ONCE) - 1), AT_ONCE);
            return self.put_part(value >> AT_ONCE, width - AT_ONCE);
        }
        self.put_part(value, width);
    }

    /// All that there is is written each time: whether a word is full by now is as good as random, and not to be branched on.
    #[inline]
    fn put_part(&mut self, value: u64, width: u32) {
        self.word |= value << self.filled;
        self.filled += width;
        if self.out.len() < self.at + 8 {
            self.out.resize(self.at + ROOM, 0);
        }
        self.out[self.at..self.at + 8].copy_from_slice(&self.word.to_le_bytes());
        self.at += self.filled as usize / 8;
        self.word = self.word.unbounded_shr(self.filled & !7);
        self.filled &= 7;
    }

    /// Appends how many bits a number has, in `width` bits, and all of those but the highest, which is 1.
    #[inline]
    pub(super) fn put_sized(&mut self, value: u64, width: u32) {
        let bits = width_of(value);
        self.put(bits.into(), width);
        if bits > 1 {
            self.put(value & !(1 << (bits - 1)), bits - 1);
        }
    }

    /// Appends bytes.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.put(u64::from_le_bytes(*word), 64));
        rest.iter().for_each(|byte| self.put((*byte).into(), 8));
    }

    /// Ends the stream with its last byte.
    pub(super) fn finish(mut self) {
        self.put_part(0, 0);
        self.out.truncate(self.at + usize::from(self.filled > 0));
    }
}

/// Reads bits from bytes.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// How many bits were read.
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, at: 0 }
    }

    /// How many bits are left.
    fn left(&self) -> usize {
        self.bytes.len() * 8 - self.at
    }

    /// Reads a number of `width` bits, at most 64.
    #[inline]
    pub(super) fn get(&mut self, width: u32) -> Result<u64, Fault> {
        if self.left() < width as usize {
            return Err(Fault::Truncated);
        }
        let (first, shift) = (self.at / 8, self.at % 8);
        self.at += width as usize;
        let mut window = [0; 16];
        let bytes = &self.bytes[first..self.bytes.len().min(first + 9)];
        window[..bytes.len()].copy_from_slice(bytes);
        let value = u128::from_le_bytes(window) >> shift & ((1 << width) - 1);
        Ok(u64::try_from(value).unwrap_or(u64::MAX))
    }

    /// Reads what [`BitWriter::put_sized`] wrote, of at most `most` bits.
    pub(super) fn get_sized(&mut self, width: u32, most: u64) -> Result<u64, Fault> {
        let bits = self.get(width)?;
        if bits > most {
            return Err(Fault::Range);
        }
        match u32::try_from(bits).unwrap_or(0) {
            0 => Ok(0),
            bits => Ok(1 << (bits - 1) | self.get(bits - 1)?),
        }
    }

    /// Whether there are so many bits.
    pub(super) fn has(&self, count: usize) -> Result<(), Fault> {
        if self.left() < count { Err(Fault::Truncated) } else { Ok(()) }
    }

    /// Whether the stream ends here: with bits of its last byte that are zero.
    pub(super) fn finish(mut self) -> Result<(), Fault> {
        let rest = self.left();
        match rest < 8 && self.get(u32::try_from(rest).unwrap_or(0))? == 0 {
            true => Ok(()),
            false => Err(Fault::Padding),
        }
    }
}
