//! What `docs/input.md` says of the lines that `append` reads: its examples are accepted, its refusals refused, in its words.

use crate::support::{Place, exit};
use std::fs;

static DOCUMENT: &str = include_str!("../../../../docs/input.md");

/// The part below a heading.
fn section(heading: &str) -> &'static str {
    let (_, section) = DOCUMENT.split_once(&format!("\n## {heading}\n")).unwrap();
    section.split("\n## ").next().unwrap()
}

/// The lines of the blocks of code in this language.
pub(crate) fn examples(language: &str) -> Vec<&'static str> {
    let begin = format!("\n```{language}\n");
    let blocks = DOCUMENT.split(&begin).skip(1);
    blocks.flat_map(|block| block.split("\n```").next().unwrap().lines()).collect()
}

/// The rows of a section's table of refusals: a line, and why it is refused.
pub(crate) fn refusals(heading: &str) -> Vec<(String, &'static str)> {
    let (_, table) = section(heading).split_once("| Line | Reason |\n|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row[2..].strip_suffix(" |").unwrap().rsplit_once(" | ").unwrap());
    cells.map(|(line, reason)| (written(line), reason)).collect()
}

/// The line that a cell of the table stands for: one as it is, or one of a length that has no room there.
fn written(cell: &str) -> String {
    if let Some(line) = cell.strip_prefix('`').and_then(|line| line.strip_suffix('`')) {
        return line.to_owned();
    }
    let (what, length) = cell.split_once(" of ").unwrap();
    let length = length.strip_suffix(" bytes").unwrap().replace(',', "").parse().unwrap();
    match what.strip_prefix("a `").and_then(|field| field.strip_suffix('`')) {
        Some(field) => format!("{{\"operation\":\"read\",\"{field}\":\"{}\"}}", "x".repeat(length)),
        None => "x".repeat(length),
    }
}

#[test]
fn every_example_of_the_input_is_an_entry() {
    let place = Place::new();
    let json = examples("jsonl");
    assert!(json.len() > 5, "{json:?}");
    place.append(&[], json.join("\n").as_bytes()).exits(exit::DONE);
    let combined = examples("combined");
    place.append(&["--format", "combined"], combined.join("\n").as_bytes()).exits(exit::DONE);
    let entries = place.entries();
    assert_eq!(entries.len(), json.len() + combined.len());
    let with = |field: &str| entries.iter().filter(|entry| entry.get(field).is_some()).count();
    // What the tables say of the access log's parts.
    assert_eq!(entries[json.len()]["actor"], "ada");
    assert_eq!(with("payload_base64"), 1);
}

#[test]
fn every_refusal_of_the_input_is_told_in_those_words() {
    let refusals = refusals("What is refused");
    assert!(refusals.len() > 6);
    // As many as are told one by one.
    for refusals in refusals.chunks(10) {
        let place = Place::new();
        let lines = refusals.iter().map(|(line, _)| format!("{line}\n")).collect::<String>();
        let file = place.write("input", lines.as_bytes());
        let ran = place.append(&[&file], b"").exits(exit::SOME_REFUSED);
        let told = (1..).zip(refusals);
        let told = told.map(|(number, (_, reason))| format!("{file}:{number}: {reason}\n"));
        assert_eq!(ran.err, told.collect::<String>());
        fs::remove_file(file).unwrap();
    }
}

/// The members of a line, as the table names them.
pub(crate) fn members() -> Vec<&'static str> {
    let rows = section("JSON lines").lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap()).collect()
}

#[test]
fn the_input_s_members_are_those_that_a_line_may_have() {
    let ran = Place::new().append(&[], b"{\"x\":1}\n").exits(exit::SOME_REFUSED);
    let (_, fields) = ran.err.trim_end().rsplit_once("the fields are ").unwrap();
    assert_eq!(members().join(", "), fields);
}
