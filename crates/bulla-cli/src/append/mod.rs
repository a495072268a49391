//! `bulla append`.

mod acks;
mod alarm;
mod following;
mod format;
mod input;
mod lines;
mod listening;
mod meter;
mod numbered;
mod opening;
mod refused;
mod run;
mod summary;
mod taken;
mod terms;
mod trying;

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::log_paths::LogPaths;
use crate::output::note_lines;
use crate::teller::Teller;
use crate::terminal::telling_environment;
use acks::Acks;
use bulla::{Closing, ErrorKind, Log, Options};
use bulla_ingest::convert::{Conversion, Converter};
use bulla_ingest::format::Format;
use clap::builder::NonEmptyStringValueParser;
pub(crate) use following::known;
use format::Form;
pub(crate) use format::unknown as unknown_map;
use input::Input;
use meter::Meter;
pub(crate) use numbered::Label as InputLabel;
use numbered::Numbered;
#[cfg(feature = "proxy")]
pub(crate) use opening::tell_opened;
pub(crate) use opening::{open, open_with, tell_differences, tell_made_pin, tell_recovery, tell_resumed};
use refused::Refused;
use run::Run;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use summary::Summary;
use taken::Taken;
use terms::{SubjectFrom, Terms};

/// Append entries from files or standard input.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("listening").multiple(true))]
#[command(after_help = "\
A JSON line has `operation`, and may have time (RFC 3339), location, subject (one or a list),
controller, processor, purpose, actor, client, stream, status, duration (nanoseconds), size,
flags, payload: docs/input.md and `bulla schema` have types and limits. Refused lines are told
on standard error, stop no others, and make the exit code 3. However the command ends, it says
up to which line every line is durable or was refused: after a failure, go on with the next.

Examples:
  bulla append audit <<< '{\"operation\":\"read\",\"location\":\"user_42/email\",\"subject\":\"user_42\"}'
  bulla append audit --format combined --subject-from client access.log
  bulla append audit --map nginx --follow '/var/log/nginx/*.log'")]
pub(crate) struct Append {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    form: Form,

    /// Show what would become of the first ten records of each input, field by field; touch no log
    #[arg(long, conflicts_with_all = ["acks", "rejects", "listening"])]
    r#try: bool,

    /// Read files exactly once while others write and rotate them: FILE is a path, a quoted pattern,
    /// or `journal:` for journald's entries (`journal:UNIT`). Ends at a signal
    #[arg(long, requires = "files", conflicts_with_all = ["acks", "listening"])]
    follow: bool,

    /// With --follow: read what there is, then end
    #[arg(long, requires = "follow")]
    once: bool,

    /// The stream of entries that name none
    #[arg(long, value_name = "S", value_parser = parse_stream)]
    stream: Option<String>,

    /// The field that names the data subject, where an entry itself does not: the
    /// whole value, also where a rule of the log takes something from the field
    #[arg(long, value_enum, value_name = "FIELD")]
    subject_from: Option<SubjectFrom>,

    /// A copy of the checkpoint that lies elsewhere, by which a log that is put back is found:
    /// advanced with each; made where there is none
    #[arg(long, value_name = "FILE", conflicts_with = "try")]
    pin: Option<PathBuf>,

    /// Add refused lines, as they are, to this file
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,

    /// Print `durable N` whenever every line up to N is durable or was refused, as that
    /// happens: of one input, to know where to go on
    #[arg(long)]
    acks: bool,

