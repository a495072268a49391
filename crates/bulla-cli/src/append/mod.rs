//! `bulla append`.

mod input;
mod meter;
mod refused;

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::log_paths::LogPaths;
use crate::output::{print, print_json};
use crate::terminal::telling_environment;
use bulla::environment::Environment;
use bulla::store::FileSystem;
use bulla::text::{LineError, LineReader, ParsedEntry, combined, jsonl};
use bulla::{ErrorKind, HoldDifference, Log, Options, Producer, Recovery, Telemetry};
use input::Input;
use meter::Meter;
use refused::Refused;
use serde::Serialize;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Append entries from files or standard input.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Lines that are refused are told on standard error, never stop the others, and
make the exit code 3. All else is durable when the command ends.

Example:
  bulla append audit --format combined --subject-from client access.log")]
pub(crate) struct Append {
    #[command(flatten)]
    place: LogPaths,

    /// JSON lines, or the combined access log of Apache and nginx
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,

    /// The stream of entries that name none
    #[arg(long, value_name = "S", value_parser = parse_stream)]
    stream: Option<String>,

    /// The field that names the data subject, where an entry itself does not: the
    /// whole value, also where a rule of the log takes something from the field
    #[arg(long, value_enum, value_name = "FIELD")]
    subject_from: Option<SubjectFrom>,

    /// Add refused lines, as they are, to this file
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,

    /// Tell each second how far it is and how deep in work, and at the end all that
    /// was counted: waits, syncs, dictionaries, processor time by stage
    #[arg(long)]
    stats: bool,

    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,

    /// The files to read; `-`, and none at all, is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    Jsonl,
    Combined,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum SubjectFrom {
    Client,
    Actor,
    Location,
    Controller,
    Processor,
    Purpose,
    Stream,
}

impl Append {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let interrupt = Interrupt::install()?;
        let inputs = input::find(&self.files)?;
        let refused = Refused::open(self.rejects.as_deref(), &inputs)?;
        let log = open(&self.place, telling_environment())?;
        if let Some(failure) = log.control_failure() {
            note!("whatever needs the log has to wait until this ends: {failure}");
        }

        let closing = log.closing();
        // Otherwise a full disk would be waited for between the signal and the end, as often as `retries` says.
        Interrupt::when_raised(move || closing.announce())?;
        let meter = Meter::new(self.stats, &inputs);
        let mut run = Run { append: &self, interrupt: &interrupt, refused, meter, accepted: 0 };
        let mut producer = log.producer()?;
        let read = run.read_all(&inputs, &log, &mut producer);
        run.end(log, producer, read)
    }

    fn parse(&self, line: &[u8]) -> Result<ParsedEntry, String> {
        let parsed = match self.format {
            Format::Jsonl => jsonl::parse_line(line),
            Format::Combined => combined::parse_line(line),
        };
        let mut entry = parsed.map_err(|error| error.to_string())?;
        if entry.stream.is_none() {
            entry.stream.clone_from(&self.stream);
        }
        if let (None, Some(field)) = (&entry.subjects, self.subject_from) {
            entry.subjects = field.of(&entry)?.map(|subject| vec![subject]);
        }
        Ok(entry)
    }
}

impl SubjectFrom {
    fn of(self, entry: &ParsedEntry) -> Result<Option<String>, String> {
        let field = match self {
            SubjectFrom::Client => &entry.client,
            SubjectFrom::Actor => &entry.actor,
            SubjectFrom::Controller => &entry.controller,
            SubjectFrom::Processor => &entry.processor,
            SubjectFrom::Purpose => &entry.purpose,
            SubjectFrom::Stream => &entry.stream,
            SubjectFrom::Location => {
                let location = entry.location.clone().map(String::from_utf8).transpose();
                // Without its data subject the entry could not be found for them, nor erased.
                return location
                    .map_err(|_| "`location` is not UTF-8, so it cannot be the data subject".to_owned());
            }
        };
        Ok(field.clone())
    }
}

fn parse_stream(stream: &str) -> Result<String, String> {
    let entry = bulla::Entry::new("x", "").stream(stream);
    entry.measure().map(|_| stream.to_owned()).map_err(|error| error.to_string())
}

pub(crate) fn tell_recovery(Recovery { frames, entries, torn_bytes, .. }: Recovery) {
    if frames > 0 {
        note!("recovered: {entries} entries in {frames} frames, durable but not yet signed, were adopted");
    }
    if torn_bytes > 0 {
        note!(
            "recovered: a torn tail of {torn_bytes} bytes, which nobody was told is durable, was set aside"
        );
    }
}

/// Tells how holds differed from what the log tells of them.
pub(crate) fn tell_differences(differences: &[HoldDifference]) {
    for difference in differences {
        match difference {
            HoldDifference::Unreadable(_) => {
                note!("{difference}; until then nobody is erased, held or released")
            }
            _ => note!("{difference}: the log's word counts, and the file says so now"),
        }
    }
}

