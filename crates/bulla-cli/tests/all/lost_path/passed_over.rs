//! A vault that was let pass over events which are lost with a path: it says so itself, so that no copy of it brings anybody back, whatever
//! becomes of the log.

use super::{keep_vault, note, paths, put_vault_back, world_without_newcomers};
use crate::support::{Place, exit, parse_lines};
use std::fs;

/// The log whose second path is lost, where `cleo` was erased, with a vault from before that, which was let pass over it, and in which `gus` is
/// new since.
fn passed_over() -> Place {
    let (place, log) = world_without_newcomers();
    log.close().unwrap();
    put_vault_back(&place, "older");
    note(&place);
    let appended = place.append(&[], GUS).exits(exit::DONE);
    assert!(appended.err.contains("nothing is read under its keys"), "{appended:?}");
    place
}

const GUS: &[u8] = b"{\"operation\":\"read\",\"location\":\"gus/email\",\"subject\":\"gus\"}\n";

/// That all entries are read, but for those of `cleo`.
fn brings_nobody_back(place: &Place) {
    let read = place.run("export", &[]).exits(exit::DONE);
    assert!(read.out.contains("ada/email") && read.out.contains("gus/email"), "{read:?}");
    assert!(!read.out.contains("cleo"), "{read:?}");
    let asked = place.run("export", &["--subject", "cleo"]);
    assert_eq!(asked.out, "", "{asked:?}");
}

/// That nothing is read under the vault's keys, and why is said.
fn withholds(place: &Place) {
    for (command, more) in [("export", &["--entry", "2"][..]), ("prove", &["--entry", "2"]), ("tail", &[])] {
        let ran = place.run(command, more).exits(exit::VIOLATION);
        assert!(!ran.out.contains("/email"), "{command}: {ran:?}");
        assert!(ran.err.contains("the keys at hand do not follow it"), "{command}: {ran:?}");
    }
    let salvaged = place.run("export", &["--salvage"]);
    assert!(!salvaged.out.contains("/email"), "{salvaged:?}");
    let entries = parse_lines(&salvaged.out);
    assert!(entries.iter().any(|entry| entry["withheld"] == "cannot-tell"), "{salvaged:?}");
}

#[test]
fn a_copy_of_a_vault_that_passed_over_events_follows_them_once_they_are_found() {
    let place = passed_over();
    keep_vault(&place, "passed");
    withholds(&place);
    fs::rename(place.path("lost"), place.path("second")).unwrap();
    let all = paths(&place, &["second", "third"]);
    place.run("config", &["set", "backup_paths", &all]).exits(exit::DONE);
    let appended = place.append(&[], b"").exits(exit::DONE);
    assert!(!appended.err.contains("nothing is read under its keys"), "{appended:?}");
    brings_nobody_back(&place);

    put_vault_back(&place, "passed");
    brings_nobody_back(&place);
    let looked = place.run("restore", &["--dry-run", "--json"]).exits(exit::DONE).json();
    assert_eq!(looked["needed"], true, "{looked}");
    place.append(&[], GUS).exits(exit::DONE);
    brings_nobody_back(&place);
    let looked = place.run("restore", &["--dry-run", "--json"]).exits(exit::DONE).json();
    assert_eq!(looked["needed"], false, "{looked}");
    place.run("verify", &[]).exits(exit::DONE);
}

/// The log is gone on with where it ends before the events that were passed over, and grows beyond their frames: what they told is lost for good.
#[test]
fn a_log_that_is_gone_on_with_after_a_second_loss_brings_nobody_back() {
    let place = passed_over();
    fs::rename(place.path("third"), place.path("gone")).unwrap();
    place.run("config", &["unset", "backup_paths"]).exits(exit::DONE);
    fs::create_dir(place.path("elsewhere")).unwrap();
    for name in ["seal.state", "seal.key"] {
        fs::rename(place.keys(name), place.path("elsewhere").join(name)).unwrap();
    }
    // Without the seal state nobody can tell whether what is left is all of the log.
    let refused = place.run("export", &[]).exits(exit::ENVIRONMENT);
    assert_eq!(refused.out, "", "{refused:?}");
    let key = place.path("elsewhere").join("seal.key").into_os_string().into_string().unwrap();
    // It may lack what they told, and is gone on with only where that is said.
    let refused = place.run("restore", &["--seal-key", &key, "--older-log"]).exits(exit::REFUSED);
    assert!(refused.err.contains("say `--older-vault`"), "{refused:?}");
    place.run("restore", &["--seal-key", &key, "--older-log", "--older-vault"]).exits(exit::DONE);
    withholds(&place);
    for _ in 0..4 {
        let appended = place.append(&[], GUS).exits(exit::DONE);
        assert!(appended.err.contains("nothing is read under its keys"), "{appended:?}");
        withholds(&place);
    }
    place.run("verify", &[]).exits(exit::DONE);
}
