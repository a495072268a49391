//! Fields of entries: by which of them entries are asked for ([`filter`]), and field rules, applied: what the rules of a log
//! take from an entry before anything of it is staged.
//!
//! Invariants of the rules:
//! - what a rule takes away is copied nowhere: it reaches no buffer, so no row, no hash, no index and no file;
//! - a value that cannot be treated as its rule says is dropped;
//! - an entry within the limits is within them afterwards, too;
//! - nothing is allocated: what stands in a value's place lies in [`Replacements`], on the stack of the thread that appends;
//! - time, operation and data subjects are the entry's own.

mod address;
mod cut;
pub(crate) mod filter;
#[cfg(test)]
mod tests;

use crate::format::config::{FieldRules, LogConfig, Rule};
use crate::keys::pseudonym::{FieldPseudonyms, PseudonymKey};
use address::Prefixes;
use bulla_crypto::environment::Environment;
use bulla_proof::entry::Field;
use bulla_proof::{Entry, EntryError};
use bulla_store::Result;
use bulla_store::Store;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rules of a log in the form in which they are applied, with the keys that they need.
pub(crate) struct CompiledRules {
    /// By the fields' places in a row.
    actions: [Action; FIELDS],
    /// Values that were dropped for not being an address.
    not_addresses: AtomicU64,
}

/// The fields that can have a rule.
const FIELDS: usize = Field::Subject as usize;

enum Action {
    Keep,
    Drop,
    Pseudonymise(Box<FieldPseudonyms>),
    TruncateIp(Prefixes),
    StripQuery,
    Cap(usize),
}

impl CompiledRules {
    /// Makes ready the rules of a log whose keys are in `keys`; `None` where every field is kept.
    ///
    /// # Errors
    /// As [`PseudonymKey::load`], where there are pseudonyms to make.
    pub(crate) fn load(
        config: &LogConfig,
        keys: &dyn Store,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        if config.fields.is_empty() {
            return Ok(None);
        }
        let key = match config.fields.pseudonymise() {
            true => Some(PseudonymKey::load(config, keys, environment)?),
            false => None,
        };
        Self::new(&config.fields, key.as_ref()).map(Some)
    }

    fn new(rules: &FieldRules, key: Option<&PseudonymKey>) -> Result<Self> {
        let mut actions = [const { Action::Keep }; FIELDS];
        for (field, rule) in rules.by_place() {
            actions[field as usize] = match (rule, key) {
                (Rule::Pseudonymise, Some(key)) => Action::Pseudonymise(Box::new(key.of_field(field)?)),
                (Rule::Drop | Rule::Pseudonymise, _) => Action::Drop,
                (Rule::TruncateIp { v4, v6 }, _) => Action::TruncateIp(Prefixes { v4, v6 }),
                (Rule::StripQuery, _) => Action::StripQuery,
                (Rule::Cap(bytes), _) => Action::Cap(bytes as usize),
            };
        }
        Ok(CompiledRules { actions, not_addresses: AtomicU64::new(0) })
    }

    /// What is to be logged of an entry.
    pub(crate) fn apply<'a>(
        &self,
        entry: &'a Entry<'_>,
        replacements: &'a mut Replacements,
    ) -> ReducedEntry<'a> {
        let [location, controller, processor, purpose, actor, client, stream, payload] = &mut replacements.0;
        let client = self.text(Field::Client, entry.client, client);
        ReducedEntry {
            not_address: client.is_none() && entry.client.is_some() && self.truncates(),
            subjects: entry.subjects.as_deref(),
            entry: Entry {
                time: entry.time,
                operation: entry.operation,
                subjects: None,
                location: self.bytes(Field::Location, entry.location, location),
                controller: self.text(Field::Controller, entry.controller, controller),
                processor: self.text(Field::Processor, entry.processor, processor),
                purpose: self.text(Field::Purpose, entry.purpose, purpose),
                actor: self.text(Field::Actor, entry.actor, actor),
                client,
                stream: self.text(Field::Stream, entry.stream, stream),
                status: self.number(Field::Status, entry.status),
                duration: self.number(Field::Duration, entry.duration),
                size: self.number(Field::Size, entry.size),
                flags: self.number(Field::Flags, entry.flags),
                payload: self.bytes(Field::Payload, entry.payload, payload),
            },
        }
    }

    /// Counts values that were dropped for not being an address.
    pub(crate) fn count_not_addresses(&self, values: u64) {
        self.not_addresses.fetch_add(values, Ordering::Relaxed);
    }

    /// How many were counted.
    pub(crate) fn not_addresses(&self) -> u64 {
        self.not_addresses.load(Ordering::Relaxed)
    }

    fn truncates(&self) -> bool {
        matches!(self.actions[Field::Client as usize], Action::TruncateIp(_))
    }

    fn text<'a>(
        &self,
        field: Field,
        value: Option<&'a str>,
        replacement: &'a mut Replacement,
    ) -> Option<&'a str> {
        match &self.actions[field as usize] {
            Action::Keep => value,
            Action::Pseudonymise(pseudonyms) => replacement.print(pseudonyms.of(value?.as_bytes())),
            Action::TruncateIp(prefixes) => replacement.print(prefixes.truncate(value?)?),
            Action::Drop | Action::StripQuery | Action::Cap(_) => None,
        }
    }

    fn bytes<'a>(
        &self,
        field: Field,
        value: Option<&'a [u8]>,
        replacement: &'a mut Replacement,
    ) -> Option<&'a [u8]> {
        match &self.actions[field as usize] {
            Action::Keep => value,
            Action::Pseudonymise(pseudonyms) => replacement.print(pseudonyms.of(value?)).map(str::as_bytes),
            Action::StripQuery => value.map(cut::strip_query),
            Action::Cap(limit) => value.map(|value| cut::cap(value, *limit)),
            Action::Drop | Action::TruncateIp(_) => None,
        }
    }

    fn number<T>(&self, field: Field, value: Option<T>) -> Option<T> {
        value.filter(|_| matches!(self.actions[field as usize], Action::Keep))
    }
}

/// Room for what stands in the place of an entry's values: one for each field that can have a replacement.
#[derive(Default)]
pub(crate) struct Replacements([Replacement; 8]);

/// Room for one address or pseudonym, as text.
struct Replacement([u8; LONGEST]);

/// No canonical address is longer than eight groups, and no pseudonym is as long.
const LONGEST: usize = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".len();

impl Default for Replacement {
    fn default() -> Self {
        Replacement([0; LONGEST])
    }
}

impl Replacement {
    fn print(&mut self, value: impl Display) -> Option<&str> {
        let mut rest = &mut self.0[..];
        write!(rest, "{value}").ok()?;
        let length = LONGEST - rest.len();
        std::str::from_utf8(&self.0[..length]).ok()
    }
}

/// An entry as it is to be logged.
pub(crate) struct ReducedEntry<'a> {
    /// Without its data subjects: a list of more than two could not be copied without an allocation.
    entry: Entry<'a>,
    subjects: Option<&'a [&'a str]>,
    /// Whether its client was dropped for not being an address.
    pub(crate) not_address: bool,
}

impl ReducedEntry<'_> {
    /// The length of its row in bytes.
    ///
    /// # Errors
    /// The first field that breaks a limit.
    pub(crate) fn measure(&self) -> Result<usize, EntryError> {
        self.entry.measure_with(self.subjects)
    }

    /// Writes its row, of that length.
    pub(crate) fn encode(&self, time: i64, row: &mut [u8]) {
        self.entry.encode_with(self.subjects, time, row);
    }
}
