//! Some bytes of a string, looked at all at once.

const ALL: u128 = u128::MAX / 0xff;
const HIGH: u128 = ALL * 0x80;
/// What a letter's two cases differ in.
const CASE: u128 = ALL * 0x20;

/// Up to sixteen bytes, the first one lowest, and zeros behind the string's end.
#[derive(Clone, Copy)]
pub(super) struct Window(u128);

impl Window {
    pub(super) const BYTES: usize = 16;

    /// Those from this place on.
    #[inline]
    pub(super) fn at(string: &[u8], at: usize) -> Self {
        let rest = string.get(at..).unwrap_or_default();
        if let Some(bytes) = rest.first_chunk() {
            return Window(u128::from_le_bytes(*bytes));
        }
        match string.last_chunk::<{ Self::BYTES }>() {
            Some(bytes) if !rest.is_empty() => {
                Window(u128::from_le_bytes(*bytes) >> (8 * (Self::BYTES - rest.len())))
            }
            _ => {
                let mut bytes = [0; Self::BYTES];
                bytes[..rest.len()].copy_from_slice(rest);
                Window(u128::from_le_bytes(bytes))
            }
        }
    }

    /// The first so many of them, as a number.
    #[inline]
    pub(super) fn first(self, count: usize) -> u128 {
        if count < Self::BYTES { self.0 & ((1 << (8 * count)) - 1) } else { self.0 }
    }

    /// How many of the first ones are letters, or above 127.
    #[inline]
    pub(super) fn letters(self) -> usize {
        leading(among(self.0 | CASE, b'a', b'z') | self.0 & HIGH)
    }

    /// How many of the first ones are decimal digits.
    #[inline]
    pub(super) fn digits(self) -> usize {
        leading(among(self.0, b'0', b'9'))
    }

    /// How many of the first ones are hexadecimal digits, those above 9 in this case.
    #[inline]
    pub(super) fn hexadecimal(self, upper: bool) -> usize {
        let letters = if upper { among(self.0, b'A', b'F') } else { among(self.0, b'a', b'f') };
        leading(among(self.0, b'0', b'9') | letters)
    }
}

/// The highest bit of each byte that is one of these, which are below 128.
#[inline]
fn among(bytes: u128, first: u8, last: u8) -> u128 {
    let low = bytes & !HIGH;
    let reaches_first = low + ALL * u128::from(0x80 - first);
    let passes_last = low + ALL * u128::from(0x7f - last);
    reaches_first & !passes_last & !bytes & HIGH
}

/// How many of the first bytes have their highest bit.
#[inline]
fn leading(bits: u128) -> usize {
    (!bits & HIGH).trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_counted_at_once_is_what_is_counted_byte_by_byte(
            string in prop_oneof!["[a-zA-Z0-9@`{\\[/: \u{80}\u{fc}]{0,40}".prop_map(String::into_bytes), proptest::collection::vec(any::<u8>(), 0..40)],
            at in 0_usize..40,
        ) {
            let at = at.min(string.len());
            let window = Window::at(&string, at);
            let rest = &string[at..string.len().min(at + Window::BYTES)];
            let count = |is: &dyn Fn(&u8) -> bool| rest.iter().take_while(|byte| is(byte)).count();
            prop_assert_eq!(window.letters(), count(&|byte| byte.is_ascii_alphabetic() || *byte > 127));
            prop_assert_eq!(window.digits(), count(&u8::is_ascii_digit));
            prop_assert_eq!(window.hexadecimal(false), count(&|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
            prop_assert_eq!(window.hexadecimal(true), count(&|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F')));
            for length in 0..=rest.len() {
                prop_assert_eq!(&window.first(length).to_le_bytes()[..length], &rest[..length]);
                prop_assert!(window.first(length).to_le_bytes()[length..].iter().all(|byte| *byte == 0));
            }
        }
    }
}
