//! `pseudonym`: what names become, and whose a pseudonym is.

use crate::support::{
    Place, Ran, arguments, bulla, bulla_with, eventually, exit, lines, parse_lines, signal,
};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// A log that pseudonymises, with entries of two processors and two actors.
fn filled(options: &[&str]) -> Place {
    let place = Place::empty();
    let rules = ["processor=pseudonymise", "actor=pseudonymise", "location=pseudonymise", "client=drop"];
    let rules = rules.iter().flat_map(|rule| ["--field", rule]);
    place.run("init", &options.iter().copied().chain(rules).collect::<Vec<_>>()).exits(exit::DONE);
    for (processor, actor) in [("Example Ltd", "alice"), ("Acme", "bob"), ("Example Ltd", "bob")] {
        let line = json!({ "operation": "read", "subject": "s", "processor": processor, "actor": actor });
        place.append(&[], format!("{line}\n").as_bytes()).exits(exit::DONE);
    }
    place
}

fn resolve(place: &Place, field: &str, pseudonym: &str, candidates: &[u8]) -> Ran {
    bulla_with(arguments!["pseudonym", place.audit(), field, "--resolve", pseudonym], candidates)
}

/// The pseudonym of one name.
fn of(place: &Place, field: &str, name: &str) -> String {
    let out = place.run("pseudonym", &[field, name]).exits(exit::DONE).out;
    let (pseudonym, named) = out.split_once("  ").unwrap();
    assert_eq!(named, format!("{name}\n"));
    pseudonym.to_owned()
}

