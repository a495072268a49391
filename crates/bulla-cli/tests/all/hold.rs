//! `bulla hold`: who is held, by name, and by whose order.

use crate::support::{Place, bulla, exit, lines, parse_lines};
use bulla::event::Event;
use bulla::{Log, Options};
use serde_json::json;
use std::fs;

/// A log of ten people, of whom one is held.
fn held() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let add = ["add", "--subject", "s7", "--by", "legal", "--reason", "case 4711"];
    place.run("hold", &add).exits(exit::DONE);
    place
}

#[test]
fn who_is_asked_for_by_name_is_held_or_not_or_nobody_of_that_name_is_known() {
    let place = held();
    let list = |names: &[&str], code| place.run("hold", &[&["list"], names].concat()).exits(code);
    let theirs = list(&["--subject", "s7"], exit::DONE);
    assert!(theirs.out.contains("case 4711") && theirs.err.is_empty(), "{theirs:?}");
    let none = list(&["--subject", "s8"], exit::DONE);
    assert_eq!((&*none.out, &*none.err), ("", "0 holds\n"));
    // As any other query says it.
    let unknown = list(&["--subject", "S7"], exit::DONE);
    let queried = place.run("export", &["--subject", "S7"]).exits(exit::DONE).err;
    let said = queried.lines().find(|line| line.starts_with("data subject `S7` ")).unwrap();
    assert_eq!((&*unknown.out, unknown.err), ("", format!("0 holds\n{said}\n")));
    let both = list(&["--subject", "s7", "--subject", "S7"], exit::DONE);
    assert!(both.out.contains("case 4711") && both.err == format!("{said}\n"), "{both:?}");

    let json = list(&["--subject", "s7", "--subject", "S7", "--subject", "s8", "--json"], exit::DONE).json();
    let number = &json["holds"][0]["number"];
    assert_eq!(json["holds"].as_array().unwrap().len(), 1);
    let of = |place: usize| {
        let subject = &json["subjects"][place];
        (&subject["subject"], &subject["standing"], &subject["number"])
    };
    assert_eq!(of(0), (&json!("s7"), &json!("known"), number));
    assert_eq!(of(1), (&json!("S7"), &json!("not-known"), &json!(null)));
    assert_eq!((of(2).1, of(2).2.is_u64()), (&json!("known"), true));
    assert!(said.ends_with(json["subjects"][1]["detail"].as_str().unwrap()), "{json}");
    list(&["--by", "legal"], exit::USAGE);
}

