//! `--also`: a log that has gone on to another path is whole to whoever names that, and no more than its own directory to whoever does not.

use crate::anchor::anchored_note;
use crate::support::{Place, arguments, bulla, copy, exit};
use bulla::{Configure, Entry, Log, Options};
use std::fs;
use std::path::{Path, PathBuf};

/// A log whose directory failed under it, and its backup path; both as another host has them, which has no keys.
struct Moved {
    place: Place,
    audit: PathBuf,
    backup: PathBuf,
}

fn append(log: &Log) {
    let mut producer = log.producer().unwrap();
    for _ in 0..10 {
        producer.append(&Entry::new("read", "user_42/email")).unwrap();
    }
    producer.flush().unwrap().checkpointed().unwrap();
}

fn moved() -> Moved {
    let place = Place::new();
    let backup = place.path("backup");
    Configure::default().set("backup_paths", backup.to_str().unwrap()).unwrap().apply(place.audit()).unwrap();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    append(&log);
    fs::rename(place.audit(), place.path("gone")).unwrap();
    append(&log);
    log.close().unwrap();
    fs::rename(place.path("gone"), place.audit()).unwrap();
    let elsewhere = place.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let (audit, other) = (elsewhere.join("audit"), elsewhere.join("backup"));
    copy(&place.audit(), &audit);
    copy(&backup, &other);
    Moved { place, audit, backup: other }
}

/// A path that lies elsewhere now, beside the keys, which name the place where it was.
#[test]
fn a_path_that_lies_elsewhere_now_is_read_where_that_is_named() {
    let Moved { place, .. } = moved();
    fs::rename(place.path("backup"), place.path("away")).unwrap();
    let (away, to) = (place.path("away").into_os_string(), place.path("to").into_os_string());
    let (away, to) = (away.to_str().unwrap(), to.to_str().unwrap());
    let proof = place.path("proof").into_os_string().into_string().unwrap();
    for (command, more) in [
        ("export", &[][..]),
        ("events", &[]),
        ("tail", &["--entries", "0..19"]),
        ("prove", &["--entry", "15", "-o", &proof]),
        ("mirror", &[to, "--once"]),
    ] {
        let ran = place.run(command, more).exits(exit::ENVIRONMENT);
        assert!(
            ran.err.contains("name with --also, or in `backup_paths`, where it is now"),
            "{command}: {ran:?}"
        );
        let ran = place.run(command, &[more, &["--also", away]].concat()).exits(exit::DONE);
        let lines = ran.out.lines().count();
        assert_eq!(
            lines,
            if matches!(command, "export" | "tail") { 20 } else { lines },
            "{command}: {ran:?}"
        );
    }
    place.run("verify", &[]).exits(exit::VIOLATION);
    let verified = place.run("verify", &["--also", away, "--json"]).exits(exit::DONE).json();
    assert_eq!((&verified["entries"], &verified["findings"]), (&20.into(), &serde_json::json!([])));
    // Of another place that is empty, too, the path has to be somewhere.
    fs::rename(place.path("away"), place.path("farther")).unwrap();
    let ran = place.run("export", &["--also", away]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("is no path of this log"), "{ran:?}");
    // The log's own directory, where it is now, is DIR.
    fs::rename(place.path("farther"), place.path("backup")).unwrap();
    fs::rename(place.audit(), place.path("audit-away")).unwrap();
    let keys = place.keys("");
    let ran = bulla(arguments!["export", place.path("audit-away"), "--keys", &keys]).exits(exit::DONE);
    assert_eq!(ran.out.lines().count(), 20, "{ran:?}");
}

/// A path that was left need not be there to go on with the log, and has to be for a copy that is begun.
#[test]
fn a_copy_that_is_begun_without_a_path_that_was_left_says_which() {
    let Moved { place, .. } = moved();
    fs::rename(place.audit(), place.path("away")).unwrap();
    let to = place.path("to");
    let ran = bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::VIOLATION);
    for said in ["frames-missing", "/audit, a path of the log that was left, is missing: ", "name as DIR"] {
        assert!(ran.err.contains(said), "{said}: {ran:?}");
    }
    fs::remove_dir_all(&to).unwrap();
    let words = arguments!["mirror", place.path("away"), &to, "--once", "--keys", place.keys("")];
    bulla(words).exits(exit::DONE);
    assert_eq!(bulla(arguments!["verify", &to, "--json"]).exits(exit::DONE).json()["entries"], 20);
}

/// How many entries a verification with the log's key finds, without a violation.
#[track_caller]
fn verified(moved: &Moved, directory: &Path) -> u64 {
    let key = moved.place.verifier_key();
    let ran = bulla(arguments!["verify", directory, "--public", "--key", key, "--json"]);
    ran.exits(exit::DONE).json()["entries"].as_u64().unwrap()
}

#[test]
fn a_mirror_has_what_lies_on_the_paths_that_are_named() {
    let moved = moved();
    let to = moved.place.path("copy");
    let mirror = |more: &[&Path]| {
        let mut words = arguments!["mirror", &moved.audit, &to, "--once"];
        words.extend(more.iter().map(std::ffi::OsString::from));
        bulla(words)
    };
    // Its own directory alone is the log as of the time when it failed, and the mirror goes on from there.
    mirror(&[]).exits(exit::DONE);
    assert_eq!(verified(&moved, &to), 10);
    mirror(&[Path::new("--also"), &moved.backup]).exits(exit::DONE);
    assert_eq!(verified(&moved, &to), 20);
    // By then the directory alone is an older copy of the log.
    assert!(mirror(&[]).exits(exit::VIOLATION).err.contains("pin-mismatch"));
    // Where the keys are, they name the path.
    let whole = moved.place.path("whole");
    bulla(arguments!["mirror", moved.place.audit(), &whole, "--once"]).exits(exit::DONE);
    assert_eq!(verified(&moved, &whole), 20);
    // What is no path of the log is none.
    let none = mirror(&[Path::new("--also"), &moved.place.keys("")]).exits(exit::ENVIRONMENT);
    assert!(none.err.contains("is no path of this log"), "{none:?}");
}

#[test]
fn an_anchor_is_held_against_the_paths_that_are_named() {
    let moved = moved();
    let newest = fs::read(moved.backup.join("checkpoint")).unwrap();
    let (file, rekor) = anchored_note(&moved.place, &newest);
    let check = |also: Option<&Path>| {
        let mut words = arguments!["anchor", &moved.audit, "--check", &file, "--rekor-key", &rekor];
        words.extend(also.iter().flat_map(|path| arguments!["--also", path]));
        bulla(words)
    };
    check(Some(&moved.backup)).exits(exit::DONE);
    let alone = check(None).exits(exit::VIOLATION);
    assert!(alone.err.contains("audit.anchor"), "{alone:?}");
    // One of what the directory has holds with the path and without.
    let older = fs::read(moved.audit.join("checkpoint")).unwrap();
    let (file, rekor) = anchored_note(&moved.place, &older);
    for also in [vec![], arguments!["--also", &moved.backup]] {
        let words = arguments!["anchor", &moved.audit, "--check", &file, "--rekor-key", &rekor];
        bulla(words.into_iter().chain(also)).exits(exit::DONE);
    }
}
