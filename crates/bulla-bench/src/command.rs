//! What the command makes of a file of exactly so many lines, with all of its defaults, and what gzip does.

use crate::knobs::Knobs;
use crate::layout::Layout;
use crate::measure::figure;
use crate::outcome::{Failure, Outcome};
use bulla_workload::Workload;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// How many lines there are unless told otherwise.
const LINES: u64 = 100_000;

pub(crate) fn run(knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let (bulla, entries) = (program()?, knobs.entries.unwrap_or(LINES));
    let [log, lines] = ["audit", "lines.jsonl"].map(|name| place.join(name));
    let workload = Workload::Tenants.name();
    let (count, seed) = (entries.to_string(), knobs.seed.to_string());
    let mut generate = Command::new(&bulla);
    generate.args(["generate", workload, "--entries", &count, "--seed", &seed]).stdout(File::create(&lines)?);
    finish(&mut generate)?;
    finish(Command::new(&bulla).args([OsStr::new("init"), log.as_os_str()]).stdout(Stdio::null()))?;
    let mut append = Command::new(&bulla);
    append.args([OsStr::new("append"), log.as_os_str()]).stdin(File::open(&lines)?).stdout(Stdio::null());
    let start = Instant::now();
    finish(&mut append)?;
    let passed = start.elapsed().as_secs_f64();
    let gzip = place.join("lines.gz");
    finish(Command::new("gzip").arg("-1").stdin(File::open(&lines)?).stdout(File::create(&gzip)?))?;

    let layout = Layout::of(&log)?;
    let held = layout.blocks.iter().sum::<u64>();
    if held != entries {
        return Err(format!("the log has {held} entries of {entries} lines").into());
    }
    let mut outcome = Outcome::default();
    outcome.set(figure::ENTRIES, entries as f64);
    outcome.set(figure::SECONDS, passed);
    outcome.set(figure::RATE, entries as f64 / passed);
    layout.tell(entries, &mut outcome);
    for (name, file) in [(figure::TEXT, &lines), (figure::GZIP, &gzip)] {
        outcome.set(name, std::fs::metadata(file)?.len() as f64 / entries as f64);
    }
    Ok(outcome)
}

/// The command that lies beside this one.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name("bulla");
    path.canonicalize().map_err(|error| {
        format!("{}: {error}: `cargo build --release -p bulla-cli` makes it", path.display()).into()
    })
}

/// Runs a command, which has to end well.
pub(crate) fn finish(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}
