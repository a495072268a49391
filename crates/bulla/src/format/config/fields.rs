//! `[log.fields]`: what becomes of the fields of an entry before it is logged.
//!
//! Invariants: a rule is one that its field can have, and has one spelling; a field without a rule is kept.

use crate::format::toml_value::quote;
use bulla_proof::entry::{Field, MAX_PAYLOAD};
use bulla_store::{Error, Result};
use std::fmt::{self, Display};

/// What becomes of a field's value. Its [`Display`] is how it is written in `bulla.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// `drop`: the field is absent, whatever it was.
    Drop,
    /// `pseudonymise`: a keyed hash stands in its place, the same for the same value of the same field.
    Pseudonymise,
    /// `truncate-ip:24/48`: of a network address that many bits are left; what is no address is dropped.
    TruncateIp {
        /// Of an IPv4 address: 24, 16 or 8.
        v4: u8,
        /// Of an IPv6 address: 64, 48 or 32.
        v6: u8,
    },
    /// `strip-query`: a URL ends before its first `?` or `#`.
    StripQuery,
    /// `cap:256`: at most that many bytes are left.
    Cap(u32),
}

impl Rule {
    /// Reads a rule; `keep` is none.
    fn parse(text: &str) -> Option<Option<Rule>> {
        let rule = match text {
            "keep" => return Some(None),
            "drop" => Rule::Drop,
            "pseudonymise" => Rule::Pseudonymise,
            "strip-query" => Rule::StripQuery,
            _ => match text.split_once(':')? {
                ("truncate-ip", prefixes) => {
                    let (v4, v6) = prefixes.split_once('/')?;
                    Rule::TruncateIp { v4: v4.parse().ok()?, v6: v6.parse().ok()? }
                }
                ("cap", bytes) => Rule::Cap(bytes.parse().ok()?),
                _ => return None,
            },
        };
        // Neither `+24` nor `024`.
        (rule.to_string() == text && rule.is_within_limits()).then_some(Some(rule))
    }

    fn is_within_limits(self) -> bool {
        match self {
            Rule::TruncateIp { v4, v6 } => [24, 16, 8].contains(&v4) && [64, 48, 32].contains(&v6),
            Rule::Cap(bytes) => (1..=MAX_PAYLOAD).contains(&(bytes as usize)),
            Rule::Drop | Rule::Pseudonymise | Rule::StripQuery => true,
        }
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Drop => f.pad("drop"),
            Rule::Pseudonymise => f.pad("pseudonymise"),
            Rule::TruncateIp { v4, v6 } => write!(f, "truncate-ip:{v4}/{v6}"),
            Rule::StripQuery => f.pad("strip-query"),
            Rule::Cap(bytes) => write!(f, "cap:{bytes}"),
        }
    }
}

/// What a field holds, which decides about the rules that it can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Number,
    Name,
    Address,
    Url,
    Anything,
}

impl FieldKind {
    fn admits(self, rule: Rule) -> bool {
        match rule {
            Rule::Drop => true,
            Rule::Pseudonymise => matches!(self, FieldKind::Name | FieldKind::Address | FieldKind::Url),
            Rule::TruncateIp { .. } => self == FieldKind::Address,
            Rule::StripQuery => self == FieldKind::Url,
            Rule::Cap(_) => self == FieldKind::Anything,
        }
    }

    /// What a person may choose from.
    fn choice(self) -> &'static str {
        match self {
            FieldKind::Number => "`keep` or `drop`",
            FieldKind::Name => "`keep`, `drop` or `pseudonymise`",
            FieldKind::Address => {
                "`keep`, `drop`, `pseudonymise`, or `truncate-ip:24/48`: \
                 IPv4 cut to /24, /16 or /8, and IPv6 to /64, /48 or /32"
            }
            FieldKind::Url => "`keep`, `drop`, `pseudonymise` or `strip-query`",
            FieldKind::Anything => "`keep`, `drop`, or `cap:256`: at most so many bytes, from 1 to 16777216",
        }
    }
}

/// The fields that can have a rule, in the order in which they are shown.
const RULED: [(Field, &str, FieldKind); FIELDS] = [
    (Field::Location, "location", FieldKind::Url),
    (Field::Controller, "controller", FieldKind::Name),
    (Field::Processor, "processor", FieldKind::Name),
    (Field::Purpose, "purpose", FieldKind::Name),
    (Field::Actor, "actor", FieldKind::Name),
    (Field::Client, "client", FieldKind::Address),
    (Field::Stream, "stream", FieldKind::Name),
    (Field::Status, "status", FieldKind::Number),
    (Field::Duration, "duration", FieldKind::Number),
    (Field::Size, "size", FieldKind::Number),
    (Field::Flags, "flags", FieldKind::Number),
    (Field::Payload, "payload", FieldKind::Anything),
];

