//! `bulla.toml`: `[log]`, what the log is, and `[settings]`, how this host runs it.
//!
//! The digest of `[log]` covers the file's bytes from its start up to the line `[settings]`, as they are: no
//! second spelling has the same digest. What follows that line is free to edit.

pub(crate) mod allowed;
pub(crate) mod arriving;
pub(crate) mod edit;
pub(crate) mod fields;
pub(crate) mod signed;
pub(crate) mod witnesses;

use crate::format::files;
use crate::format::options::{Options, SettingPlace, format_age, no_duration, parse_duration};
use crate::format::segment;
use crate::format::toml_value::{array, quote};
use bulla_proof::LogKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::{Hash, HashId, sha256};
use bulla_store::{Error, ErrorKind, Result, Store, StoreFile};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

pub use fields::{FieldRules, Rule};
pub use witnesses::{AskedWitness, MOST_WITNESSES, WitnessPolicy};

/// The name of the file.
pub const FILE: &str = "bulla.toml";
/// The file that is locked to change `bulla.toml`. It is a file of its own, since `bulla.toml` is replaced by a rename.
pub(crate) const LOCK: &str = "bulla.toml.lock";
/// What a new log has for [`LogConfig::common`].
pub(crate) const DEFAULT_COMMON: u32 = 16;
/// Its limits. Somebody who has fewer accounts than the least would learn too much by planting a word in them.
const COMMON: RangeInclusive<u32> = 8..=65_536;
/// The longest file that is read, in bytes.
pub(crate) const LIMIT: u64 = 1 << 20;

/// What a log is. It never changes behind Bulla's back: every epoch frame has its digest, and an event tells of each
/// change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogConfig {
    /// The log's random identity, in every commitment.
    pub id: LogId,
    /// The origin line of its checkpoints, and the name of its key.
    pub origin: String,
    /// The key that its checkpoints are signed with.
    pub verifier_key: VerifierKey,
    /// The key of ML-DSA-44 that they are signed with too, where the log was made with one.
    pub ml_dsa_key: Option<LogKey>,
    /// The hash of units and block roots.
    pub hash: HashId,
    /// age recipients that epoch keys are wrapped to.
    pub recipients: Vec<String>,
    /// What becomes of the fields of entries before they are logged.
    pub fields: FieldRules,
    /// Whether personal fields are encrypted once more, for each set of data subjects, so that they can be erased.
    pub erasure: bool,
    /// The key that orders erasures are signed with, where any can be ordered.
    pub erasure_key: Option<VerifierKey>,
    /// In how many groups of a block a word or a shape has to occur, no two of which have a data subject in common, before it stands
    /// once in the part that they share; in none where there is no such part.
    pub common: Option<u32>,
    /// How much time passes at most until the writer commits an epoch or an event, where the log promises that. Who
    /// controls the storage must not be able to take that back, so it is no setting.
    pub heartbeat: Option<Duration>,
    /// Which witnesses are asked for cosignatures of its checkpoints, and how many of them are enough.
    pub witness_policy: Option<WitnessPolicy>,
    /// Keys of whoever made the log, which begin with `x-`, and their values: strings as they are, others in TOML.
    pub extra: BTreeMap<String, String>,
    /// SHA-256 of the part of the file that says all this.
    pub digest: Hash,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogPart {
    log: LogTable,
}

#[derive(Deserialize)]
struct LogTable {
    #[serde(rename = "version")]
    _version: u32,
    id: String,
    origin: String,
    vkey: String,
    hash: String,
    recipients: Vec<String>,
    #[serde(default)]
    fields: BTreeMap<String, String>,
    #[serde(default)]
    erasure: Erasure,
    erasure_key: Option<String>,
    common: Option<Common>,
    heartbeat: Option<String>,
    vkey_ml_dsa: Option<String>,
    witness_policy: Option<String>,
    #[serde(flatten)]
    extra: BTreeMap<String, toml::Value>,
}

/// `erasure`, off where it is not said.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Erasure {
    On,
    #[default]
    Off,
}

