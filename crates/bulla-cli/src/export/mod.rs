//! `bulla export`.

#[cfg(feature = "parquet")]
mod about;
mod csv;
pub(crate) mod destination;
mod lines;
mod outcome;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod progress;

use crate::as_logged;
use crate::exit::{Exit, Failure};
use crate::filter::Filter;
use crate::group_keys::{Personal, group_keys};
use crate::identity::Identities;
use crate::log_paths::{Also, LogPaths};
use crate::nothing_found;
use crate::output::print_json;
use crate::public_key::log_key;
use crate::terminal;
use bulla::text::jsonl;
use bulla::text::spelling::counted;
use bulla::{Delivery, ExportRecord, Exported};
use destination::{Destination, refuse_json_among};
use progress::Passes;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Decrypt, verify and print entries.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
What is damaged where it is read is refused before anything is written, exit code 1, and what the
identity does not open, exit code 5; --salvage leaves out either, and says what. Of personal fields
without a key `withheld` says why: erased, key-lost (exit code 1), not-given.

Examples:
  bulla export audit --subject user_42 --from 2026-01-01 -o user_42.jsonl
  bulla export audit --processor mailer --from yesterday --to today --zone Europe/Berlin")]
pub(crate) struct Export {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    also: Also,

    #[command(flatten)]
    identities: Identities,

    /// The public key that the log must be of, or a file with it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    /// JSON lines, CSV (RFC 4180) or Parquet
    #[arg(
        long,
        value_enum,
        default_value = "jsonl",
        hide_possible_values = true,
        value_name = "jsonl|csv|parquet"
    )]
    format: Format,

    #[command(flatten)]
    personal: Personal,

    /// Leave out what is damaged or has no key at hand, and say so
    #[arg(long)]
    salvage: bool,

    /// Have the log tell of it: how many, by which kinds of filter
    #[arg(long)]
    record: bool,

    /// Write to a file, all or nothing, readable by its owner only
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON object: how many entries, what is missing of them
    #[arg(long, requires = "output")]
    json: bool,

    // Last: what follows it would stand under its heading.
    #[command(flatten)]
    filter: Filter,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    Jsonl,
    Csv,
    Parquet,
}

impl Export {
    pub(crate) fn run(mut self) -> Result<Exit, Failure> {
        self.place.and(&self.also);
        let named = self.output.as_deref().is_some_and(|path| path.as_os_str() != "-");
        refuse_json_among("entries", self.json, self.output.as_deref())?;
        let on_screen = !named && io::stdout().is_terminal();
        self.format.check(on_screen)?;
        let query = self.filter.query()?;
        self.personal.check(&query)?;
        // That there is no log is told before that there is no key for it.
        let log = self.place.log()?;
        drop(bulla::Verify::open_store(log.clone())?);
        let key = log_key(self.key.as_deref())?;
        let mut destination = Destination::open(self.output.as_deref(), &self.place)?;
        let identity = self.identities.reader(&self.place)?;
        let mut export =
            bulla::Export::open_store(log.clone())?.identity(identity.clone()).query(query.clone());
        if let Some(key) = key {
            export = export.key(key);
        }
        if let Some(keys) = group_keys(&self.place, &self.personal, &identity)? {
            export = export.group_keys(keys);
        }
        if destination.is_all_or_nothing() {
            export = export.delivery(Delivery::Discardable);
        }
        // Not where the entries themselves run over the screen.
        let passes = (!on_screen).then(Passes::new);
        if let Some(passes) = &passes {
            export = export.progress(passes.stepper(self.salvage || !query.is_narrow()));
        }
        let export = export.salvage(self.salvage);
        let out = destination.writer();
        let exported = match self.format {
            Format::Jsonl => lines::run(export, out, b"", jsonl::write_read),
            Format::Csv => lines::run(export, out, csv::HEADER, csv::write_entry),
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet::run(export, out, |exported| about::of(&*log, &query, exported)),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(without_parquet()),
        };
        passes.inspect(Passes::clear);

        let recorded = |exported: &Exported| match self.record {
            true => record(&self.place, ExportRecord::new(exported.entries, &query, self.format.name())),
            false => Ok(()),
        };
        let not_published = |failure: Failure| match self.record {
            true => failure.but_done("the export was recorded"),
            false => failure,
        };
        match conclude(exported, (recorded, not_published), destination) {
            Ok(exported) => {
                if exported.entries == 0 {
                    nothing_found::tell(&exported.subjects);
                }
                as_logged::tell(&self.place, &query);
                if let Some(read) = exported.read.filter(|_| query.is_narrow()) {
                    note!("read {} of {}", read.blocks_read, counted(read.blocks, "block"));
                }
                let exit = outcome::tell(&exported, self.salvage.then_some(&query));
                if self.json {
                    print_json(&outcome::ExportedJson::from(&exported))?;
                }
                Ok(exit)
            }
            Err(Closed::Pipe) if self.record => {
                Err(Failure::new(Exit::Environment, "the output was closed, so the export was not recorded"))
            }
            // Whoever read the output has seen enough.
            Err(Closed::Pipe) => Ok(Exit::Done),
            Err(Closed::Failed(failure)) => Err(failure),
        }
    }
}

fn record(place: &LogPaths, record: ExportRecord) -> Result<(), Failure> {
    Ok(bulla::record_export(place.directory(), place.keys(), terminal::environment(), &record)?)
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }

    /// Refuses at the start what would fail in the end.
    #[cfg_attr(not(feature = "parquet"), allow(unused_variables))]
    fn check(self, on_screen: bool) -> Result<(), Failure> {
        if !matches!(self, Format::Parquet) {
            return Ok(());
        }
        #[cfg(not(feature = "parquet"))]
        return Err(without_parquet());
        #[cfg(feature = "parquet")]
        match on_screen {
            true => Err(Failure::usage("Parquet is nothing for a terminal; write it to a file with -o FILE")),
            false => Ok(()),
        }
    }
}

#[cfg(not(feature = "parquet"))]
fn without_parquet() -> Failure {
    Failure::usage(
        "this `bulla` was built without Parquet; build it with the feature that is on by default: \
         cargo build --release -p bulla-cli --features parquet",
    )
}

/// Why not everything was written.
enum Closed {
    Pipe,
    Failed(Failure),
}

impl Closed {
    fn or_failure(error: bulla::Error) -> Self {
        match error.io_error().map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => Closed::Pipe,
            _ => Closed::Failed(error.into()),
        }
    }
}

/// Nothing is recorded that was not taken to its end, and no file is in its place before that is recorded.
fn conclude(
    exported: bulla::Result<Exported>,
    (recorded, not_published): (
        impl FnOnce(&Exported) -> Result<(), Failure>,
        impl FnOnce(Failure) -> Failure,
    ),
    mut destination: Destination,
) -> Result<Exported, Closed> {
    let exported = exported.map_err(Closed::or_failure)?;
    let failed = |error: &io::Error| Failure::io("writing the export", error);
    destination.write_out().map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Closed::Pipe,
        _ => Closed::Failed(failed(&error)),
    })?;
    recorded(&exported).map_err(Closed::Failed)?;
    destination.finish().map_err(|error| Closed::Failed(not_published(failed(&error))))?;
    Ok(exported)
}
