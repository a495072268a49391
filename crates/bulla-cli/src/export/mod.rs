//! `bulla export`.

pub(crate) mod destination;

use crate::exit::{Exit, Failure};
use crate::output::progress_bar;
use crate::place::Place;
use crate::verify::parse_key;
use bulla::text::time::parse_time_or_date;
use bulla::{Exported, FindingKind, Progress, Query, Severity};
use destination::Destination;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Decrypt, verify and print entries.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
T is an RFC 3339 time or a date. A damaged log is refused before anything is
written, unless --salvage; exit code 1 then too.

Example:
  bulla export audit --subject user_42 --from 2026-01-01 -o user_42.jsonl")]
pub(crate) struct Export {
    #[command(flatten)]
    place: Place,

    /// The age identity that reads the log [default: identity.age of the key directory]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,

    /// The public key of whoever the log must be from, or a file that holds it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    /// Only entries that concern this data subject
    #[arg(long, value_name = "S")]
    subject: Option<String>,

    /// Only entries of this stream (entries that name none are of `default`)
    #[arg(long, value_name = "S")]
    stream: Option<String>,

    /// Only entries of this operation
    #[arg(long, value_name = "OP")]
    operation: Option<String>,

    /// Only entries of this processor
    #[arg(long, value_name = "P")]
    processor: Option<String>,

    /// Only entries at this time or later
    #[arg(long, value_name = "T", value_parser = parse_time_or_date)]
    from: Option<i64>,

    /// Only entries before this time
    #[arg(long, value_name = "T", value_parser = parse_time_or_date)]
    to: Option<i64>,

    /// What to print: JSON lines
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,

    /// Leave out what is damaged, and say so
    #[arg(long)]
    salvage: bool,

    /// Write to a file, all or nothing, readable by its owner only
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    Jsonl,
}

impl Export {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let Format::Jsonl = self.format;
        // That there is no log is told before that there is no key for it.
        drop(bulla::Verify::open(self.place.directory())?);
        let key = self.key.as_deref().map(parse_key).transpose()?;
        let mut destination = Destination::open(self.output.as_deref())?;
        let identity = self.place.reader(self.identity.as_deref())?;
        let export = bulla::Export::open(self.place.directory())?.identity(identity).salvage(self.salvage);
        let export = match key {
            Some(key) => export.key(key),
            None => export,
        };
        let export = export.query(Query {
            subject: self.subject,
            stream: self.stream,
            operation: self.operation,
            processor: self.processor,
            from: self.from,
            to: self.to,
            ..Query::default()
        });

        let bar = (!io::stdout().is_terminal()).then(|| progress_bar(1));
        let shown = bar.clone();
        let progress = move |Progress { done, total, entries, .. }| {
            if let Some(bar) = &shown {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(format!("{entries} entries"));
            }
        };
        let exported = export.progress(progress).run(destination.writer());
        bar.inspect(|bar| bar.finish_and_clear());

        let finished = exported.map_err(Closed::or_failure).and_then(|exported| {
            destination.finish().map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => Closed::Pipe,
                _ => Closed::Failed(Failure::io("writing the export", &error)),
            })?;
            Ok(exported)
        });
        match finished {
            Ok(exported) => Ok(tell(&exported, self.salvage)),
            // Whoever read the output has seen enough.
            Err(Closed::Pipe) => Ok(Exit::Done),
            Err(Closed::Failed(failure)) => Err(failure),
        }
    }
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

fn tell(exported: &Exported, salvage: bool) -> Exit {
    for finding in &exported.findings {
        note!("{finding}");
    }
    let damaged = exported.left_out > 0
        || exported.findings.iter().any(|finding| finding.severity == Severity::Violation);
    if salvage {
        // Anyone can encrypt to a recipient: without the signature nothing tells an entry from a forged one.
        let unsigned = |kind| {
            use FindingKind::{CheckpointDamaged, ConfigMismatch, KeyMismatch, RootMismatch};
            matches!(kind, CheckpointDamaged | ConfigMismatch | KeyMismatch | RootMismatch)
        };
        let doubt = match exported.findings.iter().any(|finding| unsigned(finding.kind)) {
            true => "; and no signature vouches for what was written: any of it may be forged",
            false => "",
        };
        match (damaged, exported.left_out) {
            (false, _) => note!("left out: nothing; the log is not damaged"),
            (true, 0) => note!("left out: no entry; but the log is damaged, as said above{doubt}"),
            (true, 1) => note!("left out: 1 entry, because of the damage said above{doubt}"),
            (true, left_out) => {
                note!("left out: {left_out} entries, because of the damage said above{doubt}")
            }
        }
    }
    if damaged { Exit::Violation } else { Exit::Done }
}
