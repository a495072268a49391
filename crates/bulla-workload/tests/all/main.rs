//! What the generators promise: the same bytes for ever, the distributions that are said, the published ratios.
#![allow(clippy::disallowed_methods, reason = "tests look at disks and clocks")]
#![allow(clippy::unwrap_used)]

mod allocations;
// Each test binary uses what it needs of it.
#[allow(dead_code)]
mod compression;
mod distributions;
mod known_answers;
mod text;

use bulla_workload::{Generator, Workload};

/// The canonical rows of so many entries, one after the other.
fn rows(generator: &mut Generator, entries: usize) -> Vec<u8> {
    let mut rows = Vec::new();
    for _ in 0..entries {
        let entry = generator.next_entry();
        let start = rows.len();
        rows.resize(start + entry.measure().unwrap(), 0);
        entry.encode(0, &mut rows[start..]);
    }
    rows
}

fn generator(workload: Workload) -> Generator {
    workload.generator(1, 0)
}

#[global_allocator]
static ALLOCATOR: bulla_testkit::allocator::Counting = bulla_testkit::allocator::Counting;
