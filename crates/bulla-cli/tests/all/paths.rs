//! The command on a log that lies on several paths, of which one is missing, or says it is another.

use crate::support::{Place, bulla, exit};
use serde_json::json;
use std::ffi::OsString;
use std::fs;

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
