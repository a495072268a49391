//! `bulla info`.

use crate::exit::{Exit, Failure};
use crate::log_paths::{Also, LogPaths};
use crate::lost_frames::LostFramesJson;
use crate::output::{on_line, print, print_json, time};
use crate::path_states::{MissingPathJson, PathJson};
use bulla::control::{Client, Status};
use bulla::environment::{Clock, SystemClock};
use bulla::store::FileSystem;
use bulla::text::spelling::{agreeing, counted};
use bulla::text::time::format_seconds;
use bulla::vault::ReplicaState;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Say what a log is and how much is in it, without checking it.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  bulla info audit")]
pub(crate) struct Info {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    also: Also,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Info {
    pub(crate) fn run(mut self) -> Result<Exit, Failure> {
        self.place.and(&self.also);
        let info = bulla::info_of(self.place.log()?)?;
        let mut failures = info.untold.iter().cloned().collect::<Vec<_>>();
        let mut facts = Facts::from(info);
        facts.vault_replicas = self.replicas(&mut failures);
        facts.pin = self.pin(&facts);
        self.refusals(&mut facts, &mut failures);
        facts.dropping = self.dropping(&mut failures);
        facts.keys_failures = failures;
        if let Some(status) = self.writer(&facts) {
            facts.writer = Some(status.process);
            facts.tell_replicas(status.vault_replicas);
        }
        if self.json { print_json(&facts) } else { print(&facts.to_text()) }?;
        if let Some(bytes) = facts.unsigned_bytes.filter(|bytes| *bytes > 0) {
            let follow = agreeing(bytes, "follows the checkpoint and is", "follow the checkpoint and are");
            note!("{} {follow} not signed; `bulla verify` tells of them", counted(bytes, "byte"));
        }
        Ok(Exit::Done)
    }
}

impl Info {
    /// Where replicas of the vault lie, for whoever may look into the key directory.
    fn replicas(&self, failures: &mut Vec<String>) -> Option<Vec<Replica>> {
        told(bulla::keys::settings::load(&FileSystem::new(self.place.keys())), failures)?;
        let places = self.place.vault_replicas().ok()??;
        Some(places.iter().map(|place| Replica::at(&place.to_string_lossy())).collect())
    }

    /// The pin that the keys remember, for whoever may look into the key directory.
    fn pin(&self, facts: &Facts) -> Option<Pin> {
        let path = self.place.host_settings().ok()??.pinned()?.to_owned();
        let frames = facts.vkey.parse().map(|key| bulla::pinned_frames(&path, &key)).ok()?;
        let (frames, failure) = match frames {
            Ok(Some(frames)) => (Some(frames), None),
            Ok(None) => (None, Some("it is gone".to_owned())),
            Err(error) => (None, Some(error.to_string())),
        };
        // What follows the checkpoint may be what the pin covers: it is advanced before the checkpoint is.
        let behind = frames.is_some_and(|frames| frames > facts.tree_size) && facts.unsigned_bytes == Some(0);
        Some(Pin { path: path.display().to_string(), frames, failure, behind })
    }

    /// Which witnesses refuse the log, for whoever may look into the key directory.
    fn refusals(&self, facts: &mut Facts, failures: &mut Vec<String>) {
        let refusals = bulla::keys::refusals::load(&FileSystem::new(self.place.keys()));
        for refusal in told(refusals, failures).into_iter().flatten() {
            if let Some(witness) = facts.witnesses.iter_mut().find(|witness| witness.key_id == refusal.key_id)
            {
                witness.refusal = Some(Refusal {
                    time: format_seconds(refusal.time),
                    frames: refusal.frames,
                    why: refusal.why,
                });
            }
        }
    }

    /// What the key directory notes of entries that are dropped, for whoever may look into it.
    fn dropping(&self, failures: &mut Vec<String>) -> Option<Dropping> {
        let note = bulla::keys::dropping::load(&FileSystem::new(self.place.keys()));
        let note = told(note, failures)??;
        let since = i64::try_from(note.from).ok().and_then(format_seconds);
        Some(Dropping { entries: note.entries, since, over: !note.open })
    }

    /// What the process that has the log open says, to whoever may ask it.
    fn writer(&self, facts: &Facts) -> Option<Status> {
        let client = facts.locked.then(|| Client::connect(self.place.keys()))?;
        client.ok()?.map(|client| client.status().clone())
    }
}

/// What a file of the key directory says. That it cannot be told is a failure, but for whoever may not look into it.
fn told<T>(read: bulla::Result<T>, failures: &mut Vec<String>) -> Option<T> {
    let may_not = |error: &bulla::Error| {
        error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            let why = error.to_string();
            if !may_not(&error) && failures.iter().all(|told| !told.starts_with(&why)) {
                failures.push(why);
            }
            None
        }
    }
}

