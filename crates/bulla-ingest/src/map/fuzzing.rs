//! What the fuzz target `map` runs.

use super::{Context, Map, Outcome};
use crate::format::{Parsed, Parser};

/// What stands between a map and the records that it is applied to.
const BETWEEN: &str = "\n=====\n";

/// A map, and records that are lines.
pub(crate) fn map(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (toml, records) = text.split_once(BETWEEN).unwrap_or((&text, ""));
    let map = match Map::parse("fuzzed", toml) {
        Ok(map) => map,
        Err(error) => {
            let lines = toml.lines().count();
            assert!((1..=lines + 1).contains(&error.line()) && error.column() >= 1, "{error}");
            return;
        }
    };
    let mut parser = Parser::new(map.format(), map.format_options());
    let context = Context { now: 1_795_687_200_000_000_000 };
    for record in records.lines().map(str::as_bytes) {
        let Ok(Parsed::Fields(fields)) = parser.parse(record) else { continue };
        let made = map.apply(record, &fields, &context);
        let explained = map.explain(record, &fields, &context);
        assert_eq!(explained.entry, made, "what is explained is what is done");
        let _ = explained.to_string();
        match made {
            Ok(entry) => {
                entry.entry().measure().expect("an entry is within its limits");
                let failed = explained.fields.iter().any(|field| matches!(field.outcome, Outcome::Failed(_)));
                assert!(!failed || explained.unparsed.is_some(), "an entry has no field that failed");
            }
            Err(_) => assert!(map.unparsed(record, &context).is_none(), "what can be kept is kept"),
        }
    }
}
