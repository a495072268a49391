//! Logs and their witnesses: real ones, over the network of this machine, and servers that pretend to be some.

use bulla::environment::Environment;
use bulla::{Configure, Entry, FindingKind, Init, Log, Options, Verify};
use bulla_crypto::environment::{SystemClock, SystemRandom};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::cosignature::CosignerKey;
use bulla_proof::policy::Policy;
use bulla_proof::{CosignatureAlgorithm, LogKey, SignedNote, VerifierKey};
use bulla_testkit::Memory;
use bulla_witness::server::{Server, Stop};
use bulla_witness::{Tell, Witness};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long something may take that is awaited. Nothing is asserted of how long it takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A witness that serves, until it is dropped.
pub(crate) struct Serving {
    stop: Stop,
    server: Option<JoinHandle<std::io::Result<()>>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
        self.server.take().unwrap().join().unwrap().unwrap();
    }
}

/// What a witness lies in.
pub(crate) struct Witnessing {
    state: Arc<Memory>,
    keys: Arc<Memory>,
    pub(crate) key: CosignerKey,
}

impl Witnessing {
    pub(crate) fn begin(name: &str, algorithm: CosignatureAlgorithm) -> Self {
        let (state, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
        let key = Witness::begin(name, algorithm, &*state, &*keys, &SystemRandom).unwrap();
        Witnessing { state, keys, key }
    }

    pub(crate) fn serve(&self, logs: &[&VerifierKey], address: SocketAddr) -> Serving {
        let tell: Tell = Arc::new(|_: &str| {});
        let logs = logs.iter().map(|key| LogKey::from((*key).clone())).collect();
        let stores = (self.state.clone() as Arc<dyn bulla_store::Store>, self.keys.clone() as _);
        let witness = Arc::new(Witness::open(stores, logs, Arc::new(SystemClock), tell.clone()).unwrap());
        let server = Server::listen(address, None).unwrap();
        let stop = server.stopper();
        Serving { stop, server: Some(std::thread::spawn(move || server.run(&witness, &tell))) }
    }
}

/// An address of this machine at which nobody listens.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub(crate) fn policy(witnesses: &[(&str, &CosignerKey, SocketAddr)], quorum: &str) -> String {
    let line = |(name, key, address): &(&str, &CosignerKey, SocketAddr)| {
        format!("witness {name} {key} http://{address}\n")
    };
    let names: String = witnesses.iter().map(|(name, ..)| format!(" {name}")).collect();
    witnesses.iter().map(line).collect::<String>() + &format!("group all {quorum}{names}\nquorum all\n")
}

/// Makes a log in `place` that asks these witnesses, and returns its key.
pub(crate) fn init(place: &Path, policy: &str) -> VerifierKey {
    Init::default()
        .origin("example.com/log")
        .erasure(false)
        .witness_policy(policy)
        .create(place)
        .unwrap()
        .verifier_key
}

fn options() -> Options {
    Options::default()
        .witness_interval(Duration::from_millis(1))
        .checkpoint_interval(Duration::from_millis(50))
}

fn append(log: &Log, entries: usize) {
    let mut producer = log.producer().unwrap();
    for _ in 0..entries {
        producer.append(&Entry::new("read", "x")).unwrap();
    }
    producer.flush().unwrap().checkpointed().unwrap();
}

fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what} has not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An environment, and what a log tells in it.
fn telling() -> (Environment, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = told.clone();
    let trying_again: bulla::environment::Tell =
        Arc::new(move |what: &str| telling.lock().unwrap().push(what.to_owned()));
    (Environment { trying_again: Some(trying_again), ..Environment::default() }, told)
}

/// Whether a log told that a witness, or any, has not answered in the time that closing waits, as one may on a machine that has much to do.
fn did_not_wait(told: &[String], witness: &str) -> bool {
    told.iter().any(|told| told.contains(witness) && told.contains(CLOSING))
}

const CLOSING: &str = "of closing the log";

