//! Queries beside a live writer: no lock, a consistent prefix of what meets them.

use crate::helpers::{Shares, Stop};
use bulla::keys::recipients::IdentityFile;
use bulla::{Durability, Entry, Init, Log, Options, Query, Reader, Verify, default_keys};
use bulla_vault::{Access, Settings, Vault};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn every_answer_is_a_prefix_while_a_writer_writes_and_rotates() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    let created = Init::default().create(&directory).unwrap();
    let keys =
        Vault::open(&default_keys(&directory), created.id, Access::Read, &Settings::default()).unwrap();
    let keys = Arc::new(keys);
    let identity = std::fs::read_to_string(default_keys(&directory).join("identity.age")).unwrap();
    let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
    let options = Options::default()
        .segment_size(64 << 10)
        .block_size(4 << 10)
        .checkpoint_interval(Duration::from_millis(1))
        .durability(Durability::Group);
    let log = Log::open(&directory, options).unwrap();
    let done = AtomicBool::new(false);
    let reader = || {
        let reader = Reader::open(&directory).unwrap().key(created.verifier_key.clone());
        reader.identity(identity.clone()).group_keys(keys.clone())
    };
    let by_subject = Query::new().subject("user_1");
    // Entry n is of user n mod 3, in blocks that mostly have all of them, and of a rare one at times.
    let check = |lasting: &Reader, query: &Query, step: u64, first: u64| {
        let mut next = first;
        let report = lasting.for_each(query, |number, entry| {
            assert_eq!(number, next);
            assert_eq!(entry.location.unwrap(), format!("entry {number}").as_bytes());
            next += step;
            Ok(())
        });
        (report.unwrap(), next)
    };
    std::thread::scope(|scope| {
        let mut producer = log.producer().unwrap();
        let done = &done;
        let (shares, turns) = Shares::new();
        let _stop_the_writer_in_any_case = Stop(done);
        let writer = scope.spawn(move || {
            let mut appended = 0_u64;
            while turns.recv().is_ok() && !done.load(Ordering::Relaxed) {
                for _ in 0..50 {
                    let (location, subject) = (format!("entry {appended}"), format!("user_{}", appended % 3));
                    let noise = format!("{:x}", appended.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    let entry = Entry::new("update", &location).subject(&subject).payload(&noise);
                    let entry = if appended.is_multiple_of(1000) { entry.subject("rare") } else { entry };
                    producer.append(&entry).unwrap();
                    appended += 1;
                }
                producer.flush().unwrap().durable().unwrap();
            }
            appended
        });
        // Long enough for bundles to become full and their partial forms to go. One reader lasts, with its keys.
        let lasting = reader();
        let (mut seen, mut blocks, mut rounds, mut spared) = (0, 0, 0, 0);
        while rounds < 10 || ((blocks < 700 || spared == 0) && !writer.is_finished()) {
            shares.add();
            let fresh = reader();
            let reader = if rounds % 2 == 0 { &lasting } else { &fresh };
            let (_, next) = check(reader, &by_subject, 3, 1);
            assert!(next >= seen, "an answer never shrinks");
            seen = next;
            let (report, _) = check(reader, &Query::new().subject("rare"), 1000, 0);
            assert!(report.blocks >= blocks);
            blocks = report.blocks;
            spared += report.blocks - report.blocks_read;
            let verify = Verify::open(&directory).unwrap().identity(identity.clone());
            assert_eq!(verify.run().unwrap().findings, [], "round {rounds}");
            rounds += 1;
        }
        done.store(true, Ordering::Relaxed);
        drop(shares);
        let appended = writer.join().unwrap();
        log.flush().unwrap();
        let (report, _) = check(&lasting, &by_subject, 3, 1);
        assert_eq!(report.entries, (appended + 1) / 3);
        assert!(spared > 0, "the index is of use beside the writer");
    });
    log.close().unwrap();
}
