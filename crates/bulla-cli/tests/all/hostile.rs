//! What a hostile storage can put before a reader.

use crate::support::{Place, arguments, bulla, bulla_with, copy, exit, lines};
use std::fs;
use std::os::unix::fs::symlink;

fn filled() -> Place {
    let place = Place::new().keep_together();
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
    // How many blocks a hundred lines make is a matter of time.
    let tile = place.audit().join(format!("tile/0/000.p/{}", place.info("tree_size")));
    fs::remove_file(&tile).unwrap();
    fs::create_dir(&tile).unwrap();
    let ran = place.run("verify", &[]).exits(exit::VIOLATION);
    assert!(ran.out.contains("tile-damaged"), "{ran:?}");
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    assert_eq!(ran.out.lines().count(), 100, "{ran:?}");
}

/// Whoever asks a script of theirs takes a damaged log for one, not for a slip in what they wrote.
#[test]
fn what_is_damaged_in_a_log_is_a_violation_to_every_command_and_never_usage() {
    type Damage = fn(&Place);
    fn edit(place: &Place, change: impl FnOnce(String) -> String) {
        let path = place.audit().join("bulla.toml");
        let text = fs::read_to_string(&path).unwrap();
        let changed = change(text.clone());
        assert_ne!(changed, text);
        fs::write(path, changed).unwrap();
    }
    fn value(text: &str, key: &str) -> String {
        let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    }
    let of_config: [(&str, Damage); 9] = [
        ("none", |place| fs::remove_file(place.audit().join("bulla.toml")).unwrap()),
        ("no TOML", |place| edit(place, |text| format!("[[[\n{text}"))),
        ("cut off", |place| edit(place, |text| text[..text.len() / 2].to_owned())),
        ("empty", |place| edit(place, |_| String::new())),
        ("no UTF-8", |place| fs::write(place.audit().join("bulla.toml"), b"\xff\xfe").unwrap()),
        ("too long", |place| edit(place, |text| text + &"#".repeat(3 << 20))),
        ("an unknown key", |place| edit(place, |text| text.replace("[log]\n", "[log]\ncolour = 1\n"))),
        ("another origin", |place| edit(place, |text| text.replace("origin = \"", "origin = \"x"))),
        ("another vkey", |place| {
            let other = fs::read_to_string(Place::new().audit().join("bulla.toml")).unwrap();
            edit(place, |text| text.replace(&value(&text, "vkey"), &value(&other, "vkey")));
        }),
    ];
    let of_checkpoint: [(&str, Damage); 3] = [
        ("a checkpoint that is too long", |place| {
            fs::write(place.audit().join("checkpoint"), vec![b'x'; 3 << 20]).unwrap();
        }),
        ("a checkpoint that is none", |place| fs::write(place.audit().join("checkpoint"), "x\n").unwrap()),
        ("no checkpoint", |place| fs::remove_file(place.audit().join("checkpoint")).unwrap()),
    ];
    let reading: [&[&str]; 11] = [
        &["append"],
        &["append", "--json"],
        &["verify"],
        &["verify", "--public"],
        &["export"],
        &["info"],
        &["config", "set", "log.heartbeat", "1m"],
        &["keys", "list"],
        &["keys", "rotate"],
        &["hold", "list"],
        &["prove", "--entry", "1"],
    ];
    let of_config_alone: [&[&str]; 3] =
        [&["config"], &["config", "get", "linger"], &["config", "set", "writers", "2"]];
    for (damages, commands) in
        [(&of_config[..], [&reading[..], &of_config_alone].concat()), (&of_checkpoint, reading.to_vec())]
    {
        for (what, damage) in damages {
            let place = filled();
            damage(&place);
            for words in &commands {
                let ran = place.run(words[0], &words[1..]);
                assert_eq!(ran.code, exit::VIOLATION, "{what}, {words:?}: {ran:?}");
            }
        }
    }
    // What somebody wrote stays usage.
    let place = filled();
    let none = place.write("none", b"no seal key");
    for words in [&["append", "--colour"][..], &["verify", "--key", "x"], &["verify", "--seal-key", &none]] {
        place.run(words[0], &words[1..]).exits(exit::USAGE);
    }
}

