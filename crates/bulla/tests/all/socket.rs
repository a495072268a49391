//! The local socket, between real sockets and a log in a directory of its own; by clients that say what they like, and by
//! [`Connection`].
#![allow(unsafe_code)]

mod elsewhere;

use bulla::socket::{Connection, Counts, Intake, Listen, Listening, RemoteProducer, Sent};
use bulla::text::msgpack;
use bulla::{Entry, ErrorKind, Init, Log, Options, Query, Reader, default_keys};
use bulla_testkit::{alone, is_alone};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

struct World {
    place: tempfile::TempDir,
    log: Option<Log>,
    listening: Option<Listening>,
}

impl World {
    fn new() -> Self {
        Self::with(|listen| listen)
    }

    fn with(change: impl FnOnce(Listen) -> Listen) -> Self {
        let mut world = World { place: tempfile::tempdir().unwrap(), log: None, listening: None };
        Init::default().create(world.directory()).unwrap();
        let log = Log::open(world.directory(), Options::default()).unwrap();
        let listen = Listen::default().stream(world.path()).datagrams(world.datagrams());
        world.listening = Some(change(listen).start(&log).unwrap());
        world.log = Some(log);
        world
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("audit")
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("audit.sock")
    }

    fn datagrams(&self) -> PathBuf {
        self.place.path().join("audit.datagrams")
    }

    fn client(&self) -> Raw {
        Raw::connect(&self.path())
    }

    fn durable(&self) -> u64 {
        self.log.as_ref().unwrap().acknowledged()
    }

    fn stop(&mut self) -> Counts {
        self.listening.take().unwrap().stop()
    }

    /// Stops listening and closes the log: its entries, in order, as the field that is asked for has them.
    fn entries(mut self, field: fn(&Entry<'_>) -> String) -> Vec<String> {
        drop(self.listening.take());
        self.log.take().unwrap().close().unwrap();
        let reader = Reader::open_with_keys(self.directory(), default_keys(&self.directory())).unwrap();
        let mut entries = Vec::new();
        let each = |_, entry: &Entry<'_>| {
            entries.push(field(entry));
            Ok(())
        };
        reader.for_each(&Query::new(), each).unwrap();
        entries
    }

    fn locations(self) -> Vec<String> {
        self.entries(location)
    }
}

fn location(entry: &Entry<'_>) -> String {
    String::from_utf8(entry.location.unwrap().to_vec()).unwrap()
}

/// A client that says what it likes, written from `docs/socket.md`.
struct Raw(UnixStream);

impl Raw {
    fn connect(path: &Path) -> Self {
        let mut raw = Raw(UnixStream::connect(path).unwrap());
        let greeting = raw.receive().expect("it greets");
        assert_eq!(greeting["version"], 1);
        assert_eq!((&greeting["window"], &greeting["max_message"]), (&json!(64), &json!(32 << 20)));
        raw
    }

    fn send(&mut self, body: &[u8]) {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        self.0.write_all(&[&length[..], body].concat()).unwrap();
    }

    fn receive(&mut self) -> Option<Value> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut body).unwrap();
        Some(serde_json::from_slice(&body).unwrap())
    }

    /// Sends a batch, and what is answered.
    fn ask(&mut self, body: &[u8]) -> Value {
        self.send(body);
        self.receive().expect("an acknowledgement")
    }
}

fn lines(locations: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let line = |location| format!("{{\"operation\":\"read\",\"location\":\"{location}\"}}\n");
    [b"L".to_vec(), locations.into_iter().map(line).collect::<String>().into_bytes()].concat()
}

