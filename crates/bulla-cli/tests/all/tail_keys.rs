//! `tail` where keys of data subjects are lost, or their vault is taken away: it says so at once, and ends as an export would.

use crate::support::{Place, Ran, command, copy, exit, finish, lines, parse_lines, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout};

/// A log, and what who follows it has of its keys: a copy, in which nobody is who comes later.
struct World {
    place: Place,
}

/// A `tail` at work.
struct Tail {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        place.append(&[], &lines(0..10)).exits(exit::DONE);
        fs::create_dir(place.path("copied.keys")).unwrap();
        for name in ["vault", "roots", "identity.age"] {
            copy(&place.keys(name), &place.path("copied.keys").join(name));
        }
        World { place }
    }

    fn keys(&self, name: &str) -> std::path::PathBuf {
        self.place.path("copied.keys").join(name)
    }

    fn arguments(&self, subcommand: &str, more: &[&str]) -> Vec<std::ffi::OsString> {
        let keys = self.place.path("copied.keys");
        let options = [&["--keys", keys.to_str().unwrap()], more].concat();
        self.place.arguments(subcommand, &options)
    }

    fn tail(&self, more: &[&str]) -> Tail {
        let mut child = command(self.arguments("tail", more)).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Tail { child, out, err }
    }

    fn export(&self, more: &[&str]) -> Ran {
        finish(command(self.arguments("export", more)).spawn().unwrap())
    }

    fn append(&self, subject: &str) {
        let line = format!("{{\"operation\":\"read\",\"location\":\"x\",\"subject\":\"{subject}\"}}\n");
        self.place.append(&[], line.as_bytes()).exits(exit::DONE);
    }
}

impl Tail {
    fn entry(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn told(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        line
    }

    fn ends(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

const LOST: &str = "keys are lost that the log does not say were erased";

#[test]
fn lost_keys_are_told_of_at_once_and_in_the_end_whatever_ends_it() {
    let world = World::new();
    let mut tail = world.tail(&["--signed", "--entries", "0.."]);
    for number in 0..10 {
        assert_eq!(tail.entry()["location"], format!("key/{number}"));
    }
    world.append("somebody new");
    let entry = tail.entry();
    assert_eq!((&entry["withheld"], &entry["location"]), (&"key-lost".into(), &Value::Null));
    assert!(tail.told().starts_with(&format!("1 entry came without personal fields: {LOST}")));
    signal(&tail.child, Signal::INT);
    assert_eq!(tail.ends(), exit::VIOLATION);
    // As an export ends.
    world.export(&[]).exits(exit::VIOLATION);

    // Whoever reads no more ends it as well.
    let mut tail = world.tail(&["--signed", "--entries", "10.."]);
    assert_eq!(tail.entry()["withheld"], "key-lost");
    assert!(tail.told().contains(LOST));
    let Tail { mut child, out, err: _err } = tail;
    drop(out);
    world.append("s1");
    assert_eq!(child.wait().unwrap().code(), Some(exit::VIOLATION));

    // Where none is lost nothing is amiss.
    let ran = finish(command(world.arguments("tail", &["--entries", "0..9"])).spawn().unwrap());
    assert_eq!(parse_lines(&ran.exits(exit::DONE).out).len(), 10);
}

#[test]
fn an_entry_that_may_match_and_whose_keys_are_lost_is_told_of_at_once_and_in_the_end() {
    let world = World::new();
    let mut tail = world.tail(&["--signed", "--entries", "0..", "--subject", "s1"]);
    assert_eq!(tail.entry()["location"], "key/1");
    world.append("somebody new");
    assert!(tail.told().starts_with(&format!("1 entry may match and cannot be opened: {LOST}")));
    signal(&tail.child, Signal::INT);
    assert_eq!(tail.ends(), exit::VIOLATION);
    world.export(&["--subject", "s1"]).exits(exit::VIOLATION);
}

#[test]
fn a_vault_that_is_taken_away_meanwhile_ends_it_as_an_export_without_one() {
    for filter in [&[][..], &["--subject", "s1"]] {
        let world = World::new();
        let mut tail = world.tail(&[&["--entries", "0.."], filter].concat());
        tail.entry();
        fs::rename(world.keys("vault"), world.keys("away")).unwrap();
        world.append("s1");
        let told = tail.told();
        assert!(told.contains("was replaced, moved or removed while it was read"), "{told:?}");
        assert_eq!(tail.ends(), exit::REFUSED);
        world.export(filter).exits(exit::REFUSED);
    }
}

#[test]
fn a_vault_that_is_put_in_the_place_of_another_meanwhile_is_no_vault_whose_keys_are_lost() {
    let world = World::new();
    let mut tail = world.tail(&["--entries", "0.."]);
    tail.entry();
    world.append("somebody new");
    // Before that is read, or after it as lost, as the two come together.
    fs::rename(world.keys("vault"), world.keys("away")).unwrap();
    copy(&world.place.keys("vault"), &world.keys("vault"));
    world.append("s1");
    let told = std::iter::from_fn(|| Some(tail.told()).filter(|line| !line.is_empty())).collect::<Vec<_>>();
    let last = told.last().unwrap();
    assert!(last.contains("was replaced, moved or removed while it was read"), "{told:?}");
    assert_eq!(tail.ends(), exit::REFUSED);
    world.export(&[]).exits(exit::DONE);
}

#[test]
fn a_tail_that_fails_says_why_in_an_object_after_the_entries() {
    let world = World::new();
    let mut tail = world.tail(&["--entries", "9..", "--json"]);
    assert_eq!(tail.entry()["entry"], 9);
    fs::rename(world.keys("vault"), world.keys("away")).unwrap();
    world.append("s1");
    let mut last = tail.entry();
    while !last["entry"].is_null() {
        last = tail.entry();
    }
    assert!(last["error"].as_str().unwrap().contains("while it was read"), "{last}");
    assert_eq!(tail.ends(), exit::REFUSED);
}
