//! Tables and values of a TOML document, each of which knows where it stands, so that whatever is wrong with one is said of that place.

use super::ConfigError;
use bulla::text::spelling::nearest;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table whose keys are all known.
pub(super) struct Table<'a> {
    text: &'a str,
    /// As it is written in a header; empty for the document.
    name: String,
    at: usize,
    keys: DeTable<'a>,
}

/// The value of a key.
pub(super) struct Value<'a> {
    text: &'a str,
    /// The key, after those of the tables that it is in.
    pub(super) name: String,
    value: Spanned<DeValue<'a>>,
}

/// The table that a whole document is.
///
/// # Errors
/// It is no TOML, or has a key other than these.
pub(super) fn document<'a>(text: &'a str, known: &'static [&'static str]) -> Result<Table<'a>, ConfigError> {
    let parsed = DeTable::parse(text).map_err(|error| {
        // What is said of a syntax error does not repeat what stands there.
        let at = error.span().map_or(text.len(), |span| span.start);
        ConfigError::new(text, at, format!("this is no TOML: {}", error.message()))
    })?;
    Table::new(text, String::new(), 0, parsed.into_inner(), known)
}

impl<'a> Table<'a> {
    fn new(
        text: &'a str,
        name: String,
        at: usize,
        keys: DeTable<'a>,
        known: &'static [&'static str],
    ) -> Result<Self, ConfigError> {
        for key in keys.keys() {
            let wrong = key.get_ref().as_ref();
            if known.contains(&wrong) {
                continue;
            }
            let place = if name.is_empty() { String::new() } else { format!(" in `[{name}]`") };
            let hint = match nearest(wrong, known.iter().map(|name| (*name, *name))) {
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => format!("; there are {}", list(known.iter())),
            };
            let what = format!("there is no key `{}`{place}{hint}", wrong.escape_debug());
            return Err(ConfigError::new(text, key.span().start, what));
        }
        Ok(Table { text, name, at, keys })
    }

    /// The value of a key, if it has one.
    pub(super) fn take(&mut self, key: &str) -> Option<Value<'a>> {
        let value = self.keys.remove(key)?;
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        Some(Value { text: self.text, name, value })
    }

    /// The value of a key that has to be there, for which an example is given.
    pub(super) fn require(&mut self, key: &str, example: &str) -> Result<Value<'a>, ConfigError> {
        let missing = match self.name.as_str() {
            "" => format!("`{key}` is missing: {example}"),
            name => format!("`{key}` is missing in `[{name}]`: {example}"),
        };
        let error = self.error(missing);
        self.take(key).ok_or(error)
    }

    /// The table under a key; an empty one where there is none.
    pub(super) fn table(
        &mut self,
        key: &str,
        known: &'static [&'static str],
    ) -> Result<Table<'a>, ConfigError> {
        match self.take(key) {
            Some(value) => value.table(known),
            None => Table::new(self.text, key.to_owned(), self.at, DeTable::new(), known),
        }
    }

    /// That something is wrong with the table as a whole.
    pub(super) fn error(&self, what: String) -> ConfigError {
        ConfigError::new(self.text, self.at, what)
    }
}

