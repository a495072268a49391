//! What it costs that what values taught outlives the proxy: how large its file is, how long it takes to write and to read back.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use bulla::{Entry, Init, Log, Options};
use bulla_proxy::subject::Learned;
use std::time::Instant;

const KEYS: u64 = 100_000;

fn main() -> bulla::Result<()> {
    println!("{:>8} {:>8} {:>10} {:>10} {:>10}", "keys", "people", "bytes", "write ms", "read ms");
    for people in [1_000, KEYS] {
        let folder = tempfile::tempdir().map_err(|error| bulla::Error::io("making a folder", error))?;
        let directory = folder.path().join("audit");
        Init::default().create(&directory)?;
        let name = |key: u64| format!("user_{:08}", key % people);
        let log = Log::open(&directory, Options::default())?;
        let mut producer = log.producer()?;
        for key in 0..people {
            producer.append(&Entry::new("write", "key").subject(&name(key)))?;
        }
        producer.flush()?.durable()?;
        drop(producer);
        let Some(mut records) = log.personal_records()? else { return Ok(()) };
        let names = (0..KEYS).map(name).collect::<Vec<_>>();
        let start = Instant::now();
        let found = records.find(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        records.create(|changes| {
            let mut known = (0..).zip(&names).zip(&found);
            known.try_for_each(|((key, name), subject)| match subject {
                Some(subject) => changes.put(key, subject, format!("{name}key:{key:08}:profile").as_bytes()),
                None => Ok(()),
            })
        })?;
        let (wrote, bytes) = (start.elapsed(), records.length());
        drop(records);
        log.close()?;
        let log = Log::open(&directory, Options::default())?;
        let Some(records) = log.personal_records()? else { return Ok(()) };
        let learned = Learned::new(64 << 20);
        let start = Instant::now();
        let read = learned.fill(|teach| {
            records.read(&mut |record| {
                let (name, key) = record.split_at(13);
                teach(0, key, &String::from_utf8_lossy(name));
            })
        })?;
        let took = start.elapsed();
        assert!(read.records == KEYS && learned.count() == KEYS);
        println!(
            "{KEYS:>8} {people:>8} {bytes:>10} {:>10.1} {:>10.1}",
            wrote.as_secs_f64() * 1e3,
            took.as_secs_f64() * 1e3
        );
    }
    Ok(())
}
