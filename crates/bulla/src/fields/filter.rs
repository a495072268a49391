//! Which entries are asked for by their fields: the one table of the fields that can be asked for.
//!
//! Invariants:
//! - of a field that is asked for, an entry meets one value at least; an entry without the field meets none;
//! - a name that stands here stands in the list of filters that an event may name, and in `docs/format.md`.

use bulla_proof::Entry;
use bulla_proof::entry::Field;
use std::ops::RangeInclusive;

/// A field of text by which entries can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // They are the fields of `Entry`, documented there.
pub enum TextField {
    Subject,
    Stream,
    Operation,
    Processor,
    Controller,
    Purpose,
    Actor,
    Client,
    Location,
}

/// A field with a number by which entries can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // They are the fields of `Entry`, documented there.
pub enum NumberField {
    Status,
    Duration,
    Size,
    Flags,
}

/// Names of the fields of text, and their places in a row; the operation, which every entry has, has none.
const TEXTS: [(TextField, &str, Option<Field>); 9] = [
    (TextField::Subject, "subject", Some(Field::Subject)),
    (TextField::Stream, "stream", Some(Field::Stream)),
    (TextField::Operation, "operation", None),
    (TextField::Processor, "processor", Some(Field::Processor)),
    (TextField::Controller, "controller", Some(Field::Controller)),
    (TextField::Purpose, "purpose", Some(Field::Purpose)),
    (TextField::Actor, "actor", Some(Field::Actor)),
    (TextField::Client, "client", Some(Field::Client)),
    (TextField::Location, "location", Some(Field::Location)),
];

/// The same of the fields with numbers.
const NUMBERS: [(NumberField, &str, Field); 4] = [
    (NumberField::Status, "status", Field::Status),
    (NumberField::Duration, "duration", Field::Duration),
    (NumberField::Size, "size", Field::Size),
    (NumberField::Flags, "flags", Field::Flags),
];

impl TextField {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TEXTS.iter().map(|(field, ..)| *field)
    }

    /// Its name, as in JSON and on the command line.
    pub fn name(self) -> &'static str {
        TEXTS[self as usize].1
    }

    /// The field with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|field| field.name() == name)
    }

    fn bit(self) -> u16 {
        TEXTS[self as usize].2.map_or(0, Field::bit)
    }

    /// Whether one of its values in an entry is as asked.
    fn any(self, entry: &Entry<'_>, is: impl Fn(&[u8]) -> bool) -> bool {
        let text = |value: Option<&str>| value.is_some_and(|value| is(value.as_bytes()));
        match self {
            TextField::Subject => entry.subjects.iter().flatten().any(|subject| is(subject.as_bytes())),
            TextField::Stream => is(entry.stream_or_default().as_bytes()),
            TextField::Operation => is(entry.operation.as_bytes()),
            TextField::Processor => text(entry.processor),
            TextField::Controller => text(entry.controller),
            TextField::Purpose => text(entry.purpose),
            TextField::Actor => text(entry.actor),
            TextField::Client => text(entry.client),
            TextField::Location => entry.location.is_some_and(is),
        }
    }
}

impl NumberField {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NUMBERS.iter().map(|(field, ..)| *field)
    }

    /// Its name, as in JSON and on the command line.
    pub fn name(self) -> &'static str {
        NUMBERS[self as usize].1
    }

    fn bit(self) -> u16 {
        NUMBERS[self as usize].2.bit()
    }

    fn of(self, entry: &Entry<'_>) -> Option<u64> {
        match self {
            NumberField::Status => entry.status.map(u64::from),
            NumberField::Duration => entry.duration,
            NumberField::Size => entry.size,
            NumberField::Flags => entry.flags.map(u64::from),
        }
    }
}

/// What the text of a field is asked to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFilter {
    /// Exactly these bytes.
    Is(Vec<u8>),
    /// Something that begins with these bytes.
    BeginsWith(Vec<u8>),
}

impl TextFilter {
    /// The whole value that it asks for.
    fn exact(&self) -> Option<&[u8]> {
        match self {
            TextFilter::Is(value) => Some(value),
            TextFilter::BeginsWith(_) => None,
        }
    }

    fn is_met(&self, value: &[u8]) -> bool {
        match self {
            TextFilter::Is(wanted) => value == wanted,
            TextFilter::BeginsWith(prefix) => value.starts_with(prefix),
        }
    }
}