/// `common`, off where it is not said.
#[derive(Deserialize)]
#[serde(untagged)]
enum Common {
    Groups(u64),
    Off(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsPart {
    #[serde(default)]
    settings: Options,
}

/// What comes behind a log's origin in the name of an erasure key that is made for it.
pub const ERASURE_KEY_SUFFIX: &str = "/erasure";

/// The origin of a log that is given none.
pub(crate) fn default_origin(id: LogId) -> String {
    format!("bulla.invalid/{id}")
}

impl LogConfig {
    /// The names of the keys of `[log]` in which another one differs, as an event names them.
    pub(crate) fn differing(&self, other: &LogConfig) -> Vec<String> {
        let recipients = (self.recipients != other.recipients).then(|| "recipients".to_owned());
        let heartbeat = (self.heartbeat != other.heartbeat).then(|| "heartbeat".to_owned());
        let witnesses = (self.witness_policy != other.witness_policy).then(|| "witness_policy".to_owned());
        let erasure_key = (self.erasure_key != other.erasure_key).then(|| "erasure_key".to_owned());
        let fields = self.fields.differing(other.fields).map(|field| format!("fields.{field}"));
        recipients.into_iter().chain(heartbeat).chain(witnesses).chain(erasure_key).chain(fields).collect()
    }

    /// Refuses the log's own key as the one that orders erasures: its secret half lies with the host, which does not order them.
    ///
    /// # Errors
    /// `Invalid` for that key, under whatever name, and for any other that has its name.
    pub fn check_erasure_key(&self, key: &VerifierKey) -> Result<()> {
        let own = &self.verifier_key;
        match key.name() == own.name() || key.public_key() == own.public_key() {
            true => Err(own_key(key)),
            false => Ok(()),
        }
    }
}

/// That a key is the one that signs the log's checkpoints, and so is none that orders erasures.
pub(crate) fn own_key(key: &VerifierKey) -> Error {
    Error::invalid(format!(
        "{key} is the log's own key or has its name: with that key the host signs checkpoints, and whoever orders erasures has \
         another (`bulla keys DIR new-erasure-key` makes one)"
    ))
}

/// Reads both parts of the configuration of the log in `store`.
///
/// # Errors
/// `Unavailable` where there is no log, `Invalid` where the file is not a configuration of this version.
pub fn load(store: &dyn Store) -> Result<(LogConfig, Options)> {
    let text = read(store)?;
    parse(&text).map_err(|error| Error::new(error.kind(), format!("{}: {error}", store.describe(FILE))))
}

/// As [`load`], for somebody who reads or writes a log. Where there is a checkpoint or a segment beside the file, a file that cannot be
/// parsed means that the log was tampered with. Without either it may be somebody else's file of the same name.
///
/// # Errors
/// As [`load`], but in a log `Tampered` for `Invalid`.
pub fn load_of_log(store: &dyn Store) -> Result<(LogConfig, Options)> {
    load(store).map_err(|error| match error.kind() {
        ErrorKind::Invalid if is_log(store) => Error::tampered(format!("{error}; `bulla verify` tells all")),
        _ => error,
    })
}

/// Refuses a log whose file has a setting out of its bounds, whatever the other settings are: to whoever writes it, the file is
/// as damaged as one that cannot be parsed.
///
/// # Errors
/// `Invalid`, but in a log `Tampered`, naming the setting.
pub(crate) fn check_bounds(store: &dyn Store, settings: Options) -> Result<()> {
    settings.check_bounds(SettingPlace::Log).map_err(|error| {
        let kind = if is_log(store) { ErrorKind::Tampered } else { error.kind() };
        Error::new(kind, format!("{}: {error}; `bulla config` changes it", store.describe(FILE)))
    })
}

/// The error of whoever would write a log, or change what it is, while its `[log]` is not the one that it is written with.
pub(crate) fn edited(store: &dyn Store) -> Error {
    let file = store.describe(FILE);
    let message = match arriving::counts(store) {
        true => format!(
            "{}, which counts in the place of {file}, has another [log] part than the log is written with: move it away",
            store.describe(arriving::NEXT)
        ),
        false => format!(
            "the [log] part of {file} was edited; put it back as it was ([settings] may be changed, `bulla config` changes both)"
        ),
    };
    Error::new(ErrorKind::Refused, message)
}

fn is_log(store: &dyn Store) -> bool {
    store.open(files::CHECKPOINT).is_ok() || has_segments(store)
}

pub(crate) fn has_segments(store: &dyn Store) -> bool {
    segment::list(store).is_ok_and(|(segments, _)| !segments.is_empty())
}

/// The bytes of the file, or of the one that counts in its place: see [`arriving`].
///
/// # Errors
/// `Unavailable` where there is no log, `Invalid` where the file is too long, or missing beside the segments that it is of.
pub(crate) fn read(store: &dyn Store) -> Result<Vec<u8>> {
    if let Some(text) = arriving::arrived(store)? {
        return Ok(text);
    }
    let name = store.describe(FILE);
    let file = store.open(FILE).map_err(|error| {
        let directory = store.describe("");
        let no_log = |why: &str| {
            Error::unavailable(format!("{directory} is not a log ({why}); `bulla init DIR` makes one"))
        };
        match error.kind() {
            io::ErrorKind::NotFound if arriving::has_begun(store) => Error::unavailable(format!(
                "{directory} is not a log yet: a mirror was begun there, and its first checkpoint has not arrived; \
                 `bulla mirror` goes on with it"
            )),
            // An `init` that was killed can leave a checkpoint without the file, but no segment.
            io::ErrorKind::NotFound if has_segments(store) => Error::invalid(format!(
                "{directory} has the segments of a log, and no {FILE}, without which nobody can tell of which: \
                 restore that file from a copy of the log"
            )),
            io::ErrorKind::NotFound if arriving::is_there(store) => Error::invalid(format!(
                "{directory} has the checkpoint of a log, a {} that does not count under it, and no {FILE}: restore that \
                 file from a copy of the log",
                arriving::NEXT
            )),
            io::ErrorKind::NotFound if store.list("").is_err() => no_log("there is no such directory"),
            io::ErrorKind::NotFound => no_log(&format!("it has no {FILE}")),
            io::ErrorKind::NotADirectory => no_log("it is no directory"),
            _ => Error::io(format!("reading {name}"), error),
        }
    })?;
    let length = file.length().map_err(|error| Error::io(format!("reading {name}"), error))?;
    read_text(&*file, (0, length), &name)
}

/// The bytes of a configuration in the file `name`: so many from `begin` on.
///
/// # Errors
/// `Invalid` where they are more than any has, `Unavailable` where they cannot be read.
fn read_text(file: &dyn StoreFile, (begin, length): (u64, u64), name: &str) -> Result<Vec<u8>> {
    if length > LIMIT {
        return Err(Error::invalid(format!(
            "{name} has {length} bytes of configuration; none has over {LIMIT}"
        )));
    }
    let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut text, begin).map_err(|error| Error::io(format!("reading {name}"), error))?;
    Ok(text)
}

/// Parses a configuration file.
///
/// # Errors
/// `Invalid`, naming what is wrong; for a newer format version `Unavailable`, saying so.
pub fn parse(bytes: &[u8]) -> Result<(LogConfig, Options)> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::invalid("it is not UTF-8"))?;
    if text.starts_with('\u{feff}') {
        return Err(Error::invalid(
            "it begins with a byte-order mark, which stands for nothing in it: take it out",
        ));
    }
    let cut = settings_line(text);
    let (log, settings) = text.split_at(cut);
    check_version(log)?;
    let table = toml::from_str::<LogPart>(log).map_err(|error| wrong_toml(("", log), &error))?.log;
    let settings = parse_settings_behind(log, settings)?;
    let verifier_key = table.vkey.parse::<VerifierKey>();
    let verifier_key = verifier_key.map_err(|error| Error::invalid(format!("`vkey`: {error}")))?;
    if verifier_key.name() != table.origin {
        return Err(Error::invalid("`vkey` is not of this `origin`"));
    }
    let ml_dsa_key = table.vkey_ml_dsa.map(|key| key.parse::<LogKey>()).transpose();
    let ml_dsa_key = ml_dsa_key.map_err(|error| Error::invalid(format!("`vkey_ml_dsa`: {error}")))?;
    if let Some(key) = &ml_dsa_key
        && !matches!(key, LogKey::MlDsa44(key) if key.name() == table.origin)
    {
        return Err(Error::invalid("`vkey_ml_dsa` is no key of ML-DSA-44 of this `origin`"));
    }
    if table.recipients.is_empty() {
        return Err(Error::invalid("`recipients` is empty: nobody could read the log"));
    }
    let erasure_key = table.erasure_key.map(|key| key.parse::<VerifierKey>()).transpose();
    let erasure_key = erasure_key.map_err(|error| Error::invalid(format!("`erasure_key`: {error}")))?;
    let heartbeat = table.heartbeat.as_deref().map(parse_heartbeat).transpose()?;
    let witness_policy =
        table.witness_policy.as_deref().map(|text| parse_witness_policy(text, &verifier_key)).transpose()?;
    let common = match &table.common {
        None => None,
        Some(Common::Groups(groups)) => parse_common(&groups.to_string())?,
        Some(Common::Off(text)) if text == "off" => None,
        Some(Common::Off(text)) => {
            return Err(Error::invalid(format!("`common` is \"{text}\": it may be \"off\" or a number")));
        }
    };
    let mut fields = FieldRules::default();
    for (field, rule) in &table.fields {
        fields.set(field, rule).map_err(|error| Error::invalid(format!("`{}`: {error}", fields::HEADER)))?;
    }
    let extra = table.extra.into_iter().map(|(key, value)| {
        check_extra(&key)?;
        let string = value.as_str().map(str::to_owned);
        Ok((key, string.unwrap_or_else(|| value.to_string())))
    });
    let extra = extra.collect::<Result<_>>()?;
    let config = LogConfig {
        id: LogId::parse(&table.id).ok_or_else(|| Error::invalid("`id` is not 32 hexadecimal digits"))?,
        origin: table.origin,
        verifier_key,
        ml_dsa_key,
        hash: HashId::from_name(&table.hash)
            .ok_or_else(|| Error::invalid(format!("`hash` is `{}`, not sha256 or sha3-256", table.hash)))?,
        recipients: table.recipients,
        fields,
        erasure: table.erasure == Erasure::On,
        erasure_key,
        common,
        heartbeat,
        witness_policy,
        extra,
        digest: sha256(&[log.as_bytes()]),
    };
    Ok((config, settings))
}

