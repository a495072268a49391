//! `bulla init`.

use crate::exit::{Exit, Failure};
use crate::output::{print, print_json};
use crate::place::{Place, inside};
use bulla::Created;
use bulla::keys::files;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Make an empty log and its keys.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  bulla init /var/lib/audit --origin example.com/audit

Without --recipient an identity that reads the log is made, in the key directory.")]
pub(crate) struct Init {
    #[command(flatten)]
    place: Place,

    /// The log's name: by convention a URL without its scheme
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,

    /// An age recipient (age1...) who can read the log; may be given more than once
    #[arg(long = "recipient", value_name = "AGE")]
    recipients: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Init {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (directory, keys) = (self.place.directory(), self.place.keys());
        if inside(&keys, &directory) {
            return Err(Failure::usage(format!(
                "{} is inside {}: who can reach the log must not reach its keys",
                keys.display(),
                directory.display()
            )));
        }
        let mut init = bulla::Init::default();
        if let Some(origin) = self.origin {
            init = init.origin(origin);
        }
        for recipient in &self.recipients {
            init = init.recipient(recipient);
        }
        let created = init.create_with_keys(&directory, &keys)?;
        let made = Made::new(&created, &directory, &keys);
        if self.json { print_json(&made) } else { print(&made.to_text()) }?;
        Ok(Exit::Done)
    }
}

/// What was made.
#[derive(Serialize)]
struct Made {
    directory: PathBuf,
    keys: PathBuf,
    id: String,
    origin: String,
    vkey: String,
    seal_key: PathBuf,
    /// Absent where recipients were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<PathBuf>,
}

impl Made {
    fn new(created: &Created, directory: &Path, keys: &Path) -> Self {
        Made {
            directory: directory.to_owned(),
            keys: keys.to_owned(),
            id: created.id.to_string(),
            origin: created.origin.clone(),
            vkey: created.verifier_key.to_string(),
            seal_key: keys.join(files::SEAL_KEY),
            identity: created.made_identity.then(|| keys.join(files::IDENTITY)),
        }
    }

    fn to_text(&self) -> String {
        let Made { directory, keys, origin, vkey, seal_key, identity, .. } = self;
        let (directory, keys) = (directory.display(), keys.display());
        let seal_key = seal_key.display().to_string();
        let identity = identity.as_ref().map(|identity| identity.display().to_string());
        let width = identity.as_ref().map_or(0, |identity| identity.len().max(seal_key.len()));
        let mut text = format!(
            "Made the log {directory} of origin {origin}, and its keys in {keys}.\n\n\
             Its public key. Keep it where the log is not; `bulla verify --key` takes it:\n\n  {vkey}\n\n"
        );
        // Writing to a `String` cannot fail.
        let _ = match identity {
            Some(identity) => write!(
                text,
                "A copy of these two belongs elsewhere, now; then remove them from this host:\n\n  \
                 {seal_key:width$}   checks that nothing was rewritten, cut off or put in\n  \
                 {identity:width$}   reads the log: without it nobody can\n\n\
                 Until then, whoever takes {directory} and {keys} reads every entry, and can\n\
                 write another history with seals and signatures that are right. Only what is\n\
                 kept elsewhere, a checkpoint or a witness's signature, then shows it.\n",
            ),
            None => write!(
                text,
                "Only the recipients that you named can read the log; this host cannot.\n\
                 A copy of this belongs elsewhere, now; then remove it from this host:\n\n  \
                 {seal_key}   checks that nothing was rewritten, cut off or put in\n\n\
                 Until then, whoever takes {directory} and {keys} can write another\n\
                 history with seals and signatures that are right, but read nothing. Only what\n\
                 is kept elsewhere, a checkpoint or a witness's signature, then shows it.\n",
            ),
        };
        text
    }
}
