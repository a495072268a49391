//! A damaged file of the key directory: it is the environment's failure, whichever file, damage and command it is, and says
//! nothing against the log.

use crate::support::{Place, arguments, bulla, bulla_with, copy, exit, lines};
use bulla_testkit::sweep::in_full;
use std::fs;
use std::path::Path;

/// Longer than any of the files may be.
const LONG: u64 = 65 << 20;

/// What it is called, and how it is done.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 4] = [
    ("empty", |file| fs::write(file, "").unwrap()),
    ("with a byte flipped", |file| {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x80;
        fs::write(file, bytes).unwrap();
    }),
    ("too long", |file| fs::OpenOptions::new().write(true).open(file).unwrap().set_len(LONG).unwrap()),
    ("a directory", |file| {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    }),
];

const READING: [&[&str]; 4] =
    [&["export"], &["tail", "--entries", "0..0"], &["prove", "--entry", "1"], &["verify", "--json"]];
const WRITING: [&[&str]; 6] = [
    &["append"],
    &["append", "--json"],
    &["config", "set", "log.heartbeat", "1m", "--json"],
    &["keys", "rotate", "--json"],
    &["hold", "add", "--subject", "s7", "--by", "a", "--reason", "b", "--json"],
    &["restore", "--json"],
];
const ERASE: &[&str] = &["erase", "--subject", "s7", "--json"];

/// Every file of the key directory, and the commands that read it.
fn table() -> Vec<(&'static str, Vec<&'static [&'static str]>)> {
    let writing = || [&WRITING[..], &[ERASE]].concat();
    vec![
        ("signing.key", writing()),
        ("seal.state", [writing(), vec![&["verify", "--json"], &["verify"]]].concat()),
        ("seal.key", vec![&["verify", "--json"], &["verify"]]),
        ("identity.age", [&READING[..], &[&["restore", "--json"]]].concat()),
        ("erasure.key", vec![ERASE]),
        (
            "settings.toml",
            [writing(), vec![&["config", "--json"], &["config", "set", "linger", "1 ms", "--json"]]].concat(),
        ),
        ("holds", vec![ERASE, &["hold", "list", "--json"], WRITING[4]]),
        // Where nothing is to be restored, a restore does not open the log.
        ("erasure.pending", writing().into_iter().filter(|words| words[0] != "restore").collect()),
        ("restoring", writing()),
        ("roots/0.root", [&READING[..], &WRITING].concat()),
        ("roots/0.keys", [&READING[..], &WRITING].concat()),
        ("vault/vault.db", READING.to_vec()),
    ]
}

/// A log with each file that a key directory can have.
fn filled() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    place.run("config", &["set", "append_timeout", "20 s"]).exits(exit::DONE);
    place.run("hold", &["add", "--subject", "s1", "--by", "a", "--reason", "b"]).exits(exit::DONE);
    place
}

#[test]
fn a_damaged_file_of_the_key_directory_is_the_environments_failure_to_every_command_that_reads_it() {
    let place = filled();
    for directory in ["audit", "audit.keys"] {
        copy(&place.path(directory), &place.path(&format!("kept.{directory}")));
    }
    let put_back = || {
        for directory in ["audit", "audit.keys"] {
            fs::remove_dir_all(place.path(directory)).unwrap();
            copy(&place.path(&format!("kept.{directory}")), &place.path(directory));
        }
    };
    for (name, commands) in table() {
        for (which, (what, damage)) in DAMAGES.into_iter().enumerate() {
            // Elsewhere in a database a byte may be nobody's, a file that grew is one with unused pages, and an empty file of settings
            // says nothing: that is no damage.
            let is_none = match name {
                "vault/vault.db" => !matches!(what, "empty" | "a directory"),
                "settings.toml" => what == "empty",
                _ => false,
            };
            if is_none {
                continue;
            }
            let file = place.keys(name);
            // In short each command meets every other damage of it.
            for (_, words) in commands.iter().enumerate().filter(|(at, _)| in_full() || (at + which) % 2 == 0)
            {
                match name {
                    "erasure.pending" => {
                        fs::write(&file, "{\"numbers\":[1],\"carried_out\":[0],\"order\":\"\"}").unwrap();
                    }
                    "restoring" => fs::write(&file, "5 6\n").unwrap(),
                    _ => {}
                }
                damage(&file);
                let ran = place.run(words[0], &words[1..]);
                if name == "erasure.pending" && what != "a directory" {
                    // The vault knows that nothing was begun, so that nothing is lost with it.
                    assert!(ran.code == exit::DONE && ran.err.contains(name), "{what}, {words:?}: {ran:?}");
                    put_back();
                    continue;
                }
                assert_eq!(ran.code, exit::ENVIRONMENT, "{name}, {what}, {words:?}: {ran:?}");
                assert!(ran.err.contains(name), "{name}, {what}, {words:?}: {ran:?}");
                let advice = ["restore", "bring ", "mend"];
                assert!(advice.iter().any(|it| ran.err.contains(it)), "{name}, {what}, {words:?}: {ran:?}");
                if words.contains(&"--json") {
                    let told = ran.json();
                    let error = told["error"].as_str().unwrap_or_default();
                    assert!(error.contains(name), "{name}, {what}, {words:?}: {ran:?}");
                }
                // Some had the log opened, or begun something that is to be finished.
                put_back();
            }
        }
    }
    place.run("verify", &[]).exits(exit::DONE);
    assert_eq!(place.entries().len(), 100);
}

