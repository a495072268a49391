//! The local socket: other processes of this machine append to the log that one process has open.
//!
//! `docs/socket.md` specifies what goes over it. A [`Listening`] takes batches of entries from many clients, over a stream socket
//! that acknowledges each batch once it is durable, and over a datagram socket that acknowledges nothing. A [`Connection`] is the other
//! side: its [`RemoteProducer`] appends as a [`crate::Producer`] does.
//!
//! Invariants:
//! - a batch is acknowledged when each of its entries is durable or was refused, and told to be, and no sooner;
//! - clients wait for the log, and the log for no client: what a client does not read costs it its connection;
//! - memory is bounded: a client has one message in memory, of `ORDINARY` bytes at most, but for one client at a time, whose
//!   message may have `MAX_MESSAGE`; and `WINDOW` batches that are not acknowledged.

mod client;
mod datagrams;
mod intake;
mod listen;
mod listener;
mod messages;
mod serve;

mod wire;

pub use client::{Connection, RemoteProducer, RemoteReceipt};
pub use intake::{AsSent, Counts, Intake, Peer, Sent};
pub use listen::{Listen, Listening};

use std::time::Duration;

/// The longest message, in bytes: one entry with the largest payload, in base64.
const MAX_MESSAGE: usize = 32 << 20;
/// A message of more bytes waits until no other client sends one.
const ORDINARY: usize = 1 << 20;
/// Batches of a client that are not acknowledged yet, at most: the next is not read before.
const WINDOW: usize = 64;
/// How long a message may take to arrive from its first byte on, and an acknowledgement to be taken.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long after the stop clients may take for all that is left to tell them.
const GRACE: Duration = Duration::from_secs(5);
