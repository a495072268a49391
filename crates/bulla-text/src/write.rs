//! The pieces of JSON that the formats write.

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// Whether a terminal obeys this character where it should show it: control characters, C1 among them, and those that change the
/// direction of what stands beside them, so that a text reads as another one (Unicode Standard Annex 9, "Directional Formatting
/// Characters"). Whoever writes somebody else's words to a terminal escapes them.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes `text` as a JSON string in which no character stands as it is that a terminal obeys.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.push(b'"');
    let mut written = 0;
    for (position, &byte) in bytes.iter().enumerate() {
        let escaped = match byte {
            b'"' | b'\\' | 0..b' ' => Some(char::from(byte)),
            // One of these begins all others that are obeyed.
            0x7f | 0xc2 | 0xd8 | 0xe2 => text[position..].chars().next().filter(|&c| is_obeyed(c)),
            _ => None,
        };
        let Some(escaped) = escaped else { continue };
        out.extend_from_slice(&bytes[written..position]);
        written = position + escaped.len_utf8();
        match escaped {
            '"' | '\\' => out.extend_from_slice(&[b'\\', byte]),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u");
                let digit = |shift: u32| HEXADECIMAL[(u32::from(escaped) >> shift & 15) as usize];
                out.extend([12, 8, 4, 0].map(digit));
            }
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Writes `value` in decimal, with zeros before it up to `width` digits.
pub(super) fn number(mut value: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    while value > 0 || out.len() - start < width.max(1) {
        out.push(b'0' + u8::try_from(value % 10).unwrap_or_default());
        value /= 10;
    }
    out[start..].reverse();
}
