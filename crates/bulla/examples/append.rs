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
        let workers = (0..4).map(|worker| {
            let mut producer = log.producer()?;
            Ok(scope.spawn(move || -> bulla::Result<()> {
                let actor = format!("worker {worker}");
                let entry = Entry::new("read", "user_42/email").subject("user_42").actor(&actor);
                producer.append(&entry.purpose("fulfilling a request"))?; // staged: a copy into its buffer
                producer.flush()?.durable() // on the disk
            }))
        });
        let workers = workers.collect::<bulla::Result<Vec<_>>>()?; // all of them are started
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    log.close() // drained, synced, signed
}
