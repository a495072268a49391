//! What a column of integers is like, and so what each form of it would cost.

use super::super::bitpack::{packed_length, width_of};
use super::CHUNK;
use bulla_proof::varint;
use smallvec::SmallVec;

/// A number that divides the difference of every value to the least one: a power of two times an odd number.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    shift: u32,
    odd: u64,
    /// The inverse of `odd` modulo 2^64. Multiplying by it divides a multiple of `odd`; the product is at most 2^64 / `odd` for
    /// multiples alone, which tells them from other numbers.
    inverse: u64,
}

impl Scale {
    fn of(values: &[u64], least: u64) -> Self {
        let bits = values.iter().fold(0, |bits, value| bits | (value - least));
        let shift = if bits == 0 { 0 } else { bits.trailing_zeros() };
        let mut scale = Scale { shift, odd: 0, inverse: 0 };
        let mut most = 0;
        for &value in values {
            let rest = (value - least) >> shift;
            if rest != 0 && (scale.odd == 0 || rest.wrapping_mul(scale.inverse) > most) {
                let divisor = gcd(scale.odd, rest);
                scale.odd = divisor >> divisor.trailing_zeros();
                if scale.odd == 1 {
                    break;
                }
                scale.inverse = inverse(scale.odd);
                most = u64::MAX / scale.odd;
            }
        }
        if scale.odd <= 1 { Scale { shift, odd: 1, inverse: 1 } } else { scale }
    }

    pub(super) fn factor(self) -> u64 {
        self.odd << self.shift
    }

    /// Divides a difference of two of the values.
    #[inline]
    pub(super) fn divide(self, difference: u64) -> u64 {
        (difference >> self.shift).wrapping_mul(self.inverse)
    }
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration, which doubles the bits that are right.
fn inverse(odd: u64) -> u64 {
    let start = odd.wrapping_mul(3) ^ 2;
    (0..4).fold(start, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse))))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The facts about a column of at least one value.
pub(super) struct Survey {
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) runs: usize,
    pub(super) scale: Scale,
    /// The least and the most of each chunk.
    pub(super) chunks: SmallVec<[(u64, u64); 4]>,
    /// The exact length of the packed form, in bytes.
    pub(super) packed: usize,
}

impl Survey {
    pub(super) fn of(values: &[u64]) -> Self {
        let chunks = values.chunks(CHUNK).map(bounds).collect::<SmallVec<[_; 4]>>();
        let least = chunks.iter().fold(u64::MAX, |least, chunk| least.min(chunk.0));
        let most = chunks.iter().fold(0, |most, chunk| most.max(chunk.1));
        let runs = 1 + values.windows(2).map(|pair| usize::from(pair[0] != pair[1])).sum::<usize>();
        let scale = Scale::of(values, least);
        let head = 1 + varint::length(least) + varint::length(scale.factor());
        let packed = values.chunks(CHUNK).zip(&chunks).map(|(chunk, &(low, high))| {
            let low = scale.divide(low - least);
            let width = width_of(scale.divide(high - least) - low);
            varint::length(low) + 1 + packed_length(chunk.len(), width)
        });
        let packed = head + packed.sum::<usize>();
        Survey { least, most, runs, scale, chunks, packed }
    }

    /// The bits of a value, were all packed alike.
    pub(super) fn width(&self) -> u32 {
        width_of(self.scale.divide(self.most - self.least))
    }

    /// About how long the runs form is.
    pub(super) fn runs_cost(&self, count: usize) -> usize {
        let run = self.width() + width_of((count / self.runs) as u64) + 1;
        12 + packed_length(self.runs, run)
    }

    /// About how long the dictionary form is.
    pub(super) fn dictionary_cost(&self, count: usize, distinct: usize) -> usize {
        let index = width_of((distinct - 1) as u64);
        16 + packed_length(distinct, self.width()) + packed_length(count, index) + count / 256
    }

