//! One connection: messages that come whole and in time, or not at all.
#![expect(clippy::disallowed_methods, reason = "how long a peer may take")]

use super::message::LIMIT;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Ends every wait of a server: by closing one end of a pipe, which cannot fail, so that nobody waits for ever.
pub(super) struct Stop {
    /// Is hung up on once it is set.
    waiting: OwnedFd,
    until: Mutex<Option<OwnedFd>>,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        let (waiting, until) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Stop { waiting, until: Mutex::new(Some(until)) })
    }

    /// Ends the waits of now and of later.
    pub(super) fn set(&self) {
        drop(self.until.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Waits for so long at most; whether it is set.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let mut polled = [PollFd::new(&self.waiting, PollFlags::IN)];
        matches!(poll(&mut polled, timespec(Some(time)).as_ref()), Ok(1..))
    }

    /// Waits until something can be read from `socket`; false where it is set.
    pub(super) fn wait_for(&self, socket: &OwnedFd) -> bool {
        let mut polled = [PollFd::new(&self.waiting, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
        // Where polling fails, reading the socket fails after it, and that is told.
        let _ = poll(&mut polled, None);
        polled[0].revents().is_empty()
    }
}

/// A connection. Of a server's connections every wait ends when the server is stopped.
pub(super) struct Link {
    socket: OwnedFd,
    stop: Option<Arc<Stop>>,
}

/// When a wait ends; never, where there is none.
type Deadline = Option<Instant>;

impl Link {
    /// `socket` does not block.
    pub(super) fn new(socket: OwnedFd, stop: Option<Arc<Stop>>) -> Self {
        Link { socket, stop }
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The next message; `None` where the other side is done.
    ///
    /// # Errors
    /// `TimedOut` where it takes too long, `InvalidData` where it would be too long, `UnexpectedEof` where it is cut off,
    /// `ConnectionAborted` where the server is stopped.
    pub(super) fn receive(&self, deadline: Deadline) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let mut length = [0; 4];
        match self.fill(&mut length, deadline)? {
            0 => return Ok(None),
            4 => {}
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut message = Zeroizing::new(vec![0; length]);
        match self.fill(&mut message, deadline)? == length {
            true => Ok(Some(message)),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// As [`Link::receive`], and `BrokenPipe` where nobody is there to take it.
    pub(super) fn send(&self, message: &[u8], deadline: Deadline) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        self.put(&length.to_le_bytes(), deadline)?;
        self.put(message, deadline)
    }

    /// Reads until `buffer` is full or the other side is done.
    fn fill(&self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::read(&self.socket, &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => self.wait(PollFlags::IN, deadline)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }

    fn put(&self, mut bytes: &[u8], deadline: Deadline) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => self.wait(PollFlags::OUT, deadline)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until the socket is ready for this.
    fn wait(&self, flags: PollFlags, deadline: Deadline) -> io::Result<()> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut polled = vec![PollFd::new(&self.socket, flags)];
        polled.extend(self.stop.as_deref().map(|stop| PollFd::new(&stop.waiting, PollFlags::IN)));
        match poll(&mut polled, timespec(left).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        match polled.get(1).is_some_and(|stop| !stop.revents().is_empty()) {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }
}

fn timespec(time: Option<Duration>) -> Option<Timespec> {
    time.and_then(|time| Timespec::try_from(time).ok())
}
