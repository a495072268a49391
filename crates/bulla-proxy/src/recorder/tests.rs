//! What an entry says that has no field of its own, and what is told of entries that the log did not take.

use super::*;
use crate::command::{Access, CommandTable};
use crate::config::Config;
use crate::session::{Context, Session, Stage, Status, Values};
use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::keys::recipients::IdentityFile;
use bulla::{Init, Log, OnFailure, Options, Query, Reader, Result};
use bulla_proof::entry::MAX_STRING;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn operation() -> Operation<'static> {
    Operation {
        target: Target::Server(None),
        subject: None,
        status: Status::Done,
        error: None,
        command: "config|set",
        database: 3,
        size: None,
        duration: None,
        client: "192.0.2.1:1",
        actor: "ada",
        purpose: Some("a \"why\"\n\\"),
        name: Some("w\u{7f}eb"),
        name_is_cut: false,
        certificate: None,
        stage: Stage::Over,
        values: Values::None,
    }
}

fn described(operation: &Operation<'_>, claims_count: bool) -> serde_json::Value {
    let mut text = String::new();
    payload::describe(operation, claims_count, None, &mut text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_payload_is_json_whatever_clients_say() {
    let claimed = described(&operation(), false);
    let expected = serde_json::json!({
        "command": "config|set", "database": 3, "claimed_name": "w\u{7f}eb", "claimed_purpose": "a \"why\"\n\\",
    });
    assert_eq!(claimed, expected);
    let counts = described(&Operation { error: Some("OOM"), stage: Stage::Begun, ..operation() }, true);
    let expected = serde_json::json!({
        "command": "config|set", "database": 3, "error": "OOM", "name": "w\u{7f}eb", "stage": "begun",
    });
    assert_eq!(counts, expected);
    let cut =
        described(&Operation { name: Some("web"), name_is_cut: true, purpose: None, ..operation() }, true);
    let expected = serde_json::json!({
        "command": "config|set", "database": 3, "name": "web", "name_cut": true,
    });
    assert_eq!(cut, expected);
    let target = Target::Unknowable(Unknowable::TooMany, Some(b"ab12"));
    let unknowable = described(&Operation { target, purpose: None, name: None, ..operation() }, false);
    let expected = serde_json::json!({
        "command": "config|set", "database": 3, "unknowable": "too_many", "script": "ab12",
    });
    assert_eq!(unknowable, expected);
}

/// AES-GCM that refuses to seal while it is told to, so that the log loses the block.
#[derive(Default)]
struct Refusing(AtomicBool);

impl Cipher for Refusing {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(Error::unavailable("the cipher refuses, as the test wants it")),
            false => AesGcm.seal(key, frame, additional, text),
        }
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

fn log_on(machine: &Faults, environment: Environment) -> Log {
    let (log, keys) = (machine.store("audit"), machine.store("keys"));
    Init::default().erasure(false).create_in(&log, &keys, &Environment::default()).unwrap();
    Log::open_stores(Arc::new(log), Arc::new(keys), Options::default(), environment).unwrap()
}

fn recording(counters: &Arc<Counters>) -> Recording {
    Recording {
        rules: Rules::new(Vec::new(), None, [0; 32]),
        learned: Arc::new(Learned::new(1 << 20)),
        unrecordable: Unrecordable::Refuse,
        claims: Vec::new(),
        record_values: None,
        counters: counters.clone(),
        warnings: Arc::new(Warnings::new(Arc::new(|_, _| {}))),
    }
}

#[test]
fn what_one_entry_alone_is_refused_for_is_told_and_counts_as_told_once_that_is_durable() {
    let (machine, cipher) = (Faults::new(), Arc::new(Refusing::default()));
    let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
    let log = log_on(&machine, environment);
    let counters = Arc::<Counters>::default();
    let clock = Environment::default().clock;
    let mut recorder = Recorder::new(log.producer().ok(), Arc::new(recording(&counters)), clock, || {});
    let client = "x".repeat(MAX_STRING + 1);
    assert_eq!(recorder.record(&Operation { client: &client, ..operation() }), Err(Unrecorded));
    assert!(recorder.is_taking() && recorder.has_to_retry(), "the log takes other entries");
    // The entry that tells of it is lost.
    cipher.0.store(true, Ordering::SeqCst);
    recorder.try_again();
    while recorder.durable.told_in_vain.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    assert_eq!((counters.unrecorded.get(), counters.untold.get()), (1, 1));
    cipher.0.store(false, Ordering::SeqCst);
    recorder.look_at_failures();
    assert!(recorder.has_to_retry());
    recorder.finish();
    log.close().unwrap();
    assert_eq!((counters.unrecorded.get(), counters.untold.get()), (1, 0));
}

#[test]
fn what_a_recorder_did_not_come_to_tell_the_next_one_tells() {
    let (machine, counters) = (Faults::new(), Arc::<Counters>::default());
    let log = log_on(&machine, Environment::default());
    let recording = Arc::new(recording(&counters));
    let clock = Environment::default().clock;
    let start = || Recorder::new(log.producer().ok(), recording.clone(), clock.clone(), || {});
    let mut recorder = start();
    recorder.missed(3);
    recorder.stop_taking();
    drop(recorder);
    assert_eq!((counters.untold.get(), counters.taking_nothing.get()), (3, 0));
    let mut recorder = start();
    assert!(recorder.has_to_retry());
    recorder.finish();
    drop(recorder);
    assert!(!start().has_to_retry(), "it is told once");
    log.close().unwrap();
    assert_eq!((counters.unrecorded.get(), counters.untold.get()), (3, 0));
}

/// A recorder, and what becomes of another connection, on another thread, between what it learns of a command and that command's entries.
struct Interrupted {
    recorder: Recorder,
    meanwhile: Option<(Session, Recorder)>,
}

impl Record for Interrupted {
    fn record(&mut self, operation: &Operation<'_>) -> Result<(), Unrecorded> {
        self.recorder.record(operation)
    }

    fn takes(&mut self) -> bool {
        self.recorder.takes()
    }

    fn now(&mut self) -> i64 {
        self.recorder.now()
    }

    fn ticket(&self) -> Ticket {
        self.recorder.ticket()
    }

    fn learn<'a>(&mut self, carried_out: &CarriedOut<'a>) -> Said<'a> {
        let said = self.recorder.learn(carried_out);
        if let Some((mut session, mut recorder)) = self.meanwhile.take() {
            session.from_server(b":1\r\n", 2, &mut recorder).unwrap();
        }
        said
    }

    fn missed(&mut self, count: u64) {
        self.recorder.missed(count);
    }

    fn forget(&mut self, carried_out: &CarriedOut<'_>, said: &Said<'_>) {
        self.recorder.forget(carried_out, said);
    }
}