#[derive(Serialize)]
struct Facts {
    origin: String,
    vkey: String,
    /// Absent without a key of ML-DSA-44.
    #[serde(skip_serializing_if = "Option::is_none")]
    vkey_ml_dsa: Option<String>,
    id: String,
    hash: String,
    recipients: Vec<String>,
    /// The rules for fields; the others are kept.
    fields: BTreeMap<&'static str, String>,
    /// Whether personal fields can be erased.
    erasure: bool,
    common: Option<u32>,
    /// The key that orders to erase, to hold and to release are signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    erasure_key: Option<String>,
    entries: u64,
    tree_size: u64,
    root: String,
    bytes: u64,
    /// Of these, bytes that follow the checkpoint, which nobody has signed; `null` where a writer is at work.
    unsigned_bytes: Option<u64>,
    segments: u64,
    /// The writing host's clock at the newest epoch or event that the checkpoint covers.
    signed_time: Option<String>,
    /// The same for people, who are told of a time that is no date, too.
    #[serde(skip)]
    signed: String,
    /// How much time passes at most until the next one, as the log promises.
    heartbeat: Option<String>,
    /// The witnesses that the log asks; absent where it asks none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    witnesses: Vec<Witness>,
    /// Keys of whoever made the log; absent where there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, String>,
    /// Where replicas of the vault lie; `null` where the key directory, which says so, cannot be read.
    vault_replicas: Option<Vec<Replica>>,
    /// The log's pin; `null` where it has none, and where the key directory, which says so, cannot be read.
    pin: Option<Pin>,
    /// The paths of the log, and those that it has lost; absent where it has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<PathJson>,
    /// The paths of the log that are not there; absent where all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_paths: Vec<MissingPathJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_with_path: Option<LostFramesJson>,
    /// The first and the last of the frames that were signed behind those that this tells of, which no checkpoint covers on the paths that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_reach: Option<[u64; 2]>,
    /// What the log drops, or dropped and no durable event of it tells; `null` where it does not, and where the key directory, which says
    /// so, cannot be read.
    dropping: Option<Dropping>,
    /// What the key directory would say and does not, being damaged; absent where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys_failures: Vec<String>,
    /// Whether a writer has the log open.
    locked: bool,
    /// The process that has, where it is known.
    writer: Option<u32>,
}

#[derive(Serialize)]
struct Dropping {
    /// How many entries at least.
    entries: u64,
    since: Option<String>,
    /// Whether something takes the log again, so that no more are dropped.
    over: bool,
}

#[derive(Serialize)]
struct Pin {
    path: String,
    /// How many frames it covers.
    frames: Option<u64>,
    /// Why that is not known.
    failure: Option<String>,
    /// Whether these are more than the log has.
    behind: bool,
}

#[derive(Serialize)]
struct Witness {
    name: String,
    vkey: String,
    url: String,
    /// How many frames the newest checkpoint covers that it has cosigned; `null` where the log has none of it.
    frames: Option<u64>,
    /// The time in that cosignature, by the witness's clock.
    time: Option<String>,
    /// How long ago that was by this machine's clock, in seconds; zero of a time that is yet to come.
    age: Option<u64>,
    /// That it refuses the log, having cosigned another history of it: as the key directory remembers it, where that can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refusal>,
    #[serde(skip)]
    key_id: u32,
}

#[derive(Serialize)]
struct Refusal {
    /// Since when, by the writing host's clock.
    time: Option<String>,
    /// How many frames it refused to cosign then.
    frames: u64,
    why: String,
}

impl From<bulla::WitnessInfo> for Witness {
    fn from(info: bulla::WitnessInfo) -> Self {
        let now = SystemClock.now().div_euclid(1_000_000_000);
        let since_then = |time: i64| u64::try_from(now.saturating_sub(time)).unwrap_or(0);
        let time = info.newest.and_then(|(_, time)| i64::try_from(time).ok());
        Witness {
            name: info.name,
            vkey: info.key.to_string(),
            url: info.address,
            frames: info.newest.map(|(frames, _)| frames),
            time: time.and_then(format_seconds),
            age: time.map(since_then),
            refusal: None,
            key_id: info.key.key_id(),
        }
    }
}

impl Witness {
    fn to_text(&self) -> String {
        let cosigned = match (self.frames, self.age) {
            (Some(frames), Some(age)) => {
                let age = bulla::format_age(Duration::from_secs(age));
                format!("{}  cosigned {} {age} ago", self.name, counted(frames, "frame"))
            }
            _ => format!("{}  has cosigned nothing yet", self.name),
        };
        match &self.refusal {
            None => cosigned,
            Some(Refusal { time, frames, why }) => {
                let since = time.as_deref().unwrap_or("an unknown time");
                format!(
                    "{cosigned}; REFUSES the log since {since}, at {}: {}",
                    counted(*frames, "frame"),
                    on_line(why)
                )
            }
        }
    }
}

#[derive(Serialize)]
struct Replica {
    path: String,
    /// What the writer says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_use: Option<bool>,
    /// Why it is not in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl From<ReplicaState> for Replica {
    fn from(ReplicaState { path, failure }: ReplicaState) -> Self {
        Replica { path, in_use: Some(failure.is_none()), failure }
    }
}

impl Replica {
    fn at(path: &str) -> Self {
        Replica { path: path.to_owned(), in_use: None, failure: None }
    }