/// The witnesses that a log asks.
///
/// # Errors
/// `Invalid` where the text is no policy, or one of other logs alone.
pub(crate) fn parse_witness_policy(text: &str, key: &VerifierKey) -> Result<WitnessPolicy> {
    let policy = WitnessPolicy::parse(text).and_then(|policy| policy.check_log(key).map(|()| policy));
    policy.map_err(|error| error.after("`witness_policy`"))
}

/// Whether a key of `[log]` that this version does not know is one's own: others may change what the log is.
///
/// # Errors
/// `Invalid`, naming it, where it is not.
pub(crate) fn check_extra(key: &str) -> Result<()> {
    match key.strip_prefix("x-").is_some_and(|own| !own.is_empty()) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "unknown field `{key}` in `[log]`: this version does not know it, and keys of one's own begin with `x-`"
        ))),
    }
}

/// Parses a text that holds one table, `[settings]`.
///
/// # Errors
/// `Invalid`, naming what is wrong.
pub(crate) fn parse_settings(text: &str) -> Result<Options> {
    parse_settings_behind("", text)
}

/// The same of a text with `before` above it in its file.
fn parse_settings_behind(before: &str, text: &str) -> Result<Options> {
    let parsed = toml::from_str::<SettingsPart>(text);
    parsed.map(|part| part.settings).map_err(|error| wrong_toml((before, text), &error))
}

