//! `append --listen`: entries of other processes.

use crate::support::{Place, Ran, command, command_under, eventually, exit, finish, not_tested, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};

/// A command that listens, and its sockets.
struct Listening {
    child: Child,
    stream: PathBuf,
    datagrams: PathBuf,
}

impl Listening {
    fn start(place: &Place, more: &[&str]) -> Self {
        let (stream, datagrams) = (place.path("stream.sock"), place.path("datagrams.sock"));
        let paths = ["--listen", stream.to_str().unwrap(), "--listen-datagrams", datagrams.to_str().unwrap()];
        let child = command(place.arguments("append", &[&paths[..], more].concat())).spawn().unwrap();
        eventually("it listens", || stream.exists() && datagrams.exists());
        Listening { child, stream, datagrams }
    }

    fn ask(&self, body: &[u8]) -> Value {
        let mut socket = UnixStream::connect(&self.stream).unwrap();
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        socket.write_all(&[&length, body].concat()).unwrap();
        let mut answer = Value::Null;
        for _ in 0..2 {
            let mut length = [0; 4];
            socket.read_exact(&mut length).unwrap();
            let mut text = vec![0; u32::from_le_bytes(length) as usize];
            socket.read_exact(&mut text).unwrap();
            answer = serde_json::from_slice(&text).unwrap();
        }
        answer
    }

    fn end(self, stop: Signal, code: i32) -> Ran {
        signal(&self.child, stop);
        finish(self.child).exits(code)
    }
}

/// What a listening command prints that has taken everything that there is.
pub(crate) fn listen(place: &Place) -> Ran {
    let listening = Listening::start(place, &["--json", "--stats"]);
    assert_eq!(listening.ask(b"L{\"operation\":\"x\"}\n?\n")["accepted"], 1);
    UnixDatagram::unbound().unwrap().send_to(b"L{\"operation\":\"x\"}", &listening.datagrams).unwrap();
    listening.end(Signal::TERM, exit::SOME_REFUSED)
}

/// Those that are let in leave the log the files that it needs to go on by another path.
#[test]
fn more_clients_than_there_are_descriptors_for_are_refused_at_the_start() {
    let place = Place::new();
    let under = |limit: &str, clients: &str| {
        let stream = place.path("stream.sock");
        let words = place.arguments("append", &["--listen", stream.to_str().unwrap(), "--clients", clients]);
        let limited = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        (command_under(&["sh", "-c", &limited], &words).spawn().unwrap(), stream)
    };
    for (limit, clients, needed) in [("48", "64", "256"), ("199", "36", "200")] {
        let ran = finish(under(limit, clients).0).exits(exit::ENVIRONMENT);
        for told in [&format!("{limit} open files"), &format!("{clients} clients"), needed, "ulimit -n"] {
            assert!(ran.err.contains(told), "{told}: {ran:?}");
        }
    }
    let (child, stream) = under("200", "36");
    eventually("it listens", || stream.exists());
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
}

#[test]
fn it_takes_what_others_send_until_a_signal_and_says_what_it_took() {
    for stop in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let listening = Listening::start(&place, &["--stream", "web", "--subject-from", "actor"]);
        let answer = listening
            .ask(b"L{\"operation\":\"x\",\"actor\":\"ada\"}\n{\"operation\":\"y\",\"stream\":\"own\"}\n");
        assert_eq!(answer, json!({ "batch": 1, "accepted": 2, "refused": 0 }));
        UnixDatagram::unbound().unwrap().send_to(b"M\x81\xa9operation\xa1z", &listening.datagrams).unwrap();
        let (stream, datagrams) = (listening.stream.clone(), listening.datagrams.clone());
        let ran = listening.end(stop, exit::DONE);
        assert_eq!(
            ran.out,
            "3 accepted, 0 refused, 3 committed\nof 1 client in 2 batches, and of 1 datagram\n"
        );
        assert!(ran.err.contains("listening at") && !stream.exists() && !datagrams.exists());
        let entries = place.entries();
        assert_eq!((&entries[0]["subject"], &entries[0]["stream"]), (&json!("ada"), &json!("web")));
        assert_eq!((&entries[1]["subject"], &entries[1]["stream"]), (&Value::Null, &json!("own")));
        assert_eq!((&entries[2]["operation"], &entries[2]["stream"]), (&json!("z"), &json!("web")));
    }
}

#[test]
fn refused_lines_are_told_with_who_sent_them_and_kept() {
    let place = Place::new();
    let rejects = place.path("rejects");
    let listening = Listening::start(&place, &["--rejects", rejects.to_str().unwrap()]);
    let answer = listening.ask(b"L{\"operation\":\"x\"}\nnonsense");
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(1), &json!(1)));
    let ran = listening.end(Signal::TERM, exit::SOME_REFUSED);
    let who =
        format!("process {} of user {}, batch 1:2: ", std::process::id(), rustix::process::getuid().as_raw());
    assert!(ran.err.contains(&who), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(rejects).unwrap(), "nonsense\n");
}

