//! Says which part of a record is which field of an entry.
//!
//! `docs/maps.md` is the reference. A [`Map`] is compiled once from TOML and then applied to records: nothing of it is looked for by name
//! again but members of the record, and what is allocated is what the entry holds. Whatever is wrong with a map is said of a line and a
//! column of it; whatever is wrong with a record, of a field and the map's line that gives it, and never with a value.
//!
//! ```
//! use bulla_ingest::format::{Parsed, Parser};
//! use bulla_ingest::map::{Context, Map};
//!
//! let map = Map::parse("shop", r#"
//!     format = "json"
//!     time = "{/at}"
//!     operation = "{/did}"
//!     location = "customers/{/customer/id}"
//!     subject = "{/customer/id}"
//! "#)?;
//! let record = br#"{"at":"2026-11-03T13:00:05Z","did":"read","customer":{"id":42}}"#;
//! let mut parser = Parser::new(map.format(), map.format_options());
//! let Parsed::Fields(fields) = parser.parse(record)? else { unreachable!("JSON has no header") };
//! let entry = map.apply(record, &fields, &Context { now: 0 })?;
//! assert_eq!(entry.location.as_deref(), Some(&b"customers/42"[..]));
//!
//! let wrong = Map::parse("shop", "format = \"json\"\noperation = \"read\"\nsubjekt = \"{/id}\"").unwrap_err();
//! assert_eq!(wrong.to_string(), "shop:3:1: there is no key `subjekt`; did you mean `subject`?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compile;
mod condition;
mod document;
mod error;
mod explain;
mod field;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod number;
mod pointer;
mod ready;
mod rest;
mod scope;
mod template;
#[cfg(test)]
mod tests;
mod time;

pub use error::{MapError, Unmapped};
pub use explain::{Explained, Explanation, Outcome, shown_within};
pub use ready::Ready;

use crate::Value;
use crate::format::{Format, FormatOptions};
use bulla_text::ParsedEntry;
use condition::Conditions;
use field::{Assignment, Field};
use scope::{Names, Problem, Scope};
use std::fmt;

/// What a map needs to know besides the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The time, in nanoseconds since the epoch: what has no year lies before it, or a day after it at most.
    pub now: i64,
}

/// Says which part of a record is which field of an entry.
#[derive(Clone)]
pub struct Map {
    name: String,
    format: Format,
    options: FormatOptions,
    /// Whether what makes no entry otherwise goes in as it is.
    keeps_unparsed: bool,
    names: Names,
    /// What has to be so of every record.
    conditions: Conditions,
    /// The first that holds is the one that counts.
    rules: Vec<Rule>,
}

/// What is made of records for which conditions hold.
#[derive(Clone, Debug)]
struct Rule {
    /// The line of the map, from 1; `None` where the map has no rules.
    line: Option<usize>,
    conditions: Conditions,
    makes: Makes,
}

#[derive(Clone, Debug)]
enum Makes {
    /// An entry of these fields, in the order of [`Field`].
    Entry(Vec<Assignment>),
    /// None, for this reason.
    Refusal(String),
}

/// What is done with what has no operation of its own.
const UNPARSED: &str = "unparsed";

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

impl Map {
    /// Compiles a map; `name` is what messages call it.
    ///
    /// # Errors
    /// The first that is wrong with it.
    pub fn parse(name: &str, toml: &str) -> Result<Map, MapError> {
        compile::compile(name, toml)
    }

    /// The ready map of this name.
    pub fn ready(name: &str) -> Option<Map> {
        Self::list_ready().iter().find(|ready| ready.name == name).map(Ready::map)
    }

