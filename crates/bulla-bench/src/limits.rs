//! What no program goes below: the rows of a workload through `memcpy`, AES-256-GCM, SHA-256 and zstd alone, on one
//! processor, a block at a time.

use crate::knobs::Knobs;
use crate::measure::figure;
use crate::outcome::{Failure, Outcome};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest;
use bulla_workload::Workload;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes of rows: more than caches hold.
const BYTES: usize = 64 << 20;
const BLOCK: usize = 1 << 20;
/// Passes over them, unless they take longer than that.
const PASSES: usize = 5;
const LONGEST: Duration = Duration::from_secs(2);

pub(crate) fn run(workload: Workload, knobs: &Knobs) -> Result<Outcome, Failure> {
    let (rows, entries) = rows(workload, knobs.seed, knobs.entries.unwrap_or(u64::MAX));
    let mut outcome = Outcome::default();
    outcome.set(figure::ENTRIES, entries as f64);
    outcome.set(figure::LOGICAL, rows.len() as f64 / entries as f64);
    let mut measure =
        |name: &str, work: &mut dyn FnMut(&[u8]) -> Result<(), Failure>| -> Result<(), Failure> {
            let seconds = quickest(&rows, work)?.as_secs_f64();
            outcome.set(format!("{name}_ns_per_entry"), seconds * 1e9 / entries as f64);
            outcome.set(format!("{name}_gb_per_second"), rows.len() as f64 / seconds / 1e9);
            Ok(())
        };
    let mut target = vec![0; BLOCK];
    measure("memcpy", &mut |block| {
        target[..block.len()].copy_from_slice(black_box(block));
        black_box(&mut target);
        Ok(())
    })?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32])?);
    let mut number = 0_u64;
    // In place, as whoever encrypts what they have just compressed: without a copy.
    let mut cipher = vec![0; BLOCK];
    measure("aes_256_gcm", &mut |block| {
        number += 1;
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&number.to_le_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut cipher[..block.len()])?;
        black_box(tag.as_ref());
        Ok(())
    })?;
    measure("sha_256", &mut |block| {
        black_box(digest::digest(&digest::SHA256, block).as_ref());
        Ok(())
    })?;
    let mut zstd = zstd::bulk::Compressor::new(1)?;
    let mut packed = vec![0; 2 * BLOCK];
    measure("zstd_1", &mut |block| {
        black_box(zstd.compress_to_buffer(block, &mut packed)?);
        Ok(())
    })?;
    Ok(outcome)
}

fn rows(workload: Workload, seed: u64, most: u64) -> (Vec<u8>, u64) {
    let (mut rows, mut entries) = (Vec::with_capacity(BYTES + BLOCK), 0);
    let mut generator = workload.generator(seed, 0);
    while rows.len() < BYTES && entries < most {
        let entry = generator.next_entry();
        let start = rows.len();
        rows.resize(start + entry.measure().unwrap_or_default(), 0);
        entry.encode(0, &mut rows[start..]);
        entries += 1;
    }
    (rows, entries)
}

fn quickest(rows: &[u8], work: &mut dyn FnMut(&[u8]) -> Result<(), Failure>) -> Result<Duration, Failure> {
    let (begun, mut quickest) = (Instant::now(), Duration::MAX);
    for _ in 0..PASSES {
        let start = Instant::now();
        rows.chunks(BLOCK).try_for_each(&mut *work)?;
        quickest = quickest.min(start.elapsed());
        if begun.elapsed() > LONGEST {
            break;
        }
    }
    Ok(quickest)
}
