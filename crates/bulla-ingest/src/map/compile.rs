//! From TOML to a map.

use super::condition::{self, Conditions};
use super::document::{Document, Item, Table};
use super::field::{Assignment, Field};
use super::rest::Tree;
use super::scope::Names;
use super::{Makes, Map, MapError, Rule};
use crate::format::{Format, FormatOptions};
use crate::framing::{Multiline, MultilineRule};
use bulla_text::spelling::nearest;
use regex::bytes::RegexBuilder;

/// The longest map, in bytes.
const MAX_MAP: usize = 1 << 20;

/// How large a regular expression of lines may be when it is compiled, in bytes.
const MAX_REGEX: usize = 1 << 20;

/// How many lines of a record the map may allow, and how many there may be where it says nothing.
const MAX_LINES: usize = 100_000;
const LINES: usize = 1_000;

/// How long a record of several lines may be, in bytes.
const RECORD: usize = bulla_proof::entry::MAX_PAYLOAD;

const SETTINGS: [&str; 7] =
    ["format", "delimiter", "columns", "multiline", "no_value", "on_unparsed", "when"];

pub(super) fn compile(name: &str, text: &str) -> Result<Map, MapError> {
    let document = Document { name, text };
    if text.len() > MAX_MAP {
        return Err(document.error(0, format!("the map is longer than {MAX_MAP} bytes")));
    }
    let mut table = document.table()?;
    let fields = Field::ALL.map(|(_, name)| name);
    table.know(&[&SETTINGS[..], &condition::KEYS, &fields].concat())?;

    let format = format(&mut table)?;
    let options = options(&mut table, format)?;
    let members = match &options.columns {
        Some(columns) => Some(columns.clone()),
        None => format.members().map(|members| members.into_iter().map(str::to_owned).collect()),
    };
    let mut names = Names::default();
    names.known = members.map(|members| (format, members));
    names.nothing = strings(&mut table, "no_value")?;
    let keeps_unparsed = match table.take("on_unparsed") {
        Some(item) => item.choice(&[("reject", false), ("raw", true)])?,
        None => false,
    };

    // Groups of regular expressions first: fields of any rule, and those that all rules share, may name them.
    let conditions = Conditions::take(&mut table, &mut names)?;
    let mut drafts = Vec::new();
    for item in rules(&mut table)? {
        let mut rule = item.table("a rule")?;
        rule.know(&[&["refuse"], &condition::KEYS[..], &fields].concat())?;
        let conditions = Conditions::take(&mut rule, &mut names)?;
        drafts.push((rule, conditions));
    }
    let shared = assignments(&mut table, &mut names)?;
    let mut rules = Vec::new();
    if drafts.is_empty() {
        let makes = Makes::Entry(complete(shared, &table, &names)?);
        rules.push(Rule { line: None, conditions: Conditions::default(), makes });
    } else {
        let last = drafts.len() - 1;
        for (place, (mut rule, conditions)) in drafts.into_iter().enumerate() {
            if conditions.always_hold() && place != last {
                return Err(rule.error("this rule holds for every record, so that none after it ever does: say when, or put it last"));
            }
            let line = Some(rule.line());
            let makes = match rule.take("refuse") {
                Some(reason) => Makes::Refusal(refusal(rule, &reason)?),
                None => {
                    let mut own = assignments(&mut rule, &mut names)?;
                    let is_own = |shared: &Assignment| own.iter().any(|own| own.field == shared.field);
                    let inherited =
                        shared.iter().filter(|shared| !is_own(shared)).cloned().collect::<Vec<_>>();
                    own.extend(inherited);
                    own.sort_by_key(|assignment| assignment.field);
                    Makes::Entry(complete(own, &rule, &names)?)
                }
            };
            rules.push(Rule { line, conditions, makes });
        }
    }
    Ok(Map { name: name.to_owned(), format, options, keeps_unparsed, names, conditions, rules })
}

fn format(table: &mut Table<'_>) -> Result<Format, MapError> {
    let names = || Format::ALL.iter().map(|format| format.to_string()).collect::<Vec<_>>();
    let item = table.take("format").ok_or_else(|| {
        table.error(format!("`format` is missing: what the records are, one of {}", names().join(", ")))
    })?;
    let text = item.string()?;
    text.parse().map_err(|_| {
        let names = names();
        let hint = match nearest(text, names.iter().map(|name| (name.as_str(), name.as_str()))) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("there are {}", names.join(", ")),
        };
        item.error(format!("there is no format \"{}\"; {hint}", text.escape_debug()))
    })
}

