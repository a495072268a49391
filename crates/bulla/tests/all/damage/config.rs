//! What altered bytes of `bulla.toml` must come to, by as much of TOML as a changed byte can leave of that file.

use super::layout::Layout;
use super::note::base64;
use super::world::{Level, Made};
use bulla_proof::hash::sha256;
use std::collections::BTreeMap;

/// What has become of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing that matters.
    Same,
    /// `[log]` is another one, of a log of this id.
    Other { id: String },
    /// Of a later version of the format.
    Version(u64),
    /// It is not a configuration.
    Damaged,
}

/// A value of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Integer(u64),
    Text(String),
    List(Vec<String>),
}

/// Where the line `[settings]` begins: above it is what the digest covers.
fn cut(text: &str) -> usize {
    let lines = text.split_inclusive('\n');
    lines.take_while(|line| line.trim_end() != "[settings]").map(str::len).sum()
}

/// Whether a change of a byte is found: any above `[settings]`, from there on those that leave no configuration.
pub(crate) fn is_found(made: &Made, at: usize, altered: &[u8]) -> bool {
    let original = made.image.get("bulla.toml");
    at < cut(std::str::from_utf8(original).unwrap()) || fate(original, altered) != Fate::Same
}

fn fate(original: &[u8], altered: &[u8]) -> Fate {
    let original = std::str::from_utf8(original).unwrap();
    let Ok(text) = std::str::from_utf8(altered) else { return Fate::Damaged };
    let (log, settings) = text.split_at(cut(text));
    let Some(table) = Toml { rest: log }.table("log") else { return Fate::Damaged };
    match table.get("version") {
        Some(Value::Integer(1)) => {}
        Some(Value::Integer(version @ 2..)) => return Fate::Version(*version),
        _ => return Fate::Damaged,
    }
    let empty = settings.is_empty()
        || Toml { rest: settings }.table("settings").is_some_and(|table| table.is_empty());
    let id = identity(&table).filter(|_| empty);
    match id {
        None => Fate::Damaged,
        Some(_) if log == &original[..cut(original)] => Fate::Same,
        Some(id) => Fate::Other { id },
    }
}

/// The id in a `[log]` that is one.
fn identity(log: &BTreeMap<String, Value>) -> Option<String> {
    let optional = ["erasure", "erasure_key", "common"];
    let names = log.keys().map(String::as_str).filter(|name| !optional.contains(name)).collect::<Vec<_>>();
    if names != ["hash", "id", "origin", "recipients", "version", "vkey"] {
        return None;
    }
    let text = |name: &str| match &log[name] {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let Value::List(recipients) = &log["recipients"] else { return None };
    let (id, key) = (text("id")?, text("vkey")?);
    if log.contains_key("erasure_key") {
        key_name(text("erasure_key")?)?;
    }
    let hexadecimal = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let sound = hexadecimal
        && text("origin") == Some(key_name(key)?)
        && ["sha256", "sha3-256"].contains(&text("hash")?)
        && (!log.contains_key("erasure") || ["off", "on"].contains(&text("erasure")?))
        && log.get("common").is_none_or(is_common)
        && !recipients.is_empty();
    sound.then(|| id.to_owned())
}

fn is_common(value: &Value) -> bool {
    match value {
        Value::Integer(groups) => (8..=65_536).contains(groups),
        Value::Text(text) => text == "off",
        Value::List(_) => false,
    }
}

/// The name of a verifier key that is one.
fn key_name(key: &str) -> Option<&str> {
    let (name, rest) = key.split_once('+')?;
    let (key_id, public) = rest.split_once('+')?;
    let public = base64(public).filter(|key| key.len() == 33 && key[0] == 1)?;
    let digest = sha256(&[name.as_bytes(), b"\n", &public]).to_string();
    (key_id == &digest[..8]).then_some(name)
}

/// TOML of one table, of integers, one-line strings without escapes, and lists of those.
struct Toml<'a> {
    rest: &'a str,
}

