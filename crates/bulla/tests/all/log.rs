//! A log on a real file system: append, close, open again, verify, export.

use bulla::keys::recipients::IdentityFile;
use bulla::{Durability, Entry, ErrorKind, Export, Init, Log, Options, Recovery, Step, Verify};
use bulla_vault::{Access, Settings, Vault};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn identity(directory: &Path) -> Arc<IdentityFile> {
    let file = bulla::default_keys(directory).join("identity.age");
    Arc::new(IdentityFile::parse(&std::fs::read_to_string(file).unwrap()).unwrap())
}

#[test]
fn entries_survive_closing_and_opening_again() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    let created = Init::default().create(&directory).unwrap();
    let settings = Settings::default();
    let keys = || Vault::open(&bulla::default_keys(&directory), created.id, Access::Read, &settings).unwrap();
    for round in 0..3 {
        let log = Log::open(&directory, Options::default()).unwrap();
        assert_eq!(log.recovery(), Recovery::default(), "round {round}");
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let mut producer = log.producer().unwrap();
                scope.spawn(move || {
                    for index in 0..10_000 {
                        let key = format!("{round} {thread} {index}");
                        producer.append(&Entry::new("read", &key).subject("user")).unwrap();
                    }
                    producer.flush().unwrap().checkpointed().unwrap();
                });
            }
        });
        log.close().unwrap();
    }
    let seal_key = std::fs::read_to_string(bulla::default_keys(&directory).join("seal.key")).unwrap();
    let verify =
        Verify::open(&directory).unwrap().key(created.verifier_key.clone()).seal_key(&seal_key).unwrap();
    let report = verify.identity(identity(&directory)).group_keys(Arc::new(keys())).run().unwrap();
    assert!(report.ok && report.anchored, "{:#?}", report.findings);
    assert_eq!((report.entries, report.pending), (90_000, 0));
    assert_eq!(report.findings, []);

    let mut out = Vec::new();
    let export = Export::open(&directory).unwrap().identity(identity(&directory));
    let exported = export.group_keys(Arc::new(keys())).run(&mut out).unwrap();
    assert_eq!((exported.entries, exported.left_out), (90_000, 0));
    let mut next = HashMap::new();
    for (number, line) in String::from_utf8(out).unwrap().lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["entry"], number);
        let (producer, index) = line["location"].as_str().unwrap().rsplit_once(' ').unwrap();
        let next = next.entry(producer.to_owned()).or_insert(0);
        assert_eq!(index.parse::<u32>().unwrap(), *next, "each producer's order is kept");
        *next += 1;
    }
    assert_eq!(next.len(), 9);
}

/// The time for a checkpoint never comes here: whoever asks for one gets it all the same.
#[test]
fn a_checkpoint_that_is_asked_for_comes_in_every_mode() {
    for durability in [Durability::Group, Durability::Interval(Duration::from_millis(10)), Durability::Os] {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        Init::default().create(&directory).unwrap();
        let options =
            Options::default().durability(durability).checkpoint_interval(Duration::from_secs(3600));
        let log = Log::open(&directory, options).unwrap();
        let mut producer = log.producer().unwrap();
        for _ in 0..3 {
            let mut append = || {
                producer.append(&Entry::new("read", "x").subject("s")).unwrap();
                producer.flush().unwrap()
            };
            append().checkpointed().unwrap();
            let receipt = append();
            log.rotate().unwrap();
            log.flush().unwrap();
            receipt.checkpointed().unwrap();
        }
        drop(producer);
        log.close().unwrap();
    }
}

#[test]
fn who_steps_a_log_that_has_threads_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    for step in [Step::Commit, Step::Sync, Step::Checkpoint] {
        assert_eq!(log.step(step).unwrap_err().kind(), ErrorKind::Unavailable, "{step:?}");
    }
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", "x").subject("s")).unwrap();
    producer.flush().unwrap().checkpointed().unwrap();
    drop(producer);
    log.close().unwrap();
}

/// A writer that is killed while it writes a tile leaves one.
#[test]
fn opening_removes_unfinished_tiles_of_an_earlier_writer_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().erasure(false).create(&directory).unwrap();
    let write = |frames: u64| {
        let log = Log::open(&directory, Options::default()).unwrap();
        let mut producer = log.producer().unwrap();
        for _ in 0..frames {
            producer.append(&Entry::new("read", "key")).unwrap();
            producer.flush().unwrap().durable().unwrap();
        }
        drop(producer);
        log.close().unwrap();
    };
    let findings = || Verify::open(&directory).unwrap().run().unwrap().findings;
    // Within the first tile, and beyond it.
    for frames in [3, 260] {
        let size = bulla::info(&directory).unwrap().tree_size;
        let edge = format!("{:03}", size / 256);
        let left = ["tile/0/E.p/9.tmp", "tile/0/E.tmp", "tile/1/000.p/1.tmp", "tile/entries/E.p/9.tmp"];
        let foreign = "tile/0/E.p/foreign.tmp";
        let paths = || left.iter().chain([&foreign]).map(|path| directory.join(path.replace('E', &edge)));
        for path in paths() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "left").unwrap();
        }
        assert_eq!(findings().len(), 5);
        write(frames);
        let left = paths().filter(|path| path.exists()).collect::<Vec<_>>();
        assert_eq!(left, [directory.join(foreign.replace('E', &edge))]);
        assert_eq!(findings().len(), 1);
        std::fs::remove_file(&left[0]).unwrap();
        assert_eq!(findings(), []);
    }
}
