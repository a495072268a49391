//! `bulla init`.

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::keys::recipients_in;
use crate::log_paths::LogPaths;
use crate::output::{print, print_json};
use crate::terminal;
use crate::verify::parse_key;
use crate::witness_policy::read_policy;
use bulla::keys::files;
use bulla::store::FileSystem;
use bulla::{Created, HashId};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde::Serialize;
use std::fmt::Write;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// Make an empty log and its keys.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  bulla init /var/lib/audit --origin example.com/audit
  bulla init audit --field client=truncate-ip:24/48 --field location=strip-query

RULE is keep, drop, pseudonymise, truncate-ip:24/48 (client), strip-query
(location) or cap:256 (payload); what it takes away is never written.
Without --recipient an identity that reads the log is made, in the key directory.

The personal fields of an entry with data subjects are encrypted once more, under keys
in the key directory's vault that can be destroyed. --erasure off leaves that out.")]
pub(crate) struct Init {
    #[command(flatten)]
    place: LogPaths,

    /// The log's name: by convention a URL without its scheme
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,

    /// An age recipient (age1...) who can read the log; repeatable
    #[arg(long = "recipient", value_name = "AGE")]
    recipients: Vec<String>,

    /// An age recipients file: a line a recipient, # begins a comment
    #[arg(long, value_name = "FILE")]
    recipients_file: Option<PathBuf>,

    /// What becomes of a field before it is logged; repeatable
    #[arg(long = "field", value_name = "FIELD=RULE", value_parser = parse_field)]
    fields: Vec<(String, String)>,

    /// The hash of entries and blocks; that never changes
    #[arg(long, value_name = "sha256|sha3-256", default_value = "sha256", value_parser = parse_hash)]
    hash: HashId,

    /// A key of one's own, x-NAME, in [log], which never changes; repeatable
    #[arg(long = "extra", value_name = "NAME=VALUE", value_parser = parse_extra)]
    extra: Vec<(String, String)>,

    /// Whether personal fields can be erased, one data subject's at a time; that never changes
    #[arg(long, value_name = "on|off", default_value = "on", hide_possible_values = true)]
    erasure: OnOff,

    /// Words of personal fields that so many groups of a block have in common (8 to 65536; no two
    /// of the same data subject) are kept once, and outlive an erasure; that never changes
    #[arg(long, value_name = "N|off", default_value = "16", value_parser = parse_common)]
    common: Common,

    /// How often the writer signs at least (1 s to 24 h), for `--newer-than`
    #[arg(long, value_name = "T", value_parser = bulla::parse_age)]
    heartbeat: Option<Duration>,

    /// Sign checkpoints with ML-DSA-44 too; that never changes
    #[arg(long)]
    ml_dsa: bool,

    /// A policy (C2SP tlog-policy) with witnesses that are asked
    #[arg(long, value_name = "FILE")]
    witness_policy: Option<PathBuf>,

    /// Whoever orders erasures has this public key [default: one is made]
    #[arg(long, value_name = "VKEY")]
    erasure_key: Option<String>,

