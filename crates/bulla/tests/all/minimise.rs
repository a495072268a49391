//! Rules for fields: what they take away is in no file, no block and no export, on whatever path it was appended.

use crate::workshop::Workshop;
use bulla::environment::{AesGcm, Cipher, Environment, apply_key_stream};
use bulla::keys::recipients::IdentityFile;
use bulla::store::Store;
use bulla::{Entry, Export, Init, Log, Options, Result};
use bulla_testkit::Memory;
use serde_json::Value;
use std::sync::{Arc, Mutex};

const RULES: [(&str, &str); 11] = [
    ("location", "strip-query"),
    ("controller", "pseudonymise"),
    ("processor", "drop"),
    ("purpose", "drop"),
    ("actor", "pseudonymise"),
    ("client", "truncate-ip:16/32"),
    ("stream", "drop"),
    ("status", "drop"),
    ("duration", "drop"),
    ("flags", "drop"),
    ("payload", "cap:4"),
];

/// What is in the entry and shall be nowhere, and what is kept.
const SECRETS: [&str; 9] = [
    "secret-query",
    "secret-fragment",
    "secret-controller",
    "secret-processor",
    "secret-purpose",
    "secret-actor",
    "13.234",
    "secret-stream",
    "secret-payload",
];
const KEPT: [&str; 5] = ["write", "/kept-path", "kept-subject", "203.0.", "kept"];

fn entry() -> Entry<'static> {
    let entry = Entry::new("write", "/kept-path?a=secret-query#secret-fragment").subject("kept-subject");
    let entry = entry.controller("secret-controller").processor("secret-processor").purpose("secret-purpose");
    let entry = entry.actor("secret-actor").client("203.0.13.234:50123").stream("secret-stream");
    entry.status(4).duration(5).size(6).flags(7).payload("kept secret-payload")
}

/// AES-GCM that remembers what it encrypts: blocks, and parts of the index.
#[derive(Default)]
struct Recorder(Mutex<Vec<u8>>);

impl Cipher for Recorder {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        self.0.lock().unwrap().extend_from_slice(text);
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }

    fn seal_group(&self, key: &[u8; 32], text: &mut [u8]) -> Result<()> {
        self.0.lock().unwrap().extend_from_slice(text);
        apply_key_stream(key, text);
        Ok(())
    }
}

/// Every file below, one after the other.
fn files(store: &Memory, directory: &str, into: &mut Vec<u8>) {
    for item in store.list(directory).unwrap() {
        let path = if directory.is_empty() { item.name } else { format!("{directory}/{}", item.name) };
        match item.directory {
            true => files(store, &path, into),
            false => into.extend(read(store, &path)),
        }
    }
}

fn read(store: &Memory, path: &str) -> Vec<u8> {
    let file = store.open(path).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// All that is written of the entry with these rules: the files, what was encrypted, and the export.
fn written(rules: &[(&str, &str)]) -> [Vec<u8>; 3] {
    let (store, keys) = (Memory::new(), Memory::new());
    let init =
        rules.iter().fold(Init::default().erasure(false), |init, (field, rule)| init.field(*field, *rule));
    init.create_in(&store, &keys, &Environment::default()).unwrap();
    let recorder = Arc::new(Recorder::default());
    let environment = Environment { cipher: recorder.clone(), ..Environment::default() };
    let stores = (Arc::new(store.clone()), Arc::new(keys.clone()));
    let log = Log::open_stores(stores.0, stores.1, Options::default().compression(0), environment).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&entry()).unwrap();
    producer.try_append(&entry()).unwrap();
    producer.append_batch(&[entry(), entry()]).unwrap();
    drop(producer);
    log.close().unwrap();

    let mut all = Vec::new();
    files(&store, "", &mut all);
    files(&keys, "", &mut all);
    let sealed = recorder.0.lock().unwrap().clone();
    let identity = String::from_utf8(read(&keys, "identity.age")).unwrap();
    let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
    let mut exported = Vec::new();
    let export = Export::open_store(Arc::new(store)).unwrap().identity(identity);
    assert_eq!(export.run(&mut exported).unwrap().entries, 4);
    [all, sealed, exported]
}

#[test]
fn what_a_rule_takes_away_is_nowhere() {
    let [files, sealed, exported] = written(&RULES);
    for secret in SECRETS {
        assert!(!has(&files, secret) && !has(&sealed, secret) && !has(&exported, secret), "{secret}");
    }
    for kept in KEPT {
        assert!(!has(&files, &format!("{kept}-")) && has(&sealed, kept) && has(&exported, kept), "{kept}");
    }
    let lines = String::from_utf8(exported).unwrap();
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let first = lines.next().unwrap();
    let names = first.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>();
    let left = [
        "actor",
        "client",
        "controller",
        "entry",
        "location",
        "operation",
        "payload",
        "size",
        "subject",
        "time",
    ];
    assert_eq!(names, left);
    for line in lines {
        for name in left.iter().filter(|name| !["entry", "time"].contains(name)) {
            assert_eq!(line[name], first[name], "on every way in");
        }
    }

    // Without rules all of it is found, so this can fail.
    let [files, sealed, exported] = written(&[]);
    for secret in SECRETS {
        assert!(!has(&files, secret) && has(&sealed, secret) && has(&exported, secret), "{secret}");
    }
}

#[test]
fn rows_that_fit_no_buffer_and_those_at_its_end_are_minimised_too() {
    let workshop = Workshop::with_rules(&[("actor", "drop"), ("client", "truncate-ip:24/64")]);
    let log = workshop.open(Options::default().memory(64 << 20));
    let mut producer = log.producer().unwrap();
    let payload = vec![b'x'; 8 << 20];
    let entry = || Entry::new("read", "a").actor("alice").client("host.example.com");
    for _ in 0..50_000 {
        producer.append(&entry()).unwrap();
    }
    producer.append(&entry().payload(&payload)).unwrap();
    producer.try_append(&entry()).unwrap();
    producer.append_batch(&vec![entry(); 50_000]).unwrap();
    producer.flush().unwrap().durable().unwrap();
    assert_eq!(log.not_addresses(), 100_002);
    producer.append(&entry().client("192.0.2.1")).unwrap();
    producer.append(&entry()).unwrap();
    drop(producer);
    assert_eq!(log.not_addresses(), 100_003);
    log.close().unwrap();
    let mut exported = Vec::new();
    assert_eq!(workshop.export().run(&mut exported).unwrap().entries, 100_004);
    assert!(!has(&exported, "alice") && !has(&exported, "host.example.com") && has(&exported, "192.0.2.0"));
}

/// The limits are the entry's, whatever is logged of it: so what is refused does not depend on the rules.
#[test]
fn a_field_that_breaks_a_limit_is_refused_though_it_would_be_dropped() {
    let workshop = Workshop::with_rules(&[("actor", "drop"), ("payload", "cap:1")]);
    let log = workshop.open(Options::default());
    let mut producer = log.producer().unwrap();
    let (long, payload) = ("x".repeat(65_537), vec![0; (16 << 20) + 1]);
    let entries = [Entry::new("read", "a").actor(&long), Entry::new("read", "a").payload(&payload)];
    for entry in entries {
        assert!(producer.append(&entry).unwrap_err().to_string().contains("is longer than"));
        let error = producer.append_batch(&[Entry::new("read", "a"), entry]).unwrap_err();
        assert_eq!(error.staged, 0);
    }
    producer.append(&Entry::new("read", "a").actor(&long[..65_536])).unwrap();
    drop(producer);
    log.close().unwrap();
    assert_eq!(workshop.export().run(&mut Vec::new()).unwrap().entries, 1);
}
