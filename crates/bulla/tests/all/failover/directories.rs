//! Directories of the file system that are moved, replaced, or gone while a log has them open.

use bulla::store::Store;
use bulla::{
    Configure, Entry, Follow, Followed, Log, Options, Query, Reader, Verify, default_keys, open_log,
};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

struct Place {
    place: TempDir,
    directory: PathBuf,
}

impl Place {
    fn new() -> Place {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        bulla::Init::default().origin("example.com/audit").create(&directory).unwrap();
        let backup = place.path().join("backup");
        let configure = Configure::default().set("backup_paths", backup.to_str().unwrap()).unwrap();
        configure.apply(&directory).unwrap();
        Place { place, directory }
    }

    fn open(&self) -> bulla::Result<Log> {
        Log::open(&self.directory, Options::default().memory(64 << 20).writers(1).retries(1))
    }

    fn log(&self) -> Arc<dyn Store> {
        open_log(&self.directory, Some(&default_keys(&self.directory)), &[]).unwrap()
    }

    fn entries(&self) -> BTreeSet<u64> {
        let identity = bulla::control::identity_in(&default_keys(&self.directory)).unwrap();
        let reader = Reader::open_store(self.log()).unwrap().identity(Arc::new(identity));
        let mut found = BTreeSet::new();
        let add = |_, entry: &Entry<'_>| {
            found.insert(std::str::from_utf8(entry.location.unwrap()).unwrap().parse().unwrap());
            Ok(())
        };
        reader.for_each(&Query::new(), add).unwrap();
        found
    }
}

fn append(log: &Log, numbers: Range<u64>) {
    let mut producer = log.producer().unwrap();
    for number in numbers {
        producer.append(&Entry::new("read", &number.to_string())).unwrap();
    }
    producer.flush().unwrap().durable().unwrap();
}

#[test]
fn a_directory_that_is_moved_away_is_replaced_and_not_written_any_more() {
    let place = Place::new();
    let log = place.open().unwrap();
    append(&log, 0..20);
    log.flush().unwrap();
    let moved = place.place.path().join("moved");
    fs::rename(&place.directory, &moved).unwrap();
    let before = fs::read_dir(moved.join("segments")).unwrap().count();
    append(&log, 20..40);
    log.close().unwrap();
    assert_eq!(fs::read_dir(moved.join("segments")).unwrap().count(), before);
    assert!(!place.directory.exists());
    // Without it the log is what follows, and that is told; with it, it is whole.
    let report = Verify::open_store(place.log()).unwrap().run().unwrap();
    assert!(!report.ok, "{:?}", report.findings);
    fs::rename(&moved, &place.directory).unwrap();
    let report = Verify::open_store(place.log()).unwrap().run().unwrap();
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!(place.entries(), (0..40).collect());
    // It is opened by its name again.
    let log = place.open().unwrap();
    append(&log, 40..60);
    log.close().unwrap();
    assert_eq!(place.entries(), (0..60).collect());
}

#[test]
fn whoever_follows_a_log_follows_it_to_another_path() {
    let place = Place::new();
    let log = place.open().unwrap();
    append(&log, 0..20);
    log.flush().unwrap();
    let identity = bulla::control::identity_in(&default_keys(&place.directory)).unwrap();
    let reader = Reader::open_store(place.log()).unwrap().identity(Arc::new(identity));
    let mut follow = reader.follow(&Query::new()).unwrap();
    let mut seen = BTreeSet::new();
    let mut poll = |follow: &mut Follow<'_>| {
        let add = |followed: &Followed<'_>| {
            let location = followed.entry.location.unwrap();
            seen.insert(std::str::from_utf8(location).unwrap().parse::<u64>().unwrap());
            Ok(())
        };
        follow.poll(add).unwrap();
        seen.len()
    };
    assert_eq!(poll(&mut follow), 20);
    let moved = place.place.path().join("moved");
    fs::rename(&place.directory, &moved).unwrap();
    append(&log, 20..40);
    log.flush().unwrap();
    fs::rename(&moved, &place.directory).unwrap();
    assert_eq!(poll(&mut follow), 40);
    log.close().unwrap();
}

#[test]
fn a_backup_path_lies_apart_from_the_log_and_its_keys_and_is_empty() {
    let place = Place::new();
    let full = place.place.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("letter"), "").unwrap();
    let inside = place.directory.join("backup");
    let keys = default_keys(&place.directory).join("backup");
    for path in [&full, &inside, &keys, &place.place.path().to_owned()] {
        let configure = Configure::default().set("backup_paths", path.to_str().unwrap()).unwrap();
        let error = configure.apply(&place.directory).unwrap_err();
        assert_eq!(error.kind(), bulla::ErrorKind::Refused, "{error}");
    }
    assert!(!inside.exists() && !keys.exists());
}

/// The drill for a log's own directory that is gone for good.
#[test]
fn a_log_whose_own_directory_is_lost_goes_on_under_the_name_of_another_path() {
    let place = Place::new();
    let (keys, backup) = (default_keys(&place.directory), place.place.path().join("backup"));
    let log = place.open().unwrap();
    append(&log, 0..20);
    log.flush().unwrap();
    let moved = place.place.path().join("moved");
    fs::rename(&place.directory, &moved).unwrap();
    append(&log, 20..40);
    log.close().unwrap();

    Configure::default().unset("backup_paths").unwrap().apply_with_keys(&backup, &keys).unwrap();
    let options = Options::default().memory(64 << 20).writers(1).retries(1);
    let log = Log::open_with_keys(&backup, &keys, options).unwrap();
    append(&log, 40..60);
    log.close().unwrap();

    // Where it is found again, the two are the log, under its name.
    fs::rename(&moved, &place.directory).unwrap();
    let error = open_log(&backup, Some(&keys), std::slice::from_ref(&place.directory)).unwrap_err();
    assert!(error.to_string().contains("name it as DIR"), "{error}");
    let whole = open_log(&place.directory, None, &[backup]).unwrap();
    let report = Verify::open_store(whole).unwrap().run().unwrap();
    assert!(report.ok && report.entries == 60, "{report:#?}");
}

#[test]
fn a_backup_path_is_made_without_what_is_above_it_and_one_that_shares_a_disk_is_told() {
    let place = Place::new();
    let deep = place.place.path().join("nomount").join("deep");
    let configure = Configure::default().set("backup_paths", deep.to_str().unwrap()).unwrap();
    let error = configure.apply(&place.directory).unwrap_err();
    assert_eq!(error.kind(), bulla::ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("is its disk mounted?"), "{error}");
    assert!(!deep.parent().unwrap().exists());

    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = told.clone();
    let environment = bulla::environment::Environment {
        path_replaced: Some(Arc::new(move |what: &str| tell.lock().unwrap().push(what.to_owned()))),
        ..bulla::environment::Environment::default()
    };
    let other = place.place.path().join("other");
    let configure = Configure::default().set("backup_paths", other.to_str().unwrap()).unwrap();
    let store = |path: PathBuf| Arc::new(bulla::store::FileSystem::new(path));
    configure
        .apply_in(store(place.directory.clone()), store(default_keys(&place.directory)), &environment)
        .unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("other is on one file system with the log's directory"), "{told:?}");
}
