//! What goes into a field.

use super::MapError;
use super::document::{Item, Table};
use super::number::{scaled, whole};
use super::rest::Tree;
use super::scope::{Found, Names, Problem, Scope, Source};
use super::template::{Template, first};
use super::time::Reading;
use super::{Context, condition};
use crate::Value;
use bulla_proof::entry::MAX_SUBJECTS;
use bulla_text::ParsedEntry;
use std::borrow::Cow;
use std::collections::HashMap;

/// A field of an entry, in the order in which they are made: the payload may be what no other took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Time,
    Operation,
    Location,
    Subject,
    Controller,
    Processor,
    Purpose,
    Actor,
    Client,
    Stream,
    Status,
    Duration,
    Size,
    Flags,
    Payload,
}

impl Field {
    pub(super) const ALL: [(Field, &'static str); 15] = [
        (Field::Time, "time"),
        (Field::Operation, "operation"),
        (Field::Location, "location"),
        (Field::Subject, "subject"),
        (Field::Controller, "controller"),
        (Field::Processor, "processor"),
        (Field::Purpose, "purpose"),
        (Field::Actor, "actor"),
        (Field::Client, "client"),
        (Field::Stream, "stream"),
        (Field::Status, "status"),
        (Field::Duration, "duration"),
        (Field::Size, "size"),
        (Field::Flags, "flags"),
        (Field::Payload, "payload"),
    ];

    pub(super) fn name(self) -> &'static str {
        Field::ALL[self as usize].1
    }
}

/// What goes into one field.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) field: Field,
    /// The line of the map, from 1.
    pub(super) line: usize,
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    Text(Text),
    Time(Text, Reading),
    /// A number, which is multiplied by ten to this power.
    Number(Text, usize),
    Subjects(Vec<Text>),
    Members(Tree),
    Rest(Tree),
}

/// A text out of a record.
#[derive(Clone, Debug)]
struct Text {
    template: Template,
    /// What stands for what.
    table: Option<HashMap<String, String>>,
    /// What is there in the place of nothing, and of what is not in the table.
    default: Option<Template>,
}

const UNITS: [(&str, usize); 4] = [("ns", 0), ("us", 3), ("ms", 6), ("s", 9)];

impl Assignment {
    /// Reads what a map says of a field.
    pub(super) fn parse(field: Field, item: Item<'_>, names: &mut Names) -> Result<Self, MapError> {
        let line = item.line();
        let from = match field {
            Field::Payload => payload(item, names)?,
            Field::Subject => {
                let texts =
                    item.one_or_more().into_iter().map(|item| Text::parse(item, names, true, &whatever));
                From::Subjects(texts.collect::<Result<_, _>>()?)
            }
            Field::Time | Field::Duration if item.is_table() => {
                let is_time = field == Field::Time;
                let mut table = item.table("this field")?;
                let [a, b, c] = if is_time { ["format", "zone", "from"] } else { ["unit", "from", "from"] };
                table.know(&["from", "table", "default", a, b, c])?;
                if is_time {
                    let (format, zone) = (table.take("format"), table.take("zone"));
                    let reading = Reading::parse(format.as_ref(), zone.as_ref())?;
                    From::Time(Text::from_table(table, names, false, &whatever)?, reading)
                } else {
                    let unit = table
                        .take("unit")
                        .ok_or_else(|| table.error("`unit` is missing: \"ns\", \"us\", \"ms\" or \"s\""))?;
                    let power = unit.choice(&UNITS)?;
                    let fits = |text: &str| number(text.as_bytes(), power, field).map(|_| ());
                    From::Number(Text::from_table(table, names, false, &fits)?, power)
                }
            }
            Field::Time => From::Time(Text::parse(item, names, false, &whatever)?, Reading::rfc_3339()),
            Field::Status | Field::Duration | Field::Size | Field::Flags => {
                let fits = |text: &str| number(text.as_bytes(), 0, field).map(|_| ());
                From::Number(Text::parse(item, names, false, &fits)?, 0)
            }
            _ => From::Text(Text::parse(item, names, false, &whatever)?),
        };
        Ok(Assignment { field, line, from })
    }

    /// The members that it takes as they are.
    pub(super) fn pointers(&self) -> Vec<usize> {
        match &self.from {
            From::Text(text) | From::Time(text, _) | From::Number(text, _) => text.pointers().collect(),
            From::Subjects(texts) => texts.iter().flat_map(Text::pointers).collect(),
            From::Members(_) | From::Rest(_) => Vec::new(),
        }
    }

    pub(super) fn is_rest(&self) -> bool {
        matches!(self.from, From::Rest(_))
    }

    /// Sets what other fields take, of which the rest is what they leave.
    pub(super) fn set_rest(&mut self, tree: Tree) {
        self.from = From::Rest(tree);
    }

    /// Whether it is a time by a clock whose zone the map leaves open.
    pub(super) fn is_local(&self) -> bool {
        matches!(&self.from, From::Time(_, reading) if reading.is_local())
    }

