//! `bulla erase`.

use crate::append;
use crate::authority::{Authority, authority};
use crate::exit::{Exit, Failure};
use crate::export::destination::Destination;
use crate::interrupt;
use crate::log_paths::LogPaths;
use crate::output::{on_line, print, print_json};
use crate::terminal;
use bulla::control::{Client, through_writer};
use bulla::environment::Environment;
use bulla::event::Remains;
use bulla::keys::signing::SigningKey;
use bulla::{Erasure, ErasureOrder, Info, LogId, Reader};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Erase data subjects: destroy their keys, and have the log tell of it.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
What is personal of these data subjects' entries can be read by nobody any more, in this log
and in every copy of it; an entry that concerns others, too, goes with them. Every proof still
stands. This cannot be undone. The reason becomes public, in the log: name nobody in it. The
certificate names data subjects by number only. Where a name is nobody's, the others are erased
all the same, the certificate says which, and the exit code is 3.

Examples:
  bulla erase audit --subject user_42 --reason 'request of 2026-03-01' -o erased.cert
  bulla erase audit --authority order.json -o erased.cert         # what `bulla order` made
  bulla check erased.cert --key \"$VKEY\"")]
pub(crate) struct Erase {
    #[command(flatten)]
    place: LogPaths,

    /// The data subject; repeatable
    #[arg(long = "subject", value_name = "S")]
    subjects: Vec<String>,

    /// Why, in one line; it becomes public
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// The log's erasure key, or an order that was made with it [default: erasure.key of the keys]
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,

    /// Write the certificate to a file, all or nothing
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Erase {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        // That there is no log is told before that there is no key.
        let info = bulla::info(self.place.directory())?;
        let order = self.order(info.id)?;
        let output = self.begin_certificate(&order)?;
        let alone = || {
            let log = append::open(&self.place, terminal::environment())?;
            let erasure = log.erase(&order)?;
            Ok((erasure, log.close()))
        };
        let ask = |writer: &Client| Ok((writer.erase(&order)?, Ok(())));
        let (erasure, closed) = through_writer(self.place.keys(), ask, alone)?;
        let told = closed.map_err(Failure::from).and_then(|()| self.tell(&erasure, &info, output));
        told.map_err(|failure| {
            let frame = erasure.frame;
            failure.but_done(format!(
                "the log tells of this erasure in frame {frame}; for its certificate: bulla prove DIR --event {frame} -o FILE"
            ))
        })?;
        Ok(if erasure.unknown.is_empty() { Exit::Done } else { Exit::SomeRefused })
    }

    /// Begins the file of the certificate, with room for it, so that a full disk is known of before anything is destroyed. Not every
    /// file system keeps room: on one that does not, and of a device, that is known only after it.
    fn begin_certificate(&self, order: &ErasureOrder) -> Result<Option<Destination>, Failure> {
        // Every number and every name's commitment is in the order, too, and longer there; besides there is a path in the tree.
        let length = 2 * order.render().len() + (64 << 10);
        let find_out =
            "`bulla events DIR --kind erased` (for the certificate: `bulla prove DIR --event N -o FILE`)";
        let Some(path) = self.output.as_deref() else {
            return interrupt::finish_first(self.json, find_out, || ()).map(|()| None);
        };
        let output = Destination::open_to_finish(Some(path), &self.place, (self.json, find_out))?;
        let reserved = output.reserve(length as u64);
        reserved.map_err(|error| Failure::io(format!("making room for {}", path.display()), &error))?;
        Ok(Some(output))
    }

    /// Writes the certificate, and says what was done.
    fn tell(&self, erasure: &Erasure, info: &Info, output: Option<Destination>) -> Result<(), Failure> {
        let reader = Reader::open(self.place.directory())?.key(info.vkey.clone());
        let certificate = reader.prove_event(erasure.frame)?;
        if let Some(mut output) = output {
            let written = output.writer().write_all(certificate.render().as_bytes());
            let written = written.and_then(|()| output.finish());
            written.map_err(|error| Failure::io("writing the certificate", &error))?;
        }
        let done = Done {
            numbers: &erasure.numbers,
            unknown: &erasure.unknown,
            frame: erasure.frame,
            keys_lost: erasure.keys_lost,
            before: erasure.before,
            certificate: self.output.as_deref(),
        };
        if self.json { print_json(&done) } else { print(&done.to_text(&info.origin)) }
    }

    fn order(&self, log: LogId) -> Result<ErasureOrder, Failure> {
        match authority(&self.place, self.authority.as_deref(), ErasureOrder::parse)? {
            Authority::Order(order, _) if self.subjects.is_empty() && self.reason.is_none() => Ok(order),
            Authority::Order(_, path) => {
                let path = path.display();
                let message =
                    format!("{path} is an order, which says whom and why: leave out --subject and --reason");
                Err(Failure::usage(message))
            }
            Authority::Key(_) if self.subjects.is_empty() => {
                Err(Failure::usage("name the data subject to erase with --subject"))
            }
            Authority::Key(key) => give(&key, log, &self.subjects, self.reason.as_deref()),
        }
    }
}

/// An order to erase.
pub(crate) fn give(
    key: &SigningKey,
    log: LogId,
    subjects: &[String],
    reason: Option<&str>,
) -> Result<ErasureOrder, Failure> {
    let subjects = subjects.iter().map(String::as_str).collect::<Vec<_>>();
    Ok(ErasureOrder::give(key, log, &subjects, reason, &Environment::default())?)
}

/// What an erasure does not reach, a line each.
pub(crate) fn remains(remains: &[Remains]) -> String {
    remains.iter().map(|remains| format!("  {remains}\n")).collect()
}

#[derive(Serialize)]
struct Done<'a> {
    numbers: &'a [u64],
    unknown: &'a [String],
    frame: u64,
    keys_lost: bool,
    before: bool,
    certificate: Option<&'a Path>,
}

impl Done<'_> {
    fn to_text(&self, origin: &str) -> String {
        let numbers = self.numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let before =
            if self.before { "this order was carried out before: nothing was done now\n" } else { "" };
        let frame = self.frame;
        let mut text = format!(
            "{before}erased: data subject {numbers} of {origin}; the log tells of it in frame {frame}\n"
        );
        for unknown in self.unknown {
            let why = match self.keys_lost {
                false => "nobody was logged by that name, or they were erased before",
                true => {
                    "who may be known or not, which cannot be told: keys are lost that the log does not say were erased"
                }
            };
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "unknown: {} ({why})", on_line(unknown));
        }
        text.push_str("what remains:\n");
        text.push_str(&remains(&Remains::ALL));
        text.push_str(&match self.certificate {
            Some(path) => format!("certificate: {}\n", path.display()),
            None => format!("for its certificate: bulla prove DIR --event {frame} -o FILE\n"),
        });
        text
    }
}
