//! `bulla verify`.

use crate::append::tell_made_pin;
use crate::exit::{Exit, Failure};
use crate::group_keys;
use crate::identity::Identities;
use crate::interrupt;
use crate::log_paths::{Also, Bytes, LogPaths, Secret, error_in};
use crate::output::{on_line, print, print_json, progress_bar, time};
use crate::public_key::key_in;
pub(crate) use crate::public_key::parse_key;
use crate::whose::{Trusted, Whose};
use bulla::keys::group::GroupKeys;
use bulla::keys::recipients::IdentityFile;
use bulla::store::{FileSystem, Store};
use bulla::text::spelling::counted;
use bulla::text::time::format_seconds;
use bulla::{
    Finding, FindingKind, PinReport, Progress, Report, Severity, VerifierKey, WitnessReport, WitnessSeen,
};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Check a whole log, with all the keys that are at hand.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Uses seal.key, seal.state, identity.age and the pin of the key directory where they
are there. Exit code 1 where the log is not what was written.

What follows the newest checkpoint nobody has signed yet: that is said, and is no
violation, but where seal.key or seal.state is at hand and shows that neither a
writer nor a crash can have left it.

Example:
  bulla verify audit --public --key example.com/audit+2d8c0a31+AUJ3...
  bulla verify /mnt/mirror/audit --public --newer-than 10m")]
pub(crate) struct Verify {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    also: Also,

    /// Use public data alone, whatever keys are at hand
    #[arg(long, conflicts_with_all = ["seal_key", "identity"])]
    public: bool,

    #[command(flatten)]
    whose: Whose,

    #[command(flatten)]
    erasure_keys: ErasureKeys,

    /// The seal key, to check every seal [default: seal.key of the keys]
    #[arg(long, value_name = "FILE")]
    seal_key: Option<PathBuf>,

    #[command(flatten)]
    identities: Identities,

    /// A copy of the checkpoint that lies elsewhere, from which the log has to go on: advanced where
    /// no violation is found; made where there is none
    #[arg(long, value_name = "FILE")]
    pin: Option<PathBuf>,

    /// Take it for a violation where anything follows the checkpoint: the log was closed
    #[arg(long)]
    strict: bool,

