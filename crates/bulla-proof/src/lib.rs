//! What an auditor of a Bulla log compiles: entries and their rows, units, commitments, the tree, tiles and
//! checkpoints. No keys, no input or output, no unsafe code.
//!
//! `docs/format.md` is the specification of every byte here.
#![forbid(unsafe_code)]

pub mod entry;
pub mod varint;

pub use entry::{Entry, EntryError};
