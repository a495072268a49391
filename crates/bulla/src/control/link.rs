//! One connection: messages that come whole and in time, or not at all.
#![expect(clippy::disallowed_methods, reason = "how long a peer may take")]

use super::message::LIMIT;
use super::peer::{Listener, is_readable, watch_listener};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, SocketFlags, accept_with, shutdown};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Ends every wait of a server, by a byte in a pipe that is empty, which has room for it; and by closing its end, should writing
/// fail all the same. Closing alone is not enough: a child that has not come to its `exec` has that end open, too.
pub(crate) struct Stop {
    /// Has something to read, or is hung up on, once it is set.
    waiting: OwnedFd,
    until: Mutex<Option<OwnedFd>>,
    /// When it was set.
    since: OnceLock<Instant>,
}

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        let (waiting, until) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Stop { waiting, until: Mutex::new(Some(until)), since: OnceLock::new() })
    }

    /// Ends the waits of now and of later.
    pub(crate) fn set(&self) {
        self.since.get_or_init(Instant::now);
        if let Some(until) = self.until.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = rustix::io::write(&until, &[1]);
        }
    }

    /// Waits for so long at most; whether it is set.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let mut polled = [PollFd::new(&self.waiting, PollFlags::IN)];
        matches!(poll(&mut polled, timespec(Some(time)).as_ref()), Ok(1..))
    }

    /// Waits until something can be read from `socket`; false where it is set.
    pub(crate) fn wait_for(&self, socket: &OwnedFd) -> bool {
        let mut polled = [PollFd::new(&self.waiting, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
        // Where polling fails, reading the socket fails after it, and that is told.
        let _ = poll(&mut polled, None);
        polled[0].revents().is_empty()
    }
}

/// A connection. Of a server's connections every wait ends when the server is stopped, or so long after it; of a client's when that is gone.
pub(crate) struct Link {
    socket: OwnedFd,
    stop: Option<Arc<Stop>>,
    /// How long after the stop waits may go on, all together, where they do.
    grace: Option<Duration>,
    /// The process that listens, if it can be watched.
    listener: Option<OwnedFd>,
}

/// A server's end of a connection. When it is dropped the client sees the end, whoever has copies of it: a child that was forked
/// meanwhile keeps one open for as long as it lives. Threads of the server have it, which no child has.
pub(crate) struct Served(Link);

impl Served {
    /// As [`Link::new`].
    pub(crate) fn new(socket: OwnedFd, stop: Option<Arc<Stop>>) -> Self {
        Served(Link::new(socket, stop))
    }

    /// The same, but that waits go on when the server is stopped: until `grace` is over, which is one for all of them.
    pub(crate) fn with_grace(socket: OwnedFd, stop: Arc<Stop>, grace: Duration) -> Self {
        Served(Link { grace: Some(grace), ..Link::new(socket, Some(stop)) })
    }
}

impl Deref for Served {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Where the client has ended it, there is nothing to end.
        let _ = shutdown(&self.0.socket, Shutdown::Both);
    }
}

/// Has nobody connect any more, also where a forked child has a copy of the socket, and whoever did and was not accepted see the end.
pub(crate) fn stop_listening(listener: &OwnedFd) {
    let _ = shutdown(listener, Shutdown::Both);
    while let Ok(socket) = accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        drop(Served::new(socket, None));
    }
}

/// When a wait ends; never, where there is none.
type Deadline = Option<Instant>;

impl Link {
    /// `socket` does not block.
    pub(crate) fn new(socket: OwnedFd, stop: Option<Arc<Stop>>) -> Self {
        Link { socket, stop, grace: None, listener: None }
    }

    /// A client's end. Where the process that listens is killed, a child that it had forked may keep the other end open: so that process
    /// is watched, if the kernel has a way. The socket again where it is gone already.
    pub(crate) fn to_listener(socket: OwnedFd) -> Result<Self, OwnedFd> {
        match watch_listener(&socket) {
            Listener::Watched(listener) => Ok(Link { listener: Some(listener), ..Link::new(socket, None) }),
            Listener::Unknown => Ok(Link::new(socket, None)),
            Listener::Gone => Err(socket),
        }
    }

    /// What there is something to read of once the process that listens is gone, where that is watched.
    pub(crate) fn listener(&self) -> Option<&OwnedFd> {
        self.listener.as_ref()
    }

    /// That the process that listens is there, or something is left to read of what it sent.
    ///
    /// # Errors
    /// `ConnectionReset` where neither is so.
    pub(crate) fn check_listener(&self) -> io::Result<()> {
        // In this order: what it sent, it sent before it went.
        match self.listener.as_ref().is_some_and(is_readable) && !is_readable(&self.socket) {
            true => {
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "the process that listens there is gone"))
            }
            false => Ok(()),
        }
    }

    /// Whether the other side has sent nothing that was not read, and has not ended.
    pub(crate) fn is_idle(&self) -> bool {
        !is_readable(&self.socket) && !self.listener.as_ref().is_some_and(is_readable)
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The next message; `None` where the other side is done.
    ///
    /// # Errors
    /// `TimedOut` where it takes too long, `InvalidData` where it would be too long, `UnexpectedEof` where it is cut off,
    /// `ConnectionAborted` where the server is stopped, `ConnectionReset` where the one that listens is gone.
    pub(crate) fn receive(&self, deadline: Deadline) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
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
    pub(crate) fn send(&self, message: &[u8], deadline: Deadline) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        self.put(&length.to_le_bytes(), deadline)?;
        self.put(message, deadline)
    }

    /// Reads what there is, and waits where there is nothing; 0 where the other side is done.
    ///
    /// # Errors
    /// As [`Link::receive`].
    pub(crate) fn read_some(&self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.socket, &mut *buffer) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => self.wait(PollFlags::IN, deadline)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads until `buffer` is full or the other side is done.
    fn fill(&self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_some(&mut buffer[filled..], deadline)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub(crate) fn put(&self, mut bytes: &[u8], deadline: Deadline) -> io::Result<()> {
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

    /// Waits until the socket is ready for this, or maybe for less: whoever waits tries again.
    pub(crate) fn wait(&self, flags: PollFlags, deadline: Deadline) -> io::Result<()> {
        let stopped = self.grace.and(self.stop.as_deref()).and_then(|stop| stop.since.get());
        let last = stopped.zip(self.grace).and_then(|(since, grace)| since.checked_add(grace));
        let deadline = deadline.into_iter().chain(last).min();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut polled = vec![PollFd::new(&self.socket, flags)];
        let stop = self.stop.as_deref().filter(|_| stopped.is_none());
        let ends = stop.map(|stop| &stop.waiting).or(self.listener.as_ref());
        polled.extend(ends.map(|ends| PollFd::new(ends, PollFlags::IN)));
        match poll(&mut polled, timespec(left).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        match polled.get(1).is_some_and(|ends| !ends.revents().is_empty()) {
            // From now on there is less time.
            true if self.grace.is_some() => Ok(()),
            true if self.stop.is_some() => Err(io::ErrorKind::ConnectionAborted.into()),
            // Nobody is left to take what is sent.
            true if flags == PollFlags::OUT => Err(io::ErrorKind::BrokenPipe.into()),
            true => self.check_listener(),
            false => Ok(()),
        }
    }
}

fn timespec(time: Option<Duration>) -> Option<Timespec> {
    time.and_then(|time| Timespec::try_from(time).ok())
}
