//! Unsigned integers of `width` bits each, one after the other, the lowest bit first, in little-endian bytes; the
//! unused bits of the last byte are zero.

use super::error::Fault;
use super::input::Input;

/// The number of bytes that `count` values of `width` bits take.
pub(super) fn packed_length(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// The bits that `value` needs.
#[inline]
pub(super) fn width_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends `values`, each below 2^`width`.
#[inline]
pub(super) fn pack(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut word = 0_u64;
    let mut filled = 0;
    for value in values {
        debug_assert!(width_of(value) <= width);
        word |= value << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            word = if filled == 0 { 0 } else { value >> (width - filled) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Reads as many values of `width` bits as `out` holds, each to become `base + scale * value`, wrapping.
pub(super) fn unpack(
    input: &mut Input<'_>,
    width: u32,
    base: u64,
    scale: u64,
    out: &mut [u64],
) -> Result<(), Fault> {
    if width > 64 {
        return Err(Fault::Form);
    }
    if width == 0 {
        out.fill(base);
        return Ok(());
    }
    let bytes = input.bytes(packed_length(out.len(), width))?;
    let used = out.len() * width as usize % 8;
    if used != 0 && bytes.last().is_some_and(|last| last >> used != 0) {
        return Err(Fault::Unused);
    }
    let mask = u64::MAX >> (64 - width);
    let width = width as usize;
    // Eight bytes hold a whole value of up to 57 bits, whichever bit of the first byte it begins at. One load reads it, as
    // long as there are eight bytes from there on; the values for which there are not are read byte by byte.
    let fast =
        if width <= 57 { out.len().min((bytes.len().saturating_sub(7) * 8).div_ceil(width)) } else { 0 };
    let (head, tail) = out.split_at_mut(fast);
    let mut bit = 0;
    for slot in head {
        let value = load(&bytes[bit / 8..bit / 8 + 8]) >> (bit % 8) & mask;
        *slot = base.wrapping_add(scale.wrapping_mul(value));
        bit += width;
    }
    for slot in tail {
        let (first, shift) = (bit / 8, bit % 8);
        let window = &bytes[first..bytes.len().min(first + 9)];
        let low = load(&window[..window.len().min(8)]) >> shift;
        let high =
            window.get(8).map_or(0, |&byte| if shift == 0 { 0 } else { u64::from(byte) << (64 - shift) });
        *slot = base.wrapping_add(scale.wrapping_mul((low | high) & mask));
        bit += width;
    }
    Ok(())
}

#[inline]
fn load(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(word) => u64::from_le_bytes(word),
        Err(_) => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_length_comes_back() {
        for width in 0..=64 {
            for count in [0, 1, 2, 7, 8, 9, 63, 64, 65, 512] {
                let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                let values: Vec<u64> = (0..count)
                    .map(|i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(9) & mask)
                    .collect();
                let mut bytes = Vec::new();
                pack(values.iter().copied(), width, &mut bytes);
                assert_eq!(bytes.len(), packed_length(values.len(), width));
                let mut back = vec![1; values.len()];
                let mut input = Input { rest: &bytes };
                unpack(&mut input, width, 0, 1, &mut back).unwrap();
                assert_eq!(back, values, "width {width}, {count} values");
                assert!(input.rest.is_empty());
            }
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        let unpack =
            |bytes: &[u8], width, count| unpack(&mut Input { rest: bytes }, width, 0, 1, &mut vec![0; count]);
        assert_eq!(unpack(&[0; 9], 65, 1), Err(Fault::Form));
        assert_eq!(unpack(&[0; 3], 8, 4), Err(Fault::Truncated));
        assert_eq!(unpack(&[0b1000], 3, 1), Err(Fault::Unused));
        assert_eq!(unpack(&[0b0111], 3, 1), Ok(()));
    }
}
