//! The pool that the strings of a block are decoded into: where each lies, and what each must be.

use super::super::error::Fault;
use super::super::input::Budget;

/// Where a string lies in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl Span {
    /// The span as one integer: it replaces the length or index that was read, in the same vector.
    #[inline]
    pub(super) fn pack(self) -> u64 {
        u64::from(self.start) << 32 | u64::from(self.length)
    }

    /// The span that [`Span::pack`] packed.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "it is the lower half")]
    pub(crate) fn unpack(packed: u64) -> Self {
        Span { start: (packed >> 32) as u32, length: packed as u32 }
    }
}

/// What a column's strings must be: how long, and whether UTF-8.
#[derive(Clone, Copy)]
pub(crate) struct StringLimits {
    pub(crate) shortest: usize,
    pub(crate) longest: usize,
    pub(crate) text: bool,
}

/// The sum of lengths; `None` where it overflows.
pub(super) fn sum(lengths: &[u64]) -> Option<usize> {
    usize::try_from(lengths.iter().try_fold(0_u64, |sum, &length| sum.checked_add(length))?).ok()
}

/// Replaces the lengths of strings by their places in the pool, one after the other from `begin` on. Where the strings together
/// are `text`, each of them has to be text, too.
pub(super) fn place(lengths: &mut [u64], begin: u32, text: Option<&str>) -> Result<(), Fault> {
    let mut start = begin;
    for slot in lengths {
        let length = u32::try_from(*slot).map_err(|_| Fault::TooLarge)?;
        if text.is_some_and(|text| !text.is_char_boundary((start - begin) as usize)) {
            return Err(Fault::NotText);
        }
        *slot = Span { start, length }.pack();
        start = start.checked_add(length).ok_or(Fault::TooLarge)?;
    }
    Ok(())
}

/// Appends `length` zeros to the pool, and returns where they begin.
pub(super) fn grow(pool: &mut Vec<u8>, length: usize, budget: &mut Budget) -> Result<u32, Fault> {
    budget.take(length)?;
    let start = u32::try_from(pool.len()).map_err(|_| Fault::TooLarge)?;
    u32::try_from(pool.len() + length).map_err(|_| Fault::TooLarge)?;
    pool.resize(pool.len() + length, 0);
    Ok(start)
}

/// Checks that bytes are text where they have to be. Returns the text, unless it is ASCII: that can be cut anywhere.
pub(super) fn check_text(bytes: &[u8], limits: StringLimits) -> Result<Option<&str>, Fault> {
    if !limits.text || bytes.is_ascii() {
        return Ok(None);
    }
    std::str::from_utf8(bytes).map(Some).map_err(|_| Fault::NotText)
}
