//! What `journalctl` says of journals that are not there, or may not be read.

use crate::support::{Place, command, eventually, exit, finish, not_tested, signal};
use rustix::process::Signal;

fn has_journalctl() -> bool {
    std::process::Command::new("journalctl").arg("--version").output().is_ok()
}

#[test]
fn that_there_is_no_journal_is_told_and_is_no_end_of_one() {
    if !has_journalctl() {
        return not_tested("that there is no journal", "journalctl is not installed: `make setup` does");
    }
    let place = Place::new();
    let empty = place.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let source = format!("journal:{}", empty.display());
    let ran = place.append(&["--follow", "--once", &source], b"").exits(exit::ENVIRONMENT);
    let said = "No journal files were found.";
    assert!(ran.err.contains(&source) && ran.err.contains(said), "{ran:?}");
    assert_eq!(ran.err.matches(said).count(), 1, "{ran:?}");

    // Where it goes on, one may come yet.
    let errors = place.path("errors");
    let mut child = command(place.arguments("append", &["--follow", &source]));
    let child = child.stderr(std::fs::File::create(&errors).unwrap()).spawn().unwrap();
    let told = || std::fs::read_to_string(&errors).unwrap();
    eventually("it is told", || told().contains(said));
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
    assert_eq!(told().matches(said).count(), 1, "{}", told());
}
