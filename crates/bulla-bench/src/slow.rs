//! What a log costs to which little comes: entries at a steady pace from many producers.

use crate::knobs::{Amount, Knobs};
use crate::layout::Layout;
use crate::measure::{Watch, figure};
use crate::outcome::{Failure, Outcome};
use crate::statistics::whole;
use bulla::Log;
use bulla_workload::Workload;
use std::path::Path;
use std::time::{Duration, Instant};

const PRODUCERS: u32 = 100;
/// Entries a second of all of them.
const RATE: f64 = 1000.0;

pub(crate) fn run(knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    knobs.init().create(&directory)?;
    let rate = knobs.rate.unwrap_or(RATE);
    let entries = match knobs.amount() {
        Amount::Entries(entries) => entries,
        Amount::Time(time) => whole(time.as_secs_f64() * rate).max(1),
    };
    let log = Log::open(&directory, knobs.options())?;
    let watch = Watch::start();
    append(&log, knobs.seed, entries, rate)?;
    let passed = watch.stop();
    log.close()?;

    let layout = Layout::of(&directory)?;
    let (count, blocks) = (entries as f64, layout.blocks.len() as f64);
    let mut outcome = Outcome::default();
    outcome.set(figure::ENTRIES, count);
    outcome.set(figure::SECONDS, passed.time.as_secs_f64());
    outcome.set(figure::RATE, count / passed.time.as_secs_f64());
    outcome.set(figure::CPU, passed.cpu.as_nanos() as f64 / count);
    layout.tell(entries, &mut outcome);
    outcome.set(figure::BOUND, Workload::Slow.entropy_per_entry());
    outcome.set("entries_per_block", count / blocks);
    outcome.set("body_bytes_per_entry", layout.bodies as f64 / count);
    Ok(outcome)
}

/// Appends with each producer in its turn, at the time that the entry is due.
fn append(log: &Log, seed: u64, entries: u64, rate: f64) -> Result<(), Failure> {
    let mut producers = (0..PRODUCERS)
        .map(|producer| Ok((log.producer()?, Workload::Slow.generator(seed, producer))))
        .collect::<Result<Vec<_>, Failure>>()?;
    let (start, mut next) = (Instant::now(), 0);
    for number in 0..entries {
        let due = start + Duration::from_secs_f64(number as f64 / rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let (producer, generator) = &mut producers[next];
        producer.append(&generator.next_entry())?;
        next = (next + 1) % producers.len();
    }
    Ok(())
}
