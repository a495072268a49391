//! `--pin`: what is said, how commands end, and what they print for programs.

use crate::support::{Place, arguments, bulla, exit, lines};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A log with entries, and where its pin is to lie.
fn filled() -> (Place, String) {
    let place = Place::new();
    fs::create_dir(place.path("elsewhere")).unwrap();
    let pin = place.path("elsewhere").join("audit.pin").into_os_string().into_string().unwrap();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    (place, pin)
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// The log and its keys as they are now, to be put back.
fn backup(place: &Place) {
    for name in ["audit", "audit.keys"] {
        copy(&place.path(name), &place.path(&format!("{name}.before")));
    }
}

fn put_back(place: &Place) {
    for name in ["audit", "audit.keys"] {
        fs::remove_dir_all(place.path(name)).unwrap();
        copy(&place.path(&format!("{name}.before")), &place.path(name));
    }
}

fn checkpoint(place: &Place) -> String {
    fs::read_to_string(place.audit().join("checkpoint")).unwrap()
}

#[test]
fn a_pin_is_made_aloud_and_once() {
    let (place, pin) = filled();
    let made = format!("made the pin {pin}, which covers");
    let ran = place.append(&["--pin", &pin], &lines(10..20)).exits(exit::DONE);
    assert_eq!(ran.err.matches(&made).count(), 1, "{ran:?}");
    let ran = place.append(&["--pin", &pin], &lines(20..30)).exits(exit::DONE);
    assert!(!ran.err.contains("made the pin"), "{ran:?}");
    assert_eq!(fs::read_to_string(&pin).unwrap(), checkpoint(&place));
    // By the path that it has from here, too; and by none.
    place.append(&[], &lines(30..40)).exits(exit::DONE);
    assert_eq!(fs::read_to_string(&pin).unwrap(), checkpoint(&place));
    let ran = place.run("config", &["get", "pin"]).exits(exit::DONE);
    assert_eq!(ran.out, format!("{pin}\n"));
    let frames = place.info("tree_size");
    assert_eq!(place.info("pin"), json!({ "path": pin, "frames": frames, "failure": null, "behind": false }));
    let told = place.run("info", &[]).exits(exit::DONE).out;
    assert!(told.contains(&format!("{pin}  covers {frames} frames")), "{told}");
}

#[test]
fn a_log_that_was_put_back_with_its_keys_is_refused_by_whatever_writes() {
    let (place, pin) = filled();
    place.append(&["--pin", &pin], &lines(10..20)).exits(exit::DONE);
    backup(&place);
    place.append(&[], &lines(20..30)).exits(exit::DONE);
    put_back(&place);
    let told = format!("but the pin {pin} covers");
    let ways: [(&str, &[&str]); 5] = [
        ("append", &["--pin", &pin]),
        ("append", &[]),
        ("erase", &["--subject", "user_1", "--yes"]),
        ("hold", &["add", "--subject", "user_1", "--by", "me", "--reason", "why"]),
        ("config", &["set", "log.heartbeat", "1h"]),
    ];
    for (command, more) in ways {
        let ran = place.run(command, more).exits(exit::VIOLATION);
        assert!(ran.err.contains(&told), "{command} {more:?}: {ran:?}");
    }
    // Nothing but the pin finds it.
    let key = place.verifier_key();
    place.run("verify", &["--public", "--key", &key]).exits(exit::DONE);
    for more in [&[][..], &["--pin", &pin], &["--public", "--pin", &pin, "--key", &key]] {
        let ran = place.run("verify", more).exits(exit::VIOLATION);
        assert!(ran.out.contains("violation pin-mismatch"), "{more:?}: {ran:?}");
    }
}

#[test]
fn a_verifier_makes_a_pin_and_advances_it() {
    let (place, pin) = filled();
    let key = place.verifier_key();
    let verify =
        |more: &[&str]| place.run("verify", &[&["--public", "--pin", &pin, "--json"], more].concat());
    let refused = verify(&[]).exits(exit::USAGE);
    assert!(refused.err.contains(&pin) && !Path::new(&pin).exists(), "{refused:?}");
    let ran = verify(&["--key", &key]).exits(exit::DONE);
    assert!(ran.err.contains(&format!("made the pin {pin}")), "{ran:?}");
    let report = ran.json();
    let size = report["tree_size"].as_u64().unwrap();
    let became = |before: Value, frames: u64| json!({ "path": pin, "before": before, "frames": frames, "failure": null });
    assert_eq!(report["pin"], became(Value::Null, size));
    place.append(&[], &lines(10..20)).exits(exit::DONE);
    let ran = verify(&[]).exits(exit::DONE);
    assert!(!ran.err.contains("made the pin"), "{ran:?}");
    let report = ran.json();
    let larger = report["tree_size"].as_u64().unwrap();
    assert!(larger > size);
    assert_eq!(report["pin"], became(json!(size), larger));
    assert_eq!(fs::read_to_string(&pin).unwrap(), checkpoint(&place));
    assert_eq!(place.info("pin"), Value::Null, "the writer's keys know nothing of it");
    assert_eq!(place.run("verify", &["--json"]).exits(exit::DONE).json()["pin"], Value::Null);
    let told = |more: &[&str]| {
        let out = place.run("verify", &[&["--public", "--pin", &pin], more].concat()).out;
        out.lines().find_map(|line| line.strip_prefix("pin        ")).unwrap().to_owned()
    };
    assert_eq!(told(&[]), format!("as it was: {pin} covers {larger} frames"));
    place.append(&[], &lines(20..30)).exits(exit::DONE);
    assert!(told(&[]).starts_with("advanced: "));
}

#[test]
fn a_pin_that_cannot_be_advanced_fails_after_the_report() {
    let (place, pin) = filled();
    place.run("verify", &["--pin", &pin]).exits(exit::DONE);
    place.append(&[], &lines(10..20)).exits(exit::DONE);
    fs::remove_file(format!("{pin}.lock")).unwrap();
    fs::create_dir(format!("{pin}.lock")).unwrap();
    let ran = place.run("verify", &["--pin", &pin, "--json"]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("its pin was not advanced") && ran.err.contains("audit.pin.lock"), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["ok"], true);
    assert!(report["pin"]["failure"].as_str().unwrap().contains("audit.pin.lock"), "{report}");
}

#[test]
fn a_pin_that_is_gone_is_refused_until_somebody_makes_it_again_aloud() {
    let (place, pin) = filled();
    place.append(&["--pin", &pin], &lines(10..20)).exits(exit::DONE);
    fs::rename(&pin, format!("{pin}.away")).unwrap();
    for (command, more) in
        [("append", &["--pin", &pin][..]), ("append", &[]), ("verify", &[]), ("verify", &["--pin", &pin])]
    {
        let ran = place.run(command, more).exits(exit::REFUSED);
        let says = |what: &str| ran.err.contains(what);
        assert!(says(&format!("the pin {pin} is gone")), "{command} {more:?}: {ran:?}");
        assert!(
            says(&format!("`bulla config DIR set pin {pin}` makes it again")),
            "{command} {more:?}: {ran:?}"
        );
        assert!(!says("--public"), "{command} {more:?}: {ran:?}");
        assert!(!Path::new(&pin).exists());
    }
    place.run("verify", &["--public"]).exits(exit::DONE);
    assert_eq!(place.info("pin")["failure"], "it is gone");
    let ran = place.run("config", &["set", "pin", &pin]).exits(exit::DONE);
    assert!(ran.err.contains(&format!("made the pin {pin}")) && ran.out.contains("changed"), "{ran:?}");
    place.append(&[], &lines(20..30)).exits(exit::DONE);
    assert_eq!(fs::read_to_string(&pin).unwrap(), checkpoint(&place));
    let ran = place.run("config", &["unset", "pin"]).exits(exit::DONE);
    assert!(ran.err.contains(&format!("goes on without the pin {pin}")), "{ran:?}");
    fs::remove_file(&pin).unwrap();
    place.append(&[], &lines(30..40)).exits(exit::DONE);
    let ran = place.run("config", &["get", "pin", "--json"]).exits(exit::DONE).json();
    assert_eq!(ran, json!({ "value": null, "source": "default" }));
}

#[test]
fn a_log_behind_its_pin_is_said_to_be_by_who_tells_of_it_or_sets_it() {
    let (place, pin) = filled();
    backup(&place);
    place.append(&["--pin", &pin], &lines(10..20)).exits(exit::DONE);
    let covered = place.info("tree_size");
    assert!(!place.run("info", &[]).exits(exit::DONE).out.contains("BEHIND"));
    place.run("config", &["set", "pin", &pin]).exits(exit::DONE);
    put_back(&place);
    let size = place.info("tree_size");
    let expected = format!("covers {covered} frames: the log is BEHIND it, its checkpoint covers {size}");
    // The second time nothing else is to be done.
    for _ in 0..2 {
        let ran = place.run("config", &["set", "pin", &pin]).exits(exit::VIOLATION);
        assert!(ran.err.contains(&expected), "{ran:?}");
    }
    assert_eq!(place.info("pin"), json!({ "path": pin, "frames": covered, "failure": null, "behind": true }));
    let told = place.run("info", &[]).exits(exit::DONE).out;
    let expected = format!("covers {covered} frames; the log is BEHIND it, its checkpoint covers {size}");
    assert!(told.contains(&expected), "{told}");
    assert!(place.append(&[], b"").exits(exit::VIOLATION).err.contains("run `bulla verify`"));
}

#[test]
fn another_pin_and_another_place_are_refused_by_name() {
    let (place, pin) = filled();
    let inside = place.audit().join("x.pin").into_os_string().into_string().unwrap();
    for command in ["append", "verify"] {
        let ran = place.run(command, &["--pin", &inside]).exits(exit::USAGE);
        assert!(ran.err.contains(&inside), "{ran:?}");
    }
    place.append(&["--pin", &pin], b"").exits(exit::DONE);
    let other = place.path("elsewhere/other.pin").into_os_string().into_string().unwrap();
    let ran = place.append(&["--pin", &other], b"").exits(exit::REFUSED);
    assert!(ran.err.contains(&pin) && ran.err.contains(&other), "{ran:?}");
    place.run("config", &["set", "pin", "audit.pin"]).exits(exit::USAGE);
    // Of another log.
    let stranger = Place::new();
    copy(&stranger.audit().join("checkpoint"), Path::new(&pin));
    let ran = place.append(&[], b"").exits(exit::REFUSED);
    assert!(ran.err.contains(&pin), "{ran:?}");
    let ran = place.run("verify", &["--json"]).exits(exit::VIOLATION);
    let kinds =
        ran.json()["findings"].as_array().unwrap().iter().map(|it| it["kind"].clone()).collect::<Vec<_>>();
    assert_eq!(kinds, ["pin-mismatch"]);
    fs::write(&pin, "no pin\n").unwrap();
    for command in ["append", "verify"] {
        let ran = place.run(command, &[]).exits(exit::REFUSED);
        assert!(ran.err.contains(&format!("{pin} is no pin")), "{ran:?}");
    }
    let ran = place.info("pin");
    assert!(ran["failure"].as_str().unwrap().contains("is no pin"), "{ran}");
}

#[test]
fn a_pin_is_made_on_no_path_of_the_log_that_is_known() {
    let (place, _) = filled();
    let backup = place.path("backup").into_os_string().into_string().unwrap();
    place.run("config", &["set", "backup_paths", &backup]).exits(exit::DONE);
    fs::create_dir(place.path("backup/deep")).unwrap();
    let key = place.verifier_key();
    for inside in ["backup/v.pin", "backup/deep/v.pin", "elsewhere/../backup/v.pin"] {
        let inside = place.path(inside).into_os_string().into_string().unwrap();
        let none = place.path("none").into_os_string().into_string().unwrap();
        fs::create_dir_all(&none).unwrap();
        for how in [&[][..], &["--keys", &none, "--also", &backup]] {
            let ran = place.run("verify", &[&["--key", &key, "--pin", &inside], how].concat());
            let ran = ran.exits(exit::USAGE);
            assert!(ran.err.contains(&inside) && ran.err.contains(&backup), "{ran:?}");
            assert!(!Path::new(&inside).exists());
        }
        place.run("config", &["set", "pin", &inside]).exits(exit::REFUSED);
    }
}

#[test]
fn violations_come_before_what_is_wrong_with_a_pin() {
    let (place, pin) = filled();
    place.append(&["--pin", &pin], b"").exits(exit::DONE);
    place.damage(0.5);
    fs::write(&pin, "no pin\n").unwrap();
    for more in [&[][..], &["--pin", &pin], &["--public", "--pin", &pin]] {
        let ran = place.run("verify", more).exits(exit::VIOLATION);
        assert!(ran.out.contains("violation ") && !ran.out.contains("pin-mismatch"), "{ran:?}");
    }
}

#[test]
fn nobody_is_sent_to_public_data_where_a_pin_fails() {
    let (place, pin) = filled();
    place.append(&["--pin", &pin], b"").exits(exit::DONE);
    let link = place.path("link.pin");
    std::os::unix::fs::symlink(&pin, &link).unwrap();
    let ran = place.run("verify", &["--pin", link.to_str().unwrap()]);
    assert!(
        ran.code != exit::DONE && ran.err.contains("link.pin") && !ran.err.contains("--public"),
        "{ran:?}"
    );
    fs::write(place.keys("vault").join("vault.db"), "no vault").unwrap();
    let ran = place.run("verify", &[]).exits(exit::ENVIRONMENT);
    assert!(ran.err.ends_with("; --public needs no keys\n"), "{ran:?}");
}

#[test]
fn a_pin_is_held_against_a_log_whose_vault_is_damaged() {
    let (place, pin) = filled();
    place.append(&["--pin", &pin], &lines(10..20)).exits(exit::DONE);
    backup(&place);
    place.append(&[], &lines(20..30)).exits(exit::DONE);
    put_back(&place);
    fs::write(place.keys("vault").join("vault.db"), "no vault").unwrap();
    let ran = place.run("verify", &["--pin", &pin]).exits(exit::VIOLATION);
    assert!(ran.out.contains("pin-mismatch"), "{ran:?}");
}

/// A relative path is that of the directory in which the command runs.
#[test]
fn a_pin_is_remembered_by_its_whole_path() {
    let (place, pin) = filled();
    let run = |words: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_bulla"))
            .args(words)
            .current_dir(place.path("elsewhere"))
            .output();
        assert!(ran.as_ref().unwrap().status.success(), "{ran:?}");
    };
    run(&["append", "../audit", "--pin", "audit.pin", "/dev/null"]);
    assert_eq!(place.run("config", &["get", "pin"]).out, format!("{pin}\n"));
    run(&["verify", "../audit", "--pin", "audit.pin"]);
    bulla(arguments!["verify", place.audit(), "--pin", pin]).exits(exit::DONE);
}
