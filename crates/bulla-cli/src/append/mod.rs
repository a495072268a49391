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
mod refused;
mod taken;
mod trying;

use crate::exit::{Exit, Failure};
use crate::interrupt::{Interrupt, no_room};
use crate::log_paths::LogPaths;
use crate::output::{note_lines, print, print_json};
use crate::terminal::{tell_what_is_tried_again, telling_environment};
use acks::Acks;
use bulla::environment::{Environment, Tell};
use bulla::store::FileSystem;
use bulla::text::spelling::{agreeing, counted};
use bulla::{
    Closing, Entry, ErrorKind, HoldDifference, Log, Options, Producer, Recovery, ResumedErasure, Telemetry,
};
use bulla_ingest::convert::{Conversion, Converted, Converter};
use bulla_ingest::format::Format;
use bulla_ingest::framing::{Record, Records};
use clap::builder::NonEmptyStringValueParser;
pub(crate) use following::known;
use format::Form;
pub(crate) use format::unknown as unknown_map;
use input::Input;
use lines::{Place, UpTo};
use meter::Meter;
pub(crate) use numbered::Label as InputLabel;
use numbered::Numbered;
use refused::Refused;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use taken::Taken;

/// The same trouble is told again after so long.
const TOLD_AGAIN: Duration = Duration::from_secs(10);

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
        let Open { inputs, taken, conversion, numbered, acks, log } = open;
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
        let conversion = match (&self.listen_syslog, self.follow && following::are_journals(&self.files)) {
            (Some(_), _) => self.form.conversion_of(Format::Syslog)?,
            (None, true) => self.form.conversion_of(Format::JournalExport)?,
            (None, false) => self.form.conversion()?,
        };
        if self.listening().is_some() && Converter::new(&conversion).has_header() {
            let message = "a format whose first line names the columns is none for a socket: give `columns` in the map (docs/maps.md)";
            return Err(Failure::usage(message));
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
        let log = open_with(&self.place, options, telling_environment(teller()?)).map_err(failure_to_open)?;
        if let Some(failure) = log.control_failure() {
            note!("whatever needs the log has to wait until this ends: {failure}");
        }
        let numbered = self.source.as_ref().map(|name| Numbered::begin(&log, name, self.from)).transpose()?;
        let source = numbered.as_ref().map(|numbered| numbered.source().clone());
        let taken = Arc::new(Mutex::new(Taken::new(refused, source)));
        let acks = self.acks.then(|| Acks::start(&log, taken.clone())).transpose()?;
        *phase.lock().unwrap_or_else(PoisonError::into_inner) =
            Phase::Open { closing: log.closing(), is_told: false };
        Ok((interrupt, Open { inputs, taken, conversion, numbered, acks, log }))
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

/// What becomes of a line, and of its entry, before it is appended.
#[derive(Debug)]
struct Terms {
    conversion: Arc<Conversion>,
    stream: Option<String>,
    subject_from: Option<SubjectFrom>,
}

impl Terms {
    fn complete<'a>(&'a self, entry: &mut Entry<'a>) -> Result<(), String> {
        entry.stream = entry.stream.or(self.stream.as_deref());
        if let (None, Some(field)) = (&entry.subjects, self.subject_from) {
            entry.subjects = field.of(entry)?.map(|subject| [subject].into_iter().collect());
        }
        Ok(())
    }
}

impl SubjectFrom {
    fn of<'a>(self, entry: &Entry<'a>) -> Result<Option<&'a str>, String> {
        Ok(match self {
            SubjectFrom::Client => entry.client,
            SubjectFrom::Actor => entry.actor,
            SubjectFrom::Controller => entry.controller,
            SubjectFrom::Processor => entry.processor,
            SubjectFrom::Purpose => entry.purpose,
            SubjectFrom::Stream => entry.stream,
            SubjectFrom::Location => {
                let location = entry.location.map(std::str::from_utf8).transpose();
                // Without its data subject the entry could not be found for them, nor erased.
                location
                    .map_err(|_| "`location` is not UTF-8, so it cannot be the data subject".to_owned())?
            }
        })
    }
}

/// The time, in nanoseconds since the epoch.
fn now() -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn parse_stream(stream: &str) -> Result<String, String> {
    let entry = bulla::Entry::new("x", "").stream(stream);
    entry.measure().map(|_| stream.to_owned()).map_err(|error| error.to_string())
}

