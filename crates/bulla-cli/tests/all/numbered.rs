//! `append --source`: a sender that numbers its lines, and sends some of them again.

use crate::support::{Place, command, exit};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn lines_that_a_sender_sends_again_are_not_in_the_log_again() {
    let place = Place::new();
    let lines = |numbers: std::ops::Range<u64>| -> String {
        numbers.map(|number| format!("{{\"operation\":\"n{number}\"}}\n")).collect()
    };
    let options = |from: &'static str| ["--source", "shop", "--from", from, "--acks"];
    let ran = place.append(&options("1"), lines(1..101).as_bytes()).exits(exit::DONE);
    assert!(ran.out.starts_with("durable "), "{}", ran.out);
    assert!(ran.out.ends_with("every line up to stdin:100 is durable or was refused\n"), "{}", ran.out);
    let again = lines(90..101) + "bad\n" + &lines(102..105);
    let ran = place.append(&options("90"), again.as_bytes()).exits(exit::SOME_REFUSED);
    assert!(ran.err.starts_with("stdin:101: "), "{}", ran.err);
    assert!(
        ran.out.ends_with(
            "3 accepted, 1 refused, 3 committed\n11 lines passed over: the log has lines 1 to 100 of shop\nevery line up to stdin:104 is durable or was refused\n"
        ),
        "{}",
        ran.out
    );
    // The last line that the log has is another one.
    let ran = place.append(&options("104"), lines(7..9).as_bytes()).exits(exit::REFUSED);
    assert!(ran.err.contains("line 104 of the source shop is not the one that the log has"), "{}", ran.err);
    // Another source has numbers of its own.
    place.append(&["--source", "office"], lines(104..106).as_bytes()).exits(exit::DONE);
    let operations: Vec<_> =
        place.entries().iter().map(|entry| entry["operation"].as_str().unwrap().to_owned()).collect();
    let expected = (1..101).chain(102..105).chain(104..106).map(|number| format!("n{number}"));
    assert!(operations.into_iter().eq(expected));
    let listed = place.run("sources", &["--json"]).exits(exit::DONE).json();
    let told: Vec<_> = listed["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| (&source["name"], &source["place"]))
        .collect();
    assert_eq!(told, [(&json!("office"), &json!(2)), (&json!("shop"), &json!(104))]);
}

#[test]
fn a_sender_goes_on_behind_what_was_told_after_a_kill() {
    let place = Place::new();
    let mut done = 0;
    for kill in 0..6_u64 {
        let arguments = ["--source", "shop", "--from", &(done + 1).to_string(), "--acks"].map(str::to_owned);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let mut child = command(place.arguments("append", &arguments)).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let text: String =
            (done + 1..=done + 2000).map(|number| format!("{{\"operation\":\"n{number}\"}}\n")).collect();
        pipe.write_all(text.as_bytes()).unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = told.next().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(kill));
        child.kill().unwrap();
        child.wait().unwrap();
        // The sender may have read fewer of these lines than were told.
        done = line.strip_prefix("durable ").unwrap().parse().unwrap();
    }
    let rest: String =
        (done + 1..=done + 2000).map(|number| format!("{{\"operation\":\"n{number}\"}}\n")).collect();
    let from = (done + 1).to_string();
    place.append(&["--source", "shop", "--from", &from], rest.as_bytes()).exits(exit::DONE);
    let numbers = place
        .entries()
        .into_iter()
        .map(|entry| entry["operation"].as_str().unwrap()[1..].parse::<u64>().unwrap());
    assert!(numbers.eq(1..=done + 2000));
}

