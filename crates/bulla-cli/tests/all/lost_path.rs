//! The command on a log that has lost a disk with frames on it: people go on to be held and erased in it, and what is not known is said.

mod forgotten;
mod named_again;
mod passed_over;
mod uncounted;
mod untold;

use crate::support::{Place, bulla, command, copy, eventually, exit, parse_lines, signal};
use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::{ErasureOrder, HoldOrder, Log, LogId, Options, ReleaseOrder};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A log on three paths.
fn on_three_paths() -> Place {
    let place = Place::new();
    place.run("config", &["set", "backup_paths", &paths(&place, &["second", "third"])]).exits(exit::DONE);
    place
}

fn paths(place: &Place, names: &[&str]) -> String {
    names
        .iter()
        .map(|name| place.path(name).into_os_string().into_string().unwrap())
        .collect::<Vec<_>>()
        .join(",")
}

fn append(log: &Log, subject: &str) {
    let mut producer = log.producer().unwrap();
    producer.append(&bulla::Entry::new("read", &format!("{subject}/email")).subject(subject)).unwrap();
    producer.flush().unwrap().durable().unwrap();
}

fn has_frames(path: &Path) -> bool {
    let segments = fs::read_dir(path.join("segments"));
    segments.is_ok_and(|mut segments| segments.any(|item| item.unwrap().metadata().unwrap().len() > 0))
}

/// Has the log go on on another path: the one that it is written to goes away, by this name.
fn moves_on(log: &Log, place: &Place, (from, away, to): (&str, &str, &str)) {
    fs::rename(place.path(from), place.path(away)).unwrap();
    eventually("another path takes over", || {
        append(log, "nobody in particular");
        has_frames(&place.path(to))
    });
    log.flush().unwrap();
}

/// What orders are given with.
struct Office {
    key: SigningKey,
    log: LogId,
}

impl Office {
    fn of(place: &Place) -> Self {
        let key = SigningKey::parse(&fs::read_to_string(place.keys("erasure.key")).unwrap()).unwrap();
        Office { key, log: bulla::info(place.audit()).unwrap().id }
    }

    fn hold(&self, subject: &str) -> HoldOrder {
        HoldOrder::give(&self.key, self.log, subject, ("legal", "case 4711"), &Environment::default())
            .unwrap()
    }

    fn release(&self, hold: &HoldOrder) -> ReleaseOrder {
        let because = ("legal", "closed");
        ReleaseOrder::give(&self.key, self.log, hold.note(), because, &Environment::default()).unwrap()
    }

    fn erase(&self, subject: &str) -> ErasureOrder {
        ErasureOrder::give(&self.key, self.log, &[subject], None, &Environment::default()).unwrap()
    }
}

/// What a vault is, of a key directory.
const VAULT: [&str; 2] = ["vault", "roots"];

/// Makes a copy of the vault, under this name.
fn keep_vault(place: &Place, name: &str) {
    VAULT.iter().for_each(|part| copy(&place.keys(part), &place.path(&format!("{name}-{part}"))));
}

/// Puts that copy in the place of the vault.
fn put_vault_back(place: &Place, name: &str) {
    for part in VAULT {
        fs::remove_dir_all(place.keys(part)).unwrap();
        copy(&place.path(&format!("{name}-{part}")), &place.keys(part));
    }
}

/// What lies on the second path: that `ada` is held, that `bob`, who was held before, is released, and that `cleo` is erased, by an order
/// that is kept, as is the vault from before that.
fn world() -> Place {
    let (place, log) = world_without_newcomers();
    append(&log, "cleo");
    append(&log, "fay");
    log.close().unwrap();
    place
}

