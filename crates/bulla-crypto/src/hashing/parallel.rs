//! What hashes sixteen messages side by side.

#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::states::{BLOCK, LANES, States};

#[derive(Clone, Copy)]
pub(super) enum Parallel {
    Avx512(Avx512),
    #[cfg(test)]
    Plain,
}

impl Parallel {
    /// `None` where one message after the other is faster.
    pub(super) fn detect() -> Option<Parallel> {
        Avx512::detect().map(Parallel::Avx512)
    }

    /// Takes a block into each lane.
    #[inline]
    pub(super) fn compress(self, states: &mut States, blocks: &[&[u8; BLOCK]; LANES]) {
        match self {
            Parallel::Avx512(lanes) => lanes.compress(states, blocks),
            #[cfg(test)]
            Parallel::Plain => super::compress::compress(super::lanes::Plain, states, blocks),
        }
    }
}

/// A processor that can: none.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub(super) enum Avx512 {}

#[cfg(not(target_arch = "x86_64"))]
impl Avx512 {
    fn detect() -> Option<Avx512> {
        None
    }

    fn compress(self, _: &mut States, _: &[&[u8; BLOCK]; LANES]) {
        match self {}
    }
}
