//! What a command does: which of its arguments are keys, and what becomes of what they name.
//!
//! Positions and flags come from the server's own answer to `COMMAND`, its key specifications
//! (<https://redis.io/docs/latest/develop/reference/key-specs/>); commands whose specifications are incomplete, or say less than
//! their arguments do, have parsers of their own. Where nothing tells what becomes of a key the answer is the wider one:
//! [`Access::Write`], or an [`Unknowable`]. Of a command that the server refuses, keys may be told that it never looked at.
//!
//! A server that gives commands other names (`rename-command`) tells the old ones in its answer. Both are then
//! [`Unknowable::Undescribed`] ([`CommandTable::settle_names`]).

mod description;
mod effect;
mod keys;
mod outcome;
mod own;
mod pinned;
mod read;
mod rules;
mod table;
#[cfg(test)]
mod tests;
mod words;

pub use effect::{Access, Answers, Class, Command, Databases, Effect, KeyUse, Keys, Unknowable};
pub use outcome::Outcome;
pub use read::NoTable;
pub use table::CommandTable;
pub(crate) use words::until_zero;
