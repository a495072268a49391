//! As much of CBOR (RFC 8949) as receipts take, in its deterministic encoding (section 4.2.1) and in no other: integers and lengths in
//! their shortest form, nothing of indefinite length. What is read is borrowed, so that nothing is allocated on the word of a length.

/// Major types (section 3.1), in the upper three bits of an item's first byte.
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
/// The simple value `null` (section 3.3).
const NULL: u8 = 0xf6;

fn push_head(major: u8, value: u64, out: &mut Vec<u8>) {
    let first = major << 5;
    let bytes = value.to_be_bytes();
    match value {
        0..24 => out.push(first | bytes[7]),
        24..0x100 => out.extend_from_slice(&[first | 24, bytes[7]]),
        0x100..0x1_0000 => {
            out.push(first | 25);
            out.extend_from_slice(&bytes[6..]);
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(first | 26);
            out.extend_from_slice(&bytes[4..]);
        }
        0x1_0000_0000.. => {
            out.push(first | 27);
            out.extend_from_slice(&bytes);
        }
    }
}

pub(crate) fn push_unsigned(value: u64, out: &mut Vec<u8>) {
    push_head(UNSIGNED, value, out);
}

pub(crate) fn push_integer(value: i64, out: &mut Vec<u8>) {
    match u64::try_from(value) {
        Ok(value) => push_head(UNSIGNED, value, out),
        // -1 - n stands for a negative number, and that is its complement.
        Err(_) => push_head(NEGATIVE, (!value).cast_unsigned(), out),
    }
}