/// Opens a log for writing, and tells what that recovered, and how holds differed from what the log tells of them.
pub(crate) fn open(place: &LogPaths, environment: Environment) -> bulla::Result<Log> {
    let store = |path| Arc::new(FileSystem::new(path));
    let (log, keys) = (store(place.directory()), store(place.keys()));
    let log = Log::open_stores(log, keys, Options::default(), environment)?;
    tell_recovery(log.recovery());
    tell_differences(log.hold_differences());
    Ok(log)
}

/// One run of the command, once everything is open.
struct Run<'a> {
    append: &'a Append,
    interrupt: &'a Interrupt,
    refused: Refused,
    meter: Meter,
    accepted: u64,
}

impl Run<'_> {
    /// Appends every line of every input, until all are read or a signal comes.
    fn read_all(&mut self, inputs: &[Input], log: &Log, producer: &mut Producer) -> Result<(), Failure> {
        for input in inputs {
            let failed = |error: &io::Error| Failure::io(format!("reading {}", input.name), error);
            let source = input.open(self.interrupt).map_err(|error| failed(&error))?;
            let mut lines = LineReader::new(source);
            while !self.interrupt.is_raised() {
                match lines.next_line() {
                    Ok(None) => break,
                    Ok(Some(line)) => self.append(input, line.number, line.text, producer)?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(&error)),
                }
                self.meter.tick(self.accepted, self.refused.count(), log);
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        input: &Input,
        number: u64,
        text: Result<&[u8], LineError>,
        producer: &mut Producer,
    ) -> Result<(), Failure> {
        let (raw, parsed) = match text {
            Ok(line) => {
                self.meter.read(line.len() as u64 + 1);
                (Some(line), self.append.parse(line))
            }
            Err(error) => (None, Err(error.to_string())),
        };
        let reason = match parsed {
            Ok(entry) => match self.stage(&entry, producer) {
                Ok(()) => {
                    self.accepted += 1;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Invalid => error.to_string(),
                // A signal ended the wait: this line is not accepted, and the last that is looked at.
                Err(error) if error.kind() == ErrorKind::Timeout => return Ok(()),
                Err(error) => return Err(error.into()),
            },
            Err(reason) => reason,
        };
        match self.refused.tells_next() {
            true => self.meter.suspend(|| self.refused.add(&input.name, number, &reason, raw)),
            false => self.refused.add(&input.name, number, &reason, raw),
        }
    }

    /// Stages an entry. A medium that is slow is waited for; one that fails says so by itself.
    fn stage(&self, entry: &ParsedEntry, producer: &mut Producer) -> bulla::Result<()> {
        let entry = entry.entry();
        loop {
            match producer.append(&entry) {
                Err(error) if error.kind() == ErrorKind::Timeout && !self.interrupt.is_raised() => {}
                appended => return appended,
            }
        }
    }

    /// Commits what was staged, whatever ended the reading, and says how it went.
    fn end(mut self, log: Log, mut producer: Producer, read: Result<(), Failure>) -> Result<Exit, Failure> {
        let durable = producer.flush().and_then(|receipt| receipt.durable());
        drop(producer);
        let committed = log.acknowledged();
        let not_addresses = log.not_addresses();
        let replicas = log.vault_replicas();
        let telemetry = log.telemetry();
        let closed = durable.and(log.close());
        let kept = self.refused.finish();
        let interrupted = self.interrupt.is_raised();
        self.meter.end(self.accepted, &telemetry);
        let summary = Summary {
            accepted: self.accepted,
            refused: self.refused.count(),
            committed,
            interrupted,
            stats: self.append.stats.then_some(telemetry),
        };
        if not_addresses > 0 {
            note!(
                "{not_addresses} values of `client` were no addresses, and dropped: its rule is truncate-ip"
            );
        }
        for (path, failure) in replicas.iter().filter_map(|it| Some((&it.path, it.failure.as_ref()?))) {
            note!("{path}, a replica of the vault, was left out: {failure}");
        }
        let failed = match closed {
            // The log's own failure is what made reading fail, too.
            Err(error) => Some(Failure::from(error)),
            Ok(()) => read.err().or(kept.err()),
        };
        if let Some(Failure { exit, message }) = failed {
            let message = format!(
                "{message}\n{} entries were accepted; at least {committed} of them, the first, are committed",
                self.accepted
            );
            if self.append.json {
                print_json(&summary)?;
            }
            return Err(Failure { exit, message });
        }
        if self.append.json { print_json(&summary) } else { print(&summary.to_text()) }?;
        Ok(match summary {
            Summary { interrupted: true, .. } => Exit::Interrupted,
            Summary { refused: 0, .. } => Exit::Done,
            _ => Exit::SomeRefused,
        })
    }
}

#[derive(Serialize)]
struct Summary {
    accepted: u64,
    refused: u64,
    committed: u64,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Telemetry>,
}

impl Summary {
    fn to_text(&self) -> String {
        let Summary { accepted, refused, committed, interrupted, .. } = self;
        let prefix = if *interrupted { "interrupted: " } else { "" };
        format!("{prefix}{accepted} accepted, {refused} refused, {committed} committed\n")
    }
}
