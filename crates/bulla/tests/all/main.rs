//! The engine's integration tests: one binary.
#![allow(clippy::disallowed_methods, reason = "tests look at disks and clocks")]
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_possible_truncation)]

mod age_tool;
mod append_path;
mod attacks;
mod back_off;
mod backpressure;
mod configure;
mod control;
mod cose;
mod counts;
mod crash;
mod damage;
mod disclosed;
mod erase;
mod erasure;
mod examples;
mod failover;
mod follow;
mod fork;
mod held;
mod helpers;
mod holding;
mod host_settings;
mod hostile;
mod keys;
mod live;
mod log;
mod lying;
mod minimise;
mod mirror;
mod panics;
mod pin;
mod policy;
mod reader;
mod register;
mod second_reader;
mod simulate;
mod socket;
mod sources;
mod staging_model;
mod stolen_keys;
mod telemetry;
mod telling;
mod unreadable;
mod unsigned;
mod unwritable_vault;
mod vectors;
mod witnesses;
mod workshop;

#[global_allocator]
static ALLOCATOR: bulla_testkit::allocator::Counting = bulla_testkit::allocator::Counting;
#[cfg(target_os = "linux")]
mod yielding;
