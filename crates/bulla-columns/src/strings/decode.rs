//! Reads columns of strings into a pool of bytes. Every byte is paid for from the content budget before memory is taken for it.
//! A dictionary's strings are paid for once, which they are worth, since each of them has to occur.

use super::super::bitpack::packed_length;
use super::super::blob::BlobDecoder;
use super::super::error::Fault;
use super::super::input::{Budget, Input};
use super::super::numbers::NumberDecoder;
use super::super::table::MAX_DISTINCT;
use super::pool::{Span, StringLimits, check_text, grow, place, sum};
use super::templates::{Source, TemplateDecoder};
use super::vocabulary::MOST_WORDS;
use super::{BYTES, CONSTANT, DICTIONARY, PLAIN, TEMPLATES, WORDS, packed};

/// Reads columns of strings. Holds only memory to be used again.
#[derive(Default)]
pub(crate) struct StringDecoder {
    pub(crate) numbers: NumberDecoder,
    pub(crate) blobs: BlobDecoder,
    integers: Vec<u64>,
    /// The strings of a dictionary, as [packed](Span::pack) places in the pool.
    distinct: Vec<u64>,
    /// Which of them were met.
    occurs: Vec<bool>,
    words: WordDecoder,
    templates: TemplateDecoder,
}

/// How many bytes are copied for a short word, however short it is: a copy of a fixed length is quicker.
const STRIDE: usize = 8;

/// The first bytes of a word; all of it, if it is short.
#[derive(Clone, Copy, Default)]
struct Head {
    bytes: [u8; STRIDE],
    length: u32,
}

/// The heads of all words by number. A number that no word has, has an empty one.
type Heads = [Head; MOST_WORDS];

/// The parts of a column of words.
#[derive(Default)]
struct WordDecoder {
    /// The words one after the other, and [`STRIDE`] bytes to spare.
    text: Vec<u8>,
    words: Vec<Span>,
    indexes: Vec<u8>,
    tails: Vec<u8>,
    tail_lengths: Vec<u64>,
}