/// The same, in which nobody is new since.
fn world_without_newcomers() -> (Place, Log) {
    let place = on_three_paths();
    let office = Office::of(&place);
    let log = Log::open(place.audit(), Options::default()).unwrap();
    ["ada", "bob", "cleo", "dora", "emil"].into_iter().for_each(|subject| append(&log, subject));
    let bobs = office.hold("bob");
    log.hold(&bobs).unwrap();
    log.hold(&office.hold("emil")).unwrap();
    moves_on(&log, &place, ("audit", "first", "second"));
    log.hold(&office.hold("ada")).unwrap();
    log.release(&office.release(&bobs)).unwrap();
    let order = office.erase("cleo");
    keep_vault(&place, "older");
    log.erase(&order).unwrap();
    fs::write(place.path("order.json"), order.render()).unwrap();
    moves_on(&log, &place, ("second", "lost", "third"));
    fs::rename(place.path("first"), place.audit()).unwrap();
    (place, log)
}

/// Lets go of the second path, in another second than that of the last event on it: an order of that one may have been carried out.
fn note(place: &Place) {
    let second = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let before = second();
    eventually("the second is over", || second() > before);
    place.run("config", &["set", "backup_paths", &paths(place, &["third"])]).exits(exit::DONE);
}

fn whom(place: &Place, listed: &Value) -> BTreeSet<String> {
    let numbers = listed["holds"].as_array().unwrap().iter().map(|hold| hold["number"].clone());
    let numbers = numbers.collect::<Vec<_>>();
    let is_held = |name: &&&str| {
        let asked = place.run("hold", &["list", "--subject", name, "--json"]).json();
        numbers.contains(&asked["subjects"][0]["number"])
    };
    ["ada", "bob", "cleo", "dora", "emil", "fay"]
        .iter()
        .filter(is_held)
        .map(|name| (*name).to_owned())
        .collect()
}

/// The kinds of what verification finds wrong.
fn violations(place: &Place) -> BTreeSet<String> {
    let report = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    let findings =
        report["findings"].as_array().unwrap().iter().filter(|found| found["severity"] == "violation");
    findings.map(|found| found["kind"].as_str().unwrap().to_owned()).collect()
}

/// Has commands that tell of lost frames in JSON do so, and gives their words and what they printed to `see`.
pub(crate) fn look(mut see: impl FnMut(&[OsString], &str)) {
    let (place, logs) = followed(true);
    fs::rename(place.path("lost"), place.path("gone")).unwrap();
    for (command, more, code) in [
        ("info", &[][..], exit::DONE),
        ("hold", &["list"], exit::DONE),
        ("keys", &["list"], exit::DONE),
        ("sources", &[], exit::DONE),
        ("events", &["--kind", "lost"], exit::DONE),
        ("restore", &["--dry-run"], exit::DONE),
        ("erase", &["--subject", "ada", "--dry-run"], exit::DONE),
    ] {
        let words = place.arguments(command, &[more, &["--json"]].concat());
        let ran = bulla(&words).exits(code);
        see(&words, &ran.out);
        let told = &parse_lines(&ran.out)[0];
        match command {
            "events" => assert_eq!(told["event"], "lost", "{ran:?}"),
            "erase" => assert!(told["preview"]["lost_with_path"]["events"].is_array(), "{ran:?}"),
            _ => assert!(told["lost_with_path"]["detail"].is_string(), "{ran:?}"),
        }
    }
    drop(logs);
    let (place, _) = in_use_is_lost();
    let words = place.arguments("info", &["--json"]);
    let ran = bulla(&words).exits(exit::DONE);
    see(&words, &ran.out);
    assert!(ran.json()["out_of_reach"].is_array(), "{ran:?}");
}

