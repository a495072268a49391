//! What is read from another process, and written to one, which may say or take nothing for so long, and no longer.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::ChildStdin;
use std::time::Duration;

/// See the module.
pub(super) struct Patient<T> {
    line: T,
    limit: Duration,
}

impl<T: AsFd> Patient<T> {
    pub(super) fn new(line: T, limit: Duration) -> Self {
        Patient { line, limit }
    }

    /// Waits until something can be read or written, or the other side has gone.
    fn wait(&self, what: PollFlags, patience: &str) -> io::Result<()> {
        let time = Timespec { tv_sec: i64::try_from(self.limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        loop {
            match poll(&mut [PollFd::new(&self.line, what)], Some(&time)) {
                Ok(0) => {
                    let message = format!("the other side has {patience} for {} s", self.limit.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Patient<ChildStdin> {
    /// To the standard input of a process. This end of the pipe no longer waits by itself, since a write of more than fits into it would do so
    /// without a limit; the other end is not concerned.
    pub(super) fn writing(line: ChildStdin, limit: Duration) -> io::Result<Self> {
        fcntl_setfl(&line, fcntl_getfl(&line)? | OFlags::NONBLOCK)?;
        Ok(Patient { line, limit })
    }
}

impl<T: AsFd> Read for Patient<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN, "said nothing")?;
            match rustix::io::read(&self.line, &mut *buffer) {
                Err(Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }
}

impl Write for Patient<ChildStdin> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::OUT, "taken nothing")?;
            match rustix::io::write(&self.line, buffer) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
