//! The programs in `examples/` do what they say, one after the other in one directory.

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(example: &str, directory: &Path) -> String {
    // Cargo builds them beside the tests.
    let test = std::env::current_exe().unwrap();
    let built: PathBuf = test.parent().and_then(Path::parent).unwrap().join("examples").join(example);
    assert!(
        built.exists(),
        "{} is not there: `cargo test` builds it, and so does `cargo build -p bulla --examples`",
        built.display()
    );
    let output = Command::new(built).current_dir(directory).output().unwrap();
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
