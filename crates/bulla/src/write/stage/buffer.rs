//! A buffer of rows with one writer and any number of readers behind it.
//!
//! Invariants, which this file alone upholds:
//! - there is at most one [`Writer`]: making one takes the only reference to the buffer;
//! - the writer changes bytes only at or above the published mark;
//! - a [`Slice`] reads bytes only below a mark that it loaded;
//! - the mark only grows while a writer or slice lives: resetting it takes the only reference.
#![allow(unsafe_code)]
// A buffer is never longer than 31 bits count: `Buffer::new` sees to that.
#![allow(clippy::cast_possible_truncation)]

use super::sync::{Arc, AtomicBool, AtomicU64, Cells, Ordering};
use std::ops::Range;

/// Before each row in a buffer: its length, 32-bit little-endian, of which the highest bit says that a place follows the row.
pub(crate) const ROW_PREFIX: usize = 4;
/// See [`ROW_PREFIX`]. No buffer is so long that a length had this bit.
const PLACED: u32 = 1 << 31;

/// Where the record stood that a row is of: which source, by its number, which range of that, and the check of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagedPlace {
    pub(crate) source: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) check: u64,
}

impl StagedPlace {
    /// Bytes behind the row.
    pub(crate) const LENGTH: usize = 28;

    #[inline]
    fn write(&self, space: &mut [u8]) {
        space[..4].copy_from_slice(&self.source.to_le_bytes());
        space[4..12].copy_from_slice(&self.start.to_le_bytes());
        space[12..20].copy_from_slice(&self.end.to_le_bytes());
        space[20..28].copy_from_slice(&self.check.to_le_bytes());
    }

    fn read(space: &[u8; Self::LENGTH]) -> Self {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| space[at + byte]));
        let source = u32::from_le_bytes(std::array::from_fn(|byte| space[byte]));
        StagedPlace { source, start: number(4), end: number(12), check: number(20) }
    }
}

/// Bytes that a row takes in a buffer beside itself.
#[inline]
pub(crate) fn overhead(place: Option<&StagedPlace>) -> usize {
    ROW_PREFIX + if place.is_some() { StagedPlace::LENGTH } else { 0 }
}

/// How much of a buffer was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) bytes: u32,
    pub(crate) entries: u32,
}

impl Mark {
    fn pack(self) -> u64 {
        u64::from(self.entries) << 32 | u64::from(self.bytes)
    }

    fn unpack(packed: u64) -> Self {
        Mark { bytes: (packed & 0xffff_ffff) as u32, entries: (packed >> 32) as u32 }
    }
}

/// Bytes, and the mark below which they stand. Aligned so that the marks of two producers, each of which its owner
/// stores to at every entry, never share a cache line.
#[repr(align(128))]
pub(crate) struct Buffer {
    cells: Cells,
    mark: AtomicU64,
    closed: AtomicBool,
}

impl Buffer {
    pub(crate) fn new(length: usize) -> Self {
        // A mark that wrapped around would let the writer write below marks that were loaded before.
        assert!(
            i32::try_from(length).is_ok(),
            "a mark counts bytes in 32 bits, and a row's length has one less"
        );
        Buffer { cells: Cells::new(length), mark: AtomicU64::new(0), closed: AtomicBool::new(false) }
    }

    pub(crate) fn length(&self) -> usize {
        self.cells.length()
    }

    /// What was published so far.
    pub(crate) fn mark(&self) -> Mark {
        Mark::unpack(self.mark.load(Ordering::Acquire))
    }

    /// Lets the buffer take no more rows. One that its writer is just pushing may still be published.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Makes the buffer empty again. `&mut` says that nobody else holds it.
    pub(crate) fn reset(&mut self) {
        self.mark.store(0, Ordering::Relaxed);
        self.closed.store(false, Ordering::Relaxed);
    }

    /// The bytes of a range below the mark.
    ///
    /// # Safety
    /// `range` lies below a mark that was loaded from this buffer since it was last reset.
    #[inline]
    unsafe fn published(&self, range: Range<usize>) -> &[u8] {
        // SAFETY: the writer writes at or above the mark only, and `&self` keeps `reset` away.
        unsafe { self.cells.read(range) }
    }
}

