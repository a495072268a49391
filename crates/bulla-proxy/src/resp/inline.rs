//! Inline commands: a line of words, as a person types them.

use super::Violation;

/// The most bytes of a line without its line feed: `PROTO_INLINE_MAX_SIZE` of Redis. A server takes a few more where they come
/// together with the line feed.
pub(super) const LONGEST: usize = 64 * 1024;

/// The next word of `line`, which has no NUL, unquoted into `word`; what follows it. `None` where there is none. As
/// `sdssplitargs` of Redis does it, but for what not all servers do alike.
pub(super) fn next_word<'line>(
    line: &'line [u8],
    word: &mut Vec<u8>,
) -> Result<Option<&'line [u8]>, Violation> {
    word.clear();
    let blanks = line.iter().take_while(|&&byte| is_blank(byte)).count();
    let mut rest = &line[blanks..];
    if rest.is_empty() {
        return Ok(None);
    }
    loop {
        match rest {
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Ok(Some(rest)),
            [quote @ (b'"' | b'\''), quoted @ ..] => {
                let rest = unquote(*quote, quoted, word)?;
                return match rest {
                    [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => Ok(Some(rest)),
                    // Redis takes the vertical tab and the form feed for blanks here, newer servers for part of the word.
                    _ => Err(Violation { what: "a blank after a closing quote was expected" }),
                };
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// Up to the closing quote; what follows it.
fn unquote<'line>(quote: u8, mut rest: &'line [u8], word: &mut Vec<u8>) -> Result<&'line [u8], Violation> {
    loop {
        let (byte, after) = match (quote, rest) {
            (_, []) => {
                return Err(Violation { what: "a closing quote was expected before the end of the line" });
            }
            (_, [byte, after @ ..]) if *byte == quote => return Ok(after),
            (b'\'', [b'\\', b'\'', after @ ..]) => (b'\'', after),
            (b'"', [b'\\', b'x', high, low, after @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (nibble(*high) << 4 | nibble(*low), after)
            }
            (b'"', [b'\\', escaped, after @ ..]) => (unescape(*escaped), after),
            (_, [byte, after @ ..]) => (*byte, after),
        };
        word.push(byte);
        rest = after;
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// C's `isspace`.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
