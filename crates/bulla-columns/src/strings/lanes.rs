//! What looking up words asks of a register: 64 lanes of a byte, or eight of eight bytes; and the lanes that every processor has.

use super::chunks::CHUNK;
use super::vocabulary::SLOTS;

/// How many words are looked up together: as many as a register has lanes of eight bytes.
pub(super) const LANES: usize = 8;

/// Operations on a register of 64 bytes, and of eight little-endian numbers where it says so. A value of it is the leave to use
/// them.
pub(super) trait Lanes: Copy {
    type Register: Copy;

    /// The first 64 bytes; zeros where there are fewer.
    fn load(self, bytes: &[u8]) -> Self::Register;

    fn store(self, register: Self::Register) -> [u8; CHUNK];

    /// In every byte, which number it is of.
    fn numbers(self) -> Self::Register;

    /// The same in every byte.
    fn all(self, byte: u8) -> Self::Register;

    /// The same in every number.
    fn all_numbers(self, number: u64) -> Self::Register;

    fn and(self, one: Self::Register, other: Self::Register) -> Self::Register;

    fn xor(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// Byte by byte, modulo 256.
    fn add(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// Byte by byte, modulo 256.
    fn subtract(self, from: Self::Register, what: Self::Register) -> Self::Register;

    /// Byte by byte; zero where that is below zero.
    fn subtract_to_zero(self, from: Self::Register, what: Self::Register) -> Self::Register;

    /// Eight times each byte, none of which is above 31.
    fn eightfold(self, register: Self::Register) -> Self::Register;

    /// Which bytes are equal, the first in the lowest bit.
    fn equal(self, one: Self::Register, other: Self::Register) -> u64;

    /// Which bytes of one are above those of the other.
    fn above(self, one: Self::Register, other: Self::Register) -> u64;

    /// The bytes that are chosen, one after the other, and zeros.
    fn compress(self, chosen: u64, register: Self::Register) -> Self::Register;

    /// For each byte of `places` that of the register there, modulo 64.
    fn at(self, places: Self::Register, register: Self::Register) -> Self::Register;

    /// The same, but where none is chosen that of `others` in its own place.
    fn at_or(
        self,
        chosen: u64,
        places: Self::Register,
        register: Self::Register,
        others: Self::Register,
    ) -> Self::Register;

    /// For each byte of `places`, modulo 128, that of one register and then the other there.
    fn at_of_two(self, places: Self::Register, one: Self::Register, other: Self::Register) -> Self::Register;

    /// Number by number, up by so many bits; zero from 64 on.
    fn shift_up(self, register: Self::Register, bits: Self::Register) -> Self::Register;

    /// Number by number, modulo 2^64.
    fn multiply(self, one: Self::Register, other: Self::Register) -> Self::Register;

    /// For each number the slot whose place is in its highest bits.
    fn slots(self, slots: &[u64; SLOTS], products: Self::Register) -> Self::Register;

    /// Which numbers have bits in common, the first in the lowest bit.
    fn common(self, one: Self::Register, other: Self::Register) -> u8;

    /// The highest byte of each number.
    fn highest(self, register: Self::Register) -> [u8; LANES];
}

/// Lanes in an array: what those of a vector unit are held against, and where their kernel is tested without one. Slower than
/// one word after the other.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(super) struct Plain;

#[cfg(test)]
fn by_byte(of: impl Fn(usize) -> u8) -> [u8; CHUNK] {
    std::array::from_fn(of)
}

#[cfg(test)]
fn by_number(one: [u8; CHUNK], other: [u8; CHUNK], of: impl Fn(u64, u64) -> u64) -> [u8; CHUNK] {
    let of_both = |one, other| of(u64::from_le_bytes(one), u64::from_le_bytes(other));
    let mut numbers = [0; CHUNK];
    let pairs = one.as_chunks().0.iter().zip(other.as_chunks().0);
    for (to, (&one, &other)) in numbers.as_chunks_mut().0.iter_mut().zip(pairs) {
        *to = of_both(one, other).to_le_bytes();
    }
    numbers
}

/// A bit for each place where it holds.
#[cfg(test)]
fn where_it_holds(holds: impl Fn(usize) -> bool) -> u64 {
    (0..CHUNK).map(|place| u64::from(holds(place)) << place).sum()
}

#[cfg(test)]
impl Lanes for Plain {
    type Register = [u8; CHUNK];

    fn load(self, bytes: &[u8]) -> [u8; CHUNK] {
        by_byte(|place| bytes.get(place).copied().unwrap_or(0))
    }

    fn store(self, register: [u8; CHUNK]) -> [u8; CHUNK] {
        register
    }

    fn numbers(self) -> [u8; CHUNK] {
        by_byte(|place| (place / 8).to_le_bytes()[0])
    }

    fn all(self, byte: u8) -> [u8; CHUNK] {
        [byte; CHUNK]
    }

    fn all_numbers(self, number: u64) -> [u8; CHUNK] {
        by_byte(|place| number.to_le_bytes()[place % 8])
    }

    fn and(self, one: [u8; CHUNK], other: [u8; CHUNK]) -> [u8; CHUNK] {
        by_byte(|place| one[place] & other[place])
    }

    fn xor(self, one: [u8; CHUNK], other: [u8; CHUNK]) -> [u8; CHUNK] {
        by_byte(|place| one[place] ^ other[place])
    }

    fn add(self, one: [u8; CHUNK], other: [u8; CHUNK]) -> [u8; CHUNK] {
        by_byte(|place| one[place].wrapping_add(other[place]))
    }

    fn subtract(self, from: [u8; CHUNK], what: [u8; CHUNK]) -> [u8; CHUNK] {
        by_byte(|place| from[place].wrapping_sub(what[place]))
    }

    fn subtract_to_zero(self, from: [u8; CHUNK], what: [u8; CHUNK]) -> [u8; CHUNK] {
        by_byte(|place| from[place].saturating_sub(what[place]))
    }

    fn eightfold(self, register: [u8; CHUNK]) -> [u8; CHUNK] {
        register.map(|byte| byte * 8)
    }

    fn equal(self, one: [u8; CHUNK], other: [u8; CHUNK]) -> u64 {
        where_it_holds(|place| one[place] == other[place])
    }

    fn above(self, one: [u8; CHUNK], other: [u8; CHUNK]) -> u64 {
        where_it_holds(|place| one[place] > other[place])
    }

    fn compress(self, chosen: u64, register: [u8; CHUNK]) -> [u8; CHUNK] {
        let mut left = (0..CHUNK).filter(|place| chosen >> place & 1 == 1).map(|place| register[place]);
        [0; CHUNK].map(|zero| left.next().unwrap_or(zero))
    }

    fn at(self, places: [u8; CHUNK], register: [u8; CHUNK]) -> [u8; CHUNK] {
        places.map(|place| register[usize::from(place) % CHUNK])
    }

    fn at_or(
        self,
        chosen: u64,
        places: [u8; CHUNK],
        register: [u8; CHUNK],
        others: [u8; CHUNK],
    ) -> [u8; CHUNK] {
        let found = self.at(places, register);
        by_byte(|place| if chosen >> place & 1 == 1 { found[place] } else { others[place] })
    }

    fn at_of_two(self, places: [u8; CHUNK], one: [u8; CHUNK], other: [u8; CHUNK]) -> [u8; CHUNK] {
        places.map(|place| {
            let place = usize::from(place) % (2 * CHUNK);
            if place < CHUNK { one[place] } else { other[place - CHUNK] }
        })
    }

    fn shift_up(self, register: [u8; CHUNK], bits: [u8; CHUNK]) -> [u8; CHUNK] {
        by_number(register, bits, |number, bits| if bits < 64 { number << bits } else { 0 })
    }

    fn multiply(self, one: [u8; CHUNK], other: [u8; CHUNK]) -> [u8; CHUNK] {
        by_number(one, other, u64::wrapping_mul)
    }

    fn slots(self, slots: &[u64; SLOTS], products: [u8; CHUNK]) -> [u8; CHUNK] {
        by_number(products, products, |product, _| {
            slots[usize::try_from(product >> super::vocabulary::HOME_SHIFT).unwrap()]
        })
    }

    fn common(self, one: [u8; CHUNK], other: [u8; CHUNK]) -> u8 {
        let common = self.and(one, other);
        let numbers = common.as_chunks::<LANES>().0.iter().rev();
        numbers.fold(0, |bits, number| bits << 1 | u8::from(*number != [0; LANES]))
    }

    fn highest(self, register: [u8; CHUNK]) -> [u8; LANES] {
        std::array::from_fn(|number| register[number * 8 + 7])
    }
}
