//! `tail`: entries as they are committed.

use crate::support::{Place, Ran, command, exit, lines, parse_lines, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

fn tail(place: &Place, more: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = command(place.arguments("tail", more)).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

fn next(out: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn it_shows_what_comes_until_it_is_interrupted() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let (child, mut out) = tail(&place, &["--entries", "8.."]);
    assert_eq!(next(&mut out)["location"], "key/8");
    assert_eq!(next(&mut out)["location"], "key/9");
    for round in 1..4 {
        place.append(&[], &lines(round * 10..round * 10 + 10)).exits(exit::DONE);
        for number in round * 10..round * 10 + 10 {
            let entry = next(&mut out);
            assert_eq!(
                (&entry["entry"], &entry["location"]),
                (&number.into(), &format!("key/{number}").into())
            );
        }
    }
    signal(&child, Signal::INT);
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(exit::INTERRUPTED);
    assert_eq!(ran.err, "");
}

#[test]
fn it_ends_after_the_last_entry_that_was_asked_for() {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let ran = place.run("tail", &["--entries", "10..39", "--subject", "s3", "--signed"]).exits(exit::DONE);
    let locations = parse_lines(&ran.out).iter().map(|entry| entry["location"].clone()).collect::<Vec<_>>();
    assert_eq!(locations, ["key/13", "key/23", "key/33"]);
}

#[test]
fn a_closed_output_pipe_ends_it() {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let (mut child, out) = tail(&place, &["--from", "2020-01-01"]);
    drop(out);
    place.append(&[], &lines(100..200)).exits(exit::DONE);
    assert_eq!(child.wait().unwrap().code(), Some(exit::DONE));
}

#[test]
fn without_a_log_or_a_key_it_says_so() {
    let place = Place::empty();
    place.run("tail", &[]).exits(exit::ENVIRONMENT);
    let place = Place::new();
    std::fs::remove_file(place.keys("identity.age")).unwrap();
    place.run("tail", &[]).exits(exit::REFUSED);
}
