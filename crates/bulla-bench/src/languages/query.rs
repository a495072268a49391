//! A whole log read into Arrow, by Python, against its export to Parquet by the command.

use super::Extent;
use super::program::{self, Told};
use crate::command;
use crate::outcome::{Failure, Outcome};
use crate::statistics::whole;
use bulla::{Init, Log, Options};
use bulla_workload::Workload;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Entries of the log for each second that runs are to take.
const EACH_SECOND: f64 = 500_000.0;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reading {
    /// `bulla export --format parquet`, to a file.
    Parquet,
    /// A table in memory.
    Arrow,
}

pub(super) fn run(reading: Reading, extent: &Extent, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    let entries = extent.entries.unwrap_or_else(|| whole(extent.seconds * EACH_SECOND).max(1));
    Init::default().create(&directory)?;
    let log = Log::open(&directory, Options::default())?;
    let (mut producer, mut generator) = (log.producer()?, Workload::Web.generator(extent.seed, 0));
    for _ in 0..entries {
        producer.append(&generator.next_entry())?;
    }
    drop(producer);
    log.close()?;
    let told = match reading {
        Reading::Parquet => export(entries, &directory, &place.join("audit.parquet"))?,
        Reading::Arrow => {
            let mut command = program::measure("query", extent.package()?);
            program::run(command.arg(place).args(extent.limits(1).arguments()), Vec::new())?
        }
    };
    let mut outcome = told.outcome("")?;
    program::check(&directory, &told, &mut outcome)?;
    Ok(outcome)
}

fn export(entries: u64, directory: &Path, file: &Path) -> Result<Told, Failure> {
    let mut command = Command::new(command::program()?);
    command.arg("export").arg(directory).args(["--format", "parquet", "-o"]).arg(file);
    let start = Instant::now();
    let ended = command.output()?;
    let seconds = start.elapsed().as_secs_f64();
    match ended.status.success() {
        true => Ok(Told { entries, seconds, ..Told::default() }),
        false => Err(format!(
            "{command:?} ended with {}: {}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        )
        .into()),
    }
}
