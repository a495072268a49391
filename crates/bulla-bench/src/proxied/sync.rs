//! What it takes to make a block durable: one after the other is appended to a file and synced with `fdatasync`, while
//! `redis-benchmark` has the server carry out what it can on the same processors.
//!
//! The file is one beside the log, on its file system. The blocks have the size that the log wrote before a sync on average. Nobody else
//! syncs meanwhile: what syncs of the log itself took has their waiting for each other in it.

use super::load::load;
use crate::outcome::Failure;
use crate::statistics::{summarise, whole};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Of each command that the server carries out meanwhile: a second or so of it.
const COMMANDS: u64 = 40_000;
/// Blocks that are synced, at least.
const LEAST: usize = 20;

/// The median, in microseconds.
pub(super) fn median(place: &Path, block: f64, port: u16) -> Result<f64, Failure> {
    let path = place.join("synced");
    let mut file = File::create(&path)?;
    let bytes = vec![0x5a; usize::try_from(whole(block).clamp(1, 64 << 20))?];
    let (loaded, mut taken) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let rates = load(port, COMMANDS, 1);
            loaded.store(true, Ordering::Relaxed);
            rates
        });
        while !loaded.load(Ordering::Relaxed) || taken.len() < LEAST {
            let start = Instant::now();
            file.write_all(&bytes)?;
            file.sync_data()?;
            taken.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        load.join().map_err(|_| "the load panicked")?.map(drop)
    })?;
    std::fs::remove_file(path)?;
    Ok(summarise(taken).ok_or("nothing was synced")?.median)
}
