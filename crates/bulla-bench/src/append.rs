//! Bulla appends a workload, closes the log, and verifies it; if wished, exports it.

use crate::feed::Source;
use crate::knobs::Knobs;
use crate::layout::Layout;
use crate::measure::{self, Watch, figure};
use crate::outcome::{Failure, Outcome};
use crate::process;
use bulla::keys::identities::IdentityFile;
use bulla::vault::{Settings, VaultReader};
use bulla::{Created, Export, Log, Telemetry, Verify, default_keys};
use bulla_workload::Workload;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn run(workload: Workload, knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    Ok(appended(workload, knobs, place)?.0)
}

/// The same, and then an export of everything as JSON lines, which verifies it first.
pub(crate) fn run_and_export(workload: Workload, knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let (mut outcome, created) = appended(workload, knobs, place)?;
    let directory = place.join("audit");
    let mut export = Export::open(&directory)?.identity(Arc::new(identity(&directory)?));
    if let Some(vault) = vault(&directory, &created)? {
        export = export.group_keys(vault);
    }
    let start = Instant::now();
    let exported = export.run(&mut std::io::sink())?.entries;
    outcome.set(figure::EXPORTED, exported as f64 / start.elapsed().as_secs_f64());
    Ok(outcome)
}

fn appended(workload: Workload, knobs: &Knobs, place: &Path) -> Result<(Outcome, Created), Failure> {
    let directory = place.join("audit");
    let source = Source::new(workload, knobs);
    let created = knobs.init().create(&directory)?;
    let watch = Watch::start();
    let log = Log::open(&directory, knobs.options())?;
    let (entries, producing) = append(&log, &source, knobs)?;
    log.flush()?;
    let telemetry = log.telemetry();
    log.close()?;
    let passed = watch.stop();

    let layout = Layout::of(&directory)?;
    let mut outcome = measure::appended(&source, entries, &passed, layout.bytes());
    outcome.producers("stage", producing, entries, source.cost());
    tell(&telemetry, entries, &mut outcome);
    layout.tell(entries, &mut outcome);
    outcome.set(figure::FILES, layout.segments as f64);
    outcome.set(figure::UNITS, layout.units as f64);
    outcome.set(figure::VERIFIED, entries as f64 / verify(&directory, &created, entries)?.as_secs_f64());
    Ok((outcome, created))
}

/// What the log counted itself.
fn tell(telemetry: &Telemetry, entries: u64, outcome: &mut Outcome) {
    let stages = &telemetry.stages;
    for (name, time) in stages.each() {
        outcome.stage(name, time, entries);
    }
    outcome.set("syncs", telemetry.syncs.count as f64);
    outcome.set("sync_seconds", telemetry.syncs.time.as_secs_f64());
    outcome.set("longest_sync_seconds", telemetry.syncs.longest.as_secs_f64());
    outcome.set("backpressure_waits", telemetry.backpressure.count as f64);
    outcome.set("backpressure_seconds", telemetry.backpressure.time.as_secs_f64());
}

/// Appends with every producer; how many entries, and what their threads took of the processors.
fn append(log: &Log, source: &Source, knobs: &Knobs) -> Result<(u64, Duration), Failure> {
    std::thread::scope(|scope| {
        let produce = |producer| {
            let mut handle = log.producer()?;
            let start = process::thread_cpu();
            let entries = source.feed(producer).drive(knobs.share(), |entry| Ok(handle.append(entry)?))?;
            Ok((entries, process::thread_cpu() - start))
        };
        let threads =
            (0..knobs.producers).map(|producer| scope.spawn(move || produce(producer))).collect::<Vec<_>>();
        sum(threads)
    })
}

/// What threads say that they appended, and took, together.
pub(crate) fn sum(
    threads: Vec<std::thread::ScopedJoinHandle<'_, Result<(u64, Duration), Failure>>>,
) -> Result<(u64, Duration), Failure> {
    threads.into_iter().try_fold((0, Duration::ZERO), |(entries, time), thread| {
        let (more, taken) = thread.join().map_err(|_| "a producer panicked")??;
        Ok((entries + more, time + taken))
    })
}

/// How long a verification takes that opens every block and every group.
fn verify(directory: &Path, created: &Created, entries: u64) -> Result<Duration, Failure> {
    let mut verify =
        Verify::open(directory)?.key(created.verifier_key.clone()).identity(Arc::new(identity(directory)?));
    if let Some(vault) = vault(directory, created)? {
        verify = verify.group_keys(vault);
    }
    let start = Instant::now();
    let report = verify.run()?;
    let taken = start.elapsed();
    match report.ok && report.entries == entries {
        true => Ok(taken),
        false => Err(format!("{} of {entries} entries verify: {:?}", report.entries, report.findings).into()),
    }
}

/// The keys of data subjects, of a log that has any.
fn vault(directory: &Path, created: &Created) -> Result<Option<Arc<VaultReader>>, Failure> {
    if created.erasure_key.is_none() {
        return Ok(None);
    }
    let vault = VaultReader::open(&default_keys(directory), created.id, &Settings::default())?;
    Ok(Some(Arc::new(vault)))
}

/// The identity that was made with a log.
pub(crate) fn identity(directory: &Path) -> Result<IdentityFile, Failure> {
    let path = default_keys(directory).join(bulla::keys::files::IDENTITY);
    Ok(IdentityFile::parse(&std::fs::read_to_string(path)?)?)
}