#[test]
fn a_batch_is_acknowledged_once_it_is_durable() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(client.ask(&lines(0..3)), json!({ "batch": 1, "accepted": 3, "refused": 0 }));
    assert_eq!(world.durable(), 3);
    let mut packed = b"M".to_vec();
    for location in ["3", "4"] {
        msgpack::write_entry(&Entry::new("read", location), None, &mut packed);
    }
    assert_eq!(client.ask(&packed), json!({ "batch": 2, "accepted": 2, "refused": 0 }));
    assert_eq!(world.durable(), 5);
    assert_eq!(client.ask(b"L"), json!({ "batch": 3, "accepted": 0, "refused": 0 }), "one of no entry");
    assert_eq!(world.locations(), ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_refused_entry_stops_no_other_and_is_told_without_its_values() {
    #[derive(Default)]
    struct Note(Mutex<Vec<(Sent, Option<Vec<u8>>)>>);
    impl Intake for Note {
        fn refused(&self, sent: Sent, _: &str, raw: Option<&[u8]>) {
            self.0.lock().unwrap().push((sent, raw.map(<[u8]>::to_vec)));
        }
    }
    let refused = Arc::new(Note::default());
    let mut world = World::with(|listen| listen.intake(refused.clone()));
    let mut client = world.client();
    let body = b"L{\"operation\":\"a\",\"location\":\"0\"}\n{\"operation\":\"a\",\"status\":\"secret\"}\nsecret\n{\"operation\":\"a\",\"location\":\"1\"}";
    let answer = client.ask(body);
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(2), &json!(2)));
    assert_eq!(answer["reasons"][0]["entry"], 2);
    assert_eq!(answer["reasons"][0]["reason"], "`status` must be a whole number from 0 to 4294967295");
    assert_eq!(answer["reasons"][1]["entry"], 3);
    assert!(!answer.to_string().contains("secret"));

    // Behind an entry with an unknown field the next is read; behind what is no MessagePack nothing is.
    let mut packed = b"M\x81\xa6secret\x92\x01\x81\xc0\xc3".to_vec();
    msgpack::write_entry(&Entry::new("read", "2"), None, &mut packed);
    packed.push(0xc1);
    msgpack::write_entry(&Entry::new("read", "never"), None, &mut packed);
    let answer = client.ask(&packed);
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(1), &json!(2)));
    let many = client.ask(&[b"L".to_vec(), b"?\n".repeat(100)].concat());
    assert_eq!((&many["refused"], many["reasons"].as_array().unwrap().len()), (&json!(100), 16));
    drop(client);
    let counts = world.stop();
    assert_eq!((counts.accepted, counts.refused, counts.batches, counts.clients), (3, 104, 3, 1));
    {
        let refused = refused.0.lock().unwrap();
        assert_eq!(refused.len(), 104);
        let (sent, raw) = &refused[1];
        assert_eq!((sent.batch, sent.entry, raw.as_deref()), (1, 3, Some(&b"secret"[..])));
        assert_eq!(sent.from.process, std::process::id());
    }
    assert_eq!(world.locations(), ["0", "1", "2"]);
}

#[test]
fn what_is_no_batch_ends_its_connection_and_no_other() {
    let world = World::new();
    let mut other = world.client();
    let too_long = &(33_u32 << 20).to_le_bytes()[..];
    for (bytes, says) in [
        (&b"\x03\0\0\0{}\n"[..], "a batch begins with `L`"),
        (b"\0\0\0\0", "a batch begins with `L`"),
        (too_long, "33554432 bytes at most"),
    ] {
        let mut client = world.client();
        assert_eq!(client.ask(&lines([0]))["accepted"], 1);
        client.0.write_all(bytes).unwrap();
        let answer = client.receive().unwrap();
        assert_eq!((&answer["batch"], &answer["error"]["kind"]), (&json!(2), &json!("invalid")));
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
        assert_eq!(client.receive(), None);
    }
    // Cut off within a message: nothing of it is taken.
    let mut client = world.client();
    client.0.write_all(b"\x99\0\0\0L{").unwrap();
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.receive().unwrap()["error"]["kind"], "invalid");
    assert_eq!(other.ask(&lines([1]))["accepted"], 1);
    assert_eq!(world.locations(), ["0", "0", "0", "1"]);
}

