//! What `bulla erase` says before anything is destroyed, whom it asks, and that saying it changes nothing.

use crate::interrupt::waiting;
use crate::keys::at_a_terminal;
use crate::support::{Place, Ran, arguments, bulla, copy, exit, finish, lines, parse_lines};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn entry(subjects: &[&str]) -> String {
    json!({ "operation": "read", "location": "l", "subject": subjects }).to_string() + "\n"
}

/// A log of ada, in ten entries by herself, two with bob, and one with bob and eve.
fn shared() -> Place {
    let place = Place::new();
    let entries = entry(&["ada"]).repeat(10)
        + &entry(&["bob"]).repeat(3)
        + &entry(&["ada", "bob"]).repeat(2)
        + &entry(&["eve", "ada", "bob"]);
    place.append(&[], entries.as_bytes()).exits(exit::DONE);
    place
}

/// Every file below a directory, with its bytes.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for item in fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            // Memory that readers of the vault share, and which says who reads; and an empty log of its changes, beside that.
            false if path.to_string_lossy().ends_with("-shm") => {}
            false if path.to_string_lossy().ends_with("-wal") && fs::metadata(&path).unwrap().len() == 0 => {}
            false => _ = files.insert(path.clone(), fs::read(&path).unwrap()),
        }
    }
    files
}

fn dry_run(place: &Place, more: &[&str]) -> Ran {
    let (log, keys) = (files(&place.audit()), files(&place.path("audit.keys")));
    let ran = place.run("erase", &[&["--dry-run"], more].concat());
    for (directory, before) in [("audit", log), ("audit.keys", keys)] {
        let mut after = files(&place.path(directory));
        after.retain(|path, bytes| before.get(path) != Some(bytes));
        assert!(after.is_empty(), "written: {:?}: {ran:?}", after.keys());
        assert!(before.keys().all(|path| path.exists()), "removed: {ran:?}");
    }
    ran
}

fn preview(ran: Ran) -> Value {
    ran.json()["preview"].take()
}

fn number(preview: &Value, subject: &str) -> u64 {
    let subjects = preview["subjects"].as_array().unwrap();
    subjects.iter().find(|known| known["subject"] == subject).unwrap()["number"].as_u64().unwrap()
}

fn withheld(place: &Place) -> usize {
    let entries = parse_lines(&place.run("export", &[]).exits(exit::DONE).out);
    entries.iter().filter(|entry| entry["withheld"] == "erased").count()
}

#[test]
fn what_an_erasure_will_do_is_said_before_it_is_done_and_is_what_it_does() {
    let place = shared();
    let all = ["--subject", "ada", "--subject", "bob", "--subject", "eve", "--json"];
    let everybody = preview(dry_run(&place, &all).exits(exit::DONE));
    assert_eq!((&everybody["entries"], &everybody["shared"]), (&json!(16), &json!(0)));
    let of = |name: &str| number(&everybody, name);

    let ada = preview(dry_run(&place, &["--subject", "ada", "--json"]).exits(exit::DONE));
    assert_eq!(
        ada["subjects"],
        json!([{ "subject": "ada", "standing": "known", "number": of("ada"), "entries": 13 }])
    );
    assert_eq!((&ada["entries"], &ada["shared"]), (&json!(13), &json!(3)));
    let mut others = [(of("bob"), 3), (of("eve"), 1)];
    others.sort_unstable();
    let others = others.iter().map(|(number, entries)| json!({ "number": number, "entries": entries }));
    assert_eq!(ada["others"], Value::from(others.collect::<Vec<_>>()));
    assert_eq!(
        (&ada["all_others"], &ada["not_sure"], &ada["not_counted"]),
        (&json!(true), &json!([]), &Value::Null)
    );

    let text = dry_run(&place, &["--subject", "ada"]).exits(exit::DONE).out;
    assert!(text.contains(&format!("ada: data subject {}, 13 entries\n", of("ada"))), "{text}");
    assert!(text.contains("13 entries in all") && text.contains("3 of these concern others, too"), "{text}");
    assert!(
        text.contains(&format!("{} (3 entries)", of("bob")))
            && text.contains(&format!("{} (1 entry)", of("eve")))
    );

    // The same is said by the command that does it, which nobody is asked by where there is no terminal.
    let erased = place.run("erase", &["--subject", "ada", "--json"]).exits(exit::DONE);
    assert!(erased.err.contains("13 entries in all"), "{erased:?}");
    assert_eq!(preview(erased), ada);
    assert_eq!(withheld(&place), 13);
    // What is gone does not go again.
    let bob = preview(dry_run(&place, &["--subject", "bob", "--json"]).exits(exit::DONE));
    assert_eq!((&bob["entries"], &bob["shared"], &bob["others"]), (&json!(3), &json!(0), &json!([])));
    place.run("erase", &["--subject", "bob"]).exits(exit::DONE);
    assert_eq!(withheld(&place), 16);
}

