//! `bulla anchor --check`: an anchor holds of the log that it is of and of none that was rewritten since, with the keys of both alone.

use crate::support::{Place, bulla, command, exit, finish, lines};
use bulla::keys::signing::SigningKey;
use bulla_proof::proof::{Anchor, Envelope};
use bulla_proof::{Checkpoint, sha256, sign_checkpoint, tree};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;

/// An anchor of the log's checkpoint in a log of one entry, and that log's key.
pub(crate) fn anchored(place: &Place) -> (String, String) {
    anchored_note(place, &fs::read(place.audit().join("checkpoint")).unwrap())
}

/// The same of any checkpoint of the log.
pub(crate) fn anchored_note(place: &Place, note: &[u8]) -> (String, String) {
    let log = SigningKey::parse(&fs::read_to_string(place.keys("signing.key")).unwrap()).unwrap();
    let envelope = Envelope::sign(note, |bytes| log.sign(bytes)).unwrap();
    let request: Value = serde_json::from_str(&envelope.request(log.verifier())).unwrap();
    let (head, rekor) = recorded(&request, note);
    let anchor = Anchor::new(envelope, 0, vec![], head.as_bytes()).unwrap();
    (place.write("audit.anchor", anchor.render().as_bytes()), rekor)
}

/// The tree head of a Rekor whose one entry is what this request asks for, of the checkpoint `note`, and its key. The entry is canonical JSON,
/// as Rekor makes it.
fn recorded(request: &Value, note: &[u8]) -> (String, String) {
    let request = &request["dsseRequestV002"];
    let entry = serde_json::json!({ "apiVersion": "0.0.2", "kind": "dsse", "spec": { "dsseV002": {
        "payloadHash": { "algorithm": "SHA2_256", "digest": sha256(&[note]).to_base64() },
        "signatures": [{
            "content": request["envelope"]["signatures"][0]["sig"],
            "verifier": { "keyDetails": "PKIX_ED25519", "publicKey": request["verifiers"][0]["publicKey"] },
        }],
    } } });
    let rekor = SigningKey::from_seed("rekor.example", &[8; 32]).unwrap();
    let head = Checkpoint::new("rekor.example", 1, tree::leaf_hash(entry.to_string().as_bytes()));
    (sign_checkpoint(&head, rekor.verifier(), |text| rekor.sign(text)), rekor.verifier().to_string())
}

/// Answers one request for an anchor of the log's checkpoint with this status, and, where that is of success, the entry; before that `first` is done.
fn answer(listener: &TcpListener, note: &[u8], status: &str, first: impl FnOnce()) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(&stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.to_ascii_lowercase().trim().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().unwrap(),
            Some(_) => {}
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    first();
    let (head, _) = recorded(&serde_json::from_slice(&body).unwrap(), note);
    let entry = serde_json::json!({
        "logIndex": "0", "inclusionProof": { "hashes": [], "checkpoint": { "envelope": head } },
    });
    let body = if status.starts_with("20") { entry.to_string() } else { "unwell".to_owned() };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    (&stream).write_all((head + &body).as_bytes()).unwrap();
}

/// A Rekor gives an anchor once.
#[test]
fn no_anchor_is_asked_for_without_a_place_for_it_and_none_is_lost() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let note = fs::read(place.audit().join("checkpoint")).unwrap();
    let rekor = SigningKey::from_seed("rekor.example", &[8; 32]).unwrap().verifier().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let path = |name: &str| place.path(name).into_os_string().into_string().unwrap();
    let words = |output: &str, more: &[&str]| {
        place.arguments("anchor", &[&["--rekor", &url, "--rekor-key", &rekor, "-o", output], more].concat())
    };

    let ran = bulla(words(&path("nowhere/x.anchor"), &[])).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("nowhere/x.anchor: No such file"), "{ran:?}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody was asked");
    listener.set_nonblocking(false).unwrap();

    let asked = |output: &str, more: &[&str], status: &str, first: &dyn Fn()| {
        let child = command(words(output, more)).spawn().unwrap();
        answer(&listener, &note, status, first);
        finish(child)
    };
    let (file, taken, none) = (path("x.anchor"), path("taken.anchor"), || ());
    let ran = asked(&file, &[], "500 Internal Server Error", &none).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("answered 500"), "{ran:?}");
    asked(&file, &[], "409 Conflict", &none).exits(exit::REFUSED);
    assert!(!Path::new(&file).exists());
    asked(&file, &[], "201 Created", &none).exits(exit::DONE);
    let anchor = fs::read_to_string(&file).unwrap();

    // Its name is taken meanwhile.
    let take = || fs::write(&taken, "kept").unwrap();
    let ran = asked(&taken, &[], "201 Created", &take).exits(exit::ENVIRONMENT);
    assert!(ran.out == anchor && ran.err.contains("went to standard output"), "{ran:?}");
    fs::remove_file(&taken).unwrap();
    let ran = asked(&taken, &["--json"], "201 Created", &take).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains(anchor.trim_end()) && ran.json()["error"].is_string(), "{ran:?}");
    assert_eq!(fs::read_to_string(&taken).unwrap(), "kept");
    let left = fs::read_dir(place.path("")).unwrap().map(|item| item.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_str().unwrap().ends_with(".tmp")));
}