#[test]
fn a_command_that_says_whose_a_key_is_is_recorded_so_whatever_another_thread_learns_meanwhile() {
    for meanwhile in ["DEL key1\r\n", "HSET key1 USR bob\r\n"] {
        let (machine, counters) = (Faults::new(), Arc::<Counters>::default());
        let log = log_on(&machine, Environment::default());
        let config = "[[rules]]\nkey = \"key*\"\nhash_field = \"USR\"\n[log]\ndirectory = \"audit\"\n";
        let config = Config::parse(config.as_bytes()).unwrap();
        let context = Arc::new(Context::new(&config, CommandTable::pinned(), [0; 32]));
        let rules = Rules::new(config.rules, None, [0; 32]);
        let recording = Arc::new(Recording { rules, ..recording(&counters) });
        let clock = Environment::default().clock;
        let recorder = || Recorder::new(log.producer().ok(), recording.clone(), clock.clone(), || {});
        let mut other = (Session::new(context.clone(), "the other", None), recorder());
        other.0.from_client(meanwhile.as_bytes(), 1, &mut other.1).unwrap();
        let left = other.0.to_server.ready(0).len();
        other.0.to_server.leave(left);
        let mut one = Session::new(context, "one", None);
        let mut interrupted = Interrupted { recorder: recorder(), meanwhile: Some(other) };
        for (now, line) in [(1, "HSET key1 USR ada\r\n"), (3, "HSET key1 NAME x\r\n")] {
            one.from_client(line.as_bytes(), now, &mut interrupted).unwrap();
            let left = one.to_server.ready(0).len();
            one.to_server.leave(left);
            one.from_server(b":1\r\n", now + 1, &mut interrupted).unwrap();
        }
        drop(interrupted);
        log.close().unwrap();
        let identity = String::from_utf8(machine.read("keys/identity.age").unwrap()).unwrap();
        let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
        let reader = Reader::open_store(Arc::new(machine.store("audit"))).unwrap().identity(identity);
        let mut subjects = Vec::new();
        let told = |_, entry: &Entry<'_>| {
            let of_one = entry.client == Some("one");
            subjects.extend(of_one.then(|| entry.subjects.clone().unwrap_or_default().join("+")));
            Ok(())
        };
        reader.for_each(&Query::new(), told).unwrap();
        // Whose it is by then nobody can know.
        assert_eq!(subjects, ["ada", ""], "{meanwhile}");
    }
}