pub(crate) fn tell_recovery(Recovery { frames, entries, torn_bytes, .. }: Recovery) {
    if frames > 0 {
        let were = agreeing(entries, "was", "were");
        let (entries, frames) = (counted(entries, "entry"), counted(frames, "frame"));
        note!("recovered: {entries} in {frames}, durable but not yet signed, {were} adopted");
    }
    if torn_bytes > 0 {
        note!(
            "recovered: a torn tail of {}, which nobody was told is durable, was set aside",
            counted(torn_bytes, "byte")
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
            HoldDifference::Untold { .. } => {
                note!("{difference}: the hold that the file has counts, and the log tells of it now")
            }
            _ => note!("{difference}: the log's word counts, and the file says so now"),
        }
    }
}

/// Tells what opening the log made of an erasure that was cut short.
pub(crate) fn tell_resumed(resumed: Option<&ResumedErasure>) {
    if let Some(resumed) = resumed {
        note!("{resumed}");
    }
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

/// Opens a log for writing, and tells what that recovered, how holds differed from what the log tells of them, and what came of an
/// erasure that was cut short.
pub(crate) fn open(place: &LogPaths, environment: Environment) -> bulla::Result<Log> {
    open_with(place, Options::default(), environment)
}

/// The same, with options.
pub(crate) fn open_with(place: &LogPaths, options: Options, environment: Environment) -> bulla::Result<Log> {
    let store = |path| Arc::new(FileSystem::new(path));
    let (log, keys) = (store(place.directory()), store(place.keys()));
    let log = Log::open_stores(log, keys, options, environment)?;
    tell_opened(&log);
    Ok(log)
}

/// Tells what opening a log found.
pub(crate) fn tell_opened(log: &Log) {
    tell_recovery(log.recovery());
    tell_differences(log.hold_differences());
    tell_resumed(log.resumed_erasure());
    if let Some(pinned) = log.pinned().filter(|pinned| pinned.made) {
        tell_made_pin(&pinned.path, pinned.frames);
    }
}

/// Tells that there is a new pin: whoever expected one to be there finds out so.
pub(crate) fn tell_made_pin(path: &Path, frames: u64) {
    note!("made the pin {}, which covers {}: there was none", path.display(), counted(frames, "frame"));
}

/// What tells at once what the log waits for, from a thread of its own: the log's must not wait for whoever reads what is told.
pub(crate) fn teller() -> Result<Tell, Failure> {
    let (failed, told) = mpsc::sync_channel::<String>(1);
    let tell = move || {
        let mut before = None::<(String, Instant)>;
        for what in told {
            // Several threads may meet the same.
            if !before.is_some_and(|(before, at)| before == what && at.elapsed() < TOLD_AGAIN) {
                tell_what_is_tried_again(&what);
            }
            before = Some((what, Instant::now()));
        }
    };
    let thread = std::thread::Builder::new().name("bulla-told".to_owned()).spawn(tell);
    thread.map_err(|error| no_room("starting a thread", &error))?;
    Ok(Arc::new(move |what: &str| drop(failed.try_send(what.to_owned()))))
}

/// Stages the entry of a record, which ends with the line `last`, as one of the source if its lines are numbered.
fn stage(
    interrupt: &Interrupt,
    producer: &mut Producer,
    numbered: Option<&mut Numbered>,
    entry: &Entry<'_>,
    (last, text): (Place, &[u8]),
) -> bulla::Result<()> {
    let Some(numbered) = numbered else { return wait_for(interrupt, || producer.append(entry)) };
    let place = numbered.place(last, text);
    wait_for(interrupt, || producer.append_from(entry, numbered.source(), &place))?;
    numbered.appended(last);
    Ok(())
}

/// Appends, however long the log has no memory, until a signal comes.
fn wait_for(interrupt: &Interrupt, mut append: impl FnMut() -> bulla::Result<()>) -> bulla::Result<()> {
    loop {
        match append() {
            Err(error) if error.kind() == ErrorKind::Timeout && !interrupt.is_raised() => {}
            appended => return appended,
        }
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
}

/// One run of the command, once everything is open.
struct Run<'a> {
    append: &'a Append,
    terms: Terms,
    interrupt: &'a Interrupt,
    taken: Arc<Mutex<Taken>>,
    numbered: Option<Numbered>,
    acks: Option<Acks>,
    meter: Meter,
}

impl Run<'_> {
    /// Appends every record of every input, until all are read or a signal comes.
    fn read_all(&mut self, inputs: &[Input], log: &Log, producer: &mut Producer) -> Result<(), Failure> {
        for (index, input) in inputs.iter().enumerate() {
            let failed = |error: &io::Error| Failure::io(format!("reading {}", input.name), error);
            let alarm = self.acks.as_ref().map(|acks| acks.alarm().clone());
            let source = input.open(self.interrupt, alarm).map_err(|error| failed(&error))?;
            let mut converter = Converter::new(&self.terms.conversion);
            let mut records = Records::new(source, converter.framing_kind());
            while !self.interrupt.is_raised() {
                match records.next_record() {
                    Ok(None) => break,
                    Ok(Some(record)) => {
                        self.meter.read(record.raw.len() as u64);
                        // The sender's number, where it numbers its lines.
                        let first = Place { input: index, line: self.append.from + record.number - 1 };
                        self.take((input, first), &record, &mut converter, log, producer)?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(&error)),
                }
                self.meter.tick(|| taken::lock(&self.taken).counts(), log)?;
            }
        }
        Ok(())
    }

    /// Appends a record, whose first line is given, or refuses it.
    fn take(
        &mut self,
        (input, first): (&Input, Place),
        record: &Record<'_>,
        converter: &mut Converter,
        log: &Log,
        producer: &mut Producer,
    ) -> Result<(), Failure> {
        let last = Place { line: first.line + record.lines - 1, ..first };
        let text = record.content.as_ref().map_or(record.raw, |content| content);
        if let Some(numbered) = &mut self.numbered {
            let mut taken = taken::lock(&self.taken);
            if numbered.has(last, record.lines, text)? {
                taken.lines.refuse(last);
                return Ok(());
            }
            // What was refused before it is kept before the log says that it was passed.
            taken.refused.keep_now()?;
        }
        let (raw, converted) = match &record.content {
            Ok(content) => (Some(*content), converter.convert(content, now())),
            Err(reason) => (None, Converted::Refused(reason.to_string())),
        };
        let reason = match converted {
            Converted::Entry(parsed) => {
                let mut entry = parsed.entry();
                let mut stage = |entry: &Entry<'_>| {
                    stage(self.interrupt, producer, self.numbered.as_mut(), entry, (last, text))
                };
                match self.terms.complete(&mut entry).map(|()| stage(&entry)) {
                    Ok(Ok(())) => {
                        taken::lock(&self.taken).lines.accept(last, record.lines, || log.durable_prefix());
                        return Ok(());
                    }
                    Ok(Err(error)) if error.kind() == ErrorKind::Invalid => error.to_string(),
                    // A signal ended the wait: this record is not accepted, and the last that is looked at.
                    Ok(Err(error)) if error.kind() == ErrorKind::Timeout => return Ok(()),
                    Ok(Err(error)) => return Err(error.into()),
                    Err(reason) => reason,
                }
            }
            Converted::Nothing => {
                let mut taken = taken::lock(&self.taken);
                self.pass(last, text)?;
                taken.pass(last);
                return Ok(());
            }
            Converted::Refused(reason) => reason,
        };
        let mut taken = taken::lock(&self.taken);
        self.pass(last, text)?;
        let place = (first, record.lines);
        match taken.refused.tells_next() {
            true => self.meter.suspend(|| taken.refuse(&input.name, place, &reason, raw)),
            false => taken.refuse(&input.name, place, &reason, raw),
        }
    }

    /// The record `text`, which ends with the line `last`, becomes no entry. While what was taken is locked: the log is not to know of it before it
    /// is among the rejects.
    fn pass(&self, last: Place, text: &[u8]) -> Result<(), Failure> {
        self.numbered.as_ref().map_or(Ok(()), |numbered| numbered.pass(last, text))
    }

    /// Commits what was staged, whatever ended the reading, and says how it went.
    fn end(
        self,
        log: Log,
        mut producer: Producer,
        inputs: &[Input],
        read: Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        // Before the log is closed, which waits for a medium less patiently.
        let signed = producer.flush().and_then(|receipt| receipt.checkpointed());
        drop(producer);
        // What became no entry is kept while the log is open.
        taken::lock(&self.taken).settled(log.durable_prefix());
        let not_addresses = log.not_addresses();
        let replicas = log.vault_replicas();
        let (telemetry, closed) = log.close_with_telemetry();
        let closed = signed.and(closed);
        let (told, acknowledged) = self.acks.map_or((0, Ok(())), Acks::finish);
        let mut taken = taken::lock(&self.taken);
        let kept = taken.refused.finish().and(taken.failure());
        let interrupted = self.interrupt.is_raised();
        self.meter.end(taken.lines.accepted(), &telemetry);
        let place = taken.settled(telemetry.durable_prefix);
        // The last of these lines says what the summary does.
        let acknowledged = match self.append.acks && place.line > told {
            true => acknowledged.and_then(|()| print(&acks::text(place.line))),
            false => acknowledged,
        };
        let summary = Summary {
            accepted: taken.lines.accepted(),
            refused: taken.refused.count() - taken.refused.unkept().map_or(0, |unkept| unkept.count),
            committed: telemetry.entries,
            durable_prefix: telemetry.durable_prefix,
            lost: telemetry.lost,
            up_to: UpTo::new(place, &inputs[place.input].name),
            interrupted,
            passed_over: self.numbered.as_ref().map(Numbered::passed_over),
            over: self.numbered.as_ref().and_then(|it| it.to_text(taken.counts() == (0, 0))),
            error: None,
            stats: self.append.stats.then_some(telemetry),
        };
        if not_addresses > 0 {
            note!(
                "{} of `client` {}, and dropped: its rule is truncate-ip",
                counted(not_addresses, "value"),
                agreeing(not_addresses, "was no address", "were no addresses"),
            );
        }
        for (path, failure) in replicas.iter().filter_map(|it| Some((&it.path, it.failure.as_ref()?))) {
            note!("{path}, a replica of the vault, was left out: {failure}");
        }
        let failed = match closed {
            // The log's own failure is what made reading fail, too.
            Err(error) => Some(Failure::from(error)),
            Ok(()) => read.err().or(kept.err()).or(acknowledged.err()),
        };
        if let Some(Failure { exit, message }) = failed {
            let summary = Summary { error: Some(&message), ..summary };
            return Err(summary.with_failure(exit, &message, self.append.json));
        }
        // Whoever cannot be told there how far it came is told on standard error.
        summary.print(self.append.json).map_err(|Failure { exit, message }| Failure {
            exit,
            message: format!("{message}\n{}", summary.to_text_of_failure()),
        })?;
        Ok(match summary {
            Summary { interrupted: true, .. } => Exit::Interrupted,
            Summary { refused: 0, .. } => Exit::Done,
            _ => Exit::SomeRefused,
        })
    }
}

