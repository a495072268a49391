//! `bulla config`.

use crate::append::{tell_differences, tell_made_pin, tell_recovery, tell_resumed};
use crate::authority::{Authority, authority, without_erasure};
use crate::confirm::confirm;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::log_paths::LogPaths;
use crate::output::{note_lines, print, print_json};
use crate::path_states::ChangedPath;
use crate::terminal;
use crate::verify::parse_key;
use crate::witness_policy::read_policy;
use bulla::config::LogConfig;
use bulla::control::{Client, through_writer};
use bulla::environment::Environment;
use bulla::keys::files;
use bulla::store::FileSystem;
use bulla::{
    Configure, Configured, Effect, ErasureKeyChange, ErrorKind, Options, Setting, SettingPlace,
    SettingSource, VerifierKey,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Show how a log is configured, and change it.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "bulla config DIR [--json]\n       bulla config DIR get KEY\n       \
                      bulla config DIR set KEY VALUE [KEY VALUE]...\n       bulla config DIR unset KEY...\n       \
                      bulla config DIR set log.erasure_key VKEY [--authority FILE | --lost [--yes]]",
    after_help = "\
Settings count from the next opening. Of [log] these change, on the record: log.recipients, with
commas between them; log.heartbeat; log.witness_policy (a file); log.fields.FIELD (stop a writer
first); and log.erasure_key, by itself (after --lost `bulla verify` fails without the new key).
linger is how long entries wait to share a block; log.heartbeat, how often an idle writer signs.

Example:
  bulla config audit set linger '20 ms'
  bulla config audit set log.recipients age1...,age1..."
)]
pub(crate) struct Config {
    #[command(flatten)]
    place: LogPaths,

    /// What to do; without it everything is shown
    #[arg(value_enum)]
    action: Option<Action>,

    /// Keys; for `set` each with its value
    #[arg(value_name = "KEY")]
    words: Vec<String>,

    /// Of log.erasure_key: the key before, or its order [default: erasure.key of the keys]
    #[arg(long, value_name = "FILE", conflicts_with = "lost")]
    authority: Option<PathBuf>,

    /// Of log.erasure_key: nobody has the key before any more
    #[arg(long)]
    lost: bool,

    /// Of --lost: do not ask at the terminal
    #[arg(long, requires = "lost")]
    yes: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Action {
    Get,
    Set,
    Unset,
}

impl Config {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        if let (Some(Action::Set), [key, value]) = (self.action, &self.words[..])
            && key == ERASURE_KEY
        {
            return self.apply(&Configure::default().erasure_key(self.new_erasure_key(value)?)?);
        }
        if self.authority.is_some() || self.lost {
            return Err(Failure::usage(format!(
                "--authority and --lost are for `set {ERASURE_KEY} VKEY` alone"
            )));
        }
        match (self.action, &self.words[..]) {
            (None, _) => self.show(),
            (Some(Action::Get), [key]) => self.get(key),
            (Some(Action::Get), _) => Err(Failure::usage("`get` takes one key")),
            (Some(Action::Set), []) => Err(Failure::usage("`set` takes a key and a value")),
            (Some(Action::Set), words) => {
                let (pairs, rest) = words.as_chunks();
                if let [key] = rest {
                    return Err(Failure::usage(format!("`set` takes a value for `{key}`, too")));
                }
                let set = |all: Configure, [key, value]: &[String; 2]| match key == WITNESS_POLICY {
                    true => Ok(all.witness_policy(Some(&read_policy(Path::new(value))?))?),
                    false => all.set(key, value).map_err(Failure::from),
                };
                self.apply(&pairs.iter().try_fold(Configure::default(), set)?)
            }
            (Some(Action::Unset), []) => Err(Failure::usage("`unset` takes a key")),
            (Some(Action::Unset), keys) => {
                self.apply(&keys.iter().try_fold(Configure::default(), |all, key| all.unset(key))?)
            }
        }
    }

