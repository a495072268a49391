//! A real process on a real file system, killed again and again.
//!
//! The test runs its own binary once more with only [`child`] in it. `BULLA_TORTURE_ROUNDS` says how often, and
//! `BULLA_TORTURE_SEED` from where on; every failure says its round, though the scheduler has its say in it, too.

use crate::helpers::Rng;
use bulla::keys::recipients::IdentityFile;
use bulla::{Durability, Entry, Export, Init, Log, Options, Report, Severity, Verify, default_keys};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const DIRECTORY: &str = "BULLA_TORTURE_CHILD";
const MODE: &str = "BULLA_TORTURE_MODE";
const ROUND: &str = "BULLA_TORTURE_ROUND";
const MODES: [Durability; 3] =
    [Durability::Group, Durability::Interval(Duration::from_millis(3)), Durability::Os];

fn options(mode: usize) -> Options {
    let options = Options::default().memory(64 << 20).block_size(16 << 10).segment_size(256 << 10);
    let options = options.checkpoint_interval(Duration::from_millis(20)).linger(Duration::from_millis(1));
    options.durability(MODES[mode])
}

fn payload(name: &str, index: u64) -> Vec<u8> {
    let mut rng = Rng(index);
    name.bytes().for_each(|byte| rng.0 = rng.0.rotate_left(8) ^ u64::from(byte));
    let length = rng.below(400);
    (0..length).map(|_| b'a' + rng.below(26) as u8).collect()
}

/// Not a test of its own: appends, and tells what was acknowledged, until it is killed.
#[test]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let mode = std::env::var(MODE).unwrap().parse::<usize>().unwrap();
    let round = std::env::var(ROUND).unwrap();
    let log = Log::open(directory, options(mode)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (mut producer, name) = (log.producer().unwrap(), format!("r{round}t{thread}"));
            scope.spawn(move || {
                for index in 0.. {
                    let (location, payload) = (format!("{name} {index}"), payload(&name, index));
                    producer.append(&Entry::new("read", &location).payload(&payload)).unwrap();
                    if index % (7 + 30 * thread) == 0 {
                        producer.flush().unwrap().durable().unwrap();
                        // One write of a short line to a pipe is whole or not there.
                        let line = format!("\nacknowledged {name} {index}\n");
                        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                        std::io::stdout().flush().unwrap();
                    }
                }
            });
        }
    });
}

/// From when a child has its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// Its start: it may be killed while it opens the log.
    Start,
    /// The first entry that was acknowledged to it, however long that takes.
    FirstEntry,
}

/// Starts a child on the log and kills it after a while. Returns how many entries of each producer were acknowledged.
fn killed(
    directory: &Path,
    mode: usize,
    round: u64,
    (from, after): (Since, Duration),
) -> BTreeMap<String, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::kill::child", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(MODE, mode.to_string())
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (heard, first) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = BTreeMap::new();
        for line in output.lines().map_while(Result::ok) {
            let mut words = line.split(' ');
            if let (Some("acknowledged"), Some(name), Some(index)) =
                (words.next(), words.next(), words.next())
            {
                acknowledged.insert(name.to_owned(), index.parse::<u64>().unwrap() + 1);
                // Whoever waits has heard one already.
                let _ = heard.send(());
            }
        }
        acknowledged
    });
    if from == Since::FirstEntry {
        // Where it ends before, what follows says so.
        let _ = first.recv();
    }
    std::thread::sleep(after);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(
        !status.success() && status.code().is_none(),
        "round {round}: the child ended by itself: {status}"
    );
    reader.join().unwrap()
}

/// What a verification with every key tells.
fn verified(directory: &Path, key: &bulla::VerifierKey) -> Report {
    let keys = default_keys(directory);
    let seal_key = std::fs::read_to_string(keys.join("seal.key")).unwrap();
    let identity = std::fs::read_to_string(keys.join("identity.age")).unwrap();
    let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
    let state = std::fs::read(keys.join("seal.state")).unwrap();
    let verify = Verify::open(directory).unwrap().key(key.clone()).seal_key(&seal_key).unwrap();
    verify.seal_state(&state).unwrap().identity(identity).run().unwrap()
}

