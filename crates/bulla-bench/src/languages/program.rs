//! Programs of other languages, and of Rust: built, run, and asked how long it took them.

use crate::command;
use crate::latency::{LONGEST, tell};
use crate::measure::figure;
use crate::outcome::{Failure, Outcome};
use crate::proxied::Running;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Entries between looks at the clock, where they are appended one by one.
pub(super) const BETWEEN_LOOKS: u64 = 64;

/// When a run ends: after so many seconds or so many entries, whichever comes first.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(super) seconds: f64,
    pub(super) entries: u64,
}

impl Limits {
    pub(super) fn are_reached(self, start: Instant, entries: u64) -> bool {
        entries >= self.entries || start.elapsed().as_secs_f64() >= self.seconds
    }

    /// As every program takes them, behind its other arguments.
    pub(super) fn arguments(self) -> [String; 2] {
        [self.seconds.to_string(), self.entries.to_string()]
    }
}

/// What a program says that it did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(super) entries: u64,
    /// From before the log was opened until after it was closed, unless a program says otherwise.
    pub(super) seconds: f64,
    /// Of all of its threads meanwhile, where that is known.
    pub(super) processor_seconds: Option<f64>,
    /// Until the log was closed, of a program whose seconds end before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) closed_seconds: Option<f64>,
    /// Of each call, where calls were timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) latencies_ns: Vec<u64>,
}

impl Told {
    /// The figures; latencies are those of `kind`.
    pub(super) fn outcome(&self, kind: &str) -> Result<Outcome, Failure> {
        let (mut outcome, entries) = (Outcome::default(), self.entries as f64);
        outcome.set(figure::ENTRIES, entries);
        outcome.set(figure::SECONDS, self.seconds);
        outcome.set(figure::RATE, entries / self.seconds);
        if let Some(seconds) = self.processor_seconds {
            outcome.set(figure::CPU, seconds * 1e9 / entries);
        }
        if let Some(seconds) = self.closed_seconds {
            outcome.set("closed_entries_per_second", entries / seconds);
        }
        if !self.latencies_ns.is_empty() {
            let mut latencies = Histogram::new_with_bounds(1, LONGEST, 3)?;
            self.latencies_ns.iter().for_each(|each| latencies.saturating_record((*each).clamp(1, LONGEST)));
            tell(kind, &latencies, &mut outcome);
        }
        Ok(outcome)
    }
}

/// A file of this crate.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The library for C that lies beside this program.
pub(crate) fn library() -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name("libbulla_c.so");
    path.canonicalize().map_err(|error| {
        format!("{}: {error}: `cargo build --release -p bulla-c` makes it", path.display()).into()
    })
}

/// The Python that `make setup` installs, with what programs in Python need beside the package.
pub(crate) fn python() -> PathBuf {
    file("../../.venv/bin/python")
}

/// This program as what it is asked to be.
pub(super) fn rust(name: &str) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("language").arg(name);
    Ok(command)
}

/// The program in C `append.c`, compiled against the library.
pub(super) fn c(place: &Path) -> Result<Command, Failure> {
    compiled("cc", &["-std=c11", "-D_POSIX_C_SOURCE=200809L"], "append.c", place)
}

/// The program in C++ `thesis.cpp`, likewise.
pub(super) fn thesis(place: &Path) -> Result<Command, Failure> {
    compiled("c++", &["-std=c++17", "-pthread"], "thesis.cpp", place)
}

fn compiled(compiler: &str, options: &[&str], source: &str, place: &Path) -> Result<Command, Failure> {
    let library = library()?;
    // It is found by the name under which it is installed.
    std::os::unix::fs::symlink(&library, place.join("libbulla.so.1"))?;
    let program = place.join("program");
    let mut command = Command::new(compiler);
    command.arg("-O2").args(options).arg("-I").arg(file("../bulla-c/include"));
    command.arg(file("programs").join(source)).arg("-o").arg(&program).arg(&library);
    command::finish(&mut command)?;
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", place);
    Ok(command)
}

/// `measure.py`, with the package that is in a directory.
pub(super) fn measure(way: &str, package: &Path) -> Command {
    let mut command = Command::new(python());
    command.arg(file("programs/measure.py")).arg(way).env("PYTHONPATH", package);
    command
}

/// Runs a program on these entries.
pub(super) fn run(command: &mut Command, entries: Vec<u8>) -> Result<Told, Failure> {
    let mut running = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
    if let Some(mut input) = running.child().stdin.take() {
        // A program that does not take them has said why, and ends otherwise than well.
        let _ = input.write_all(&entries);
    }
    drop(entries);
    finish(running)
}

/// What a program says in the end.
pub(super) fn finish(mut running: Running) -> Result<Told, Failure> {
    let mut said = String::new();
    if let Some(mut output) = running.child().stdout.take() {
        output.read_to_string(&mut said)?;
    }
    let status = running.child().wait()?;
    match status.success() {
        true => Ok(serde_json::from_str(&said)?),
        false => Err(format!("a program ended with {status}").into()),
    }
}

/// That the log has as many entries as were appended; what an entry takes.
pub(super) fn check(directory: &Path, told: &Told, outcome: &mut Outcome) -> Result<(), Failure> {
    let info = bulla::info(directory)?;
    if info.entries != told.entries {
        return Err(
            format!("the log has {} entries of {} that were appended", info.entries, told.entries).into()
        );
    }
    outcome.set(figure::DISK, info.bytes as f64 / info.entries as f64);
    Ok(())
}
