//! Directories of the file system that are moved, replaced, or gone while a log has them open.

use bulla::environment::{Environment, Tell};
use bulla::store::{FileSystem, Store};
use bulla::{
    Configure, Entry, FindingKind, Follow, Followed, Log, Options, Query, Reader, Severity, Verify,
    default_keys, open_log,
};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
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

    fn open_in(&self, environment: Environment, retries: u32) -> Log {
        let stores = [self.directory.clone(), default_keys(&self.directory)]
            .map(|path| Arc::new(FileSystem::new(path)));
        let [log, keys] = stores;
        let options = Options::default().memory(64 << 20).writers(1).retries(retries);
        Log::open_stores(log, keys, options, environment).unwrap()
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

/// Moved and unmounted directories are failures like others: a log waits for them as long as its retries last, and one that blocks for ever.
#[test]
fn a_log_waits_for_a_path_that_was_moved_to_be_put_back() {
    let of_each = |on_failure| ["audit", "backup"].map(|back| (back, on_failure));
    for (back, (on_failure, retries)) in of_each(("block", 1)).into_iter().chain(of_each(("refuse", 1000))) {
        let place = Place::new();
        let configure = Configure::default().set("on_failure", on_failure).unwrap();
        configure.apply(&place.directory).unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let say = said.clone();
        let path_replaced: Tell = Arc::new(move |what| say.lock().unwrap().push(what.to_owned()));
        let environment = Environment { path_replaced: Some(path_replaced), ..Environment::default() };
        let log = place.open_in(environment, retries);
        append(&log, 0..20);
        let (here, away) = (
            |name: &str| place.place.path().join(name),
            |name: &str| place.place.path().join(format!("{name}.away")),
        );
        for name in ["audit", "backup"] {
            fs::rename(here(name), away(name)).unwrap();
        }
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            log.when_trying_again(move |why| drop(tell.send(why.to_owned())));
            let appending = scope.spawn(|| append(&log, 20..40));
            assert!(told.recv().unwrap().contains("was replaced or moved"), "{back}");
            assert!(!appending.is_finished(), "{back}");
            fs::rename(away(back), here(back)).unwrap();
            appending.join().unwrap();
        });
        let last = said.lock().unwrap().last().cloned().unwrap();
        assert!(last.ends_with(&format!("the log goes on in {}", here(back).display())), "{back}: {last}");
        append(&log, 40..60);
        log.close().unwrap();
        for name in ["audit", "backup"].into_iter().filter(|name| *name != back) {
            fs::rename(away(name), here(name)).unwrap();
        }
        let report = Verify::open_store(place.log()).unwrap().run().unwrap();
        assert!(report.ok, "{back}: {:?}", report.findings);
        assert_eq!(place.entries(), (0..60).collect(), "{back}");
    }
}

/// As long as nothing is put back nothing is written, and closing the log ends the waiting with what became of it.
#[test]
fn a_log_that_blocks_and_is_closed_while_its_directory_is_away_says_so() {
    let place = Place::new();
    let configure = Configure::default().set("on_failure", "block").unwrap();
    configure.apply(&place.directory).unwrap();
    let log = place.open().unwrap();
    append(&log, 0..20);
    log.flush().unwrap();
    for name in ["audit", "backup"] {
        fs::rename(place.place.path().join(name), place.place.path().join(format!("{name}.away"))).unwrap();
    }
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", "20")).unwrap();
    let receipt = producer.flush().unwrap();
    let error = log.close().unwrap_err();
    assert!(error.to_string().contains("was replaced or moved"), "{error}");
    assert_eq!(receipt.durable().unwrap_err().kind(), bulla::ErrorKind::Unavailable);
    for name in ["audit", "backup"] {
        fs::rename(place.place.path().join(format!("{name}.away")), place.place.path().join(name)).unwrap();
    }
    assert_eq!(place.entries(), (0..20).collect());
}