/// What a kill left is sound, whatever no checkpoint covers; and a copy of it, opened and closed, has everything in `kept`.
fn check_as_left(directory: &Path, key: &bulla::VerifierKey, mode: usize, kept: &BTreeMap<String, u64>) {
    let report = verified(directory, key);
    assert!(report.anchored && report.ok, "{:#?}", report.findings);
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("audit");
    for (from, to) in [(directory.to_owned(), copy.clone()), (default_keys(directory), default_keys(&copy))] {
        assert!(Command::new("cp").arg("-a").args([&from, &to]).status().unwrap().success());
    }
    Log::open(&copy, options(mode)).unwrap().close().unwrap();
    check(&copy, key, &mut kept.clone());
}

/// Everything in `kept` is there, in order, each entry once; what is there is kept from now on.
fn check(directory: &Path, key: &bulla::VerifierKey, kept: &mut BTreeMap<String, u64>) {
    let report = verified(directory, key);
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    assert!(report.ok && report.anchored, "{:#?}", violations.collect::<Vec<_>>());
    let identity = std::fs::read_to_string(default_keys(directory).join("identity.age")).unwrap();
    let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
    let mut out = Vec::new();
    Export::open(directory).unwrap().key(key.clone()).identity(identity).run(&mut out).unwrap();
    let mut counts = BTreeMap::<String, u64>::new();
    for (number, line) in String::from_utf8(out).unwrap().lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let (name, index) = line["location"].as_str().unwrap().split_once(' ').unwrap();
        let count = counts.entry(name.to_owned()).or_default();
        assert_eq!((line["entry"].as_u64(), index.parse()), (Some(number as u64), Ok(*count)), "{name}");
        let payload = String::from_utf8(payload(name, *count)).unwrap();
        assert_eq!(line["payload"].as_str().unwrap_or_default(), payload, "{name} {count}");
        *count += 1;
    }
    for (name, count) in kept.iter() {
        let found = counts.get(name).copied().unwrap_or_default();
        assert!(found >= *count, "{count} entries of {name} were acknowledged, {found} are there");
    }
    *kept = counts;
}

#[test]
fn a_killed_process_keeps_what_it_acknowledged() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("BULLA_TORTURE_ROUNDS").unwrap_or(10);
    let seed = number("BULLA_TORTURE_SEED").unwrap_or(1);
    let mut rng = Rng(seed);
    let place = tempfile::tempdir().unwrap();
    let (mut acknowledged, mut entries) = (0, 0);
    let mut round = 0;
    while round < rounds {
        let directory = place.path().join(format!("audit-{round}"));
        let key = Init::default().create(&directory).unwrap().verifier_key;
        let mode = (rng.next() % 3) as usize;
        let mut kept = BTreeMap::new();
        for _ in 0..rounds.saturating_sub(round).min(5) {
            let after = Duration::from_micros(rng.below(120_000));
            let from = if round % 4 == 0 { Since::FirstEntry } else { Since::Start };
            println!("round {round} of seed {seed}: {:?}, killed {after:?} after {from:?}", MODES[mode]);
            let heard = killed(&directory, mode, round, (from, after));
            acknowledged += heard.values().sum::<u64>();
            kept.extend(heard);
            check_as_left(&directory, &key, mode, &kept);
            // Every other time the next writer finds what is left as it is.
            if rng.below(2) == 0 {
                Log::open(&directory, options(mode)).unwrap().close().unwrap();
                check(&directory, &key, &mut kept);
            }
            round += 1;
        }
        Log::open(&directory, options(mode)).unwrap().close().unwrap();
        check(&directory, &key, &mut kept);
        entries += kept.values().sum::<u64>();
        for directory in [default_keys(&directory), directory] {
            std::fs::remove_dir_all(directory).unwrap();
        }
    }
    println!("swept: {rounds} rounds: {acknowledged} entries acknowledged, {entries} kept");
    assert!(rounds == 0 || acknowledged > 0, "nothing was acknowledged to those who were waited for");
}