    /// Show the seal key, too, also as a QR code: on a terminal only
    #[arg(long, conflicts_with = "json")]
    show_seal_key: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `--common` says: clap would take an `Option` for an option that may be left out.
#[derive(Clone, Copy, Debug)]
struct Common(Option<u32>);

fn parse_common(text: &str) -> bulla::Result<Common> {
    bulla::config::parse_common(text).map(Common)
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum OnOff {
    On,
    Off,
}

impl Init {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (directory, keys) = (self.place.directory(), self.place.keys());
        if self.show_seal_key && !io::stdout().is_terminal() {
            return Err(Failure::usage(
                "--show-seal-key shows a secret, and standard output is no terminal; nothing was made",
            ));
        }
        let mut init = bulla::Init::default()
            .erasure(matches!(self.erasure, OnOff::On))
            .common(self.common.0)
            .hash(self.hash)
            .ml_dsa(self.ml_dsa);
        if let Some(key) = self.erasure_key.as_deref().map(parse_key("--erasure-key")).transpose()? {
            if matches!(self.erasure, OnOff::Off) {
                return Err(Failure::usage(
                    "with --erasure off nothing can be erased: leave out --erasure-key",
                ));
            }
            init = init.erasure_key(key);
        }
        if let Some(file) = &self.witness_policy {
            init = init.witness_policy(read_policy(file)?);
        }
        if let Some(heartbeat) = self.heartbeat {
            init = init.heartbeat(heartbeat);
        }
        if let Some(origin) = self.origin {
            init = init.origin(origin);
        }
        let from_file = self.recipients_file.as_deref().map(recipients_in).transpose()?;
        for recipient in self.recipients.iter().chain(from_file.iter().flatten()) {
            init = init.recipient(recipient);
        }
        for (field, rule) in self.fields {
            init = init.field(field, rule);
        }
        for (key, value) in self.extra {
            init = init.extra(key, value);
        }
        interrupt::finish_first(self.json, "whether `bulla info DIR` knows it", || ())?;
        let stores = (FileSystem::new(&directory), FileSystem::new(&keys));
        let created = init.create_in(&stores.0, &stores.1, &terminal::environment())?;
        let made = Made::new(&created, matches!(self.erasure, OnOff::On), &directory, &keys);
        let told = if self.json { print_json(&made) } else { print(&made.to_text()) };
        let told = told.and_then(|()| if self.show_seal_key { show_seal_key(&self.place) } else { Ok(()) });
        told.map(|()| Exit::Done)
            .map_err(|failure| failure.but_done(format!("the log is made; its public key: {}", made.vkey)))
    }
}

/// Shows the seal key to whoever is at the terminal.
fn show_seal_key(place: &LogPaths) -> Result<(), Failure> {
    let path = place.keys().join(files::SEAL_KEY);
    let missing = || Failure::new(Exit::Environment, format!("{} is gone", path.display()));
    let secret = place.seal_key(None)?.ok_or_else(missing)?;
    let line = secret.text.trim_end();
    // 103 bytes at most, where a code has room for 2,953.
    let code = QrCode::new(line).map_err(|error| Failure::usage(format!("making a QR code: {error}")))?;
    let code = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    let code = Zeroizing::new(code);
    print(&Zeroizing::new(format!(
        "\nThe seal key, the line that {} has, for a place that is not this host:\n\n  {line}\n\n",
        path.display(),
    )))?;
    show_code(&code).map_err(|error| Failure::io("writing to standard output", &error))?;
    print(
        "\nIt is not shown again. Clear the screen and what it scrolled away, and remove the file once the\n\
         key is where it belongs: `bulla verify --seal-key FILE` takes a file with that line.\n",
    )
}

/// Shows a QR code on the terminal: black on white, whatever the terminal's colours are. A code that is inverted many cameras do not
/// read, so these colours are no decoration, and `NO_COLOR` does not take them away.
fn show_code(code: &str) -> io::Result<()> {
    const BLACK_ON_WHITE: &[u8] = b"\x1b[30;107m";
    const AS_BEFORE: &[u8] = b"\x1b[0m\n";
    let takes_colours = std::env::var_os("TERM").is_some_and(|terminal| terminal != "dumb");
    let mut out = io::stdout().lock();
    for line in code.lines() {
        if takes_colours {
            out.write_all(BLACK_ON_WHITE)?;
        }
        out.write_all(line.as_bytes())?;
        out.write_all(if takes_colours { AS_BEFORE } else { b"\n" })?;
    }
    out.flush()
}

/// What is told of a log with the settings that it has of itself, once it is made.
#[cfg(feature = "proxy")]
pub(crate) fn text(created: &Created, directory: &Path, keys: &Path) -> String {
    Made::new(created, true, directory, keys).to_text()
}

fn parse_field(text: &str) -> Result<(String, String), String> {
    let (field, rule) = text.split_once('=').ok_or("it is not FIELD=RULE")?;
    Ok((field.to_owned(), rule.to_owned()))
}

fn parse_extra(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it is not NAME=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_hash(name: &str) -> Result<HashId, String> {
    HashId::from_name(name).ok_or_else(|| "it is neither sha256 nor sha3-256".to_owned())
}

/// What was made.
#[derive(Serialize)]
struct Made {
    directory: PathBuf,
    keys: PathBuf,
    id: String,
    origin: String,
    vkey: String,
    /// Absent without a key of ML-DSA-44.
    #[serde(skip_serializing_if = "Option::is_none")]
    vkey_ml_dsa: Option<String>,
    seal_key: PathBuf,
    erasure: bool,
    /// Absent where a public key for that was given, and without erasure.
    #[serde(skip_serializing_if = "Option::is_none")]
    erasure_key: Option<PathBuf>,
    /// Absent where recipients were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<PathBuf>,
    /// Absent where no rule makes pseudonyms, and with erasure, where their key comes from the vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pseudonym_key: Option<PathBuf>,
}

impl Made {
    fn new(created: &Created, erasure: bool, directory: &Path, keys: &Path) -> Self {
        Made {
            directory: directory.to_owned(),
            keys: keys.to_owned(),
            id: created.id.to_string(),
            origin: created.origin.clone(),
            vkey: created.verifier_key.to_string(),
            vkey_ml_dsa: created.ml_dsa_key.as_ref().map(ToString::to_string),
            seal_key: keys.join(files::SEAL_KEY),
            erasure,
            erasure_key: created.made_erasure_key.then(|| keys.join(files::ERASURE_KEY)),
            identity: created.made_identity.then(|| keys.join(files::IDENTITY)),
            pseudonym_key: created.made_pseudonym_key.then(|| keys.join(files::PSEUDONYM)),
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
        if self.vkey_ml_dsa.is_some() {
            text += &format!(
                "Its key of ML-DSA-44, which `--key` takes too, `bulla info {directory}` shows.\n\n"
            );
        }
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
        if self.erasure {
            let _ = write!(
                text,
                "\nThe vault in {keys} has the keys of data subjects, and the key of pseudonyms.\n\
                 Keep a copy of it, with roots beside it: what is personal nobody can read without.\n"
            );
        }
        if let Some(key) = &self.erasure_key {
            let _ = write!(
                text,
                "\nErasures are ordered with this; it belongs with whoever answers for them, not on this host:\n\n  \
                 {}   who has it decides who is erased\n",
                key.display()
            );
        }
        if let Some(key) = &self.pseudonym_key {
            let _ = write!(
                text,
                "\nPseudonyms are made with this, which stays here, and of which you keep a copy:\n\n  \
                 {}   with another one the same names have others\n\n\
                 Who takes it can test whether a pseudonym is that of a name they guess.\n",
                key.display()
            );
        }
        text
    }
}
