//! The README's program: four threads append, each waits until its entry is on the disk.
//!
//! `cargo run -p bulla --example append` makes a log in `./audit`.
#![allow(clippy::disallowed_methods, reason = "a program of its own")]

use bulla::{Entry, Init, Log, Options};

fn main() -> bulla::Result<()> {
    if !std::path::Path::new("audit").exists() {
        let created = Init::default().create("audit")?;
        println!("verify with: bulla verify audit --key {}", created.verifier_key);
    }
    let log = Log::open("audit", Options::default())?;
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let mut producer = log.producer().expect("memory for a producer");
            scope.spawn(move || -> bulla::Result<()> {
                let actor = format!("worker {worker}");
                let entry = Entry::new("read", "user_42/email").subject("user_42").actor(&actor);
                producer.append(&entry.purpose("fulfilling a request"))?; // staged: a copy into its buffer
                producer.flush()?.durable() // on the disk
            });
        }
    });
    log.close() // drained, synced, signed
}