    /// Take it for a violation where the newest signature is older than this (10m, 36h): of a
    /// log with `log.heartbeat`
    #[arg(long, value_name = "T", value_parser = bulla::parse_age)]
    newer_than: Option<Duration>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Verify {
    pub(crate) fn run(mut self) -> Result<Exit, Failure> {
        self.place.and(&self.also);
        interrupt::exit_at_once()?;
        let trusted = self.whose.read()?;
        let erasure_keys = self.erasure_keys.parse()?;
        let keys = (&trusted, &erasure_keys[..]);
        let at_hand = match self.public {
            true => AtHand::default(),
            false => self.at_hand().map_err(|failure| self.hint(failure))?,
        };
        let groups = self.groups(&at_hand).map_err(Failure::from);
        let verified = groups.and_then(|groups| self.verify(keys, &at_hand, groups, PinUse::Advanced));
        let (report, level) = verified.or_else(|failure| {
            // What is wrong with the vault, or with a pin, says nothing of the log, of which the violations come first.
            let without =
                |pins| self.verify(keys, &at_hand, Groups::NotOpened(failure.message.clone()), pins);
            let held = without(PinUse::Held);
            // Without keys a pin that was named fails in the same way, and one that is remembered is left out.
            let is_of_pin = held.is_err() || self.pin.as_deref().is_some_and(|pin| !pin.exists());
            let (report, level) = held.or_else(|failure| without(PinUse::None).map_err(|_| failure))?;
            match report.ok {
                true if is_of_pin => Err(failure),
                true => Err(self.hint(failure)),
                false => Ok((report, level)),
            }
        })?;
        match self.json {
            true => print_json(&ReportJson::new(&report, &level)),
            false => print(&to_text(&report, level, keys.0)),
        }?;
        if let Some(PinReport { path, before, frames, failure, .. }) = &report.pin {
            if let (None, Some(frames)) = (before, frames) {
                tell_made_pin(path, *frames);
            }
            if let Some(failure) = failure {
                let message = format!("the log was verified, and its pin was not advanced: {failure}");
                return Err(Failure::new(Exit::Environment, message));
            }
        }
        Ok(if report.ok { Exit::Done } else { Exit::Violation })
    }

    fn at_hand(&self) -> Result<AtHand, Failure> {
        let pin = self.place.host_settings()?.and_then(|host| host.pinned().map(Path::to_owned));
        Ok(AtHand {
            pin,
            seal_key: self.place.seal_key(self.seal_key.as_deref())?,
            seal_state: self.place.seal_state()?,
            identity: self.identities.load(&self.place)?,
        })
    }

    /// What a person can do whose keys do not fit.
    fn hint(&self, failure: Failure) -> Failure {
        match self.public {
            true => failure,
            false => Failure { message: format!("{}; --public needs no keys", failure.message), ..failure },
        }
    }

    /// The log with its paths. Which ones the key directory names counts as what is at hand.
    fn log(&self) -> bulla::Result<Arc<dyn Store>> {
        match self.public {
            true => self.place.log_without_keys(),
            false => self.place.log(),
        }
    }

    /// Whether the log has erasure, as far as its configuration is one.
    fn has_erasure(&self) -> bool {
        self.log().and_then(|log| bulla::config::load(&*log)).is_ok_and(|(log, _)| log.erasure)
    }

    /// Where the keys of data subjects come from.
    fn groups(&self, at_hand: &AtHand) -> bulla::Result<Groups> {
        // A configuration that is not one is a finding.
        let log = self.log().and_then(|log| bulla::config::load(&*log));
        let (Ok((log, _)), Some(_)) = (log, &at_hand.identity) else { return Ok(Groups::None) };
        Ok(match group_keys::vault(&self.place, &log)? {
            Some(vault) => Groups::Opened(vault),
            None if log.erasure => Groups::NotOpened("no vault is at hand".to_owned()),
            None => Groups::None,
        })
    }

    /// Verifies with what is at hand.
    fn verify(
        &self,
        (trusted, erasure_keys): (&Trusted, &[VerifierKey]),
        at_hand: &AtHand,
        groups: Groups,
        pins: PinUse,
    ) -> Result<(Report, Level), Failure> {
        let AtHand { seal_key, seal_state, identity, pin: remembered } = at_hand;
        let mut verify = bulla::Verify::open_store(self.log()?)?.strict(self.strict);
        if let Some(age) = self.newer_than {
            verify = verify.newer_than(age);
        }
        verify = match trusted {
            Trusted::Nobody => verify,
            Trusted::Key(key) => verify.key((**key).clone()),
            Trusted::Policy(policy) => verify.policy((**policy).clone()),
        };
        verify = erasure_keys.iter().cloned().fold(verify, bulla::Verify::erasure_key);
        if let Some(key) = seal_key {
            verify = verify.seal_key(&key.text).map_err(|error| self.hint(key.error(error)))?;
        }
        let seals = verify.checks_seals();
        if !self.public {
            let keys = FileSystem::new(self.place.keys());
            verify = verify.sources_key(&keys).map_err(|error| self.hint(error.into()))?;
        }
        let sources = verify.checks_sources();
        if let Some((path, bytes)) = seal_state {
            verify = verify.seal_state(bytes).map_err(|error| self.hint(error_in(path, error)))?;
        }
        if let Some(pin) = remembered.as_ref().filter(|_| pins != PinUse::None) {
            verify = verify.known_pin(pin);
        }
        if let Some(pin) = &self.pin {
            self.place.refuse_inside(pin)?;
            verify = match pins {
                PinUse::Advanced => verify.pin(pin),
                PinUse::Held if pin.exists() => verify.known_pin(pin),
                PinUse::Held | PinUse::None => verify,
            };
        }
        if let Some(identity) = identity {
            verify = verify.identity(identity.clone());
        }
        if let Groups::Opened(vault) = &groups {
            verify = verify.group_keys(vault.clone());
        }
        let bar = progress_bar(1);
        let shown = bar.clone();
        let progress = move |Progress { done, total, entries, .. }| {
            shown.set_length(total);
            shown.set_position(done);
            shown.set_message(counted(entries, "entry"));
        };
        let report = verify.progress(progress).run();
        bar.finish_and_clear();
        let erasure_keys = self.has_erasure().then_some(!erasure_keys.is_empty());
        Ok((report?, Level { seals, bodies: identity.is_some(), groups, sources, erasure_keys }))
    }
}

/// What is done with pins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PinUse {
    /// The one that was given is made or advanced.
    Advanced,
    /// They bind the log.
    Held,
    None,
}

/// What is at hand beyond public data and the vault.
#[derive(Default)]
struct AtHand {
    seal_key: Option<Secret>,
    seal_state: Option<(PathBuf, Bytes)>,
    /// The pin that the key directory remembers.
    pin: Option<PathBuf>,
    identity: Option<Arc<IdentityFile>>,
}

