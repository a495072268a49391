//! Ways into a log: what other programs write, taken apart, and made into entries.
//!
//! | Module | What it is |
//! |---|---|
//! | [`value`] | what a record holds, whatever its format |
//! | [`framing`] | cuts bytes into records, in bounded memory |
//! | [`mod@format`] | takes a record apart |
//! | [`map`] | says which part of a record is which field of an entry |
//! | [`convert`] | all of that in one: from a record to an entry |
//! | [`follow`] | files that other programs write to, read exactly once |
//! | [`journal`] | journald's entries, the same |
//!
//! A record becomes an entry or a reason, never both, and never a panic. A reason names parts and columns, and never
//! repeats a value, because a reason is shown and kept where personal data must not be.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at files"))]

pub mod convert;
pub mod follow;
pub mod format;
pub mod framing;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod journal;
pub mod map;
mod refusal;
pub mod value;

pub use refusal::Refusal;
pub use value::Value;
