//! A mirror whose source and destination are on two hosts: what goes over the line between them.
//!
//! The destination's side asks, and the source's side answers: for bytes of the log's files, and nothing else. So the receiver verifies
//! what it is sent as it would verify a log on a disk ([`Remote`] is a store), and neither the sender nor the line has to be
//! believed in anything. [`serve`] gives out nothing but what any reader of the log's directory has: no keys, and no file that is
//! none of the log's. `docs/mirror.md` says what each message is.
//!
//! Invariants:
//! - the length of a message is looked at before it is read; both sides hold a message and a piece of a file in memory, no more;
//! - one request is under way at a time, but for pieces of a file that is read from one end to the other: of these there are several, whose
//!   answers come in the order in which they were asked for;
//! - what is wrong with the line, or the other side, is `Unavailable`, and never that a file is missing or damaged.

mod message;
mod receive;
mod remote;
mod serve;

pub use receive::receive;
pub use remote::Remote;
pub use serve::{Sending, serve};

/// For fuzzing: that these bytes are no message, or one of one spelling.
#[cfg(any(test, fuzzing))]
pub(crate) fn check_message(bytes: &[u8]) {
    message::check(bytes);
}