#[test]
fn long_messages_come_one_at_a_time_and_whole() {
    let world = World::new();
    let payload = "x".repeat(3 << 20);
    let body = format!("L{{\"operation\":\"a\",\"location\":\"long\",\"payload\":\"{payload}\"}}");
    // This one has begun, and does not go on before the other is through: which it could be only after it.
    let mut stalled = world.client();
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    stalled.0.write_all(&[&length[..], &body.as_bytes()[..1 << 16]].concat()).unwrap();
    let mut ordinary = world.client();
    assert_eq!(ordinary.ask(&lines([0]))["accepted"], 1, "an ordinary one waits for nobody");
    stalled.0.write_all(&body.as_bytes()[1 << 16..]).unwrap();
    assert_eq!(stalled.receive().unwrap()["accepted"], 1);
    let mut after = world.client();
    assert_eq!(after.ask(body.as_bytes())["accepted"], 1);
    assert_eq!(world.locations(), ["0", "long", "long"]);
}

#[test]
fn batches_are_acknowledged_in_their_order_and_many_may_be_under_way() {
    let world = World::new();
    let mut client = world.client();
    let batches = 500;
    let mut writing = Raw(client.0.try_clone().unwrap());
    let writer = std::thread::spawn(move || {
        for batch in 0..batches {
            writing.send(&lines(batch * 10..(batch + 1) * 10));
        }
        writing.0.shutdown(Shutdown::Write).unwrap();
    });
    for batch in 1..=batches {
        let answer = client.receive().unwrap();
        assert_eq!(answer, json!({ "batch": batch, "accepted": 10, "refused": 0 }));
        assert!(world.durable() >= batch * 10);
    }
    assert_eq!(client.receive(), None, "it has said that it sends no more");
    writer.join().unwrap();
    assert_eq!(world.locations(), (0..batches * 10).map(|place| place.to_string()).collect::<Vec<_>>());
}

#[test]
fn stopping_acknowledges_what_was_read_and_takes_the_name_away() {
    let mut world = World::new();
    let mut clients = [world.client(), world.client()];
    assert_eq!(clients[0].ask(&lines(0..5))["accepted"], 5);
    let counts = world.stop();
    assert_eq!((counts.accepted, counts.clients), (5, 2));
    for client in &mut clients {
        assert_eq!(client.receive(), None);
    }
    assert!(!world.path().exists() && !world.datagrams().exists());
    assert_eq!(world.locations().len(), 5);
}

/// Nobody who sends without a pause keeps the log open.
#[test]
fn stopping_waits_for_nobody_who_goes_on_to_send() {
    let mut world = World::new();
    let (mut client, datagrams) = (world.client(), UnixDatagram::unbound().unwrap());
    datagrams.connect(world.datagrams()).unwrap();
    let mut writing = Raw(client.0.try_clone().unwrap());
    let sending = std::thread::spawn(move || {
        let batch = lines(0..10);
        let framed = [&u32::try_from(batch.len()).unwrap().to_le_bytes()[..], &batch].concat();
        while writing.0.write_all(&framed).is_ok() {}
    });
    let acknowledged = Arc::new(AtomicU64::new(0));
    let counted = acknowledged.clone();
    let reading = std::thread::spawn(move || {
        while let Some(answer) = client.receive() {
            counted.fetch_add(answer["accepted"].as_u64().unwrap(), SeqCst);
        }
    });
    let throwing = std::thread::spawn(move || while datagrams.send(&lines(0..1)).is_ok() {});
    // Both are under way then.
    while world.durable() < 1000 || acknowledged.load(SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let counts = world.stop();
    sending.join().unwrap();
    throwing.join().unwrap();
    reading.join().unwrap();
    let acknowledged = acknowledged.load(SeqCst);
    assert!(acknowledged <= counts.accepted, "{acknowledged} of {counts:?}");
    assert_eq!(world.locations().len() as u64, counts.accepted);
}

/// Who takes no acknowledgements keeps the log open for a short while, however it goes about that.
#[test]
fn stopping_waits_for_a_short_while_for_who_takes_no_acknowledgements() {
    let mut world = World::new();
    let mut client = world.client();
    let refused = [b"L".to_vec(), b"{\"colour\":1}\n".repeat(16)].concat();
    let framed = [&u32::try_from(refused.len()).unwrap().to_le_bytes()[..], &refused].concat();
    // Once the server reads no more, it waits for room for an acknowledgement.
    client.0.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    while client.0.write_all(&framed).is_ok() {}
    let (stopped, told) = mpsc::channel();
    let stopping = std::thread::spawn(move || {
        world.stop();
        stopped.send(()).unwrap();
        world
    });
    // All together it has 5 s, and not 30 for each acknowledgement.
    told.recv_timeout(Duration::from_secs(20)).expect("nobody is waited for any longer");
    assert_eq!(stopping.join().unwrap().locations().len(), 0);
}

#[test]
fn there_are_as_many_clients_as_may_be() {
    let world = World::with(|listen| listen.clients(2));
    let first = world.client();
    let _second = world.client();
    let mut third = Raw(UnixStream::connect(world.path()).unwrap());
    let answer = third.receive().unwrap();
    assert_eq!(
        answer["error"],
        json!({ "kind": "unavailable", "message": "2 clients are connected already" })
    );
    assert_eq!(third.receive(), None);
    assert_eq!(Connection::open(world.path()).unwrap_err().kind(), ErrorKind::Unavailable);
    drop(first);
    // The thread of the one that left ends a little later.
    let connected = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        Connection::open(world.path()).ok()
    });
    connected.expect("there is room for another").close().unwrap();
}

