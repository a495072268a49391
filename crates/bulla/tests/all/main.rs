//! The engine's integration tests: one binary.

mod age_tool;
mod allocator;
mod append_path;
mod backpressure;
mod corpus;
mod fork;
mod handover_model;
mod hostile;
mod live;
mod log;
mod workshop;
