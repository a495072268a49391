//! The engine's integration tests: one binary.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_possible_truncation)]

mod allocator;
mod append_path;
mod backpressure;
mod fork;
mod handover_model;
mod log;
mod workshop;
