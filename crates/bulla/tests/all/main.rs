//! The engine's integration tests: one binary.

mod crash;
mod log;
