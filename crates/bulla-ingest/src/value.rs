//! What a record holds, whatever its format.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// A part of a record, borrowed from it where it stands there as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// There is a name, and nothing behind it.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that is not negative.
    Unsigned(u64),
    /// A negative whole number.
    Signed(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes that are not UTF-8.
    Bytes(Cow<'a, [u8]>),
    /// Values in their order.
    List(Vec<Value<'a>>),
    /// Named values, in the order in which they stand; no name stands twice.
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// Text where `bytes` are UTF-8, else the bytes.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(Cow::Borrowed(text)),
            Err(_) => Value::Bytes(Cow::Borrowed(bytes)),
        }
    }

    /// Text where `bytes` are UTF-8, else the bytes.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Value::Text(Cow::Owned(text)),
            Err(error) => Value::Bytes(Cow::Owned(error.into_bytes())),
        }
    }

    /// Text that is borrowed.
    pub fn text(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }

    /// The member of an object by this name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        match self {
            Value::Object(members) => members.iter().find(|(of, _)| of == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Unsigned(value) => Value::Unsigned(value),
            Value::Signed(value) => Value::Signed(value),
            Value::Float(value) => Value::Float(value),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Value::List(values) => Value::List(values.into_iter().map(Value::into_owned).collect()),
            Value::Object(members) => {
                let owned = |(name, value): (Cow<'a, str>, Value<'a>)| {
                    (Cow::Owned(name.into_owned()), value.into_owned())
                };
                Value::Object(members.into_iter().map(owned).collect())
            }
        }
    }

    /// Writes the value as JSON. Bytes that are not UTF-8 become a list of numbers, as in journald's JSON; a number that JSON
    /// cannot say, `null`.
    ///
    /// ```
    /// use bulla_ingest::Value;
    /// let value = Value::Object(vec![("a".into(), Value::List(vec![Value::Unsigned(1), Value::text("\"")]))]);
    /// let mut json = Vec::new();
    /// value.write_json(&mut json);
    /// assert_eq!(json, br#"{"a":[1,"\""]}"#);
    /// ```
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Value::Unsigned(number) => write_display(number, out),
            Value::Signed(number) => write_display(number, out),
            Value::Float(number) => match serde_json::Number::from_f64(*number) {
                Some(number) => write_display(&number, out),
                None => out.extend_from_slice(b"null"),
            },
            Value::Text(text) => write_json_string(text, out),
            Value::Bytes(bytes) => {
                write_list(bytes.iter(), |byte, out| write_display(byte, out), out);
            }
            Value::List(values) => write_list(values.iter(), Value::write_json, out),
            Value::Object(members) => {
                out.push(b'{');
                for (position, (name, value)) in members.iter().enumerate() {
                    if position > 0 {
                        out.push(b',');
                    }
                    write_json_string(name, out);
                    out.push(b':');
                    value.write_json(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn write_display(value: &dyn std::fmt::Display, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

fn write_list<T>(items: impl Iterator<Item = T>, write: impl Fn(T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'[');
    for (position, item) in items.enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Writes `text` as a JSON string: as it is, but for what JSON wants escaped.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text.as_bytes(), out);
    out.push(b'"');
}

/// Writes what stands between the quotes of a JSON string.
pub(crate) fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Most chunks need nothing, and are looked at without a branch for each byte.
    for chunk in bytes.chunks(32) {
        if !chunk.iter().fold(false, |any, &byte| any | is_escaped(byte)) {
            out.extend_from_slice(chunk);
            continue;
        }
        for &byte in chunk {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                8 => out.extend_from_slice(b"\\b"),
                12 => out.extend_from_slice(b"\\f"),
                0..b' ' => {
                    let digit = |of: u8| HEXADECIMAL[usize::from(of & 15)];
                    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte)]);
                }
                _ => out.push(byte),
            }
        }
    }
}

/// From how many members on names are looked up by their hash: below it, comparing is quicker.
const HASHED: usize = 16;

/// An object that is being made, in time that grows with its members, whatever their names.
#[derive(Debug, Default)]
pub(crate) struct Members<'a> {
    members: Vec<(Cow<'a, str>, Value<'a>)>,
    /// Places by the hash of the name, once there are many.
    places: Option<(RandomState, HashMap<u64, usize>)>,
}

impl<'a> Members<'a> {
    pub(crate) fn with_capacity(members: usize) -> Self {
        Members { members: Vec::with_capacity(members), places: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The place of a name.
    fn place(&self, name: &str) -> Option<usize> {
        let is_it = |place: &usize| self.members[*place].0 == name;
        match &self.places {
            None => (0..self.members.len()).find(is_it),
            // Two names of one hash are as good as never met, its key being random; they would be looked for one by one.
            Some((state, places)) => {
                let place = *places.get(&state.hash_one(name))?;
                if is_it(&place) { Some(place) } else { (0..self.members.len()).find(is_it) }
            }
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Adds a member of a name that is known to be new.
    pub(crate) fn add(&mut self, name: impl Into<Cow<'a, str>>, value: Value<'a>) {
        let name = name.into();
        if let Some((state, places)) = &mut self.places {
            places.insert(state.hash_one(&*name), self.members.len());
        }
        self.members.push((name, value));
        if self.members.len() == HASHED {
            let state = RandomState::new();
            let places =
                self.members.iter().zip(0..).map(|((name, _), place)| (state.hash_one(&**name), place));
            self.places = Some((state.clone(), places.collect()));
        }
    }

    /// Adds a member, where there is something to add.
    pub(crate) fn add_some(&mut self, name: &'static str, value: Option<Value<'a>>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Whether the name was new, and the member is added.
    #[must_use]
    pub(crate) fn add_new(&mut self, name: Cow<'a, str>, value: Value<'a>) -> bool {
        let is_new = !self.has(&name);
        if is_new {
            self.add(name, value);
        }
        is_new
    }

    /// Adds a member; of a name that is there already, its values become a list.
    pub(crate) fn add_repeated(&mut self, name: Cow<'a, str>, value: Value<'a>) {
        let Some(place) = self.place(&name) else { return self.add(name, value) };
        let there = &mut self.members[place].1;
        match there {
            Value::List(values) => values.push(value),
            _ => *there = Value::List(vec![std::mem::replace(there, Value::Null), value]),
        }
    }

    pub(crate) fn into_object(self) -> Value<'a> {
        Value::Object(self.members)
    }
}