#[test]
fn a_damaged_key_of_pseudonyms_is_the_environments_failure() {
    let place = Place::empty();
    bulla(arguments!["init", place.audit(), "--erasure", "off"]).exits(exit::DONE);
    place.run("config", &["set", "log.fields.actor", "pseudonymise"]).exits(exit::DONE);
    let file = place.keys("pseudonym.key");
    let kept = fs::read(&file).unwrap();
    for (what, damage) in DAMAGES {
        damage(&file);
        for ran in [
            place.append(&["--json"], &lines(0..1)),
            place.run("pseudonym", &["actor", "alice", "--json"]),
            place.run("keys", &["rotate", "--json"]),
        ] {
            let ran = ran.exits(exit::ENVIRONMENT);
            assert!(ran.err.contains("pseudonym.key") && ran.err.contains("restore"), "{what}: {ran:?}");
            assert!(ran.json()["error"].as_str().unwrap().contains("pseudonym.key"), "{what}: {ran:?}");
        }
        drop(fs::remove_dir(&file));
        fs::write(&file, &kept).unwrap();
    }
    place.append(&[], &lines(0..1)).exits(exit::DONE);
}

#[test]
fn a_setting_of_the_key_directory_out_of_its_bounds_is_no_usage_of_who_sets_another() {
    let place = filled();
    let file = place.keys("settings.toml");
    let text = fs::read_to_string(&file).unwrap();
    for (name, value) in [("linger", "\"2 h\""), ("memory", "\"1 MiB\""), ("segment_size", "1")] {
        fs::write(&file, format!("{text}{name} = {value}\n")).unwrap();
        for ran in [
            place.append(&[], b""),
            place.run("config", &["set", "checkpoint_interval", "2 s"]),
            place.run("config", &["set", "writers", "2"]),
            place.run("config", &["set", "log.heartbeat", "1m"]),
            place.run("keys", &["rotate"]),
            place.run("restore", &[]),
        ] {
            let ran = ran.exits(exit::ENVIRONMENT);
            assert!(ran.err.contains(&format!("settings.toml: `{name}` is ")), "{name}: {ran:?}");
            assert!(ran.err.contains("`bulla config` changes it"), "{name}: {ran:?}");
        }
        // What was given now is who gave it.
        place.run("config", &["set", "linger", "3 h"]).exits(if name == "linger" {
            exit::USAGE
        } else {
            exit::ENVIRONMENT
        });
        place.run("config", &["unset", name]).exits(exit::DONE);
        place.append(&[], b"").exits(exit::DONE);
    }
    place.run("config", &["set", "linger", "3 h"]).exits(exit::USAGE);
    fs::write(&file, format!("{text}writers = 2\n")).unwrap();
    let ran = place.append(&[], b"").exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("`writers`, which belongs in [settings] of bulla.toml"), "{ran:?}");
    place.run("config", &["set", "writers", "2"]).exits(exit::DONE);
    place.append(&[], b"").exits(exit::DONE);
}

