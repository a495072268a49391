//! The engine's integration tests: one binary.

mod handover_model;
mod log;