/// The one who may write to a buffer.
pub(crate) struct Writer {
    buffer: Arc<Buffer>,
    mark: Mark,
}

impl Writer {
    /// The writer of an empty buffer to which `buffer` is the only reference; else `None`.
    pub(crate) fn new(buffer: &mut Arc<Buffer>) -> Option<Self> {
        Arc::get_mut(buffer)?.reset();
        Some(Writer { buffer: buffer.clone(), mark: Mark::default() })
    }

    /// Writes a row of `length` bytes with `encode`, and its place if it has one, and publishes it; false where it does not fit, or
    /// the buffer is closed.
    #[inline]
    pub(crate) fn push(
        &mut self,
        length: usize,
        place: Option<&StagedPlace>,
        encode: impl FnOnce(&mut [u8]),
    ) -> bool {
        let start = self.mark.bytes as usize;
        let room = self.buffer.length() - start;
        let overhead = overhead(place);
        if room < overhead || room - overhead < length || self.buffer.closed.load(Ordering::Relaxed) {
            return false;
        }
        let end = start + overhead + length;
        let write = |space: &mut [u8]| {
            let (prefix, rest) = space.split_at_mut(ROW_PREFIX);
            let (row, behind) = rest.split_at_mut(length);
            match place {
                None => prefix.copy_from_slice(&(length as u32).to_le_bytes()),
                Some(place) => {
                    prefix.copy_from_slice(&(length as u32 | PLACED).to_le_bytes());
                    place.write(behind);
                }
            }
            encode(row);
        };
        // SAFETY: this is the one writer, and the range begins at the mark: nobody reads there.
        unsafe { self.buffer.cells.write(start..end, write) };
        self.mark = Mark { bytes: end as u32, entries: self.mark.entries + 1 };
        self.buffer.mark.store(self.mark.pack(), Ordering::Release);
        true
    }
}

/// So many bytes behind a row are asked for when it is met, a line of the processor's cache at a time.
const AHEAD: usize = 4096;
const LINE: usize = 64;

/// Asks for bytes that are soon read.
#[inline]
fn look_ahead(line: &[u8; LINE]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it changes nothing, and may be told any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// A stretch of published rows of one producer.
pub(crate) struct Slice {
    buffer: Arc<Buffer>,
    start: usize,
    end: usize,
    entries: u32,
}

impl Slice {
    /// What `buffer` has published beyond `taken`, a mark loaded from it before.
    pub(crate) fn beyond(buffer: &Arc<Buffer>, taken: Mark) -> (Self, Mark) {
        let mark = buffer.mark();
        assert!(taken.bytes <= mark.bytes && taken.entries <= mark.entries, "a mark of another buffer");
        let (start, end) = (taken.bytes as usize, mark.bytes as usize);
        (Slice { buffer: buffer.clone(), start, end, entries: mark.entries - taken.entries }, mark)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// The rows with their places, in the order in which they were appended.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[u8], Option<StagedPlace>)> {
        // SAFETY: `beyond` loaded `end` from this buffer, which cannot be reset while this slice holds it.
        let mut rest = unsafe { self.buffer.published(self.start..self.end) };
        let mut ahead = rest.as_chunks::<LINE>().0.iter();
        std::iter::from_fn(move || {
            // Where the next row is, this one's length says: without looking ahead the processor waits for memory at each.
            while ahead.len() > 0 && ahead.len() * LINE + AHEAD > rest.len() {
                ahead.next().into_iter().for_each(look_ahead);
            }
            let (prefix, tail) = rest.split_first_chunk::<ROW_PREFIX>()?;
            let prefix = u32::from_le_bytes(*prefix);
            let (row, mut tail) = tail.split_at_checked((prefix & !PLACED) as usize)?;
            let mut place = None;
            if prefix & PLACED != 0 {
                let (bytes, behind) = tail.split_first_chunk()?;
                (place, tail) = (Some(StagedPlace::read(bytes)), behind);
            }
            rest = tail;
            Some((row, place))
        })
    }

    pub(crate) fn into_buffer(self) -> Arc<Buffer> {
        self.buffer
    }
}