#[test]
fn who_is_held_is_said_with_by_whom_and_why_of_those_too_who_lose_entries_with_somebody_else() {
    let place = shared();
    let hold = ["add", "--subject", "bob", "--by", "legal", "--reason", "case 4711"];
    place.run("hold", &hold).exits(exit::DONE);
    let held = dry_run(&place, &["--subject", "bob"]).exits(exit::REFUSED);
    assert!(held.out.contains("is held by legal since 2") && held.out.contains(": case 4711\n"), "{held:?}");
    assert!(held.err.contains("is held by legal: case 4711; release the hold first"), "{held:?}");
    let json = dry_run(&place, &["--subject", "bob", "--json"]).exits(exit::REFUSED).json();
    assert!(json["error"].as_str().unwrap().contains("held by legal: case 4711"), "{json}");
    assert_eq!(json["preview"]["holds"][0]["by"], "legal");
    let refused = place.run("erase", &["--subject", "bob", "--yes", "--json"]).exits(exit::REFUSED);
    assert_eq!(refused.json(), json);

    let ada = dry_run(&place, &["--subject", "ada"]).exits(exit::DONE).out;
    assert!(
        ada.contains("is held by legal since 2") && ada.contains("that hold does not keep those entries"),
        "{ada}"
    );
    let ada = preview(dry_run(&place, &["--subject", "ada", "--json"]).exits(exit::DONE));
    assert_eq!((&ada["held_others"][0]["reason"], &ada["holds"]), (&json!("case 4711"), &json!([])));
    assert_eq!(withheld(&place), 0);
    place.run("erase", &["--subject", "ada"]).exits(exit::DONE);
    assert_eq!(withheld(&place), 13);
}

#[test]
fn a_dry_run_ends_as_the_erasure_would() {
    let place = shared();
    let some =
        dry_run(&place, &["--subject", "ada", "--subject", "nobody", "--json"]).exits(exit::SOME_REFUSED);
    let some = preview(some);
    assert_eq!(
        (&some["subjects"][1]["standing"], &some["subjects"][1]["number"]),
        (&json!("not-known"), &Value::Null)
    );
    let none = dry_run(&place, &["--subject", "nobody"]).exits(exit::REFUSED);
    assert!(
        none.out.contains("nobody: not known here") && none.err.contains("knows nobody of that name"),
        "{none:?}"
    );
    let kept = place.path("order.json");
    let words = ["--subject", "nobody", "--keep-order", kept.to_str().unwrap(), "--json"];
    let refused = place.run("erase", &words).exits(exit::REFUSED).json();
    assert!(
        refused["error"].as_str().unwrap().contains("knows nobody of that name") && !kept.exists(),
        "{refused}"
    );
    assert_eq!(refused["preview"]["subjects"][0]["standing"], "not-known");
    dry_run(&place, &["--subject", "ada", "--authority", "/nowhere"]).exits(exit::REFUSED);
    dry_run(&place, &[]).exits(exit::USAGE);
    let off = Place::empty();
    bulla(arguments!["init", off.audit(), "--erasure", "off"]).exits(exit::DONE);
    let key = place.keys("erasure.key").to_str().unwrap().to_owned();
    let refused = dry_run(&off, &["--subject", "ada", "--authority", &key]).exits(exit::REFUSED);
    assert!(refused.err.contains("erasure = \"off\""), "{refused:?}");
    let other = shared();
    let refused = dry_run(&other, &["--subject", "ada", "--authority", &key]).exits(exit::REFUSED);
    assert!(refused.err.contains("the order to erase: "), "{refused:?}");
}