#[test]
fn what_is_printed_by_a_name_is_in_the_log_and_filters_by_it() {
    for options in [&[][..], &["--erasure", "off"]] {
        let place = filled(options);
        assert_eq!(place.keys("pseudonym.key").exists(), !options.is_empty());
        let printed = place.run("pseudonym", &["actor", "alice", "bob"]).exits(exit::DONE).out;
        let actors = place.entries().into_iter().map(|entry| entry["actor"].as_str().unwrap().to_owned());
        let actors = actors.collect::<Vec<_>>();
        assert_eq!(printed, format!("{}  alice\n{}  bob\n", actors[0], actors[1]));
        assert_eq!((actors[1] == actors[2], actors[0] == actors[1]), (true, false));

        let example = of(&place, "processor", "Example Ltd");
        let export = |processor: &str| {
            let ran = place.run("export", &["--processor", processor]).exits(exit::DONE);
            parse_lines(&ran.out).iter().map(|entry| entry["entry"].as_u64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(export(&example), [0, 2]);
        assert!(export("Example Ltd").is_empty(), "nothing is translated");
    }
}

#[test]
fn json_has_every_name_also_one_that_is_no_text() {
    use std::os::unix::ffi::OsStringExt;
    let place = filled(&[]);
    let mut arguments = arguments!["pseudonym", place.audit(), "location", "--json", "/a\nb"];
    arguments.push(std::ffi::OsString::from_vec(vec![0xff, b'/']));
    let shown = bulla(arguments).exits(exit::DONE).json();
    let (one, other) = (&shown["pseudonyms"][0], &shown["pseudonyms"][1]);
    assert_eq!((&shown["field"], &one["name"]), (&json!("location"), &json!("/a\nb")));
    assert_eq!((&other["name_base64"], &other["name"]), (&json!("/y8="), &json!(null)));
    let pseudonym = other["pseudonym"].as_str().unwrap();
    assert_ne!(one["pseudonym"], pseudonym);
    assert_eq!(resolve(&place, "location", pseudonym, b"/a\n\xff/\n").exits(exit::DONE).out, "/y8=\n");
    // A name writes no line of its own.
    assert_eq!(place.run("pseudonym", &["location", "/a\nb"]).exits(exit::DONE).out.lines().count(), 1);
}

#[test]
fn a_pseudonym_is_resolved_among_candidates_and_no_further() {
    let place = filled(&[]);
    let bob = of(&place, "actor", "bob");
    let long = "x".repeat(70_000);
    for candidates in
        ["alice\nbob\n", "alice\r\nbob\r\n", "bob", &format!("{long}\nbob\ncarol"), "\nbob\nbob\n"]
    {
        assert_eq!(resolve(&place, "actor", &bob, candidates.as_bytes()).exits(exit::DONE).out, "bob\n");
    }
    let file = place.write("names", b"alice\nbob\n");
    for from in [&file, "-"] {
        let more = arguments!["pseudonym", place.audit(), "actor", "--resolve", bob, from, "--json"];
        assert_eq!(
            bulla_with(more, b"bob").exits(exit::DONE).json(),
            json!({ "field": "actor", "pseudonyms": [{ "name": "bob", "pseudonym": bob }] })
        );
    }
    for candidates in ["", "alice\n", "bob \n", "Bob", &long, &format!("{long}bob")] {
        let ran = resolve(&place, "actor", &bob, candidates.as_bytes()).exits(exit::REFUSED);
        assert!(ran.err.contains("none of these names") && ran.out.is_empty(), "{ran:?}");
    }
    resolve(&place, "processor", &bob, b"bob").exits(exit::REFUSED);
    // The longest name that a field can have, and the pseudonym of an empty one.
    let longest = "x".repeat(65_536);
    let found = resolve(&place, "actor", &of(&place, "actor", &longest), format!("{longest}\r\n").as_bytes());
    assert_eq!(found.exits(exit::DONE).out.len(), 65_537);
    let empty = of(&place, "actor", "");
    resolve(&place, "actor", &empty, long.as_bytes()).exits(exit::REFUSED);
    assert_eq!(resolve(&place, "actor", &empty, b"a\n\n").exits(exit::DONE).out, "\n");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = filled(&[]);
    let some = "p-4c75c78bd0a93d68e641ad76bf0246d7";
    for (arguments, said) in [
        (&["purpose", "a"][..], "`purpose` is kept"),
        (&["client", "a"], "`client` has the rule `drop`"),
        (&["subject", "a"], "`subject` is always kept"),
        (&["actr", "a"], "an entry has no field `actr`"),
        (&["actor"], "--resolve"),
        (&["actor", "--resolve", "p-1", "-"], "--resolve p-1: a pseudonym is `p-` and 32"),
        (&["actor", "--resolve", some, "a", "b"], "one file of names"),
    ] {
        let ran = place.run("pseudonym", arguments).exits(exit::USAGE);
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{arguments:?}: {ran:?}");
    }
    place.run("pseudonym", &["actor", "--resolve", some, "/nowhere"]).exits(exit::ENVIRONMENT);
    place.run("pseudonym", &["actor", "--resolve", some, "/"]).exits(exit::ENVIRONMENT);
    bulla(arguments!["pseudonym", place.path("nowhere"), "actor", "a"]).exits(exit::ENVIRONMENT);
}

#[test]
fn without_the_key_there_is_no_answer() {
    for (options, key) in [(&[][..], "vault"), (&["--erasure", "off"], "pseudonym.key")] {
        let place = filled(options);
        let alice = of(&place, "actor", "alice");
        fs::rename(place.path("audit.keys"), place.path("elsewhere")).unwrap();
        for arguments in [&["actor", "alice"][..], &["actor", "--resolve", &alice]] {
            let ran = place.run("pseudonym", arguments).exits(exit::REFUSED);
            assert!(ran.err.contains(place.keys(key).to_str().unwrap()) && ran.out.is_empty(), "{ran:?}");
        }
        let elsewhere = place.path("elsewhere");
        let ran = place.run("pseudonym", &["actor", "alice", "--keys", elsewhere.to_str().unwrap()]);
        assert_eq!(ran.exits(exit::DONE).out, format!("{alice}  alice\n"));
    }
}

#[test]
fn it_answers_beside_a_writer() {
    use std::io::Write;
    let place = filled(&[]);
    let before = of(&place, "actor", "alice");
    let mut writer = crate::support::command(place.arguments("append", &[]))
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.as_mut().unwrap().write_all(&lines(0..10)).unwrap();
    eventually("the writer listens", || place.keys("control.sock").exists());
    assert_eq!(of(&place, "actor", "alice"), before);
    signal(&writer, Signal::TERM);
    writer.wait().unwrap();
}

#[test]
fn an_erasure_changes_no_pseudonym() {
    let place = filled(&[]);
    let before = of(&place, "actor", "alice");
    place.run("erase", &["--subject", "s"]).exits(exit::DONE);
    assert_eq!(of(&place, "actor", "alice"), before);
    assert_eq!(resolve(&place, "actor", &before, b"alice").exits(exit::DONE).out, "alice\n");
}
