//! `bulla prove`.

use crate::as_logged;
use crate::exit::{Exit, Failure};
use crate::export::destination::{Destination, refuse_json_among};
use crate::filter::{self, Filter};
use crate::group_keys::{Personal, group_keys};
use crate::identity::Identities;
use crate::log_paths::{Also, LogPaths, error_in};
use crate::missing_keys::{self, WithoutKeys};
use crate::output::print_json;
use crate::whose::{Trusted, Whose};
use bulla::proof::ProofFile;
use bulla::text::spelling::{agreeing, counted};
use bulla::{Proven, Reader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Prove that the log holds entries or an event, or grew from an earlier checkpoint.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file is for `bulla check`, and does not show that these entries are all there are. Exit code 1:
lost keys; 5, with --policy: its witnesses have not cosigned so much yet.

Example:
  bulla prove audit --subject user_42 --policy policy.txt --with-others -o person.proof")]
pub(crate) struct Prove {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    also: Also,

    /// Prove that the signed tree begins with that of this checkpoint
    #[arg(long, value_name = "OLD", conflicts_with_all = filter::ARGUMENTS)]
    consistency: Option<PathBuf>,

    /// Prove the event in this frame: of an erasure, its certificate
    #[arg(long, value_name = "FRAME", conflicts_with = "consistency", conflicts_with_all = filter::ARGUMENTS)]
    event: Option<u64>,

    #[command(flatten)]
    identities: Identities,

    #[command(flatten)]
    whose: Whose,

    #[command(flatten)]
    personal: Personal,

    /// Disclose others of these data subjects and blocks, proven with them
    #[arg(long, conflicts_with_all = ["consistency", "event"])]
    with_others: bool,

    /// Text (the default), or a receipt in COSE (RFC 9942)
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true, hide_default_value = true)]
    #[arg(value_name = "text|cose", conflicts_with_all = ["consistency", "event"])]
    format: Format,

    /// Write to a file, all or nothing, readable by its owner only
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, requires = "output")]
    json: bool,

    #[command(flatten)]
    filter: Filter,
}

/// In which form entries are proven.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Cose,
}

impl Prove {
    pub(crate) fn run(mut self) -> Result<Exit, Failure> {
        self.place.and(&self.also);
        refuse_json_among("proof", self.json, self.output.as_deref())?;
        let is_named = self.output.as_deref().is_some_and(|path| path.as_os_str() != "-");
        if self.format == Format::Cose && !is_named && io::stdout().is_terminal() {
            let message = "a receipt is no text for a terminal: name a file with -o FILE, or send it on";
            return Err(Failure::usage(message));
        }
        let query = self.filter.query()?;
        self.personal.check(&query)?;
        let mut reader = Reader::open_store(self.place.log()?)?;
        let trusted = self.whose.read()?;
        let by_witnesses = matches!(&trusted, Trusted::Policy(policy) if policy.asks_for_witnesses());
        if by_witnesses && self.format == Format::Cose {
            let message =
                "no witness cosigns a receipt in COSE: name the log's key, and no policy, or prove as text";
            return Err(Failure::usage(message));
        }
        reader = match trusted {
            Trusted::Nobody => reader,
            Trusted::Key(key) => reader.key(*key),
            Trusted::Policy(policy) => reader.policy(*policy),
        };
        let (file, proves) = match (&self.consistency, self.event) {
            (_, Some(frame)) => (reader.prove_event(frame)?.render().into_bytes(), Proves::Event { frame }),
            (Some(path), _) => {
                let old = read_note(path)?;
                let proof = reader.prove_consistency(&old).map_err(|error| error_in(path, error))?;
                (proof.into_bytes(), Proves::Consistency)
            }
            (None, None) => {
                if !query.is_narrow() {
                    let message = "say what to prove: --entry N, --entries, --subject or another filter, or --consistency OLD";
                    return Err(Failure::usage(message));
                }
                let identity = self.identities.reader(&self.place)?;
                if let Some(keys) = group_keys(&self.place, &self.personal, &identity)? {
                    reader = reader.group_keys(keys);
                }
                as_logged::tell(&self.place, &query);
                let reader = reader.identity(identity);
                let mut proven = match self.format {
                    Format::Text => reader.prove(&query),
                    Format::Cose => reader.prove_as_receipt(&query),
                }?;
                if !proven.others.is_empty() && !self.with_others {
                    return Err(Failure::usage(would_disclose(&proven.others)));
                }
                (std::mem::take(&mut proven.file), Proves::Entries(Box::new(proven)))
            }
        };
        let unwitnessed = match ProofFile::note_in(&file).filter(|_| !by_witnesses) {
            Some(note) => Reader::open_store(self.place.log()?)?.unwitnessed(note)?,
            None => None,
        };
        let mut destination = Destination::open(self.output.as_deref(), &self.place)?;
        let written = destination.writer().write_all(&file).and_then(|()| destination.finish());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
            written => written.map_err(|error| Failure::io("writing the proof", &error))?,
        }
        note!("proves {}", proves.to_text());
        if let Some(missing) = &unwitnessed {
            note!("{missing}");
        }
        let exit = match &proves {
            Proves::Entries(proven) => {
                let Proven { read, unsigned, .. } = &**proven;
                unsigned.iter().for_each(|notice| note!("{notice}"));
                let why = WithoutKeys::of(read.log_is_older);
                missing_keys::tell(read.withheld, "proven without personal fields", read.undecided, why)
            }
            Proves::Event { .. } | Proves::Consistency => Exit::Done,
        };
        if self.json {
            let proves = proves.to_json(self.output.as_deref());
            let told = print_json(&ProvesWitnessed { proves, unwitnessed });
            told.map_err(|failure| failure.but_done("the proof is written"))?;
        }
        Ok(exit)
    }
}

