//! Where the key directory does not tell which paths a log has, or how far it had come on one that is lost, nobody is answered from what
//! is there as if it were the log; and an older copy of a path is not taken for the path.

use super::{Office, append, in_use_is_lost, keep_vault, moves_on, on_three_paths, paths, put_vault_back};
use crate::support::{Place, copy, exit};
use bulla::{Log, Options};
use std::fs;
use std::path::Path;

/// Has each command that answers from the log refuse it, in words that have `why` in them.
pub(super) fn nobody_is_answered(place: &Place, why: &str, what: &str) {
    let proof = place.path("proof").into_os_string().into_string().unwrap();
    let mirror = place.path("mirror").into_os_string().into_string().unwrap();
    for (command, more) in [
        ("export", &[][..]),
        ("export", &["--subject", "cleo"]),
        ("prove", &["--entry", "0", "-o", &proof]),
        ("tail", &[]),
        ("events", &[]),
        ("hold", &["list"]),
        ("keys", &["list"]),
        ("sources", &[]),
        ("erase", &["--subject", "bob", "--dry-run"]),
        ("mirror", &[&mirror, "--once"]),
        ("append", &[]),
    ] {
        let ran = place.run(command, more);
        // What is missing of the key directory, or of the log, keeps a writer from it in other words.
        let code = if command == "append" { ran.code } else { exit::ENVIRONMENT };
        assert!(ran.code == code && code != exit::DONE, "{what}, {command}: {ran:?}");
        assert!(ran.err.contains(why) || command == "append", "{what}, {command}: {ran:?}");
        assert_eq!(ran.out, "", "{what}, {command}: {ran:?}");
    }
    assert!(!place.path("mirror/checkpoint").exists(), "{what}");
}

/// Has a salvage give out what is there, and say what is not, with `why`: no damage to mend by an older vault.
pub(super) fn salvage_says(place: &Place, why: &str, what: &str) {
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    assert!(ran.err.contains(why), "{what}: {ran:?}");
    assert!(!ran.err.contains("no damage") && !ran.err.contains("Restore the vault"), "{what}: {ran:?}");
    assert!(ran.out.contains("\"entry\":0"), "{what}: {ran:?}");
}

pub(super) fn overwrite(file: &Path, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => fs::write(file, bytes).unwrap(),
        None => fs::remove_file(file).unwrap(),
    }
}

#[test]
fn settings_that_cannot_be_read_are_no_word_that_there_are_no_other_paths() {
    let (place, _) = in_use_is_lost();
    fs::rename(place.path("gone"), place.path("second")).unwrap();
    let all = place.run("export", &[]).exits(exit::DONE).out;
    let file = place.keys("settings.toml");
    let kept = fs::read(&file).unwrap();
    let with = |more: &[u8]| Some([&kept[..], more].concat());
    for (what, bytes) in [
        ("a slip", with(b"linger = 20 ms\n")),
        ("an unknown setting", with(b"lingers = \"20 ms\"\n")),
        ("no text", with(b"\xff\xfe")),
        ("gone", None),
        ("empty", Some(Vec::new())),
    ] {
        overwrite(&file, bytes.as_deref());
        nobody_is_answered(&place, "settings.toml", what);
        salvage_says(&place, "settings.toml", what);
        assert_ne!(place.run("verify", &[]).code, exit::DONE, "{what}");
        let shown = place.run("info", &[]).exits(exit::DONE);
        assert!(shown.out.contains("settings.toml"), "{what}: {shown:?}");
        let second = place.path("second").into_os_string().into_string().unwrap();
        let named = place.run("export", &["--also", &second]).exits(exit::DONE);
        assert_eq!(named.out, all, "{what}");
    }
    // The file alone is lost: the paths are named again.
    let named = paths(&place, &["second", "third"]);
    place.run("config", &["set", "backup_paths", &named]).exits(exit::DONE);
    assert_eq!(place.run("export", &[]).exits(exit::DONE).out, all);
    place.run("verify", &[]).exits(exit::DONE);
    place.append(&[], b"").exits(exit::DONE);
}