/// The fields that are always kept, and why.
const KEPT: [(&str, &str); 3] = [
    ("time", "nothing else says when it was"),
    ("operation", "an entry without one is none"),
    ("subject", "the person's entries are found by it; append entries without it where it must not be known"),
];

/// Those that can have a rule: the first so many by their place in a row.
const FIELDS: usize = Field::Payload as usize + 1;

/// The rules of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldRules([Option<Rule>; FIELDS]);

impl FieldRules {
    /// Gives a field a rule, as text; `keep` takes its rule away.
    ///
    /// # Errors
    /// `Invalid` where there is no such field or rule, or the field cannot have it; it says what it can have.
    pub fn set(&mut self, field: &str, rule: &str) -> Result<()> {
        let Some((place, _, holds)) = find(field)? else {
            return match Rule::parse(rule) {
                Some(None) => Ok(()),
                _ => Err(always_kept(field)),
            };
        };
        let admitted = Rule::parse(rule).filter(|rule| rule.is_none_or(|rule| holds.admits(rule)));
        let admitted = admitted.ok_or_else(|| {
            Error::invalid(format!("`{rule}` is no rule for `{field}`; it may have {}", holds.choice()))
        })?;
        self.0[place as usize] = admitted;
        Ok(())
    }

    /// The rule of a field, by its name; none where it is kept.
    ///
    /// # Errors
    /// `Invalid` where there is no such field.
    pub fn rule(&self, field: &str) -> Result<Option<Rule>> {
        Ok(find(field)?.and_then(|(place, ..)| self.of(place)))
    }

    /// The fields that have a rule, by their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Rule)> {
        let rules = *self;
        RULED.into_iter().filter_map(move |(place, name, _)| Some((name, rules.of(place)?)))
    }

    /// The rules and the places of their fields.
    pub(crate) fn by_place(&self) -> impl Iterator<Item = (Field, Rule)> {
        let rules = *self;
        RULED.into_iter().filter_map(move |(place, ..)| Some((place, rules.of(place)?)))
    }

    /// Whether every field is kept.
    pub fn is_empty(&self) -> bool {
        *self == FieldRules::default()
    }

    pub(crate) fn of(&self, field: Field) -> Option<Rule> {
        self.0.get(field as usize).copied().flatten()
    }

    /// Whether there are pseudonyms to make.
    pub(crate) fn pseudonymise(&self) -> bool {
        self.0.contains(&Some(Rule::Pseudonymise))
    }

    /// The place of a field that the log has pseudonyms of.
    ///
    /// # Errors
    /// `Invalid` where there is no such field, or its rule is another one.
    pub(crate) fn pseudonymised(&self, field: &str) -> Result<Field> {
        let Some((place, ..)) = find(field)? else { return Err(always_kept(field)) };
        match self.of(place) {
            Some(Rule::Pseudonymise) => Ok(place),
            None => Err(Error::invalid(format!("`{field}` is kept: no rule makes pseudonyms of it"))),
            Some(rule) => Err(Error::invalid(format!(
                "`{field}` has the rule `{rule}`, which makes no pseudonyms of it"
            ))),
        }
    }

    /// The names of the fields whose rules differ.
    pub(crate) fn differing(self, other: Self) -> impl Iterator<Item = &'static str> {
        let differ = move |place| self.of(place) != other.of(place);
        RULED.into_iter().filter(move |(place, ..)| differ(*place)).map(|(_, name, _)| name)
    }

    /// The table in TOML, empty where there are no rules.
    pub(crate) fn render(&self) -> String {
        let line = |(field, rule): (&str, Rule)| format!("{field} = {}\n", quote(&rule.to_string()));
        match self.is_empty() {
            true => String::new(),
            false => format!("{HEADER}\n{}", self.iter().map(line).collect::<String>()),
        }
    }
}

/// The line that the table begins with.
pub(crate) const HEADER: &str = "[log.fields]";

/// Where a field stands and what it holds; none where it is always kept.
fn find(field: &str) -> Result<Option<(Field, &'static str, FieldKind)>> {
    let found = RULED.into_iter().find(|(_, name, _)| *name == field);
    if found.is_some() || KEPT.iter().any(|(name, _)| *name == field) {
        return Ok(found);
    }
    let names = RULED.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ");
    Err(Error::invalid(format!("an entry has no field `{field}`; a rule can be given for {names}")))
}