    /// The input is this source, whose lines have numbers: those that the log has are passed
    /// over, and counted
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["follow", "listening"])]
    source: Option<String>,

    /// The number of the first line that comes: at most the one behind those that the log has of
    /// the source, or refused
    #[arg(long, value_name = "N", default_value_t = 1, requires = "source", value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,

    /// Tell each second how far it is and how deep in work, and at the end all that
    /// was counted: waits, syncs, dictionaries, processor time by stage. With `--json`
    /// each second an object on a line
    #[arg(long)]
    stats: bool,

    /// Print one JSON object at the end, on the last line
    #[arg(long)]
    pub(crate) json: bool,

    /// Take other processes' entries at this local socket (docs/socket.md)
    #[arg(long, value_name = "PATH", group = "listening", conflicts_with_all = ["files", "acks"])]
    listen: Option<PathBuf>,

    /// The same at a datagram socket, which acknowledges nothing
    #[arg(long, value_name = "PATH", group = "listening", conflicts_with_all = ["files", "acks"])]
    listen_datagrams: Option<PathBuf>,

    /// Take messages at a datagram socket as `/dev/log` is, each a record: of `--format syslog`,
    /// unless another is named
    #[arg(long, value_name = "PATH", group = "listening", conflicts_with_all = ["files", "acks"])]
    listen_syslog: Option<PathBuf>,

    /// Who may connect, as the mode of the sockets
    #[arg(long, value_name = "MODE", value_parser = listening::parse_mode, default_value = "0600", requires = "listening")]
    listen_mode: u32,

    /// Clients of the socket at once
    #[arg(long, value_name = "N", default_value_t = 64, requires = "listening")]
    clients: usize,

    /// Have the actor be `uid:` and the sender's number, by the kernel
    #[arg(long, requires = "listening")]
    actor_from_peer: bool,

    /// The files to read; `-`, and none at all, is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Append {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        if self.r#try {
            return trying::run(&self, &self.form.conversion()?, &Interrupt::install()?);
        }
        let first = match self.listening() {
            Some(path) => path.display().to_string(),
            None => input::first_name(&self.files),
        };
        let (interrupt, open) = match self.open(&first) {
            Ok(open) => open,
            Err(failure) => return Err(self.took_nothing(failure, &first)),
        };
        if self.listening().is_some() {
            return listening::run(&self, &interrupt, open);
        }
        if self.follow {
            return following::run(&self, &interrupt, open);
        }
        // Until the log is closed there may be something to tell.
        let Open { inputs, taken, conversion, numbered, acks, log, teller: _teller } = open;
        let mut producer = log.producer()?;
        let meter = Meter::new(self.stats, self.json, &inputs);
        let terms = self.terms(&conversion);
        let mut run = Run { append: &self, terms, interrupt: &interrupt, taken, numbered, acks, meter };
        let read = run.read_all(&inputs, &log, &mut producer);
        run.end(log, producer, &inputs, read)
    }

    /// Opens everything. A signal ends the command until that is done: nothing was taken, so that there is nothing to drain. After
    /// that the first signal has the log wait less, the second has it wait no more, and another one ends the command.
    fn open(&self, first: &str) -> Result<(Interrupt, Open), Failure> {
        let phase = Arc::new(Mutex::new(Phase::Opening));
        let (of_signals, first, json) = (phase.clone(), first.to_owned(), self.json);
        let interrupt = Interrupt::on_each(move |ends| {
            // Whoever opens the log gets no further while this is held.
            let mut phase = of_signals.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *phase {
                Phase::Opening => {
                    ends.store(true, Ordering::Relaxed);
                    let summary = Summary { interrupted: true, ..Summary::nothing(&first) };
                    // It ends however that goes.
                    if let Err(unprinted) = summary.print(json) {
                        note_lines(&format!(
                            "bulla: {}\n{}",
                            unprinted.message,
                            summary.to_text_of_failure()
                        ));
                    }
                    std::process::exit(Exit::Interrupted as i32);
                }
                // Otherwise a full disk would be waited for between the signal and the end, as often as `retries` says.
                Phase::Open { closing, is_told: told @ false } => {
                    *told = true;
                    closing.announce();
                }
                Phase::Open { closing, .. } => {
                    closing.give_up();
                    ends.store(true, Ordering::Relaxed);
                }
            }
        })?;
        if self.acks && self.files.len() > 1 {
            let message =
                "--acks counts the lines of one input: give one file, or none; nothing was appended";
            return Err(Failure::usage(message));
        }
        if self.source.is_some() && self.files.len() > 1 {
            return Err(Failure::usage(
                "--source is one input: give one file, or none; nothing was appended",
            ));
        }
        let conversion = match self.follow && following::are_journals(&self.files) {
            true => self.form.conversion_of(Format::JournalExport)?,
            false => self.form.conversion()?,
        };
        if self.listening().is_some() && Converter::new(&conversion).has_header() {
            let message = "a format whose first line names the columns is none for a socket: give `columns` in the map (docs/maps.md)";
            return Err(Failure::usage(message));
        }
        for socket in [&self.listen, &self.listen_datagrams, &self.listen_syslog].into_iter().flatten() {
            self.place.refuse_inside(socket)?;
        }
        if let (true, Some(rejects)) = (self.follow, &self.rejects) {
            following::refuse_followed(&self.files, rejects)?;
        }
        let inputs = match self.listening().is_some() || self.follow {
            true => Vec::new(),
            false => input::find(&self.files)?,
        };
        let refused = Refused::open(self.rejects.as_deref(), &self.place, &inputs)?;
        let mut options = Options::default();
        if let Some(pin) = &self.pin {
            self.place.refuse_inside(pin)?;
            options = options.pin(pin);
        }
        let teller = Teller::start()?;
        let environment = telling_environment(teller.tell());
        let log = open_with(&self.place, options, environment).map_err(failure_to_open)?;
        if let Some(failure) = log.control_failure() {
            note!("whatever needs the log has to wait until this ends: {failure}");
        }
        let numbered = self.source.as_ref().map(|name| Numbered::begin(&log, name, self.from)).transpose()?;
        let source = numbered.as_ref().map(|numbered| numbered.source().clone());
        let taken = Arc::new(Mutex::new(Taken::new(refused, source)));
        let acks = self.acks.then(|| Acks::start(&log, taken.clone())).transpose()?;
        *phase.lock().unwrap_or_else(PoisonError::into_inner) =
            Phase::Open { closing: log.closing(), is_told: false };
        Ok((interrupt, Open { inputs, taken, conversion, numbered, acks, log, teller }))
    }

    /// Tells that it ended before the first line was looked at.
    fn took_nothing(&self, failure: Failure, first: &str) -> Failure {
        let summary = Summary { error: Some(&failure.message), ..Summary::nothing(first) };
        summary.with_failure(failure.exit, &failure.message, self.json)
    }

    /// Where it is to listen for entries, if it is.
    fn listening(&self) -> Option<&Path> {
        self.listen.as_deref().or(self.listen_datagrams.as_deref()).or(self.listen_syslog.as_deref())
    }

    fn terms(&self, conversion: &Arc<Conversion>) -> Terms {
        Terms { conversion: conversion.clone(), stream: self.stream.clone(), subject_from: self.subject_from }
    }
}

/// What a signal is to end.
enum Phase {
    Opening,
    Open {
        closing: Closing,
        /// Whether that was announced.
        is_told: bool,
    },
}

/// All that is needed to take the first line.
struct Open {
    inputs: Vec<Input>,
    taken: Arc<Mutex<Taken>>,
    conversion: Arc<Conversion>,
    numbered: Option<Numbered>,
    acks: Option<Acks>,
    log: Log,
    teller: Teller,
}

/// Why entries cannot be appended here; to a log that somebody else has open they may be sent.
fn failure_to_open(error: bulla::Error) -> Failure {
    match error.kind() {
        ErrorKind::Locked => Failure::new(
            error.kind().into(),
            format!(
                "{error}; or, where it listens at a local socket (`--listen`), send the entries there: docs/socket.md"
            ),
        ),
        _ => error.into(),
    }
}

fn parse_stream(stream: &str) -> Result<String, String> {
    let entry = bulla::Entry::new("x", "").stream(stream);
    entry.measure().map(|_| stream.to_owned()).map_err(|error| error.to_string())
}
