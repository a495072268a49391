use super::lines::Lines;
use super::{Limits, Next, record_too_long};
use crate::Refusal;

/// The most digits of a count: what has more is no count, so that a forged one does not swallow a source.
const DIGITS: usize = 7;

/// Records with their lengths before them, and lines (RFC 6587, 3.4).
#[derive(Debug, Default)]
pub(super) struct Octets {
    lines: Lines,
    /// Bytes of a message over the limit that are still to come.
    skipping: Option<usize>,
}

impl Octets {
    pub(super) fn is_skipping(&self) -> bool {
        self.skipping.is_some() || self.lines.is_skipping()
    }

    pub(super) fn next(&mut self, bytes: &[u8], ends: bool, limits: Limits) -> Next {
        if self.lines.is_skipping() {
            return self.lines.next(bytes, ends, limits);
        }
        if let Some(left) = self.skipping {
            return self.skip(left, bytes, ends, limits);
        }
        // A sender may end each message with a line end beyond its count.
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\n' | b'\r' | 0)).count();
        if blank > 0 {
            return Next::Passed { consumed: blank };
        }
        match count(bytes) {
            Count::Undecided if !ends => Next::More,
            Count::None | Count::Undecided => self.lines.next(bytes, ends, limits),
            Count::Is { head, length } if length > limits.bytes => {
                self.skip(head + length, bytes, ends, limits)
            }
            Count::Is { head, length } => match bytes.get(head..head + length) {
                Some(message) => {
                    let message = message.strip_suffix(b"\n").unwrap_or(message);
                    Next::Record { consumed: head + length, content: head..head + message.len() }
                }
                None if ends => Next::Refused {
                    consumed: bytes.len(),
                    reason: Refusal::new("the input ends before the bytes that the message's length counts"),
                },
                None => Next::More,
            },
        }
    }

    fn skip(&mut self, left: usize, bytes: &[u8], ends: bool, limits: Limits) -> Next {
        let consumed = left.min(bytes.len());
        let is_over = consumed == left || ends;
        self.skipping = (!is_over).then(|| left - consumed);
        match is_over {
            true => Next::Refused { consumed, reason: record_too_long(limits) },
            false if consumed == 0 => Next::More,
            false => Next::Passed { consumed },
        }
    }
}

enum Count {
    Is { head: usize, length: usize },
    None,
    Undecided,
}

/// A count, without a zero before it, the space after it, and the `<` that a message begins with.
fn count(bytes: &[u8]) -> Count {
    let digits = bytes.iter().take(DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if digits > DIGITS || bytes.first() == Some(&b'0') {
        return Count::None;
    }
    match &bytes[digits..] {
        [] => Count::Undecided,
        [b' '] if digits > 0 => Count::Undecided,
        [b' ', b'<', ..] if digits > 0 => {
            let length = bytes[..digits].iter().fold(0, |sum, digit| 10 * sum + usize::from(digit - b'0'));
            Count::Is { head: digits + 1, length }
        }
        _ => Count::None,
    }
}