/// Nothing that is sent goes by unseen, and no line that was never sent is told to be durable.
#[test]
fn what_the_log_has_of_a_sender_is_told_and_what_it_lacks_is_asked_for() {
    let place = Place::new();
    let lines = |names: &[&str]| -> String {
        names.iter().map(|name| format!("{{\"operation\":\"{name}\"}}\n")).collect()
    };
    let send = |options: &[&str], text: &str| {
        place.append(&[&["--source", "day", "--acks"], options].concat(), text.as_bytes())
    };
    send(&[], &lines(&["a", "b", "c"])).exits(exit::DONE);
    // The next batch, with numbers that the log has.
    let ran = send(&[], &lines(&["d", "e"])).exits(exit::DONE);
    // One line may be told of before the other.
    assert_eq!(
        ran.out.strip_prefix("durable 1\n").unwrap_or(&ran.out),
        "durable 2\n0 accepted, 0 refused, 0 committed\n2 lines passed over: the log has lines 1 to 3 of day; go on with --from 4\nevery line up to stdin:2 is durable or was refused\n"
    );
    let ran = place.append(&["--source", "day", "--json"], lines(&["d", "e"]).as_bytes()).exits(exit::DONE);
    assert_eq!(ran.json()["passed_over"], json!(2));
    let options = ["--source", "day", "--json", "--from", "4"];
    let ran = place.append(&options, lines(&["d"]).as_bytes()).exits(exit::DONE);
    assert_eq!(ran.json()["passed_over"], json!(0));
    send(&[], &lines(&["a", "b", "c", "e"])).exits(exit::REFUSED);
    // Lines 5 to 9 never came.
    let ran = send(&["--from", "10"], &lines(&["j"])).exits(exit::USAGE);
    assert!(
        ran.err.contains("has lines up to 4 of the source day, so lines 5 to 9 are missing before line 10: begin with --from 5"),
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("durable"), "{}", ran.out);
    let ran = send(&["--from", "6"], &lines(&["f"])).exits(exit::USAGE);
    assert!(ran.err.contains("line 5 is missing before line 6"), "{}", ran.err);
    send(&["--from", "5"], &lines(&["e"])).exits(exit::DONE);
    // A source may begin with any line; nothing is said of those before it.
    let ran = place.append(&["--source", "late", "--acks", "--from", "10"], lines(&["x"]).as_bytes());
    assert!(ran.exits(exit::DONE).out.starts_with("durable 10\n"));
    let operations: Vec<_> = place.entries().iter().map(|entry| entry["operation"].clone()).collect();
    assert_eq!(operations, ["a", "b", "c", "d", "e", "x"]);
}

/// Also after a kill, and where nothing else was sent.
#[test]
fn a_sender_goes_on_behind_lines_that_were_refused() {
    let place = Place::new();
    let rejects = place.path("rejects");
    let options = |from: &str| {
        let options = ["--source", "shop", "--acks", "--rejects", rejects.to_str().unwrap(), "--from", from];
        options.map(str::to_owned)
    };
    let mut content = Vec::new();
    let mut next = 1;
    for text in ["bad1\n", "{\"operation\":\"a\"}\nbad2\n", "bad3\n", "{\"operation\":\"b\"}\n\nbad4\n"] {
        let options = options(&next.to_string());
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let mut child = command(place.arguments("append", &options)).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        next += text.lines().count();
        let last = format!("durable {}", next - 1);
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(told.any(|line| line.unwrap() == last), "{last}");
        child.kill().unwrap();
        child.wait().unwrap();
        let refused = text.lines().filter(|line| !line.starts_with('{'));
        refused.for_each(|line| content.extend_from_slice(format!("{line}\n").as_bytes()));
        assert_eq!(fs::read(&rejects).unwrap(), content);
    }
    let ran = place.append(&["--source", "shop", "--from", "9"], b"").exits(exit::USAGE);
    assert!(ran.err.contains("line 8 is missing before line 9"), "{}", ran.err);
    let listed = || place.run("sources", &["--json"]).exits(exit::DONE).json()["sources"][0].clone();
    let told = |source: serde_json::Value| {
        ["place", "passed", "missing", "beyond"].map(|name| source[name].as_u64().unwrap())
    };
    assert_eq!(told(listed()), [7, 2, 0, 0]);
    // One that was refused may come again.
    let ran =
        place.append(&["--source", "shop", "--from", "7"], b"{\"operation\":\"c\"}\n").exits(exit::DONE);
    assert_eq!(
        ran.out,
        "1 accepted, 0 refused, 1 committed\nevery line up to stdin:7 is durable or was refused\n"
    );
    assert_eq!(told(listed()), [7, 0, 0, 0]);
    fs::remove_file(place.path("audit.keys/sources.passed")).unwrap();
    assert_eq!(told(listed()), [7, 0, 0, 0]);
}

/// A key directory that is not where it was is a disk that may not be mounted; one that was named is a slip.
#[test]
fn sources_of_a_log_whose_keys_are_elsewhere_are_not_told() {
    let place = Place::new();
    place.append(&["--source", "shop"], b"{\"operation\":\"a\"}\n").exits(exit::DONE);
    fs::rename(place.path("audit.keys"), place.path("elsewhere")).unwrap();
    let ran = place.run("sources", &[]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("there is no directory"), "{}", ran.err);
    let elsewhere = place.path("elsewhere");
    let ran = place.run("sources", &["--keys", elsewhere.to_str().unwrap()]).exits(exit::DONE);
    assert!(ran.out.contains("line 1"), "{}", ran.out);
    place.run("sources", &["--keys", "/nowhere"]).exits(exit::REFUSED);
    fs::remove_file(elsewhere.join("sources.key")).unwrap();
    let ran = place.run("sources", &["--keys", elsewhere.to_str().unwrap()]).exits(exit::REFUSED);
    assert!(ran.err.contains("sources.key is missing"), "{}", ran.err);
}
