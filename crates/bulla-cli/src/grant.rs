//! `bulla grant`.

use crate::as_logged;
use crate::exit::{Exit, Failure};
use crate::export::destination::{Destination, refuse_json_among};
use crate::filter::Filter;
use crate::group_keys::{Personal, group_keys};
use crate::identity::Identities;
use crate::keys::recipients_in;
use crate::log_paths::LogPaths;
use crate::missing_keys::{self, WithoutKeys};
use crate::output::print_json;
use crate::public_key::log_key;
use crate::terminal::Terminal;
use bulla::keys::plugin::DEFAULT_TIMEOUT;
use bulla::keys::recipients::Age;
use bulla::text::spelling::counted;
use bulla::{Granted, Reader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Hand somebody without the vault the keys to what is personal of some entries.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file, for these recipients alone, opens the groups that the entries are in: all entries of the
same data subjects in a block. `bulla export --grant FILE` reads with it, and needs an identity that
opens the epochs besides, as of a recipient of the log: a grant hands out no epoch's key.
What was handed out stays open to them, whatever is erased later. Entries whose keys are not there
are not granted: what was erased (exit code 0), and what is lost (exit code 1).

Example:
  bulla grant audit --recipient age1... --subject user_42 -o user_42.grant")]
pub(crate) struct Grant {
    #[command(flatten)]
    place: LogPaths,

    /// An age recipient (age1...) for whom it is; repeatable
    #[arg(long = "recipient", value_name = "AGE")]
    recipients: Vec<String>,

    /// An age recipients file: a line a recipient, # begins a comment
    #[arg(long, value_name = "FILE")]
    recipients_file: Option<PathBuf>,

    #[command(flatten)]
    identities: Identities,

    /// The public key that the log must be of, or a file with it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    /// Write to this file, all or nothing, readable by its owner only
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    filter: Filter,
}

impl Grant {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        refuse_json_among("grant", self.json, Some(&self.output))?;
        let mut recipients = self.recipients;
        recipients
            .extend(self.recipients_file.as_deref().map(recipients_in).transpose()?.into_iter().flatten());
        if recipients.is_empty() {
            return Err(Failure::usage(
                "say for whom the grant is: --recipient age1..., or --recipients-file",
            ));
        }
        let query = self.filter.query()?;
        if !query.is_narrow() {
            return Err(Failure::usage("say what to grant: --subject, --entries or another filter"));
        }
        let mut reader = Reader::open_store(self.place.log()?)?;
        if let Some(key) = log_key(self.key.as_deref())? {
            reader = reader.key(key);
        }
        let identity = self.identities.reader(&self.place)?;
        let Some(keys) = group_keys(&self.place, &Personal::default(), &identity)? else {
            let message = "the log has no erasure: whoever opens its epochs reads what is personal, too";
            return Err(Failure::new(Exit::Refused, message));
        };
        as_logged::tell(&self.place, &query);
        let granted = reader.identity(identity).group_keys(keys).grant(&query)?;
        let age = Age::with_prompt(Arc::new(Terminal));
        let file = granted.grant.seal(&recipients, &age, DEFAULT_TIMEOUT)?;
        let mut destination = Destination::open(Some(&self.output), &self.place)?;
        let written = destination.writer().write_all(&file).and_then(|()| destination.finish());
        written.map_err(|error| Failure::io("writing the grant", &error))?;
        note!("grants {}", told(&granted));
        granted.unsigned.iter().for_each(|notice| note!("{notice}"));
        let why = WithoutKeys::of(granted.read.log_is_older);
        let exit = missing_keys::tell(granted.read.withheld, "not granted", granted.read.undecided, why);
        if self.json {
            let told = print_json(&GrantedJson::new(&granted, &self.output));
            told.map_err(|failure| failure.but_done("the grant is written"))?;
        }
        Ok(exit)
    }
}

/// What is granted, for a program.
#[derive(Serialize)]
struct GrantedJson<'a> {
    output: &'a Path,
    groups: u64,
    entries: u64,
    /// Of these, the ones that were asked for.
    asked: u64,
    /// By why: entries that were asked for and are not granted.
    withheld: BTreeMap<&'static str, u64>,
    undecided: u64,
    blocks_read: u64,
    blocks: u64,
    tree_size: u64,
    root: String,
    /// Whether something that is not signed yet may follow, which is not looked at.
    unsigned: bool,
}

impl<'a> GrantedJson<'a> {
    fn new(Granted { groups, entries, asked, read, unsigned, .. }: &Granted, output: &'a Path) -> Self {
        GrantedJson {
            output,
            groups: *groups,
            entries: *entries,
            asked: *asked,
            withheld: missing_keys::by_why(read.withheld),
            undecided: read.undecided,
            blocks_read: read.blocks_read,
            blocks: read.blocks,
            tree_size: read.tree_size,
            root: read.root.to_base64(),
            unsigned: unsigned.is_some(),
        }
    }
}

/// What is granted, and what of that nobody asked for.
fn told(granted: &Granted) -> String {
    let Granted { groups, entries, asked, read, .. } = granted;
    let besides = match entries.saturating_sub(*asked) {
        0 => String::new(),
        1 => " (1 was not asked for, but is of the same data subjects)".to_owned(),
        more => format!(" ({more} were not asked for, but are of the same data subjects)"),
    };
    let (some, all) = (read.blocks_read, read.blocks);
    let (entries, groups) = (counted(*entries, "entry"), counted(*groups, "group"));
    format!("{entries} in {groups}{besides}; read {some} of {}", counted(all, "block"))
}
