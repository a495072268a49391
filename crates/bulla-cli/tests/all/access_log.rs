//! The whole way of a real access log: in, verified, out, held against another program's reading of it.

use crate::support::{Place, bulla, exit, parse_lines};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// What is refused of it: its request line was cut off.
const REFUSED: u64 = 8899;
/// A data subject with entries of every kind; several others' addresses begin or end like it.
const ADDRESS: &str = "66.249.73.135";

fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Shared by the workplace, not part of the repository.
fn access_log() -> PathBuf {
    let path = std::env::var_os("BULLA_ACCESS_LOG")
        .map_or_else(|| workspace().join("../shared/data/access.log"), PathBuf::from);
    assert!(
        path.exists(),
        "{} is missing: this test needs the real access log; BULLA_ACCESS_LOG names another place",
        path.display()
    );
    path
}

/// What the reference parser reads of a file.
fn reference(file: &str) -> Vec<Value> {
    let parser = workspace().join("scripts/reference_parser.py");
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
fn a_real_access_log_goes_in_verifies_and_comes_out_field_by_field() {
    let source = access_log();
    let file = source.to_str().unwrap();
    let place = Place::new();
    let rejects = place.path("rejects");
    let options =
        ["--format", "combined", "--subject-from", "client", "--rejects", rejects.to_str().unwrap()];
    let ran = place.append(&[&options[..], &[file]].concat(), b"").exits(exit::SOME_REFUSED);
    assert_eq!(ran.out, "9999 accepted, 1 refused, 9999 committed\n");
    assert_eq!(ran.err, format!("{file}:{REFUSED}: the user agent has no closing quote\n"));
    let text = std::fs::read(&source).unwrap();
    let line = text.split_inclusive(|&byte| byte == b'\n').nth(8898).unwrap();
    assert_eq!(std::fs::read(&rejects).unwrap(), line);

    let key = place.verifier_key();
    let seal_key = place.path("seal.key");
    std::fs::rename(place.keys("seal.key"), &seal_key).unwrap();
    let seal_key = seal_key.to_str().unwrap();
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
        assert_eq!((&report["entries"], &report["findings"]), (&9999.into(), &serde_json::json!([])));
    }

    let exported = place.entries();
    let numbers = exported.iter().map(|entry| entry["entry"].as_u64().unwrap());
    assert!(numbers.eq(0..9999));
    assert_same(&without_numbers(exported), &reference(file));

    // The same person's lines, found without Bulla.
    let begins = |line: &&[u8]| line.starts_with(format!("{ADDRESS} ").as_bytes());
    let grepped = text.split_inclusive(|&byte| byte == b'\n').filter(begins).collect::<Vec<_>>().concat();
    let expected = reference(&place.write("grepped", &grepped));
    assert!(expected.len() > 100, "{}", expected.len());
    let subject = parse_lines(&place.run("export", &["--subject", ADDRESS]).exits(exit::DONE).out);
    assert_same(&without_numbers(subject), &expected);

    // All of it at once, from an identity alone, into a file.
    let out = place.path("out.jsonl");
    let identity = place.keys("identity.age");
    let arguments = ["--identity", identity.to_str().unwrap(), "-o", out.to_str().unwrap()];
    place.run("export", &arguments).exits(exit::DONE);
    assert_eq!(parse_lines(&std::fs::read_to_string(out).unwrap()).len(), 9999);
    bulla(place.arguments("verify", &["--key", &key])).exits(exit::DONE);
}
