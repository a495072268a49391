//! Witnesses that a log asks for cosignatures of its checkpoints: C2SP tlog-witness, the log's side.
//!
//! Nothing here has a thread. [`Witnessing`] says which checkpoint each witness is to be asked for next ([`Witnessing::next`]), and
//! takes what came of it ([`Witnessing::take`]); [`ask`] asks one of them, and waits for the network. `log/` puts them on threads.
//!
//! Invariants:
//! - a cosignature is kept only once it was verified with the key that `[log]` names;
//! - what is kept is what was published: the text of `checkpoint`, with more signature lines;
//! - no file is ever replaced by one of a smaller tree;
//! - whatever a witness does, nothing of the log fails: what goes wrong is told, and tried again later.

mod ask;
mod job;
mod kept;
mod round;

#[cfg(any(test, fuzzing))]
pub(crate) use ask::check_answer;
pub(crate) use ask::{Post, ask};
pub(crate) use job::{Asked, Job, Refusal};
pub(crate) use round::Witnessing;
