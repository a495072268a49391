use super::{Framing, FramingKind, Limits, Next, Unpacked, unpack};
use crate::Refusal;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

/// How much is asked of the source at once.
const READ: usize = 128 * 1024;

/// The byte order mark of UTF-8.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

/// A record of a reader.
#[derive(Debug)]
pub struct Record<'a> {
    /// The number of its first line, from 1; where each record counts as a line, its own.
    pub number: u64,
    /// How many lines it has.
    pub lines: u64,
    /// Its bytes with what ends them, as they came; of one that is too long, its end at most.
    pub raw: &'a [u8],
    /// What its format is about, or why it is no record.
    pub content: Result<&'a [u8], Refusal>,
}

/// Cuts a reader into records: decompressed where it is gzip or zstd, without a byte order mark of UTF-8 at its beginning.
///
/// It holds no more than the limit and two reads.
///
/// ```
/// use bulla_ingest::framing::{FramingKind, Records};
/// let mut records = Records::new(&b"a,\"b\nc\"\nd"[..], FramingKind::Csv { delimiter: b',' });
/// let first = records.next_record()?.unwrap();
/// assert_eq!((first.number, first.lines, first.content), (1, 2, Ok(&b"a,\"b\nc\""[..])));
/// assert_eq!(records.next_record()?.unwrap().number, 3);
/// assert!(records.next_record()?.is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Invariant: `buffer[unread.clone()]` is what was read and not yet handed out. An error of the source leaves all of this as it was
/// before the read, so that the call can be made again.
pub struct Records<R: Read> {
    source: Unpacked<R>,
    framing: Framing,
    limit: usize,
    buffer: Vec<u8>,
    unread: Range<usize>,
    ended: bool,
    /// Whether the mark was looked for.
    begun: bool,
    /// The number of the line that comes next.
    number: u64,
    /// The lines of a record that were passed.
    passed: u64,
}

impl<R: Read> Records<R> {
    /// The records of a source, within the [`Limits`] that are usual.
    pub fn new(source: R, kind: FramingKind) -> Self {
        Self::with_limits(source, kind, Limits::default())
    }

    /// The records of a source, within these limits.
    pub fn with_limits(source: R, kind: FramingKind, limits: Limits) -> Self {
        Records {
            source: unpack(source),
            framing: Framing::new(kind, limits),
            limit: limits.bytes,
            buffer: Vec::new(),
            unread: 0..0,
            ended: false,
            begun: false,
            number: 1,
            passed: 0,
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// Those of the source, [`Interrupted`](io::ErrorKind::Interrupted) among them, so that the caller notices a signal, and those of
    /// [`Unpacked`]. No byte is lost: the next call goes on where this one stopped.
    pub fn next_record(&mut self) -> io::Result<Option<Record<'_>>> {
        while !self.begun {
            let unread = &self.buffer[self.unread.clone()];
            if unread.len() < MARK.len() && MARK.starts_with(unread) && !self.ended {
                self.read()?;
                continue;
            }
            self.unread.start += if unread.starts_with(MARK) { MARK.len() } else { 0 };
            self.begun = true;
        }
        loop {
            let (consumed, content) = match self.framing.next(&self.buffer[self.unread.clone()], self.ended) {
                Next::More if self.ended => return Ok(None),
                Next::More => {
                    self.read()?;
                    continue;
                }
                Next::Passed { consumed } => {
                    let lines = self.lines_of(consumed);
                    self.unread.start += consumed;
                    if self.framing.is_skipping() {
                        self.passed += lines
                    } else {
                        self.number += lines
                    }
                    continue;
                }
                Next::Record { consumed, content } => (consumed, Ok(content)),
                Next::Refused { consumed, reason } => (consumed, Err(reason)),
            };
            return Ok(Some(self.take(consumed, content)));
        }
    }

    fn take(&mut self, consumed: usize, content: Result<Range<usize>, Refusal>) -> Record<'_> {
        let lines = match self.framing.counts_records() {
            true => 1,
            false => {
                let is_unended = consumed > 0 && self.buffer[self.unread.start + consumed - 1] != b'\n';
                self.passed + self.lines_of(consumed) + u64::from(is_unended)
            }
        };
        let number = self.number;
        self.number += lines;
        self.passed = 0;
        let raw = &self.buffer[self.unread.start..self.unread.start + consumed];
        self.unread.start += consumed;
        Record { number, lines, raw, content: content.map(|content| &raw[content]) }
    }

    /// The line ends among the next bytes, where they count.
    fn lines_of(&self, bytes: usize) -> u64 {
        let bytes = &self.buffer[self.unread.start..self.unread.start + bytes];
        match self.framing.counts_records() {
            true => 0,
            false => bytes.iter().filter(|&&byte| byte == b'\n').count() as u64,
        }
    }

    /// Reads once behind what is unread.
    fn read(&mut self) -> io::Result<()> {
        if self.buffer.len() - self.unread.end < READ {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            if self.buffer.len() - self.unread.end < READ {
                let length = (2 * self.unread.len()).min(self.limit).saturating_add(2 * READ);
                self.buffer.reserve_exact(length - self.buffer.len());
                self.buffer.resize(length, 0);
            }
        }
        let read = self.source.read(&mut self.buffer[self.unread.end..])?;
        self.unread.end += read;
        self.ended = read == 0;
        Ok(())
    }
}

impl<R: Read> fmt::Debug for Records<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("number", &self.number)
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}
