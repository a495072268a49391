//! The engine's integration tests: one binary.

mod corpus;
mod log;
