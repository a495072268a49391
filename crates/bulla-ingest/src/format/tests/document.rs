//! What `docs/formats.md` says of each format: its examples are read, their members are those of its table, and what it says is refused is
//! refused in its words.

use super::{Format, FormatOptions, Parsed, Parser};
use crate::Value;
use crate::framing::Records;
use std::collections::BTreeSet;

static DOCUMENT: &str = include_str!("../../../../../docs/formats.md");

/// The part below a format's heading.
fn section(format: Format) -> &'static str {
    let (_, section) = DOCUMENT.split_once(&format!("\n## {format}\n")).unwrap();
    section.split("\n## ").next().unwrap()
}

/// Its example: all lines of the block of code in the format's name.
fn example(format: Format) -> &'static str {
    let (_, example) = section(format).split_once(&format!("\n```{format}\n")).unwrap();
    example.split("\n```").next().unwrap()
}

/// The rows of the table with this head: the first cell, and the second.
fn rows(section: &'static str, head: &str) -> Option<Vec<(&'static str, &'static str)>> {
    let (_, table) = section.split_once(&format!("\n{head}\n|---|---|\n"))?;
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    Some(rows.map(|row| row[2..].strip_suffix(" |").unwrap().rsplit_once(" | ").unwrap()).collect())
}

/// Every record of the example, taken apart.
fn read(format: Format, parser: &mut Parser) -> Vec<Value<'static>> {
    let mut records = Records::new(example(format).as_bytes(), parser.framing());
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        match parser.parse(record.content.unwrap()).unwrap() {
            Parsed::Fields(fields) => all.push(fields.into_owned()),
            Parsed::Header => assert!(all.is_empty() && parser.has_header()),
        }
    }
    assert!(!all.is_empty());
    all
}

#[test]
fn formats_are_listed_with_what_they_are() {
    let listed = rows(DOCUMENT, "| Format | What it is |").unwrap();
    let expected = Format::ALL.map(|format| (format!("[`{format}`](#{format})"), format.description()));
    let listed = listed.into_iter().map(|(name, what)| (name.to_owned(), what)).collect::<Vec<_>>();
    assert_eq!(listed, expected);
}

#[test]
fn examples_are_read_and_their_members_are_those_of_the_table() {
    for format in Format::ALL {
        let records = read(format, &mut Parser::new(format, &FormatOptions::default()));
        let Some(table) = rows(section(format), "| Member | What it is |") else {
            assert!(matches!(format, Format::Common) || format.members().is_none(), "{format}");
            continue;
        };
        // Names between backticks that are cells, not what they are.
        let documented = table.iter().flat_map(|(names, _)| names.split(", "));
        let documented = documented.map(|name| name.trim_matches('`')).collect::<BTreeSet<_>>();
        let known = format.members().unwrap_or_default().into_iter().collect::<BTreeSet<_>>();
        assert_eq!(known, documented, "{format}");
        let members = records.iter().flat_map(|record| match record {
            Value::Object(members) => members.iter().map(|(name, _)| &**name),
            _ => unreachable!("a record is an object"),
        });
        let members = members.collect::<BTreeSet<_>>();
        assert!(members.is_subset(&documented), "{format}: {members:?}");
        // Of an access log and PostgreSQL's columns no example has all.
        let shown = members.len() as f64 / documented.len() as f64;
        assert!(
            shown == 1.0 || matches!(format, Format::PostgresCsv | Format::Combined),
            "{format}: {members:?}"
        );
    }
}

#[test]
fn what_is_refused_is_refused_in_those_words() {
    for format in Format::ALL {
        let mut parser = Parser::new(format, &FormatOptions::default());
        read(format, &mut parser);
        let refusals = rows(section(format), "| Record | Reason |").unwrap();
        for (record, reason) in refusals {
            let record = record.strip_prefix('`').and_then(|record| record.strip_suffix('`')).unwrap();
            assert_eq!(
                parser.parse(record.as_bytes()).unwrap_err().to_string(),
                reason,
                "{format}: {record}"
            );
        }
    }
}