impl StringDecoder {
    /// Reads a column of `count` strings. Their bytes are appended to `pool`; where each lies there, [packed](Span::pack),
    /// replaces `spans`.
    pub(crate) fn decode(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        limits: StringLimits,
        budget: &mut Budget,
        pool: &mut Vec<u8>,
        spans: &mut Vec<u64>,
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
                spans.reserve_exact(count);
                spans.resize(count, Span { start, length }.pack());
            }
            DICTIONARY => {
                let distinct_count = input.count(1, count.min(MAX_DISTINCT))?;
                let mut distinct = std::mem::take(&mut self.distinct);
                distinct.clear();
                self.plain(input, distinct_count, limits, budget, pool, &mut distinct)?;
                self.numbers.decode_narrow(input, count, &mut self.blobs, spans)?;
                self.occurs.clear();
                self.occurs.resize(distinct_count, false);
                for slot in spans.iter_mut() {
                    let index = usize::try_from(*slot).ok().filter(|&index| index < distinct_count);
                    let index = index.ok_or(Fault::Range)?;
                    (*slot, self.occurs[index]) = (distinct[index], true);
                }
                // A string that no row has would not be paid for in the end.
                if self.occurs.contains(&false) {
                    return Err(Fault::Range);
                }
                self.distinct = distinct;
            }
            PLAIN => self.plain(input, count, limits, budget, pool, spans)?,
            WORDS => self.words(input, count, limits, budget, pool, spans)?,
            TEMPLATES => {
                let StringDecoder { numbers, blobs, templates, .. } = self;
                let mut source = Source { input, numbers, blobs };
                templates.decode(&mut source, count, limits, budget, pool, spans)?;
            }
            _ => return Err(Fault::Form),
        }
        Ok(())
    }

    /// How much memory is held, in bytes.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> usize {
        let WordDecoder { text, words, indexes, tails, tail_lengths } = &self.words;
        let words = text.capacity() + indexes.capacity() + tails.capacity() + words.capacity() * 8;
        let integers = self.integers.capacity() + tail_lengths.capacity();
        (integers + self.distinct.capacity()) * 8
            + self.occurs.capacity()
            + words
            + self.numbers.footprint()
            + self.templates.footprint()
    }

    fn plain(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        limits: StringLimits,
        budget: &mut Budget,
        pool: &mut Vec<u8>,
        spans: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        self.numbers.decode_narrow(input, count, &mut self.blobs, spans)?;
        let allowed = limits.shortest as u64..=limits.longest as u64;
        if !spans.iter().all(|length| allowed.contains(length)) {
            return Err(Fault::Range);
        }
        // The lengths are limited, so that their sum cannot overflow.
        let total = usize::try_from(spans.iter().sum::<u64>()).map_err(|_| Fault::TooLarge)?;
        let begin = grow(pool, total, budget)?;
        let bytes = &mut pool[begin as usize..];
        self.blobs.decode(input, bytes)?;
        let text = check_text(bytes, limits)?;
        place(spans, begin, text)
    }

    /// Reads texts of few words. The budget pays for the texts; the words, their numbers and the tails are each no
    /// longer than the texts are.
    fn words(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        limits: StringLimits,
        budget: &mut Budget,
        pool: &mut Vec<u8>,
        spans: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        let distinct = input.count(1, MOST_WORDS)?;
        self.read_words(input, distinct, count, budget, spans)?;
        let words = &self.words;
        let heads = words.heads();
        let mut occurs = [false; MOST_WORDS];
        let mut numbers = &words.indexes[..];
        for (slot, &tail) in spans.iter_mut().zip(&words.tail_lengths) {
            // The slots still hold how many words each text has; those add up to the number of indexes.
            let (own, rest) = numbers.split_at(usize::try_from(*slot).map_err(|_| Fault::TooLarge)?);
            numbers = rest;
            let mut length = tail;
            for &index in own {
                length += u64::from(heads[usize::from(index)].length);
                occurs[usize::from(index)] = true;
            }
            if length < limits.shortest as u64 || length > limits.longest as u64 {
                return Err(Fault::Range);
            }
            *slot = length;
        }
        // A word that no text has would not have been paid for.
        if occurs[..distinct].contains(&false) || occurs[distinct..].contains(&true) {
            return Err(Fault::Range);
        }
        let total = sum(spans).ok_or(Fault::TooLarge)?;
        let begin = grow(pool, total, budget)?;
        words.write(&heads, spans, begin as usize, pool);
        let text = check_text(&pool[begin as usize..], limits)?;
        place(spans, begin, text)
    }

    /// Reads the parts that texts are made of; how many words each text has replaces `counts`.
    fn read_words(
        &mut self,
        input: &mut Input<'_>,
        distinct: usize,
        count: usize,
        budget: &Budget,
        counts: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        let StringDecoder { numbers, blobs, integers, words, .. } = self;
        let affordable =
            |lengths: &[u64]| sum(lengths).filter(|&sum| sum <= budget.left).ok_or(Fault::TooLarge);
        numbers.decode_narrow(input, distinct, blobs, integers)?;
        if integers.contains(&0) {
            return Err(Fault::Range);
        }
        let length = affordable(integers)?;
        words.text.clear();
        words.text.resize(length + STRIDE, 0);
        blobs.decode(input, &mut words.text[..length])?;
        words.words.clear();
        place(integers, 0, None)?;
        words.words.extend(integers.iter().map(|&packed| Span::unpack(packed)));
        numbers.decode_narrow(input, count, blobs, counts)?;
        let total = affordable(counts)?;
        numbers.decode_narrow(input, count, blobs, &mut words.tail_lengths)?;
        words.tails.clear();
        words.tails.resize(affordable(&words.tail_lengths)?, 0);
        blobs.decode(input, &mut words.tails)?;
        words.indexes.clear();
        words.indexes.resize(total, 0);
        match input.byte()? {
            BYTES => blobs.decode(input, &mut words.indexes),
            width @ 0..=8 => {
                let packed = input.bytes(packed_length(total, u32::from(width)))?;
                packed::unpack(packed, u32::from(width), &mut words.indexes).ok_or(Fault::Unused)
            }
            _ => Err(Fault::Form),
        }
    }
}

impl WordDecoder {
    fn heads(&self) -> Heads {
        let mut heads = [Head::default(); MOST_WORDS];
        for (head, &Span { start, length }) in heads.iter_mut().zip(&self.words) {
            head.bytes.copy_from_slice(&self.text[start as usize..][..STRIDE]);
            head.length = length;
        }
        heads
    }

    /// Writes texts of these lengths to `pool`, which has exactly the room for them from `end` on.
    fn write(&self, heads: &Heads, lengths: &[u64], mut end: usize, pool: &mut Vec<u8>) {
        let length = pool.len();
        // A head is copied whole; what is beyond the word's end is overwritten by what follows, or cut off at the end.
        pool.resize(length + STRIDE, 0);
        let (mut numbers, mut tails) = (self.indexes.iter(), &self.tails[..]);
        for (&length, &tail) in lengths.iter().zip(&self.tail_lengths) {
            // This ends, because no word is empty.
            let words_end = end + usize::try_from(length - tail).unwrap_or(0);
            while end < words_end {
                let Some(&index) = numbers.next() else { break };
                let Head { bytes, length } = heads[usize::from(index)];
                pool[end..end + STRIDE].copy_from_slice(&bytes);
                let length = length as usize;
                if length > STRIDE {
                    let start = self.words[usize::from(index)].start as usize;
                    pool[end..end + length].copy_from_slice(&self.text[start..start + length]);
                }
                end += length;
            }
            let (tail, rest) = tails.split_at(usize::try_from(tail).unwrap_or(0));
            pool[end..end + tail.len()].copy_from_slice(tail);
            (end, tails) = (end + tail.len(), rest);
        }
        pool.truncate(length);
    }
}
