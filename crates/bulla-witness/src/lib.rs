//! A witness: somebody who cosigns a log's checkpoints, each only where it goes on from the one before, as
//! [C2SP tlog-witness](https://c2sp.org/tlog-witness) says. Whoever asks for its cosignature beside the log's signature cannot be shown
//! another history than everybody else.
//!
//! | Module | What it is |
//! |---|---|
//! | [`key`] | the key that a witness signs with |
//! | [`request`] | what is posted to a witness: an old size, a consistency proof, a checkpoint |
//! | [`Witness`] | what it has seen of each log that it is configured for, and what it answers |
//! | [`server`] | the same over HTTP |
//!
//! A witness that forgot what it signed could be shown another history; so what it signs is durable before it signs
//! it, in two places. Where what lies beside its key says that the state is lost or of an earlier time, or is lost itself, the witness does
//! not start; where that is of an earlier time than the state, as a crash leaves it, the state counts, which has seen more.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]

mod answer;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod journal;
mod kept;
pub mod key;
pub mod server;
mod witness;

pub use bulla_proof::add_checkpoint as request;

pub use answer::{Answer, SIZE_TYPE};
pub use journal::Tell;
pub use witness::{MOST_LOGS, Witness};
