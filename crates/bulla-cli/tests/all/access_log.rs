//! The whole way of an access log: in, verified, out, held against another program's reading of it. One has the odd lines
//! that real ones have, and is always there; a real one is gone through too, where there is one.

use crate::support::{Place, bulla, exit, not_tested, parse_lines, workspace};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An access log, and what is to be found in it.
struct AccessLog {
    file: PathBuf,
    /// The lines that are refused, from 1, with the reason.
    refused: BTreeMap<usize, String>,
    /// A data subject with entries of every kind; several others' addresses begin or end like it.
    address: &'static str,
    /// At least so many entries are theirs.
    theirs: usize,
}

/// What the reference parser reads of a file.
fn reference(file: &str) -> Vec<Value> {
    let parser = workspace().join("interop/reference_parser.py");
    let output =
        Command::new("python3").arg(parser).args(["--subject-from", "client", file]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    parse_lines(&String::from_utf8(output.stdout).unwrap())
}

fn without_numbers(mut entries: Vec<Value>) -> Vec<Value> {
    entries.iter_mut().for_each(|entry| drop(entry.as_object_mut().unwrap().remove("entry")));
    entries
}

#[track_caller]
fn assert_same(exported: &[Value], expected: &[Value]) {
    assert_eq!(exported.len(), expected.len());
    for (exported, expected) in exported.iter().zip(expected) {
        assert_eq!(exported, expected);
    }
}

#[test]
fn an_access_log_of_odd_lines_goes_in_verifies_and_comes_out_field_by_field() {
    let made = workspace().join("vectors/access");
    let refused = std::fs::read_to_string(made.join("refused.json")).unwrap();
    goes_through(&AccessLog {
        file: made.join("access.log"),
        refused: serde_json::from_str(&refused).unwrap(),
        address: "192.0.2.135",
        theirs: 40,
    });
}

#[test]
fn the_access_log_is_what_its_script_makes() {
    let script = workspace().join("vectors/access/make.py");
    let ran = Command::new("python3").arg("-B").arg(script).arg("--check").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

/// Shared by the workplace, not part of the repository.
#[test]
fn a_real_access_log_goes_in_verifies_and_comes_out_field_by_field() {
    let given = std::env::var_os("BULLA_ACCESS_LOG").map(PathBuf::from);
    let file = given.clone().unwrap_or_else(|| workspace().join("../shared/data/access.log"));
    if !file.exists() {
        assert!(given.is_none(), "BULLA_ACCESS_LOG names {}, which is missing", file.display());
        return not_tested("a real access log", &format!("there is none at {}", file.display()));
    }
    goes_through(&AccessLog {
        file,
        refused: BTreeMap::from([(8899, "the user agent has no closing quote".to_owned())]),
        address: "66.249.73.135",
        theirs: 100,
    });
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn goes_through(log: &AccessLog) {
    let file = path(&log.file);
    let text = std::fs::read(file).unwrap();
    let accepted = lines(&text).count() - log.refused.len();
    let place = Place::new();
    let rejects = place.path("rejects");
    let options = ["--format", "combined", "--subject-from", "client", "--rejects", path(&rejects)];
    let ran = place.append(&[&options[..], &[file]].concat(), b"").exits(exit::SOME_REFUSED);
    let counts = format!("{accepted} accepted, {} refused, {accepted} committed", log.refused.len());
    let last = lines(&text).count();
    assert_eq!(ran.out, format!("{counts}\nevery line up to {file}:{last} is durable or was refused\n"));
    let told = log.refused.iter().take(10).map(|(line, reason)| format!("{file}:{line}: {reason}\n"));
    let others = log.refused.values().skip(10);
    let count = |reason: &String| others.clone().filter(|other| *other == reason).count();
    let mut more =
        others.clone().map(|reason| format!("and {} more: {reason}\n", count(reason))).collect::<Vec<_>>();
    more.dedup();
    assert_eq!(ran.err, told.chain(more).collect::<String>());
    let refused = lines(&text).zip(1..).filter(|(_, number)| log.refused.contains_key(number));
    let refused = refused.flat_map(|(line, _)| line).copied().collect::<Vec<_>>();
    assert_eq!(std::fs::read(&rejects).unwrap(), refused);

    let key = place.verifier_key();
    let seal_key = place.path("seal.key");
    std::fs::rename(place.keys("seal.key"), &seal_key).unwrap();
    let seal_key = path(&seal_key);
    let level =
        |options: &[&str]| place.run("verify", &[options, &["--json"]].concat()).exits(exit::DONE).json();
    for (options, anchored) in [
        (&["--public"][..], false),
        (&["--public", "--key", &key], true),
        (&["--seal-key", seal_key], false),
        (&["--key", &key, "--seal-key", seal_key], true),
    ] {
        let report = level(options);
        assert_eq!((&report["ok"], &report["anchored"]), (&true.into(), &anchored.into()), "{options:?}");
        assert_eq!((&report["entries"], &report["findings"]), (&accepted.into(), &serde_json::json!([])));
    }

    let exported = place.entries();
    let numbers = exported.iter().map(|entry| entry["entry"].as_u64().unwrap());
    assert!(numbers.eq(0..accepted as u64));
    assert_same(&without_numbers(exported), &reference(file));

    // The same person's lines, found without Bulla.
    let begins = |line: &&[u8]| line.starts_with(format!("{} ", log.address).as_bytes());
    let grepped = lines(&text).filter(begins).collect::<Vec<_>>().concat();
    let expected = reference(&place.write("grepped", &grepped));
    assert!(expected.len() > log.theirs, "{}", expected.len());
    let subject = parse_lines(&place.run("export", &["--subject", log.address]).exits(exit::DONE).out);
    assert_same(&without_numbers(subject), &expected);

    // All of it at once, from an identity alone, into a file.
    let out = place.path("out.jsonl");
    let identity = place.keys("identity.age");
    let arguments = ["--identity", path(&identity), "-o", path(&out)];
    place.run("export", &arguments).exits(exit::DONE);
    assert_eq!(parse_lines(&std::fs::read_to_string(out).unwrap()).len(), accepted);
    bulla(place.arguments("verify", &["--key", &key])).exits(exit::DONE);
}