/// A log whose path in use is gone, with the newest checkpoint: there `cleo` was erased, and `ada` held, of whom the paths that are left have
/// entries. Also, a copy of the vault from before that, by the names of its files.
fn in_use_is_lost() -> (Place, Vec<(&'static str, PathBuf)>) {
    let place = on_three_paths();
    let office = Office::of(&place);
    let log = Log::open(place.audit(), Options::default()).unwrap();
    ["ada", "bob", "cleo"].into_iter().for_each(|subject| append(&log, subject));
    log.close().unwrap();
    let older = ["vault", "roots"].map(|name| (name, place.path(&format!("older-{name}"))));
    older.iter().for_each(|(name, to)| copy(&place.keys(name), to));
    let log = Log::open(place.audit(), Options::default()).unwrap();
    moves_on(&log, &place, ("audit", "first", "second"));
    log.hold(&office.hold("ada")).unwrap();
    log.erase(&office.erase("cleo")).unwrap();
    append(&log, "dora");
    log.close().unwrap();
    fs::rename(place.path("first"), place.audit()).unwrap();
    fs::rename(place.path("second"), place.path("gone")).unwrap();
    (place, older.into())
}

/// Whose personal fields a salvage gives out of the log that [`in_use_is_lost`] makes. It says what is missing, and of nobody that an older vault
/// is to be brought.
fn salvaged(place: &Place) -> BTreeSet<String> {
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    let [first, last] = [0, 1].map(|end| place.info("out_of_reach")[end].as_u64().unwrap());
    assert!(first > 0 && last > first + 1, "{first} to {last}");
    assert!(ran.err.contains(&format!("frames-missing, frames {first} to {last}")), "{ran:?}");
    assert!(ran.err.contains("whether they were erased cannot be told"), "{ran:?}");
    assert!(!ran.err.contains("Restore the vault"), "{ran:?}");
    let entries = parse_lines(&ran.out).into_iter();
    entries.filter_map(|entry| Some(entry["subject"].as_str()?.to_owned())).collect()
}

/// While it is missed, and once somebody has said that it is lost for good.
#[test]
fn nobody_is_answered_from_what_is_left_without_the_path_in_use() {
    let (place, older) = in_use_is_lost();
    for noted in [false, true] {
        if noted {
            place.run("config", &["set", "backup_paths", &paths(&place, &["third"])]).exits(exit::DONE);
        }
        let proof = place.path("proof").into_os_string().into_string().unwrap();
        let recipient = place.info("recipients")[0].as_str().unwrap().to_owned();
        let mirror = place.path("mirror").into_os_string().into_string().unwrap();
        for (command, more) in [
            ("export", &[][..]),
            ("export", &["--subject", "cleo"]),
            ("export", &["--entry", "0"]),
            ("prove", &["--subject", "bob", "-o", &proof]),
            ("grant", &["--subject", "bob", "--recipient", &recipient, "-o", &proof]),
            ("tail", &[]),
            ("events", &[]),
            ("hold", &["list"]),
            ("keys", &["list"]),
            ("sources", &[]),
            ("erase", &["--subject", "bob", "--dry-run"]),
            ("mirror", &[&mirror, "--once"]),
        ] {
            let ran = place.run(command, more).exits(exit::ENVIRONMENT);
            assert!(ran.err.contains("second, a path of the log, is lost") == noted, "{command}: {ran:?}");
            assert!(ran.err.contains("nothing is told of a part") || noted, "{command}: {ran:?}");
            assert_eq!(ran.out, "", "{command}: {ran:?}");
        }
        assert_eq!(salvaged(&place), BTreeSet::from(["ada", "bob"].map(str::to_owned)), "noted: {noted}");
        let verified = place.run("verify", &["--json"]).exits(exit::VIOLATION);
        let verified = verified.json();
        let findings = verified["findings"].as_array().unwrap();
        let of = |kind: &str| findings.iter().filter(|found| found["kind"] == kind).collect::<Vec<_>>();
        assert_eq!(of("frames-missing").len(), 1, "{findings:?}");
        if noted {
            // Where what is missing lay is said with it, and what there is to do.
            let opened = place.run("append", &["/dev/null"]).exits(exit::VIOLATION);
            let said = of("frames-missing")[0]["detail"].as_str().unwrap().to_owned();
            for told in [said, opened.err] {
                assert!(told.contains("second, a path of the log, is lost"), "{told}");
                assert!(told.contains("docs/operating.md, \"The path in use is lost\""), "{told}");
            }
        }
        let lost = of("key-lost");
        let is_told = |found: &&Value| found["detail"].as_str().unwrap().contains("not the vault");
        assert!(!lost.is_empty() && lost.iter().all(is_told), "{findings:?}");
        assert_eq!(verified["erased"], Value::Null);
        // A vault that has not followed what is gone may have the keys of whoever was erased there.
        for (name, from) in &older {
            fs::rename(place.keys(name), place.path(name)).unwrap();
            copy(from, &place.keys(name));
        }
        assert_eq!(salvaged(&place), BTreeSet::new(), "noted: {noted}");
        for (name, _) in &older {
            fs::rename(place.keys(name), place.path(&format!("used-{noted}-{name}"))).unwrap();
            fs::rename(place.path(name), place.keys(name)).unwrap();
        }
    }
    // Found, and named again, it is the whole log.
    fs::rename(place.path("gone"), place.path("second")).unwrap();
    place.run("config", &["set", "backup_paths", &paths(&place, &["second", "third"])]).exits(exit::DONE);
    place.run("events", &[]).exits(exit::DONE);
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn people_are_held_and_erased_in_a_log_that_has_lost_a_disk() {
    let place = world();
    // As long as nobody has said that it is lost, it is to be brought.
    let lost = place.path("second").display().to_string();
    for (command, more) in [
        ("hold", &["list"][..]),
        ("events", &[]),
        ("keys", &["list"]),
        ("erase", &["--subject", "fay", "--yes"]),
    ] {
        let ran = place.run(command, more).exits(exit::VIOLATION);
        let way_out = "Mount it; where it is lost for good, leave it out of `backup_paths`";
        assert!(ran.err.contains("frames-missing") && ran.err.contains(&lost), "{command}: {ran:?}");
        assert!(ran.err.contains(way_out), "{command}: {ran:?}");
    }
    note(&place);
    let listed = place.run("hold", &["list", "--json"]).json();
    let said = listed["lost_with_path"]["detail"].as_str().unwrap();
    assert!(
        said.contains("of them were events: what they told of holds and erasures is not known"),
        "{said}"
    );
    // Who was released in what is lost counts for held: nobody knows better.
    assert_eq!(whom(&place, &listed), BTreeSet::from(["ada", "bob", "emil"].map(str::to_owned)));
    assert_eq!(listed["differences"].as_array().unwrap().len(), 1, "{listed}");
    let text = place.run("hold", &["list"]).exits(exit::VIOLATION);
    assert!(text.err.contains(said) && text.out.contains("may have told of its release"), "{text:?}");

    let appended = place.append(&[], b"{\"operation\":\"read\",\"subject\":\"gus\"}\n").exits(exit::DONE);
    assert!(appended.err.contains("is not known"), "{appended:?}");
    // Opening has brought the file of holds in line with that.
    place.run("hold", &["list"]).exits(exit::DONE);
    let refused = place.run("erase", &["--subject", "ada", "--yes"]).exits(exit::REFUSED);
    assert!(refused.err.contains("is held by legal: case 4711"), "{refused:?}");
    for subject in ["bob", "emil"] {
        place.run("erase", &["--subject", subject, "--yes"]).exits(exit::REFUSED);
    }
    let certificate = place.path("certificate").into_os_string().into_string().unwrap();
    let erased = place.run("erase", &["--subject", "fay", "--yes", "-o", &certificate]).exits(exit::DONE);
    assert!(erased.err.contains("should the path be found"), "{erased:?}");
    let vkey = place.verifier_key();
    let erasure_key = place.info("erasure_key").as_str().unwrap().to_owned();
    bulla(["check", &certificate, "--key", &vkey, "--erasure-key", &erasure_key]).exits(exit::DONE);
    place.run("hold", &["add", "--subject", "dora", "--by", "legal", "--reason", "case 1"]).exits(exit::DONE);
    for (subject, by) in [("ada", "legal"), ("emil", "legal"), ("dora", "legal")] {
        let release = ["release", "--subject", subject, "--by", by, "--reason", "closed"];
        place.run("hold", &release).exits(exit::DONE);
        place.run("erase", &["--subject", subject, "--yes"]).exits(exit::DONE);
    }
    let listed = place.run("hold", &["list", "--json"]).exits(exit::DONE).json();
    assert_eq!(whom(&place, &listed), BTreeSet::from(["bob".to_owned()]));
    place.run("keys", &["list"]).exits(exit::DONE);
    place.run("restore", &["--dry-run"]).exits(exit::DONE);
    let events = parse_lines(&place.run("events", &["--json"]).exits(exit::DONE).out);
    let lost = events.iter().filter(|event| event["event"] == "lost").collect::<Vec<_>>();
    assert!(lost.len() >= 4 && lost.iter().all(|event| event["time"].is_string()), "{events:?}");
    assert!(events.iter().all(|event| event["ordered"]["ok"] != false), "{events:?}");
    // Cleo was erased in what is lost, so that the log does not say so.
    assert_eq!(violations(&place), BTreeSet::from(["frames-missing", "key-lost"].map(str::to_owned)));
}

/// Once a disk is found, opening the log brings the file of holds in line with what lies there, too.
#[test]
fn a_release_that_is_found_with_its_disk_counts() {
    let place = world();
    let line = b"{\"operation\":\"read\",\"subject\":\"gus\"}\n";
    note(&place);
    // Bob was released in what is lost.
    place.append(&[], line).exits(exit::DONE);
    let listed = place.run("hold", &["list", "--json"]).exits(exit::DONE).json();
    assert_eq!(whom(&place, &listed), BTreeSet::from(["ada", "bob", "emil"].map(str::to_owned)));
    fs::rename(place.path("lost"), place.path("second")).unwrap();
    place.run("config", &["set", "backup_paths", &paths(&place, &["second", "third"])]).exits(exit::DONE);
    place.append(&[], line).exits(exit::DONE);
    let listed = place.run("hold", &["list", "--json"]).exits(exit::DONE).json();
    assert_eq!(whom(&place, &listed), BTreeSet::from(["ada", "emil"].map(str::to_owned)));
    place.run("verify", &[]).exits(exit::DONE);
}

/// The storage alone brings nobody back who was erased, and neither does the loss of a disk.
#[test]
fn an_older_vault_brings_nobody_back_whose_erasure_was_told_of_on_a_path_that_is_not_there() {
    let (place, log) = world_without_newcomers();
    log.close().unwrap();
    put_vault_back(&place, "older");
    // It is merely not mounted.
    let refused = place.append(&[], b"").exits(exit::VIOLATION);
    assert!(refused.err.contains("Mount it; where it is lost for good, leave it out"), "{refused:?}");
    fs::rename(place.path("lost"), place.path("second")).unwrap();
    place.append(&[], b"").exits(exit::DONE);
    let read = place.run("export", &["--entry", "2"]).exits(exit::DONE);
    assert!(!read.out.contains("cleo"), "{read:?}");

    fs::rename(place.path("second"), place.path("lost")).unwrap();
    put_vault_back(&place, "older");
    note(&place);
    for _ in 0..3 {
        for (command, more) in
            [("export", &["--entry", "2"][..]), ("prove", &["--entry", "2"]), ("tail", &[])]
        {
            let ran = place.run(command, more).exits(exit::VIOLATION);
            assert!(!ran.out.contains("cleo"), "{command}: {ran:?}");
            assert!(ran.err.contains("the keys at hand do not follow it"), "{command}: {ran:?}");
        }
        let salvaged = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
        assert!(!salvaged.out.contains("cleo"), "{salvaged:?}");
        let entries = parse_lines(&salvaged.out);
        assert!(entries.iter().any(|entry| entry["withheld"] == "cannot-tell"), "{salvaged:?}");
        let appended = place.append(&[], b"{\"operation\":\"read\"}\n").exits(exit::DONE);
        assert!(appended.err.contains("nothing is read under its keys"), "{appended:?}");
    }
    fs::rename(place.path("lost"), place.path("second")).unwrap();
    let all = paths(&place, &["second", "third"]);
    place.run("config", &["set", "backup_paths", &all]).exits(exit::DONE);
    place.append(&[], b"").exits(exit::DONE);
    let read = place.run("export", &[]).exits(exit::DONE);
    assert!(read.out.contains("ada/email"), "{read:?}");
    assert!(!read.out.contains("cleo"), "{read:?}");
}

#[test]
fn an_order_from_before_events_that_are_lost_erases_nobody_who_came_back() {
    let place = world();
    note(&place);
    let order = place.path("order.json").into_os_string().into_string().unwrap();
    let is_refused = |more: &[&str]| {
        let refused = place.run("erase", &[&["--yes"], more].concat()).exits(exit::REFUSED);
        assert!(refused.err.contains("have a new order given"), "{refused:?}");
    };
    is_refused(&["--authority", &order]);
    is_refused(&["--authority", &order, "--dry-run"]);
    // The engine says so too, whatever was looked at before.
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let given = ErasureOrder::parse(&fs::read_to_string(&order).unwrap()).unwrap();
    let error = log.erase(&given).unwrap_err();
    assert!(error.to_string().contains("have a new order given"), "{error}");
    log.close().unwrap();
    place.run("erase", &["--subject", "cleo", "--yes"]).exits(exit::DONE);
}

/// Whoever has the storage can take frames away, and cannot say that they are lost.
#[test]
fn nobody_with_the_storage_alone_makes_holds_forgotten() {
    let place = world();
    fs::rename(place.path("lost"), place.path("second")).unwrap();
    place.run("hold", &["list"]).exits(exit::DONE);
    fs::remove_dir_all(place.path("second").join("segments")).unwrap();
    fs::create_dir(place.path("second").join("segments")).unwrap();
    for file in [false, true] {
        if file {
            fs::remove_file(place.keys("holds")).unwrap();
        }
        for (command, more) in
            [("hold", &["list"][..]), ("erase", &["--subject", "ada", "--yes"]), ("events", &[])]
        {
            let ran = place.run(command, more).exits(exit::VIOLATION);
            assert!(ran.err.contains("frames-missing"), "{command}: {ran:?}");
        }
    }
}

/// Of a log that has lost a path, too, what is taken away besides makes nobody free whom the key directory has as held.
#[test]
fn what_is_taken_away_after_a_loss_makes_nobody_free() {
    let place = world();
    note(&place);
    place.run("hold", &["add", "--subject", "fay", "--by", "legal", "--reason", "case 2"]).exits(exit::DONE);
    let third = place.path("third");
    // Another path that is missing is asked for, and what it has does not count for lost.
    fs::rename(&third, place.path("away")).unwrap();
    let ran = place.run("hold", &["list"]);
    assert!(ran.code != exit::DONE && ran.err.contains("third"), "{ran:?}");
    fs::rename(place.path("away"), &third).unwrap();
    // The first hold, in the log's own directory.
    let segments = fs::read_dir(place.audit().join("segments")).unwrap().map(|item| item.unwrap().path());
    let mut segments = segments.collect::<Vec<PathBuf>>();
    segments.sort();
    fs::remove_file(&segments[0]).unwrap();
    let listed = place.run("hold", &["list", "--json"]).json();
    assert!(whom(&place, &listed).is_superset(&BTreeSet::from(["ada", "emil", "fay"].map(str::to_owned))));
    let refused = place.run("erase", &["--subject", "emil", "--yes"]).exits(exit::REFUSED);
    assert!(refused.err.contains("is held by legal"), "{refused:?}");
}

/// A log that follows a file, of which the records in between went to a disk that is lost, and the file. What names the source is on
/// another disk where it was `known` before.
fn followed(known: bool) -> (Place, PathBuf) {
    let place = on_three_paths();
    let file = place.path("app.log");
    let write = |name: &str| {
        let line = format!("{{\"operation\":\"{name}\",\"subject\":\"ada\"}}\n");
        let mut file = OpenOptions::new().append(true).create(true).open(&file).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    };
    write("n1");
    if known {
        place.append(&["--follow", "--once", file.to_str().unwrap()], b"").exits(exit::DONE);
    }
    let mut child =
        command(place.arguments("append", &["--follow", file.to_str().unwrap()])).spawn().unwrap();
    let mut written = 1;
    let mut writes_until = |what: &str, holds: &dyn Fn() -> bool| {
        eventually(what, || {
            written += 1;
            write(&format!("n{written}"));
            holds()
        });
    };
    eventually("it is written", || place.info("locked") == true && has_frames(&place.audit()));
    fs::rename(place.audit(), place.path("first")).unwrap();
    writes_until("the second path takes over", &|| has_frames(&place.path("second")));
    // What was written there before the last of two checkpoints is signed.
    for _ in 0..2 {
        let checkpoint = || fs::read(place.path("second/checkpoint")).ok();
        let before = checkpoint();
        writes_until("it is signed", &|| checkpoint() != before);
    }
    fs::rename(place.path("second"), place.path("lost")).unwrap();
    writes_until("the third path takes over", &|| has_frames(&place.path("third")));
    signal(&child, Signal::TERM);
    assert!(child.wait().unwrap().success());
    fs::rename(place.path("first"), place.audit()).unwrap();
    note(&place);
    (place, file)
}

/// Has the file followed on. Each of its lines is in what is left, once.
fn follow_on(place: &Place, file: &Path) {
    let told = place.append(&["--follow", "--once", file.to_str().unwrap()], b"").exits(exit::DONE);
    assert!(told.err.contains("are read again"), "{told:?}");
    let behind = place.run("sources", &["--json"]).exits(exit::DONE).json();
    assert_eq!((&behind["sources"][0]["lag"], &behind["sources"][0]["missing"]), (&json!(0), &json!(0)));
    let out = place.run("export", &["--salvage"]).exits(exit::VIOLATION).out;
    let entries = parse_lines(&out).into_iter();
    let names = entries.filter_map(|entry| Some(entry["operation"].as_str()?.to_owned())).collect::<Vec<_>>();
    let lines = fs::read_to_string(file).unwrap().lines().count();
    assert_eq!(names.len(), lines, "{names:?}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), lines, "{names:?}");
}

#[test]
fn records_that_went_into_lost_frames_are_read_again_with_the_cache_and_without() {
    let (place, file) = followed(true);
    let state = place.keys("sources.state");
    let kept = fs::read(&state).unwrap();
    let with = place.run("sources", &[]).exits(exit::DONE);
    fs::remove_file(&state).unwrap();
    let without = place.run("sources", &[]).exits(exit::DONE);
    assert_eq!((&with.out, &with.err), (&without.out, &without.err));
    assert!(with.out.contains("they are read again where the sources still have them"), "{with:?}");
    let behind = place.run("sources", &["--json"]).exits(exit::DONE).json();
    // What went to the third path, where some did, is beyond what is missing.
    let bytes = |what: &str| behind["sources"][0][what].as_u64().unwrap();
    assert!(bytes("lag") + bytes("missing") > 0, "{behind}");
    fs::write(&state, kept).unwrap();
    follow_on(&place, &file);
    fs::remove_file(&state).unwrap();
    follow_on(&place, &file);
}

#[test]
fn a_source_is_known_again_by_the_cache_where_what_names_it_is_lost() {
    let (place, file) = followed(false);
    follow_on(&place, &file);
    follow_on(&place, &file);
}

/// Numbers that people were given in blocks that are lost are nobody else's either.
#[test]
fn a_vault_that_is_lost_too_is_made_anew_and_gives_no_number_twice() {
    let place = world();
    note(&place);
    let number_of_new = |name: &str| {
        let line = json!({"operation": "read", "subject": name}).to_string();
        place.append(&[], line.as_bytes()).exits(exit::DONE);
        let asked = place.run("hold", &["list", "--subject", name, "--json"]).json();
        asked["subjects"][0]["number"].as_u64().unwrap()
    };
    let last = number_of_new("fay");
    for name in ["vault", "roots"] {
        fs::rename(place.keys(name), place.path(name)).unwrap();
    }
    let looked = place.run("restore", &["--new-vault", "--dry-run", "--json"]).exits(exit::DONE).json();
    assert!(looked["lost_with_path"]["frames"].is_array(), "{looked}");
    let restored = place.run("restore", &["--new-vault"]).exits(exit::DONE);
    let said = "which numbers data subjects were given there, is not known";
    assert!(restored.out.contains(said), "{restored:?}");
    // How many were given the seal state knows.
    assert_eq!(number_of_new("gus"), last + 1);
    place.run("erase", &["--subject", "gus", "--yes"]).exits(exit::DONE);
}
