//! `bulla info`.

use crate::exit::{Exit, Failure};
use crate::output::{print, print_json};
use crate::place::Place;
use bulla::control::Client;
use serde::Serialize;
use std::collections::BTreeMap;

/// Say what a log is and how much is in it, without checking it.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  bulla info audit")]
pub(crate) struct Info {
    #[command(flatten)]
    place: Place,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut facts = Facts::from(bulla::info(self.place.directory())?);
        facts.writer = self.writer(&facts);
        if self.json { print_json(&facts) } else { print(&facts.to_text()) }?;
        Ok(Exit::Done)
    }
}

impl Info {
    /// The process that has the log open, for whoever may ask it.
    fn writer(&self, facts: &Facts) -> Option<u32> {
        let client = facts.locked.then(|| Client::connect(self.place.keys()))?;
        client.ok()?.map(|client| client.status().process)
    }
}

#[derive(Serialize)]
struct Facts {
    origin: String,
    vkey: String,
    id: String,
    hash: String,
    recipients: Vec<String>,
    /// The rules for fields; the others are kept.
    fields: BTreeMap<&'static str, String>,
    /// Whether personal fields can be erased.
    erasure: bool,
    /// The key that orders to erase are signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    erasure_key: Option<String>,
    entries: u64,
    tree_size: u64,
    root: String,
    bytes: u64,
    segments: u64,
    /// Whether a writer has the log open.
    locked: bool,
    /// The process that has, where it is known.
    writer: Option<u32>,
}

impl From<bulla::Info> for Facts {
    fn from(info: bulla::Info) -> Self {
        Facts {
            origin: info.origin,
            vkey: info.vkey.to_string(),
            id: info.id.to_string(),
            hash: info.hash,
            recipients: info.recipients,
            fields: info.fields.iter().map(|(field, rule)| (field, rule.to_string())).collect(),
            erasure: info.erasure,
            erasure_key: info.erasure_key.map(|key| key.to_string()),
            entries: info.entries,
            tree_size: info.tree_size,
            root: info.root.to_base64(),
            bytes: info.bytes,
            segments: info.segments,
            locked: info.locked,
            writer: None,
        }
    }
}

impl Facts {
    fn to_text(&self) -> String {
        let number = |number: u64| number.to_string();
        let mut lines = vec![
            ("origin", self.origin.clone()),
            ("public key", self.vkey.clone()),
            ("id", self.id.clone()),
            ("hash", self.hash.clone()),
        ];
        lines.extend(self.recipients.iter().map(|recipient| ("recipient", recipient.clone())));
        let width = self.fields.keys().map(|field| field.len()).max().unwrap_or_default();
        lines.extend(self.fields.iter().map(|(field, rule)| ("field", format!("{field:<width$}  {rule}"))));
        lines.extend([
            (
                "erasure",
                self.erasure_key
                    .clone()
                    .unwrap_or_else(|| if self.erasure { "on" } else { "off" }.to_owned()),
            ),
            ("entries", number(self.entries)),
            ("tree size", number(self.tree_size)),
            ("root", self.root.clone()),
            ("bytes", number(self.bytes)),
            ("segments", number(self.segments)),
        ]);
        lines.push(match (self.locked, self.writer) {
            (false, _) => ("writer", "none".to_owned()),
            (true, None) => ("writer", "has it open".to_owned()),
            (true, Some(process)) => ("writer", format!("process {process} has it open")),
        });
        lines.iter().map(|(name, value)| format!("{name:<10}  {value}\n")).collect()
    }
}
