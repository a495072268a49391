//! `append --listen`: entries of other processes.

use crate::support::{Place, Ran, command, eventually, exit, finish, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
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
        assert_eq!(ran.out, "3 accepted, 0 refused, 3 committed\nof 1 client in 2 batches\n");
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