#[test]
fn the_socket_has_its_mode_and_a_socket_of_nobody_is_replaced() {
    let mut world = World::with(|listen| listen.mode(0o640));
    for path in [world.path(), world.datagrams()] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640);
    }
    let log = world.log.as_ref().unwrap();
    let taken = Listen::default().stream(world.path()).start(log).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Locked);
    assert!(taken.to_string().contains("somebody listens there already"), "{taken}");
    let taken = Listen::default().datagrams(world.path()).start(log).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Locked, "of whatever kind");
    let file = world.place.path().join("file");
    fs::write(&file, "kept").unwrap();
    let kept = Listen::default().stream(&file).start(log).unwrap_err();
    assert_eq!((kept.kind(), fs::read(&file).unwrap()), (ErrorKind::Invalid, b"kept".to_vec()));
    for wrong in [Listen::default(), Listen::default().stream(&file).mode(0o1600)] {
        assert_eq!(wrong.start(log).unwrap_err().kind(), ErrorKind::Invalid);
    }
    // As a process that was killed leaves it.
    let left = world.place.path().join("left.sock");
    drop(UnixListener::bind(&left).unwrap());
    let listening = Listen::default().stream(&left).start(log).unwrap();
    assert_eq!(Raw::connect(&left).ask(&lines([0]))["accepted"], 1);
    drop(listening);
    world.stop();
}

#[test]
fn a_path_may_be_longer_than_a_socket_s_address() {
    let world = World::new();
    let deep = world.place.path().join("d".repeat(150));
    fs::create_dir(&deep).unwrap();
    let path = deep.join("audit.sock");
    let listening = Listen::default().stream(&path).start(world.log.as_ref().unwrap()).unwrap();
    Connection::open(&path).unwrap().close().unwrap();
    drop(listening);
    assert!(!path.exists());
}

#[test]
fn the_kernel_says_who_the_actor_is_where_that_is_asked_for() {
    let world = World::with(|listen| listen.peer_is_actor(true));
    let mut client = world.client();
    let claims = b"L{\"operation\":\"a\",\"actor\":\"root\"}\n{\"operation\":\"a\"}";
    assert_eq!(client.ask(claims)["accepted"], 2);
    let sender = UnixDatagram::unbound().unwrap();
    sender.send_to(claims, world.datagrams()).unwrap();
    let own = format!("uid:{}", rustix::process::getuid().as_raw());
    assert_eq!(world.entries(|entry| entry.actor.unwrap_or_default().to_owned()), vec![own; 4]);
}