#[test]
fn a_seal_state_that_cannot_be_read_does_not_tell_that_nothing_was_lost_with_a_path() {
    let (place, _) = in_use_is_lost();
    place.run("config", &["set", "backup_paths", &paths(&place, &["third"])]).exits(exit::DONE);
    let file = place.keys("seal.state");
    let kept = fs::read(&file).unwrap();
    let mut changed = kept.clone();
    changed[20..24].copy_from_slice(&[0; 4]);
    for (what, bytes) in [("damaged", Some(changed)), ("empty", Some(Vec::new())), ("gone", None)] {
        overwrite(&file, bytes.as_deref());
        nobody_is_answered(&place, "seal.state", what);
        salvage_says(&place, "seal.state", what);
        let verified = place.run("verify", &[]);
        let code = if bytes.is_some() { exit::ENVIRONMENT } else { exit::VIOLATION };
        assert!(
            verified.code == code && format!("{verified:?}").contains("seal.state"),
            "{what}: {verified:?}"
        );
        let shown = place.run("info", &[]).exits(exit::DONE);
        assert!(shown.out.contains("seal.state"), "{what}: {shown:?}");
    }
    // Nor does a key directory that has nothing but what names the paths.
    let few = place.path("few");
    fs::create_dir(&few).unwrap();
    for name in ["settings.toml", "paths"] {
        fs::copy(place.keys(name), few.join(name)).unwrap();
    }
    let [few, mirror] =
        [&few, &place.path("mirror")].map(|path| path.clone().into_os_string().into_string().unwrap());
    let ran = place.run("mirror", &[&mirror, "--once", "--keys", &few]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("few/seal.state is missing"), "{ran:?}");
    // That what came after is lost only whoever restores says.
    let seal_key = place.keys("seal.key").into_os_string().into_string().unwrap();
    let refused = place.run("restore", &["--seal-key", &seal_key]).exits(exit::REFUSED);
    assert!(refused.err.contains("--older-log") && !file.exists(), "{refused:?}");
    nobody_is_answered(&place, "seal.state", "not accepted");
    place.run("restore", &["--seal-key", &seal_key, "--older-log"]).exits(exit::DONE);
    place.run("export", &["--entry", "0"]).exits(exit::DONE);
    place.run("events", &[]).exits(exit::DONE);
    place.run("mirror", &[&mirror, "--once"]).exits(exit::DONE);
    place.append(&[], b"").exits(exit::DONE);
}

#[test]
fn an_older_copy_of_a_path_is_not_taken_for_the_path() {
    let place = on_three_paths();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    append(&log, "ada");
    moves_on(&log, &place, ("audit", "first", "second"));
    log.close().unwrap();
    fs::rename(place.path("first"), place.audit()).unwrap();
    copy(&place.path("second"), &place.path("older"));
    let log = Log::open(place.audit(), Options::default()).unwrap();
    append(&log, "bob");
    log.close().unwrap();
    let all = place.run("export", &[]).exits(exit::DONE).out;
    fs::rename(place.path("second"), place.path("gone")).unwrap();
    let (left, named) = (paths(&place, &["third"]), paths(&place, &["second", "third"]));
    place.run("config", &["set", "backup_paths", &left]).exits(exit::DONE);
    nobody_is_answered(&place, "seal state", "lost");
    copy(&place.path("older"), &place.path("second"));
    place.run("config", &["set", "backup_paths", &named]).exits(exit::DONE);
    nobody_is_answered(&place, "an older copy", "an older copy");
    place.run("verify", &[]).exits(exit::VIOLATION);
    place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    fs::remove_dir_all(place.path("second")).unwrap();
    fs::rename(place.path("gone"), place.path("second")).unwrap();
    assert_eq!(place.run("export", &[]).exits(exit::DONE).out, all);
    place.append(&[], b"").exits(exit::DONE);
}

/// Whatever is as old as that: what lies behind the checkpoint may tell of an erasure, whose key an older vault has.
#[test]
fn a_salvage_under_an_older_checkpoint_asks_for_no_older_vault_and_finds_no_log_whole() {
    let place = Place::new();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    ["ada", "cleo"].into_iter().for_each(|subject| append(&log, subject));
    log.close().unwrap();
    keep_vault(&place, "older");
    let checkpoint = place.audit().join("checkpoint");
    let older = fs::read(&checkpoint).unwrap();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    log.erase(&Office::of(&place).erase("cleo")).unwrap();
    append(&log, "dora");
    log.close().unwrap();
    let newest = fs::read(&checkpoint).unwrap();
    keep_vault(&place, "newest");
    for (vault, bytes, is_whole) in
        [("newest", &newest, true), ("newest", &older, false), ("older", &older, false)]
    {
        put_vault_back(&place, vault);
        fs::write(&checkpoint, bytes).unwrap();
        let code = if is_whole { exit::DONE } else { exit::VIOLATION };
        let ran = place.run("export", &["--salvage"]).exits(code);
        assert_eq!(ran.err.contains("no damage was found"), is_whole, "{vault}: {ran:?}");
        assert_eq!(!ran.err.contains("the log's seal state covers"), is_whole, "{vault}: {ran:?}");
        assert!(!ran.err.contains("Restore the vault"), "{vault}: {ran:?}");
        assert!(!ran.out.contains("cleo") && !ran.out.contains("key-lost"), "{vault}: {ran:?}");
        assert_eq!(!ran.out.contains("cannot-tell"), is_whole, "{vault}: {ran:?}");
        assert_eq!(ran.out.contains("ada"), vault == "newest", "{vault}: {ran:?}");
    }
    // Of what comes before that checkpoint nothing is left out.
    put_vault_back(&place, "newest");
    let ran = place.run("export", &["--salvage", "--entry", "0"]).exits(exit::DONE);
    assert!(ran.out.contains("ada") && ran.err.contains("the log's seal state covers"), "{ran:?}");
}
