//! Bulla from the languages that people write in, against the same in Rust: C, C++ by the thesis's interface, Python; and from several processes.
//!
//! Each run is a process of its own that has the entries in memory before its time begins. Afterwards the log has to have as many as it says
//! that it appended, or the run fails.

mod append;
mod program;
mod query;
mod records;
mod socket;

pub(crate) use program::{library, python};
pub(crate) use query::Reading;
pub(crate) use socket::Way;

use crate::load::Load;
use crate::outcome::{Failure, Outcome};
use append::{BATCH, BATCHES};
use bulla::Init;
use bulla_workload::Workload;
use program::{Limits, Told};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) part: Part,
    pub(crate) extent: Extent,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// Entries are appended one by one, but by Python, which appends batches of them.
    Append(Appender, Load),
    /// So many producers append batches of `gdpr`.
    Batches(Interface, u32),
    /// Calls of Python's `logging`.
    Calls(Handler),
    /// A whole log is read.
    Query(Reading),
    /// Entries come from other processes.
    Socket(Way),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Appender {
    Rust,
    C,
    /// Python, of dicts.
    Dicts,
    /// Python, of Arrow tables.
    Arrow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Interface {
    Rust,
    /// In C++.
    Thesis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Handler {
    /// `logging.FileHandler`, with its default formatter.
    File,
    Bulla,
}

/// How long runs are, and of what.
#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Extent {
    /// How long each run appends
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = crate::knobs::seconds)]
    pub(crate) seconds: f64,

    /// Entries of a run at most, and of the log that is read [default: 500,000 for each second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) entries: Option<u64>,

    /// What entries are drawn from
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Where the Python package is: a directory that has `bulla_audit`
    #[arg(long, value_name = "DIR")]
    pub(crate) python_path: Option<PathBuf>,
}

impl Extent {
    /// What one of so many processes appends.
    fn limits(&self, processes: u32) -> Limits {
        let entries = self.entries.map_or(u64::MAX, |entries| entries.div_ceil(processes.into()));
        Limits { seconds: self.seconds, entries }
    }

    fn package(&self) -> Result<&Path, Failure> {
        Ok(self.python_path.as_deref().ok_or("--python-path says where the Python package is")?)
    }
}

pub(crate) fn run(run: &Run, place: &Path) -> Result<Outcome, Failure> {
    match &run.part {
        Part::Append(appender, load) => append(*appender, load.0, &run.extent, place),
        Part::Batches(interface, producers) => batches(*interface, *producers, &run.extent, place),
        Part::Calls(handler) => calls(*handler, &run.extent, place),
        Part::Query(reading) => query::run(*reading, &run.extent, place),
        Part::Socket(way) => socket::run(*way, &run.extent, place),
    }
}

fn append(appender: Appender, workload: Workload, extent: &Extent, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    Init::default().create(&directory)?;
    let (limits, held) = (extent.limits(1), records::held(workload, extent.seed, extent.entries));
    let records = || records::records(workload, extent.seed, 1, held);
    let python = |way| {
        let mut command = program::measure(way, extent.package()?);
        program::run(command.arg(place).args(limits.arguments()), records::lines(extent.seed, held)?)
    };
    let told = match appender {
        Appender::Rust => {
            program::run(program::rust("append")?.arg(&directory).args(limits.arguments()), records())?
        }
        Appender::C => program::run(program::c(place)?.arg(&directory).args(limits.arguments()), records())?,
        Appender::Dicts => python("dicts")?,
        Appender::Arrow => python("arrow")?,
    };
    let mut outcome = told.outcome("")?;
    program::check(&directory, &told, &mut outcome)?;
    Ok(outcome)
}

/// The kind of what is timed.
pub(crate) const APPENDED: &str = "batch";

fn batches(interface: Interface, producers: u32, extent: &Extent, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    Init::default().create(&directory)?;
    let limits = extent.limits(1);
    let each = (BATCH as u64 * BATCHES).min(extent.limits(producers).entries);
    let mut command = match interface {
        Interface::Rust => program::rust("batches")?,
        Interface::Thesis => program::thesis(place)?,
    };
    command.arg(place).arg(producers.to_string()).arg(writers().to_string()).args(limits.arguments());
    let told = program::run(&mut command, records::records(Workload::Gdpr, extent.seed, producers, each))?;
    let mut outcome = told.outcome(APPENDED)?;
    program::check(&directory, &told, &mut outcome)?;
    Ok(outcome)
}

/// As many as Bulla has itself where it is not told.
fn writers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).min(16)
}

fn calls(handler: Handler, extent: &Extent, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    Init::default().create(&directory)?;
    // Calls are slower than entries: fewer are enough.
    const CALLS: u64 = 1 << 16;
    let held = extent.entries.unwrap_or(CALLS).min(CALLS);
    let way = match handler {
        Handler::File => "file",
        Handler::Bulla => "handler",
    };
    let mut command = program::measure(way, extent.package()?);
    command.arg(place).args(extent.limits(1).arguments());
    let told = program::run(&mut command, records::lines(extent.seed, held)?)?;
    let mut outcome = told.outcome("")?;
    match handler {
        Handler::Bulla => program::check(&directory, &told, &mut outcome)?,
        Handler::File => {
            let written = std::fs::read(place.join("calls.log"))?;
            let lines = written.iter().filter(|byte| **byte == b'\n').count() as u64;
            if lines != told.entries {
                return Err(format!("the file has {lines} lines of {} calls", told.entries).into());
            }
        }
    }
    Ok(outcome)
}

/// What other processes of these runs are, in Rust.
#[derive(clap::Subcommand)]
pub(crate) enum Program {
    Append {
        directory: PathBuf,
        #[command(flatten)]
        limits: Limits,
    },
    Batches {
        place: PathBuf,
        producers: usize,
        writers: usize,
        #[command(flatten)]
        limits: Limits,
    },
    Client {
        socket: PathBuf,
        window: usize,
        #[command(flatten)]
        limits: Limits,
    },
}

impl Program {
    pub(crate) fn run(self) -> Result<Told, Failure> {
        match self {
            Program::Append { directory, limits } => append::append(&directory, limits),
            Program::Batches { place, producers, writers, limits } => {
                append::batches(&place.join("audit"), producers, writers, limits)
            }
            Program::Client { socket, window, limits } => socket::client(&socket, window, limits),
        }
    }
}