/// Prints the object of a failure, and gives what standard error is to say: the counts too, whether or not the object could be printed.
fn failure_with((exit, message): (Exit, &str), object: &impl Serialize, counts: &str, json: bool) -> Failure {
    let unprinted = json.then(|| print_json(object)).and_then(Result::err);
    let unprinted = unprinted.map(|unprinted| format!("\n{}", unprinted.message)).unwrap_or_default();
    Failure { exit, message: format!("{message}{unprinted}\n{}", counts.trim_end()) }
}

#[derive(Serialize)]
struct Summary<'a> {
    accepted: u64,
    refused: u64,
    /// Those that are durable, wherever they stand among the others.
    committed: u64,
    /// Those from the first on that are durable without one missing.
    durable_prefix: u64,
    lost: u64,
    up_to: UpTo<'a>,
    interrupted: bool,
    /// Lines of a numbered input that the log has.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over: Option<u64>,
    /// The same in words.
    #[serde(skip)]
    over: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Telemetry>,
}

impl<'a> Summary<'a> {
    /// Of a run that took no line of its inputs, of which the first has this name.
    fn nothing(first: &'a str) -> Self {
        Summary {
            accepted: 0,
            refused: 0,
            committed: 0,
            durable_prefix: 0,
            lost: 0,
            up_to: UpTo::nothing(first),
            interrupted: false,
            passed_over: None,
            over: None,
            error: None,
            stats: None,
        }
    }