#[test]
fn datagrams_that_the_kernel_has_taken_are_appended() {
    let mut world = World::new();
    let sender = UnixDatagram::unbound().unwrap();
    for batch in 0..40 {
        sender.send_to(&lines(batch * 2..batch * 2 + 2), world.datagrams()).unwrap();
    }
    sender.send_to(b"?", world.datagrams()).unwrap();
    sender.send_to(b"", world.datagrams()).unwrap();
    let counts = world.stop();
    assert_eq!((counts.datagrams, counts.accepted, counts.refused), (42, 80, 2));
    assert_eq!(world.locations(), (0..80).map(|place| place.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_producer_elsewhere_appends_as_one_here_does() {
    let world = World::new();
    let connection = Connection::open(world.path()).unwrap();
    assert_eq!(connection.origin(), world.log.as_ref().unwrap().origin());
    let mut producer = connection.producer().unwrap();
    for location in 0..20_000 {
        producer.append(&Entry::new("read", &location.to_string())).unwrap();
    }
    let receipt = producer.flush().unwrap();
    receipt.durable().unwrap();
    assert_eq!(world.durable(), 20_000);
    let long = "x".repeat(70_000);
    let wrong = producer.append(&Entry::new("read", "never").actor(&long)).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Invalid);
    let batch = [Entry::new("read", "20000"), Entry::new("read", "never").actor(&long)];
    let wrong = producer.append_batch(&batch).unwrap_err();
    assert_eq!((wrong.staged, wrong.error.kind()), (0, ErrorKind::Invalid));
    producer.append_batch(&batch[..1]).unwrap();
    let (told, tells) = mpsc::channel();
    let later = producer.flush().unwrap();
    later.when_durable(move |durable| told.send(durable.is_ok()).unwrap()).unwrap();
    assert!(tells.recv().unwrap());
    assert!(later.durable_within(Duration::ZERO).unwrap());
    drop(producer);
    connection.close().unwrap();
    assert_eq!(world.locations(), (0..=20_000).map(|place| place.to_string()).collect::<Vec<_>>());
}

#[test]
fn two_sockets_at_one_path_are_refused_as_that() {
    let mut world = World::new();
    let path = world.place.path().join("one.sock");
    let log = world.log.take().unwrap();
    let (link, linked) = (world.place.path().join("link"), world.place.path().join("link/one.sock"));
    std::os::unix::fs::symlink(world.place.path(), link).unwrap();
    for same in [&path, &world.place.path().join("./one.sock"), &linked] {
        let error = Listen::default().stream(&path).datagrams(same).start(&log).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "each socket needs a path of its own");
        assert!(!path.exists());
    }
}

#[test]
fn whoever_panics_when_told_of_a_receipt_ends_the_connection_and_nobody_hangs() {
    let world = World::new();
    let connection = Connection::open(world.path()).unwrap();
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("read", "0")).unwrap();
    producer.flush().unwrap().when_durable(|_| panic!("as the test wants it")).unwrap();
    let error = loop {
        let appended = producer.append(&Entry::new("read", "more"));
        if let Err(error) = appended.and_then(|()| producer.flush()).and_then(|receipt| receipt.durable()) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    drop(producer);
    // It ends, with an error only where something was acknowledged to nobody.
    let _ = connection.close();
}

#[test]
fn closing_waits_until_whoever_asked_is_told_of_each_receipt() {
    let world = World::new();
    let connection = Connection::open(world.path()).unwrap();
    let mut producer = connection.producer().unwrap();
    let (go_on, waits) = mpsc::channel();
    let waits = Mutex::new(waits);
    let told = Arc::new(AtomicU64::new(0));
    let tell = {
        let told = told.clone();
        move || {
            let _ = waits.lock().unwrap().recv();
            told.fetch_add(1, SeqCst);
        }
    };
    producer.append(&Entry::new("read", "0")).unwrap();
    producer.flush().unwrap().when_durable(move |_| tell()).unwrap();
    for _ in 0..10 {
        let told = told.clone();
        producer.append(&Entry::new("read", "more")).unwrap();
        producer
            .flush()
            .unwrap()
            .when_durable(move |_| {
                told.fetch_add(1, SeqCst);
            })
            .unwrap();
    }
    let (closes, closed) = mpsc::channel();
    std::thread::spawn(move || closes.send(connection.close().map(|()| told.load(SeqCst))));
    // Whoever does not wait is done by then.
    closed.recv_timeout(Duration::from_millis(500)).expect_err("one is being told");
    go_on.send(()).unwrap();
    assert_eq!(closed.recv().unwrap().unwrap(), 11);
}

#[test]
fn acknowledgements_are_read_while_a_producer_waits_for_one() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("audit.sock");
    let listener = UnixListener::bind(&path).unwrap();
    // A log that takes one batch at a time, and its time for each: longer than what lingers is left alone.
    let log = std::thread::spawn(move || {
        let mut client = listener.accept().unwrap().0;
        let tell = |client: &mut UnixStream, told: Value| {
            let told = told.to_string();
            client.write_all(&u32::try_from(told.len()).unwrap().to_le_bytes()).unwrap();
            client.write_all(told.as_bytes()).unwrap();
        };
        tell(&mut client, json!({"version": 1, "origin": "slow", "window": 1, "max_message": 1 << 20}));
        for batch in 1..=3 {
            let mut length = [0; 4];
            client.read_exact(&mut length).unwrap();
            client.read_exact(&mut vec![0; u32::from_le_bytes(length) as usize]).unwrap();
            std::thread::sleep(Duration::from_millis(200));
            tell(&mut client, json!({"batch": batch, "accepted": 1, "refused": 0}));
        }
    });
    let connection = Connection::open(&path).unwrap().append_timeout(Duration::from_secs(60));
    let mut producer = connection.producer().unwrap();
    let receipts = (0..3).map(|_| {
        producer.append(&Entry::new("read", "x")).unwrap();
        producer.flush().unwrap()
    });
    receipts.collect::<Vec<_>>().iter().for_each(|receipt| receipt.durable().unwrap());
    log.join().unwrap();
}

