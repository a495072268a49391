//! A verification is bound by a pin, and advances it where nothing speaks against the log.

use super::{World, append, size, violations};
use crate::helpers::Stop;
use bulla::store::FileSystem;
use bulla::{Configure, ErrorKind, Init, Log, Options, Verify};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

impl World {
    /// A log that has no pin yet.
    fn unpinned(entries: u64) -> World {
        let world = World::new();
        append(&Log::open(&world.directory, Options::default()).unwrap(), entries);
        world
    }

    fn append_unpinned(&self, entries: u64) {
        append(&Log::open(&self.directory, Options::default()).unwrap(), entries);
    }
}

#[test]
fn a_verification_makes_a_pin_and_advances_it() {
    let world = World::unpinned(3);
    let verify = || Verify::open(&world.directory).unwrap().pin(&world.pin);
    let report = verify().key(world.key.clone()).run().unwrap();
    let (pin, tree_size) = (report.pin.unwrap(), report.tree_size);
    assert_eq!((pin.before, pin.frames, pin.failure), (None, Some(tree_size), None));
    assert_eq!(world.pinned(), world.checkpoint());
    assert_eq!(world.settings().pinned(), None, "it is the verifier's own");

    world.append_unpinned(2);
    // The pin was signed with the log's key, so that it is known whose the log is.
    let report = verify().run().unwrap();
    let pin = report.pin.unwrap();
    assert_eq!((pin.before, pin.frames), (Some(tree_size), Some(report.tree_size)));
    assert_eq!(world.pinned(), world.checkpoint());
    let report = verify().run().unwrap();
    assert_eq!(report.pin.unwrap().before, Some(report.tree_size));
}

#[test]
fn a_pin_is_made_only_of_a_log_of_which_it_is_known_whose_it_is() {
    let world = World::unpinned(3);
    let error = Verify::open(&world.directory).unwrap().pin(&world.pin).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("audit.pin") && !world.pin.exists(), "{error}");
    // What the writing host has says so, too.
    let state = fs::read(bulla::default_keys(&world.directory).join("seal.state")).unwrap();
    let verify = Verify::open(&world.directory).unwrap().seal_state(&state).unwrap();
    assert!(verify.pin(&world.pin).run().unwrap().ok);
    assert_eq!(world.pinned(), world.checkpoint());
}

#[test]
fn a_pin_stays_where_it_is_behind_a_log_that_is_not_what_was_written() {
    let world = World::unpinned(3);
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
    let pin = world.pinned();
    world.append_unpinned(2);
    let stranger = World::new();
    let tile = world.directory.join("tile/entries/000.p").join(size(&world.checkpoint()).to_string());
    let bytes = fs::read(&tile).unwrap();
    let mut damaged = bytes.clone();
    damaged[40] ^= 1;
    fs::write(&tile, damaged).unwrap();
    let report = world.verify().pin(&world.pin).run().unwrap();
    assert_eq!(violations(&report), ["bundle-damaged"].into(), "{:#?}", report.findings);
    let told = report.pin.unwrap();
    assert_eq!((told.before, told.frames), (Some(size(&pin)), Some(size(&pin))));
    assert_eq!(world.pinned(), pin);
    fs::write(&tile, bytes).unwrap();
    let report = world.verify().key(stranger.key.clone()).pin(&world.pin).run().unwrap();
    assert_eq!(violations(&report), ["key-mismatch"].into());
    assert_eq!(world.pinned(), pin);
    let missing = world.pin.with_file_name("missing.pin");
    let report = world.verify().key(stranger.key.clone()).pin(&missing).run().unwrap();
    assert!(!report.ok && report.pin.unwrap().frames.is_none() && !missing.exists());
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
    assert_eq!(world.pinned(), world.checkpoint());
}

#[test]
fn another_log_in_the_place_of_the_pinned_one_is_found_without_its_key() {
    let world = World::unpinned(3);
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
    let pin = world.pinned();
    fs::remove_dir_all(&world.directory).unwrap();
    fs::remove_dir_all(bulla::default_keys(&world.directory)).unwrap();
    Init::default().origin("example.com/audit").create(&world.directory).unwrap();
    world.append_unpinned(9);
    let report = Verify::open(&world.directory).unwrap().pin(&world.pin).run().unwrap();
    assert_eq!(violations(&report), ["pin-mismatch"].into(), "{:#?}", report.findings);
    assert_eq!(world.pinned(), pin);
}

