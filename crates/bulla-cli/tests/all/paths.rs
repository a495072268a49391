//! The command on a log that lies on several paths, of which one is missing, or says it is another.

use crate::support::{Place, bulla, exit};
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// A log with a backup path that was never used.
fn place() -> Place {
    let place = Place::new();
    let backup = place.path("backup").into_os_string().into_string().unwrap();
    place.run("config", &["set", "backup_paths", &backup]).exits(exit::DONE);
    place.append(&[], b"{\"operation\":\"read\"}\n").exits(exit::DONE);
    place
}

/// Has commands that tell of a missing path in JSON do so, and gives their words and what they printed to `see`.
pub(crate) fn look(mut see: impl FnMut(&[OsString], &str)) {
    let place = place();
    fs::rename(place.path("backup"), place.path("away")).unwrap();
    let out = place.path("out").into_os_string().into_string().unwrap();
    for (command, more, code) in [
        ("info", &["--json"][..], exit::DONE),
        ("export", &["--salvage", "-o", &out, "--json"], exit::VIOLATION),
    ] {
        let words = place.arguments(command, more);
        let ran = bulla(&words).exits(code);
        let missing = &ran.json()["missing_paths"][0];
        assert_eq!(missing["left"], json!(false), "{ran:?}");
        assert!(missing["path"].as_str().unwrap().ends_with("/backup"), "{ran:?}");
        see(&words, &ran.out);
    }
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 1);
}

#[test]
fn nobody_is_answered_from_a_part_of_the_paths() {
    let place = place();
    place.run("verify", &[]).exits(exit::DONE);
    fs::rename(place.path("backup"), place.path("away")).unwrap();
    let copy = place.path("copy").into_os_string().into_string().unwrap();
    for (command, more) in [
        ("export", &[][..]),
        ("export", &["--operation", "read"]),
        ("events", &[]),
        ("tail", &["--from", "2020-01-01"]),
        ("mirror", &[&copy, "--once"]),
        ("prove", &["--entry", "0"]),
    ] {
        let ran = place.run(command, more).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("/backup is a path of the log, and is missing"), "{command}: {ran:?}");
        assert!(ran.out.is_empty(), "{command}: {ran:?}");
    }
    let told = place.run("info", &[]).exits(exit::DONE);
    assert!(told.out.contains("missing     ") && told.out.contains("/backup"), "{told:?}");
    let found = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    assert_eq!(found["findings"][0]["kind"], "path-missing");
    // By its new name it is there.
    fs::rename(place.path("away"), place.path("backup")).unwrap();
    place.run("export", &[]).exits(exit::DONE);
}

#[test]
fn a_path_that_says_it_is_another_one_is_a_violation() {
    let place = place();
    fs::copy(place.path("backup/path"), place.path("audit/path")).unwrap();
    let backup = place.path("backup").into_os_string().into_string().unwrap();
    let found = place.run("verify", &["--public", "--also", &backup, "--json"]).exits(exit::VIOLATION).json();
    assert_eq!(found["findings"][0]["kind"], "path-mismatch");
    for command in ["export", "events"] {
        let ran = place.run(command, &[]).exits(exit::VIOLATION);
        assert!(ran.err.contains("says that it is the path"), "{ran:?}");
    }
}

#[test]
fn nothing_is_written_into_a_path_of_the_log() {
    let place = place();
    let backup = place.path("backup");
    for directory in ["segments", "tile"] {
        fs::create_dir_all(backup.join(directory)).unwrap();
    }
    let text = |path: std::path::PathBuf| path.into_os_string().into_string().unwrap();
    let (inside, socket) = (text(backup.join("segments/out")), text(backup.join("sock")));
    for (command, more) in [
        ("export", &["-o", &inside][..]),
        ("prove", &["--entry", "0", "-o", &inside]),
        ("append", &["--rejects", &inside]),
        ("append", &["--listen", &socket]),
        ("append", &["--listen-datagrams", &socket]),
        ("append", &["--listen-syslog", &socket]),
        ("keys", &["new-identity", "-o", &inside]),
    ] {
        let ran = place.run(command, more).exits(exit::USAGE);
        assert!(
            ran.err.contains("a path of the log (`backup_paths`): write elsewhere"),
            "{command}: {ran:?}"
        );
    }
    // Who has no key directory names the path.
    let (named, keyless) = (text(backup.join("tile/out")), text(place.path("keyless")));
    fs::create_dir(&keyless).unwrap();
    let old = text(place.audit().join("checkpoint"));
    let words = ["--consistency", &old, "--keys", &keyless, "--also", backup.to_str().unwrap(), "-o", &named];
    let ran = place.run("prove", &words);
    assert!(ran.err.contains("where the log lies, too: write elsewhere"), "{ran:?}");
    ran.exits(exit::USAGE);
    assert!(!Path::new(&inside).exists() && !Path::new(&socket).exists() && !Path::new(&named).exists());
    place.run("export", &["-o", &text(place.path("out"))]).exits(exit::DONE);
    let told = place.run("info", &[]).exits(exit::DONE).out;
    assert!(told.contains(&format!("\npath        {}\n", backup.display())), "{told}");
}
