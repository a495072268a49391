//! Tests of the witness by its public functions.
#![allow(clippy::disallowed_methods, reason = "tests look at disks and clocks, and have threads")]
// The helpers of tests are tests too, which Clippy's own exception does not see.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod crash;
mod judged;
mod kept;
mod world;
