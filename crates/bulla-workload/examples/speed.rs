//! How quick the generators are, by the quickest of a thousand rounds:
//! `cargo run --release -p bulla-workload --example speed`.
#![allow(clippy::disallowed_methods, reason = "a program of its own")]

use bulla_workload::{Generator, Workload, text};
use std::hint::black_box;
use std::time::Instant;

/// The entries of a round; short, so that some rounds run undisturbed.
const ROUND: u32 = 500;
const ROUNDS: u32 = 1000;

fn main() {
    println!(
        "{:<16} {:>9} {:>12} {:>9} {:>12} {:>10}",
        "workload", "ns/entry", "entries/s", "MB/s", "entropy B", "text B"
    );
    for workload in Workload::ALL {
        let mut generator = workload.generator(1, 0);
        // Warms up, and tells lengths.
        let (mut rows, mut lines) = (0, 0);
        for number in 100_000_000..100_010_000 {
            let entry = generator.next_entry();
            rows += entry.measure().expect("an entry within its limits");
            lines += text::length(&entry, number);
        }
        let each = quickest_round(&mut generator) / f64::from(ROUND);
        println!(
            "{:<16} {:>9.1} {:>12.0} {:>9.0} {:>12.2} {:>10.1}",
            workload.name(),
            each * 1e9,
            1.0 / each,
            rows as f64 / 1e4 / each / 1e6,
            workload.entropy_per_entry(),
            lines as f64 / 1e4,
        );
    }
}

/// In seconds.
fn quickest_round(generator: &mut Generator) -> f64 {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..ROUND {
            black_box(&generator.next_entry());
        }
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}
