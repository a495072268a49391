//! `bulla erase`, `order`, `hold` and `restore`: what they do, and what they refuse.

use crate::support::{Place, Ran, arguments, bulla, exit, lines, parse_lines};
use std::fs;

/// A log of a hundred entries of ten people, and its public key.
fn filled() -> (Place, String) {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let key = place.run("info", &["--json"]).exits(exit::DONE).json()["vkey"].as_str().unwrap().to_owned();
    (place, key)
}

fn path(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().to_owned()
}

fn check(file: &str, more: &[&str]) -> Ran {
    bulla([&["check", file], more].concat())
}

fn withheld(place: &Place) -> usize {
    let entries = parse_lines(&place.run("export", &[]).exits(exit::DONE).out);
    assert_eq!(entries.len(), 100);
    entries.iter().filter(|entry| entry["withheld"] == "erased" && entry["location"].is_null()).count()
}

#[test]
fn an_erasure_is_told_certified_and_seen() {
    let (place, key) = filled();
    let certificate = path(&place, "erased.cert");
    let erased = place
        .run("erase", &["--subject", "s7", "--reason", "request of 2026-03-01", "-o", &certificate])
        .exits(exit::DONE);
    assert!(
        erased.out.contains("erased: data subject 7 of ") && erased.out.contains("what remains:"),
        "{erased:?}"
    );
    assert_eq!(withheld(&place), 10);
    assert_eq!(parse_lines(&place.run("export", &["--subject", "s7"]).exits(exit::DONE).out).len(), 0);
    let verified = place.run("verify", &["--json", "--key", &key]).exits(exit::DONE).json();
    assert_eq!((&verified["ok"], verified["erased"].as_u64()), (&true.into(), Some(10)));

    let erasure_key = place.run("info", &["--json"]).json()["erasure_key"].as_str().unwrap().to_owned();
    let checked = check(&certificate, &["--key", &key, "--erasure-key", &erasure_key]).exits(exit::DONE);
    for told in
        ["data subject 7", "request of 2026-03-01", "signed by", "frame ", "exports, proofs and grants"]
    {
        assert!(checked.out.contains(told), "{told}: {checked:?}");
    }
    assert!(checked.err.contains("ok: signed by"), "{checked:?}");
    let json = check(&certificate, &["--key", &key, "--json"]).exits(exit::DONE).json();
    assert_eq!(
        (&json["ok"], &json["anchored"], &json["ordered"]),
        (&true.into(), &true.into(), &false.into())
    );
    assert_eq!(json["event"]["numbers"], serde_json::json!([7]));
    // The same certificate again, by its frame.
    let again = path(&place, "again.cert");
    let frame = json["frame"].to_string();
    place.run("prove", &["--event", &frame, "-o", &again]).exits(exit::DONE);
    check(&again, &["--key", &key]).exits(exit::DONE);
    // Of another log, or altered, it is nothing.
    let (other, other_key) = filled();
    check(&certificate, &["--key", &other_key]).exits(exit::VIOLATION);
    let other_erasure_key = other.run("info", &["--json"]).json()["erasure_key"].as_str().unwrap().to_owned();
    check(&certificate, &["--key", &key, "--erasure-key", &other_erasure_key]).exits(exit::VIOLATION);
    let text = fs::read_to_string(&certificate).unwrap();
    let at = text.find("event ").unwrap() + 20;
    let flipped = if &text[at..=at] == "A" { "B" } else { "A" };
    fs::write(&again, format!("{}{flipped}{}", &text[..at], &text[at + 1..])).unwrap();
    check(&again, &["--key", &key]).exits(exit::VIOLATION);
}

#[test]
fn who_orders_need_not_be_on_the_host() {
    let (place, key) = filled();
    let id = place.run("info", &["--json"]).json()["id"].as_str().unwrap().to_owned();
    let (officer, order, certificate) =
        (path(&place, "officer.key"), path(&place, "order.json"), path(&place, "erased.cert"));
    fs::rename(place.keys("erasure.key"), &officer).unwrap();
    let refused = place.run("erase", &["--subject", "s7"]).exits(exit::REFUSED);
    assert!(refused.err.contains("--authority"), "{refused:?}");
    let give = |more: &[&str]| {
        bulla([&["order", "--log", &id, "--authority", &officer, "-o", &order], more].concat())
    };
    give(&["--subject", "s7", "--reason", "asked"]).exits(exit::DONE);
    give(&["--subject", "s8"]).exits(exit::ENVIRONMENT);
    let both = place.run("erase", &["--authority", &order, "--subject", "s7"]).exits(exit::USAGE);
    assert!(both.err.contains("leave out --subject"), "{both:?}");
    let erased = place.run("erase", &["--authority", &order, "-o", &certificate, "--json"]).exits(exit::DONE);
    assert_eq!(erased.json()["numbers"], serde_json::json!([7]));
    let again = place.run("erase", &["--authority", &order, "--json"]).exits(exit::DONE).json();
    assert_eq!((&again["before"], &again["frame"]), (&true.into(), &erased.json()["frame"]));
    let checked = check(&certificate, &["--key", &key, "--order", &order]).exits(exit::DONE);
    assert!(checked.out.contains("s7"), "{checked:?}");
    // Another order does not show whom this one was about.
    fs::remove_file(&order).unwrap();
    give(&["--subject", "s8"]).exits(exit::DONE);
    check(&certificate, &["--key", &key, "--order", &order]).exits(exit::VIOLATION);
    // A key that is the log's, but not for this.
    let signing = place.keys("signing.key");
    let refused = place.run("erase", &["--authority", signing.to_str().unwrap(), "--subject", "s8"]);
    refused.exits(exit::REFUSED);
    assert_eq!(withheld(&place), 10);
}

