//! Files of the key directory that are gone beside a path that is lost: what they alone knew is asked for by name.

use super::untold::{nobody_is_answered, overwrite, salvage_says};
use super::{append, in_use_is_lost, note, whom, world};
use crate::support::{Place, copy, exit};
use bulla::{Log, Options};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn a_list_of_paths_that_is_gone_is_no_word_that_there_were_none() {
    let (place, _) = in_use_is_lost();
    place.run("config", &["unset", "backup_paths"]).exits(exit::DONE);
    for (what, bytes) in [("gone", None), ("its first line alone", Some(&b"bulla paths v1\n"[..]))] {
        overwrite(&place.keys("paths"), bytes);
        nobody_is_answered(&place, "an older copy of the log", what);
        salvage_says(&place, "frames-missing", what);
        place.run("verify", &[]).exits(exit::VIOLATION);
    }
}

/// Of a log that never had another path; whoever reads it all the same takes the seal state away.
#[test]
fn an_older_copy_of_a_log_is_not_taken_for_the_log() {
    let place = Place::new();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    append(&log, "ada");
    log.close().unwrap();
    copy(&place.audit(), &place.path("older"));
    let log = Log::open(place.audit(), Options::default()).unwrap();
    append(&log, "bob");
    log.close().unwrap();
    fs::remove_dir_all(place.audit()).unwrap();
    copy(&place.path("older"), &place.audit());
    nobody_is_answered(&place, "an older copy of the log", "an older copy");
    salvage_says(&place, "frames-missing", "an older copy");
    fs::rename(place.keys("seal.state"), place.path("seal.state")).unwrap();
    let read = place.run("export", &[]).exits(exit::DONE);
    assert!(read.out.contains("ada/email") && !read.out.contains("bob/email"), "{read:?}");
}

#[test]
fn nobody_is_said_to_be_free_where_the_file_is_gone_that_alone_knows_of_lost_holds() {
    let place = world();
    note(&place);
    fs::remove_file(place.keys("holds")).unwrap();
    for opened in [false, true] {
        if opened {
            let appended = place.append(&[], b"").exits(exit::DONE);
            assert!(appended.err.contains("holds is missing"), "{appended:?}");
        }
        for (command, more) in [
            ("hold", &["list"][..]),
            ("hold", &["list", "--subject", "ada"]),
            ("hold", &["add", "--subject", "fay", "--by", "legal", "--reason", "case 1"]),
            ("hold", &["release", "--subject", "emil", "--by", "legal", "--reason", "closed"]),
            ("erase", &["--subject", "ada", "--yes"]),
            ("erase", &["--subject", "ada", "--dry-run"]),
        ] {
            let ran = place.run(command, more).exits(exit::ENVIRONMENT);
            assert!(
                ran.err.contains("holds is missing") && ran.out.is_empty(),
                "{command} {more:?}: {ran:?}"
            );
        }
        assert!(!place.keys("holds").exists());
    }
    // Somebody says that nobody is held by what is lost.
    fs::write(place.keys("holds"), "{\"holds\":[]}\n").unwrap();
    place.append(&[], b"").exits(exit::DONE);
    let listed = place.run("hold", &["list", "--json"]).exits(exit::DONE).json();
    assert_eq!(whom(&place, &listed), BTreeSet::from(["bob", "emil"].map(str::to_owned)));
    place.run("erase", &["--subject", "ada", "--yes"]).exits(exit::DONE);
}
