//! Cuts what comes over a connection into messages.
//!
//! Memory grows with what has come, never with what is announced.
#![expect(clippy::disallowed_methods, reason = "how long a peer may take")]

use super::{ORDINARY, PATIENCE};
use crate::control::link::Link;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What is read at once, at first.
const CHUNK: usize = 64 << 10;
/// The bytes of a length.
const HEAD: usize = 4;

/// What came and was not taken yet: `buffer[start..end]`.
pub(super) struct Messages {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The longest message.
    limit: usize,
}

/// Held by whose message is longer than others' may be.
pub(super) type Large = Mutex<()>;

/// A message that came whole.
pub(super) struct Message<'a> {
    pub(super) body: &'a [u8],
    /// What allows for its length, where that is needed.
    _large: Option<MutexGuard<'a, ()>>,
}

impl Messages {
    pub(super) fn new(limit: usize) -> Self {
        Messages { buffer: Vec::new(), start: 0, end: 0, limit }
    }

    /// The next message, and what allows for its length; `None` where the other side is done.
    ///
    /// # Errors
    /// `InvalidData` where it would be too long, `UnexpectedEof` where it is cut off, `TimedOut` where it takes too long, as
    /// [`Link::receive`] else.
    pub(super) fn next<'a>(&'a mut self, link: &Link, large: &'a Large) -> io::Result<Option<Message<'a>>> {
        let mut deadline = (self.start < self.end).then(|| Instant::now() + PATIENCE);
        let mut held = None;
        while !self.is_next_here() {
            if held.is_none() && self.announced()?.is_some_and(|length| length > ORDINARY) {
                held = Some(large.lock().unwrap_or_else(PoisonError::into_inner));
                deadline = Some(Instant::now() + PATIENCE);
            }
            if !self.fill(link, deadline)? {
                return Ok(None);
            }
            deadline = deadline.or_else(|| Some(Instant::now() + PATIENCE));
        }
        Ok(self.take()?.map(|body| Message { body, _large: held }))
    }

    /// The next message, where it is here whole.
    ///
    /// # Errors
    /// `InvalidData` where it would be too long.
    pub(super) fn take(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(length) = self.announced()?.filter(|_| self.is_next_here()) else { return Ok(None) };
        let begin = self.start + HEAD;
        self.start = begin + length;
        Ok(Some(&self.buffer[begin..self.start]))
    }

    /// Reads what there is, and waits until `deadline` where there is nothing; false where the other side is done.
    ///
    /// # Errors
    /// `UnexpectedEof` where it is done within a message, as [`Link::receive`] else.
    pub(super) fn fill(&mut self, link: &Link, deadline: Option<Instant>) -> io::Result<bool> {
        self.make_room();
        let count = link.read_some(&mut self.buffer[self.end..], deadline)?;
        self.end += count;
        match count {
            0 if self.start < self.end => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count > 0),
        }
    }

    /// Whether the next message is here whole.
    pub(super) fn is_next_here(&self) -> bool {
        matches!(self.announced(), Ok(Some(length)) if self.end - self.start >= HEAD + length)
    }

    /// The length of the next message, once that is here.
    fn announced(&self) -> io::Result<Option<usize>> {
        let head = self.buffer[self.start..self.end].first_chunk::<HEAD>();
        let length = head.map(|head| u32::from_le_bytes(*head) as usize);
        match length.is_some_and(|length| length > self.limit) {
            true => Err(io::ErrorKind::InvalidData.into()),
            false => Ok(length),
        }
    }

    /// Makes room for at least a byte.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // A long message is rare: the memory that it took is not kept.
            self.buffer.truncate(CHUNK);
            self.buffer.shrink_to(CHUNK);
        }
        if self.end < self.buffer.len() {
            return;
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            let most = HEAD + self.limit;
            self.buffer.resize((self.end * 2).clamp(CHUNK, most.max(self.end + 1)), 0);
        }
    }
}
