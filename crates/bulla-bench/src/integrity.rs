//! The lines of the log integrity benchmark in Bulla, and a proof of inclusion for every one of them.

use crate::append::identity;
use crate::baseline::sqlite::logs;
use crate::knobs::Knobs;
use crate::layout::Layout;
use crate::measure::{Watch, figure};
use crate::outcome::{Failure, Outcome};
use bulla::proof::Proof;
use bulla::{Log, Query, Reader};
use bulla_workload::Workload;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries of one proof, where every entry is proven.
const TOGETHER: u64 = 1000;
/// Entries that are proven one by one.
const SINGLE: u64 = 50;

pub(crate) fn run(knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    let mut generator = Workload::Integrity.generator(knobs.seed, 0);
    let created = knobs.init().create(&directory)?;
    let (watch, logs) = (Watch::start(), logs(knobs));
    let log = Log::open(&directory, knobs.options())?;
    let mut producer = log.producer()?;
    for _ in 0..logs {
        producer.append(&generator.next_entry())?;
    }
    producer.flush()?.checkpointed()?;
    drop(producer);
    log.close()?;
    let passed = watch.stop();

    let layout = Layout::of(&directory)?;
    let mut outcome = Outcome::default();
    outcome.set(figure::ENTRIES, logs as f64);
    outcome.set(figure::SECONDS, passed.time.as_secs_f64());
    outcome.set(figure::RATE, logs as f64 / passed.time.as_secs_f64());
    outcome.set(figure::CPU, passed.cpu.as_nanos() as f64 / logs as f64);
    layout.tell(logs, &mut outcome);
    outcome.set("append_ms_per_log", passed.time.as_secs_f64() * 1e3 / logs as f64);

    let reader = Reader::open(&directory)?.identity(Arc::new(identity(&directory)?));
    let prove = |from: u64, to: u64| -> Result<Proven, Failure> {
        let start = Instant::now();
        let file = reader.prove(&Query::new().entries(from..=to))?.file;
        let proving = start.elapsed();
        let start = Instant::now();
        let entries = Proof::parse(&file)?.verify(Some(&created.verifier_key))?.entry_count() as u64;
        match entries == to - from + 1 {
            true => Ok(Proven { bytes: file.len() as u64, proving, checking: start.elapsed() }),
            false => Err(format!("{entries} entries are proven of {from} to {to}").into()),
        }
    };
    let all = (0..logs)
        .step_by(usize::try_from(TOGETHER)?)
        .map(|from| prove(from, (from + TOGETHER).min(logs) - 1));
    Proven::sum(all)?.tell("together", logs, &mut outcome);
    let single = SINGLE.min(logs);
    let one_by_one = (0..single).map(|index| index * logs / single).map(|number| prove(number, number));
    Proven::sum(one_by_one)?.tell("single", single, &mut outcome);
    Ok(outcome)
}

#[derive(Default)]
struct Proven {
    bytes: u64,
    proving: Duration,
    checking: Duration,
}

impl Proven {
    fn sum(mut all: impl Iterator<Item = Result<Proven, Failure>>) -> Result<Proven, Failure> {
        all.try_fold(Proven::default(), |sum, proven| {
            let proven = proven?;
            Ok(Proven {
                bytes: sum.bytes + proven.bytes,
                proving: sum.proving + proven.proving,
                checking: sum.checking + proven.checking,
            })
        })
    }

    fn tell(&self, how: &str, entries: u64, outcome: &mut Outcome) {
        let each = |time: Duration| time.as_secs_f64() * 1e3 / entries as f64;
        outcome.set(format!("prove_{how}_ms_per_log"), each(self.proving));
        outcome.set(format!("verify_{how}_ms_per_log"), each(self.checking));
        outcome.set(format!("proof_{how}_bytes_per_log"), self.bytes as f64 / entries as f64);
    }
}