/// A log on these threads, and what it tells.
fn open_telling(place: &Path) -> (Log, Arc<Mutex<Vec<String>>>) {
    let (environment, told) = telling();
    let [store, keys] = [place.to_owned(), bulla::default_keys(place)]
        .map(|path| Arc::new(bulla::store::FileSystem::new(path)));
    (Log::open_stores(store, keys, options(), environment).unwrap(), told)
}

/// The checkpoint in a file of the log, of which the policy has to be met; its size.
fn witnessed(place: &Path, name: &str, policy: &str) -> Option<u64> {
    let bytes = std::fs::read(place.join(name)).ok()?;
    let note = SignedNote::parse(&bytes).unwrap();
    let judgement = policy.parse::<Policy>().unwrap().judge(&note).unwrap();
    judgement.is_met().then(|| Checkpoint::parse(note.text).unwrap().size)
}

#[test]
fn where_another_path_takes_the_log_its_witnesses_cosign_what_is_published_there() {
    let folder = tempfile::tempdir().unwrap();
    let (place, backup) = (folder.path().join("audit"), folder.path().join("backup"));
    let one = Witnessing::begin("w.example/1", CosignatureAlgorithm::Ed25519);
    let address = free();
    let text = policy(&[("one", &one.key, address)], "all");
    let key = init(&place, &text);
    let _serving = one.serve(&[&key], address);
    let paths = Configure::default().set("backup_paths", backup.to_str().unwrap()).unwrap();
    paths.apply(&place).unwrap();
    let keys = bulla::default_keys(&place);
    let (log, told) = open_telling(&place);
    append(&log, 10);
    wait("a cosigned checkpoint", || witnessed(&place, "checkpoint.witnessed", &text).is_some());
    assert_eq!(witnessed(&backup, "checkpoint.witnessed", &text), None);
    std::fs::rename(&place, folder.path().join("moved")).unwrap();
    append(&log, 10);
    let kept = format!("cosigned/{:08x}", one.key.key_id());
    let is_cosigned = || {
        let all = ["checkpoint", "checkpoint.witnessed", &kept].map(|name| witnessed(&backup, name, &text));
        all[0].is_some() && all.iter().all(|size| *size == all[0])
    };
    wait("a cosigned checkpoint on the other path", is_cosigned);
    log.close().unwrap();
    let gave_up = did_not_wait(&told.lock().unwrap(), "");
    assert!(gave_up || is_cosigned());
    // With the first directory back, all of the log is witnessed.
    std::fs::rename(folder.path().join("moved"), &place).unwrap();
    let whole = bulla::open_log(&place, Some(&keys), &[]).unwrap();
    let report = Verify::open_store(whole).unwrap().policy(text.parse().unwrap()).run().unwrap();
    assert!(report.ok, "{:#?}", report.findings);
    let has_tail = report.findings.iter().any(|finding| finding.kind == FindingKind::UnwitnessedTail);
    assert!(gave_up || !has_tail);
}

