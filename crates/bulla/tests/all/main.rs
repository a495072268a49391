//! The engine's integration tests: one binary.

mod allocator;
mod append_path;
mod backpressure;
mod fork;
mod handover_model;
mod log;
mod workshop;
