//! What it costs to tell what a command does: nanoseconds each. The best of many short rounds counts: one in which nothing else
//! ran on the processor.
//!
//!     cargo bench -p bulla-proxy --bench command
#![allow(clippy::disallowed_methods, reason = "it measures")]

use bulla_proxy::command::CommandTable;
use bulla_proxy::resp::{Digest, Limits, Requests, Violation, write_command};
use std::hint::black_box;
use std::time::Instant;

const EACH: u32 = 10_000;
const ROUNDS: u32 = 500;

fn main() -> Result<(), Violation> {
    let table = CommandTable::pinned();
    println!("{:<40} {:>8} {:>12}", "", "effect", "may_be_key");
    for line in [
        "GET key:000000000042",
        "SET key:000000000042 value",
        "SET key:000000000042 value EX 100 NX",
        "HSET key:000000000042 field value",
        "LMOVE one other LEFT RIGHT",
        "MGET 1 2 3 4 5 6 7 8 9 10",
        "CONFIG GET maxmemory",
    ] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut bytes = Vec::new();
        write_command(&words, &mut bytes);
        let mut requests = Requests::new(Limits { bytes: 4096, items: 64, text: 0 }, [0; 32]);
        requests.next(&bytes, |_, _, _| (CommandTable::WORD, Digest::None))?;
        let arguments = requests.arguments();
        let effect = best(|| table.effect(black_box(arguments)));
        let may_be_key = best(|| table.may_be_key(black_box(arguments), 1));
        println!("{line:<40} {effect:>8.1} {may_be_key:>12.1}");
    }
    Ok(())
}

fn best<T>(work: impl Fn() -> T) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        (0..EACH).for_each(|_| drop(black_box(work())));
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(EACH));
    }
    best
}