/// Its keys know the log that was there.
#[test]
fn another_log_in_the_place_of_one_is_told_by_its_keys() {
    let (place, other) = (filled(), filled());
    let key = place.verifier_key();
    fs::rename(place.audit(), place.path("away")).unwrap();
    copy(&other.audit(), &place.audit());
    for more in [&["--json"][..], &["--json", "--key", &key]] {
        let report = place.run("verify", more).exits(exit::VIOLATION).json();
        let told = report["findings"].as_array().unwrap().iter();
        let told = told.filter(|finding| finding["kind"] == "key-mismatch");
        let told = told.map(|finding| finding["detail"].as_str().unwrap()).collect::<Vec<_>>();
        for what in ["the seal key of another log", "that of another log"] {
            assert!(told.iter().any(|told| told.contains(what)), "{what}: {report}");
        }
    }
    let ran = place.run("verify", &[]).exits(exit::VIOLATION);
    assert!(ran.out.contains("no seals") || ran.out.contains("public data alone"), "{ran:?}");
    // With public data alone nobody can tell, unless they have the log's key.
    place.run("verify", &["--public"]).exits(exit::DONE);
    place.run("verify", &["--public", "--key", &key]).exits(exit::VIOLATION);
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

/// Whether a writer runs is nothing that decides what an edited file is.
#[test]
fn an_edited_configuration_is_the_same_to_whatever_changes_a_log_beside_a_writer_and_without_one() {
    type Edit = fn(String) -> String;
    let edits: [(&str, Edit, i32, &str); 3] = [
        ("no TOML", |text| format!("[[[\n{text}"), exit::VIOLATION, "bulla.toml: line 1, column "),
        (
            "another origin",
            |text| text.replace("origin = \"", "origin = \"x"),
            exit::VIOLATION,
            "bulla.toml: `vkey` is not of this `origin`",
        ),
        (
            "another heartbeat",
            |text| text.replace("hash = ", "heartbeat = \"5 min\"\nhash = "),
            exit::REFUSED,
            "bulla.toml was edited; put it back",
        ),
    ];
    const RECIPIENT: &str = "age1a37dpy8amjrxz7sc0jj3j4ys3mtqp9m9tmcan64s6g0w6qq20pnqvxphr3";
    let changing: [&[&str]; 6] = [
        &["config", "set", "log.heartbeat", "10 min"],
        &["config", "set", "log.fields.client", "drop"],
        &["config", "set", "log.recipients", RECIPIENT],
        &["keys", "add-recipient", RECIPIENT],
        &["keys", "rotate"],
        &["hold", "add", "--subject", "s1", "--by", "a", "--reason", "b"],
    ];
    let place = filled();
    let file = place.audit().join("bulla.toml");
    let text = fs::read_to_string(&file).unwrap();
    let run = |words: &[&str]| place.run(words[0], &words[1..]);
    for running in [false, true] {
        let log = running.then(|| bulla::Log::open(place.audit(), bulla::Options::default()).unwrap());
        for (what, edit, code, told) in &edits {
            let edited = edit(text.clone());
            fs::write(&file, &edited).unwrap();
            for words in changing {
                let ran = run(words);
                assert!(ran.code == *code && ran.err.contains(told), "{what} {words:?} {running}: {ran:?}");
            }
            // These read the log before they change anything, and tell what every reader is told.
            let release = ["hold", "release", "--subject", "s1", "--by", "a", "--reason", "b"];
            for words in [&["erase", "--subject", "s1"][..], &release] {
                let ran = run(words).exits(exit::VIOLATION);
                assert!(ran.err.contains("bulla.toml"), "{what} {running}: {ran:?}");
            }
            // Settings are no part of what the log is, and can be changed wherever the file is one.
            let ran = run(&["config", "set", "linger", "20 ms"]);
            let expected = if *code == exit::VIOLATION { exit::VIOLATION } else { exit::DONE };
            assert!(ran.code == expected, "{what} {running}: {ran:?}");
            assert!(expected == exit::DONE || ran.err.contains(told), "{what} {running}: {ran:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), edited);
            fs::write(&file, &text).unwrap();
        }
        log.map(bulla::Log::close).transpose().unwrap();
    }
    place.run("verify", &["--strict"]).exits(exit::DONE);
}
