//! The pieces of JSON that the formats write.

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// Writes `text` as a JSON string.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.push(b'"');
    let mut written = 0;
    for (position, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[written..position]);
        written = position + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.push(HEXADECIMAL[usize::from(byte >> 4)]);
                out.push(HEXADECIMAL[usize::from(byte & 15)]);
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
