//! The engine's integration tests: one binary.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod damage;
mod log;
mod second_reader;
mod vectors;
