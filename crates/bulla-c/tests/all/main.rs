//! The C interface: its header, and programs in C that use it, compiled as their authors would.
#![allow(clippy::disallowed_methods, reason = "tests run compilers and look at files")]
#![allow(clippy::unwrap_used)]

mod header;
mod programs;