#[test]
fn what_was_appended_is_sent_without_a_flush_and_before_the_end() {
    let world = World::new();
    let connection = Connection::open(world.path()).unwrap();
    let mut lingering = connection.producer().unwrap();
    lingering.append(&Entry::new("read", "0")).unwrap();
    let sent = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        world.durable() == 1
    });
    assert!(sent, "nobody flushed, and it was sent all the same");
    let mut dropped = connection.producer().unwrap();
    dropped.append(&Entry::new("read", "1")).unwrap();
    drop(dropped);
    connection.close().unwrap();
    assert_eq!(world.durable(), 2, "closing has waited");
    assert_eq!(lingering.append(&Entry::new("read", "never")).unwrap_err().kind(), ErrorKind::Closed);
}

/// Takes no entry without a purpose.
struct Strict;

impl Intake for Strict {
    fn complete<'a>(&'a self, entry: &mut Entry<'a>) -> Result<(), String> {
        entry.purpose.map(drop).ok_or_else(|| "it has no purpose".to_owned())
    }
}

#[test]
fn a_receipt_says_what_the_log_refused() {
    let world = World::with(|listen| listen.intake(Arc::new(Strict)));
    let connection = Connection::open(world.path()).unwrap();
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("read", "0").purpose("support")).unwrap();
    producer.append(&Entry::new("read", "never")).unwrap();
    let partly = producer.flush().unwrap();
    producer.append(&Entry::new("read", "1").purpose("support")).unwrap();
    let wholly = producer.flush().unwrap();
    let error = partly.durable().unwrap_err();
    assert_eq!(error.to_string(), "an entry was refused, the others are durable: it has no purpose");
    wholly.durable().unwrap();
    drop(producer);
    assert_eq!(
        connection.close().unwrap_err().kind(),
        ErrorKind::Invalid,
        "said again, whatever receipts told"
    );
    assert_eq!(world.locations(), ["0", "1"]);
}

