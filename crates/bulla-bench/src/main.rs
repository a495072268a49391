//! `bulla-bench`: measures Bulla, and beside it, in the same rounds, what it is compared with.

mod access;
mod append;
mod arena;
mod baseline;
mod claims;
mod command;
mod contest;
mod erase;
mod feed;
mod integrity;
mod knobs;
mod languages;
mod latency;
mod layout;
mod limits;
mod load;
mod machine;
mod measure;
mod outcome;
mod process;
mod proxied;
mod published;
mod report;
mod results;
mod slow;
mod statistics;
mod suite;
mod trial;

use bulla_workload::Workload;
use claims::Claim;
use clap::{Parser, Subcommand};
use contest::Case;
use knobs::Knobs;
use outcome::Failure;
use proxied::Setup;
use results::Results;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use suite::languages::Chosen;
use suite::proxy::{Loads, Roles};
use trial::{Task, Trial};

/// Measures Bulla, and what it is compared with, on this machine.
#[derive(Parser)]
#[command(name = "bulla-bench", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Every run is a process of its own; contenders take turns, round by round. Absolute
figures say as much of the machine as of the programs: compare within one run.
Example: bulla-bench gdpr --baseline --rounds 5 --durability os --erasure off";

#[derive(Subcommand)]
enum Command {
    /// Operations on personal data, 4096 bytes of two words, as the thesis has them
    Gdpr(Run),
    /// The same, of fifty words
    #[command(name = "gdpr-50")]
    Gdpr50(Run),
    /// An application's events, 200 to 600 bytes of JSON
    Json(Run),
    /// A web server's requests, as Loggr has them
    Web(Run),
    /// The same, the client as data subject
    WebSubjects(Run),
    /// Requests for 1,300,000 long locations
    WebAdversarial(Run),
    /// A real access log in the combined format, against zstd on its text
    Access(Access),
    /// Short lines, each proven, beside schemes on SQLite
    Integrity(Run),
    /// A thousand entries a second, from a hundred producers
    Slow(Run),
    /// Changes to the data of 8,192 people, each a few bytes
    Tenants(Run),
    /// Entries of about 100 bytes and of about 4 KiB: appended, verified, exported
    Sizes(Run),
    /// How long an append takes at half the load that is possible
    Latency(Run),
    /// What memcpy, AES-256-GCM, SHA-256 and zstd take by themselves
    Limits(Run),
    /// How long an erasure takes beside appends
    Erase(Run),
    /// The proxy before a Redis server: commands a second, latency, memory
    Proxy(Proxy),
    /// GDPRbench's roles before a Redis server, directly and through the proxy
    Gdprbench(Gdprbench),
    /// C, C++, Python and several processes against the same in Rust
    Languages(Languages),
    /// All but the proxy and languages, and whether Bulla reaches what it is meant to
    All(All),
    /// Print and plot results that were written with --json
    Report(Report),
    #[command(hide = true)]
    Trial { trial: String, directory: PathBuf },
    #[command(hide = true)]
    Language {
        #[command(subcommand)]
        program: languages::Program,
    },
}

#[derive(clap::Args)]
struct Run {
    #[command(flatten)]
    knobs: Knobs,

    #[command(flatten)]
    session: Session,

    /// Run what this workload is compared with, too
    #[arg(long)]
    baseline: bool,
}

#[derive(clap::Args)]
struct Access {
    /// The log
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    run: Run,
}

#[derive(clap::Args)]
struct All {
    #[command(flatten)]
    knobs: Knobs,

    #[command(flatten)]
    session: Session,

    /// A real access log, for the case `access`
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,

    /// Only the cases whose names begin with this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Three rounds of two seconds, unless told otherwise: to see that all is well, not to quote
    #[arg(long)]
    short: bool,
}

#[derive(clap::Args)]
struct Proxy {
    #[command(flatten)]
    loads: Loads,

    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    session: Session,
}

#[derive(clap::Args)]
struct Gdprbench {
    #[command(flatten)]
    roles: Roles,

    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    session: Session,
}

#[derive(clap::Args)]
struct Languages {
    #[command(flatten)]
    chosen: Chosen,

    #[command(flatten)]
    session: Session,
}

#[derive(clap::Args)]
struct Session {
    /// How often each contender runs [default: 5, and 7 before a server]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Write all figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write plots to this directory
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Where logs are written while they are measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    place: PathBuf,
}

#[derive(clap::Args)]
struct Report {
    /// The results
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write plots to this directory
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Put the README's table into this file, in place of the one that it has
    #[arg(long, value_name = "README")]
    readme: Option<PathBuf>,
}

fn main() -> ExitCode {
    match Arguments::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bulla-bench: {failure}");
            ExitCode::from(4)
        }
    }
}

