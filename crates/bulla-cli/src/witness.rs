//! `bulla witness`.

use crate::exit::{Exit, Failure};
use crate::interrupt::{Interrupt, on_hang_up};
use crate::output::{print, print_json};
use bulla::environment::{SystemClock, SystemRandom};
use bulla::store::FileSystem;
use bulla::store::inside;
use bulla::text::spelling::counted;
use bulla_proof::{CosignatureAlgorithm, LogKey};
use bulla_witness::server::{Server, Tls};
use bulla_witness::{Tell, Witness as Cosigner};
use serde::Deserialize;
use serde_json::json;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest file that is read here, in bytes.
const MOST: u64 = 4 << 20;

/// A configuration that has every key.
const EXAMPLE: &str = "\
# A witness: it cosigns checkpoints of the logs that are named below, each only where it goes on from the one before.
# `bulla witness --new FILE` begins it; `bulla witness FILE` runs it.

# Its name, by convention a URL without its scheme. It is in its public key, and never changes.
name = \"witness.example.com/w1\"
# How it signs, which never changes either: \"ml-dsa-44\" is secure against quantum computers, too.
algorithm = \"ed25519\"
# Its key, and what was signed with it; and what it has seen of each log. They belong on different disks: where the state is
# lost, or put back from a backup, what lies beside the key tells.
keys = \"/var/lib/bulla-witness/keys\"
state = \"/var/lib/bulla-witness/state\"

# Where it listens: without `[tls]` for a proxy that has TLS.
listen = \"127.0.0.1:6962\"

# The public keys of the logs (`bulla info DIR`), whose names are their origins. Several of one origin are the keys of one log.
# At SIGHUP they are read anew; the rest counts from the next start.
logs = []

# A table comes last.
# [tls]
# certificate = \"/etc/bulla/witness.crt\"
# key = \"/etc/bulla/witness.key\"
";

/// Cosign the checkpoints of other logs.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "bulla witness FILE [--json]\n       bulla witness --new FILE [--json]\n       bulla witness --example",
    after_help = "\
A witness cosigns a checkpoint only where its tree goes on from the last one that it cosigned (C2SP
tlog-witness), so whoever asks for its signature cannot be shown another history. It keeps what
it signs in two places before it signs; where one is lost, or its state is of an earlier time, it
does not start. At SIGHUP it reads `logs` anew.
A log asks it by a line of its policy: witness NAME VKEY URL (`bulla init --witness-policy`).

Example:
  bulla witness --example > witness.toml
  bulla witness --new witness.toml; bulla witness witness.toml"
)]
pub(crate) struct Witness {
    /// The configuration, in TOML
    #[arg(value_name = "FILE", required_unless_present = "example")]
    file: Option<PathBuf>,

    /// Begin a new witness: make its key and an empty state, and print its public key
    #[arg(long, conflicts_with = "example")]
    new: bool,

    /// Print a configuration that has every key and says what each does
    #[arg(long, conflicts_with_all = ["file", "json"])]
    example: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    name: String,
    #[serde(default)]
    algorithm: Algorithm,
    keys: PathBuf,
    state: PathBuf,
    listen: SocketAddr,
    tls: Option<TlsFiles>,
    logs: Vec<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
enum Algorithm {
    #[default]
    #[serde(rename = "ed25519")]
    Ed25519,
    #[serde(rename = "ml-dsa-44")]
    MlDsa44,
}

impl Algorithm {
    /// As the configuration has it.
    fn name(algorithm: CosignatureAlgorithm) -> &'static str {
        match algorithm {
            CosignatureAlgorithm::Ed25519 => "ed25519",
            CosignatureAlgorithm::MlDsa44 => "ml-dsa-44",
        }
    }
}

impl From<Algorithm> for CosignatureAlgorithm {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Ed25519 => CosignatureAlgorithm::Ed25519,
            Algorithm::MlDsa44 => CosignatureAlgorithm::MlDsa44,
        }
    }
}