    pub(super) fn set_local_zone(&mut self, zone: &jiff::tz::TimeZone) {
        if let From::Time(_, reading) = &mut self.from {
            reading.set_local_zone(zone);
        }
    }

    /// Puts the field into the entry, where the record has it.
    pub(super) fn put<'s>(
        &'s self,
        scope: &mut Scope<'s, '_>,
        context: &Context,
        entry: &mut ParsedEntry,
    ) -> Result<(), Problem> {
        match (&self.from, self.field) {
            (From::Text(text), Field::Location) => {
                entry.location = text.bytes(scope, false)?.map(Cow::into_owned)
            }
            (From::Text(text), Field::Payload) => {
                entry.payload = text.bytes(scope, true)?.map(Cow::into_owned)
            }
            (From::Text(text), field) => {
                let text = text.bytes(scope, false)?.map(utf8).transpose()?;
                match field {
                    Field::Operation => entry.operation = text.unwrap_or_default(),
                    Field::Controller => entry.controller = text,
                    Field::Processor => entry.processor = text,
                    Field::Purpose => entry.purpose = text,
                    Field::Actor => entry.actor = text,
                    Field::Client => entry.client = text,
                    _ => entry.stream = text,
                }
            }
            (From::Time(text, reading), _) => {
                entry.time = match text.bytes(scope, false)? {
                    Some(text) => Some(reading.read(&text, context.now)?),
                    None => None,
                };
            }
            (From::Number(text, power), field) => {
                let number = text.number(scope, *power, field)?;
                match field {
                    Field::Duration => entry.duration = number,
                    Field::Size => entry.size = number,
                    _ => {
                        let number = number.map(u32::try_from).transpose();
                        let number = number.map_err(|_| not_a_number(field))?;
                        if field == Field::Status { entry.status = number } else { entry.flags = number }
                    }
                }
            }
            (From::Subjects(texts), _) => entry.subjects = subjects(texts, scope)?,
            (From::Members(tree), _) => {
                let mut json = Vec::new();
                let is_something = tree.write_members(scope.record, &mut json);
                entry.payload = is_something.then_some(json);
            }
            (From::Rest(tree), _) => {
                let mut json = Vec::new();
                let is_something = tree.write_rest(scope.record, &scope.taken, &mut json);
                entry.payload = is_something.then_some(json);
            }
        }
        Ok(())
    }
}

/// What a map says of the payload.
fn payload(item: Item<'_>, names: &mut Names) -> Result<From, MapError> {
    if item.is_table() {
        let mut table = item.table("`payload`")?;
        table.know(&["members", "from", "table", "default"])?;
        let Some(members) = table.take("members") else {
            return Text::from_table(table, names, false, &whatever).map(From::Text);
        };
        if let Some(other) = ["from", "table", "default"].iter().find_map(|key| table.take(key)) {
            return Err(other.error(format!("`members` and `{}` cannot both be there", other.name)));
        }
        let members = members.one_or_more();
        let pointers =
            members.iter().map(|item| condition::pointer(item, names)).collect::<Result<Vec<_>, _>>()?;
        return Ok(From::Members(Tree::new(pointers.into_iter(), names)));
    }
    if item.string()? == "{rest}" {
        names.has_rest = true;
        return Ok(From::Rest(Tree::default()));
    }
    Text::parse(item, names, false, &whatever).map(From::Text)
}

/// Everybody whom the record names there, each once; `None` where it names nobody, but for a list that is empty in the map.
fn subjects<'s>(texts: &'s [Text], scope: &mut Scope<'s, '_>) -> Result<Option<Vec<String>>, Problem> {
    let mut subjects = Vec::<String>::new();
    let mut add = |subject: Cow<'_, [u8]>| {
        let subject = utf8(subject)?;
        // One more than there may be is refused as such, and so need not be compared with many more.
        if subjects.len() <= MAX_SUBJECTS && !subjects.contains(&subject) {
            subjects.push(subject);
        }
        Ok::<(), Problem>(())
    };
    for text in texts {
        let Some(sources) = text.template.sole().filter(|_| text.table.is_none()) else {
            if let Some(text) = text.bytes(scope, false)? {
                add(text)?;
            }
            continue;
        };
        let mut has_one = false;
        for source in sources {
            let mut problem = None;
            match *source {
                Source::Member(pointer) => scope.each(pointer, &mut |value| {
                    has_one = true;
                    if problem.is_none() {
                        problem = Found::Value(value).bytes(false).and_then(&mut add).err();
                    }
                }),
                source => {
                    if let Some(found) = scope.find(source) {
                        has_one = true;
                        problem = found.bytes(false).and_then(&mut add).err();
                    }
                }
            }
            if let Some(problem) = problem {
                return Err(problem);
            }
            if has_one {
                scope.take(*source);
                break;
            }
        }
        if let Some(default) = text.default.as_ref().filter(|_| !has_one)
            && let Some(text) = default.bytes(scope, true, false)?
        {
            add(text)?;
        }
    }
    Ok((texts.is_empty() || !subjects.is_empty()).then_some(subjects))
}