/// What is asked of the fields of an entry: of each that has anything here, that one of it be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldFilters {
    texts: [Vec<TextFilter>; TEXTS.len()],
    numbers: [Vec<RangeInclusive<u64>>; NUMBERS.len()],
}

impl FieldFilters {
    /// Takes this for met, too.
    pub fn add_text(&mut self, field: TextField, filter: TextFilter) {
        self.texts[field as usize].push(filter);
    }

    /// Takes these numbers for met, too.
    pub fn add_numbers(&mut self, field: NumberField, numbers: RangeInclusive<u64>) {
        self.numbers[field as usize].push(numbers);
    }

    /// What is asked of a field, any of which meets it; nothing where everything does.
    pub fn texts(&self, field: TextField) -> &[TextFilter] {
        &self.texts[field as usize]
    }

    /// The same of a field with a number.
    pub fn numbers(&self, field: NumberField) -> &[RangeInclusive<u64>] {
        &self.numbers[field as usize]
    }

    /// The names of the fields that are asked for.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let texts = self.asked_texts().map(|(field, _)| field.name());
        texts.chain(self.asked_numbers().map(|(field, _)| field.name()))
    }

    /// The fields of text that are asked for, and how.
    fn asked_texts(&self) -> impl Iterator<Item = (TextField, &[TextFilter])> {
        let all = TEXTS.iter().zip(&self.texts).map(|((field, ..), filters)| (*field, &filters[..]));
        all.filter(|(_, filters)| !filters.is_empty())
    }

    /// The same of fields with numbers.
    fn asked_numbers(&self) -> impl Iterator<Item = (NumberField, &[RangeInclusive<u64>])> {
        let all = NUMBERS.iter().zip(&self.numbers).map(|((field, ..), ranges)| (*field, &ranges[..]));
        all.filter(|(_, ranges)| !ranges.is_empty())
    }

    /// The values of which an entry has one, where that is asked for: no beginnings of values.
    pub(crate) fn values(&self, field: TextField) -> Option<Vec<&[u8]>> {
        let values = self.texts(field).iter().map(TextFilter::exact).collect::<Option<Vec<_>>>();
        values.filter(|values| !values.is_empty())
    }

    /// Whether anything is asked of the fields with these presence bits.
    pub(crate) fn ask_for(&self, fields: u16) -> bool {
        self.asked_texts().any(|(field, _)| field.bit() & fields != 0)
            || self.asked_numbers().any(|(field, _)| field.bit() & fields != 0)
    }

    /// Whether an entry meets them, as far as its fields without these presence bits tell.
    pub(crate) fn are_met(&self, entry: &Entry<'_>, unknown: u16) -> bool {
        let text = |(field, filters): (TextField, &[TextFilter])| {
            let met = |value: &[u8]| filters.iter().any(|filter| filter.is_met(value));
            field.bit() & unknown != 0 || field.any(entry, met)
        };
        let number = |(field, ranges): (NumberField, &[RangeInclusive<u64>])| {
            let met = |number| ranges.iter().any(|range| range.contains(&number));
            field.bit() & unknown != 0 || field.of(entry).is_some_and(met)
        };
        self.asked_texts().all(text) && self.asked_numbers().all(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::event::FILTERS;

    #[test]
    fn every_field_stands_at_its_place_and_an_event_may_name_it() {
        let texts = TEXTS.iter().map(|(field, name, _)| (*field as usize, *name));
        let numbers = NUMBERS.iter().map(|(field, name, _)| (*field as usize, *name));
        for (place, (stands, name)) in texts.enumerate().chain(numbers.enumerate()) {
            assert_eq!(place, stands, "{name}");
            assert!(FILTERS.contains(&name), "{name}");
        }
        // Besides them time and numbers of entries.
        assert_eq!(FILTERS.len(), TEXTS.len() + NUMBERS.len() + 2);
    }

    #[test]
    fn a_field_that_is_not_there_meets_nothing_and_one_that_is_not_known_may() {
        let mut filters = FieldFilters::default();
        filters.add_text(TextField::Actor, TextFilter::BeginsWith(Vec::new()));
        filters.add_numbers(NumberField::Status, 0..=u64::MAX);
        let entry = Entry::new("read", "key");
        assert!(!filters.are_met(&entry, 0));
        assert!(!filters.are_met(&entry, Field::Actor.bit()));
        assert!(filters.are_met(&entry, Field::Actor.bit() | Field::Status.bit()));
        assert!(filters.are_met(&Entry { status: Some(0), ..entry.actor("") }, 0));
    }
}
