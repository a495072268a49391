//! What a hostile storage can put before a reader.

use crate::support::{Place, arguments, bulla, bulla_with, exit, lines};
use std::fs;
use std::os::unix::fs::symlink;

fn filled() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    place
}

#[test]
fn damage_that_takes_every_key_away_is_still_damage() {
    let place = filled();
    let segment = place.segment();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[400] ^= 1; // the only epoch frame's body
    fs::write(&segment, bytes).unwrap();
    let ran = place.run("verify", &[]).exits(exit::VIOLATION);
    assert!(ran.out.contains("body-damaged"), "{ran:?}");
    place.run("export", &[]).exits(exit::VIOLATION);
}

#[test]
fn who_is_no_recipient_of_a_sound_log_is_told_so() {
    let (place, other) = (filled(), filled());
    let identity = other.keys("identity.age");
    place.run("verify", &["--identity", identity.to_str().unwrap()]).exits(exit::REFUSED);
}

#[test]
fn a_checkpoint_of_any_size_ends() {
    let place = filled();
    let checkpoint = place.audit().join("checkpoint");
    let text = fs::read_to_string(&checkpoint).unwrap();
    for size in ["1000000000000000000", "18446744073709551615"] {
        fs::write(&checkpoint, text.replacen("\n2\n", &format!("\n{size}\n"), 1)).unwrap();
        let ran = place.run("verify", &["--json"]).exits(exit::VIOLATION);
        assert!(ran.out.contains("checkpoint-damaged") && ran.out.contains("root-mismatch"), "{ran:?}");
        place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    }
    // A segment's name can claim any number, too.
    fs::write(place.audit().join("segments/09999999999999999999.seg"), "").unwrap();
    place.run("verify", &[]).exits(exit::VIOLATION);
}

#[test]
fn a_name_is_not_obeyed_by_a_terminal_and_not_taken_for_a_result() {
    let place = filled();
    let name = "x\u{1b}[2J\nresult     ok: this is the log of everybody";
    fs::write(place.audit().join(name), "").unwrap();
    let ran = place.run("verify", &[]).exits(exit::DONE);
    assert!(ran.out.contains("unknown-file") && !ran.out.contains('\u{1b}'), "{ran:?}");
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("result")).count(), 1, "{ran:?}");
    let ran = place.append(&[], b"{\"operation\":\"x\",\"\\u001b[2J\":1}\n").exits(exit::SOME_REFUSED);
    assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn a_name_that_is_not_text_keeps_nobody_from_the_log() {
    use std::os::unix::ffi::OsStrExt;
    let place = filled();
    fs::write(place.audit().join("segments").join(std::ffi::OsStr::from_bytes(b"\xff.seg")), "").unwrap();
    let ran = place.run("verify", &[]).exits(exit::DONE);
    assert!(ran.out.contains("unknown-file"), "{ran:?}");
    place.append(&[], &lines(100..101)).exits(exit::DONE);
}

#[test]
fn what_is_no_file_of_the_tree_is_damage_and_the_rest_reads() {
    let place = filled();
    let tile = place.audit().join("tile/0/000.p/2");
    fs::remove_file(&tile).unwrap();
    fs::create_dir(&tile).unwrap();
    let ran = place.run("verify", &[]).exits(exit::VIOLATION);
    assert!(ran.out.contains("tile-damaged"), "{ran:?}");
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    assert_eq!(ran.out.lines().count(), 100, "{ran:?}");
}

#[test]
fn a_log_of_another_key_for_the_same_reader_is_told_from_the_own() {
    let place = filled();
    let key = place.verifier_key();
    place.run("export", &["--key", &key]).exits(exit::DONE);

    // Anyone can make a log of the same name, encrypted to the same recipient.
    let recipients = place.info("recipients");
    let (origin, forged) = (place.info("origin"), place.path("forged"));
    let recipient = recipients[0].as_str().unwrap();
    let origin = origin.as_str().unwrap();
    bulla(arguments!["init", forged, "--origin", origin, "--recipient", recipient]).exits(exit::DONE);
    bulla_with(arguments!["append", forged], &lines(0..1)).exits(exit::DONE);
    let kept = fs::read(place.audit().join("bulla.toml")).unwrap();
    fs::rename(place.audit(), place.path("away")).unwrap();
    fs::rename(&forged, place.audit()).unwrap();
    let ran = place.run("export", &["--key", &key]).exits(exit::VIOLATION);
    assert!(ran.out.is_empty() && ran.err.contains("key-mismatch"), "{ran:?}");
    fs::write(place.audit().join("bulla.toml"), kept).unwrap();
    place.run("export", &[]).exits(exit::VIOLATION);
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    assert!(ran.err.lines().last().unwrap().contains("may be forged"), "{ran:?}");
}

#[test]
fn keys_do_not_get_into_the_log_by_a_detour() {
    let place = Place::empty();
    fs::create_dir(place.audit()).unwrap();
    symlink(place.audit(), place.path("link")).unwrap();
    for detour in ["x/../audit/keys", "link/keys", "link/../audit"] {
        let keys = place.path(detour);
        bulla(arguments!["init", place.audit(), "--keys", keys]).exits(exit::USAGE);
        assert_eq!(fs::read_dir(place.audit()).unwrap().count(), 0, "{detour}");
    }
}