impl Config {
    /// The keys of the logs, of the configuration in `file`.
    fn logs(&self, file: &Path) -> Result<Vec<LogKey>, Failure> {
        let parse = |key: &String| {
            key.parse::<LogKey>().map_err(|error| {
                Failure::usage(format!("{}: `logs`: \"{}\": {error}", file.display(), key.escape_debug()))
            })
        };
        self.logs.iter().map(parse).collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl Witness {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let Some(file) = self.file.as_deref().filter(|_| !self.example) else {
            print(EXAMPLE)?;
            return Ok(Exit::Done);
        };
        let config = read_config(file)?;
        let stores = [&config.state, &config.keys].map(|path| Arc::new(FileSystem::new(path)));
        let [state, keys] = stores;
        if self.new {
            let key = Cosigner::begin(&config.name, config.algorithm.into(), &*state, &*keys, &SystemRandom)?;
            let text = format!(
                "Began a witness; its public key, for the policies of those who rely on it:\n\n  {key}\n"
            );
            let told = if self.json { print_json(&json!({ "vkey": key.to_string() })) } else { print(&text) };
            return told
                .map(|()| Exit::Done)
                .map_err(|failure| failure.but_done(format!("the witness is begun; its public key: {key}")));
        }
        if config.logs.is_empty() {
            let own = Cosigner::key_in(&*keys)?;
            return Err(Failure::usage(format!(
                "{}: `logs` is empty: a witness has to be told the keys of the logs that it cosigns for (`public key` of `bulla info`); its \
                 own public key, for their policies, is {own}",
                file.display()
            )));
        }
        let logs = config.logs(file)?;
        let tell: Tell = Arc::new(|what: &str| note!("{what}"));
        let witness = Arc::new(Cosigner::open((state, keys), logs, Arc::new(SystemClock), tell.clone())?);
        if witness.key().name() != config.name {
            return Err(Failure::usage(format!(
                "{}: `name` is \"{}\", and the key in {} is of \"{}\"",
                file.display(),
                config.name.escape_debug(),
                config.keys.display(),
                witness.key().name().escape_debug()
            )));
        }
        if witness.key().algorithm() != config.algorithm.into() {
            return Err(Failure::usage(format!(
                "{}: `algorithm` is \"{}\", and the key in {} is of another one, \"{}\": a witness keeps its key; one with another key is \
                 begun in empty directories (`--new`)",
                file.display(),
                Algorithm::name(config.algorithm.into()),
                config.keys.display(),
                Algorithm::name(witness.key().algorithm())
            )));
        }
        let tls = config.tls.as_ref().map(read_tls).transpose()?;
        let plain = tls.is_none();
        let server = Server::listen(config.listen, tls).map_err(|error| {
            Failure::new(Exit::Environment, format!("listening at {} (`listen`): {error}", config.listen))
        })?;
        let stop = server.stopper();
        let (reloaded, anew) = (witness.clone(), file.to_owned());
        on_hang_up(move || reload(&reloaded, &anew))?;
        let _interrupt = Interrupt::on_each_but_hang_up(move |ends| {
            stop.stop();
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
        })?;
        if plain && !config.listen.ip().is_loopback() {
            note!(
                "there is no `[tls]`, and other machines can reach {}: logs ask https alone",
                config.listen
            );
        }
        note!(
            "{} cosigns for {}, at {}",
            witness.key(),
            counted(witness.logs().len() as u64, "log"),
            server.address()
        );
        let served = server.run(&witness, &tell);
        served.map_err(|error| {
            Failure::new(Exit::Environment, format!("listening at {}: {error}", config.listen))
        })?;
        if self.json {
            let logs = witness
                .logs()
                .into_iter()
                .map(|(origin, frames)| json!({ "origin": origin, "frames": frames }));
            print_json(&json!({ "vkey": witness.key().to_string(), "logs": logs.collect::<Vec<_>>() }))?;
        }
        Ok(Exit::Done)
    }
}

/// Has a witness cosign for the logs that its configuration names by now. Where something is wrong with these, that is told, and the old ones
/// count.
fn reload(witness: &Cosigner, file: &Path) {
    let read = || {
        let logs = read_config(file)?.logs(file)?;
        witness.set_logs(logs).map_err(Failure::from)
    };
    match read() {
        Ok(()) => {
            note!("read {} anew: cosigns for {}", file.display(), counted(witness.logs().len() as u64, "log"))
        }
        Err(Failure { message, .. }) => note!("the logs stay as they were: {message}"),
    }
}

fn read_config(file: &Path) -> Result<Config, Failure> {
    let wrong = |what: &dyn std::fmt::Display| Failure::usage(format!("{}: {what}", file.display()));
    let text = String::from_utf8(read(file)?).map_err(|_| wrong(&"it is not UTF-8"))?;
    let config = toml::from_str::<Config>(&text).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        wrong(&format!("{line}{}", error.message()))
    })?;
    if config.keys == config.state
        || inside(&config.keys, &config.state)
        || inside(&config.state, &config.keys)
    {
        return Err(wrong(
            &"`keys` and `state` are one directory, or one is in the other: what is lost with it nothing tells",
        ));
    }
    Ok(config)
}

fn read_tls(files: &TlsFiles) -> Result<Tls, Failure> {
    let certificate = read(&files.certificate)?;
    let key = zeroize::Zeroizing::new(read(&files.key)?);
    let named = |error: bulla::Error| {
        Failure::from(error.after(format!("{} and {}", files.certificate.display(), files.key.display())))
    };
    Tls::new(&certificate, &key).map_err(named)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Environment, format!("reading {}: {error}", file.display()))
    };
    let mut bytes = Vec::new();
    std::fs::File::open(file).and_then(|opened| opened.take(MOST).read_to_end(&mut bytes)).map_err(failed)?;
    Ok(bytes)
}
