//! Packs the numbers of words as [`bitpack`](super::super::bitpack) packs integers, eight numbers at a time.

/// Appends numbers of `width` bits each, of which eight take `width` bytes.
pub(super) fn pack(indexes: &[u8], width: u32, out: &mut Vec<u8>) {
    match width {
        0 => {}
        1 => pack_in::<1>(indexes, out),
        2 => pack_in::<2>(indexes, out),
        3 => pack_in::<3>(indexes, out),
        4 => pack_in::<4>(indexes, out),
        5 => pack_in::<5>(indexes, out),
        6 => pack_in::<6>(indexes, out),
        7 => pack_in::<7>(indexes, out),
        _ => out.extend_from_slice(indexes),
    }
}

/// Eight numbers stand in the eight bytes of a word, with gaps between them. Three steps close the gaps: first within pairs, then
/// within quads, then between the two quads.
fn pack_in<const WIDTH: usize>(indexes: &[u8], out: &mut Vec<u8>) {
    let closer = |word: u64, lower: u64, gap: usize| word & lower | (word & !lower) >> gap;
    let side_by_side = |word: u64| {
        let pairs = closer(word, 0x00ff_00ff_00ff_00ff, 8 - WIDTH);
        let quads = closer(pairs, 0x0000_ffff_0000_ffff, 2 * (8 - WIDTH));
        closer(quads, 0x0000_0000_ffff_ffff, 4 * (8 - WIDTH))
    };
    let (eights, rest) = indexes.as_chunks::<8>();
    let start = out.len();
    let length = (indexes.len() * WIDTH).div_ceil(8);
    // Eight bytes are written each time, of which `WIDTH` count; the others are overwritten by the next, or cut off.
    out.resize(start + length + 8, 0);
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for (eight, at) in eights.iter().chain([&last]).zip((start..).step_by(WIDTH)) {
        out[at..at + 8].copy_from_slice(&side_by_side(u64::from_le_bytes(*eight)).to_le_bytes());
    }
    out.truncate(start + length);
}

/// Reads what [`pack`] wrote; `None` where it would not have written these bytes.
pub(super) fn unpack(packed: &[u8], width: u32, indexes: &mut [u8]) -> Option<()> {
    match width {
        0 => {
            indexes.fill(0);
            packed.is_empty().then_some(())
        }
        1 => unpack_in::<1>(packed, indexes),
        2 => unpack_in::<2>(packed, indexes),
        3 => unpack_in::<3>(packed, indexes),
        4 => unpack_in::<4>(packed, indexes),
        5 => unpack_in::<5>(packed, indexes),
        6 => unpack_in::<6>(packed, indexes),
        7 => unpack_in::<7>(packed, indexes),
        _ => unpack_in::<8>(packed, indexes),
    }
}

/// Opens the gaps again that [`pack_in`] closed, in the opposite order.
fn unpack_in<const WIDTH: usize>(packed: &[u8], indexes: &mut [u8]) -> Option<()> {
    let apart = |word: u64, lower: u64, gap: usize| word & lower | (word & !lower) << gap;
    let low = |bits: usize| u64::MAX >> (64 - bits);
    let in_bytes = |word: u64| {
        let quads = apart(word & low(8 * WIDTH), low(4 * WIDTH), 4 * (8 - WIDTH));
        let pairs = apart(quads, low(2 * WIDTH) * 0x0000_0001_0000_0001, 2 * (8 - WIDTH));
        apart(pairs, low(WIDTH) * 0x0001_0001_0001_0001, 8 - WIDTH)
    };
    let (eights, rest) = indexes.as_chunks_mut::<8>();
    let (words, tail) = packed.split_at_checked(eights.len() * WIDTH)?;
    let (words, _) = words.as_chunks::<WIDTH>();
    for (eight, word) in eights.iter_mut().zip(words) {
        *eight = in_bytes(filled_up(word)).to_le_bytes();
    }
    if tail.len() != (rest.len() * WIDTH).div_ceil(8) {
        return None;
    }
    let word = filled_up(tail);
    rest.copy_from_slice(&in_bytes(word).to_le_bytes()[..rest.len()]);
    (word >> (rest.len() * WIDTH) == 0).then_some(())
}

/// Up to eight bytes as an integer, filled up with zeros.
#[inline]
fn filled_up(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_is_undone(width in 0_u32..=8, indexes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mask = u8::try_from((1_u32 << width) - 1).unwrap();
            let indexes = indexes.iter().map(|index| index & mask).collect::<Vec<_>>();
            let (mut packed, mut again) = (Vec::new(), vec![0xff; indexes.len()]);
            pack(&indexes, width, &mut packed);
            prop_assert_eq!(packed.len(), (indexes.len() * width as usize).div_ceil(8));
            prop_assert_eq!(unpack(&packed, width, &mut again), Some(()));
            prop_assert_eq!(again, indexes);
        }
    }

    #[test]
    fn bits_that_are_not_used_are_zero() {
        assert_eq!(unpack(&[0b0000_0101], 1, &mut [0; 3]), Some(()));
        for wrong in [&[0b0000_1101][..], &[], &[1, 0]] {
            assert_eq!(unpack(wrong, 1, &mut [0; 3]), None, "{wrong:?}");
        }
    }
}
