//! What the compression function asks of sixteen lanes of 32 bits, a message each; and the lanes that every processor has.

use super::states::{BLOCK, LANES};

/// Operations on a register of sixteen words, in the order of the lanes. A value of it is the leave to use them.
pub(super) trait Lanes: Copy {
    type Register: Copy;

    /// The same word in every lane.
    fn splat(self, word: u32) -> Self::Register;

    fn load(self, words: &[u32; LANES]) -> Self::Register;

    fn store(self, register: Self::Register, words: &mut [u32; LANES]);

    /// The words of a block, which are big-endian.
    fn load_block(self, block: &[u8; BLOCK]) -> Self::Register;

    /// The sum modulo 2^32.
    fn add(self, one: Self::Register, other: Self::Register) -> Self::Register;

    fn xor(self, x: Self::Register, y: Self::Register, z: Self::Register) -> Self::Register;

    /// Ch (FIPS 180-4, 4.1.2): where `x` has a bit, that of `y`, else that of `z`.
    fn choice(self, x: Self::Register, y: Self::Register, z: Self::Register) -> Self::Register;

    /// Maj: the bits that two or three have.
    fn majority(self, x: Self::Register, y: Self::Register, z: Self::Register) -> Self::Register;

    /// ROTR.
    fn rotate_right<const BITS: i32>(self, register: Self::Register) -> Self::Register;

    /// SHR.
    fn shift_right<const BITS: u32>(self, register: Self::Register) -> Self::Register;

    /// In every quarter of four lanes, the first two words of both by turns.
    fn interleave_low(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// The last two.
    fn interleave_high(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// In every quarter, the first two words of one and then those of the other.
    fn low_pairs(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// The last two.
    fn high_pairs(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// The first and the third quarter of one and then of the other.
    fn even_quarters(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// The second and the fourth.
    fn odd_quarters(self, one: Self::Register, other: Self::Register) -> Self::Register;
}

/// Lanes in an array: what those of a vector unit are held against, and where their kernel is tested without one. Slower than
/// one message after the other.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(super) struct Plain;

#[cfg(test)]
impl Plain {
    /// In every quarter, the words of both, first those of `one`, that are at these places.
    fn in_quarters(one: [u32; LANES], other: [u32; LANES], places: [usize; 4]) -> [u32; LANES] {
        std::array::from_fn(|lane| {
            let (quarter, place) = (lane / 4 * 4, places[lane % 4]);
            if place < 4 { one[quarter + place] } else { other[quarter + place - 4] }
        })
    }

    fn quarters(one: [u32; LANES], other: [u32; LANES], first: usize) -> [u32; LANES] {
        std::array::from_fn(|lane| {
            let from = if lane < 8 { one } else { other };
            from[first * 4 + lane % 8 / 4 * 8 + lane % 4]
        })
    }
}

#[cfg(test)]
impl Lanes for Plain {
    type Register = [u32; LANES];

    fn splat(self, word: u32) -> [u32; LANES] {
        [word; LANES]
    }

    fn load(self, words: &[u32; LANES]) -> [u32; LANES] {
        *words
    }

    fn store(self, register: [u32; LANES], words: &mut [u32; LANES]) {
        *words = register;
    }

    fn load_block(self, block: &[u8; BLOCK]) -> [u32; LANES] {
        let (words, _) = block.as_chunks();
        std::array::from_fn(|lane| u32::from_be_bytes(words[lane]))
    }

    fn add(self, one: [u32; LANES], other: [u32; LANES]) -> [u32; LANES] {
        std::array::from_fn(|lane| one[lane].wrapping_add(other[lane]))
    }

    fn xor(self, x: [u32; LANES], y: [u32; LANES], z: [u32; LANES]) -> [u32; LANES] {
        std::array::from_fn(|lane| x[lane] ^ y[lane] ^ z[lane])
    }

    fn choice(self, x: [u32; LANES], y: [u32; LANES], z: [u32; LANES]) -> [u32; LANES] {
        std::array::from_fn(|lane| x[lane] & y[lane] ^ !x[lane] & z[lane])
    }

    fn majority(self, x: [u32; LANES], y: [u32; LANES], z: [u32; LANES]) -> [u32; LANES] {
        std::array::from_fn(|lane| x[lane] & y[lane] ^ x[lane] & z[lane] ^ y[lane] & z[lane])
    }

    fn rotate_right<const BITS: i32>(self, register: [u32; LANES]) -> [u32; LANES] {
        register.map(|word| word.rotate_right(BITS.cast_unsigned()))
    }

    fn shift_right<const BITS: u32>(self, register: [u32; LANES]) -> [u32; LANES] {
        register.map(|word| word >> BITS)
    }

    fn interleave_low(self, one: [u32; LANES], other: [u32; LANES]) -> [u32; LANES] {
        Plain::in_quarters(one, other, [0, 4, 1, 5])
    }

    fn interleave_high(self, one: [u32; LANES], other: [u32; LANES]) -> [u32; LANES] {
        Plain::in_quarters(one, other, [2, 6, 3, 7])
    }

    fn low_pairs(self, one: [u32; LANES], other: [u32; LANES]) -> [u32; LANES] {
        Plain::in_quarters(one, other, [0, 1, 4, 5])
    }

    fn high_pairs(self, one: [u32; LANES], other: [u32; LANES]) -> [u32; LANES] {
        Plain::in_quarters(one, other, [2, 3, 6, 7])
    }

    fn even_quarters(self, one: [u32; LANES], other: [u32; LANES]) -> [u32; LANES] {
        Plain::quarters(one, other, 0)
    }

    fn odd_quarters(self, one: [u32; LANES], other: [u32; LANES]) -> [u32; LANES] {
        Plain::quarters(one, other, 1)
    }
}
