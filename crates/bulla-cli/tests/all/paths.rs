//! The command on a log that lies on several paths, of which one is missing, or says it is another.

use crate::support::{Place, Ran, arguments, bulla, bulla_with, copy, exit};
use bulla::{Entry, Log, Options};
use serde_json::{Value, json};
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
    takes_what_is_written(&place);
    let words = place.arguments("config", &["unset", "backup_paths", "--json"]);
    see(&words, &bulla(&words).exits(exit::DONE).out);
}

/// Has each path count as one that has taken frames, as none of these has yet.
fn takes_what_is_written(place: &Place) {
    let known = fs::read_to_string(place.keys("paths")).unwrap();
    fs::write(place.keys("paths"), known.replace(" spare ", " kept ")).unwrap();
}

/// What became of which path, as `config` printed it.
fn changed(ran: &Ran) -> Vec<(String, String)> {
    let object = ran.json();
    let paths = object["paths"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    paths.iter().map(|path| (text(&path["path"]), text(&path["outcome"]))).collect()
}

/// Whoever sets at each start of the machine what is set already says nothing of a disk that is not mounted yet.
#[test]
fn a_path_counts_as_lost_where_it_is_left_out_and_nowhere_else() {
    let place = Place::new();
    let (disk, other) = (place.path("disk"), place.path("other"));
    fs::create_dir(&disk).unwrap();
    let backup = disk.join("audit").into_os_string().into_string().unwrap();
    let other = other.into_os_string().into_string().unwrap();
    let set = |value: &str| place.run("config", &["set", "backup_paths", value, "--json"]);
    let made = set(&backup).exits(exit::DONE);
    assert_eq!(changed(&made), [(backup.clone(), "made".to_owned())]);
    let again = set(&backup).exits(exit::DONE);
    assert!(changed(&again).is_empty() && again.json()["changed"] == false, "{again:?}");

    // Its disk is not mounted: what is below the mount point is another directory.
    let away = place.path("away");
    fs::rename(&disk, &away).unwrap();
    for mounted in [false, true] {
        if mounted {
            fs::create_dir(&disk).unwrap();
        }
        let known = fs::read(place.keys("paths")).unwrap();
        for value in
            [backup.clone(), format!("{backup}/"), format!("{backup},{other}"), format!("{other},{backup}")]
        {
            let ran = set(&value).exits(exit::REFUSED);
            for told in [&*backup, "mount its disk", "leave it out of `backup_paths`", "Nothing was changed"]
            {
                assert!(ran.err.contains(told), "{value}: {ran:?}");
            }
        }
        assert_eq!(fs::read(place.keys("paths")).unwrap(), known);
        assert!(!Path::new(&other).exists() && !Path::new(&backup).exists());
    }
    fs::remove_dir(&disk).unwrap();
    fs::rename(&away, &disk).unwrap();
    assert!(changed(&set(&backup).exits(exit::DONE)).is_empty());
    place.run("verify", &[]).exits(exit::DONE);

    // Left out it is lost, and told so, once it has taken what is written; named again it is found.
    takes_what_is_written(&place);
    fs::rename(&disk, &away).unwrap();
    let ran = place.run("config", &["set", "backup_paths", &other]).exits(exit::DONE);
    assert!(ran.out.contains(&format!("{other} (path ")) && ran.out.contains("counts as LOST"), "{ran:?}");
    fs::rename(&away, &disk).unwrap();
    let found = set(&format!("{backup},{other}")).exits(exit::DONE);
    assert_eq!(changed(&found), [(backup.clone(), "found".to_owned())]);
    let gone = set(&backup).exits(exit::DONE);
    assert_eq!(changed(&gone), [(other, "let-go".to_owned())]);
    place.run("append", &["/dev/null"]).exits(exit::DONE);
}

/// It was made by a change that came to nothing, and is none that is found again.
#[test]
fn a_path_that_a_refused_change_has_made_is_said_to_be_made() {
    let place = Place::new();
    let (first, full) = (place.path("first"), place.path("full"));
    fs::create_dir(&full).unwrap();
    fs::write(full.join("file"), "").unwrap();
    let [first, full] = [first, full].map(|path| path.into_os_string().into_string().unwrap());
    let set = |value: &str| place.run("config", &["set", "backup_paths", value, "--json"]);
    let ran = set(&format!("{first},{full}")).exits(exit::REFUSED);
    assert!(ran.err.contains("is not empty"), "{ran:?}");
    let made = set(&first).exits(exit::DONE);
    assert_eq!(changed(&made), [(first.clone(), "made".to_owned())]);
    let known = fs::read_to_string(place.keys("paths")).unwrap();
    assert!(known.contains(" spare "), "{known}");
    place.append(&[], b"{\"operation\":\"read\"}\n").exits(exit::DONE);
}

/// The drill of docs/operating.md for a disk that is lost for good, of which a mirror had all.
#[test]
fn a_copy_of_a_mirror_takes_the_place_of_a_lost_directory() {
    let place = Place::new();
    let text = |path: std::path::PathBuf| path.into_os_string().into_string().unwrap();
    let (backup, mirror) = (text(place.path("backup")), text(place.path("mirror")));
    place.run("config", &["set", "backup_paths", &backup]).exits(exit::DONE);
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", "1").subject("ada")).unwrap();
    producer.flush().unwrap().checkpointed().unwrap();
    fs::rename(place.audit(), place.path("gone")).unwrap();
    producer.append(&Entry::new("read", "2").subject("bob")).unwrap();
    producer.flush().unwrap().checkpointed().unwrap();
    drop(producer);
    log.close().unwrap();
    fs::rename(place.path("gone"), place.audit()).unwrap();
    place.run("mirror", &[&mirror, "--once"]).exits(exit::DONE);

    let append = |subject: &str| {
        let line = format!("{{\"operation\":\"read\",\"subject\":\"{subject}\"}}\n");
        place.append(&[], line.as_bytes()).exits(exit::DONE);
    };
    let entries = || place.run("verify", &["--json"]).exits(exit::DONE).json()["entries"].as_u64().unwrap();
    for (put, count) in [("before the log goes on", 4), ("after it has gone on", 5)] {
        fs::remove_dir_all(place.audit()).unwrap();
        if put.starts_with("after") {
            append("dora");
        }
        copy(Path::new(&mirror), &place.audit());
        append("cleo");
        append("carl");
        assert!(entries() >= count, "{put}");
        place.run("export", &["--subject", "ada"]).exits(exit::DONE);
        let erase = ["--subject", "carl", "--reason", "asked", "--yes"];
        place.run("erase", &erase).exits(exit::DONE);
        place.run("verify", &[]).exits(exit::DONE);
        place.run("events", &[]).exits(exit::DONE);
    }
    let all = place.run("export", &[]).exits(exit::DONE).out;
    assert_eq!(all.lines().count(), 7, "{all}");

    // On a new host, from the mirror and a copy of the keys, which name the old one's paths.
    place.run("mirror", &[&mirror, "--once"]).exits(exit::DONE);
    fs::remove_dir_all(place.audit()).unwrap();
    fs::remove_dir_all(&backup).unwrap();
    copy(Path::new(&mirror), &place.audit());
    let ran = place.append(&[], b"").exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("`unset backup_paths`, where none is"), "{ran:?}");
    place.run("config", &["unset", "backup_paths"]).exits(exit::DONE);
    append("ada");
    place.run("verify", &[]).exits(exit::DONE);
    assert_eq!(place.run("export", &[]).exits(exit::DONE).out.lines().count(), 8);
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
    let line = told.out.lines().find(|line| line.starts_with("path ") && line.contains("/backup")).unwrap();
    assert!(line.contains("kept, and is MISSING: ") && line.contains("it may hold more"), "{line}");
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
    for (path, state) in [(place.audit(), "in use"), (backup, "kept")] {
        let begins = format!("path        {}  ", path.display());
        let line = told.lines().find(|line| line.starts_with(&begins)).unwrap_or_else(|| panic!("{told}"));
        assert!(line.ends_with(&format!("  {state}")), "{line}");
    }
}