pub(crate) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push_head(BYTES, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

pub(crate) fn push_text(text: &str, out: &mut Vec<u8>) {
    push_head(TEXT, text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Begins an array of so many items.
pub(crate) fn push_array(length: u64, out: &mut Vec<u8>) {
    push_head(ARRAY, length, out);
}

/// Begins a map of so many pairs.
pub(crate) fn push_map(length: u64, out: &mut Vec<u8>) {
    push_head(MAP, length, out);
}

/// Tags the item that follows.
pub(crate) fn push_tag(tag: u64, out: &mut Vec<u8>) {
    push_head(TAG, tag, out);
}

pub(crate) fn push_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// At this byte, counted from 0, stands something else than what has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unexpected {
    pub(crate) offset: usize,
    pub(crate) expected: &'static str,
}

/// Items as they are taken off the front, and where in the file they stand.
#[derive(Clone, Copy)]
pub(crate) struct Items<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Items<'a> {
    pub(crate) fn new(file: &'a [u8]) -> Self {
        Items { rest: file, offset: 0 }
    }

    /// The error that `expected` does not stand here.
    pub(crate) fn unexpected(&self, expected: &'static str) -> Unexpected {
        Unexpected { offset: self.offset, expected }
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, Unexpected> {
        Err(self.unexpected(expected))
    }

    /// Takes the head of an item of this type: its value, or its length.
    fn head(&mut self, major: u8, expected: &'static str) -> Result<u64, Unexpected> {
        let read = || {
            let (&first, rest) = self.rest.split_first()?;
            let width = match first & 0x1f {
                0..24 => 0,
                24 => 1,
                25 => 2,
                26 => 4,
                27 => 8,
                _ => return None,
            };
            let (bytes, rest) = rest.split_at_checked(width)?;
            let value = match width {
                0 => u64::from(first & 0x1f),
                _ => bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)),
            };
            let least = match width {
                0 => 0,
                1 => 24,
                width => 1 << (4 * width),
            };
            (first >> 5 == major && value >= least).then_some((value, rest))
        };
        match read() {
            Some((value, rest)) => {
                self.pass(rest);
                Ok(value)
            }
            None => self.expected(expected),
        }
    }

    fn pass(&mut self, rest: &'a [u8]) {
        self.offset += self.rest.len() - rest.len();
        self.rest = rest;
    }

    /// Takes so many bytes.
    fn take(&mut self, length: u64, expected: &'static str) -> Result<Items<'a>, Unexpected> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((taken, rest)) = split else { return self.expected(expected) };
        let items = Items { rest: taken, offset: self.offset };
        self.pass(rest);
        Ok(items)
    }

    pub(crate) fn unsigned(&mut self, expected: &'static str) -> Result<u64, Unexpected> {
        self.head(UNSIGNED, expected)
    }

    /// Takes the integer `value`: the label of a header parameter, or a value that is the only one that is known.
    pub(crate) fn integer(&mut self, value: i64, expected: &'static str) -> Result<(), Unexpected> {
        let mut spelled = Vec::with_capacity(9);
        push_integer(value, &mut spelled);
        match self.rest.strip_prefix(&spelled[..]) {
            Some(rest) => {
                self.pass(rest);
                Ok(())
            }
            None => self.expected(expected),
        }
    }

    /// Takes a string of bytes.
    pub(crate) fn bytes(&mut self, expected: &'static str) -> Result<&'a [u8], Unexpected> {
        Ok(self.items(expected)?.rest)
    }

    /// Takes a string of bytes that holds items.
    pub(crate) fn items(&mut self, expected: &'static str) -> Result<Items<'a>, Unexpected> {
        let before = *self;
        let length = self.head(BYTES, expected)?;
        self.take(length, expected).or_else(|_| before.expected(expected))
    }

    /// Takes a string of exactly `N` bytes.
    pub(crate) fn array_of<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], Unexpected> {
        let before = *self;
        self.bytes(expected)?.try_into().or_else(|_| before.expected(expected))
    }

    pub(crate) fn text(&mut self, expected: &'static str) -> Result<&'a str, Unexpected> {
        let before = *self;
        let length = self.head(TEXT, expected)?;
        let text = self.take(length, expected).ok();
        text.and_then(|text| std::str::from_utf8(text.rest).ok())
            .map_or_else(|| before.expected(expected), Ok)
    }

    /// Takes the beginning of an array: how many items follow.
    pub(crate) fn array(&mut self, expected: &'static str) -> Result<u64, Unexpected> {
        self.head(ARRAY, expected)
    }

    /// Takes the beginning of an array of exactly so many items.
    pub(crate) fn array_with(&mut self, length: u64, expected: &'static str) -> Result<(), Unexpected> {
        let before = *self;
        if self.array(expected)? == length { Ok(()) } else { before.expected(expected) }
    }

    /// Takes the beginning of a map of exactly so many pairs.
    pub(crate) fn map_with(&mut self, length: u64, expected: &'static str) -> Result<(), Unexpected> {
        let before = *self;
        if self.head(MAP, expected)? == length { Ok(()) } else { before.expected(expected) }
    }

    pub(crate) fn tag(&mut self, tag: u64, expected: &'static str) -> Result<(), Unexpected> {
        let before = *self;
        if self.head(TAG, expected)? == tag { Ok(()) } else { before.expected(expected) }
    }

    pub(crate) fn null(&mut self, expected: &'static str) -> Result<(), Unexpected> {
        match self.rest.strip_prefix(&[NULL]) {
            Some(rest) => {
                self.pass(rest);
                Ok(())
            }
            None => self.expected(expected),
        }
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self, expected: &'static str) -> Result<(), Unexpected> {
        if self.rest.is_empty() { Ok(()) } else { self.expected(expected) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digits).collect()
    }

    /// RFC 8949, appendix A.
    #[test]
    fn integers_are_spelled_as_the_specification_has_them() {
        let known = [
            (0, "00"),
            (23, "17"),
            (24, "1818"),
            (100, "1864"),
            (1000, "1903e8"),
            (1_000_000, "1a000f4240"),
            (1_000_000_000_000, "1b000000e8d4a51000"),
            (-1, "20"),
            (-10, "29"),
            (-100, "3863"),
            (-1000, "3903e7"),
        ];
        for (value, spelled) in known {
            let mut out = Vec::new();
            push_integer(value, &mut out);
            assert_eq!(out, hex(spelled), "{value}");
            let mut items = Items::new(&out);
            assert_eq!(items.integer(value, "it"), Ok(()));
            assert_eq!(items.end("nothing"), Ok(()));
            if let Ok(value) = u64::try_from(value) {
                assert_eq!(Items::new(&out).unsigned("it"), Ok(value));
            }
        }
        let mut out = Vec::new();
        push_unsigned(u64::MAX, &mut out);
        assert_eq!(out, hex("1bffffffffffffffff"));
        assert_eq!(Items::new(&out).unsigned("it"), Ok(u64::MAX));
    }

    #[test]
    fn every_other_spelling_is_refused() {
        let others =
            ["1817", "190018", "1900ff", "1a0000ffff", "1b00000000ffffffff", "1c", "1f", "18", "19ff", ""];
        for spelled in others {
            let bytes = hex(spelled);
            let refused = Items::new(&bytes).unsigned("a number");
            assert_eq!(refused, Err(Unexpected { offset: 0, expected: "a number" }), "{spelled}");
        }
    }

    #[test]
    fn a_length_past_the_end_is_refused_where_the_item_stands() {
        for spelled in ["5bffffffffffffffff00", "4401", "58ff00"] {
            let bytes = [&[0x00], &hex(spelled)[..]].concat();
            let mut items = Items::new(&bytes);
            items.unsigned("0").unwrap();
            assert_eq!(items.bytes("bytes"), Err(Unexpected { offset: 1, expected: "bytes" }));
        }
        assert!(Items::new(&hex("62c328")).text("text").is_err(), "what is not UTF-8 is no text");
    }
}