#[test]
fn witnesses_cosign_what_the_log_publishes_and_their_cosignatures_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("audit");
    let one = Witnessing::begin("w.example/1", CosignatureAlgorithm::Ed25519);
    let two = Witnessing::begin("w.example/2", CosignatureAlgorithm::MlDsa44);
    let addresses = [free(), free()];
    let text = policy(&[("one", &one.key, addresses[0]), ("two", &two.key, addresses[1])], "all");
    let key = init(&place, &text);
    let _serving = [one.serve(&[&key], addresses[0]), two.serve(&[&key], addresses[1])];
    for run in 0..3 {
        let log = Log::open(&place, options()).unwrap();
        append(&log, 10);
        let size = bulla::info(&place).unwrap().tree_size;
        wait("a cosigned checkpoint", || {
            witnessed(&place, "checkpoint.witnessed", &text).is_some_and(|at| at >= size)
        });
        append(&log, 10);
        log.close().unwrap();
        // Closing waits for witnesses that answer: the last checkpoint is cosigned.
        let info = bulla::info(&place).unwrap();
        assert_eq!(witnessed(&place, "checkpoint", &text), Some(info.tree_size), "run {run}");
        assert_eq!(witnessed(&place, "checkpoint.witnessed", &text), Some(info.tree_size));
        let names: Vec<_> =
            info.witnesses.iter().map(|witness| (&witness.name[..], witness.newest.unwrap().0)).collect();
        assert_eq!(names, [("one", info.tree_size), ("two", info.tree_size)]);
        let report = bulla::Verify::open(&place).unwrap().run().unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

#[test]
fn telemetry_says_how_each_witness_stands_and_one_that_fails_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("audit");
    let one = Witnessing::begin("w.example/1", CosignatureAlgorithm::Ed25519);
    let gone = Witnessing::begin("w.example/2", CosignatureAlgorithm::Ed25519);
    let addresses = [free(), free()];
    let text = policy(&[("one", &one.key, addresses[0]), ("gone", &gone.key, addresses[1])], "any");
    let key = init(&place, &text);
    let _serving = one.serve(&[&key], addresses[0]);
    let (log, told) = open_telling(&place);
    append(&log, 10);
    wait("both were asked", || {
        let witnesses = log.telemetry().witnesses;
        witnesses.len() == 2 && witnesses[0].frames.is_some() && witnesses[1].failure.is_some()
    });
    let witnesses = log.telemetry().witnesses;
    assert_eq!((&witnesses[0].name[..], witnesses[0].failures), ("one", 0));
    assert_eq!((&witnesses[1].name[..], witnesses[1].frames, witnesses[1].time), ("gone", None, None));
    assert!(witnesses[1].failures > 0);
    log.close().unwrap();
    let told = told.lock().unwrap();
    let of_gone = told.iter().filter(|told| told.contains("`gone`") && !told.contains(CLOSING));
    assert_eq!(of_gone.count(), 1, "it is told once: {told:?}");
    assert!(witnessed(&place, "checkpoint", &text).is_some() || did_not_wait(&told, "`one`"), "{told:?}");
}

/// A server that answers each request with what `answer` makes of its body, and its address.
fn pretending(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let body = read_request(&stream);
                let _ = (&stream).write_all(answer(&body).as_bytes());
            });
        }
    });
    address
}

