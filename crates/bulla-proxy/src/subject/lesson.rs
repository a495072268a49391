//! [`Lesson`]: what of a command that writes a value says whose data it is.

use crate::resp::{Arguments, Kind, Node};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Where in a value it stands whose data it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lesson {
    /// In this field of a hash.
    HashField(String),
    /// At this place of a JSON text.
    Json(JsonPath),
}

/// A place in a JSON text: names of members, from the outermost on. Written `$.user.id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath(Vec<String>);

/// The words of a command; the first is its name.
pub trait Words {
    /// How many there are.
    fn count(&self) -> u64;
    /// One of them; `None` where it is not there as a whole.
    fn word(&self, index: u64) -> Option<&[u8]>;
}

/// What a server answered to a command that it carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Null,
    /// A number.
    Integer(i64),
    /// An array or a map with nothing in it.
    Empty,
    /// `none`, as the type of what is not there.
    NoType,
    /// Anything else, but an error.
    Other,
}

/// What is known by a command that was carried out of whose data a key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taught {
    /// Nothing that was not known before.
    Nothing,
    /// What was known no longer holds: there is another value now, and it does not say.
    Unknown,
    /// Whose data it is: the bytes that say so.
    Subject(Vec<u8>),
}

/// The most members that a path names.
const MAX_DEPTH: usize = 32;

impl JsonPath {
    /// Reads a path: `$`, and `.` and a name for each member.
    ///
    /// # Errors
    /// It is none, and what one is.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(names) = text.strip_prefix("$.") else {
            return Err("a path is `$`, and a dot and a name for each member, such as `$.user.id`");
        };
        let names = names.split('.').map(str::to_owned).collect::<Vec<_>>();
        if !names.iter().all(|name| is_name(name)) {
            return Err("a path has names of members alone, none of them empty: no `[…]`, no `..`, no `*`");
        }
        if names.len() > MAX_DEPTH {
            return Err("a path names at most 32 members");
        }
        Ok(JsonPath(names))
    }

    /// Where in a value that is put at `root` this path leads: the names that are left, none at all where it leads elsewhere; `None`
    /// where `root` is no names alone, and may be about anything.
    fn below(&self, root: &[u8]) -> Option<Option<&[String]>> {
        let root = std::str::from_utf8(root).ok()?;
        let root = root.strip_prefix('$').unwrap_or(root);
        let mut names = self.0.as_slice();
        if matches!(root, "" | ".") {
            return Some(Some(names));
        }
        for name in root.strip_prefix('.').unwrap_or(root).split('.') {
            if !is_name(name) {
                return None;
            }
            match names.split_first() {
                Some((first, rest)) if first == name => names = rest,
                _ => return Some(None),
            }
        }
        Some(Some(names))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['[', ']', '*', '"', '\'', '$', '?', '@'])
}

impl Lesson {
    /// What a command teaches that wrote to the key that is its word `key`, and was answered so. `command` is its name, in small letters.
    pub fn read(&self, command: &str, key: u64, words: &dyn Words, answer: Answer) -> Taught {
        let text = |offset: u64, names: &[String]| match words.word(key + offset) {
            Some(text) => match member(text, names) {
                Some(Some(subject)) => Said::Subject(subject),
                Some(None) => Said::Perhaps,
                None => Said::Nothing,
            },
            None => Said::Perhaps,
        };
        let said = match (self, command) {
            (Lesson::HashField(field), "hset" | "hmset" | "hsetnx") => last_pair(key + 1, field, words),
            (Lesson::HashField(field), "hsetex") => {
                // HSETEX key [FNX | FXX] [EX … | KEEPTTL] FIELDS count field value …
                let is_fields =
                    |at: &u64| words.word(*at).is_none_or(|it| it.eq_ignore_ascii_case(b"fields"));
                let fields = (key + 1..words.count()).find(is_fields);
                fields.map_or(Said::Nothing, |at| last_pair(at + 2, field, words))
            }
            (Lesson::HashField(field), "hincrby" | "hincrbyfloat") => {
                match words.word(key + 1).map(|name| name == field.as_bytes()) {
                    Some(false) => Said::Nothing,
                    Some(true) => match answer {
                        Answer::Integer(number) => Said::Subject(number.to_string().into_bytes()),
                        _ => Said::Perhaps,
                    },
                    None => Said::Perhaps,
                }
            }
            (Lesson::Json(path), "json.set" | "json.merge" | "json.mset") => {
                match words.word(key + 1).and_then(|root| path.below(root)) {
                    Some(Some(names)) => match text(2, names) {
                        // What is put over the place itself, or over what it lies in, is there instead of what was.
                        Said::Nothing if command != "json.merge" => Said::Perhaps,
                        said => said,
                    },
                    Some(None) => Said::Nothing,
                    None => Said::Perhaps,
                }
            }
            (Lesson::Json(path), "set" | "setnx" | "getset" | "mset" | "msetnx" | "msetex") => {
                text(1, &path.0)
            }
            (Lesson::Json(path), "setex" | "psetex" | "setrange") => text(2, &path.0),
            _ => Said::Nothing,
        };
        match said {
            Said::Subject(subject) if !subject.is_empty() => Taught::Subject(subject),
            Said::Nothing if !replaces(command) => Taught::Nothing,
            Said::Nothing | Said::Perhaps | Said::Subject(_) => Taught::Unknown,
        }
    }
}

