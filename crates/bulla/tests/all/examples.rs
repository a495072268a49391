//! The programs in `examples/` do what they say, one after the other in one directory.

use bulla_testkit::unsynced;
use std::path::{Path, PathBuf};
use std::process::Command;

fn built(example: &str) -> PathBuf {
    // Cargo builds them beside the tests.
    let test = std::env::current_exe().unwrap();
    let built: PathBuf = test.parent().and_then(Path::parent).unwrap().join("examples").join(example);
    assert!(
        built.exists(),
        "{} is not there: `cargo test` builds it, and so does `cargo build -p bulla --examples`",
        built.display()
    );
    built
}

fn run(example: &str, directory: &Path) -> String {
    let output = Command::new(built(example)).current_dir(directory).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{example}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn append_then_follow_then_answer_a_request() {
    let place = tempfile::tempdir().unwrap();
    let told = run("append", place.path());
    assert!(told.starts_with("verify with: bulla verify audit --key "), "{told}");
    let told = run("follow", place.path());
    let mut workers = told.lines().map(|line| line.split_once(": ").unwrap().1).collect::<Vec<_>>();
    workers.sort_unstable();
    let expected = (0..4).map(|worker| format!("user_42/email by worker {worker}")).collect::<Vec<_>>();
    assert_eq!(workers, expected);
    let told = run("access_request", place.path());
    assert!(told.starts_with("4 entries of user_42, from "), "{told}");
    assert!(told.contains("proven: 4 entries of "), "{told}");
    let answer = std::fs::read_to_string(place.path().join("person.jsonl")).unwrap();
    assert_eq!(answer.lines().count(), 4);
}

/// A disk that fails every sync from that of a segment of so many bytes on: how many decides which step fails, and whether
/// it fails in a thread.
#[test]
fn append_does_not_succeed_with_an_entry_that_failed() {
    let shims = tempfile::tempdir().unwrap();
    let mut in_a_thread = 0;
    for most in (0..2048).step_by(128) {
        let place = tempfile::tempdir().unwrap();
        bulla::Init::default().erasure(false).create(place.path().join("audit")).unwrap();
        let mut command = Command::new(built("append"));
        command.env("LD_PRELOAD", unsynced(shims.path(), most)).current_dir(place.path());
        let ran = command.output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        if ran.status.success() {
            assert_eq!(run("follow", place.path()).lines().count(), 4);
        } else {
            assert!(told.starts_with("Error: "), "{told}");
            // The epoch's frame, which is the first, is written by whoever opens the log.
            in_a_thread += u32::from(!told.contains("from frame 0 on"));
        }
    }
    assert!(in_a_thread > 0, "no thread has failed");
}

#[test]
fn the_readme_has_the_program_that_is_tested() {
    let example = include_str!("../../examples/append.rs");
    let (_, program) = example.split_once("\n\n").unwrap();
    assert!(include_str!("../../../../README.md").contains(program));
}