#[test]
fn a_truncated_log_is_found_by_its_pin_wherever_it_ends() {
    let world = World::unpinned(1);
    let mut backups = vec![world.backup()];
    for _ in 0..4 {
        world.append_unpinned(1);
        backups.push(world.backup());
    }
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
    let whole = backups.pop().unwrap();
    let end = size(&world.pinned());
    for older in backups {
        world.put_back(older.path());
        let report = world.verify().pin(&world.pin).run().unwrap();
        assert_eq!(violations(&report), ["pin-mismatch"].into(), "{:#?}", report.findings);
        let finding = report.findings.iter().find(|finding| finding.kind.name() == "pin-mismatch").unwrap();
        let frames = (finding.frame, finding.last_frame);
        assert_eq!(frames, (Some(size(&world.checkpoint())), Some(end - 1)), "what is missing is named");
    }
    world.put_back(whole.path());
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
}

#[test]
fn a_pin_that_is_known_to_have_been_there_binds_and_is_left_as_it_is() {
    let world = World::new();
    world.append(3);
    let pin = world.pinned();
    Configure::default().unset("pin").unwrap().apply(&world.directory).unwrap();
    world.append_unpinned(1);
    let report = world.verify().known_pin(&world.pin).run().unwrap();
    assert!(report.ok && report.pin.is_none());
    assert_eq!(world.pinned(), pin);
    // A second one is advanced beside it.
    let second = world.pin.with_file_name("second.pin");
    let report = world.verify().known_pin(&world.pin).pin(&second).run().unwrap();
    assert_eq!(report.pin.unwrap().path, second);
    assert_eq!(world.pinned(), pin);
    fs::remove_file(&world.pin).unwrap();
    for verify in [
        world.verify().known_pin(&world.pin),
        world.verify().known_pin(&world.pin).pin(&world.pin),
        world.verify().pin(&world.pin).known_pin(&world.pin),
    ] {
        assert_eq!(verify.run().unwrap_err().kind(), ErrorKind::Refused);
        assert!(!world.pin.exists());
    }
}

#[test]
fn a_pin_that_cannot_be_advanced_is_told_and_speaks_against_nothing() {
    let world = World::unpinned(3);
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
    world.append_unpinned(1);
    let pin = world.pinned();
    fs::remove_file(world.pin.with_extension("pin.lock")).unwrap();
    fs::create_dir(world.pin.with_extension("pin.lock")).unwrap();
    let report = world.verify().pin(&world.pin).run().unwrap();
    let told = report.pin.unwrap();
    assert!(report.ok && told.failure.is_some_and(|why| why.contains("audit.pin.lock")));
    assert_eq!((told.frames, world.pinned()), (Some(size(&pin)), pin));
}

/// Verifiers beside a writer that publishes as fast as it can: nobody finds anything, and the pin never goes back.
#[test]
fn writers_and_verifiers_never_undo_each_others_pin() {
    let world = World::new();
    let options = world.options().checkpoint_interval(Duration::from_millis(1));
    let log = Log::open(&world.directory, options).unwrap();
    append(&log, 1);
    log.flush().unwrap();
    let done = AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let (world, done) = (&world, &done);
        let _stop = Stop(done);
        let verifier = || {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) {
                let report = world.verify().pin(&world.pin).run().unwrap();
                assert_eq!(report.findings, []);
                let pin = report.pin.unwrap();
                assert!(pin.failure.is_none() && pin.frames >= pin.before, "{pin:?}");
                assert!(pin.frames >= Some(report.tree_size), "{pin:?}");
                rounds += 1;
            }
            rounds
        };
        let verifiers = [scope.spawn(verifier), scope.spawn(verifier)];
        let watcher = scope.spawn(move || {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let now = size(&world.pinned());
                assert!(now >= last, "it went back from {last} to {now}");
                last = now;
            }
        });
        let mut producer = log.producer().unwrap();
        for index in 0..300_u64 {
            producer.append(&bulla::Entry::new("read", &format!("item {index}"))).unwrap();
            producer.flush().unwrap().checkpointed().unwrap();
            // What is signed is pinned.
            assert!(size(&world.pinned()) >= size(&world.checkpoint()), "{index}");
        }
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
        verifiers.map(|verifier| verifier.join().unwrap())
    });
    assert!(rounds.iter().all(|&rounds| rounds > 0), "{rounds:?}");
    log.close().unwrap();
    assert_eq!(world.pinned(), world.checkpoint());
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
}

#[test]
fn a_log_that_ends_before_its_pin_is_found_beside_somebody_who_holds_its_lock() {
    let world = World::unpinned(3);
    let older = world.backup();
    world.append_unpinned(2);
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
    world.put_back(older.path());
    let _held = bulla::store::Store::lock(&FileSystem::new(&world.directory), "LOCK").unwrap();
    let verify = world.verify().pin(&world.pin).clock(Arc::new(crate::pin::verified::Hurried));
    let report = verify.run().unwrap();
    assert_eq!(violations(&report), ["pin-mismatch"].into(), "{:#?}", report.findings);
}

/// A clock on which waiting takes no time.
struct Hurried;

impl bulla::environment::Clock for Hurried {
    fn now(&self) -> i64 {
        0
    }

    fn wait(&self, _: Duration, _: &bulla::environment::Interrupt) {}
}
