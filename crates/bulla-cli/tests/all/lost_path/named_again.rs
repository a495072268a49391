//! A path that was lost is named again, with other frames than the log has acknowledged since, and nobody has signed either.

use super::{has_frames, paths};
use crate::support::{Place, arguments, bulla_with, copy, exit};
use bulla::environment::Environment;
use bulla::store::FileSystem;
use bulla::{Entry, Log, Options, Step};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// What lies on these paths, and in the key directory, as a writer leaves it that dies now: `log` is, once that is copied.
fn dies(place: &Place, log: Log, names: &[&str]) {
    let copied = |name: &str| place.path(&format!("copied-{name}"));
    names.iter().for_each(|name| copy(&place.path(name), &copied(name)));
    drop(log);
    for name in names {
        fs::remove_dir_all(place.path(name)).unwrap();
        fs::rename(copied(name), place.path(name)).unwrap();
    }
}

/// Opens a log that takes its steps when it is told to, so that nothing is signed.
fn open(directory: &Path, keys: &Path) -> Log {
    let store = |path: &Path| Arc::new(FileSystem::new(path));
    Log::open_stepped(store(directory), store(keys), Options::default(), Environment::default()).unwrap()
}

/// Makes an entry of this data subject durable.
fn commit(log: &Log, subject: &str) {
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", &format!("{subject}/email")).subject(subject)).unwrap();
    let _ = producer.flush().unwrap();
    while log.step(Step::Seal).unwrap() {}
    log.step(Step::Commit).unwrap();
}

/// The message says what to do, and that is enough.
#[test]
fn a_path_with_other_frames_than_were_acknowledged_since_is_refused_until_the_log_was_opened_without_it() {
    let place = Place::empty();
    place.run("init", &["--erasure", "off"]).exits(exit::DONE);
    let second = paths(&place, &["second"]);
    place.run("config", &["set", "backup_paths", &second]).exits(exit::DONE);
    let keys = place.path("audit.keys");

    // Whoever writes dies once another path has taken over, and before anything is signed there.
    let log = open(&place.audit(), &keys);
    commit(&log, "ada");
    fs::rename(place.audit(), place.path("lost")).unwrap();
    commit(&log, "bob");
    assert!(has_frames(&place.path("second")));
    dies(&place, log, &["audit.keys", "second"]);
    // What is acknowledged without the first path is not signed, either.
    let without = |subcommand: &str, more: &[&str]| {
        let mut words = arguments![subcommand, place.path("second"), "--keys", keys];
        words.extend(more.iter().map(OsString::from));
        bulla_with(words, b"")
    };
    without("config", &["unset", "backup_paths"]).exits(exit::DONE);
    let log = open(&place.path("second"), &keys);
    commit(&log, "cleo");
    commit(&log, "dora");
    dies(&place, log, &["audit.keys", "second"]);

    fs::rename(place.path("lost"), place.audit()).unwrap();
    let refused = place.run("config", &["set", "backup_paths", &second]).exits(exit::REFUSED);
    assert!(refused.err.contains("have different frames of the number"), "{refused:?}");
    assert!(refused.err.contains("`bulla append` with nothing to append"), "{refused:?}");
    without("append", &[]).exits(exit::DONE);
    let told = place.run("config", &["set", "backup_paths", &second]).exits(exit::DONE);
    assert!(told.err.contains("counts for nothing"), "{told:?}");
    assert!(place.path("audit/set-aside").is_dir());
    let subjects = |place: &Place| {
        let entries = place.entries().into_iter();
        entries.map(|entry| entry["subject"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let verified = place.run("verify", &[]).exits(exit::DONE);
    assert!(verified.out.contains("notice unknown-file: set-aside "), "{verified:?}");
    assert_eq!(subjects(&place), ["cleo", "dora"]);
    place.append(&[], b"").exits(exit::DONE);
    assert_eq!(subjects(&place), ["cleo", "dora"]);
}