    /// What changes the erasure key to this one, or to the one in the file of this name.
    fn new_erasure_key(&self, key: &str) -> Result<ErasureKeyChange, Failure> {
        let to = parse_key(ERASURE_KEY)(key)?;
        let (log, _) = bulla::config::load_of_log(&*self.place.log()?)?;
        // That there is nothing to order, and that this key orders nothing, is told before that there is no authority.
        if !log.erasure {
            return Err(without_erasure());
        }
        if log.erasure_key.as_ref() != Some(&to) {
            log.check_erasure_key(&to)?;
        }
        if self.lost {
            if let Some(from) = log.erasure_key.filter(|from| *from != to) {
                self.warn(&from, &to)?;
            }
            return Ok(ErasureKeyChange::unordered(&to));
        }
        let otherwise = "; where nobody has the erasure key any more, --lost changes it without one";
        let given = (self.authority.as_deref(), otherwise);
        let key = match authority(&self.place, given, ErasureKeyChange::parse)? {
            Authority::Order(change, _) if change.to() == to.to_string() => return Ok(change),
            Authority::Order(change, path) => {
                let path = path.display();
                let message = format!("{path} orders that the erasure key be {}, not {to}", change.to());
                return Err(Failure::usage(message));
            }
            Authority::Key(key) => key,
        };
        match log.erasure_key.as_ref() == Some(&to) {
            // It is so already: nothing is ordered.
            true => Ok(ErasureKeyChange::unordered(&to)),
            false => Ok(ErasureKeyChange::give(&key, log.id, &to, &Environment::default())?),
        }
    }

    /// Says what it means to change the erasure key without an order, and asks whoever is at the terminal.
    fn warn(&self, from: &VerifierKey, to: &VerifierKey) -> Result<(), Failure> {
        note_lines(&format!(
            "without an order by the key before, {from}, nothing tells this change from a host's that takes over who orders erasures:\n\
             every verification will find a violation (erasure-key-unordered), unless whoever verifies gets the new key by another way\n\
             than this log, and gives it with --erasure-key {to};\n\
             give them the key before, too, which vouches for what was ordered with it; it never counts again"
        ));
        let until_it_is_begun = interrupt::exit_for_now(self.json)?;
        let confirmed = confirm(self.yes);
        drop(until_it_is_begun);
        confirmed
    }

    fn load(&self) -> Result<Vec<Key>, Failure> {
        let (log, options) = bulla::config::load_of_log(&*self.place.log()?)?;
        for name in options.misplaced(SettingPlace::Log) {
            let keys = self.place.keys();
            note!(
                "`{name}` is in [settings] of bulla.toml, and belongs in {}: while it is there, the log is not written",
                keys.join(files::SETTINGS).display()
            );
        }
        let host = self.place.host_settings()?;
        let is_known = |setting: &Setting| host.is_some() || setting.place == SettingPlace::Log;
        let options = options.with_host(host.clone().unwrap_or_default());
        let settings = options.settings().into_iter().filter(is_known).map(|setting| Key {
            name: setting.name.to_owned(),
            values: match setting.name {
                name if PLACES.contains(&name) => {
                    setting.value.split_terminator(',').map(str::to_owned).collect()
                }
                PIN | ERROR_PATH if setting.value.is_empty() => Vec::new(),
                _ => vec![setting.value],
            },
            source: match setting.source {
                SettingSource::File => "file",
                SettingSource::Default => "default",
            },
        });
        Ok(log_keys(log).into_iter().chain(settings).collect())
    }

    fn show(&self) -> Result<Exit, Failure> {
        let keys = self.load()?;
        if keys.iter().all(|key| !PLACES.contains(&key.name.as_str())) {
            let keys = self.place.keys();
            note!(
                "the settings that are kept with the keys are not shown: {} cannot be read",
                keys.display()
            );
        }
        if self.json {
            let object = keys.iter().map(|key| (key.name.clone(), key.to_json())).collect::<Map<_, _>>();
            print_json(&object)?;
        } else {
            let width = keys.iter().map(|key| key.name.len()).max().unwrap_or_default();
            print(&keys.iter().map(|key| key.to_text(width)).collect::<String>())?;
        }
        self.compare()
    }

