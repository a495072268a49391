//! `bulla erase`, `order`, `hold` and `restore`: what they do, and what they refuse.

use crate::interrupt::waiting;
use crate::support::{
    Mount, Place, Ran, arguments, bulla, command, copy, eventually, exit, finish, lines, may_mount,
    parse_lines,
};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// A log of a hundred entries of ten people, and its public key.
fn filled() -> (Place, String) {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let key = place.run("info", &["--json"]).exits(exit::DONE).json()["vkey"].as_str().unwrap().to_owned();
    (place, key)
}

/// How many numbers an event or a certificate names. Which ones depends on the block that was sealed first.
fn numbers(of: &serde_json::Value) -> usize {
    of["numbers"].as_array().unwrap().len()
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

/// A number that nobody counted is none.
#[test]
fn who_cannot_tell_how_many_are_erased_says_so() {
    let (place, _) = filled();
    place.run("erase", &["--subject", "s7"]).exits(exit::DONE);
    let (identity, empty) = (path(&place, "audit.keys/identity.age"), path(&place, "empty"));
    fs::create_dir(&empty).unwrap();
    let erased = |place: &Place, more: &[&str]| {
        let json = place.run("verify", &[more, &["--json"]].concat()).exits(exit::DONE).json();
        let text = place.run("verify", more).exits(exit::DONE).out;
        let line = text.lines().find_map(|line| line.strip_prefix("erased     ")).unwrap().to_owned();
        (json["erased"].as_u64(), json["erased"].is_null(), line)
    };
    assert_eq!(erased(&place, &[]), (Some(10), false, "10".to_owned()));
    let untold = (None, true, "not counted".to_owned());
    // With public data alone; without an identity; without a vault.
    assert_eq!(erased(&place, &["--public"]), untold);
    assert_eq!(erased(&place, &["--keys", &empty]), untold);
    assert_eq!(erased(&place, &["--keys", &empty, "--identity", &identity]), untold);
    // Of a log without erasure everybody can tell.
    let without = Place::empty();
    bulla(arguments!["init", without.audit(), "--erasure", "off"]).exits(exit::DONE);
    without.append(&[], &lines(0..10)).exits(exit::DONE);
    assert_eq!(erased(&without, &["--public"]), (Some(0), false, "0".to_owned()));
}

/// What was dropped and set aside no erasure reaches: that is said before anybody is erased, and so is that nobody can look.
#[test]
fn what_is_set_aside_is_told_before_an_erasure() {
    let (place, _) = filled();
    let aside = path(&place, "aside");
    fs::create_dir(&aside).unwrap();
    place.run("config", &["set", "on_failure", "drop", "error_path", &aside]).exits(exit::DONE);
    let dry_run = || place.run("erase", &["--subject", "s7", "--dry-run"]).exits(exit::DONE).err;
    assert!(!dry_run().contains("aside"));
    let id = place.run("info", &["--json"]).exits(exit::DONE).json()["id"].as_str().unwrap().to_owned();
    place.write(&format!("aside/{id}-1.age"), b"age");
    place.write("aside/others", b"");
    let told = format!("1 file in {aside} holds entries that were dropped");
    assert!(dry_run().contains(&told), "{}", dry_run());
    fs::rename(&aside, path(&place, "unmounted")).unwrap();
    let told = format!("{aside}, where entries lie that were dropped, cannot be looked at: ");
    assert!(dry_run().contains(&told), "{}", dry_run());
    let ran = place.run("erase", &["--subject", "s7"]).exits(exit::DONE);
    assert!(ran.err.contains(&told), "{}", ran.err);
}

/// Of a log whose groups share nothing, nothing that they have in common remains; and neither the certificate nor the command says so.
#[test]
fn what_is_said_to_remain_is_what_does_in_this_log() {
    for (common, expected) in [("16", true), ("off", false)] {
        let place = Place::empty();
        bulla(arguments!["init", place.audit(), "--common", common]).exits(exit::DONE);
        place.append(&[], &lines(0..20)).exits(exit::DONE);
        let certificate = path(&place, "erased.cert");
        let erased = place.run("erase", &["--subject", "s7", "-o", &certificate]).exits(exit::DONE);
        let checked = check(&certificate, &[]).exits(exit::DONE);
        let json = check(&certificate, &["--json"]).exits(exit::DONE).json();
        let remains = json["event"]["remains"].as_array().unwrap();
        assert_eq!(remains.contains(&"common-items".into()), expected, "{json}");
        assert_eq!(remains.len(), if expected { 5 } else { 4 });
        for told in [&erased.out, &checked.out] {
            assert_eq!(told.contains("words and shapes that"), expected, "{told}");
        }
    }
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
    for told in [
        "data subject 7",
        "request of 2026-03-01",
        "signed by",
        "frame ",
        "words and shapes",
        "exports, proofs and grants",
    ] {
        assert!(checked.out.contains(told), "{told}: {checked:?}");
    }
    assert!(checked.err.contains("ok: signed by"), "{checked:?}");
    let json = check(&certificate, &["--key", &key, "--json"]).exits(exit::DONE).json();
    assert_eq!(
        (&json["ok"], &json["anchored"], &json["ordered"]),
        (&true.into(), &true.into(), &false.into())
    );
    assert_eq!(numbers(&json["event"]), 1);
    // The same certificate again, by its frame.
    let again = path(&place, "again.cert");
    let frame = json["frame"].to_string();
    place.run("prove", &["--event", &frame, "-o", &again]).exits(exit::DONE);
    check(&again, &["--key", &key]).exits(exit::DONE);
    // Of another log, or altered, it is nothing.
    let (other, other_key) = filled();
    check(&certificate, &["--key", &other_key]).exits(exit::VIOLATION);
    let other_erasure_key = other.run("info", &["--json"]).json()["erasure_key"].as_str().unwrap().to_owned();
    let ran =
        check(&certificate, &["--key", &key, "--erasure-key", &other_erasure_key]).exits(exit::VIOLATION);
    let signer = erasure_key.split('+').take(2).collect::<Vec<_>>().join("+");
    assert!(ran.err.contains(&other_erasure_key) && ran.err.contains(&signer), "{ran:?}");
    let text = fs::read_to_string(&certificate).unwrap();
    let at = text.find("event ").unwrap() + 20;
    let flipped = if &text[at..=at] == "A" { "B" } else { "A" };
    fs::write(&again, format!("{}{flipped}{}", &text[..at], &text[at + 1..])).unwrap();
    check(&again, &["--key", &key]).exits(exit::VIOLATION);
}

/// Whoever is told of the failure alone would think that nothing was done.
#[test]
fn what_cannot_be_told_after_it_was_done_is_said_to_be_done() {
    let (place, _) = filled();
    let failed = place.run("erase", &["--subject", "s7", "-o", "/dev/full"]).exits(exit::ENVIRONMENT).err;
    assert_eq!(withheld(&place), 10);
    let events = place.run("events", &["--kind", "erased", "--json"]).exits(exit::DONE).out;
    let frame = parse_lines(&events)[0]["frame"].to_string();
    let told = format!("in frame {frame}; for its certificate: bulla prove DIR --event {frame} -o FILE");
    assert!(failed.contains("it is done: ") && failed.contains(&told), "{failed}");
    assert!(failed.contains("writing the certificate: No space left"), "{failed}");
    // By its name alone nobody can tell: the order would be another one.
    let again = place.run("erase", &["--subject", "s7"]).exits(exit::REFUSED).err;
    assert!(again.contains("`bulla events DIR --kind erased` lists"), "{again}");
    // Whatever changes something says so.
    let whom = ["--subject", "s1", "--by", "legal", "--reason", "case"];
    let changes: [(&str, &[&str], &str); 6] = [
        ("erase", &["--subject", "s9"], "bulla prove DIR --event"),
        ("hold", &[&["add"], &whom[..]].concat(), "it is done: held;"),
        ("hold", &[&["release"], &whom[..]].concat(), "it is done: released;"),
        ("config", &["set", "linger", "20 ms"], "it is done: changed"),
        ("config", &["set", "log.heartbeat", "60 s"], "recorded in the log"),
        ("keys", &["rotate"], "it is done: a new epoch"),
    ];
    for (subcommand, arguments, told) in changes {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let child = command(place.arguments(subcommand, arguments)).stdout(full).spawn().unwrap();
        let ran = finish(child).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("it is done: ") && ran.err.contains(told), "{told}: {ran:?}");
    }
    assert_eq!(withheld(&place), 20);
}

