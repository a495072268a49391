//! What `docs/maps.md` shows is what happens.

use super::*;

const DOCUMENT: &str = include_str!("../../../../../docs/maps.md");

/// The blocks between fences, each with its language.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut parts = DOCUMENT.split("```");
    parts.next();
    let mut blocks = Vec::new();
    while let Some(block) = parts.next() {
        blocks.push(block.split_once('\n').unwrap());
        parts.next();
    }
    blocks
}

/// A map without zones that the system does not know; in the document's winter, its offset is theirs.
fn known_zones(text: &str) -> String {
    let is_known = time::read_zone("Europe/Berlin").is_some();
    if is_known { text.to_owned() } else { text.replace("Europe/Berlin", "+01:00") }
}

#[test]
fn the_examples_of_the_document_come_out_as_it_shows_them() {
    let (mut map, mut records, mut checked) = (None, None, 0);
    for (language, text) in blocks() {
        match language {
            "toml" => {
                let text = known_zones(text);
                map = Some(Map::parse("example", &text).unwrap_or_else(|error| panic!("{error}\n{text}")));
            }
            "record" => records = Some(text),
            "entry" => {
                let records =
                    records.unwrap().lines().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>();
                let made = made(map.as_ref().unwrap(), &records);
                let made = made.iter().map(|line| line.trim_start_matches("> ").trim_start_matches("! "));
                assert_eq!(made.collect::<Vec<_>>().join("\n"), text.trim_end(), "\n{text}");
                checked += 1;
            }
            other => panic!("nobody checks blocks of {other:?}"),
        }
    }
    assert_eq!(checked, 8);
}

#[test]
fn what_the_document_says_to_be_refused_of_a_map_is_refused_for_that_reason() {
    let (_, table) = DOCUMENT.split_once("| Line | Reason |\n|---|---|\n").unwrap();
    let mut checked = 0;
    for row in table.lines().take_while(|row| row.starts_with('|')) {
        let (line, reason) = row.strip_prefix("| `").unwrap().split_once("` | ").unwrap();
        let reason = reason.strip_suffix(" |").unwrap();
        let toml = format!("format = \"json\"\noperation = \"read\"\n{line}\n");
        let error = Map::parse("example", &toml).unwrap_err();
        assert_eq!(error.line(), 3, "{error}");
        assert!(error.to_string().ends_with(&format!(": {reason}")), "{line}\n{error}");
        checked += 1;
    }
    assert!(checked >= 15, "{checked}");
}

#[test]
fn every_key_and_format_is_in_the_document() {
    for (_, name) in Field::ALL {
        assert!(DOCUMENT.contains(&format!("`{name}`")), "{name}");
    }
    for format in Format::ALL {
        assert!(DOCUMENT.contains(&format!("`{format}`")), "{format}");
    }
}
