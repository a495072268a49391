//! `bulla order`.

use crate::erase::give;
use crate::exit::{Exit, Failure};
use crate::log_paths::{error_in, read_order, read_small};
use crate::new_file;
use crate::output::print_json;
use crate::verify::parse_key;
use bulla::config::ERASURE_KEY_SUFFIX;
use bulla::environment::Environment;
use bulla::hold_order::{HOLD_ORDER_HEADER, HoldNote, HoldNoteError};
use bulla::keys::signing::SigningKey;
use bulla::{ErasureKeyChange, HoldOrder, LogId, ReleaseOrder, SignedNote};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Order an erasure, a hold, a release or another key, away from the writing host
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The order names the data subjects, or who holds and why: it is confidential. `bulla erase DIR
--authority ORDER` carries it out, once, or with --hold `bulla hold DIR add --authority ORDER`, and
with --release `bulla hold DIR release --authority ORDER`. Keep it with the certificate: together
they show whom that is about (`bulla check CERTIFICATE --order ORDER`).

An order for another key has nothing confidential: `bulla config DIR set log.erasure_key VKEY
--authority ORDER` carries it out.

Examples:
  bulla order --log 5be0...e1 --subject user_42 --authority erasure.key -o order.json
  bulla order --log 5be0...e1 --hold --subject user_42 --by legal --reason 'case 4711' \\
    --authority erasure.key -o hold.json
  bulla order --log 5be0...e1 --release hold.json --by legal --reason 'case closed' \\
    --authority erasure.key -o release.json
  bulla order --log 5be0...e1 --new-erasure-key example.com/audit/erasure+... \\
    --authority erasure.key -o rekey.order")]
pub(crate) struct Order {
    /// The log's id, as `bulla info` tells it
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    log: LogId,

    /// The data subject; of an erasure repeatable
    #[arg(
        long = "subject",
        value_name = "S",
        required_unless_present_any = ["release", "new_erasure_key"],
        conflicts_with_all = ["release", "new_erasure_key"]
    )]
    subjects: Vec<String>,

    /// Why, in one line; of an erasure it becomes public
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// In place of an erasure: have this key, or the one in this file, order everything from then on
    #[arg(long, value_name = "VKEY", conflicts_with_all = ["reason", "hold", "release", "by"])]
    new_erasure_key: Option<String>,

    /// Order the data subject to be held
    #[arg(long, requires = "by", requires = "reason", conflicts_with = "release")]
    hold: bool,

    /// Order what this order held to be released: its file, or its public note, as `bulla events --json` has it
    #[arg(long, value_name = "ORDER", requires = "by", requires = "reason")]
    release: Option<PathBuf>,

    /// Who holds, or releases: a person or an office
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// The log's erasure key
    #[arg(long, value_name = "FILE")]
    authority: PathBuf,

    /// The file to make; one that exists is left alone
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: PathBuf,

    /// Print one JSON object: the file, its kind, and how many data subjects it names
    #[arg(long)]
    json: bool,
}

impl Order {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let path = &self.authority;
        let text = read_small(path).map_err(|error| Failure::key_file(path.display(), &error))?;
        let key = SigningKey::parse(&text).map_err(|error| error_in(path, error))?;
        // A key that was made elsewhere has whatever name it was given there.
        if !key.verifier().name().ends_with(ERASURE_KEY_SUFFIX) {
            note!(
                "{} is of the key {}, which is not named as `bulla` names erasure keys (ORIGIN{ERASURE_KEY_SUFFIX}): where it is \
                 not the log's erasure key, this order is refused",
                path.display(),
                key.verifier()
            );
        }
        let order = self.order(&key)?;
        let made = new_file::make(&self.output, order.as_bytes());
        made.map_err(|error| Failure::io(self.output.display(), &error))?;
        if self.json {
            let told = print_json(&self.to_json());
            told.map_err(|failure| failure.but_done("the order is written"))?;
        }
        Ok(Exit::Done)
    }

    /// The order's file.
    fn order(&self, key: &SigningKey) -> Result<String, Failure> {
        let environment = Environment::default();
        let because = self.by.as_deref().zip(self.reason.as_deref());
        if let Some(to) = self.new_erasure_key.as_deref().map(parse_key("--new-erasure-key")).transpose()? {
            return Ok(ErasureKeyChange::give(key, self.log, &to, &environment)?.note().to_owned());
        }
        match (self.hold, &self.release, because) {
            (true, _, Some(because)) => {
                let [subject] = &self.subjects[..] else {
                    return Err(Failure::usage(
                        "an order to hold is about one data subject: name one with --subject",
                    ));
                };
                Ok(HoldOrder::give(key, self.log, subject, because, &environment)?.render())
            }
            (false, Some(path), Some(because)) => {
                let hold = self.held_by(path)?;
                Ok(ReleaseOrder::give(key, self.log, &hold, because, &environment)?.render())
            }
            (false, None, _) if self.by.is_none() => {
                Ok(give(key, self.log, &self.subjects, self.reason.as_deref())?.render())
            }
            _ => Err(Failure::usage("--by is for an order to hold or to release, with --hold or --release")),
        }
    }

    /// The public note of an order to hold somebody of this log, of which this is the file or the note itself.
    fn held_by(&self, path: &Path) -> Result<String, Failure> {
        let text = read_order(path).map_err(|error| Failure::content(path.display(), &error))?;
        let note = match text.starts_with(HOLD_ORDER_HEADER) {
            true => format!("{}\n", text.trim_end()),
            false => HoldOrder::parse(&text).map_err(|error| error_in(path, error))?.note().to_owned(),
        };
        let read = SignedNote::parse(note.as_bytes()).map_err(HoldNoteError::Note);
        let read = read.and_then(|note| HoldNote::parse(note.text)?.check_hold(self.log));
        let refused = |error| error_in(path, bulla::Error::invalid(format!("the order to hold: {error}")));
        read.map_err(refused).map(|_| note)
    }

    fn to_json(&self) -> Value {
        match (&self.new_erasure_key, self.hold, &self.release) {
            (Some(key), ..) => {
                json!({ "kind": "new-erasure-key", "output": self.output, "new_erasure_key": key })
            }
            (None, true, _) => json!({ "kind": "hold", "output": self.output, "subjects": 1 }),
            (None, false, Some(_)) => json!({ "kind": "release", "output": self.output, "subjects": 0 }),
            (None, false, None) => {
                json!({ "kind": "erasure", "output": self.output, "subjects": self.subjects.len() })
            }
        }
    }
}

fn parse_id(text: &str) -> Result<LogId, String> {
    LogId::parse(text).ok_or_else(|| "it is not 32 hexadecimal digits".to_owned())
}