    fn to_text(&self) -> String {
        match (self.in_use, &self.failure) {
            (None, _) => self.path.clone(),
            (_, None) => format!("{}  in use", self.path),
            (_, Some(failure)) => format!("{}  left out: {failure}", self.path),
        }
    }
}

impl From<bulla::Info> for Facts {
    fn from(info: bulla::Info) -> Self {
        Facts {
            origin: info.origin,
            vkey: info.vkey.to_string(),
            vkey_ml_dsa: info.vkey_ml_dsa.as_ref().map(ToString::to_string),
            id: info.id.to_string(),
            hash: info.hash,
            recipients: info.recipients,
            fields: info.fields.iter().map(|(field, rule)| (field, rule.to_string())).collect(),
            erasure: info.erasure,
            common: info.common,
            erasure_key: info.erasure_key.map(|key| key.to_string()),
            entries: info.entries,
            tree_size: info.tree_size,
            root: info.root.to_base64(),
            bytes: info.bytes,
            unsigned_bytes: info.unsigned_bytes,
            segments: info.segments,
            signed_time: info.signed_time.and_then(format_seconds),
            signed: info.signed_time.map_or_else(|| "never".to_owned(), time),
            heartbeat: info.heartbeat.map(bulla::format_age),
            witnesses: info.witnesses.into_iter().map(Witness::from).collect(),
            extra: info.extra,
            vault_replicas: None,
            pin: None,
            paths: info.paths.iter().map(PathJson::from).collect(),
            missing_paths: info.missing_paths.iter().map(MissingPathJson::from).collect(),
            lost_with_path: LostFramesJson::of(&info.lost),
            out_of_reach: info.out_of_reach.as_ref().map(|frames| [frames.start, frames.end - 1]),
            dropping: None,
            keys_failures: Vec::new(),
            locked: info.locked,
            writer: None,
        }
    }
}

impl Facts {
    /// Which replicas a writer has, and which it has left out; of those that count only when it opens the log again it
    /// says nothing.
    fn tell_replicas(&mut self, states: Vec<ReplicaState>) {
        let replicas = self.vault_replicas.get_or_insert_default();
        replicas.retain(|replica| states.iter().all(|state| state.path != replica.path));
        replicas.extend(states.into_iter().map(Replica::from));
    }

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
            ("common", bulla::config::format_common(self.common)),
            ("entries", number(self.entries)),
            ("tree size", number(self.tree_size)),
            ("root", self.root.clone()),
            ("bytes", number(self.bytes)),
            ("segments", number(self.segments)),
            ("signed", self.signed.clone()),
            ("heartbeat", self.heartbeat.clone().unwrap_or_else(|| "off".to_owned())),
        ]);
        lines.extend(self.witnesses.iter().map(|witness| ("witness", witness.to_text())));
        lines.extend(self.extra.iter().map(|(name, value)| (&name[..], value.clone())));
        lines.extend(self.vault_replicas.iter().flatten().map(|replica| ("replica", replica.to_text())));
        lines.extend(self.pin.iter().map(|pin| {
            let state = match (pin.frames, &pin.failure) {
                (_, Some(failure)) => failure.clone(),
                (frames, None) => format!("covers {}", counted(frames.unwrap_or_default(), "frame")),
            };
            let behind = match pin.behind {
                true => format!(
                    "; the log is BEHIND it, its checkpoint covers {}: run `bulla verify`",
                    self.tree_size
                ),
                false => String::new(),
            };
            ("pin", format!("{}  {state}{behind}", pin.path))
        }));
        lines.extend(self.paths.iter().map(|path| ("path", path.to_text())));
        lines.extend(self.lost_with_path.iter().map(|lost| ("lost", lost.to_text())));
        lines.extend(self.out_of_reach.iter().map(|[first, last]| {
            let (frames, them) = match first == last {
                true => (format!("frame {first} was"), "it"),
                false => (format!("frames {first} to {last} were"), "them"),
            };
            let told =
                format!("{frames} signed, and no checkpoint that is there covers {them}: run `bulla verify`");
            ("NOT HERE", told)
        }));
        lines.extend(self.dropping.iter().map(|dropping| {
            let (more, since) = (if dropping.over { "" } else { " at least" }, dropping.since.as_deref());
            let since = since.map_or_else(String::new, |since| format!(" since {since}"));
            (
                "dropped",
                format!(
                    "{}{more}{since}, which no event of the log tells yet",
                    counted(dropping.entries, "entry")
                ),
            )
        }));
        lines.extend(self.keys_failures.iter().map(|failure| ("not known", on_line(failure).to_string())));
        lines.push(match (self.locked, self.writer) {
            (false, _) => ("writer", "none".to_owned()),
            (true, None) => ("writer", "has it open".to_owned()),
            (true, Some(process)) => ("writer", format!("process {process} has it open")),
        });
        // It has some 1,800 characters.
        lines.extend(self.vkey_ml_dsa.iter().map(|key| ("ML-DSA-44", key.clone())));
        lines.iter().map(|(name, value)| format!("{name:<10}  {value}\n")).collect()
    }
}
