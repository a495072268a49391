//! `bulla erase --keep-order`, and orders that are given again.

use crate::support::{Place, arguments, bulla, exit, lines};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn filled() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    place
}

fn path(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().to_owned()
}

/// What else is in a file's directory than the log, its keys and these.
fn leftovers(place: &Place, known: &[&str]) -> Vec<String> {
    let names =
        fs::read_dir(place.path("")).unwrap().map(|item| item.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !["audit", "audit.keys"].contains(&&name[..]) && !known.contains(&&name[..]))
        .collect()
}

#[test]
fn an_order_that_is_kept_can_be_given_again_by_the_same_command() {
    let place = filled();
    let order = path(&place, "order.json");
    let words = ["--subject", "s7", "--subject", "s8", "--reason", "asked", "--keep-order", &order];
    place.run("erase", &[&words[..], &["--dry-run"]].concat()).exits(exit::DONE);
    assert!(!Path::new(&order).exists(), "nothing is written");
    let erased = place.run("erase", &[&words[..], &["--json"]].concat()).exits(exit::DONE).json();
    assert_eq!((&erased["before"], &erased["order"]), (&json!(false), &json!(order)));
    assert_eq!(fs::metadata(&order).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(leftovers(&place, &["order.json"]), [""; 0]);

    let kept = fs::read(&order).unwrap();
    let numbers = erased["numbers"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>();
    let told = format!("erased already: data subjects {} of ", numbers.join(", "));
    // In any order, and without the reason.
    let others = ["--subject", "s8", "--subject", "s7", "--keep-order", &order];
    for words in [&words[..], &others] {
        let certificate = path(&place, "erased.cert");
        let again = place.run("erase", &[words, &["-o", &certificate]].concat()).exits(exit::DONE);
        let frame = &erased["frame"];
        assert!(again.out.starts_with(&told) && again.err.is_empty(), "{again:?}");
        assert!(again.out.contains(&format!("in frame {frame}; nothing was done now\n")), "{again:?}");
        assert!(again.out.contains(&format!("certificate: {certificate}\n")), "{again:?}");
        bulla(["check", &certificate, "--key", &place.verifier_key(), "--order", &order]).exits(exit::DONE);
        let dry = place.run("erase", &[words, &["--dry-run"]].concat()).exits(exit::DONE);
        assert!(dry.out.starts_with(&told), "{dry:?}");
    }
    assert_eq!(fs::read(&order).unwrap(), kept);
    let events = place.run("events", &["--kind", "erased", "--json"]).exits(exit::DONE).out;
    assert_eq!(events.lines().count(), 1);
}

#[test]
fn an_order_is_kept_neither_in_the_place_of_something_else_nor_beside_the_log() {
    let place = filled();
    let replica = path(&place, "replica");
    fs::create_dir(&replica).unwrap();
    let backup = path(&place, "backup");
    place.run("config", &["set", "vault_replicas", &replica, "backup_paths", &backup]).exits(exit::DONE);
    place.append(&[], b"").exits(exit::DONE);
    fs::create_dir(place.path("there")).unwrap();
    std::os::unix::fs::symlink(place.path("nowhere"), place.path("link")).unwrap();
    let refused = |file: &str, more: &[&str], code: i32, told: &str| {
        let before = fs::read(file).ok();
        let words = [&["--subject", "s7", "--keep-order", file], more].concat();
        let ran = place.run("erase", &words).exits(code);
        assert!(ran.out.is_empty() && ran.err.contains(told), "{told}: {ran:?}");
        assert_eq!(fs::read(file).ok(), before);
    };
    let inside = |directory: &str| path(&place, directory) + "/../" + directory + "/order.json";
    for (directory, told) in [
        ("audit", "which is where the log lies"),
        ("audit.keys", "which is where its keys lie"),
        ("replica", "which is a replica of the vault"),
        ("backup", "which is a path of the log"),
    ] {
        refused(&inside(directory), &[], exit::REFUSED, told);
    }
    for content in ["", "{}", "something else"] {
        let file = place.write("other", content.as_bytes());
        refused(&file, &[], exit::REFUSED, "is no order to erase: name another file");
    }
    fs::write(place.path("other"), [0xff; 10]).unwrap();
    refused(&path(&place, "other"), &[], exit::REFUSED, "is no order to erase: name another file");
    for name in ["there", "link"] {
        refused(&path(&place, name), &[], exit::REFUSED, "is no order to erase: name another file");
    }
    refused("/dev/null", &[], exit::REFUSED, "is no order to erase: name another file");
    refused(&path(&place, "missing/order.json"), &[], exit::ENVIRONMENT, "missing");
    assert_eq!(leftovers(&place, &["replica", "backup", "there", "link", "other"]), [""; 0]);
    assert_eq!(place.run("events", &["--kind", "erased"]).out, "");
}

#[test]
fn an_order_that_is_kept_for_others_or_by_others_is_not_used() {
    let (place, other) = (filled(), filled());
    let order = path(&place, "order.json");
    let (id, key) = (place.info("id"), path(&place, "audit.keys/erasure.key"));
    let give = |id: &Value, key: &str, names: &[&str], reason: &str| {
        let _ = fs::remove_file(&order);
        let id = id.as_str().unwrap();
        let whom = names.iter().flat_map(|name| ["--subject", name]).collect::<Vec<_>>();
        let words = ["order", "--log", id, "--authority", key, "--reason", reason, "-o", &order];
        bulla([&words[..], &whom].concat()).exits(exit::DONE);
    };
    let refused = |told: &str| {
        let before = fs::read(&order).unwrap();
        let words = ["--subject", "s7", "--subject", "s8", "--reason", "asked", "--keep-order", &order];
        let ran = place.run("erase", &words).exits(exit::REFUSED);
        assert!(ran.err.contains(&order) && ran.err.contains(told), "{told}: {ran:?}");
        assert_eq!(fs::read(&order).unwrap(), before);
    };
    give(&id, &key, &["s7"], "asked");
    refused("for others than those who are named here");
    give(&id, &key, &["s7", "s8", "s9"], "asked");
    refused("for others than those who are named here");
    give(&id, &key, &["s7", "s8"], "asked for else");
    refused("for another reason");
    give(&other.info("id"), &key, &["s7", "s8"], "asked");
    refused("it is for the log");
    give(&id, &path(&other, "audit.keys/erasure.key"), &["s7", "s8"], "asked");
    refused("the order to erase: ");
    // An order is kept already.
    give(&id, &key, &["s7", "s8"], "asked");
    let both = ["--authority", &order, "--keep-order", &path(&place, "other.json")];
    let ran = place.run("erase", &both).exits(exit::USAGE);
    assert!(ran.err.contains("leave out --subject, --reason and --keep-order"), "{ran:?}");
    assert_eq!(place.run("events", &["--kind", "erased"]).out, "");
    // What was refused was the file: it is carried out all the same, by whoever names it.
    let words = ["--subject", "s8", "--subject", "s7", "--reason", "asked", "--keep-order", &order];
    place.run("erase", &words).exits(exit::DONE);
}

#[test]
fn who_was_not_known_is_named_when_the_order_is_given_again() {
    let place = filled();
    let order = path(&place, "order.json");
    place
        .run("erase", &["--subject", "s7", "--subject", "mispelt", "--keep-order", &order])
        .exits(exit::SOME_REFUSED);
    for more in [&[][..], &["--dry-run"]] {
        let again = place.run("erase", &[&["--authority", &order], more].concat()).exits(exit::SOME_REFUSED);
        assert!(
            again.out.contains("erased already: ") && again.out.contains("unknown: mispelt: "),
            "{again:?}"
        );
    }
}

/// They are other persons, with other keys, and the order was carried out.
#[test]
fn whoever_is_known_again_is_not_erased_by_an_order_that_was_carried_out() {
    let place = filled();
    let order = path(&place, "order.json");
    place.run("erase", &["--subject", "s7", "--keep-order", &order]).exits(exit::DONE);
    let again = |more: &[&str]| place.run("erase", &[&["--authority", &order], more].concat());
    assert!(!again(&[]).exits(exit::DONE).out.contains("a new person"));
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let told = "s7: known as data subject 10 since then, a new person, whom this order does not erase: that takes a new order\n";
    for more in [&[][..], &["--dry-run"]] {
        let ran = again(more).exits(exit::DONE);
        assert!(ran.out.contains("erased already: data subject ") && ran.out.contains(told), "{ran:?}");
    }
    let json = again(&["--json"]).exits(exit::DONE).json();
    assert_eq!(json["known_again"], json!([{ "subject": "s7", "number": 10 }]));
    assert_eq!((&json["before"], &json["preview"]["erased_already"]), (&json!(true), &json["frame"]));
    // By name alone it is the new person whom the command is about.
    let export = |code: i32| bulla(arguments!["export", place.audit(), "--subject", "s7"]).exits(code).out;
    assert_eq!(export(exit::DONE).lines().count(), 10);
    place.run("erase", &["--subject", "s7"]).exits(exit::DONE);
    assert_eq!(export(exit::DONE).lines().count(), 0);
    let nobody = place.run("erase", &["--subject", "s7"]).exits(exit::REFUSED);
    assert!(nobody.err.contains("or they were erased before"), "{nobody:?}");
    assert!(!again(&[]).exits(exit::DONE).out.contains("a new person"));
}
