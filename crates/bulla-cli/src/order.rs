//! `bulla order`.

use crate::erase::give;
use crate::exit::{Exit, Failure};
use crate::log_paths::{error_in, read_small};
use crate::new_file;
use crate::output::print_json;
use crate::verify::parse_key;
use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::{ErasureKeyChange, LogId};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Order an erasure, or that another key does, away from the host that writes the log
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The order names the data subjects: it is confidential. `bulla erase DIR --authority ORDER`
carries it out, once. Keep it with the certificate: together they show whom that is about
(`bulla check CERTIFICATE --order ORDER`).

An order for another key has nothing confidential: `bulla config DIR set log.erasure_key VKEY
--authority ORDER` carries it out.

Examples:
  bulla order --log 5be0...e1 --subject user_42 --authority erasure.key -o order.json
  bulla order --log 5be0...e1 --new-erasure-key example.com/audit/erasure+... --authority erasure.key -o rekey.order")]
pub(crate) struct Order {
    /// The log's id, as `bulla info` tells it
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    log: LogId,

    /// The data subject; repeatable
    #[arg(long = "subject", value_name = "S", required_unless_present = "new_erasure_key")]
    subjects: Vec<String>,

    /// In place of an erasure: have this key, or the one in this file, order erasures from then on
    #[arg(long, value_name = "VKEY", conflicts_with_all = ["subjects", "reason"])]
    new_erasure_key: Option<String>,

    /// Why, in one line; it becomes public
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// The log's erasure key
    #[arg(long, value_name = "FILE")]
    authority: PathBuf,

    /// The file to make; one that exists is left alone
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: PathBuf,

    /// Print one JSON object: the file, and how many data subjects it names
    #[arg(long)]
    json: bool,
}

impl Order {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let path = &self.authority;
        let text = read_small(path).map_err(|error| Failure::io(path.display(), &error))?;
        let key = SigningKey::parse(&text).map_err(|error| error_in(path, error))?;
        let order = match self.new_erasure_key.as_deref().map(parse_key).transpose()? {
            Some(to) => {
                ErasureKeyChange::give(&key, self.log, &to, &Environment::default())?.note().to_owned()
            }
            None => give(&key, self.log, &self.subjects, self.reason.as_deref())?.render(),
        };
        let made = new_file::make(&self.output, order.as_bytes());
        made.map_err(|error| Failure::io(self.output.display(), &error))?;
        if self.json {
            let told = print_json(&self.to_json());
            told.map_err(|failure| failure.but_done("the order is written"))?;
        }
        Ok(Exit::Done)
    }

    fn to_json(&self) -> Value {
        match &self.new_erasure_key {
            Some(key) => json!({ "output": self.output, "new_erasure_key": key }),
            None => json!({ "output": self.output, "subjects": self.subjects.len() }),
        }
    }
}

fn parse_id(text: &str) -> Result<LogId, String> {
    LogId::parse(text).ok_or_else(|| "it is not 32 hexadecimal digits".to_owned())
}