#[test]
fn the_client_of_the_document_works() {
    let place = Place::new();
    let listening = Listening::start(&place, &[]);
    let document = include_str!("../../../../docs/socket.md");
    let program = document.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let program = program.replace("\"audit.sock\"", &format!("{:?}", listening.stream.to_str().unwrap()));
    let output = Command::new("python3").arg("-c").arg(program).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.starts_with("1 durable in the log of "), "{out}{err}");
    listening.end(Signal::TERM, exit::DONE);
    assert_eq!(place.entries()[0]["subject"], "user_42");
}

#[test]
fn who_finds_the_log_open_is_told_of_the_socket() {
    let place = Place::new();
    let listening = Listening::start(&place, &[]);
    let ran = place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::ENVIRONMENT);
    assert!(
        ran.err.contains("another writer has") && ran.err.contains("local socket (`--listen`)"),
        "{}",
        ran.err
    );
    listening.end(Signal::TERM, exit::DONE);
}

const UNIT: &str = include_str!("../../../../packaging/bulla-append.service");

/// The value of a key of the service.
fn unit(key: &str) -> &'static str {
    let found = UNIT.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("the service has no {key}"))
}

#[test]
fn the_service_listens_where_it_says() {
    let start = unit("ExecStart").split(' ').collect::<Vec<_>>();
    let (log, socket) = (start[2], start[4]);
    assert_eq!(start, ["/usr/bin/bulla", "append", log, "--listen", socket, "--listen-mode", "0660"]);
    assert!(log.starts_with(&format!("/var/lib/{}/", unit("StateDirectory"))));
    assert!(socket.starts_with(&format!("/run/{}/", unit("RuntimeDirectory"))));
    // Nobody but its user goes through to the log.
    assert_eq!((unit("StateDirectoryMode"), unit("UMask")), ("0700", "0077"));
    assert!(UNIT.contains(&format!("runuser -u {} -- bulla init {log}", unit("User"))));
    assert_eq!(
        (unit("KillSignal"), unit("SuccessExitStatus")),
        ("SIGTERM", &*exit::SOME_REFUSED.to_string())
    );
    let place = Place::new();
    let stream = place.path("audit.sock");
    let start = || {
        let more = [start[3], stream.to_str().unwrap(), start[5], start[6]];
        let child = command(place.arguments("append", &more)).spawn().unwrap();
        eventually("it listens", || UnixStream::connect(&stream).is_ok());
        child
    };
    // A socket that a killed process left does not keep it from starting again.
    let killed = start();
    signal(&killed, Signal::KILL);
    killed.wait_with_output().unwrap();
    assert!(stream.exists());
    let child = start();
    assert_eq!(std::fs::metadata(&stream).unwrap().permissions().mode() & 0o777, 0o660);
    let listening = Listening { child, stream: stream.clone(), datagrams: place.path("none") };
    assert_eq!(listening.ask(b"L{\"operation\":\"x\"}")["accepted"], 1);
    listening.end(Signal::TERM, exit::DONE);
}

/// What systemd's own tool says of the service: that it knows each line, and how much it may do, from 0 (nothing) to 100 (everything).
#[test]
fn the_service_is_one_that_systemd_knows_and_may_do_little() {
    const MOST: u32 = 10;
    let place = Place::empty();
    let unit = UNIT.replace("/usr/bin/bulla", env!("CARGO_BIN_EXE_bulla"));
    let file = place.path("bulla-append.service");
    std::fs::write(&file, unit).unwrap();
    let ask = |words: &[&str]| Command::new("systemd-analyze").args(words).arg(&file).output();
    let Ok(verified) = ask(&["verify", "--man=no"]) else {
        return not_tested("what systemd says of the service", "systemd-analyze is not here");
    };
    let told = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !told.contains("bulla-append.service"), "{told}");
    let threshold = format!("--threshold={MOST}");
    let asked = ask(&["security", "--offline=yes", "--no-pager", &threshold]).unwrap();
    let told = String::from_utf8_lossy(&asked.stdout);
    if !told.contains("Overall exposure level") {
        return not_tested("how much the service may do", "this systemd-analyze cannot tell it of a file");
    }
    assert!(asked.status.success(), "{told}");
}

#[test]
fn what_does_not_go_together_is_said() {
    let place = Place::new();
    let socket = place.path("audit.sock");
    let socket = socket.to_str().unwrap();
    let some = place.write("some", b"");
    for wrong in [
        &["--listen", socket, "--acks"][..],
        &["--listen", socket, &some],
        &["--actor-from-peer"],
        &["--listen", socket, "--listen-mode", "0888"],
        &["--listen", socket, "--listen-mode", "7777"],
        &["--listen", socket, "--clients", "0"],
        &["--listen", &some],
    ] {
        let ran = place.append(wrong, b"").exits(exit::USAGE);
        assert!(!ran.err.is_empty(), "{wrong:?}");
    }
    assert_eq!(place.info("entries"), 0);
}

