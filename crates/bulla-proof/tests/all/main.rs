//! What must hold of the crate's public parts: known answers from `vectors/proof` (made by the independent
//! `make.py`) and from elsewhere, properties, and hostile input.
#![allow(clippy::disallowed_methods, reason = "tests look at disks and clocks")]
// The helpers of tests are tests too, which Clippy's own exception does not see.
#![allow(clippy::unwrap_used)]

mod checkpoint;
mod commitment;
mod consistency;
mod cosignature;
mod entry;
mod hash;
mod hold_order;
mod multiproof;
mod note;
mod order;
mod policy;
mod proof;
mod tile;
mod tree;
mod unit;
mod vectors;

#[global_allocator]
static ALLOCATOR: bulla_testkit::allocator::Counting = bulla_testkit::allocator::Counting;
