//! When a rule holds, and what its regular expressions take apart.

use super::MapError;
use super::document::{Item, Table};
use super::pointer::Pointer;
use super::scope::{Found, Names, Scope, Source};
use crate::Value;
use regex::{Regex, RegexBuilder};

/// The keys of conditions.
pub(super) const KEYS: [&str; 5] = ["is", "matches", "present", "absent", "extract"];

/// How large a regular expression may be when it is compiled, in bytes. Its time is linear in the text's length whatever it is.
const MAX_REGEX: usize = 1 << 20;

/// What all has to be so, and what is taken apart then.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    tests: Vec<Test>,
    extracts: Vec<Pattern>,
}

#[derive(Clone, Debug)]
enum Test {
    /// The member of this pointer is one of these, as text.
    Is(usize, Vec<String>),
    Matches(Pattern),
    Present(usize),
    Absent(usize),
}

/// A regular expression over the text of a member.
#[derive(Clone, Debug)]
struct Pattern {
    pointer: usize,
    regex: Regex,
    /// Its named groups: the number in it, and the one in the map.
    groups: Vec<(usize, usize)>,
}

impl Conditions {
    /// Takes the conditions out of a table.
    pub(super) fn take(table: &mut Table<'_>, names: &mut Names) -> Result<Self, MapError> {
        let mut tests = Vec::new();
        for (pointer, item) in by_pointer(table, "is", names)? {
            let words = item.one_or_more().iter().map(Item::word).collect::<Result<_, _>>()?;
            tests.push(Test::Is(pointer, words));
        }
        for (pointer, item) in by_pointer(table, "matches", names)? {
            tests.push(Test::Matches(Pattern::parse(pointer, &item, names)?));
        }
        for item in table.take("present").iter().flat_map(Item::one_or_more) {
            tests.push(Test::Present(pointer(&item, names)?));
        }
        for item in table.take("absent").iter().flat_map(Item::one_or_more) {
            tests.push(Test::Absent(pointer(&item, names)?));
        }
        let mut extracts = Vec::new();
        for (pointer, item) in by_pointer(table, "extract", names)? {
            extracts.push(Pattern::parse(pointer, &item, names)?);
        }
        Ok(Conditions { tests, extracts })
    }

    /// Whether they hold for every record.
    pub(super) fn always_hold(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether they hold. Groups are set where they do, and may be where they do not.
    pub(super) fn hold(&self, scope: &mut Scope<'_, '_>) -> bool {
        let holds = self.tests.iter().all(|test| match test {
            Test::Is(pointer, words) => scope.member(*pointer).is_some_and(|value| is_one_of(value, words)),
            Test::Matches(pattern) => pattern.apply(scope),
            Test::Present(pointer) => scope.member(*pointer).is_some(),
            Test::Absent(pointer) => scope.member(*pointer).is_none(),
        });
        if holds {
            for pattern in &self.extracts {
                pattern.apply(scope);
            }
        }
        holds
    }
}

impl Pattern {
    fn parse(pointer: usize, item: &Item<'_>, names: &mut Names) -> Result<Self, MapError> {
        let regex = RegexBuilder::new(item.string()?).size_limit(MAX_REGEX).build();
        let regex = regex.map_err(|error| item.error(regex_problem(&error)))?;
        let mut groups = Vec::new();
        for (number, name) in regex.capture_names().enumerate() {
            let Some(name) = name else { continue };
            if name == "raw" || name == "rest" {
                let what = format!("a group cannot be called `{name}`, which has a meaning of its own");
                return Err(item.error(what));
            }
            groups.push((number, names.add_group(name)));
        }
        Ok(Pattern { pointer, regex, groups })
    }

    /// Whether the member is text that matches; and sets the groups where it does.
    fn apply(&self, scope: &mut Scope<'_, '_>) -> bool {
        let Some(Found::Value(Value::Text(text))) = scope.find(Source::Member(self.pointer)) else {
            return false;
        };
        // Groups cost an allocation and more time, and most texts match none of many rules.
        if !self.regex.is_match(text) {
            return false;
        }
        if !self.groups.is_empty()
            && let Some(captures) = self.regex.captures(text)
        {
            for (number, group) in &self.groups {
                if let Some(found) = captures.get(*number) {
                    scope.set_group(*group, found.as_str());
                }
            }
        }
        true
    }
}

/// What is wrong with a regular expression, in one line.
pub(super) fn regex_problem(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("the regular expression takes more than {limit} bytes when it is compiled")
        }
        error => {
            // The last line says what is wrong; those before it show where, in many lines.
            let text = error.to_string();
            let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("this is no regular expression: {what}")
        }
    }
}

/// The pointer that is the text of this value.
pub(super) fn pointer(item: &Item<'_>, names: &mut Names) -> Result<usize, MapError> {
    let pointer = Pointer::parse(item.string()?).map_err(|(at, what)| item.error_within(at, what))?;
    if pointer.is_several() {
        return Err(item.error("`*` is each item of a list, for which only `subject` has room"));
    }
    names.pointer(pointer).map_err(|what| item.error_within(0, what))
}

/// What a table says of pointers, in the order in which it says so.
fn by_pointer<'a>(
    table: &mut Table<'a>,
    key: &'static str,
    names: &mut Names,
) -> Result<Vec<(usize, Item<'a>)>, MapError> {
    let Some(item) = table.take(key) else { return Ok(Vec::new()) };
    let name = match key {
        "is" => "`is`",
        "matches" => "`matches`",
        _ => "`extract`",
    };
    let table = item.table(name)?;
    let (at, document) = (table.at, table.document());
    let mut named = Vec::new();
    for (text, place, item) in table.rest() {
        let pointer = Pointer::parse(&text).map_err(|(_, what)| {
            document.error(place, format!("{what}, and this names members: {name} = {{ \"/NAME\" = … }}"))
        })?;
        if pointer.is_several() {
            return Err(document.error(at, "`*` is each item of a list, for which only `subject` has room"));
        }
        named.push((names.pointer(pointer).map_err(|what| document.error(place, what))?, item));
    }
    Ok(named)
}

fn is_one_of(value: &Value<'_>, words: &[String]) -> bool {
    match value {
        Value::Text(text) => words.iter().any(|word| word == text),
        Value::List(_) | Value::Object(_) => false,
        _ => Found::Value(value)
            .bytes(false)
            .is_ok_and(|text| words.iter().any(|word| word.as_bytes() == &*text)),
    }
}