/// Moves a directory of the log away and puts something else in its place.
fn block(place: &Place, path: &str, directory: &str) {
    let name = place.place.path().join(path).join(directory);
    fs::rename(&name, place.place.path().join("aside")).unwrap();
    std::os::unix::fs::symlink(std::env::temp_dir(), &name).unwrap();
}

#[test]
fn what_is_in_the_way_on_one_path_is_named_there_and_the_log_goes_on_on_the_others() {
    for directory in ["segments", "tile", "index"] {
        let place = Place::new();
        let (backup, third) = (place.place.path().join("backup"), place.place.path().join("third"));
        let paths = format!("{},{}", backup.display(), third.display());
        Configure::default().set("backup_paths", &paths).unwrap().apply(&place.directory).unwrap();
        let log = place.open().unwrap();
        append(&log, 0..20);
        block(&place, "backup", directory);
        fs::rename(&place.directory, place.place.path().join("moved")).unwrap();
        append(&log, 20..40);
        append(&log, 40..60);
        log.close().unwrap();
        assert!(fs::read_dir(third.join("segments")).unwrap().next().is_some(), "{directory}");
        fs::rename(place.place.path().join("moved"), &place.directory).unwrap();

        // What may lie there is not known.
        let reader = Reader::open_store(place.log()).unwrap();
        let error = reader.events(|_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), bulla::ErrorKind::Unavailable, "{error}");
        let told = error.to_string();
        assert!(
            told.contains(&format!("{} is a path", backup.display())) && told.contains(directory),
            "{told}"
        );
        let report = Verify::open_store(place.log()).unwrap().run().unwrap();
        let findings =
            report.findings.iter().map(|finding| (finding.kind, finding.severity)).collect::<Vec<_>>();
        assert_eq!(
            findings,
            [(FindingKind::PathMissing, Severity::Violation)],
            "{directory}: {:?}",
            report.findings
        );
        let error = place.open().err().unwrap().to_string();
        assert!(error.contains(&format!("{} is a path of the log", backup.display())), "{error}");

        fs::remove_file(backup.join(directory)).unwrap();
        fs::rename(place.place.path().join("aside"), backup.join(directory)).unwrap();
        assert_eq!(place.entries(), (0..60).collect(), "{directory}");
    }
}

#[test]
fn a_link_to_another_path_in_the_place_of_one_hides_nothing_that_lies_there() {
    let place = Place::new();
    let [backup, third, away] = ["backup", "third", "away"].map(|name| place.place.path().join(name));
    let paths = format!("{},{}", backup.display(), third.display());
    Configure::default().set("backup_paths", &paths).unwrap().apply(&place.directory).unwrap();
    let log = place.open().unwrap();
    let mut moved = Vec::new();
    for (number, next) in [&place.directory, &backup, &third].into_iter().enumerate() {
        append(&log, number as u64 * 20..number as u64 * 20 + 20);
        log.flush().unwrap();
        if *next != third {
            let aside = next.with_extension("aside");
            fs::rename(next, &aside).unwrap();
            moved.push((aside, next.clone()));
        }
    }
    log.close().unwrap();
    moved.iter().for_each(|(aside, back)| fs::rename(aside, back).unwrap());
    assert_eq!(place.entries(), (0..60).collect());

    fs::rename(&third, &away).unwrap();
    for other in [&place.directory, &backup] {
        std::os::unix::fs::symlink(other, &third).unwrap();
        let error = Reader::open_store(place.log()).unwrap().events(|_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), bulla::ErrorKind::Unavailable, "{error}");
        let missing = format!("{} is a path of the log, and is missing", third.display());
        assert!(error.to_string().contains(&missing), "{error}");
        let report = Verify::open_store(place.log()).unwrap().run().unwrap();
        let is_told = |finding: &bulla::Finding| {
            finding.kind == FindingKind::PathMissing && finding.severity == Severity::Violation
        };
        assert!(report.findings.iter().any(is_told), "{:?}", report.findings);
        let error = place.open().err().unwrap();
        assert_eq!(error.kind(), bulla::ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains(&missing), "{error}");
        fs::remove_file(&third).unwrap();
    }
    // A link to where the path itself is now takes nothing away.
    std::os::unix::fs::symlink(&away, &third).unwrap();
    assert_eq!(place.entries(), (0..60).collect());
    let report = Verify::open_store(place.log()).unwrap().run().unwrap();
    assert!(report.ok, "{:?}", report.findings);
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

