//! Commands beside a writer that runs: what they change, it does.

use crate::interrupt::waiting;
use crate::support::{
    Place, arguments, bulla, command, command_under, eventually, exit, finish, lines, parse_lines, signal,
};
use bulla::Configure;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;

/// A new identity's file, and its recipient.
fn new_identity(place: &Place) -> (String, String) {
    let path = place.path("new.age").into_os_string().into_string().unwrap();
    let made = place.run("keys", &["new-identity", "-o", &path]).exits(exit::DONE);
    (path, made.out.trim_end().to_owned())
}

/// The locations of the entries that an identity reads, of those asked for.
fn reads(place: &Place, identity: &str, entries: &str) -> Option<usize> {
    let ran = place.run("export", &["--identity", identity, "--entries", entries]);
    match ran.code {
        exit::REFUSED => None,
        _ => Some(ran.exits(exit::DONE).out.lines().count()),
    }
}

/// Listens as the writer does, tells who it is, and carries out `asked` in the place of an answer to what it is asked after that.
fn answers_nothing_more(place: &Place, asked: impl FnOnce() + Send) {
    let listener = UnixListener::bind(place.keys("control.sock")).unwrap();
    let receive = |socket: &mut UnixStream| {
        let mut length = [0; 4];
        socket.read_exact(&mut length).unwrap();
        let mut message = vec![0; u32::from_le_bytes(length) as usize];
        socket.read_exact(&mut message).unwrap();
        serde_json::from_slice::<Value>(&message).unwrap()
    };
    let (mut socket, _) = listener.accept().unwrap();
    let request = receive(&mut socket);
    assert_eq!(request["message"], "status");
    let status = json!({ "log": place.info("id"), "origin": "x", "process": 1, "acknowledged": 0 });
    let answer = json!({ "version": request["version"], "message": { "answer": { "status": status } } });
    let answer = answer.to_string();
    socket.write_all(&u32::try_from(answer.len()).unwrap().to_le_bytes()).unwrap();
    socket.write_all(answer.as_bytes()).unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    receive(&mut socket);
    std::fs::remove_file(place.keys("control.sock")).unwrap();
    asked();
}

/// A writer that is killed between the two leaves the same.
#[test]
fn what_a_writer_did_before_it_went_without_an_answer_is_not_said_to_be_no_change() {
    let (_, recipient) = new_identity(&Place::empty());
    let unclear = json!({ "changed": null, "recorded": null });
    let add = ["add-recipient", &recipient];
    for did in [true, false] {
        for json in [true, false] {
            let place = Place::new();
            let ran = std::thread::scope(|scope| {
                let configure = Configure::default().add_recipients([&recipient]).unwrap();
                let log = place.audit();
                let asked = move || {
                    if did {
                        configure.apply(log).unwrap();
                    }
                };
                let listening = scope.spawn(|| answers_nothing_more(&place, asked));
                eventually("it listens", || place.keys("control.sock").exists());
                let ran = place.run("keys", &[&add[..], if json { &["--json"] } else { &[] }].concat());
                listening.join().unwrap();
                ran.exits(exit::DONE)
            });
            match (did, json) {
                (true, true) => assert_eq!(ran.json(), unclear),
                (true, false) => assert!(ran.out.contains("may have changed it"), "{ran:?}"),
                // Then this command did it.
                (false, true) => assert_eq!(ran.json(), json!({ "changed": true, "recorded": true })),
                (false, false) => assert!(ran.out.starts_with("added, and recorded"), "{ran:?}"),
            }
            assert!(place.info("recipients").as_array().unwrap().contains(&json!(recipient)));
        }
    }
    // Nor does an error hide that it may be done.
    let place = Place::new();
    let ran = std::thread::scope(|scope| {
        let listening = scope.spawn(|| answers_nothing_more(&place, || ()));
        eventually("it listens", || place.keys("control.sock").exists());
        let ran = place.run("keys", &["remove-recipient", &recipient]);
        listening.join().unwrap();
        ran.exits(exit::REFUSED)
    });
    for told in ["may have changed it: ", "is no recipient of this log"] {
        assert!(ran.err.contains(told), "{ran:?}");
    }
}