#[test]
fn where_it_cannot_be_told_whose_a_hold_is_nobody_is_said_to_be_free() {
    let place = held();
    crate::support::copy(&place.path("audit.keys"), &place.path("backup"));
    place.append(&[], br#"{"operation":"read","location":"x","subject":"somebody new"}"#).exits(exit::DONE);
    let add = ["add", "--subject", "somebody new", "--by", "legal", "--reason", "case 2"];
    place.run("hold", &add).exits(exit::DONE);
    fs::remove_dir_all(place.path("audit.keys")).unwrap();
    crate::support::copy(&place.path("backup"), &place.path("audit.keys"));
    place.run("restore", &[]).exits(exit::DONE);
    let list = |name: &str| place.run("hold", &["list", "--subject", name]).exits(exit::VIOLATION);
    let unknown = list("somebody new");
    let queried = place.run("export", &["--subject", "somebody new"]).exits(exit::VIOLATION).err;
    let said = queried.lines().find(|line| line.starts_with("data subject `somebody new` ")).unwrap();
    assert!(said.contains("cannot be told: keys are lost"), "{said}");
    assert!(unknown.err.starts_with(&format!("0 holds\n{said}\n")), "{unknown:?}");
    // Whoever has a number may have had another one, too.
    let known = list("s8");
    assert!(known.err.contains("may be on any of these data subjects"), "{known:?}");

    fs::rename(place.keys("vault"), place.path("vault")).unwrap();
    let without = place.run("hold", &["list", "--subject", "s7"]).exits(exit::REFUSED);
    assert!(without.err.contains("there is no vault in "), "{without:?}");
    let off = Place::empty();
    off.run("init", &["--erasure", "off"]).exits(exit::DONE);
    off.append(&[], &lines(0..10)).exits(exit::DONE);
    off.run("hold", &["list", "--subject", "s7"]).exits(exit::REFUSED);
    off.run("hold", &["list"]).exits(exit::DONE);
}

/// The log told of it, in a part that is not there: whoever looks is not told that somebody is at it.
#[test]
fn a_hold_that_an_older_log_does_not_tell_of_is_not_just_said_to_be_under_way() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let older = place.path("older");
    crate::support::copy(&place.audit(), &older);
    let add = ["add", "--subject", "s7", "--by", "legal", "--reason", "case 4711"];
    place.run("hold", &add).exits(exit::DONE);
    place.run("erase", &["--subject", "s3", "--yes"]).exits(exit::DONE);
    let newer = place.path("newer");
    fs::rename(place.audit(), &newer).unwrap();
    fs::rename(&older, place.audit()).unwrap();
    let list = || place.run("hold", &["list", "--subject", "s7", "--subject", "s3", "--json"]);
    // With the seal state the log is refused.
    list().exits(exit::ENVIRONMENT);
    let state = place.path("seal.state");
    fs::rename(place.keys("seal.state"), &state).unwrap();
    let listed = list().exits(exit::VIOLATION);
    let said = listed.json()["under_way"][0].as_str().unwrap().to_owned();
    assert!(said.starts_with("legal holds data subject "), "{said}");
    assert!(
        said.contains("the file of holds is ahead of it. Either that is under way, or the log is older"),
        "{said}"
    );
    assert!(listed.err.contains(&said) && !listed.err.contains("yet to tell of it"), "{listed:?}");
    // The key of s3 is not lost: its erasure is what is missing.
    assert!(listed.err.contains("bring back the log"), "{listed:?}");
    assert!(!listed.err.contains("Restore the vault"), "{listed:?}");
    fs::rename(place.audit(), &older).unwrap();
    fs::rename(&newer, place.audit()).unwrap();
    fs::rename(&state, place.keys("seal.state")).unwrap();
    let listed = place.run("hold", &["list", "--json"]).exits(exit::DONE).json();
    assert_eq!(listed["under_way"], json!([]), "{listed}");
}