/// Opens a log by any name of its own directory.
fn open_by(name: &std::path::Path, keys: &std::path::Path) -> bulla::Result<Log> {
    let [log, keys] = [name, keys].map(|path| Arc::new(FileSystem::new(path)));
    let options = Options::default().memory(64 << 20).writers(1).retries(1);
    Log::open_stores(log, keys, options, Environment::default())
}

/// Whoever has the storage of a path that was left could have it taken for another one, and what it should have for lost.
#[test]
fn the_own_directory_is_known_by_whatever_name_it_is_opened() {
    let place = Place::new();
    let log = place.open().unwrap();
    append(&log, 0..20);
    log.flush().unwrap();
    let moved = place.place.path().join("moved");
    fs::rename(&place.directory, &moved).unwrap();
    append(&log, 20..40);
    log.close().unwrap();
    fs::rename(&moved, &place.directory).unwrap();
    let backup = place.place.path().join("backup");
    let (keys, own) = (default_keys(&place.directory), place.directory.clone());
    let known = fs::read(keys.join("paths")).unwrap();
    let of_backup = fs::read_to_string(backup.join("path")).unwrap();
    let id = of_backup.lines().nth(2).unwrap();
    let made_up = of_backup.replace(id, &"cd".repeat(16));
    std::os::unix::fs::symlink(&own, place.place.path().join("link")).unwrap();
    fs::create_dir(place.place.path().join("beside")).unwrap();
    let names = ["audit", "beside/../audit", "link"].map(|name| place.place.path().join(name));
    for (planted, is_away) in [(&made_up, false), (&of_backup, true)] {
        fs::write(own.join("path"), planted).unwrap();
        if is_away {
            fs::rename(&backup, &moved).unwrap();
        }
        for name in &names {
            let error = open_by(name, &keys).err().unwrap();
            assert_eq!(error.kind(), bulla::ErrorKind::Tampered, "{name:?}, {is_away}: {error}");
            let log = open_log(name, Some(&keys), &[]).unwrap();
            let report = Verify::open_store(log).unwrap().run().unwrap();
            let is_told = report.findings.iter().any(|finding| finding.kind == FindingKind::PathMismatch);
            assert!(is_told, "{name:?}, {is_away}: {:?}", report.findings);
            let configure = Configure::default().set("backup_paths", backup.to_str().unwrap()).unwrap();
            let stores = [name.clone(), keys.clone()].map(|path| Arc::new(FileSystem::new(path)));
            let [log, of_keys] = stores;
            let error = configure.apply_in(log, of_keys, &Environment::default()).unwrap_err();
            assert_eq!(error.kind(), bulla::ErrorKind::Refused, "{name:?}, {is_away}: {error}");
            assert_eq!(fs::read(keys.join("paths")).unwrap(), known, "{name:?}, {is_away}");
        }
    }
    fs::rename(&moved, &backup).unwrap();
    fs::remove_file(own.join("path")).unwrap();
    // By each of these names it is what it was, and its place is kept from the root on.
    for (name, number) in names.into_iter().zip(40..) {
        let log = open_by(&name, &keys).unwrap();
        append(&log, number..number + 1);
        log.close().unwrap();
        let known = fs::read_to_string(keys.join("paths")).unwrap();
        assert!(known.lines().all(|line| !line.contains("..")), "{known}");
    }
}
