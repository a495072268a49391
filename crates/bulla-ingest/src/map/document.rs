//! Tables and values of a TOML document, each of which knows where it stands, so that whatever is wrong with one is said of that place.

use super::MapError;
use super::error::place;
use bulla_text::spelling::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a map, and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

/// A table, of which keys are taken.
pub(super) struct Table<'a> {
    document: Document<'a>,
    /// As it is written in a header; empty for the document.
    name: &'static str,
    pub(super) at: usize,
    keys: DeTable<'a>,
}

/// The value of a key.
#[derive(Clone)]
pub(super) struct Item<'a> {
    document: Document<'a>,
    /// The key.
    pub(super) name: String,
    value: Spanned<DeValue<'a>>,
}

impl<'a> Document<'a> {
    pub(super) fn error(self, at: usize, what: impl Into<String>) -> MapError {
        MapError::new(self.name, self.text, at, what)
    }

    /// The table that the document is.
    pub(super) fn table(self) -> Result<Table<'a>, MapError> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(self.text.len(), |span| span.start);
            self.error(at, format!("this is no TOML: {}", error.message()))
        })?;
        Ok(Table { document: self, name: "", at: 0, keys: parsed.into_inner() })
    }
}

impl<'a> Table<'a> {
    /// Refuses every key but these.
    pub(super) fn know(&self, known: &[&str]) -> Result<(), MapError> {
        for key in self.keys.keys() {
            let wrong = key.get_ref().as_ref();
            if known.contains(&wrong) {
                continue;
            }
            let hint = match nearest(wrong, known.iter().map(|name| (*name, *name))) {
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => format!("; there are {}", known.join(", ")),
            };
            let place = if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) };
            let what = format!("there is no key `{}`{place}{hint}", wrong.escape_debug());
            return Err(self.document.error(key.span().start, what));
        }
        Ok(())
    }

    /// The value of a key, if it has one.
    pub(super) fn take(&mut self, key: &str) -> Option<Item<'a>> {
        let value = self.keys.remove(key)?;
        Some(Item { document: self.document, name: key.to_owned(), value })
    }

    /// The keys that are left, each with its value and its place, in the order in which they stand.
    pub(super) fn rest(self) -> Vec<(String, usize, Item<'a>)> {
        let document = self.document;
        let mut items = self.keys.into_iter().map(|(key, value)| {
            let (at, name) = (key.span().start, key.into_inner().into_owned());
            (name.clone(), at, Item { document, name, value })
        });
        let mut items = items.by_ref().collect::<Vec<_>>();
        items.sort_by_key(|(_, at, _)| *at);
        items
    }

    /// That something is wrong with the table as a whole.
    pub(super) fn error(&self, what: impl Into<String>) -> MapError {
        self.document.error(self.at, what)
    }

    pub(super) fn document(&self) -> Document<'a> {
        self.document
    }

    /// The line that the table begins in, from 1.
    pub(super) fn line(&self) -> usize {
        place(self.document.text, self.at).0
    }
}

impl<'a> Item<'a> {
    /// A table, which is called so in messages.
    pub(super) fn table(self, name: &'static str) -> Result<Table<'a>, MapError> {
        let (at, document) = (self.value.span().start, self.document);
        match self.value.into_inner() {
            DeValue::Table(keys) => Ok(Table { document, name, at, keys }),
            other => Err(document.error(at, wrong_kind(&self.name, &other, "a table"))),
        }
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// The items of an array.
    pub(super) fn items(&self) -> Option<Vec<Item<'a>>> {
        let item = |value: &Spanned<DeValue<'a>>| Item {
            document: self.document,
            name: self.name.clone(),
            value: value.clone(),
        };
        Some(self.value.get_ref().as_array()?.iter().map(item).collect())
    }

    /// The items of an array, or the one value that is there in its place.
    pub(super) fn one_or_more(&self) -> Vec<Item<'a>> {
        self.items().unwrap_or_else(|| vec![self.clone()])
    }

    /// A text.
    pub(super) fn string(&self) -> Result<&str, MapError> {
        let found = self.value.get_ref();
        found.as_str().ok_or_else(|| self.error(wrong_kind(&self.name, found, "a string")))
    }

    /// A text, or a whole number or a boolean as text.
    pub(super) fn word(&self) -> Result<String, MapError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Boolean(is) => Ok(is.to_string()),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err(self.error("this number is too large")),
            },
            other => Err(self.error(wrong_kind(&self.name, other, "a string, a whole number or a boolean"))),
        }
    }

    /// A whole number from 1 to `most`.
    pub(super) fn count(&self, most: usize) -> Result<usize, MapError> {
        let found = self.value.get_ref();
        let number =
            found.as_integer().and_then(|number| usize::from_str_radix(number.as_str(), number.radix()).ok());
        number
            .filter(|number| (1..=most).contains(number))
            .ok_or_else(|| self.error(format!("`{}` has to be a whole number from 1 to {most}", self.name)))
    }

    /// One of these words, and what it stands for.
    pub(super) fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, MapError> {
        let text = self.string()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        found.ok_or_else(|| {
            let all = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
            self.error(format!("`{}` has to be one of {all}", self.name))
        })
    }

    /// That something is wrong with the value.
    pub(super) fn error(&self, what: impl Into<String>) -> MapError {
        self.document.error(self.value.span().start, what)
    }

    /// That something is wrong with the text of the value, from this byte of it on.
    pub(super) fn error_within(&self, at: usize, what: impl Into<String>) -> MapError {
        let span = self.value.span();
        // Where it stands as it is between quotation marks, places in it are places in the document.
        let plain = [1, 3].into_iter().find(|marks| {
            let inside = self.document.text.get(span.start + marks..span.end.saturating_sub(*marks));
            inside.is_some() && inside == self.value.get_ref().as_str()
        });
        self.document.error(plain.map_or(span.start, |marks| span.start + marks + at), what)
    }

    /// The line that the value begins in, from 1.
    pub(super) fn line(&self) -> usize {
        place(self.document.text, self.value.span().start).0
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
