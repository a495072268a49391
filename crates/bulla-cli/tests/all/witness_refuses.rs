//! What a witness has against a log, and that witnesses of this machine are asked whatever the system believes.

use crate::support::{Place, Ran, arguments, bulla, command, copy, eventually, exit, finish, signal};
use crate::witness::{Cosigner, info};
use rustix::process::Signal;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

const ENTRY: &[u8] = b"{\"operation\":\"x\"}\n";

/// A log that its witness has seen go further than its copy beside it, `copy`; the witness serves.
fn with_a_copy_that_is_behind(cosigner: &Cosigner) -> (Place, std::process::Child) {
    let place = Place::empty();
    place.run("init", &["--witness-policy", &cosigner.policy(&place)]).exits(exit::DONE);
    cosigner.configure("ed25519", &place.verifier_key());
    let child = cosigner.start();
    place.append(&[], ENTRY).exits(exit::DONE);
    copy(&place.audit(), &place.path("copy"));
    copy(&place.path("audit.keys"), &place.path("copy.keys"));
    for _ in 0..3 {
        place.append(&[], ENTRY).exits(exit::DONE);
    }
    (place, child)
}

/// What `bulla info` says of the witness of the copy, if it says that it refuses it.
fn refusal(place: &Place) -> Option<String> {
    let refusal = info(&place.path("copy"))["witnesses"][0]["refusal"]["why"].clone();
    refusal.as_str().map(str::to_owned)
}

fn is_refused(ran: &Ran) {
    let refusing = ran.err.lines().find(|line| line.contains("Stop writing to it")).unwrap_or_default();
    assert!(refusing.contains("the witness `w`") && refusing.contains("refuses this log"), "{}", ran.err);
    assert!(refusing.contains("was put back to an earlier time"), "{refusing}");
    let witness = &ran.json()["stats"]["witnesses"][0];
    assert_eq!((&witness["name"], &witness["refuses"]), (&"w".into(), &true.into()), "{witness}");
}

#[test]
fn a_refusal_is_told_whatever_else_fails_until_the_witness_cosigns() {
    let cosigner = Cosigner::new("ed25519");
    let (place, child) = with_a_copy_that_is_behind(&cosigner);
    let words = arguments!["append", place.path("copy"), "--stats", "--json"];
    let mut writer = command(&words).stdin(Stdio::piped()).spawn().unwrap();
    writer.stdin.as_mut().unwrap().write_all(ENTRY).unwrap();
    eventually("the copy is refused", || refusal(&place).is_some());
    signal(&child, Signal::KILL);
    child.wait_with_output().unwrap();
    // Asked once more when it is closed, it does not answer: that mends nothing.
    writer.stdin.as_mut().unwrap().write_all(ENTRY).unwrap();
    is_refused(&finish(writer).exits(exit::DONE));
    // Nor does another writer, which the witness has never answered.
    let ran = bulla(arguments!["append", place.path("copy"), "--stats", "--json", "/dev/null"]);
    is_refused(&ran.exits(exit::DONE));
    assert!(refusal(&place).is_some());
}

#[test]
fn what_the_key_directory_says_no_more_is_told() {
    let cosigner = Cosigner::new("ed25519");
    let (place, child) = with_a_copy_that_is_behind(&cosigner);
    bulla(arguments!["append", place.path("copy"), "/dev/null"]).exits(exit::DONE);
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
    assert!(refusal(&place).is_some());
    let file = place.path("copy.keys").join("witness.refusals");
    let whole = fs::read_to_string(&file).unwrap();
    for damaged in
        ["", "bulla witness refusals v9\n", &whole.replacen('\n', "\nx", 1), &whole[..whole.len() / 2]]
    {
        fs::write(&file, damaged).unwrap();
        let failures = &info(&place.path("copy"))["keys_failures"];
        assert!(
            failures[0].as_str().unwrap().contains("witness.refusals is damaged"),
            "{damaged}: {failures}"
        );
        let text = bulla(arguments!["info", place.path("copy")]).exits(exit::DONE).out;
        assert!(text.contains("witness.refusals is damaged"), "{damaged}: {text}");
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(info(&place.path("copy")).get("keys_failures"), None);
    fs::remove_file(&file).unwrap();
    assert_eq!(info(&place.path("copy")).get("keys_failures"), None);
}

#[test]
fn a_witness_of_this_machine_is_asked_on_a_system_that_believes_no_authority() {
    let cosigner = Cosigner::new("ed25519");
    let place = Place::empty();
    let far = Cosigner::named("ed25519", "w.example/far");
    let policy = format!(
        "witness near {} http://{}\nwitness far {} https://127.0.0.1:1\ngroup any any near far\nquorum any\n",
        cosigner.vkey, cosigner.address, far.vkey
    );
    let policy = place.write("policy.txt", policy.as_bytes());
    place.run("init", &["--witness-policy", &policy]).exits(exit::DONE);
    cosigner.configure("ed25519", &place.verifier_key());
    let child = cosigner.start();
    let words = arguments!["append", place.audit(), "--stats", "--json"];
    let mut writer = command(&words);
    writer.env("SSL_CERT_FILE", "/nonexistent").env("SSL_CERT_DIR", "/nonexistent");
    let mut writer = writer.stdin(Stdio::piped()).spawn().unwrap();
    writer.stdin.as_mut().unwrap().write_all(ENTRY).unwrap();
    let ran = finish(writer).exits(exit::DONE);
    let witnesses = &info(&place.audit())["witnesses"];
    assert_eq!(witnesses[0]["frames"], info(&place.audit())["tree_size"], "{}", ran.err);
    let far = ran.json()["stats"]["witnesses"][1]["failure"].as_str().unwrap().to_owned();
    assert!(far.contains("no authorities"), "{far}");
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
}
