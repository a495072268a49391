//! Which bytes of a string may be part of a run, and what else is looked for in it, a bit for each byte.
//!
//! Letters, digits and bytes above 127 make runs. Where runs begin, where they end and what they are made of is then found without
//! looking at one byte after the other.
#![allow(unsafe_code)]

/// The longest string that is marked.
pub(crate) const LONGEST: usize = 1024;
const LANES: usize = u64::BITS as usize;
/// One more than strings take, of zeros, so that 64 bits can be had from any place on.
const WORDS: usize = LONGEST / LANES + 1;

/// The marks of a string. Used again, it keeps its memory.
pub(crate) struct Marks {
    length: usize,
    run: Box<[u64; WORDS]>,
    digit: Box<[u64; WORDS]>,
    /// Letters up to F, lower-case and upper-case.
    lower: Box<[u64; WORDS]>,
    upper: Box<[u64; WORDS]>,
    /// Quotation marks, backslashes and zeros.
    special: Box<[u64; WORDS]>,
}

/// What the bytes of a run are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where it ends.
    pub(crate) end: usize,
    pub(crate) has_digits: bool,
    /// Whether it has letters up to F, lower-case and upper-case, and other letters.
    pub(crate) has_lower: bool,
    pub(crate) has_upper: bool,
    pub(crate) has_others: bool,
}

impl Run {
    pub(crate) fn is_decimal(self) -> bool {
        self.has_digits && !self.has_lower && !self.has_upper && !self.has_others
    }

    /// Whether it has both decimal digits and letters of one case that are hexadecimal digits, and nothing else.
    pub(crate) fn is_hexadecimal(self) -> bool {
        self.has_digits && self.has_lower != self.has_upper && !self.has_others
    }
}

impl Default for Marks {
    fn default() -> Self {
        let zeros = || Box::new([0; WORDS]);
        Marks { length: 0, run: zeros(), digit: zeros(), lower: zeros(), upper: zeros(), special: zeros() }
    }
}

/// The 64 marks from a place on.
#[inline]
fn window(marks: &[u64; WORDS], at: usize) -> u64 {
    let (word, shift) = (at / LANES, at % LANES);
    let next = marks.get(word + 1).copied().unwrap_or(0);
    marks[word] >> shift | next << 1 << (LANES - 1 - shift)
}

/// Whether a byte is part of a run.
#[inline]
pub(crate) fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte > 127
}

impl Marks {
    /// Marks a string of at most [`LONGEST`] bytes.
    ///
    /// # Panics
    /// Where it is longer.
    pub(crate) fn mark(&mut self, string: &[u8]) {
        assert!(string.len() <= LONGEST, "a string of {} bytes is not marked", string.len());
        self.length = string.len();
        let (chunks, rest) = string.as_chunks::<LANES>();
        let mut last = [b' '; LANES];
        last[..rest.len()].copy_from_slice(rest);
        // Behind the string there are 64 marks of nothing.
        for (word, chunk) in chunks.iter().chain([&last]).enumerate() {
            let Chunk { run, digit, lower, upper, special } = Chunk::of(chunk);
            (self.run[word], self.digit[word], self.special[word]) = (run, digit, special);
            (self.lower[word], self.upper[word]) = (lower, upper);
        }
        if let Some(behind) = self.run.get_mut(chunks.len() + 1) {
            (*behind, self.special[chunks.len() + 1]) = (0, 0);
        }
    }

    /// The first place from this one on where a run or something special is.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut at = from;
        while at < self.length {
            let marks = window(&self.run, at) | window(&self.special, at);
            if marks != 0 {
                return Some(at + marks.trailing_zeros() as usize);
            }
            at += LANES;
        }
        None
    }

    /// The first special byte from a place on, among the next 64.
    #[inline]
    pub(crate) fn next_special(&self, from: usize) -> Option<usize> {
        if from >= self.length {
            return None;
        }
        let marks = window(&self.special, from);
        (marks != 0).then(|| from + marks.trailing_zeros() as usize)
    }

    /// Whether a byte is part of a run.
    #[inline]
    pub(crate) fn is_run(&self, at: usize) -> bool {
        at < self.length && self.run[at / LANES] >> (at % LANES) & 1 == 1
    }

    /// The run from a place on, which may be empty.
    #[inline]
    pub(crate) fn run(&self, start: usize) -> Run {
        let mut run = Run { end: start, ..Run::default() };
        while run.end < self.length {
            let at = run.end;
            let here = (!window(&self.run, at)).trailing_zeros();
            let of = u64::MAX.checked_shr(u64::BITS - here).unwrap_or(0);
            let (digit, lower, upper) =
                (window(&self.digit, at) & of, window(&self.lower, at) & of, window(&self.upper, at) & of);
            run.end += here as usize;
            run.has_digits |= digit != 0;
            run.has_lower |= lower != 0;
            run.has_upper |= upper != 0;
            run.has_others |= digit | lower | upper != of;
            if here < u64::BITS {
                break;
            }
        }
        run
    }

    /// The first places of a run where it changes between decimal digits and other bytes; `None` where these are more than there is room
    /// for, or the run is longer than 64 bytes.
    #[inline]
    pub(crate) fn changes<const MOST: usize>(
        &self,
        start: usize,
        end: usize,
    ) -> Option<([usize; MOST], usize)> {
        let length = u32::try_from(end - start).ok().filter(|length| (1..=u64::BITS).contains(length))?;
        let digit = window(&self.digit, start);
        let mut changes = (digit ^ digit << 1) & u64::MAX >> (u64::BITS - length) & !1;
        let count = changes.count_ones() as usize;
        let mut places = [0; MOST];
        for place in places.get_mut(..count)? {
            *place = start + changes.trailing_zeros() as usize;
            changes &= changes - 1;
        }
        Some((places, count))
    }
}