#[test]
fn an_operation_counts_as_missing_by_its_result_and_no_intent_does() {
    let (machine, counters) = (Faults::new(), Arc::<Counters>::default());
    let (files, keys) = (machine.store("audit"), machine.store("keys"));
    Init::default().erasure(false).create_in(&files, &keys, &Environment::default()).unwrap();
    let options = Options::default().memory(64 << 20).writers(1).retries(1000);
    let options = options.retry_delay(Duration::from_millis(1)).append_timeout(Duration::from_millis(300));
    let log = Log::open_stores(Arc::new(files), Arc::new(keys), options, Environment::default()).unwrap();
    let recording = Arc::new(Recording { unrecordable: Unrecordable::Pass, ..recording(&counters) });
    let clock = Environment::default().clock;
    let mut recorder = Recorder::new(log.producer().ok(), recording, clock, || {});
    let key = vec![b'x'; 60 << 10];
    let target = Target::Key { key: &key, length: key.len() as u64, digest: None, access: Access::Write };
    let result = Operation { target, ..operation() };
    let [intent, begun] = [Stage::Intended, Stage::Begun].map(|stage| Operation { stage, ..result });
    for what_passes in [&[][..], &[intent, begun, result]] {
        machine.fail_below("audit", Fault::NoSpace);
        // They wait for memory, for too long.
        while recorder.is_taking() {
            match recorder.is_full() {
                true => recorder.try_again(),
                false => recorder.record(&intent).unwrap(),
            }
        }
        assert!(!recorder.is_full());
        what_passes.iter().for_each(|it| recorder.record(it).unwrap());
        let missing = u64::from(!what_passes.is_empty());
        assert_eq!((counters.unrecorded.get(), counters.untold.get()), (missing, missing));
        // Whatever is missing, the log is asked whether it takes entries again.
        machine.heal();
        while !recorder.is_taking() {
            recorder.try_again();
        }
    }
    drop(recorder);
    log.close().unwrap();
    assert_eq!(counters.untold.get(), 0);
}

/// Waits until the group that is on its way has come to its end.
fn settle(recorder: &Recorder) {
    while recorder.durable.is_on_its_way() {
        std::thread::yield_now();
    }
}

#[test]
fn what_the_log_lost_before_a_gap_never_counts_as_durable() {
    let (machine, cipher) = (Faults::new(), Arc::new(Refusing::default()));
    let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
    let log = log_on(&machine, environment);
    let counters = Arc::<Counters>::default();
    let clock = Environment::default().clock;
    let mut recorder = Recorder::new(log.producer().ok(), Arc::new(recording(&counters)), clock, || {});
    recorder.record(&operation()).unwrap();
    let lost = recorder.ticket();
    recorder.missed(1);
    cipher.0.store(true, Ordering::SeqCst);
    // The block in which both are is lost.
    recorder.try_again();
    while recorder.durable.told_in_vain.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    settle(&recorder);
    cipher.0.store(false, Ordering::SeqCst);
    recorder.record(&operation()).unwrap();
    let kept = recorder.ticket();
    recorder.flush();
    settle(&recorder);
    assert!(recorder.durable.losses().has(lost));
    assert!(recorder.durable.ticket() >= kept && !recorder.durable.losses().has(kept));
    recorder.finish();
    log.close().unwrap();
}

#[test]
fn what_the_log_dropped_before_a_gap_never_counts_as_durable_and_the_gap_is_told_once() {
    let (machine, counters) = (Faults::new(), Arc::<Counters>::default());
    let (files, keys) = (machine.store("audit"), machine.store("keys"));
    Init::default().erasure(false).create_in(&files, &keys, &Environment::default()).unwrap();
    let options = Options::default().memory(64 << 20).writers(1).retries(1).on_failure(OnFailure::Drop);
    let options = options.retry_delay(Duration::from_millis(1)).append_timeout(Duration::from_millis(300));
    let log = Log::open_stores(Arc::new(files), Arc::new(keys), options, Environment::default()).unwrap();
    let clock = Environment::default().clock;
    let mut recorder = Recorder::new(log.producer().ok(), Arc::new(recording(&counters)), clock, || {});
    let mut other = log.producer().unwrap();
    let large = vec![b'x'; 60 << 10];
    let entry = Entry { operation: "read", payload: Some(&large), ..Entry::default() };
    machine.fail_below("audit", Fault::NoSpace);
    while log.dropped() == 0 {
        // Until it drops entries, they wait for memory.
        let _ = other.append(&entry);
    }
    let before = log.dropped();
    while log.dropped() == before {
        recorder.record(&operation()).unwrap();
    }
    let dropped = recorder.ticket();
    machine.heal();
    while other.append(&entry).and_then(|()| other.flush()?.durable()).is_err() {
        std::thread::yield_now();
    }
    recorder.missed(1);
    recorder.try_again();
    recorder.flush();
    settle(&recorder);
    assert!(recorder.durable.losses().has(dropped));
    recorder.finish();
    drop(recorder);
    log.close().unwrap();
    assert_eq!((counters.unrecorded.get(), counters.untold.get()), (1, 0));
    let identity = String::from_utf8(machine.read("keys/identity.age").unwrap()).unwrap();
    let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
    let reader = Reader::open_store(Arc::new(machine.store("audit"))).unwrap().identity(identity);
    let mut gaps = 0;
    let told = |_, entry: &Entry<'_>| {
        gaps += u64::from(entry.operation == "gap");
        Ok(())
    };
    reader.for_each(&Query::new(), told).unwrap();
    assert_eq!(gaps, 1, "no operation is told of twice");
}