/// What is wrong with a text, in one line: it is said as a part of sentences. `before` is what is above the text in its file.
pub fn wrong_toml((before, text): (&str, &str), error: &toml::de::Error) -> Error {
    let what = error.message().trim_end().replace('\n', ": ");
    let Some(above) = error.span().and_then(|span| text.get(..span.start)) else {
        return Error::invalid(what);
    };
    let line = 1 + before.matches('\n').count() + above.matches('\n').count();
    let begin = above.rfind('\n').map_or(0, |end| end + 1);
    let column = 1 + above[begin..].chars().count();
    // Of a value that is of another kind the message does not name the key.
    let source = text[begin..].lines().next().unwrap_or_default().trim();
    Error::invalid(format!("line {line}, column {column}, `{source}`: {what}"))
}

/// In how many groups what is common occurs at least, as a person writes it: `16`, or `off`.
///
/// # Errors
/// `Invalid` where it is neither, or out of its limits.
pub fn parse_common(text: &str) -> Result<Option<u32>> {
    if text == "off" {
        return Ok(None);
    }
    let groups = text.parse().ok().filter(|groups| COMMON.contains(groups));
    let (least, most) = (COMMON.start(), COMMON.end());
    groups.map(Some).ok_or_else(|| {
        Error::invalid(format!("`common` is `{text}`: it may be off, or from {least} to {most}"))
    })
}