impl<'a> Value<'a> {
    /// A table.
    pub(super) fn table(self, known: &'static [&'static str]) -> Result<Table<'a>, ConfigError> {
        let (at, text, name) = (self.value.span().start, self.text, self.name.clone());
        match self.value.into_inner() {
            DeValue::Table(keys) => Table::new(text, name, at, keys, known),
            other => Err(ConfigError::new(text, at, wrong_kind(&name, &other, "a table"))),
        }
    }

    /// Whether it is a table.
    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// The items of an array.
    pub(super) fn items(&self) -> Result<Vec<Value<'a>>, ConfigError> {
        match self.value.get_ref() {
            DeValue::Array(items) => {
                let item = |value: &Spanned<DeValue<'a>>| Value {
                    text: self.text,
                    name: self.name.clone(),
                    value: value.clone(),
                };
                Ok(items.iter().map(item).collect())
            }
            other => Err(self.error(wrong_kind(&self.name, other, "an array"))),
        }
    }

    /// A text that is not empty.
    pub(super) fn string(&self) -> Result<&str, ConfigError> {
        let found = self.value.get_ref();
        match found.as_str() {
            Some("") => Err(self.error(format!("`{}` is empty", self.name))),
            Some(text) => Ok(text),
            None => Err(self.error(wrong_kind(&self.name, found, "a string"))),
        }
    }

    /// A text that `parse` understands; `wanted` says which those are.
    pub(super) fn parsed<T>(
        &self,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let text = self.string()?;
        parse(text).ok_or_else(|| self.not(text, wanted))
    }

    /// One of these words, and what it stands for.
    pub(super) fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T, ConfigError> {
        let wanted = format!("one of {}", list(words.iter().map(|(word, _)| word)));
        self.parsed(&wanted, |text| words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning))
    }

    /// A whole number within bounds.
    pub(super) fn number(&self, bounds: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        let found = self.value.get_ref();
        let wanted = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let Some(number) = found.as_integer() else {
            return Err(self.error(wrong_kind(&self.name, found, &wanted)));
        };
        let parsed = u64::from_str_radix(number.as_str(), number.radix()).ok();
        parsed
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| self.error(format!("`{}` is {}; it may be {wanted}", self.name, number.as_str())))
    }

    /// A number of bytes within bounds, which are whole numbers of KiB.
    pub(super) fn size(&self, bounds: RangeInclusive<u64>) -> Result<usize, ConfigError> {
        self.quantity(&sizes(&bounds), |text| size(text, &bounds))
    }

    /// The same; `None` where it is off.
    pub(super) fn size_or_off(&self, bounds: RangeInclusive<u64>) -> Result<Option<usize>, ConfigError> {
        self.quantity(&or_off(&sizes(&bounds)), |text| unless_off(text, |text| size(text, &bounds)))
    }

    /// A length of time within bounds.
    pub(super) fn duration(&self, bounds: RangeInclusive<Duration>) -> Result<Duration, ConfigError> {
        self.quantity(&durations(&bounds), |text| duration(text, &bounds))
    }

    /// The same; `None` where it is off.
    pub(super) fn duration_or_off(
        &self,
        bounds: RangeInclusive<Duration>,
    ) -> Result<Option<Duration>, ConfigError> {
        self.quantity(&or_off(&durations(&bounds)), |text| unless_off(text, |text| duration(text, &bounds)))
    }

    /// A text that is a number and its unit, which `parse` understands; `wanted` says which those are.
    fn quantity<T>(&self, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, ConfigError> {
        let found = self.value.get_ref();
        let Some(text) = found.as_str() else {
            return Err(self.error(wrong_kind(&self.name, found, &format!("a string, {wanted}"))));
        };
        if let Some(quantity) = parse(text) {
            return Ok(quantity);
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(
                self.error(format!("`{}` is \"{text}\", without a unit; it may be {wanted}", self.name))
            );
        }
        Err(self.not(text, wanted))
    }

    /// That something is wrong with the value.
    pub(super) fn error(&self, what: String) -> ConfigError {
        ConfigError::new(self.text, self.value.span().start, what)
    }

    /// That something is wrong with the text of the value, from this byte of it on.
    pub(super) fn error_within(&self, at: usize, what: String) -> ConfigError {
        let span = self.value.span();
        // Where it stands as it is between two quotation marks, places in it are places in the document.
        let plain =
            self.text.get(span.start + 1..span.end.saturating_sub(1)) == self.value.get_ref().as_str();
        ConfigError::new(self.text, if plain { span.start + 1 + at } else { span.start }, what)
    }

    fn not(&self, text: &str, wanted: &str) -> ConfigError {
        self.error(format!("`{}` is \"{}\"; it may be {wanted}", self.name, text.escape_debug()))
    }
}

fn wrong_kind(name: &str, found: &DeValue<'_>, wanted: &str) -> String {
    let found = match found {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number that is not whole",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    };
    format!("`{name}` is {found}; it has to be {wanted}")
}

fn size(text: &str, bounds: &RangeInclusive<u64>) -> Option<usize> {
    bulla::parse_size(text).filter(|bytes| bounds.contains(&(*bytes as u64)))
}

/// Which sizes are within bounds, and how they are written.
fn sizes(bounds: &RangeInclusive<u64>) -> String {
    let [least, most] = [bounds.start(), bounds.end()].map(|bytes| match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    });
    format!("a size from \"{least}\" to \"{most}\": a whole number and its unit, B, KiB, MiB, GiB or TiB")
}

fn duration(text: &str, bounds: &RangeInclusive<Duration>) -> Option<Duration> {
    bulla::parse_age(text).ok().filter(|time| bounds.contains(time))
}

/// Which lengths of time are within bounds, and how they are written.
fn durations(bounds: &RangeInclusive<Duration>) -> String {
    let [least, most] = [bounds.start(), bounds.end()].map(|time| bulla::format_age(*time));
    format!(
        "a duration from \"{least}\" to \"{most}\": a whole number and its unit, ns, us, ms, s, m (or min), h or d"
    )
}

const OFF: &str = "off";

fn or_off(wanted: &str) -> String {
    format!("\"{OFF}\" or {wanted}")
}

fn unless_off<T>(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text == OFF { Some(None) } else { parse(text).map(Some) }
}

fn list<'a>(words: impl Iterator<Item = &'a &'static str>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