/// A number that nobody counted is none, and one that may be too small is said to be.
#[test]
fn what_cannot_be_counted_is_not_and_what_may_be_more_is_said_to_be() {
    let place = shared();
    let identity = place.path("officer.age");
    fs::rename(place.keys("identity.age"), &identity).unwrap();
    let identity = identity.to_str().unwrap();
    let without = dry_run(&place, &["--subject", "ada"]).exits(exit::DONE).out;
    assert!(without.contains("entries: not counted: no identity is at hand\n"), "{without}");
    let without = preview(dry_run(&place, &["--subject", "ada", "--json"]).exits(exit::DONE));
    assert_eq!((&without["entries"], &without["subjects"][0]["entries"]), (&Value::Null, &Value::Null));
    let counted = |more: &[&str]| {
        let words = [&["--subject", "ada", "--json", "--identity", identity], more].concat();
        preview(dry_run(&place, &words).exits(exit::DONE))
    };
    assert_eq!(counted(&[])["entries"], 13);
    // Somebody else's identity, and one that is none.
    let stranger = place.path("stranger.age");
    bulla(arguments!["keys", place.audit(), "new-identity", "-o", stranger]).exits(exit::DONE);
    let foreign = ["--subject", "ada", "--identity", stranger.to_str().unwrap()];
    let foreign = dry_run(&place, &foreign).exits(exit::DONE).out;
    assert!(foreign.contains("not counted: the identity does not open epoch 0"), "{foreign}");
    dry_run(&place, &["--subject", "ada", "--identity", "/nowhere"]).exits(exit::REFUSED);

    // Bytes that nobody has signed.
    let segment = place.segment();
    let signed = fs::read(&segment).unwrap();
    fs::write(&segment, [&signed[..], &[0; 100]].concat()).unwrap();
    let told = counted(&[])["not_sure"].clone();
    assert!(
        told[0].as_str().unwrap().starts_with("100 bytes after the last checkpoint are not signed"),
        "{told}"
    );
    fs::write(&segment, &signed).unwrap();
    // A block that is damaged.
    let mut damaged = signed.clone();
    // Of the last block's body: behind that is its seal. The last entry is of all three.
    let last = damaged.len() - 40;
    damaged[last] ^= 1;
    fs::write(&segment, damaged).unwrap();
    let damaged = counted(&[]);
    assert_eq!(damaged["entries"], Value::Null);
    assert!(damaged["not_counted"].as_str().unwrap().contains("frame"), "{damaged}");
}

#[test]
fn where_keys_are_lost_it_is_said_that_nobody_can_tell() {
    let place = shared();
    copy(&place.path("audit.keys"), &place.path("backup"));
    place.append(&[], entry(&["somebody new"]).as_bytes()).exits(exit::DONE);
    fs::remove_dir_all(place.path("audit.keys")).unwrap();
    copy(&place.path("backup"), &place.path("audit.keys"));
    place.run("restore", &[]).exits(exit::DONE);
    let words = ["--subject", "somebody new", "--subject", "ada"];
    let told = dry_run(&place, &words).exits(exit::SOME_REFUSED).out;
    assert!(
        told.contains("somebody new: may be known or not, which cannot be told: keys are lost"),
        "{told}"
    );
    assert!(told.contains("there may be more: keys are lost"), "{told}");
    let told = preview(dry_run(&place, &[&words[..], &["--json"]].concat()).exits(exit::SOME_REFUSED));
    assert_eq!((&told["subjects"][0]["standing"], &told["keys_lost"]), (&json!("cannot-tell"), &json!(true)));
    assert_eq!(told["entries"], 13);
}

