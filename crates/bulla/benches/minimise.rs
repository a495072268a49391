//! What rules for fields cost the thread that appends: nanoseconds an entry, without anything of what other threads do.
//!
//! The log has no threads of its own, so that appends fill buffers and nothing else happens; between rounds, which are
//! not timed, all that was staged is sealed and committed in memory. The best of many short rounds counts: one in which
//! nothing else ran on the processor.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use bulla::environment::Environment;
use bulla::{Entry, Init, Log, Options};
use bulla_testkit::Memory;
use std::sync::Arc;
use std::time::Instant;

const ENTRIES: u32 = 2_000;
const ROUNDS: u32 = 600;

type Rules = &'static [(&'static str, &'static str)];

const CASES: [(&str, Rules); 8] = [
    ("no rule", &[]),
    ("drop purpose", &[("purpose", "drop")]),
    ("strip query", &[("location", "strip-query")]),
    ("cap payload", &[("payload", "cap:16")]),
    ("truncate client", &[("client", "truncate-ip:24/48")]),
    ("pseudonymise actor", &[("actor", "pseudonymise")]),
    (
        "strip, cap, truncate",
        &[("location", "strip-query"), ("payload", "cap:16"), ("client", "truncate-ip:24/48")],
    ),
    (
        "a rule each",
        &[
            ("location", "strip-query"),
            ("controller", "pseudonymise"),
            ("processor", "pseudonymise"),
            ("purpose", "pseudonymise"),
            ("actor", "pseudonymise"),
            ("client", "truncate-ip:24/48"),
            ("stream", "pseudonymise"),
            ("status", "drop"),
            ("payload", "cap:16"),
        ],
    ),
];

fn main() -> bulla::Result<()> {
    println!("{:<22} {:>9}", "rules", "ns/entry");
    for (name, rules) in CASES {
        println!("{name:<22} {:>9.1}", measure(rules)?);
    }
    Ok(())
}

fn measure(rules: Rules) -> bulla::Result<f64> {
    let (store, keys) = (Memory::new(), Memory::new());
    let init =
        rules.iter().fold(Init::default().erasure(false), |init, (field, rule)| init.field(*field, *rule));
    init.create_in(&store, &keys, &Environment::default())?;
    let options = Options::default().compression(1);
    let log = Log::open_stepped(Arc::new(store), Arc::new(keys), options, Environment::default())?;
    let mut producer = log.producer()?;
    let entry =
        Entry::new("read", "user_42/email?token=1").subject("user_42").purpose("fulfilling user request");
    let entry = entry.controller("example.com").processor("processor.example").actor("service-7");
    let entry = entry.client("192.0.2.17").stream("a").status(200).payload("{\"agent\":\"something/1.0\"}");
    let mut best = f64::INFINITY;
    for round in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..ENTRIES {
            producer.append(&entry)?;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ENTRIES));
        if round % 20 == 0 {
            log.flush()?;
        }
    }
    drop(producer);
    log.close()?;
    Ok(best)
}