    /// The maps that come with Bulla.
    pub fn list_ready() -> &'static [Ready] {
        ready::READY
    }

    /// The map of what is in a format of which nothing else is known: the ready one, but that what does not fit the format is refused,
    /// whatever that one does with it.
    pub fn for_format(format: Format) -> Map {
        Map { keeps_unparsed: false, ..ready::for_format(format).map() }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format of the records.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What the map says of the format.
    pub fn format_options(&self) -> &FormatOptions {
        &self.options
    }

    /// Whether the map says of some clock that its zone is `"local"`.
    pub fn has_local_clocks(&self) -> bool {
        self.rules.iter().any(|rule| match &rule.makes {
            Makes::Entry(assignments) => assignments.iter().any(Assignment::is_local),
            Makes::Refusal(_) => false,
        })
    }

    /// Gives the zone of clocks where the map says that it is `"local"`: `UTC`, an offset as `+01:00`, or a name of the system's
    /// database. Without this it is UTC. Returns whether there is such a zone.
    #[must_use]
    pub fn set_local_zone(&mut self, zone: &str) -> bool {
        let Some(zone) = time::read_zone(zone) else { return false };
        for rule in &mut self.rules {
            if let Makes::Entry(assignments) = &mut rule.makes {
                assignments.iter_mut().for_each(|assignment| assignment.set_local_zone(&zone));
            }
        }
        true
    }

    /// Makes an entry, within every limit, of a record: `raw` as it was read, and `fields`, what the map's format finds in it. One of
    /// which the map makes none, but keeps what it cannot make anything of, is [`Map::unparsed`].
    ///
    /// # Errors
    /// The first field that the record does not give as it has to be, or that no rule is for it.
    pub fn apply(&self, raw: &[u8], fields: &Value<'_>, context: &Context) -> Result<ParsedEntry, Unmapped> {
        self.mapped(raw, fields, context).or_else(|unmapped| self.unparsed(raw, context).ok_or(unmapped))
    }

    /// The entry of a record of which nothing else can be made, where the map says `on_unparsed = "raw"`: the operation is `unparsed` and
    /// the payload the record.
    pub fn unparsed(&self, raw: &[u8], _: &Context) -> Option<ParsedEntry> {
        let fits = self.keeps_unparsed && raw.len() <= bulla_proof::entry::MAX_PAYLOAD;
        fits.then(|| ParsedEntry {
            operation: UNPARSED.to_owned(),
            payload: Some(raw.to_vec()),
            ..ParsedEntry::default()
        })
    }

    fn mapped(&self, raw: &[u8], fields: &Value<'_>, context: &Context) -> Result<ParsedEntry, Unmapped> {
        let mut scope = Scope::new(&self.names, raw, fields);
        let (_, assignments) = self.rule(&mut scope)?;
        let mut entry = ParsedEntry::default();
        for assignment in assignments {
            assignment
                .put(&mut scope, context, &mut entry)
                .map_err(|problem| self.unmapped(assignment, &problem))?;
            if assignment.field == Field::Operation && entry.operation.is_empty() {
                return Err(self.unmapped(assignment, &MISSING));
            }
        }
        entry.entry().measure().map_err(|error| self.unmapped_at(&error.to_string(), None))?;
        Ok(entry)
    }

    /// The rule for a record, and the fields that it makes an entry of.
    fn rule<'m>(&'m self, scope: &mut Scope<'m, '_>) -> Result<(&'m Rule, &'m [Assignment]), Unmapped> {
        if !self.conditions.hold(scope) {
            return Err(self.unmapped_at("the record is not one that the map is for", None));
        }
        let rule = self.rules.iter().find(|rule| rule.conditions.hold(scope));
        let rule = rule.ok_or_else(|| self.unmapped_at("no rule of the map holds for the record", None))?;
        match &rule.makes {
            Makes::Entry(assignments) => Ok((rule, assignments)),
            Makes::Refusal(reason) => Err(self.unmapped_at(reason, rule.line)),
        }
    }

    fn unmapped(&self, assignment: &Assignment, problem: &Problem) -> Unmapped {
        self.unmapped_at(&format!("`{}` {problem}", assignment.field.name()), Some(assignment.line))
    }

    fn unmapped_at(&self, what: &str, line: Option<usize>) -> Unmapped {
        Unmapped(match line {
            Some(line) => format!("{what} (map {}, line {line})", self.name),
            None => format!("{what} (map {})", self.name),
        })
    }
}

/// What is said of an operation that is not there.
const MISSING: Problem =
    Problem::Borrowed("is missing or empty: the record has nothing where the map takes it from");