/// Whether a text that a map gives itself can be the field's value, or what is wrong with it.
type Fits<'f> = &'f dyn Fn(&str) -> Result<(), Problem>;

fn whatever(_: &str) -> Result<(), Problem> {
    Ok(())
}

fn fitting(item: &Item<'_>, text: Option<&str>, fits: Fits<'_>) -> Result<(), MapError> {
    text.map_or(Ok(()), fits).map_err(|problem| item.error(format!("this value {problem}")))
}

impl Text {
    fn parse(
        item: Item<'_>,
        names: &mut Names,
        may_be_several: bool,
        fits: Fits<'_>,
    ) -> Result<Self, MapError> {
        if item.is_table() {
            let table = item.table("this field")?;
            table.know(&["from", "table", "default"])?;
            return Text::from_table(table, names, may_be_several, fits);
        }
        let template = Template::parse(&item, names, may_be_several)?;
        fitting(&item, template.constant(), fits)?;
        Ok(Text { template, table: None, default: None })
    }

    /// Reads what is left of a table whose keys are known.
    fn from_table(
        mut table: Table<'_>,
        names: &mut Names,
        may_be_several: bool,
        fits: Fits<'_>,
    ) -> Result<Self, MapError> {
        let from =
            table.take("from").ok_or_else(|| table.error("`from` is missing: where the value comes from"))?;
        let has_table = table.take("table");
        let default = table.take("default");
        let template = Template::parse(&from, names, may_be_several && has_table.is_none())?;
        let words = match has_table {
            None => {
                fitting(&from, template.constant(), fits)?;
                None
            }
            Some(item) => {
                let mut words = HashMap::new();
                for (key, _, item) in item.table("`table`")?.rest() {
                    let word = item.word()?;
                    fitting(&item, Some(&word), fits)?;
                    words.insert(key, word);
                }
                Some(words)
            }
        };
        let default = match default {
            None => None,
            Some(item) => {
                let template = Template::parse(&item, names, false)?;
                fitting(&item, template.constant(), fits)?;
                Some(template)
            }
        };
        Ok(Text { template, table: words, default })
    }

    fn pointers(&self) -> impl Iterator<Item = usize> {
        let taking = self.table.is_none().then(|| self.template.pointers());
        taking.into_iter().flatten().chain(self.default.iter().flat_map(Template::pointers))
    }

    /// The text. Members that stand in it as they are count as taken; those that are looked up do not.
    fn bytes<'s>(
        &'s self,
        scope: &mut Scope<'s, '_>,
        may_be_json: bool,
    ) -> Result<Option<Cow<'s, [u8]>>, Problem> {
        let found = self.template.bytes(scope, self.table.is_none(), may_be_json)?;
        let found = match &self.table {
            None => found,
            Some(table) => found.and_then(|key| {
                let text = table.get(std::str::from_utf8(&key).ok()?)?;
                Some(Cow::Borrowed(text.as_bytes()))
            }),
        };
        match (found, &self.default) {
            (None, Some(default)) => default.bytes(scope, true, may_be_json),
            (found, _) => Ok(found),
        }
    }

    fn number<'s>(
        &'s self,
        scope: &mut Scope<'s, '_>,
        power: usize,
        field: Field,
    ) -> Result<Option<u64>, Problem> {
        // What most records have, without a detour over text.
        if let (0, None, Some(sources)) = (power, &self.table, self.template.sole())
            && let Some((_, Found::Value(Value::Unsigned(number)))) = first(scope, sources)
        {
            self.template.take(scope);
            return Ok(Some(*number));
        }
        let Some(text) = self.bytes(scope, false)? else { return Ok(None) };
        number(&text, power, field).map(Some)
    }
}

/// The number that a text is, which the field has room for.
fn number(text: &[u8], power: usize, field: Field) -> Result<u64, Problem> {
    let number = match power {
        0 => whole(text),
        _ => scaled(text, power).and_then(|number| u64::try_from(number).ok()),
    };
    let most = if matches!(field, Field::Status | Field::Flags) { u32::MAX.into() } else { u64::MAX };
    number.filter(|number| *number <= most).ok_or_else(|| not_a_number(field))
}

fn not_a_number(field: Field) -> Problem {
    match field {
        Field::Status | Field::Flags => "must be a whole number from 0 to 4294967295".into(),
        Field::Duration => "must be a number of which from 0 to 18446744073709551615 nanoseconds come".into(),
        _ => "must be a whole number from 0 to 18446744073709551615".into(),
    }
}

fn utf8(bytes: Cow<'_, [u8]>) -> Result<String, Problem> {
    String::from_utf8(bytes.into_owned()).map_err(|_| "is not UTF-8".into())
}