    fn with_failure(&self, exit: Exit, message: &str, json: bool) -> Failure {
        failure_with((exit, message), self, &self.to_text_of_failure(), json)
    }

    fn print(&self, json: bool) -> Result<(), Failure> {
        if json { print_json(self) } else { print(&self.to_text()) }
    }

    fn to_text(&self) -> String {
        let Summary { accepted, refused, committed, interrupted, up_to, over, .. } = self;
        let prefix = if *interrupted { "interrupted: " } else { "" };
        let counts = format!("{prefix}{accepted} accepted, {refused} refused, {committed} committed\n");
        match (accepted + refused, over) {
            (0, None) => counts,
            (_, over) => format!("{counts}{}{}\n", over.as_deref().unwrap_or_default(), up_to.to_text()),
        }
    }

    /// What can be relied on where something failed.
    fn to_text_of_failure(&self) -> String {
        let Summary { accepted, refused, committed, durable_prefix, lost, up_to, over, .. } = self;
        let mut text = match accepted {
            0 => "no entry was accepted".to_owned(),
            _ => format!(
                "{} {} accepted; at least {durable_prefix} of them, the first, {} committed",
                counted(*accepted, "entry"),
                agreeing(*accepted, "was", "were"),
                agreeing(*durable_prefix, "is", "are")
            ),
        };
        if committed > durable_prefix {
            text += &format!(", and {} that come after one that is not", committed - durable_prefix);
        }
        if *lost > 0 {
            text += &format!("; {lost} {} lost", agreeing(*lost, "was", "were"));
        }
        if *refused > 0 {
            text += &format!("; {} {} refused", counted(*refused, "line"), agreeing(*refused, "was", "were"));
        }
        format!("{text}\n{}{}", over.as_deref().unwrap_or_default(), up_to.to_text())
    }
}