/// The drill for a log's own directory that is lost for good, and found: each step is named by what was tried before it.
#[test]
fn whoever_goes_on_under_another_name_is_told_how_and_how_to_go_back() {
    let place = Place::new();
    let text = |path: std::path::PathBuf| path.into_os_string().into_string().unwrap();
    let (audit, keys, backup) = (text(place.audit()), text(place.keys("")), text(place.path("backup")));
    let keys = keys.trim_end_matches('/').to_owned();
    place.run("config", &["set", "backup_paths", &backup]).exits(exit::DONE);
    let log = Log::open(&audit, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    let append = |producer: &mut bulla::Producer| {
        producer.append(&Entry::new("read", "1")).unwrap();
        producer.flush().unwrap().checkpointed().unwrap();
    };
    append(&mut producer);
    fs::rename(&audit, place.path("gone")).unwrap();
    append(&mut producer);
    drop(producer);
    log.close().unwrap();

    let line = b"{\"operation\":\"read\"}\n";
    let append = |directory: &str| bulla_with(arguments!["append", directory, "--keys", &keys], line);
    let unset = format!("bulla config {backup} --keys {keys} unset backup_paths");
    let ran = append(&backup).exits(exit::REFUSED);
    assert!(ran.err.contains(&unset) && !ran.err.contains("each a directory of its own"), "{ran:?}");
    let ran = bulla(unset.split(' ').skip(1)).exits(exit::DONE);
    assert!(ran.out.contains(&audit) && ran.out.contains("counts as LOST"), "{ran:?}");
    append(&backup).exits(exit::DONE);

    // It is found, and is no backup path.
    fs::rename(place.path("gone"), &audit).unwrap();
    let named = bulla(arguments!["config", &backup, "--keys", &keys, "set", "backup_paths", &audit]);
    let named = named.exits(exit::REFUSED);
    let way = format!("bulla config {audit} --keys {keys} set backup_paths");
    assert!(named.err.contains(&way) && named.err.contains("name it as DIR again"), "{named:?}");
    let ran = place.run("config", &["set", "backup_paths", &backup, "--json"]).exits(exit::DONE);
    assert_eq!(changed(&ran), [(audit.clone(), "found".to_owned())]);
    place.append(&[], line).exits(exit::DONE);
    let verified = place.run("verify", &["--json"]).exits(exit::DONE).json();
    assert_eq!(verified["entries"], 4);
}
