//! The programs in `examples/` do what they say, one after the other in one directory.

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

/// The files below a directory, as a crash would leave them this moment.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let (kind, to) = (item.file_type().unwrap(), to.join(item.file_name()));
        if kind.is_dir() {
            copy(&item.path(), &to);
        } else if kind.is_file() {
            std::fs::copy(item.path(), to).unwrap();
        }
    }
}

/// A vault whose log of changes can grow so far and no further: where that ends decides which step fails, and whether it
/// fails in a thread.
#[test]
fn append_does_not_succeed_with_an_entry_that_failed() {
    const EARLY: usize = 8;
    let (place, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    bulla::Init::default().create(place.path().join("audit")).unwrap();
    let log = bulla::Log::open(place.path().join("audit"), bulla::Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    // The log of changes is the longest of all files then.
    for early in 0..EARLY {
        producer.append(&bulla::Entry::new("read", "key").subject(&format!("early {early}"))).unwrap();
        producer.flush().unwrap().durable().unwrap();
    }
    copy(place.path(), killed.path());
    let changes = killed.path().join("audit.keys/vault/vault.db-wal").metadata().unwrap().len();
    let mut in_a_thread = 0;
    for pages in 0..12 {
        let place = tempfile::tempdir().unwrap();
        copy(killed.path(), place.path());
        let mut command = Command::new("prlimit");
        command.arg(format!("--fsize={}", changes + pages * 4096)).args(["env", "--ignore-signal=XFSZ"]);
        let ran = command.arg(built("append")).current_dir(place.path()).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        if ran.status.success() {
            assert_eq!(run("follow", place.path()).lines().count(), EARLY + 4);
        } else {
            assert!(told.starts_with("Error: "), "{told}");
            in_a_thread += u32::from(told.contains("for want of its data subjects' keys"));
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
