//! The control socket: what a process may ask of the writer that has a log open.
//!
//! A [`crate::Log`] whose keys lie in a directory listens on `control.sock` there, while it holds the locks: a socket that
//! a killed writer left is nobody's, and is replaced. It may be used by the user that runs the writer, and by root; the
//! kernel says who asks (`SO_PEERCRED`), in whichever namespace of processes.
//!
//! **Messages.** A length in four bytes, little-endian, at most 1 MiB, and so many bytes of JSON. A request
//! `{"version":VERSION,"message":"status"}` has one response, `{"version":VERSION,"message":{"answer":…}}`, `…{"error":{"kind":…,
//! "text":…,"effect":…}}` or `…"busy"`; then the next request may follow. `message` has all of them, and the version's number.
//!
//! Invariants:
//! - appending and committing wait for nobody here: requests are answered by threads of their own, and what they ask of
//!   the engine is what the log asks of itself at a rotation;
//! - whatever a client sends, or does not, costs it its connection and nobody anything else: there are at most
//!   `server::CONNECTIONS`, a message is bounded, and has `server::PATIENCE` to come and to go;
//! - the secrets of groups are answered, the keys of data subjects never; buffers that held them are cleared.

mod at_hand;
mod client;
mod handle;
pub(crate) mod link;
mod message;
pub(crate) mod peer;
mod server;
pub(crate) mod socket;
#[cfg(test)]
mod tests;

pub use at_hand::{SubjectKeys, identity_in};
pub use client::{Client, through_writer};
pub use message::Status;
pub(crate) use server::Server;

/// The name of the socket in the key directory.
pub const SOCKET: &str = "control.sock";