#[test]
fn a_certificate_that_finds_no_room_is_known_before_anybody_is_erased() {
    if !may_mount("erase::a_certificate_that_finds_no_room_is_known_before_anybody_is_erased") {
        return;
    }
    let (place, _) = filled();
    let small = place.path("small");
    let _mount = Mount::new(&small, "size=64k");
    let certificate = small.join("erased.cert");
    let arguments = ["--subject", "s7", "-o", certificate.to_str().unwrap()];
    let ran = place.run("erase", &arguments).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("making room for ") && !ran.err.contains("it is done"), "{ran:?}");
    assert_eq!((withheld(&place), fs::read_dir(&small).unwrap().count()), (0, 0));
    // What was reserved and not used is given back.
    let elsewhere = path(&place, "erased.cert");
    place.run("erase", &["--subject", "s7", "-o", &elsewhere]).exits(exit::DONE);
    let metadata = fs::metadata(&elsewhere).unwrap();
    assert!(metadata.blocks() * 512 < metadata.len() + (32 << 10), "{metadata:?}");
}

/// Nobody is called erased who is not: neither by the command, nor by its certificate, nor when the order is given again.
#[test]
fn a_name_that_is_misspelt_is_not_called_erased() {
    let (place, key) = filled();
    let (order, certificate) = (path(&place, "order.json"), path(&place, "erased.cert"));
    let (id, authority) = (place.info("id"), path(&place, "audit.keys/erasure.key"));
    let whom = ["--subject", "s7", "--subject", "s8x", "--subject", "s9"];
    let given = ["order", "--log", id.as_str().unwrap(), "--authority", &authority, "-o", &order];
    bulla([&given[..], &whom].concat()).exits(exit::DONE);
    for again in [false, true] {
        let erased = place.run("erase", &["--authority", &order, "--json"]).exits(exit::SOME_REFUSED).json();
        assert_eq!(erased["before"], again);
        assert_eq!(numbers(&erased), 2);
        assert_eq!(erased["unknown"], serde_json::json!(["s8x"]));
        let frame = erased["frame"].to_string();
        if !again {
            place.run("prove", &["--event", &frame, "-o", &certificate]).exits(exit::DONE);
        }
    }
    let checked = check(&certificate, &["--key", &key, "--order", &order]).exits(exit::DONE).out;
    for told in
        ["s7: erased\n", "s8x: not erased: nobody", "s9: erased\n", "of the 3 names that were ordered 2;"]
    {
        assert!(checked.contains(told), "{told}: {checked}");
    }
    let json = check(&certificate, &["--key", &key, "--order", &order, "--json"]).exits(exit::DONE).json();
    let erased = json["subjects"].as_array().unwrap().iter().map(|subject| subject["erased"] == true);
    assert_eq!(erased.collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(json["event"]["carried_out"], serde_json::json!([0, 2]));
    // Whose order it is takes the erasure key. Without that it is said, and a signature that is another is found all the same.
    assert!(checked.contains("signature NOT checked") && checked.contains("--erasure-key"), "{checked}");
    let text = fs::read_to_string(&order).unwrap();
    let signature =
        text.find("\u{2014} ").unwrap() + text[text.find("\u{2014} ").unwrap()..].find("\\n").unwrap() - 20;
    let other = if text.as_bytes()[signature] == b'A' { "B" } else { "A" };
    let tampered = place
        .write("tampered", format!("{}{other}{}", &text[..signature], &text[signature + 1..]).as_bytes());
    let ran = check(&certificate, &["--key", &key, "--order", &tampered]).exits(exit::VIOLATION);
    assert!(ran.err.contains("tampered: its signature is another"), "{ran:?}");
    // Without the order it says how many, and no names.
    let alone = check(&certificate, &["--key", &key]).exits(exit::DONE).out;
    assert!(alone.contains("of the 3 names") && !alone.contains("s7"), "{alone}");
    assert_eq!(withheld(&place), 20);
    place.run("verify", &["--key", &key]).exits(exit::DONE);
}

/// What `verify` objects to, `check` does.
#[test]
fn a_certificate_of_what_verification_refuses_is_none() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/proof/events.json");
    let vectors = serde_json::from_str::<serde_json::Value>(&fs::read_to_string(vectors).unwrap()).unwrap();
    let place = Place::empty();
    let file = path(&place, "event");
    let key = vectors["vkey"].as_str().unwrap();
    let refused = vectors["bodies_refused"].as_array().unwrap();
    assert!(refused.len() > 10);
    for vector in refused {
        fs::write(&file, vector["file"].as_str().unwrap()).unwrap();
        let ran = check(&file, &["--key", key]).exits(exit::VIOLATION);
        assert!(ran.out.is_empty(), "{}: {ran:?}", vector["name"]);
    }
    let taken = ["events", "bodies_taken"].map(|list| vectors[list].as_array().unwrap());
    for vector in taken.into_iter().flatten() {
        fs::write(&file, vector["file"].as_str().unwrap()).unwrap();
        check(&file, &["--key", key]).exits(exit::DONE);
    }
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
    assert_eq!(numbers(&erased.json()), 1);
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
fn an_erasure_key_that_is_empty_is_told_and_taken_for_no_order() {
    let (place, _) = filled();
    let key = place.keys("erasure.key");
    for text in ["", "\n"] {
        fs::write(&key, text).unwrap();
        let named = ["--authority", key.to_str().unwrap()];
        for (named, code) in [(&[][..], exit::ENVIRONMENT), (&named, exit::USAGE)] {
            let words = [&["--subject", "s7"], named].concat();
            let refused = place.run("erase", &words).exits(code);
            assert!(refused.err.contains("neither the log's erasure key nor an order"), "{refused:?}");
        }
    }
}

/// Somebody has changed a name, what the order's own note says, or who signed that.
#[test]
fn an_order_s_file_that_was_tampered_with_is_refused_by_name() {
    let (place, key) = filled();
    let erasure_key = place.run("info", &["--json"]).json()["erasure_key"].as_str().unwrap().to_owned();
    let id = place.run("info", &["--json"]).json()["id"].as_str().unwrap().to_owned();
    let (order, certificate) = (path(&place, "order.json"), path(&place, "erased.cert"));
    let authority = place.keys("erasure.key");
    let given =
        ["order", "--log", &id, "--authority", authority.to_str().unwrap(), "--subject", "s7", "-o", &order];
    bulla(given).exits(exit::DONE);
    place.run("erase", &["--authority", &order, "-o", &certificate]).exits(exit::DONE);
    let file = fs::read_to_string(&order).unwrap();
    let json = serde_json::from_str::<Value>(&file).unwrap();
    let note = json["order"].as_str().unwrap();
    let with_note = |note: &str| {
        let mut json = json.clone();
        json["order"] = note.into();
        json.to_string()
    };
    let tampered = |text: String, more: &[&str], why: &str| {
        fs::write(&order, text).unwrap();
        let ran = check(&certificate, &[&["--key", &key, "--order", &order], more].concat());
        let ran = ran.exits(exit::VIOLATION);
        assert!(ran.err.contains(&order) && ran.err.contains(why) && ran.out.is_empty(), "{ran:?}");
    };
    let signed_by = ["--erasure-key", &erasure_key];
    let signature = note.rfind(' ').unwrap() + 12;
    let forged = [
        &note[..signature],
        if &note[signature..=signature] == "A" { "B" } else { "A" },
        &note[signature + 1..],
    ];
    for more in [&[][..], &signed_by] {
        tampered(file.replace("\"s7\"", "\"s6\""), more, "signed for others than those whom it names");
        let why = if more.is_empty() { "another order" } else { "the order: " };
        tampered(with_note(&note.replace("\ntime 1", "\ntime 2")), more, why);
        tampered(with_note("nothing"), more, "the order: ");
    }
    tampered(with_note(&forged.concat()), &signed_by, "the order: ");
    fs::write(&order, &file).unwrap();
    check(&certificate, &[&["--key", &key, "--order", &order], &signed_by[..]].concat()).exits(exit::DONE);
}

/// A writer takes it in one message, and names are in the order's file twice over: as they are, and as commitments.
#[test]
fn whatever_can_be_ordered_can_be_carried_out() {
    let place = Place::new();
    let names = (0..2000).map(|number| format!("{}{number}", "n".repeat(100))).collect::<Vec<_>>();
    place
        .append(&[], &names.iter().map(|name| entry_of(name)).collect::<String>().into_bytes())
        .exits(exit::DONE);
    let id = place.run("info", &["--json"]).json()["id"].as_str().unwrap().to_owned();
    let key = path(&place, "officer.key");
    fs::rename(place.keys("erasure.key"), &key).unwrap();
    let order = |file: &str, names: &[String]| {
        let mut arguments = vec!["order", "--log", &id, "--authority", &key, "-o", file];
        names.iter().for_each(|name| arguments.extend(["--subject", name.as_str()]));
        bulla(arguments)
    };
    let (many, long) = (path(&place, "many.json"), path(&place, "long.json"));
    order(&many, &names).exits(exit::DONE);
    let longer = (0..20).map(|number| format!("{}{number}", "n".repeat(60_000))).collect::<Vec<_>>();
    let refused = order(&long, &longer).exits(exit::USAGE);
    assert!(refused.err.contains("name fewer at a time") && !place.path("long.json").exists(), "{refused:?}");
    let erased = place.run("erase", &["--authority", &many, "--json"]).exits(exit::DONE).json();
    assert_eq!(erased["numbers"].as_array().unwrap().len(), 2000);
}

fn entry_of(name: &str) -> String {
    serde_json::json!({ "operation": "read", "location": "l", "subject": [name] }).to_string() + "\n"
}

#[test]
fn a_name_cannot_write_lines_of_its_own() {
    let place = Place::new();
    let name = "x\nreason    forged\u{85}\u{1b}[2J";
    place.append(&[], entry_of(name).as_bytes()).exits(exit::DONE);
    let id = place.run("info", &["--json"]).json()["id"].as_str().unwrap().to_owned();
    let (order, certificate) = (path(&place, "order.json"), path(&place, "erased.cert"));
    let key = place.keys("erasure.key");
    let whom = ["--subject", name, "--subject", "y\nunknown: forged\u{85}"];
    let given = ["order", "--log", &id, "--authority", key.to_str().unwrap(), "-o", &order];
    bulla([&given[..], &whom].concat()).exits(exit::DONE);
    let erased = place.run("erase", &["--authority", &order, "-o", &certificate]).exits(exit::SOME_REFUSED);
    let json = check(&certificate, &["--order", &order, "--json"]).exits(exit::DONE).json();
    let subject = |subject: &str, erased| serde_json::json!({ "subject": subject, "erased": erased });
    assert_eq!(
        json["subjects"],
        serde_json::json!([subject(name, true), subject("y\nunknown: forged\u{85}", false)])
    );
    for ran in [erased, check(&certificate, &["--order", &order]).exits(exit::DONE)] {
        assert!(
            ran.out.lines().all(|line| !line.starts_with("reason") && !line.contains("unknown: forged")
                || line.contains("y\\nunknown")),
            "{ran:?}"
        );
    }
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
    hold("release", &whom).exits(exit::USAGE);
    let release = [&whom[..], &["--reason", "case closed"]].concat();
    hold("release", &release).exits(exit::DONE);
    hold("release", &release).exits(exit::REFUSED);
    assert_eq!(hold("list", &[]).exits(exit::DONE).out, "nobody is held\n");
    place.run("erase", &["--subject", "s7", "-o", &certificate]).exits(exit::DONE);
    assert_eq!(withheld(&place), 10);
}

#[test]
fn holds_that_differ_from_what_the_log_tells_are_named() {
    let (place, _) = filled();
    let whom = ["add", "--subject", "s7", "--by", "legal", "--reason", "case 4711"];
    place.run("hold", &whom).exits(exit::DONE);
    place.run("hold", &["list"]).exits(exit::DONE);
    fs::remove_file(place.keys("holds")).unwrap();
    let listed = place.run("hold", &["list"]).exits(exit::VIOLATION);
    assert!(listed.err.contains("data subject 7 is held, as frame "), "{listed:?}");
    let json = place.run("hold", &["list", "--json"]).exits(exit::VIOLATION).json();
    assert_eq!(
        (json["holds"].as_array().unwrap().len(), json["differences"].as_array().unwrap().len()),
        (1, 1),
        "the log's word counts"
    );
    assert_eq!(json["under_way"], serde_json::json!([]));
    let opened = place.append(&[], b"").exits(exit::DONE);
    assert!(opened.err.contains("the log's word counts"), "{opened:?}");
    let listed = place.run("hold", &["list"]).exits(exit::DONE);
    assert!(listed.out.contains("unknown (frame "), "{listed:?}");
    let refused = place.run("erase", &["--subject", "s7"]).exits(exit::REFUSED);
    assert!(refused.err.contains("held by unknown (frame "), "{refused:?}");
}

/// Both directories are of a backup, and the file of holds is newer.
#[test]
fn a_hold_of_which_the_log_does_not_tell_counts_and_is_said_to() {
    let (place, _) = filled();
    let kept = ["audit", "audit.keys"];
    kept.iter().for_each(|name| copy(&place.path(name), &place.path(&format!("older.{name}"))));
    let whom = ["add", "--subject", "s7", "--by", "legal", "--reason", "case 4711"];
    place.run("hold", &whom).exits(exit::DONE);
    let holds = fs::read(place.keys("holds")).unwrap();
    for name in kept {
        fs::remove_dir_all(place.path(name)).unwrap();
        fs::rename(place.path(&format!("older.{name}")), place.path(name)).unwrap();
    }
    fs::write(place.keys("holds"), holds).unwrap();
    let opened = place.append(&[], b"").exits(exit::DONE);
    let told = "and it does not: the hold that the file has counts, and the log tells of it now";
    assert!(opened.err.contains(told) && !opened.err.contains("the log's word counts"), "{opened:?}");
    let listed = place.run("hold", &["list", "--json"]).exits(exit::DONE).json();
    assert_eq!(
        (&listed["holds"][0]["by"], &listed["differences"]),
        (&"legal".into(), &serde_json::json!([]))
    );
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
    for (reason, wrong) in
        [("two\nlines", "has more than one line"), ("", "is empty"), ("a\u{7}", "has a control character")]
    {
        refused(
            &["--subject", "s7", "--reason", reason],
            exit::USAGE,
            &format!("the reason (`--reason`) {wrong}"),
        );
        refused(&["--subject", "s7", "--reason", reason], exit::USAGE, "one line of 1 to 1024 bytes");
    }
    refused(&["--subject", "s7", "--authority", "/nowhere"], exit::REFUSED, "/nowhere");
    let inside = place.audit().join("erased.cert");
    refused(&["--subject", "s7", "-o", inside.to_str().unwrap()], exit::USAGE, "write elsewhere");
    let missing = path(&place, "missing/erased.cert");
    refused(&["--subject", "s7", "-o", &missing], exit::ENVIRONMENT, "missing");
    fs::rename(place.keys("vault"), place.path("vault")).unwrap();
    refused(&["--subject", "s7"], exit::REFUSED, "vault");
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
    // Nobody is said to be nobody's: whose key is lost may be anybody.
    let lost = "cannot be told: keys are lost";
    let hold = ["add", "--subject", "somebody new", "--by", "legal", "--reason", "why"];
    assert!(place.run("hold", &hold).exits(exit::REFUSED).err.contains(lost));
    assert!(place.run("erase", &["--subject", "somebody new"]).exits(exit::REFUSED).err.contains(lost));
    let some = ["--subject", "somebody new", "--subject", "s8"];
    let erased = place.run("erase", &some).exits(exit::SOME_REFUSED);
    assert!(erased.out.contains("unknown: somebody new") && erased.out.contains(lost), "{erased:?}");
}

#[test]
fn a_writer_erases_and_holds_while_it_appends() {
    let place = Place::new();
    let (child, mut stdin) = waiting(&place, &[], Stdio::piped());
    let before = place.info("entries").as_u64().unwrap();
    place.run("hold", &["add", "--subject", "s7", "--by", "legal", "--reason", "case"]).exits(exit::DONE);
    place.run("erase", &["--subject", "s7"]).exits(exit::REFUSED);
    place
        .run("hold", &["release", "--subject", "s7", "--by", "legal", "--reason", "closed"])
        .exits(exit::DONE);
    let erased = place.run("erase", &["--subject", "s7", "--json"]).exits(exit::DONE).json();
    assert_eq!(numbers(&erased), 1);
    place.run("erase", &["--subject", "s7"]).exits(exit::REFUSED);
    let gone = |code: i32| {
        let entries = parse_lines(&place.run("export", &[]).exits(code).out);
        (entries.len() as u64, entries.iter().filter(|entry| entry["withheld"] == "erased").count() as u64)
    };
    assert_eq!(gone(exit::DONE), (before, before / 10));
    // Whoever comes back is somebody else.
    stdin.write_all(&lines(0..100)).unwrap();
    eventually("they are committed", || place.info("entries") == before + 100);
    assert_eq!(gone(exit::DONE), (before + 100, before / 10));
    let back = place.run("export", &["--subject", "s7"]).exits(exit::DONE);
    assert_eq!(parse_lines(&back.out).len(), 10);
    drop(stdin);
    finish(child).exits(exit::DONE);
    assert_eq!(gone(exit::DONE), (before + 100, before / 10));
    place.run("verify", &[]).exits(exit::DONE);
}

/// After every so many times 16 or 20 milliseconds.
const DELAYS: std::ops::Range<u64> = 0..6;

/// The erasure goes on in whoever opens the log next: here the command itself, which takes the lock then.
#[test]
fn a_writer_that_is_killed_leaves_no_half_erasure() {
    for delay in DELAYS {
        let place = Place::new();
        let (mut child, stdin) = waiting(&place, &[], Stdio::piped());
        let entries = place.info("entries").as_u64().unwrap();
        let erasing = command(place.arguments("erase", &["--subject", "s7", "--json"])).spawn().unwrap();
        sleep(Duration::from_millis(16 * delay));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(stdin);
        let erased = finish(erasing).exits(exit::DONE);
        assert_eq!(numbers(&erased.json()), 1);
        is_erased_once(&place, entries, delay);
    }
}

#[test]
fn a_command_that_is_killed_is_given_again() {
    for delay in DELAYS {
        let (place, _) = filled();
        let order = path(&place, "order.json");
        let (id, key) = (place.info("id"), path(&place, "audit.keys/erasure.key"));
        let id = id.as_str().unwrap();
        bulla(["order", "--log", id, "--authority", &key, "--subject", "s7", "-o", &order]).exits(exit::DONE);
        let arguments = place.arguments("erase", &["--authority", &order, "--json"]);
        let mut erasing = command(arguments.clone()).spawn().unwrap();
        sleep(Duration::from_millis(20 * delay));
        erasing.kill().unwrap();
        erasing.wait().unwrap();
        let again = bulla(arguments).exits(exit::DONE).json();
        assert_eq!(numbers(&again), 1, "{delay}");
        is_erased_once(&place, 100, delay);
    }
}

fn is_erased_once(place: &Place, entries: u64, delay: u64) {
    let report = place.run("verify", &["--json"]).exits(exit::DONE).json();
    assert_eq!(report["erased"], entries / 10, "{delay}: {report}");
    let left = parse_lines(&place.run("export", &[]).exits(exit::DONE).out);
    assert_eq!(
        left.iter().filter(|entry| !entry["location"].is_null()).count() as u64,
        entries - entries / 10
    );
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let back = place.run("export", &["--subject", "s7"]).exits(exit::DONE);
    assert_eq!(parse_lines(&back.out).len(), 10, "{delay}");
    assert!(!place.keys("erasure.pending").exists());
}

#[test]
fn a_replica_of_the_vault_is_set_shown_and_taken_up() {
    let (place, _) = filled();
    let replica = path(&place, "replica");
    place.run("config", &["set", "vault_replicas", "replica"]).exits(exit::USAGE);
    fs::create_dir(&replica).unwrap();
    place.run("config", &["set", "vault_replicas", &replica]).exits(exit::DONE);
    fs::remove_dir(&replica).unwrap();
    let refused = place.append(&[], b"").exits(exit::ENVIRONMENT);
    assert!(refused.err.contains("there is no such directory: mount it, make an empty one"), "{refused:?}");
    fs::create_dir(&replica).unwrap();
    place.append(&[], &lines(100..110)).exits(exit::DONE);

    let config = place.run("config", &["get", "vault_replicas", "--json"]).exits(exit::DONE).json();
    assert_eq!(config, serde_json::json!({ "value": [replica], "source": "file" }));
    let info = place.run("info", &["--json"]).exits(exit::DONE).json();
    assert_eq!(info["vault_replicas"], serde_json::json!([{ "path": replica }]));
    let shown = place.run("info", &[]).exits(exit::DONE);
    assert!(shown.out.contains(&format!("replica     {replica}\n")), "{shown:?}");

    let before = place.run("export", &[]).exits(exit::DONE).out;
    for name in ["vault", "roots"] {
        let lost = place.path("audit.keys").join(name);
        fs::remove_dir_all(&lost).unwrap();
        fs::rename(place.path("replica").join(name), &lost).unwrap();
    }
    assert_eq!(place.run("export", &[]).exits(exit::DONE).out, before);
    // Its place is empty now, and filled again.
    place.append(&[], &lines(110..120)).exits(exit::DONE);
    assert!(place.path("replica").join("vault/vault.db").exists());
    place.run("config", &["unset", "vault_replicas"]).exits(exit::DONE);
    let config = place.run("config", &["get", "vault_replicas", "--json"]).exits(exit::DONE).json();
    assert_eq!(config, serde_json::json!({ "value": [], "source": "default" }));
}

/// By a writer that runs, and by the command at its end.
#[test]
fn a_replica_that_is_left_out_is_told() {
    let place = Place::new();
    let replica = path(&place, "replica");
    fs::create_dir(&replica).unwrap();
    place.run("config", &["set", "vault_replicas", &replica]).exits(exit::DONE);
    let (child, stdin) = waiting(&place, &[], Stdio::piped());
    let told = || place.info("vault_replicas");
    assert_eq!(told(), serde_json::json!([{ "path": replica, "in_use": true }]));
    fs::create_dir(place.path("replica").join("roots/1.root.tmp")).unwrap();
    let refused = place.run("erase", &["--subject", "s7"]).exits(exit::ENVIRONMENT);
    assert!(refused.err.contains("is left out, and whoever is erased now would stay in it"), "{refused:?}");
    assert_eq!(told()[0]["in_use"], false);
    let shown = place.run("info", &[]).exits(exit::DONE);
    assert!(shown.out.contains(&format!("replica     {replica}  left out: ")), "{shown:?}");
    drop(stdin);
    let ended = finish(child).exits(exit::DONE);
    assert!(ended.err.contains(&format!("{replica}, a replica of the vault, was left out: ")), "{ended:?}");
}
