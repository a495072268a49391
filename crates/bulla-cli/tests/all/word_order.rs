//! What is done comes after the log's directory; the other way round is no log that is missing.

use crate::support::{Place, Ran, arguments, bulla, command, exit, finish};

/// Runs it where the log `audit` is.
fn run(place: &Place, words: &[&str]) -> Ran {
    finish(command(words).current_dir(place.path("")).spawn().unwrap())
}

#[test]
fn who_says_what_to_do_before_where_is_told_the_line_to_type() {
    let place = Place::new();
    for (words, line) in [
        (&["hold", "list", "audit"][..], "bulla hold audit list"),
        (
            &["hold", "add", "audit", "--subject", "user 42", "--by", "legal", "--reason", "it's so"],
            r"bulla hold audit add --subject 'user 42' --by legal --reason 'it'\''s so'",
        ),
        (&["hold", "--subject", "list", "release", "audit"], "bulla hold --subject list audit release"),
        (&["hold", "add"], "bulla hold DIR add"),
        (&["keys", "list", "audit"], "bulla keys audit list"),
        (&["keys", "--keys", "audit.keys", "rotate", "audit"], "bulla keys --keys audit.keys audit rotate"),
        (&["keys", "new-identity", "audit", "-o", "list"], "bulla keys audit new-identity -o list"),
        (&["config", "get", "audit", "linger"], "bulla config audit get linger"),
        (&["config", "set", "audit", "linger", "20 ms"], "bulla config audit set linger '20 ms'"),
        (&["config", "get"], "bulla config DIR get"),
        (&["config", "--", "unset", "audit", "linger"], "bulla config -- audit unset linger"),
    ] {
        let told = format!("the log's directory comes before what to do there: {line}");
        let ran = run(&place, words).exits(exit::USAGE);
        assert_eq!((ran.err, ran.out), (format!("bulla: {told}\n"), String::new()), "{words:?}");
        let words = [&words[..1], &["--json"], &words[1..]].concat();
        let ran = run(&place, &words).exits(exit::USAGE);
        assert!(ran.json()["error"].as_str().unwrap().contains("comes before what to do there"), "{ran:?}");
    }
    for (words, line) in [
        (&["actor", "audit", "alice"][..], "audit actor alice"),
        (&["actor", "alice"], "DIR actor alice"),
        (&["actor", "audit", "--resolve", "p-1", "names"], "audit actor --resolve p-1 names"),
        (&["--resolve", "p-1", "client"], "--resolve p-1 DIR client"),
    ] {
        let ran = run(&place, &[&["pseudonym"], words].concat()).exits(exit::USAGE);
        assert_eq!(
            ran.err,
            format!("bulla: the log's directory comes before the field: bulla pseudonym {line}\n")
        );
    }
}

#[test]
fn a_log_that_is_called_as_something_to_do_is_that_log() {
    let place = Place::empty();
    bulla(arguments!["init", place.path("list")]).exits(exit::DONE);
    run(&place, &["keys", "list", "list"]).exits(exit::DONE);
    run(&place, &["config", "list"]).exits(exit::DONE);
    // Here it is not where, but what to do, that is wrong.
    let ran = run(&place, &["keys", "list", "lsit"]).exits(exit::USAGE);
    assert!(ran.err.contains("invalid value 'lsit'"), "{ran:?}");
    // No log is there, and the order is right.
    run(&place, &["pseudonym", "audit", "actor", "x"]).exits(exit::ENVIRONMENT);
    let ran = run(&place, &["keys", "rotate", "rotate"]);
    assert!(!ran.err.contains("comes before"), "{ran:?}");
}