#[test]
fn it_is_said_beside_a_writer_too() {
    let place = Place::new();
    let (child, stdin) = waiting(&place, &[], Stdio::piped());
    let ran = place.run("erase", &["--subject", "s7", "--dry-run", "--json"]).exits(exit::DONE);
    let told = preview(ran);
    assert_eq!(told["entries"].as_u64(), place.info("entries").as_u64().map(|entries| entries / 10));
    assert!(told["not_sure"][0].as_str().unwrap().starts_with("a writer is at work"), "{told}");
    let erased = place.run("erase", &["--subject", "s7", "--json"]).exits(exit::DONE).json();
    assert_eq!(erased["preview"]["entries"], told["entries"]);
    drop(stdin);
    finish(child).exits(exit::DONE);
    assert_eq!(Some(withheld(&place) as u64), told["entries"].as_u64());
}

#[test]
fn at_a_terminal_nobody_is_erased_unless_the_answer_is_yes() {
    let place = shared();
    let words = place.arguments("erase", &["--subject", "ada"]);
    let (prompt, size) = ("To go on, type yes: ", place.info("tree_size"));
    for answer in ["no\n", "y\n", "yes please\n", "\u{4}"] {
        let (ran, _) = at_a_terminal(&[], &words, &[(prompt, answer)]);
        let ran = ran.exits(exit::REFUSED);
        assert!(ran.out.contains("13 entries in all"), "{ran:?}");
        assert!(ran.out.contains("nothing was done: the answer was not `yes`"), "{ran:?}");
    }
    let (ran, _) =
        at_a_terminal(&[], &place.arguments("erase", &["--subject", "ada", "--json"]), &[(prompt, "no\n")]);
    let out = ran.exits(exit::REFUSED).out;
    let object = out.lines().find(|line| line.starts_with('{')).unwrap();
    let object = serde_json::from_str::<Value>(object).unwrap();
    assert_eq!(
        (&object["error"], &object["preview"]["entries"]),
        (&json!("nothing was done: the answer was not `yes`"), &json!(13))
    );
    let (ran, _) = at_a_terminal(&[], &words, &[(prompt, "\u{3}")]);
    let told = ran.exits(exit::INTERRUPTED).out;
    assert!(told.ends_with("\nbulla: interrupted: nothing was done\r\n"), "{told:?}");
    let words_of_json = place.arguments("erase", &["--subject", "ada", "--json"]);
    let (ran, _) = at_a_terminal(&[], &words_of_json, &[(prompt, "\u{3}")]);
    let told = ran.exits(exit::INTERRUPTED).out;
    assert!(told.contains("{\"error\":\"interrupted: nothing was done\"}"), "{told}");
    // Nobody is asked about what is refused, or only said.
    let (ran, _) = at_a_terminal(&[], &place.arguments("erase", &["--subject", "ada", "--dry-run"]), &[]);
    assert!(!ran.exits(exit::DONE).out.contains(prompt));
    assert_eq!((withheld(&place), place.info("tree_size")), (0, size));
    let (ran, _) = at_a_terminal(&[], &place.arguments("erase", &["--subject", "nobody"]), &[]);
    assert!(!ran.exits(exit::REFUSED).out.contains(prompt));

    let (ran, _) = at_a_terminal(&[], &words, &[(prompt, "yes\n")]);
    assert!(ran.exits(exit::DONE).out.contains("erased: data subject"));
    assert_eq!(withheld(&place), 13);
    let (ran, _) = at_a_terminal(&[], &place.arguments("erase", &["--subject", "bob", "--yes"]), &[]);
    assert!(!ran.exits(exit::DONE).out.contains(prompt));
    assert_eq!(withheld(&place), 16);
}

/// Names may be an attacker's.
#[test]
fn a_name_or_a_hold_writes_no_lines_of_its_own() {
    let place = Place::new();
    let name = "x\nerased: forged\u{1b}[2J";
    place.append(&[], entry(&[name]).as_bytes()).exits(exit::DONE);
    let told = dry_run(&place, &["--subject", name, "--subject", "y\nforged"]).exits(exit::SOME_REFUSED).out;
    assert!(
        !told.contains('\u{1b}') && told.lines().all(|line| !line.starts_with("erased") && line != "forged"),
        "{told}"
    );
    place.append(&[], &lines(0..1)).exits(exit::DONE);
}