/// The erasure keys that are known from elsewhere.
#[derive(clap::Args, Debug)]
pub(crate) struct ErasureKeys {
    /// An erasure key that is known from elsewhere, or a file with it; repeatable. Trusted are these, and
    /// each to which a trusted one hands over by its order: no other may have ordered an erasure, a hold or
    /// a release
    #[arg(long = "erasure-key", value_name = "VKEY")]
    erasure_keys: Vec<String>,
}

impl ErasureKeys {
    pub(crate) fn parse(&self) -> Result<Vec<VerifierKey>, Failure> {
        self.erasure_keys.iter().map(|key| key_in("--erasure-key", key)).collect()
    }
}

/// What was at hand beyond public data.
struct Level {
    seals: bool,
    bodies: bool,
    groups: Groups,
    /// What blocks say of sources.
    sources: bool,
    /// Of a log with erasure: whether erasure keys are known from elsewhere.
    erasure_keys: Option<bool>,
}

/// Personal groups, of a log whose bodies were opened.
enum Groups {
    /// The log has none.
    None,
    Opened(Arc<dyn GroupKeys>),
    /// And why not.
    NotOpened(String),
}

impl Level {
    /// What was checked, as in JSON.
    fn names(&self) -> Vec<&'static str> {
        let groups = matches!(self.groups, Groups::Opened(_));
        let names = [
            ("public", true),
            ("seals", self.seals),
            ("blocks", self.bodies),
            ("groups", groups),
            ("sources", self.sources),
        ];
        names.into_iter().filter_map(|(name, checked)| checked.then_some(name)).collect()
    }
}

fn to_text(report: &Report, level: Level, trusted: &Trusted) -> String {
    let mut checked = match (level.seals, level.bodies) {
        (false, false) => "public data alone",
        (true, false) => "public data and seals; no block was opened",
        (false, true) => "public data and every block; no seals",
        (true, true) => "public data, seals and every block",
    }
    .to_owned();
    if level.sources {
        checked += "; what blocks say of sources";
    }
    if let Groups::NotOpened(why) = level.groups {
        checked += &format!("; personal groups were not opened: {why}");
    }
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation).count();
    let result = match (report.ok, trusted.names()) {
        (true, Some(whose)) if report.anchored => format!("ok: this is the log of {whose}"),
        (true, _) => "self-consistent; without --key nobody can say whose log it is".to_owned(),
        (false, _) => format!(
            "{}: {}",
            failed_as(report, level.erasure_keys == Some(true)),
            counted(violations as u64, "violation")
        ),
    };
    let orders = level.erasure_keys.map(|known| match known {
        true => "checked with the erasure keys that were given".to_owned(),
        false => {
            "by the log's own word for its erasure keys; --erasure-key names those that are known".to_owned()
        }
    });
    let mut text = String::new();
    let rows = [
        ("result", result),
        ("checked", checked),
        ("entries", report.entries.to_string()),
        ("erased", report.erased.map_or_else(|| "not counted".to_owned(), |erased| erased.to_string())),
        ("blocks", report.blocks.to_string()),
        ("tree size", report.tree_size.to_string()),
        ("root", report.root.to_base64()),
        ("pending", report.pending.to_string()),
        ("signed", report.signed_time.map(time).unwrap_or_else(|| "never".to_owned())),
    ];
    let pin = report.pin.as_ref().map(|pin| ("pin", pin_to_text(pin)));
    let witnessed = report.witnessed.as_ref().filter(|witnessed| !witnessed.witnesses.is_empty());
    let witnessed = witnessed.map(|witnessed| ("witnessed", witnessed_to_text(witnessed)));
    let orders = orders.map(|orders| ("orders", orders));
    for (name, value) in rows.into_iter().chain(orders).chain(witnessed).chain(pin) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{name:<9}  {value}");
    }
    for finding in &report.findings {
        let _ = writeln!(text, "{finding}");
    }
    text
}

/// What a log is not that is no `ok`: where nothing speaks against what it says, only as new, witnessed or closed as was asked for, or not the
/// log whose key, policy or seal key was given. Of an erasure key that does not fit nobody knows whether it is another log's, or was replaced.
fn failed_as(report: &Report, erasure_keys: bool) -> String {
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let (mut lacks, mut is_other) = (Vec::new(), false);
    for finding in violations {
        let lack = match finding.kind {
            FindingKind::Unwitnessed => "witnessed",
            FindingKind::Stale => "new",
            FindingKind::Unclosed => "closed",
            FindingKind::KeyMismatch if !erasure_keys => {
                is_other = true;
                continue;
            }
            _ => return "NOT what was written".to_owned(),
        };
        if !lacks.contains(&lack) {
            lacks.push(lack);
        }
    }
    match is_other {
        true => "not the log that was asked for".to_owned(),
        false => format!("not {} as asked", lacks.join(", not ")),
    }
}

