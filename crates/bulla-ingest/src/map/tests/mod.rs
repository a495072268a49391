//! What must hold of maps.

mod document;
mod language;
mod ready;

use super::*;
use crate::format::{Parsed, Parser};
use bulla_text::jsonl;

/// 2026-11-26T10:00:00Z.
const NOW: i64 = 1_795_687_200_000_000_000;

/// What a map makes of records, each as a line: the entry as JSON behind `> `, or the reason behind `! `.
fn made(map: &Map, records: &[Vec<u8>]) -> Vec<String> {
    let mut parser = Parser::new(map.format(), map.format_options());
    let context = Context { now: NOW };
    let made = records.iter().map(|record| {
        let entry = match parser.parse(record) {
            Ok(Parsed::Header) => return "> header".to_owned(),
            Ok(Parsed::Fields(fields)) => {
                let entry = map.apply(record, &fields, &context);
                let explained = map.explain(record, &fields, &context);
                assert_eq!(explained.entry, entry, "what is explained is what is done");
                entry.map_err(|error| error.to_string())
            }
            Err(refusal) => map.unparsed(record, &context).ok_or_else(|| refusal.to_string()),
        };
        match entry {
            Ok(entry) => {
                let mut json = Vec::new();
                jsonl::write_unnumbered(&entry.entry(), &mut json);
                format!("> {}", String::from_utf8(json).unwrap().trim_end())
            }
            Err(reason) => format!("! {reason}"),
        }
    });
    made.collect()
}

/// The same of one record, without what tells an entry from a reason.
fn one(map: &Map, record: &str) -> String {
    let made = made(map, &[record.as_bytes().to_vec()]).remove(0);
    made.strip_prefix("> ").or(made.strip_prefix("! ")).unwrap_or(&made).to_owned()
}
