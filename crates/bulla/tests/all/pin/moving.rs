//! A pin is made, remembered, and advanced with each checkpoint; a log that is behind it or beside it is refused.

use super::{World, append, size, violations};
use bulla::{Configure, ErrorKind, Log, Options, Restore, default_keys};
use std::fs;

#[test]
fn a_pin_is_the_checkpoint_wherever_the_writer_has_published_one() {
    let world = World::new();
    let log = world.open().unwrap();
    let made = log.pinned().unwrap().clone();
    assert!(made.made && made.frames == 0 && made.path == world.pin, "{made:?}");
    assert_eq!(world.pinned(), world.checkpoint());
    append(&log, 3);
    log.flush().unwrap();
    let flushed = world.pinned();
    assert!(size(&flushed) > 0 && flushed == world.checkpoint());
    log.close().unwrap();
    assert_eq!(world.pinned(), world.checkpoint());

    // Nobody has to name it again.
    assert_eq!(world.settings().pinned(), Some(&*world.pin));
    let before = size(&world.pinned());
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let pinned = log.pinned().unwrap().clone();
    assert!(!pinned.made && pinned.frames == before, "{pinned:?}");
    append(&log, 1);
    log.close().unwrap();
    assert_eq!(world.pinned(), world.checkpoint());
    assert!(before < size(&world.pinned()));
    // Nothing else is left there but its lock.
    let left = fs::read_dir(world.pin.parent().unwrap()).unwrap().map(|item| item.unwrap().file_name());
    let mut left = left.collect::<Vec<_>>();
    left.sort();
    assert_eq!(left, ["audit.pin", "audit.pin.lock"]);
}

