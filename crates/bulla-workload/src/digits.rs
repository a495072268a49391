//! Numbers as text.

/// How many digits a number has.
pub(crate) fn decimal_length(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |digits| digits as usize + 1)
}

/// Writes a number.
pub(crate) fn decimal(number: u64, out: &mut Vec<u8>) {
    padded(number, decimal_length(number), out);
}

/// Writes the last `width` digits of a number, at most twenty.
pub(crate) fn padded(mut number: u64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    for digit in digits[..width].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[..width]);
}

/// Writes sixteen hexadecimal digits.
pub(crate) fn hexadecimal(number: u64, out: &mut Vec<u8>) {
    let digits: [u8; 16] =
        std::array::from_fn(|place| b"0123456789abcdef"[(number >> (60 - 4 * place) & 15) as usize]);
    out.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_said() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX] {
            let mut out = Vec::new();
            decimal(number, &mut out);
            assert_eq!(
                (String::from_utf8(out.clone()).unwrap(), out.len()),
                (number.to_string(), decimal_length(number))
            );
        }
        let mut out = Vec::new();
        padded(42, 4, &mut out);
        hexadecimal(0x0123_4567_89ab_cdef, &mut out);
        assert_eq!(out, b"00420123456789abcdef");
    }
}
