//! What is left of a plaintext, and what is left of its content limit. Neither can be overdrawn.

use super::error::Fault;
use super::padme;
use bulla_proof::varint;

/// Bytes still to be read.
pub(super) struct Input<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let (&byte, rest) = self.rest.split_first().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(byte)
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Fault> {
        Ok(varint::take(&mut self.rest)?)
    }

    /// A varint of at least `least` and at most `most`.
    pub(super) fn count(&mut self, least: usize, most: usize) -> Result<usize, Fault> {
        let count = usize::try_from(self.varint()?).map_err(|_| Fault::Range)?;
        if (least..=most).contains(&count) { Ok(count) } else { Err(Fault::Range) }
    }

    /// Whether what is left are the zeros that pad what was read to the `length` that there was.
    pub(super) fn padding(&self, length: usize) -> Result<(), Fault> {
        let unpadded = length - self.rest.len();
        match padme(unpadded) == length && self.rest.iter().all(|&byte| byte == 0) {
            true => Ok(()),
            false => Err(Fault::Padding),
        }
    }
}

/// The most bytes that a block's rows may have besides the bytes of strings. A writer's block is at most 16 MiB and a buffer, or
/// a single row, so that no honest block comes near it.
const MOST_VALUES: usize = 17 << 20;

/// Bytes of content that may still come: each part of a row is paid for before memory is taken for it.
pub(super) struct Budget {
    pub(super) left: usize,
    /// How many of those bytes may be other values than strings. There is a limit of their own because a value takes eight bytes
    /// of memory, and as little as one byte of a row.
    values: usize,
}

impl Budget {
    pub(super) fn new(left: usize) -> Self {
        Budget { left, values: MOST_VALUES }
    }

    /// Pays for bytes of strings.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(bytes).ok_or(Fault::TooLarge)?;
        Ok(())
    }

    /// Pays for values by the least that they take of rows.
    pub(super) fn take_values(&mut self, bytes: usize) -> Result<(), Fault> {
        self.values = self.values.checked_sub(bytes).ok_or(Fault::TooLarge)?;
        self.take(bytes)
    }

    /// Takes values that strings are made of from the limit of values. Each makes at least two bytes of a string, and the string
    /// pays for those itself, once its length is known.
    pub(super) fn hold(&mut self, values: u64) -> Result<(), Fault> {
        let bytes = usize::try_from(values).ok().and_then(|values| values.checked_mul(2));
        let bytes = bytes.filter(|&bytes| bytes <= self.left).ok_or(Fault::TooLarge)?;
        self.values = self.values.checked_sub(bytes).ok_or(Fault::TooLarge)?;
        Ok(())
    }

    /// Whether so many values could be paid for.
    pub(super) fn affords_values(&self, values: usize) -> bool {
        values <= self.left.min(self.values)
    }
}