#[test]
fn who_orders_a_hold_and_its_release_need_not_be_on_the_host() {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let info = place.run("info", &["--json"]).exits(exit::DONE).json();
    let [id, vkey, erasure_key] = ["id", "vkey", "erasure_key"].map(|name| info[name].as_str().unwrap());
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let (officer, hold, release) = (path("officer.key"), path("hold.json"), path("release.json"));
    fs::rename(place.keys("erasure.key"), &officer).unwrap();
    let whom = ["--subject", "s7", "--by", "legal", "--reason", "case 4711"];
    for action in ["add", "release"] {
        let refused = place.run("hold", &[&[action], &whom[..]].concat()).exits(exit::REFUSED);
        assert!(refused.err.contains("--authority"), "{refused:?}");
    }
    let give = |log: &str, out: &str, more: &[&str]| {
        bulla([&["order", "--log", log, "--authority", &officer, "-o", out], more].concat())
    };
    give(id, &hold, &[&["--hold"], &whom[..]].concat()).exits(exit::DONE);
    for slip in [
        &["--hold", "--subject", "s7", "--by", "legal"][..],
        &["--hold", "--subject", "s7", "--subject", "s8", "--by", "legal", "--reason", "why"],
        &["--subject", "s7", "--by", "legal"],
        &["--release", &hold, "--by", "legal"],
        &["--release", &hold, "--subject", "s7", "--by", "legal", "--reason", "why"],
        &["--release", &hold, "--hold", "--by", "legal", "--reason", "why"],
        &["--new-erasure-key", erasure_key, "--by", "legal"],
        &["--new-erasure-key", erasure_key, "--subject", "s7"],
        &["--new-erasure-key", erasure_key, "--release", &hold, "--by", "legal", "--reason", "why"],
    ] {
        give(id, &path("slip"), slip).exits(exit::USAGE);
        assert!(!place.path("slip").exists(), "{slip:?}");
    }
    let closed = ["--by", "legal", "--reason", "case closed"];
    give(&"0".repeat(32), &path("slip"), &[&["--release", &hold], &closed[..]].concat()).exits(exit::USAGE);
    let carry_out =
        |action: &str, order: &str, code| place.run("hold", &[action, "--authority", order]).exits(code);
    place.run("hold", &["add", "--authority", &hold, "--subject", "s7"]).exits(exit::USAGE);
    carry_out("release", &hold, exit::USAGE);
    carry_out("add", &hold, exit::DONE);
    assert!(carry_out("add", &hold, exit::DONE).out.contains("held before"));
    let listed = place.run("hold", &["list", "--subject", "s7", "--json"]).exits(exit::DONE).json();
    let file = serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&hold).unwrap()).unwrap();
    assert_eq!((&listed["holds"][0]["order"], &listed["holds"][0]["by"]), (&file["order"], &json!("legal")));

    // From the public note alone, as well as from the order.
    let note = path("note");
    fs::write(&note, file["order"].as_str().unwrap().to_owned() + "\n").unwrap();
    give(id, &path("by-note.json"), &[&["--release", &note], &closed[..]].concat()).exits(exit::DONE);
    let given =
        give(id, &release, &[&["--release", &hold, "--json"], &closed[..]].concat()).exits(exit::DONE);
    assert_eq!(given.json(), json!({ "kind": "release", "output": release, "subjects": 0 }));
    carry_out("release", &release, exit::DONE);
    carry_out("release", &path("by-note.json"), exit::REFUSED);
    carry_out("add", &hold, exit::REFUSED);
    place.run("verify", &["--key", vkey]).exits(exit::DONE);

    // What the log tells of it proves it to others, and with the order it says whom it is about.
    let frames = parse_lines(&place.run("events", &["--json"]).exits(exit::DONE).out);
    let of = ["held", "released"]
        .map(|kind| frames.iter().find(|event| event["event"] == kind).unwrap()["frame"].to_string());
    let certificates = of.map(|frame| {
        let file = path(&format!("{frame}.cert"));
        place.run("prove", &["--event", &frame, "-o", &file]).exits(exit::DONE);
        file
    });
    let check =
        |place: usize, more: &[&str]| bulla([&["check", &certificates[place], "--key", vkey], more].concat());
    let by_key = ["--erasure-key", erasure_key];
    let public = check(0, &by_key).exits(exit::DONE).out;
    assert!(
        public.contains("held ") && public.contains("signed by ") && !public.contains("4711"),
        "{public}"
    );
    assert!(check(0, &[]).exits(exit::DONE).out.contains("signature NOT checked"));
    let told = check(0, &["--order", &hold, by_key[0], by_key[1], "--json"]).exits(exit::DONE).json();
    assert_eq!(told["because"], json!({ "subject": "s7", "by": "legal", "reason": "case 4711" }));
    let told = check(1, &["--order", &release, by_key[0], by_key[1]]).exits(exit::DONE).out;
    assert!(told.contains("released") && told.contains("case closed"), "{told}");
    check(0, &["--erasure-key", vkey]).exits(exit::VIOLATION);
    check(0, &["--order", &release]).exits(exit::USAGE);
    // Bytes that are no text are no order, either, wherever one is named.
    fs::write(path("bytes"), [0xff; 10]).unwrap();
    assert!(check(0, &["--order", &path("bytes")]).exits(exit::USAGE).err.contains("it is not text"));
    place.run("erase", &["--authority", &path("bytes")]).exits(exit::USAGE);
    check(1, &["--order", &path("by-note.json")]).exits(exit::VIOLATION);
    let mut other = file.clone();
    other["subject"] = "s8".into();
    fs::write(path("other.json"), other.to_string()).unwrap();
    check(0, &["--order", &path("other.json")]).exits(exit::VIOLATION);

    // A release of what is said to have begun in its own frame can be none, whatever its order is worth.
    let file: serde_json::Value = serde_json::from_str(&fs::read_to_string(&release).unwrap()).unwrap();
    let order = file["order"].as_str().unwrap().to_owned();
    let frame = bulla::info(place.audit()).unwrap().tree_size + 1;
    let log = Log::open(place.audit(), Options::default()).unwrap();
    log.record(Event::Released { number: 7, held: frame, order }).unwrap();
    log.close().unwrap();
    let certificate = path("own.cert");
    place.run("prove", &["--event", &frame.to_string(), "-o", &certificate]).exits(exit::DONE);
    let ran = bulla(["check", &certificate, "--key", vkey, by_key[0], by_key[1]]).exits(exit::VIOLATION);
    assert!(ran.err.contains(&format!("releases a hold that began in frame {frame}")), "{ran:?}");
}

