//! Pieces that several formats are made of.

use crate::Value;
use crate::framing::find;

/// The bytes up to the first `separator`, and those behind it.
pub(super) fn cut(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    find(separator, bytes).map(|place| (&bytes[..place], &bytes[place + 1..]))
}

/// A number in decimal, of digits alone.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let sum = |sum: u64, &byte: &u8| sum.checked_mul(10)?.checked_add(digit(byte)?);
    if digits.is_empty() { None } else { digits.iter().try_fold(0, sum) }
}

/// A number where it is one, else what stands there.
pub(super) fn number(bytes: &[u8]) -> Value<'_> {
    decimal(bytes).map_or_else(|| Value::from_bytes(bytes), Value::Unsigned)
}

/// The length of what stands between quotes, the opening one not among `bytes`; a byte behind a backslash closes nothing.
pub(super) fn quoted_length(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let place = from + find(b'"', &bytes[from..])?;
        let backslashes = bytes[from..place].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if backslashes % 2 == 0 {
            return Some(place);
        }
        from = place + 1;
    }
}

/// An address and a port, cut at the last colon; an IPv6 address may stand in brackets.
pub(super) fn address_and_port(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let colon = bytes.iter().rposition(|&byte| byte == b':')?;
    let port = decimal(&bytes[colon + 1..]).filter(|&port| port <= u64::from(u16::MAX))?;
    let address = &bytes[..colon];
    let bare = address.strip_prefix(b"[").and_then(|address| address.strip_suffix(b"]"));
    Some((bare.unwrap_or(address), port))
}

/// The value of a hexadecimal digit.
pub(super) fn hexadecimal(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