/// As [`parse_common`] reads it.
pub fn format_common(common: Option<u32>) -> String {
    common.map_or_else(|| "off".to_owned(), |groups| groups.to_string())
}

/// A heartbeat as a person writes it: `60 s`, `10 min`. No white space stands around it, and no zero before it.
///
/// # Errors
/// `Invalid` where it is none, or out of its limits.
pub(crate) fn parse_heartbeat(text: &str) -> Result<Duration> {
    let plain =
        !text.starts_with(|first: char| first.is_whitespace() || first == '0') && text == text.trim_end();
    let time = parse_duration(text).filter(|_| plain);
    let time = time.ok_or_else(|| Error::invalid(format!("`heartbeat`: {}", no_duration(text))))?;
    check_heartbeat(time).map(|()| time)
}

/// Whether a heartbeat is from a second, as times in frames are, to a day.
///
/// # Errors
/// `Invalid` where it is not.
pub(crate) fn check_heartbeat(time: Duration) -> Result<()> {
    const LIMITS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    match LIMITS.contains(&time) {
        true => Ok(()),
        false => {
            let [time, least, most] = [time, *LIMITS.start(), *LIMITS.end()].map(format_age);
            Err(Error::invalid(format!("`heartbeat` is {time}; it may be from {least} to {most}")))
        }
    }
}

/// Where the line `[settings]` begins; the end where there is none.
pub(crate) fn settings_line(text: &str) -> usize {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "[settings]" {
            return start;
        }
        start += line.len();
    }
    start
}

/// A newer format is told from a broken file before anything else is looked at.
fn check_version(log: &str) -> Result<()> {
    let table = log.parse::<toml::Table>().map_err(|error| wrong_toml(("", log), &error))?;
    let version = table.get("log").and_then(|log| log.get("version"));
    let version = version.map(|version| version.as_integer().ok_or(version)).transpose();
    let version =
        version.map_err(|other| Error::invalid(format!("`version` is {other}, and no whole number")))?;
    match version {
        Some(1) => Ok(()),
        Some(version) if version < 1 => {
            Err(Error::invalid(format!("`version` is {version}, and the first format has 1")))
        }
        Some(version) => Err(Error::new(
            ErrorKind::Unavailable,
            format!("the log is of format version {version}; this program knows version 1: use a newer one"),
        )),
        None => Err(Error::invalid("`[log]` has no `version`")),
    }
}

/// The text of a new log's file.
pub(crate) fn render(
    id: LogId,
    origin: &str,
    verifier_key: &VerifierKey,
    hash: HashId,
    recipients: &[String],
    fields: &FieldRules,
    erasure: Option<(&VerifierKey, Option<u32>)>,
) -> Result<String> {
    let mut text = String::new();
    let recipients = array(recipients);
    let erasure = match erasure {
        Some((key, common)) => {
            let common = common.map_or_else(|| quote("off"), |groups| groups.to_string());
            format!("erasure = \"on\"\nerasure_key = {}\ncommon = {common}", quote(&key.to_string()))
        }
        None => "erasure = \"off\"".to_owned(),
    };
    let fields = match fields.is_empty() {
        true => String::new(),
        false => format!("{}\n", fields.render()),
    };
    write!(
        text,
        "# What this log is. Bulla refuses the log if anything above the line [settings] is edited.\n\
         [log]\n\
         version = 1\n\
         id = \"{id}\"\n\
         origin = {}\n\
         vkey = {}\n\
         hash = \"{}\"\n\
         recipients = {recipients}\n\
         {erasure}\n\
         \n\
         {fields}[settings]\n\
         # How blocks are made; free to edit. What a promise rests on is in settings.toml of the key directory.\n\
         # writers = 2\n\
         # compression = 1\n",
        quote(origin),
        quote(&verifier_key.to_string()),
        hash.name(),
    )
    .map_err(|_| Error::invalid("the configuration does not fit memory"))?;
    Ok(text)
}

#[cfg(test)]
mod tests;