#[test]
fn an_anchor_is_checked_offline() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let (file, rekor) = anchored(&place);
    let check = |rekor: &str| place.run("anchor", &["--check", &file, "--rekor-key", rekor]);
    // Of the log as it was, and of what it grew to.
    for _ in 0..2 {
        let ran = check(&rekor).exits(exit::DONE);
        assert!(ran.err.contains("stands at index 0 of rekor.example"), "{ran:?}");
        // Whose log it is the log itself cannot say.
        assert!(
            ran.err.contains("self-consistent; without --key nobody can say") && !ran.err.contains("ok:"),
            "{ran:?}"
        );
        let words = ["--check", &file, "--rekor-key", &rekor, "--json"];
        assert_eq!(place.run("anchor", &words).exits(exit::DONE).json()["anchored"], false);
        let key = place.verifier_key();
        let ran = place.run("anchor", &[&words[..4], &["--key", &key]].concat()).exits(exit::DONE);
        assert!(ran.err.contains(&format!("ok: signed by {key}")), "{ran:?}");
        assert_eq!(place.run("anchor", &[&words[..], &["--key", &key]].concat()).json()["anchored"], true);
        place.append(&[], &lines(10..20)).exits(exit::DONE);
    }
    // Another implementation, from the format's document alone.
    let second = |log: &Place, rekor: &str| {
        let mut reader = bulla_testkit::second_reader("anchor");
        reader.args(["--vkey", &place.verifier_key(), "--rekor-vkey", rekor, &file, "--log"]);
        reader.arg(log.audit()).output().unwrap()
    };
    let told: serde_json::Value = serde_json::from_slice(&second(&place, &rekor).stdout).unwrap();
    assert_eq!((&told["rekor"], &told["index"]), (&"rekor.example".into(), &0.into()));
    for refused in [second(&place, &place.verifier_key()), second(&Place::new(), &rekor)] {
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{refused:?}");
    }
    let another = check(&place.verifier_key());
    assert!(another.exits(exit::VIOLATION).err.contains("the key has not signed the note"));

    let other = Place::new();
    other.append(&[], &lines(0..10)).exits(exit::DONE);
    let ran = other.run("anchor", &["--check", &file, "--rekor-key", &rekor]);
    assert!(ran.exits(exit::VIOLATION).err.contains("the older checkpoint"));
    // It holds of the log that has the key, and not of this one.
    let key = place.verifier_key();
    let ran = other.run("anchor", &["--check", &file, "--rekor-key", &rekor, "--key", &key]);
    assert!(ran.exits(exit::VIOLATION).err.contains("it is of"));

    fs::write(&file, "bulla-event-v1\n").unwrap();
    assert!(check(&rekor).exits(exit::USAGE).err.contains("is no anchor"));
}

#[test]
fn nothing_is_sent_in_clear_to_another_machine_and_nothing_is_overwritten() {
    let place = Place::new();
    let rekor = SigningKey::from_seed("rekor.example", &[8; 32]).unwrap().verifier().to_string();
    let file = place.path("new.anchor").into_os_string().into_string().unwrap();
    let anchor = |url: &str| place.run("anchor", &["--rekor", url, "--rekor-key", &rekor, "-o", &file]);
    anchor("http://192.0.2.1").exits(exit::USAGE);
    assert!(!place.path("new.anchor").exists());
    place.write("new.anchor", b"kept");
    assert!(anchor("https://rekor.example").exits(exit::USAGE).err.contains("is there already"));
}
