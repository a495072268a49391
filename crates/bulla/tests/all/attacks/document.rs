//! The table of attacks in docs/threat-model.md is made of the one here: `BULLA_WRITE_ATTACKS=1` writes it anew.

use super::{Attack, Controls, Level, Read, Writer, attacks};
use crate::attacks::scene::State;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/threat-model.md");
const HEAD: &str = "| What is changed | By whom | Public | `--key` | `--seal-key` | and `seal.state` | `--pin` | `--identity` | Export | Query | Writer | Else |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";

/// What a level finds, by kinds; nothing where it finds what the one below does.
fn cell(attack: &Attack, level: Level) -> String {
    let found = attack.found_at(level);
    match level.below().is_some_and(|below| attack.found_at(below) == found) {
        true => String::new(),
        false => kinds(found),
    }
}

/// What is found, by kinds.
pub(super) fn kinds(found: &[&str]) -> String {
    let mut kinds = Vec::new();
    for found in found {
        let kind = match (found.strip_prefix("told: "), found.strip_prefix("error: ")) {
            (Some(notice), _) => format!("told: `{}`", notice.split(' ').next().unwrap()),
            (_, Some(kind)) => format!("refuses (`{kind}`)"),
            _ => format!("`{}`", found.split(' ').next().unwrap()),
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() { "no".to_owned() } else { kinds.join(", ") }
}

fn writer(attack: &Attack) -> String {
    let told = |writer| match (writer, attack.state) {
        (Writer::Opens, _) => "opens".to_owned(),
        (Writer::Fails(kind), State::Open) => format!("fails (`{kind:?}`)"),
        (Writer::Fails(kind), _) => format!("refuses (`{kind:?}`)"),
    };
    match attack.writer == attack.pinned {
        true => told(attack.writer),
        false => format!("{}; with a pin {}", told(attack.writer), told(attack.pinned)),
    }
}

fn read(read: Read) -> String {
    match read {
        Read::All => "all".to_owned(),
        Read::KeysLost => "all, some as `key-lost`".to_owned(),
        Read::Others => "what was put there".to_owned(),
        Read::Fails(kind) => format!("refuses (`{kind:?}`)"),
    }
}

/// What a query gets; nothing where that is what an export does.
fn queried(attack: &Attack) -> String {
    if attack.queried == attack.exported { String::new() } else { read(attack.queried) }
}

fn row(attack: &Attack) -> String {
    let by = attack.controls.name();
    let levels = Level::ALL.map(|level| cell(attack, level)).join(" | ");
    let reads = format!("{} | {}", read(attack.exported), queried(attack));
    format!("| {} | {by} | {levels} | {reads} | {} | {} |\n", attack.name, writer(attack), attack.elsewhere)
}

#[test]
fn the_document_has_these_attacks_and_what_finds_them() {
    let attacks = attacks();
    let names = attacks.iter().map(|attack| attack.name).collect::<BTreeSet<_>>();
    assert_eq!(names.len(), attacks.len(), "no two have one name");
    let table = HEAD.to_owned() + &attacks.iter().map(|attack| row(attack)).collect::<String>();
    compare(HEAD, &table);
}

/// That the document has a table, which begins with `head`.
pub(super) fn compare(head: &str, table: &str) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap();
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let begins = document.find(head.split('\n').next().unwrap()).expect("the document has the table");
    let ends = begins + document[begins..].find("\n\n").unwrap() + 1;
    if std::env::var_os("BULLA_WRITE_ATTACKS").is_some() {
        fs::write(DOCUMENT, [&document[..begins], table, &document[ends..]].concat()).unwrap();
        return;
    }
    assert_eq!(&document[begins..ends], table, "run this test with BULLA_WRITE_ATTACKS=1 to write it anew");
}

/// What nothing finds is said to be so, with where it shows all the same, or why it does not have to.
#[test]
fn an_attack_that_nothing_finds_says_what_else_does() {
    for attack in attacks() {
        let is_found = Level::ALL
            .iter()
            .any(|level| attack.found_at(*level).iter().any(|found| !found.starts_with("told: ")));
        let refused = attack.writer != Writer::Opens || attack.pinned != Writer::Opens;
        assert!(is_found || refused || !attack.elsewhere.is_empty(), "{}", attack.name);
    }
}

#[test]
fn who_has_the_storage_alone_gives_readers_all_or_an_error() {
    for attack in attacks().into_iter().filter(|attack| attack.controls == Controls::Storage) {
        for read in [attack.exported, attack.queried] {
            assert!(matches!(read, Read::All | Read::Fails(_)), "{}: {read:?}", attack.name);
        }
    }
}
