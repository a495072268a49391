//! `bulla keys`.

mod list;

use crate::append;
use crate::authority::without_erasure;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::identity::Identities;
use crate::interrupt;
use crate::log_paths::{LogPaths, error_in};
use crate::output::{print, print_json};
use crate::terminal;
use bulla::config::ERASURE_KEY_SUFFIX;
use bulla::control::through_writer;
use bulla::environment::Environment;
use bulla::keys::identities::{encrypt_with_passphrase, generate};
use bulla::keys::recipients::{MAX_RECIPIENTS_FILE, parse_recipients_file};
use bulla::keys::signing::SigningKey;
use bulla::{Configure, ErrorKind};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Show and change who can read a log.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "bulla keys DIR list [--identity FILE]... [--json]\n       \
                      bulla keys DIR add-recipient AGE... [--recipients-file FILE]\n       \
                      bulla keys DIR remove-recipient AGE...\n       bulla keys DIR rotate\n       \
                      bulla keys DIR new-identity -o FILE [--passphrase]\n       \
                      bulla keys DIR new-erasure-key -o FILE",
    after_help = "\
A change counts for what is written from then on: it begins an epoch, and is
recorded. Where a writer runs, it is the writer that does it. A new identity is printed nowhere; its
recipient (age1...) is, for add-recipient. A new erasure key is made so, too: what is printed is for
`bulla order --new-erasure-key`. It needs of the log its name alone: DIR may be a copy. A log
without erasure has no use for one (exit 5).

Example:
  bulla keys audit new-identity -o officer.age --passphrase
  bulla keys audit add-recipient age1..."
)]
pub(crate) struct Keys {
    #[command(flatten)]
    place: LogPaths,

    /// What to do
    #[arg(value_enum)]
    action: Action,

    /// Recipients (age1...), to add or to remove
    #[arg(value_name = "AGE")]
    recipients: Vec<String>,

    /// Recipients from an age recipients file: a line a recipient, # begins a comment
    #[arg(long, value_name = "FILE")]
    recipients_file: Option<PathBuf>,

    /// The file to make of a new identity or erasure key; one that exists is left alone
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Put the new identity under a passphrase
    #[arg(long)]
    passphrase: bool,

    #[command(flatten)]
    identities: Identities,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    List,
    AddRecipient,
    RemoveRecipient,
    Rotate,
    NewIdentity,
    NewErasureKey,
}

const ADDED: &str = "\
added, and recorded in the log: entries from now on are for these recipients, too;
of what was written before they read what they could read already
";
const REMOVED: &str = "\
removed, and recorded in the log: entries from now on are not for them;
what was written before stays readable to whoever was removed
";

/// What tells who can read what.
const LIST: &str = "`bulla keys DIR list`";

