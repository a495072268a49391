//! The README's walk-through does what it prints.

use crate::support::Place;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../../README.md");

/// The lines of the section's console blocks.
fn lines() -> Vec<&'static str> {
    let (_, section) = README.split_once("### A walk-through\n").expect("the README has a walk-through");
    let section = section.split("\nOr from a program:").next().unwrap();
    let blocks = section.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.flat_map(str::lines).collect()
}

/// Whether `line` is what the README prints, where `…` stands for anything.
fn is_as_printed(printed: &str, line: &str) -> bool {
    let mut parts = printed.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap()) else { return false };
    let mut any = false;
    for part in parts {
        any = true;
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || any && printed.ends_with('…')
}

#[test]
fn the_walk_through_works_as_printed() {
    let lines = lines();
    assert!(lines.len() > 15);
    let mut script = "set -eo pipefail\nexec 2>&1\n".to_owned();
    for command in lines.iter().filter_map(|line| line.strip_prefix("$ ")) {
        script += &format!("cat <<'COMMAND'\n$ {command}\nCOMMAND\n{command}\n");
    }
    let place = Place::empty();
    let bulla = Path::new(env!("CARGO_BIN_EXE_bulla")).parent().unwrap();
    let path = format!("{}:{}", bulla.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", path)
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    let mut told_lines = told.lines().peekable();
    for line in lines {
        if line == "…" {
            // Any number of lines, up to the next command.
            while told_lines.peek().is_some_and(|told| !told.starts_with("$ ")) {
                told_lines.next();
            }
            continue;
        }
        let next = told_lines.next().unwrap_or_else(|| panic!("nothing is printed for {line:?}:\n{told}"));
        assert!(is_as_printed(line, next), "{next:?} is not {line:?}:\n{told}");
    }
    assert_eq!(told_lines.next(), None, "{told}");
}

#[test]
fn the_comparison_can_fail() {
    assert!(is_as_printed("read … of … blocks", "read 1 of 22 blocks"));
    assert!(is_as_printed("ok: …", "ok: yes"));
    assert!(!is_as_printed("read … of … blocks", "read 1 of 22 blocks and more"));
    assert!(!is_as_printed("ok", "ok: yes") && !is_as_printed("ok: …", "no"));
}