#[test]
fn closing_tells_what_producers_lost_that_came_to_their_end_before_the_last_one() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("audit.sock");
    let listener = UnixListener::bind(&path).unwrap();
    // A log that dies with the first producer's batch, and takes the second one's.
    let log = std::thread::spawn(move || {
        for acknowledges in [false, true] {
            let mut client = Raw(listener.accept().unwrap().0);
            let greeting = json!({"version": 1, "origin": "dying", "window": 1, "max_message": 1 << 20});
            client.send(greeting.to_string().as_bytes());
            let mut length = [0; 4];
            client.0.read_exact(&mut length).unwrap();
            client.0.read_exact(&mut vec![0; u32::from_le_bytes(length) as usize]).unwrap();
            if acknowledges {
                client.send(json!({"batch": 1, "accepted": 1, "refused": 0}).to_string().as_bytes());
            }
        }
    });
    let connection = Connection::open(&path).unwrap();
    let mut lost = connection.producer().unwrap();
    lost.append(&Entry::new("read", "lost")).unwrap();
    let told = lost.flush().unwrap().durable().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Closed);
    drop(lost);
    let mut kept = connection.producer().unwrap();
    kept.append(&Entry::new("read", "kept")).unwrap();
    kept.flush().unwrap().durable().unwrap();
    let error = connection.close().unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Closed, told.to_string()));
    log.join().unwrap();
}

#[test]
fn closing_tells_what_the_log_refused_of_producers_that_are_no_more() {
    let world = World::with(|listen| listen.intake(Arc::new(Strict)));
    let connection = Connection::open(world.path()).unwrap();
    for _ in 0..2 {
        let mut producer = connection.producer().unwrap();
        producer.append(&Entry::new("read", "never")).unwrap();
        producer.flush().unwrap().durable().unwrap_err();
    }
    let mut last = connection.producer().unwrap();
    last.append(&Entry::new("read", "0").purpose("support")).unwrap();
    last.flush().unwrap().durable().unwrap();
    let error = connection.close().unwrap_err();
    // Closed is closed, whatever there was to send.
    assert_eq!(last.flush().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(error.to_string(), "2 entries were refused, the others are durable: it has no purpose");
    assert_eq!(world.locations(), ["0"]);
}

#[test]
fn when_the_log_is_closed_elsewhere_nothing_is_said_to_be_durable() {
    let mut world = World::new();
    let connection = Connection::open(world.path()).unwrap();
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("read", "0")).unwrap();
    producer.flush().unwrap().durable().unwrap();
    world.stop();
    let unsure = (|| {
        producer.append(&Entry::new("read", "1"))?;
        producer.flush()?.durable()
    })();
    assert_eq!(unsure.unwrap_err().kind(), ErrorKind::Closed);
    let again = producer.append(&Entry::new("read", "2")).unwrap_err();
    assert!(again.to_string().contains("connect again"), "{again}");
    drop((producer, connection));
    let gone = Connection::open(world.path()).unwrap_err();
    assert!(gone.to_string().contains("nobody listens there"), "{gone}");
    assert_eq!(world.locations(), ["0"]);
}

/// A log that greets, acknowledges the first batch and no other, and ends the connection when it is told to.
fn ends_when_told(listener: UnixListener, told: mpsc::Receiver<()>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut client = Raw(listener.accept().unwrap().0);
        let greeting = json!({"version": 1, "origin": "ending", "window": 8, "max_message": 1 << 20});
        client.send(greeting.to_string().as_bytes());
        for acknowledged in [true, false] {
            let mut length = [0; 4];
            client.0.read_exact(&mut length).unwrap();
            client.0.read_exact(&mut vec![0; u32::from_le_bytes(length) as usize]).unwrap();
            if acknowledged {
                client.send(json!({"batch": 1, "accepted": 1, "refused": 0}).to_string().as_bytes());
            }
        }
        told.recv().unwrap();
    })
}