    fn get(&self, name: &str) -> Result<Exit, Failure> {
        if let Some(field) = name.strip_prefix("log.fields.") {
            return self.get_rule(field);
        }
        let keys = self.load()?;
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            if Options::default().settings().iter().any(|setting| setting.name == name) {
                let keys = self.place.keys();
                let message =
                    format!("`{name}` is kept with the keys, and {} cannot be read", keys.display());
                return Err(Failure::new(Exit::Environment, message));
            }
            return Err(Configure::unknown_key(name).into());
        };
        if self.json { print_json(&key.to_json()) } else { print(&(key.values.join(",") + "\n")) }?;
        self.compare()
    }

    /// Of a field without a rule too: it is kept.
    fn get_rule(&self, field: &str) -> Result<Exit, Failure> {
        let (log, _) = bulla::config::load_of_log(&*self.place.log()?)?;
        let rule = log.fields.rule(field)?;
        let value = rule.map_or_else(|| "keep".to_owned(), |rule| rule.to_string());
        let source = if rule.is_some() { "file" } else { "default" };
        if self.json {
            print_json(&json!({ "value": value, "source": source }))
        } else {
            print(&(value + "\n"))
        }?;
        self.compare()
    }

    /// What the file says is told whatever it is; and then, that its `[log]` is not the one of the log's last epoch.
    fn compare(&self) -> Result<Exit, Failure> {
        match bulla::info_of(self.place.log()?) {
            Err(error) if error.kind() == ErrorKind::Tampered => Err(error.into()),
            _ => Ok(Exit::Done),
        }
    }

    /// That the log is not behind this pin, which it is to be held against from its next opening on. What follows the checkpoint may be what
    /// the pin covers, and a writer at work has compared.
    fn compare_with_pin(&self, pin: Option<&Path>) -> Result<(), Failure> {
        let Some(pin) = pin.filter(|_| matches!(self.action, Some(Action::Set))) else { return Ok(()) };
        let info = bulla::info_of(self.place.log()?)?;
        match bulla::pinned_frames(pin, &info.vkey)? {
            Some(frames) if frames > info.tree_size && info.unsigned_bytes == Some(0) => Err(Failure::new(
                Exit::Violation,
                format!(
                    "{} is set as the pin, and covers {frames} frames: the log is BEHIND it, its checkpoint covers {}; run `bulla verify`",
                    pin.display(),
                    info.tree_size
                ),
            )),
            _ => Ok(()),
        }
    }

    fn apply(&self, configure: &Configure) -> Result<Exit, Failure> {
        interrupt::finish_first(self.json, "`bulla config DIR`", || ())?;
        // A file that cannot be read names no pin that would count.
        let pin = || self.place.host_settings().ok().flatten()?.pinned().map(Path::to_owned);
        let pinned = pin();
        let applied = apply(configure, &self.place, self.json)?;
        let now = pin();
        if let (Some(frames), Some(path)) = (applied.configured.made_pin, &now) {
            tell_made_pin(path, frames);
        }
        if let Some(before) = pinned.filter(|before| now.as_ref() != Some(before)) {
            note!(
                "the log goes on without the pin {}, which is left as it is: what was signed up to there is no longer held against the log",
                before.display()
            );
        }
        let (outcome, done) = (Outcome::from(&applied), &applied.configured);
        let text = outcome.to_text();
        let told = if self.json { print_json(&outcome) } else { print(&text) };
        told.map_err(|failure| failure.but_done(text.trim_end()))?;
        self.compare_with_pin(
            now.as_deref().filter(|_| self.words.iter().step_by(2).any(|word| word == PIN)),
        )?;
        if done.live && done.settings {
            note!("a writer has the log open: it keeps the settings that it has until it opens it again");
        }
        Ok(Exit::Done)
    }
}

