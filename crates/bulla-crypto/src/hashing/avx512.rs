//! Sixteen lanes of AVX-512.
#![allow(unsafe_code)]

use super::compress::compress;
use super::lanes::Lanes;
use super::states::{BLOCK, LANES, States};
use std::arch::x86_64::*;

/// A processor that can.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// A call of what is compiled for AVX-512 and safe where that is: all that is called here, functions with pointers being
/// wrapped below.
macro_rules! call {
    ($processor:expr, $function:ident $(::<$number:tt>)? ($($argument:expr),*)) => {{
        let Avx512(()) = $processor;
        // SAFETY: `detect`, which alone makes an `Avx512`, has found what the function is compiled for.
        unsafe { $function $(::<$number>)? ($($argument),*) }
    }};
}

impl Avx512 {
    /// `None` where it cannot.
    pub(super) fn detect() -> Option<Avx512> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")).then_some(Avx512(()))
    }

    /// Takes a block into each lane.
    #[inline]
    pub(super) fn compress(self, states: &mut States, blocks: &[&[u8; BLOCK]; LANES]) {
        call!(self, compiled(self, states, blocks));
    }
}

/// The kernel with everything in it, compiled for these lanes.
#[target_feature(enable = "avx512f,avx512bw")]
fn compiled(lanes: Avx512, states: &mut States, blocks: &[&[u8; BLOCK]; LANES]) {
    compress(lanes, states, blocks);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u32; LANES]) -> __m512i {
    // SAFETY: sixteen words are the 64 bytes that are loaded, which need no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(register: __m512i, words: &mut [u32; LANES]) {
    // SAFETY: as `load`.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_block(block: &[u8; BLOCK]) -> __m512i {
    let swapped = _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
    // SAFETY: the block has the 64 bytes that are loaded, which need no alignment.
    _mm512_shuffle_epi8(unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }, swapped)
}

impl Lanes for Avx512 {
    type Register = __m512i;

    #[inline(always)]
    fn splat(self, word: u32) -> __m512i {
        call!(self, _mm512_set1_epi32(word.cast_signed()))
    }

    #[inline(always)]
    fn load(self, words: &[u32; LANES]) -> __m512i {
        call!(self, load(words))
    }

    #[inline(always)]
    fn store(self, register: __m512i, words: &mut [u32; LANES]) {
        call!(self, store(register, words));
    }

    #[inline(always)]
    fn load_block(self, block: &[u8; BLOCK]) -> __m512i {
        call!(self, load_block(block))
    }

    #[inline(always)]
    fn add(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_add_epi32(one, other))
    }

    #[inline(always)]
    fn xor(self, x: __m512i, y: __m512i, z: __m512i) -> __m512i {
        call!(self, _mm512_ternarylogic_epi32::<0x96>(x, y, z))
    }

    #[inline(always)]
    fn choice(self, x: __m512i, y: __m512i, z: __m512i) -> __m512i {
        call!(self, _mm512_ternarylogic_epi32::<0xca>(x, y, z))
    }

    #[inline(always)]
    fn majority(self, x: __m512i, y: __m512i, z: __m512i) -> __m512i {
        call!(self, _mm512_ternarylogic_epi32::<0xe8>(x, y, z))
    }

    #[inline(always)]
    fn rotate_right<const BITS: i32>(self, register: __m512i) -> __m512i {
        call!(self, _mm512_ror_epi32::<BITS>(register))
    }

    #[inline(always)]
    fn shift_right<const BITS: u32>(self, register: __m512i) -> __m512i {
        call!(self, _mm512_srli_epi32::<BITS>(register))
    }

    #[inline(always)]
    fn interleave_low(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_unpacklo_epi32(one, other))
    }

    #[inline(always)]
    fn interleave_high(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_unpackhi_epi32(one, other))
    }

    #[inline(always)]
    fn low_pairs(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_unpacklo_epi64(one, other))
    }

    #[inline(always)]
    fn high_pairs(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_unpackhi_epi64(one, other))
    }

    #[inline(always)]
    fn even_quarters(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_shuffle_i32x4::<0x88>(one, other))
    }

    #[inline(always)]
    fn odd_quarters(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_shuffle_i32x4::<0xdd>(one, other))
    }
}
