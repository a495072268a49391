//! Datagram sockets: each datagram is a batch, or at another socket one record, and nothing is acknowledged.
//!
//! A sender that blocks waits while the socket is full. What the kernel has taken is lost only with the process that has the log
//! open, and what that has staged with it as well: a sender learns of neither.

use super::intake::{Peer, Sent, count};
use super::serve::Service;
use super::wire::Acknowledgement;
use crate::control::peer;
use crate::log::Producer;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// The longest datagram, in bytes: more than a sender can send, unless its buffer was made larger.
const LONGEST: usize = 256 << 10;
/// More datagrams than a socket holds (`net.unix.max_dgram_qlen`), unless an administrator made that very large.
const QUEUED: usize = 4096;
/// The wait after a datagram could not be received.
const PAUSE: Duration = Duration::from_millis(100);

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Batch,
    /// A record, with whatever line end or zero byte its sender put behind it.
    Record,
}

/// What takes datagrams.
pub(super) struct Datagrams {
    service: Arc<Service>,
    producer: Producer,
    holds: Holds,
    /// Datagrams so far.
    number: u64,
}

impl Datagrams {
    pub(super) fn new(service: &Arc<Service>, producer: Producer, holds: Holds) -> Self {
        Datagrams { service: service.clone(), producer, holds, number: 0 }
    }

    /// Appends what comes until the log listens no more, and what has come by then.
    pub(super) fn receive(mut self, socket: &OwnedFd) {
        let mut buffer = vec![0; LONGEST];
        while self.service.stop.wait_for(socket) {
            match self.take_one(socket, &mut buffer) {
                Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(_) => drop(self.service.stop.wait(PAUSE)),
            }
        }
        // Also where a forked child has a copy of the socket, nobody goes on to send what nobody reads.
        let _ = shutdown(socket, Shutdown::Read);
        // Whoever sent these was told by the kernel that they were taken; who goes on to send is not waited for.
        let mut left = QUEUED;
        while left > 0 && self.take_one(socket, &mut buffer).is_ok() {
            left -= 1;
        }
        // Closing the log commits what is staged, or says that it could not.
        drop(self.producer.flush());
    }

    fn take_one(&mut self, socket: &OwnedFd, buffer: &mut [u8]) -> Result<(), Errno> {
        let received = peer::receive(socket, buffer)?;
        count(&self.service.counters.datagrams, 1);
        self.number += 1;
        match received.from.map(Peer::from) {
            None => self.refuse(Peer { process: 0, user: u32::MAX }, "the kernel does not say who sent it"),
            Some(peer) if received.is_cut_off => {
                self.refuse(peer, &format!("a datagram has {LONGEST} bytes at most: it was cut off"));
            }
            Some(peer) => {
                let mut told = Acknowledgement { batch: self.number, ..Acknowledgement::default() };
                let body = &buffer[..received.bytes];
                let appended = match self.holds {
                    Holds::Batch => self.service.append(body, peer, &mut self.producer, &mut told),
                    Holds::Record => {
                        let length = body.iter().rposition(|byte| !b"\0\r\n".contains(byte));
                        let record = &body[..length.map_or(0, |last| last + 1)];
                        self.service.append_record(record, peer, &mut self.producer, &mut told)
                    }
                };
                if let Err(error) = appended {
                    self.refuse(peer, &error.to_string());
                }
            }
        }
        Ok(())
    }

    fn refuse(&self, from: Peer, reason: &str) {
        count(&self.service.counters.refused, 1);
        self.service.intake.refused(Sent { from, batch: self.number, entry: 0 }, reason, None);
    }
}
