//! The compression function of SHA-256 (FIPS 180-4, section 6.2.2) on sixteen messages at once, a lane of AVX-512 each.
#![allow(unsafe_code)]

use super::states::{BLOCK, LANES, States};
use std::arch::x86_64::*;

/// A processor that can.
#[derive(Clone, Copy)]
pub(super) struct Parallel(());

impl Parallel {
    /// `None` where it cannot.
    pub(super) fn detect() -> Option<Parallel> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")).then_some(Parallel(()))
    }

    /// Takes a block into each lane.
    #[inline]
    pub(super) fn compress(self, states: &mut States, blocks: &[&[u8; BLOCK]; LANES]) {
        // SAFETY: `detect`, which alone makes a `Parallel`, has found what the function is compiled for.
        unsafe { compress(states, blocks) }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn compress(states: &mut States, blocks: &[&[u8; BLOCK]; LANES]) {
    let mut schedule = words(blocks);
    let mut working = [_mm512_setzero_si512(); 8];
    for (word, lanes) in working.iter_mut().zip(&states.0) {
        *word = load(lanes);
    }
    for (round, constants) in ROUNDS.iter().enumerate() {
        for step in 0..16 {
            if round > 0 {
                let older = add(schedule[step], small_sigma_0(schedule[(step + 1) % 16]));
                let newer = add(schedule[(step + 9) % 16], small_sigma_1(schedule[(step + 14) % 16]));
                schedule[step] = add(older, newer);
            }
            let [a, b, c, d, e, f, g, h] = working;
            let word = add(schedule[step], _mm512_set1_epi32(constants[step].cast_signed()));
            let first = add(add(h, word), add(large_sigma_1(e), choice(e, f, g)));
            let second = add(large_sigma_0(a), majority(a, b, c));
            working = [add(first, second), a, b, c, add(d, first), e, f, g];
        }
    }
    for (word, lanes) in working.into_iter().zip(&mut states.0) {
        store(add(word, load(lanes)), lanes);
    }
}

/// The big-endian words of the blocks: the first of all, the second of all, and so on.
#[target_feature(enable = "avx512f,avx512bw")]
fn words(blocks: &[&[u8; BLOCK]; LANES]) -> [__m512i; 16] {
    let swapped = _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
    let mut rows = [_mm512_setzero_si512(); 16];
    for (row, block) in rows.iter_mut().zip(blocks) {
        // SAFETY: the block has the 64 bytes that are loaded, which need no alignment.
        *row = _mm512_shuffle_epi8(unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }, swapped);
    }
    transpose(rows)
}

/// Rows to columns: pairs of rows, then pairs of pairs, then quarters of registers.
#[target_feature(enable = "avx512f")]
fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut pairs = rows;
    for at in (0..16).step_by(2) {
        pairs[at] = _mm512_unpacklo_epi32(rows[at], rows[at + 1]);
        pairs[at + 1] = _mm512_unpackhi_epi32(rows[at], rows[at + 1]);
    }
    let mut fours = pairs;
    for at in (0..16).step_by(4) {
        fours[at] = _mm512_unpacklo_epi64(pairs[at], pairs[at + 2]);
        fours[at + 1] = _mm512_unpackhi_epi64(pairs[at], pairs[at + 2]);
        fours[at + 2] = _mm512_unpacklo_epi64(pairs[at + 1], pairs[at + 3]);
        fours[at + 3] = _mm512_unpackhi_epi64(pairs[at + 1], pairs[at + 3]);
    }
    let mut columns = fours;
    for at in 0..4 {
        let even_above = _mm512_shuffle_i32x4::<0x88>(fours[at], fours[at + 4]);
        let even_below = _mm512_shuffle_i32x4::<0x88>(fours[at + 8], fours[at + 12]);
        let odd_above = _mm512_shuffle_i32x4::<0xdd>(fours[at], fours[at + 4]);
        let odd_below = _mm512_shuffle_i32x4::<0xdd>(fours[at + 8], fours[at + 12]);
        columns[at] = _mm512_shuffle_i32x4::<0x88>(even_above, even_below);
        columns[at + 4] = _mm512_shuffle_i32x4::<0x88>(odd_above, odd_below);
        columns[at + 8] = _mm512_shuffle_i32x4::<0xdd>(even_above, even_below);
        columns[at + 12] = _mm512_shuffle_i32x4::<0xdd>(odd_above, odd_below);
    }
    columns
}

#[target_feature(enable = "avx512f")]
fn load(lanes: &[u32; LANES]) -> __m512i {
    // SAFETY: sixteen words are the 64 bytes that are loaded, which need no alignment.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(value: __m512i, lanes: &mut [u32; LANES]) {
    // SAFETY: as `load`.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), value) }
}

#[target_feature(enable = "avx512f")]
fn add(one: __m512i, other: __m512i) -> __m512i {
    _mm512_add_epi32(one, other)
}

/// Ch (4.2).
#[target_feature(enable = "avx512f")]
fn choice(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xca>(x, y, z)
}

/// Maj.
#[target_feature(enable = "avx512f")]
fn majority(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xe8>(x, y, z)
}

#[target_feature(enable = "avx512f")]
fn xor(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(x, y, z)
}

#[target_feature(enable = "avx512f")]
fn large_sigma_0(x: __m512i) -> __m512i {
    xor(_mm512_ror_epi32::<2>(x), _mm512_ror_epi32::<13>(x), _mm512_ror_epi32::<22>(x))
}

#[target_feature(enable = "avx512f")]
fn large_sigma_1(x: __m512i) -> __m512i {
    xor(_mm512_ror_epi32::<6>(x), _mm512_ror_epi32::<11>(x), _mm512_ror_epi32::<25>(x))
}

#[target_feature(enable = "avx512f")]
fn small_sigma_0(x: __m512i) -> __m512i {
    xor(_mm512_ror_epi32::<7>(x), _mm512_ror_epi32::<18>(x), _mm512_srli_epi32::<3>(x))
}

#[target_feature(enable = "avx512f")]
fn small_sigma_1(x: __m512i) -> __m512i {
    xor(_mm512_ror_epi32::<17>(x), _mm512_ror_epi32::<19>(x), _mm512_srli_epi32::<10>(x))
}

/// K (4.2.2), by sixteen rounds.
#[rustfmt::skip]
const ROUNDS: [[u32; 16]; 4] = [
    [0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
     0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174],
    [0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
     0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967],
    [0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
     0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070],
    [0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
     0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2],
];