/// The marks of 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Chunk {
    run: u64,
    digit: u64,
    lower: u64,
    upper: u64,
    special: u64,
}

impl Chunk {
    #[cfg(target_arch = "x86_64")]
    fn of(bytes: &[u8; LANES]) -> Self {
        let mut all = Chunk::default();
        for (index, bytes) in bytes.as_chunks().0.iter().enumerate() {
            // SAFETY: every x86-64 has SSE2.
            let Chunk { run, digit, lower, upper, special } = unsafe { sixteen(bytes) };
            let shift = 16 * index;
            all.run |= run << shift;
            all.digit |= digit << shift;
            all.lower |= lower << shift;
            all.upper |= upper << shift;
            all.special |= special << shift;
        }
        all
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of(bytes: &[u8; LANES]) -> Self {
        Self::one_by_one(bytes)
    }

    /// One byte after the other: what all processors can, and what others are held against.
    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn one_by_one(bytes: &[u8; LANES]) -> Self {
        let marks =
            |is: fn(&u8) -> bool| bytes.iter().rev().fold(0, |marks, byte| marks << 1 | u64::from(is(byte)));
        Chunk {
            run: marks(|byte| is_run(*byte)),
            digit: marks(u8::is_ascii_digit),
            lower: marks(|byte| matches!(byte, b'a'..=b'f')),
            upper: marks(|byte| matches!(byte, b'A'..=b'F')),
            special: marks(|byte| matches!(byte, b'"' | b'\\' | 0)),
        }
    }
}

/// The marks of sixteen bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn sixteen(bytes: &[u8; 16]) -> Chunk {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8, _mm_sub_epi8,
    };
    let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
    let mask = |lanes: __m128i| u64::from(_mm_movemask_epi8(lanes).cast_unsigned());
    let halves = (bytes.first_chunk(), bytes.last_chunk());
    let (low, high) =
        (halves.0.expect("sixteen bytes begin with eight"), halves.1.expect("and end with eight"));
    let bytes = _mm_set_epi64x(i64::from_le_bytes(*high), i64::from_le_bytes(*low));
    // Which bytes are among so many from one on.
    let among = |bytes: __m128i, first: u8, count: u8| {
        let from_first = _mm_sub_epi8(bytes, all(first));
        _mm_cmpeq_epi8(_mm_min_epu8(from_first, all(count - 1)), from_first)
    };
    let is = |byte: u8| _mm_cmpeq_epi8(bytes, all(byte));
    let digit = among(bytes, b'0', 10);
    // Letters of both cases differ in one bit.
    let letter = among(_mm_or_si128(bytes, all(0x20)), b'a', 26);
    Chunk {
        // The highest bit of a byte says whether it is above 127.
        run: mask(_mm_or_si128(_mm_or_si128(digit, letter), bytes)),
        digit: mask(digit),
        lower: mask(among(bytes, b'a', 6)),
        upper: mask(among(bytes, b'A', 6)),
        special: mask(_mm_or_si128(_mm_or_si128(is(b'"'), is(b'\\')), is(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_byte_is_marked_as_it_is_one_by_one() {
        for byte in 0..=u8::MAX {
            for at in 0..LANES {
                for others in [b' ', b'7', b'x', 0] {
                    let mut bytes = [others; LANES];
                    bytes[at] = byte;
                    assert_eq!(Chunk::of(&bytes), Chunk::one_by_one(&bytes), "{byte} at {at}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn runs_are_those_of_the_bytes(
            parts in prop::collection::vec("[a-f]{0,70}|[0-9]{0,9}|[A-G]{0,3}|[ \"\\\\\0-]{0,70}|\u{e9}{0,40}|[0-9a-z]{60,66}", 0..9),
            before in "[0-9a-z\"]{0,1024}",
        ) {
            let string = parts.concat().into_bytes();
            let string = &string[..string.len().min(LONGEST)];
            let mut marks = Marks::default();
            // What was marked before is forgotten.
            marks.mark(before.as_bytes());
            marks.mark(string);
            for at in 0..=string.len() {
                prop_assert_eq!(marks.is_run(at), string.get(at).is_some_and(|byte| is_run(*byte)));
                let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0);
                let next = string[at..].iter().position(|byte| is_run(*byte) || special(byte));
                prop_assert_eq!(marks.next(at), next.map(|next| at + next));
                let next = string[at..].iter().take(64).position(special);
                prop_assert_eq!(marks.next_special(at), next.map(|next| at + next));
                let bytes = string[at..].iter().copied().take_while(|byte| is_run(*byte)).collect::<Vec<_>>();
                let run = marks.run(at);
                prop_assert_eq!(run.end, at + bytes.len());
                let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
                prop_assert_eq!(run.has_digits, has(u8::is_ascii_digit));
                prop_assert_eq!(run.has_lower, has(|byte| matches!(byte, b'a'..=b'f')));
                prop_assert_eq!(run.has_upper, has(|byte| matches!(byte, b'A'..=b'F')));
                prop_assert_eq!(run.has_others, has(|byte| !byte.is_ascii_hexdigit()));
                let changes = (1..bytes.len()).filter(|&place| bytes[place].is_ascii_digit() != bytes[place - 1].is_ascii_digit());
                let changes = changes.map(|place| at + place).collect::<Vec<_>>();
                let found = marks.changes::<2>(at, run.end).map(|(places, count)| places[..count].to_vec());
                prop_assert_eq!(found, Some(changes).filter(|changes| changes.len() <= 2 && (1..=64).contains(&bytes.len())));
            }
        }
    }
}
