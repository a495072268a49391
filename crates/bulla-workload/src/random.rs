//! Random numbers that are the same everywhere and for ever: xoshiro256++ 1.0, seeded by SplitMix64, both by
//! Blackman and Vigna, <https://prng.di.unimi.it/> and ACM Transactions on Mathematical Software 47(4), 2021.
//!
//! A seed's sequence is cut into stretches of 2¹²⁸ numbers: the first is for the pools, which all producers share,
//! the one `n` stretches after it for producer `n - 1`.

/// SplitMix64: well-mixed numbers from any state, for seeding and for what is made anew from its number.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// xoshiro256++.
#[derive(Clone, Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    /// For the pools of a seed.
    pub(crate) fn for_pools(seed: u64) -> Self {
        let mut seeds = SplitMix(seed);
        Random(std::array::from_fn(|_| seeds.next()))
    }

    /// For the entries of a seed's producer.
    pub(crate) fn for_producer(seed: u64, producer: u32) -> Self {
        let mut random = Random::for_pools(seed);
        (0..=producer).for_each(|_| random.jump());
        random
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let Random(state) = self;
        let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// A number below `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        scale(upper(self.next()), bound)
    }

    /// One of `choices`.
    #[inline]
    pub(crate) fn choose<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[index_below(upper(self.next()), choices.len())]
    }

    /// Takes 2¹²⁸ steps.
    fn jump(&mut self) {
        const POLYNOMIAL: [u64; 4] =
            [0x180e_c6d3_3cfd_0aba, 0xd5a6_1266_f0c9_392c, 0xa958_2618_e03f_c9aa, 0x39ab_dc45_29b1_661c];
        let mut jumped = [0; 4];
        for coefficient in (0..256).map(|bit| POLYNOMIAL[bit / 64] >> (bit % 64) & 1) {
            if coefficient == 1 {
                jumped.iter_mut().zip(self.0).for_each(|(jumped, state)| *jumped ^= state);
            }
            self.next();
        }
        self.0 = jumped;
    }
}

/// Maps 32 random bits to a number below `bound`.
#[inline]
pub(crate) fn scale(random: u32, bound: u32) -> u32 {
    ((u64::from(random) * u64::from(bound)) >> 32) as u32
}

/// Maps 32 random bits to an index below `length`, which is below 2³².
#[inline]
pub(crate) fn index_below(random: u32, length: usize) -> usize {
    ((u64::from(random) * length as u64) >> 32) as usize
}

/// Of random bits, those from `lowest` on, as an index below `count`, a power of two up to 2³¹.
#[inline]
pub(crate) fn field(random: u64, lowest: u32, count: u32) -> usize {
    (lower(random >> lowest) & (count - 1)) as usize
}

#[inline]
pub(crate) fn upper(random: u64) -> u32 {
    (random >> 32) as u32
}

#[inline]
pub(crate) fn lower(random: u64) -> u32 {
    (random & 0xffff_ffff) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    // The reference implementations' answers, as the crate rand_xoshiro 0.8 gives them too.
    #[test]
    fn xoshiro_gives_its_published_numbers() {
        let mut random = Random([1, 2, 3, 4]);
        let expected = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(std::array::from_fn(|_| random.next()), expected);
    }

    #[test]
    fn split_mix_gives_its_published_numbers() {
        let mut random = SplitMix(1_477_776_061_723_855_037);
        let expected = [1_985_237_415_132_408_290, 2_979_275_885_539_914_483, 13_511_426_838_097_143_398];
        assert_eq!(std::array::from_fn(|_| random.next()), expected);
    }

    #[test]
    fn seeds_and_producers_start_where_another_implementation_does() {
        let start = |mut random: Random| [random.next(), random.next()];
        assert_eq!(start(Random::for_pools(1)), [14_971_601_782_005_023_387, 13_781_649_495_232_077_965]);
        // Eight jumps.
        assert_eq!(
            start(Random::for_producer(42, 7)),
            [13_652_740_791_314_298_544, 9_282_657_617_939_307_303]
        );
    }

    #[test]
    fn scaling_covers_the_range_and_stays_below() {
        assert_eq!((scale(0, 10), scale(u32::MAX, 10), scale(1 << 31, 10)), (0, 9, 5));
        assert_eq!((index_below(0, 3), index_below(u32::MAX, 3)), (0, 2));
    }
}