#[test]
fn a_writer_takes_recipients_on_and_off_and_rotates() {
    let place = Place::new();
    let owner = place.keys("identity.age").into_os_string().into_string().unwrap();
    let (new, recipient) = new_identity(&place);
    let (child, stdin) = waiting(&place, &[], Stdio::piped());
    assert_eq!(place.info("writer"), json!(child.id()));
    let told = place.run("info", &[]).exits(exit::DONE).out;
    assert!(told.contains(&format!("process {} has it open", child.id())), "{told}");
    let (mut child, mut stdin) = (Some(child), Some(stdin));

    let added = place.run("keys", &["add-recipient", &recipient, "--json"]).exits(exit::DONE);
    assert_eq!((added.json(), &*added.err), (json!({ "changed": true, "recorded": true }), ""));
    let more = |range: std::ops::Range<u32>, total: u64| {
        stdin.as_ref().unwrap().write_all(&lines(range)).unwrap();
        eventually("they are committed", || place.info("entries") == total);
    };
    more(1000..2000, 2000);
    let recipients = place.info("recipients");
    let set = ["set", "log.recipients", recipients[0].as_str().unwrap(), "--json"];
    let removed = place.run("config", &set).exits(exit::DONE).json();
    assert_eq!(removed, json!({ "changed": true, "recorded": true, "live": true }));
    more(2000..3000, 3000);
    let rotated = place.run("keys", &["rotate", "--json"]).exits(exit::DONE).json();
    more(3000..3100, 3100);
    assert!(rotated["epoch"].as_u64().unwrap() < place.info("tree_size").as_u64().unwrap());

    for running in [true, false] {
        assert_eq!(reads(&place, &owner, "0..3099"), Some(3100), "{running}");
        assert_eq!(reads(&place, &new, "1000..1999"), Some(1000), "{running}");
        for entries in ["0..999", "999..1000", "1999..2000", "2000..2999", "3000..3099"] {
            assert_eq!(reads(&place, &new, entries), None, "{entries} {running}");
        }
        drop(stdin.take());
        if let Some(child) = child.take() {
            let ran = finish(child).exits(exit::DONE);
            assert!(ran.out.starts_with("3100 accepted, 0 refused, 3100 committed\n"), "{ran:?}");
        }
    }
    assert!(!place.keys("control.sock").exists());
    place.run("verify", &[]).exits(exit::DONE);
    assert_eq!(place.info("writer"), json!(null));
}

#[test]
fn an_export_is_recorded_with_a_writer_and_without_one() {
    let place = Place::empty();
    bulla(arguments!["init", place.audit(), "--erasure", "off"]).exits(exit::DONE);
    let (child, stdin) = waiting(&place, &[], Stdio::piped());
    let out = place.path("out.jsonl").into_os_string().into_string().unwrap();
    let arguments = ["--subject", "s1", "--prefix", "location=key/", "--record", "-o", &out];
    place.run("export", &arguments).exits(exit::DONE);
    assert_eq!(parse_lines(&std::fs::read_to_string(&out).unwrap()).len(), 100);
    drop(stdin);
    finish(child).exits(exit::DONE);
    place.run("export", &["--record", "--format", "csv"]).exits(exit::DONE);
    place.run("export", &[]).exits(exit::DONE);

    let segment = String::from_utf8_lossy(&std::fs::read(place.segment()).unwrap()).into_owned();
    let said = segment.match_indices("{\"event\":\"exported\"").map(|(at, _)| {
        let end = segment[at..].find('}').unwrap();
        serde_json::from_str(&segment[at..=at + end]).unwrap()
    });
    assert_eq!(
        said.collect::<Vec<serde_json::Value>>(),
        [
            json!({ "event": "exported", "entries": 100, "filters": ["subject", "location"], "format": "jsonl" }),
            json!({ "event": "exported", "entries": 1000, "filters": [], "format": "csv" }),
        ]
    );
    place.run("verify", &[]).exits(exit::DONE);

    // What cannot be recorded is not given out.
    std::fs::rename(place.path("audit.keys"), place.path("elsewhere")).unwrap();
    let identity = place.path("elsewhere/identity.age").into_os_string().into_string().unwrap();
    std::fs::remove_file(&out).unwrap();
    let refused = place.run("export", &["--identity", &identity, "--record", "-o", &out]);
    refused.exits(exit::ENVIRONMENT);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn a_writer_that_was_killed_is_in_nobody_s_way() {
    let place = Place::new();
    let (mut child, _stdin) = waiting(&place, &[], Stdio::null());
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert!(place.keys("control.sock").exists(), "nobody took it away");
    assert_eq!(place.info("writer"), json!(null));
    let (_, recipient) = new_identity(&place);
    place.run("keys", &["rotate"]).exits(exit::DONE);
    place.run("keys", &["add-recipient", &recipient]).exits(exit::DONE);
    assert!(!place.keys("control.sock").exists());
    let mut child = command(place.arguments("append", &[])).stdin(Stdio::piped()).spawn().unwrap();
    eventually("it listens again", || place.info("writer") == json!(child.id()));
    drop(child.stdin.take());
    finish(child).exits(exit::DONE);
    place.run("verify", &[]).exits(exit::DONE);
    assert_eq!(place.entries().len(), 1000);
}

/// A log ends though every write to what wakes the threads of its socket would fail.
#[test]
fn closing_waits_for_nobody_who_cannot_be_woken() {
    let place = Place::new();
    let input = place.write("input", &lines(0..10));
    let strace = [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "inject=write:error=EIO",
        "-P",
        "anon_inode:[eventfd]",
    ];
    let child = command_under(&strace, &place.arguments("append", &[&input])).spawn();
    finish(child.expect("this test needs strace: `apt-get install strace`")).exits(exit::DONE);
}
