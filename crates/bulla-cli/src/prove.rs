//! `bulla prove`.

use crate::exit::{Exit, Failure};
use crate::export::destination::Destination;
use crate::filter::{self, Filter};
use crate::group_keys::{Personal, group_keys};
use crate::identity::Identities;
use crate::log_paths::{LogPaths, error_in};
use crate::missing_keys;
use crate::verify::parse_key;
use bulla::{Proven, ReadReport, Reader};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Prove that the log holds some entries or an event, or that it grew from an earlier checkpoint.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The proof is one file, for `bulla check`. It discloses the entries that it proves, and with one that
is in a group all entries of the same data subjects in its block; of others only how many there are.
It does not show that these are all there are. Where the key of a group is not there, it is proven
without what is personal of it; exit code 1 where keys are lost.

Examples:
  bulla prove audit --entry 1042 -o entry.proof
  bulla prove audit --subject user_42 -o person.proof
  bulla prove audit --consistency checkpoint.of-last-year -o grown.proof")]
pub(crate) struct Prove {
    #[command(flatten)]
    place: LogPaths,

    /// Prove that the signed tree begins with that of this checkpoint
    #[arg(long, value_name = "OLD", conflicts_with_all = filter::ARGUMENTS)]
    consistency: Option<PathBuf>,

    /// Prove the event in this frame: of an erasure, its certificate
    #[arg(long, value_name = "FRAME", conflicts_with = "consistency", conflicts_with_all = filter::ARGUMENTS)]
    event: Option<u64>,

    #[command(flatten)]
    identities: Identities,

    /// The public key that the log must be of, or a file with it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    #[command(flatten)]
    personal: Personal,

    /// Write to a file, all or nothing, readable by its owner only
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    filter: Filter,
}

impl Prove {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let query = self.filter.query()?;
        self.personal.check(&query)?;
        let mut reader = Reader::open(self.place.directory())?;
        if let Some(key) = self.key.as_deref().map(parse_key).transpose()? {
            reader = reader.key(key);
        }
        let (text, told, read) = match (&self.consistency, self.event) {
            (_, Some(frame)) => {
                (reader.prove_event(frame)?.render(), format!("the event in frame {frame}"), None)
            }
            (Some(path), _) => {
                let old = read_note(path)?;
                let proof = reader.prove_consistency(&old).map_err(|error| error_in(path, error))?;
                (proof, "that the tree begins with the one that the old checkpoint signs; whether its data is there, `bulla verify` tells".to_owned(), None)
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
                let proven = reader.identity(identity).prove(&query)?;
                let Proven { units, entries, withheld, read, .. } = &proven;
                let blocks = (read.blocks_read, read.blocks);
                let told = told(*units, (*entries, read.entries), *withheld, blocks);
                (proven.text, told, Some(proven.read))
            }
        };
        let mut destination = Destination::open(self.output.as_deref(), &self.place)?;
        let written = destination.writer().write_all(text.as_bytes()).and_then(|()| destination.finish());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
            written => written.map_err(|error| Failure::io("writing the proof", &error))?,
        }
        note!("proves {told}");
        let tell = |read: ReadReport| {
            missing_keys::tell(read.withheld, "proven without personal fields", read.undecided)
        };
        Ok(read.map_or(Exit::Done, tell))
    }
}

/// What is proven, and what that discloses besides: entries disclosed and asked for, blocks read and all.
fn told(units: u64, (entries, asked): (u64, u64), withheld: u64, (some, all): (u64, u64)) -> String {
    let besides = match entries.saturating_sub(asked) {
        0 => String::new(),
        more => format!(" ({more} were not asked for, but are of the same data subjects)"),
    };
    let without = match withheld {
        0 => String::new(),
        some => format!("; of {some} the personal fields cannot be shown: their keys are not there"),
    };
    format!("{entries} entries in {units} units{besides}{without}; read {some} of {all} blocks")
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
    use super::told;

    #[test]
    fn what_a_group_discloses_besides_or_withholds_is_said() {
        let proven = |entries, withheld| told(2, (entries, 3), withheld, (2, 9));
        assert_eq!(proven(3, 0), "3 entries in 2 units; read 2 of 9 blocks");
        let besides = "5 entries in 2 units (2 were not asked for, but are of the same data subjects)";
        assert_eq!(proven(5, 0), format!("{besides}; read 2 of 9 blocks"));
        let without = "of 4 the personal fields cannot be shown: their keys are not there";
        assert_eq!(proven(5, 4), format!("{besides}; {without}; read 2 of 9 blocks"));
    }
}