/// Who has seen how much.
fn witnessed_to_text(WitnessReport { frames, witnesses, .. }: &WitnessReport) -> String {
    let seen = witnesses.iter().map(|WitnessSeen { name, time: seen, .. }| match seen {
        None => format!("{}: not", on_line(name)),
        Some(0) => format!("{}: at no stated time", on_line(name)),
        Some(seconds) => {
            format!("{}: {}", on_line(name), i64::try_from(*seconds).map(time).unwrap_or_default())
        }
    });
    let frames = frames.map_or_else(|| "not asked for".to_owned(), |frames| counted(frames, "frame"));
    format!("{frames}; {}", seen.collect::<Vec<_>>().join(", "))
}

/// What became of a pin.
fn pin_to_text(PinReport { path, before, frames, .. }: &PinReport) -> String {
    let path = path.display();
    match (before, frames) {
        (None, None) => format!("not made: {path}"),
        (None, Some(frames)) => format!("made: {path} covers {}", counted(*frames, "frame")),
        (Some(before), Some(frames)) if before < frames => {
            format!("advanced: {path} covers {}; it covered {before}", counted(*frames, "frame"))
        }
        (Some(frames), _) => format!("as it was: {path} covers {}", counted(*frames, "frame")),
    }
}

#[derive(Serialize)]
struct ReportJson<'a> {
    ok: bool,
    anchored: bool,
    /// With what was at hand.
    checked: Vec<&'static str>,
    entries: u64,
    /// Of so many the personal fields; null where nobody can tell.
    erased: Option<u64>,
    blocks: u64,
    tree_size: u64,
    root: String,
    pending: u64,
    /// The writing host's clock at the newest epoch or event that the checkpoint covers.
    signed_time: Option<String>,
    /// Who has seen how much of it, where a policy was given and is met.
    witnessed: Option<WitnessedJson<'a>>,
    /// What became of the pin that was given.
    pin: Option<PinJson<'a>>,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct WitnessedJson<'a> {
    /// Null where the policy asks for no witness.
    frames: Option<u64>,
    witnesses: Vec<WitnessJson<'a>>,
}

#[derive(Serialize)]
struct WitnessJson<'a> {
    name: &'a str,
    cosigned: bool,
    /// By the witness's clock; null where it stated none.
    time: Option<String>,
}

impl<'a> From<&'a WitnessReport> for WitnessedJson<'a> {
    fn from(WitnessReport { frames, witnesses, .. }: &'a WitnessReport) -> Self {
        let witnesses = witnesses.iter().map(|WitnessSeen { name, time, .. }| WitnessJson {
            name,
            cosigned: time.is_some(),
            time: time.filter(|time| *time > 0).and_then(|time| format_seconds(i64::try_from(time).ok()?)),
        });
        WitnessedJson { frames: *frames, witnesses: witnesses.collect() }
    }
}

#[derive(Serialize)]
struct PinJson<'a> {
    path: String,
    before: Option<u64>,
    frames: Option<u64>,
    failure: Option<&'a str>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    kind: String,
    severity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_frame: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<(u64, u64)>,
    /// How many it stands for.
    count: u64,
    detail: &'a str,
}

impl<'a> ReportJson<'a> {
    fn new(report: &'a Report, level: &Level) -> Self {
        ReportJson {
            ok: report.ok,
            anchored: report.anchored,
            checked: level.names(),
            entries: report.entries,
            erased: report.erased,
            blocks: report.blocks,
            tree_size: report.tree_size,
            root: report.root.to_base64(),
            pending: report.pending,
            signed_time: report.signed_time.and_then(format_seconds),
            witnessed: report.witnessed.as_ref().map(WitnessedJson::from),
            pin: report.pin.as_ref().map(|pin| PinJson {
                path: pin.path.display().to_string(),
                before: pin.before,
                frames: pin.frames,
                failure: pin.failure.as_deref(),
            }),
            findings: report.findings.iter().map(FindingJson::from).collect(),
        }
    }
}

impl<'a> From<&'a Finding> for FindingJson<'a> {
    fn from(finding: &'a Finding) -> Self {
        FindingJson {
            kind: finding.kind.to_string(),
            severity: finding.severity.to_string(),
            segment: finding.segment.as_deref(),
            offset: finding.offset,
            frame: finding.frame,
            last_frame: finding.last_frame,
            count: finding.count,
            entries: finding.entries,
            detail: &finding.detail,
        }
    }
}
