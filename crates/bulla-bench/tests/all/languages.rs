//! C, C++ and several processes against Rust, on few entries: that the log has what each says that it appended, and that bars are told. What
//! cannot be measured is said.

use crate::{assert_is_xml, median, proxied};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn run(place: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulla-bench"));
    command.args(["languages", "--rounds", "1", "--entries", "2000", "--place"]).arg(place);
    command.arg("--json").arg(place.join("results.json")).args(arguments).output().unwrap()
}

#[test]
fn other_languages_and_processes_append_as_many_entries_and_their_bars_are_told() {
    proxied::bulla();
    let place = tempfile::tempdir().unwrap();
    let plots = place.path().join("plots");
    let output = run(place.path(), &["--plots", plots.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = std::fs::read_to_string(place.path().join("results.json")).unwrap();
    let results = serde_json::from_str::<Value>(&results).unwrap();
    let cases = results["cases"].as_array().unwrap();
    let names = cases.iter().map(|case| case["name"].as_str().unwrap()).collect::<Vec<_>>();
    let thesis = ["thesis, 1 producer", "thesis, 2 producers", "thesis, 4 producers"];
    assert_eq!(names, [&["append, web", "append, gdpr"][..], &thesis, &["socket"]].concat());
    for (number, case) in cases.iter().enumerate() {
        for contender in 0..case["contenders"].as_array().unwrap().len() {
            assert_eq!(median(&results, number, contender, "entries"), 2000.0, "{}", names[number]);
            for figure in ["entries_per_second", "disk_bytes_per_entry"] {
                assert!(median(&results, number, contender, figure) > 0.0, "{figure} of {}", names[number]);
            }
        }
        if names[number].starts_with("thesis") {
            for contender in 0..2 {
                let at = ["p50", "p99", "max"]
                    .map(|at| median(&results, number, contender, &format!("batch_{at}_ns")));
                assert!(at.is_sorted() && at[0] > 0.0, "{at:?}");
            }
        }
    }
    assert_eq!(results["claims"].as_array().unwrap().len(), 6, "{}", results["claims"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    for (what, why) in [
        ("append, web, Python, dicts", "--python-path"),
        ("logging, Bulla's handler", "--python-path"),
        ("query, Python, to an Arrow table", "--python-path"),
    ] {
        let line = printed.lines().find(|line| line.starts_with(&format!("not measured: {what}: ")));
        assert!(line.is_some_and(|line| line.contains(why)), "{printed}");
    }
    assert!(
        printed.contains("C++, thesis's interface") && printed.contains("four, one batch under way"),
        "{printed}"
    );
    assert_is_xml(&plots.join("languages.svg"));
    assert!(plots.join("batches.svg").exists());
    let mut again = Command::new(env!("CARGO_BIN_EXE_bulla-bench"));
    let again = again.arg("report").arg(place.path().join("results.json")).output().unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), printed);
}

#[test]
fn what_there_is_nothing_of_is_said() {
    let place = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["--only", "nothing"][..], "no case begins so"),
        (&["--only", "logging", "--python-path", "/nowhere"], "there is no bulla_audit in /nowhere"),
    ] {
        let output = run(place.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(said), "{text}");
    }
}
