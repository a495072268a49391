//! Readers beside a live writer: no lock, a consistent prefix, nothing wrong to find.

use crate::helpers::{Shares, Stop};
use bulla::keys::recipients::IdentityFile;
use bulla::{Durability, Entry, Export, Init, Log, Options, Verify, default_keys};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn readers_see_a_consistent_prefix_while_a_writer_writes_and_rotates() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    let identity = std::fs::read_to_string(default_keys(&directory).join("identity.age")).unwrap();
    let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
    let options = Options::default()
        .segment_size(64 << 10)
        .block_size(4 << 10)
        .checkpoint_interval(Duration::from_millis(1))
        .durability(Durability::Group);
    let log = Log::open(&directory, options).unwrap();
    let done = AtomicBool::new(false);
    let mut entries = 0;
    std::thread::scope(|scope| {
        let mut producer = log.producer().unwrap();
        let done = &done;
        let (shares, turns) = Shares::new();
        let _stop_the_writer_in_any_case = Stop(done);
        let writer = scope.spawn(move || {
            let mut appended = 0_u64;
            while turns.recv().is_ok() && !done.load(Ordering::Relaxed) {
                for _ in 0..50 {
                    let location = format!("entry {appended}");
                    let noise = format!("{:x}", appended.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    producer.append(&Entry::new("update", &location).payload(&noise)).unwrap();
                    appended += 1;
                }
                producer.flush().unwrap().durable().unwrap();
            }
            appended
        });
        // Long enough for tiles to become full and their partial forms to go.
        let mut seen = 0;
        let mut rounds = 0;
        while rounds < 10 || (seen < 700 && !writer.is_finished()) {
            shares.add();
            let verify = Verify::open(&directory).unwrap().identity(identity.clone());
            let report = verify.run().unwrap();
            assert_eq!(report.findings, [], "round {rounds}");
            assert!(report.tree_size >= seen, "the tree never shrinks");
            seen = report.tree_size;

            let mut out = Vec::new();
            let export = Export::open(&directory).unwrap().identity(identity.clone());
            let exported = export.run(&mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            for (number, line) in text.lines().enumerate() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(line["entry"], number);
                assert_eq!(line["location"], format!("entry {number}"));
            }
            assert!(exported.entries >= report.entries);
            rounds += 1;
        }
        done.store(true, Ordering::Relaxed);
        drop(shares);
        let appended = writer.join().unwrap();
        log.flush().unwrap();
        // The next epoch may be pending: it comes by itself, when a segment is full.
        let report = Verify::open(&directory).unwrap().run().unwrap();
        assert_eq!((report.ok, report.entries), (true, appended));
        entries = appended;
    });
    log.close().unwrap();
    let report = Verify::open(&directory).unwrap().run().unwrap();
    assert_eq!((report.findings, report.entries, report.pending), (Vec::new(), entries, 0));
}