impl Command {
    fn run(self) -> Result<(), Failure> {
        let appends = |workload: Workload, run: Run| {
            let cases = vec![suite::appends(workload.name(), workload, &run.knobs, run.baseline)];
            run.session.run(cases)
        };
        match self {
            Command::Gdpr(run) => appends(Workload::Gdpr, run),
            Command::Gdpr50(run) => appends(Workload::Gdpr50, run),
            Command::Json(run) => appends(Workload::Json, run),
            Command::Web(run) => appends(Workload::Web, run),
            Command::WebSubjects(run) => appends(Workload::WebSubjects, run),
            Command::WebAdversarial(run) => appends(Workload::WebAdversarial, run),
            Command::Access(Access { file, run }) => run.session.run(vec![suite::access(&file, &run.knobs)]),
            Command::Integrity(run) => run.session.run(vec![suite::integrity(&run.knobs, run.baseline)]),
            Command::Slow(run) => run.session.run(vec![suite::slow(suite::name::SLOW, &run.knobs)]),
            Command::Tenants(run) => appends(Workload::Tenants, run),
            Command::Sizes(run) => run.session.run(suite::sizes(&run.knobs).into()),
            Command::Latency(run) => run.session.run(suite::latency(&run.knobs).into()),
            Command::Limits(run) => run.session.run(suite::limits(&run.knobs)),
            Command::Erase(run) => run.session.run(vec![suite::erase(&run.knobs)]),
            Command::Proxy(Proxy { loads, setup, session }) => {
                let cases = suite::proxy::proxy(&loads, &setup.resolved()?);
                session.before_a_server().run_and(cases, claims::proxy::check)
            }
            Command::Gdprbench(Gdprbench { roles, setup, session }) => {
                let cases = suite::proxy::gdprbench(&roles, &setup.resolved()?);
                session.before_a_server().run(cases)
            }
            Command::Languages(Languages { chosen, session }) => {
                let (cases, not_measured) = chosen.cases()?;
                session.run_all(cases, claims::languages::check, not_measured)
            }
            Command::All(all) => all.run(),
            Command::Report(report) => report.run(),
            Command::Trial { trial, directory } => {
                let outcome = serde_json::from_str::<Trial>(&trial)?.run(&directory)?;
                println!("{}", serde_json::to_string(&outcome)?);
                Ok(())
            }
            Command::Language { program } => {
                println!("{}", serde_json::to_string(&program.run()?)?);
                Ok(())
            }
        }
    }
}

impl All {
    fn run(mut self) -> Result<(), Failure> {
        if self.short {
            self.session.rounds.get_or_insert(3);
            if self.knobs.entries.is_none() {
                self.knobs.seconds.get_or_insert(2.0);
            }
        }
        let mut cases = suite::all(&self.knobs, self.access.as_ref());
        if let Some(only) = &self.only {
            cases.retain(|case| case.name.starts_with(only));
        }
        // So is a program that is missing.
        let is_of_command =
            |case: &Case| case.contenders.iter().any(|run| matches!(run.trial.task, Task::Command));
        if cases.iter().any(is_of_command) {
            command::program()?;
        }
        self.session.run_and(cases, claims::check)
    }
}

impl Session {
    fn before_a_server(mut self) -> Self {
        const ROUNDS: u16 = 7;
        self.rounds.get_or_insert(ROUNDS);
        self
    }

    fn run(self, cases: Vec<Case>) -> Result<(), Failure> {
        self.run_and(cases, |_| Vec::new())
    }

    /// Runs cases and makes claims about them.
    fn run_and(self, cases: Vec<Case>, claims: fn(&[Case]) -> Vec<Claim>) -> Result<(), Failure> {
        self.run_all(cases, claims, Vec::new())
    }

    /// The same, and tells what cannot be measured.
    fn run_all(
        self,
        mut cases: Vec<Case>,
        claims: fn(&[Case]) -> Vec<Claim>,
        not_measured: Vec<String>,
    ) -> Result<(), Failure> {
        const ROUNDS: u16 = 5;
        // A file that cannot be written is found out before an hour of measuring, not after.
        if let Some(file) = &self.json {
            fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let (started, rounds) = (machine::now(), self.rounds.unwrap_or(ROUNDS).into());
        for case in &mut cases {
            case.run(rounds, &self.place)?;
        }
        let results = Results {
            machine: machine::Machine::look(&self.place),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            commit: machine::commit(),
            started,
            rounds,
            claims: claims(&cases),
            cases,
            not_measured,
        };
        if let Some(file) = &self.json {
            fs::write(file, serde_json::to_string_pretty(&results)? + "\n")?;
        }
        show(&results, self.plots.as_deref())
    }
}

impl Report {
    fn run(self) -> Result<(), Failure> {
        let text =
            fs::read_to_string(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))?;
        let results =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", self.file.display()))?;
        if let Some(file) = &self.readme {
            let of_file = |error: Failure| format!("{}: {error}", file.display());
            let text = fs::read_to_string(file).map_err(|error| of_file(error.into()))?;
            fs::write(file, report::replace_in_readme(&text, &results).map_err(of_file)?)?;
        }
        show(&results, self.plots.as_deref())
    }
}

fn show(results: &Results, plots: Option<&Path>) -> Result<(), Failure> {
    print!("{}", report::text(results));
    match plots {
        Some(directory) => report::plot(results, directory),
        None => Ok(()),
    }
}