    /// About how long the best of the forms is whose length is known without trying them.
    pub(super) fn cost(&self, count: usize) -> usize {
        if self.least == self.most {
            1 + varint::length(self.least)
        } else {
            self.packed.min(self.runs_cost(count))
        }
    }
}

/// The least and the most of some values.
fn bounds(values: &[u64]) -> (u64, u64) {
    // In several lanes, so that no comparison waits for the result of the one before it.
    const LANES: usize = 4;
    let (quads, rest) = values.as_chunks::<LANES>();
    let (mut least, mut most) = ([u64::MAX; LANES], [0; LANES]);
    for quad in quads {
        for lane in 0..LANES {
            least[lane] = least[lane].min(quad[lane]);
            most[lane] = most[lane].max(quad[lane]);
        }
    }
    let least = rest.iter().chain(&least).fold(u64::MAX, |least, &value| least.min(value));
    let most = rest.iter().chain(&most).fold(0, |most, &value| most.max(value));
    (least, most)
}

/// Whether differences look smaller than values do, on a sample.
pub(super) fn delta_looks_smaller(values: &[u64], least: u64) -> bool {
    let step = (values.len() / 64).max(1);
    let (mut plain, mut delta) = (0, 0);
    for pair in values.windows(2).step_by(step) {
        plain += width_of(pair[1] - least);
        delta += width_of(super::zigzag(pair[0], pair[1]));
    }
    delta * 10 < plain * 9
}

/// Whether a general compressor would probably take fewer than `bits` for each value, which has `width` bytes. It is estimated
/// on a sample: a compressor gains where the bytes are unevenly distributed, or follow from those before them.
pub(super) fn compresses(values: impl Iterator<Item = u64>, width: usize, bits: u64) -> bool {
    let mut counts = [[0_u32; 256]; 8];
    let mut follows = [[0_u8; 256]; 8];
    let mut before = [0; 8];
    let (mut total, mut foretold) = (0_u32, 0_u32);
    for value in values {
        let bytes = value.to_le_bytes();
        for plane in 0..width {
            let byte = bytes[plane];
            counts[plane][usize::from(byte)] += 1;
            let guess = &mut follows[plane][usize::from(before[plane])];
            foretold += u32::from(*guess == byte);
            *guess = byte;
        }
        before = bytes;
        total += 1;
    }
    // Order-0 entropy, in sixteenths of a bit.
    let all = u64::from(total) * log2_sixteenths(total) * width as u64;
    let own = counts.iter().flatten().map(|&count| u64::from(count) * log2_sixteenths(count)).sum::<u64>();
    (all - own) * 10 < bits * u64::from(total) * 16 * 9
        || u64::from(foretold) * 2 > u64::from(total) * width as u64
}

/// The binary logarithm in sixteenths, in integers so that it is the same on every machine. It is at most 9 % of a bit too low.
pub(crate) fn log2_sixteenths(value: u32) -> u64 {
    if value < 2 {
        return 0;
    }
    let exponent = value.ilog2();
    u64::from(exponent) * 16 + ((u64::from(value) << 4 >> exponent) - 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_divides_exactly() {
        for (step, odd) in
            [(1, 1), (2, 1), (1_000_000, 15_625), (3, 3), (7 << 40, 7), (0xffff_fff1, 0xffff_fff1)]
        {
            let least = 5_000;
            let values: Vec<u64> = [9, 0, 4, 1, 2, 4, 15].iter().map(|k| least + k * step).collect();
            let scale = Scale::of(&values, least);
            assert_eq!((scale.factor(), scale.odd), (step, odd));
            values.iter().for_each(|value| assert_eq!(scale.divide(value - least), (value - least) / step));
        }
        assert_eq!(Scale::of(&[0, u64::MAX], 0).factor(), u64::MAX);
        assert_eq!(Scale::of(&[0, 1 << 63], 0).factor(), 1 << 63);
        assert_eq!(Scale::of(&[0, 0], 0).factor(), 1);
        assert_eq!(Scale::of(&[0, 2, u64::MAX], 0).factor(), 1);
    }
}