/// Changes a log's configuration: has the writer do it, where one runs, or takes the lock. What a plugin asks meanwhile is
/// asked at the terminal, unless it is the writer's. Where it fails, what came of it is told with that, to `json` in an object of its own.
pub(crate) fn apply(configure: &Configure, place: &LogPaths, json: bool) -> Result<Applied, Failure> {
    place.refuse_other_keys()?;
    let store = |path| Arc::new(FileSystem::new(path));
    let (log, keys) = (store(place.directory()), store(place.keys()));
    let alone = || configure.apply_in(log.clone(), keys.clone(), &terminal::environment());
    let unanswered = Cell::new(false);
    let ask = |writer: &Client| {
        writer.configure(configure).inspect_err(|error| {
            if error.kind() == ErrorKind::Closed {
                unanswered.set(true);
            }
        })
    };
    let done = through_writer(place.keys(), ask, alone).map_err(|error| {
        let error = match unanswered.get() {
            true => {
                // What was tried after that may have done it for certain.
                let effect = error.effect().unwrap_or(Effect::Unknown);
                error.after(UNANSWERED).with_effect(effect)
            }
            false => error,
        };
        failed(error, json)
    })?;
    tell_recovery(done.recovery);
    tell_differences(&done.hold_differences);
    tell_resumed(done.resumed.as_ref());
    let is_clear = done.changed || !unanswered.get();
    Ok(Applied {
        changed: is_clear.then_some(done.changed),
        recorded: is_clear.then_some(done.log.is_some()),
        configured: done,
    })
}

/// The failure; with `json`, where the change is done or may be, in an object that says so, too.
fn failed(error: bulla::Error, json: bool) -> Failure {
    let effect = error.effect();
    let failure = Failure::from(error);
    if let Some(effect) = effect.filter(|_| json) {
        // Only a change of `[log]` fails after it is done, and the log tells of it by then.
        let is_done = (effect == Effect::Done).then_some(true);
        // It has failed already, and standard error says why.
        let _ = print_json(&json!({ "error": failure.message, "changed": is_done, "recorded": is_done }));
    }
    failure
}

/// What came of changes to a configuration, as far as this command knows.
pub(crate) struct Applied {
    /// Whether anything is other than before; `None` where it is as it was asked for, and a writer that was asked first let go of
    /// the log before it answered: it may have been that one.
    pub(crate) changed: Option<bool>,
    /// Whether the log tells of it; `None` in the same case.
    pub(crate) recorded: Option<bool>,
    configured: Configured,
}

/// What is said where nobody knows whether this command changed anything.
pub(crate) const UNCLEAR: &str = "it is so now: the writer that was asked first let go of the log before it answered, and may have changed it\n";
/// What is said before the error of what was tried after that.
const UNANSWERED: &str =
    "the writer that was asked first let go of the log before it answered, and may have changed it";

/// The key whose value is read from a file.
const WITNESS_POLICY: &str = "log.witness_policy";

/// The key that is changed by an order.
const ERASURE_KEY: &str = "log.erasure_key";

/// The setting that names the pin.
const PIN: &str = "pin";
/// The setting that names where entries are set aside that are dropped.
const ERROR_PATH: &str = "error_path";

/// The settings that are lists.
const PLACES: [&str; 2] = ["vault_replicas", "backup_paths"];

/// A key and what it is.
struct Key {
    name: String,
    values: Vec<String>,
    source: &'static str,
}

impl Key {
    fn to_json(&self) -> Value {
        let value = match &self.values[..] {
            [] if [ERASURE_KEY, PIN, ERROR_PATH, WITNESS_POLICY].contains(&&self.name[..]) => Value::Null,
            [value] if self.name != "log.recipients" && !PLACES.contains(&self.name.as_str()) => json!(value),
            values => json!(values),
        };
        json!({ "value": value, "source": self.source })
    }

    /// A line for each value.
    fn to_text(&self, width: usize) -> String {
        let line = |(index, value): (usize, &String)| match index {
            0 => format!("{:<width$}  {:<7}  {value}\n", self.name, self.source),
            _ => format!("{:<width$}  {:<7}  {value}\n", "", ""),
        };
        match &self.values[..] {
            [] => line((0, &"none".to_owned())),
            [policy] if self.name == WITNESS_POLICY => {
                let lines = policy.lines().map(str::to_owned).collect::<Vec<_>>();
                lines.iter().enumerate().map(line).collect()
            }
            values => values.iter().enumerate().map(line).collect(),
        }
    }
}