#[test]
fn a_log_that_is_put_back_with_its_keys_is_found_by_its_pin() {
    let world = World::new();
    world.append(3);
    let older = world.backup();
    world.append(2);
    world.put_back(older.path());
    let before = world.files();
    for options in [world.options(), Options::default()] {
        let error = Log::open(&world.directory, options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        let pin = world.pin.display().to_string();
        for told in [&pin[..], "older copy", "bulla verify"] {
            assert!(error.to_string().contains(told), "{told}: {error}");
        }
    }
    // What changes it otherwise opens it, too.
    let rotates = Configure::default().set("log.heartbeat", "1 h").unwrap();
    assert_eq!(rotates.apply(&world.directory).unwrap_err().kind(), ErrorKind::Tampered);
    world.is_as(&before, "a log that is refused is left as it is");
    // Without the pin nothing finds it: all that is at hand was put back with it.
    assert!(world.verify().run().unwrap().ok);
    let report = world.verify().pin(&world.pin).run().unwrap();
    assert_eq!(violations(&report), ["pin-mismatch"].into(), "{:#?}", report.findings);
}

#[test]
fn a_pin_from_before_a_backup_is_no_reason_to_refuse_it() {
    let world = World::new();
    world.append(3);
    let older = fs::read(&world.pin).unwrap();
    world.append(300);
    for pin in [older, world.checkpoint().into_bytes()] {
        fs::write(&world.pin, pin).unwrap();
        world.append(1);
        assert_eq!(world.pinned(), world.checkpoint(), "it is advanced from where it was");
    }
}

#[test]
fn a_second_history_that_is_signed_with_the_same_key_is_found_whatever_its_length() {
    for (pinned, stolen) in [(3, 1), (3, 3), (1, 6), (300, 700), (256, 2)] {
        let world = World::new();
        world.append(2);
        let before = world.backup();
        world.append(pinned);
        let pin = world.pinned();
        world.put_back(before.path());
        // Whoever has stolen the keys pins nothing, or elsewhere.
        Configure::default().unset("pin").unwrap().apply(&world.directory).unwrap();
        append(&Log::open(&world.directory, Options::default()).unwrap(), stolen);
        let what = format!("{pinned} and {stolen}: {pin}{}", world.checkpoint());
        assert!(world.verify().run().unwrap().ok, "{what}");

        let error = world.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
        let report = world.verify().pin(&world.pin).run().unwrap();
        assert_eq!(violations(&report), ["pin-mismatch"].into(), "{what}: {:#?}", report.findings);
        assert_eq!(world.pinned(), pin, "{what}");
        assert_eq!(world.settings().pinned(), None, "what is refused is not remembered");
    }
}

#[test]
fn a_history_that_somebody_else_pins_meanwhile_stops_the_writer() {
    let world = World::new();
    world.append(2);
    let before = world.backup();
    world.append(5);
    let stolen = (world.pinned(), world.backup());
    world.put_back(before.path());
    fs::write(&world.pin, fs::read(world.directory.join("checkpoint")).unwrap()).unwrap();
    let log = world.open().unwrap();
    append(&log, 1);
    fs::write(&world.pin, &stolen.0).unwrap();
    let error = log.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    assert!(error.to_string().contains("audit.pin"), "{error}");
    drop(log);
    assert_eq!(world.pinned(), stolen.0);
}

#[test]
fn a_pin_that_is_gone_is_refused_and_made_again_only_by_whoever_says_so() {
    let world = World::new();
    world.append(3);
    fs::remove_file(&world.pin).unwrap();
    let before = world.files();
    for options in [world.options(), Options::default()] {
        let error = Log::open(&world.directory, options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let told = format!("bulla config DIR set pin {}", world.pin.display());
        assert!(error.to_string().contains("is gone") && error.to_string().contains(&told), "{error}");
    }
    let restored = Restore::without_identity(&world.directory).run();
    assert!(restored.is_err(), "{restored:?}");
    world.is_as(&before, "it was refused");
    // The same where its directory is not mounted.
    fs::rename(world.pin.parent().unwrap(), world.place.path().join("unmounted")).unwrap();
    assert_eq!(world.open().unwrap_err().kind(), ErrorKind::Refused);
    fs::rename(world.place.path().join("unmounted"), world.pin.parent().unwrap()).unwrap();

    let again = Configure::default().set("pin", world.pin.to_str().unwrap()).unwrap();
    let done = again.apply(&world.directory).unwrap();
    assert_eq!((done.made_pin, done.changed), (Some(size(&world.checkpoint())), true));
    assert_eq!(world.pinned(), world.checkpoint());
    world.append(1);
    assert_eq!(world.pinned(), world.checkpoint());
    // Where it is there, nothing is made of it.
    let done = again.apply(&world.directory).unwrap();
    assert_eq!((done.made_pin, done.changed), (None, false));
}

#[test]
fn a_log_that_is_pinned_no_more_goes_on_without() {
    let world = World::new();
    world.append(3);
    let pin = world.pinned();
    Configure::default().unset("pin").unwrap().apply(&world.directory).unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert_eq!(log.pinned(), None);
    append(&log, 1);
    log.close().unwrap();
    assert_eq!(world.pinned(), pin, "it is left as it was");
    assert!(size(&pin) < size(&world.checkpoint()));
    // And is taken up again where it was left.
    world.append(1);
    assert_eq!(world.pinned(), world.checkpoint());
}

#[test]
fn another_pin_than_the_one_that_is_remembered_is_set_and_not_named() {
    let world = World::new();
    world.append(1);
    let other = world.pin.with_file_name("other.pin");
    let before = world.files();
    let error = Log::open(&world.directory, Options::default().pin(&other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    for path in [&world.pin, &other] {
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    world.is_as(&before, "it was refused");
    Configure::default().set("pin", other.to_str().unwrap()).unwrap().apply(&world.directory).unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert_eq!(log.pinned().unwrap().path, other);
}

#[test]
fn a_log_is_not_pinned_where_it_would_be_put_back_with_its_pin() {
    let world = World::new();
    let keys = default_keys(&world.directory);
    for inside in [world.directory.join("audit.pin"), keys.join("audit.pin"), keys.join("../audit/x")] {
        let error = Log::open(&world.directory, Options::default().pin(&inside)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let set = Configure::default().set("pin", inside.to_str().unwrap()).unwrap();
        assert_eq!(set.apply(&world.directory).unwrap_err().kind(), ErrorKind::Refused);
        assert!(!inside.exists());
    }
    assert_eq!(world.settings().pinned(), None);
}

#[test]
fn a_verification_makes_no_pin_on_any_path_of_the_log() {
    let world = World::new();
    let (keys, backup) = (default_keys(&world.directory), world.place.path().join("backup"));
    let paths = Configure::default().set("backup_paths", backup.to_str().unwrap()).unwrap();
    paths.apply(&world.directory).unwrap();
    fs::create_dir(backup.join("deep")).unwrap();
    let ways = [(Some(&keys), vec![]), (None, vec![backup.clone()])];
    for (keys, also) in ways {
        for inside in [backup.join("v.pin"), backup.join("deep/v.pin"), world.directory.join("v.pin")] {
            let log = bulla::open_log(&world.directory, keys.map(|keys| &**keys), &also).unwrap();
            let verify = bulla::Verify::open_store(log).unwrap().key(world.key.clone()).pin(&inside);
            let error = verify.run().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains("with which it would be put back"), "{error}");
            assert!(!inside.exists());
        }
    }
}

#[test]
fn a_pin_that_cannot_be_written_stops_the_log_and_costs_nothing() {
    for whole_directory in [false, true] {
        let world = World::new();
        world.append(1);
        let elsewhere = world.pin.parent().unwrap();
        let log = world.open().unwrap();
        append(&log, 3);
        log.flush().unwrap();
        let published = world.checkpoint();
        let aside = world.place.path().join("aside");
        let moved = if whole_directory { elsewhere } else { &world.pin };
        fs::rename(moved, &aside).unwrap();
        append(&log, 2);
        let error = log.flush().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("audit.pin"), "{error}");
        assert_eq!(world.checkpoint(), published, "nothing is published before it is pinned");
        drop(log);
        assert!(!moved.exists(), "what is gone is not made again");
        fs::rename(&aside, moved).unwrap();
        let log = world.open().unwrap();
        assert_eq!(log.recovery().entries, 2, "what was acknowledged is there");
        log.close().unwrap();
        assert_eq!(world.pinned(), world.checkpoint());
        assert_eq!(world.verify().pin(&world.pin).run().unwrap().entries, 6);
    }
}

#[test]
fn restoring_keys_changes_nothing_of_a_log_that_is_behind_its_pin() {
    let world = World::new();
    world.append(3);
    let older = world.backup();
    world.append(2);
    world.put_back(older.path());
    let seal_key = fs::read_to_string(default_keys(&world.directory).join("seal.key")).unwrap();
    fs::remove_file(default_keys(&world.directory).join("seal.state")).unwrap();
    let identity = fs::read_to_string(default_keys(&world.directory).join("identity.age")).unwrap();
    let identity = std::sync::Arc::new(bulla::keys::recipients::IdentityFile::parse(&identity).unwrap());
    let before = world.files();
    let restore = || Restore::new(&world.directory, identity.clone()).seal_key(seal_key.clone().into());
    for attempt in [restore().look().map(drop), restore().run().map(drop)] {
        let error = attempt.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        assert!(error.to_string().contains("audit.pin"), "{error}");
    }
    world.is_as(&before, "it was refused");
}