#[test]
fn whoever_listens_has_to_greet_within_the_time_that_was_given() {
    let place = tempfile::tempdir().unwrap();
    let paths = ["silent", "late"].map(|name| place.path().join(name));
    let [_silent, late] = paths.each_ref().map(|path| UnixListener::bind(path).unwrap());
    let patient = std::thread::spawn({
        let path = paths[1].clone();
        move || Connection::open(path).map(drop)
    });
    let mut client = Raw(late.accept().unwrap().0);
    let error = Connection::open_within(&paths[0], Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
    // Whoever gives the longest time waits still.
    let greeting = json!({"version": 1, "origin": "late", "window": 1, "max_message": 1 << 20});
    client.send(greeting.to_string().as_bytes());
    patient.join().unwrap().unwrap();
}

#[test]
fn nothing_is_staged_behind_the_end_of_a_connection() {
    type Append = fn(&mut RemoteProducer, &Entry<'_>) -> bulla::Result<()>;
    let ways: [(&str, Append); 3] = [
        ("append", |producer, entry| producer.append(entry)),
        ("try_append", |producer, entry| producer.try_append(entry)),
        ("append_batch", |producer, entry| {
            let entries = [entry.clone(), entry.clone()];
            let error = producer.append_batch(&entries).err();
            error.map_or(Ok(()), |error| {
                assert_eq!(error.staged, 0);
                Err(error.error)
            })
        }),
    ];
    for (name, append) in ways {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("audit.sock");
        let (end, told) = mpsc::channel();
        let log = ends_when_told(UnixListener::bind(&path).unwrap(), told);
        let connection = Connection::open(&path).unwrap();
        let mut producer = connection.producer().unwrap();
        producer.append(&Entry::new("read", "0")).unwrap();
        producer.flush().unwrap().durable().unwrap();
        producer.append(&Entry::new("read", "1")).unwrap();
        let sent = producer.flush().unwrap();
        let (ended, noticed) = mpsc::channel();
        sent.when_durable(move |durable| ended.send(durable.unwrap_err().kind()).unwrap()).unwrap();
        // It lingers when the connection ends.
        producer.append(&Entry::new("read", "2")).unwrap();
        end.send(()).unwrap();
        assert_eq!(noticed.recv().unwrap(), ErrorKind::Closed, "{name}");
        for _ in 0..3 {
            let refused = append(&mut producer, &Entry::new("read", "never")).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Closed, "{name}");
            assert!(refused.to_string().contains("connect again"), "{name}: {refused}");
        }
        // Of what was staged before and is not durable everybody is told who asks.
        assert_eq!(sent.durable().unwrap_err().kind(), ErrorKind::Closed, "{name}");
        // What lingered may have been sent meanwhile.
        let behind = producer.flush().and_then(|receipt| receipt.durable());
        assert_eq!(behind.unwrap_err().kind(), ErrorKind::Closed, "{name}");
        drop(producer);
        assert_eq!(connection.close().unwrap_err().kind(), ErrorKind::Closed, "{name}");
        log.join().unwrap();
    }
}

#[test]
fn a_first_producer_is_of_whoever_listens_by_then() {
    let mut world = World::new();
    let connection = Connection::open(world.path()).unwrap();
    world.stop();
    let listen = Listen::default().stream(world.path());
    world.listening = Some(listen.start(world.log.as_ref().unwrap()).unwrap());
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("read", "0")).unwrap();
    producer.flush().unwrap().durable().unwrap();
    drop(producer);
    connection.close().unwrap();
    assert_eq!(world.locations(), ["0"]);
}

#[test]
fn a_forked_child_connects_by_itself() {
    if !is_alone() {
        let output =
            alone(Command::new("env"), "socket::a_forked_child_connects_by_itself").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let mut world = World::new();
    let path = world.path();
    let connection = Connection::open(&path).unwrap();
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("read", "parent")).unwrap();
    // SAFETY: no other thread of this process holds a lock that the child needs: the connection's sleeps in `poll`, and the log's wait.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let foreign = producer.append(&Entry::new("read", "never")).unwrap_err();
        let refused = foreign.kind() == ErrorKind::Closed && foreign.to_string().contains("connect again");
        // The parent goes on to listen, whatever its child does with what came along.
        drop(world.listening.take());
        let own = (|| {
            let connection = Connection::open(&path)?;
            let mut producer = connection.producer()?;
            producer.append(&Entry::new("read", "child"))?;
            producer.flush()?.durable()?;
            drop(producer);
            connection.close()
        })();
        // SAFETY: it ends the process without what a test would do at its end.
        unsafe { libc::_exit(i32::from(!refused || own.is_err())) };
    }
    let mut status = 0;
    // SAFETY: `status` is a place for a status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    producer.flush().unwrap().durable().unwrap();
    drop(producer);
    connection.close().unwrap();
    let mut locations = world.locations();
    locations.sort();
    assert_eq!(locations, ["child", "parent"]);
}
