//! Sources that are damaged, put back, rewritten or another log's: nothing of it is taken up.

use super::{Source, append, files, is_sound};
use crate::erase::world::copy_into;
use crate::helpers::in_full;
use bulla::mirror::Mirror;
use bulla::store::Store;
use bulla::{ErrorKind, Log, Verify, default_keys};
use bulla_testkit::fault::Faults;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A mirror of what the log was earlier.
fn mirrored(source: &Source, earlier: &Path) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    Mirror::open(earlier, &to, Some(source.key.clone())).unwrap().poll(|_| {}).unwrap();
    (place, to)
}

/// That shipping from `from` is refused with this finding, and leaves the mirror at its checkpoint, sound.
fn is_refused(source: &Source, from: &Path, to: &Path, finding: &str) {
    let before = fs::read(to.join("checkpoint")).unwrap();
    let error = Mirror::open(from, to, None).unwrap().poll(|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
    assert!(error.to_string().contains(finding), "{finding}: {error}");
    assert_eq!(fs::read(to.join("checkpoint")).unwrap(), before);
    is_sound(&source.verify(to).run().unwrap(), finding);
}

#[test]
fn a_log_that_was_put_back_is_refused_also_where_it_has_gone_on_since() {
    let (source, earlier) = Source::eventful();
    let (_place, to) = mirrored(&source, &source.directory);
    is_refused(&source, &earlier, &to, "violation pin-mismatch: the source has");
    // Put back with its keys, it is gone on with: first it is shorter, then longer.
    let log = Log::open(&earlier, Source::options()).unwrap();
    append(&log, 1);
    log.flush().unwrap();
    is_refused(&source, &earlier, &to, "are not those that the destination has");
    append(&log, 300);
    log.close().unwrap();
    is_refused(&source, &earlier, &to, "violation pin-mismatch: the first");
}

#[test]
fn two_histories_of_one_size_are_told_apart() {
    let (source, earlier) = Source::eventful();
    let other = source.copied("other");
    for (directory, entries) in [(&source.directory, 2), (&other, 2)] {
        let log = Log::open(directory, Source::options()).unwrap();
        append(&log, entries);
        log.close().unwrap();
    }
    let (_place, to) = mirrored(&source, &source.directory);
    is_refused(&source, &other, &to, "violation pin-mismatch: the first");
    drop(earlier);
}

#[test]
fn another_log_in_the_place_of_the_source_is_refused() {
    let (source, _) = Source::eventful();
    let (_place, to) = mirrored(&source, &source.directory);
    let other = Source::new();
    other.append(3);
    is_refused(&source, &other.directory, &to, "violation pin-mismatch: the destination is a mirror of");
    // One that has the configuration of the right one.
    fs::copy(source.directory.join("bulla.toml"), other.directory.join("bulla.toml")).unwrap();
    is_refused(&source, &other.directory, &to, "violation checkpoint-damaged");
}

#[test]
fn a_key_that_was_given_has_to_be_that_of_the_source() {
    let (source, _) = Source::eventful();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let other = Source::new();
    let error =
        Mirror::open(&source.directory, &to, Some(other.key.clone())).unwrap().poll(|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tampered);
    assert!(error.to_string().contains("violation key-mismatch"), "{error}");
    assert!(!to.join("bulla.toml").exists());
}

/// All files of a log, and what stands in each.
fn all(directory: &Path, into: &mut Vec<PathBuf>) {
    for item in fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => all(&path, into),
            false => into.push(path),
        }
    }
}

#[test]
fn no_damage_of_the_source_reaches_the_mirror() {
    let (source, earlier) = Source::witnessed();
    let machine = Faults::new();
    machine.store("").create_directory("").unwrap();
    let ship = |from: &Path, machine: &Faults| {
        Mirror::open_stores(files(from), Arc::new(machine.store("copy")), None)?.poll(|_| {})
    };
    ship(&earlier, &machine).unwrap();
    let mut paths = Vec::new();
    all(&source.directory, &mut paths);
    paths.sort();
    let (mut refused, mut passed) = (0, 0);
    for path in paths {
        let whole = fs::read(&path).unwrap();
        let step = (whole.len() / if in_full() { 400 } else { 24 }).max(1) | 1;
        for at in (0..whole.len()).step_by(step) {
            let what = format!("{} at {at}", path.display());
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            let copy = machine.kill();
            match ship(&source.directory, &copy) {
                Ok(_) => passed += 1,
                Err(error) => {
                    refused += 1;
                    assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
                    assert!(error.to_string().contains("violation "), "{what}: {error}");
                }
            }
            let verify = Verify::open_store(Arc::new(copy.store("copy"))).unwrap().key(source.key.clone());
            is_sound(&verify.run().unwrap(), &what);
            let policy = source.policy.clone().unwrap();
            let verify = Verify::open_store(Arc::new(copy.store("copy"))).unwrap().policy(policy);
            is_sound(&verify.key(source.key.clone()).run().unwrap(), &what);
        }
        fs::write(&path, &whole).unwrap();
    }
    assert!(refused > 50 && passed > 50, "{refused} refused, {passed} passed");
}

/// Bytes of segments that are gone, moved, or too many.
#[test]
fn frames_that_are_missing_at_the_source_are_named() {
    let (source, earlier) = Source::eventful();
    let (_place, to) = mirrored(&source, &earlier);
    let segments = source.directory.join("segments");
    let mut names = fs::read_dir(&segments).unwrap().map(|item| item.unwrap().path()).collect::<Vec<_>>();
    names.sort();
    let last = names.pop().unwrap();
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() - 10]).unwrap();
    is_refused(&source, &source.directory, &to, "violation frames-missing in ");
    fs::remove_file(&last).unwrap();
    is_refused(&source, &source.directory, &to, "violation fram");
    fs::write(&last, &bytes).unwrap();
    Mirror::open(&source.directory, &to, None).unwrap().poll(|_| {}).unwrap();
    is_sound(&source.verify(&to).run().unwrap(), "mended");
}

#[test]
fn what_an_earlier_mirror_left_of_another_history_is_replaced() {
    // The source was put back while a mirror was on its way, before any checkpoint of the history that is gone now had arrived.
    let (source, earlier) = Source::eventful();
    let other = source.place.path().join("other");
    copy_into(&earlier, &other);
    copy_into(&default_keys(&earlier), &default_keys(&other));
    let log = Log::open(&other, Source::options()).unwrap();
    for _ in 0..5 {
        append(&log, 60);
        log.rotate().unwrap();
    }
    log.close().unwrap();
    let (_place, to) = mirrored(&source, &earlier);
    // What such a mirror has written by then: segments, and tiles beyond the checkpoint.
    let on_its_way = source.place.path().join("on its way");
    copy_into(&to, &on_its_way);
    Mirror::open(&other, &on_its_way, None).unwrap().poll(|_| {}).unwrap();
    for name in ["segments", "tile"] {
        copy_into(&on_its_way.join(name), &to.join(name));
    }
    is_sound(&source.verify(&to).run().unwrap(), "with what is left");
    Mirror::open_stores(files(&source.directory), files(&to), None).unwrap().poll(|_| {}).unwrap();
    let report = source.verify_seals(&to).strict(true).run().unwrap();
    assert!(report.ok && report.findings.is_empty(), "{:?}", report.findings);
}
