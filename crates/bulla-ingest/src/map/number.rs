//! Numbers as text.

/// A decimal number, multiplied by a power of ten; what is smaller than one then is cut off.
///
/// ```text
/// scaled("1339518083.107412", 9) == Some(1339518083107412000)
/// ```
///
/// `None` where it is no decimal number, or too large.
pub(super) fn scaled(text: &[u8], power: usize) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = match digits.iter().position(|&byte| byte == b'.') {
        Some(point) => (&digits[..point], Some(&digits[point + 1..])),
        None => (digits, None),
    };
    if whole.is_empty() || fraction.is_some_and(<[u8]>::is_empty) {
        return None;
    }
    let fraction = fraction.unwrap_or_default();
    if !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let scale = fraction.iter().chain(std::iter::repeat(&b'0')).take(power);
    let sum = whole
        .iter()
        .chain(scale)
        .try_fold(0_i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(digit - b'0')))?;
    Some(if is_negative { -sum } else { sum })
}

/// A whole number that is not negative.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_exact() {
        for (text, power, expected) in [
            ("0", 9, Some(0)),
            ("0.012", 9, Some(12_000_000)),
            ("1339518083.107412", 9, Some(1_339_518_083_107_412_000)),
            ("0.1234567891", 9, Some(123_456_789)),
            ("-1.5", 3, Some(-1_500)),
            ("18446744073709551615", 0, Some(18_446_744_073_709_551_615)),
            ("", 9, None),
            ("-", 9, None),
            (".5", 9, None),
            ("5.", 9, None),
            ("1e3", 9, None),
            ("1,5", 9, None),
            ("+1", 9, None),
            ("99999999999999999999999999999999", 9, None),
        ] {
            assert_eq!(scaled(text.as_bytes(), power), expected, "{text}");
        }
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!([&b"18446744073709551616"[..], b"", b"-1", b"1.0"].map(whole), [None; 4]);
    }
}
