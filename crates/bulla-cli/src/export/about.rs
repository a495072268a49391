//! What a Parquet file says of itself: whose log it is of, which checkpoint it was read under, what was asked for.
//! Nobody signs that; whoever has the log can check it.

use super::outcome;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bulla::store::Store;
use bulla::text::time::format_time;
use bulla::{Exported, NumberField, Query, TextField, TextFilter};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

pub(super) fn of(log: &dyn Store, query: &Query, exported: &Exported) -> Vec<(&'static str, String)> {
    let mut about = Vec::new();
    // It was there a moment ago, and the export does not depend on it.
    if let Ok((config, _)) = bulla::config::load(log) {
        about.push(("bulla.origin", config.origin));
        about.push(("bulla.vkey", config.verifier_key.to_string()));
    }
    match exported.read {
        Some(read) => {
            about.push(("bulla.tree_size", read.tree_size.to_string()));
            about.push(("bulla.root", read.root.to_base64()));
        }
        // What was salvaged is under no root.
        None => {
            about.push(("bulla.left_out", exported.left_out.to_string()));
            about.push(("bulla.left_out_unknown", exported.left_out_unknown.to_string()));
            about.push(("bulla.no_key", outcome::unopened(exported).to_string()));
        }
    }
    about.push(("bulla.undecided", exported.undecided.to_string()));
    about.push(("bulla.query", to_json(query).to_string()));
    about
}

/// The query as one object, by the names of the command's options.
fn to_json(query: &Query) -> Value {
    let time = |nanoseconds| {
        let mut text = Vec::new();
        format_time(nanoseconds, &mut text);
        Value::from(String::from_utf8_lossy(&text))
    };
    let entries = |query: &Query| {
        let end = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
        let (first, last) = (query.first_entry, query.last_entry);
        (first.is_some() || last.is_some()).then(|| Value::from(format!("{}..{}", end(first), end(last))))
    };
    let mut asked = Map::new();
    let mut beginnings = Map::new();
    for field in TextField::all() {
        let (mut values, mut prefixes) = (Vec::new(), Vec::new());
        for filter in query.fields.texts(field) {
            match filter {
                TextFilter::BeginsWith(prefix) => prefixes.push(text(prefix)),
                TextFilter::Is(value) => values.push(text(value)),
            }
        }
        put(&mut asked, field.name(), values);
        put(&mut beginnings, field.name(), prefixes);
    }
    for field in NumberField::all() {
        let numbers = query.fields.numbers(field).iter();
        put(&mut asked, field.name(), numbers.map(|numbers| Value::from(to_text(numbers))).collect());
    }
    if !beginnings.is_empty() {
        asked.insert("prefix".to_owned(), Value::Object(beginnings));
    }
    let besides = [("from", query.from.map(time)), ("to", query.to.map(time)), ("entries", entries(query))];
    asked.extend(besides.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Value::Object(asked)
}

/// One value as it is, several as a list.
fn put(object: &mut Map<String, Value>, name: &str, mut values: Vec<Value>) {
    let value = match values.len() {
        0 => return,
        1 => values.remove(0),
        _ => Value::Array(values),
    };
    object.insert(name.to_owned(), value);
}

/// Text as it is, and bytes that are none in base64.
fn text(value: &[u8]) -> Value {
    match std::str::from_utf8(value) {
        Ok(text) => Value::from(text),
        Err(_) => serde_json::json!({ "base64": STANDARD.encode(value) }),
    }
}

/// A range, as the command's options take it.
fn to_text(numbers: &RangeInclusive<u64>) -> String {
    match (*numbers.start(), *numbers.end()) {
        (first, last) if first == last => first.to_string(),
        (first, u64::MAX) => format!("{first}.."),
        (first, last) => format!("{first}..{last}"),
    }
}