fn log_keys(log: LogConfig) -> Vec<Key> {
    let one = |name: &str, value: String| (name.to_owned(), vec![value]);
    let mut keys = vec![
        one("log.version", "1".to_owned()),
        one("log.id", log.id.to_string()),
        one("log.origin", log.origin),
        one("log.vkey", log.verifier_key.to_string()),
        one("log.hash", log.hash.name().to_owned()),
        ("log.recipients".to_owned(), log.recipients),
        one("log.erasure", if log.erasure { "on" } else { "off" }.to_owned()),
        (ERASURE_KEY.to_owned(), log.erasure_key.iter().map(ToString::to_string).collect()),
        one("log.common", bulla::config::format_common(log.common)),
        one("log.heartbeat", log.heartbeat.map_or_else(|| "off".to_owned(), bulla::format_age)),
        (
            WITNESS_POLICY.to_owned(),
            log.witness_policy.iter().map(|policy| policy.text().to_owned()).collect(),
        ),
    ];
    keys.extend(log.extra.into_iter().map(|(name, value)| one(&format!("log.{name}"), value)));
    keys.extend(log.fields.iter().map(|(field, rule)| one(&format!("log.fields.{field}"), rule.to_string())));
    keys.into_iter().map(|(name, values)| Key { name, values, source: "file" }).collect()
}

/// What came of it.
#[derive(Serialize)]
struct Outcome {
    /// Whether the file is another one now.
    changed: Option<bool>,
    /// Whether that was recorded in the log.
    recorded: Option<bool>,
    /// Whether a writer has the log open.
    live: bool,
    /// What became of which of the log's paths; absent where nothing did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<ChangedPath>,
    /// Whether it is about recipients, about the heartbeat, about rules for fields, about the erasure key, and about witnesses.
    #[serde(skip)]
    about: [bool; 5],
}

impl From<&Applied> for Outcome {
    fn from(Applied { changed, recorded, configured: done }: &Applied) -> Self {
        let recipients = done.keys.iter().any(|key| key == "recipients");
        let fields = done.keys.iter().any(|key| key.starts_with("fields."));
        let has = |name: &str| done.keys.iter().any(|key| key == name);
        let about = [recipients, has("heartbeat"), fields, has("erasure_key"), has("witness_policy")];
        let paths = done.paths.iter().map(ChangedPath::from).collect();
        Outcome { changed: *changed, recorded: *recorded, live: done.live, paths, about }
    }
}

impl Outcome {
    fn to_text(&self) -> String {
        self.paths.iter().map(ChangedPath::to_text).chain([self.to_text_without_paths()]).collect()
    }

    fn to_text_without_paths(&self) -> String {
        match self {
            Outcome {
                recorded: Some(true),
                about: [recipients, heartbeat, fields, erasure_key, witnesses],
                ..
            } => {
                let recipients = recipients.then_some(
                    "entries from now on are for these recipients, and for no others;\n\
                     what was written before stays theirs who could read it\n",
                );
                let fields = fields.then_some(
                    "the fields of entries from now on are treated so;\n\
                     what was written before stays as it is\n",
                );
                let heartbeat =
                    heartbeat.then_some("the log promises another heartbeat, or none, from now on\n");
                let erasure_key = erasure_key.then_some(
                    "orders to erase, to hold and to release are signed with this key from now on, and with no other;\n\
                     those that were carried out before stay good\n",
                );
                let witnesses = witnesses.then_some(
                    "these witnesses are asked from the next time that the log is opened, or at once where it asks some already\n",
                );
                let told = [recipients, heartbeat, fields, erasure_key, witnesses]
                    .into_iter()
                    .flatten()
                    .collect::<String>();
                format!("changed, and recorded in the log:\n{told}")
            }
            Outcome { changed: Some(true), .. } => {
                "changed: it counts from the next time that the log is opened\n".to_owned()
            }
            Outcome { changed: Some(false), .. } => "nothing to change: it is so already\n".to_owned(),
            Outcome { changed: None, .. } => UNCLEAR.to_owned(),
        }
    }
}