/// What is authentic and says otherwise than the log is evidence against it.
#[test]
fn a_seal_state_that_is_whole_and_disagrees_with_the_log_is_a_violation() {
    let place = filled();
    let older = place.path("older");
    copy(&place.audit(), &older);
    place.append(&[], &lines(100..200)).exits(exit::DONE);
    fs::remove_dir_all(place.audit()).unwrap();
    fs::rename(older, place.audit()).unwrap();
    place.run("verify", &["--json"]).exits(exit::VIOLATION);
    place.append(&[], b"").exits(exit::VIOLATION);
}

#[test]
fn junk_in_the_place_of_the_erasure_key_is_called_neither_a_key_nor_an_order() {
    let place = filled();
    fs::write(place.keys("erasure.key"), "junk\n").unwrap();
    let ran = place.run("erase", &["--subject", "s7"]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("neither the log's erasure key nor an order"), "{ran:?}");
    // One that was named is the slip of who named it.
    let junk = place.write("junk", b"junk\n");
    let ran = place.run("erase", &["--subject", "s7", "--authority", &junk]).exits(exit::USAGE);
    assert!(ran.err.contains("neither the log's erasure key nor an order"), "{ran:?}");
    bulla_with(arguments!["append", place.audit()], b"").exits(exit::DONE);
}

/// Whoever needs it: to read, to write, or to erase. A directory that is not there may be a disk that is not mounted.
#[test]
fn a_secret_that_is_missing_is_a_key_that_is_missing() {
    let place = filled();
    let append: &[&str] = &["append", "--json"];
    let export: &[&str] = &["export"];
    for (name, commands) in [
        ("signing.key", &[append, &["keys", "rotate"], &["restore"]][..]),
        ("seal.state", &[append, &["keys", "rotate"], &["restore"]]),
        ("roots/0.root", &[append, export, &["verify", "--json"]]),
        ("vault/vault.db", &[append, &["keys", "rotate"]]),
        ("vault", &[append, export]),
        ("identity.age", &[export, &["tail"], &["restore"]]),
        ("erasure.key", &[ERASE]),
    ] {
        let (file, away) = (place.keys(name), place.path("away"));
        fs::rename(&file, &away).unwrap();
        for words in commands {
            let ran = place.run(words[0], &words[1..]).exits(exit::REFUSED);
            let named = [name, "vault", "there is no identity"].iter().any(|it| ran.err.contains(it));
            assert!(named, "{name}, {words:?}: {ran:?}");
            // What was begun is to be finished: here that would be told instead.
            let _ = fs::remove_file(place.keys("restoring"));
        }
        fs::rename(&away, &file).unwrap();
    }
    fs::rename(place.path("audit.keys"), place.path("away")).unwrap();
    place.append(&[], b"").exits(exit::ENVIRONMENT);
}

/// A letter that is another letter is still a secret, and seals nothing: that must not accuse the log.
#[test]
fn a_seal_key_with_another_letter_accuses_nobody() {
    let place = filled();
    let file = place.path("audit.keys/seal.key");
    let key = fs::read(&file).unwrap();
    for at in [20, 60] {
        let mut changed = key.clone();
        changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
        fs::write(&file, changed).unwrap();
        let ran = place.run("verify", &[]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("seal.key is damaged"), "{ran:?}");
        place.run("verify", &["--public"]).exits(exit::DONE);
    }
}

/// The vault is no reason to say nothing of a log that is not what was written.
#[test]
fn violations_of_the_log_are_told_whatever_is_wrong_with_the_vault() {
    let place = filled();
    let vault = place.path("audit.keys/vault/vault.db");
    let sound = fs::read(&vault).unwrap();
    place.damage(0.9);
    for content in [&b""[..], &sound[..sound.len() / 2], &sound] {
        fs::write(&vault, content).unwrap();
        let ran = place.run("verify", &[]).exits(exit::VIOLATION);
        assert!(ran.out.contains("body-damaged"), "{}: {ran:?}", content.len());
        assert_eq!(ran.out.contains("personal groups were not opened"), content != sound, "{ran:?}");
    }
}
