//! `bulla append --listen`: entries of other processes, over a local socket.

use super::following::raise_open_files;
use super::lines::Place;
use super::meter::Meter;
use super::summary::failure_with;
use super::taken::{self, Taken};
use super::terms::{Terms, now};
use super::{Append, Open};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::{print, print_json};
use bulla::socket::{Counts, Intake, Listen, Sent};
use bulla::text::ParsedEntry;
use bulla::text::spelling::{agreeing, counted};
use bulla::{Entry, Telemetry};
use bulla_ingest::convert::{Conversion, Converted, Converter};
use bulla_ingest::format::Format;
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often it is looked whether the log still takes entries.
const TICK: Duration = Duration::from_millis(100);

/// With one of these in its mode a socket takes what other users send: to send is to write.
const OTHERS_SEND: u32 = 0o022;

/// The mode of a socket, in octal digits.
pub(super) fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "a mode is octal, from 0 to 777".to_owned())
}

/// What the command does with what is sent.
struct Sending {
    terms: Terms,
    /// Of what comes as a datagram of its own.
    records: Arc<Conversion>,
    taken: Arc<Mutex<Taken>>,
    /// Why a refused line could not be kept.
    failure: Arc<Mutex<Option<Failure>>>,
}

impl Intake for Sending {
    fn parse(&self, line: &[u8]) -> Result<ParsedEntry, String> {
        convert(&self.terms.conversion, line)
    }

    fn parse_record(&self, record: &[u8]) -> Result<ParsedEntry, String> {
        convert(&self.records, record)
    }

    fn complete<'a>(&'a self, entry: &mut Entry<'a>) -> Result<(), String> {
        self.terms.complete(entry)
    }

    fn refused(&self, Sent { from, batch, entry }: Sent, reason: &str, raw: Option<&[u8]>) {
        let (at, place) = (format_args!("{from}, batch {batch}:{entry}"), Place { input: 0, line: entry });
        if let Err(failure) = taken::lock(&self.taken).refused.add(at, place, reason, raw) {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        }
    }
}

fn convert(conversion: &Arc<Conversion>, record: &[u8]) -> Result<ParsedEntry, String> {
    // Formats whose first record names columns are none of a socket's, so that there is nothing to remember.
    match Converter::new(conversion).convert(record, now()) {
        Converted::Entry(parsed) => Ok(parsed),
        Converted::Nothing => Err("it is no record".to_owned()),
        Converted::Refused(reason) => Err(reason),
    }
}

/// Listens until a signal comes or something fails, and says how it went.
pub(super) fn run(append: &Append, interrupt: &Interrupt, open: Open) -> Result<Exit, Failure> {
    let Open { taken, conversion, log, .. } = open;
    let failure = Arc::new(Mutex::new(None));
    let intake = Sending {
        terms: append.terms(&conversion),
        records: append.form.conversion_of(Format::Syslog)?,
        taken: taken.clone(),
        failure: failure.clone(),
    };
    let mut listen = Listen::default().mode(append.listen_mode).clients(append.clients);
    listen = listen.peer_is_actor(append.actor_from_peer).intake(Arc::new(intake));
    let mut places = Vec::new();
    if let Some(path) = &append.listen {
        listen = listen.stream(path);
        places.push(path.display().to_string());
    }
    if let Some(path) = &append.listen_datagrams {
        listen = listen.datagrams(path);
        places.push(format!("{} for datagrams", path.display()));
    }
    if let Some(path) = &append.listen_syslog {
        listen = listen.records(path);
        places.push(format!("{} for syslog", path.display()));
    }
    raise_open_files();
    let listening = listen.start(&log)?;
    note!("listening at {}", places.join(" and "));
    if append.listen_mode & OTHERS_SEND != 0 && !append.actor_from_peer {
        note!(
            "others than this user may send there (mode {:04o}), and whatever they send says itself who did it: with --actor-from-peer \
             the kernel does",
            append.listen_mode
        );
    }
    let mut meter = Meter::without_bar(append.stats, append.json);
    let watch = log.watch();
    let ended = loop {
        interrupt.wait(TICK);
        if interrupt.is_raised() || watch.failure().is_some() {
            break Ok(());
        }
        if let Some(failure) = failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            break Err(failure);
        }
        let counts = || {
            let Counts { accepted, refused, .. } = listening.counts();
            (accepted, refused)
        };
        if let Err(failure) = meter.tick(counts, &log) {
            break Err(failure);
        }
    };
    let counts = listening.stop();
    log.end_dropping();
    // Before the log is closed, which waits for a medium less patiently. What was dropped since it was flushed last is told by the first
    // answer, and counted: another one is of the rest.
    let signed = log.flush().or_else(|error| if log.dropped() > 0 { log.flush() } else { Err(error) });
    let (telemetry, closed) = log.close_with_telemetry();
    let kept = taken::lock(&taken).refused.finish();
    meter.end(counts.accepted, &telemetry);
    let summary = Summary::new(counts, &telemetry);
    // The log's own failure is what made the rest fail, too.
    let failed = signed.and(closed).map_err(Failure::from).and(ended).and(kept).err();
    if let Some(Failure { exit, message }) = failed {
        let summary = Summary { error: Some(&message), ..summary };
        return Err(failure_with((exit, &message), &summary, &summary.to_text(), append.json));
    }
    match append.json {
        true => print_json(&summary)?,
        false => print(&summary.to_text())?,
    }
    Ok(if counts.refused + summary.dropped == 0 { Exit::Done } else { Exit::SomeRefused })
}

#[derive(Serialize)]
struct Summary<'a> {
    clients: u64,
    turned_away: u64,
    batches: u64,
    datagrams: u64,
    accepted: u64,
    refused: u64,
    /// Those that are durable.
    committed: u64,
    lost: u64,
    /// Those that were dropped since nothing took what the log writes.
    dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl Summary<'_> {
    fn new(counts: Counts, telemetry: &Telemetry) -> Self {
        let Counts { clients, turned_away, batches, datagrams, accepted, refused } = counts;
        let Telemetry { entries: committed, lost, dropped, .. } = *telemetry;
        Summary {
            clients,
            turned_away,
            batches,
            datagrams,
            accepted,
            refused,
            committed,
            lost,
            dropped,
            error: None,
        }
    }

    fn to_text(&self) -> String {
        let Summary { clients, turned_away, batches, datagrams, accepted, refused, committed, .. } = self;
        let mut text = format!("{accepted} accepted, {refused} refused, {committed} committed");
        if self.dropped > 0 {
            text += &format!(", {} dropped", self.dropped);
        }
        text += "\n";
        text += &format!(
            "of {} in {} {}",
            counted(*clients, "client"),
            batches,
            agreeing(*batches, "batch", "batches")
        );
        if *datagrams > 0 {
            text += &format!(", and of {}", counted(*datagrams, "datagram"));
        }
        if *turned_away > 0 {
            text += &format!("; {} turned away", counted(*turned_away, "client"));
        }
        if self.lost > 0 {
            text += &format!("; {} lost", self.lost);
        }
        text + "\n"
    }
}
