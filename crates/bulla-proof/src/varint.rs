//! Unsigned LEB128 integers, in their shortest form only, so that a value has one spelling.

/// The longest encoding of a `u64`, in bytes.
pub const MAX_LENGTH: usize = 10;

/// Why bytes are not a varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum VarintError {
    Truncated,
    NotMinimal,
}

/// The length of `value`'s encoding, in bytes.
#[inline]
pub const fn length(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Gives the bytes of `value`'s encoding, one after the other, to `put`.
#[inline]
pub fn encode(mut value: u64, mut put: impl FnMut(u8)) {
    while value >= 0x80 {
        put((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    put((value & 0x7f) as u8);
}

/// Appends `value`'s encoding.
#[inline]
pub fn push(value: u64, out: &mut Vec<u8>) {
    encode(value, |byte| out.push(byte));
}

/// Appends how far `number` is from `next`, the least that it may be, and sets that to the least after it.
///
/// Numbers out of order wrap, and are refused by whoever reads them.
#[inline]
pub(crate) fn push_ascending(number: u64, next: &mut u64, out: &mut Vec<u8>) {
    push(number.wrapping_sub(*next), out);
    *next = number.wrapping_add(1);
}

/// Appends the length of `bytes`, and them.
#[inline]
pub(crate) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Takes a varint off the front of `rest`.
///
/// # Errors
/// Where `rest` ends inside it, or where it is not the shortest form of a `u64`.
#[inline]
pub fn take(rest: &mut &[u8]) -> Result<u64, VarintError> {
    // Mostly it is one byte, or two.
    match *rest {
        [byte @ ..0x80, tail @ ..] => {
            *rest = tail;
            return Ok(u64::from(*byte));
        }
        [low @ 0x80..=0xff, high @ 1..0x80, tail @ ..] => {
            *rest = tail;
            return Ok(u64::from(low & 0x7f) | u64::from(*high) << 7);
        }
        _ => {}
    }
    let mut value = 0_u64;
    for (index, &byte) in rest.iter().enumerate().take(MAX_LENGTH) {
        let bits = u64::from(byte & 0x7f);
        value |= bits << (7 * index);
        if byte < 0x80 {
            if (byte == 0 && index > 0) || (index == MAX_LENGTH - 1 && byte > 1) {
                return Err(VarintError::NotMinimal);
            }
            *rest = &rest[index + 1..];
            return Ok(value);
        }
    }
    Err(if rest.len() < MAX_LENGTH { VarintError::Truncated } else { VarintError::NotMinimal })
}
