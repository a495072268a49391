//! The compression function of SHA-256 (FIPS 180-4, section 6.2.2) on sixteen messages at once, whatever their lanes are.
//!
//! All of it is inlined into the caller, which is compiled for what the lanes are made of.

use super::lanes::Lanes;
use super::states::{BLOCK, LANES, States};

/// Takes a block into each lane.
#[inline(always)]
pub(super) fn compress<L: Lanes>(lanes: L, states: &mut States, blocks: &[&[u8; BLOCK]; LANES]) {
    let mut schedule = words(lanes, blocks);
    let mut working = [lanes.splat(0); 8];
    for (word, state) in working.iter_mut().zip(&states.0) {
        *word = lanes.load(state);
    }
    for (round, constants) in ROUNDS.iter().enumerate() {
        for step in 0..16 {
            if round > 0 {
                let older = lanes.add(schedule[step], small_sigma_0(lanes, schedule[(step + 1) % 16]));
                let newer =
                    lanes.add(schedule[(step + 9) % 16], small_sigma_1(lanes, schedule[(step + 14) % 16]));
                schedule[step] = lanes.add(older, newer);
            }
            let [a, b, c, d, e, f, g, h] = working;
            let word = lanes.add(schedule[step], lanes.splat(constants[step]));
            let first =
                lanes.add(lanes.add(h, word), lanes.add(large_sigma_1(lanes, e), lanes.choice(e, f, g)));
            let second = lanes.add(large_sigma_0(lanes, a), lanes.majority(a, b, c));
            working = [lanes.add(first, second), a, b, c, lanes.add(d, first), e, f, g];
        }
    }
    for (word, state) in working.into_iter().zip(&mut states.0) {
        lanes.store(lanes.add(word, lanes.load(state)), state);
    }
}

/// The words of the blocks: the first of all, the second of all, and so on.
#[inline(always)]
fn words<L: Lanes>(lanes: L, blocks: &[&[u8; BLOCK]; LANES]) -> [L::Register; 16] {
    let mut rows = [lanes.splat(0); 16];
    for (row, block) in rows.iter_mut().zip(blocks) {
        *row = lanes.load_block(block);
    }
    transpose(lanes, rows)
}

/// Rows to columns: pairs of rows, then pairs of pairs, then quarters of registers.
#[inline(always)]
fn transpose<L: Lanes>(lanes: L, rows: [L::Register; 16]) -> [L::Register; 16] {
    let mut pairs = rows;
    for at in (0..16).step_by(2) {
        pairs[at] = lanes.interleave_low(rows[at], rows[at + 1]);
        pairs[at + 1] = lanes.interleave_high(rows[at], rows[at + 1]);
    }
    let mut fours = pairs;
    for at in (0..16).step_by(4) {
        fours[at] = lanes.low_pairs(pairs[at], pairs[at + 2]);
        fours[at + 1] = lanes.high_pairs(pairs[at], pairs[at + 2]);
        fours[at + 2] = lanes.low_pairs(pairs[at + 1], pairs[at + 3]);
        fours[at + 3] = lanes.high_pairs(pairs[at + 1], pairs[at + 3]);
    }
    let mut columns = fours;
    for at in 0..4 {
        let even_above = lanes.even_quarters(fours[at], fours[at + 4]);
        let even_below = lanes.even_quarters(fours[at + 8], fours[at + 12]);
        let odd_above = lanes.odd_quarters(fours[at], fours[at + 4]);
        let odd_below = lanes.odd_quarters(fours[at + 8], fours[at + 12]);
        columns[at] = lanes.even_quarters(even_above, even_below);
        columns[at + 4] = lanes.even_quarters(odd_above, odd_below);
        columns[at + 8] = lanes.odd_quarters(even_above, even_below);
        columns[at + 12] = lanes.odd_quarters(odd_above, odd_below);
    }
    columns
}

#[inline(always)]
fn large_sigma_0<L: Lanes>(lanes: L, x: L::Register) -> L::Register {
    lanes.xor(lanes.rotate_right::<2>(x), lanes.rotate_right::<13>(x), lanes.rotate_right::<22>(x))
}

#[inline(always)]
fn large_sigma_1<L: Lanes>(lanes: L, x: L::Register) -> L::Register {
    lanes.xor(lanes.rotate_right::<6>(x), lanes.rotate_right::<11>(x), lanes.rotate_right::<25>(x))
}

#[inline(always)]
fn small_sigma_0<L: Lanes>(lanes: L, x: L::Register) -> L::Register {
    lanes.xor(lanes.rotate_right::<7>(x), lanes.rotate_right::<18>(x), lanes.shift_right::<3>(x))
}

#[inline(always)]
fn small_sigma_1<L: Lanes>(lanes: L, x: L::Register) -> L::Register {
    lanes.xor(lanes.rotate_right::<17>(x), lanes.rotate_right::<19>(x), lanes.shift_right::<10>(x))
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