#[test]
fn whoever_is_held_stays() {
    let (place, _) = filled();
    let hold = |action: &str, more: &[&str]| place.run("hold", &[&[action], more].concat());
    let whom = ["--subject", "s7", "--by", "legal"];
    hold("add", &whom).exits(exit::USAGE);
    hold("add", &[&whom[..], &["--reason", "case 4711"]].concat()).exits(exit::DONE);
    let listed = hold("list", &[]).exits(exit::DONE);
    assert!(listed.out.contains("legal") && listed.out.contains("case 4711"), "{listed:?}");
    let certificate = path(&place, "erased.cert");
    let refused = place.run("erase", &["--subject", "s7", "-o", &certificate]).exits(exit::REFUSED);
    assert!(refused.err.contains("held by legal: case 4711"), "{refused:?}");
    assert!(!place.path("erased.cert").exists(), "nothing half is left");
    hold("release", &whom).exits(exit::DONE);
    hold("release", &whom).exits(exit::REFUSED);
    assert_eq!(hold("list", &[]).exits(exit::DONE).out, "nobody is held\n");
    place.run("erase", &["--subject", "s7", "-o", &certificate]).exits(exit::DONE);
    assert_eq!(withheld(&place), 10);
}

#[test]
fn what_cannot_be_erased_is_refused_and_says_why() {
    let (place, _) = filled();
    let refused = |arguments: &[&str], code: i32, told: &str| {
        let ran = place.run("erase", arguments).exits(code);
        assert!(ran.err.contains(told) && ran.out.is_empty(), "{ran:?}");
    };
    refused(&["--subject", "nobody"], exit::REFUSED, "knows nobody of that name");
    refused(&[], exit::USAGE, "--subject");
    refused(&["--subject", "s7", "--subject", "s7"], exit::USAGE, "named twice");
    refused(&["--subject", "s7", "--reason", "two\nlines"], exit::USAGE, "one line");
    refused(&["--subject", "s7", "--authority", "/nowhere"], exit::REFUSED, "/nowhere");
    let inside = place.audit().join("erased.cert");
    refused(&["--subject", "s7", "-o", inside.to_str().unwrap()], exit::USAGE, "write elsewhere");
    let missing = path(&place, "missing/erased.cert");
    refused(&["--subject", "s7", "-o", &missing], exit::ENVIRONMENT, "missing");
    fs::rename(place.keys("vault"), place.path("vault")).unwrap();
    refused(&["--subject", "s7"], exit::ENVIRONMENT, "vault");
    fs::rename(place.path("vault"), place.keys("vault")).unwrap();
    assert_eq!(withheld(&place), 0);

    let off = Place::empty();
    bulla(arguments!["init", off.audit(), "--erasure", "off"]).exits(exit::DONE);
    fs::copy(place.keys("erasure.key"), off.path("erasure.key")).unwrap();
    let key = path(&off, "erasure.key");
    let ran = off.run("erase", &["--subject", "s7", "--authority", &key]).exits(exit::REFUSED);
    assert!(ran.err.contains("erasure = \"off\""), "{ran:?}");
}

#[test]
fn a_key_for_erasures_can_be_given() {
    let place = Place::empty();
    let (other, _) = filled();
    let key = other.run("info", &["--json"]).json()["erasure_key"].as_str().unwrap().to_owned();
    let made = bulla(arguments!["init", place.audit(), "--erasure-key", key.as_str()]).exits(exit::DONE);
    assert!(!made.out.contains("erasure.key") && !place.keys("erasure.key").exists(), "{made:?}");
    assert_eq!(place.run("info", &["--json"]).json()["erasure_key"], key);
    let off = ["init", "elsewhere", "--erasure", "off", "--erasure-key", &key];
    bulla(off).exits(exit::USAGE);
}

#[test]
fn an_older_key_directory_is_taken_up() {
    let (place, _) = filled();
    let up = place.run("restore", &["--json"]).exits(exit::DONE).json();
    assert_eq!(up["lost"], 0, "the newest has everything");
    crate::support::copy(&place.path("audit.keys"), &place.path("backup"));
    place.run("erase", &["--subject", "s7"]).exits(exit::DONE);
    place.append(&[], br#"{"operation":"read","location":"x","subject":"somebody new"}"#).exits(exit::DONE);
    fs::remove_dir_all(place.path("audit.keys")).unwrap();
    crate::support::copy(&place.path("backup"), &place.path("audit.keys"));
    let refused = place.append(&[], b"").exits(exit::REFUSED);
    assert!(refused.err.contains("bulla restore"), "{refused:?}");
    assert_eq!(place.run("restore", &["--json"]).exits(exit::DONE).json()["lost"], 1);
    place.append(&[], b"").exits(exit::DONE);
    let entries = parse_lines(&place.run("export", &[]).exits(exit::VIOLATION).out);
    let count = |why: &str| entries.iter().filter(|entry| entry["withheld"] == why).count();
    assert_eq!((entries.len(), count("erased"), count("key-lost")), (101, 10, 1));
}
