//! A real access log, in one pass, against zstd on the same text cut at the same blocks: what one would have without
//! encryption, seals or proofs. Then it is exported, which verifies it first.

use crate::append::identity;
use crate::knobs::Knobs;
use crate::layout::Layout;
use crate::measure::{Watch, figure};
use crate::outcome::{Failure, Outcome};
use bulla::{Export, Log};
use bulla_ingest::format::access::{Layout as Access, parse_entry};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const LEVELS: [i32; 2] = [3, 19];

pub(crate) fn run(file: &Path, knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let (mut entries, mut lines, mut refused) = (Vec::new(), Vec::new(), 0_u64);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        match parse_entry(line.strip_suffix(b"\n").unwrap_or(line), Access::Combined) {
            Ok(entry) => {
                entries.push(entry);
                lines.push(line);
            }
            Err(_) => refused += 1,
        }
    }
    if entries.is_empty() {
        return Err(format!("{}: no line of it is one of an access log", file.display()).into());
    }
    knobs.init().create(&directory)?;
    let watch = Watch::start();
    let log = Log::open(&directory, knobs.options())?;
    let mut producer = log.producer()?;
    for entry in &entries {
        producer.append(&entry.entry())?;
    }
    drop(producer);
    log.close()?;
    let passed = watch.stop();

    let layout = Layout::of(&directory)?;
    let (count, text) = (entries.len() as f64, lines.iter().map(|line| line.len()).sum::<usize>() as f64);
    let mut outcome = Outcome::default();
    outcome.set(figure::ENTRIES, count);
    outcome.set("refused", refused as f64);
    outcome.set(figure::SECONDS, passed.time.as_secs_f64());
    outcome.set(figure::RATE, count / passed.time.as_secs_f64());
    outcome.set(figure::CPU, passed.cpu.as_nanos() as f64 / count);
    layout.tell(entries.len() as u64, &mut outcome);
    outcome.set("body_bytes_per_entry", layout.bodies as f64 / count);
    outcome.set(figure::TEXT, text / count);
    let start = Instant::now();
    let exported = Export::open(&directory)?
        .identity(Arc::new(identity(&directory)?))
        .run(&mut std::io::sink())?
        .entries;
    outcome.set(figure::EXPORTED, exported as f64 / start.elapsed().as_secs_f64());
    for level in LEVELS {
        let bytes = compressed(&lines, &layout.blocks, level)?;
        outcome.set(format!("zstd_{level}_bytes_per_entry"), bytes as f64 / count);
    }
    Ok(outcome)
}

/// What zstd makes of the text of each block.
fn compressed(lines: &[&[u8]], blocks: &[u64], level: i32) -> Result<usize, Failure> {
    let (mut bytes, mut rest) = (0, lines);
    for &entries in blocks {
        let (block, tail) = rest
            .split_at_checked(usize::try_from(entries)?)
            .ok_or("the blocks have more entries than the file")?;
        bytes += zstd::bulk::compress(&block.concat(), level)?.len();
        rest = tail;
    }
    Ok(bytes)
}
