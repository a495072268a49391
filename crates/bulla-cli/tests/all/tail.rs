//! `tail`: entries as they are committed.

use crate::support::{Place, Ran, arguments, command, copy, exit, finish, lines, parse_lines, signal};
use bulla::text::time::format_time;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    let ran = finish(child).exits(exit::INTERRUPTED);
    assert_eq!(ran.err, "");
}

#[test]
fn it_ends_when_nobody_reads_it_any_more() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let (child, mut out) = tail(&place, &["--entries", "8.."]);
    assert_eq!(next(&mut out)["location"], "key/8");
    drop(out);
    let ran = finish(child).exits(exit::DONE);
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
fn a_time_that_is_past_gives_what_is_there_and_ends() {
    let place = Place::new();
    let line = |second: u32| format!("{{\"operation\":\"read\",\"time\":\"2026-03-01T12:00:0{second}Z\"}}\n");
    place.append(&[], (0..6).map(line).collect::<String>().as_bytes()).exits(exit::DONE);
    let numbers = |arguments: &[&str]| {
        let ran = place.run("tail", arguments).exits(exit::DONE);
        assert_eq!(ran.err, if ran.out.is_empty() { "0 entries\n" } else { "" });
        parse_lines(&ran.out).iter().map(|entry| entry["entry"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (from, to) = ("2026-03-01T12:00:01Z", "2026-03-01T12:00:04Z");
    assert_eq!(numbers(&["--from", from, "--to", to]), [1, 2, 3]);
    assert_eq!(numbers(&["--entries", "2..", "--to", to, "--signed"]), [2, 3]);
    // It begins with what comes next, and nothing comes before then.
    assert_eq!(numbers(&["--to", to]), Vec::<u64>::new());
}

#[test]
fn on_an_idle_log_it_ends_once_the_time_is_over() {
    let place = Place::new();
    place.append(&[], &lines(0..1)).exits(exit::DONE);
    let to = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(1);
    let mut text = Vec::new();
    format_time(to.as_nanos().try_into().unwrap(), &mut text);
    let text = String::from_utf8(text).unwrap();
    let ran = place.run("tail", &["--entries", "0..", "--to", &text]).exits(exit::DONE);
    assert_eq!((parse_lines(&ran.out).len(), ran.err.as_str()), (1, ""));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    assert!(now >= to + Duration::from_secs(2), "it ended before its time");
}

/// A log of five entries for its own identity and then of five for that of the other place.
/// As of a snapshot of the storage: what the tail saw is all that it has, and the keys know of more.
#[test]
fn a_log_that_stays_behind_its_keys_ends_it() {
    let place = Place::new();
    place.append(&[], &lines(0..4)).exits(exit::DONE);
    let snapshot = place.path("snapshot");
    copy(&place.audit(), &snapshot);
    let words = arguments!["tail", &snapshot, "--keys", place.keys(""), "--entries", "0.."];
    let mut child = command(words).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    (0..4).for_each(|number| assert_eq!(next(&mut out)["location"], format!("key/{number}")));
    place.append(&[], &lines(4..7)).exits(exit::DONE);
    let ran = finish(child).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("snapshot is an older copy of the log"), "{ran:?}");
}

fn of_two_readers() -> (Place, Place) {
    let (place, other) = (Place::new(), Place::new());
    place.append(&[], &lines(0..5)).exits(exit::DONE);
    let recipient = other.run("config", &["get", "log.recipients"]).exits(exit::DONE).out;
    place.run("config", &["set", "log.recipients", recipient.trim()]).exits(exit::DONE);
    place.append(&[], &lines(5..10)).exits(exit::DONE);
    (place, other)
}

#[test]
fn an_identity_that_opens_a_part_of_the_log_is_given_that_part() {
    let (place, other) = of_two_readers();
    let other = other.keys("identity.age").to_str().unwrap().to_owned();
    let given =
        |ran: &Ran| parse_lines(&ran.out).iter().map(|entry| entry["entry"].clone()).collect::<Vec<_>>();
    let ran = place.run("tail", &["--entries", "1.."]).exits(exit::REFUSED);
    assert_eq!(given(&ran), [1, 2, 3, 4]);
    assert!(ran.err.contains("does not open epoch") && ran.err.contains("begins with entry 5"), "{ran:?}");
    let ran = place.run("tail", &["--entries", "1..4"]).exits(exit::DONE);
    assert_eq!((given(&ran).len(), ran.err.as_str()), (4, ""));
    let ran = place.run("tail", &["--entries", "5..9", "--identity", &other]).exits(exit::DONE);
    assert_eq!((given(&ran).len(), ran.err.as_str()), (5, ""));
    let ran = place.run("tail", &["--entries", "0..9", "--identity", &other]).exits(exit::REFUSED);
    assert!(ran.out.is_empty() && ran.err.contains("does not open epoch 0 of"), "{ran:?}");
}

#[test]
fn who_cannot_read_what_comes_is_told_and_refused_when_it_does() {
    let (place, _other) = of_two_readers();
    let (mut child, _out) = tail(&place, &[]);
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("does not open the epoch that the log is in"), "{line:?}");
    place.append(&[], &lines(10..11)).exits(exit::DONE);
    err.read_line(&mut line).unwrap();
    assert!(line.contains("which begins with entry 10: "), "{line:?}");
    assert_eq!(child.wait().unwrap().code(), Some(exit::REFUSED));
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
