//! `append --acks`: what is told of lines is so when it is told, and whoever feeds a pipe can go on after it.

use crate::append::{strangers, with_little_room};
use crate::support::{Place, command, eventually, exit, finish, incompressible, lines};
use bulla_testkit::unsynced;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A command that acknowledges lines of a pipe that stays open.
struct Feeding {
    child: Child,
    told: BufReader<ChildStdout>,
    last: u64,
}

impl Feeding {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        Feeding { child, told, last: 0 }
    }

    fn feed(&mut self, text: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(text).unwrap();
    }

    /// Reads until it tells of this line, and of none after it.
    fn until(&mut self, line: u64) {
        while self.last < line {
            let mut text = String::new();
            assert!(self.told.read_line(&mut text).unwrap() > 0, "it ended at {}", self.last);
            self.take(&text);
        }
        assert_eq!(self.last, line);
    }

    fn take(&mut self, text: &str) {
        let line = text.trim_end().strip_prefix("durable ").unwrap().parse().unwrap();
        assert!(line > self.last, "{text} after {}", self.last);
        self.last = line;
    }

    /// Ends the input, and gives the object at the end.
    fn end(mut self, code: i32) -> Value {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.told.read_to_string(&mut rest).unwrap();
        let (acks, object) = rest.trim_end().rsplit_once('\n').unwrap_or(("", rest.trim_end()));
        acks.lines().for_each(|text| self.take(text));
        finish(self.child).exits(code);
        let object: Value = serde_json::from_str(object).unwrap();
        assert_eq!(object["up_to"]["line"], self.last, "{object}");
        object
    }
}

#[test]
fn lines_are_acknowledged_while_the_pipe_stays_open() {
    let place = Place::new();
    let mut feeding = Feeding::start(command(place.arguments("append", &["--acks", "--json"])));
    feeding.feed(&lines(0..1000));
    feeding.until(1000);
    eventually("they are signed", || place.info("entries") == 1000);
    // Refused lines alone, before others and behind them.
    for (text, last) in [
        (&b"nonsense\n"[..], 1001),
        (b"\n{\"operation\":\"x\"}\n", 1003),
        (b"{\"operation\":\"y\"}\n?\n", 1005),
    ] {
        feeding.feed(text);
        feeding.until(last);
    }
    // A line without its end is none yet.
    feeding.feed(b"{\"operation\":");
    feeding.feed(b"\"z\"}");
    let told = feeding.end(exit::SOME_REFUSED);
    assert_eq!(
        (&told["accepted"], &told["refused"], &told["up_to"]["line"]),
        (&1003.into(), &3.into(), &1006.into())
    );
    assert_eq!(place.entries().len(), 1003);
}

#[test]
fn a_refused_line_is_acknowledged_once_it_is_among_the_rejects() {
    let place = Place::new();
    let rejects = place.path("rejects");
    let arguments = ["--acks", "--json", "--rejects", rejects.to_str().unwrap()];
    let mut feeding = Feeding::start(command(place.arguments("append", &arguments)));
    for number in 0..20 {
        feeding.feed(format!("nonsense {number}\n{{\"operation\":\"x\"}}\n").as_bytes());
        feeding.until(2 * number + 2);
        let kept = std::fs::read_to_string(&rejects).unwrap();
        assert!(kept.ends_with(&format!("nonsense {number}\n")), "{kept}");
    }
    feeding.end(exit::SOME_REFUSED);
}

#[test]
fn no_line_is_acknowledged_past_a_reject_that_could_not_be_kept() {
    let place = Place::new();
    let arguments = ["--acks", "--json", "--rejects", "/dev/full"];
    let mut feeding = Feeding::start(command(place.arguments("append", &arguments)));
    feeding.feed(b"{\"operation\":\"x\"}\nnonsense\n{\"operation\":\"x\"}\n");
    feeding.until(1);
    eventually("the lines are durable", || place.info("entries") == 2);
    let told = feeding.end(exit::ENVIRONMENT);
    assert_eq!((&told["accepted"], &told["refused"]), (&2.into(), &0.into()), "{told}");
}

#[test]
fn what_is_acknowledged_before_a_disk_fills_up_is_what_is_told_at_the_end() {
    let place = Place::new();
    place.run("config", &["set", "checkpoint_interval", "10 ms"]).exits(exit::DONE);
    let input = strangers(0..6000);
    let mut feeding = Feeding::start(with_little_room(&place, &["--acks", "--json"]));
    feeding.feed(input[..300].concat().as_bytes());
    feeding.until(300);
    feeding.feed(input[300..].concat().as_bytes());
    let told = feeding.end(exit::ENVIRONMENT);
    let last = usize::try_from(told["up_to"]["line"].as_u64().unwrap()).unwrap();
    assert!(last < 6000, "{told}");
    let accepted = input[..last].iter().filter(|line| *line != "nonsense\n").count();
    assert_eq!(told["durable_prefix"], accepted, "{told}");
    // Whoever goes on after it misses nothing.
    place.append(&[], input[last..].concat().as_bytes()).exits(exit::SOME_REFUSED);
    assert!(place.entries().len() >= 5700);
}

#[test]
fn nothing_is_acknowledged_where_every_sync_fails() {
    let place = Place::empty();
    place.run("init", &["--erasure", "off"]).exits(exit::DONE);
    let input = place.write("input", &incompressible(100));
    let mut append = command(place.arguments("append", &["--acks", &input]));
    append.env("LD_PRELOAD", unsynced(&place.path(""), 4096));
    let ran = finish(append.spawn().unwrap()).exits(exit::ENVIRONMENT);
    assert_eq!(ran.out, "");
    assert!(ran.err.ends_with("\nno line is durable\n"), "{ran:?}");
}

#[test]
fn acknowledged_are_the_lines_of_one_input() {
    let place = Place::new();
    let input = place.write("input", &lines(0..10));
    let ran = place.append(&["--acks", &input, &input], b"").exits(exit::USAGE);
    assert!(ran.err.contains("--acks counts the lines of one input"), "{ran:?}");
    let ran = place.append(&["--acks", &input], b"").exits(exit::DONE);
    let (acks, summary) = ran.out.split_once("10 accepted").unwrap();
    assert!(acks.ends_with("durable 10\n") && summary.contains(&format!("{input}:10")), "{ran:?}");
}
