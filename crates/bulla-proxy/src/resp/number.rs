//! [`Number`]: a count or a length, which stands alone in its line.

/// A decimal number that comes in pieces, with the end of its line. It has one spelling, that of Redis (`string2ll`): no plus,
/// no zero before other digits, no `-0`, 64 bits.
#[derive(Clone, Copy, Default)]
pub(super) struct Number {
    magnitude: u64,
    digits: u8,
    negative: bool,
    /// The carriage return has come.
    ended: bool,
}

/// What became of a number with the bytes that were taken.
pub(super) enum Taken {
    /// It is not at its end.
    More,
    /// It is this, and after its carriage return came the byte `last`.
    Ended { value: i64, last: u8 },
    /// It is no number.
    Refused,
}

/// So many digits fit any `u64`, and no `i64` has more.
const DIGITS: u8 = 19;

impl Number {
    /// Whether nothing of it has come.
    pub(super) fn is_empty(&self) -> bool {
        self.digits == 0 && !self.negative
    }

    /// Goes on at `bytes[*at]`, up to its end.
    #[inline]
    pub(super) fn read(&mut self, bytes: &[u8], at: &mut usize) -> Taken {
        if self.is_empty()
            && let Some((value, length)) = short(&bytes[*at..])
        {
            *at += length;
            return Taken::Ended { value: value.into(), last: bytes[*at - 1] };
        }
        self.read_on(bytes, at)
    }

    fn read_on(&mut self, bytes: &[u8], at: &mut usize) -> Taken {
        let mut number = *self;
        for &byte in &bytes[*at..] {
            *at += 1;
            match byte {
                last if number.ended => {
                    return match number.value() {
                        Some(value) => Taken::Ended { value, last },
                        None => Taken::Refused,
                    };
                }
                b'0'..=b'9' if number.digits == 0 || number.magnitude > 0 && number.digits < DIGITS => {
                    number.magnitude = number.magnitude * 10 + u64::from(byte - b'0');
                    number.digits += 1;
                }
                b'\r' if number.digits > 0 && !(number.negative && number.magnitude == 0) => {
                    number.ended = true;
                }
                b'-' if number.is_empty() => number.negative = true,
                _ => return Taken::Refused,
            }
        }
        *self = number;
        Taken::More
    }

    fn value(&self) -> Option<i64> {
        match self.negative {
            true => 0_i64.checked_sub_unsigned(self.magnitude),
            false => i64::try_from(self.magnitude).ok(),
        }
    }
}

/// A number of one to four digits, where it and the end of its line are all there; and how many bytes these are. What most are.
#[inline]
pub(super) fn short(bytes: &[u8]) -> Option<(u16, usize)> {
    let mut value = 0;
    for (place, &byte) in bytes.iter().enumerate().take(5) {
        match byte {
            b'0'..=b'9' if place < 4 => value = value * 10 + u16::from(byte - b'0'),
            b'\r' if place == 1 || place > 1 && bytes[0] != b'0' => {
                return (place + 2 <= bytes.len()).then_some((value, place + 2));
            }
            _ => break,
        }
    }
    None
}
