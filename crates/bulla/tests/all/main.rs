//! The engine's integration tests: one binary.

mod damage;
mod log;
mod second_reader;
mod vectors;