fn always_kept(field: &str) -> Error {
    let reason = KEPT.iter().find(|(name, _)| *name == field).map_or("", |(_, reason)| reason);
    Error::invalid(format!("`{field}` is always kept: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(field: &str, rule: &str) -> Result<FieldRules> {
        let mut rules = FieldRules::default();
        rules.set(field, rule)?;
        Ok(rules)
    }

    /// Every field with every rule.
    #[test]
    fn a_field_has_the_rules_that_make_sense_for_what_it_holds() {
        let rules = ["drop", "pseudonymise", "truncate-ip:24/48", "strip-query", "cap:256"];
        for (field, admitted) in [
            ("time", &[][..]),
            ("operation", &[]),
            ("subject", &[]),
            ("location", &["drop", "pseudonymise", "strip-query"]),
            ("controller", &["drop", "pseudonymise"]),
            ("processor", &["drop", "pseudonymise"]),
            ("purpose", &["drop", "pseudonymise"]),
            ("actor", &["drop", "pseudonymise"]),
            ("client", &["drop", "pseudonymise", "truncate-ip:24/48"]),
            ("stream", &["drop", "pseudonymise"]),
            ("status", &["drop"]),
            ("duration", &["drop"]),
            ("size", &["drop"]),
            ("flags", &["drop"]),
            ("payload", &["drop", "cap:256"]),
        ] {
            assert!(set(field, "keep").unwrap().is_empty(), "{field}");
            for rule in rules {
                let outcome = set(field, rule).map_err(|error| error.to_string());
                match admitted.contains(&rule) {
                    true => {
                        let rules = outcome.unwrap();
                        let shown = rules.iter().map(|(field, rule)| (field, rule.to_string()));
                        assert_eq!(shown.collect::<Vec<_>>(), [(field, rule.to_owned())]);
                        assert_eq!(rules.rule(field).unwrap().unwrap().to_string(), rule);
                    }
                    false => {
                        let said = outcome.unwrap_err();
                        let right = admitted.iter().all(|rule| said.contains(&format!("`{rule}`")));
                        assert!(said.contains(field) && right, "{said}");
                        assert!(said.contains("always kept") == admitted.is_empty(), "{said}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_field_or_no_rule_is_told_with_what_would_be() {
        for (field, rule, said) in [
            ("clinet", "drop", "a rule can be given for location, controller"),
            ("Client", "drop", "no field `Client`"),
            ("entry", "keep", "no field `entry`"),
            ("client", "", "`` is no rule"),
            ("client", "truncate-ip", "`truncate-ip:24/48`"),
            ("client", "truncate-ip:24", "/24, /16 or /8"),
            ("client", "truncate-ip:48/24", "/64, /48 or /32"),
            ("client", "truncate-ip:24/56", "/64, /48 or /32"),
            ("client", "truncate-ip:25/48", "/24, /16 or /8"),
            ("client", "truncate-ip:+24/48", "is no rule"),
            ("client", "truncate-ip:024/48", "is no rule"),
            ("client", "truncate-ip:24/48/8", "is no rule"),
            ("client", "Drop", "is no rule"),
            ("client", " drop", "is no rule"),
            ("payload", "cap:0", "from 1 to"),
            ("payload", "cap:16777217", "from 1 to"),
            ("payload", "cap:1 KiB", "at most so many bytes"),
            ("payload", "cap:99999999999999999999", "from 1 to"),
            ("payload", "drop:1", "is no rule"),
            ("location", "strip-query:1", "is no rule"),
            ("operation", "drop", "an entry without one is none"),
            ("operation", "nonsense", "always kept"),
        ] {
            let error = set(field, rule).unwrap_err().to_string();
            assert!(error.contains(said), "{field} = {rule}: {error}");
        }
        for (field, rule) in
            [("payload", "cap:1"), ("payload", "cap:16777216"), ("client", "truncate-ip:8/32")]
        {
            set(field, rule).unwrap();
        }
    }

    #[test]
    fn the_table_has_one_order_and_none_is_no_table() {
        let mut rules = FieldRules::default();
        assert_eq!(rules.render(), "");
        for (field, rule) in
            [("payload", "cap:9"), ("client", "drop"), ("location", "drop"), ("client", "keep")]
        {
            rules.set(field, rule).unwrap();
        }
        assert_eq!(rules.render(), "[log.fields]\nlocation = \"drop\"\npayload = \"cap:9\"\n");
        assert!(!rules.is_empty() && !rules.pseudonymise());
        let other = set("payload", "cap:10").unwrap();
        assert_eq!(rules.differing(other).collect::<Vec<_>>(), ["location", "payload"]);
        assert!(set("stream", "pseudonymise").unwrap().pseudonymise());
    }
}
