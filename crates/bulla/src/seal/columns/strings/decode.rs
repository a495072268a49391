//! Reads columns of strings into a pool of bytes. Every byte is paid for from the content budget first; a
//! dictionary's strings once, since each of them occurs.

use super::super::blob::BlobDecoder;
use super::super::error::Fault;
use super::super::input::{Budget, Input};
use super::super::numbers::NumberDecoder;
use super::{CONSTANT, DICTIONARY, PLAIN};

/// Where a string lies in the pool.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Span {
    pub(in super::super) start: u32,
    pub(in super::super) length: u32,
}

/// What a column's strings must be.
#[derive(Clone, Copy)]
pub(in super::super) struct StringLimits {
    pub(in super::super) shortest: usize,
    pub(in super::super) longest: usize,
    pub(in super::super) text: bool,
}

/// Reads columns of strings. Holds only memory to be used again.
#[derive(Default)]
pub(in super::super) struct StringDecoder {
    pub(in super::super) numbers: NumberDecoder,
    pub(in super::super) blobs: BlobDecoder,
    integers: Vec<u64>,
    distinct: Vec<Span>,
}

impl StringDecoder {
    /// Reads a column of `count` strings: their bytes go to the end of `pool`, where they lie replaces `spans`.
    pub(in super::super) fn decode(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        limits: StringLimits,
        budget: &mut Budget,
        pool: &mut Vec<u8>,
        spans: &mut Vec<Span>,
    ) -> Result<(), Fault> {
        spans.clear();
        if count == 0 {
            return Ok(());
        }
        match input.byte()? {
            CONSTANT => {
                let length = input.count(limits.shortest, limits.longest)?;
                let start = grow(pool, length, budget)?;
                self.blobs.decode(input, &mut pool[start as usize..])?;
                check_text(&pool[start as usize..], limits)?;
                let length = u32::try_from(length).map_err(|_| Fault::TooLarge)?;
                spans.resize(count, Span { start, length });
            }
            DICTIONARY => {
                let distinct_count = input.count(1, count)?;
                let mut distinct = std::mem::take(&mut self.distinct);
                distinct.clear();
                self.plain(input, distinct_count, limits, budget, pool, &mut distinct)?;
                self.numbers.decode(input, count, &mut self.blobs, &mut self.integers)?;
                for &index in &self.integers {
                    let span = usize::try_from(index).ok().and_then(|index| distinct.get(index));
                    spans.push(*span.ok_or(Fault::Range)?);
                }
                self.distinct = distinct;
            }
            PLAIN => self.plain(input, count, limits, budget, pool, spans)?,
            _ => return Err(Fault::Form),
        }
        Ok(())
    }

    /// How much memory is held, in bytes.
    #[cfg(test)]
    pub(in super::super) fn footprint(&self) -> usize {
        (self.integers.capacity() + self.distinct.capacity()) * 8 + self.numbers.footprint()
    }

    fn plain(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        limits: StringLimits,
        budget: &mut Budget,
        pool: &mut Vec<u8>,
        spans: &mut Vec<Span>,
    ) -> Result<(), Fault> {
        self.numbers.decode(input, count, &mut self.blobs, &mut self.integers)?;
        let allowed = limits.shortest as u64..=limits.longest as u64;
        if !self.integers.iter().all(|length| allowed.contains(length)) {
            return Err(Fault::Range);
        }
        // The lengths are limited, so that their sum cannot overflow.
        let total = usize::try_from(self.integers.iter().sum::<u64>()).map_err(|_| Fault::TooLarge)?;
        let begin = grow(pool, total, budget)?;
        let bytes = &mut pool[begin as usize..];
        self.blobs.decode(input, bytes)?;
        let text = check_text(bytes, limits)?;
        let mut start = begin;
        spans.reserve(count);
        for &length in &self.integers {
            let length = u32::try_from(length).map_err(|_| Fault::TooLarge)?;
            if text.is_some_and(|text| !text.is_char_boundary((start - begin) as usize)) {
                return Err(Fault::NotText);
            }
            spans.push(Span { start, length });
            start += length;
        }
        Ok(())
    }
}

/// Adds `length` zeros to the pool: where they begin.
fn grow(pool: &mut Vec<u8>, length: usize, budget: &mut Budget) -> Result<u32, Fault> {
    budget.take(length)?;
    let start = u32::try_from(pool.len()).map_err(|_| Fault::TooLarge)?;
    u32::try_from(pool.len() + length).map_err(|_| Fault::TooLarge)?;
    pool.resize(pool.len() + length, 0);
    Ok(start)
}

/// The bytes as text, where they have to be text that is not ASCII.
fn check_text(bytes: &[u8], limits: StringLimits) -> Result<Option<&str>, Fault> {
    if !limits.text || bytes.is_ascii() {
        return Ok(None);
    }
    std::str::from_utf8(bytes).map(Some).map_err(|_| Fault::NotText)
}