/// What is proven, and what that discloses besides.
enum Proves {
    Entries(Box<Proven>),
    Event { frame: u64 },
    Consistency,
}

impl Proves {
    fn to_text(&self) -> String {
        match self {
            Proves::Entries(proven) => entries_to_text(proven),
            Proves::Event { frame } => format!("the event in frame {frame}"),
            Proves::Consistency => {
                "that the tree begins with the one that the old checkpoint signs; whether its data is \
                 there, `bulla verify` tells"
                    .to_owned()
            }
        }
    }

    fn to_json<'a>(&'a self, output: Option<&'a Path>) -> ProvesJson<'a> {
        match self {
            Proves::Entries(proven) => ProvesJson::Entries(EntriesJson {
                output,
                units: proven.units,
                entries: proven.entries,
                others: &proven.others,
                without_personal: proven.withheld,
                withheld: missing_keys::by_why(proven.read.withheld),
                undecided: proven.read.undecided,
                blocks_read: proven.read.blocks_read,
                blocks: proven.read.blocks,
                tree_size: proven.tree_size,
                root: proven.root.to_base64(),
                unsigned: proven.unsigned.is_some(),
            }),
            Proves::Event { frame } => ProvesJson::Event { output, frame: *frame },
            Proves::Consistency => ProvesJson::Consistency { output },
        }
    }
}

/// The same for a program.
#[derive(Serialize)]
#[serde(tag = "proves", rename_all = "lowercase")]
enum ProvesJson<'a> {
    Entries(EntriesJson<'a>),
    Event { output: Option<&'a Path>, frame: u64 },
    Consistency { output: Option<&'a Path> },
}

#[derive(Serialize)]
struct ProvesWitnessed<'a> {
    #[serde(flatten)]
    proves: ProvesJson<'a>,
    /// What the witnesses that the log asks have not cosigned of the checkpoint of the proof.
    unwitnessed: Option<String>,
}

#[derive(Serialize)]
struct EntriesJson<'a> {
    output: Option<&'a Path>,
    units: u64,
    entries: u64,
    /// Entries that were not asked for, and are disclosed.
    others: &'a [u64],
    /// Disclosed entries, asked for or not, whose personal fields the file does not open.
    without_personal: u64,
    /// By why: entries that were asked for whose personal fields it does not open.
    withheld: BTreeMap<&'static str, u64>,
    undecided: u64,
    blocks_read: u64,
    blocks: u64,
    tree_size: u64,
    root: String,
    /// Whether something that is not signed yet may follow, which is not looked at.
    unsigned: bool,
}

fn entries_to_text(proven: &Proven) -> String {
    let Proven { units, entries, others, withheld, read, .. } = proven;
    let besides = match others.len() {
        0 => String::new(),
        1 => " (1 was not asked for, but is of the same data subjects)".to_owned(),
        more => format!(" ({more} were not asked for, but are of the same data subjects)"),
    };
    let without = match withheld {
        0 => String::new(),
        some => format!("; of {some} the personal fields cannot be shown: their keys are not there"),
    };
    let (some, all) = (read.blocks_read, read.blocks);
    let (entries, units) = (counted(*entries, "entry"), counted(*units, "unit"));
    format!("{entries} in {units}{besides}{without}; read {some} of {}", counted(all, "block"))
}

/// Why nothing is written: which entries would go out besides.
fn would_disclose(others: &[u64]) -> String {
    const FEW: usize = 10;
    let few = others.iter().take(FEW).map(u64::to_string).collect::<Vec<_>>().join(", ");
    let more = if others.len() > FEW { ", …" } else { "" };
    let count = others.len() as u64;
    format!(
        "the proof would disclose {} that {} not asked for, of the same data subjects and in the same blocks: \
         {few}{more}; --with-others lets {} out",
        counted(count, "entry"),
        agreeing(count, "was", "were"),
        agreeing(count, "it", "them")
    )
}

/// Reads a checkpoint, which is short.
fn read_note(path: &Path) -> Result<Vec<u8>, Failure> {
    const LIMIT: u64 = 1 << 20;
    let failed = |error: io::Error| Failure::io(path.display(), &error);
    let mut note = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(LIMIT + 1).read_to_end(&mut note).map_err(failed)?;
    match note.len() as u64 > LIMIT {
        true => {
            Err(Failure::usage(format!("{} has over {LIMIT} bytes: it is no checkpoint", path.display())))
        }
        false => Ok(note),
    }
}

#[cfg(test)]
mod tests {
    use super::would_disclose;

    #[test]
    fn the_first_of_those_that_would_go_out_are_named() {
        assert!(would_disclose(&[3, 9]).contains("disclose 2 entries that were not asked for"));
        assert!(would_disclose(&[3, 9]).contains(": 3, 9; --with-others"));
        let many = would_disclose(&(0..11).collect::<Vec<_>>());
        assert!(many.contains("disclose 11 entries") && many.contains("8, 9, …;"), "{many}");
    }
}
