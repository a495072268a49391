//! Answers an access request: everything that the log in `./audit` holds of one person, and a proof of it that
//! anybody with the log's public key can check.
//!
//! `cargo run -p bulla --example access_request user_42`, after the example `append`.
#![allow(clippy::disallowed_methods, reason = "a program of its own")]

use bulla::proof::Proof;
use bulla::text::jsonl;
use bulla::{Query, Reader, default_keys, info};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let person = std::env::args().nth(1).unwrap_or_else(|| "user_42".to_owned());
    let directory = Path::new("audit");
    let key = info(directory)?.vkey;
    // What is personal is under keys of its own, in the key directory, which can be destroyed.
    let reader = Reader::open_with_keys(directory, default_keys(directory))?.key(key.clone());

    let query = Query::new().subject(&person);
    let mut answer = Vec::new();
    let read = reader.for_each(&query, |number, entry| {
        jsonl::write_entry(entry, number, &mut answer);
        Ok(())
    })?;
    std::fs::write("person.jsonl", &answer)?;
    println!("{} entries of {person}, from {} of {} blocks", read.entries, read.blocks_read, read.blocks);

    let proven = reader.prove(&query)?;
    std::fs::write("person.proof", &proven.file)?;

    // What the other side does, with the file and the key alone.
    let proof = Proof::parse(&proven.file)?;
    let checked = proof.verify(Some(&key))?;
    println!(
        "proven: {} entries of {}, disclosed in {} units",
        checked.entry_count(),
        checked.origin(),
        checked.units()
    );
    Ok(())
}