#[test]
fn a_hold_of_which_the_key_directory_knows_nothing_any_more_is_released_with_the_erasure_key() {
    let place = held();
    fs::remove_file(place.keys("holds")).unwrap();
    place.append(&[], b"").exits(exit::DONE);
    let by = &place.run("hold", &["list", "--json"]).exits(exit::DONE).json()["holds"][0]["by"];
    let by = by.as_str().unwrap();
    assert!(by.starts_with("unknown (frame "), "{by}");
    let release = |by: &str| {
        place.run("hold", &["release", "--subject", "s7", "--by", by, "--reason", "nobody knows of it"])
    };
    release("legal").exits(exit::REFUSED);
    release(by).exits(exit::DONE);
    place.run("erase", &["--subject", "s7"]).exits(exit::DONE);
    place.run("verify", &["--key", &place.verifier_key()]).exits(exit::DONE);
}

#[test]
fn a_hold_of_the_erasure_key_before_is_released_with_the_one_that_counts_now() {
    let place = held();
    let (former, path) = (place.keys("erasure.key"), place.path("two.key"));
    let [former, two] = [&former, &path].map(|path| path.to_str().unwrap());
    let first = place.info("erasure_key").as_str().unwrap().to_owned();
    let second = place.run("keys", &["new-erasure-key", "-o", two]).exits(exit::DONE).out;
    let second = second.trim_end();
    place.run("config", &["set", "log.erasure_key", second]).exits(exit::DONE);
    let release = |key: &str| {
        let closed = ["release", "--subject", "s7", "--by", "legal", "--reason", "closed"];
        place.run("hold", &[&closed[..], &["--authority", key]].concat())
    };
    let refused = release(former).exits(exit::REFUSED);
    assert!(refused.err.contains(&format!("has to be signed with {second}")), "{refused:?}");
    release(two).exits(exit::DONE);
    place.run("verify", &["--key", &place.verifier_key()]).exits(exit::DONE);
    let told = parse_lines(&place.run("events", &["--json"]).exits(exit::DONE).out);
    for (kind, by, other) in [("held", &first[..], second), ("released", second, &first)] {
        let event = told.iter().find(|event| event["event"] == kind).unwrap();
        assert_eq!(event["ordered"]["ok"], true, "{event}");
        let certificate = place.path(kind);
        let (certificate, frame) = (certificate.to_str().unwrap(), event["frame"].to_string());
        place.run("prove", &["--event", &frame, "-o", certificate]).exits(exit::DONE);
        let check = |key: &str| bulla(["check", certificate, "--erasure-key", key]);
        check(by).exits(exit::DONE);
        check(other).exits(exit::VIOLATION);
    }
}
