//! Lanes of AVX-512.
#![allow(unsafe_code)]

use super::chunks::CHUNK;
use super::lanes::{LANES, Lanes};
use super::look_up::number_words;
use super::vocabulary::{HOME_SHIFT, SLOTS, Vocabulary};
use std::arch::x86_64::*;

/// A processor that can.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// A call of what is compiled for AVX-512 and safe where that is: all that is called here, functions with pointers being
/// wrapped below.
macro_rules! call {
    ($processor:expr, $function:ident ($($argument:expr),*)) => {{
        let Avx512(()) = $processor;
        // SAFETY: `detect`, which alone makes an `Avx512`, has found what the function is compiled for.
        unsafe { $function($($argument),*) }
    }};
}

impl Avx512 {
    /// `None` where it cannot.
    pub(super) fn detect() -> Option<Avx512> {
        let can = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("popcnt");
        can.then_some(Avx512(()))
    }

    /// As `words::number_words`, and the same numbers.
    pub(super) fn number_words(
        self,
        string: &[u8],
        vocabulary: &mut Vocabulary,
        indexes: &mut Vec<u8>,
    ) -> Option<usize> {
        call!(self, compiled(self, string, vocabulary, indexes))
    }
}

/// The kernel with everything in it, compiled for these lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,popcnt")]
fn compiled(
    lanes: Avx512,
    string: &[u8],
    vocabulary: &mut Vocabulary,
    indexes: &mut Vec<u8>,
) -> Option<usize> {
    number_words(lanes, string, vocabulary, indexes)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8]) -> __m512i {
    let there = match bytes.len() {
        0 => 0,
        length => u64::MAX >> CHUNK.saturating_sub(length),
    };
    // SAFETY: only bytes that are there are loaded, which need no alignment.
    unsafe { _mm512_maskz_loadu_epi8(there, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store(register: __m512i) -> [u8; CHUNK] {
    let mut bytes = [0; CHUNK];
    // SAFETY: the array has the 64 bytes that are stored, which need no alignment.
    unsafe { _mm512_storeu_epi8(bytes.as_mut_ptr().cast(), register) };
    bytes
}

#[inline]
#[target_feature(enable = "avx512f")]
fn slots_of(slots: &[u64; SLOTS], products: __m512i) -> __m512i {
    const { assert!(SLOTS == 1 << (u64::BITS - HOME_SHIFT)) };
    let places = _mm512_srli_epi64::<HOME_SHIFT>(products);
    // SAFETY: a place is one of a slot, because what is left of a product has as many bits as places have.
    unsafe { _mm512_i64gather_epi64::<8>(places, slots.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn numbers() -> __m512i {
    // A product and no constant in memory, which the compiler would not see through.
    _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi8(1))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn highest_of(register: __m512i) -> [u8; LANES] {
    _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(_mm512_srli_epi64::<56>(register))).to_le_bytes()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn eight_times(register: __m512i) -> __m512i {
    // Of two bytes together, since none has a bit that would leave it.
    _mm512_slli_epi16::<3>(register)
}

impl Lanes for Avx512 {
    type Register = __m512i;

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> __m512i {
        call!(self, load(bytes))
    }

    #[inline(always)]
    fn store(self, register: __m512i) -> [u8; CHUNK] {
        call!(self, store(register))
    }

    #[inline(always)]
    fn numbers(self) -> __m512i {
        call!(self, numbers())
    }

    #[inline(always)]
    fn all(self, byte: u8) -> __m512i {
        call!(self, _mm512_set1_epi8(byte.cast_signed()))
    }

    #[inline(always)]
    fn all_numbers(self, number: u64) -> __m512i {
        call!(self, _mm512_set1_epi64(number.cast_signed()))
    }

    #[inline(always)]
    fn and(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_and_si512(one, other))
    }

    #[inline(always)]
    fn xor(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_xor_si512(one, other))
    }

    #[inline(always)]
    fn add(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_add_epi8(one, other))
    }

    #[inline(always)]
    fn subtract(self, from: __m512i, what: __m512i) -> __m512i {
        call!(self, _mm512_sub_epi8(from, what))
    }

    #[inline(always)]
    fn subtract_to_zero(self, from: __m512i, what: __m512i) -> __m512i {
        call!(self, _mm512_subs_epu8(from, what))
    }

    #[inline(always)]
    fn eightfold(self, register: __m512i) -> __m512i {
        call!(self, eight_times(register))
    }

    #[inline(always)]
    fn equal(self, one: __m512i, other: __m512i) -> u64 {
        call!(self, _mm512_cmpeq_epi8_mask(one, other))
    }

    #[inline(always)]
    fn above(self, one: __m512i, other: __m512i) -> u64 {
        call!(self, _mm512_cmpgt_epu8_mask(one, other))
    }

    #[inline(always)]
    fn compress(self, chosen: u64, register: __m512i) -> __m512i {
        call!(self, _mm512_maskz_compress_epi8(chosen, register))
    }

    #[inline(always)]
    fn at(self, places: __m512i, register: __m512i) -> __m512i {
        call!(self, _mm512_permutexvar_epi8(places, register))
    }

    #[inline(always)]
    fn at_or(self, chosen: u64, places: __m512i, register: __m512i, others: __m512i) -> __m512i {
        call!(self, _mm512_mask_permutexvar_epi8(others, chosen, places, register))
    }

    #[inline(always)]
    fn at_of_two(self, places: __m512i, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_permutex2var_epi8(one, places, other))
    }

    #[inline(always)]
    fn shift_up(self, register: __m512i, bits: __m512i) -> __m512i {
        call!(self, _mm512_sllv_epi64(register, bits))
    }

    #[inline(always)]
    fn multiply(self, one: __m512i, other: __m512i) -> __m512i {
        call!(self, _mm512_mullo_epi64(one, other))
    }

    #[inline(always)]
    fn slots(self, slots: &[u64; SLOTS], products: __m512i) -> __m512i {
        call!(self, slots_of(slots, products))
    }

    #[inline(always)]
    fn common(self, one: __m512i, other: __m512i) -> u8 {
        call!(self, _mm512_test_epi64_mask(one, other))
    }

    #[inline(always)]
    fn highest(self, register: __m512i) -> [u8; LANES] {
        call!(self, highest_of(register))
    }
}