fn read_request(mut stream: &TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap().to_lowercase();
    let length =
        head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn response(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn what_is_no_cosignature_is_not_kept() {
    use bulla_witness::key::WitnessKey;
    let seeded =
        |seed: u8| WitnessKey::from_seed("w.example/1", CosignatureAlgorithm::Ed25519, &[seed; 32]).unwrap();
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    type Answer = Box<dyn Fn(&str) -> String + Send + Sync>;
    let cases: Vec<(&str, Answer)> = vec![
        (
            "of another key",
            Box::new(move |body| response(200, &seeded(2).cosign(&text_of(body), now()).unwrap())),
        ),
        (
            "its time differs",
            Box::new(move |body| response(200, &seeded(1).cosign(&text_of(body), now() - 3600).unwrap())),
        ),
        (
            "its time differs",
            Box::new(move |body| response(200, &seeded(1).cosign(&text_of(body), now() + 3600).unwrap())),
        ),
        (
            "does not verify",
            Box::new(move |body| {
                let other = text_of(body).replacen("example.com/log", "example.com/lag", 1);
                response(200, &seeded(1).cosign(&other, now()).unwrap())
            }),
        ),
        (
            "several of its key",
            Box::new(move |body| response(200, &seeded(1).cosign(&text_of(body), now()).unwrap().repeat(2))),
        ),
        ("no signature", Box::new(|_| response(200, ""))),
        ("malformed signature line", Box::new(|_| response(200, "fine\n"))),
        (
            "redirects (307)",
            Box::new(|_| {
                "HTTP/1.1 307 x\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_owned()
            }),
        ),
        ("more than 65536 bytes", Box::new(|_| response(200, &"a".repeat(65_537)))),
        ("does not know this log (404)", Box::new(|_| response(404, ""))),
        ("another key (403)", Box::new(|_| response(403, ""))),
        ("answers 503: busy", Box::new(|_| response(503, "busy\nnow"))),
        ("409, and not with the size", Box::new(|_| response(409, "many\n"))),
        ("the log was put back to an earlier time", Box::new(|_| response(409, "1000000\n"))),
        ("nothing shows it", Box::new(|_| response(422, ""))),
        // As versions 1.1.0 and 1.0.0 of tlog-witness have it.
        ("the log's key has signed two histories", Box::new(|body| another_of_that_size(body, 422))),
        ("the log's key has signed two histories", Box::new(|body| another_of_that_size(body, 409))),
        (
            "says each time",
            Box::new(|body| {
                let old: u64 = body.lines().next().unwrap().strip_prefix("old ").unwrap().parse().unwrap();
                response(409, &format!("{}\n", if old == 1 { 2 } else { 1 }))
            }),
        ),
    ];
    for (why, answer) in cases {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("audit");
        let address = pretending(answer);
        init(&place, &policy(&[("one", seeded(1).public(), address)], "any"));
        let log = Log::open(&place, options()).unwrap();
        append(&log, 10);
        wait(why, || log.telemetry().witnesses.first().is_some_and(|witness| witness.failure.is_some()));
        let failure = log.telemetry().witnesses[0].failure.clone().unwrap();
        assert!(failure.contains(why), "{why}: {failure}");
        log.close().unwrap();
        assert!(!place.join("checkpoint.witnessed").exists() && !place.join("cosigned").exists(), "{why}");
        let note = std::fs::read_to_string(place.join("checkpoint")).unwrap();
        assert!(!note.contains("w.example"), "{why}: {note}");
    }
}

/// The text of the checkpoint in a request.
fn text_of(body: &str) -> String {
    let note = body.split_once("\n\n").unwrap().1;
    note[..=note.find("\n\n").unwrap()].to_owned()
}

/// Answers as a witness does that has seen another tree of the size that it is asked for: `status` once the old size is that one.
fn another_of_that_size(body: &str, status: u16) -> String {
    let size = text_of(body).lines().nth(1).unwrap().to_owned();
    let old = body.lines().next().unwrap().strip_prefix("old ").unwrap();
    response(if old == size { status } else { 409 }, &format!("{size}\n"))
}

#[test]
fn a_witness_that_hangs_keeps_nobody_from_appending_and_closing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("audit");
    let one = Witnessing::begin("w.example/1", CosignatureAlgorithm::Ed25519);
    let hanging = Witnessing::begin("w.example/2", CosignatureAlgorithm::Ed25519);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [free(), listener.local_addr().unwrap()];
    let text = policy(&[("one", &one.key, addresses[0]), ("hanging", &hanging.key, addresses[1])], "any");
    let key = init(&place, &text);
    let _serving = one.serve(&[&key], addresses[0]);
    let log = Log::open(&place, options()).unwrap();
    append(&log, 10);
    let (_connection, _) = listener.accept().unwrap();
    // It is being asked, and says nothing.
    append(&log, 100);
    wait("the other one has cosigned", || {
        log.telemetry().witnesses.first().is_some_and(|witness| witness.frames.is_some())
    });
    log.close().unwrap();
    // On a loaded machine the last one may come too late for closing, which waits for so long and no longer.
    let kept = ["checkpoint", "checkpoint.witnessed"].map(|name| witnessed(&place, name, &text));
    assert!(kept.iter().any(Option::is_some), "{kept:?}");
}

#[test]
fn a_log_that_was_put_back_or_has_two_histories_is_not_cosigned() {
    let folder = tempfile::tempdir().unwrap();
    let (place, keys) = (folder.path().join("audit"), folder.path().join("audit.keys"));
    let (copy, copied_keys) = (folder.path().join("copy"), folder.path().join("copy.keys"));
    let one = Witnessing::begin("w.example/1", CosignatureAlgorithm::Ed25519);
    let address = free();
    let text = policy(&[("one", &one.key, address)], "any");
    let key = init(&place, &text);
    let _serving = one.serve(&[&key], address);
    let log = Log::open(&place, options()).unwrap();
    append(&log, 10);
    log.close().unwrap();
    for (from, to) in [(&place, &copy), (&keys, &copied_keys)] {
        let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
        assert!(copied.success());
    }
    // The log goes on, and so does its copy: with the same key, and two histories.
    let log = Log::open(&place, options()).unwrap();
    (0..5).for_each(|_| append(&log, 10));
    log.close().unwrap();
    let seen = bulla::info(&place).unwrap().tree_size;
    let log = Log::open(&copy, options()).unwrap();
    append(&log, 1);
    wait("the copy was refused", || {
        log.telemetry().witnesses.first().is_some_and(|witness| witness.failure.is_some())
    });
    let failure = log.telemetry().witnesses[0].failure.clone().unwrap();
    assert!(failure.contains("was put back to an earlier time"), "{failure}");
    while bulla::info(&copy).unwrap().tree_size <= seen {
        append(&log, 1);
    }
    log.close().unwrap();
    let log = Log::open(&copy, options()).unwrap();
    wait("the other history was refused", || {
        let witnesses = log.telemetry().witnesses;
        witnesses.first().is_some_and(|it| it.failure.as_ref().unwrap().contains("two histories"))
    });
    assert!(log.telemetry().witnesses[0].refuses);
    log.close().unwrap();
}

#[test]
fn a_witness_that_refuses_a_log_does_so_until_it_cosigns() {
    use bulla_witness::key::WitnessKey;
    use std::sync::atomic::{AtomicU16, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let (place, keys) = (folder.path().join("audit"), folder.path().join("audit.keys"));
    let seeded = || WitnessKey::from_seed("w.example/1", CosignatureAlgorithm::Ed25519, &[1; 32]).unwrap();
    let status = Arc::new(AtomicU16::new(409));
    let address = pretending({
        let status = status.clone();
        move |body| match status.load(Ordering::SeqCst) {
            409 => response(409, "1000000\n"),
            200 => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                response(200, &seeded().cosign(&text_of(body), now.as_secs()).unwrap())
            }
            other => response(other, "busy"),
        }
    });
    init(&place, &policy(&[("one", seeded().public(), address)], "any"));
    let kept = || bulla::keys::refusals::load(&bulla::store::FileSystem::new(&keys)).unwrap();
    for (answers, refuses) in [(409, true), (503, true), (404, true), (200, false), (503, false)] {
        status.store(answers, Ordering::SeqCst);
        let log = Log::open(&place, options()).unwrap();
        append(&log, 1);
        wait("it was asked", || {
            let witnesses = log.telemetry().witnesses;
            witnesses.first().is_some_and(|it| it.failures > 0 || it.frames.is_some())
        });
        append(&log, 1);
        let (telemetry, closed) = log.close_with_telemetry();
        closed.unwrap();
        let witness = telemetry.witnesses[0].clone();
        assert_eq!(witness.refuses, refuses, "{answers}: {witness:?}");
        let put_back = witness.failure.is_some_and(|why| why.contains("put back to an earlier time"));
        assert_eq!(put_back, refuses, "{answers}");
        assert_eq!(kept().len(), usize::from(refuses), "{answers}");
    }
}

#[test]
fn that_the_last_checkpoint_was_never_asked_for_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("audit");
    let one = Witnessing::begin("w.example/1", CosignatureAlgorithm::Ed25519);
    let address = free();
    let key = init(&place, &policy(&[("one", &one.key, address)], "any"));
    let _serving = one.serve(&[&key], address);
    let (environment, told) = telling();
    let stores = [place.clone(), folder.path().join("audit.keys")]
        .map(|path| Arc::new(bulla::store::FileSystem::new(path)));
    let [store, keys] = stores;
    // What the witness has cosigned last cannot be read.
    std::fs::create_dir_all(place.join(format!("cosigned/{:08x}", one.key.key_id()))).unwrap();
    let log = Log::open_stores(store, keys, options(), environment).unwrap();
    append(&log, 10);
    log.close().unwrap();
    let told = told.lock().unwrap();
    let last =
        told.iter().filter(|told| told.contains("the witnesses were not asked for the last checkpoint"));
    assert_eq!(last.count(), 1, "{told:?}");
}
