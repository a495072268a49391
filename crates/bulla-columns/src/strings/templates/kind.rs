//! What the values of a column stand for.

/// The most decimal digits of a number, and the most hexadecimal ones.
pub(super) const MOST_DECIMAL: usize = 19;
pub(super) const MOST_HEXADECIMAL: usize = 16;

/// What the values of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 0 for the next spelled word, otherwise one more than a word's number.
    Word,
    /// A run of 1 to [`MOST_DECIMAL`] decimal digits, which may begin with zeros. The column's value is the run's own value plus the
    /// number of all runs that are shorter.
    Decimal,
    /// A fixed number of hexadecimal digits, from 1 to [`MOST_HEXADECIMAL`]; those above 9 are all lower-case letters, or all
    /// upper-case ones.
    Hexadecimal { digits: u8, upper: bool },
}

/// The byte that stands for a kind; for hexadecimal, the number of digits is added to it.
const WORD: u8 = 0;
const DECIMAL: u8 = 1;
const LOWER: u8 = 1;
const UPPER: u8 = 17;

/// For each number of digits, how many shorter runs there are: 0, 0, 10, 110, and so on.
const SHORTER: [u64; MOST_DECIMAL + 2] = {
    let mut shorter = [0; MOST_DECIMAL + 2];
    let mut digits = 2;
    while digits < shorter.len() {
        shorter[digits] = (shorter[digits - 1] + 1) * 10;
        digits += 1;
    }
    shorter
};

impl Kind {
    pub(super) fn byte(self) -> u8 {
        match self {
            Kind::Word => WORD,
            Kind::Decimal => DECIMAL,
            Kind::Hexadecimal { digits, upper: false } => LOWER + digits,
            Kind::Hexadecimal { digits, upper: true } => UPPER + digits,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            WORD => Some(Kind::Word),
            DECIMAL => Some(Kind::Decimal),
            2..=17 => Some(Kind::Hexadecimal { digits: byte - LOWER, upper: false }),
            18..=33 => Some(Kind::Hexadecimal { digits: byte - UPPER, upper: true }),
            _ => None,
        }
    }

    /// The highest value that a column of this kind may have. For words it depends on how many there are, and is checked later.
    pub(super) fn most(self) -> u64 {
        match self {
            Kind::Word => u64::MAX,
            Kind::Decimal => SHORTER[MOST_DECIMAL + 1] - 1,
            Kind::Hexadecimal { digits, .. } => u64::MAX >> (64 - 4 * u32::from(digits)),
        }
    }
}

/// The value of a run of decimal digits, if it is not too long.
#[inline]
pub(crate) fn decimal(run: &[u8]) -> Option<u64> {
    let shorter = SHORTER[..=MOST_DECIMAL].get(run.len())?;
    Some(shorter + run.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// How many digits a value of a decimal column has.
#[inline]
pub(crate) fn decimal_length(value: u64) -> u8 {
    let mut digits = 1;
    while digits < MOST_DECIMAL && value >= SHORTER[digits + 1] {
        digits += 1;
    }
    digits.to_le_bytes()[0]
}

/// How many runs of fewer decimal digits there are: of the values of a run of so many digits the first.
#[inline]
pub(crate) fn shorter(digits: u8) -> u64 {
    SHORTER[usize::from(digits)]
}

/// Writes the run of digits of a value, as long as [`decimal_length`] says.
#[inline]
pub(crate) fn write_decimal(value: u64, run: &mut [u8]) {
    let mut rest = value - SHORTER[run.len()];
    for digit in run.iter_mut().rev() {
        *digit = b'0' + (rest % 10).to_le_bytes()[0];
        rest /= 10;
    }
}

/// The value of hexadecimal digits, of which there are at most sixteen.
#[inline]
pub(crate) fn hexadecimal(run: &[u8]) -> u64 {
    const ALL: u128 = u128::MAX / 0xff;
    let mut digits = [b'0'; MOST_HEXADECIMAL];
    digits[MOST_HEXADECIMAL - run.len()..].copy_from_slice(run);
    let digits = u128::from_be_bytes(digits);
    // The low half of a digit's byte is its value; of a letter's byte it is 1 for A, and bit 6 says that it is a letter, for
    // which 9 is added. Then the digits are brought side by side: pairs, quads, eights, all.
    let digits = (digits & (ALL * 15)) + 9 * (digits >> 6 & ALL);
    let closer = |digits: u128, gap: u32| (digits | digits >> gap) & (u128::MAX / ((1 << (2 * gap)) + 1));
    let digits = closer(closer(closer(digits, 4), 8), 16);
    let halves = (digits | digits >> 32).to_le_bytes();
    u64::from_le_bytes(*halves.first_chunk().expect("sixteen bytes begin with eight"))
}

#[inline]
pub(crate) fn write_hexadecimal(value: u64, upper: bool, run: &mut [u8]) {
    let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let mut rest = value;
    for digit in run.iter_mut().rev() {
        *digit = digits[usize::from(rest.to_le_bytes()[0] & 15)];
        rest >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal_again(value: u64) -> String {
        let mut run = vec![0; decimal_length(value).into()];
        write_decimal(value, &mut run);
        String::from_utf8(run).unwrap()
    }

    proptest! {
        #[test]
        fn digits_come_back(run in "[0-9]{1,19}", lower in "[0-9a-f]{1,16}") {
            prop_assert_eq!(decimal_again(decimal(run.as_bytes()).unwrap()), run);
            for (text, upper) in [(lower.clone(), false), (lower.to_uppercase(), true)] {
                let value = hexadecimal(text.as_bytes());
                prop_assert_eq!(value, u64::from_str_radix(&text, 16).unwrap());
                let mut run = vec![0; text.len()];
                write_hexadecimal(value, upper, &mut run);
                prop_assert_eq!(run, text.into_bytes());
            }
        }
    }

    #[test]
    fn runs_of_digits_are_numbered_without_a_hole() {
        for (value, run) in
            ["0", "9", "00", "99", "000", "999", "0000"].iter().zip([0, 9, 10, 109, 110, 1109, 1110])
        {
            assert_eq!(decimal(value.as_bytes()), Some(run), "{value}");
        }
        let last = "9".repeat(MOST_DECIMAL);
        assert_eq!(decimal(last.as_bytes()), Some(Kind::Decimal.most()));
        assert_eq!(decimal_again(Kind::Decimal.most()), last);
        assert_eq!(decimal(b"00000000000000000000"), None);
        for digits in 1..=MOST_DECIMAL {
            let (first, last) = ("0".repeat(digits), "9".repeat(digits));
            assert_eq!(decimal_again(decimal(first.as_bytes()).unwrap()), first);
            assert_eq!(decimal_again(decimal(last.as_bytes()).unwrap()), last);
        }
    }

    #[test]
    fn each_kind_has_its_byte() {
        for byte in 0..=u8::MAX {
            let kind = Kind::from_byte(byte);
            assert_eq!(kind.is_some(), byte < 34);
            assert!(kind.is_none_or(|kind| kind.byte() == byte));
        }
        assert_eq!(Kind::Hexadecimal { digits: 1, upper: true }.most(), 15);
        assert_eq!(Kind::Hexadecimal { digits: 16, upper: false }.most(), u64::MAX);
    }
}