/// Who sends says who did it, unless the kernel does: whoever lets others send is told.
#[test]
fn that_others_may_send_whatever_they_like_is_told() {
    let told = "others than this user may send there";
    for (more, is_told) in [
        (&["--listen-mode", "0622"][..], true),
        (&["--listen-mode", "0660"], true),
        (&["--listen-mode", "0644"], false),
        (&[], false),
        (&["--listen-mode", "0622", "--actor-from-peer"], false),
    ] {
        let place = Place::new();
        let path = place.path("log.sock");
        let arguments = [&["--listen-syslog", path.to_str().unwrap(), "--map", "sshd"], more].concat();
        let child = command(place.arguments("append", &arguments)).spawn().unwrap();
        eventually("it listens", || path.exists());
        signal(&child, Signal::TERM);
        let ran = finish(child).exits(exit::DONE);
        assert_eq!(ran.err.contains(told), is_told, "{more:?}: {ran:?}");
    }
}

/// Where no format is named, each socket has its own.
#[test]
fn a_syslog_socket_beside_others_leaves_them_what_they_take() {
    let place = Place::new();
    let [records, datagrams] = ["log.sock", "entries.sock"].map(|name| place.path(name));
    let [log, entries] = [&records, &datagrams].map(|path| path.to_str().unwrap());
    let arguments = place.arguments("append", &["--listen-syslog", log, "--listen-datagrams", entries]);
    let child = command(arguments).spawn().unwrap();
    eventually("it listens", || records.exists() && datagrams.exists());
    let send = |message: &[u8], to| UnixDatagram::unbound().unwrap().send_to(message, to).unwrap();
    send(b"<38>Nov  6 01:00:00 sshd[12]: Accepted publickey", &records);
    send(b"L{\"operation\":\"read\",\"actor\":\"ada\"}\n", &datagrams);
    signal(&child, Signal::TERM);
    let ran = finish(child).exits(exit::DONE);
    assert!(ran.out.starts_with("2 accepted, 0 refused, 2 committed\n"), "{}", ran.out);
    let operations = place
        .entries()
        .iter()
        .map(|entry| entry["operation"].as_str().unwrap().to_owned())
        .collect::<BTreeSet<_>>();
    assert_eq!(operations, ["message", "read"].map(str::to_owned).into());
}

#[test]
fn what_programs_send_to_a_syslog_socket_is_an_entry_each() {
    let place = Place::new();
    let path = place.path("log.sock");
    let socket = path.to_str().unwrap();
    let arguments = place.arguments("append", &["--listen-syslog", socket, "--actor-from-peer"]);
    let child = command(arguments).spawn().unwrap();
    eventually("it listens", || path.exists());
    let send = |message: &[u8]| UnixDatagram::unbound().unwrap().send_to(message, &path).unwrap();
    send(b"<38>Nov  6 01:00:00 sshd[12]: Accepted publickey for ada from 192.0.2.7 port 5 ssh2\n\0");
    send(b"<165>1 2003-10-11T22:14:15.003Z host su 8 ID47 [a@1 b=\"c\"] two\nlines");
    send(b"neither");
    send(b"\n");
    // The tool that everybody has, as it writes both.
    for more in [&["--rfc3164"][..], &["--rfc5424"]] {
        let logger = ["--socket", socket, "--tag", "backup", "--id", "it's done: \u{e4}"];
        assert!(Command::new("logger").args(more).args(logger).status().unwrap().success());
    }
    signal(&child, Signal::TERM);
    let ran = finish(child).exits(exit::SOME_REFUSED);
    assert_eq!(
        ran.out,
        "4 accepted, 2 refused, 4 committed\nof 0 clients in 0 batches, and of 6 datagrams\n"
    );
    assert!(ran.err.contains("batch 4:1: the line is empty"), "{}", ran.err);
    let entries = place.entries();
    let payload = |index: usize| -> Value {
        assert_eq!(entries[index]["operation"], "message");
        assert_eq!(entries[index]["actor"], format!("uid:{}", rustix::process::getuid().as_raw()));
        serde_json::from_str(entries[index]["payload"].as_str().unwrap()).unwrap()
    };
    assert_eq!(payload(0)["message"], "Accepted publickey for ada from 192.0.2.7 port 5 ssh2");
    assert_eq!(
        (&payload(1)["message"], &entries[1]["time"]),
        (&json!("two\nlines"), &json!("2003-10-11T22:14:15.003Z"))
    );
    for index in [2, 3] {
        let payload = payload(index);
        assert_eq!((&payload["app"], &payload["message"]), (&json!("backup"), &json!("it's done: \u{e4}")));
    }
}