impl Toml<'_> {
    fn table(mut self, name: &str) -> Option<BTreeMap<String, Value>> {
        let mut table = BTreeMap::new();
        self.lines()?;
        self.take("[")?;
        self.blanks();
        self.take(name)?;
        self.blanks();
        self.take("]")?;
        self.end_of_line()?;
        self.lines()?;
        while !self.rest.is_empty() {
            let key = self.while_some(|char| char.is_ascii_alphanumeric() || "-_".contains(char));
            self.blanks();
            self.take("=")?;
            self.blanks();
            let value = self.value()?;
            self.end_of_line()?;
            self.lines()?;
            if key.is_empty() || table.insert(key, value).is_some() {
                return None;
            }
        }
        Some(table)
    }

    fn value(&mut self) -> Option<Value> {
        if self.take("[").is_some() {
            let mut list = Vec::new();
            loop {
                self.lines()?;
                if self.take("]").is_some() {
                    return Some(Value::List(list));
                }
                list.push(self.text()?);
                self.lines()?;
                if self.take(",").is_none() {
                    return self.take("]").map(|()| Value::List(list));
                }
            }
        }
        if self.rest.starts_with('"') {
            return self.text().map(Value::Text);
        }
        let digits = self.while_some(|char| char.is_ascii_digit());
        let shortest = digits == "0" || !digits.starts_with('0');
        digits.parse().ok().filter(|_| shortest).map(Value::Integer)
    }

    fn text(&mut self) -> Option<String> {
        self.take("\"")?;
        let text = self.while_some(|char| is_plain(char) && char != '"' && char != '\\');
        self.take("\"").map(|()| text)
    }

    /// White space, comments and line ends.
    fn lines(&mut self) -> Option<()> {
        loop {
            self.blanks();
            if self.take("\n").is_none() && !self.rest.starts_with('#') {
                return Some(());
            }
            if self.rest.starts_with('#') {
                self.end_of_line()?;
            }
        }
    }

    /// What may follow on a line, to its end.
    fn end_of_line(&mut self) -> Option<()> {
        self.blanks();
        if self.take("#").is_some() {
            self.while_some(is_plain);
        }
        if self.rest.is_empty() { Some(()) } else { self.take("\n") }
    }

    fn blanks(&mut self) {
        self.while_some(|char| " \t".contains(char));
    }

    fn while_some(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(|char| !wanted(char)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken.to_owned()
    }

    fn take(&mut self, what: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(what)?;
        Some(())
    }
}

/// Whether TOML has it in comments and strings.
fn is_plain(char: char) -> bool {
    char == '\t' || (char >= ' ' && char != '\u{7f}')
}

/// What a verification of a log must tell whose `bulla.toml` alone is altered: findings as
/// [`super::world::in_full`] has them, but for what a parser of TOML says.
pub(crate) fn expect(made: &Made, layout: &Layout, altered: &[u8], level: Level) -> Vec<String> {
    let original = made.image.get("bulla.toml");
    let own = &own_id(original);
    let baseline = layout.baseline().into_iter();
    match fate(original, altered) {
        Fate::Same => baseline.collect(),
        Fate::Damaged => vec!["config-damaged".to_owned()],
        Fate::Version(version) => vec![format!(
            "error Unavailable: bulla.toml: the log is of format version {version}; this program knows version 1: \
             use a newer one"
        )],
        Fate::Other { id } => {
            let foreign = (id != *own && level >= Level::SealKey).then(|| {
                format!("key-mismatch: a seal key was given, and it is the seal key of another log, {own}")
            });
            // The first epoch frame is the first of the frames to tell.
            foreign.into_iter().chain(baseline).chain([layout.frame(0).finding("config-mismatch")]).collect()
        }
    }
}

/// The log's id.
fn own_id(original: &[u8]) -> String {
    let text = std::str::from_utf8(original).unwrap();
    let table = Toml { rest: &text[..cut(text)] }.table("log");
    table.and_then(|log| identity(&log)).expect("the log has a configuration")
}
