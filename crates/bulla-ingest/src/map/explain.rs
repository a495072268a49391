//! What a map makes of a record, and why.

use super::scope::Scope;
use super::{Context, Field, MISSING, Map, ParsedEntry, Unmapped};
use crate::{Refusal, Value};
use bulla_text::{is_obeyed, time::format_time};
use std::fmt;

/// What a map makes of a record, field by field.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What [`Map::apply`] makes of it.
    pub entry: Result<ParsedEntry, Unmapped>,
    /// The line of the map, from 1, at which the rule stands that holds; `None` where the map has no rules, or none holds.
    pub rule: Option<usize>,
    /// Each field that the map takes from the record, or from nowhere, in the order of an entry's fields; none where no rule holds.
    pub fields: Vec<Explained>,
    /// Why the record is kept as it is, unparsed, where it is.
    pub unparsed: Option<Unmapped>,
}

/// What becomes of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Its name.
    pub field: &'static str,
    /// The line of the map, from 1, that gives it.
    pub line: usize,
    /// What it gives.
    pub outcome: Outcome,
}

/// What a line of a map gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This value, as it would go in. It is the record's, personal data and all: for whoever may see that.
    Value(String),
    /// Nothing: the record has none.
    Absent,
    /// What the record has there cannot be the field; why.
    Failed(String),
}

impl Map {
    /// What the map makes of a record that is not of its format, for this reason.
    pub fn explain_unparsed(&self, raw: &[u8], reason: &Refusal, context: &Context) -> Explanation {
        let why = Unmapped(reason.to_string());
        let (entry, unparsed) = match self.unparsed(raw, context) {
            Some(entry) => (Ok(entry), Some(why)),
            None => (Err(why), None),
        };
        Explanation { entry, rule: None, fields: Vec::new(), unparsed }
    }

    /// What the map makes of a record, and which of its lines gives each field. Arguments as of [`Map::apply`].
    pub fn explain(&self, raw: &[u8], fields: &Value<'_>, context: &Context) -> Explanation {
        let mapped = self.mapped(raw, fields, context);
        let mut explanation = Explanation { entry: mapped, rule: None, fields: Vec::new(), unparsed: None };
        let mut scope = Scope::new(&self.names, raw, fields);
        if let Ok((rule, assignments)) = self.rule(&mut scope) {
            explanation.rule = rule.line;
            let mut entry = ParsedEntry::default();
            for assignment in assignments {
                let field = assignment.field;
                let outcome = match assignment.put(&mut scope, context, &mut entry) {
                    Err(problem) => Outcome::Failed(problem.into_owned()),
                    Ok(()) => match shown(field, &entry) {
                        Some(value) => Outcome::Value(value),
                        None if field == Field::Operation => Outcome::Failed(MISSING.into_owned()),
                        None => Outcome::Absent,
                    },
                };
                explanation.fields.push(Explained { field: field.name(), line: assignment.line, outcome });
            }
        }
        if let (Err(why), Some(entry)) = (&explanation.entry, self.unparsed(raw, context)) {
            explanation.unparsed = Some(why.clone());
            explanation.entry = Ok(entry);
        }
        explanation
    }
}

impl Explanation {
    /// The same as it is displayed, but that a value ends where a line of so many characters does.
    pub fn to_text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = self.write(width, &mut text);
        text
    }

    fn write(&self, width: Option<usize>, f: &mut impl fmt::Write) -> fmt::Result {
        if let Some(line) = self.rule {
            writeln!(f, "rule of line {line}")?;
        }
        for Explained { field, line, outcome } in &self.fields {
            let place = format!("{field:<10} line {line:<4} ");
            write!(f, "{place}")?;
            match outcome {
                Outcome::Value(value) => writeln!(f, "{}", shown_within(value, width, place.len()))?,
                Outcome::Absent => writeln!(f, "- (the record has none)")?,
                Outcome::Failed(why) => writeln!(f, "! {why}")?,
            }
        }
        if let Some(why) = &self.unparsed {
            writeln!(f, "goes in unparsed: {why}")?;
        }
        match &self.entry {
            Ok(_) => Ok(()),
            Err(why) => writeln!(f, "refused: {why}"),
        }
    }
}

impl fmt::Display for Explanation {
    /// A line for each field, and one for what is wrong. No character is written that a terminal obeys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(None, f)
    }
}

/// Of a value that is cut at least so much is shown, however narrow the line is.
const LEAST: usize = 20;

/// Text without what a terminal obeys; where a line has a width, in characters, of which so many are taken before it, the text is cut
/// where it would be longer, and how many bytes it has is said in its place.
///
/// ```
/// use bulla_ingest::map::shown_within;
/// let text = "x".repeat(1000);
/// assert_eq!(shown_within(&text, Some(50), 10), format!("{}… (1000 bytes)", "x".repeat(26)));
/// assert_eq!((shown_within(&text, None, 10), shown_within("a\nb", Some(50), 10)), (text, "a\\nb".to_owned()));
/// ```
pub fn shown_within(text: &str, width: Option<usize>, before: usize) -> String {
    let escaped = |c: char| if is_obeyed(c) { c.escape_default().to_string() } else { c.to_string() };
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(before).max(LEAST));
    let cut = format!("… ({} bytes)", text.len());
    let left = room.saturating_sub(cut.chars().count());
    let (mut shown, mut count, mut end) = (String::new(), 0, 0);
    for c in text.chars() {
        let escaped = escaped(c);
        count += escaped.chars().count();
        if count > room {
            shown.truncate(end);
            return shown + &cut;
        }
        shown.push_str(&escaped);
        if count <= left {
            end = shown.len();
        }
    }
    shown
}

/// The value of a field, for a person.
fn shown(field: Field, entry: &ParsedEntry) -> Option<String> {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let bytes =
        |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    match field {
        Field::Time => entry.time.map(|time| {
            let mut text = Vec::new();
            format_time(time, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }),
        Field::Operation => Some(entry.operation.clone()).filter(|operation| !operation.is_empty()),
        Field::Location => bytes(&entry.location),
        Field::Subject => entry.subjects.as_ref().map(|subjects| match subjects.is_empty() {
            true => "nobody".to_owned(),
            false => subjects.join(", "),
        }),
        Field::Controller => entry.controller.clone(),
        Field::Processor => entry.processor.clone(),
        Field::Purpose => entry.purpose.clone(),
        Field::Actor => entry.actor.clone(),
        Field::Client => entry.client.clone(),
        Field::Stream => entry.stream.clone(),
        Field::Status => number(entry.status.map(u64::from)),
        Field::Duration => number(entry.duration).map(|nanoseconds| nanoseconds + " ns"),
        Field::Size => number(entry.size),
        Field::Flags => number(entry.flags.map(u64::from)),
        Field::Payload => bytes(&entry.payload),
    }
}
