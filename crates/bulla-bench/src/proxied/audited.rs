//! `bulla proxy` before the server, and its log.

use super::process::Running;
use super::setup::Setup;
use crate::append::identity;
use crate::measure::{self, figure};
use crate::outcome::{Failure, Outcome};
use bulla::vault::{Settings, VaultReader};
use bulla::{Created, Init, Query, Reader, default_keys};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

/// What the proxy says before each address.
const LISTENING: &str = "listening at 127.0.0.1:";
const METRICS: &str = "metrics are at http://";

/// How the proxy is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Audit {
    pub(crate) mode: ReplyMode,
    /// By which rule keys have data subjects, if any.
    pub(crate) rule: Option<Rule>,
    pub(crate) erasure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReplyMode {
    Async,
    BeforeReply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rule {
    /// Of `key:42`, 42.
    Key,
    /// Of a hash, what is in its field `USR`.
    HashField,
}

/// A proxy that runs.
pub(crate) struct Audited {
    running: Running,
    port: u16,
    metrics: String,
    /// Takes what it goes on to say.
    said: JoinHandle<String>,
    directory: PathBuf,
    created: Created,
}

/// A log whose proxy has ended.
pub(crate) struct Ended {
    directory: PathBuf,
    created: Created,
    /// Entries by what the proxy counted.
    recorded: u64,
    /// Bytes of segments, and syncs that they were written in.
    written: f64,
    syncs: f64,
}

impl Audited {
    pub(crate) fn start(audit: Audit, server: u16, setup: &Setup, place: &Path) -> Result<Self, Failure> {
        let directory = place.join("audit");
        let created = Init::default().erasure(audit.erasure).create(&directory)?;
        let file = place.join("proxy.toml");
        std::fs::write(&file, configuration(audit, server, setup.workers, &directory))?;
        let program = setup.bulla.as_deref().unwrap_or(Path::new("bulla"));
        let mut command = Command::new(program);
        command.arg("proxy").arg(&file).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command)?;
        let Some(said) = running.child().stderr.take() else { return Err("nothing is piped".into()) };
        let mut said = BufReader::new(said);
        let (mut text, mut metrics) = (String::new(), String::new());
        let port = loop {
            let start = text.len();
            if said.read_line(&mut text)? == 0 {
                return Err(format!("{} proxy ended: {text}", program.display()).into());
            }
            let line = serde_json::from_str::<Value>(&text[start..]).unwrap_or_default();
            let message = line["message"].as_str().unwrap_or_default();
            if let Some(port) = message.strip_prefix(LISTENING) {
                break port.parse()?;
            }
            if let Some(address) = message.strip_prefix(METRICS) {
                metrics = address.trim_end_matches("/metrics").to_owned();
            }
        };
        let said = std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = said.read_to_string(&mut rest);
            rest
        });
        Ok(Audited { running, port, metrics, said, directory, created })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// Ends the proxy in order.
    pub(crate) fn end(mut self) -> Result<Ended, Failure> {
        let metrics = self.metrics()?;
        let metric = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.map_or_else(
                || Err(format!("there is no metric {name}").into()),
                |value| Ok(value.parse::<f64>()?),
            )
        };
        let (written, syncs): (Result<_, Failure>, Result<_, Failure>) =
            (metric("bulla_log_written_bytes_total"), metric("bulla_log_syncs_total"));
        let status = self.running.end()?;
        let mut told = String::new();
        if let Some(out) = &mut self.running.child().stdout {
            out.read_to_string(&mut told)?;
        }
        let said = self.said.join().unwrap_or_default();
        if !status.success() {
            return Err(format!("the proxy ended with {status}: {said}").into());
        }
        let told = serde_json::from_str::<Value>(&told)?;
        let recorded = told["recorded"].as_u64().ok_or("the proxy does not tell how many entries it made")?;
        let (directory, created) = (self.directory, self.created);
        Ok(Ended { directory, created, recorded, written: written?, syncs: syncs? })
    }

    fn metrics(&self) -> Result<String, Failure> {
        let mut stream = TcpStream::connect(&self.metrics)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Ended {
    /// That the log has so many entries, and that the proxy says so, too.
    pub(crate) fn check(&self, entries: u64) -> Result<(), Failure> {
        let logged = bulla::info(&self.directory)?.entries;
        match logged == entries && self.recorded == entries {
            true => Ok(()),
            false => Err(format!(
                "the log has {logged} entries and the proxy counted {}: there have to be {entries}",
                self.recorded
            )
            .into()),
        }
    }

    pub(crate) fn tell(&self, outcome: &mut Outcome) {
        let entries = self.recorded as f64;
        let bytes = [self.directory.clone(), default_keys(&self.directory)]
            .iter()
            .filter_map(|directory| Some(measure::files(directory).ok()?.0))
            .sum::<u64>();
        outcome.set(figure::ENTRIES, entries);
        outcome.set(figure::DISK, bytes as f64 / entries);
        outcome.set("written_bytes_per_sync", self.block());
    }

    /// How many bytes the log wrote before each sync, on average.
    pub(crate) fn block(&self) -> f64 {
        self.written / self.syncs.max(1.0)
    }

    /// How many entries each data subject has, and how many have none: as whoever has the keys reads them.
    pub(crate) fn subjects(&self) -> Result<BTreeMap<Option<String>, u64>, Failure> {
        let mut reader = Reader::open(&self.directory)?
            .key(self.created.verifier_key.clone())
            .identity(Arc::new(identity(&self.directory)?));
        if self.created.erasure_key.is_some() {
            let keys = default_keys(&self.directory);
            let vault = VaultReader::open(&keys, self.created.id, &Settings::default())?;
            reader = reader.group_keys(Arc::new(vault));
        }
        let mut counts = BTreeMap::new();
        let mut add = |subject: Option<&str>| *counts.entry(subject.map(str::to_owned)).or_default() += 1;
        reader.for_each(&Query::new(), |_, entry| {
            match &entry.subjects {
                None => add(None),
                Some(subjects) => subjects.iter().for_each(|subject| add(Some(subject))),
            }
            Ok(())
        })?;
        Ok(counts)
    }
}

fn configuration(audit: Audit, server: u16, workers: u32, directory: &Path) -> String {
    let mode = match audit.mode {
        ReplyMode::Async => "async",
        ReplyMode::BeforeReply => "before-reply",
    };
    let rule = match audit.rule {
        None => "",
        Some(Rule::Key) => "[[rules]]\nkey = \"key:{subject}\"\n",
        Some(Rule::HashField) => "[[rules]]\nkey = \"key*\"\nhash_field = \"USR\"\n",
    };
    // All keys of a reply are listed, so that what the log has to have is known.
    format!(
        "mode = {mode:?}\nworkers = {workers}\nmetrics = \"127.0.0.1:0\"\n\
         [log]\ndirectory = {directory:?}\n[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\naddress = \"127.0.0.1:{server}\"\n\
         [limits]\nkept = \"4 MiB\"\nkept_items = 200000\nlisted_keys = 100000\n{rule}"
    )
}
