//! Which entries are asked for by their fields: the one table of the fields that can be asked for.
//!
//! Invariants:
//! - of a field that is asked for, an entry meets one value at least; an entry without the field meets none;
//! - a name that stands here stands in the list of filters that an event may name, and in `docs/format.md`.

use super::address::Prefixes;
use crate::format::config::{FieldRules, Rule};
use crate::keys::pseudonym::Pseudonym;
use bulla_proof::Entry;
use bulla_proof::entry::Field;
use std::fmt;
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

/// A field of which a filter asks for what its rule never logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotAsLogged {
    /// The field.
    pub field: &'static str,
    /// Its rule.
    pub rule: Rule,
    /// What the rule makes of the values that are asked for, as far as that takes no key and says less than they do.
    pub instead: Vec<String>,
}

/// What to filter for. Of the values that were asked for it repeats none.
impl fmt::Display for NotAsLogged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotAsLogged { field, rule, instead } = self;
        write!(f, "of `{field}` what is logged under its rule, {rule}, is ")?;
        match rule {
            Rule::Pseudonymise => write!(
                f,
                "a pseudonym in its place: filter for what `bulla pseudonym DIR {field} NAME` prints"
            ),
            Rule::TruncateIp { .. } if instead.is_empty() => {
                f.write_str("an address's network, and nothing else: filter for that, such as 192.0.2.0")
            }
            Rule::TruncateIp { .. } => write!(f, "an address's network: filter for {}", instead.join(", ")),
            Rule::StripQuery => f.write_str("what comes before `?` and `#`: filter for that"),
            _ => f.write_str("nothing: no filter for it finds any of that"),
        }
    }
}

impl TextFilter {
    /// Whether it asks for something that the rule can have left of a value.
    fn can_be_met_under(&self, rule: Rule, field: TextField) -> bool {
        let (TextFilter::Is(bytes) | TextFilter::BeginsWith(bytes)) = self;
        let without_stream = Entry::new("", "").stream_or_default();
        if field == TextField::Stream && self.is_met(without_stream.as_bytes()) {
            return true;
        }
        match (rule, self) {
            (Rule::Drop, _) => false,
            (Rule::Pseudonymise, TextFilter::Is(_)) => {
                std::str::from_utf8(bytes).is_ok_and(|text| Pseudonym::parse(text).is_ok())
            }
            (Rule::Pseudonymise, TextFilter::BeginsWith(_)) => Pseudonym::can_begin_with(bytes),
            (Rule::TruncateIp { .. }, _) => match (self.truncated(rule), self) {
                (Some(truncated), _) => self.is_met(truncated.as_bytes()),
                (None, TextFilter::Is(_)) => false,
                (None, TextFilter::BeginsWith(_)) => true,
            },
            (Rule::StripQuery, _) => !bytes.iter().any(|byte| matches!(byte, b'?' | b'#')),
            (Rule::Cap(_), _) => true,
        }
    }

    /// The network of an address that is asked for.
    fn truncated(&self, rule: Rule) -> Option<String> {
        let (Rule::TruncateIp { v4, v6 }, TextFilter::Is(bytes) | TextFilter::BeginsWith(bytes)) =
            (rule, self)
        else {
            return None;
        };
        let network = Prefixes { v4, v6 }.truncate(std::str::from_utf8(bytes).ok()?)?;
        Some(network.to_string())
    }

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

    /// The fields that are asked for in forms in which these rules let nothing into the log: what was logged under them meets
    /// none of it, whatever it was before.
    pub fn not_as_logged(&self, rules: &FieldRules) -> Vec<NotAsLogged> {
        let texts = self.asked_texts().filter_map(|(field, filters)| {
            let rule = rules.rule(field.name()).ok()??;
            let none = !filters.iter().any(|filter| filter.can_be_met_under(rule, field));
            let instead = filters.iter().filter_map(|filter| filter.truncated(rule)).collect();
            none.then(|| NotAsLogged { field: field.name(), rule, instead })
        });
        let numbers = self.asked_numbers().filter_map(|(field, _)| {
            let rule = rules.rule(field.name()).ok()??;
            Some(NotAsLogged { field: field.name(), rule, instead: Vec::new() })
        });
        texts.chain(numbers).collect()
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

    #[test]
    fn what_a_rule_never_logs_is_told_from_what_it_may() {
        let mut rules = FieldRules::default();
        for (field, rule) in [
            ("actor", "pseudonymise"),
            ("stream", "pseudonymise"),
            ("client", "truncate-ip:24/48"),
            ("location", "strip-query"),
            ("purpose", "drop"),
            ("size", "drop"),
        ] {
            rules.set(field, rule).unwrap();
        }
        let is = |text: &str| TextFilter::Is(text.into());
        let begins = |text: &str| TextFilter::BeginsWith(text.into());
        let told = |field: TextField, asked: &[TextFilter]| {
            let mut filters = FieldFilters::default();
            asked.iter().for_each(|filter| filters.add_text(field, filter.clone()));
            filters.not_as_logged(&rules).pop().map(|told| told.instead)
        };
        let pseudonym = "p-4c75c78bd0a93d68e641ad76bf0246d7";
        for (field, asked) in [
            (TextField::Actor, vec![is(pseudonym)]),
            (TextField::Actor, vec![is("alice"), is(pseudonym)]),
            (TextField::Actor, vec![begins("")]),
            (TextField::Actor, vec![begins("p-4c")]),
            (TextField::Stream, vec![is("default")]),
            (TextField::Stream, vec![begins("def")]),
            (TextField::Client, vec![is("192.0.2.0")]),
            (TextField::Client, vec![is("2001:db8::")]),
            (TextField::Client, vec![begins("192.0.")]),
            (TextField::Location, vec![is("/a")]),
            (TextField::Processor, vec![is("anybody")]),
            (TextField::Subject, vec![is("anybody")]),
        ] {
            assert_eq!(told(field, &asked), None, "{asked:?}");
        }
        for (field, asked, instead) in [
            (TextField::Actor, vec![is("alice"), is("bob")], &[][..]),
            (TextField::Actor, vec![begins("p-4C")], &[]),
            (TextField::Actor, vec![is("p-4c")], &[]),
            (TextField::Stream, vec![is("crm")], &[]),
            (TextField::Client, vec![is("192.0.2.7"), is("192.0.3.7:80")], &["192.0.2.0", "192.0.3.0"]),
            (TextField::Client, vec![begins("192.0.2.7")], &["192.0.2.0"]),
            (TextField::Client, vec![is("[2001:db8::7]")], &["2001:db8::"]),
            (TextField::Client, vec![is("localhost")], &[]),
            (TextField::Location, vec![is("/a?b")], &[]),
            (TextField::Purpose, vec![is("any")], &[]),
        ] {
            assert_eq!(told(field, &asked).unwrap(), instead, "{asked:?}");
        }
        let mut filters = FieldFilters::default();
        filters.add_numbers(NumberField::Size, 0..=9);
        filters.add_numbers(NumberField::Status, 0..=9);
        let told = filters.not_as_logged(&rules);
        assert_eq!(told, [NotAsLogged { field: "size", rule: Rule::Drop, instead: Vec::new() }]);
    }
}
