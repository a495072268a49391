//! What is read from another process, which may say nothing for so long, and no longer.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

/// See the module.
pub(super) struct Patient<T> {
    source: T,
    limit: Duration,
}

impl<T: AsFd> Patient<T> {
    pub(super) fn new(source: T, limit: Duration) -> Self {
        Patient { source, limit }
    }
}

impl<T: AsFd> Read for Patient<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let time = Timespec { tv_sec: i64::try_from(self.limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        loop {
            match poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&time)) {
                Ok(0) => {
                    let message = format!("the other side has said nothing for {} s", self.limit.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match rustix::io::read(&self.source, &mut *buffer) {
                Err(Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }
}
