//! What a map names in a record, and what stands there.

use super::pointer::Pointer;
use crate::Value;
use crate::format::Format;
use bulla_text::spelling::nearest;
use std::borrow::Cow;

/// Everything that a map names, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) pointers: Vec<Pointer>,
    /// Groups of regular expressions.
    groups: Vec<String>,
    /// The format, and the members of its records, where these are known without a record.
    pub(super) known: Option<(Format, Vec<String>)>,
    /// Texts that stand for nothing.
    pub(super) nothing: Vec<String>,
    /// Whether it matters which members fields took.
    pub(super) has_rest: bool,
}

impl Names {
    /// The number of a pointer; or that no record has such a member.
    pub(super) fn pointer(&mut self, pointer: Pointer) -> Result<usize, String> {
        if let (Some((format, members)), Some(token)) = (&self.known, pointer.tokens().first())
            && !members.contains(&token.name)
        {
            let all = || members.iter().map(String::as_str);
            let hint = match nearest(&token.name, all().map(|name| (name, name))) {
                Some(meant) => format!("did you mean `/{meant}`?"),
                None => format!("there are {}", all().collect::<Vec<_>>().join(", ")),
            };
            let name = token.name.escape_debug();
            return Err(format!("records of the format \"{format}\" have no member `/{name}`; {hint}"));
        }
        Ok(number(&mut self.pointers, pointer))
    }

    /// The number of a group, which is new or has been met.
    pub(super) fn add_group(&mut self, name: &str) -> usize {
        number(&mut self.groups, name.to_owned())
    }

    /// The number of a group.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group == name)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(String::as_str)
    }
}

fn number<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    all.iter().position(|there| *there == one).unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    })
}

/// One of the places that a template may take its text from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The member that the pointer of this number names.
    Member(usize),
    /// The group of this number.
    Group(usize),
    /// The whole record.
    Raw,
    /// Nothing, which is a text.
    Empty,
}

/// What stands in a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'s, 'v> {
    Value(&'s Value<'v>),
    Text(&'s str),
    Bytes(&'s [u8]),
}

/// A record while it is mapped.
#[derive(Debug)]
pub(super) struct Scope<'s, 'v> {
    names: &'s Names,
    raw: &'s [u8],
    pub(super) record: &'s Value<'v>,
    groups: Vec<Option<&'s str>>,
    /// Whether a field has the value of this pointer; empty where that does not matter.
    pub(super) taken: Vec<bool>,
}

impl<'s, 'v> Scope<'s, 'v> {
    pub(super) fn new(names: &'s Names, raw: &'s [u8], record: &'s Value<'v>) -> Self {
        let taken = if names.has_rest { vec![false; names.pointers.len()] } else { Vec::new() };
        Scope { names, raw, record, groups: vec![None; names.groups.len()], taken }
    }

    /// What the pointer of this number names, if it is something.
    pub(super) fn member(&self, pointer: usize) -> Option<&'s Value<'v>> {
        self.names.pointers[pointer].find(self.record).filter(|value| self.is_something(value))
    }

    /// Calls `found` with each of what the pointer names that is something.
    pub(super) fn each(&self, pointer: usize, found: &mut dyn FnMut(&'s Value<'v>)) {
        self.names.pointers[pointer].each(self.record, &mut |value| match value {
            Value::List(items) => items.iter().filter(|item| self.is_something(item)).for_each(&mut *found),
            _ if self.is_something(value) => found(value),
            _ => {}
        });
    }

    pub(super) fn find(&self, source: Source) -> Option<Found<'s, 'v>> {
        match source {
            Source::Member(pointer) => self.member(pointer).map(Found::Value),
            Source::Group(group) => self.groups[group].map(Found::Text),
            Source::Raw => Some(Found::Bytes(self.raw)),
            Source::Empty => Some(Found::Text("")),
        }
    }

    pub(super) fn set_group(&mut self, group: usize, text: &'s str) {
        self.groups[group] = Some(text).filter(|text| !self.is_nothing(text));
    }

    /// Notes that a field has what stands there.
    pub(super) fn take(&mut self, source: Source) {
        if let Source::Member(pointer) = source
            && let Some(taken) = self.taken.get_mut(pointer)
        {
            *taken = true;
        }
    }

    fn is_something(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Null => false,
            Value::Text(text) => !self.is_nothing(text),
            _ => true,
        }
    }

    fn is_nothing(&self, text: &str) -> bool {
        self.names.nothing.iter().any(|nothing| nothing == text)
    }
}

/// What is wrong with a field of a record, in words that end a sentence and hold no value.
pub(super) type Problem = Cow<'static, str>;

impl<'s> Found<'s, '_> {
    /// It as text: numbers in decimal, and lists and objects, where they may be there, as JSON.
    pub(super) fn bytes(self, may_be_json: bool) -> Result<Cow<'s, [u8]>, Problem> {
        let value = match self {
            Found::Text(text) => return Ok(Cow::Borrowed(text.as_bytes())),
            Found::Bytes(bytes) => return Ok(Cow::Borrowed(bytes)),
            Found::Value(value) => value,
        };
        Ok(match value {
            Value::Text(text) => Cow::Borrowed(text.as_bytes()),
            Value::Bytes(bytes) => Cow::Borrowed(bytes),
            Value::Null => Cow::Borrowed(b""),
            Value::Bool(true) => Cow::Borrowed(b"true"),
            Value::Bool(false) => Cow::Borrowed(b"false"),
            Value::Unsigned(number) => Cow::Owned(number.to_string().into_bytes()),
            Value::Signed(number) => Cow::Owned(number.to_string().into_bytes()),
            Value::Float(number) => Cow::Owned(number.to_string().into_bytes()),
            Value::List(_) | Value::Object(_) if may_be_json => {
                let mut json = Vec::new();
                value.write_json(&mut json);
                Cow::Owned(json)
            }
            Value::List(_) => return Err("would be a list, where one text is wanted".into()),
            Value::Object(_) => return Err("would be an object, where text is wanted".into()),
        })
    }
}