impl Keys {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        self.check_arguments()?;
        match self.action {
            Action::List => list::run(&self.place, &self.identities, self.json),
            Action::AddRecipient => {
                let configure = Configure::default().add_recipients(self.named()?)?;
                self.change(&configure, ADDED)
            }
            Action::RemoveRecipient => {
                let configure = Configure::default().remove_recipients(self.named()?)?;
                self.change(&configure, REMOVED)
            }
            Action::Rotate => self.rotate(),
            Action::NewIdentity => self.new_identity(),
            Action::NewErasureKey => self.new_erasure_key(),
        }
    }

    /// Refuses what an action makes nothing of: it was meant for something.
    fn check_arguments(&self) -> Result<(), Failure> {
        let changes = matches!(self.action, Action::AddRecipient | Action::RemoveRecipient);
        let makes = matches!(self.action, Action::NewIdentity | Action::NewErasureKey);
        let named = !self.recipients.is_empty() || self.recipients_file.is_some();
        if named && !changes {
            return Err(Failure::usage("only `add-recipient` and `remove-recipient` take recipients"));
        }
        if self.passphrase && self.action != Action::NewIdentity {
            return Err(Failure::usage("only `new-identity` takes --passphrase"));
        }
        if !makes && self.output.is_some() {
            return Err(Failure::usage("only `new-identity` and `new-erasure-key` take -o"));
        }
        match makes && self.output.is_none() {
            true => Err(Failure::usage("it takes -o FILE: the secret is printed nowhere")),
            false => Ok(()),
        }
    }

    /// The recipients that were named.
    fn named(&self) -> Result<Vec<String>, Failure> {
        let mut named = self.recipients.clone();
        if let Some(path) = &self.recipients_file {
            named.extend(recipients_in(path)?);
        }
        match named.is_empty() {
            true => Err(Failure::usage("name a recipient (age1...), or a --recipients-file")),
            false => Ok(named),
        }
    }

    fn change(&self, configure: &Configure, told: &str) -> Result<Exit, Failure> {
        interrupt::finish_first(self.json, LIST, || ())?;
        let done = config::apply(configure, &self.place, self.json)?;
        let told = match done.changed {
            Some(true) => told,
            Some(false) => "nothing to change: it is so already\n",
            None => config::UNCLEAR,
        };
        self.tell(&json!({ "changed": done.changed, "recorded": done.recorded }), told)
    }

    fn rotate(&self) -> Result<Exit, Failure> {
        self.place.refuse_other_keys()?;
        interrupt::finish_first(self.json, LIST, || ())?;
        let alone = || {
            // Opening begins an epoch; more is not needed for one.
            append::open(&self.place, terminal::environment())?.close()?;
            let epochs = bulla::epochs_of(self.place.log()?)?;
            Ok(epochs.last().map(|epoch| epoch.number))
        };
        let number = through_writer(self.place.keys(), |writer| writer.rotate().map(Some), alone)?;
        let told = "a new epoch has begun: this host has forgotten the keys of those before\n";
        self.tell(&json!({ "epoch": number }), told)
    }

    /// Says what was done.
    fn tell(&self, object: &Value, text: &str) -> Result<Exit, Failure> {
        let told = if self.json { print_json(object) } else { print(text) };
        told.map(|()| Exit::Done).map_err(|failure| failure.but_done(text.trim_end()))
    }

    fn new_identity(&self) -> Result<Exit, Failure> {
        let Some(path) = &self.output else { return Ok(Exit::Done) };
        self.place.refuse_inside(path)?;
        let passphrase = match self.passphrase || self.identities.passphrase().is_named() {
            true => Some(self.identities.passphrase().new_one()?),
            false => None,
        };
        let (text, recipient) = generate();
        match passphrase {
            Some(passphrase) => write_new(path, encrypt_with_passphrase(&text, &passphrase)?.as_bytes()),
            None => write_new(path, text.as_bytes()),
        }?;
        match self.json {
            true => print_json(&json!({ "recipient": recipient, "identity": path })),
            false => print(&format!("{recipient}\n")),
        }?;
        Ok(Exit::Done)
    }

    fn new_erasure_key(&self) -> Result<Exit, Failure> {
        let Some(path) = &self.output else { return Ok(Exit::Done) };
        self.place.refuse_inside(path)?;
        let (log, _) = bulla::config::load_of_log(&*self.place.log()?)?;
        if !log.erasure {
            return Err(without_erasure());
        }
        let mut seed = Zeroizing::new([0; 32]);
        Environment::default().random.fill(&mut *seed)?;
        let key = SigningKey::from_seed(&format!("{}{ERASURE_KEY_SUFFIX}", log.origin), &seed)?;
        write_new(path, key.render().as_bytes())?;
        let public = key.verifier().to_string();
        match self.json {
            true => print_json(&json!({ "erasure_key": public, "output": path })),
            false => print(&format!("{public}\n")),
        }?;
        Ok(Exit::Done)
    }
}

/// The recipients in an age recipients file.
pub(crate) fn recipients_in(path: &Path) -> Result<Vec<String>, Failure> {
    let failed = |error| Failure::io(path.display(), &error);
    let mut text = String::new();
    let limit = MAX_RECIPIENTS_FILE as u64;
    let file = File::open(path).map_err(failed)?;
    if file.take(limit + 1).read_to_string(&mut text).map_err(failed)? as u64 > limit {
        return Err(Failure::usage(format!(
            "{} has over {limit} bytes: it is no recipients file",
            path.display()
        )));
    }
    parse_recipients_file(&text).map_err(|error| error_in(path, error))
}

/// Writes a secret to a file that does not exist yet, for its owner alone.
fn write_new(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(ErrorKind::Refused.into(), format!("{} exists: it is left as it is", path.display()))
        }
        _ => Failure::io(format!("writing {}", path.display()), &error),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(std::fs::remove_file(path))).map_err(failed)
}