/// What a command says of whose data a value is.
enum Said {
    Nothing,
    /// Something that cannot be read, or is not kept.
    Perhaps,
    Subject(Vec<u8>),
}

/// The value of the last of the pairs from `first` on that begins with `name`.
fn last_pair(first: u64, name: &str, words: &dyn Words) -> Said {
    let mut said = Said::Nothing;
    let mut at = first;
    while at + 1 < words.count() {
        match words.word(at) {
            Some(word) if word == name.as_bytes() => {
                said = words.word(at + 1).map_or(Said::Perhaps, |value| Said::Subject(value.to_vec()));
            }
            Some(_) => {}
            // Beyond what is kept there may be any number of them, and nothing more to be found.
            None => return Said::Perhaps,
        }
        at += 2;
    }
    said
}

/// Whether a command puts another value in the place of all that a key had.
fn replaces(command: &str) -> bool {
    matches!(
        command,
        "set"
            | "getset"
            | "setex"
            | "psetex"
            | "setnx"
            | "setrange"
            | "mset"
            | "msetnx"
            | "msetex"
            | "restore"
            | "bitop"
            | "sunionstore"
            | "sinterstore"
            | "sdiffstore"
            | "zunionstore"
            | "zinterstore"
            | "zdiffstore"
            | "zrangestore"
            | "geosearchstore"
            | "georadius"
            | "georadiusbymember"
            | "sort"
    )
}

/// Whether a command did what it was asked for, by what the server answered, and put it in the place of all that was there where it may do
/// either (`SETRANGE`); `None` where that does not tell.
pub fn was_done(command: &str, words: &dyn Words, answer: Answer) -> Option<bool> {
    let has = |wanted: &[&str]| {
        let mut options = (3..words.count()).filter_map(|at| words.word(at));
        options.any(|word| wanted.iter().any(|it| word.eq_ignore_ascii_case(it.as_bytes())))
    };
    match command {
        "hsetnx" | "hsetex" | "setnx" | "msetnx" | "msetex" | "copy" | "move" | "renamenx" => {
            Some(answer == Answer::Integer(1))
        }
        "set" if has(&["get"]) => match () {
            () if has(&["ifeq", "ifne", "ifdeq", "ifdne"]) => None,
            () if has(&["nx"]) => Some(answer == Answer::Null),
            () if has(&["xx"]) => Some(answer != Answer::Null),
            () => Some(true),
        },
        "set" | "json.set" => Some(answer != Answer::Null),
        // The answer is how long the value is by then.
        "setrange" => match (words.word(2), words.word(3)) {
            (Some(b"0"), Some(value)) => Some(answer == Answer::Integer(value.len().try_into().ok()?)),
            (Some(b"0") | None, None) => None,
            _ => Some(false),
        },
        _ => Some(true),
    }
}

/// Whether the server answered that there is no such key, to a command that has one. What has expired, or was evicted, is found out so.
pub fn says_gone(command: &str, answer: Answer) -> bool {
    match answer {
        Answer::Null => matches!(command, "get" | "getex" | "getdel" | "dump" | "json.get"),
        Answer::Empty => matches!(command, "hgetall" | "hkeys" | "hvals" | "smembers"),
        Answer::Integer(0) => matches!(command, "exists" | "hlen" | "llen" | "scard" | "zcard" | "touch"),
        Answer::Integer(-2) => matches!(command, "ttl" | "pttl" | "expiretime" | "pexpiretime"),
        Answer::NoType => command == "type",
        Answer::Integer(_) | Answer::Other => false,
    }
}

/// The text or whole number at a place of a JSON text; none where there is something else in its place or in that of what it
/// lies in; `None` where there is nothing. Of members of one name the last counts, as it does to those who read it.
fn member(text: &[u8], names: &[String]) -> Option<Option<Vec<u8>>> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let found = Seek(names).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    found.map(|text| text.map(String::into_bytes))
}

/// Reads a value to its end and gives what is at a place in it.
struct Seek<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = Option<Option<String>>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = Option<Option<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = self.0.is_empty().then_some(None);
        while let Some(name) = map.next_key::<String>()? {
            match self.0.split_first() {
                Some((first, rest)) if *first == name => found = map.next_value_seed(Seek(rest))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(self.0.is_empty().then(|| text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(self.0.is_empty().then(|| number.to_string())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(self.0.is_empty().then(|| number.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Some(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Some(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Some(None))
    }
}

impl Answer {
    /// What a value of a reply comes to, where it is no error; `text` is its text.
    pub fn of(node: &Node, text: &[u8]) -> Self {
        match node.kind {
            Kind::Null => Answer::Null,
            _ if node.is_aggregate() && node.length == 0 => Answer::Empty,
            Kind::Simple if text == b"none" => Answer::NoType,
            Kind::Integer => {
                let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                number.map_or(Answer::Other, Answer::Integer)
            }
            _ => Answer::Other,
        }
    }
}

impl Words for Arguments {
    fn count(&self) -> u64 {
        self.count()
    }

    fn word(&self, index: u64) -> Option<&[u8]> {
        if self.is_whole(index) { self.get(index) } else { None }
    }
}

impl Words for Vec<Vec<u8>> {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn word(&self, index: u64) -> Option<&[u8]> {
        self.get(usize::try_from(index).ok()?).map(Vec::as_slice)
    }
}