fn options(table: &mut Table<'_>, format: Format) -> Result<FormatOptions, MapError> {
    let mut options = FormatOptions::default();
    for key in ["delimiter", "columns"] {
        let Some(item) = table.take(key) else { continue };
        if format != Format::Csv {
            return Err(item.error(format!("`{key}` is for the format \"csv\" only")));
        }
        if key == "delimiter" {
            let [byte] = item.string()?.as_bytes() else {
                return Err(item.error("`delimiter` has to be one ASCII character, such as \";\" or \"\\t\""));
            };
            options.delimiter = *byte;
        } else {
            let columns = item.items().ok_or_else(|| item.error("`columns` has to be an array of names"))?;
            let columns =
                columns.iter().map(|item| item.string().map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
            if columns.is_empty() {
                return Err(item.error("`columns` is empty"));
            }
            options.columns = Some(columns);
        }
    }
    if let Some(item) = table.take("multiline") {
        if matches!(format, Format::Csv | Format::PostgresCsv | Format::JournalExport) {
            return Err(
                item.error(format!("records of the format \"{format}\" say themselves where they end"))
            );
        }
        options.multiline = Some(multiline(item.table("`multiline`")?)?);
    }
    Ok(options)
}

fn multiline(mut table: Table<'_>) -> Result<Multiline, MapError> {
    table.know(&["begins", "continues", "lines"])?;
    let regex = |item: &Item<'_>| {
        let regex = RegexBuilder::new(item.string()?).size_limit(MAX_REGEX).build();
        regex.map_err(|error| item.error(condition::regex_problem(&error)))
    };
    let rule = match (table.take("begins"), table.take("continues")) {
        (Some(begins), None) => MultilineRule::Begins(regex(&begins)?),
        (None, Some(continues)) => MultilineRule::Continues(regex(&continues)?),
        _ => {
            let what = "`multiline` wants one of these: `begins`, a regular expression of the first line of a record, or `continues`, \
                        one of every other line";
            return Err(table.error(what));
        }
    };
    let lines = table.take("lines").map_or(Ok(LINES), |item| item.count(MAX_LINES))?;
    Ok(Multiline { rule, lines, bytes: RECORD })
}

fn strings(table: &mut Table<'_>, key: &str) -> Result<Vec<String>, MapError> {
    let items = table.take(key).iter().flat_map(Item::one_or_more).collect::<Vec<_>>();
    items.iter().map(|item| item.string().map(str::to_owned)).collect()
}

fn rules<'a>(table: &mut Table<'a>) -> Result<Vec<Item<'a>>, MapError> {
    let Some(item) = table.take("when") else { return Ok(Vec::new()) };
    match item.items() {
        Some(items) if items.iter().all(Item::is_table) => Ok(items),
        _ => Err(item.error("rules are tables, each under a header of its own: [[when]]")),
    }
}

fn assignments(table: &mut Table<'_>, names: &mut Names) -> Result<Vec<Assignment>, MapError> {
    let fields = Field::ALL.into_iter().filter_map(|(field, name)| Some((field, table.take(name)?)));
    let fields = fields.collect::<Vec<_>>();
    fields.into_iter().map(|(field, item)| Assignment::parse(field, item, names)).collect()
}

/// The fields of an entry, which has an operation; the payload knows what the others take.
fn complete(
    mut fields: Vec<Assignment>,
    table: &Table<'_>,
    names: &Names,
) -> Result<Vec<Assignment>, MapError> {
    if !fields.iter().any(|assignment| assignment.field == Field::Operation) {
        return Err(table.error("`operation` is missing, which every entry has: what was done"));
    }
    let taken = fields.iter().flat_map(Assignment::pointers).collect::<Vec<_>>();
    for payload in fields.iter_mut().filter(|assignment| assignment.is_rest()) {
        payload.set_rest(Tree::new(taken.iter().copied(), names));
    }
    Ok(fields)
}

fn refusal(rule: Table<'_>, reason: &Item<'_>) -> Result<String, MapError> {
    let text = reason.string()?.to_owned();
    match rule.rest().into_iter().next() {
        Some((key, _, other)) => {
            Err(other.error(format!("a rule that refuses makes no entry: `{key}` is of no use")))
        }
        None => Ok(text),
    }
}
