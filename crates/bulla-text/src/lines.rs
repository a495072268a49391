//! Lines as numbered byte strings out of any reader, in bounded memory.

use super::LineError;
use bulla_proof::entry::{MAX_PAYLOAD, MAX_STRING, MAX_SUBJECTS};
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

/// The longest line that a reader holds unless told otherwise: 128 MiB.
///
/// The longest line that [`write_entry`](super::jsonl::write_entry) can write fits: every string at its limit,
/// and every byte of it a control character, which JSON spells in six.
pub const MAX_LINE: usize = 128 * 1024 * 1024;

const _: () = assert!(6 * (MAX_PAYLOAD + (MAX_SUBJECTS + 8) * MAX_STRING) + 4096 <= MAX_LINE);

/// How much is asked of the source at once.
const READ: usize = 128 * 1024;

/// A line, without its `\n`.
#[derive(Debug)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes; [`LineError::TooLong`] when it is over the reader's limit.
    pub text: Result<&'a [u8], LineError>,
}

/// Cuts a reader into lines.
///
/// It holds no more than the limit and one read. A longer line is skipped to its end and counted. A last line
/// without `\n` is a line.
///
/// Invariants: `buffer[unread.clone()]` is what was read and not yet handed out; its first `searched` bytes hold
/// no `\n`. While `skipping`, the beginning of the line has been let go. An error of the source leaves all of
/// this as it was before the read, so that the call can be made again.
pub struct LineReader<R> {
    source: R,
    limit: usize,
    buffer: Vec<u8>,
    unread: Range<usize>,
    searched: usize,
    skipping: bool,
    ended: bool,
    number: u64,
}

impl<R: Read> LineReader<R> {
    /// A reader of lines up to [`MAX_LINE`].
    pub fn new(source: R) -> Self {
        Self::with_limit(source, MAX_LINE)
    }

    /// A reader of lines up to `limit` bytes, the `\n` not counted.
    pub fn with_limit(source: R, limit: usize) -> Self {
        LineReader {
            source,
            limit,
            buffer: Vec::new(),
            unread: 0..0,
            searched: 0,
            skipping: false,
            ended: false,
            number: 0,
        }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// Those of the source, [`Interrupted`](io::ErrorKind::Interrupted) among them, so that the caller notices
    /// a signal. No byte is lost: the next call goes on where this one stopped.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(length) = self.find_end() {
                return Ok(Some(self.take(length, 1)));
            }
            if self.unread.len() > self.limit {
                self.skipping = true;
            }
            if self.skipping {
                self.unread = 0..0;
                self.searched = 0;
            }
            if self.ended {
                let length = self.unread.len();
                return Ok((length > 0 || self.skipping).then(|| self.take(length, 0)));
            }
            self.read()?;
        }
    }

    /// The bytes of memory that it holds.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// The length of the first line, when its end has been read.
    fn find_end(&mut self) -> Option<usize> {
        let unread = &self.buffer[self.unread.clone()];
        let found = unread[self.searched..].iter().position(|&byte| byte == b'\n');
        let length = found.map(|position| self.searched + position);
        self.searched = unread.len();
        length
    }

    /// Hands out the first `length` bytes as a line, and lets go of `end` bytes after them.
    fn take(&mut self, length: usize, end: usize) -> Line<'_> {
        let start = self.unread.start;
        let too_long = self.skipping || length > self.limit;
        self.unread.start += length + end;
        self.searched = 0;
        self.skipping = false;
        self.number += 1;
        let text = &self.buffer[start..start + length];
        Line {
            number: self.number,
            text: if too_long { Err(LineError::TooLong { limit: self.limit }) } else { Ok(text) },
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

impl<R> fmt::Debug for LineReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineReader")
            .field("number", &self.number)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
