//! A directory that is replaced under a writer, secrets that are mounted, and links where none may be.

use crate::interrupt::waiting;
use crate::support::{Mount, Place, arguments, bulla, bulla_with, exit, finish, lines, may_mount};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

/// `mv audit old; bulla init audit`.
#[test]
fn a_new_log_in_the_place_of_one_that_is_written_leaves_both_whole() {
    let place = Place::new();
    let (child, mut stdin) = waiting(&place, &[], Stdio::piped());
    fs::rename(place.audit(), place.path("old")).unwrap();
    fs::rename(place.path("audit.keys"), place.path("old.keys")).unwrap();
    bulla(arguments!["init", place.audit()]).exits(exit::DONE);
    // A writer that has failed may read no more.
    let _ = stdin.write_all(&lines(1000..1500));
    drop(stdin);
    let ran = finish(child).exits(exit::ENVIRONMENT);
    let named = format!("{} was replaced or moved while the log was open", place.audit().display());
    assert!(ran.err.contains(&named), "{ran:?}");

    place.append(&[], &lines(0..7)).exits(exit::DONE);
    assert_eq!(place.entries().len(), 7, "the new log is one of its own");
    let old = place.path("old");
    for (log, entries) in [(&old, 1000), (&place.audit(), 7)] {
        let verified = bulla(arguments!["verify", log]).exits(exit::DONE);
        assert!(verified.out.contains("public data, seals and every block") && verified.err.is_empty());
        let exported = bulla(arguments!["export", log]).exits(exit::DONE);
        assert_eq!(exported.out.lines().count(), entries, "{}", log.display());
    }
    // The moved log goes on under its new name.
    bulla_with(arguments!["append", old], &lines(1000..1010)).exits(exit::DONE);
    assert_eq!(bulla(arguments!["export", old]).exits(exit::DONE).out.lines().count(), 1010);
}

#[test]
fn a_log_that_is_moved_under_its_idle_writer_is_told_at_its_end() {
    let place = Place::new();
    let (child, stdin) = waiting(&place, &[], Stdio::piped());
    fs::rename(place.audit(), place.path("old")).unwrap();
    drop(stdin);
    let ran = finish(child).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("was replaced or moved"), "{ran:?}");
    fs::rename(place.path("old"), place.audit()).unwrap();
    assert_eq!(place.entries().len(), 1000);
}

/// The vault's database is reached through `/proc` where that is mounted; only the control socket cannot do without.
#[test]
fn a_log_is_written_where_there_is_no_proc() {
    if !may_mount("held::a_log_is_written_where_there_is_no_proc") {
        return;
    }
    let place = Place::new();
    let _proc = Mount::new(Path::new("/proc"), "size=64k");
    assert!(!Path::new("/proc/self").exists());
    let ran = place.append(&[], &lines(0..20)).exits(exit::DONE);
    assert!(ran.err.contains("whatever needs the log has to wait"), "{ran:?}");
    assert_eq!(place.entries().len(), 20);
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn secrets_of_the_key_directory_may_be_links_and_are_found_through_them() {
    let place = Place::new();
    place.append(&[], &lines(0..20)).exits(exit::DONE);
    fs::create_dir(place.path("mounted")).unwrap();
    for secret in ["signing.key", "seal.key", "identity.age", "erasure.key"] {
        fs::rename(place.keys(secret), place.path("mounted").join(secret)).unwrap();
        symlink(place.path("mounted").join(secret), place.keys(secret)).unwrap();
    }
    place.append(&[], &lines(20..30)).exits(exit::DONE);
    let verified = place.run("verify", &[]).exits(exit::DONE);
    assert!(verified.out.contains("public data, seals and every block"), "{verified:?}");
    assert_eq!(place.entries().len(), 30);
    place.run("erase", &["--subject", "s3"]).exits(exit::DONE);
    for secret in ["signing.key", "seal.key", "identity.age", "erasure.key"] {
        assert!(place.keys(secret).is_symlink());
    }
    // One that leads nowhere is one that is not there.
    fs::remove_file(place.path("mounted/seal.key")).unwrap();
    let verified = place.run("verify", &[]).exits(exit::DONE);
    assert!(verified.out.contains("no seals"), "{verified:?}");
}

#[test]
fn a_link_in_a_log_is_named_to_whoever_reads_or_writes_it() {
    let place = Place::new();
    place.append(&[], &lines(0..20)).exits(exit::DONE);
    let segments = place.audit().join("segments");
    fs::rename(&segments, place.path("elsewhere")).unwrap();
    symlink(place.path("elsewhere"), &segments).unwrap();
    let before = fs::read_dir(place.path("elsewhere")).unwrap().count();
    for subcommand in ["verify", "export", "append"] {
        let ran = place.run(subcommand, &[]).exits(exit::ENVIRONMENT);
        assert!(ran.out.is_empty() && ran.err.contains("`segments` is a symbolic link"), "{ran:?}");
    }
    assert_eq!(fs::read_dir(place.path("elsewhere")).unwrap().count(), before);

    // The directory that the user names may be one.
    fs::remove_file(&segments).unwrap();
    fs::rename(place.path("elsewhere"), &segments).unwrap();
    symlink(place.audit(), place.path("named")).unwrap();
    symlink(place.path("audit.keys"), place.path("named.keys")).unwrap();
    bulla_with(arguments!["append", place.path("named")], &lines(20..25)).exits(exit::DONE);
    bulla(arguments!["verify", place.path("named")]).exits(exit::DONE);
    assert_eq!(place.entries().len(), 25);
}
